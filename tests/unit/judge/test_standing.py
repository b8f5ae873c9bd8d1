"""What the jobs of a node show, by how many of them do: k of n, whatever their order."""

from __future__ import annotations

import datetime
from dataclasses import replace
from itertools import permutations

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from nodeprint.data.places.layout import RANK, SOCKET, codes
from nodeprint.data.places.measured import Measured
from nodeprint.data.store.packed import PackedFleet
from nodeprint.judge import acceptance
from nodeprint.judge.acceptance_file import Waiver
from nodeprint.judge.deviations import Deviations
from nodeprint.judge.judge import judge
from nodeprint.judge.outcome import Certainty, FleetOutcome, Kind, Outcome
from nodeprint.judge.standing import evidence, outliers
from nodeprint.report import text
from tests.support.drawn import matrix, of_values, tolerance
from tests.support.fleets import made, times

Floats = npt.NDArray[np.float64]

HOPS = "coherence-cas"
CORE = 17
NODES, NODE = 8, 1
QUIET = 0.02


def _component() -> int:
    return int(matrix().terms.indices("core-near")[CORE])


def _values(*by_job: float, runs: int = 6, seed: int = 1) -> Floats:
    """Nodes of several jobs (row, run, component), in which a component of one node is off by so many tolerances in
    each job; runs differ by a fiftieth of a tolerance."""
    rng = np.random.default_rng(seed)
    values = QUIET * tolerance() * rng.standard_normal((NODES * len(by_job), runs, len(tolerance())))
    for job, effect in enumerate(by_job):
        values[NODE * len(by_job) + job, :, _component()] += effect * tolerance()[_component()]
    return values


def _standing(values: Floats, jobs: int) -> Deviations | None:
    found = outliers(of_values(values, [jobs] * NODES))
    assert set(found) <= {NODE}
    return found.get(NODE)


def _state(standing: Deviations | None, component: int) -> str:
    """That of a component; nothing is shown of any other."""
    if standing is None:
        return "nothing"
    flags = {state: getattr(standing, state) for state in ("confirmed", "intermittent", "suspected")}
    assert sum(of.astype(int) for of in flags.values()).max() == 1
    for of_components in flags.values():
        assert not np.delete(of_components, component).any()
    return next((state for state, of_components in flags.items() if of_components[component]), "nothing")


K_OF_N = [
    ((3.0,), "suspected"),
    ((0.0,), "nothing"),
    ((3.0, 3.0), "confirmed"),
    ((3.0, 0.0), "intermittent"),
    ((3.0, 1.0), "suspected"),  # the other job neither shows it nor is within the tolerance
    ((3.0, -3.0), "suspected"),  # two jobs on two sides are no two jobs that agree
    ((0.0, 0.0), "nothing"),
    ((3.0, 3.0, 0.0), "confirmed"),
    ((3.0, 0.0, 0.0), "intermittent"),
    ((3.0, 1.0, 0.0), "intermittent"),
    ((3.0, -3.0, 3.0), "confirmed"),
    ((3.0, -3.0, 0.0), "intermittent"),
    ((3.0, 0.0, 0.0, 3.0), "confirmed"),
    ((3.0, 0.0, 0.0, 0.0, 0.0), "intermittent"),
]


@pytest.mark.parametrize(("by_job", "state"), K_OF_N)
def test_two_jobs_confirm_and_one_within_the_tolerance_contradicts_in_any_order(
    by_job: tuple[float, ...], state: str
) -> None:
    for order in sorted(set(permutations(by_job))):
        standing = _standing(_values(*order), len(order))
        assert _state(standing, _component()) == state, order
        if standing is not None:
            side = 1.0 if sum(effect > 1 for effect in order) >= sum(effect < -1 for effect in order) else -1.0
            assert standing.shows[:, _component()].tolist() == [side * effect > 1 for effect in order], order


