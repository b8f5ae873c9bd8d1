"""Values apart from all others, and two groups: named where they are there, and rarely where they are not."""

from __future__ import annotations

import numpy as np
import pytest

from nodeprint.stats import gaps


def test_values_beyond_a_gap_are_apart() -> None:
    values = np.linspace(0.0, 1.0, 30)
    assert not gaps.apart(values).any()
    values[[3, 4]] = -1.0, -1.1
    values[9] = 3.0
    assert np.flatnonzero(gaps.apart(values)).tolist() == [3, 4, 9]
    assert not gaps.apart(np.ones(30)).any()
    assert not gaps.apart(values[:12]).any()  # too few


@pytest.mark.parametrize("size", [24, 64])
def test_values_of_one_kind_are_rarely_apart_or_two_groups(size: int) -> None:
    rng = np.random.default_rng(4)
    normal = [rng.standard_normal(size) for _ in range(200)]
    assert np.mean([gaps.apart(values).any() for values in normal]) <= 0.02
    others = [*normal, *(rng.random(size) for _ in range(200)), *(rng.exponential(size=size) for _ in range(200))]
    assert np.mean([gaps.two_groups(values) is not None for values in others]) <= 0.02


def test_two_groups_are_found() -> None:
    rng = np.random.default_rng(4)
    values = np.concatenate([rng.normal(0, 0.4, 40), rng.normal(3, 0.1, 24)])
    upper = gaps.two_groups(values)
    assert upper is not None
    assert np.flatnonzero(upper).tolist() == list(range(40, 64))


@pytest.mark.parametrize(("step", "is_apart"), [(0.76, True), (0.74, False)])
@pytest.mark.parametrize("side", [1, -1])
def test_a_gap_is_three_quarters_of_what_the_others_take(step: float, is_apart: bool, side: int) -> None:
    values = side * np.append(np.linspace(0.0, 1.0, 19), 1 + step)
    assert np.flatnonzero(gaps.apart(values)).tolist() == ([19] if is_apart else [])


@pytest.mark.parametrize(("away", "is_apart"), [(4, True), (5, False)])
def test_a_fifth_of_the_values_at_most_is_apart(away: int, is_apart: bool) -> None:
    values = np.append(np.linspace(0.0, 1.0, 20 - away), np.linspace(9.0, 9.1, away))
    assert gaps.apart(values).sum() == (away if is_apart else 0)


@pytest.mark.parametrize(("width", "are_two"), [(5.3, True), (5.1, False)])
def test_two_groups_are_five_widths_apart(width: float, are_two: bool) -> None:
    """Two halves with a standard deviation of one, so many from each other."""
    half = np.tile([-1.0, 1.0], 6) / np.std(np.tile([-1.0, 1.0], 6), ddof=1)
    upper = gaps.two_groups(np.concatenate([half, half + width]))
    assert (None if upper is None else np.flatnonzero(upper).tolist()) == (list(range(12, 24)) if are_two else None)
    assert gaps.two_groups(np.concatenate([half, half[:-1] + 9])) is None  # 23 are too few
