"""The spread over runs: that of drawn variances, moderated as far as they differ by chance, larger for noisy nodes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special

from nodeprint.stats import intervals, runs
from nodeprint.stats.runs import MOST_DEGREES, PRIOR_DEGREES, independence, job_variance, moderation, run_spread

PARTS = 300
FAMILY = np.zeros(PARTS, dtype=np.int64)


def _values(nodes: int, runs: int, sd: np.ndarray | float = 1.0, seed: int = 1) -> np.ndarray:
    return np.random.default_rng(seed).normal(0.0, 1.0, (nodes, runs, PARTS)) * sd


@pytest.mark.parametrize(("nodes", "runs"), [(2, 2), (8, 2), (8, 6), (64, 2)])
def test_pooled_variance_is_that_which_was_drawn(nodes: int, runs: int) -> None:
    spread = run_spread(_values(nodes, runs, 0.003), FAMILY, np.full(PARTS, 0.01))
    assert np.median(spread.pooled) == pytest.approx(0.003**2, rel=0.2)


def test_parts_of_one_variance_share_it() -> None:
    spread = run_spread(_values(8, 2), FAMILY, np.ones(PARTS))
    assert np.ptp(spread.pooled) < 0.2
    assert spread.degrees.min() > 64  # more than the eight of the nodes


def test_parts_that_share_what_runs_differ_by_count_once() -> None:
    shared = np.random.default_rng(3).normal(0.0, 1.0, (3, 2, 1)) * np.ones(PARTS)
    spread = run_spread(shared, FAMILY, np.ones(PARTS))
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
        half = intervals.half_width(np.sqrt(spread.variance(slice(None)) / 2), spread.degrees, 0.05)
        inside.append(np.mean(np.abs(values.mean(axis=1)) <= half))
    assert 0.87 <= np.mean(inside) <= 0.93


@pytest.mark.parametrize(("true", "nodes"), [(0.0, 3), (1.0, 8), (9.0, 8)])
def test_variance_between_jobs_is_that_of_jobs_however_small_the_assumed_one(true: float, nodes: int) -> None:
    rng = np.random.default_rng(6)
    found = []
    for _ in range(200):
        moved = rng.normal(0.0, np.sqrt(2 * (true**2 + 1.0)), (nodes, 1)) * np.ones(40) + 7.0
        variance, degrees = job_variance([moved], np.ones(40), FAMILY[:40], np.full(40, 0.01))
        assert degrees.max() <= nodes
        found.append(variance[0])
    assert np.mean(found) == pytest.approx((nodes - 1) / nodes * true**2, abs=0.25 * (true**2 + 1))


def test_without_two_nodes_of_two_jobs_the_assumed_variance_is_taken_for_granted() -> None:
    variance, degrees = job_variance([np.full((1, 4), 3.0)], np.ones(4), FAMILY[:4], np.full(4, 0.01))
    assert variance.tolist() == [0.01] * 4
    assert degrees.tolist() == [MOST_DEGREES] * 4


def test_parts_of_different_variances_keep_theirs() -> None:
    sd = np.exp(np.random.default_rng(2).normal(0.0, 1.0, PARTS))
    spread = run_spread(_values(16, 6, sd), FAMILY, np.ones(PARTS))
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
    spread = run_spread(_values(8, 1), FAMILY, np.full(PARTS, 0.5))
    assert np.all(spread.pooled == 0.25)
    assert np.all(spread.degrees == PRIOR_DEGREES)
    assert np.all(spread.ratio == 1)


def test_a_noisier_node_has_its_own_variance() -> None:
    values = _values(8, 3)
    values[3] *= 4
    spread = run_spread(values, FAMILY, np.ones(PARTS))
    assert np.median(spread.variance(3)) == pytest.approx(16.0, rel=0.3)
    assert np.median(np.delete(spread.ratio, 3, axis=0)) < 1.5


def test_a_part_that_comes_and_goes_has_a_wider_interval_on_its_node_alone() -> None:
    values = _values(8, 6)
    values[2, 4, 17] += 20
    ratio = run_spread(values, FAMILY, np.ones(PARTS)).ratio
    assert ratio[2, 17] > 10
    assert np.delete(ratio[:, 17], 2).max() < 3


def test_bursts_of_a_few_do_not_widen_all() -> None:
    values = _values(8, 6)
    values[np.random.default_rng(3).random(values.shape) < 0.005] += 30
    assert np.median(run_spread(values, FAMILY, np.ones(PARTS)).pooled) < 2.5


@given(st.integers(1, 5))
def test_missing_runs_change_nothing_of_others(seed: int) -> None:
    values = _values(6, 3, seed=seed)
    values[0, 1] = np.nan
    spread = run_spread(values, FAMILY, np.ones(PARTS))
    assert np.isfinite(spread.variance(slice(None))).all()
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


@pytest.mark.parametrize(("parts", "degrees"), [(56, 1), (12, 8), (300, 8)])
def test_moderation_of_few_equal_variances_does_not_take_chance_for_a_difference(parts: int, degrees: int) -> None:
    rng = np.random.default_rng(6)
    of_each = np.full(parts, float(degrees))
    weights = [moderation(rng.chisquare(degrees, parts) / degrees, of_each)[1] for _ in range(200)]
    assert np.quantile(weights, 0.05) > 10 * degrees


def test_moderation_of_equal_variances_trusts_all_of_them() -> None:
    variances = np.random.default_rng(5).chisquare(8, 4000) / 8
    _, weight = moderation(variances, np.full(4000, 8.0))
    assert weight > 100
    assert weight <= MOST_DEGREES


def test_parts_count_by_what_they_do_not_share_until_runs_are_many() -> None:
    residual = np.random.default_rng(7).standard_normal((1, 64, PARTS))
    variance = np.ones(PARTS)
    assert independence(residual, variance, np.full(PARTS, 63.0)) > PARTS / 2
    assert independence(residual, variance, np.full(PARTS, 64.0)) == 1.0
    shared = np.repeat(residual[:, :8, :1], PARTS, axis=2)
    assert independence(shared, variance, np.full(PARTS, 7.0)) < 1.5


def test_what_no_node_varies_in_makes_none_noisier() -> None:
    values = _values(8, 3)
    values[:, :, 5] = 1.0
    ratio = run_spread(values, FAMILY, np.ones(PARTS)).ratio
    assert np.isfinite(ratio).all() and (ratio >= 1).all() and ratio[:, 5].max() < 1.5
    own = runs._ratio(np.array([[3.0, 0.0]]), np.array([[2.0, 2.0]]), np.array([0.0, 1.0]), 1.0)
    assert own.tolist() == [[1.0, 1.0]]
