"""What a figure shows and where, in numbers; the templates only paint it."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import numpy.typing as npt
from PIL import Image

from nodeprint.report import scale
from nodeprint.report.scale import Scale
from nodeprint.topology.model import Level, Topology

Floats = npt.NDArray[np.float64]

#: Bands of a matrix from the inside to the outside.
_BANDS: tuple[Level, ...] = ("cluster", "ccx", "ccd", "quadrant", "half", "numa", "socket")
_NAMES: dict[Level, str] = {"ccx": "CCX", "ccd": "CCD", "numa": "NUMA", "cluster": "cluster"}

#: In mm: what a number along an axis needs, a digit of a bracket's label, and a bracket with its label.
_TICK_ROOM, _DIGIT, _BAND_DEPTH = 2.2, 1.15, 3.5
#: In mm: a machine of four CPUs is a small figure, not a chessboard; cells from this size on carry their value.
_MOST_CELL, _LEAST_WRITTEN_CELL = 11.0, 5.0


@dataclass(frozen=True, slots=True)
class Group:
    """Neighbouring rows from `start` to before `stop` that share a part, and the part's number."""

    start: int
    stop: int
    label: str


@dataclass(frozen=True, slots=True)
class Band:
    """A level of the machine along the axes: `level` chooses the line, `name` is what is written."""

    level: str
    name: str
    groups: tuple[Group, ...]


@dataclass(frozen=True, slots=True)
class Tick:
    """A text at a position, from 0 to 1 along its axis."""

    at: float
    text: str


@dataclass(frozen=True, slots=True)
class Cell:
    """A value written into a matrix, white on dark cells."""

    row: int
    column: int
    text: str
    dark: bool


@dataclass(frozen=True, slots=True)
class Legend:
    """A colour bar: its colours as PNG (from low to high), its ticks, and what it measures."""

    png: bytes
    ticks: tuple[Tick, ...]
    title: str
    clipped: str


@dataclass(frozen=True, slots=True)
class Matrix:
    """A matrix of `n` CPUs in drawing order: an indexed PNG of one pixel a cell, and what is drawn on and around it.

    Drawn on `side` mm, each band of brackets `depth` mm deep.
    """

    n: int
    side: float
    depth: float
    png: bytes
    ticks: tuple[Tick, ...]
    bands: tuple[Band, ...]
    cells: tuple[Cell, ...]
    legend: Legend
    missing: bool


@dataclass(frozen=True, slots=True)
class Bar:
    """A bin: its height as a share of the highest, and the colour of its pairs in the matrix."""

    height: float
    colour: str


@dataclass(frozen=True, slots=True)
class Histogram:
    """How many pairs have each colour; the outermost bins hold what lies beyond, too."""

    bars: tuple[Bar, ...]
    ticks: tuple[Tick, ...]
    highest: str


def order(cpus: Sequence[int], topology: Topology | None) -> list[int]:
    """`cpus` (OS numbers) in topology order; those the topology does not know come last, in order of their numbers."""
    place = {cpu: i for i, cpu in enumerate(topology.order())} if topology is not None else {}
    return sorted(cpus, key=lambda cpu: (place.get(cpu, len(place)), cpu))


def bands(cpus: Sequence[int], topology: Topology | None) -> tuple[Band, ...]:
    """The levels that group `cpus` (in drawing order), finest first.

    Levels whose groups all hold one CPU say nothing and are left out; levels with the same groups and numbers share
    a band.
    """
    if topology is None:
        return ()
    known = {cpu.cpu: cpu for cpu in topology.cpus}
    amd = "AMD" in (topology.machine.vendor or "")
    out: list[Band] = []
    for level in _BANDS:
        parts = [getattr(known[cpu], level) if cpu in known else None for cpu in cpus]
        groups = tuple(
            Group(start, stop, str(parts[start])) for start, stop in _runs(parts) if parts[start] is not None
        )
        if not any(group.stop - group.start > 1 for group in groups):
            continue
        name = "L3" if level == "ccx" and not amd else _NAMES.get(level, level)
        if out and out[-1].groups == groups:
            out[-1] = Band(level, f"{out[-1].name} = {name}", groups)
        else:
            out.append(Band(level, name, groups))
    return tuple(out)


def _runs(parts: Sequence[int | None]) -> list[tuple[int, int]]:
    """[start, stop) of each run of equal neighbours."""
    cuts = [0, *(i for i in range(1, len(parts)) if parts[i] != parts[i - 1]), len(parts)]
    return [(a, b) for a, b in pairwise(cuts) if b > a]


