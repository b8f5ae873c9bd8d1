"""Two stages: one job suspects, an independent one confirms, does not show it, refutes or leaves open."""

from __future__ import annotations

import datetime
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import numpy.typing as npt
import pytest
from msgspec import structs

from nodeprint.data.places.layout import RANK, SOCKET, codes
from nodeprint.data.store.packed import PackedFleet
from nodeprint.judge import acceptance, confirmation
from nodeprint.judge.acceptance_file import Suppression
from nodeprint.judge.judge import judge
from nodeprint.judge.outcome import FleetOutcome, Kind, Outcome, State
from nodeprint.report import text
from tests.support.fleets import judged, made, times

Floats = npt.NDArray[np.float64]

HOPS = "coherence-cas"
CORE = 17


def _core(fleet: PackedFleet, *by_job: float) -> PackedFleet:
    """The fleet with a core of node001 slower by a share in each of its jobs."""
    (quantity,) = fleet.pairs
    core = codes(quantity.layout.slots[:, : RANK + 1])[quantity.pairs]
    own = np.tile((core == CORE).any(axis=1), len(quantity.homes))
    return times(fleet, HOPS, lambda node, job: 1 + own * (by_job[job - 1] if node == 1 else 0.0))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("by_job", "outcome", "states"),
    [
        ((0.10, 0.10), Outcome.DEVIATES, [State.CONFIRMED]),
        ((0.10, 0.00), Outcome.INTERMITTENT, [State.INTERMITTENT]),
        ((0.00, 0.10), Outcome.SUSPECT, [State.SUSPECTED]),
        ((0.10, -0.10), Outcome.SUSPECT, None),
        ((0.10, 0.10, 0.00), Outcome.INTERMITTENT, [State.INTERMITTENT]),
        ((0.10, 0.00, 0.00), Outcome.INTERMITTENT, [State.INTERMITTENT]),
        ((0.00, 0.10, 0.00), Outcome.INTERMITTENT, [State.INTERMITTENT]),
        ((0.10, 0.00, 0.10), Outcome.DEVIATES, [State.CONFIRMED]),
        ((0.00, 0.00), Outcome.SAME, []),
    ],
)
def test_the_newest_job_decides(by_job: tuple[float, ...], outcome: Outcome, states: list[State] | None) -> None:
    node = judge(_core(made(jobs=len(by_job)), *by_job)).verdict.nodes["node001"]
    assert node.outcome is outcome
    if states is not None:
        assert [finding.state for finding in node.findings] == states


def _runs(fleet: PackedFleet, job: int, *effects: float) -> PackedFleet:
    """The fleet with the core of node001 slower by a share in each run of a job."""
    (quantity,) = fleet.pairs
    core = codes(quantity.layout.slots[:, : RANK + 1])[quantity.pairs]
    own = np.tile((core == CORE).any(axis=1), len(quantity.homes))
    values = quantity.values.copy()
    rows = zip(quantity.node.tolist(), quantity.job.tolist(), quantity.run.tolist(), strict=True)
    for row, (node, of_job, run) in enumerate(rows):
        if (node, of_job) == (1, job):
            values[row] *= 1 + own * effects[run - 1]
    return replace(fleet, quantities=(replace(quantity, values=values.astype(np.float32)),))


def test_what_single_runs_contradicted_is_refuted_by_a_job_that_is_inside() -> None:
    """One of six runs does not show what the mean of them does, and the next job is wholly inside the bound."""
    once = judge(_runs(made(), 1, *5 * (0.12,), 0.03)).verdict.nodes["node001"]
    assert once.outcome is Outcome.SUSPECT
    node = judge(_runs(made(jobs=2), 1, *5 * (0.12,), 0.03)).verdict.nodes["node001"]
    assert (node.outcome, node.findings[0].state) == (Outcome.SAME, State.REFUTED)


def test_a_job_that_is_not_wholly_inside_refutes_nothing() -> None:
    """The mean of the second job is inside the bound and its interval is not: half of its runs still show it."""
    fleet = _runs(_runs(made(jobs=2), 1, *5 * (0.12,), 0.03), 2, *3 * (0.065, 0.0))
    judged_fleet = judge(fleet)
    block = judged_fleet.series[0].blocks[1]
    (shown,) = (shown for shown in judged_fleet.shown[1] if shown.finding.part.term == "core")
    row, part = block.row[1], shown.cause.head
    assert abs(block.difference[row, part]) < block.bound[part] and not block.inside[row, part]
    assert judged_fleet.verdict.nodes["node001"].outcome is Outcome.SUSPECT


@pytest.mark.slow
@pytest.mark.parametrize(
    ("by_job", "nodes", "pair_runs"),
    [
        ((0.30, 0.0), 3, 2),
        ((0.30, 0.0), 8, 6),
        ((0.0, 0.30), 4, 6),
        ((0.0, 0.30), 12, 2),
        ((0.30, 0.0, 0.0), 4, 2),
        ((0.30, 0.0, 0.0), 8, 6),
        ((0.0, 0.30, 0.0), 3, 6),
    ],
)
def test_a_core_that_is_slow_in_one_of_several_jobs_is_never_the_same(
    by_job: tuple[float, ...], nodes: int, pair_runs: int
) -> None:
    verdict = judge(_core(made(nodes=nodes, jobs=len(by_job), pair_runs=pair_runs), *by_job)).verdict
    assert verdict.nodes["node001"].outcome is not Outcome.SAME
    assert verdict.fails([Kind.FOUND])


