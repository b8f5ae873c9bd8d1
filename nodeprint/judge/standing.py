"""What the jobs of a node show of each component, all jobs alike: in how many of them it is outside its tolerance.

It depends on the set of jobs and runs, never on their order or on which of them was asked for.
"""

from __future__ import annotations

import msgspec
import numpy as np
import numpy.typing as npt

from nodeprint.data.places.layout import Ints
from nodeprint.judge.deviations import Deviations
from nodeprint.judge.reduction import Reals, mean_of_runs

Bools = npt.NDArray[np.bool_]

#: Up to this many nodes it has to be shown that the others agree before one of them is named.
FEW_NODES = 4


class Standing(msgspec.Struct, frozen=True):
    """What the jobs of one node show of each component (component).

    `confirmed`: two jobs are outside the tolerance on one side, or all jobs together are and two of them are beyond it.
    `intermittent`: one job is outside and another inside, or several runs of a job are far beyond and others within.
    `suspected`: one job is outside, and no other decides. `shows` (job, component) are the jobs that show it, on the
    side that most of them are on; `runs` (job, run, component) the runs that are far beyond where others of their job
    are not.
    """

    series: Deviations
    position: int
    confirmed: Bools
    suspected: Bools
    intermittent: Bools
    shows: Bools
    runs: Bools

    def level(self, components: Ints) -> Reals:
        """The node's mean over the runs of `evidence` (place), in the measurement's unit."""
        matrix, rows = self.series.matrix, np.array(self.series.matrix.jobs(self.position))
        showing = self.shows[:, components].any(axis=1)
        if showing.any() or not self.runs[:, :, components].any():
            return matrix.level_of((rows[showing] if showing.any() else rows).tolist())
        of_runs = np.asarray(self.runs[:, :, components].any(axis=2))
        runs = [
            matrix.rows[row][run]
            for row, of_job in zip(rows.tolist(), of_runs, strict=True)
            for run in np.flatnonzero(of_job).tolist()
        ]
        return np.asarray(mean_of_runs(matrix.level[runs][None])[0])

    def evidence(self, components: Ints | int) -> Deviations:
        """The node by the jobs that show one of some components, or by the runs that do."""
        rows = np.array(self.series.matrix.jobs(self.position))
        chosen = np.atleast_1d(components)
        showing = self.shows[:, chosen].any(axis=1)
        if showing.any():
            return self.series.mean_of(rows[showing])
        if not self.runs[:, :, chosen].any():
            return self.series.mean_of(rows)
        of_runs = np.asarray(self.runs[:, :, chosen].any(axis=2))
        showing = of_runs.any(axis=1)
        return self.series.mean_of(rows[showing], of_runs[showing])


def standings(series: Deviations) -> dict[int, Standing]:
    """By node (its number in the fleet) what its jobs show, of nodes of which they show anything."""
    matrix, tolerance = series.matrix, series.tolerance
    first = matrix.first_row[:-1]
    outside = series.outside
    inside = series.inside if _several(series) else np.zeros((0, 0), dtype=np.bool_)
    candidates = np.logical_or.reduceat(outside.any(axis=1), first) | series.outside_pooled.any(axis=1)
    restless = np.logical_or.reduceat(_restless(series), first)
    none = np.zeros((0, matrix.values.shape[1], len(tolerance)), dtype=np.bool_)
    out = {}
    for position in np.flatnonzero(candidates | restless).tolist():
        rows = matrix.jobs(position)
        of_node = slice(rows.start, rows.stop)
        difference = series[of_node].difference
        with np.errstate(invalid="ignore"):
            above, below = difference > 0, difference < 0
            beyond = np.maximum((difference > tolerance).sum(axis=0), (difference < -tolerance).sum(axis=0))
        on_sides = outside[of_node] & above, outside[of_node] & below
        shows = np.where(on_sides[0].sum(axis=0) >= on_sides[1].sum(axis=0), *on_sides)
        count = shows.sum(axis=0)
        confirmed = (count > 1) | (series.outside_pooled[position] & (beyond > 1))
        contradicted = inside[of_node].any(axis=0) if len(rows) > 1 else np.zeros_like(confirmed)
        far = series.far_runs(position) if restless[position] else none
        in_runs = far.any(axis=(0, 1))
        # what single runs contradict is intermittent if other jobs could have shown it as a whole
        intermittent = ~confirmed & np.where(count > 0, contradicted | (in_runs & (len(rows) > 1)), in_runs)
        suspected = ~confirmed & ~intermittent & (count > 0)
        if (confirmed | suspected | intermittent).any():
            number = int(matrix.nodes[position])
            out[number] = Standing(series, position, confirmed, suspected, intermittent, shows, far)
    return out


def _restless(series: Deviations) -> Bools:
    """Jobs of which some run is so far from another that several may be far from the peers and others not (row)."""
    values = series.matrix.values
    if values.shape[1] < 3:  # of two runs none is outvoted
        return np.zeros(len(values), dtype=np.bool_)
    low, high = np.fmin.reduce(values, axis=1), np.fmax.reduce(values, axis=1)
    with np.errstate(invalid="ignore"):
        return np.asarray((high - low > series.tolerance).any(axis=1))


def _several(series: Deviations) -> bool:
    """Whether any node has several jobs."""
    return len(series.spreads.means) > len(series.matrix.nodes)
