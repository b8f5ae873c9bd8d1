"""Values that go with the order of measuring, and those that do not."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from nodeprint.stats.measuring_order import effect, holm

Floats = npt.NDArray[np.float64]


def drawn(seed: int, count: int) -> tuple[Floats, Floats]:
    """Values with a standard deviation of 1, and moments in any order."""
    rng = np.random.default_rng(seed)
    return rng.standard_normal(count), rng.permutation(np.arange(float(count)))


@pytest.mark.slow
@pytest.mark.parametrize("count", [6, 8, 16, 64])
def test_order_without_effect_is_named_as_often_as_stated(count: int) -> None:
    """At 5% in 400 draws: both tests count, and every cut of a step."""
    p = [found.p for seed in range(400) if (found := effect(*drawn(seed, count)))]
    assert len(p) == 400
    assert np.mean(np.array(p) < 0.05) <= 0.07


@pytest.mark.parametrize("outlier", [0.0, 15.0])
def test_trend_and_step_are_told_apart_with_their_size(outlier: float) -> None:
    """In twenty draws of 16 values, also where one of them is far off; intervals cover as they say."""
    covered = told_apart = 0
    for seed in range(20):
        values, moments = drawn(seed, 16)
        values[seed % 16] += outlier
        for added, step in ((6 * moments / 15, None), (6.0 * (moments >= 7), 7)):
            found = effect(values + added, moments)
            assert found is not None
            if not outlier:
                assert found.p < 0.01
                covered += abs(found.effect - 6) <= found.half_95
                told_apart += (found.step is None) == (step is None)
            elif found.p < 0.01:
                assert found.effect > 0
    assert outlier or (covered >= 36 and told_apart >= 36)


@pytest.mark.parametrize("count", [6, 8, 16])
def test_two_groups_of_nodes_are_no_step(count: int) -> None:
    """By a t test, which takes them for normal, one in ten such fleets had an effect of time at 1%."""
    p = []
    for seed in range(400):
        rng = np.random.default_rng(seed)
        values = 0.2 * rng.standard_normal(count) + 6 * rng.permutation(np.arange(count) % 2)
        found = effect(values, np.arange(float(count)))
        p.append(1.0 if found is None else found.p)
    assert np.mean(np.array(p) < 0.01) <= 0.02


def test_few_values_and_one_moment_show_nothing() -> None:
    values = np.arange(8.0)
    assert effect(values[:5], values[:5]) is None
    assert effect(values, np.zeros(8)) is None
    assert effect(np.zeros(8), values) is None


def test_one_value_that_is_far_off_at_the_end_is_no_step() -> None:
    values, moments = drawn(1, 10)
    values[np.argmax(moments)] += 50
    found = effect(values, moments)
    assert found is not None and found.p > 0.05


def test_holm_rejects_from_the_smallest_until_one_does_not_pass() -> None:
    p = np.array([0.5, 0.002, 0.011, 0.0001])
    assert holm(p, 0.01).tolist() == [False, True, False, True]
    assert holm(np.array([0.001, 0.004]), 0.01).all() and not holm(np.array([]), 0.01).size
