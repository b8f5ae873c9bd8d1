"""The measurements of cells that have no row or figure of their own where a machine is shown in short: a value of each,
so that none, as that of a new kernel, is nowhere."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping

from nodeprint.judge.verdict import CellFigure


def ends(cells: Iterable[CellFigure], shown: Callable[[str], bool]) -> Mapping[str, tuple[CellFigure, ...]]:
    """By measurement that is not `shown` its only cell, or those with the lowest and the highest median."""
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
