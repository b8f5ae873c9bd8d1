"""Rules for a line's cluster by its address: the parity of some of its bits, or the address modulo 3."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

import msgspec
import numpy as np
import pandas as pd

from nodeprint_addons.iodie.data import Bools, Floats, Ints

#: A line has 64 bytes: the lowest bit that distinguishes lines.
LINE_BITS = 6
#: More free bits have too many masks, and more clusters too many ways to divide them.
_MOST_BITS, _MOST_CLUSTERS = 12, 8
#: The least share of held-out lines that a rule must predict, and how many there must be.
RIGHT, _FEWEST = 0.9, 12
#: By so many standard deviations the share of right ones must exceed that of guessing.
_BEYOND_CHANCE = 4.0


class Rule(msgspec.Struct, frozen=True):
    """A rule that predicts a line's side of a division: the parity of the address `bits`, or without any the address
    modulo 3.

    `groups` are the clusters on each side. `right` is the share of correct predictions for held-out lines. `lines` is
    their number, or that of pairs of lines in one page if `in_page`.
    """

    bits: tuple[int, ...]
    groups: tuple[tuple[int, ...], ...]
    right: float
    lines: int
    in_page: bool


def find(label: Ints, lines: pd.DataFrame, clusters: int, address_bits: int) -> list[Rule]:
    """Rules by the bits that a program can see, those inside a page: `address_bits` of them.

    Bits above are unknown but part of a memory controller's hash; they are the same for all lines of a page. Rules are
    therefore fitted to the lines themselves, and to whether two lines of one page are on the same side. One half of the
    pages fits a rule, and the other tests it.
    """
    bits = min(address_bits - LINE_BITS, _MOST_BITS)
    sure = label >= 0
    if clusters < 2 or clusters > _MOST_CLUSTERS or bits < 1 or sure.sum() < 2 * _FEWEST:
        return []
    label, lines = label[sure], lines[sure]
    number, place = lines["number"].to_numpy(), lines.astype({"home": str}).groupby(["run", "home"]).ngroup().to_numpy()
    _, page = np.unique(np.stack([place, number >> bits]), axis=1, return_inverse=True)
    page = page.reshape(-1)
    low = number & ((1 << bits) - 1)
    first, second = _in_one_page(page)
    training = np.random.default_rng(1).random(int(page.max()) + 1) < 0.5
    signs = {groups: np.where(np.isin(label, groups[0]), 1.0, -1.0) for groups in _divisions(clusters)}
    alone = _parities(low, signs, training[page], bits, in_page=False)
    if alone:
        return alone
    same = {groups: sign[first] * sign[second] for groups, sign in signs.items()}
    rules = _parities(low[first] ^ low[second], same, training[page[first]], bits, in_page=True)
    return rules + _modulo(label, low, first, second, training[page[first]], clusters)


def _divisions(clusters: int) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
    """All ways to divide clusters in two, the most even first."""
    every = range(clusters)
    for size in range(clusters // 2, 0, -1):
        for side in combinations(every, size):
            if 2 * size < clusters or 0 in side:
                yield side, tuple(c for c in every if c not in side)


def _in_one_page(page: Ints) -> tuple[Ints, Ints]:
    """Each line with the next one of its page: indices of both."""
    order = np.argsort(page, kind="stable")
    next_to = np.flatnonzero(np.diff(page[order]) == 0)
    return order[next_to], order[next_to + 1]


def _parities(
    words: Ints,
    signs: dict[tuple[tuple[int, ...], tuple[int, ...]], Floats],
    training: Bools,
    bits: int,
    *,
    in_page: bool,
) -> list[Rule]:
    """For each division the mask whose parity it follows best in training, where it holds in the rest as well; no rule
    that others imply."""
    if min(training.sum(), (~training).sum()) < _FEWEST:
        return []
    masks = np.arange(1, 1 << bits)
    parity = 1.0 - 2.0 * (np.bitwise_count(words[None, :] & masks[:, None]) % 2)
    out: list[Rule] = []
    span = {0}
    for groups, sign in signs.items():
        fit = np.abs(parity[:, training] @ sign[training])
        best = int(fit.argmax())
        mask = int(masks[best])
        if mask in span:
            continue
        rest = parity[best, ~training] * sign[~training]
        # two lines of one page that are on the same side have the same parity: no other direction is possible
        direction = 1.0 if in_page or parity[best, training] @ sign[training] > 0 else -1.0
        right = float((rest * direction > 0).mean())
        guess = max(float((sign[~training] > 0).mean()), float((sign[~training] < 0).mean()))
        if _holds(right, guess, len(rest)):
            span |= {member ^ mask for member in span}
            address = tuple(LINE_BITS + bit for bit in range(bits) if mask >> bit & 1)
            out.append(Rule(address, groups, right, len(rest), in_page))
    return out


def _modulo(label: Ints, low: Ints, first: Ints, second: Ints, training: Bools, clusters: int) -> list[Rule]:
    """Whether lines of one page are in the same third of the clusters where their numbers are equal modulo 3."""
    held = ~training
    if clusters % 3 or held.sum() < _FEWEST or training.sum() < _FEWEST:
        return []
    equal = (low[first] - low[second]) % 3 == 0
    best: tuple[float, tuple[tuple[int, ...], ...]] = (0.0, ())
    for groups in _thirds(tuple(range(clusters))):
        third = np.array([next(i for i, group in enumerate(groups) if c in group) for c in range(clusters)])[label]
        right = float(((third[first] == third[second]) == equal)[training].mean())
        best = max(best, (right, groups))
    groups = best[1]
    third = np.array([next(i for i, group in enumerate(groups) if c in group) for c in range(clusters)])[label]
    together = third[first] == third[second]
    right = float((together == equal)[held].mean())
    guess = max(float(together[held].mean()), 1 - float(together[held].mean()))
    return [Rule((), groups, right, int(held.sum()), True)] if _holds(right, guess, int(held.sum())) else []


def _thirds(clusters: tuple[int, ...]) -> Iterator[tuple[tuple[int, ...], ...]]:
    """All ways to divide clusters in three of equal size."""
    size = len(clusters) // 3
    for rest in combinations(clusters[1:], size - 1):
        first = (clusters[0], *rest)
        remaining = [c for c in clusters if c not in first]
        for more in combinations(remaining[1:], size - 1):
            second = (remaining[0], *more)
            yield first, second, tuple(c for c in remaining if c not in second)


def _holds(right: float, guess: float, count: int) -> bool:
    beyond = guess + _BEYOND_CHANCE * np.sqrt(guess * (1 - guess) / count)
    return right >= RIGHT and right > min(beyond, 1 - 1e-9) if guess < 1 else False
