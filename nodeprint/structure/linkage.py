"""Group CPUs by average linkage: trees, cuts and separation of groups."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from nodeprint.structure.matrix_arithmetic import Labels, Matrix, SortedCells, numbered, row_quantile, sizes

# docs/validation.md lists the machines on which these thresholds were chosen. Gaps are differences of logarithms.
LINKAGE_GAP = 0.2  # least gap between consecutive merges for a cut
CLEAN_GAP = 0.03  # the same if cells hardly vary,
GAP_SPREAD = 8.0  # and in between, in standard deviations of cells about their block medians
BLOCK_CELLS = 6  # least average number of cells per block for that standard deviation
SEPARATED = 0.85  # least share of grouped CPUs that are nearer to their group than to all others
ALONE = 0.4  # largest share of CPUs without a group: their partners are not in the matrix, or they have none


def linkage_tree(distances: Matrix, linkage_by: str) -> Matrix:
    """SciPy linkage tree of rows from their distances (n, n)."""
    from scipy.cluster.hierarchy import linkage  # noqa: PLC0415 (as above)
    from scipy.spatial.distance import squareform  # noqa: PLC0415 (as above)

    return np.asarray(linkage(squareform(distances, checks=False), linkage_by))


def groups_at(tree: Matrix, at: float, criterion: str) -> Labels:
    """Group of each row after cutting the tree."""
    from scipy.cluster.hierarchy import fcluster  # noqa: PLC0415 (as above)

    return numbered(fcluster(tree, at, criterion))


def separated_groups(matrix: Matrix, cells: SortedCells) -> list[Labels]:
    """Cuts of the average-linkage tree (on logarithms) that separate nearly every row, from fine to coarse.

    The required gap grows with the spread inside the groups. Among cuts of the same level, the one with the widest gap
    is kept.
    """
    n = len(matrix)
    if n < 4:
        return []
    logs = np.log(matrix)
    logs = np.where(np.isnan(logs), np.nanmedian(logs) if np.isfinite(logs).any() else 0.0, logs)
    logs -= logs.min()
    np.fill_diagonal(logs, 0.0)
    tree = linkage_tree(logs, "average")
    heights = tree[:, 2]
    steps = np.diff(heights)
    kept: list[Labels] = []
    for k in sorted(np.flatnonzero(steps > CLEAN_GAP), key=lambda k: -steps[k]):
        labels = groups_at(tree, (heights[k] + heights[k + 1]) / 2, "distance")
        gap = min(max(CLEAN_GAP, GAP_SPREAD * _spread_inside(matrix, cells, labels)), LINKAGE_GAP)
        if steps[k] > gap and _separates(matrix, labels) and all(_distinct(labels, cut) for cut in kept):
            kept.append(labels)
    return sorted(kept, key=lambda labels: -int(labels.max()))


def _spread_inside(matrix: Matrix, cells: SortedCells, labels: Labels) -> float:
    """Relative standard deviation (from quartiles) of cells about the median of their block, a pair of groups.

    Groups that are only neighbors on a mesh have a large one. If blocks have too few cells, it is estimated from row
    differences inside groups.
    """
    groups = int(labels.max()) + 1
    if len(cells.values) < BLOCK_CELLS * groups * (groups + 1) / 2:
        return _spread_of_rows(matrix, labels)
    medians = cells.block_medians(labels)[labels[cells.rows], labels[cells.columns]]
    low, high = np.quantile(np.log(cells.values / medians), [0.25, 0.75])
    return float(high - low) / 1.349


def _spread_of_rows(matrix: Matrix, labels: Labels) -> float:
    """Relative standard deviation of a cell, from differences between neighboring rows of a group.

    At least that of rounding to the values' grid; infinite without such rows.
    """
    order = np.argsort(labels, kind="stable")
    together = labels[order[1:]] == labels[order[:-1]]
    first, second = order[:-1][together], order[1:][together]
    with np.errstate(invalid="ignore"):
        difference = np.log(matrix[first] / matrix[second])
    finite = difference[np.isfinite(difference)]
    if not len(finite):
        return float("inf")
    low, high = np.quantile(finite, [0.25, 0.75])
    values = matrix[np.isfinite(matrix)]
    rounding = _grid(values) / math.sqrt(12) / float(np.median(values))
    return max(float(high - low) / 1.349 / math.sqrt(2), rounding)


def _grid(values: npt.NDArray[np.float64]) -> float:
    """Resolution of the values: 10, 1 or 0.1 ns; 0 if finer."""
    for step in (10.0, 1.0, 0.1):
        if np.allclose(values / step, np.rint(values / step), rtol=0, atol=1e-6):
            return step
    return 0.0


def nearer_in_every_group(cells: SortedCells, labels: Labels, finer: Labels) -> bool:
    """Whether pairs of different finer groups are nearer, by the median, inside every group than between groups."""
    blocks = cells.block_medians(finer)
    coarse_of = group_of(labels, finer)
    for group in range(int(labels.max()) + 1):
        own = coarse_of == group
        inside = blocks[np.ix_(own, own)][np.triu_indices(int(own.sum()), 1)]
        outside = blocks[np.ix_(own, ~own)]
        both = np.isfinite(inside).any() and np.isfinite(outside).any()
        if both and np.nanmedian(inside) >= np.nanmedian(outside):
            return False
    return True


def _separates(matrix: Matrix, labels: Labels) -> bool:
    """Whether nearly every row in a group is nearer to nearly all of its group than to any other row."""
    count = sizes(labels)
    alone = count[labels] == 1
    if count.max() == len(labels) or alone.mean() > ALONE:
        return False
    same = labels[:, None] == labels[None, :]
    near = row_quantile(np.where(same, matrix, np.nan), 0.9)
    far = row_quantile(np.where(same, np.nan, matrix), 0.05)
    return bool((far > near)[~alone].mean() >= SEPARATED)


def _distinct(first: Labels, second: Labels) -> bool:
    """Whether the coarser of two nested partitions merges most of the finer one's groups."""
    fine, coarse = (first, second) if first.max() > second.max() else (second, first)
    if fine.max() == coarse.max():
        return False
    parts = sizes(group_of(coarse, fine))
    return bool((parts > 1).sum() > 0.5 * len(parts))


def are_nested(first: Labels, second: Labels) -> bool:
    """Whether one of two different partitions merges whole groups of the other."""
    fine, coarse = (first, second) if first.max() > second.max() else (second, first)
    return bool(fine.max() > coarse.max() and np.array_equal(group_of(coarse, fine)[fine], coarse))


def group_of(coarse: Labels, fine: Labels) -> Labels:
    """Coarse group of every fine group, shape (fine groups,)."""
    out = np.zeros(int(fine.max()) + 1, dtype=np.int64)
    out[fine] = coarse
    return out
