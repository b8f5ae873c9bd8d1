"""The columns of the table: what an error is made of, of one job and of several, and who the peers are."""

from __future__ import annotations

import msgspec
import numpy as np
import numpy.typing as npt
import pytest
from scipy import stats

from nodeprint.judge.deviations import Deviations, campaign_tail, job_tail, priors
from nodeprint.judge.judge import judge
from nodeprint.stats.peers import TEMPLATE_ERROR
from tests.support.drawn import LATER_S, NOON_S, RULES, matrix, of_values, tolerance
from tests.support.fleets import judged, made

HOPS = "coherence-cas"
DAY_S = 86400.0


def _series(*defects: str, **changes: int | str) -> Deviations:
    return next(s for s in judged(*defects, **changes).tables if s.matrix.name == HOPS)


def _values(rows: int, runs: int = 3, spread: float = 0.05, seed: int = 1) -> npt.NDArray[np.float64]:
    """Runs (row, run, component) that differ by `spread` tolerances."""
    return spread * tolerance() * np.random.default_rng(seed).standard_normal((rows, runs, len(tolerance())))


# --- one job ---


@pytest.mark.parametrize(("nodes", "runs"), [(3, 2), (8, 3)])
def test_a_campaign_of_one_job_has_the_formulas_of_one_job(nodes: int, runs: int) -> None:
    """Those of docs/method/verdict.md, from the pooled variance of runs, what is assumed of jobs, and the peers."""
    series = of_values(_values(nodes, runs))
    run = series.spreads.run.pooled * series.spreads.run.ratio
    job = priors(matrix(), RULES)[0] ** 2
    assert series.spreads.job.variance.tolist() == job.tolist() and not series.spreads.rounds.error.any()
    of_each = run / runs + job
    others = (of_each.sum(axis=0) - of_each) / (nodes - 1)
    peers = series.reference.count[:, None]
    assert peers[:, 0].tolist() == [nodes - 1.0] * nodes
    own, of_peers = series.spreads.run.pooled / runs * series.spreads.run.ratio, TEMPLATE_ERROR * others / peers
    for estimates in (series, series.pooled):
        np.testing.assert_allclose(estimates.of_runs, own)
        np.testing.assert_allclose(estimates.of_jobs, np.broadcast_to(job, own.shape))
        np.testing.assert_allclose(estimates.of_reference, of_peers)
        np.testing.assert_allclose(estimates.error**2, own + job + of_peers)
        nature = np.maximum(series.reference.between - others, 0)
        np.testing.assert_allclose(estimates.different[0] ** 2, own + job + of_peers + TEMPLATE_ERROR * nature / peers)
        np.testing.assert_array_equal(estimates.runs, np.full(own.shape, runs))
        np.testing.assert_array_equal(estimates.jobs, np.ones(own.shape))
    of_runs = own + TEMPLATE_ERROR / peers * (others - job)
    degrees = (own + job + of_peers) ** 2 / (of_runs**2 / series.spreads.run.degrees)
    np.testing.assert_allclose(series.degrees, degrees, rtol=1e-9)
    half = stats.t.isf(0.05, degrees) * np.sqrt(own + job + of_peers)
    np.testing.assert_allclose(series.half_90, half, rtol=1e-6)


def test_difference_is_from_the_center_of_the_others() -> None:
    series = of_values(_values(8))
    means = series.matrix.values.mean(axis=1)
    np.testing.assert_allclose(series.difference, means - series.reference.center)
    np.testing.assert_array_equal(series.pooled.difference, series.difference)


@pytest.mark.parametrize(("nodes", "jobs"), [(3, 1), (8, 1), (8, 2)])
def test_an_error_and_its_degrees_of_freedom_are_of_the_same_variances(nodes: int, jobs: int) -> None:
    """Of few nodes the share of the center is a third of it."""
    series = _series(nodes=nodes, jobs=jobs)
    for estimates in (series, series.pooled):
        assert estimates.of_jobs.min() > 0
        components = sum(variance for variance, _ in estimates._variances)
        np.testing.assert_allclose(components, estimates.error**2)
        np.testing.assert_allclose(components, estimates.of_runs + estimates.of_jobs + estimates.of_reference)


