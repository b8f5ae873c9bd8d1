"""Class medians of every node, with intervals over its runs."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
import numpy.typing as npt
from scipy.special import stdtrit

from nodeprint.layout import CLASSES
from nodeprint.verdict.matrices import Reduced, newest_rows
from nodeprint.verdict.outcome import ClassFigure

#: Rows that are in memory twice at once, as a median sorts a copy.
_ROWS = 256


def figures_of(reduced: Sequence[Reduced], nodes: int) -> list[list[ClassFigure]]:
    """By node: per measurement, home and class the median over runs of each run's median, with its 95 % interval.

    The interval is Student's over runs, NaN with one run.
    """
    out: list[list[ClassFigure]] = [[] for _ in range(nodes)]
    for one in reduced:
        stack = one.stack
        rows_of = newest_rows(stack)
        for number, name in enumerate(CLASSES):
            mine = np.flatnonzero(stack.layout.classes == number)
            for h, home in enumerate(stack.homes) if len(mine) else ():
                medians, pairs = medians_of(one.latency[:, h, mine])
                for node, rows in rows_of.items():
                    of_runs = [medians[row] for row in rows if medians[row] == medians[row]]
                    if of_runs:
                        out[node].append(
                            _figure(name, stack.measurement, home, of_runs, max(pairs[row] for row in rows))
                        )
    return out


def medians_of(cells: npt.NDArray[np.floating]) -> tuple[list[float], list[int]]:
    """Median and number of what was measured in each row, NaN without any."""
    medians: list[float] = []
    counts: list[int] = []
    for start in range(0, len(cells), _ROWS):
        rows = cells[start : start + _ROWS]
        known = ~np.isnan(rows)
        counts += known.sum(axis=1).tolist()
        if known.all():
            medians += np.median(rows, axis=1).astype(np.float64).tolist()
        else:
            some = zip(rows, known, strict=True)
            medians += [float(np.median(row[mine])) if mine.any() else float("nan") for row, mine in some]
    return medians, counts


@lru_cache(maxsize=64)
def _t95(degrees: int) -> float:
    return float(stdtrit(degrees, 0.975))


def _figure(name: str, measurement: str, home: int, of_runs: list[float], pairs: int) -> ClassFigure:
    centre, sd, half = over_runs(of_runs)
    low = max(centre - half, 0.0)  # of two runs that differ much Student's interval is wider than the median
    return ClassFigure(name, measurement, home, centre, low, centre + half, pairs, len(of_runs), sd)


def over_runs(values: Sequence[float]) -> tuple[float, float, float]:
    """Median of a few values, their standard deviation and half of Student's 95 % interval, both NaN of one."""
    n = len(values)
    ordered = sorted(values)
    middle = (ordered[(n - 1) // 2] + ordered[n // 2]) / 2
    if n < 2:
        return middle, float("nan"), float("nan")
    mean = sum(values) / n
    sd = (sum((value - mean) ** 2 for value in values) / (n - 1)) ** 0.5
    return middle, sd, _t95(n - 1) * sd / n**0.5
