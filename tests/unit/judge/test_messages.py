"""Messages between nodes: slow nodes and links by the same intervals, and what cannot be concluded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import permutations
from typing import Any

import numpy as np
import pytest
import xarray as xr

from nodeprint.data.job.fabric_times import Fabric
from nodeprint.judge import acceptance, messages
from nodeprint.judge.judge import judge
from nodeprint.judge.outcome import Certainty, Kind, Outcome
from nodeprint.judge.verdict import FabricVerdict
from nodeprint.report import text
from nodeprint.stats import intervals
from tests.support.fleets import made, with_outcomes

RULES = acceptance.load()


def fabric(nodes: int = 8, runs: int = 2, seed: int = 1, noise: float = 0.01, hours: tuple[int, ...] = ()) -> Fabric:
    """A healthy fabric of two switches; `hours` is when each run begins, two runs a job."""
    rng = np.random.default_rng(seed)
    places = tuple("leaf0" if i < nodes // 2 else "leaf1" for i in range(nodes))
    near = np.array(places)[:, None] == np.array(places)[None, :]
    node = 1 + 0.005 * rng.standard_normal((2, nodes))
    values = (
        100e3 * np.where(near, 1, 1.5) * np.outer(*node) * np.exp(noise * rng.standard_normal((runs, nodes, nodes)))
    )
    values[:, np.arange(nodes), np.arange(nodes)] = np.nan
    started = tuple(f"2026-01-01T{hour:02d}:00:00Z" for hour in hours) or ("2026-01-01T00:00:00Z",) * runs
    return Fabric(
        measurement="linktest-fabric",
        partition="main",
        nodes=tuple(f"node{i:03d}" for i in range(nodes)),
        places=places,
        runs=tuple(f"job{1 + i // 2}/run{1 + i % 2}" for i in range(runs)),
        started=started,
        values=values,
        disturbed=(0.0,) * runs,
        header={"directed": True, "operation": "unidirectional"},
    )


def judged(of: Fabric) -> FabricVerdict:
    return messages.judge(of, RULES)


@pytest.mark.parametrize("nodes", [4, 5, 8])
def test_healthy_fabrics_have_no_finding(nodes: int) -> None:
    assert sum(bool(judged(fabric(nodes, seed=seed)).findings) for seed in range(25)) <= 3


@pytest.mark.parametrize(("runs", "burst"), [(3, 1.5), (6, 2.0)])
def test_other_traffic_in_one_run_of_a_link_accuses_nobody(runs: int, burst: float) -> None:
    """Its mean is beyond the tolerance then, and so is what its runs differ by."""
    accused = 0
    for seed in range(12):
        rng = np.random.default_rng(seed)
        disturbed = fabric(runs=runs, seed=seed)
        for _ in range(3):
            disturbed.values[rng.integers(runs), *rng.choice(8, 2, replace=False)] *= burst
        accused += bool(judged(disturbed).findings)
    assert accused <= 1


def test_a_slow_node_is_named_and_none_of_its_links() -> None:
    slow = fabric()
    slow.values[:, 2, :] *= 1.3
    slow.values[:, :, 2] *= 1.3
    (finding,) = judged(slow).findings
    assert finding.component.where == {"node": "node002", "sends": 1, "receives": 1}
    assert finding.effect == pytest.approx(0.3, abs=0.03)
    assert finding.times_tolerance == pytest.approx(finding.effect / (RULES.fabric.node_percent / 100), rel=1e-6)


def test_a_noisy_fabric_asks_for_runs_that_bring_its_limit_to_where_it_is_one() -> None:
    limits = {of.component_type: of for of in judged(fabric(noise=0.15)).limits}
    noisy = [of for of in limits.values() if of.remedy]
    assert noisy and all(of.effect > 2.5 * of.tolerance and of.remedy == "runs" and 2 < of.needed <= 20 for of in noisy)


def test_a_finding_says_how_slow_in_ns_beside_what_is_usual() -> None:
    slow = fabric()
    slow.values[:, 2, :] *= 1.3
    (finding,) = judged(slow).findings
    assert finding.value == pytest.approx(finding.peers * (1 + finding.effect))
    assert finding.effect_unit == pytest.approx(finding.value - finding.peers)
    assert finding.interval.low < finding.effect < finding.interval.high and finding.half_95 < finding.effect / 2
    (job,) = finding.by_job
    assert job.job == "job1" and len(job.runs) == 2
    assert all(effect == pytest.approx(0.3, abs=0.05) for effect in job.runs.values())


def test_of_several_sizes_the_largest_is_judged_and_each_is_there_by_kind_of_link() -> None:
    slow = fabric()
    small = slow.values / 50
    small[:, 2, :] *= 2  # a latency of its own, which is shown and not judged
    of_sizes = judged(replace(slow, by_size={8: small, 1 << 20: slow.values}))
    assert of_sizes.findings == () and of_sizes.message_bytes == 1 << 20
    assert [(figure.message_bytes, figure.within) for figure in of_sizes.by_size] == [
        (size, within) for size in (8, 1 << 20) for within in (True, False)
    ]
    near, far = of_sizes.by_size[2:]
    assert far.median_ns / near.median_ns == pytest.approx(1.5, rel=0.02)
    assert of_sizes.by_size[0].high_ns > 1.8 * of_sizes.by_size[0].median_ns
    assert np.array(of_sizes.smallest_ns)[2, 3] == pytest.approx(np.median(small[:, 2, 3]))


def test_a_slow_link_is_named_with_its_direction() -> None:
    slow = fabric()
    slow.values[:, 2, 5] *= 1.5
    (finding,) = judged(slow).findings
    assert finding.component.where == {"node": "node002", "to": "node005", "sends": 1, "receives": 0}


@pytest.mark.parametrize(
    ("by_job", "state"),
    [((1.5, 1.5), Certainty.CONFIRMED), ((1.5, 1.0), Certainty.INTERMITTENT), ((1.0, 1.5), Certainty.INTERMITTENT)],
)
def test_a_second_job_confirms_or_contradicts_in_either_order(by_job: tuple[float, ...], state: Certainty) -> None:
    slow = fabric(runs=4, hours=(0, 0, 1, 1))
    slow.values[:2, 2, 5] *= by_job[0]
    slow.values[2:, 2, 5] *= by_job[1]
    (finding,) = judged(slow).findings
    assert finding.state is state
    assert len(finding.by_job) == 2


@pytest.mark.parametrize(
    ("of", "why"),
    [(fabric(3), "too-few-nodes"), (fabric(8, runs=1), "one-run"), (fabric(noise=0.3), "beyond-tolerance")],
)
def test_what_cannot_be_concluded_is_said(of: Fabric, why: str) -> None:
    assert judged(of).inconclusive == why
    verdict = judge(made(), fabrics=((of,))).verdict
    assert verdict.fails([Kind.NOT_SAME])
    assert not verdict.fails([Kind.FOUND])


def test_a_slow_node_is_suspect_and_a_slow_link_is_of_the_fabric() -> None:
    node, link = fabric(), fabric()
    node.values[:, 2, :] *= 1.5
    link.values[:, 2, 5] *= 1.5
    of_node = judge(made(), fabrics=((node,)))
    assert with_outcomes(of_node)["node002"] == Outcome.SUSPECT
    of_link = judge(made(), fabrics=((link,)))
    assert set(with_outcomes(of_link).values()) == {"SAME"}
    assert of_link.verdict.fails([Kind.FOUND])


def test_what_one_run_shows_of_parts_has_one_degree_of_freedom_of_runs() -> None:
    """The median of the components is subtracted, and known as well as so many components let it be."""
    values = np.array([[0.01, -0.03, 0.02, np.nan]])
    job = messages._job(values, np.array([0]), 4e-4, 0.025)
    center = (1.4826 * 0.02) ** 2 * np.pi / 2 / 3
    error, degrees = intervals.combined([(np.array([4e-4]), 1.0), (np.array([center]), 2.0)])
    assert job.error.values[:3] == pytest.approx(error[0]) and job.degrees.values[:3] == pytest.approx(degrees[0])
    assert job.half.values == pytest.approx(intervals.half_width(job.error.values, job.degrees.values, 0.025))
    assert np.isnan(job.difference[3]) and job.difference[:3].values.tolist() == values[0, :3].tolist()
    nothing = messages._job(np.full((1, 2), np.nan), np.array([0]), 4e-4, 0.025)
    assert nothing.error.values == pytest.approx(0.02) and np.isnan(nothing.difference).all()
    alone = messages._job(values[:, :1], np.array([0]), 4e-4, 0.025)
    center = (1.4826 * 0.01) ** 2 * np.pi / 2
    assert alone.degrees.values == pytest.approx(
        intervals.combined([(np.array([4e-4]), 1.0), (np.array([center]), 1.0)])[1]
    )


def test_detection_limits_fall_with_runs() -> None:
    few, many = (judged(fabric(runs=runs)).limits for runs in (2, 8))
    assert all(b.effect < a.effect for a, b in zip(few, many, strict=True))


@pytest.mark.parametrize("component_type", [messages.NODE, messages.LINK])
def test_what_is_as_large_as_the_detection_limit_is_found_in_nine_of_ten(component_type: str) -> None:
    """Links differ by nature more than by noise, and eight nodes take a share of each difference for what is usual."""
    found, planted = 0, 0
    for seed in range(30):
        rng = np.random.default_rng(seed)
        slow = fabric(runs=6, seed=seed, noise=0.003)
        slow.values[:] *= np.exp(0.03 * rng.standard_normal((8, 8)))
        slow.values[:] *= np.exp(0.01 * rng.standard_normal((8, 1)))
        (limit,) = (of.effect for of in judged(slow).limits if of.component_type == component_type)
        ends = (
            {("node002", "")} if component_type == messages.NODE else {("node002", "node005"), ("node007", "node001")}
        )
        for node, to in ends:
            receiver = int(to[-1]) if to else slice(None)
            slow.values[:, int(node[-1]), receiver] *= 1 + limit
        named = {
            (str(finding.component.where["node"]), str(finding.component.where.get("to", "")))
            for finding in judged(slow).findings
        }
        found, planted = found + len(ends & named), planted + len(ends)
    assert 0.78 <= found / planted <= 0.99


@pytest.mark.parametrize("missing", [np.s_[:, 2, 5], np.s_[0, 2, 5], np.s_[:, 3, :]])
def test_a_limit_does_not_hang_on_what_was_not_measured(missing: tuple[slice | int, ...]) -> None:
    whole, partial = fabric(), fabric()
    partial.values[missing] = np.nan
    for of_whole, of_partial in zip(judged(whole).limits, judged(partial).limits, strict=True):
        assert of_partial.effect == pytest.approx(of_whole.effect, rel=0.3)


def _of(**changes: Any) -> Fabric:
    return replace(fabric(nodes=4), **changes)


@pytest.mark.parametrize(
    ("places", "alone"),
    [
        ("aaaa", ()),
        ("aabb", ()),
        ("aaab", ("node003",)),  # all links that are not in a switch are its own
        ("abcd", ()),
        ("aab", ("node002",)),  # the first two have a link to it each, which are alike
    ],
)
def test_a_node_is_alone_whose_links_no_others_are_like(places: str, alone: tuple[str, ...]) -> None:
    nodes = tuple(f"node{i:03d}" for i in range(len(places)))
    assert messages._alone(_of(nodes=nodes, places=tuple(places))) == alone


def test_a_fabric_has_the_figures_of_its_links() -> None:
    of = fabric()
    made = judged(replace(of, header={**of.header, "parallel": 4}))
    links = of.values[np.isfinite(of.values)]
    figures = made.minimum_ns, made.mean_ns, made.maximum_ns
    assert figures == pytest.approx((links.min(), links.mean(), links.max()))
    assert (made.at_once, made.directed, made.smallest_ns) == (4, True, ())
    assert np.array(made.median_ns)[1, 2] == pytest.approx(of.values[:, 1, 2].mean())
    plain = judged(replace(of, header={}))
    assert (plain.at_once, plain.directed, plain.operation) == (1, False, "")
    empty = judged(replace(of, runs=(), started=(), values=of.values[:0]))
    assert np.isnan([empty.minimum_ns, empty.mean_ns, empty.maximum_ns]).all() and empty.inconclusive == "one-run"


def _shown(*columns: np.ndarray, runs: Sequence[int]) -> xr.Dataset:
    """A job's difference, error, degrees of freedom and half of the interval of each column."""
    names = ("difference", "error", "degrees", "half")
    return xr.Dataset({name: ("column", each) for name, each in zip(names, columns, strict=True)}, {"run": list(runs)})


