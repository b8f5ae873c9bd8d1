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
from nodeprint.report.figures.style import Style

#: Below this width, in mm, letters and scales of the smallest figures leave nothing to draw in.
LEAST_MM = 40
_INCH = 25.4
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
        ax = out.add_axes((
            frame.left / frame.width, (frame.bottom + below) / height, inner[0] / frame.width, inner[1] / height,
        ))  # fmt: skip
        draw(ax, data, style)
        if origin is not None:
            out.text(
                0.01, 0.8 / height, origin.line, fontsize=style.smallest_letters_pt, color=style.colours["quiet"],
                va="bottom",
            )  # fmt: skip
    return out


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
