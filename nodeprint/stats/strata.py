"""Separated groups of values on a line, which do not form one distribution."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

#: A group has at least so many values, and this share of them.
_LEAST, _LEAST_SHARE = 2, 0.15
#: This share of the values may be in no group, as a few distant values would widen a group.
_STRAY_SHARE = 0.05
#: The difference of two groups is beyond the tolerance by so many standard errors: they are chosen among many cuts.
BEYOND = 3.0
#: Between two groups, without the tenth of each that is nearest to the other, at least this share of their difference
#: is empty. A normal or uniform distribution has less than a fifth at any cut.
EMPTY, _TRIMMED = 0.35, 0.1


def farthest(values: Floats, tolerance: Floats, variance: Floats) -> tuple[float, Sequence[Ints]]:
    """The largest distance, in tolerances, between the outermost groups in a column of `values` (value, column), and
    those groups. It is 0 without groups if no column has several.

    `tolerance` (column) is the difference that matters, `variance` (column) that of a value by its measurement alone.
    """
    ordered = np.sort(values, axis=0)
    extent = (ordered[-1] - ordered[0]) / tolerance if len(values) else np.zeros(0)
    best: tuple[float, Sequence[Ints]] = 0.0, ()
    enough = len(values) >= 2 * _LEAST
    wide = np.flatnonzero(_emptiest(ordered) > EMPTY * tolerance).tolist() if enough else []
    for column in sorted(wide, key=lambda column: -float(extent[column])):
        if extent[column] <= best[0]:
            break
        groups = of(values[:, column], float(tolerance[column]), float(variance[column]))
        if len(groups) > 1:
            means = [float(values[group, column].mean()) for group in groups]
            apart = (means[-1] - means[0]) / float(tolerance[column])
            best = (apart, groups) if apart > best[0] else best
    return best


def of(values: Floats, tolerance: float, variance: float) -> list[Ints]:
    """The groups of `values` (value), from low to high, each as the numbers of its values; one group if none are
    separated.

    Cuts that reduce the sum of squares most give more pieces than there can be groups. Then neighbors that add least to
    it are joined (Ward 1963), until all remaining groups are separated.
    """
    order = np.argsort(values, kind="stable")
    ordered = values[order]
    least, stray = _sizes(len(values))
    edges = _pieces(ordered, len(values) // least + stray)
    while len(edges) > 2:
        sizes = np.diff(edges)
        groups = [range(edges[k], edges[k + 1]) for k in np.flatnonzero(sizes >= least)]
        if (
            len(groups) > 1
            and sum(map(len, groups)) >= len(values) - stray
            and _apart(ordered, groups, tolerance, variance)
        ):
            middles = np.array([ordered[group.start : group.stop].mean() for group in groups])
            nearest = np.abs(values[:, None] - middles).argmin(axis=1)
            return [np.flatnonzero(nearest == number) for number in range(len(groups))]
        sums = np.add.reduceat(ordered, edges[:-1])
        del edges[int(np.argmin(_added(sizes[:-1], sums[:-1], sizes[1:], sums[1:]))) + 1]
    return [np.arange(len(values))]


def _sizes(count: int) -> tuple[int, int]:
    """The minimum size of a group, and the maximum number of values in no group."""
    return max(_LEAST, int(np.ceil(_LEAST_SHARE * count))), int(_STRAY_SHARE * count)


def _emptiest(ordered: Floats) -> Floats:
    """The widest gap between two groups over all cuts of ordered values (value, column), by column."""
    count = len(ordered)
    least, stray = _sizes(count)
    above = np.arange(least, count - least + 1)
    below = above - 1 - (_TRIMMED * (above - 1)).astype(int) - stray
    beyond = above + (_TRIMMED * (count - above - 1)).astype(int) + stray
    return np.asarray((ordered[np.minimum(beyond, count - 1)] - ordered[np.maximum(below, 0)]).max(axis=0))


def _pieces(ordered: Floats, most: int) -> list[int]:
    """The starts of at most `most` pieces of ordered values, and the end of the last."""
    cuts = {0: _best_cut(ordered)}
    ends = {0: len(ordered)}
    while len(cuts) < most:
        begin = max(cuts, key=lambda begin: cuts[begin][0])
        gain, size = cuts[begin]
        if gain <= 0:
            break
        middle, ends[begin], ends[begin + size] = begin + size, begin + size, ends[begin]
        cuts[begin], cuts[middle] = _best_cut(ordered[begin:middle]), _best_cut(ordered[middle : ends[middle]])
    return [*sorted(cuts), len(ordered)]


def _best_cut(ordered: Floats) -> tuple[float, int]:
    """The reduction of the sum of squares by the best cut, and the number of values below it."""
    if len(ordered) < 2:
        return 0.0, 0
    sizes, sums = np.arange(1, len(ordered)), np.cumsum(ordered)
    gains = _added(sizes, sums[:-1], len(ordered) - sizes, sums[-1] - sums[:-1])
    cut = int(np.argmax(gains))
    return float(gains[cut]), cut + 1


def _added(size: Ints, total: Floats, other_size: Ints, other_total: Floats) -> Floats:
    """The increase of the sum of squares if two pieces are joined (Ward 1963)."""
    shares = size * other_size / (size + other_size)
    return np.asarray(shares * (other_total / other_size - total / size) ** 2)


def _apart(ordered: Floats, groups: Sequence[range], tolerance: float, variance: float) -> bool:
    """Whether all neighbors differ by more than the tolerance and BEYOND standard errors, with a gap between them."""
    of_groups = [ordered[group.start : group.stop] for group in groups]
    squares = sum(float(((group - group.mean()) ** 2).sum()) for group in of_groups)
    within = max(squares / max(sum(map(len, groups)) - len(groups), 1), variance)
    for low, high in pairwise(of_groups):
        difference = high.mean() - low.mean()
        error = np.sqrt(within * (1 / len(low) + 1 / len(high)))
        empty = high[int(_TRIMMED * (len(high) - 1))] - low[len(low) - 1 - int(_TRIMMED * (len(low) - 1))]
        if difference - BEYOND * error <= tolerance or empty < EMPTY * difference:
            return False
    return True
