"""The levels of a latency matrix, found without labels or CPU numbers.

In order: pairs of hardware threads by mutual nearest neighbors; groups by average linkage, kept where nearly every CPU
is nearer to all of its group than to anybody else; then, over the medians between CCXs, sockets by linkage of
the double-centerd matrix, as one socket can be slower inside than the link between them, and quadrants
by the likeness of rows. docs/method/structure.md has the reasons and figures.
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

# Thresholds: docs/validation.md says on which machines they were chosen. Gaps are differences of logarithms.
SINGLE_NOISE = 0.01  # relative noise of a row of cores without threads, and
SINGLE_STEP = 0.05  # least difference between pairs inside their clusters and across
ALIKE_ROW = 1.5  # a row's median to its group over the group's own
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
        smt = paired_by_elimination(matrix, siblings, levels[0].labels if levels else whole)
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


def _named(cells: SortedCells, nested: list[Labels], threads: bool) -> list[tuple[LevelName, Labels]]:
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


def _package_or_die(cells: SortedCells, parts: Labels, ccx: Labels) -> LevelName:
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


def _above_ccx(cells: SortedCells, ccx: Labels, levels: list[Partition]) -> list[Partition]:
    """Sockets and quadrants over the medians between CCXs, where linkage did not find them."""
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
