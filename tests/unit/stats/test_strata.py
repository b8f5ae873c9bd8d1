"""Values that lie in several groups are told apart from one wide distribution, however many groups there are."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest

from nodeprint.stats import strata


def _sizes(*levels: float, each: int | tuple[int, ...] = 4, spread: float = 0.1, seed: int = 1) -> list[int]:
    """The sizes of the groups that are found where values lie about `levels`, which are in tolerances."""
    sizes = each if isinstance(each, tuple) else (each,) * len(levels)
    values = np.repeat(levels, sizes) + np.random.default_rng(seed).normal(0, spread, sum(sizes))
    shuffled = np.random.default_rng(seed).permutation(len(values))
    groups = strata.of(values[shuffled], 1.0, spread**2)
    assert sorted(np.concatenate(groups).tolist()) == list(range(len(values)))
    middles = [values[shuffled][group].mean() for group in groups]
    assert middles == sorted(middles)
    return [len(group) for group in groups]


@pytest.mark.parametrize("levels", [(0, 3), (0, 3, 6), (0, 3, 7), (0, 3, 6, 9), (0, 2, 5, 9, 14), (0, 3, 6, 9, 12, 15)])
@pytest.mark.parametrize("each", [3, 4, 20])
def test_any_number_of_equal_groups(levels: tuple[float, ...], each: int) -> None:
    assert _sizes(*levels, each=each) == [each] * len(levels)


@pytest.mark.parametrize("each", [(5, 4, 3), (2, 5, 5), (8, 3, 5), (30, 20, 50), (3, 9, 3)])
def test_groups_of_unequal_sizes(each: tuple[int, ...]) -> None:
    assert _sizes(0, 3, 6, each=each) == list(each)


def test_a_single_value_is_no_group() -> None:
    assert _sizes(0, 10, each=(11, 1)) == [12]


def test_a_value_far_from_two_groups_does_not_hide_them() -> None:
    assert _sizes(0, 3, 30, each=(20, 20, 1)) == [20, 21]


@pytest.mark.parametrize("count", [6, 8, 12, 40])
@pytest.mark.parametrize("kind", ["normal", "uniform", "tailed"])
def test_one_wide_distribution_is_one_group(count: int, kind: str) -> None:
    chance = np.random.default_rng(count)
    draws: dict[str, Callable[[], npt.NDArray[np.float64]]] = {
        "normal": lambda: chance.normal(0, 1, count),
        "uniform": lambda: chance.uniform(-1.7, 1.7, count),
        "tailed": lambda: chance.standard_t(3, count),
    }
    split = sum(max(map(len, strata.of(draws[kind](), 1.0, 0.01))) < 0.6 * count for _ in range(200))
    # of a component whose standard deviation is its tolerance; neither answer calls it uniform, and within tolerances
    # there is none
    assert split <= 30


def test_values_within_the_tolerance_are_one_group() -> None:
    assert _sizes(0, 0.8, each=10, spread=0.01) == [20]


def test_of_several_columns_that_with_the_farthest_groups_counts() -> None:
    values = np.zeros((8, 3))
    values[4:, 1], values[::2, 2] = 3.0, 6.0
    share, groups = strata.farthest(values, np.array([1.0, 1.0, 1.0]), np.full(3, 1e-4))
    assert share == pytest.approx(6.0)
    assert [group.tolist() for group in groups] == [[1, 3, 5, 7], [0, 2, 4, 6]]
    assert strata.farthest(values, np.full(3, 10.0), np.full(3, 1e-4)) == (0.0, ())


def _squares(values: npt.NDArray[np.float64]) -> float:
    return float(((values - values.mean()) ** 2).sum())


@pytest.mark.parametrize("seed", range(3))
def test_a_cut_takes_what_the_sums_of_squares_of_both_sides_lack(seed: int) -> None:
    values = np.sort(np.random.default_rng(seed).normal(0, 1, 9 + seed))
    gains = [_squares(values) - _squares(values[:cut]) - _squares(values[cut:]) for cut in range(1, len(values))]
    gain, below = strata._best_cut(values)
    assert gain == pytest.approx(max(gains)) and below == 1 + int(np.argmax(gains))
    sizes, sums = np.array([[4], [len(values) - 4]]), np.array([[values[:4].sum()], [values[4:].sum()]])
    assert strata._added(sizes[0], sums[0], sizes[1], sums[1]) == pytest.approx(gains[3])
    assert strata._best_cut(values[:1]) == (0.0, 0)


@pytest.mark.parametrize(("count", "least", "stray"), [(4, 2, 0), (13, 2, 0), (14, 3, 0), (20, 3, 1), (100, 15, 5)])
def test_how_many_values_make_a_group_and_how_many_may_be_in_none(count: int, least: int, stray: int) -> None:
    assert strata._sizes(count) == (least, stray)
