"""A matrix of latencies for a terminal: every CPU where there is room, part by part where there is not."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from nodeprint.machine.topology.level_names import level_name
from nodeprint.report.pages.blocks import MatrixBlock
from nodeprint.settings.texts import say
from nodeprint.stats.robust import finite_median
from nodeprint.summary.node_summary import PairMatrix

#: Up to so many rows are shown.
_MOST_ROWS = 32
#: What takes the place of CPUs where there are too many: the first of these levels with few enough parts.
_LEVELS = ("core", "ccx", "ccd", "quadrant", "numa", "socket")


def square(matrix: PairMatrix) -> MatrixBlock:
    """The matrix CPU by CPU, or the medians between the parts of the finest level that has few enough."""
    cpus = matrix.places.cpus
    values = matrix.ns
    if len(cpus) <= _MOST_ROWS:
        return _matrix("CPU by CPU, ns", cpus, values)
    for level in _LEVELS:
        parts = np.array(matrix.places.parts.get(level, ()))
        labeled = np.unique(parts[parts >= 0]) if parts.size else parts
        if 2 <= len(labeled) <= _MOST_ROWS:
            rows = [np.flatnonzero(parts == part) for part in labeled]
            medians = np.array([[finite_median(values[np.ix_(a, b)]) for b in rows] for a in rows])
            name = level_name(level)
            return _matrix(say("matrix_of", rows=name, columns=name), labeled.tolist(), medians)
    size = -(-len(cpus) // _MOST_ROWS)  # no labels: neighbors in the order of the system
    rows = [np.arange(start, min(start + size, len(cpus))) for start in range(0, len(cpus), size)]
    medians = np.array([[finite_median(values[np.ix_(a, b)]) for b in rows] for a in rows])
    return _matrix(say("matrix_of_cpus", size=size), [cpus[row[0]] for row in rows], medians)


def _matrix(title: str, names: Iterable[int], values: npt.NDArray[np.float64]) -> MatrixBlock:
    return MatrixBlock(say("core_to_core", what=title), tuple(map(str, names)), tuple(map(tuple, values.tolist())))
