"""Intervals of differences: the sum of errors, its degrees of freedom, and what an interval covers."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeprint.stats import intervals

POSITIVE = st.floats(1e-6, 1e3)
DEGREES = st.floats(1.0, 500.0)


def _array(value: float) -> np.ndarray:
    return np.array([value])


@given(POSITIVE, DEGREES)
def test_combined_of_one_part_is_that_part(variance: float, degrees: float) -> None:
    error, of_sum = intervals.combined([(_array(variance), _array(degrees))])
    assert error[0] == pytest.approx(np.sqrt(variance))
    assert of_sum[0] == pytest.approx(degrees)


@given(st.lists(st.tuples(POSITIVE, DEGREES), min_size=2, max_size=4))
def test_combined_has_degrees_between_the_least_and_the_sum(components: list[tuple[float, float]]) -> None:
    _, degrees = intervals.combined([(_array(v), _array(d)) for v, d in components])
    each = [d for _, d in components]
    assert min(each) * (1 - 1e-9) <= degrees[0] <= sum(each) * (1 + 1e-9)


def test_what_reaches_its_tolerance_is_inside_and_not_outside() -> None:
    halves, tolerance = np.array([0.25, 0.25, 0.25, 0.75]), 1.0
    difference = np.array([0.75, -0.75, 0.8, 0.2])
    assert intervals.inside(difference, halves, tolerance).tolist() == [True, True, False, True]
    assert intervals.outside(np.array([1.25, -1.25, 1.3, -1.5]), halves, tolerance).tolist() == [
        False,
        False,
        True,
        False,
    ]


def test_combined_of_two_equal_samples_is_the_pooled_t_test() -> None:
    _, degrees = intervals.combined([(_array(2.0), _array(9.0)), (_array(2.0), _array(9.0))])
    assert degrees[0] == pytest.approx(18.0)


def test_combined_of_nothing_uncertain_is_certain() -> None:
    error, degrees = intervals.combined([(_array(0.0), _array(5.0))])
    assert error[0] == 0
    assert np.isinf(degrees[0])


@pytest.mark.parametrize(("degrees", "width"), [(1.0, 6.3138), (5.0, 2.0150), (np.inf, 1.6449)])
def test_half_width_is_students_quantile(degrees: float, width: float) -> None:
    half = intervals.half_width(_array(1.0), _array(degrees), intervals.EQUIVALENCE)
    assert half[0] == pytest.approx(width, abs=1e-4)


def test_half_width_covers_as_often_as_it_says() -> None:
    rng = np.random.default_rng(1)
    a, b = rng.normal(0, 1.0, (20_000, 4)), rng.normal(0, 3.0, (20_000, 8))
    components = [(x.var(axis=1, ddof=1) / x.shape[1], np.full(len(x), x.shape[1] - 1.0)) for x in (a, b)]
    error, degrees = intervals.combined(components)
    outside = np.abs(a.mean(axis=1) - b.mean(axis=1)) > intervals.half_width(error, degrees, 0.05)
    assert outside.mean() == pytest.approx(0.10, abs=0.01)
