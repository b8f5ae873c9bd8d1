"""Tolerances: the largest of percent, nanoseconds and clock ticks, and the same to everything that asks."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from nodeprint.data.places.layout import SAME_CCX
from nodeprint.data.places.measured import models
from nodeprint.data.store.packed import PackedFleet
from nodeprint.judge import acceptance, tolerances
from nodeprint.judge.deviations import Deviations
from nodeprint.judge.judge import judge
from tests.support.fleets import HARVESTED, judged, made

HOPS = "coherence-cas"
RULES = acceptance.load()


def _series(**changes: str) -> Deviations:
    return next(s for s in judged(**changes).tables if s.matrix.name == HOPS)


def test_tolerances_are_the_largest_of_percent_and_ns() -> None:
    series = _series()
    terms, levels = series.terms, series.matrix.levels
    near, inside = terms.indices("core-near"), terms.indices("core-in")
    np.testing.assert_allclose(series.tolerance[near], RULES.tolerance("core"))
    np.testing.assert_allclose(series.tolerance[inside], np.maximum(0.04, 2.0 / levels[inside]))


def test_tolerances_of_harvested_ccxs_are_their_own_and_their_cores_have_no_rank() -> None:
    series = _series(machine=HARVESTED)
    terms, levels = series.terms, series.matrix.levels
    assert not len(terms.indices("core-in"))
    ccx = terms.indices("ccx")
    np.testing.assert_allclose(series.tolerance[ccx], np.maximum(0.03, 2.5 / levels[ccx]))


def test_tolerances_are_at_least_two_ticks_of_the_clock() -> None:
    series = _series()
    coarse = tolerances.of_pairs(series.terms, series.matrix.levels, RULES, tick_ns=10.0)
    assert np.all(coarse >= 20.0 / series.matrix.levels - 1e-12)


def _ticking(fleet: PackedFleet, tick_ns: float) -> PackedFleet:
    return replace(fleet, quantities=tuple(q.assign(tick_ns=tick_ns) for q in fleet.quantities))


@pytest.mark.parametrize("tick_ns", [0.0, 4.0])
def test_a_node_without_peers_has_the_same_tolerance(tick_ns: float) -> None:
    """Of a class of pairs on a machine with fused-off cores: inside CCXs 2.5 ns, of a coarse clock two ticks."""
    fleet, alone = (_ticking(made(machine=HARVESTED, nodes=nodes), tick_ns) for nodes in (3, 1))
    series = next(s for s in judge(fleet).tables if s.matrix.name == HOPS)
    classes = {}
    for component in series.terms.indices("class").tolist():
        number = int(series.terms.terms[component].where["class"])
        name = series.terms.layout.class_names[number]
        floor = max(2 * tick_ns, 2.5 if number == SAME_CCX else 0.5)
        assert series.tolerance[component] == pytest.approx(max(0.02, floor / series.matrix.levels[component]))
        classes[name] = series.tolerance[component] * series.matrix.levels[component]
    assert len(classes) > 2

    only = judge(alone).deviations
    component_types = only["component_type"].values.astype(str)
    of_alone = {
        int(place.partition(",")[0].removeprefix("class=")): float(tolerance * value)
        for place, component_type, tolerance, value in zip(
            only["place"].values.tolist(),
            component_types,
            only["tolerance"].values[0],
            only["value"].values[0],
            strict=True,
        )
        if component_type == "class" and place.startswith("class=")
    }
    names = series.terms.layout.class_names
    assert {names[number]: tolerance for number, tolerance in of_alone.items()} == pytest.approx(classes, rel=0.03)


@pytest.mark.parametrize(
    ("measurement", "tolerance"),
    [("chase-latency", 0.05), ("bandwidth-nodes", np.log(1.05)), ("jitter-detours", np.log(2))],
)
def test_tolerances_of_cells_are_on_the_scale_of_their_model(measurement: str, tolerance: float) -> None:
    assert tolerances.of_cells(models()[measurement], RULES) == pytest.approx(tolerance)
