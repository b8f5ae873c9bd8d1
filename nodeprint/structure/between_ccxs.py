"""Detect sockets and quadrants from the median latencies between CCXs."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from nodeprint.stats.robust import robust_sd
from nodeprint.structure.linkage import groups_at, linkage_tree
from nodeprint.structure.matrix_arithmetic import (
    Labels,
    Matrix,
    SortedCells,
    additive_residual,
    numbered,
    profile_distances,
    sizes,
)

# docs/validation.md lists the machines on which these thresholds were chosen. Gaps are differences of logarithms.
MOST_SOCKETS = 8
SOCKET_CONTRAST = 0.13  # least share of the latency across the link that the link adds
SOCKETS_CONTRAST = 0.2  # the same for more than two sockets: quadrants of one socket reach 0.16
SOCKET_AUC = 0.97  # least probability that a residual across groups exceeds one inside
RESIDUAL_NOISE = 6.0  # residuals inside groups are lower than those across by this many standard errors
BLOCK_NOISE = 3.0  # residuals between the same two groups may have an SD of this many standard errors, or
BLOCK_STEP = 8.0  # the step from inside to across is this many of those SDs: 10-300 on EPYC, 5 along a 7R13's path
PROFILE_RATIO = 1.8  # least ratio between consecutive merges of row profiles
PROFILE_NOISE = 0.01  # rows are compared up to this relative standard error of a median between CCXs


def sockets_of(blocks: Matrix) -> Labels | None:
    """Detect sockets from (g, g) medians between CCXs or cores, g at least 4; None if no link adds a clear cost.

    Row offsets are removed first, because the socket that does not own the line is slower as a whole. Candidates are
    cuts of the average-linkage tree. The result is the cut with the fewest groups for which nearly every residual
    across groups exceeds those inside.
    """
    residual, _ = additive_residual(blocks)
    upper = np.triu(~np.isnan(blocks), 1)
    if not upper.any():
        return None
    tree = _tree_of(residual)
    counts = range(2, min(MOST_SOCKETS, len(blocks) // 2) + 1)
    cuts = (groups_at(tree, k, "maxclust") for k in counts)
    return next((labels for labels in cuts if _link_costs(blocks, residual, upper, labels)), None)


def _tree_of(residual: Matrix) -> Matrix:
    """Average-linkage tree of additive-fit residuals, which are negative inside groups."""
    return linkage_tree(residual - residual.min(), "average")


def _link_costs(blocks: Matrix, residual: Matrix, upper: npt.NDArray[np.bool_], labels: Labels) -> bool:
    """Whether pairs across groups cost more than pairs inside, independent of row offsets."""
    count = sizes(labels)
    if len(count) < 2 or count.min() * 2 < count.max():
        return False
    across = labels[:, None] != labels[None, :]
    crossing, inside = residual[upper & across], residual[upper & ~across]
    if not len(crossing) or not len(inside):
        return False
    cost = (np.median(crossing) - np.median(inside)) / np.median(blocks[upper & across])
    least = SOCKET_CONTRAST if len(count) == 2 else SOCKETS_CONTRAST
    return bool(cost >= least and _auc(crossing, inside) >= SOCKET_AUC)


def _auc(high: npt.NDArray[np.float64], low: npt.NDArray[np.float64]) -> float:
    """Probability that a value of `high` exceeds a value of `low`."""
    return float(np.searchsorted(np.sort(low), high).mean() / len(low))


def cell_noise(cells: SortedCells, ccx: Labels) -> float:
    """Standard error of a median between two CCXs, from two halves of its cells in a checkerboard pattern."""
    order = np.argsort(ccx, kind="stable")
    start = np.cumsum(sizes(ccx)) - sizes(ccx)
    position = np.empty(len(ccx), dtype=np.int64)
    position[order] = np.arange(len(ccx)) - start[ccx[order]]
    white = (position[cells.rows] + position[cells.columns]) % 2 == 0
    difference = cells.only(white).block_medians(ccx) - cells.only(~white).block_medians(ccx)
    difference = difference[np.triu_indices(len(difference), 1)]
    if np.isnan(difference).all():
        return 0.02 * float(np.median(cells.values))
    return robust_sd(difference) / 2


def quadrants(blocks: Matrix, sockets: Labels, noise: float) -> Labels | None:
    """Detect quadrants of the I/O die as groups of CCXs with equal rows or low residuals.

    Returns None if no socket shows any; a socket without quadrants is one group if another socket has some. `noise` is
    the standard error of a block's median; rows that differ by less count as equal.
    """
    if noise > PROFILE_NOISE * float(np.nanmedian(blocks)):
        return None
    floor = 1.5 * np.sqrt(2) * noise
    labels = np.zeros(len(blocks), dtype=np.int64)
    several = False
    for socket in range(int(sockets.max()) + 1):
        rows = np.flatnonzero(sockets == socket)
        inside = blocks[np.ix_(rows, rows)]
        by_rows, by_residuals = profile_cut(profile_distances(blocks, rows), floor), _residual_cut(inside, noise)
        few = by_rows is not None and by_rows.max() < 4
        cuts = (by_rows, by_residuals) if few else (by_residuals, by_rows)
        parts = next((parts for parts in cuts if parts is not None and _are_parts(inside, parts, noise)), None)
        several |= parts is not None
        labels[rows] = labels.max() + 1 + (np.zeros(len(rows), dtype=np.int64) if parts is None else parts)
    return numbered(labels) if several else None


def _are_parts(blocks: Matrix, parts: Labels, noise: float) -> bool:
    """Whether CCXs of one group are nearer to each other than to other groups, with and without row offsets.

    Rows that are similar only by their offsets form no group. Neither do CCXs along a path. There, residuals between
    the same two groups vary by more than noise, and nearly as much as the step from inside to across.
    """
    residual, _ = additive_residual(blocks)
    spread = _spread_between(residual, blocks, parts)
    own, others = inside_and_across(residual, blocks, parts)
    step = float(np.median(others) - np.median(own)) if len(own) and len(others) else 0.0
    if spread > BLOCK_NOISE * noise and step < BLOCK_STEP * spread:
        return False
    for values, least in ((blocks, 0.0), (residual, RESIDUAL_NOISE * noise)):
        inside, across = inside_and_across(values, blocks, parts)
        if not (len(inside) and len(across) and np.median(across) - np.median(inside) > least):
            return False
    return True


def inside_and_across(
    values: Matrix, blocks: Matrix, parts: Labels
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Values of the measured pairs (finite in `blocks`): inside groups, and across."""
    upper, same = np.triu(~np.isnan(blocks), 1), parts[:, None] == parts[None, :]
    return values[upper & same], values[upper & ~same]


