"""Change points of series whose truth is known."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from nodeprint.stats import change_points

Z = change_points.threshold(0.01, 1000, 52)


def noise(count: int, seed: int = 1) -> np.ndarray:
    return np.random.default_rng(seed).normal(0, 1, count)


def starts(values: np.ndarray) -> list[int]:
    return [stretch.start for stretch in change_points.stretches(values, np.ones(len(values)), Z)]


def test_a_level_that_does_not_change_is_one_stretch() -> None:
    assert all(starts(noise(52, seed)) == [0] for seed in range(200))


@pytest.mark.parametrize("week", [1, 2, 20, 50])
def test_a_step_begins_where_it_was_made(week: int) -> None:
    values = noise(52)
    values[week:] += 12
    (first, second) = change_points.stretches(values, np.ones(52), Z)
    assert second.start == week and second.earliest <= week <= second.latest
    assert second.level - first.level == pytest.approx(12, abs=4 * np.hypot(first.error, second.error))


def test_a_repaired_node_has_two_changes() -> None:
    values = noise(52)
    values[20:23] += 15
    assert starts(values) == [0, 20, 23]


def test_two_values_are_a_level() -> None:
    values = noise(52)
    values[20:22] += 15
    assert starts(values) == [0, 20, 22]


def test_the_interval_of_the_date_holds_it_in_95_percent() -> None:
    inside = []
    for seed in range(200):
        values = noise(40, seed)
        values[20:] += 2.2
        found = change_points.stretches(values, np.ones(40), 3.0)
        if len(found) == 2:
            inside.append(found[1].earliest <= 20 <= found[1].latest)
    assert len(inside) > 150 and np.mean(inside) > 0.9


def test_errors_weigh() -> None:
    values = np.array([0.0, 0.0, 10.0, 10.0])
    assert len(change_points.stretches(values, np.array([1.0, 1.0, 1.0, 1.0]), 5.0)) == 2
    assert len(change_points.stretches(values, np.array([1.0, 1.0, 9.0, 9.0]), 5.0)) == 1


def test_a_single_value_that_is_not_seen_again_is_isolated() -> None:
    values = noise(12)
    values[5] += 20
    assert np.flatnonzero(change_points.isolated(values, np.ones(12), Z)).tolist() == [5]
    values[6:] += 20
    assert not change_points.isolated(values, np.ones(12), Z).any()


def test_scatter_is_in_standard_errors_and_passes_over_a_change() -> None:
    values = np.stack([noise(400), 3 * noise(400, 2), np.full(400, np.nan)], axis=1)
    values[200:, 0] += 50
    of_series = change_points.scatter(values, np.ones_like(values))
    assert of_series[:2] == pytest.approx([1, 3], rel=0.2) and np.isnan(of_series[2])


def test_a_lower_alarm_asks_for_more() -> None:
    assert 5 < change_points.threshold(0.01, 1000, 52) < change_points.threshold(0.001, 1000, 52) < 7


def test_the_threshold_shares_its_alarm_among_all_differences_of_all_series() -> None:
    """Half of 52 squared tests in each of a thousand series, on two sides; without a series as of one."""
    assert 2 * stats.norm.sf(Z) * 1000 * 52**2 / 2 == pytest.approx(0.01)
    assert change_points.threshold(0.01, 0, 52) == change_points.threshold(0.01, 1, 52)


@pytest.mark.parametrize(("beyond_middle", "earliest"), [(0.18, 500), (0.21, 501), (-0.18, 500), (-0.21, 500)])
def test_a_date_is_as_uncertain_as_the_likelihood_that_falls_by_half_of_3_84(
    beyond_middle: float, earliest: int
) -> None:
    """A value between two levels that are 10 apart belongs to either, at 20 times what it is from their middle."""
    values = np.concatenate([np.zeros(500), [5 - beyond_middle], np.full(500, 10.0)])
    (first, second) = change_points.stretches(values, np.ones(1001), Z)
    assert first.count + second.count == 1001 and second.count == second.stop - second.start
    assert (second.start, second.earliest) == ((501, earliest) if beyond_middle > 0 else (500, 500))
    assert second.latest == (501 if beyond_middle > -0.2 else 500)


def test_scatter_counts_in_the_errors_of_both_values() -> None:
    values, errors = np.array([[0.0], [5.0], [0.0]]), np.array([[3.0], [4.0], [3.0]])
    assert change_points.scatter(values, errors) == pytest.approx(1 / np.sqrt(0.4549))


def test_a_value_between_its_neighbors_is_not_isolated_and_of_two_values_none_is() -> None:
    assert not change_points.isolated(np.array([0.0, 20.0, 40.0]), np.ones(3), 5.0).any()
    assert change_points.isolated(np.array([0.0, 20.0, 0.0]), np.ones(3), 5.0).tolist() == [False, True, False]
    assert not change_points.isolated(np.array([0.0, 20.0]), np.ones(2), 5.0).any()
    up_and_down = np.array([0.0, 20.0, 0.0, 20.0])  # one of the two is alone
    assert change_points.isolated(up_and_down, np.ones(4), 5.0).tolist() == [False, True, False, False]
    unsure = change_points.isolated(np.array([0.0, 20.0, 0.0]), np.array([1.0, 1.0, 5.0]), 5.0)
    assert not unsure.any()  # 20 is less than five times the error of both, 5.1
