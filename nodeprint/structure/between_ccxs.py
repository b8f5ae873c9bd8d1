"""Sockets and quadrants, found in the medians between CCXs."""

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

# Thresholds: docs/validation.md says on which machines they were chosen. Gaps are differences of logarithms.
MOST_SOCKETS = 8
SOCKET_CONTRAST = 0.13  # how much the link adds, of the latency across it
SOCKETS_CONTRAST = 0.2  # the same of more than two sockets: quadrants of one reach 0.16
SOCKET_AUC = 0.97  # chance that a residual across is above one inside
RESIDUAL_NOISE = 6.0  # standard errors by which residuals inside parts are below those across
BLOCK_NOISE = 3.0  # standard errors by which residuals between the same two parts may differ, or
BLOCK_STEP = 8.0  # this share of how much they are above those inside: 10 to 300 on EPYCs, 5 along the way of a 7R13
PROFILE_RATIO = 1.8  # between consecutive merges of row profiles
PROFILE_NOISE = 0.01  # standard error of a median between CCXs, of the latency, above which rows are not compared


def sockets_of(blocks: Matrix) -> Labels | None:
    """Two or more sockets over (g, g) medians between CCXs or cores, g at least 4; None where the link shows no clear
    cost of its own.

    Offsets of each row are taken out first: the socket that does not own the line is slower as a whole. Two sockets
    are the sides of the leading eigenvector, more are cuts of the average-linkage tree; the fewest count for which
    nearly every residual across is above those inside, for the CCXs or cores at the border, too.
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
    """The average-linkage tree over what an additive fit leaves, which is below zero inside parts."""
    return linkage_tree(residual - residual.min(), "average")


def _link_costs(blocks: Matrix, residual: Matrix, upper: npt.NDArray[np.bool_], labels: Labels) -> bool:
    """Whether a pair across parts costs more than one inside, whatever the offsets of its rows."""
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
    """Chance that one of `high` is above one of `low`."""
    return float(np.searchsorted(np.sort(low), high).mean() / len(low))


def cell_noise(cells: SortedCells, ccx: Labels) -> float:
    """Standard error of a median between two CCXs, from two halves of its cells in the manner of a chessboard."""
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
    """Parts of the I/O die, as groups of CCXs with the same row or low residuals; None where no socket shows any. A
    socket that shows none beside one that does is one part.

    `noise` is the standard error of a block's median: two rows nearer than that explains count as equal.
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
    """Whether CCXs of one part are nearer to each other than to those of others, also without the offset of each
    CCX: rows that are alike by their offsets alone make no part. Nor do CCXs that only lie along a way, where what is
    left between the same two parts differs by more than noise, and not by much less than from that inside.
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
    """The values of pairs that were measured (in `blocks`), those inside parts and those across."""
    upper, same = np.triu(~np.isnan(blocks), 1), parts[:, None] == parts[None, :]
    return values[upper & same], values[upper & ~same]


def _residual_cut(blocks: Matrix, noise: float) -> Labels | None:
    """Parts of two CCXs or more where each CCX has an offset of its own, which makes rows of one part unlike: what an
    additive fit leaves is lower inside them by more than noise, for nearly every pair.
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
    """The standard deviation of residuals about the mean of those between the same two parts."""
    upper = np.triu(~np.isnan(blocks), 1)
    rows, columns = np.nonzero(upper)
    low, high = np.minimum(labels[rows], labels[columns]), np.maximum(labels[rows], labels[columns])
    between, values = numbered(low * len(blocks) + high), residual[upper]
    means = np.bincount(between, values) / np.bincount(between)
    degrees = len(values) - len(means)
    return float(np.sqrt(((values - means[between]) ** 2).sum() / degrees)) if degrees > 0 else 0.0


def profile_cut(distances: Matrix, floor: float) -> Labels | None:
    """The cut of the rows' differences by complete linkage into the most parts, up to four where there is one; parts of
    about equal size.
    """
    if len(distances) < 4:
        return None
    tree = linkage_tree(distances, "complete")
    heights = np.hypot(tree[:, 2], floor)
    best: Labels | None = None
    for k in np.flatnonzero(heights[1:] > PROFILE_RATIO * heights[:-1]):
        labels = groups_at(tree, (tree[k, 2] + tree[k + 1, 2]) / 2, "distance")
        count = sizes(labels)
        if count.max() <= 2 * count.min() and count.min() > 1:  # one CCX alone shows no part that it is in
            best = labels
            if len(count) <= 4:
                break
    return best