def _residual_cut(blocks: Matrix, noise: float) -> Labels | None:
    """Groups of at least two CCXs whose residuals are lower inside than across, for nearly every pair.

    This finds groups if each CCX has its own offset, which makes rows of one group differ.
    """
    if len(blocks) < 6:
        return None
    residual, _ = additive_residual(blocks)
    tree = _tree_of(residual)
    for k in (4, 3, 2):
        labels = groups_at(tree, k, "maxclust")
        count = sizes(labels)
        if len(count) < 2 or count.min() < 2 or count.max() > 2 * count.min():
            continue
        inside, crossing = inside_and_across(residual, blocks, labels)
        if np.median(crossing) - np.median(inside) > RESIDUAL_NOISE * noise and _auc(crossing, inside) >= SOCKET_AUC:
            return labels
    return None


def _spread_between(residual: Matrix, blocks: Matrix, labels: Labels) -> float:
    """Pooled standard deviation of the residuals between the same two groups."""
    upper = np.triu(~np.isnan(blocks), 1)
    rows, columns = np.nonzero(upper)
    low, high = np.minimum(labels[rows], labels[columns]), np.maximum(labels[rows], labels[columns])
    between, values = numbered(low * len(blocks) + high), residual[upper]
    means = np.bincount(between, values) / np.bincount(between)
    degrees = len(values) - len(means)
    return float(np.sqrt(((values - means[between]) ** 2).sum() / degrees)) if degrees > 0 else 0.0


def profile_cut(distances: Matrix, floor: float) -> Labels | None:
    """Cut row profiles by complete linkage into the most groups of similar size; prefers up to four groups."""
    if len(distances) < 4:
        return None
    tree = linkage_tree(distances, "complete")
    heights = np.hypot(tree[:, 2], floor)
    best: Labels | None = None
    for k in np.flatnonzero(heights[1:] > PROFILE_RATIO * heights[:-1]):
        labels = groups_at(tree, (tree[k, 2] + tree[k + 1, 2]) / 2, "distance")
        count = sizes(labels)
        if count.max() <= 2 * count.min() and count.min() > 1:  # a single CCX does not identify its quadrant
            best = labels
            if len(count) <= 4:
                break
    return best
