"""Outcomes of nodes and fleets, each from what led to it."""

from __future__ import annotations

import datetime
from dataclasses import replace

import numpy as np
import pytest
from msgspec import structs

from nodeprint.judge import acceptance
from nodeprint.judge.acceptance_file import Acceptance, ContractLimit, Waiver
from nodeprint.judge.agreements import MOST_LIMIT
from nodeprint.judge.judge import judge
from nodeprint.judge.outcome import Certainty, FleetOutcome, Kind, Outcome, ReasonDetail
from nodeprint.report.text import first_line, node_sentence
from tests.support.fleets import HARVESTED, judged, made, times, with_outcomes, without

HOPS = "coherence-cas"
RULES = acceptance.load()
CELLS = ("coherence-cas", "chase-latency", "bandwidth-nodes", "bandwidth-ccx", "clock-together")


def test_a_healthy_fleet_is_uniform_and_says_what_that_rests_on() -> None:
    verdict = judge(made(cells=True), planned=CELLS).verdict
    assert verdict.fleet.outcome is FleetOutcome.UNIFORM
    assert verdict.fleet.based_on == ("core-to-core", "numa", "bandwidth", "clock")
    assert [m.metric for m in verdict.fleet.agreements][:4] == list(verdict.fleet.based_on)
    assert all(agreement.share <= 1 for agreement in verdict.fleet.agreements if agreement.criterion)
    assert not verdict.fails(list(Kind))


@pytest.mark.parametrize("nodes", [(), (2,)])
def test_a_planned_measurement_that_is_missing_is_inconclusive_and_named(nodes: tuple[int, ...]) -> None:
    verdict = judge(without(made(cells=True), HOPS, *nodes), planned=CELLS).verdict
    lacking = verdict.nodes["node002"]
    assert lacking.outcome is Outcome.INCONCLUSIVE
    assert next(r for r in lacking.reasons if r.why is ReasonDetail.MISSING).of == (HOPS,)
    assert verdict.fleet.missing == (() if nodes else (HOPS,))
    assert verdict.fleet.outcome is FleetOutcome.INCONCLUSIVE
    assert verdict.fails([Kind.NOT_SAME])


@pytest.mark.parametrize(("lacking", "missing"), [((0, 1), (0, 1)), ((0, 1, 2), ())])
def test_what_half_of_the_nodes_have_is_missing_on_the_others(
    lacking: tuple[int, ...], missing: tuple[int, ...]
) -> None:
    verdict = judge(without(made(nodes=4, pair_runs=2, cells=True), "chase-latency", *lacking)).verdict
    of_nodes = [
        next((reason.of for reason in node.reasons if reason.why is ReasonDetail.MISSING), ())
        for node in verdict.nodes.values()
    ]
    assert of_nodes == [("chase-latency",) if i in missing else () for i in range(4)]


def test_what_decides_nothing_alone_makes_nobody_same() -> None:
    campaign = made(cells=True)
    loud = replace(campaign, quantities=tuple(q for q in campaign.quantities if q.measurement == "jitter-detours"))
    assert set(with_outcomes(judge(loud)).values()) == {"INCONCLUSIVE"}


def test_one_run_is_inconclusive() -> None:
    node = judged(runs=1, pair_runs=1).verdict.nodes["node000"]
    assert (node.outcome, node.reasons[0].why) == (Outcome.INCONCLUSIVE, ReasonDetail.ONE_RUN)


@pytest.mark.parametrize("nodes", [2, 3, 4])
def test_of_few_healthy_nodes_none_is_accused(nodes: int) -> None:
    assert set(with_outcomes(judged(nodes=nodes)).values()) <= {"SAME", "INCONCLUSIVE"}


def test_two_nodes_that_differ_blame_neither() -> None:
    campaign = judged("node001: core 17 +15%", nodes=2, jobs=2)
    assert with_outcomes(campaign) == {"node000": "MISMATCH", "node001": "MISMATCH"}