def test_all_jobs_together_confirm_where_two_are_beyond_the_tolerance() -> None:
    """Noisy jobs: none is outside by itself, and all of them are beyond the tolerance on one side."""
    rng, component = np.random.default_rng(5), _component()
    values = 0.6 * tolerance() * rng.standard_normal((NODES * 4, 6, len(tolerance())))
    values -= values.mean(axis=1, keepdims=True)  # each job has the mean that is given to it
    values += 0.05 * tolerance() * rng.standard_normal((NODES * 4, 1, len(tolerance())))
    values[4 * NODE : 4 * NODE + 4, :, component] += np.array([1.85, 1.95, 1.9, 1.9])[:, None] * tolerance()[component]
    series = of_values(values, [4] * NODES)
    assert not series.outside[:, component].any() and series.outside_pooled[NODE, component]
    assert outliers(series)[NODE].confirmed[component]


def test_all_jobs_together_confirm_nothing_where_one_job_alone_is_beyond_the_tolerance() -> None:
    series, component = of_values(_values(3.0, 0.98), [2] * NODES), _component()
    outside = np.zeros_like(series.outside_pooled)
    outside[NODE, component] = True
    series.__dict__["outside_pooled"] = outside
    assert _state(outliers(series)[NODE], component) == "suspected"


@pytest.mark.parametrize(
    ("runs", "state"),
    [
        ([7.5] * 5 + [0.0], "nothing"),  # the job as a whole is outside, or undecided: see below
        ([3.0, 3.0, 0.0, 0.0, 0.0, 0.0], "intermittent"),
        ([3.0, 0.0, 0.0, 0.0, 0.0, 0.0], "nothing"),  # a single run is nobody's finding
        ([1.8, 1.8, 0.0, 0.0, 0.0, 0.0], "nothing"),  # not far enough beyond
        ([3.0, -3.0, 0.0, 0.0, 0.0, 0.0], "nothing"),  # one on each side
        ([-3.0, -3.0, -3.0, 0.0, 0.0, 0.0], "intermittent"),
    ],
)
@pytest.mark.parametrize("others", [0, 1, 2])
def test_several_runs_of_a_job_that_are_far_beyond_are_never_the_same(
    runs: list[float], state: str, others: int
) -> None:
    """In any job of them: the others are within the tolerance."""
    for job in range(others + 1):
        values = _values(*[0.0] * (others + 1))
        values[NODE * (others + 1) + job, :, _component()] += np.array(runs) * tolerance()[_component()]
        series = of_values(values, [others + 1] * NODES)
        found = outliers(series)
        if runs.count(7.5):
            assert _state(found[NODE], _component()) in ("suspected", "intermittent")
            assert others == 0 or _state(found[NODE], _component()) == "intermittent"
            continue
        assert _state(found.get(NODE), _component()) == state
        if state == "intermittent":
            far = found[NODE].runs_far[:, :, _component()]
            assert far[job].tolist() == [abs(run) > 1 for run in runs]
            assert not np.delete(far, job, axis=0).any()


def test_of_two_runs_none_is_outvoted() -> None:
    values = _values(0.0, runs=2)
    values[NODE, :, _component()] += np.array([6.0, 0.0]) * tolerance()[_component()]
    assert _state(_standing(values, 1), _component()) == "nothing"


def test_a_finding_of_runs_is_of_the_runs_that_show_it() -> None:
    values = _values(0.0, 0.0)
    row = NODE * 2 + 1
    values[row, [1, 4], _component()] += 4 * tolerance()[_component()]
    series = of_values(values, [2] * NODES)
    standing = outliers(series)[NODE]
    estimate = evidence(standing, _component())
    expected = values[row, [1, 4], _component()].mean() - series.reference.center[NODE, _component()]
    assert estimate.difference[0, _component()] == pytest.approx(expected)
    assert estimate.runs[0, _component()] == 2 and len(estimate.rows) == 1
    spread = series.spreads.run
    assert estimate.of_runs[0, _component()] == pytest.approx(
        spread.pooled[_component()] * spread.ratio[NODE, _component()] / 2
    )


@pytest.mark.parametrize("by_job", [(3.0, 0.0, 4.0), (0.0, 3.0, 0.0), (3.0, 3.5, 4.0)])
def test_a_finding_is_of_the_jobs_that_show_it(by_job: tuple[float, ...]) -> None:
    values = _values(*by_job)
    series = of_values(values, [3] * NODES)
    estimate = evidence(outliers(series)[NODE], _component())
    showing = [NODE * 3 + job for job, effect in enumerate(by_job) if effect > 1]
    assert estimate.rows.tolist() == showing
    expected = values[showing][:, :, _component()].mean() - series.reference.center[NODE, _component()]
    assert estimate.difference[0, _component()] == pytest.approx(expected)


