"""Effects of nodes with their intervals, and values in an order such as that of time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np

from nodeprint.report.axes import BOUND, Axis, Plane
from nodeprint.report.drawing import ALARM, HAIR, INK, QUIET, SMALL, Drawing
from nodeprint.report.old_figures import (
    PAGE,
    Band,
    Figure,
    Group,
    finished,
    runs_of,
    shortened,
)
from nodeprint.report.plots import strip


class Effect(msgspec.Struct, frozen=True):
    """A node's effect with the ends of its interval (NaN without one); `odd` ones ask for attention."""

    node: str
    low: float
    value: float
    high: float
    odd: bool


#: More effects than these are drawn as columns.
_MOST_ROWS = 48


def forest(rows: Sequence[Effect], *, name: str, caption: str, unit: str, bound: float | None) -> Figure:
    """The effects of nodes in the order given; dashed lines at +-`bound`.

    Few nodes are rows with their names; many are columns, of which the odd ones are named.
    """
    seen = np.array([v for r in rows for v in (r.low, r.value, r.high) if np.isfinite(v)] + [bound or 0.0])
    reach = float(np.abs(seen).max()) * 1.08 or 1.0
    axis = Axis(-reach, reach, False)
    drawing = (_columns if len(rows) > _MOST_ROWS else _rows)(rows, axis, unit, bound)
    data: dict[str, Sequence[Any]] = {
        "node": [r.node for r in rows], "low": [r.low for r in rows], "value": [r.value for r in rows],
        "high": [r.high for r in rows],
    }  # fmt: skip
    return finished(drawing, name, caption, f"Effects of {len(rows)} nodes ({unit}). {caption}", data)


def _rows(rows: Sequence[Effect], axis: Axis, unit: str, bound: float | None) -> Drawing:
    left, step = 30.0, 3.2
    foot = len(rows) * step + 1.5
    drawing = Drawing(PAGE, foot + 7.5)
    plane = Plane(left, 0.5, PAGE - left - 3, foot, axis, axis)
    for value, text in axis.ticks():
        drawing.line(plane.x(value), 0.5, plane.x(value), foot, stroke=HAIR, width=0.12)
        drawing.text(plane.x(value), foot + 1.6, text, size=SMALL, anchor="middle")
    for limit in (bound, -bound) if bound else ():
        drawing.line(plane.x(limit), 0.5, plane.x(limit), foot, **BOUND)
    drawing.text(left + plane.width / 2, foot + 4.6, unit, size=SMALL, anchor="middle", fill=QUIET)
    for i, row in enumerate(rows):
        y = 2.2 + i * step
        ends = [plane.x(end if np.isfinite(end) else row.value) for end in (row.low, row.high)]
        drawing.line(ends[0], y, ends[1], y, stroke=QUIET, width=0.35)
        ink = ALARM if row.odd else INK
        drawing.text(left - 1.5, y, shortened(row.node, 20), size=SMALL, anchor="end", fill=ink, bold=row.odd)
        _mark(drawing, plane.x(row.value), y, row.odd, 0.6)
    return drawing


def _columns(rows: Sequence[Effect], axis: Axis, unit: str, bound: float | None) -> Drawing:
    left = 16.0
    drawing = Drawing(PAGE, 53.0)
    plane = Plane(left, 1.5, PAGE - left - 3, 46.0, Axis(0.0, float(len(rows)), False), axis)
    plane.levels(drawing, unit)
    plane.bounds(drawing, bound)
    drawing.text(left + plane.width / 2, 50.5, f"{len(rows)} nodes, sorted", size=SMALL, anchor="middle", fill=QUIET)
    each = plane.width / len(rows)
    for i, row in enumerate(rows):
        x = plane.x(i + 0.5)
        ends = [plane.y(end if np.isfinite(end) else row.value) for end in (row.low, row.high)]
        drawing.line(x, ends[0], x, ends[1], stroke=QUIET, width=min(0.3, 0.6 * each))
        _mark(drawing, x, plane.y(row.value), row.odd, float(np.clip(0.35 * each, 0.25, 0.6)))
        if row.odd:
            drawing.text(x - 1.4, plane.y(row.value), shortened(row.node, 16), size=SMALL, anchor="end", fill=ALARM)
    return drawing


def _mark(drawing: Drawing, x: float, y: float, odd: bool, radius: float) -> None:
    if odd:
        drawing.triangle(x, y, radius=1.0)
    else:
        drawing.dot(x, y, radius=radius)


def order_view(rows: Sequence[tuple[str, str, float, bool]], *, name: str, caption: str, unit: str, x: str) -> Figure:
    """A value per node (name, group, value, odd) in the order given, e.g. of time; groups as brackets below."""
    groups: list[Group] = []
    for start, stop in runs_of([r[1] or None for r in rows]):  # type: ignore[misc]
        if rows[start][1]:
            groups.append(Group(start, stop, rows[start][1]))
    values = np.array([r[2] for r in rows], dtype=np.float64)
    marked = [i for i, r in enumerate(rows) if r[3]]
    shown = (Band("socket", x, tuple(groups)),) if len(groups) > 1 else ()
    return strip(
        [r[0] for r in rows], values, np.empty((0, len(rows))), name=name, caption=caption, unit=unit, flagged=marked,
        groups=shown,
    )  # fmt: skip