@pytest.mark.parametrize("nodes", [3, 4])
def test_one_of_three_or_four_is_named_where_the_others_agree(nodes: int) -> None:
    campaign = with_outcomes(judged("node001: core 17 +15%", nodes=nodes, jobs=2))
    assert campaign["node001"] == "DEVIATES"
    assert not {campaign[name] for name in campaign if name != "node001"} & {"DEVIATES", "SUSPECT"}


@pytest.mark.parametrize("nodes", [3, 4])
def test_a_node_between_others_that_all_differ_matches_none(nodes: int) -> None:
    """The middle one has the center of the others, which no node has."""
    campaign = times(made(nodes=nodes, cells=True), HOPS, lambda node, job: 1 + 0.08 * node)
    verdict = judge(campaign).verdict
    assert {node.outcome for node in verdict.nodes.values()} == {Outcome.INCONCLUSIVE}
    assert {node.reasons[0].why for node in verdict.nodes.values()} == {ReasonDetail.NO_CENTER}
    assert verdict.fleet.outcome is FleetOutcome.NON_UNIFORM
    assert max(limit.effect for limit in verdict.fleet.limits) <= MOST_LIMIT  # else a number of hundred digits
    two_alike = times(made(nodes=nodes, cells=True), HOPS, lambda node, job: 1 + 0.08 * max(node - 1, 0))
    assert judge(two_alike).verdict.fleet.outcome is not FleetOutcome.NON_UNIFORM


def test_alone_has_no_peer() -> None:
    verdict = judged(nodes=1).verdict
    assert (verdict.fleet.outcome, verdict.nodes["node000"].outcome) == (FleetOutcome.NO_PEERS, Outcome.NO_PEERS)


def test_three_of_ten_with_one_difference_keep_their_findings_and_share_it() -> None:
    defects = [f"node{i:03d}: core 17 +9%" for i in (1, 4, 8)]
    verdict = judged(*defects, nodes=10, jobs=2).verdict
    named = tuple(f"node{i:03d}" for i in (1, 4, 8))
    assert {verdict.nodes[name].outcome for name in named} == {Outcome.DEVIATES}
    assert verdict.fleet.outcome is FleetOutcome.DEVIATIONS
    shared = verdict.fleet.shared[0]
    assert shared.nodes == named
    assert shared.component.where["core"] == 17
    assert shared.effect == pytest.approx(0.09, abs=0.01)
    assert shared.interval.low < shared.effect < shared.interval.high


def test_many_nodes_beyond_their_tolerances_in_different_places_are_not_uniform() -> None:
    verdict = judged(*[f"node{i:03d}: core {7 * i + 3} +10%" for i in (1, 2, 4, 6)]).verdict
    assert verdict.fleet.outcome is FleetOutcome.NON_UNIFORM
    wide = [spread for spread in verdict.fleet.spreads if spread.wide]
    assert wide
    assert all(spread.smallest_tolerance > spread.tolerance for spread in wide)
    assert verdict.fails([Kind.FOUND])


def test_harvested_parts_are_the_same_and_a_slow_core_of_one_is_named() -> None:
    campaign = judged("node001: core 17 +10%", machine=HARVESTED, jobs=2)
    assert with_outcomes(campaign)["node001"] == "DEVIATES"
    (finding, *_) = campaign.verdict.nodes["node001"].findings
    assert (finding.component.term, finding.component.where["core"]) == ("core", 17)
    assert list(with_outcomes(campaign).values()).count("SAME") >= 6


def test_a_finding_is_complete() -> None:
    (finding,) = judged("node001: core 17 +9%", jobs=2).verdict.nodes["node001"].findings
    assert (finding.id, finding.state) == ("core-slow", Certainty.CONFIRMED)
    assert finding.component.where == {"core": 17, "cpu": 17}
    assert finding.times_tolerance == pytest.approx(finding.effect / finding.tolerance)
    assert finding.effect_unit == pytest.approx(finding.value - finding.peers, rel=1e-6)
    assert {17} <= {cpu for a, partners in finding.pairs.items() for cpu in (a, *partners)}
    assert all(17 in (a, b) for a, partners in finding.pairs.items() for b in partners)
    assert (len(finding.by_job), len(finding.runs)) == (2, 12)
    assert finding.consistent_with
    assert finding.remedy == "core"


