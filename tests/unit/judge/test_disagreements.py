"""Runs, passes and jobs that disagree: said with the factor, and on virtual machines no accusation."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from nodeprint.data.places.measured import Measured
from nodeprint.data.store.packed import PackedFleet
from nodeprint.judge import campaign, quality
from nodeprint.judge.judge import judge
from nodeprint.judge.outcome import Kind
from nodeprint.judge.verdict import Disturbance, Verdict
from nodeprint.report import text
from tests.support import printed
from tests.support.fleets import made

PAIRS = "coherence-cas"
#: Factor on a quantity's values (row, pass, place).
Change = Callable[[Measured], npt.NDArray[np.float64]]


def changed(fleet: PackedFleet, change: Change, *, virtual: bool) -> PackedFleet:
    """The fleet with other latencies between cores, on virtual machines or not."""
    quantities = tuple(
        q.assign(values=(q.values * change(q)).astype(np.float32)) if q.measurement == PAIRS else q
        for q in fleet.quantities
    )
    nodes = [replace(node, fingerprint={**node.fingerprint, "virtual": virtual}) for node in fleet.nodes]
    return replace(fleet, quantities=quantities, nodes=type(fleet.nodes)(nodes))


def run(factor: float, *which: tuple[int, int], job: int = 1) -> Change:
    """All pairs of some runs (node, run) times a factor."""
    return lambda q: np.where(
        [(n, r) in which and j == job for n, r, j in zip(q.node, q.run, q.job, strict=True)], factor, 1.0
    )[:, None, None]


def judged(fleet: PackedFleet) -> Verdict:
    """The verdict of a fleet."""
    return judge(fleet).verdict


def kinds(verdict: Verdict, node: str) -> dict[str, tuple[str, ...]]:
    """By kind of a node's disturbances which repetitions are off."""
    return {found.kind: found.odd for found in of_node(verdict, node)}


def of_node(verdict: Verdict, node: str) -> list[Disturbance]:
    """A node's disturbances, without the reason that an odd run is for its outcome."""
    return [found for found in verdict.nodes[node].disturbances if found.kind != quality.ODD_RUN]


def test_a_run_that_is_off_is_named_with_its_factor() -> None:
    verdict = judged(changed(made(nodes=1), run(4.7, (0, 2)), virtual=False))
    (found,) = of_node(verdict, "node000")
    assert (found.kind, found.invalid, found.odd) == ("runs-differ", False, ("job1/run2",))
    assert found.value == pytest.approx(4.7, rel=0.03) and found.high / found.low == pytest.approx(4.7, rel=0.1)
    sentence = r"run 2 differs from the others by a factor of ([\d.]+) .* (\d+) ns in run \d, (\d+) ns in run 2"
    match = re.search(sentence, " ".join(printed.summary(verdict).split()))
    assert match is not None
    factor, low, high = map(float, match.groups())
    assert factor == pytest.approx(high / low, abs=0.06), "that of the two values beside it"
    assert judged(made(nodes=1)).nodes["node000"].disturbances == ()


def test_a_run_that_is_off_is_named_in_a_fleet() -> None:
    verdict = judged(changed(made(nodes=4), run(1.5, (1, 2)), virtual=False))
    assert kinds(verdict, "node001") == {"runs-differ": ("job1/run2",)}
    assert not kinds(verdict, "node000")
    assert "Runs that differ on node001: run 2 differs from the others by a factor of 1.5" in printed.summary(verdict)


def test_a_pass_that_is_off_is_named_though_the_median_hides_it() -> None:
    def one_pass(q: Measured) -> npt.NDArray[np.float64]:
        out = np.ones((*q.values.shape[:2], 1))
        out[3, 2] = 0.2
        return out

    verdict = judged(changed(made(nodes=1, passes=3), one_pass, virtual=False))
    assert kinds(verdict, "node000") == {"passes-differ": ("job1/run4/pass3",)}
    assert "pass 3 of run 4 differs from the others by a factor of 5" in printed.summary(verdict)


def test_jobs_without_a_majority_differ() -> None:
    change = run(4.6, *((0, number) for number in range(1, 7)), job=2)
    verdict = judged(changed(made(nodes=1, jobs=2), change, virtual=False))
    (found,) = of_node(verdict, "node000")
    assert (found.kind, found.odd, found.low_in, found.high_in) == ("jobs-differ", (), "job1", "job2")
    assert "the jobs differ by a factor of 4.6" in printed.summary(verdict)


