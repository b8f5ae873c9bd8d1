"""The components of a machine along an axis of CPUs: CCX, CCD, quadrant and socket, as runs of neighboring CPUs."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.axis import Axis, XAxis
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.gridspec import GridSpec, GridSpecBase
from matplotlib.text import Text
from matplotlib.ticker import FuncFormatter, Locator
from matplotlib.transforms import blended_transform_factory, offset_copy

from nodeprint.data.places.layout import CCD, CCX, NAMES, QUADRANT, SOCKET, Ints
from nodeprint.report.figures.style import Style

_COLUMNS = (CCX, CCD, QUADRANT, SOCKET)
#: Brackets at an axis: distance in points, and the estimated width of a letter as a share of its size.
BRACKET_PT, _LETTER = 8.5, 0.62


class PartLevel(msgspec.Struct, frozen=True):
    """A level of the machine: the `outline` of its components (a name of style.yaml), its name, and its components.

    Each component, in order, has its first place, the place after its last, and its label, empty if it has none.
    """

    outline: str
    name: str
    groups: tuple[tuple[int, int, str], ...]


def outlined(numbers: npt.ArrayLike, name: str, outline: str) -> xr.Variable:
    """Return a level as a coordinate of places that is drawn with an outline; each run of a number is a component."""
    return xr.Variable("place", np.asarray(numbers), {"long_name": name, "outline": outline, "level": name, "alone": 1})


def part_coordinates(dim: str, slots: Ints) -> dict[str, xr.Variable]:
    """Return the components of `slots` (n, 6; in drawing order) as coordinates: ccx, ccd, quadrant, socket.

    An unknown level has no coordinate. A level with one component, or with one CPU per component, has no outline. Two
    levels with the same components have one outline with both names.
    """
    out: dict[str, xr.Variable] = {}
    finer = np.zeros(0, dtype=np.int64)
    name, finest = "", ""
    for column in _COLUMNS:
        level, numbers = NAMES[column], slots[:, column]
        if len(slots) < 2 or numbers.min() < 0:
            continue
        starts = np.flatnonzero((slots[1:, : column + 1] != slots[:-1, : column + 1]).any(axis=1)) + 1
        key = level.lower()
        out[key] = xr.Variable(dim, numbers, {"long_name": level})
        if not 0 < len(starts) < len(slots) - 1:
            continue
        name = f"{name} = {level}" if np.array_equal(starts, finer) else level
        if np.array_equal(starts, finer):
            del out[finest].attrs["outline"]
        out[key].attrs |= {"outline": level, "level": name}
        finer, finest = starts, key
    return out


def part_levels(data: xr.Dataset, dim: str) -> tuple[PartLevel, ...]:
    """Return the levels with an outline along a dimension, the finest first.

    A component is a run of one value of its coordinate, inside a component of the coarser levels unless it is
    `outlined`. A negative number is no label.
    """
    drawn = [of for of in data.coords.values() if of.dims == (dim,) and "outline" in of.attrs]
    values = [of.to_numpy() for of in drawn]
    out = []
    for number, of in enumerate(drawn):
        coarser = values[number : number + 1] if "alone" in of.attrs else values[number:]
        changes = np.any([each[1:] != each[:-1] for each in coarser], axis=0)
        starts = [0, *(np.flatnonzero(changes) + 1).tolist(), data.sizes[dim]]
        labels = [str(value) for value in values[number][starts[:-1]].tolist()]
        groups = tuple(
            (start, stop, "" if label.startswith("-") else label)
            for (start, stop), label in zip(pairwise(starts), labels, strict=True)
        )
        out.append(PartLevel(of.attrs["outline"], of.attrs["level"], groups))
    return tuple(out)


def of_slots(slots: Ints) -> tuple[PartLevel, ...]:
    """Return the levels of `slots` (n, 6; in drawing order), the finest first."""
    return part_levels(xr.Dataset(coords={"place": range(len(slots)), **part_coordinates("place", slots)}), "place")


def draw_outlines(ax: Axes, levels: Sequence[PartLevel], size: int, style: Style, color: str) -> None:
    """Draw a square around the pairs inside each component, and lines across the matrix between sockets."""
    for level in levels:
        ends = [(start - 0.5, stop - 0.5) for start, stop, _ in level.groups]
        lines = [[(a, a), (b, a), (b, b), (a, b), (a, a)] for a, b in ends if b - a > 1]
        if level is levels[-1] and len(ends) <= 8:
            for at, _ in ends[1:]:
                lines += [[(at, -0.5), (at, size - 0.5)], [(-0.5, at), (size - 0.5, at)]]
        pen = style.outlines[level.outline]
        look: dict[str, Any] = {"linewidths": pen.points, "linestyles": [pen.linestyle], "colors": style.color(color)}
        ax.add_collection(LineCollection(lines, **look), autolim=False)


def root_of(ax: Axes) -> Figure:
    """Return the figure of axes."""
    root = ax.get_figure(root=True)
    assert root is not None
    return root


def size_pt(ax: Axes) -> tuple[float, float]:
    """Return width and height of axes in points, which are final during drawing."""
    points = 72 / root_of(ax).dpi
    return float(ax.bbox.width * points), float(ax.bbox.height * points)


def letters(ax: Axes, share: float, style: Style) -> int:
    """Return how many letters fit in a share of the width of axes."""
    return int(share * size_pt(ax)[0] / (_LETTER * style.letters_pt))


class FittedText(Text):
    """A text that is `shown` if it fits, which is determined during drawing; layouts ignore it."""

    def __init__(self, x: float, y: float, text: str, *, shown: Callable[[], bool], **properties: Any) -> None:
        self._shown = shown
        super().__init__(x, y, text, clip_on=False, **properties)
        self.set_in_layout(False)

    def get_visible(self) -> bool:
        """Tell whether it is drawn."""
        return self._shown()


class Places(Locator):
    """Ticks at places from 0 to `count`, exclusive: all of them, every second, every fourth, and so on.

    A tick needs `points` points; there are at most `most` ticks.
    """

    def __init__(self, ax: Axes, across: bool, count: int, points: float, most: int) -> None:
        self.ax, self.across, self.count, self.points, self.most = ax, across, count, points, most

    def __call__(self) -> range:
        """Return the ticks that fit on the axes at their current size."""
        width, height = size_pt(self.ax)
        length = width if self.across else height
        return range(0, self.count, _power_of_two(max(self.count * self.points / length, self.count / self.most)))

    def tick_values(self, vmin: float, vmax: float) -> range:
        """Return the same ticks for any interval."""
        return self()


def _power_of_two(least: float) -> int:
    return 1 << (max(1, math.ceil(least)) - 1).bit_length()


def name_places(axis: Axis, labels: Sequence[str], style: Style, *, turned: bool = False, most: int = 512) -> None:
    """Set as many ticks with names of places as fit along an axis; those of an x axis may be `turned`."""
    wide = 1.6 if turned else max(map(len, labels), default=1) * _LETTER + 0.5
    ax, across = axis.axes, isinstance(axis, XAxis)
    axis.set_major_locator(Places(ax, across, len(labels), wide * style.letters_pt, most))
    axis.set_major_formatter(FuncFormatter(lambda at, _: labels[int(at)]))
    if turned and across:
        axis.set_tick_params(rotation=90)


def name_below(
    ax: Axes, labels: Sequence[str], levels: Sequence[PartLevel], title: str, style: Style, *, turned: bool = False
) -> None:
    """Name places below axes, then their components with brackets, then the kind of places."""
    ax.set_xlim(-0.7, len(labels) - 0.3)
    name_places(ax.xaxis, labels, style, turned=turned)
    if levels:
        along = max(map(len, labels)) * _LETTER if turned else 1.2
        draw_brackets(ax, levels, style, below=along * style.letters_pt + 12.0)
    ax.set_xlabel(title, labelpad=len(levels) * BRACKET_PT + 2)


def subplots(ax: Axes, rows: int, columns: int) -> list[Axes]:
    """Return axes in rows and columns, from the top, in the area of `ax`, which becomes the lower left one."""
    spec, figure, lower_left = ax.get_subplotspec(), root_of(ax), (rows - 1) * columns
    if spec is None:
        at = ax.get_position()
        grid: GridSpecBase = GridSpec(rows, columns, figure, at.x0, at.y0, at.x1, at.y1)
    elif figure.axes == [ax] and spec.get_gridspec().get_geometry() == (rows, columns):
        grid = spec.get_gridspec()
    else:
        grid = spec.subgridspec(rows, columns)
    ax.set_subplotspec(grid[lower_left])
    return [ax if at == lower_left else figure.add_subplot(grid[at]) for at in range(rows * columns)]


def _is_kept(ax: Axes, number: int, needed: float) -> bool:
    return number % _power_of_two(needed / size_pt(ax)[0]) == 0


def draw_brackets(ax: Axes, levels: Sequence[PartLevel], style: Style, *, below: float | None = None) -> None:
    """Draw a line for each component above the axes, the finest level nearest, or `below` them at that many points."""
    ends = ax.get_xlim()
    each = size_pt(ax)[0] / abs(ends[1] - ends[0])
    letter = style.letters_pt * _LETTER
    for number, level in enumerate(levels):
        offset = 4.0 + number * BRACKET_PT if below is None else -below - number * BRACKET_PT
        edge = 1.0 if below is None else 0.0
        at_axes = blended_transform_factory(ax.transData, ax.transAxes)
        across = offset_copy(at_axes, root_of(ax), 0, offset, units="points")
        gap = min(0.12 * each, 1.0) / each
        named = [group for group in level.groups if group[2]]
        lines = [[(start - 0.5 + gap, edge), (stop - 0.5 - gap, edge)] for start, stop, _ in named]
        pen = style.outlines[level.outline]
        look: dict[str, Any] = {"linewidths": max(pen.points, 0.6), "linestyles": [pen.linestyle], "clip_on": False}
        brackets = LineCollection(lines, colors=style.color("quiet"), transform=across, **look)
        brackets.set_in_layout(False)  # the level's name next to them is as high
        ax.add_collection(brackets, autolim=False)
        if not named:
            continue
        places = min(stop - start for start, stop, _ in named) / abs(ends[1] - ends[0])
        needed = (max(len(label) for *_, label in named) * letter + 2) / places  # points of axes for all numbers
        look = {"ha": "center", "va": "bottom", "color": style.color("ink"), "transform": across}
        for at, (start, stop, label) in enumerate(named):
            shown = partial(_is_kept, ax, at, needed)
            middle = (start + stop - 1) / 2
            ax.add_artist(FittedText(middle, edge, label, shown=shown, fontsize=style.smallest_letters_pt, **look))
        where: dict[str, Any] = {"xycoords": "axes fraction", "xytext": (-5, offset), "textcoords": "offset points"}
        look = {"ha": "right", "va": "bottom" if below is None else "center", "color": style.color("quiet")}
        ax.annotate(level.name, (0, edge), fontsize=style.smallest_letters_pt, **where, **look)
