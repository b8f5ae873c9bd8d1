"""What a finding is measured again by leads to what the judge compared."""

from __future__ import annotations

import numpy as np
import pytest

from nodeprint.judge import expected
from nodeprint.judge.deviations import run_means
from nodeprint.judge.reduction import Matrix
from tests.support.fleets import judged


def _matrices() -> list[Matrix]:
    return [series.matrix for series in judged(cells=True).tables if not series.matrix.terms.share]


@pytest.mark.parametrize("node", [0, 5])
def test_measuring_the_places_again_gives_what_was_compared(node: int) -> None:
    packed, looked_at = judged(cells=True).population.fleet.nodes[node], 0
    for matrix in _matrices():
        if matrix.measured.of_pairs:
            continue
        of_node = run_means(matrix.values)[node]
        for number in range(0, len(matrix.terms.terms), 7):
            again = expected.of_term(matrix, number, 0.25, packed)
            assert again is not None and again.center == 0.25
            at = np.flatnonzero(matrix.terms.contrast[number])
            residual = matrix.terms.residual(matrix.level_of([node])[at], np.array(again.usual))
            assert np.sum(np.array(again.weights) * residual) == pytest.approx(of_node[number], abs=2e-4)
            looked_at += 1
    assert looked_at > 20


def test_few_pairs_stand_for_all_of_a_contrast() -> None:
    weights = np.concatenate([np.full(1000, 1e-3), np.full(1000, -1e-3), np.zeros(9), np.full(4, 0.5)])
    few = expected._thinned(weights)
    for side in (1, -1):
        assert few[side * few > 0].sum() == pytest.approx(weights[side * weights > 0].sum())
        assert 150 <= (side * few > 0).sum() <= expected._MOST_PAIRS + 5
    assert not few[2000:2009].any() and np.count_nonzero(few[2009:]) >= 1
    chosen = np.flatnonzero(few[:1000])
    assert np.ptp(np.diff(chosen)) <= 1  # evenly over all of them
    untouched = np.full(expected._MOST_PAIRS, 0.1)
    np.testing.assert_allclose(expected._thinned(untouched), untouched)
