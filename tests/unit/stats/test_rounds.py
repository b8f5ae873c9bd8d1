"""What all nodes move by together from one day to another is found if enough of them show it, and is no difference."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeprint.stats.rounds import FEWEST, Rounds, rounds

DAY = 86400.0
COMPONENTS = 3


def _campaign(
    days: list[list[int]], shifts: dict[int, float], seed: int = 1, noise: float = 0.0
) -> tuple[np.ndarray, ...]:
    """Means of jobs (job, component), owners, moments and true values of nodes that are each measured on some
    `days`."""
    rng = np.random.default_rng(seed)
    owner = np.repeat(np.arange(len(days)), [len(of_node) for of_node in days])
    on = np.array([day for of_node in days for day in of_node])
    truth = rng.normal(0.0, 1.0, (len(days), COMPONENTS))
    shift = np.array([shifts.get(day, 0.0) for day in on.tolist()])[:, None]
    means = truth[owner] + shift + noise * rng.normal(0.0, 1.0, (len(on), COMPONENTS))
    return means, owner, on * DAY + 3600.0 * (1 + np.arange(len(on)) % 20), truth


def _of_nodes(means: np.ndarray, owner: np.ndarray, found: Rounds) -> np.ndarray:
    rest = means - found.shift[found.number]
    return np.stack([rest[owner == node].mean(axis=0) for node in range(owner[-1] + 1)])


def test_what_all_nodes_move_by_is_no_difference_between_those_measured_on_one_day_and_on_both() -> None:
    means, owner, began, truth = _campaign([[10, 11]] * 4 + [[10], [11]], {11: 0.05})
    found = rounds(means, owner, began)
    np.testing.assert_allclose(found.shift[1] - found.shift[0], 0.05)
    of_nodes = _of_nodes(means, owner, found)
    np.testing.assert_allclose(of_nodes - of_nodes[0], truth - truth[0], atol=1e-12)


def test_a_node_that_moves_alone_moves_no_round() -> None:
    means, owner, began, _ = _campaign([[10, 11]] * 5, {})
    means[1] += 1.0  # the second job of the first node
    np.testing.assert_allclose(rounds(means, owner, began).shift, 0.0, atol=1e-12)


@pytest.mark.parametrize("nodes", [FEWEST - 1, FEWEST])
def test_fewer_than_three_nodes_show_nothing_that_all_share(nodes: int) -> None:
    means, owner, began, _ = _campaign([[10, 11]] * nodes + [[10]] * 3, {11: 0.05})
    found = rounds(means, owner, began)
    assert bool(found.shift.any()) == (nodes == FEWEST)
    assert bool(found.error.any()) == (nodes == FEWEST)


def test_three_jobs_of_one_node_are_not_three_nodes() -> None:
    means, owner, began, _ = _campaign([[10, 11, 11, 11], [10, 11], [10], [10]], {11: 0.05})
    assert not rounds(means, owner, began).shift.any()


def test_nodes_measured_on_different_days_differ_by_themselves() -> None:
    """Nobody is measured on both days, so that nobody knows which of it is the day."""
    means, owner, began, _ = _campaign([[10]] * 5 + [[11]] * 5, {11: 0.05})
    assert not rounds(means, owner, began).shift.any()


def test_a_round_is_a_day() -> None:
    means, owner, _, _ = _campaign([[10, 10, 11]] * 3, {})
    began = np.tile([10 * DAY, 11 * DAY - 1, 11 * DAY], 3)
    assert rounds(means, owner, began).number.tolist() == [0, 0, 1] * 3


def test_jobs_without_a_time_are_one_round() -> None:
    means, owner, began, _ = _campaign([[10, 10]] * 3, {})
    began[1::2] = np.nan
    assert rounds(means, owner, began).number.tolist() == [1, 0] * 3
    assert rounds(means, owner, np.full(6, np.nan)).number.tolist() == [0] * 6


def test_what_a_job_lacks_takes_no_part() -> None:
    means, owner, began, _ = _campaign([[10, 11]] * 4, {11: 0.05})
    gaps = means.copy()
    gaps[1, 0] = np.nan
    gaps[:, 2] = np.nan
    found = rounds(gaps, owner, began)
    np.testing.assert_allclose((found.shift[1] - found.shift[0])[:2], 0.05)
    assert np.isfinite(found.shift).all()


@pytest.mark.parametrize("days", [2, 6])
def test_rounds_that_share_only_some_of_their_nodes_settle(days: int) -> None:
    """Of so many groups of nodes each is measured on its own day and on the next one."""
    shifts = {10 + day: 0.05 * day for day in range(days + 1)}
    means, owner, began, _ = _campaign([[10 + day, 11 + day] for day in range(days) for _ in range(5)], shifts)
    np.testing.assert_allclose(np.diff(rounds(means, owner, began).shift[:, 0]), 0.05, atol=2e-3)


@given(st.integers(0, 1000), st.permutations(range(3)))
def test_the_order_of_a_nodes_jobs_changes_nothing(seed: int, order: list[int]) -> None:
    means, owner, began, _ = _campaign([[10, 11, 13]] * 4, {11: 0.1, 13: -0.2}, seed, noise=0.01)
    rows = np.concatenate([3 * node + np.array(order) for node in range(4)])
    first, second = rounds(means, owner, began), rounds(means[rows], owner, began[rows])
    np.testing.assert_allclose(first.shift, second.shift, atol=1e-12)
    assert first.number[rows].tolist() == second.number.tolist()


def test_how_well_a_shift_is_known_adds_to_what_not_all_share() -> None:
    """Five nodes are measured on both days and one on the first alone: on average 7 of 12 halves are of the first."""
    means, owner, began, _ = _campaign([[10, 11]] * 5 + [[10]], {11: 0.05}, noise=0.01)
    found = rounds(means, owner, began)
    of_median = np.pi / 2 / 5
    assert found.error.tolist() == pytest.approx([of_median, of_median])
    factor = found.factor(np.arange(11), found.first)
    assert factor[:5].tolist() == pytest.approx([2 * (1 / 12) ** 2 * of_median] * 5)
    assert factor[5] == pytest.approx(2 * (5 / 12) ** 2 * of_median)
    single = found.factor(np.array([0, 1]), np.array([0, 1]))  # the two jobs of the first node, each by itself
    assert single.tolist() == pytest.approx([2 * (5 / 12) ** 2 * of_median, 2 * (7 / 12) ** 2 * of_median])


def test_what_all_share_adds_nothing() -> None:
    means, owner, began, _ = _campaign([[10, 11]] * 5, {11: 0.05}, noise=0.01)
    found = rounds(means, owner, began)
    assert found.error.all()
    assert found.factor(np.arange(10), found.first).tolist() == pytest.approx([0.0] * 5)


@pytest.mark.parametrize("of_round", [0.0, 1.0, 30.0])
def test_shifts_vary_about_the_true_ones_by_their_error(of_round: float) -> None:
    """Of jobs that vary by 1 about their node, between the two days: two errors, and no more for a larger shift."""
    found, errors = [], []
    for seed in range(300):
        means, owner, began, _ = _campaign([[10, 11]] * 8, {11: of_round}, seed, noise=1.0)
        of_it = rounds(means, owner, began)
        found.append(of_it.shift[1] - of_it.shift[0] - of_round)
        errors.append(of_it.error.sum())
    assert 0.6 * np.mean(errors) <= np.var(found) <= 1.1 * np.mean(errors)
