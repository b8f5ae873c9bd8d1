"""The spread over runs and over jobs: that of drawn variances, moderated as far as they differ by chance, larger for
noisy nodes; between jobs never less than what is assumed."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special

from nodeprint.stats import intervals, runs
from nodeprint.stats.runs import (
    MOST_DEGREES,
    OUTLIER,
    OWN_DEGREES,
    PRIOR_DEGREES,
    PooledVariance,
    independence,
    job_spread,
    moderation,
    run_spread,
)

COMPONENTS = 300
FAMILY = np.zeros(COMPONENTS, dtype=np.int64)


def _values(nodes: int, runs: int, sd: np.ndarray | float = 1.0, seed: int = 1) -> np.ndarray:
    return np.random.default_rng(seed).normal(0.0, 1.0, (nodes, runs, COMPONENTS)) * sd


@pytest.mark.parametrize(("nodes", "runs"), [(2, 2), (8, 2), (8, 6), (64, 2)])
def test_pooled_variance_is_that_which_was_drawn(nodes: int, runs: int) -> None:
    spread = run_spread(_values(nodes, runs, 0.003), FAMILY, np.full(COMPONENTS, 0.01))
    assert np.median(spread.pooled) == pytest.approx(0.003**2, rel=0.2)


def test_parts_of_one_variance_share_it() -> None:
    spread = run_spread(_values(8, 2), FAMILY, np.ones(COMPONENTS))
    assert np.ptp(spread.pooled) < 0.2
    assert spread.degrees.min() > 64  # more than the eight of the nodes


def test_parts_that_share_what_runs_differ_by_count_once() -> None:
    shared = np.random.default_rng(3).normal(0.0, 1.0, (3, 2, 1)) * np.ones(COMPONENTS)
    spread = run_spread(shared, FAMILY, np.ones(COMPONENTS))
    assert np.all(spread.degrees == pytest.approx(3.0))


@pytest.mark.parametrize("sd", [1 / 6, 6.0])
@pytest.mark.parametrize("shared", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("nodes", [3, 8])
def test_intervals_cover_whatever_was_assumed(nodes: int, shared: float, sd: float) -> None:
    """Of a run's mean from its true value, by Student's t of the degrees of freedom: nine of ten."""
    rng = np.random.default_rng(5)
    inside = []
    for _ in range(400):
        common, each = rng.normal(0.0, sd, (nodes, 2, 1)), rng.normal(0.0, sd, (nodes, 2, 40))
        values = shared**0.5 * common + (1 - shared) ** 0.5 * each
        spread = run_spread(values, FAMILY[:40], np.ones(40))
        half = intervals.half_width(np.sqrt(spread.pooled * spread.ratio / 2), spread.degrees, 0.05)
        inside.append(np.mean(np.abs(values.mean(axis=1)) <= half))
    assert 0.87 <= np.mean(inside) <= 0.93


def test_parts_of_different_variances_keep_theirs() -> None:
    sd = np.exp(np.random.default_rng(2).normal(0.0, 1.0, COMPONENTS))
    spread = run_spread(_values(16, 6, sd), FAMILY, np.ones(COMPONENTS))
    assert np.corrcoef(np.log(spread.pooled), np.log(sd**2))[0, 1] > 0.97
    assert spread.degrees.max() < 200


def test_runs_that_are_missing_count_neither_in_means_nor_in_squares() -> None:
    values = np.array([[1.0, 3.0, np.nan], [5.0, np.nan, np.nan], [np.nan] * 3])[:, :, None]
    residual, squares, spare = runs._within(values)
    assert residual[:, :, 0].tolist() == [[-1.0, 1.0, 0.0], [0.0] * 3, [0.0] * 3]
    assert squares.tolist() == [[2.0], [0.0], [0.0]] and spare.tolist() == [[1.0], [0.0], [0.0]]


@pytest.mark.parametrize("value", [2e-4, 0.1, 1.0, 10.0, 1e6])
def test_the_inverse_of_the_trigamma_function_is_one(value: float) -> None:
    assert special.polygamma(1, runs._inverse_trigamma(value)) == pytest.approx(value, rel=1e-9)


def test_one_run_leaves_what_was_assumed() -> None:
    spread = run_spread(_values(8, 1), FAMILY, np.full(COMPONENTS, 0.5))
    assert np.all(spread.pooled == 0.25)
    assert np.all(spread.degrees == PRIOR_DEGREES)
    assert np.all(spread.ratio == 1)


def test_a_noisier_node_has_its_own_variance() -> None:
    values = _values(8, 3)
    values[3] *= 4
    spread = run_spread(values, FAMILY, np.ones(COMPONENTS))
    assert np.median((spread.pooled * spread.ratio)[3]) == pytest.approx(16.0, rel=0.3)
    assert np.median(np.delete(spread.ratio, 3, axis=0)) < 1.5


def test_a_part_that_comes_and_goes_has_a_wider_interval_on_its_node_alone() -> None:
    values = _values(8, 6)
    values[2, 4, 17] += 20
    ratio = run_spread(values, FAMILY, np.ones(COMPONENTS)).ratio
    assert ratio[2, 17] > 10
    assert np.delete(ratio[:, 17], 2).max() < 3


def test_bursts_of_a_few_do_not_widen_all() -> None:
    values = _values(8, 6)
    values[np.random.default_rng(3).random(values.shape) < 0.005] += 30
    assert np.median(run_spread(values, FAMILY, np.ones(COMPONENTS)).pooled) < 2.5


@given(st.integers(1, 5))
def test_missing_runs_change_nothing_of_others(seed: int) -> None:
    values = _values(6, 3, seed=seed)
    values[0, 1] = np.nan
    spread = run_spread(values, FAMILY, np.ones(COMPONENTS))
    assert np.isfinite(spread.pooled * spread.ratio).all()
    assert np.median(spread.pooled) == pytest.approx(1.0, rel=0.3)


def test_moderation_recovers_the_prior_that_variances_were_drawn_from() -> None:
    rng = np.random.default_rng(4)
    weight, degrees = 6.0, 8
    true = weight / rng.chisquare(weight, 20_000)
    common, moderated = moderation(true * rng.chisquare(degrees, 20_000) / degrees, np.full(20_000, float(degrees)))
    assert moderated == pytest.approx(weight, rel=0.15)
    assert common == pytest.approx(1.0, rel=0.1)


def test_variances_differ_by_what_is_two_standard_errors_beyond_chance() -> None:
    """A sample's variance varies by (fourth moment - variance^2) / n, of logarithms polygamma 3 + 2 trigamma^2."""
    rng = np.random.default_rng(8)
    variances = np.exp(rng.normal(0, 1, 40)) * rng.chisquare(4, 40) / 4
    common, weight = moderation(variances, np.full(40, 4.0))
    logs, chance = np.log(variances) - special.digamma(2) + np.log(2), special.polygamma(1, 2)
    error = np.sqrt((special.polygamma(3, 2) + 2 * chance**2) / 40)
    assert special.polygamma(1, weight / 2) == pytest.approx(np.var(logs, ddof=1) - chance - 2 * error)
    assert np.log(common) == pytest.approx(logs.mean() + special.digamma(weight / 2) - np.log(weight / 2))