def test_jobs_far_apart_in_time_show_the_same_where_all_nodes_moved() -> None:
    """All nodes are a tolerance slower on another day: nobody differs from the others, in jobs or in runs."""
    values = _values(0.0, 0.0)
    values[1::2] += 3 * tolerance()
    began = [20_000.5 * 86400 + 86400 * (row % 2) for row in range(2 * NODES)]
    assert outliers(of_values(values, [2] * NODES, began)) == {}
    values[2 * NODE + 1, 1:3, _component()] += 4 * tolerance()[_component()]
    found = outliers(of_values(values, [2] * NODES, began))
    assert _state(found[NODE], _component()) == "intermittent" and found[NODE].runs_far[1, 1:3, _component()].all()
    estimate = evidence(found[NODE], _component())
    assert estimate.difference[0, _component()] == pytest.approx(4 * tolerance()[_component()], rel=0.02)


def _reordered(series: Deviations) -> dict[int, tuple[list[list[int]], int]]:
    """What is shown of each node, and in how many of its jobs."""
    return {
        node: (
            [np.flatnonzero(flags).tolist() for flags in (of.confirmed, of.suspected, of.intermittent)],
            int(of.shows.any(axis=1).sum()),
        )
        for node, of in outliers(series).items()
    }


@settings(deadline=None, max_examples=25)
@given(st.integers(0, 10_000), st.permutations(range(NODES)), st.data())
def test_nothing_depends_on_the_order_of_nodes_jobs_and_runs(seed: int, nodes: list[int], data: st.DataObject) -> None:
    rng = np.random.default_rng(seed)
    values = _values(0.0, 0.0, 0.0, seed=seed).reshape(NODES, 3, 6, -1)
    for effect in rng.choice([0.9, 1.05, 1.3, 3.0], 12):
        node, job, component = rng.integers([NODES, 3, values.shape[-1]]).tolist()
        chosen = rng.random(6) < rng.choice([0.4, 1.0])
        values[node, job, chosen, component] += effect * tolerance()[component] * rng.choice([-1, 1])
    other = values.copy()
    for node in range(NODES):
        order = data.draw(st.permutations(range(3)))
        for job in range(3):
            other[node, job] = values[node, order[job], data.draw(st.permutations(range(6)))]
    moment = [20_000.5 * 86400] * 3 * NODES
    flat = (each.reshape(NODES * 3, 6, -1) for each in (values, other[nodes]))
    first, second = (_reordered(of_values(each, [3] * NODES, moment)) for each in flat)
    assert {nodes.index(node): shown for node, shown in first.items()} == second


# --- whole verdicts ---


def _own(quantity: Measured) -> npt.NDArray[np.bool_]:
    core = codes(quantity.layout.slots[:, : RANK + 1])[quantity.pairs]
    return np.tile((core == CORE).any(axis=1), len(quantity.homes))


def _core(fleet: PackedFleet, *by_job: float) -> PackedFleet:
    """The fleet with a core of node001 slower by a share in each of its jobs."""
    (quantity,) = fleet.pairs
    own = _own(quantity)
    return times(fleet, HOPS, lambda node, job: 1 + own * (by_job[job - 1] if node == 1 else 0.0))