def test_a_lone_virtual_machine_that_moves_says_so_first() -> None:
    verdict = judged(changed(made(nodes=1), run(4.6, (0, 2), (0, 5)), virtual=True))
    found = next(found for found in verdict.nodes["node000"].disturbances if found.kind == "cpus-moved")
    first = text.first_line(verdict)
    assert first.startswith(
        "SIMULATED: NOT COMPARED (NO PEERS): The host migrates the virtual CPUs of node000: the same pair takes "
    )
    assert all(f"{ns:.3g} ns" in first for ns in (found.low, found.high)) and "Pin the virtual CPUs" in first
    assert found.high / found.low >= 1.5
    still = judged(changed(made(nodes=1), run(1.2, (0, 2)), virtual=True))
    assert kinds(still, "node000") == {"runs-differ": ("job1/run2",)}
    assert "virtual" not in text.first_line(still)


@pytest.mark.parametrize("nodes", [3, 8])
def test_virtual_machines_that_move_are_accused_of_nothing(nodes: int) -> None:
    fleet = made(nodes=nodes)
    verdict = judged(changed(fleet, run(4.6, *((number, 1 + number % 6) for number in range(nodes))), virtual=True))
    assert {str(node.outcome) for node in verdict.nodes.values()} == {"INVALID"}
    assert not any(node.counted for node in verdict.nodes.values())
    assert not verdict.fails([Kind.FOUND]) and verdict.fails([Kind.NOT_SAME])
    assert "The host migrates the virtual CPUs of node[000-" in text.first_line(verdict)


def test_one_virtual_machine_that_moves_leaves_the_others_their_outcome() -> None:
    verdict = judged(changed(made(nodes=8), run(4.6, (2, 1), (2, 3)), virtual=True))
    outcomes = {name: str(node.outcome) for name, node in verdict.nodes.items()}
    assert outcomes.pop("node002") == "INVALID" and set(outcomes.values()) == {"SAME"}


def test_where_a_host_moves_cpus_a_node_with_other_cpus_in_all_runs_is_not_accused() -> None:
    """One has both levels; of the others one had the one level in all of its runs, and one the other."""
    all_of_it = [(0, number) for number in range(1, 7)]
    verdict = judged(changed(made(nodes=3), run(4.6, *all_of_it, (2, 1)), virtual=True))
    assert {str(node.outcome) for node in verdict.nodes.values()} == {"INVALID"}
    real = judged(changed(made(nodes=3), run(4.6, *all_of_it), virtual=False))
    assert str(real.nodes["node000"].outcome) in {"SUSPECT", "MISMATCH"}


def test_jobs_of_a_virtual_machine_on_other_cpus_are_no_confirmation() -> None:
    change = run(4.6, *((0, number) for number in range(1, 7)), job=2)
    verdict = judged(changed(made(nodes=8, jobs=2), change, virtual=True))
    assert str(verdict.nodes["node000"].outcome) == "INVALID"
    assert {str(node.outcome) for name, node in verdict.nodes.items() if name != "node000"} == {"SAME"}


def test_some_pairs_of_a_virtual_machine_are_enough() -> None:
    """The host moved two of 64 CPUs."""

    def two_cpus(q: Measured) -> npt.NDArray[np.float64]:
        out = np.ones(q.values.shape)
        out[1] = np.where(np.isin(q.places["a"], (0, 40)) | np.isin(q.places["b"], (0, 40)), 2.5, 1.0)
        return out

    verdict = judged(changed(made(nodes=1), two_cpus, virtual=True))
    assert kinds(verdict, "node000") == {"runs-differ": ("job1/run2",), "cpus-moved": ("job1/run2",)}


#: A guest of 16 CPUs on an Emerald Rapids, measured by tools/many-cores of static kernels; its host moved its CPUs.
SIXTEEN = Path(__file__).parents[2] / "data" / "sixteen-cpus.tar.gz"


def test_a_real_guest_whose_host_moves_its_cpus_is_named(tmp_path: Path) -> None:
    subprocess.run(["tar", "-xzf", SIXTEEN, "-C", tmp_path], check=True)  # Python warns of it, or lacks the filter
    verdict = campaign.judge(tmp_path / "many-cores").verdict
    (moved,) = [found for found in of_node(verdict, "vm") if found.kind == "cpus-moved"]
    assert (moved.low_in, moved.high_in, moved.unit) == ("job1/run3", "job1/run1", "ns")
    assert (moved.low, moved.high) == pytest.approx((8.185, 76.62), rel=1e-3)
    assert moved.odd == ("job1/run1", "job1/run2", "job1/run3", "job1/run4")
    assert printed.summary(verdict).startswith(
        "NOT COMPARED (NO PEERS): The host migrates the virtual CPUs of vm: the same pair takes 8.19 ns"
    )


def test_a_pair_of_threads_for_one_run_is_no_sign_on_hardware() -> None:
    def one_pair(q: Measured) -> npt.NDArray[np.float64]:
        out = np.ones(q.values.shape)
        out[1, :, 2] = 0.1
        return out

    for virtual in (True, False):
        verdict = judged(changed(made(nodes=1, runs=6), one_pair, virtual=virtual))
        assert ("cpus-moved" in kinds(verdict, "node000")) == virtual
