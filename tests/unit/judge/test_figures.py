"""Figures of nodes: no median is shown that few pairs are near. Published matrices where NODEPRINT_DATA names them."""

import itertools
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from nodeprint.campaign import node_sheet
from nodeprint.judge.campaign import judge
from nodeprint.judge.figures import Floats, _mixtures, over_runs, places
from nodeprint.judge.verdict import ClassFigure
from nodeprint.machine.topology.model import Topology
from nodeprint.machine.topology.presets import from_part
from nodeprint.readers import campaign_writer, matrix_file
from nodeprint.report.pages.tables import class_table
from tests.support import made_records, made_status, published
from tests.support.fleets import judged
from tests.support.made_status import run_outcome

#: Published matrices whose CPUs the labels of a component fit.
LABELED = {"Dual AMD EPYC 7742 64-Core Processor": ("EPYC 7742", 2), "AMD EPYC 7773X": ("EPYC 7773X", 1)}


def classes_of(path: Path, campaign: Path, machine: Topology | None = None) -> tuple[ClassFigure, ...]:
    """The classes of pairs of an imported matrix."""
    campaign_writer.write_campaign([matrix_file.read_output(path)], campaign, machine)
    (node,) = judge(campaign).verdict.nodes.values()
    return node.classes


def near(latency_ns: Floats, median: float) -> float:
    """The share of all pairs that are within 10% of a median."""
    pairs = latency_ns[np.triu_indices(len(latency_ns), 1)]
    return float(np.mean(np.abs(pairs[np.isfinite(pairs)] / median - 1) <= 0.1))


@pytest.mark.parametrize("name", [*published.CHOSEN_ON, *published.HELD_OUT])
def test_a_published_median_has_pairs_near_it(data: Path, tmp_path: Path, name: str) -> None:
    folder = data / "c2c" / "core-to-core-latency"
    pairs = published.machine(folder, name).matrix
    (figure,) = classes_of(folder / f"{name}.csv", tmp_path / "campaign")
    if not figure.groups:
        assert near(pairs, figure.median_ns) >= 1 / 3
    else:
        assert all(near(pairs, median) > 0 for median in figure.groups.values())
        rows = class_table((figure,)).rows
        assert sorted(str(cell) for row in rows for cell in row if cell in figure.groups) == sorted(figure.groups)


@pytest.mark.parametrize("name", LABELED)
def test_a_published_class_has_pairs_near_its_median(data: Path, tmp_path: Path, name: str) -> None:
    folder = data / "c2c" / "core-to-core-latency"
    pairs = published.machine(folder, name).matrix
    figures = classes_of(folder / f"{name}.csv", tmp_path / "campaign", from_part(*LABELED[name], True))
    assert len(figures) > 3
    total = len(pairs) * (len(pairs) - 1) / 2
    for figure in figures:
        for median in figure.groups.values() or [figure.median_ns]:
            assert near(pairs, median) >= 0.2 * figure.pairs / total, f"{figure.name}: {median:.0f} ns"


def test_an_imported_machine_without_labels_has_the_figures_of_its_groups(data: Path, tmp_path: Path) -> None:
    """Of the 7R13 three quarters of the pairs are near 195 ns, and no two cores of one socket 0 are."""
    path = data / "c2c" / "core-to-core-latency" / "AMD EPYC 7R13 48-Core Processor.csv"
    (figure,) = classes_of(path, tmp_path / "campaign")
    assert {name: round(ns) for name, ns in figure.groups.items()} == {
        "same core?": 10,
        "same CCX?": 23,
        "same socket?, socket 0": 108,
        "same socket?, socket 1": 200,
        "other socket?": 197,
    }


# --- of a fleet, computed anew ---


def student(values: np.ndarray) -> tuple[float, float, float]:
    """The median over runs and half of Student's 95% interval of their mean, and their standard deviation."""
    sd = float(np.std(values, ddof=1))
    return float(np.median(values)), float(stats.t.isf(0.025, len(values) - 1)) * sd / np.sqrt(len(values)), sd


@pytest.mark.parametrize("machine", ["naples-2x32", "EPYC 9454"])
def test_classes_have_the_median_over_runs_of_each_runs_median(machine: str) -> None:
    of_fleet = judged(nodes=3, jobs=2, machine=machine, passes=3)
    (quantity,) = (q for q in of_fleet.population.fleet.quantities if q.measurement == "coherence-cas")
    layout, near = quantity.pair_layout, len(quantity.pairs)
    for number, node in enumerate(of_fleet.verdict.nodes.values()):
        rows = quantity.node == number  # of both jobs
        figures = [figure for figure in node.classes if figure.home == quantity.homes[0]]
        assert {layout.class_names.index(figure.name) for figure in figures} == set(layout.classes.tolist())
        for figure in figures:
            of_class = np.flatnonzero(layout.classes == layout.class_names.index(figure.name))
            runs = np.median(np.median(quantity.values[rows][:, :, :near], axis=1)[:, of_class], axis=1)
            median, half, sd = student(runs.astype(np.float64))
            assert (figure.median_ns, figure.run_sd_ns) == pytest.approx((median, sd), rel=1e-3)
            assert (figure.ci_low_ns, figure.ci_high_ns) == pytest.approx((median - half, median + half), rel=1e-3)
            assert (figure.pairs, figure.runs, figure.left_out) == (len(of_class), 12, 0) and not figure.groups


