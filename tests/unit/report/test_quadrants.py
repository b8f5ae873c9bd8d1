"""Quadrant by quadrant: what is planted is said, and where the intervals do not allow it nothing is."""

from __future__ import annotations

import re

import numpy as np
import pytest

from nodeprint.data.packed import PackedFleet
from nodeprint.machine.topology.presets import preset
from nodeprint.report.figures.node_levels import levels
from nodeprint.report.quadrant_words import Blocks, sentences
from nodeprint.report.quadrant_words import blocks as quadrant_blocks
from nodeprint.simulate import Plan, Spread, fleet

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


def test_no_path_of_a_row_without_a_gap_is_named() -> None:
    steps = {(0, 1): 0.0, (1, 2): 0.3, (2, 3): 0.6, (0, 3): 0.9, (0, 2): 1.2, (1, 3): 1.5}
    row = [110.0 if a == b else 112.0 + steps.get((a, b), 0.0) + 90.0 * (a // 4 != b // 4) for a, b in PAIRS]
    of_runs = np.tile(np.repeat([-0.3, 0.3], 3)[:, None], (1, len(PAIRS)))  # whose median is 0
    noisy = np.array(row) + np.random.default_rng(1).permuted(of_runs, axis=0)
    words = sentences(Blocks(PAIRS, tuple((a // 4, b // 4) for a, b in PAIRS), noisy))
    assert "Socket 0: no path between two quadrants is apart from the others" in " ".join(words)


def paths_named(fleet: PackedFleet, node: str) -> dict[str, set[str]]:
    """By socket and by `fastest` or `slowest` the paths that a node's page names."""
    measured = quadrant_blocks(levels(fleet, "coherence-cas", node), node)
    assert measured is not None
    out: dict[str, set[str]] = {}
    for text in sentences(measured):
        socket = text.partition(",")[0]
        for word, ends in re.findall(r"the (fastest|slowest) (?:is|are) ([^(]+) \(", text):
            out[f"{socket}, {word}"] = set(re.findall(r"\d+ to \d+", ends))
    return out


@pytest.mark.parametrize("seed", range(1, 6))
def test_simulated_twins_name_no_different_paths(seed: int) -> None:
    twins = fleet(Plan(preset("rome-2x64"), 4, 1, 6, 3, seed, Spread(), (), cells=False))
    named = [paths_named(twins, node.name) for node in twins.nodes]
    assert any(named), "the simulated I/O die has two paths that are slower"
    for place in {place for of_node in named for place in of_node}:
        sets = [of_node[place] for of_node in named if place in of_node]
        assert set.intersection(*sets), f"{place}: {sets}"


def test_one_run_says_nothing() -> None:
    assert sentences(blocks(np.random.default_rng(1), runs=1, slow=50.0)) == []
