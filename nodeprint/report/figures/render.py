"""Figures as SVG, PDF and files: the same bytes from the same data."""

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
from nodeprint.report.figures.figure_data import table
from nodeprint.report.figures.part_levels import root_of
from nodeprint.report.figures.pixels import wrapped
from nodeprint.report.figures.style import Style

#: Below this width, in mm, letters and scales of the smallest figures leave nothing to draw in.
LEAST_MM = 40
#: No page is wider.
MOST_MM = 1000
_INCH = 25.4
#: In mm: around all that is drawn, between columns and rows of axes, for the line of the origin, and around axes while
#: letters are measured.
_PAD, _ACROSS, _DOWN, _ORIGIN, _ROOM = 1.0, 3.0, 2.0, 3.5, 150.0
#: Of a figure's width what axes have until letters are measured, and of this the least that they may have then.
_SHARE_OF_AXES, _NEAR = 0.8, 0.85
#: matplotlib numbers the groups of an SVG: nothing refers to them, and several figures of a page would have them twice.
_GROUP_ID = re.compile(r' id="[A-Za-z.]+[0-9]*_[0-9]+"')


class Frame(msgspec.Struct, frozen=True):
    """The size of a figure in mm: its `width`, and of each of its axes, in `rows` and `columns`, the `height`, or how
    many times its width that is, its `aspect`. Axes are never narrower than `least`, nor wider than `most`: the figure
    is wider or narrower then. Letters and scales have the room beside the axes that they need.
    """

    width: float
    height: float = 0.0
    aspect: float = 0.0
    least: float = 18.0
    most: float = np.inf
    rows: int = 1
    columns: int = 1

    def axes(self, width: float) -> tuple[float, float]:
        """Width and height of axes that have so much room, in mm."""
        across = min(max(width, self.least), self.most)
        return across, self.height or self.aspect * across


Data = TypeVar("Data")


class Primitive(msgspec.Struct, Generic[Data], frozen=True):
    """How data are drawn on axes, and the size of a figure of them at a width in mm."""

    draw: Callable[[Axes, Data, Style], None]
    frame: Callable[[Data, float], Frame]

    def __call__(self, ax: Axes, data: Data, style: Style) -> None:
        """Draw the data on axes."""
        self.draw(ax, data, style)


def primitive(
    frame: Callable[[Data, float], Frame],
) -> Callable[[Callable[[Axes, Data, Style], None]], Primitive[Data]]:
    """Make a primitive of a function that draws, with what says its size."""
    return lambda draw: Primitive(draw, frame)


class Origin(msgspec.Struct, frozen=True):
    """Where a figure's numbers are from."""

    campaign: str
    node: str
    version: str
    simulated: bool = False
    imported: bool = False

    @property
    def line(self) -> str:
        """One line that says so."""
        marks = [word for word, holds in (("SIMULATED", self.simulated), ("IMPORTED", self.imported)) if holds]
        node = f"node {self.node}" if self.node else "all nodes"
        return ", ".join([f"campaign {self.campaign}", node, f"nodeprint {self.version}", *marks])


def figure(draw: Primitive[Data], data: Data, style: Style, width: float, origin: Origin | None = None) -> Figure:
    """A figure of `width` mm, or what its letters need, with a line of its origin below where that is given."""
    frame = draw.frame(data, width)
    lower_left = (frame.rows - 1) * frame.columns + 1
    across = _SHARE_OF_AXES * frame.width / frame.columns
    line = wrapped(origin.line, frame.width / _INCH * 72, style) if origin is not None else ""
    below = _ORIGIN * len(line.splitlines())
    with style.applied(), _any_letters():
        for _ in range(2):  # again where letters leave much less than what was drawn for
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
    """Give letters and scales the room that they need, axes the rest of the width, which is returned, and the figure
    its height.

    matplotlib's tight layout measures once what is beside axes, on paper that is large enough for all; its constrained
    one measures twice at each of two sizes, which is more than a figure's drawing takes.
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
    figure.subplots_adjust()  # as the update of a grid moves axes of pyplot's figures alone
    return float(for_axes)


def _sized(
    figure: Figure,
    frame: Frame,
    for_axes: float,
    room: tuple[float, float, float, float],
    between: tuple[float, float] = (0.0, 0.0),
) -> dict[str, float]:
    """Give a figure the size of its axes, of which each has a width, with the room left, right, below and above and
    between columns and rows (mm), and return these as matplotlib counts them."""
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
    """How wide a figure is."""
    # in whole micrometres: two halves of a page stand side by side
    return round(float(figure.get_figwidth() * _INCH), 3)


def on_axes(draw: Primitive[Data], data: Data, style: Style, ax: Axes) -> None:
    """Draw on axes of somebody's own figure, which gets matplotlib's constrained layout where it has none."""
    with style.applied():
        # of axes that were made before, letters have another style's size, and there is room for those of this one
        sizes = matplotlib.rcParams
        for axis, ticks in ((ax.xaxis, sizes["xtick.labelsize"]), (ax.yaxis, sizes["ytick.labelsize"])):
            axis.set_tick_params(labelsize=ticks)
            axis.label.set_fontsize(sizes["axes.labelsize"])
        draw(ax, data, style)
    if ax.get_subplotspec() is not None and root_of(ax).get_layout_engine() is None:
        root_of(ax).set_layout_engine("constrained")


def svg(figure: Figure, style: Style, *, outlines: bool = False) -> str:
    """A figure as SVG, its letters as text, or as `outlines` that look the same where the font is missing."""
    out = io.StringIO()
    fonttype = "path" if outlines else "none"
    with style.applied(), matplotlib.rc_context({"svg.fonttype": fonttype}), _any_letters():
        figure.savefig(out, format="svg", metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
    text = out.getvalue()
    return _GROUP_ID.sub("", text[text.index("<svg") :])


def pdf(figure: Figure, style: Style) -> bytes:
    """A figure as PDF with its fonts."""
    out = io.BytesIO()
    with style.applied(), _any_letters():
        figure.savefig(out, format="pdf", metadata={"Creator": None, "Producer": None, "CreationDate": None})
    return out.getvalue()


def _any_letters() -> warnings.catch_warnings[None]:
    """A name may have letters that the font has not, which is no news for a terminal."""
    return warnings.catch_warnings(action="ignore", category=UserWarning)


def save(stem: Path, draw: Primitive[Any], data: Any, style: Style, width: float, origin: Origin) -> list[Path]:
    """Write a figure as `stem`.svg and .pdf and its numbers as .csv, each with its origin; returns the paths.

    Raises CannotWriteError.
    """
    drawn = figure(draw, data, style, width, origin)
    named = stem.name
    return [
        files.write(stem.with_name(f"{named}.svg"), svg(drawn, style, outlines=True)),
        files.write(stem.with_name(f"{named}.pdf"), pdf(drawn, style)),
        files.write(stem.with_name(f"{named}.csv"), csv(table(data), origin)),
    ]


def csv(table: pd.DataFrame, origin: Origin) -> str:
    """A table with its origin as a first line that begins with #; what was not measured is empty."""
    return f"# {origin.line}\n{table.to_csv(index=False, float_format='%.7g', lineterminator=chr(10))}"