@pytest.mark.slow
def test_error_falls_with_runs_and_with_nodes() -> None:
    assert np.median(_series(pair_runs=8).error) < np.median(_series(pair_runs=2).error)
    few, many = (_series(nodes=nodes) for nodes in (4, 16))
    assert np.median(many.of_reference) < np.median(few.of_reference)


@pytest.mark.parametrize("jobs", [1, 2])
def test_one_run_shows_no_equivalence_and_still_finds(jobs: int) -> None:
    """With two jobs of a run each the runs of a node are two, and the runs of a job still one."""
    series = _series("node001: core 17 +20%", runs=1, pair_runs=1, passes=3, jobs=jobs)
    assert np.isinf(series.half_90).all()
    assert not series.inside.any()
    rows = series.matrix.jobs(1)
    assert series.outside[rows.start : rows.stop].any(axis=1).all()
    assert not np.delete(series.outside, list(rows), axis=0).any()


def test_simultaneous_intervals_share_the_level_over_a_familys_parts_and_all_jobs() -> None:
    series = _series()
    tail = job_tail(series.terms, 0.05, 8)
    for _, columns in series.terms.by_component_type:
        assert 2 * 8 * tail[columns].sum() == pytest.approx(0.05)
    assert np.all(series.half_of_job > series.half_90)
    assert 2 * 300 * campaign_tail(0.01, 300) == pytest.approx(0.01)


def test_the_levels_of_a_campaign_are_shared_by_all_of_its_jobs_and_tests() -> None:
    series = _series(jobs=2)
    of_family = series.terms.indices("core-near")
    assert series.tail[of_family[0]] == pytest.approx(0.05 / (2 * 16 * len(of_family)))
    assert series.campaign_tail == pytest.approx(0.01 / (2 * 8 * len(series.terms.terms)))


def test_nodes_outside_a_tolerance_are_no_peers() -> None:
    healthy, slow = _series(), _series("node001: global +20%", "node002: global +20%")
    others = [0, 3, 4, 5, 6, 7]
    np.testing.assert_allclose(slow.difference[others], healthy.difference[others], atol=0.01)
    assert slow.reference.count[0] == 5


@pytest.mark.parametrize("job", [0, 1])
def test_a_node_that_is_outside_in_any_job_is_no_peer(job: int) -> None:
    values = _values(16)
    values[2 * 3 + job] += 3 * tolerance()
    assert of_values(values, [2] * 8).reference.count.tolist() == [6.0] * 3 + [7.0] + [6.0] * 4


def test_nodes_remain_peers_where_too_few_would_be_left() -> None:
    """Six of ten are outside of each other's tolerances in different components: six tenths of the nodes stay."""
    values = _values(10)
    for node in range(6):
        values[node, :, int(matrix().terms.indices("core-near")[node])] += (4 + node) * tolerance()[-1]
    assert of_values(values).reference.count[9] == 5


@pytest.mark.parametrize(("nodes", "nature"), [(5, 0.4), (8, 0.4), (20, 0.4), (8, 0.1)])
def test_peers_that_differ_by_nature_accuse_nobody(nodes: int, nature: float) -> None:
    """Nodes are drawn, in tolerances, about what their peers are drawn from: those truly within their tolerance of that
    are not outside of the few that are there, though runs differ by nothing to speak of."""
    columns = matrix().terms.indices("ccd")
    rng = np.random.default_rng([nodes, int(10 * nature)])
    accused = []
    for _ in range(40):
        truth = nature * tolerance() * rng.standard_normal((nodes, len(tolerance())))
        values = truth[:, None] + 1e-3 * tolerance() * rng.standard_normal((nodes, 6, len(tolerance())))
        series = of_values(values)
        accused.append((series.outside & (np.abs(truth) <= tolerance()))[:, columns].any())
    assert np.mean(accused) <= 0.05
    assert bool(series.outside.any()) or nature < 0.4 or nodes < 20  # it is no general pardon


