"""Values of cell measurements without a row or figure of their own in a machine's summary.

The summary thus includes every measurement, such as one of a new kernel.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from operator import attrgetter

from nodeprint.judge.verdict import CellFigure

_MEDIAN = attrgetter("median")


def ends(cells: Iterable[CellFigure], shown: Callable[[str], bool]) -> Mapping[str, tuple[CellFigure, ...]]:
    """Map each measurement that is not `shown` to its only cell, or to those with the lowest and highest medians."""
    of_each: dict[str, list[CellFigure]] = {}
    for cell in cells:
        if math.isfinite(cell.median) and not shown(cell.measurement):
            of_each.setdefault(cell.measurement, []).append(cell)
    ends_of = {of: (min(cells, key=_MEDIAN), max(cells, key=_MEDIAN)) for of, cells in of_each.items()}
    return {of: both if len(of_each[of]) > 1 else both[:1] for of, both in ends_of.items()}
