"""The levels of a latency matrix, found without labels or CPU numbers.

In order: pairs of hardware threads by mutual nearest neighbours; groups by average linkage, kept where nearly every CPU
is nearer to all of its group than to anybody else; then, over the medians between CCXs, sockets by linkage of
the double-centred matrix, as one socket can be slower inside than the link between them, and quadrants
by the likeness of rows. docs/method/structure.md has the reasons and figures.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from nodeprint.stats.robust import robust_sd
from nodeprint.structure.found import LevelName
from nodeprint.structure.matrix_arithmetic import (
    Cells,
    Labels,
    Matrix,
    additive_residual,
    numbered,
    profile_distances,
    row_quantile,
    sizes,
)

# Thresholds: docs/validation.md says on which machines they were chosen. Gaps are
# differences of logarithms.
SMT_GAP = 0.25  # a sibling is this much nearer than the next CPU
SMT_COVERAGE = 0.4  # of the CPUs have a sibling: hybrid processors have threads on some cores only
FEW_COVERAGE = 0.1  # with less than the above, down to here, where siblings stand out by far:
FEW_GAP = 0.7  # this much nearer than the next CPU
FEW_SPREAD = 0.35  # and so much alike, from the nearest to the farthest pair
SMT_NS = 18.0  # threads share the first-level cache; slower pairs are cores of a small cache group
LINKAGE_GAP = 0.2  # between consecutive merges, for a cut to be looked at
SINGLE_NOISE = 0.01  # relative noise of a row of cores without threads, and
SINGLE_STEP = 0.05  # least difference between pairs inside their clusters and across
CLEAN_GAP = 0.03  # the same where cells hardly differ
GAP_SPREAD = 8.0  # and in standard deviations of cells about block medians between the two
BLOCK_CELLS = 6  # on average, for a spread about block medians
SEPARATED = 0.85  # of the CPUs in groups are nearer to their group than to all others
ALONE = 0.4  # of the CPUs may be alone: their partners are not in the matrix, or they have none
ALIKE_ROW = 1.5  # a row's median to its group over the group's own
MOST_SOCKETS = 8
SOCKET_CONTRAST = 0.13  # how much the link adds, of the latency across it
SOCKETS_CONTRAST = 0.2  # the same of more than two sockets: quadrants of one reach 0.16
SOCKET_AUC = 0.97  # chance that a residual across is above one inside
RESIDUAL_NOISE = 6.0  # standard errors by which residuals inside parts are below those across
BLOCK_NOISE = 3.0  # standard errors by which residuals between the same two parts may differ, or
BLOCK_STEP = 8.0  # this share of how much they are above those inside: 10 to 300 on EPYCs, 5 along the way of a 7R13
PROFILE_RATIO = 1.8  # between consecutive merges of row profiles
PROFILE_NOISE = 0.01  # standard error of a median between CCXs, of the latency, above which rows are not compared
# hop inside a last-level cache of few cores; above it, one of two groups may be a whole package
CCX_NS = 28.0
MANY_CCX, MANY_CCX_CORES = 4, 3  # groups and cores of each; then the ratio decides, whatever the clock:
CCX_RATIO = 2.5  # a hop to the nearest other CCX over one inside
MANY_CCX_NS = 40.0  # up to here they are CCXs also where they are as far from each other as packages
MIN_PACKAGE_CORES = 5  # smaller groups are clusters
SURE_PACKAGE_CORES = 6  # groups with fewer are packages only where they are as far apart as packages are
SOCKET_NS = 100.0  # hop between packages
CCX_SOCKET_NS = 150.0  # the same for parts of several CCXs, which may be parts of one package below that
DIE_SOCKET_NS = 180.0  # the same for parts of up to three CCXs and ten cores, which are dies below that


@dataclass(frozen=True)
class Partition:
    """A level by position: `labels` (n,) number the group of every row of the matrix."""

    name: LevelName
    labels: Labels


@dataclass(frozen=True)
class Detected:
    """Levels over CPUs, from fine to coarse; and over cores, with the medians between these, which is what all levels
    above the threads rest on. `threads` (cores) is how many each core has.
    """

    levels: list[Partition]
    of_cores: list[Partition]
    between_cores: Matrix
    threads: Labels


def detect(matrix: Matrix) -> Detected:
    """Levels of a symmetric (n, n) matrix in ns with NaN for missing pairs; none where it is flat.

    Rows that hold (nearly) nothing but their sibling's cell follow their sibling.
    """
    if len(matrix) < 4:
        return Detected([], [], matrix, np.ones(len(matrix), dtype=np.int64))
    siblings = sibling_labels(matrix)
    cores: Labels = np.arange(len(matrix)) if siblings is None else siblings
    between = matrix if siblings is None else _between_cores(matrix, cores)
    threads = sizes(cores)
    of_cores = levels_of_cores(between, threads)
    levels = [Partition(level.name, numbered(level.labels[cores])) for level in of_cores]
    if siblings is not None:
        whole = np.zeros(len(matrix), dtype=np.int64)
        smt = _paired_by_elimination(matrix, siblings, levels[0].labels if levels else whole)
        levels.insert(0, Partition("smt", smt))
    return Detected(levels, of_cores, between, threads)


def _between_cores(matrix: Matrix, cores: Labels) -> Matrix:
    """Lower medians of the cells between every two cores of one or two threads; NaN on the diagonal."""
    first, last = np.zeros((2, int(cores.max()) + 1), dtype=np.int64)
    rows = np.arange(len(cores))
    first[cores[::-1]], last[cores] = rows[::-1], rows
    # a core of one thread is taken twice, which moves no lower median
    cells = np.stack([matrix[np.ix_(a, b)] for a in (first, last) for b in (first, last)])
    cells.sort(axis=0)
    middle = np.maximum((~np.isnan(cells)).sum(axis=0) - 1, 0) // 2
    between: Matrix = np.take_along_axis(cells, middle[None], axis=0)[0]
    np.fill_diagonal(between, np.nan)
    return between


def levels_of_cores(between: Matrix, threads: Labels) -> list[Partition]:
    """Levels above the core, over the medians between cores, from fine to coarse; `threads` (cores) is how many each
    core has."""
    if len(between) < 4:
        return []
    cells = Cells.of(between)
    whole = np.zeros(len(between), dtype=np.int64)
    nested = _nested([_refined(cells, labels) for labels in separated_groups(between, cells)])
    finest: list[Labels] = [np.arange(len(between))]
    nested = [
        labels
        for labels, finer in zip(nested, finest + nested, strict=False)
        if _nearer_in_every_group(cells, labels, finer)
    ]
    if not nested and (clusters := _clusters_of_singles(between, threads)) is not None:
        return [Partition("group", clusters)]
    if not nested and len(between) >= 2 * MIN_PACKAGE_CORES and (sides := sockets_of(between)) is not None:
        nested = [sides]
    if nested and sizes(nested[0]).max() == 2:
        nested[0] = _paired_by_elimination(between, nested[0], nested[1] if nested[1:] else whole)
    levels = [Partition(name, labels) for name, labels in _named(cells, nested, threads.max() > 1)]
    ccx = next((level for level in levels if level.name == "ccx"), None)
    if ccx is not None:
        levels += _above_ccx(cells, ccx.labels, levels)
    return sorted(levels, key=lambda level: -int(level.labels.max()))


def _clusters_of_singles(between: Matrix, threads: Labels) -> Labels | None:
    """Clusters of the cores without a second thread of a hybrid processor, each other core by itself; None where there
    are none.

    Cores of a cluster have the same row, and may be farther from each other than from those of another cluster (50 and
    44 ns on a 12900K), so that no tree over distances shows them.
    """
    single = np.flatnonzero(threads == 1)
    if threads.max() < 2 or len(single) < 4 or np.isnan(between[np.ix_(single, single)]).all():
        return None
    inside = between[np.ix_(single, single)]
    middle = float(np.nanmedian(inside))
    parts = _profile_cut(profile_distances(between, single), 1.5 * np.sqrt(2) * SINGLE_NOISE * middle)
    if parts is None:
        return None
    own, across = _inside_and_across(inside, inside, parts)
    if not len(own) or not len(across) or abs(float(np.median(own) - np.median(across))) < SINGLE_STEP * middle:
        return None
    if not (own.max() < across.min() or own.min() > across.max()):
        return None
    labels = np.arange(len(between))
    labels[single] = len(between) + parts
    return numbered(labels)


def _refined(cells: Cells, labels: Labels) -> Labels:
    """Every row in the group that it is nearest to by the median, which a disturbed or missing cell does not move; a
    row alone joins a group only if it is like its members, and nearer to their latency than to that of the next group:
    a core of another kind is as far from all.
    """
    inside = np.diag(cells.block_medians(labels))
    rows = cells.row_medians(labels)
    rows = np.where(np.isnan(rows), np.inf, rows)
    best = np.argmin(rows, axis=1)
    each = np.arange(len(labels))
    joins = (sizes(labels)[best] > 1) & (rows[each, best] < rows[each, labels])
    joins &= rows[each, best] < ALIKE_ROW * inside[best]
    of_groups = np.where(sizes(labels)[None, :] > 1, rows, np.inf)
    second = np.partition(of_groups, 1, axis=1)[:, 1] if rows.shape[1] > 1 else np.full(len(rows), np.inf)
    with np.errstate(divide="ignore", invalid="ignore"):
        nearest = np.log(rows[each, best])
        like = np.abs(nearest - np.log(inside[best])) < np.log(second) - nearest
    joins &= like | (sizes(labels)[labels] > 1)
    return numbered(np.where(joins, best, labels))


def _nested(refined: list[Labels]) -> list[Labels]:
    """Partitions from fine to coarse, each joining whole groups of the one before: refined one by one they may differ
    in a row, which then goes with the most rows of its finer group. Those without two groups of several rows, which
    separate nothing, are left out.
    """
    out: list[Labels] = []
    for own in refined:
        labels = own
        if out:
            votes = np.zeros((int(out[-1].max()) + 1, int(own.max()) + 1))
            np.add.at(votes, (out[-1], own), 1)
            labels = numbered(votes.argmax(axis=1)[out[-1]])
        if labels.max() < (out[-1].max() if out else len(own) - 1) and (sizes(labels) > 1).sum() > 1:
            out.append(labels)
    return out


def sibling_labels(matrix: Matrix) -> Labels | None:
    """Cores as groups of one or two threads; None where no threads share cores.

    A pair is two CPUs that are each other's nearest by a gap. A CPU with one measured partner takes the partner's
    margin. Then, among the CPUs left over, mutual nearest that are as near as pairs are.
    """
    n = len(matrix)
    logs = np.where(np.isnan(matrix), np.inf, np.log(matrix))
    two = np.partition(logs, 1, axis=1)[:, :2]
    nearest = np.argmin(logs, axis=1)
    next_best = np.minimum(two[:, 1], two[nearest, 1])
    margin = np.where(np.isfinite(next_best), next_best, -np.inf) - two[:, 0]
    paired = (nearest[nearest] == np.arange(n)) & (margin > SMT_GAP)
    if paired.sum() < SMT_COVERAGE * n:  # few cores have threads, or a few pairs are near by chance
        paired &= margin > FEW_GAP
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


def _paired_by_elimination(matrix: Matrix, cores: Labels, groups: Labels) -> Labels:
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


# SciPy's clusters take half a second to import, and pages of labelled machines search no structure.


def _tree(distances: Matrix, linkage_by: str) -> Matrix:
    """The tree of rows that are joined by their distances (n, n), as SciPy's linkage has it."""
    from scipy.cluster.hierarchy import linkage  # noqa: PLC0415 (as above)
    from scipy.spatial.distance import squareform  # noqa: PLC0415 (as above)

    return np.asarray(linkage(squareform(distances, checks=False), linkage_by))


