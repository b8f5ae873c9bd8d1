"""Deterministic output of figures as SVG, PDF and files."""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, Generic, TypeVar

import matplotlib
import msgspec
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.gridspec import GridSpec

from nodeprint import files
from nodeprint.report.figures.drawing import root_of, wrapped
from nodeprint.report.figures.figure_data import table
from nodeprint.report.figures.style import Style

#: Below this width, in mm, letters and scales of the smallest figures leave no room for data.
LEAST_MM = 40
#: The largest width of a figure, wider than any page.
MOST_MM = 1000
_INCH = 25.4
#: In mm: the margin, the gaps between columns and rows of axes, the origin line, and the temporary margin for measuring
#: letters.
_PAD, _ACROSS, _DOWN, _ORIGIN, _ROOM = 1.0, 3.0, 2.0, 3.5, 150.0
#: The initial share of the axes in the width, and the share of this that requires no second layout.
_SHARE_OF_AXES, _NEAR = 0.8, 0.85
#: matplotlib numbers the groups of an SVG. Nothing refers to the numbers, and several figures would repeat them.
_GROUP_ID = re.compile(r' id="[A-Za-z.]+[0-9]*_[0-9]+"')


class Frame(msgspec.Struct, frozen=True):
    """The size of a figure in mm: its `width`, and the `height` or `aspect` of each of its axes.

    The axes form `rows` and `columns`; `aspect` is height over width. Axes are never narrower than `least`, nor wider
    than `most`; the figure changes its width instead. Letters and scales get the room that they need next to the axes.
    """

    width: float
    height: float = 0.0
    aspect: float = 0.0
    least: float = 18.0
    most: float = np.inf
    rows: int = 1
    columns: int = 1

    def axes(self, width: float) -> tuple[float, float]:
        """Return width and height, in mm, of axes with this width available."""
        across = min(max(width, self.least), self.most)
        return across, self.height or self.aspect * across


Data = TypeVar("Data")


class Primitive(msgspec.Struct, Generic[Data], frozen=True):
    """A drawing function for data, and the size of its figure at a width in mm."""

    draw: Callable[[Axes, Data, Style], None]
    frame: Callable[[Any, float], Frame]

    def __call__(self, ax: Axes, data: Data, style: Style) -> None:
        """Draw the data on axes."""
        self.draw(ax, data, style)


def primitive(
    frame: Callable[[Any, float], Frame],
) -> Callable[[Callable[[Axes, Data, Style], None]], Primitive[Data]]:
    """Make a primitive from a drawing function and a function for its size."""
    return lambda draw: Primitive(draw, frame)


class Origin(msgspec.Struct, frozen=True):
    """The origin of a figure's numbers."""

    campaign: str
    node: str
    version: str
    simulated: bool = False
    imported: bool = False

    @property
    def line(self) -> str:
        """The origin in one line."""
        marks = [word for word, holds in (("SIMULATED", self.simulated), ("IMPORTED", self.imported)) if holds]
        node = f"node {self.node}" if self.node else "all nodes"
        return ", ".join([f"campaign {self.campaign}", node, f"nodeprint {self.version}", *marks])


def figure(draw: Primitive[Data], data: Data, style: Style, width: float, origin: Origin | None = None) -> Figure:
    """Return a figure of `width` mm, or as wide as its letters need, with a line for the origin if given."""
    frame = draw.frame(data, width)
    lower_left = (frame.rows - 1) * frame.columns + 1
    across = _SHARE_OF_AXES * frame.width / frame.columns
    line = wrapped(origin.line, frame.width / _INCH * 72, style) if origin is not None else ""
    below = _ORIGIN * len(line.splitlines())
    with style.applied(), _any_letters():
        for _ in range(2):  # again if letters leave much less room than assumed
            out, drawn_for = Figure(), across
            out.subplots_adjust(**_sized(out, frame, across, (_ROOM,) * 4))
            draw(out.add_subplot(frame.rows, frame.columns, lower_left), data, style)
            across = _make_room(out, frame, style, below)
            if across > _NEAR * drawn_for:
                break
        if line:
            at = 0.8 / (out.get_figheight() * _INCH)
            pen: dict[str, Any] = {"fontsize": style.smallest_letters_pt, "color": style.colors["quiet"]}
            out.text(0.01, at, line, va="bottom", **pen)
    return out


