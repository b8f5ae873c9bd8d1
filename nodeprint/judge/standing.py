"""Evidence of a node's jobs for each component, all jobs alike: nodes outside tolerance, and the jobs or runs that show
it.

It depends on the set of jobs and runs, not on their order or on which one was requested.
"""

from __future__ import annotations

import numpy as np

from nodeprint.data.places.layout import Ints
from nodeprint.judge.deviations import Bools, Deviations
from nodeprint.judge.reduction import Reals, mean_of_runs

#: Up to this many nodes, one of them is named only if the others agree.
FEW_NODES = 4


def outliers(table: Deviations) -> dict[int, Deviations]:
    """The rows of nodes whose jobs show a deviation, by number of the node in the fleet."""
    matrix, first = table.matrix, table.matrix.first_row[:-1]
    candidates = np.logical_or.reduceat(table.outside.any(axis=1) | table.restless, first)
    out = {}
    for position in np.flatnonzero(candidates | table.outside_pooled.any(axis=1)).tolist():
        row = table.mean_of(matrix.jobs(position))
        if (row.confirmed | row.suspected | row.intermittent).any():
            out[int(matrix.nodes[position])] = row
    return out


def evidence(row: Deviations, components: Ints | int) -> Deviations:
    """The row of a node by the jobs that show one of some components, or by the runs that do."""
    showing, runs = _showing(row, np.atleast_1d(components))
    return row.mean_of(row.rows[showing], runs)


def level(row: Deviations, components: Ints) -> Reals:
    """The node's mean over the jobs or runs of its `evidence` (place), in the measurement's unit."""
    matrix = row.matrix
    showing, runs = _showing(row, components)
    if runs is None:
        return matrix.level_of(row.rows[showing].tolist())
    chosen = [
        matrix.rows[job][run]
        for job, of_job in zip(row.rows[showing].tolist(), runs, strict=True)
        for run in np.flatnonzero(of_job).tolist()
    ]
    return np.asarray(mean_of_runs(matrix.level[chosen][None])[0])


def _showing(row: Deviations, components: Ints) -> tuple[Ints, Bools | None]:
    """The jobs of a node (numbers) that show some components; all if none does. If only single runs do, also these runs
    (job, run)."""
    by_jobs = np.flatnonzero(row.shows[:, components].any(axis=1))
    if len(by_jobs):
        return by_jobs, None
    runs = np.asarray(row.runs_far[:, :, components].any(axis=2))
    if not runs.any():
        return np.arange(len(row.rows)), None
    by_runs = np.flatnonzero(runs.any(axis=1))
    return by_runs, runs[by_runs]