def _cut(tree: Matrix, at: float, criterion: str) -> Labels:
    """The rows of a tree by the group that each is in where it is cut."""
    from scipy.cluster.hierarchy import fcluster  # noqa: PLC0415 (as above)

    return numbered(fcluster(tree, at, criterion))


def separated_groups(matrix: Matrix, cells: Cells) -> list[Labels]:
    """Cuts of the average-linkage tree (on logarithms) that separate nearly every row, from fine to coarse.

    What a cut must bridge depends on the spread inside its groups: much where cells differ anyhow, little where they
    hardly do. Of several cuts of the same level the one with the widest gap is kept.
    """
    n = len(matrix)
    if n < 4:
        return []
    logs = np.log(matrix)
    logs = np.where(np.isnan(logs), np.nanmedian(logs) if np.isfinite(logs).any() else 0.0, logs)
    logs -= logs.min()
    np.fill_diagonal(logs, 0.0)
    tree = _tree(logs, "average")
    heights = tree[:, 2]
    steps = np.diff(heights)
    kept: list[Labels] = []
    for k in sorted(np.flatnonzero(steps > CLEAN_GAP), key=lambda k: -steps[k]):
        labels = _cut(tree, (heights[k] + heights[k + 1]) / 2, "distance")
        gap = min(max(CLEAN_GAP, GAP_SPREAD * _spread_inside(matrix, cells, labels)), LINKAGE_GAP)
        if steps[k] > gap and _separates(matrix, labels) and all(_distinct(labels, cut) for cut in kept):
            kept.append(labels)
    return sorted(kept, key=lambda labels: -int(labels.max()))


