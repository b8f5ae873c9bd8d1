"""Two stages: a part that is outside its bound in one job is suspected; an independent job confirms or refutes it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import msgspec
import numpy as np
import numpy.typing as npt

from nodeprint.judge.deviations import Block
from nodeprint.judge.reduction import Matrix
from nodeprint.stats import intervals

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
    the newest job."""

    blocks: tuple[Block, ...]
    confirmed: Bools
    suspected: Bools
    refuted: Bools
    seen: npt.NDArray[np.int64]
    half: Floats

    @property
    def newest(self) -> Block:
        """The node's newest job."""
        return self.blocks[-1]


def confirming_tail(series: Sequence[Series], level: float) -> float:
    """The probability at each end of a confirming interval: `level` shared by all that is suspected."""
    return level / (2 * max(1, sum(one.suspected for one in series)))


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
    return Standing(tuple(blocks), confirmed, suspected, refuted, seen, half)


class Pooled(msgspec.Struct, frozen=True):
    """The difference of a node (part) from all its jobs that count towards SAME, its error and half of the 90 %
    interval; how many runs and jobs it rests on. `row` is the node's in the block of the first jobs."""

    row: int
    difference: Floats
    error: Floats
    half_90: Floats
    runs: npt.NDArray[np.int64]
    jobs: int


def pooled(blocks: Sequence[Block], node: int) -> Pooled:
    """The mean of a node's independent jobs, weighted by their errors.

    A job in which something was outside its bound was chosen for it: only those after it count.
    """
    first = blocks[0].row[node]
    last = max((number for number, b in enumerate(blocks[:-1]) if b.outside[b.row[node]].any()), default=-1)
    used = blocks[last + 1 :]
    newest = used[-1]
    if len(used) == 1:
        row = newest.row[node]
        return Pooled(first, newest.difference[row], newest.error[row], newest.half_90[row], newest.runs[row], 1)
    own = np.stack([block.of_runs[block.row[node]] + block.of_job[block.row[node]] for block in used])
    shared = np.max([block.of_template[block.row[node]] for block in used], axis=0)
    difference = np.stack([block.difference[block.row[node]] for block in used])
    finite = np.isfinite(difference)
    weight = np.where(finite, 1 / own, 0.0)
    total = weight.sum(axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = np.where(total > 0, (weight * np.nan_to_num(difference)).sum(axis=0) / total, np.nan)
        own_variance = np.where(total > 0, 1 / total, np.inf)
    degrees = np.min([block.degrees[block.row[node]] for block in used], axis=0)
    error = np.sqrt(own_variance + shared)
    runs = np.sum([block.runs[block.row[node]] for block in used], axis=0)
    half = intervals.half_width(error, degrees, intervals.EQUIVALENCE)
    return Pooled(first, mean, error, np.where(runs < 2, np.inf, half), runs, len(used))
