"""Class medians of every node, with intervals over its runs."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
import numpy.typing as npt
from scipy.special import stdtrit

from nodeprint.layout import CLASSES
from nodeprint.verdict.matrices import Reduced
from nodeprint.verdict.outcome import ClassFigure


def figures_of(reduced: Sequence[Reduced], nodes: int) -> list[list[ClassFigure]]:
    """By node: per measurement, home and class the median over runs of each run's median, with its 95 % interval.

    The interval is Student's over runs, NaN with one run.
    """
    out: list[list[ClassFigure]] = [[] for _ in range(nodes)]
    for one in reduced:
        stack = one.stack
        latest: dict[int, int] = {}
        for node, job in zip(stack.node.tolist(), stack.job.tolist(), strict=True):
            latest[node] = max(job, latest.get(node, 0))
        rows_of: dict[int, list[int]] = {}
        for row, (node, job) in enumerate(zip(stack.node.tolist(), stack.job.tolist(), strict=True)):
            if job == latest[node]:
                rows_of.setdefault(node, []).append(row)
        for number, name in enumerate(CLASSES):
            mine = np.flatnonzero(stack.layout.classes == number)
            for h, home in enumerate(stack.homes) if len(mine) else ():
                medians, pairs = _medians(one.latency[:, h, mine])
                for node, rows in rows_of.items():
                    of_runs = [medians[row] for row in rows if medians[row] == medians[row]]
                    if of_runs:
                        out[node].append(
                            _figure(name, stack.measurement, home, of_runs, max(pairs[row] for row in rows))
                        )
    return out


def _medians(cells: npt.NDArray[np.float32]) -> tuple[list[float], list[int]]:
    """Median and number of the measured pairs of each row, NaN without any."""
    gaps = np.isnan(cells)
    if not gaps.any():
        return np.median(cells, axis=1).astype(np.float64).tolist(), [cells.shape[1]] * len(cells)
    medians = [
        float(np.median(row[~gap])) if not gap.all() else float("nan") for row, gap in zip(cells, gaps, strict=True)
    ]
    return medians, (~gaps).sum(axis=1).tolist()


@lru_cache(maxsize=64)
def _t95(degrees: int) -> float:
    return float(stdtrit(degrees, 0.975))


def _figure(name: str, measurement: str, home: int, of_runs: list[float], pairs: int) -> ClassFigure:
    n = len(of_runs)
    ordered = sorted(of_runs)
    centre, half = (ordered[(n - 1) // 2] + ordered[n // 2]) / 2, float("nan")
    if n > 1:
        mean = sum(of_runs) / n
        half = _t95(n - 1) * (sum((value - mean) ** 2 for value in of_runs) / (n - 1) / n) ** 0.5
    return ClassFigure(name, measurement, home, centre, centre - half, centre + half, pairs)