def _waiving(finding: str, until: int) -> Acceptance:
    waiver = Waiver("node001", finding, "ticket 42", datetime.date(until, 1, 1))
    return structs.replace(RULES, waivers=(waiver,))


@pytest.mark.parametrize(
    ("finding", "until", "outcome", "note"),
    [
        ("core-slow", 2999, Outcome.INCONCLUSIVE, None),
        ("*", 2999, Outcome.INCONCLUSIVE, None),
        ("core-slow", 2020, Outcome.DEVIATES, "waiver-ended"),
        ("ccd-slow", 2999, Outcome.DEVIATES, "waiver-without-effect"),
    ],
)
def test_a_waived_finding_counts_no_more_until_its_day(
    finding: str, until: int, outcome: Outcome, note: str | None
) -> None:
    verdict = judge(made("node001: core 17 +9%", jobs=2), _waiving(finding, until)).verdict
    assert verdict.nodes["node001"].outcome is outcome
    assert bool(verdict.nodes["node001"].findings[0].waived) == (outcome is Outcome.INCONCLUSIVE)
    assert [n.kind for n in verdict.fleet.notes] == ([note] if note else [])
    if outcome is Outcome.INCONCLUSIVE:
        assert [reason.why for reason in verdict.nodes["node001"].reasons] == [ReasonDetail.WAIVED]
        words = node_sentence(verdict.nodes["node001"])
        assert words.startswith("Core 17 (CPU 17) is ") and "; accepted until 2999-01-01: ticket 42." in words
        assert "resolved" not in words and "Nothing else deviates" in words


def test_a_waiver_holds_through_its_last_day() -> None:
    """By the day of the newest run, whenever it is judged."""
    campaign = made("node001: core 17 +9%", jobs=2)
    last = datetime.date.fromisoformat(max(campaign.pairs[0].started)[:10])
    outcomes = [
        judge(campaign, structs.replace(RULES, waivers=(Waiver("node001", "core-slow", "x", until),)))
        .verdict.nodes["node001"]
        .outcome
        for until in (last, last - datetime.timedelta(days=1))
    ]
    assert outcomes == [Outcome.INCONCLUSIVE, Outcome.DEVIATES]


def test_a_waiver_of_one_finding_leaves_another() -> None:
    campaign = made("node001: core 17 +9%", "node001: ccd 6 +8%", jobs=2)
    assert judge(campaign, _waiving("core-slow", 2999)).verdict.nodes["node001"].outcome is Outcome.DEVIATES


def test_a_limit_of_a_contract_is_held_to_every_node() -> None:
    name = judged().verdict.nodes["node000"].classes[0].name
    strict = structs.replace(
        RULES,
        limits=(
            ContractLimit(measurement=HOPS, row=name, at_most=1.0, reason="contract"),
            ContractLimit(measurement=HOPS, row="no class", at_most=1.0, reason="c"),
        ),
    )
    verdict = judge(made(), strict).verdict
    assert {node.outcome for node in verdict.nodes.values()} == {Outcome.OUT_OF_SPEC}
    assert verdict.fleet.outcome is FleetOutcome.DEVIATIONS
    assert [note.kind for note in verdict.fleet.notes] == ["limit-not-applied"]
    assert verdict.nodes["node000"].findings[0].id == "limit"


def test_a_limit_of_a_figure_that_no_node_has_keeps_a_fleet_from_being_uniform() -> None:
    """All nodes are the same; whether the contract is kept is not known."""
    assert judged().verdict.fleet.outcome is FleetOutcome.UNIFORM
    mistyped = ContractLimit(measurement=HOPS, row="same sockt", at_most=1e9, reason="contract")
    verdict = judge(made(), structs.replace(RULES, limits=(mistyped,))).verdict
    assert {node.outcome for node in verdict.nodes.values()} == {Outcome.SAME}
    assert verdict.fleet.outcome is FleetOutcome.INCONCLUSIVE and verdict.fails([Kind.NOT_SAME])
    assert f"whether limits of the contract are kept is unknown ({HOPS}, same sockt)" in first_line(verdict)
    kept = structs.replace(RULES, limits=(structs.replace(mistyped, row="same socket"),))
    assert judge(made(), kept).verdict.fleet.outcome is FleetOutcome.UNIFORM