@pytest.mark.parametrize(("components", "degrees"), [(56, 1), (12, 8), (300, 8)])
def test_moderation_of_few_equal_variances_does_not_take_chance_for_a_difference(components: int, degrees: int) -> None:
    rng = np.random.default_rng(6)
    of_each = np.full(components, float(degrees))
    weights = [moderation(rng.chisquare(degrees, components) / degrees, of_each)[1] for _ in range(200)]
    assert np.quantile(weights, 0.05) > 10 * degrees


def test_moderation_of_equal_variances_trusts_all_of_them() -> None:
    variances = np.random.default_rng(5).chisquare(8, 4000) / 8
    _, weight = moderation(variances, np.full(4000, 8.0))
    assert weight > 100
    assert weight <= MOST_DEGREES


def test_parts_count_by_what_they_do_not_share_until_runs_are_many() -> None:
    residual = np.random.default_rng(7).standard_normal((1, 64, COMPONENTS))
    variance = np.ones(COMPONENTS)
    assert independence(residual, variance, np.full(COMPONENTS, 63.0)) > COMPONENTS / 2
    assert independence(residual, variance, np.full(COMPONENTS, 64.0)) == 1.0
    shared = np.repeat(residual[:, :8, :1], COMPONENTS, axis=2)
    assert independence(shared, variance, np.full(COMPONENTS, 7.0)) < 1.5


def test_what_no_node_varies_in_makes_none_noisier() -> None:
    values = _values(8, 3)
    values[:, :, 5] = 1.0
    ratio = run_spread(values, FAMILY, np.ones(COMPONENTS)).ratio
    assert np.isfinite(ratio).all() and (ratio >= 1).all() and ratio[:, 5].max() < 1.5
    own = runs._ratio(np.array([[3.0, 0.0]]), np.array([[2.0, 2.0]]), np.array([0.0, 1.0]), 1.0)
    assert own.tolist() == [[1.0, 1.0]]