def test_an_effect_in_a_job_has_its_interval_and_each_run() -> None:
    """The second of two jobs of two runs, of a component whose interval is 0.1 wide on each side."""
    of = fabric(runs=4, hours=(0, 0, 1, 1))
    values = np.full((4, 6, 2), np.nan)
    values[2:, 1, 1] = 0.2, 0.4
    ways = messages._ways(messages.LINK, [(("a", "b"), ("b", "a"))] * 6, values, values[0])
    each = np.full(12, 0.1)
    job = _shown(np.full(12, 0.3), each, each, each, runs=[2, 3])
    effect = messages._effect_of(job, 3, of, ways, shows=True)
    assert effect.job == "job2" and list(effect.runs) == ["job2/run1", "job2/run2"]
    ends = effect.interval.low, effect.effect, effect.interval.high, *effect.runs.values()
    assert ends == pytest.approx(np.expm1([0.2, 0.3, 0.4, 0.2, 0.4]))
    values[3, 1, 1] = np.nan
    assert list(messages._effect_of(job, 3, of, ways, shows=True).runs) == ["job2/run1"]


@pytest.mark.parametrize(
    ("by_job", "state"),
    [
        ((0.0,), None),
        ((0.4,), Certainty.SUSPECTED),
        ((0.4, 0.4), Certainty.CONFIRMED),
        ((0.4, 0.15), Certainty.SUSPECTED),  # beyond its tolerance, and not with all of its interval
        ((0.4, 0.0), Certainty.INTERMITTENT),
        ((0.4, 0.09), Certainty.SUSPECTED),  # not within it with all of its interval
        ((0.4, np.nan), Certainty.SUSPECTED),  # what was not measured contradicts nothing
        ((0.4, 0.4, 0.0), Certainty.CONFIRMED),
        ((0.4, 0.15, 0.0), Certainty.INTERMITTENT),
        ((0.4, -0.4), Certainty.INTERMITTENT),  # faster is not slower
    ],
)
def test_what_the_jobs_of_a_link_show_in_any_order(by_job: tuple[float, ...], state: Certainty | None) -> None:
    """With a tolerance of 0.1, intervals of 0.06 and a standard error of 0.02."""
    one = np.ones(1)
    for order in permutations(by_job):
        jobs = [
            _shown(difference * one, 0.02 * one, 50 * one, 0.06 * one, runs=[2 * at, 2 * at + 1])
            for at, difference in enumerate(order)
        ]
        outside = [(job.difference - job.half > 0.1).values for job in jobs]
        assert messages._state(jobs, outside, np.zeros(1, dtype=np.bool_), 0.1, 0) is state, order


