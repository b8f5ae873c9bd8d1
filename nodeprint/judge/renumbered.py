"""Whether an exchange of two components explains the differences of an imported node.

A matrix of another tool states neither the memory of its lines nor the order of its CPUs. If lines are on the other
socket, or components have another order, the matrix matches a healthy machine with two components exchanged. The
exchange is then the one explanation, and no finding concerns the hardware.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations

import numpy as np
import numpy.typing as npt

from nodeprint.data.places.layout import CCD, QUADRANT, SOCKET, Ints, codes
from nodeprint.judge.deviations import Deviations, run_means
from nodeprint.judge.reduction import Matrix, term_values
from nodeprint.stats import intervals

#: Levels that are tried, the widest first. Finer ones have too many components for an exchange to be meaningful.
_LEVELS = (SOCKET, QUADRANT, CCD)


def exchange(every: Sequence[Deviations], i: int) -> tuple[str, str] | None:
    """The two components (such as `ccd 3`) whose exchange brings all components of a node within tolerance. `i` is its
    number in the fleet. None if there is no such exchange, or the node has no pairs."""
    of_pairs = [series for series in every if i in series.matrix.place and series.matrix.measured.of_pairs]
    if not of_pairs:
        return None
    for exchanged, order in _exchanges(of_pairs[0].matrix):
        if all(not _outside(series, i, order) for series in of_pairs):
            return exchanged
    return None


def _exchanges(matrix: Matrix) -> Iterator[tuple[tuple[str, str], Ints]]:
    """Exchanges of two components of equal size, and the slots in the order that they have then."""
    layout = matrix.terms.layout
    for level in _LEVELS:
        part_of = codes(layout.slots[:, : level + 1])
        for first, second in combinations(np.unique(part_of).tolist(), 2):
            a, b = np.flatnonzero(part_of == first), np.flatnonzero(part_of == second)
            if len(a) != len(b):
                continue
            order = np.arange(len(part_of))
            order[a], order[b] = b, a
            name = layout.levels[level]
            yield (f"{name} {first}", f"{name} {second}"), order


def _outside(series: Deviations, i: int, order: Ints) -> bool:
    """Whether a node with its slots in another order is outside a tolerance in any job."""
    matrix, position = series.matrix, series.matrix.place[i]
    pairs, count = matrix.terms.layout.pairs, len(order)
    place = np.zeros((count, count), dtype=np.int64)
    place[pairs[:, 0], pairs[:, 1]] = place[pairs[:, 1], pairs[:, 0]] = np.arange(len(pairs))
    exchanged = place[order[pairs[:, 0]], order[pairs[:, 1]]]
    for row in matrix.jobs(position):
        level = matrix.level[list(matrix.rows[row])][:, exchanged]
        values: npt.NDArray[np.float64] = term_values(level, matrix.template, matrix.terms)
        difference = run_means(values[None])[0] - series.reference.center[position]
        if intervals.outside(difference, series.mean_of([row]).half_of_job[0], series.tolerance).any():
            return True
    return False
