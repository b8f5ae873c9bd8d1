"""Detect the levels of a latency matrix without labels or CPU numbers.

Hardware threads are paired as mutual nearest neighbors. Groups come from average linkage and are kept if nearly every
CPU is nearer to its whole group than to any other CPU. Sockets come from linkage of the double-centered medians between
CCXs, because one socket can be slower inside than the link. Quadrants come from similar rows. docs/method/structure.md
gives reasons and results.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from nodeprint.structure.between_ccxs import (
    MOST_SOCKETS,
    SOCKETS_CONTRAST,
    cell_noise,
    inside_and_across,
    profile_cut,
    quadrants,
    sockets_of,
)
from nodeprint.structure.found import LevelName
from nodeprint.structure.linkage import are_nested, group_of, nearer_in_every_group, separated_groups
from nodeprint.structure.matrix_arithmetic import Labels, Matrix, SortedCells, numbered, profile_distances, sizes
from nodeprint.structure.siblings import paired_by_elimination, sibling_labels

# docs/validation.md lists the machines on which these thresholds were chosen. Gaps are differences of logarithms.
SINGLE_NOISE = 0.01  # relative noise of a row of single-threaded cores, and
SINGLE_STEP = 0.05  # least relative difference between pairs inside their clusters and across
ALIKE_ROW = 1.5  # largest ratio of a row's median to its group and the group's own median
# latency in ns inside a last-level cache of few cores; above it, one of two groups may be a whole package
CCX_NS = 28.0
MANY_CCX, MANY_CCX_CORES = 4, 3  # from this many groups and cores in each, the ratio decides at any clock:
CCX_RATIO = 2.5  # latency to the nearest other CCX, relative to latency inside
MANY_CCX_NS = 40.0  # up to this latency inside, they are CCXs even if as distant as packages
# up to so many clusters of so many cores with one hardware thread each may be of a SoC: latency alone does not tell
# them from CCXs or packages (but four of MANY_CCX_CORES are CCXs)
SOC_CLUSTERS, CLUSTER_CORES = 4, 6
MIN_PACKAGE_CORES = 5  # smaller groups are clusters
SURE_PACKAGE_CORES = 6  # groups with fewer cores are packages only if the latency between them is that of packages
SOCKET_NS = 100.0  # least latency between packages
CCX_SOCKET_NS = 150.0  # the same for groups of several CCXs; below it they may share a package
DIE_SOCKET_NS = 180.0  # the same for groups of up to three CCXs and ten cores; below it they are dies


@dataclass(frozen=True)
class Partition:
    """A level by position: `labels` (n,) has the group number of every row."""

    name: LevelName
    labels: Labels


@dataclass(frozen=True)
class Detected:
    """Levels over CPUs and over cores, from fine to coarse.

    All levels above SMT are detected from the medians `between_cores`. `threads` has the thread count of each core.
    """

    levels: list[Partition]
    of_cores: list[Partition]
    between_cores: Matrix
    threads: Labels


def detect(matrix: Matrix) -> Detected:
    """Detect the levels of a symmetric (n, n) matrix in ns with NaN for missing pairs; none if it is flat.

    Rows with hardly any measured cell other than their sibling's follow that sibling.
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
        smt = paired_by_elimination(matrix, siblings, levels[0].labels if levels else whole)
        levels.insert(0, Partition("smt", smt))
    return Detected(levels, of_cores, between, threads)


def _between_cores(matrix: Matrix, cores: Labels) -> Matrix:
    """Lower medians of the cells between every two cores with one or two threads; NaN on the diagonal."""
    first, last = np.zeros((2, int(cores.max()) + 1), dtype=np.int64)
    rows = np.arange(len(cores))
    first[cores[::-1]], last[cores] = rows[::-1], rows
    # a core with one thread is counted twice, which does not change a lower median
    cells = np.stack([matrix[np.ix_(a, b)] for a in (first, last) for b in (first, last)])
    cells.sort(axis=0)
    middle = np.maximum((~np.isnan(cells)).sum(axis=0) - 1, 0) // 2
    between: Matrix = np.take_along_axis(cells, middle[None], axis=0)[0]
    np.fill_diagonal(between, np.nan)
    return between


def levels_of_cores(between: Matrix, threads: Labels) -> list[Partition]:
    """Detect the levels above the core from medians between cores, fine to coarse; `threads` has the thread count of
    each.
    """
    if len(between) < 4:
        return []
    cells = SortedCells.of(between)
    whole = np.zeros(len(between), dtype=np.int64)
    nested = _nested([_refined(cells, labels) for labels in separated_groups(between, cells)])
    finest: list[Labels] = [np.arange(len(between))]
    nested = [
        labels
        for labels, finer in zip(nested, finest + nested, strict=False)
        if nearer_in_every_group(cells, labels, finer)
    ]
    if not nested and (clusters := _clusters_of_singles(between, threads)) is not None:
        return [Partition("group", clusters)]
    if not nested and len(between) >= 2 * MIN_PACKAGE_CORES and (sides := sockets_of(between)) is not None:
        nested = [sides]
    if nested and sizes(nested[0]).max() == 2:
        nested[0] = paired_by_elimination(between, nested[0], nested[1] if nested[1:] else whole)
    levels = [Partition(name, labels) for name, labels in _named(cells, nested, threads.max() > 1)]
    ccx = next((level for level in levels if level.name == "ccx"), None)
    if ccx is not None:
        levels += _above_ccx(cells, ccx.labels, levels)
    return sorted(levels, key=lambda level: -int(level.labels.max()))


