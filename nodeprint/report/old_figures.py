"""Every figure of the report, drawn from data and labels: the same in the PDF, in HTML and as files for a paper.

A figure takes arrays and words, and knows neither files nor verdicts. Its `data` are the numbers that it shows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt
from msgspec.structs import replace

from nodeprint import discover
from nodeprint.report import scale
from nodeprint.report.drawing import ALARM, HAIR, INK, QUIET, SMALL, Drawing, Pixels
from nodeprint.report.scale import Scale
from nodeprint.topology.model import Level, Topology

Floats = npt.NDArray[np.float64]

#: Values of a figure, a row of its file each.
Column = Sequence[Any] | npt.NDArray[Any]

#: The width of a page's text, in mm.
PAGE = 180.0

#: Bands of a matrix from the inside to the outside.
_BANDS: tuple[Level, ...] = ("cluster", "ccx", "ccd", "quadrant", "half", "numa", "socket")

_NAMES: dict[Level, str] = {"ccx": "CCX", "ccd": "CCD", "numa": "NUMA", "cluster": "cluster"}

#: The line of each band: its width in mm and its dashes.
PENS: Mapping[str, tuple[float, str]] = {
    "cluster": (0.09, "0.1 0.2"), "ccx": (0.12, ""), "ccd": (0.3, "0.7 0.4"), "quadrant": (0.35, "2.1 0.9"),
    "half": (0.32, "1.4 0.5 0.3 0.5"), "numa": (0.39, "0.4 0.4"), "socket": (0.6, ""),
}  # fmt: skip

#: In mm: what a number along an axis needs, a digit of a bracket's label, and a bracket with its label.
_TICK_ROOM, _DIGIT, BAND_DEPTH, NUMBERS = 2.2, 1.15, 3.5, 6.0


class Figure(msgspec.Struct, frozen=True):
    """A drawing, the `name` of its files, `caption` below it, `alt` for those who cannot see it.

    `data` are its numbers by the names of their columns, all of one length.
    """

    name: str
    caption: str
    alt: str
    drawing: Drawing
    data: Mapping[str, Column]


def finished(drawing: Drawing, name: str, caption: str, alt: str, data: Mapping[str, Column] | None = None) -> Figure:
    """A drawing as a figure."""
    return Figure(name, caption, alt, drawing, data or {})


class Group(msgspec.Struct, frozen=True):
    """Neighbouring rows from `start` to before `stop` that share a part, and the part's number."""

    start: int
    stop: int
    label: str


class Band(msgspec.Struct, frozen=True):
    """A level of the machine along the axes: `level` chooses the line, `name` is what is written."""

    level: str
    name: str
    groups: tuple[Group, ...]


class Tick(msgspec.Struct, frozen=True):
    """A text at a position, from 0 to 1 along its axis."""

    at: float
    text: str


@lru_cache(maxsize=16)
def _places(topology: Topology) -> Mapping[int, int]:
    return {cpu: i for i, cpu in enumerate(topology.order())}


def order(cpus: Sequence[int], topology: Topology | None) -> list[int]:
    """`cpus` (OS numbers) in topology order; those the topology does not know come last, in order of their numbers."""
    place = _places(topology) if topology is not None else {}
    return sorted(cpus, key=lambda cpu: (place.get(cpu, len(place)), cpu))


def bands(cpus: Sequence[int], topology: Topology | None) -> tuple[Band, ...]:
    """The levels that group `cpus` (in drawing order), finest first.

    Levels whose groups all hold one CPU say nothing and are left out; levels with the same groups and numbers share
    a band.
    """
    return _bands(tuple(cpus), topology) if topology is not None else ()


@lru_cache(maxsize=32)
def _bands(cpus: tuple[int, ...], topology: Topology) -> tuple[Band, ...]:
    known = {cpu.cpu: cpu for cpu in topology.cpus}
    amd = "AMD" in (topology.machine.vendor or "")
    out: list[Band] = []
    for level in _BANDS:
        parts = [getattr(known[cpu], level) if cpu in known else None for cpu in cpus]
        groups = tuple(
            Group(start, stop, str(parts[start])) for start, stop in runs_of(parts) if parts[start] is not None
        )
        if not any(group.stop - group.start > 1 for group in groups):
            continue
        name = "L3" if level == "ccx" and not amd else _NAMES.get(level, level)
        if out and out[-1].groups == groups:
            out[-1] = Band(level, f"{out[-1].name} = {name}", groups)
        else:
            out.append(Band(level, name, groups))
    return tuple(out)


