"""The levels of a latency matrix, found without labels or CPU numbers.

In order: pairs of hardware threads by mutual nearest neighbours; groups by average linkage, kept where nearly every CPU
is nearer to all of its group than to anybody else; then, over the medians between CCXs, sockets by the leading
eigenvector of the double-centred matrix, as one socket can be slower inside than the link between them, and quadrants
by the likeness of rows. docs/method.md has the reasons and figures.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.sparse.csgraph import connected_components
from scipy.spatial.distance import squareform

from nodeprint.structure.matrices import (
    Cells,
    Labels,
    Matrix,
    additive_residual,
    numbered,
    profile_distances,
    sizes,
)
from nodeprint.structure.model import LevelName

# Thresholds: docs/method.md, "Structure from a matrix", says on which machines they were chosen. Gaps are
# differences of logarithms.
SMT_GAP = 0.25  # a sibling is this much nearer than the next CPU
SMT_COVERAGE = 0.4  # of the CPUs have a sibling: hybrid processors have threads on some cores only
SMT_NS = 18.0  # threads share the first-level cache; slower pairs are cores of a small cache group
LINKAGE_GAP = 0.2  # between consecutive merges, for a cut to be looked at
SEPARATION = 1.1  # a CPU's far partners over its near ones
SEPARATED = 0.85  # of the CPUs are separated like that
ALONE = 0.4  # of the CPUs may be alone: their partners are not in the matrix, or they have none
ALIKE_ROW = 1.5  # a row's median to its group over the group's own
ALIKE_INSIDE = 2.2  # largest over smallest median inside groups of one level
SOCKET_CONTRAST = 0.15  # how much the link adds, of the latency across it
SOCKET_AUC = 0.97  # chance that a residual across is above one inside
PROFILE_RATIO = 1.8  # between consecutive merges of row profiles
PROFILE_NOISE = 0.01  # standard error of a median between CCXs, of the latency, above which rows are not compared
# hop inside a last-level cache of few cores; above it, one of two groups may be a whole package
CCX_NS = 28.0
MANY_CCX_NS = 40.0  # the same where there are more than two groups of three to eight cores
MIN_PACKAGE_CORES = 5  # smaller groups are clusters
MIN_PACKAGE_CORES_NO_SMT = 7
SOCKET_NS = 100.0  # hop between packages
CCX_SOCKET_NS = 150.0  # the same for parts of several CCXs, which may be parts of one package below that
DIE_SOCKET_NS = 180.0  # the same for parts of up to three CCXs and ten cores, which are dies below that


@dataclass(frozen=True)
class Partition:
    """A level by position: `labels` (n,) number the group of every row of the matrix."""

    name: LevelName
    labels: Labels


def detect(matrix: Matrix) -> list[Partition]:
    """Levels of a symmetric (n, n) matrix in ns with NaN for missing pairs, from fine to coarse; empty where it is
    flat.

    Rows that hold (nearly) nothing but their sibling's cell follow their sibling.
    """
    if len(matrix) < 4:
        return []
    siblings = sibling_labels(matrix)
    cores: Labels = np.arange(len(matrix)) if siblings is None else siblings
    cells = Cells.of(matrix)
    between_cores = cells.block_medians(cores)
    np.fill_diagonal(between_cores, np.nan)
    nested = [_refined(cells, labels[cores]) for labels in separated_groups(between_cores)]
    whole = np.zeros(len(matrix), dtype=np.int64)
    if nested and sizes(nested[0]).max() == 2:
        nested[0] = _paired_by_elimination(matrix, nested[0], nested[1] if nested[1:] else whole)
    found: list[Partition] = []
    if siblings is not None:
        cores = _paired_by_elimination(matrix, siblings, nested[0] if nested else whole)
        found.append(Partition("smt", cores))
    found += [Partition(name, labels) for name, labels in _named(cells, nested, cores)]
    ccx = next((level for level in found if level.name == "ccx"), None)
    if ccx is not None:
        found += _above_ccx(cells, ccx.labels, cores, found)
    return sorted(found, key=lambda level: -int(level.labels.max()))


def _refined(cells: Cells, labels: Labels) -> Labels:
    """Every row in the group that it is nearest to by the median, which a disturbed or missing cell does not move.

    Groups that are as near to each other as the one is inside are one; so are a row alone and the group that it is
    like.
    """
    blocks = cells.block_medians(labels)
    inside = np.where(sizes(labels) > 1, np.diag(blocks), np.nan)
    with np.errstate(invalid="ignore"):
        near = blocks < SEPARATION * np.fmin(inside[:, None], inside[None, :])
        np.fill_diagonal(near, True)
    _, joined = connected_components(near, directed=False)
    labels = numbered(joined[labels])
    inside = np.diag(cells.block_medians(labels))
    rows = cells.row_medians(labels)
    rows = np.where(np.isnan(rows), np.inf, rows)
    best = np.argmin(rows, axis=1)
    each = np.arange(len(labels))
    joins = (sizes(labels)[best] > 1) & (rows[each, best] * SEPARATION < rows[each, labels])
    joins &= rows[each, best] < ALIKE_ROW * inside[best]
    return numbered(np.where(joins, best, labels))


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
    if paired.sum() < SMT_COVERAGE * n or np.median(two[paired, 0]) > np.log(SMT_NS):
        return None
    limit = float(np.median(next_best[paired])) - SMT_GAP
    paired &= two[:, 0] < limit
    sibling = np.where(paired, nearest, np.arange(n))
    while True:
        left = np.flatnonzero(sibling == np.arange(n))
        if len(left) < 2:
            break
        rest = logs[np.ix_(left, left)]
        nearest = np.argmin(rest, axis=1)
        pairs = (nearest[nearest] == np.arange(len(left))) & (rest.min(1) < limit)
        if not pairs.any():
            break
        sibling[left[pairs]] = left[nearest[pairs]]
    return numbered(np.minimum(np.arange(n), sibling))


def _paired_by_elimination(matrix: Matrix, cores: Labels, groups: Labels) -> Labels:
    """Siblings whose own cell is missing or disturbed: two CPUs of one group that have no sibling, and no other choice.

    Where so many are without one that two may meet by chance, their rows must be as like as those of siblings.
    """
    single = np.flatnonzero(sizes(cores)[cores] == 1)
    single = single[(~np.isnan(matrix)).sum(1)[single] > 1]
    if not 2 <= len(single) <= 0.25 * len(matrix):
        return cores
    inside = groups[:, None] == groups[None, :]
    usual = np.nanmedian(np.where(inside & (cores[:, None] != cores[None, :]), matrix, np.nan))
    bad = inside & ~(matrix < 2 * usual)
    np.fill_diagonal(bad, False)
    chance = bad.sum() / max(int(inside.sum()) - len(matrix), 1)
    candidates = bad[np.ix_(single, single)]
    if inside[np.ix_(single, single)].sum() / 2 * chance > 0.5:
        first, second = np.nonzero((cores[:, None] == cores[None, :]) & np.triu(np.ones_like(inside), 1))
        known = _row_difference(matrix, first, second)
        alike = float(np.quantile(known[np.isfinite(known)], 0.9)) if np.isfinite(known).any() else 0.0
        one, other = (single[side] for side in np.nonzero(np.triu(inside[np.ix_(single, single)], 1)))
        if not alike < 0.5 * np.median(_row_difference(matrix, one, other)):
            return cores
        one, other = np.nonzero(candidates)
        candidates[one, other] = _row_difference(matrix, single[one], single[other]) <= alike
    out = cores.copy()
    for i, row in enumerate(candidates):
        partners = np.flatnonzero(row)
        if len(partners) == 1 and candidates[partners[0]].sum() == 1:
            out[single[max(i, partners[0])]] = out[single[min(i, partners[0])]]
    return numbered(out)


def _row_difference(
    matrix: Matrix, one: npt.NDArray[np.int64], other: npt.NDArray[np.int64]
) -> npt.NDArray[np.float64]:
    """Median of the absolute logarithms of the ratio of two rows, for each pair of rows; infinite where they share no
    column.
    """
    if not len(one):
        return np.zeros(0)
    logs = np.sort(np.abs(np.log(matrix[one] / matrix[other])), axis=1)
    count = (~np.isnan(logs)).sum(1)
    out: npt.NDArray[np.float64] = np.where(count > 0, logs[np.arange(len(one)), np.maximum(count - 1, 0) // 2], np.inf)
    return out


def separated_groups(matrix: Matrix) -> list[Labels]:
    """Cuts of the average-linkage tree (on logarithms) that separate nearly every row, from fine to coarse.

    Of several cuts of the same level the one with the widest gap is kept.
    """
    n = len(matrix)
    if n < 4:
        return []
    logs = np.log(matrix)
    logs = np.where(np.isnan(logs), np.nanmedian(logs) if np.isfinite(logs).any() else 0.0, logs)
    logs -= logs.min()
    np.fill_diagonal(logs, 0.0)
    tree = linkage(squareform(logs, checks=False), "average")
    heights = tree[:, 2]
    gaps = np.diff(heights)
    kept: list[Labels] = []
    for k in sorted(np.flatnonzero(gaps > LINKAGE_GAP), key=lambda k: -gaps[k]):
        labels = numbered(fcluster(tree, (heights[k] + heights[k + 1]) / 2, "distance"))
        if _separates(matrix, labels) and all(_distinct(labels, other) for other in kept):
            kept.append(labels)
    return sorted(kept, key=lambda labels: -int(labels.max()))


def _separates(matrix: Matrix, labels: Labels) -> bool:
    count = sizes(labels)
    alone = count[labels] == 1
    if count.max() == len(labels) or alone.mean() > ALONE:
        return False
    same = labels[:, None] == labels[None, :]
    with np.errstate(all="ignore"):
        near = _row_quantile(np.where(same, matrix, np.nan), 0.9)
        far = _row_quantile(np.where(same, np.nan, matrix), 0.05)
    if (far > near * SEPARATION)[~alone].mean() < SEPARATED:
        return False
    inside = np.diag(Cells.of(matrix).block_medians(labels))[count > 1]
    inside = inside[~np.isnan(inside)]
    return len(inside) > 0 and bool(inside.max() < ALIKE_INSIDE * inside.min())


def _row_quantile(matrix: Matrix, q: float) -> npt.NDArray[np.float64]:
    """Quantile of each row's measured cells, NaN where there is none."""
    ordered = np.sort(matrix, axis=1)
    count = (~np.isnan(ordered)).sum(1)
    out: npt.NDArray[np.float64] = ordered[np.arange(len(ordered)), (q * np.maximum(count - 1, 0)).astype(np.int64)]
    return out


