"""What a figure consists of: marks on a sheet in mm, from the top left corner. `svg` and `pdf_marks` paint them.

Colours are of the light page; the HTML file replaces those of ink, hair and wash by its own where it is dark.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from nodeprint.errors import printable
from nodeprint.report.scale import Map

INK, QUIET, HAIR, WASH, ALARM = "#1c2329", "#5b6570", "#c9d0d6", "#e6eaee", "#a3201d"
#: Heights of letters: what is read on every figure, and what is read on a second look.
TEXT, SMALL = 2.2, 1.85
#: Longer texts are cut.
_LONGEST = 200


class Pixels(msgspec.Struct, frozen=True):
    """An image whose pixels (row by row from the top left corner) are entries of a palette of `scale`."""

    width: int
    height: int
    entries: bytes
    palette: Map

    @classmethod
    def of(cls, entries: npt.NDArray[np.uint8], palette: Map) -> Pixels:
        """The image of `entries` (rows x columns)."""
        return cls(entries.shape[1], entries.shape[0], entries.tobytes(), palette)


class Image(msgspec.Struct, frozen=True):
    """Pixels on a drawing: their top left corner and their size."""

    pixels: Pixels
    x: float
    y: float
    width: float
    height: float


class Words(NamedTuple):
    """A line of text from, around or up to (`anchor`) x, with its baseline at y; `turned`: it runs upwards."""

    x: float
    y: float
    text: str
    size: float
    anchor: str
    fill: str
    turned: bool
    bold: bool


class Pen(NamedTuple):
    """How a shape is painted: colours (or none), the width of its line, its dashes as in SVG, and its opacity."""

    fill: str
    stroke: str
    width: float
    dash: str
    opacity: float


class Segments(NamedTuple):
    """Straight lines of one kind, each from (x, y) to (x, y)."""

    ends: Sequence[Sequence[float]]
    pen: Pen


class Path(NamedTuple):
    """Straight lines through points."""

    points: tuple[tuple[float, float], ...]
    closed: bool
    pen: Pen


class Rect(NamedTuple):
    """A rectangle from its top left corner; `tip` is what a browser says of it."""

    x: float
    y: float
    width: float
    height: float
    pen: Pen
    tip: str


class Dots(NamedTuple):
    """Filled circles of one kind around points."""

    points: Sequence[Sequence[float]]
    radius: float
    fill: str
    opacity: float


Mark = Words | Segments | Path | Rect | Dots


class Drawing:
    """A sheet that grows by marks; images lie below them all."""

    def __init__(self, width: float, height: float) -> None:
        self.width, self.height = width, height
        self.images: list[Image] = []
        self.marks: list[Mark] = []

    def text(
        self,
        x: float,
        y: float,
        text: str,
        *,
        size: float = TEXT,
        anchor: str = "start",
        fill: str = INK,
        turned: bool = False,
        bold: bool = False,
    ) -> None:
        """A line of text whose middle is at height `y` (at `x` where it is turned), with its `anchor` at the other."""
        down = 0.36 * size
        x, y = (x + down, y) if turned else (x, y + down)
        self.marks.append(Words(x, y, printable(text, _LONGEST), size, anchor, fill, turned, bold))

    def line(
        self, x1: float, y1: float, x2: float, y2: float, *, stroke: str = INK, width: float = 0.18, dash: str = ""
    ) -> None:
        """A straight line; `dash` as SVG's stroke-dasharray."""
        self.lines(((x1, y1, x2, y2),), stroke=stroke, width=width, dash=dash)

    def lines(self, ends: Sequence[Sequence[float]], *, stroke: str = INK, width: float = 0.18, dash: str = "") -> None:
        """Straight lines of one kind, each as x1, y1, x2, y2."""
        self.marks.append(Segments(ends, Pen("none", stroke, width, dash, 1.0)))

    def path(
        self,
        points: Sequence[tuple[float, float]],
        *,
        stroke: str = "none",
        width: float = 0.18,
        dash: str = "",
        fill: str = "none",
        closed: bool = False,
        opacity: float = 1.0,
    ) -> None:
        """A line through points."""
        if points:
            self.marks.append(Path(tuple(points), closed, Pen(fill, stroke, width, dash, opacity)))

    def rect(
        self,
        x: float,
        y: float,
        width: float,
        height: float,
        *,
        fill: str = "none",
        stroke: str = "none",
        line: float = 0.18,
        dash: str = "",
        opacity: float = 1.0,
        tip: str = "",
    ) -> None:
        """A rectangle from its top left corner."""
        pen = Pen(fill, stroke, line, dash, opacity)
        self.marks.append(Rect(x, y, max(width, 0.0), max(height, 0.0), pen, tip))

    def dot(self, x: float, y: float, *, radius: float = 0.6, fill: str = INK, opacity: float = 1.0) -> None:
        """A filled circle."""
        self.dots(((x, y),), radius=radius, fill=fill, opacity=opacity)

    def dots(
        self, points: Sequence[Sequence[float]], *, radius: float = 0.6, fill: str = INK, opacity: float = 1.0
    ) -> None:
        """Filled circles of one kind, each around x, y."""
        self.marks.append(Dots(points, radius, fill, opacity))

    def triangle(self, x: float, y: float, *, radius: float = 1.0) -> None:
        """A triangle around a point: what asks for attention, with or without colour."""
        corners = [(x, y - radius), (x + 0.9 * radius, y + 0.75 * radius), (x - 0.9 * radius, y + 0.75 * radius)]
        self.path(corners, fill=ALARM, closed=True)

    def image(self, pixels: Pixels, x: float, y: float, width: float, height: float) -> None:
        """Pixels that stay sharp, below everything else."""
        self.images.append(Image(pixels, x, y, width, height))
