"""Medians and robust deviations leave out what was not measured."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from nodeprint.stats.robust import finite_median, median_of_passes, robust_sd, row_medians

NAN = float("nan")


def test_median_of_a_row_is_of_what_was_measured() -> None:
    rows = np.array([[1.0, NAN, 3.0], [4.0, 4.0, 9.0], [NAN, NAN, NAN]])
    np.testing.assert_array_equal(row_medians(rows), [2.0, 4.0, NAN])
    assert np.isnan(row_medians(np.empty((2, 0)))).all()


def test_robust_deviation_of_normal_differences_ignores_outliers_and_gaps() -> None:
    values = np.random.default_rng(1).normal(0, 2, 20_000)
    values[:500], values[500:1000] = 1e6, NAN
    assert robust_sd(values) == pytest.approx(2, rel=0.05)
    assert np.isnan(robust_sd(np.array([NAN])))


def test_the_median_of_what_is_finite() -> None:
    assert finite_median(np.array([[3, NAN], [1, 2]])) == 2
    assert np.isnan(finite_median(np.array([NAN])))


@pytest.mark.parametrize("passes", [1, 2, 3, 4, 5])
def test_the_median_of_passes_is_of_what_was_measured(passes: int) -> None:
    values = np.random.default_rng(passes).random((3, passes, 40))
    values[np.random.default_rng(9).random(values.shape) < 0.4] = NAN
    with warnings.catch_warnings(action="ignore", category=RuntimeWarning):  # what no pass has
        np.testing.assert_array_equal(median_of_passes(values), np.nanmedian(values, axis=1))
