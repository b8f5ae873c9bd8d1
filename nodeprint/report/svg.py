"""A drawing as SVG: for HTML and for files of their own.

Text is set in DejaVu Sans; a browser has that or a similar font.
"""

from __future__ import annotations

import base64
import io
from html import escape

from nodeprint.report import scale
from nodeprint.report.drawing import Dots, Drawing, Image, Mark, Path, Pen, Pixels, Segments, Words


def svg(drawing: Drawing, width: float | None = None) -> bytes:
    """The document of a drawing, its images inside; `width` is that on paper in mm, if not the drawing's own."""
    by = 1.0 if width is None else width / drawing.width
    size = f'width="{drawing.width * by:.2f}mm" height="{drawing.height * by:.2f}mm"'
    names = 'xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink"'
    box = f'viewBox="0 0 {drawing.width:.2f} {drawing.height:.2f}"'
    marks = "\n".join([*map(_image, drawing.images), *map(_mark, drawing.marks)])
    return f'<svg {names} {size} {box} font-family="DejaVu Sans, Verdana, sans-serif">\n{marks}\n</svg>\n'.encode()


def png(pixels: Pixels) -> bytes:
    """A palette PNG, a pixel an entry."""
    from PIL import Image as Picture  # noqa: PLC0415 (no PDF needs it)

    image = Picture.frombytes("P", (pixels.width, pixels.height), pixels.entries)
    image.putpalette([channel for rgb in scale.palette(pixels.palette) for channel in rgb])
    out = io.BytesIO()
    image.save(out, format="PNG", compress_level=9)
    return out.getvalue()


def _image(one: Image) -> str:
    uri = f"data:image/png;base64,{base64.b64encode(png(one.pixels)).decode('ascii')}"
    size = f'x="{one.x:.2f}" y="{one.y:.2f}" width="{one.width:.2f}" height="{one.height:.2f}"'
    return f'<image {size} preserveAspectRatio="none" style="image-rendering:pixelated" xlink:href="{uri}"/>'


def _mark(mark: Mark) -> str:
    if isinstance(mark, Words):
        return _words(mark)
    if isinstance(mark, Dots):
        style = f'r="{mark.radius:.2f}" fill="{mark.fill}"{_opacity(mark.opacity)}'
        return "".join([f'<circle cx="{x:.2f}" cy="{y:.2f}" {style}/>' for x, y in mark.points])
    if isinstance(mark, Segments):
        route = "".join([f"M{x1:.2f} {y1:.2f}L{x2:.2f} {y2:.2f}" for x1, y1, x2, y2 in mark.ends])
        return f'<path d="{route}" {_pen(mark.pen)}/>'
    if isinstance(mark, Path):
        route = "M" + "L".join(f"{x:.2f} {y:.2f}" for x, y in mark.points) + ("Z" if mark.closed else "")
        return f'<path d="{route}" {_pen(mark.pen)}/>'
    box = f'x="{mark.x:.2f}" y="{mark.y:.2f}" width="{mark.width:.2f}" height="{mark.height:.2f}"'
    end = f"><title>{escape(mark.tip, quote=False)}</title></rect>" if mark.tip else "/>"
    return f"<rect {box} {_pen(mark.pen)}{end}"


def _words(mark: Words) -> str:
    turn = f' transform="rotate(-90 {mark.x:.2f} {mark.y:.2f})"' if mark.turned else ""
    align = f' text-anchor="{mark.anchor}"' if mark.anchor != "start" else ""
    style = align + (' font-weight="bold"' if mark.bold else "")
    where = f'x="{mark.x:.2f}" y="{mark.y:.2f}" font-size="{mark.size:.2f}" fill="{mark.fill}"'
    return f"<text {where}{style}{turn}>{escape(mark.text, quote=False)}</text>"


def _pen(pen: Pen) -> str:
    stroke = f' stroke="{pen.stroke}" stroke-width="{pen.width:.3g}"' if pen.stroke != "none" else ""
    dash = f' stroke-dasharray="{pen.dash}"' if pen.dash else ""
    return f'fill="{pen.fill}"{stroke}{dash}{_opacity(pen.opacity)}'


def _opacity(share: float) -> str:
    return f' opacity="{share:.3g}"' if share < 1 else ""