def _make_room(figure: Figure, frame: Frame, style: Style, below: float) -> float:
    """Fit letters and scales, give the axes the remaining width (returned), and set the figure's height.

    matplotlib's tight layout measures once, on paper that is large enough. Its constrained layout measures twice at
    each of two sizes, which takes longer than the drawing of a figure.
    """
    grid = figure.axes[0].get_gridspec()
    assert isinstance(grid, GridSpec)
    around, across, down = (72 / _INCH / style.letters_pt * mm for mm in (_PAD, _ACROSS, _DOWN))
    grid.tight_layout(figure, pad=around, w_pad=across, h_pad=down)
    pars, (width, height) = grid.get_subplot_params(), _INCH * figure.get_size_inches()
    room = (pars.left * width, (1 - pars.right) * width, pars.bottom * height + below, (1 - pars.top) * height)
    gaps = (frame.columns - 1, frame.rows - 1)
    across = (pars.right - pars.left) * width / (frame.columns + gaps[0] * pars.wspace)
    down = (pars.top - pars.bottom) * height / (frame.rows + gaps[1] * pars.hspace)
    between = (pars.wspace * across, pars.hspace * down)
    for_axes = (frame.width - room[0] - room[1] - gaps[0] * between[0]) / frame.columns
    grid.update(**_sized(figure, frame, for_axes, room, between))
    figure.subplots_adjust()  # needed because a grid's update moves only axes of pyplot's figures
    return float(for_axes)


def _sized(
    figure: Figure,
    frame: Frame,
    for_axes: float,
    room: tuple[float, float, float, float],
    between: tuple[float, float] = (0.0, 0.0),
) -> dict[str, float]:
    """Set a figure's size from its axes; return the layout as matplotlib's subplot parameters.

    Each axes has the width `for_axes`, with `room` to the left, right, bottom and top, and `between` columns and rows
    (all in mm).
    """
    (left, right, bottom, top), (across, down) = room, frame.axes(for_axes)
    width = left + frame.columns * across + (frame.columns - 1) * between[0] + right
    height = bottom + frame.rows * down + (frame.rows - 1) * between[1] + top
    figure.set_size_inches(width / _INCH, height / _INCH)
    return {
        "left": left / width,
        "right": 1 - right / width,
        "bottom": bottom / height,
        "top": 1 - top / height,
        "wspace": between[0] / across,
        "hspace": between[1] / down,
    }


def width_mm(figure: Figure) -> float:
    """Return the width of a figure in mm."""
    # in whole micrometers: two halves of a page stand side by side
    return round(float(figure.get_figwidth() * _INCH), 3)


def on_axes(draw: Primitive[Data], data: Data, style: Style, ax: Axes) -> None:
    """Draw on axes of a user's own figure, which gets matplotlib's constrained layout if it has none."""
    with style.applied():
        # letters of existing axes have another style's size and need room for this one's
        sizes = matplotlib.rcParams
        for axis, ticks in ((ax.xaxis, sizes["xtick.labelsize"]), (ax.yaxis, sizes["ytick.labelsize"])):
            axis.set_tick_params(labelsize=ticks)
            axis.label.set_fontsize(sizes["axes.labelsize"])
        draw(ax, data, style)
    if ax.get_subplotspec() is not None and root_of(ax).get_layout_engine() is None:
        root_of(ax).set_layout_engine("constrained")


def svg(figure: Figure, style: Style, *, outlines: bool = False) -> str:
    """Return a figure as SVG with letters as text, or as `outlines` that need no font."""
    out = io.StringIO()
    fonttype = "path" if outlines else "none"
    with style.applied(), matplotlib.rc_context({"svg.fonttype": fonttype}), _any_letters():
        figure.savefig(out, format="svg", metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
    text = out.getvalue()
    return _GROUP_ID.sub("", text[text.index("<svg") :])


def pdf(figure: Figure, style: Style) -> bytes:
    """Return a figure as PDF with its fonts."""
    out = io.BytesIO()
    with style.applied(), _any_letters():
        figure.savefig(out, format="pdf", metadata={"Creator": None, "Producer": None, "CreationDate": None})
    return out.getvalue()


def _any_letters() -> warnings.catch_warnings[None]:
    """Silence warnings about letters of a name that the font lacks."""
    return warnings.catch_warnings(action="ignore", category=UserWarning)


def save(stem: Path, draw: Primitive[Any], data: Any, style: Style, width: float, origin: Origin) -> list[Path]:
    """Write a figure as `stem`.svg, .pdf and .csv, each with its origin; return the paths. Raises CannotWriteError."""
    drawn = figure(draw, data, style, width, origin)
    named = stem.name
    return [
        files.write(stem.with_name(f"{named}.svg"), svg(drawn, style, outlines=True)),
        files.write(stem.with_name(f"{named}.pdf"), pdf(drawn, style)),
        files.write(stem.with_name(f"{named}.csv"), csv(table(data), origin)),
    ]


def csv(table: pd.DataFrame, origin: Origin) -> str:
    """Return a table as CSV; a first line with # has its origin, and values that were not measured are empty."""
    return f"# {origin.line}\n{table.to_csv(index=False, float_format='%.7g', lineterminator=chr(10))}"
