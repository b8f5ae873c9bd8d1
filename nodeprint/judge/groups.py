"""Populations within a fleet: each needs a template of its own, which a common median cannot be."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

#: The smaller kind is at least this share of the nodes and this many; fewer are nodes that share a deviation.
MIN_SHARE, MIN_NODES = 0.2, 3
#: The floor in units of the healthy spread that the null assumes: chips may spread three times as wide as expected.
_NULL_FLOOR = 0.3
_NULL_DRAWS, _NULL_TAIL = 4000, 0.02
#: How often a population is cut again: four at most.
_CUTS = 2


def split(means: Floats, bounds: Floats, floor: Floats, alpha: Floats) -> list[tuple[Ints, int]]:
    """Populations from `means` (node, term): node numbers of each, and the term that separates it (-1: none).

    A cut needs both a difference of means beyond the term's bound and a separation, in standard deviations within the
    kinds (at least `floor`), that unimodal data reach with the term's probability `alpha`. Largest kind first.
    """
    everyone = np.arange(len(means), dtype=np.int64)
    kinds = _split(means, bounds, floor, everyone, alpha, _CUTS)
    return sorted(kinds, key=lambda kind: (-len(kind[0]), int(kind[0][0])))


def _split(
    means: Floats, bounds: Floats, floor: Floats, nodes: Ints, alpha: Floats, depth: int
) -> list[tuple[Ints, int]]:
    n = len(nodes)
    least = max(MIN_NODES, int(np.ceil(MIN_SHARE * n)))
    if depth == 0 or n < 2 * least or means.shape[1] == 0:
        return [(nodes, -1)]
    mine = means[nodes]
    order = np.argsort(mine, axis=0, kind="stable")
    ordered = np.take_along_axis(mine, order, axis=0)
    separation, gap, cut = _best_cut(ordered, least, floor)
    start, excess = _null(min(n, 200), least / n)
    needed = start + excess * np.maximum(np.log(_NULL_TAIL / alpha), 0)
    real = (gap > bounds) & (separation > needed)
    if not real.any():
        return [(nodes, -1)]
    term = int(np.argmax(np.where(real, separation, 0)))
    low, high = np.sort(nodes[order[: cut[term], term]]), np.sort(nodes[order[cut[term] :, term]])
    out: list[tuple[Ints, int]] = []
    for side in (low, high):
        parts = _split(means, bounds, floor, side, alpha, depth - 1)
        out += [(part, term if found < 0 else found) for part, found in parts]
    return out


def _best_cut(ordered: Floats, least: int, floor: Floats) -> tuple[Floats, Floats, Ints]:
    """For each sorted column: the largest separation of two sides, the difference of their means, and the cut."""
    n = len(ordered)
    k = np.arange(least, n - least + 1)[:, None]
    total, squares = np.cumsum(ordered, axis=0), np.cumsum(ordered**2, axis=0)
    s1, q1 = total[k[:, 0] - 1], squares[k[:, 0] - 1]
    s2, q2 = total[-1] - s1, squares[-1] - q1
    gap = s2 / (n - k) - s1 / k
    within = np.maximum(q1 - s1**2 / k + q2 - s2**2 / (n - k), 0) / max(n - 2, 1)
    separation = gap / np.sqrt(within + floor**2)
    best = np.argmax(separation, axis=0)
    columns = np.arange(ordered.shape[1])
    return separation[best, columns], gap[best, columns], k[best, 0].astype(np.int64)


@lru_cache(maxsize=32)
def _null(n: int, share: float) -> tuple[float, float]:
    """The separation that the share _NULL_TAIL of healthy unimodal fleets of `n` exceed, from seeded draws, and by how
    much these do in the mean: an exponential tail.

    Half of the draws are normal and half uniform, the flattest that one kind can look.
    """
    rng = np.random.default_rng(20240601)
    draws = _NULL_DRAWS
    sample = np.concatenate([rng.standard_normal((n, draws // 2)), rng.random((n, draws // 2)) * 3.46], axis=1)
    least = max(MIN_NODES, int(np.ceil(share * n)))
    separation, _, _ = _best_cut(np.sort(sample, axis=0), least, np.full(draws, _NULL_FLOOR))
    tail = np.sort(separation)[-int(draws * _NULL_TAIL) :]
    return float(tail[0]), float(np.mean(tail - tail[0]))
