"""Values of cell measurements without a row or figure of their own in a machine's summary.

The summary thus includes every measurement, such as one of a new kernel.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping

from nodeprint.judge.verdict import CellFigure


def ends(cells: Iterable[CellFigure], shown: Callable[[str], bool]) -> Mapping[str, tuple[CellFigure, ...]]:
    """Map each measurement that is not `shown` to its only cell, or to those with the lowest and highest medians."""
    of_each: dict[str, list[CellFigure]] = {}
    for cell in cells:
        if math.isfinite(cell.median) and not shown(cell.measurement):
            of_each.setdefault(cell.measurement, []).append(cell)
    return {
        measurement: (min(members, key=_median), max(members, key=_median)) if len(members) > 1 else (members[0],)
        for measurement, members in of_each.items()
    }


def _median(cell: CellFigure) -> float:
    return cell.median