def _spread_inside(matrix: Matrix, cells: Cells, labels: Labels) -> float:
    """Relative standard deviation of cells about the median of their block (from quartiles), blocks being all pairs of
    groups: groups that are no more than neighbours on a mesh have a wide one. Where blocks have too few cells, by how
    much the rows of one group differ.
    """
    groups = int(labels.max()) + 1
    if len(cells.values) < BLOCK_CELLS * groups * (groups + 1) / 2:
        return _spread_of_rows(matrix, labels)
    medians = cells.block_medians(labels)[labels[cells.rows], labels[cells.columns]]
    low, high = np.quantile(np.log(cells.values / medians), [0.25, 0.75])
    return float(high - low) / 1.349


def _spread_of_rows(matrix: Matrix, labels: Labels) -> float:
    """Relative standard deviation of a cell, by the differences between the rows of neighbours in a group, at least
    that of the grid that the values are rounded to; infinite without such rows."""
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
    """The step that all values are multiples of: 10, 1 or 0.1 ns; 0 where they are finer."""
    for step in (10.0, 1.0, 0.1):
        if np.allclose(values / step, np.rint(values / step), rtol=0, atol=1e-6):
            return step
    return 0.0


def _nearer_in_every_group(cells: Cells, labels: Labels, finer: Labels) -> bool:
    """Whether in every group the pairs that share none of a finer one are nearer, by the median, than its pairs with
    other groups."""
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
    """Whether the coarser of two nested partitions joins most of the finer one's groups."""
    fine, coarse = (first, second) if first.max() > second.max() else (second, first)
    if fine.max() == coarse.max():
        return False
    parts = sizes(group_of(coarse, fine))
    return bool((parts > 1).sum() > 0.5 * len(parts))