def test_difference_is_that_which_was_planted() -> None:
    series = _series("node001: global +5%")
    classes = series.terms.indices("class")
    np.testing.assert_allclose(series.difference[1, classes], 0.05, atol=0.015)


@pytest.mark.parametrize(("off", "referenced"), [(1, True), (2, True), (3, True), (4, False), (5, False)])
def test_it_is_known_what_is_right_where_two_thirds_agree(off: int, referenced: bool) -> None:
    values = _values(9)
    component = int(matrix().terms.indices("core-near")[5])
    values[:off, :, component] += 3 * tolerance()[component]
    series = of_values(values)
    assert bool(series.referenced[component]) == referenced
    assert np.delete(series.referenced, component).all()
    assert bool(series.scattered[component]) == (not referenced)
    if not referenced:
        assert np.isinf(series.pooled.half_90[:, component]).all() and np.isinf(series.half_90[:, component]).all()


def test_where_nodes_do_not_agree_only_who_is_beyond_all_of_them_differs() -> None:
    values = _values(9)
    component = int(matrix().terms.indices("core-near")[5])
    values[:, :, component] += np.array([-4, -3, -2, 0, 0, 0, 2, 3, 4])[:, None] * tolerance()[component]
    series = of_values(values)
    assert not series.referenced[component] and not series.outside[:, component].any()
    values[8, :, component] += 200 * tolerance()[component]
    assert of_values(values).outside[:, component].tolist() == [False] * 8 + [True]


def test_noise_scatters_no_component() -> None:
    """Runs vary by a tolerance: so few means agree by chance, and two of them may differ by what runs explain."""
    series = of_values(_values(9, runs=2, spread=1.0))
    assert not series.referenced.all()
    assert not series.scattered.any()


# --- several jobs ---

#: Nodes with one to three jobs, of which some lack runs.
JOBS = [2, 1, 3, 2, 2, 1, 2, 3]


def _uneven(seed: int = 1, began: list[float] | None = None) -> Deviations:
    values = _values(sum(JOBS), seed=seed)
    rng = np.random.default_rng(seed + 100)
    values += 0.1 * tolerance() * rng.standard_normal((sum(JOBS), 1, 1))  # what a job shares
    values[3, 2] = values[6, 1] = values[8, 0] = np.nan
    values[4, :, 7] = np.nan
    return of_values(values, JOBS, began or ())


def _rows_of(node: int) -> range:
    first = sum(JOBS[:node])
    return range(first, first + JOBS[node])


def test_pooled_estimates_are_those_of_a_hand_that_adds_up_jobs() -> None:
    """Node by node and component by component, from the values and the two spreads."""
    series = _uneven()
    values, run, job = series.matrix.values, series.spreads.run, series.spreads.job
    assert job.pooled.any()
    pooled = series.pooled
    for node in range(len(JOBS)):
        for component in (0, 7, 30, len(tolerance()) - 1):
            of_jobs = [row[np.isfinite(row)] for row in values[list(_rows_of(node)), :, component]]
            of_jobs = [row for row in of_jobs if len(row)]
            count = len(of_jobs)
            mean = np.mean([row.mean() for row in of_jobs])
            assert pooled.means[node, component] == pytest.approx(mean)
            assert pooled.difference[node, component] == pytest.approx(mean - series.reference.center[node, component])
            assert pooled.runs[node, component] == sum(map(len, of_jobs)) and pooled.jobs[node, component] == count
            by_runs = sum(run.pooled[component] * run.ratio[node, component] / len(row) for row in of_jobs) / count**2
            assert pooled.of_runs[node, component] == pytest.approx(by_runs)


def test_every_job_by_itself_is_an_estimate_of_its_runs() -> None:
    series = _uneven()
    run, owner, by_job = series.spreads.run, series.matrix.owner, series
    runs = np.isfinite(series.matrix.values).sum(axis=1)
    assert runs.min() == 0 and set(np.unique(runs)) == {0, 2, 3}
    np.testing.assert_array_equal(by_job.runs, runs)
    measured = runs > 0
    np.testing.assert_allclose(
        by_job.of_runs[measured], (run.pooled * run.ratio[owner] / np.maximum(runs, 1))[measured]
    )
    assert np.isnan(by_job.difference[~measured]).all()


