"""Runs of a job that disagree with its others: one bad run widens no interval of any other node."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import numpy.typing as npt

from nodeprint.data.places.measured import Measured
from nodeprint.stats.disagreement import disagreement
from nodeprint.stats.robust import robust_sd, row_medians

Floats = npt.NDArray[np.float64]


def odd_runs(reduced: Measured, tolerance: float = 0.0) -> Mapping[int, float]:
    """Relative difference of odd runs from the others of their job, by row of a quantity (0.5 is 50% more).

    If two runs disagree, the odd one is farther from the median of all others of the fleet. A run is not odd if it
    differs as much as runs of the fleet usually do. Nor is it odd if it moves the mean of its job by less than
    `tolerance`. One run of five that is 10% off decides nothing; it shows in the spread of its node's runs.
    """
    jobs = [rows for of_node in reduced.rows.values() for rows in of_node.values() if len(rows) > 1]
    suspicious = [reduced.rows[node][job] for node, job in sorted(reduced.differing)]
    if not suspicious:
        return {}
    noise = _between_runs(reduced, jobs)
    odd: dict[int, float] = {}
    for rows in suspicious:
        of_job = dict(_odd(reduced, rows, noise))
        if sum(of_job.values()) > tolerance * len(rows):
            odd |= of_job
    return odd


def _odd(reduced: Measured, rows: list[int], noise: float) -> Iterator[tuple[int, float]]:
    level = reduced.level[rows]
    odd = disagreement(level, noise)
    if odd is not None and len(rows) == 2:
        others = np.setdiff1d(np.arange(len(reduced.level)), rows)
        if not len(others):
            return
        odd = disagreement(np.concatenate([level, row_medians(reduced.level[others].T)[None]]), noise)
    for number in odd.odd if odd is not None else ():
        if number < len(rows):
            yield rows[number], odd.factor - 1 if odd is not None else 0.0


def _between_runs(reduced: Measured, jobs: list[list[int]]) -> float:
    """The relative standard deviation of a run from its job's median that half of the fleet's jobs do not exceed."""
    spreads = []
    for rows in jobs:
        level = reduced.level[rows].astype(np.float64)
        with np.errstate(invalid="ignore", divide="ignore"):
            spreads.append(robust_sd(row_medians(level / row_medians(level.T) - 1)))
    return sorted(spreads)[(len(spreads) - 1) // 2]
