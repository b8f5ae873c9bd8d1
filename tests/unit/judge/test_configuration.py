"""Which nodes are meant to be the same: homes of lines, and gaps that are none of it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from nodeprint.data.places.homes import FAR, NEAR
from nodeprint.data.store.packed import PackedFleet
from nodeprint.judge import acceptance
from nodeprint.judge.drift import drift
from nodeprint.judge.judge import judge
from nodeprint.judge.outcome import Outcome
from nodeprint.machine.topology.presets import from_part
from nodeprint.simulate import Plan, fleet
from tests.support.fleets import made, with_outcomes

MACHINE = from_part("EPYC 7302", 2, False)


def _without(fleet: PackedFleet, rows: np.ndarray, home: int) -> PackedFleet:
    (pairs,) = fleet.pairs
    values = np.array(pairs.by_home)
    values[np.flatnonzero(rows), :, home] = np.nan
    return replace(fleet, quantities=(pairs.assign(values=values.reshape(pairs.values.shape)),))


def _homes(*homes: int) -> PackedFleet:
    return fleet(Plan(MACHINE, nodes=6, pair_runs=4, passes=1, homes=homes))


def test_a_node_measured_with_other_homes_is_another_configuration_and_condemns_nobody() -> None:
    campaign = _homes(0, 1)
    verdict = judge(_without(campaign, campaign.pairs[0].node != 2, 1)).verdict
    node = verdict.nodes["node002"]
    assert (node.outcome, node.reasons[0].of) == (Outcome.DIFFERENT_CONFIGURATION, ("homes",))
    assert {other.outcome for name, other in verdict.nodes.items() if name != "node002"} <= {
        Outcome.SAME,
        Outcome.INCONCLUSIVE,
    }


def test_a_run_that_lacks_a_home_of_its_job_has_gaps() -> None:
    campaign = _homes(0, 1)
    pairs = campaign.pairs[0]
    verdict = judge(_without(campaign, (pairs.node == 2) & (pairs.run > 1), 1)).verdict
    assert verdict.nodes["node002"].outcome is Outcome.INVALID
    assert {disturbance.kind for disturbance in verdict.nodes["node002"].disturbances if disturbance.invalid} == {
        "missing"
    }


def test_near_and_far_lines_are_judged_apart_and_a_core_is_one_finding() -> None:
    plan = Plan(MACHINE, nodes=5, jobs=2, pair_runs=4, passes=1, homes=(NEAR, FAR), defects=("node003: core 7 +9%",))
    verdict = judge(fleet(plan)).verdict
    assert [finding.component.term for finding in verdict.nodes["node003"].findings] == ["core"]
    medians = {(c.home, c.name): c.median_ns for c in verdict.nodes["node000"].classes}
    assert medians[FAR, "same socket"] > 1.5 * medians[NEAR, "same socket"]


@pytest.mark.filterwarnings("error")
def test_a_missing_pair_is_no_matter() -> None:
    campaign = made("node001: core 9 +20%")
    (pairs,) = campaign.pairs
    values = np.array(pairs.values)
    values[pairs.node == 1, :, 100] = np.nan
    assert with_outcomes(judge(replace(campaign, quantities=(pairs.assign(values=values),))))["node001"] == "SUSPECT"


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("nothing", [np.nan, 0.0, -100.0, np.inf])
def test_what_is_no_latency_is_missing(nothing: float) -> None:
    campaign = made(nodes=3)
    (pairs,) = campaign.pairs
    values = np.where((pairs.node == 2)[:, None, None], np.float32(nothing), pairs.values)
    assert with_outcomes(judge(replace(campaign, quantities=(pairs.assign(values=values),))))["node002"] == "INVALID"


def test_drift_names_the_field() -> None:
    fields = drift(made("node002: fingerprint microcode=0x99").nodes, acceptance.load())
    assert {name: [d.key for d in of_node] for name, of_node in fields.items()} == {"node002": ["microcode"]}
