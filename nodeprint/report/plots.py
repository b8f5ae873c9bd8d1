"""Plots: dots, lines, distributions and effects on axes. As in `figures`, each takes data and labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from nodeprint.report import scale
from nodeprint.report.drawing import ALARM, HAIR, INK, QUIET, SMALL, TEXT, WASH, Drawing
from nodeprint.report.figures import (
    BAND_DEPTH,
    PAGE,
    PENS,
    Band,
    Column,
    Figure,
    Floats,
    Group,
    finished,
    pixels,
    runs_of,
    with_room,
)
from nodeprint.report.order_statistics import finite_median, quantile
from nodeprint.report.scale import Scale


@dataclass(frozen=True, slots=True)
class _Axis:
    """From low to high, even in the value or in its logarithm."""

    low: float
    high: float
    log: bool

    @classmethod
    def of(cls, values: Floats, log: bool, zero: bool = False) -> _Axis:
        good = values[np.isfinite(values) & ((values > 1e-12) | (not log))]
        low, high = (float(good.min()), float(good.max())) if good.size else (1.0, 2.0)
        if log:
            return cls(low / 1.15, high * 1.15, True)
        low = min(0.0, low) if zero else low
        pad = 0.05 * (high - low) or 0.05 * abs(high) or 1.0
        return cls(low if zero and low == 0 else low - pad, high + pad, False)

    def at(self, value: Any) -> Any:
        """Where a value, or each of several, is from 0 to 1."""
        if self.log:
            return np.log(np.maximum(value, self.low) / self.low) / np.log(self.high / self.low)
        return (value - self.low) / (self.high - self.low)

    def ticks(self) -> list[tuple[float, str]]:
        if not self.log:
            return scale.ticks(self.low, self.high, 5)
        decades = np.log10(self.high / self.low)
        steps = (1, 2, 5) if decades < 2.5 else (1,)
        powers = range(int(np.floor(np.log10(self.low))), int(np.ceil(np.log10(self.high))) + 1)
        found = [step * 10.0**power for power in powers for step in steps]
        return [(value, f"{value:g}") for value in found if self.low <= value <= self.high]


@dataclass(frozen=True, slots=True)
class _Plane:
    """Where a plot is on its drawing (left, top, width, height in mm), and its axes."""

    left: float
    top: float
    width: float
    height: float
    sideways: _Axis
    upwards: _Axis

    def x(self, value: Any) -> Any:
        """Where a value, or each of several, is from the left."""
        return self.left + self.sideways.at(value) * self.width

    def y(self, value: Any) -> Any:
        """Where a value, or each of several, is from the top."""
        return self.top + (1 - self.upwards.at(value)) * self.height

    def levels(self, drawing: Drawing, unit: str) -> None:
        """Hairlines at round values of the vertical axis, with their numbers and its unit."""
        for value, text in self.upwards.ticks():
            drawing.line(self.left, self.y(value), self.left + self.width, self.y(value), stroke=HAIR, width=0.12)
            drawing.text(self.left - 0.8, self.y(value), text, size=SMALL, anchor="end")
        drawing.text(1.4, self.top + self.height / 2, unit, size=SMALL, anchor="middle", fill=QUIET, turned=True)

    def bounds(self, drawing: Drawing, bound: float | None) -> None:
        """Dashed lines at +-`bound`."""
        for limit in (bound, -bound) if bound else ():
            drawing.line(self.left, self.y(limit), self.left + self.width, self.y(limit), **_BOUND)
        if bound:
            drawing.text(
                self.left + self.width, self.y(bound) - 1.4, "bound", size=SMALL, anchor="end", fill=ALARM
            )  # fmt: skip

    def margin(self, drawing: Drawing, within: float | None) -> None:
        """Dotted lines at +-`within`, in which the node is shown to be the same."""
        for limit in (within, -within) if within else ():
            y = self.y(limit)
            drawing.line(self.left, y, self.left + self.width, y, stroke=QUIET, width=0.2, dash="0.3 0.6")
        if within:
            drawing.text(self.left + 0.5, self.y(within) - 1.4, "same within", size=SMALL, fill=QUIET)


#: The line of a bound.
_BOUND: Mapping[str, Any] = {"stroke": ALARM, "width": 0.2, "dash": "1.2 0.8"}


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
    axis = _Axis.of(np.concatenate([values.ravel(), peers.ravel(), limits]), log=False)
    plane = _Plane(left, 2.0, width - left - 2, height, _Axis(0.0, float(max(n, 1)), False), axis)
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


def _ranges(drawing: Drawing, plane: _Plane, peers: Floats) -> None:
    """A grey line from the lowest to the highest of the peers (peers x p) at each place that one of them has."""
    known = np.isfinite(peers)
    at = np.flatnonzero(known.any(axis=0))
    low = plane.y(np.where(known, peers, np.inf).min(axis=0)[at])
    high = plane.y(np.where(known, peers, -np.inf).max(axis=0)[at])
    x = plane.x(at + 0.5)
    drawing.lines(np.stack([x, low, x, high], axis=1).tolist(), stroke=HAIR, width=0.9)


def _points(
    drawing: Drawing, plane: _Plane, places: Sequence[str], values: Floats, flagged: set[int], radius: float
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


def _brackets_below(drawing: Drawing, plane: _Plane, groups: Sequence[Band], y: float) -> None:
    for band in groups:
        pen, dash = PENS[band.level]
        for g in band.groups:
            start, stop = plane.x(g.start + 0.1), plane.x(g.stop - 0.1)
            drawing.line(start, y, stop, y, width=pen, dash=dash)
            drawing.text((start + stop) / 2, y + 1.6, g.label, size=SMALL, anchor="middle")
        drawing.text(plane.left - 1, y + 1, band.name[-9:].removeprefix("= "), size=SMALL, anchor="end", fill=QUIET)
        y += BAND_DEPTH


@dataclass(frozen=True, slots=True)
class Series:
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
    sideways, upwards = _Axis.of(of_x, log_x), _Axis.of(of_y, log_y, zero=not log_y)
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


def distributions(
    classes: Sequence[tuple[str, Floats, Floats]], *, name: str, caption: str, width: float = PAGE
) -> Figure:
    """For each class (name, values of the node, values of its peers), both in percent of the peers' median and in
    ascending order: the node's as a filled shape, the peers' as an outline."""
    row, left, top, bins = 8.0, 26.0, 1.0, 80
    reach = max([quantile(np.abs(v), 0.995) for _, mine, peers in classes for v in (mine, peers) if v.size] or [1.0])
    reach = float(np.clip(reach * 1.1, 2.0, 60.0))
    drawing = Drawing(width, top + row * len(classes) + 8)
    wide = width - left - 2
    edges = np.linspace(-reach, reach, bins + 1)[1:-1]  # the outermost bins hold what is beyond, too

    def shape(values: Floats, base: float) -> list[tuple[float, float]]:
        below = np.searchsorted(values, edges)
        counts = np.diff([0, *below, values.size]) / 1.0
        counts /= max(counts.max(), 1)
        xs = left + (np.arange(bins) + 0.5) / bins * wide
        inner = [(float(x), base - float(c) * row * 0.85) for x, c in zip(xs, counts, strict=True)]
        return [(float(xs[0]), base), *inner, (float(xs[-1]), base)]

    for i, (label, mine, peers) in enumerate(classes):
        base = top + row * (i + 1) - 0.5
        drawing.text(left - 1, base - 2, label, anchor="end", size=SMALL)
        drawing.line(left, base, left + wide, base, stroke=HAIR, width=0.12)
        if peers.size:
            drawing.path(shape(peers, base), fill=WASH, stroke=QUIET, width=0.18)
        if mine.size:
            drawing.path(shape(mine, base), fill="#0072b2", opacity=0.45, stroke="#0072b2", width=0.2)
            middle = left + float(np.clip((finite_median(mine) + reach) / (2 * reach), 0, 1)) * wide
            drawing.line(middle, base - row * 0.9, middle, base, width=0.4)
    foot = top + row * len(classes)
    for value, text in scale.ticks(-reach, reach, 9):
        at = left + (value + reach) / (2 * reach) * wide
        drawing.line(at, foot, at, foot + 0.8, stroke=QUIET)
        drawing.text(at, foot + 2.2, text, size=SMALL, anchor="middle")
    drawing.text(
        left + wide / 2, foot + 5.2, "% from the median of the peers' class", size=SMALL, anchor="middle", fill=QUIET
    )
    data: dict[str, Column] = {
        "class": np.repeat([label for label, _, _ in classes], [mine.size for _, mine, _ in classes]),
        "percent": np.concatenate([mine for _, mine, _ in classes] or [np.empty(0)]),
    }
    return finished(drawing, name, caption, f"Distributions of {len(classes)} classes. {caption}", data)


def density(x: Floats, y: Floats, *, name: str, caption: str, x_name: str, y_name: str, width: float = 62.0) -> Figure:
    """How many points (x, y) fall where, with the line on which both are equal."""
    good = np.isfinite(x) & np.isfinite(y)
    x, y = x[good], y[good]
    both = np.concatenate([x, y]) if x.size else np.array([0.0, 1.0])
    low, high = float(both.min()), float(both.max())
    pad = 0.03 * (high - low) or 1.0
    low, high = low - pad, high + pad
    counts = np.histogram2d(y, x, bins=90, range=((low, high), (low, high)))[0][::-1]
    share = np.log1p(counts) / np.log1p(max(counts.max(), 1))
    colours = Scale(0.0, 1.15)
    entries = colours.index(np.where(counts > 0, 1 - share, np.nan))
    entries[counts == 0] = scale.DIAGONAL
    left, top, side = 12.0, 2.0, width - 14.0
    drawing = Drawing(width, side + 10)
    drawing.image(pixels(entries, colours), left, top, side, side)
    drawing.line(left, top + side, left + side, top, stroke=QUIET, width=0.15, dash="0.8 0.6")
    drawing.rect(left, top, side, side, stroke=QUIET, line=0.14)
    for value, text in scale.ticks(low, high, 5):
        at = (value - low) / (high - low) * side
        drawing.text(left + at, top + side + 2, text, size=SMALL, anchor="middle")
        drawing.text(left - 0.8, top + side - at, text, size=SMALL, anchor="end")
    drawing.text(left + side / 2, top + side + 5, x_name, size=SMALL, anchor="middle", fill=QUIET)
    drawing.text(1.4, top + side / 2, y_name, size=SMALL, anchor="middle", fill=QUIET, turned=True)
    return finished(drawing, name, caption, f"{x.size} points. {caption}", {x_name: x, y_name: y})


def histogram(values: Floats, colours: Scale, *, name: str, caption: str, unit: str, width: float = 46.0) -> Figure:
    """Bars of `values` in the colours of a matrix with discrete ones; the outermost hold what lies beyond, too."""
    bins = colours.bins or 16
    finite = values[np.isfinite(values)]
    part = (finite - colours.low) / (colours.high - colours.low)
    counts = np.bincount(np.clip((part * bins).astype(int), 0, bins - 1), minlength=bins)
    middles = colours.low + (np.arange(bins) + 0.5) / bins * (colours.high - colours.low)
    palette = scale.palette(colours.map)
    height, top = 20.0, 4.0
    drawing = Drawing(width, top + height + 7)
    highest = max(int(counts.max()), 1)
    drawing.text(0, 1.5, f"highest bar: {int(counts.max()):,} pairs".replace(",", "\u202f"), size=SMALL, fill=QUIET)
    each = width / bins
    for i, (count, entry) in enumerate(zip(counts.tolist(), colours.index(middles).tolist(), strict=True)):
        tall = count / highest * height
        fill = "#{:02x}{:02x}{:02x}".format(*palette[entry])
        drawing.rect(i * each, top + height - tall, each, tall, fill=fill, stroke=INK, line=0.08)
    drawing.line(0, top + height, width, top + height, width=0.14)
    for at, text in colours.ticks(4):
        drawing.text(min(max(at, 0.04), 0.96) * width, top + height + 1.8, text, size=SMALL, anchor="middle")
    drawing.text(width / 2, top + height + 4.6, unit, size=SMALL, anchor="middle", fill=QUIET)
    return finished(
        drawing, name, caption, f"Histogram ({unit}). {caption}", {unit: middles.tolist(), "pairs": counts.tolist()}
    )


@dataclass(frozen=True, slots=True)
class Passes:
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


@dataclass(frozen=True, slots=True)
class Effect:
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
    axis = _Axis(-reach, reach, False)
    drawing = (_columns if len(rows) > _MOST_ROWS else _rows)(rows, axis, unit, bound)
    data: dict[str, Sequence[Any]] = {
        "node": [r.node for r in rows], "low": [r.low for r in rows], "value": [r.value for r in rows],
        "high": [r.high for r in rows],
    }  # fmt: skip
    return finished(drawing, name, caption, f"Effects of {len(rows)} nodes ({unit}). {caption}", data)


def _rows(rows: Sequence[Effect], axis: _Axis, unit: str, bound: float | None) -> Drawing:
    left, step = 30.0, 3.2
    foot = len(rows) * step + 1.5
    drawing = Drawing(PAGE, foot + 7.5)
    plane = _Plane(left, 0.5, PAGE - left - 3, foot, axis, axis)
    for value, text in axis.ticks():
        drawing.line(plane.x(value), 0.5, plane.x(value), foot, stroke=HAIR, width=0.12)
        drawing.text(plane.x(value), foot + 1.6, text, size=SMALL, anchor="middle")
    for limit in (bound, -bound) if bound else ():
        drawing.line(plane.x(limit), 0.5, plane.x(limit), foot, **_BOUND)
    drawing.text(left + plane.width / 2, foot + 4.6, unit, size=SMALL, anchor="middle", fill=QUIET)
    for i, row in enumerate(rows):
        y = 2.2 + i * step
        ends = [plane.x(end if np.isfinite(end) else row.value) for end in (row.low, row.high)]
        drawing.line(ends[0], y, ends[1], y, stroke=QUIET, width=0.35)
        ink = ALARM if row.odd else INK
        drawing.text(left - 1.5, y, row.node[:20], size=SMALL, anchor="end", fill=ink, bold=row.odd)
        _mark(drawing, plane.x(row.value), y, row.odd, 0.6)
    return drawing


def _columns(rows: Sequence[Effect], axis: _Axis, unit: str, bound: float | None) -> Drawing:
    left = 16.0
    drawing = Drawing(PAGE, 53.0)
    plane = _Plane(left, 1.5, PAGE - left - 3, 46.0, _Axis(0.0, float(len(rows)), False), axis)
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
            drawing.text(x - 1.4, plane.y(row.value), row.node[:16], size=SMALL, anchor="end", fill=ALARM)
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