def _runs(fleet: PackedFleet, job: int, *effects: float) -> PackedFleet:
    """The fleet with the core of node001 slower by a share in each run of a job."""
    (quantity,) = fleet.pairs
    values, own = quantity.values.copy(), _own(quantity)
    rows = zip(quantity.node.tolist(), quantity.job.tolist(), quantity.run.tolist(), strict=True)
    for row, (node, of_job, run) in enumerate(rows):
        if (node, of_job) == (1, job):
            values[row] *= 1 + own * effects[run - 1]
    return replace(fleet, quantities=(quantity.assign(values=values.astype(np.float32)),))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("by_job", "outcome", "state"),
    [
        ((0.10,), Outcome.SUSPECT, Certainty.SUSPECTED),
        ((0.10, 0.10), Outcome.DEVIATES, Certainty.CONFIRMED),
        ((0.10, 0.00), Outcome.INTERMITTENT, Certainty.INTERMITTENT),
        ((0.00, 0.10), Outcome.INTERMITTENT, Certainty.INTERMITTENT),
        ((0.10, 0.10, 0.00), Outcome.DEVIATES, Certainty.CONFIRMED),
        ((0.00, 0.10, 0.10), Outcome.DEVIATES, Certainty.CONFIRMED),
        ((0.00, 0.10, 0.00), Outcome.INTERMITTENT, Certainty.INTERMITTENT),
        ((0.10, 0.00, 0.10, 0.00), Outcome.DEVIATES, Certainty.CONFIRMED),
        ((0.00, 0.00), Outcome.SAME, None),
    ],
)
def test_the_outcome_is_of_how_many_jobs_show_it(
    by_job: tuple[float, ...], outcome: Outcome, state: Certainty | None
) -> None:
    verdict = judge(_core(made(jobs=len(by_job)), *by_job)).verdict
    node = verdict.nodes["node001"]
    assert node.outcome is outcome
    assert [finding.state for finding in node.findings] == [state] * (state is not None)
    for finding in node.findings:
        assert finding.component.term == "core" and finding.effect == pytest.approx(0.10, abs=0.015)
        assert [job.shows for job in finding.by_job] == [effect > 0 for effect in by_job]
    assert {of.outcome for name, of in verdict.nodes.items() if name != "node001"} == {Outcome.SAME}


@pytest.mark.slow
@pytest.mark.parametrize("effects", [(*5 * (0.30,), 0.0), (0.12, 0.12, *4 * (0.0,))])
@pytest.mark.parametrize("job", [1, 2])
def test_runs_that_come_and_go_are_named_and_never_the_same(effects: tuple[float, ...], job: int) -> None:
    verdict = judge(_runs(made(jobs=2), job, *effects)).verdict
    node = verdict.nodes["node001"]
    assert node.outcome is Outcome.INTERMITTENT
    (finding,) = node.findings
    assert finding.state is Certainty.INTERMITTENT
    assert abs(finding.effect) > finding.tolerance
    named = [f"job{job}/run{run + 1}" for run, effect in enumerate(effects) if effect]
    assert [run for of in finding.by_job for run in of.showing] == named
    assert verdict.fails([Kind.FOUND]) and verdict.fails([Kind.NOT_SAME])


def test_runs_of_a_single_job_that_come_and_go_are_intermittent() -> None:
    node = judge(_runs(made(), 1, 0.12, 0.12, *4 * (0.0,))).verdict.nodes["node001"]
    assert node.outcome is Outcome.INTERMITTENT
    (finding,) = node.findings
    assert finding.by_job[0].showing == ("job1/run1", "job1/run2")
    assert finding.effect == pytest.approx(0.12, abs=0.015)


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


def test_what_comes_and_goes_is_shown_with_its_jobs_and_asks_for_another() -> None:
    twice = judge(_core(made(jobs=2), 0.3, 0.0)).verdict
    assert twice.fleet.outcome is FleetOutcome.INTERMITTENT
    assert "node001" in twice.recheck
    (finding,) = twice.nodes["node001"].findings
    assert finding.effect == pytest.approx(0.3, abs=0.02) and finding.interval.low > finding.tolerance
    words = text.node_sentence(twice.nodes["node001"])
    assert "30." in words and "1 of 2 jobs" in words and "another job" in words
    thrice = judge(_core(made(jobs=3), 0.3, 0.0, 0.0)).verdict
    assert "node001" not in thrice.recheck
    words = text.node_sentence(thrice.nodes["node001"])
    assert "1 of 3 jobs" in words and "another job" not in words


def test_what_is_accepted_is_no_reason_against_a_node_that_is_within_its_tolerance_in_all_jobs_together() -> None:
    accepted = Waiver("node001", "core-slow", "known", datetime.date(2999, 1, 1))
    rules = structs.replace(acceptance.load(), waivers=(accepted,))
    node = judge(_core(made(jobs=4), 0.12, 0.0, 0.0, 0.0), rules).verdict.nodes["node001"]
    assert node.findings[0].state is Certainty.INTERMITTENT and node.findings[0].waived
    assert node.outcome in (Outcome.SAME, Outcome.INCONCLUSIVE)
    assert "known" in text.node_sentence(node)


