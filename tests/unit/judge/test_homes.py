"""Lines at home in the pair's own socket and in the other: never in one median, matrix or term."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from nodeprint.cli import app
from nodeprint.data.places import homes
from nodeprint.data.places.layout import CLASSES, SOCKET
from nodeprint.data.places.measured import Measured, models
from nodeprint.data.store import packed
from nodeprint.data.store.packed import PackedFleet
from nodeprint.judge import figures as judged_figures
from nodeprint.judge.campaign import judge
from nodeprint.judge.outcome import Outcome
from nodeprint.judge.reduction import reduce
from nodeprint.machine.topology.presets import from_part
from nodeprint.report import verdict_files
from nodeprint.report.figures import node_levels
from nodeprint.simulate import Plan, Variation, fleet, write
from tests.support import printed

MACHINE = from_part("EPYC 7302", 2, False)


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A judged campaign with the home policy `sockets`; core 7 of a node is slower."""
    where = tmp_path_factory.mktemp("homes") / "both"
    defects = ("node001: renumbered", "node003: core 7 +9%")
    plan = Plan(MACHINE, 4, 2, 3, 2, 1, Variation(), defects, homes=(homes.NEAR, homes.FAR), cells=False)
    write(plan, where)
    verdict_files.write(judge(where).verdict, where)
    return where


@pytest.mark.slow
def test_a_class_has_near_lines_or_far_ones(both: Path) -> None:
    nodes = verdict_files.read(both).nodes
    medians = {(figure.home, figure.name): figure.median_ns for figure in nodes["node000"].classes}
    near, far = medians[homes.NEAR, "same socket"], medians[homes.FAR, "same socket"]
    assert far > 1.5 * near  # the median over both would be between them
    assert {node.fingerprint["homes"] for node in nodes.values()} == {"near, far"}
    assert medians[homes.NEAR, "other socket"] == pytest.approx(medians[homes.FAR, "other socket"], rel=0.02)


def test_a_core_is_named_once_and_nobody_else(both: Path) -> None:
    nodes = verdict_files.read(both).nodes
    assert [name for name, node in nodes.items() if node.outcome is Outcome.DEVIATES] == ["node003"]
    assert nodes["node003"].counted[0].component.where == {"core": 7, "cpu": 7}


def test_each_matrix_is_symmetric_between_its_sockets(both: Path) -> None:
    of_node = node_levels.levels(packed.read(both), "coherence-cas", "node000")
    assert of_node.quantity.homes == (homes.NEAR, homes.FAR)
    for home in of_node.quantity.homes:
        values = of_node.square(of_node.of("node000"), home)
        sockets = [values[start : start + 16, start : start + 16] for start in (0, 16)]
        assert np.nanmedian(sockets[0]) == pytest.approx(np.nanmedian(sockets[1]), rel=0.02)


@pytest.mark.slow
def test_the_terminal_has_the_near_ones_and_pages_have_both(both: Path) -> None:
    lines = "\n".join(printed.medians({"node000": verdict_files.read(both).nodes["node000"]}))
    assert "same socket" in lines and "home" not in lines
    assert CliRunner().invoke(app, ["report", str(both)]).exit_code == 0
    assert "far home" in (both / "report/cluster.html").read_text()


@pytest.fixture(scope="module")
def at_each() -> PackedFleet:
    """Two nodes that were measured at each NUMA node; socket 1 lacks most of its pairs, so that no count is even."""
    found = fleet(Plan(MACHINE, 2, 2, 3, 2, 1, Variation(), homes=(0, 1), cells=False))
    pairs = found.pairs[0]
    values = np.array(pairs.by_home)
    values[..., (pairs.layout.slots[pairs.pairs, SOCKET] == 1).all(axis=1) & (pairs.pairs[:, 0] % 4 > 0)] = np.nan
    return replace(found, quantities=(pairs.assign(values=values.reshape(pairs.values.shape)),))


def test_at_one_node_a_class_is_the_mean_of_its_sockets(at_each: PackedFleet) -> None:
    pairs = at_each.pairs[0]
    figures = judged_figures.of_classes([reduce(pairs)], 2)[0]
    (mine,) = [one for one in figures if (one.home, one.name) == (0, "same socket")]
    same = pairs.pair_layout.classes == CLASSES.index("same socket")
    socket = pairs.layout.slots[pairs.pairs[:, 0], SOCKET]
    of_run = [
        [np.nanmedian(np.median(run[:, 0, same & (socket == s)], axis=0)) for s in (0, 1)]
        for run in pairs.by_home[pairs.node == 0]
    ]
    assert min(far / near for near, far in of_run) > 1.5
    assert mine.median_ns == pytest.approx(np.median(np.mean(of_run, axis=1)), rel=1e-5)


def test_a_row_of_cells_is_the_mean_of_the_homes_it_names(at_each: PackedFleet) -> None:
    sizes, home = np.array([64] * 4), np.array([0, 1, 0, 1])
    values = np.array([10, 90, 12, 94.0], dtype=np.float32).reshape(1, 1, 4)
    one = Measured.from_arrays(
        "coherence-payload",
        "payload",
        "latency",
        "ns",
        models()["coherence-payload"],
        at_each.pairs[0].layout,
        {"a": np.zeros(4, np.int64), "b": np.array([1, 1, 2, 2]), "home": home, "size_bytes": sizes},
        values,
        np.array([0]),
        np.array([1]),
        np.array([1]),
        ("",),
        np.zeros(1),
    )
    (row,) = judged_figures.of_rows([reduce(one)], at_each.nodes)[0]
    assert (row.name, row.median, row.worst_value) == ("64, mean of homes 0+1", (11 + 92) / 2, 94)
    assert row.worst["home"] == 1
    apart = one.assign(places={**one.places, "home": np.array([0, 0, 1, 1]), "b": np.arange(4) + 1})
    assert [r.name for r in judged_figures.of_rows([reduce(apart)], at_each.nodes)[0]] == ["64"]