def runs_of(parts: Sequence[int | None]) -> list[tuple[int, int]]:
    """[start, stop) of each run of equal neighbours."""
    cuts = [0, *(i for i in range(1, len(parts)) if parts[i] != parts[i - 1]), len(parts)]
    return [(a, b) for a, b in pairwise(cuts) if b > a]


def axis(cpus: Sequence[int], side: float) -> tuple[Tick, ...]:
    """OS numbers along an axis of `side` mm, in the middle of their cells, as many at an even step as have room."""
    step = 1
    while len(cpus) / step * _TICK_ROOM > side:
        step *= 2
    return tuple(Tick((i + 0.5) / len(cpus), str(cpus[i])) for i in range(0, len(cpus), step))


def with_room(band: Band, n: int, side: float) -> Band:
    """`band` with the labels that have room along `n` rows on `side` mm; the others are empty."""
    widest = max(len(group.label) for group in band.groups) * _DIGIT + 0.6
    narrowest = min(group.stop - group.start for group in band.groups) / n * side
    step = 1
    while narrowest * step < widest and step < len(band.groups):
        step *= 2
    groups = (g if i % step == 0 else replace(g, label="") for i, g in enumerate(band.groups))
    return replace(band, groups=tuple(groups))


def thumbnail(values: Floats, colours: Scale) -> Pixels:
    """A matrix (n x n) as an image of a pixel a cell, for maps in small."""
    return pixels(colours.index(values), colours)


def shortened(name: str, most: int) -> str:
    """A node's name in at most `most` letters: without its domain (an address has none), then without its middle, as
    its number is last."""
    host = name if name[:1].isdigit() or len(name) <= most else discover.short(name)
    tail = most // 2
    return host if len(host) <= most else f"{host[: most - tail - 1]}\u2026{host[-tail:]}"


