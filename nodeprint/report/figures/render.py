"""Figures as SVG, PDF and files: the same bytes from the same data."""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Protocol, TypeVar

import matplotlib
import msgspec
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from nodeprint import files
from nodeprint.errors import NodeprintError
from nodeprint.report.figures.part_levels import root_of
from nodeprint.report.figures.style import Style

#: Below this width, in mm, letters and scales of the smallest figures leave nothing to draw in.
LEAST_MM = 40
_INCH = 25.4
#: So often what is drawn is measured to find room for it.
_FITS = 3
#: matplotlib numbers the groups of an SVG: nothing refers to them, and several figures of a page would have them twice.
_GROUP_ID = re.compile(r' id="[A-Za-z.]+[0-9]*_[0-9]+"')


class Frame(msgspec.Struct, frozen=True):
    """The size of a figure and the room around its axes, in mm."""

    width: float
    height: float
    left: float = 12.0
    right: float = 3.0
    bottom: float = 9.0
    top: float = 5.0


class FigureData(Protocol):
    """What a figure draws: its room at a width in mm, and its numbers with their units in the names of columns."""

    def frame(self, width: float) -> Frame:
        """Size and margins."""

    def table(self) -> pd.DataFrame:
        """The numbers that it shows."""


Data = TypeVar("Data", bound=FigureData)
Draw = Callable[[Axes, Data, Style], None]


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


def figure(draw: Draw[Data], data: Data, style: Style, width: float, origin: Origin | None = None) -> Figure:
    """A figure of `width` mm, with a line of its origin below where that is given. Raises NodeprintError where its
    letters leave no room."""
    frame = data.frame(width)
    below = 3.5 if origin is not None else 0.0
    height = frame.height + below
    with style.applied():
        out = Figure(figsize=(frame.width / _INCH, height / _INCH))
        inner = (frame.width - frame.left - frame.right, frame.height - frame.bottom - frame.top)
        if min(inner) <= 0:
            raise NodeprintError(
                f"{frame.width:g} mm leave no room beside the names in a figure", advice="make it wider"
            )
        ax = out.add_axes(
            (frame.left / frame.width, (frame.bottom + below) / height, inner[0] / frame.width, inner[1] / height)
        )
        draw(ax, data, style)
        if origin is not None:
            out.text(
                0.01,
                0.8 / height,
                origin.line,
                fontsize=style.smallest_letters_pt,
                color=style.colours["quiet"],
                va="bottom",
            )
    return out


def on_axes(draw: Draw[Data], data: Data, style: Style, ax: Axes) -> None:
    """Draw on axes of somebody's own figure. Where that has no layout engine they are made smaller, so that labels and
    scales stay in their cell of the figure's grid."""
    with style.applied():
        # of axes that were made before, letters have another style's size, and there is room for those of this one
        sizes = matplotlib.rcParams
        for axis, ticks in ((ax.xaxis, sizes["xtick.labelsize"]), (ax.yaxis, sizes["ytick.labelsize"])):
            axis.set_tick_params(labelsize=ticks)
            axis.label.set_fontsize(sizes["axes.labelsize"])
        draw(ax, data, style)
        if root_of(ax).get_layout_engine() is None:
            _fit_in_cell(ax)


def _fit_in_cell(ax: Axes) -> None:
    """Move the sides of axes inwards by what is drawn beyond their cell of the grid, or beyond the figure."""
    figure, spec = root_of(ax), ax.get_subplotspec()
    left, right, bottom, top = 0.0, 1.0, 0.0, 1.0
    if spec is not None:
        grid = spec.get_gridspec()
        left, right = spec.colspan.start / grid.ncols, spec.colspan.stop / grid.ncols
        bottom, top = 1 - spec.rowspan.stop / grid.nrows, 1 - spec.rowspan.start / grid.nrows
    for _ in range(_FITS):  # labels move with the axes, and others are there on smaller ones
        drawn, at = ax.get_tightbbox(), ax.get_position(original=True)
        if drawn is None:
            return
        drawn = drawn.transformed(figure.transFigure.inverted())
        x0, x1 = at.x0 + max(0.0, left - drawn.x0), at.x1 - max(0.0, drawn.x1 - right)
        y0, y1 = at.y0 + max(0.0, bottom - drawn.y0), at.y1 - max(0.0, drawn.y1 - top)
        if min(x1 - x0, y1 - y0) <= 0 or (x0, x1, y0, y1) == (at.x0, at.x1, at.y0, at.y1):
            return  # without room nothing is gained
        ax.set_position((x0, y0, x1 - x0, y1 - y0))


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


def save(stem: Path, draw: Draw[Data], data: Data, style: Style, width: float, origin: Origin) -> list[Path]:
    """Write a figure as `stem`.svg and .pdf and its numbers as .csv, each with its origin; returns the paths.

    Raises CannotWriteError.
    """
    drawn = figure(draw, data, style, width, origin)
    named = stem.name
    return [
        files.write(stem.with_name(f"{named}.svg"), svg(drawn, style, outlines=True)),
        files.write(stem.with_name(f"{named}.pdf"), pdf(drawn, style)),
        files.write(stem.with_name(f"{named}.csv"), csv(data.table(), origin)),
    ]


def csv(table: pd.DataFrame, origin: Origin) -> str:
    """A table with its origin as a first line that begins with #; what was not measured is empty."""
    return f"# {origin.line}\n{table.to_csv(index=False, float_format='%.7g', lineterminator=chr(10))}"
