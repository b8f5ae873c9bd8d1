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
