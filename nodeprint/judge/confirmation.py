"""Two stages: a part that is outside its bound in one job is suspected; an independent job confirms or refutes it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property

import msgspec
import numpy as np
import numpy.typing as npt

from nodeprint.judge.deviations import Block
from nodeprint.judge.reduction import Matrix

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

#: Up to this many nodes it has to be shown that the others agree before one of them is named.
FEW_NODES = 4


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
    """What a node's jobs show of each part (part): `confirmed`, `suspected` or `refuted`, and in which block
    (`seen`, its number among the node's) a part was first outside. `half` is half of the interval that decides in
    the newest job, which leaves `tail` at each end."""

    blocks: tuple[Block, ...]
    confirmed: Bools
    suspected: Bools
    refuted: Bools
    seen: npt.NDArray[np.int64]
    half: Floats
    tail: Floats

    @property
    def newest(self) -> Block:
        """The node's newest job."""
        return self.blocks[-1]


def confirming_tail(series: Sequence[Series], level: float) -> float:
    """The probability at each end of a confirming interval: `level` shared by all that is suspected."""
    return level / (2 * max(1, sum(of_measurement.suspected for of_measurement in series)))


def standing(series: Series, node: int, tail: float) -> Standing | None:
    """What a node's jobs show; None of a node that is not in the series.

    The newest job confirms what an earlier one showed on the same side, and refutes it where it is inside the bound.
    What it shows for the first time is suspected.
    """
    blocks = series.of(node)
    if not blocks:
        return None
    newest = blocks[-1]
    row = newest.row[node]
    difference, bound = newest.difference[row], newest.bound
    parts = len(bound)
    seen = np.full(parts, -1)
    if not any(block.outside[block.row[node]].any() for block in blocks):
        nowhere = np.zeros(parts, dtype=np.bool_)
        return Standing(tuple(blocks), nowhere, nowhere, nowhere, seen, newest.half_simultaneous[row], newest.tail)
    side = np.zeros(parts)
    for number, block in enumerate(blocks[:-1]):
        outside = block.outside[block.row[node]] & (seen < 0)
        seen[outside] = number
        side[outside] = np.sign(block.difference[block.row[node]][outside])
    before = seen >= 0
    confirming = newest.half(tail, row) if before.any() else newest.half_simultaneous[row]
    with np.errstate(invalid="ignore"):
        confirmed = before & (difference * side - confirming > bound)
        refuted = before & (difference * side <= bound)
    fresh = newest.outside[row] & ~confirmed
    seen[fresh & ~before] = len(blocks) - 1
    refuted &= ~fresh
    suspected = (before & ~confirmed & ~refuted) | fresh
    half = np.where(before, confirming, newest.half_simultaneous[row])
    tails = np.where(before, tail, newest.tail)
    return Standing(tuple(blocks), confirmed, suspected, refuted, seen, half, tails)


class Pooled(msgspec.Struct, frozen=True):
    """The difference of a node (part) from all its jobs that count towards SAME, its error and half of the 90 %
    interval; how many runs and jobs it rests on. `row` is the node's in the block of the first jobs."""

    row: int
    difference: Floats
    error: Floats
    half_90: Floats
    runs: npt.NDArray[np.int64]
    jobs: int


def pooled(series: Series) -> dict[int, Pooled]:
    """By node the mean of its independent jobs, weighted by their errors.

    A job in which something was outside its bound was chosen for it: only those after it count.
    """
    alike: dict[tuple[int, ...], list[int]] = {}
    chosen = [np.asarray(block.outside.any(axis=1)) for block in series.blocks]
    for node in series.matrix.nodes.tolist():
        jobs = [number for number, block in enumerate(series.blocks) if node in block.row]
        last = max((at for at, job in enumerate(jobs[:-1]) if chosen[job][series.blocks[job].row[node]]), default=-1)
        alike.setdefault(tuple(jobs[last + 1 :]), []).append(node)
    return {
        node: of_node
        for jobs, nodes in alike.items()
        for node, of_node in zip(nodes, _pooled(series, [series.blocks[job] for job in jobs], nodes), strict=True)
    }


def _pooled(series: Series, used: Sequence[Block], nodes: Sequence[int]) -> Iterator[Pooled]:
    """Of nodes of which the same blocks count."""
    first = [series.first.row[node] for node in nodes]
    rows = [[block.row[node] for node in nodes] for block in used]
    if len(used) == 1:
        (block,), (own_rows,) = used, rows
        for at, row in zip(first, own_rows, strict=True):
            yield Pooled(at, block.difference[row], block.error[row], block.half_90[row], block.runs[row], 1)
        return
    total, weighted = np.zeros((2, len(nodes), len(used[0].bound)))
    for block, of_nodes in zip(used, rows, strict=True):
        difference = block.difference[of_nodes]
        weight = np.where(np.isfinite(difference), 1 / (block.of_runs[of_nodes] + block.of_job[of_nodes]), 0.0)
        total += weight
        weighted += weight * np.nan_to_num(difference)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = np.where(total > 0, weighted / total, np.nan)
        own_variance = np.where(total > 0, 1 / total, np.inf)
    error = np.sqrt(own_variance + _most([block.of_template for block in used], rows))
    runs = np.sum([block.runs[of_nodes] for block, of_nodes in zip(used, rows, strict=True)], axis=0)
    # Student's quantile falls with the degrees of freedom: that of the fewest is the largest
    half = np.where(runs < 2, np.inf, _most([block.quantile_90 for block in used], rows) * error)
    for number, at in enumerate(first):
        yield Pooled(at, mean[number], error[number], half[number], runs[number], len(used))


def _most(arrays: Sequence[Floats], rows: Sequence[Sequence[int]]) -> Floats:
    """The largest of the rows of arrays, element by element."""
    return np.asarray(np.max([array[of_nodes] for array, of_nodes in zip(arrays, rows, strict=True)], axis=0))