@pytest.mark.parametrize("nodes", [1, 8])
def test_a_cpu_that_calculates_wrongly_is_no_matter_of_peers_tolerances_or_a_second_job(nodes: int) -> None:
    campaign = made(nodes=nodes)
    run = {"job": 1, "run": 1, "measurement": "load-alone", "wrong": 4, "wrong_cpus": [37]}
    first, *others = campaign.nodes
    verdict = judge(replace(campaign, nodes=(replace(first, seen=(*first.seen, run)), *others))).verdict
    node = verdict.nodes[first.name]
    assert node.outcome is Outcome.WRONG_RESULT and node.findings[0].state is Certainty.CONFIRMED
    assert "CPU 37 calculated wrong results in 4 bursts" in node_sentence(node)
    assert all(verdict.nodes[other.name].outcome is Outcome.SAME for other in others)
    assert verdict.fleet.outcome is FleetOutcome.DEVIATIONS
    assert verdict.fails([Kind.FOUND])


@pytest.mark.parametrize("jobs", [1, 2])
def test_an_invalid_job_accuses_and_confirms_nothing(jobs: int) -> None:
    gaps = np.where(np.arange(made().pairs[0].size) % 3 == 0, np.nan, 1.0)
    disturbances = times(
        made("node001: core 17 +10%", jobs=jobs), HOPS, lambda node, job: gaps if (node, job) == (1, jobs) else 1.0
    )
    verdict = judge(disturbances).verdict
    expected = Outcome.INVALID if jobs == 1 else Outcome.SUSPECT
    assert verdict.nodes["node001"].outcome is expected
    assert any(
        disturbance.invalid and disturbance.kind == "missing" for disturbance in verdict.nodes["node001"].disturbances
    )
    assert "node001" in verdict.recheck
    assert set(with_outcomes(judge(disturbances)).values()) == {"SAME", expected.value}


def test_what_is_wrong_with_records_is_said_and_makes_no_job_invalid() -> None:
    campaign = made()
    first, *others = campaign.nodes
    cut = replace(first, quality=("run2 ends early",))
    node = judge(replace(campaign, nodes=(cut, *others))).verdict.nodes[first.name]
    assert node.outcome is Outcome.SAME
    assert [(d.kind, d.invalid, d.detail) for d in node.disturbances] == [("record", False, "run2 ends early")]


def test_another_configuration_is_compared_with_none() -> None:
    verdict = judged("node005: fingerprint governor=powersave").verdict
    node = verdict.nodes["node005"]
    assert (node.outcome, node.reasons[0].of) == (Outcome.DIFFERENT_CONFIGURATION, ("governor",))


def test_a_node_that_was_not_measured_is_never_the_same() -> None:
    verdict = judged("node005: missing").verdict
    assert verdict.nodes["node005"].outcome is Outcome.NOT_MEASURED
    assert verdict.fails([Kind.NOT_MEASURED])
    assert not verdict.fails([Kind.FOUND])


def test_detection_limits_fall_with_runs_and_nodes_and_are_near_in_a_fleet_of_eight() -> None:
    def limits(**changes: int) -> dict[str, float]:
        return {
            limit.component_type: limit.effect / limit.tolerance for limit in judged(**changes).verdict.fleet.limits
        }

    usual, runs, nodes = limits(), limits(pair_runs=12), limits(nodes=16)
    assert max(usual.values()) <= 2.5
    assert all(runs[component_type] <= 1.02 * usual[component_type] for component_type in usual)
    assert sum(nodes.values()) <= 1.02 * sum(usual.values())
