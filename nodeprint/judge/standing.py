"""What the jobs of a node show of each component, all jobs alike: which nodes are outside, by which jobs or runs.

It depends on the set of jobs and runs, never on their order or on which of them was asked for.
"""

from __future__ import annotations

import numpy as np

from nodeprint.data.places.layout import Ints
from nodeprint.judge.deviations import Bools, Deviations
from nodeprint.judge.reduction import Reals, mean_of_runs

#: Up to this many nodes, one of them is named only if the others agree.
FEW_NODES = 4


def outliers(table: Deviations) -> dict[int, Deviations]:
    """By node (its number in the fleet) its row, of nodes whose jobs show anything: the row's columns say what."""
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
    """The jobs of a node (numbers) that show some components, all if none does; and if they do so by some runs alone,
    these runs (job, run)."""
    by_jobs = np.flatnonzero(row.shows[:, components].any(axis=1))
    if len(by_jobs):
        return by_jobs, None
    runs = np.asarray(row.runs_far[:, :, components].any(axis=2))
    if not runs.any():
        return np.arange(len(row.rows)), None
    by_runs = np.flatnonzero(runs.any(axis=1))
    return by_runs, runs[by_runs]