def _clusters_of_singles(between: Matrix, threads: Labels) -> Labels | None:
    """Clusters of the single-threaded cores of a hybrid processor; every other core is its own group. None without
    clusters.

    Cores of a cluster have equal rows but may be farther from each other than from another cluster (50 and 44 ns on a
    12900K). A tree over distances cannot show that.
    """
    single = np.flatnonzero(threads == 1)
    if threads.max() < 2 or len(single) < 4 or np.isnan(between[np.ix_(single, single)]).all():
        return None
    inside = between[np.ix_(single, single)]
    middle = float(np.nanmedian(inside))
    parts = profile_cut(profile_distances(between, single), 1.5 * np.sqrt(2) * SINGLE_NOISE * middle)
    if parts is None:
        return None
    own, across = inside_and_across(inside, inside, parts)
    if not len(own) or not len(across) or abs(float(np.median(own) - np.median(across))) < SINGLE_STEP * middle:
        return None
    if not (own.max() < across.min() or own.min() > across.max()):
        return None
    labels = np.arange(len(between))
    labels[single] = len(between) + parts
    return numbered(labels)


def _refined(cells: SortedCells, labels: Labels) -> Labels:
    """Move every row to the group with the lowest median latency, which is robust to disturbed or missing cells.

    A single row joins a group only if its latency is similar to the members' and closer to theirs than to the next
    group's. A core of another type is equally far from all groups.
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
    """Nest refined partitions, from fine to coarse.

    Refinement may move a row to another coarse group than the rest of its fine group; the majority of the fine group
    decides. Partitions without two groups of several rows are dropped.
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


def _named(cells: SortedCells, nested: list[Labels], threads: bool) -> list[tuple[LevelName, Labels]]:
    """Name each partition by its number of groups, their cores and latency; `group` if undetermined."""
    out: list[tuple[LevelName, Labels]] = []
    for index, labels in enumerate(nested):
        blocks = cells.block_medians(labels)
        within = float(np.nanmedian(np.diag(blocks)))
        between_blocks = np.where(np.eye(len(blocks), dtype=bool), np.nan, blocks)
        between = float(np.nanmedian(between_blocks))
        nearest = float(np.nanmedian(np.fmin.reduce(between_blocks, axis=1)))
        cores = sizes(labels)
        many_groups = len(cores) >= MANY_CCX and np.median(cores) >= MANY_CCX_CORES
        many = many_groups and nearest >= CCX_RATIO * within
        is_soc = not threads and len(cores) <= SOC_CLUSTERS and cores.max() <= CLUSTER_CORES
        undetermined = is_soc and not many_groups
        packages = index == len(nested) - 1 and len(cores) <= MOST_SOCKETS and cores.max() <= 2 * cores.min()
        ccx = next((finer for finer_name, finer in out if finer_name == "ccx"), None)
        name: LevelName = "group"
        if ccx is not None:
            name = _package_or_die(cells, labels, ccx) if packages else "quadrant"
        elif undetermined:
            name = "group"
        elif not index and within <= (MANY_CCX_NS if many else CCX_NS):
            name = "ccx"
        elif packages and _spans_package(between, cores, threads):
            name = "socket"
        elif not index and many:
            name = "ccx"
        out.append((name, labels))
    return out


def _spans_package(between: float, cores: npt.NDArray[np.int64], smt: bool) -> bool:
    """Whether groups of cores with a slow last-level cache are packages rather than clusters or dies of one package.

    Packages have enough cores and a high latency between them. With two groups and SMT, a slow cache is a ring or mesh
    spanning the package, at any distance. Without SMT, dies of one package (SCCL) look the same.
    """
    far = between >= (SOCKET_NS if len(cores) < 8 else 1.5 * SOCKET_NS)
    ring = smt and len(cores) == 2 and cores.max() >= SURE_PACKAGE_CORES
    return bool(cores.max() >= MIN_PACKAGE_CORES and (far or ring))


def _package_or_die(cells: SortedCells, parts: Labels, ccx: Labels) -> LevelName:
    """Name groups of several CCXs: groups inside one package are nearer, in ns and relative to the latency inside."""
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


def _above_ccx(cells: SortedCells, ccx: Labels, levels: list[Partition]) -> list[Partition]:
    """Sockets and quadrants from the medians between CCXs, if linkage did not find them."""
    blocks = cells.block_medians(ccx)
    if len(blocks) < 4:
        return []
    sockets = next((group_of(level.labels, ccx) for level in levels if level.name == "socket"), None)
    out: list[Partition] = []
    if sockets is None and (sides := sockets_of(blocks)) is not None:
        over = Partition(_package_or_die(cells, sides[ccx], ccx), numbered(sides[ccx]))
        sockets = sides if over.name == "socket" else None
        if all(are_nested(over.labels, level.labels) for level in levels):
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