def test_what_comes_and_goes_is_said_with_its_runs_and_asks_for_a_third_job() -> None:
    twice = judge(_core(made(jobs=2), 0.3, 0.0)).verdict
    assert twice.fleet.outcome is FleetOutcome.INTERMITTENT
    assert "node001" in twice.recheck
    (finding,) = twice.nodes["node001"].findings
    assert finding.effect == pytest.approx(0.3, abs=0.02) and finding.interval.low > finding.bound
    words = text.node_sentence([twice.nodes["node001"]])
    assert "was 30." in words and "6 of 6 runs of job1 and 0 of 6 runs of job2" in words and "third job" in words
    thrice = judge(_core(made(jobs=3), 0.3, 0.0, 0.0)).verdict
    assert thrice.recheck == ()
    assert "third job" not in text.node_sentence([thrice.nodes["node001"]])


def test_a_repaired_node_is_the_same_where_the_site_says_so() -> None:
    """What came and went is accepted; a part that is outside its bound now would not be the same."""
    accepted = Suppression("node001", "core-slow", "CPU replaced", datetime.date(2999, 1, 1))
    rules = structs.replace(acceptance.load(), suppressions=(accepted,))
    node = judge(_core(made(jobs=2), 0.3, 0.0), rules).verdict.nodes["node001"]
    assert (node.outcome, node.findings[0].state) == (Outcome.SAME, State.INTERMITTENT)
    assert "CPU replaced" in text.node_sentence([node])


def test_a_suspicion_is_shown_with_the_interval_that_made_it() -> None:
    """The second job leaves it open: its own interval reaches into the bound."""
    (finding,) = judge(_core(made(jobs=2), 0.09, 0.040)).verdict.nodes["node001"].findings
    assert finding.state is State.SUSPECTED
    assert finding.interval.low > finding.bound
    assert finding.effect == pytest.approx(finding.by_job[0].effect)


def test_effect_and_interval_are_of_the_confirming_job_and_all_jobs_are_there() -> None:
    (finding,) = judge(_core(made(jobs=2), 0.14, 0.09)).verdict.nodes["node001"].findings
    assert finding.effect == pytest.approx(finding.by_job[1].effect)
    assert [round(job.effect, 2) for job in finding.by_job] == pytest.approx([0.14, 0.09], abs=0.012)
    assert finding.interval.low < finding.effect < finding.interval.high
    assert len(finding.runs) == 12


def test_a_confirmed_finding_is_headed_by_a_part_that_both_jobs_show() -> None:
    """In the second job alone the core is slow to its own socket, too, and slower than to the other one."""
    fleet = made(jobs=2)
    (quantity,) = fleet.pairs
    slots = quantity.layout.slots
    core = codes(slots[:, : RANK + 1])[quantity.pairs]
    beyond = np.ptp(slots[quantity.pairs, SOCKET], axis=1) > 0
    own, far = (np.tile(flags, len(quantity.homes)) for flags in ((core == CORE).any(axis=1), beyond))

    def slower(node: int, job: int) -> Floats:
        return 1 + own * np.where(far, 0.08, 0.10 * (job == 2)) * (node == 1)

    (finding,) = judge(times(fleet, HOPS, slower)).verdict.nodes["node001"].findings
    assert (finding.state, finding.part.term, finding.part.family) == (State.CONFIRMED, "core", "core-far")


def test_a_job_that_follows_too_soon_confirms_nothing() -> None:
    campaign = _core(made(jobs=2), 0.1, 0.1)
    soon = tuple(
        replace(q, started=tuple(f"2026-01-01T00:{5 * j + r:02d}:00Z" for j, r in zip(q.job, q.run, strict=True)))
        for q in campaign.quantities
    )
    assert judge(replace(campaign, quantities=soon)).verdict.nodes["node001"].outcome is Outcome.SUSPECT


def test_confirming_interval_is_shared_by_what_was_suspected_alone() -> None:
    campaign = judge(_core(made(jobs=2), 0.1, 0.1))
    (series,) = [s for s in campaign.series if s.matrix.name == HOPS]
    assert series.suspected >= 1
    assert campaign.confirming == confirmation.confirming_tail(campaign.series, 0.01)
    block = series.blocks[1]
    assert np.all(block.half(campaign.confirming) < block.half_simultaneous)


@pytest.mark.parametrize(("suspected", "tail"), [((), 0.005), ((0,), 0.005), ((1,), 0.005), ((3, 2), 0.001)])
def test_all_that_is_suspected_shares_the_level(suspected: tuple[int, ...], tail: float) -> None:
    series = [SimpleNamespace(suspected=count) for count in suspected]
    assert confirmation.confirming_tail(series, 0.01) == tail  # type: ignore[arg-type]


def test_pooled_leaves_out_the_job_that_was_chosen_for_what_it_showed() -> None:
    campaign = judge(_core(made(jobs=2), 0.1, 0.0))
    (number,) = [k for k, s in enumerate(campaign.series) if s.matrix.name == HOPS]
    pooled = campaign.pooled[number]
    assert pooled[1].jobs == 1
    assert pooled[2].jobs == 2
    assert np.median(pooled[2].error) < np.median(campaign.series[number].first.error(2))


def test_recheck_names_the_suspect_and_two_beside_it_and_ends_after_three_jobs() -> None:
    once = judged("node003: core 17 +10%").verdict
    assert once.nodes["node003"].outcome is Outcome.SUSPECT
    assert "node003" in once.recheck
    assert len(once.recheck) == 3
    assert judge(_core(made(jobs=3), 0.0, 0.0, 0.1)).verdict.recheck == ()