def axis(cpus: Sequence[int], side: float) -> tuple[Tick, ...]:
    """OS numbers along an axis of `side` mm, in the middle of their cells, as many at an even step as have room."""
    step = 1
    while len(cpus) / step * _TICK_ROOM > side:
        step *= 2
    return tuple(Tick((i + 0.5) / len(cpus), str(cpus[i])) for i in range(0, len(cpus), step))


def _with_room(band: Band, n: int, side: float) -> Band:
    """`band` with the labels that have room along `n` rows on `side` mm; the others are empty."""
    widest = max(len(group.label) for group in band.groups) * _DIGIT + 0.6
    narrowest = min(group.stop - group.start for group in band.groups) / n * side
    step = 1
    while narrowest * step < widest and step < len(band.groups):
        step *= 2
    groups = (g if i % step == 0 else replace(g, label="") for i, g in enumerate(band.groups))
    return replace(band, groups=tuple(groups))


def matrix(
    values: Floats, cpus: Sequence[int], topology: Topology | None, colours: Scale, title: str, room: float
) -> Matrix:
    """The figure of `values` (n x n, NaN where not measured), its rows and columns `cpus` in drawing order.

    `room` is what it may take in width with its brackets, in mm.
    """
    n = len(cpus)
    levels = bands(cpus, topology)
    side = min(_MOST_CELL * n, room - _BAND_DEPTH * len(levels))
    entries = colours.index(values)
    empty = np.isnan(np.diagonal(values))
    np.fill_diagonal(entries, np.where(empty, scale.DIAGONAL, np.diagonal(entries)))
    written = three_digits if colours.map == "batlow" else "{:+.1f}".format
    cells = tuple(
        Cell(i, j, written(values[i, j]), scale.is_dark(int(entries[i, j]), colours.map))
        for i in range(n)
        for j in range(n)
        if side / n >= _LEAST_WRITTEN_CELL and np.isfinite(values[i, j])
    )
    return Matrix(
        n=n,
        side=side,
        depth=_BAND_DEPTH,
        png=indexed_png(entries, colours),
        ticks=axis(cpus, side),
        bands=tuple(_with_room(band, n, side) for band in levels),
        cells=cells,
        legend=legend(colours, values, title),
        missing=bool((entries == scale.MISSING).any()),
    )


def replaced(figure: Matrix, groups: tuple[Band, ...], ticks: tuple[Tick, ...]) -> Matrix:
    """A matrix of what is no CPU: its own brackets and names along the axes."""
    side = figure.side - _BAND_DEPTH * len(groups)
    return replace(figure, side=side, bands=tuple(_with_room(b, figure.n, side) for b in groups), ticks=ticks)


def legend(colours: Scale, values: Floats, title: str) -> Legend:
    """The colour bar of `colours`; says which of `values` lie beyond its ends."""
    finite = values[np.isfinite(values)]
    beyond = []
    # A little beyond an end is not worth a line.
    slack = 0.02 * (colours.high - colours.low)
    if finite.size and finite.min() < colours.low - slack:
        beyond.append(f"down to {three_digits(float(finite.min()))}")
    if finite.size and finite.max() > colours.high + slack:
        beyond.append(f"up to {three_digits(float(finite.max()))}")
    bar = colours.index(np.linspace(colours.high, colours.low, scale.LEVELS).reshape(-1, 1))
    return Legend(
        png=indexed_png(bar, colours),
        ticks=tuple(Tick(at, text) for at, text in colours.ticks()),
        title=title,
        clipped=("values " + ", ".join(beyond)) if beyond else "",
    )


def indexed_png(entries: npt.NDArray[np.uint8], colours: Scale) -> bytes:
    """A palette PNG of `entries` (rows x columns), a pixel an entry."""
    image = Image.fromarray(entries)
    image.putpalette([channel for rgb in scale.palette(colours.map) for channel in rgb])
    out = io.BytesIO()
    image.save(out, format="PNG", compress_level=9)
    return out.getvalue()


def three_digits(value: float) -> str:
    """A value with three significant digits and no exponent."""
    if not np.isfinite(value):
        return "-"
    decimals = max(0, 2 - int(np.floor(np.log10(abs(value))))) if value else 1
    return f"{value:.{min(decimals, 3)}f}"