def test_a_suspicion_is_shown_with_the_interval_that_made_it() -> None:
    """The second job leaves it open: its own interval reaches into the tolerance."""
    for effects in ((0.09, 0.037), (0.037, 0.09)):
        (finding,) = judge(_core(made(jobs=2), *effects)).verdict.nodes["node001"].findings
        assert finding.state is Certainty.SUSPECTED
        assert finding.interval.low > finding.tolerance
        assert finding.effect == pytest.approx(finding.by_job[effects.index(0.09)].effect)


def test_effect_and_interval_are_of_the_jobs_that_show_it_and_all_jobs_are_there() -> None:
    (finding,) = judge(_core(made(jobs=3), 0.14, 0.00, 0.09)).verdict.nodes["node001"].findings
    first, quiet, third = finding.by_job
    assert finding.effect == pytest.approx((first.effect + third.effect) / 2)
    assert [round(job.effect, 2) for job in finding.by_job] == pytest.approx([0.14, 0.00, 0.09], abs=0.012)
    assert (first.shows, quiet.shows, third.shows) == (True, False, True)
    assert finding.interval.low < finding.effect < finding.interval.high
    assert finding.interval.high - finding.interval.low < first.interval.high - first.interval.low


@pytest.mark.parametrize("both", [1, 2])
def test_a_confirmed_finding_is_headed_by_a_part_that_both_jobs_show(both: int) -> None:
    """In one job alone the core is slow to its own socket, too, and slower than to the other one."""
    fleet = made(jobs=2)
    (quantity,) = fleet.pairs
    slots = quantity.layout.slots
    beyond = np.tile(np.ptp(slots[quantity.pairs, SOCKET], axis=1) > 0, len(quantity.homes))
    own = _own(quantity)

    def slower(node: int, job: int) -> Floats:
        return np.asarray(1 + own * np.where(beyond, 0.08, 0.10 * (job == both)) * (node == 1), dtype=np.float64)

    (finding,) = judge(times(fleet, HOPS, slower)).verdict.nodes["node001"].findings
    assert (finding.state, finding.component.term, finding.component.component_type) == (
        Certainty.CONFIRMED,
        "core",
        "core-far",
    )


@pytest.mark.parametrize("by_job", [(0.1, 0.1), (0.1, 0.08)])
def test_a_job_that_follows_too_soon_confirms_nothing(by_job: tuple[float, float]) -> None:
    campaign = _core(made(jobs=2), *by_job)
    soon = tuple(
        q.assign(started=tuple(f"2026-01-01T00:{5 * j + r:02d}:00Z" for j, r in zip(q.job, q.run, strict=True)))
        for q in campaign.quantities
    )
    node = judge(replace(campaign, quantities=soon)).verdict.nodes["node001"]
    assert node.outcome is Outcome.SUSPECT
    assert [len(job.runs) for job in node.findings[0].by_job] == [12]


def _without_jobs(fleet: PackedFleet, kept: tuple[int, ...]) -> PackedFleet:
    """The fleet without the second jobs of all nodes but these."""
    pairs = [(q, zip(q.node.tolist(), q.job.tolist(), strict=True)) for q in fleet.quantities]
    rows = [[row for row, (node, job) in enumerate(of) if job == 1 or node in kept] for _, of in pairs]
    return replace(fleet, quantities=tuple(q.of_rows(np.array(of)) for (q, _), of in zip(pairs, rows, strict=True)))


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_measuring_three_nodes_again_makes_no_finding_of_the_others(seed: int) -> None:
    """And takes none away."""
    fleet = made("node005: core 17 +6%", "node006: ccd 3 +5%", jobs=2, nodes=10, seed=seed)
    before, after = (judge(_without_jobs(fleet, kept)).verdict for kept in ((), (0, 1, 2)))
    for name in before.nodes:
        if name in ("node000", "node001", "node002"):
            continue
        was, now = before.nodes[name], after.nodes[name]
        assert [(f.component, f.state) for f in was.findings] == [(f.component, f.state) for f in now.findings], name
        assert {was.outcome, now.outcome} <= {Outcome.SAME, Outcome.INCONCLUSIVE} or was.outcome is now.outcome, name