def test_a_node_has_its_own_ratio_from_the_runs_of_all_its_jobs() -> None:
    """A component is noisy in three jobs of two runs: each alone shows little, all together what the node is."""
    values = _values(10, 2)
    values[4:7, :, 17] = np.array([[3.0, -3.0], [-4.0, 4.0], [5.0, -5.0]])
    owner = np.array([0, 1, 2, 3, 4, 4, 4, 5, 6, 7])
    by_node = run_spread(values, FAMILY, np.ones(COMPONENTS), owner)
    by_job = run_spread(values, FAMILY, np.ones(COMPONENTS))
    assert by_node.ratio.shape == (8, COMPONENTS) and by_job.ratio.shape == (10, COMPONENTS)
    np.testing.assert_array_equal(by_node.pooled, by_job.pooled)
    squares = 2 * (3.0**2 + 4.0**2 + 5.0**2) / by_node.pooled[17]
    assert by_node.ratio[4, 17] == pytest.approx((OWN_DEGREES + squares) / (OWN_DEGREES + 3))
    assert by_node.ratio[4, 17] > by_job.ratio[:, 17].max() > 4
    assert np.delete(by_node.ratio[:, 17], 4).max() < 1.5


def test_runs_of_several_jobs_vary_about_their_own_job() -> None:
    values = _values(8, 3)
    apart = values.copy()
    apart[1::2] += 100.0  # the second job of each node is elsewhere
    owner = np.repeat(np.arange(4), 2)
    first, second = (run_spread(each, FAMILY, np.ones(COMPONENTS), owner) for each in (values, apart))
    np.testing.assert_allclose(first.pooled, second.pooled)
    np.testing.assert_allclose(first.ratio, second.ratio)


# --- between jobs ---


def _jobs(
    nodes: int, jobs: int, sd: float, rng: np.random.Generator, shared: float = 1.0, components: int = 40
) -> tuple[np.ndarray, np.ndarray]:
    """Means of jobs (job, component) and their owners: jobs vary by `sd`, of which a share is in all components at
    once, and by runs by 1."""
    of_job = shared**0.5 * rng.normal(0.0, 1.0, (nodes * jobs, 1)) + (1 - shared) ** 0.5 * rng.normal(
        0.0, 1.0, (nodes * jobs, components)
    )
    means = 7.0 + sd * of_job + rng.normal(0.0, 1.0, (nodes * jobs, components))
    return means, np.repeat(np.arange(nodes), jobs)


def _spread(means: np.ndarray, owner: np.ndarray, assumed: float = 0.01) -> PooledVariance:
    components = means.shape[1]
    return job_spread(means, owner, np.ones(components), FAMILY[:components], np.full(components, assumed))


@pytest.mark.parametrize(("true", "nodes", "jobs"), [(3.0, 8, 2), (3.0, 4, 3), (1.0, 16, 2)])
def test_variance_between_jobs_is_that_which_they_show(true: float, nodes: int, jobs: int) -> None:
    rng = np.random.default_rng(6)
    found = [_spread(*_jobs(nodes, jobs, true, rng)).variance[0] for _ in range(300)]
    assert np.mean(found) == pytest.approx(true**2, rel=0.15)


def test_lucky_jobs_narrow_no_interval() -> None:
    """Never less than the assumed variance; it is no excess that runs explain."""
    rng = np.random.default_rng(6)
    spreads = [_spread(means, owner, assumed=4.0) for means, owner in (_jobs(8, 2, 0.0, rng) for _ in range(20))]
    assert {float(spread.pooled.max()) for spread in spreads} == {0.0}
    assert {float(variance) for spread in spreads for variance in spread.variance} == {4.0}
    means, owner = _jobs(8, 2, 0.0, rng)
    means[1::2] = means[::2]
    assert not _spread(means, owner).pooled.any()


def test_without_a_second_job_the_assumed_variance_is_taken_as_known() -> None:
    spread = _spread(*_jobs(8, 1, 3.0, np.random.default_rng(1)))
    assert spread.variance.tolist() == [0.01] * 40 and not spread.pooled.any()
    assert spread.degrees.tolist() == [MOST_DEGREES] * 40
    assert spread.ratio.shape == (8, 40) and (spread.ratio == 1).all()


def test_the_variance_between_jobs_is_one_for_a_family() -> None:
    rng = np.random.default_rng(2)
    means, owner = _jobs(8, 2, 0.0, rng)
    means[:, :20] += 5 * rng.normal(0.0, 1.0, (16, 1))
    spread = job_spread(means, owner, np.ones(40), np.repeat([0, 1], 20), np.full(40, 0.01))
    assert len(np.unique(spread.pooled[:20])) == len(np.unique(spread.pooled[20:])) == 1
    assert spread.pooled[0] > 8 and spread.pooled[20] < 0.5