def test_rows_have_the_worst_place_and_the_groups_median() -> None:
    of_fleet = judged("node002: core-clock 37 -15%", nodes=4, runs=3, cells=True)
    (quantity,) = (q for q in of_fleet.population.fleet.quantities if q.measurement == "clock-together")
    by_node = [np.median(quantity.values[quantity.node == n], axis=1).astype(np.float64) for n in range(4)]
    medians = [np.median(np.median(of_node, axis=1)) for of_node in by_node]
    for number, node in enumerate(of_fleet.verdict.nodes.values()):
        (figure,) = (figure for figure in node.cells if figure.measurement == "clock-together")
        median, half, sd = student(np.median(by_node[number], axis=1))
        assert (figure.median, figure.group) == pytest.approx((median, np.median(medians)), rel=1e-6)
        assert (figure.ci_low, figure.ci_high, figure.run_sd) == pytest.approx(
            (median - half, median + half, sd), rel=1e-3
        )
        of_places = np.median(by_node[number], axis=0)
        assert figure.worst_value == pytest.approx(of_places.min(), rel=1e-6)
        assert (figure.cells, figure.runs, figure.unit) == (of_places.size, 3, "Hz")
        assert (figure.worst["core"] == 37) == (number == 2)


def test_two_runs_have_no_interval_of_a_row() -> None:
    (figure, *_) = judged(nodes=3, cells=True).verdict.nodes["node000"].cells
    assert figure.runs == 2 and np.isnan([figure.ci_low, figure.ci_high]).all() and np.isfinite(figure.median)


def test_places_of_a_figure_are_those_that_it_is_the_median_of() -> None:
    of_fleet = judged(nodes=3, jobs=2)
    population, node = of_fleet.population, of_fleet.verdict.nodes["node001"]
    for figure in node.classes:
        found = places(population.reduced, 1, figure.measurement, figure.name, figure.home)
        assert found is not None and len(found[1]) == figure.pairs
    assert places(population.reduced, 1, "coherence-cas", "no such class", 0) is None
    assert places(population.reduced, 1, "no-such-measurement", "same socket", 0) is None


# --- over runs ---


def lone(tmp_path: Path, *of_runs: tuple[float, ...]) -> ClassFigure:
    """The class of a machine's pairs, by what each run has of every pair."""
    cpus = next(n for n in range(2, 50) if n * (n - 1) / 2 == len(of_runs[0]))
    pairs = list(itertools.combinations(range(cpus), 2))
    for number, values in enumerate(of_runs, start=1):
        first = made_records.header(run=number, seed=number, cpus=list(range(cpus)), passes=1)
        records = [made_records.pair(a, b, 0, ns) for (a, b), ns in zip(pairs, values, strict=True)]
        path = tmp_path / f"nodes/n1/job1/run{number}/coherence-cas.jsonl"
        path.parent.mkdir(parents=True)
        path.write_text(made_records.lines(first, *records, made_records.TRAILER))
    runs = [run_outcome("coherence-cas", number + 1) for number in range(len(of_runs))]
    made_status.put(tmp_path / "nodes/n1/job1", "complete", *runs, node="n1", host="n1")
    node_sheet.write_sheet(tmp_path / "nodes.tsv", [node_sheet.Node("n1", "n1", cpus=cpus)])
    (figure,) = judge(tmp_path).verdict.nodes["n1"].classes
    return figure


@pytest.mark.parametrize(
    ("of_runs", "median", "low", "high", "left_out"),
    [
        ([26.0, 122.0, 26.4], 26.4, 20, 30, 1),
        ([60.0, 61.0, 282.0], 61.0, 50, 70, 1),
        ([60.0, 60.4, 61.0, 60.6, 282.0, 60.2], 60.5, 59.5, 61.5, 1),
        ([26.0, 122.0], 74.0, 26, 122, 2),
        ([60.0, 61.0, 60.5], 60.5, 58, 63, 0),
    ],
)
def test_a_lone_machine_has_the_median_over_runs(
    tmp_path: Path, of_runs: list[float], median: float, low: float, high: float, left_out: int
) -> None:
    figure = lone(tmp_path, *((ns,) for ns in of_runs))
    assert figure.median_ns == pytest.approx(median, rel=1e-3)
    assert not figure.groups and figure.left_out == left_out
    assert low <= figure.ci_low_ns <= figure.median_ns <= figure.ci_high_ns <= high
    if left_out == len(of_runs):
        assert (figure.ci_low_ns, figure.ci_high_ns) == (low, high)


def test_groups_are_of_pairs_of_one_run(tmp_path: Path) -> None:
    near, far = (20.0, 21.0, 20.5, 20.2, 20.8), (99.0, 100.0, 101.0, 100.5, 99.5)
    assert len(lone(tmp_path / "mixture", near + far, near + far).groups) == 2
    assert lone(tmp_path / "runs", near + near, far + far).groups == {}
    assert lone(tmp_path / "few", near[:3] + far[:3], near[:3] + far[:3]).groups == {}


def test_a_run_that_was_not_made_takes_no_part() -> None:
    nothing = float("nan")
    figure, none, of_one = over_runs(np.array([[60.0, nothing, 61.0], [nothing] * 3, [60.0, nothing, nothing]]))
    assert (figure.median, figure.runs, figure.left_out) == (60.5, 2, 0)
    assert none.runs == 0 and of_one.runs == 1 and np.isnan(of_one.low)


@pytest.mark.parametrize(("far", "mixed"), [(109.0, False), (111.0, True)])
def test_sockets_more_than_a_tenth_apart_have_no_common_median(far: float, mixed: bool) -> None:
    by_socket = {"socket 0": np.arange(10), "socket 1": np.arange(10, 20)}
    level = np.tile(np.repeat([100.0, far], 10), (3, 1))
    assert _mixtures(level, by_socket, {4: [0, 1, 2]}) == ({4: {"socket 0": 100.0, "socket 1": far}} if mixed else {})
    assert _mixtures(level[:, :10], {"socket 0": np.arange(10)}, {4: [0, 1, 2]}) == {}
