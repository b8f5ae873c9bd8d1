"""Drawing as SVG, in mm: the one painter of every figure, in the PDF, in HTML and in files of their own.

Images are kept beside the marks, as Typst keeps the palette of a PNG that it places itself.

Typst sets the text in DejaVu Sans, which it is given; a browser has that or a similar one. Colours are of the light
page; the HTML file replaces those of ink, hair and wash by its own where it is dark.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

from nodeprint.errors import printable

INK, QUIET, HAIR, WASH, ALARM = "#1c2329", "#5b6570", "#c9d0d6", "#e6eaee", "#a3201d"
#: Heights of letters: what is read on every figure, and what is read on a second look.
TEXT, SMALL = 2.2, 1.85


@dataclass(frozen=True, slots=True)
class Image:
    """A PNG on a drawing: its top left corner and its size, in mm."""

    png: bytes
    x: float
    y: float
    width: float
    height: float


class Drawing:
    """An SVG document that grows by marks. Positions and sizes are in mm from the top left corner."""

    def __init__(self, width: float, height: float) -> None:
        self.width, self.height = width, height
        self.images: list[Image] = []
        self._marks: list[str] = []

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
        """A line of text whose middle is at height `y`; `anchor` is start, middle or end of it at `x`. `turned`: it
        runs upwards."""
        turn = f' transform="rotate(-90 {x:.2f} {y:.2f})"' if turned else ""
        style = (f' text-anchor="{anchor}"' if anchor != "start" else "") + (' font-weight="bold"' if bold else "")
        where = f'x="{x:.2f}" y="{y + 0.36 * size:.2f}" font-size="{size:.2f}" fill="{fill}"'
        self._marks.append(f"<text {where}{style}{turn}>{escape(printable(text, 200))}</text>")

    def line(
        self, x1: float, y1: float, x2: float, y2: float, *, stroke: str = INK, width: float = 0.18, dash: str = ""
    ) -> None:
        """A straight line; `dash` as SVG's stroke-dasharray."""
        self.path([(x1, y1), (x2, y2)], stroke=stroke, width=width, dash=dash)

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
        """A line through `points`, or an area."""
        if not points:
            return
        route = "M" + "L".join(f"{x:.2f} {y:.2f}" for x, y in points) + ("Z" if closed else "")
        pen = f' stroke="{stroke}" stroke-width="{width:.3g}"' if stroke != "none" else ""
        rest = (f' stroke-dasharray="{dash}"' if dash else "") + (f' opacity="{opacity:.3g}"' if opacity < 1 else "")
        self._marks.append(f'<path d="{route}" fill="{fill}"{pen}{rest}/>')

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
    ) -> None:
        """A rectangle from its top left corner."""
        pen = f' stroke="{stroke}" stroke-width="{line:.3g}"' if stroke != "none" else ""
        rest = (f' stroke-dasharray="{dash}"' if dash else "") + (f' opacity="{opacity:.3g}"' if opacity < 1 else "")
        size = f'width="{max(width, 0):.2f}" height="{max(height, 0):.2f}"'
        self._marks.append(f'<rect x="{x:.2f}" y="{y:.2f}" {size} fill="{fill}"{pen}{rest}/>')

    def dot(self, x: float, y: float, *, radius: float = 0.6, fill: str = INK, opacity: float = 1.0) -> None:
        """A filled circle."""
        rest = f' opacity="{opacity:.3g}"' if opacity < 1 else ""
        self._marks.append(f'<circle cx="{x:.2f}" cy="{y:.2f}" r="{radius:.2f}" fill="{fill}"{rest}/>')

    def triangle(self, x: float, y: float, *, radius: float = 1.0, fill: str = ALARM) -> None:
        """A triangle around a point: what asks for attention, with or without colour."""
        corners = [(x, y - radius), (x + 0.9 * radius, y + 0.75 * radius), (x - 0.9 * radius, y + 0.75 * radius)]
        self.path(corners, fill=fill, closed=True)

    def image(self, png: bytes, x: float, y: float, width: float, height: float) -> None:
        """A PNG whose pixels stay sharp, below everything else."""
        self.images.append(Image(png, x, y, width, height))

    def svg(self) -> bytes:
        """The document without its images."""
        size = f'width="{self.width:.2f}mm" height="{self.height:.2f}mm"'
        names = 'xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink"'
        box = f'viewBox="0 0 {self.width:.2f} {self.height:.2f}"'
        marks = "\n".join(self._marks)
        return f'<svg {names} {size} {box} font-family="DejaVu Sans, Verdana, sans-serif">\n{marks}\n</svg>\n'.encode()


def whole(svg: bytes, images: Sequence[Image]) -> bytes:
    """A document of Drawing with its images in it."""
    inside = []
    for one in images:
        uri = f"data:image/png;base64,{base64.b64encode(one.png).decode('ascii')}"
        size = f'x="{one.x:.2f}" y="{one.y:.2f}" width="{one.width:.2f}" height="{one.height:.2f}"'
        inside.append(
            f'<image {size} preserveAspectRatio="none" style="image-rendering:pixelated" xlink:href="{uri}"/>\n'
        )
    start = svg.index(b">\n") + 2
    return svg[:start] + "".join(inside).encode() + svg[start:]
