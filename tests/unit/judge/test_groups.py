"""Fleets without a majority are split where two groups are apart; a wide fleet is one."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from nodeprint.data.store.packed import PackedFleet
from nodeprint.judge.groups import Cut, PeerGroup, sharing
from nodeprint.judge.judge import judge
from nodeprint.judge.outcome import FleetOutcome, Outcome
from tests.support.drawn import RULES, matrix, of_values, tolerance
from tests.support.fleets import FULL, made, times, with_outcomes

HOPS = "coherence-cas"
_NOTHING: Any = None
_CUT = Cut(_NOTHING, _NOTHING, 0, _NOTHING, 0.1, 0.01, 0.03)


def _slower(nodes: int, *groups: tuple[range, float]) -> PackedFleet:
    """A fleet in which groups of nodes are slower in all pairs by a share."""
    return times(made(nodes=nodes), HOPS, lambda node, job: next((1 + s for of, s in groups if node in of), 1.0))


@pytest.mark.parametrize(
    ("nodes", "slow", "sizes"),
    [(4, 2, [2, 2]), (6, 3, [3, 3]), (8, 3, [5, 3]), (9, 3, None), (10, 4, [6, 4]), (10, 3, None)],
)
def test_split_only_where_no_group_has_two_thirds(nodes: int, slow: int, sizes: list[int] | None) -> None:
    verdict = judge(_slower(nodes, (range(slow), 0.06))).verdict
    if sizes is None:
        assert verdict.fleet.outcome is not FleetOutcome.SPLIT
        assert {name for name, node in verdict.nodes.items() if node.counted} == {f"node{i:03d}" for i in range(slow)}
        return
    assert verdict.fleet.outcome is FleetOutcome.SPLIT
    assert [len(group.nodes) for group in verdict.fleet.groups] == sizes
    assert {node.outcome for node in verdict.nodes.values()} == {Outcome.SPLIT}


@pytest.mark.parametrize("nodes", [6, 20])
def test_halves_of_which_each_is_within_the_tolerance_of_their_middle_are_split(nodes: int) -> None:
    """They are 1.8 tolerances apart, with nobody in the middle."""
    verdict = judge(_slower(nodes, (range(nodes // 2), 0.036))).verdict
    assert verdict.fleet.outcome is FleetOutcome.SPLIT
    assert [len(group.nodes) for group in verdict.fleet.groups] == [nodes // 2, nodes // 2]


def test_split_names_how_far_and_on_which_side_groups_are() -> None:
    groups = judge(_slower(8, (range(4, 8), 0.06))).verdict.fleet.groups
    away = groups[1]
    cut = judge(_slower(8, (range(4, 8), 0.06))).population.groups[1].cut
    assert cut is not None and away.effect == pytest.approx(cut.effect)
    assert away.interval.high - away.interval.low == pytest.approx(2 * 1.96 * cut.error)  # 95%
    assert away.effect_unit == pytest.approx(away.effect * float(cut.matrix.levels[cut.term])) and away.unit == "ns"
    assert away.measurement == HOPS
    assert abs(away.effect) == pytest.approx(0.06, abs=0.01)
    assert away.interval.low < away.effect < away.interval.high
    assert (away.effect > 0) == ("node007" in away.nodes)


@pytest.mark.parametrize("measurement", ["clock-together", HOPS])
def test_a_shift_of_all_of_a_measurement_is_headed_by_no_core(measurement: str) -> None:
    fleet = times(made(nodes=8, cells=True), measurement, lambda node, job: 0.94 if node < 4 else 1.0)
    _, away = judge(fleet).verdict.fleet.groups
    assert away.measurement == measurement and away.component is not None
    assert not {"core", "cpu", "ccx", "ccd"} & set(away.component.where)
    assert abs(away.effect) == pytest.approx(0.06, abs=0.01)


@pytest.mark.parametrize("levels", [(0.06, 0.12), (0.06, 0.14), (0.05, 0.1, 0.15), (0.04, 0.12)])
def test_three_and_four_equal_groups(levels: tuple[float, ...]) -> None:
    slower = [(range(4 * number, 4 * number + 4), share) for number, share in enumerate(levels, 1)]
    verdict = judge(_slower(4 * (len(levels) + 1), *slower)).verdict
    assert verdict.fleet.outcome is FleetOutcome.SPLIT
    first, *others = verdict.fleet.groups
    assert first.nodes == tuple(f"node{i:03d}" for i in range(4)) and not first.than
    assert [group.nodes[0] for group in others] == [f"node{4 * number:03d}" for number in range(1, len(levels) + 1)]
    for group, share in zip(others, levels, strict=True):
        assert len(group.nodes) == 4 and group.than == "A"
        assert group.effect == pytest.approx(share, abs=0.01)
    assert {node.outcome for node in verdict.nodes.values()} == {Outcome.SPLIT}


def test_groups_of_unequal_sizes_the_largest_first() -> None:
    groups = judge(_slower(11, (range(4), 0.06), (range(4, 6), 0.12))).verdict.fleet.groups
    assert [len(group.nodes) for group in groups] == [5, 4, 2]


def test_of_groups_that_differ_in_several_parts_each_names_that_which_is_farthest_from_the_first() -> None:
    slow = times(made(nodes=12, cells=True), HOPS, lambda node, job: 1.06 if node > 5 else 1.0)
    groups = judge(times(slow, "chase-latency", lambda node, job: 1.25 if node > 8 else 1.0)).verdict.fleet.groups
    assert [len(group.nodes) for group in groups] == [6, 3, 3]
    assert [group.measurement for group in groups] == ["", HOPS, "chase-latency"]
    assert [round(group.effect, 2) for group in groups[1:]] == pytest.approx([0.06, 0.25], abs=0.015)


def test_parts_that_each_have_a_majority_split_nobody() -> None:
    """A third is slower in hops, another third in memory: of neither is it unknown what is usual."""
    slow = times(made(nodes=9, cells=True), HOPS, lambda node, job: 1.06 if node < 3 else 1.0)
    verdict = judge(times(slow, "chase-latency", lambda node, job: 1.25 if node > 5 else 1.0)).verdict
    assert not verdict.fleet.groups
    assert [node.outcome for node in verdict.nodes.values()] == 3 * [Outcome.SUSPECT] + 3 * [Outcome.SAME] + 3 * [
        Outcome.SUSPECT
    ]


def test_a_majority_and_two_groups_are_not_split() -> None:
    verdict = judge(_slower(12, (range(2), 0.06), (range(2, 4), 0.12))).verdict
    assert not verdict.fleet.groups
    assert {name for name, node in verdict.nodes.items() if node.counted} == {f"node{i:03d}" for i in range(4)}


def _configured(fleet: PackedFleet, key: str, size: int) -> PackedFleet:
    """The fleet with another value of a field of the fingerprint in each so many nodes."""
    return replace(
        fleet,
        nodes=tuple(
            replace(node, fingerprint={**node.fingerprint, key: f"value {i // size}"})
            for i, node in enumerate(fleet.nodes)
        ),
    )


@pytest.mark.parametrize(("key", "label"), [("cmdline", "hard"), ("bios", "soft")])
def test_configurations_without_a_majority_that_differ_are_split(key: str, label: str) -> None:
    fleet = _configured(_slower(12, (range(4, 8), 0.06), (range(8, 12), 0.12)), key, 4)
    verdict = judge(fleet).verdict
    assert verdict.fleet.outcome is FleetOutcome.SPLIT
    assert [dict(group.fields) for group in verdict.fleet.groups] == [{key: f"value {number}"} for number in range(3)]
    assert [round(group.effect, 2) for group in verdict.fleet.groups] == [0.0, 0.06, pytest.approx(0.12, abs=0.01)]
    assert {node.outcome for node in verdict.nodes.values()} == {Outcome.SPLIT}


def test_configurations_that_do_not_differ_are_compared_within_themselves() -> None:
    verdict = judge(_configured(made(nodes=12), "cmdline", 4)).verdict
    assert [group.than for group in verdict.fleet.groups] == ["", "", ""]
    assert verdict.fleet.outcome is not FleetOutcome.SPLIT


def test_different_processors_are_never_compared() -> None:
    verdict = judge(_configured(_slower(8, (range(4), 0.06)), "cpu", 4)).verdict
    assert len(verdict.fleet.groups) == 2
    assert verdict.fleet.outcome is not FleetOutcome.SPLIT


@pytest.mark.slow
@pytest.mark.parametrize(("nodes", "seed"), [(6, 0), (6, 1), (9, 2), (9, 3), (12, 0)])
def test_a_healthy_fleet_is_never_split_and_a_deviating_node_is_no_group(nodes: int, seed: int) -> None:
    assert not judge(made(nodes=nodes, seed=seed)).verdict.fleet.groups
    assert not judge(made("node001: core 17 +12%", nodes=nodes, seed=seed)).verdict.fleet.groups


def test_a_wide_fleet_of_one_kind_is_not_split() -> None:
    steps = np.linspace(-0.05, 0.05, 16)
    verdict = judge(times(made(nodes=16), HOPS, lambda node, job: 1 + steps[node])).verdict
    assert not verdict.fleet.groups
    assert verdict.fleet.outcome is not FleetOutcome.UNIFORM


def test_a_defect_is_found_within_its_group() -> None:
    slow = times(made("node001: core 17 +12%"), HOPS, lambda node, job: 1.07 if node > 3 else 1.0)
    found = judge(slow).verdict.nodes["node001"]
    assert [f.component.term for f in found.findings] == ["core"]


@pytest.mark.parametrize(("nodes", "outcome"), [(6, Outcome.MISMATCH), (12, Outcome.DEVIATES)])
def test_a_defect_deviates_where_a_majority_of_the_split_fleet_is_alike(nodes: int, outcome: Outcome) -> None:
    """The halves differ in all pairs, and one node in a core, too. Of three nodes nobody knows which is right."""
    fleet = made("node001: core 17 +12%", nodes=nodes, jobs=2)
    verdict = judge(times(fleet, HOPS, lambda node, job: 1.07 if node >= nodes // 2 else 1.0)).verdict
    assert [len(group.nodes) for group in verdict.fleet.groups] == [nodes // 2, nodes // 2]
    assert verdict.nodes["node001"].outcome is outcome
    assert {node.outcome for name, node in verdict.nodes.items() if name != "node001"} == {Outcome.SPLIT}


def test_nobody_deviates_that_is_within_the_tolerance_of_a_majority_of_the_split_fleet() -> None:
    """Memory splits the fleet. By nature a node has slower pairs than its own half, and not than most nodes."""
    levels = np.array([0.985] * 5 + [1.0125] + [1.0] * 6)
    split = times(made(nodes=12, jobs=2, cells=True), "chase-latency", lambda node, job: 1.25 if node > 5 else 1.0)
    verdict = judge(times(split, HOPS, lambda node, job: levels[node])).verdict
    assert [len(group.nodes) for group in verdict.fleet.groups] == [6, 6]
    found = verdict.nodes["node005"]
    assert found.outcome is Outcome.MISMATCH
    assert [finding.measurement for finding in found.findings] == [HOPS]


def test_three_nodes_are_never_split_and_of_four_a_single_one_is_no_group() -> None:
    assert "SPLIT" not in with_outcomes(judge(_slower(3, (range(1), 0.06)))).values()
    assert "SPLIT" not in with_outcomes(judge(_slower(4, (range(1), 0.06)))).values()


def test_two_and_two_nodes_are_named_with_their_difference() -> None:
    verdict = judge(_slower(4, (range(2), 0.06))).verdict
    assert [group.nodes for group in verdict.fleet.groups] == [("node000", "node001"), ("node002", "node003")]
    assert verdict.fleet.groups[1].effect == pytest.approx(-0.06, abs=0.01)
    assert {node.outcome for node in verdict.nodes.values()} == {Outcome.SPLIT}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("machine", "nodes", "off", "component"),
    [
        ("EPYC 9454", 8, 4, "core 17 +12%"),
        ("EPYC 9454", 8, 4, "ccd 3 +12%"),
        ("EPYC 74F3", 6, 3, "core 17 +12%"),
        (FULL, 20, 9, "ccd 3 +12%"),
    ],
)
def test_half_of_a_fleet_off_in_one_part_has_no_center(machine: str, nodes: int, off: int, component: str) -> None:
    """Two jobs each, with the same half off in both: nobody is accused, and nobody is the same."""
    defects = tuple(f"node{i:03d}: {component}" for i in range(off))
    verdict = judge(made(*defects, nodes=nodes, jobs=2, pair_runs=3, machine=machine)).verdict
    assert verdict.fleet.outcome in (FleetOutcome.SPLIT, FleetOutcome.NON_UNIFORM)
    outcomes = {name: node.outcome for name, node in verdict.nodes.items()}
    assert Outcome.DEVIATES not in outcomes.values()
    assert Outcome.SAME not in outcomes.values()


def test_a_split_is_looked_at_again_in_the_second_jobs() -> None:
    """Half of the fleet was measured while something slowed it; in the second job all are alike."""
    fleet = times(made(nodes=8, jobs=2), HOPS, lambda node, job: 1.06 if node > 3 and job == 1 else 1.0)
    once = judge(_slower(8, (range(4, 8), 0.06))).verdict
    assert once.fleet.outcome is FleetOutcome.SPLIT
    assert len(once.recheck) == 8
    assert judge(fleet).verdict.fleet.outcome is not FleetOutcome.SPLIT


def test_a_group_that_was_measured_later_says_so() -> None:
    fleet = _slower(8, (range(4, 8), 0.06))
    later = tuple(
        q.assign(started=tuple(f"2026-01-01T{3 * (node > 3):02d}:{node:02d}:00Z" for node in q.node.tolist()))
        for q in fleet.quantities
    )
    first, second = judge(replace(fleet, quantities=later)).verdict.fleet.groups
    assert not first.later_h
    assert second.later_h == pytest.approx(3.1, abs=0.2)


@pytest.mark.slow
def test_a_gap_within_tolerances_is_said_and_a_healthy_fleet_has_none() -> None:
    verdict = judge(_slower(20, (range(8), 0.025))).verdict
    (gap,) = verdict.fleet.gaps
    assert not any(node.counted for node in verdict.nodes.values())
    assert set(gap.nodes) == {f"node{i:03d}" for i in range(8)}
    assert gap.effect == pytest.approx(0.025, abs=0.005)
    assert not any(judge(made(nodes=8, seed=seed)).verdict.fleet.gaps for seed in range(4))


@pytest.mark.parametrize(
    ("nodes", "off", "sizes"), [(9, 3, [9]), (9, 4, [5, 4]), (12, 4, [12]), (12, 5, [7, 5]), (6, 2, [6])]
)
@pytest.mark.parametrize("side", [1, -1])
def test_more_than_a_third_that_share_a_difference_are_a_group(
    nodes: int, off: int, sizes: list[int], side: int
) -> None:
    """In one of two jobs, so that their means are within the tolerance of each other."""
    values = 0.02 * tolerance() * np.random.default_rng(nodes).standard_normal((2 * nodes, 6, len(tolerance())))
    component = int(matrix().terms.indices("ccd")[2])
    values[2 * (nodes - off) :: 2, :, component] += 1.8 * side * tolerance()[component]
    series = of_values(values, [2] * nodes)
    assert series.referenced.all() and int(series.outside[:, component].sum()) == off
    whole = PeerGroup(np.arange(nodes))
    first, *others = sharing(whole, [series], RULES)
    assert [len(group.nodes) for group in (first, *others)] == sizes
    assert sharing(PeerGroup(whole.nodes, whole=whole.nodes, cut=first.cut or _CUT), [series], RULES)[1:] == []
    if not others:
        assert first is whole
        return
    (cut,) = (group.cut for group in others)
    assert cut is not None and first.cut is None
    assert sorted([*first.nodes.tolist(), *others[0].nodes.tolist()]) == list(range(nodes))
    away = 1 if nodes - 1 in others[0].nodes else -1
    assert cut.term == component and cut.effect == pytest.approx(away * side * 0.9 * tolerance()[component], rel=0.05)


@pytest.mark.parametrize(("effect", "is_apart"), [(0.061, True), (-0.061, True), (0.059, False), (-0.059, False)])
def test_groups_are_apart_by_three_standard_errors_more_than_the_tolerance(effect: float, is_apart: bool) -> None:
    nothing: Any = None
    assert Cut(nothing, nothing, 0, nothing, effect, error=0.01, tolerance=0.03).apart == is_apart
