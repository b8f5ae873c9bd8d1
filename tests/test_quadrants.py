"""Quadrant by quadrant: what is planted is said, and where the intervals do not allow it nothing is."""

from __future__ import annotations

import numpy as np
import pytest

from nodeprint.report.quadrants import Blocks, sentences

PAIRS = tuple((a, b) for a in range(8) for b in range(a, 8))


def blocks(rng: np.random.Generator, runs: int = 6, noise: float = 0.3, slow: float = 0.0, far: float = 90.0) -> Blocks:
    """Two sockets of four quadrants: the other half is `slow` ns farther, path 0 to 1 another two such steps."""
    halves = (0, 1, 0, 1) * 2
    values = np.empty((runs, len(PAIRS)))
    for number, (a, b) in enumerate(PAIRS):
        other = a // 4 != b // 4
        base = 110.0 if a == b else 112.0 + far * other + slow * (halves[a] != halves[b]) * (not other)
        values[:, number] = base + (2 * slow if (a, b) == (0, 1) else 0)
    values += rng.normal(0, 2.0, (runs, 1)) + rng.normal(0, noise, values.shape)
    return Blocks(tuple(range(8)), (0,) * 4 + (1,) * 4, halves, PAIRS, values)


def test_a_planted_difference_of_halves_is_said() -> None:
    said = " ".join(sentences(blocks(np.random.default_rng(1), slow=4.0)))
    assert "different halves of the I/O die" in said and "slower than between quadrants of the same half" in said
    assert "the slowest 0 to 1" in said


@pytest.mark.parametrize("runs, noise", [(6, 0.3), (2, 3.0), (3, 6.0)])
def test_nothing_is_said_of_halves_that_are_alike(runs: int, noise: float) -> None:
    """Over many draws a false sentence is as rare as its error allows: 5 % for a table, and half as many again."""
    false = 0
    for seed in range(200):
        said = sentences(blocks(np.random.default_rng(seed), runs, noise))
        false += any("half" in one and "halves" in one for one in said)
    assert false <= 15


def test_one_run_says_nothing() -> None:
    found = blocks(np.random.default_rng(1), runs=1, slow=9.0)
    assert sentences(found) == [] and np.isnan(found.half_width)


def test_the_interval_holds_the_truth_as_often_as_it_says() -> None:
    """All 36 medians of a table at once, in 19 of 20 tables."""
    held = 0
    for seed in range(300):
        found = blocks(np.random.default_rng(seed), runs=4)
        truth = np.array([110.0 if a == b else 202.0 if a // 4 != b // 4 else 112.0 for a, b in PAIRS])
        held += bool((np.abs(found.medians - truth) <= found.half_width).all())
    assert held >= 0.93 * 300
