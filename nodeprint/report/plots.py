"""Plots: dots, lines, distributions and effects on axes. As in `figures`, each takes data and labels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np

from nodeprint.report import scale
from nodeprint.report.axes import Axis, Plane
from nodeprint.report.drawing import ALARM, HAIR, QUIET, SMALL, TEXT, WASH, Drawing
from nodeprint.report.old_figures import (
    BAND_DEPTH,
    PAGE,
    PENS,
    Band,
    Figure,
    Floats,
    finished,
    with_room,
)


def strip(
    places: Sequence[str],
    values: Floats,
    peers: Floats,
    *,
    name: str,
    caption: str,
    unit: str,
    flagged: Sequence[int] = (),
    bound: float | None = None,
    within: float | None = None,
    groups: Sequence[Band] = (),
    width: float = PAGE,
) -> Figure:
    """One value a place (p) as dots, those of peers (peers x p) behind them in grey, places at `flagged` as triangles.

    Dashed lines are at +-`bound`, dotted ones at +-`within`, in the unit of the values; `groups` are brackets below.
    """
    n, left, height = len(places), 16.0, 34.0
    longest = max([len(text) for text in places], default=1)
    step = (width - left - 2) / max(n, 1)
    every = 1
    while every * step < 2.4:
        every *= 2
    short = longest * 1.2 < every * step
    foot = 3.5 if short else min(longest, 8) * 1.25 + 1.5
    drawing = Drawing(width, 2 + height + foot + BAND_DEPTH * len(groups) + 1)
    limits = [sign * line for line in (bound, within) if line for sign in (1, -1)]
    axis = Axis.of(np.concatenate([values.ravel(), peers.ravel(), limits]), log=False)
    plane = Plane(left, 2.0, width - left - 2, height, Axis(0.0, float(max(n, 1)), False), axis)
    plane.levels(drawing, unit)
    plane.bounds(drawing, bound)
    plane.margin(drawing, within)
    if len(peers):
        _ranges(drawing, plane, peers)
    _points(drawing, plane, places, values, set(flagged), float(np.clip(step * 0.35, 0.35, 0.9)))
    below = 2 + height
    for i in range(0, n, every):
        if short:
            drawing.text(plane.x(i + 0.5), below + 2, places[i], size=SMALL, anchor="middle")
        else:
            drawing.text(plane.x(i + 0.5), below + 1, places[i][:8], size=SMALL, anchor="end", turned=True)
    _brackets_below(drawing, plane, [with_room(band, n, plane.width) for band in groups], below + foot)
    data: dict[str, Sequence[Any]] = {"place": list(places), "value": values.tolist()}
    data |= {f"peer {k + 1}": row.tolist() for k, row in enumerate(peers)}
    return finished(drawing, name, caption, f"{n} places ({unit}). {caption}", data)


def _ranges(drawing: Drawing, plane: Plane, peers: Floats) -> None:
    """A grey line from the lowest to the highest of the peers (peers x p) at each place that one of them has."""
    known = np.isfinite(peers)
    at = np.flatnonzero(known.any(axis=0))
    low = plane.y(np.where(known, peers, np.inf).min(axis=0)[at])
    high = plane.y(np.where(known, peers, -np.inf).max(axis=0)[at])
    x = plane.x(at + 0.5)
    drawing.lines(np.stack([x, low, x, high], axis=1).tolist(), stroke=HAIR, width=0.9)


def _points(
    drawing: Drawing, plane: Plane, places: Sequence[str], values: Floats, flagged: set[int], radius: float
) -> None:
    """Dots, and triangles with their names where there is room for these."""
    last, right = -1e9, plane.left + plane.width
    known = np.isfinite(values)
    quiet = known.copy()
    quiet[list(flagged)] = False
    at = np.flatnonzero(quiet)
    if at.size:
        drawing.dots(np.stack([plane.x(at + 0.5), plane.y(values[at])], axis=1).tolist(), radius=radius)
    for i in sorted(i for i in flagged if known[i]):
        x, y = plane.x(i + 0.5), plane.y(float(values[i]))
        drawing.triangle(x, y, radius=max(1.1, radius))
        if x - last > 14:
            drawn_at = min(max(x, plane.left + 4), right - 4)
            drawing.text(drawn_at, y - 2.2, places[i], size=TEXT, fill=ALARM, anchor="middle", bold=True)
            last = x


def _brackets_below(drawing: Drawing, plane: Plane, groups: Sequence[Band], y: float) -> None:
    for band in groups:
        pen, dash = PENS[band.level]
        for g in band.groups:
            start, stop = plane.x(g.start + 0.1), plane.x(g.stop - 0.1)
            drawing.line(start, y, stop, y, width=pen, dash=dash)
            drawing.text((start + stop) / 2, y + 1.6, g.label, size=SMALL, anchor="middle")
        drawing.text(plane.left - 1, y + 1, band.name[-9:].removeprefix("= "), size=SMALL, anchor="end", fill=QUIET)
        y += BAND_DEPTH


class Series(msgspec.Struct, frozen=True):
    """A line of a plot: its name, x and y, and the spread of others around it (low, high), where there is one."""

    name: str
    x: Floats
    y: Floats
    low: Floats | None = None
    high: Floats | None = None


#: Colours and dashes of lines, told apart without colour too (Okabe and Ito's, on white).
_LINES = (("#1c2329", ""), ("#0072b2", "2 1"), ("#d55e00", "0.6 0.6"), ("#009e73", "3 0.8 0.6 0.8"),
    ("#cc79a7", "1 0.5"), ("#56b4e9", ""), ("#e69f00", "2 1"), ("#505a64", "0.6 0.6"))  # fmt: skip


def lines(
    series: Sequence[Series],
    *,
    name: str,
    caption: str,
    x: str,
    y: str,
    log_x: bool = False,
    log_y: bool = False,
    width: float = 88.0,
    x_text: Any = None,
    marks: Sequence[tuple[float, str]] = (),
) -> Figure:
    """Lines over one pair of axes; `marks` are vertical lines with a name; `x_text` writes a tick of x."""
    height, left, top = 48.0, 12.0, 3.0
    series = [one for one in series[: len(_LINES)] if np.isfinite(one.y).any()]
    of_x = np.concatenate([one.x for one in series]) if series else np.ones(1)
    of_y = np.concatenate(
        [np.concatenate([v for v in (o.y, o.low, o.high) if v is not None]) for o in series] or [np.ones(1)]
    )
    sideways, upwards = Axis.of(of_x, log_x), Axis.of(of_y, log_y, zero=not log_y)
    drawing = Drawing(width, top + height + 8 + 2.8 * -(-len(series) // 2))
    wide = width - left - 3

    def points(xs: Floats, ys: Floats) -> list[tuple[float, float]]:
        good = np.isfinite(xs) & np.isfinite(ys)
        return [
            (left + sideways.at(float(a)) * wide, top + (1 - upwards.at(float(b))) * height)
            for a, b in zip(xs[good], ys[good], strict=True)
        ]

    for value, text in upwards.ticks():
        level = top + (1 - upwards.at(value)) * height
        drawing.line(left, level, left + wide, level, stroke=HAIR, width=0.12)
        drawing.text(left - 0.8, level, text, size=SMALL, anchor="end")
    for value, text in sideways.ticks():
        drawing.line(
            left + sideways.at(value) * wide, top + height, left + sideways.at(value) * wide, top + height + 0.8
        )
        said = x_text(value) if x_text else text
        drawing.text(left + sideways.at(value) * wide, top + height + 2.2, said, size=SMALL, anchor="middle")
    for value, text in marks:
        if 0 <= sideways.at(value) <= 1:
            at = left + sideways.at(value) * wide
            drawing.line(at, top, at, top + height, stroke=QUIET, width=0.15, dash="0.6 0.6")
            drawing.text(at + 0.6, top + 1.4, text, size=SMALL, fill=QUIET)
    drawing.rect(left, top, wide, height, stroke=QUIET, line=0.14)
    drawing.text(left + wide / 2, top + height + 5.2, x, size=SMALL, anchor="middle", fill=QUIET)
    drawing.text(1.4, top + height / 2, y, size=SMALL, anchor="middle", fill=QUIET, turned=True)
    data: dict[str, list[Any]] = {"series": [], "x": [], "y": []}
    for i, one in enumerate(series):
        colour, dash = _LINES[i]
        if one.low is not None and one.high is not None:
            around = points(one.x, one.low) + points(one.x, one.high)[::-1]
            drawing.path(around, fill=colour, closed=True, opacity=0.15)
        drawing.path(points(one.x, one.y), stroke=colour, width=0.35, dash=dash)
        for px, py in points(one.x, one.y) if len(one.x) <= 40 else ():
            drawing.dot(px, py, radius=0.45, fill=colour)
        at, row = left + (i % 2) * wide / 2, top + height + 8.5 + 2.8 * (i // 2)
        drawing.line(at, row, at + 6, row, stroke=colour, width=0.4, dash=dash)
        drawing.text(at + 7, row, one.name[:34], size=SMALL)
        data["series"] += [one.name] * len(one.x)
        data["x"] += one.x.tolist()
        data["y"] += one.y.tolist()
    return finished(drawing, name, caption, f"Lines of {y} over {x}. {caption}", data)


class Passes(msgspec.Struct, frozen=True):
    """A run of one pair: values and 95 % intervals of its passes, fastest batch and 99th percentile."""

    run: str
    values: Floats
    low: Floats
    high: Floats
    fastest: float
    p99: float


def passes(runs: Sequence[Passes], unit: str, *, name: str, caption: str, width: float = 108.0) -> Figure:
    """The passes of one pair, run by run, on one axis; shaded from the fastest batch to the 99th percentile."""
    seen = np.concatenate([np.concatenate([r.values, r.low, r.high, [r.fastest]]) for r in runs])
    seen = seen[np.isfinite(seen)]
    start, end = float(seen.min()), float(seen.max())
    # The axis holds the usual range: a 99th percentile disturbed by the scheduler would compress all else.
    tails = [r.p99 for r in runs if np.isfinite(r.p99)]
    end = max(end, min(max(tails, default=end), start + 5 * (end - start)))
    pad = max(0.05 * (end - start), 0.01 * end)
    start, end = max(0.0, start - pad), end + pad
    left, row = 12.0, 2.2
    wide = width - left - 3
    drawing = Drawing(width, sum(3 + row * len(r.values) for r in runs) + 7)

    def at(value: float) -> float:
        return left + float(np.clip((value - start) / (end - start), 0, 1)) * wide

    y = 1.0
    for run in runs:
        tall = 1.5 + row * len(run.values)
        drawing.text(0, y + 1.2, f"run {run.run}", size=SMALL, fill=QUIET)
        drawing.rect(at(run.fastest), y, at(run.p99) - at(run.fastest), tall, fill=WASH)
        if run.p99 > end:
            drawing.text(left + wide + 0.4, y + tall / 2, "→", size=TEXT, fill=QUIET)
        for i, value in enumerate(run.values):
            level = y + 1.8 + i * row
            low, high = run.low[i], run.high[i]
            if np.isfinite(low) and np.isfinite(high):
                drawing.line(at(float(low)), level, at(float(high)), level, stroke=QUIET, width=0.35)
            drawing.dot(at(float(value)), level, radius=0.7)
        y += tall + 1.5
    drawing.line(left, y, left + wide, y, stroke=QUIET, width=0.14)
    for value, text in scale.ticks(start, end, 6):
        drawing.line(at(value), y, at(value), y + 0.8, stroke=QUIET, width=0.14)
        drawing.text(at(value), y + 2.2, text, size=SMALL, anchor="middle")
    drawing.text(left + wide / 2, y + 4.8, unit, size=SMALL, anchor="middle", fill=QUIET)
    data: dict[str, list[Any]] = {"run": [], "pass": [], unit: []}
    for run in runs:
        data["run"] += [run.run] * len(run.values)
        data["pass"] += list(range(len(run.values)))
        data[unit] += run.values.tolist()
    return finished(drawing, name, caption, f"{len(runs)} runs of one pair. {caption}", data)
