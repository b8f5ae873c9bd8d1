"""Two stages: a part that is outside its bound in one job is suspected; an independent job confirms it, or does not
show it. What every run of a job showed is not refuted by that: it comes and goes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property

import msgspec
import numpy as np
import numpy.typing as npt

from nodeprint.data.places.layout import Ints
from nodeprint.judge.deviations import Block, run_means
from nodeprint.judge.reduction import Matrix
from nodeprint.stats import intervals

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

#: Up to this many nodes it has to be shown that the others agree before one of them is named.
FEW_NODES = 4
#: Of what does not vary at all, the weight is finite.
_LEAST_VARIANCE = 1e-18
#: Nodes that are worked on at once where all would not fit into memory.
AT_ONCE = 256


class Series(msgspec.Struct, frozen=True, dict=True):
    """One measurement at one home over the nodes of one group: the blocks of their first, second, ... jobs."""

    blocks: tuple[Block, ...]

    @property
    def first(self) -> Block:
        """The first jobs."""
        return self.blocks[0]

    @property
    def matrix(self) -> Matrix:
        """The matrix of the first jobs."""
        return self.blocks[0].matrix

    def of(self, node: int) -> list[Block]:
        """The blocks that a node (its number in the fleet) is in, in the order of its jobs."""
        return [block for block in self.blocks if node in block.row]

    @cached_property
    def suspected(self) -> int:
        """How many parts of nodes with a later job are outside their bound in an earlier one."""
        count = 0
        for earlier, later in zip(self.blocks, self.blocks[1:], strict=False):
            rows = [earlier.row[node] for node in later.matrix.nodes.tolist() if node in earlier.row]
            count += int(earlier.outside[rows].sum())
        return count


class Standing(msgspec.Struct, frozen=True):
    """What a node's jobs show of each part (part): `confirmed`, `suspected`, `intermittent` or `refuted`, and in which
    block (`seen`, its number among the node's) a part was first outside. `half` is half of the interval that decides in
    the newest job, which leaves `tail` at each end."""

    blocks: tuple[Block, ...]
    confirmed: Bools
    suspected: Bools
    intermittent: Bools
    refuted: Bools
    seen: npt.NDArray[np.int64]
    half: Floats
    tail: Floats

    @property
    def newest(self) -> Block:
        """The node's newest job."""
        return self.blocks[-1]


def runs_beyond(block: Block, rows: Ints) -> tuple[Ints, Ints]:
    """How many runs of nodes are beyond the bound of each part, each by itself (node, part): above the centre of the
    peers, and below."""
    values = block.matrix.values[rows]
    centre = run_means(block.matrix, rows) - block.difference[rows]
    with np.errstate(invalid="ignore"):
        apart = values - centre[:, None]
        above, below = ((side * apart > block.bound).sum(axis=1, dtype=np.int64) for side in (1, -1))
    return above, below


def confirming_tail(series: Sequence[Series], level: float) -> float:
    """The probability at each end of a confirming interval: `level` shared by all that is suspected."""
    return level / (2 * max(1, sum(of_measurement.suspected for of_measurement in series)))


def standing(series: Series, node: int, tail: float) -> Standing | None:
    """What a node's jobs show; None of a node that is not in the series.

    The newest job confirms what an earlier one showed on the same side. It does not show it where it is inside the
    bound, or none of its runs is beyond. That is refuted only where single runs of the earlier job had contradicted it,
    and else intermittent. What the newest job shows for the first time is suspected.
    """
    blocks = series.of(node)
    if not blocks:
        return None
    newest = blocks[-1]
    row = newest.row[node]
    difference, bound = newest.difference[row], newest.bound
    parts = len(bound)
    seen, nowhere = np.full(parts, -1), np.zeros(parts, dtype=np.bool_)
    if not any(block.outside[block.row[node]].any() for block in blocks):
        half = newest.half_simultaneous[row]
        return Standing(tuple(blocks), nowhere, nowhere, nowhere, nowhere, seen, half, newest.tail)
    side, steady = np.zeros(parts), nowhere.copy()
    for number, block in enumerate(blocks[:-1]):
        outside, sign = block.outside[block.row[node]], np.sign(block.difference[block.row[node]])
        first = outside & (seen < 0)
        seen[first], side[first] = number, sign[first]
        steady |= outside & (sign == side) & (_beyond(block, node, side) == block.runs[block.row[node]])
    before = seen >= 0
    confirming = newest.half(tail, row) if before.any() else newest.half_simultaneous[row]
    with np.errstate(invalid="ignore"):
        confirmed = before & (difference * side > 0) & intervals.outside(difference, confirming, bound)
    fresh = newest.outside[row] & ~confirmed
    seen[fresh & ~before] = len(blocks) - 1
    inside = intervals.inside(difference, newest.half_90(row), bound)
    open_parts = before & ~confirmed & ~fresh
    intermittent = open_parts & steady & (inside | (_beyond(newest, node, side) == 0))
    refuted = open_parts & ~steady & inside
    suspected = (before & ~confirmed & ~intermittent & ~refuted) | fresh
    half = np.where(before, confirming, newest.half_simultaneous[row])
    tails = np.where(before, tail, newest.tail)
    return Standing(tuple(blocks), confirmed, suspected, intermittent, refuted, seen, half, tails)


def _beyond(block: Block, node: int, side: Floats) -> Ints:
    """How many runs of a node are beyond the bound on this `side` (part)."""
    above, below = runs_beyond(block, np.array([block.row[node]]))
    return np.asarray(np.where(side > 0, above[0], below[0]))


class Pooled(msgspec.Struct, frozen=True):
    """The difference of a node (part) from all its jobs that count towards SAME, its error and half of the 90 %
    interval; how many runs and jobs it rests on. `row` is the node's in the block of the first jobs."""

    row: int
    difference: Floats
    error: Floats
    half_90: Floats
    runs: npt.NDArray[np.integer]
    jobs: int


class PooledNodes(Mapping[int, Pooled]):
    """By node the mean of its independent jobs, weighted by their errors.

    A job in which something was outside its bound was chosen for it: only those after it count. Nodes are pooled so
    many at a time when they are asked for, and in their order: those of ten thousand would have gigabytes.
    """

    def __init__(self, series: Series) -> None:
        self._series = series
        #: By node the numbers of the blocks that count.
        self.blocks: dict[int, tuple[int, ...]] = {}
        chosen = [np.asarray(block.outside.any(axis=1)) for block in series.blocks]
        for node in series.matrix.nodes.tolist():
            jobs = [number for number, block in enumerate(series.blocks) if node in block.row]
            outside = (at for at, job in enumerate(jobs[:-1]) if chosen[job][series.blocks[job].row[node]])
            self.blocks[node] = tuple(jobs[max(outside, default=-1) + 1 :])
        self._nodes = sorted(self.blocks)
        self._place = {node: place for place, node in enumerate(self._nodes)}
        self._chunk = -1
        self._made: dict[int, Pooled] = {}

    def __getitem__(self, node: int) -> Pooled:
        chunk = self._place[node] // AT_ONCE
        if chunk != self._chunk:
            self._chunk, self._made = chunk, dict(self._of(self._nodes[chunk * AT_ONCE : (chunk + 1) * AT_ONCE]))
        return self._made[node]

    def __iter__(self) -> Iterator[int]:
        return iter(self._nodes)

    def __len__(self) -> int:
        return len(self._nodes)

    def _of(self, nodes: Sequence[int]) -> Iterator[tuple[int, Pooled]]:
        alike: dict[tuple[int, ...], list[int]] = {}
        for node in nodes:
            alike.setdefault(self.blocks[node], []).append(node)
        for jobs, of_jobs in alike.items():
            used = [self._series.blocks[job] for job in jobs]
            yield from zip(of_jobs, _pooled(self._series, used, of_jobs), strict=True)


def _pooled(series: Series, used: Sequence[Block], nodes: Sequence[int]) -> Iterator[Pooled]:
    """Of nodes of which the same blocks count."""
    first = [series.first.row[node] for node in nodes]
    rows = [[block.row[node] for node in nodes] for block in used]
    if len(used) == 1:
        (block,), (own_rows,) = used, rows
        errors, halves = block.error(own_rows), block.half_90(own_rows)
        for at, row, error, half_90 in zip(first, own_rows, errors, halves, strict=True):
            yield Pooled(at, block.difference[row], error, half_90, block.runs[row], 1)
        return
    shape = len(nodes), len(used[0].bound)
    total, weighted, template, runs_part, jobs_part = np.zeros((5, *shape))
    runs, centred = np.zeros(shape, dtype=np.int64), np.ones(shape, dtype=np.bool_)
    shifted = any(block.shifted for block in used)
    for block, of_nodes in zip(used, rows, strict=True):
        difference = block.difference[of_nodes]
        measured = np.isfinite(difference)
        # a part without a centre is undecided until a later job has one, and then by that job and those after it
        centred = np.where(measured, block.centred, centred)
        again = measured & ~block.centred
        for of_all in (total, weighted, template, runs_part, jobs_part, runs):
            of_all[again] = 0
        of_runs, of_job = block.of_runs(of_nodes), np.broadcast_to(block.of_job, shape)
        weight = np.where(measured, 1 / np.maximum(of_runs + of_job, _LEAST_VARIANCE), 0.0)
        total += weight
        weighted += weight * np.nan_to_num(difference)
        runs_part += weight**2 * of_runs
        jobs_part += weight**2 * of_job
        of_template = block.of_template(of_nodes)
        template += weight * np.sqrt(of_template) if shifted else weight**2 * of_template
        runs += np.where(measured, block.runs[of_nodes], 0)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = np.where(total > 0, weighted / total, np.nan)
        of_runs, of_jobs = (np.where(total > 0, part / total**2, np.inf) for part in (runs_part, jobs_part))
        # jobs whose centre is that of the first job, moved, share its error
        of_template = (template / total) ** 2 if shifted else template / total**2
    degrees = intervals.combined([(of_runs, used[0].spread.degrees), (of_jobs, used[0].job_degrees)])[1]
    error = np.sqrt(of_runs + of_jobs + of_template)
    half = np.where((runs < 2) | ~centred, np.inf, intervals.half_width(error, degrees, intervals.EQUIVALENCE))
    for number, at in enumerate(first):
        yield Pooled(at, mean[number], error[number], half[number], runs[number], len(used))
