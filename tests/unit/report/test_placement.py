"""Where threads that communicate are pinned, and which pair is the lowest and the highest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from nodeprint.data.store import packing
from nodeprint.machine.topology.presets import preset
from nodeprint.readers import campaign_writer, matrix_file
from nodeprint.report.figures.node_levels import levels
from nodeprint.report.text.structure_sentences import isolation
from nodeprint.report.text.structure_sentences import placement_of_node as of_node
from nodeprint.report.text.structure_sentences import placement_sentences as sentences
from nodeprint.simulate import Plan, Variation, fleet
from nodeprint.structure.placement import extreme_pairs, rooms

CPUS = (10, 11, 12, 13, 20, 21, 22, 23)
GROUPS: Mapping[str, Sequence[Sequence[int]]] = {
    "CCX": [(10, 11), (12, 13), (20, 21), (22, 23)],
    "socket": [(10, 11, 12, 13), (20, 21, 22, 23)],
}


def matrix(inside: float = 23.0, beside: float = 107.0, across: float = 197.0) -> npt.NDArray[np.float64]:
    """Two sockets of two CCXs of two cores; CCX 1 of socket 0 is 1 ns faster."""
    number = np.arange(8)
    out = np.where(number[:, None] // 2 == number // 2, inside, beside)
    out = np.where(number[:, None] // 4 == number // 4, out, across).astype(float)
    out[2, 3] = out[3, 2] = inside - 1
    np.fill_diagonal(out, np.nan)
    return out


def test_each_level_has_its_room_figure_and_cpus() -> None:
    pin, extremes = sentences(matrix(), CPUS, GROUPS)
    assert pin == (
        "Placement of communicating threads: 2 fit into one CCX at 22 ns (CPUs 12-13); 4 fit into one socket at "
        "107 ns, 4.9 times as long (CPUs 10-13); up to 8 at 197 ns, 9.0 times as long."
    )
    assert extremes == "With one thread per core: lowest 22 ns (CPUs 12 and 13), highest 197 ns (CPUs 10 and 20)."


def test_a_group_that_is_no_faster_inside_is_no_room() -> None:
    """Clusters of small cores of a 12900K: 50 ns inside, 44 to others."""
    slow = matrix(inside=50.0, beside=44.0, across=45.0)
    assert [room.name for room in rooms(slow, CPUS, GROUPS)] == ["socket", "machine"]


def test_a_few_odd_pairs_name_no_place() -> None:
    """One pair of two cores that a host disturbed, and a part of which most pairs are missing."""
    odd = matrix()
    odd[4, 5] = odd[5, 4] = 11.0
    assert rooms(odd, CPUS, GROUPS)[0].cpus == (12, 13)
    four = {"CCX": [CPUS[:4], CPUS[4:]]}
    sparse = matrix(beside=23.0)
    sparse[4:, 4:] = np.nan
    sparse[4, 6] = sparse[6, 4] = 11.0
    assert rooms(sparse, CPUS, four)[0].cpus == (10, 11, 12, 13)


def test_one_pair_has_no_lowest_and_highest() -> None:
    assert extreme_pairs(np.array([[np.nan, 25.0], [25.0, np.nan]]), (0, 1)) is None


@pytest.mark.parametrize(
    ("cmdline", "words"),
    [
        ("ro isolcpus=2-7 nohz_full=2-7", "Settings: isolcpus 2-7, nohz_full 2-7, governor performance."),
        ("ro quiet", "Settings: isolcpus not set, nohz_full not set, governor performance."),
    ],
)
def test_isolation_is_said_as_found(cmdline: str, words: str) -> None:
    assert isolation({"cmdline": cmdline, "governor": "performance"}) == words


def test_a_simulated_node_says_it_of_hops_alone() -> None:
    simulated = fleet(Plan(preset("rome-2x64"), 1, 1, 2, 1, 1, Variation(), (), cells=False, linktest=True))
    pin, extremes, found = of_node(levels(simulated, "coherence-cas", "node000"), "node000", {"cmdline": "quiet"})
    assert "4 fit into one CCX at 2" in pin and "16 fit into one quadrant" in pin and "64 fit into one socket" in pin
    assert extremes.startswith("With one thread per core: lowest 2") and "governor not reported" in found
    assert of_node(levels(simulated, "linktest-node", "node000"), "node000", {}) == []


def test_without_labels_two_threads_of_a_core_are_no_two_cores(tmp_path: Path) -> None:
    """An imported matrix: two threads a core, and two groups of four cores."""
    cpu = np.arange(16)
    square = np.where(cpu[:, None] // 8 == cpu // 8, 25.0, 100.0) + 0.1 * np.sin(np.add.outer(cpu, cpu))
    square[cpu[:, None] // 2 == cpu // 2] = 4.0
    (tmp_path / "m.csv").write_text("\n".join(",".join(f"{ns:.2f}" for ns in row) for row in square) + "\n")
    (node,) = campaign_writer.write_campaign(
        [matrix_file.read_output(tmp_path / "m.csv", None)], tmp_path / "imported", None
    )
    pin, extremes = of_node(levels(packing.pack(tmp_path / "imported"), "coherence-cas", node), node, {})
    assert "4 fit into one CCX at 25 ns" in pin and "; up to 8 at 99.9 ns" in pin
    assert extremes.startswith("With one thread per core: lowest 24.9 ns"), extremes