def _distinct(labels: Labels, other: Labels) -> bool:
    """Whether the coarser of two nested partitions joins most of the finer one's groups."""
    fine, coarse = (labels, other) if labels.max() > other.max() else (other, labels)
    if fine.max() == coarse.max():
        return False
    parts = sizes(group_of(coarse, fine))
    return bool((parts > 1).sum() > 0.5 * len(parts))


def group_of(coarse: Labels, fine: Labels) -> Labels:
    """The coarse group of every fine group, (groups of fine,)."""
    out = np.zeros(int(fine.max()) + 1, dtype=np.int64)
    out[fine] = coarse
    return out


def _named(cells: Cells, nested: list[Labels], core_of: Labels) -> list[tuple[LevelName, Labels]]:
    """A name for each partition, by its groups' count, cores and latency; `group` where these do not decide."""
    smt = int(core_of.max()) + 1 < len(core_of)
    out: list[tuple[LevelName, Labels]] = []
    for index, labels in enumerate(nested):
        blocks = cells.block_medians(labels)
        within = float(np.nanmedian(np.diag(blocks)))
        between = float(np.nanmedian(blocks[~np.eye(len(blocks), dtype=bool)]))
        cores = sizes(group_of(labels, core_of))
        packages = index == len(nested) - 1 and len(cores) in (2, 4, 8) and cores.max() <= 2 * cores.min()
        name: LevelName
        ccx = next((finer for finer_name, finer in out if finer_name == "ccx"), None)
        if index:
            name = (
                "group" if ccx is None else _package_or_die(between, labels, ccx, core_of) if packages else "quadrant"
            )
        elif within <= _ccx_limit(cores):
            name = "ccx"
        elif packages and _spans_package(between, cores, smt):
            name = "socket"
        else:
            name = "ccx" if (len(cores) >= 4 and np.median(cores) >= 3) or (len(cores) == 2 and smt) else "group"
        out.append((name, labels))
    return out