def _nest(first: Labels, second: Labels) -> bool:
    """Whether one of two different partitions joins whole groups of the other."""
    fine, coarse = (first, second) if first.max() > second.max() else (second, first)
    return bool(fine.max() > coarse.max() and np.array_equal(group_of(coarse, fine)[fine], coarse))


def group_of(coarse: Labels, fine: Labels) -> Labels:
    """The coarse group of every fine group, (groups of fine,)."""
    out = np.zeros(int(fine.max()) + 1, dtype=np.int64)
    out[fine] = coarse
    return out


def _named(cells: Cells, nested: list[Labels], threads: bool) -> list[tuple[LevelName, Labels]]:
    """A name for each partition, by its groups' count, cores and latency; `group` where these do not decide."""
    out: list[tuple[LevelName, Labels]] = []
    for index, labels in enumerate(nested):
        blocks = cells.block_medians(labels)
        within = float(np.nanmedian(np.diag(blocks)))
        between_blocks = np.where(np.eye(len(blocks), dtype=bool), np.nan, blocks)
        between = float(np.nanmedian(between_blocks))
        nearest = float(np.nanmedian(np.fmin.reduce(between_blocks, axis=1)))
        cores = sizes(labels)
        many = len(cores) >= MANY_CCX and np.median(cores) >= MANY_CCX_CORES and nearest >= CCX_RATIO * within
        packages = index == len(nested) - 1 and len(cores) <= MOST_SOCKETS and cores.max() <= 2 * cores.min()
        ccx = next((finer for finer_name, finer in out if finer_name == "ccx"), None)
        name: LevelName = "group"
        if ccx is not None:
            name = _package_or_die(cells, labels, ccx) if packages else "quadrant"
        elif not index and within <= (MANY_CCX_NS if many else CCX_NS):
            name = "ccx"
        elif packages and _spans_package(between, cores, threads):
            name = "socket"
        elif not index and many:
            name = "ccx"
        out.append((name, labels))
    return out


def _spans_package(between: float, cores: npt.NDArray[np.int64], smt: bool) -> bool:
    """Whether groups of cores with a slow last-level cache are packages rather than clusters or dies of one.

    Packages have enough cores and are far from each other. With threads in pairs and two groups, a slow cache is a ring
    or mesh over the package, however near the other one is; without, dies of one package (SCCL) look the same.
    """
    far = between >= (SOCKET_NS if len(cores) < 8 else 1.5 * SOCKET_NS)
    ring = smt and len(cores) == 2 and cores.max() >= SURE_PACKAGE_CORES
    return bool(cores.max() >= MIN_PACKAGE_CORES and (far or ring))


