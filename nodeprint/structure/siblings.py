"""Detect the threads of a core as pairs of CPUs that are much nearer to each other than to the rest."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from nodeprint.structure.matrix_arithmetic import Labels, Matrix, numbered, sizes

# docs/validation.md lists the machines on which these thresholds were chosen. Gaps are differences of logarithms.
SMT_GAP = 0.25  # least gap between a sibling and the next CPU
SMT_COVERAGE = 0.4  # least share of CPUs with a sibling: only some cores of hybrid processors have two threads
FEW_COVERAGE = 0.1  # a lower share, down to this, counts only if siblings are clearly separated:
FEW_GAP = 0.7  # least gap to the next CPU
FEW_SPREAD = 0.35  # and largest range of the pairs' latencies
SMT_NS = 18.0  # threads share the first-level cache; slower pairs are cores of a small cache group


def sibling_labels(matrix: Matrix) -> Labels | None:
    """Group CPUs into cores of one or two threads; None if no threads share cores.

    Pairs are mutual nearest neighbors with a gap to the next CPU. A CPU with one measured partner takes the partner's
    gap. Remaining CPUs are paired if they are mutually nearest and as near as other pairs.
    """
    n = len(matrix)
    logs = np.where(np.isnan(matrix), np.inf, np.log(matrix))
    two = np.partition(logs, 1, axis=1)[:, :2]
    nearest = np.argmin(logs, axis=1)
    next_best = np.minimum(two[:, 1], two[nearest, 1])
    agreement = np.where(np.isfinite(next_best), next_best, -np.inf) - two[:, 0]
    paired = (nearest[nearest] == np.arange(n)) & (agreement > SMT_GAP)
    if paired.sum() < SMT_COVERAGE * n:  # few cores have two threads, or a few pairs are near by chance
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
    """Pair siblings with a missing or disturbed cell: two unpaired CPUs of a group without an alternative."""
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
    """Unpaired rows of one group that are mutually nearest, below the geometric mean of sibling and other latencies."""
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
