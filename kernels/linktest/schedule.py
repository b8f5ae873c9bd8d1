"""Which ranks exchange messages when: rounds of disjoint pairs, so that all pairs of a round may run at once.

All pairs of N ranks take N - 1 rounds of N / 2 pairs (the circle method of tournaments); with an odd N one rank rests
in each of N rounds.
"""

from __future__ import annotations

import random

Round = list[tuple[int, int]]


def all_pairs(count: int) -> list[Round]:
    """Rounds of disjoint pairs (a < b) of ranks 0 to `count` - 1 in which every pair is there once."""
    places = count + count % 2  # an odd number has a place that is empty: its partner rests
    rounds = []
    for turn in range(places - 1):
        circle = [0, *((turn + i) % (places - 1) + 1 for i in range(places - 1))]
        pairs = (sorted((circle[i], circle[places - 1 - i])) for i in range(places // 2))
        rounds.append([(a, b) for a, b in pairs if b < count])
    return rounds


def bisection(count: int) -> list[Round]:
    """Rounds of disjoint pairs of the lower with the upper half of the ranks, every such pair once.

    With an odd number the upper half has one rank more, and one of them rests in each round.
    """
    lower, upper = count // 2, count - count // 2
    return [[(i, lower + (i + turn) % upper) for i in range(lower)] for turn in range(upper)]


def mixed(rounds: list[Round], count: int, seed: int) -> list[Round]:
    """The same rounds in a random order of the ranks: a fixed order shows its own pattern in the matrix."""
    order = list(range(count))
    random.Random(seed).shuffle(order)
    return [[tuple(sorted((order[a], order[b]))) for a, b in one] for one in rounds]  # type: ignore[misc]


def both_ways(rounds: list[Round]) -> list[Round]:
    """Each round, and each once more in the other direction."""
    return [way for one in rounds for way in (one, [(b, a) for a, b in one])]


def without(rounds: list[Round], done: set[tuple[int, int]]) -> list[Round]:
    """What is left of the rounds when the pairs in `done` are measured already; empty rounds are left out."""
    left = ([pair for pair in one if pair not in done] for one in rounds)
    return [one for one in left if one]