@pytest.mark.parametrize(("effect", "needed"), [(0.25, 4), (0.4, 16), (0.43, 20), (0.9, 20)])
def test_runs_that_are_asked_for_make_the_limit_two_and_a_half_tolerances(effect: float, needed: int) -> None:
    """Of a tolerance of 0.1 and four runs: an error that is twice as large takes four times as many, and 20 at most."""
    job = _shown(*(np.zeros(1),) * 4, runs=range(4))
    assert messages._runs_needed(job, 0.1, effect) == needed


def test_findings_of_a_node_are_its_own_and_not_those_of_its_links() -> None:
    slow = fabric()
    slow.values[:, 2, :] *= 1.3
    slow.values[:, 6, 3] *= 1.5
    of = judged(slow)
    assert len(of.findings) == 2
    assert [finding.component.term for finding in messages.of_node([of], "node002")] == [messages.NODE]
    assert messages.of_node([of], "node006") == messages.of_node([of], "node000") == []
    sends = [finding.component.where.get("sends") for finding in messages.of_node([of], "node002")]
    assert sends == [1] and of.findings[0].component.where["receives"] == 0


@pytest.mark.parametrize(("back", "both"), [(1.22, 1), (1.15, 0)])
def test_the_other_direction_is_slow_too_from_half_of_the_effect_on(back: float, both: int) -> None:
    slow = fabric(noise=0.001)
    slow.values[:, 2, 5] *= 1.4
    slow.values[:, 5, 2] *= back
    (finding,) = judged(slow).findings
    assert (finding.component.where["node"], finding.component.where["receives"]) == ("node002", both)


def test_lost_time_marks_the_values_wherever_they_are_shown() -> None:
    """From the share on that marks the values of a node; the run that lost most counts."""
    quiet, busy = (judged(replace(fabric(), disturbed=(0.0, share))) for share in (0.04, 0.2))
    assert (quiet.is_marked, busy.is_marked) == (False, True)
    assert "*" not in text.fabric(quiet)
    assert "* Background load took up to 20.0% of the CPU time" in text.fabric(busy)