def _ccx_limit(cores: npt.NDArray[np.int64]) -> float:
    """The hop in ns up to which groups of so many cores are CCXs whatever lies between them."""
    if len(cores) == 2:
        return CCX_NS
    return MANY_CCX_NS if len(cores) > 3 and np.median(cores) >= 3 and cores.max() <= 8 else (CCX_NS + MANY_CCX_NS) / 2


def _spans_package(between: float, cores: npt.NDArray[np.int64], smt: bool) -> bool:
    """Whether groups of cores with a slow last-level cache are packages rather than clusters or dies of one.

    Packages have enough cores and are far from each other. With threads in pairs and two groups, a slow cache is a ring
    or mesh over the package, however near the other one is; without, dies of one package (SCCL) look the same.
    """
    enough = cores.max() >= (MIN_PACKAGE_CORES if smt else MIN_PACKAGE_CORES_NO_SMT)
    far = between >= (SOCKET_NS if len(cores) < 8 else 1.5 * SOCKET_NS)
    return bool(enough and (far or (smt and len(cores) == 2)))


def _package_or_die(between: float, parts: Labels, ccx: Labels, core_of: Labels) -> LevelName:
    """The name of parts of several CCXs: the dies of a package have few cores, and are nearer than packages."""
    few = sizes(group_of(parts, ccx)).min() < 4 and np.median(sizes(group_of(parts, core_of))) <= 10
    return "socket" if between >= (DIE_SOCKET_NS if few else CCX_SOCKET_NS) else "quadrant"


