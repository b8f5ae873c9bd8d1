"""Fleets without a majority are split where two groups are apart; a wide fleet is one."""

from __future__ import annotations

import numpy as np
import pytest

from nodeprint.judge.judge import judge
from nodeprint.judge.outcome import FleetOutcome, Outcome
from tests.support.fleets import made, times, with_outcomes

HOPS = "coherence-cas"


def _slower(nodes: int, *groups: tuple[range, float]):
    """A fleet in which groups of nodes are slower in all pairs by a share."""
    return times(made(nodes=nodes), HOPS, lambda node, job: next((1 + s for of, s in groups if node in of), 1.0))


@pytest.mark.parametrize(("nodes", "slow", "sizes"), [(6, 3, [3, 3]), (8, 4, [4, 4]), (8, 3, None), (10, 3, None)])
def test_split_only_where_no_group_has_three_fifths(nodes: int, slow: int, sizes: list[int] | None) -> None:
    verdict = judge(_slower(nodes, (range(slow), 0.06))).verdict
    if sizes is None:
        assert verdict.fleet.outcome is not FleetOutcome.SPLIT
        assert {name for name, node in verdict.nodes.items() if node.counted} == {f"node{i:03d}" for i in range(slow)}
        return
    assert verdict.fleet.outcome is FleetOutcome.SPLIT
    assert [len(group.nodes) for group in verdict.fleet.groups] == sizes
    assert {node.outcome for node in verdict.nodes.values()} == {Outcome.SPLIT}


def test_split_names_how_far_and_on_which_side_groups_are() -> None:
    groups = judge(_slower(8, (range(4, 8), 0.06))).verdict.fleet.groups
    away = groups[1]
    assert away.measurement == HOPS
    assert abs(away.effect) == pytest.approx(0.06, abs=0.01)
    assert away.interval.low < away.effect < away.interval.high
    assert (away.effect > 0) == ("node007" in away.nodes)


def test_of_three_groups_nobody_is_the_same() -> None:
    verdict = judge(_slower(9, (range(3), 0.06), (range(3, 6), 0.14))).verdict
    assert Outcome.SAME not in {node.outcome for node in verdict.nodes.values()}


def test_a_wide_fleet_of_one_kind_is_not_split() -> None:
    steps = np.linspace(-0.05, 0.05, 8)
    verdict = judge(times(made(), HOPS, lambda node, job: 1 + steps[node])).verdict
    assert not verdict.fleet.groups
    assert verdict.fleet.outcome is not FleetOutcome.UNIFORM


def test_a_defect_is_found_within_its_group() -> None:
    slow = times(made("node001: core 17 +12%"), HOPS, lambda node, job: 1.07 if node > 3 else 1.0)
    found = judge(slow).verdict.nodes["node001"]
    assert [f.part.term for f in found.findings] == ["core"]


def test_four_nodes_are_never_split() -> None:
    assert "SPLIT" not in with_outcomes(judge(_slower(4, (range(2), 0.06)))).values()
