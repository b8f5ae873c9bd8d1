"""The figure of a finding: whatever the judge finds, its pairs or cells are on the Axes, beyond the finding's
tolerance.

Kinds of findings are those of the types: each term of pairs of CPUs at each of their homes, and each set of cells that
measurements.yaml names. Each is planted once at three times its tolerance, judged, and read back from what is drawn on
the vendor's page.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from nodeprint.data.job.fabric_times import Fabric
from nodeprint.data.places.homes import FAR, NEAR
from nodeprint.data.places.measured import Measured, cell_models, models
from nodeprint.data.store.packed import PackedFleet
from nodeprint.judge import acceptance, pairs, sets
from nodeprint.judge.judge import judge
from nodeprint.judge.terms import Terms
from nodeprint.judge.verdict import Finding, Verdict
from nodeprint.machine.topology.presets import preset
from nodeprint.report.figures import render
from nodeprint.report.pages.judged_campaign import Campaign
from nodeprint.report.pages.node import finding_block
from nodeprint.simulate import Plan, fleet
from tests.support.combinations import in_turn, one_of

NODES, SLOW = 6, 2
#: Where the lines of core to core lie.
HOMES = (NEAR, 0, FAR)
#: How many times its tolerance a planted difference is.
TIMES = 3.0
#: Words of the dimensions of measurements that the simulator does not draw, and their numbers.
WORDS: Mapping[str, tuple[str, ...]] = {
    "state": ("exclusive", "modified"),
    "sharer": ("none", "one"),
    "kind": ("cas", "faa"),
    "among": ("ccx", "socket"),
    "place": ("other_socket", "own_node"),
    "together": ("alone", "both"),
    "stream": ("load", "triad"),
    "scope": ("machine", "socket"),
    "level": ("l1", "l2", "l3"),
}
NUMBERS: Mapping[str, tuple[int, ...]] = {
    "size_bytes": (1 << 12, 1 << 20, 1 << 26),
    "threads": (2, 4),
    "delay": (0, 100),
    "pairs": (1, 2, 4),
    "cores": (1, 2, 4),
    "a": (0, 1, 40),
    "b": (8, 33),
    "writer": (0, 1, 40),
    "reader": (8, 33),
    "from": (0, 1),
    "memory": (0, 1),
}
#: Labels that follow from a CPU or a memory node.
DERIVED = {"socket", "quadrant", "ccd", "ccx", "cluster", "cpu_node", "distance"}


@cache
def simulated() -> PackedFleet:
    plan = Plan(preset("naples-2x32"), nodes=NODES, runs=3, jobs=2, passes=1, cells=True, linktest=True, homes=HOMES)
    return fleet(plan)


@cache
def measured(measurement: str) -> Measured:
    """A measurement as it was simulated, or made up from its model."""
    known = {quantity.measurement: quantity for quantity in simulated().quantities}
    return known[measurement] if measurement in known else made_up(measurement)


def made_up(measurement: str) -> Measured:
    """A measurement that the simulator does not draw, with every place that its model names."""
    like = next(quantity for quantity in simulated().others if quantity.measurement == "clock-together")
    model = cell_models()[measurement]
    labels = list(dict.fromkeys([*itertools.chain(*model.terms), *model.rows, *model.at]))
    dims = sorted({label for label in labels if label not in DERIVED})
    if DERIVED & set(labels) and not {"cpu", "writer"} & set(dims):
        dims.append("cpu")
    slots = range(len(like.layout.slots))
    coordinates = [range(len(WORDS[dim])) if dim in WORDS else slots if dim == "cpu" else NUMBERS[dim] for dim in dims]
    places = np.array(sorted(itertools.product(*coordinates)), dtype=np.int64)
    noise = 1 + 0.001 * np.random.default_rng(1).standard_normal((len(like.node), 1, len(places)))
    unit = "ns" if model.value.endswith("_ns") else "B/s"
    return like.assign(
        measurement=measurement,
        operation="made up",
        unit=unit,
        model=model,
        places=dict(zip(dims, places.T, strict=True)),
        values=(100 * noise).astype(np.float32),
        names={dim: WORDS[dim] for dim in dims if dim in WORDS},
    )


def terms_of(quantity: Measured) -> Terms:
    return pairs.of(quantity.pair_layout) if quantity.of_pairs else sets.of(quantity)


def kinds_of_cells() -> Iterator[tuple[str, str]]:
    """Each measurement with each of its component types of cells that is there on the machine and no other in other
    words."""
    for measurement in cell_models():
        terms = terms_of(measured(measurement))
        yield from ((measurement, terms.component_types[number]) for number, _ in terms.by_component_type)


def kinds_of_pairs() -> Iterator[object]:
    """Each measurement of pairs with each of its terms, several of which may be one cause, at its homes in turn."""
    for quantity in simulated().pairs:
        terms = terms_of(quantity)
        names = dict.fromkeys(
            [
                *(f"{terms.component_types[number]}" for number, _ in terms.by_component_type),
                *(" ".join([cause.term, *cause.where]) for cause in terms.composites),
            ]
        )
        yield from in_turn(((quantity.measurement, name) for name in names), quantity.homes)


def covered(quantity: Measured, kind: str) -> npt.NDArray[np.int64]:
    """The places of the last part of a kind."""
    terms = terms_of(quantity)
    component_type = [number for number, term in enumerate(terms.terms) if term.component_type == kind]
    if component_type:
        return terms.terms[component_type[-1]].covers
    return [cause for cause in terms.composites if " ".join([cause.term, *cause.where]) == kind][-1].covers


def with_difference(quantity: Measured, at: npt.NDArray[np.int64], size: float) -> PackedFleet:
    """The fleet with this measurement alone, which differs by `size` at some places of one node, towards the bad."""
    values = quantity.values.copy()
    rows = np.flatnonzero(quantity.node == SLOW)
    where = np.ix_(rows, np.arange(values.shape[1]), at)
    if quantity.model.scale == "share":
        values[where] += size
    else:
        values[where] *= 1 + size if quantity.model.better == "lower" else 1 / (1 + size)
    return replace(simulated(), quantities=(quantity.assign(values=values),))


@pytest.fixture
def axes(monkeypatch: pytest.MonkeyPatch) -> list[Axes]:
    """The axes of every figure that is drawn."""
    axes: list[Axes] = []
    original = render.figure

    def watched(*arguments: Any, **options: Any) -> Figure:
        made = original(*arguments, **options)
        axes.append(made.axes[0])
        return made

    monkeypatch.setattr(render, "figure", watched)
    return axes


def assert_shown(of: PackedFleet, verdict: Verdict, finding: Finding, axes: list[Axes]) -> None:
    """On the vendor's page the places of a finding are drawn beyond the tolerance that is drawn, those of peers
    inside."""
    block = finding_block(Campaign(verdict, of), of.nodes[SLOW].name, finding, 1, {})
    assert block.figures, "the page has no figure of it"
    ax = axes[0]
    side = np.sign(finding.effect)
    caption = block.figures[0].caption
    ends = [np.asarray(line.get_ydata(), dtype=np.float64) for line in ax.get_lines()]
    assert any(np.ptp(of) == 0 and of[0] == pytest.approx(100 * finding.effect) for of in ends if len(of) == 2)
    assert "red line and area are the finding's difference" in caption
    if (axis := ax.get_xlabel()).startswith(("partner", "CPU (mean")):
        assert f", by {axis.partition(' (')[0]} (triangles)" in caption, "the caption says what is drawn"
    marks = [line for line in ax.get_lines() if line.get_marker() == "^"]
    values = side * np.concatenate([np.asarray(line.get_ydata(), dtype=np.float64) for line in marks])
    tolerances = sorted(float(np.asarray(line.get_ydata())[0]) for line in ax.get_lines() if line.is_dashed())
    tolerance = tolerances[1] if side > 0 else -tolerances[0]
    assert len(tolerances) == 2 and tolerance == pytest.approx(100 * finding.tolerance)
    log = finding.component.term.startswith("fabric-") or models()[finding.measurement].scale == "log"
    assert (tolerances[1] > -tolerances[0] + 1e-6) == log, "a ratio is more above than below"
    assert np.mean(values > tolerance) > 0.9, (finding.component, tolerance, values)
    (ranges,) = [line for line in ax.get_lines() if line.get_label() == "_peers"]
    peers = np.asarray(ranges.get_ydata(), dtype=np.float64).reshape(-1, 3)[:, :2]
    assert len(peers) == len(values) or (len(values) == 1 and finding.cells), "one place stands beside others"
    assert (np.abs(peers.mean(axis=0)) < tolerance).all(), (finding.component, tolerance, peers)
    low, high = ax.get_ylim()
    assert low < min(values.min() * side, tolerances[0]) and high > max(values.max() * side, tolerances[1])


@pytest.mark.parametrize(("measurement", "kind"), one_of(list(kinds_of_cells()), 3))
def test_cells_of_a_finding_are_drawn_beyond_its_tolerance(measurement: str, kind: str, axes: list[Axes]) -> None:
    quantity = measured(measurement)
    tolerance = acceptance.load().cell(quantity.model.term).tolerance
    of = with_difference(quantity, covered(quantity, kind), TIMES * tolerance)
    verdict = judge(of).verdict
    (finding, *_) = verdict.nodes[of.nodes[SLOW].name].counted
    assert finding.cells
    assert_shown(of, verdict, finding, axes)


@pytest.mark.parametrize(("of_pairs", "home"), list(kinds_of_pairs()))
def test_pairs_of_a_finding_are_drawn_beyond_its_tolerance(
    of_pairs: tuple[str, str], home: int, axes: list[Axes]
) -> None:
    measurement, kind = of_pairs
    quantity = measured(measurement)
    at = covered(quantity, kind) + quantity.homes.index(home) * len(quantity.pairs)
    of = with_difference(quantity, at, 4 * 0.05)  # of a core in its CCX, whose tolerance is 2.5 ns
    verdict = judge(of).verdict
    (finding, *_) = verdict.nodes[of.nodes[SLOW].name].counted
    assert finding.pairs
    assert finding.home == home
    assert_shown(of, verdict, finding, axes)


@pytest.mark.parametrize(("sends", "receives", "to"), [(1, 1, None), (1, 0, None), (0, 1, None), (1, 1, 5), (1, 0, 5)])
def test_messages_of_a_finding_are_drawn_beyond_its_tolerance(
    sends: int, receives: int, to: int | None, axes: list[Axes]
) -> None:
    of, healthy = simulated(), fabric()
    values = healthy.values.copy()
    ends = slice(None) if to is None else to
    values[:, SLOW, ends] *= 1.4 if sends else 1
    values[:, ends, SLOW] *= 1.4 if receives else 1
    verdict = judge(of, fabrics=((replace(healthy, values=values),))).verdict
    (finding, *_) = verdict.fabric[0].findings
    assert ("to" in finding.component.where) == (to is not None)
    assert_shown(of, verdict, finding, axes)


def fabric() -> Fabric:
    """Messages between the nodes, half of which are behind another switch."""
    generator = np.random.default_rng(1)
    places = tuple(f"leaf{number // (NODES // 2)}" for number in range(NODES))
    near = np.array(places)[:, None] == np.array(places)[None, :]
    noise = np.exp(0.01 * generator.standard_normal((3, NODES, NODES)))
    values = 1e5 * np.where(near, 1.0, 1.5) * noise
    values[:, np.arange(NODES), np.arange(NODES)] = np.nan
    return Fabric(
        measurement="linktest-fabric",
        partition="main",
        nodes=tuple(node.name for node in simulated().nodes),
        places=places,
        runs=tuple(f"job1/run{run}" for run in (1, 2, 3)),
        started=("2026-01-01T00:00:00Z",) * 3,
        values=values,
        disturbed=(0.0,) * 3,
        header={"directed": True, "operation": "unidirectional"},
    )