@pytest.mark.parametrize(("shared", "low", "high"), [(1.0, 7, 12), (0.0, 100, 400)])
def test_what_jobs_share_counts_once(shared: float, low: float, high: float) -> None:
    """Eight pairs of jobs have eight degrees of freedom, however many components show them; of components by themselves
    each."""
    degrees = [_spread(*_jobs(8, 2, 30.0, np.random.default_rng(seed), shared)).degrees[0] for seed in range(20)]
    assert low <= np.median(degrees) <= high


def test_what_comes_and_goes_in_one_part_is_no_variance_of_all() -> None:
    means, owner = _jobs(8, 2, 1.0, np.random.default_rng(3))
    before = _spread(means, owner)
    means[5, 11] += 60.0
    after = _spread(means, owner)
    added = after.pooled[0] - before.pooled[0]
    assert 0 <= added < 2 * OUTLIER * (1 + before.variance[0]) / (8 * 40)  # unlimited it is 60^2 / 2 / (8 * 40)
    assert after.ratio[2, 11] > 20 and np.delete(after.ratio[:, 11], 2).max() < 3


def test_a_node_that_moves_farther_between_jobs_has_its_own_ratio() -> None:
    ratios = []
    for seed in range(20):
        means, owner = _jobs(8, 3, 3.0, np.random.default_rng(seed))
        means[6:9] = 7.0 + 5 * (means[6:9] - 7.0)
        spread = _spread(means, owner)
        ratios.append(np.median(spread.ratio, axis=1))
        assert spread.variance[0] < 5 * 9.0  # the node is not pooled with the others
    median = np.median(ratios, axis=0)
    assert median[2] > 2.5 and np.delete(median, 2).max() < 1.3


def test_jobs_that_lack_a_part_count_in_the_others() -> None:
    rng = np.random.default_rng(4)
    means, owner = _jobs(8, 2, 3.0, rng)
    gaps = means.copy()
    gaps[0, :5] = np.nan
    gaps[:, 7] = np.nan
    spread = _spread(gaps, owner)
    assert all(np.isfinite(each).all() for each in (spread.pooled, spread.degrees, spread.ratio))
    assert spread.pooled[0] == pytest.approx(_spread(means, owner).pooled[0], rel=0.2)


def test_nodes_of_one_and_of_three_jobs_are_pooled_by_what_each_shows() -> None:
    """By hand: the sum of squares about each node's mean, over one less than its jobs."""
    means = np.array([[0.0], [4.0], [5.0], [5.0], [3.0], [7.0]])
    owner = np.array([0, 0, 1, 2, 2, 2])
    spread = job_spread(means, owner, np.array([0.5]), np.zeros(1, dtype=np.int64), np.array([0.25]))
    assert spread.pooled[0] == pytest.approx((8.0 + 8.0) / 3 - 0.75)
    assert spread.variance[0] == pytest.approx((8.0 + 8.0) / 3 - 0.5)
    assert spread.degrees[0] == 3.0
    usual = 0.5 + spread.variance[0]
    assert spread.ratio[:, 0].tolist() == pytest.approx(
        [max((OWN_DEGREES + squares / usual) / (OWN_DEGREES + n), 1.0) for squares, n in ((8, 1), (0, 0), (8, 2))]
    )


@given(st.integers(0, 1000), st.permutations(range(3)))
def test_the_order_of_jobs_changes_nothing(seed: int, order: list[int]) -> None:
    means, owner = _jobs(4, 3, 2.0, np.random.default_rng(seed), shared=0.5)
    rows = np.concatenate([3 * node + np.array(order) for node in range(4)])
    first, second = _spread(means, owner), _spread(means[rows], owner)
    for name in ("pooled", "degrees", "ratio"):
        np.testing.assert_allclose(getattr(first, name), getattr(second, name), rtol=1e-9)


@pytest.mark.parametrize("sd", [0.5, 3.0])
@pytest.mark.parametrize("shared", [0.0, 1.0])
@pytest.mark.parametrize("nodes", [3, 8])
def test_intervals_of_several_jobs_cover_their_true_value(nodes: int, shared: float, sd: float) -> None:
    """Of a node's mean over two jobs, where the assumed variance is a quarter of what runs vary by."""
    rng = np.random.default_rng(9)
    inside = []
    for _ in range(400):
        means, owner = _jobs(nodes, 2, sd, rng, shared)
        spread = _spread(means, owner, assumed=0.25)
        of_nodes = (means[::2] + means[1::2]) / 2
        components: list[tuple[np.ndarray, np.ndarray | float]] = [
            (np.full((nodes, 40), 0.5), 1e4),
            (spread.assumed * spread.ratio / 2, np.inf),
            (spread.pooled * spread.ratio / 2, spread.degrees),
        ]
        half = intervals.half_width(*intervals.combined(components), 0.05)
        inside.append(np.mean(np.abs(of_nodes - 7.0) <= half))
    assert 0.85 <= np.mean(inside) <= 0.97
