"""Quadrant by quadrant: what is planted is said, and where the intervals do not allow it nothing is."""

from __future__ import annotations

import numpy as np
import pytest

from nodeprint.report.quadrant_words import Blocks, sentences

PAIRS = tuple((a, b) for a in range(8) for b in range(a, 8))


def blocks(rng: np.random.Generator, runs: int = 6, noise: float = 0.3, slow: float = 0.0) -> Blocks:
    """Two sockets of four quadrants: sockets are 90 ns apart, path 0 to 1 is `slow` ns slower."""
    values = np.array([110.0 if a == b else 112.0 + 90.0 * (a // 4 != b // 4) for a, b in PAIRS])
    values[PAIRS.index((0, 1))] += slow
    noisy = values + rng.normal(0, 2.0, (runs, 1)) + rng.normal(0, noise, (runs, len(PAIRS)))
    return Blocks(PAIRS, tuple((a // 4, b // 4) for a, b in PAIRS), noisy)


def test_slow_path_is_named_and_the_others_are_not() -> None:
    words = " ".join(sentences(blocks(np.random.default_rng(1), slow=8.0)))
    assert "Socket 0, paths between quadrants: the slowest is 0 to 1 (120 ns)." in words
    assert "Socket 1: no path between two quadrants is apart from the others" in words


def test_sockets_are_apart() -> None:
    assert any(
        "between sockets" in text and "slower than" in text for text in sentences(blocks(np.random.default_rng(1)))
    )


@pytest.mark.parametrize("seed", range(5))
def test_healthy_twins_name_no_path(seed: int) -> None:
    words = sentences(blocks(np.random.default_rng(seed)))
    assert not any("slowest" in text or "fastest" in text for text in words)


def test_one_run_says_nothing() -> None:
    assert sentences(blocks(np.random.default_rng(1), runs=1, slow=50.0)) == []
