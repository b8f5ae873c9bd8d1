"""Repetitions that disagree: which one is off, by which factor, and what is chance."""

import numpy as np
import pytest

from nodeprint.stats.disagreement import NEARER, Disagreement, agreeing, differing, differs, disagreement, nearer_once

GENERATOR = np.random.default_rng(5)


Matrix = np.ndarray[tuple[int, int], np.dtype[np.float64]]


def repeated(repetitions: int, places: int = 500, sd: float = 0.015) -> Matrix:
    """Hops between 20 and 200 ns that are measured again and again."""
    truth = GENERATOR.uniform(20, 200, places)
    return truth * np.exp(GENERATOR.normal(0, sd, (repetitions, places)))


def found(values: Matrix, noise: float = 0.0) -> Disagreement:
    """What differs, which has to be something."""
    differing = disagreement(values, noise)
    assert differing is not None
    return differing


@pytest.mark.parametrize("repetitions", [2, 3, 6, 18])
@pytest.mark.parametrize("places", [1, 6, 500])
def test_quiet_repetitions_agree(repetitions: int, places: int) -> None:
    assert all(disagreement(repeated(repetitions, places)) is None for _ in range(50))


@pytest.mark.parametrize(("repetitions", "places"), [(3, 1), (3, 500), (6, 1), (6, 500)])
@pytest.mark.parametrize("factor", [0.2, 0.8, 1.2, 4.7])
def test_one_that_is_off_is_named(repetitions: int, places: int, factor: float) -> None:
    values = repeated(repetitions, places)
    values[1] *= factor
    differing = found(values)
    assert differing.odd == (1,)
    assert differing.factor == pytest.approx(max(factor, 1 / factor), rel=0.06)
    assert 1 in (differing.lowest, differing.highest)
    assert differing.is_far == (not 0.75 <= factor <= 1.25)


def test_two_of_six_are_named_the_farthest_first() -> None:
    values = repeated(6)
    values[2] *= 1.3
    values[5] *= 3
    assert found(values).odd == (5, 2)


@pytest.mark.parametrize("factors", [[1, 4.6], [1, 4.6, 1, 4.6], [1, 2.2, 4.6], [1, 1, 1, 4.6, 4.6, 4.6]])
def test_without_a_majority_none_is_off(factors: list[float]) -> None:
    differing = found(repeated(len(factors)) * np.array(factors)[:, None])
    assert differing.odd == ()
    assert differing.factor == pytest.approx(4.6, rel=0.02)


def test_a_part_of_the_places_is_enough_where_they_are_other_places() -> None:
    values = repeated(6)
    values[3, :50] *= 4
    differing = found(values)
    assert differing.odd == (3,) and differing.apart == pytest.approx(0.1)
    assert differing.factor == pytest.approx(4, rel=0.05) and differing.place < 50 and differing.highest == 3


def test_bursts_in_single_places_are_none() -> None:
    values = repeated(6)
    for place in range(20):
        values[GENERATOR.integers(6), place] *= 5
    assert disagreement(values) is None


def test_places_that_change_at_random_differ_though_no_repetition_is_off() -> None:
    values = GENERATOR.choice([26.0, 60.0, 120.0], (6, 28))
    differing = found(values)
    assert differing.is_far and differing.odd == ()
    low, high = values[differing.lowest, differing.place], values[differing.highest, differing.place]
    assert high / low >= 1.5


def test_what_is_within_a_repetition_explains_a_difference() -> None:
    values = np.array([[57.0], [66.0], [61.0]])
    assert disagreement(values) is not None
    assert disagreement(values, noise=0.04) is None
    values[1] *= 3
    assert found(values, noise=0.04).odd == (1,)


def test_what_is_missing_takes_no_part() -> None:
    values = repeated(4)
    values[0] = np.nan
    values[1, ::2] = np.nan
    values[2] *= 2
    assert found(values).odd == (2,)
    values[2] /= 2
    assert disagreement(values) is None
    assert disagreement(np.full((3, 5), np.nan)) is None
    assert disagreement(repeated(1)) is None


def test_the_runs_of_a_figure_that_agree() -> None:
    assert agreeing(np.array([60.0, 61.0, 282.0, np.nan])).tolist() == [True, True, False, False]
    assert agreeing(np.array([26.0, 120.0])).tolist() == [False, False]
    assert agreeing(np.array([60.0, np.nan])).tolist() == [True, False]


def test_what_may_disagree_is_seen_for_all_at_once() -> None:
    values = np.stack([repeated(3), repeated(3), repeated(3)])
    values[1, 2] *= 1.3
    assert differs(values, axis=1).tolist() == [False, True, False]


def test_a_pair_that_once_was_much_nearer_is_named_and_one_that_was_longer_is_not() -> None:
    values = repeated(6)
    values[2, 7] /= 9
    values[4, 11] *= 9
    found = nearer_once(values)
    assert found is not None and (found.odd, found.place, found.lowest) == ((2,), 7, 2)
    assert found.factor == pytest.approx(9, rel=0.1)
    assert nearer_once(np.where(values < 1, np.nan, values)[:2]) is None
    values[2, 7] *= 9 / 2.2
    assert nearer_once(values) is None


def test_nearer_is_from_its_factor_on() -> None:
    values = np.full((3, 4), 100.0)
    for ns, is_found in ((100.0 / NEARER, True), (100.1 / NEARER, False)):
        values[1, 2] = ns
        assert (nearer_once(values) is not None) == is_found


@pytest.mark.parametrize("repetitions", [3, 6, 18])
def test_quiet_repetitions_have_no_pair_that_once_was_nearer(repetitions: int) -> None:
    assert nearer_once(repeated(repetitions, sd=0.1)) is None


def test_groups_differ_as_each_by_itself_does() -> None:
    rng = np.random.default_rng(5)
    sizes = rng.integers(1, 5, 700)
    values = 1 + 0.08 * rng.standard_normal((sizes.sum(), 3))
    values[rng.random(values.shape) < 0.1] = np.nan
    begins = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    each = [bool(differs(values[begin : begin + size])) for begin, size in zip(begins, sizes, strict=True)]
    assert differing(values, begins).tolist() == each
    assert 0 < sum(each) < len(each)
