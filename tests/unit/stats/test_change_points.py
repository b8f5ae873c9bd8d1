"""Change points of series whose truth is known."""

from __future__ import annotations

import numpy as np
import pytest

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
