"""Movements that all nodes share from one day to another, as by a season or an update: no node differs."""

from __future__ import annotations

import msgspec
import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

#: So many nodes, or all there are, have to be measured in a round and in another one before it is known what they
#: share.
FEWEST = 3
#: The variance of a median, times that of a mean.
_OF_MEDIAN = np.pi / 2
#: Alternating medians and means converge in two or three steps if all nodes are in all rounds. They converge later if
#: rounds share only some nodes. They have converged if nothing moves by more than _SETTLED.
_STEPS, _SETTLED = 200, 1e-5
#: A round is a day.
_DAY_S = 86400.0


class Rounds(msgspec.Struct, frozen=True):
    """The round of each job (`number`, job) and the shift of all nodes in each (`shift`, round x component). The
    variance of a shift is `error` (round) times that of one job. `first` is the first job of each node."""

    number: Ints
    shift: Floats
    error: Floats
    first: Ints

    def factor(self, jobs: Ints, first: Ints) -> Floats:
        """The variance, in variances of one job, that shifts add to the difference of means over some `jobs` from that
        of all nodes. The jobs of each mean follow each other, and `first` is where they begin (mean). Shared shifts
        cancel."""
        if not self.error.any():
            return np.zeros(len(first))
        apart = self._coverage(jobs, first) - self._coverage(np.arange(len(self.number)), self.first).mean(axis=0)
        return np.asarray((apart**2 * self.error).sum(axis=1))

    def _coverage(self, jobs: Ints, first: Ints) -> Floats:
        """The share of each mean's jobs in each round (mean, round)."""
        of_round = self.number[jobs][:, None] == np.arange(len(self.error))
        sizes = np.diff(np.append(first, len(jobs)))
        return np.asarray(np.add.reduceat(of_round, first, axis=0, dtype=np.float64) / sizes[:, None])


def rounds(means: Floats, owner: Ints, began: Floats) -> Rounds:
    """The rounds of jobs and their shifts, from the `means` of jobs (job, component; NaN if it has none). Jobs `began`
    at some moments (job; seconds since 1970, NaN if unknown). `owner` (job) numbers the node of each, in order.

    A round is a day. Its shift is the median, over the nodes that are also measured in other rounds, of the difference
    of their job from their mean. It is 0 for fewer than FEWEST nodes.
    """
    nodes = int(owner[-1]) + 1 if len(owner) else 0
    first = np.searchsorted(owner, np.arange(nodes))
    days = np.where(np.isfinite(began), np.floor(began / _DAY_S), -1.0)
    names, number = np.unique(days, return_inverse=True)
    shift, error = np.zeros((len(names), means.shape[1])), np.zeros(len(names))
    out = Rounds(number, shift, error, first)
    if len(names) < 2:
        return out
    several = np.minimum.reduceat(number, first) < np.maximum.reduceat(number, first)
    informing = several[owner]
    by_round = [np.flatnonzero(informing & (number == day)) for day in range(len(names))]
    enough = min(FEWEST, nodes)
    by_round = [jobs if len(np.unique(owner[jobs])) >= max(enough, 2) else jobs[:0] for jobs in by_round]
    count = np.maximum(np.add.reduceat(np.isfinite(means), first, axis=0, dtype=np.int64), 1)
    for _ in range(_STEPS):
        rest = means - shift[number]
        of_node = np.add.reduceat(np.nan_to_num(rest), first, axis=0) / count
        former = shift.copy()
        for day, jobs in enumerate(by_round):
            if len(jobs):
                shift[day] = np.nan_to_num(_median(means[jobs] - of_node[owner[jobs]]))
        if np.abs(shift - former).max() < _SETTLED:
            break
    for day, jobs in enumerate(by_round):
        error[day] = _OF_MEDIAN / len(jobs) if len(jobs) else 0.0
    return out


def _median(values: Floats) -> Floats:
    """The median over rows of the values present; NaN if there are none."""
    gaps = np.isnan(values)
    if not gaps.any():
        return np.asarray(np.median(values, axis=0))
    known = np.where(gaps.all(axis=0), 0.0, values)
    return np.asarray(np.nanmedian(known, axis=0))