def _above_ccx(cells: Cells, ccx: Labels, core_of: Labels, found: list[Partition]) -> list[Partition]:
    """Sockets and quadrants over the medians between CCXs, where linkage did not find them."""
    blocks = cells.block_medians(ccx)
    if len(blocks) < 4:
        return []
    sockets = next((group_of(level.labels, ccx) for level in found if level.name == "socket"), None)
    out: list[Partition] = []
    if sockets is None and (sides := two_sockets(blocks)) is not None:
        across = np.median(blocks[sides[:, None] != sides[None, :]])
        over = Partition(_package_or_die(float(across), sides[ccx], ccx, core_of), numbered(sides[ccx]))
        sockets = sides if over.name == "socket" else None
        if not any(np.array_equal(over.labels, level.labels) for level in found):
            out.append(over)
    if any(level.name == "quadrant" for level in found + out):
        return out
    inside = np.zeros(len(blocks), dtype=np.int64) if sockets is None else sockets
    parts = quadrants(blocks, inside, cell_noise(cells, ccx))
    if parts is not None:
        most = sizes(group_of(inside, parts)).max()
        name: LevelName = "half" if most == 2 and sizes(parts).min() >= 4 else "quadrant" if most <= 4 else "group"
        out.insert(0, Partition(name, parts[ccx]))
    return out


def two_sockets(blocks: Matrix) -> Labels | None:
    """Two sockets over (g, g) medians between CCXs, g at least 4; None where the link shows no clear cost of its own.

    Offsets of each CCX are taken out first: the socket that does not own the line is slower as a whole.
    """
    residual, _ = additive_residual(blocks)
    vectors = np.linalg.eigh(residual).eigenvectors
    side = vectors[:, 0] > 0
    if min(side.sum(), (~side).sum()) * 2 < max(side.sum(), (~side).sum()):
        return None
    across = side[:, None] != side[None, :]
    upper = np.triu(~np.isnan(blocks), 1)
    crossing, inside = residual[upper & across], residual[upper & ~across]
    if not len(crossing) or not len(inside):
        return None
    contrast = (np.median(crossing) - np.median(inside)) / np.median(blocks[upper & across])
    if contrast < SOCKET_CONTRAST or _auc(crossing, inside) < SOCKET_AUC:
        return None
    return numbered(side.astype(np.int64))


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
    return 1.4826 * float(np.nanmedian(np.abs(difference))) / 2


def quadrants(blocks: Matrix, sockets: Labels, noise: float) -> Labels | None:
    """Parts of the I/O die, as groups of CCXs with the same row; None where no number of parts stands out in every
    socket.

    `noise` is the standard error of a block's median. Complete linkage on the rows' differences; two rows nearer than
    noise count as equal.
    """
    usual = float(np.nanmedian(blocks))
    if noise > PROFILE_NOISE * usual:
        return None
    floor = float(np.hypot(1.5 * np.sqrt(2) * noise, 0.004 * usual))
    labels = np.zeros(len(blocks), dtype=np.int64)
    for socket in range(int(sockets.max()) + 1):
        rows = np.flatnonzero(sockets == socket)
        parts = _profile_cut(profile_distances(blocks, rows), floor)
        if parts is None:
            return None
        labels[rows] = labels.max() + 1 + parts
    return numbered(labels)


def _profile_cut(distances: Matrix, floor: float) -> Labels | None:
    """The cut into the most parts, up to four where there is one; parts of about equal size."""
    if len(distances) < 4:
        return None
    tree = linkage(squareform(distances, checks=False), "complete")
    heights = np.hypot(tree[:, 2], floor)
    best: Labels | None = None
    for k in np.flatnonzero(heights[1:] > PROFILE_RATIO * heights[:-1]):
        labels = numbered(fcluster(tree, (tree[k, 2] + tree[k + 1, 2]) / 2, "distance"))
        count = sizes(labels)
        if count.max() <= 2 * count.min() and (count > 1).mean() >= 0.5:
            best = labels
            if len(count) <= 4:
                break
    return best