def test_jobs_of_a_node_count_alike_whatever_number_of_runs_they_have() -> None:
    values = _values(16, runs=6, spread=1e-4)
    values[0, 1:] = np.nan
    values[0] += 0.4 * tolerance()
    series = of_values(values, [2] * 8)
    np.testing.assert_allclose(series.pooled.means[0], 0.2 * tolerance(), atol=1e-3 * tolerance().max())


def test_some_estimates_are_those_of_all() -> None:
    series = _uneven()
    for estimates in (series.pooled, series):
        some = estimates[[5, 2]]
        for name in ("difference", "error", "degrees", "half_90", "runs", "jobs", "owner"):
            np.testing.assert_array_equal(getattr(some, name), getattr(estimates, name)[[5, 2]], err_msg=name)
        assert len(estimates[np.array([], dtype=np.int64)]) == 0
    for node in range(len(JOBS)):
        chunk, row = series.pooled_node(node)
        np.testing.assert_array_equal(chunk.difference[row], series.pooled.difference[node])
        np.testing.assert_array_equal(chunk.half_90[row], series.pooled.half_90[node])
        assert chunk.jobs[row].max() == JOBS[node]


def _moving(times: float, seed: int = 2, jobs: int = 3, runs: int = 2, spread: float = 0.1) -> Deviations:
    """Eight nodes of several jobs, of which the first moves so many times as far between jobs as runs make the mean of
    a job vary."""
    rng = np.random.default_rng(seed)
    values = _values(8 * jobs, runs, spread, seed)
    values[:jobs] += times * spread / np.sqrt(runs) * tolerance() * rng.standard_normal((jobs, 1, 1))
    return of_values(values, [jobs] * 8)


def test_that_a_node_moves_more_counts_where_all_of_its_jobs_are_meant() -> None:
    """Each job by itself is judged like any other: it is no excuse of a job that others contradict it."""
    series = _moving(8.0)
    ratio, variance = series.spreads.job.ratio[0], series.spreads.job.variance
    assert np.median(ratio) > 2
    whole = series.mean_of([0, 1, 2])
    np.testing.assert_array_equal(whole.of_jobs[0], series.pooled.of_jobs[0])
    more = (ratio - 1) * (series.spreads.run.pooled / 2 + variance)
    np.testing.assert_allclose(whole.of_jobs[0], (variance + more) / 3)
    for rows in ([0], [1], [2], [0, 2]):
        np.testing.assert_allclose(series.mean_of(rows).of_jobs[0], variance / len(rows))
    np.testing.assert_allclose(series.of_jobs, np.broadcast_to(variance, series.of_jobs.shape))


@pytest.mark.parametrize("spread", [0.02, 0.3])
def test_a_node_that_moves_farther_than_others_has_an_interval_that_covers_it(spread: float) -> None:
    """Four times as far as usual jobs, in all of its components at once; also where runs vary more than is assumed of
    jobs."""
    drawn = [_moving(4.0, seed, spread=spread).pooled for seed in range(60)]
    covered = [np.mean(np.abs(pooled.difference[0]) <= pooled.half_90[0]) for pooled in drawn]
    others = [np.mean(np.abs(pooled.difference[1:]) <= pooled.half_90[1:]) for pooled in drawn]
    assert np.mean(covered) >= 0.70
    assert np.mean(others) >= 0.87


def test_a_second_job_narrows_intervals_unless_jobs_vary_more_than_runs() -> None:
    def half(jobs: int, moved: float) -> float:
        values = _values(8 * jobs)
        values += moved * tolerance() * np.random.default_rng(4).standard_normal((8 * jobs, 1, 1))
        return float(np.median(of_values(values, [jobs] * 8).pooled.half_90 / tolerance()))

    assert half(2, 0.0) < half(1, 0.0)
    assert half(3, 0.0) < half(2, 0.0)
    assert half(2, 0.5) > 3 * half(1, 0.5)  # what one job cannot know


