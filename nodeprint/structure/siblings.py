"""Threads of one core, found as pairs of CPUs that are nearest to each other by far."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from nodeprint.structure.matrix_arithmetic import Labels, Matrix, numbered, sizes

# Thresholds: docs/validation.md says on which machines they were chosen. Gaps are differences of logarithms.
SMT_GAP = 0.25  # a sibling is this much nearer than the next CPU
SMT_COVERAGE = 0.4  # of the CPUs have a sibling: hybrid processors have threads on some cores only
FEW_COVERAGE = 0.1  # with less than the above, down to here, where siblings stand out by far:
FEW_GAP = 0.7  # this much nearer than the next CPU
FEW_SPREAD = 0.35  # and so much alike, from the nearest to the farthest pair
SMT_NS = 18.0  # threads share the first-level cache; slower pairs are cores of a small cache group


def sibling_labels(matrix: Matrix) -> Labels | None:
    """Cores as groups of one or two threads; None where no threads share cores.

    A pair is two CPUs that are each other's nearest by a gap. A CPU with one measured partner takes the partner's
    agreement. Then, among the CPUs left over, mutual nearest that are as near as pairs are.
    """
    n = len(matrix)
    logs = np.where(np.isnan(matrix), np.inf, np.log(matrix))
    two = np.partition(logs, 1, axis=1)[:, :2]
    nearest = np.argmin(logs, axis=1)
    next_best = np.minimum(two[:, 1], two[nearest, 1])
    agreement = np.where(np.isfinite(next_best), next_best, -np.inf) - two[:, 0]
    paired = (nearest[nearest] == np.arange(n)) & (agreement > SMT_GAP)
    if paired.sum() < SMT_COVERAGE * n:  # few cores have threads, or a few pairs are near by chance
        paired &= agreement > FEW_GAP
        of_pairs = two[paired, 0]
        if paired.sum() < max(2, FEW_COVERAGE * n) or of_pairs.max() - of_pairs.min() > FEW_SPREAD:
            return None
    if np.median(two[paired, 0]) > np.log(SMT_NS):
        return None
    limit = float(np.median(next_best[paired])) - SMT_GAP
    paired &= two[:, 0] < limit
    sibling = np.where(paired, nearest, np.arange(n))
    while True:
        unpaired = np.flatnonzero(sibling == np.arange(n))
        if len(unpaired) < 2:
            break
        rest = logs[np.ix_(unpaired, unpaired)]
        nearest = np.argmin(rest, axis=1)
        pairs = (nearest[nearest] == np.arange(len(unpaired))) & (rest.min(1) < limit)
        if not pairs.any():
            break
        sibling[unpaired[pairs]] = unpaired[nearest[pairs]]
    return numbered(np.minimum(np.arange(n), sibling))


def paired_by_elimination(matrix: Matrix, cores: Labels, groups: Labels) -> Labels:
    """Siblings whose own cell is missing or disturbed: two CPUs of one group that have no sibling, and no other
    choice.
    """
    single = np.flatnonzero(sizes(cores)[cores] == 1)
    single = single[(~np.isnan(matrix)).sum(1)[single] > 1]
    inside = groups[:, None] == groups[None, :]
    apart = matrix[inside & (cores[:, None] != cores[None, :])]
    if len(single) < 2 or np.isnan(apart).all():
        return cores
    candidates = inside[np.ix_(single, single)] & ~(matrix[np.ix_(single, single)] < 2 * np.nanmedian(apart))
    np.fill_diagonal(candidates, False)
    out = cores.copy()
    for i, j in _mutual_nearest(matrix, single, cores, groups):
        out[max(i, j)] = out[min(i, j)]
    for i, row in enumerate(candidates):
        partners = np.flatnonzero(row)
        if len(partners) == 1 and candidates[partners[0]].sum() == 1:
            out[single[max(i, partners[0])]] = out[single[min(i, partners[0])]]
    return numbered(out)


def _mutual_nearest(
    matrix: Matrix, single: npt.NDArray[np.int64], cores: Labels, groups: Labels
) -> list[tuple[int, int]]:
    """Of rows that have no partner those that are each other's nearest of them, in one group, and nearer to each other
    than half-way from partners to others."""
    inside = groups[:, None] == groups[None, :]
    own, same = matrix[cores[:, None] == cores[None, :]], matrix[inside & (cores[:, None] != cores[None, :])]
    own = own[np.isfinite(own)]
    if not len(own):
        return []
    limit = float(np.sqrt(np.median(own) * np.nanmedian(same)))
    rest = np.where(inside[np.ix_(single, single)], matrix[np.ix_(single, single)], np.nan)
    rest = np.where(np.isnan(rest), np.inf, rest)
    nearest = rest.argmin(axis=1)
    return [
        (int(single[i]), int(single[j]))
        for i, j in enumerate(nearest.tolist())
        if i < j and nearest[j] == i and rest[i, j] < limit
    ]
