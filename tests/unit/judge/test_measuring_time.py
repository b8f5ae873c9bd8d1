"""What goes with the time of measuring is named, and not taken for a difference of nodes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

import numpy as np
import pytest

from nodeprint.data.store.packed import PackedFleet
from nodeprint.judge.judge import judge
from nodeprint.judge.outcome import FleetOutcome
from nodeprint.judge.verdict import TimeEffect, Verdict
from nodeprint.report import text
from nodeprint.simulate.plan import EPOCH, time_text
from tests.support import printed
from tests.support.fleets import made, times

CLOCK = "clock-together"


def begun(fleet: PackedFleet, hours: Sequence[float]) -> PackedFleet:
    """The clock alone, of nodes that were measured so many hours after each other."""
    clock = next(quantity for quantity in fleet.quantities if quantity.measurement == CLOCK)
    rows = zip(clock.node.tolist(), clock.job.tolist(), clock.run.tolist(), strict=True)
    started = tuple(time_text(EPOCH + timedelta(hours=hours[node], days=job, minutes=run)) for node, job, run in rows)
    return replace(fleet, quantities=(clock.assign(started=started),))


def clock(verdict: Verdict) -> list[TimeEffect]:
    return [effect for effect in verdict.fleet.over_time if effect.measurement == CLOCK]


def in_order(nodes: int, seed: int = 1) -> list[float]:
    """Hours from 0 to 6, a node after the other in an order that is not that of their names."""
    return [6 * float(place) / (nodes - 1) for place in np.random.default_rng(seed).permutation(nodes)]


@pytest.mark.parametrize("percent", [2, 3, 6])
def test_a_drift_over_the_hours_is_named_with_its_size(percent: float) -> None:
    hours = in_order(12)
    fleet = begun(made(nodes=12, runs=3, cells=True), hours)
    drifted = times(fleet, CLOCK, lambda node, job: 1 - percent / 100 * hours[node] / 6)
    verdict = judge(drifted).verdict
    (effect,) = clock(verdict)
    assert effect.component_type == "whole" and not effect.since and effect.nodes == 12
    assert effect.interval.low - 0.002 < -percent / 100 < effect.interval.high + 0.002
    lines = printed.summary(verdict).splitlines()
    assert lines[1].startswith(
        "  The values depend on the time of measurement: over 12 nodes, from 2026-01-02 00:01 to 2026-01-02 06:01"
    )
    assert f"gradually becomes {percent}" in lines[1] or f"gradually becomes {percent - 1}." in lines[1]
    undecided = [node for node in verdict.nodes.values() for agreement in node.agreements if agreement.remedy]
    assert not any(agreement.remedy == "nodes" for node in undecided for agreement in node.agreements)


def test_a_step_is_named_with_the_moment_from_which_on_it_is() -> None:
    """Of 25 nodes the last nine: of fewer their order is no proof, as it may be by chance."""
    hours = in_order(25)
    fleet = begun(made(nodes=25, runs=3, cells=True), hours)
    verdict = judge(times(fleet, CLOCK, lambda node, job: 1 - 0.05 * (hours[node] > 3.9))).verdict
    (effect,) = clock(verdict)
    assert effect.effect == pytest.approx(-0.05, abs=0.004)
    assert effect.since == time_text(EPOCH + timedelta(days=1, hours=4, minutes=1))
    assert "% lower from 2026-01-02 04:01 on" in text.over_time(verdict)[0]


def test_groups_that_go_with_the_time_say_so() -> None:
    hours = in_order(12)
    fleet = begun(made(nodes=12, runs=3, cells=True), hours)
    verdict = judge(times(fleet, CLOCK, lambda node, job: 1 - 0.05 * (hours[node] > 2.9))).verdict
    assert verdict.fleet.outcome is FleetOutcome.SPLIT
    (later,) = {abs(round(group.later_h, 1)) for group in verdict.fleet.groups} - {0.0}
    assert later == pytest.approx(3.3, abs=0.1)
    assert any("; measured 3.3 h " in words for words in text.fleet_notes(verdict))
    by_name = judge(times(fleet, CLOCK, lambda node, job: 1 - 0.05 * (node >= 6))).verdict
    assert not any(group.later_h for group in by_name.fleet.groups)
    assert not clock(by_name)


@pytest.mark.parametrize("nodes", [4, 5, 12])
def test_equal_times_and_few_nodes_show_nothing(nodes: int) -> None:
    hours = in_order(nodes) if nodes < 6 else [0.0] * nodes
    fleet = begun(made(nodes=nodes, runs=3, cells=True), hours)
    assert not judge(times(fleet, CLOCK, lambda node, job: 1 - 0.05 * node / nodes)).verdict.fleet.over_time


def test_a_healthy_fleet_in_any_order_names_nothing() -> None:
    """One fleet in a hundred may: none of 20 orders does."""
    fleet = made(nodes=8, runs=3, cells=True)
    for seed in range(20):
        assert not judge(begun(fleet, in_order(8, seed))).verdict.fleet.over_time