def _package_or_die(cells: Cells, parts: Labels, ccx: Labels) -> LevelName:
    """The name of parts of several CCXs: the parts of one package are nearer to each other, in ns and compared with the
    nearest of their own.
    """
    medians, part_of = cells.block_medians(ccx), group_of(parts, ccx)
    same = part_of[:, None] == part_of[None, :]
    between = float(np.nanmedian(medians[~same]))
    off_diagonal = ~np.eye(len(part_of), dtype=bool)
    inside = [medians[np.outer(part_of == part, part_of == part) & off_diagonal] for part in set(part_of)]
    inside_ns = [float(np.nanmedian(values)) for values in inside if not np.isnan(values).all()]
    of_parts = cells.block_medians(parts)[~np.eye(len(sizes(part_of)), dtype=bool)]
    nearest = float(np.nanmin(of_parts)) if not np.isnan(of_parts).all() else between
    few = sizes(part_of).min() < 4 and np.median(sizes(parts)) <= 10
    far = between >= (DIE_SOCKET_NS if few else CCX_SOCKET_NS)
    return "socket" if far and (not inside_ns or 1 - min(inside_ns) / nearest >= SOCKETS_CONTRAST) else "quadrant"


def _above_ccx(cells: Cells, ccx: Labels, levels: list[Partition]) -> list[Partition]:
    """Sockets and quadrants over the medians between CCXs, where linkage did not find them."""
    blocks = cells.block_medians(ccx)
    if len(blocks) < 4:
        return []
    sockets = next((group_of(level.labels, ccx) for level in levels if level.name == "socket"), None)
    out: list[Partition] = []
    if sockets is None and (sides := sockets_of(blocks)) is not None:
        over = Partition(_package_or_die(cells, sides[ccx], ccx), numbered(sides[ccx]))
        sockets = sides if over.name == "socket" else None
        if all(_nest(over.labels, level.labels) for level in levels):
            out.append(over)
    if any(level.name == "quadrant" for level in levels + out):
        return out
    inside = np.zeros(len(blocks), dtype=np.int64) if sockets is None else sockets
    parts = quadrants(blocks, inside, cell_noise(cells, ccx))
    if parts is not None:
        most = sizes(group_of(inside, parts)).max()
        name: LevelName = "half" if most == 2 and sizes(parts).min() >= 4 else "quadrant" if most <= 4 else "group"
        out.insert(0, Partition(name, parts[ccx]))
    return out


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
    cuts = (_cut(tree, k, "maxclust") for k in counts)
    return next((labels for labels in cuts if _link_costs(blocks, residual, upper, labels)), None)


def _tree_of(residual: Matrix) -> Matrix:
    """The average-linkage tree over what an additive fit leaves, which is below zero inside parts."""
    return _tree(residual - residual.min(), "average")


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


def cell_noise(cells: Cells, ccx: Labels) -> float:
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
        by_rows, by_residuals = _profile_cut(profile_distances(blocks, rows), floor), _residual_cut(inside, noise)
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
    own, others = _inside_and_across(residual, blocks, parts)
    step = float(np.median(others) - np.median(own)) if len(own) and len(others) else 0.0
    if spread > BLOCK_NOISE * noise and step < BLOCK_STEP * spread:
        return False
    for values, least in ((blocks, 0.0), (residual, RESIDUAL_NOISE * noise)):
        inside, across = _inside_and_across(values, blocks, parts)
        if not (len(inside) and len(across) and np.median(across) - np.median(inside) > least):
            return False
    return True


def _inside_and_across(
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
        labels = _cut(tree, k, "maxclust")
        count = sizes(labels)
        if len(count) < 2 or count.min() < 2 or count.max() > 2 * count.min():
            continue
        inside, crossing = _inside_and_across(residual, blocks, labels)
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


def _profile_cut(distances: Matrix, floor: float) -> Labels | None:
    """The cut of the rows' differences by complete linkage into the most parts, up to four where there is one; parts of
    about equal size.
    """
    if len(distances) < 4:
        return None
    tree = _tree(distances, "complete")
    heights = np.hypot(tree[:, 2], floor)
    best: Labels | None = None
    for k in np.flatnonzero(heights[1:] > PROFILE_RATIO * heights[:-1]):
        labels = _cut(tree, (tree[k, 2] + tree[k + 1, 2]) / 2, "distance")
        count = sizes(labels)
        if count.max() <= 2 * count.min() and count.min() > 1:  # one CCX alone shows no part that it is in
            best = labels
            if len(count) <= 4:
                break
    return best
