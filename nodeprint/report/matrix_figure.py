"""The figure of a matrix: cells, nested outlines and brackets of the machine, numbers, and the colour bar."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from nodeprint.report import scale
from nodeprint.report.drawing import INK, QUIET, SMALL, Drawing
from nodeprint.report.old_figures import (
    BAND_DEPTH,
    NUMBERS,
    PENS,
    Band,
    Column,
    Figure,
    Floats,
    Tick,
    axis,
    bands,
    finished,
    pixels,
    three_digits,
    with_room,
)
from nodeprint.report.scale import Scale
from nodeprint.topology.model import Topology

#: In mm: a machine of four CPUs is a small figure, not a chessboard; cells from this size on carry their value.
_MOST_CELL, _LEAST_WRITTEN_CELL = 11.0, 5.0


#: In mm: the colour bar with its ticks, beside a matrix.
_BAR_ROOM = 34.0


def matrix(
    values: Floats,
    cpus: Sequence[int],
    topology: Topology | None,
    colours: Scale,
    title: str,
    room: float,
    *,
    name: str = "matrix",
    caption: str = "",
    medians: Sequence[tuple[str, float]] = (),
    bar: bool = True,
    labels: Sequence[str] | None = None,
    groups: tuple[Band, ...] | None = None,
) -> Figure:
    """The figure of `values` (n x n, NaN where not measured), its rows and columns `cpus` in drawing order.

    `room` is what it may take in width with its brackets and colour bar, in mm; `title` says what the colours are.
    `medians` (name, value) are marked on the colour bar. Rows that are no CPUs have `labels` and `groups` of their own.
    """
    n = len(cpus)
    levels = bands(cpus, topology) if groups is None else groups
    depth = BAND_DEPTH * len(levels)
    beside = _BAR_ROOM if bar else 1.0
    side = min(_MOST_CELL * n, room - depth - NUMBERS - beside)
    left, cell = depth + NUMBERS, side / n
    height = depth + side + NUMBERS
    drawing = Drawing(left + side + beside, max(height, 34.0 if bar else 0.0))
    entries = colours.index(values)
    empty = np.isnan(np.diagonal(values))
    np.fill_diagonal(entries, np.where(empty, scale.DIAGONAL, np.diagonal(entries)))
    drawing.image(pixels(entries, colours), left, depth, side, side)
    if cell >= _LEAST_WRITTEN_CELL:
        _written(drawing, values, entries, colours, left, depth, cell)
    _outlines(drawing, levels, n, left, depth, cell)
    drawing.rect(left, depth, side, side, stroke=INK)
    _brackets(drawing, [with_room(band, n, side) for band in levels], left, depth, cell, side, bar)
    ticks = axis(cpus, side) if labels is None else _named_axis(labels, side)
    for tick in ticks:
        drawing.text(left - 0.6, depth + tick.at * side, tick.text, size=SMALL, anchor="end")
        if n > 16 or labels is not None:
            drawing.text(left + tick.at * side, depth + side + 0.8, tick.text, size=SMALL, anchor="end", turned=True)
        else:
            drawing.text(left + tick.at * side, depth + side + 1.8, tick.text, size=SMALL, anchor="middle")
    if bar:
        missing = bool((entries == scale.MISSING).any())
        _colour_bar(drawing, colours, values, title, left + side + 4, depth, medians, missing, levels)
    a, b = np.nonzero(np.isfinite(values))
    numbers = np.asarray(cpus)
    data: dict[str, Column] = {
        "a": numbers[a],
        "b": numbers[b],
        "value": values[a, b],
    }
    finite = values[np.isfinite(values)]
    reach = f", from {three_digits(float(finite.min()))} to {three_digits(float(finite.max()))}" if finite.size else ""
    return finished(drawing, name, caption, f"Matrix of {n} x {n} ({title}){reach}. {caption}", data)


def _named_axis(labels: Sequence[str], side: float) -> tuple[Tick, ...]:
    step = max(1, -(-len(labels) * 3 // max(int(side), 1)))
    return tuple(Tick((i + 0.5) / len(labels), labels[i][:10]) for i in range(0, len(labels), step))


def _written(
    drawing: Drawing,
    values: Floats,
    entries: npt.NDArray[np.uint8],
    colours: Scale,
    left: float,
    top: float,
    cell: float,
) -> None:
    """Values into cells, white on dark ones."""
    text = three_digits if colours.map == "batlow" else "{:+z.1f}".format
    for i, j in zip(*np.nonzero(np.isfinite(values)), strict=True):
        ink = "#ffffff" if scale.is_dark(int(entries[i, j]), colours.map) else "#000000"
        size = min(3.2, cell * 0.3)
        drawing.text(
            left + (j + 0.5) * cell, top + (i + 0.5) * cell, text(values[i, j]), size=size, anchor="middle", fill=ink
        )


def _outlines(drawing: Drawing, levels: Sequence[Band], n: int, left: float, top: float, cell: float) -> None:
    """Nested outlines on the diagonal. Every line lies on a white one, so that it is seen on dark cells too; all the
    white ones first. Lines of small blocks are thin, or they would cover what they hold."""
    for under in (True, False):
        for band in levels:
            pen, dash = PENS[band.level]
            for g in band.groups:
                reach = (g.stop - g.start) * cell
                if g.stop - g.start == n:
                    continue
                wide = min(pen + 0.25, 0.12 * reach) if under else min(pen, 0.06 * reach)
                colour = "#ffffff" if under else "#000000"
                x, y = left + g.start * cell, top + g.start * cell
                shade = 0.65 if under else 1.0
                drawing.rect(x, y, reach, reach, stroke=colour, line=wide, dash="" if under else dash, opacity=shade)


def _brackets(
    drawing: Drawing, levels: Sequence[Band], left: float, depth: float, cell: float, side: float, names: bool
) -> None:
    for number, band in enumerate(levels):
        away = depth - (number + 1) * BAND_DEPTH
        pen, dash = PENS[band.level]
        at, foot = away + 2.8, away + 3.4
        ends = [(g.start * cell + 0.12, max(g.stop * cell - 0.12, g.start * cell + 0.17)) for g in band.groups]
        across = [(left + a, at, left + b, at) for a, b in ends]
        drawing.lines(across + [(at, depth + a, at, depth + b) for a, b in ends], width=pen, dash=dash)
        across = [(left + end, at, left + end, foot) for pair in ends for end in pair]
        drawing.lines(across + [(at, depth + end, foot, depth + end) for pair in ends for end in pair], width=0.14)
        for g, (a, b) in zip(band.groups, ends, strict=True):
            if g.label:
                drawing.text(left + (a + b) / 2, away + 1.4, g.label, size=SMALL, anchor="middle")
                drawing.text(away + 1.4, depth + (a + b) / 2, g.label, size=SMALL, anchor="middle", turned=True)
        if names:
            drawing.text(left + side + 1, away + 2.6, band.name, size=SMALL, fill=QUIET)


def _colour_bar(
    drawing: Drawing,
    colours: Scale,
    values: Floats,
    title: str,
    x: float,
    top: float,
    medians: Sequence[tuple[str, float]],
    missing: bool,
    levels: Sequence[Band],
) -> None:
    """Colours from low to high with round values, the class medians beside them, and what the lines are."""
    room = drawing.height - top
    height = min(60.0, max(room - 14 - 3.2 * len(levels), 20.0))
    y = top + 4.5
    drawing.text(x, top + 1, title, fill=QUIET, size=SMALL)
    bar = colours.index(np.linspace(colours.high, colours.low, scale.LEVELS).reshape(-1, 1))
    drawing.image(pixels(bar, colours), x, y, 4, height)
    drawing.rect(x, y, 4, height, stroke=INK, line=0.14)
    for at, text in colours.ticks():
        drawing.line(x + 4, y + (1 - at) * height, x + 4.8, y + (1 - at) * height, width=0.14)
        drawing.text(x + 5.4, y + (1 - at) * height, text, size=SMALL)
    at_least = y - 3.0
    for name, value in sorted(medians, key=lambda one: -one[1]):
        place = y + (1 - float(np.clip((value - colours.low) / (colours.high - colours.low), 0, 1))) * height
        label = max(place, at_least + 2.4)
        at_least = label
        drawing.line(x, place, x + 4, place, stroke="#ffffff", width=0.35)
        drawing.line(x + 9.6, place, x + 10.8, label, width=0.14, stroke=QUIET)
        drawing.text(x + 11.2, label, f"{name}", size=SMALL, fill=QUIET)
    y += height + 3
    for text in _beyond(colours, values):
        drawing.text(x, y, text, size=SMALL, fill=QUIET)
        y += 2.8
    if missing:
        drawing.rect(x, y - 1.1, 3, 2.2, fill="#cdcdcd", stroke=QUIET, line=0.1)
        drawing.text(x + 4, y, "not measured", size=SMALL, fill=QUIET)
        y += 3
    for band in levels:
        if len(band.groups) > 1:
            pen, dash = PENS[band.level]
            drawing.line(x, y, x + 6, y, width=pen, dash=dash)
            drawing.text(x + 7.2, y, band.name, size=SMALL)
            y += 3


def _beyond(colours: Scale, values: Floats) -> list[str]:
    """Which values lie beyond the colours' ends; a little beyond is not worth a line."""
    finite, slack = values[np.isfinite(values)], 0.02 * (colours.high - colours.low)
    out = []
    if finite.size and finite.min() < colours.low - slack:
        out.append(f"down to {three_digits(float(finite.min()))}")
    if finite.size and finite.max() > colours.high + slack:
        out.append(f"up to {three_digits(float(finite.max()))}")
    return out