def multiples(
    maps: Sequence[tuple[str, Pixels, bool]], colours: Scale, title: str, *, name: str, caption: str
) -> Figure:
    """Small maps in rows (name, image, framed), all in the same colours."""
    columns, size = 10, 14.0
    rows = -(-len(maps) // columns)
    drawing = Drawing(PAGE, rows * (size + 5.0) + 8)
    for i, (label, image, framed) in enumerate(maps):
        x, y = (i % columns) * (size + 3.2) + 0.5, (i // columns) * (size + 5.0) + 3.5
        shown = f"▲ {shortened(label, 11)}" if framed else shortened(label, 13)
        drawing.text(x, y - 1.6, shown, size=SMALL, fill=ALARM if framed else INK)
        drawing.image(image, x, y, size, size)
        drawing.rect(x, y, size, size, stroke=ALARM if framed else HAIR, line=0.7 if framed else 0.15)
    _flat_bar(drawing, colours, title, 0.5, rows * (size + 5.0) + 2.5)
    return finished(drawing, name, caption, f"{len(maps)} small maps. {caption}", {"node": [m[0] for m in maps]})


def _flat_bar(drawing: Drawing, colours: Scale, title: str, x: float, y: float, width: float = 60.0) -> None:
    bar = colours.index(np.linspace(colours.low, colours.high, scale.LEVELS).reshape(1, -1))
    drawing.image(pixels(bar, colours), x, y, width, 2.2)
    drawing.rect(x, y, width, 2.2, stroke=INK, line=0.12)
    for at, text in colours.ticks(5):
        drawing.text(x + min(max(at, 0.0), 1.0) * width, y + 3.8, text, size=SMALL, anchor="middle")
    drawing.text(x + width + 3, y + 1.2, title, size=SMALL, fill=QUIET)


def grid(
    values: Floats,
    texts: Sequence[Sequence[str]],
    rows: Sequence[str],
    columns: Sequence[str],
    colours: Scale,
    title: str,
    *,
    name: str,
    caption: str,
    corner: str = "",
    room: float = PAGE,
    marked: Sequence[int] = (),
) -> Figure:
    """A table in colours: `values` (r x c) choose them, `texts` are written into the cells; rows at `marked` are in the
    colour of an alarm. Names of columns are turned where they have no room."""
    left = min(38.0, max([len(one) for one in (*rows, corner)], default=1) * 1.28 + 2)
    longest = max([len(text) for line in texts for text in line], default=1)
    cell = min(max(longest * 1.35 + 1.2, 5.0), 16.0, (room - left) / max(len(columns), 1))
    height = 4.6
    turned = max([len(one) for one in columns], default=1) * 1.3 > cell
    head = min(34.0, max([len(one) for one in columns], default=1) * 1.2 + 2) if turned else 4.0
    drawing = Drawing(max(left + cell * len(columns), left + 58), head + height * len(rows) + 7.5)
    entries = colours.index(values)
    entries[np.array([[not text for text in line] for line in texts]) & (entries == scale.MISSING)] = scale.DIAGONAL
    drawing.image(pixels(entries, colours), left, head, cell * len(columns), height * len(rows))
    between = [(left, head + i * height, left + cell * len(columns), head + i * height) for i in range(len(rows) + 1)]
    foot = head + height * len(rows)
    between += [(left + j * cell, head, left + j * cell, foot) for j in range(len(columns) + 1)]
    drawing.lines(between, stroke="#ffffff", width=0.2)
    drawing.text(0, head - 2, corner, size=SMALL, fill=QUIET)
    for j, text in enumerate(columns):
        if turned:
            drawing.text(left + (j + 0.5) * cell, head - 1, text[:26], size=SMALL, turned=True)
        else:
            drawing.text(left + (j + 0.5) * cell, head - 2, text, size=SMALL, anchor="middle")
    for i, text in enumerate(shortened(row, 28) for row in rows):
        y = head + i * height
        ink = ALARM if i in marked else INK
        drawing.text(left - 1, y + height / 2, text, size=SMALL, anchor="end", fill=ink, bold=i in marked)
        for j in range(len(columns)):
            entry = int(entries[i, j])
            dark = entry < scale.LEVELS and scale.is_dark(entry, colours.map)
            if cell >= longest * 1.05:
                drawing.text(
                    left + (j + 0.5) * cell, y + height / 2, texts[i][j], size=SMALL, anchor="middle",
                    fill="#ffffff" if dark else "#000000",
                )  # fmt: skip
    _flat_bar(drawing, colours, title, left, head + height * len(rows) + 1.5, 40.0)
    at = [(i, j) for i in range(len(rows)) for j in range(len(columns)) if np.isfinite(values[i, j])]
    data: dict[str, Sequence[Any]] = {
        "row": [rows[i] for i, _ in at], "column": [columns[j] for _, j in at],
        "value": [float(values[i, j]) for i, j in at],
    }  # fmt: skip
    return finished(drawing, name, caption, f"Table of {len(rows)} x {len(columns)} ({title}). {caption}", data)


def interval(low: float, at: float, high: float, zero: float | None, width: float = 60.0) -> Figure:
    """A value with its interval on an axis from 0 to 1, for a row of a table."""
    drawing = Drawing(width, 3.2)
    drawing.line(0, 1.6, width, 1.6, stroke=HAIR, width=0.12)
    if zero is not None:
        drawing.line(zero * width, 0, zero * width, 3.2, stroke=QUIET)
    drawing.line(low * width, 1.6, high * width, 1.6, width=0.45)
    drawing.dot(min(max(at * width, 0.7), width - 0.7), 1.6, radius=0.7)
    return finished(drawing, "", "", "")


def dots(quiet: Sequence[float], odd: Sequence[float], width: float = 64.0) -> Figure:
    """A dot per node on an axis from 0 to 1, triangles for those that differ, for a row of a table."""
    drawing = Drawing(width, 4.0)
    drawing.line(0, 2, width, 2, stroke=HAIR, width=0.12)
    drawing.line(width / 2, 0.4, width / 2, 3.6, stroke=QUIET)
    for at in sorted({round(at, 3) for at in quiet}):
        drawing.dot(at * width, 2, radius=0.6, opacity=0.45)
    for at in odd:
        drawing.triangle(at * width, 2.1, radius=1.0)
    return finished(drawing, "", "", "")


def ruler(ticks: Sequence[Tick], width: float) -> Figure:
    """Ticks below the figures of a table's rows."""
    drawing = Drawing(width, 3.6)
    for tick in ticks:
        drawing.line(tick.at * width, 0, tick.at * width, 0.8, stroke=QUIET, width=0.14)
        anchor = "start" if tick.at < 0.03 else "end" if tick.at > 0.97 else "middle"
        drawing.text(tick.at * width, 2.2, tick.text, size=SMALL, anchor=anchor, fill=QUIET)
    return finished(drawing, "", "", "")


def pixels(entries: npt.NDArray[np.uint8], colours: Scale) -> Pixels:
    """An image of palette `entries` (rows x columns) in a scale's colours."""
    return Pixels.of(entries, colours.map)


def three_digits(value: float) -> str:
    """A value with three significant digits and no exponent."""
    if not np.isfinite(value):
        return "-"
    decimals = max(0, 2 - int(np.floor(np.log10(abs(value))))) if value else 1
    return f"{value:.{min(decimals, 3)}f}"
