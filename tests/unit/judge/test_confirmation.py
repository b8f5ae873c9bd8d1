"""Two stages: one job suspects, an independent one confirms, refutes or leaves open."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pytest

from nodeprint.data.layout import RANK, SOCKET, codes
from nodeprint.data.packed import PackedFleet
from nodeprint.judge import confirmation
from nodeprint.judge.judge import judge
from nodeprint.judge.outcome import Outcome, State
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


@pytest.mark.parametrize(
    ("by_job", "outcome", "states"),
    [
        ((0.10, 0.10), Outcome.DEVIATES, [State.CONFIRMED]),
        ((0.10, 0.00), Outcome.SAME, [State.REFUTED]),
        ((0.00, 0.10), Outcome.SUSPECT, [State.SUSPECTED]),
        ((0.10, -0.10), Outcome.SUSPECT, None),
        ((0.10, 0.10, 0.00), Outcome.SAME, [State.REFUTED]),
        ((0.10, 0.00, 0.10), Outcome.DEVIATES, [State.CONFIRMED]),
        ((0.00, 0.00), Outcome.SAME, []),
    ],
)
def test_the_newest_job_decides(by_job: tuple[float, ...], outcome: Outcome, states: list[State] | None) -> None:
    node = judge(_core(made(jobs=len(by_job)), *by_job)).verdict.nodes["node001"]
    assert node.outcome is outcome
    if states is not None:
        assert [finding.state for finding in node.findings] == states


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