@pytest.mark.parametrize("nodes", [3, 4, 8])
@pytest.mark.parametrize("moved", [0.05, 0.2])
def test_intervals_of_two_jobs_cover_the_true_difference(nodes: int, moved: float) -> None:
    """What jobs move by is in all components at once."""
    rng = np.random.default_rng(nodes)
    covered = []
    for seed in range(80):
        values = _values(2 * nodes, 3, 0.05, seed)
        values += moved * tolerance() * rng.standard_normal((2 * nodes, 1, 1))
        pooled = of_values(values, [2] * nodes).pooled
        covered.append(np.mean(np.abs(pooled.difference) <= pooled.half_90))
    assert 0.85 <= np.mean(covered) <= 0.97


# --- days ---


def test_what_all_nodes_moved_by_from_day_to_day_is_in_no_difference_and_no_spread() -> None:
    """A season of a tolerance, of which a node measured on one day alone has its share."""
    jobs = [2] * 7 + [1]
    values = _values(15)
    day = np.array([0, 1] * 7 + [1])
    began = (NOON_S + DAY_S * day).tolist()
    calm, moved = (of_values(values + (size * day)[:, None, None] * tolerance(), jobs, began) for size in (0.0, 1.0))
    np.testing.assert_allclose(moved.pooled.difference, calm.pooled.difference, atol=1e-6 * tolerance().max())
    np.testing.assert_allclose(moved.spreads.job.pooled, calm.spreads.job.pooled, atol=1e-12)
    assert not moved.outside.any() and moved.pooled.inside.all()
    unknown = of_values(values + day[:, None, None] * tolerance(), jobs)  # as if all were of one day
    assert not unknown.pooled.inside.all()


def test_that_the_shift_of_a_day_is_estimated_adds_to_who_lacks_the_other() -> None:
    jobs, day = [2] * 7 + [1], [0, 1] * 7 + [1]
    series = of_values(_values(15), jobs, [NOON_S + DAY_S * on for on in day])
    pooled, usual = series.pooled, series.spreads.run.pooled / 3 + series.spreads.job.variance
    more = (series.spreads.job.ratio - 1) * usual * (pooled.jobs > 1)
    of_rounds = pooled.of_jobs - (series.spreads.job.variance + more) / pooled.jobs
    of_median = np.pi / 2 / 7
    # coverages: 7 nodes have (1/2, 1/2), one (0, 1); on average (7/16, 9/16)
    np.testing.assert_allclose(of_rounds[0], 2 * (1 / 16) ** 2 * of_median * usual, rtol=1e-6)
    np.testing.assert_allclose(of_rounds[7], 2 * (7 / 16) ** 2 * of_median * usual, rtol=1e-6)
    assert (pooled.error[7] ** 2 > pooled.of_runs[7] + series.spreads.job.variance + of_rounds[7]).all()


def test_jobs_of_one_day_are_no_rounds() -> None:
    series = of_values(_values(16), [2] * 8, [NOON_S + LATER_S * (row % 2) for row in range(16)])
    assert series.spreads.rounds.shift.shape[0] == 1 and not series.spreads.rounds.shift.any()


def test_a_fleet_is_judged_the_same_again() -> None:
    campaign = made("node001: core 17 +10%")
    first, again = (msgspec.json.encode(judge(campaign).verdict) for _ in range(2))
    assert first == again


def test_an_estimate_of_some_runs_replaces_means_and_counts() -> None:
    series = of_values(_values(8))
    of_job, count = np.full((1, len(tolerance())), 0.5), np.full((1, len(tolerance())), 2)
    some = msgspec.structs.replace(series[[3]], of_job=of_job, runs_of_job=count)
    np.testing.assert_allclose(some.difference, 0.5 - series.reference.center[[3]])
    np.testing.assert_allclose(some.of_runs, series[[3]].of_runs * 3 / 2)
