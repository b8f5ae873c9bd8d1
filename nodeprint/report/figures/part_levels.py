"""The parts of a machine along an axis of CPUs: CCX, CCD, quadrant and socket, as runs of neighboring CPUs."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import pairwise
from typing import Any

import msgspec
import numpy as np
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
#: Brackets beside an axis: how far one is from the next, and the estimated width of a letter as a share of its size.
BRACKET_PT, _LETTER = 8.5, 0.62


class PartGroup(msgspec.Struct, frozen=True):
    """Neighboring places from `start` to before `stop` that are one part, with its number as `label`."""

    start: int
    stop: int
    label: str


class PartLevel(msgspec.Struct, frozen=True):
    """A level of the machine: the `outline` of its parts (a name of style.yaml), what it is called, its parts."""

    outline: str
    name: str
    groups: tuple[PartGroup, ...]


def part_levels(slots: Ints, *, ccx_name: str = "CCX") -> tuple[PartLevel, ...]:
    """The levels that group `slots` (n, 6; in drawing order), the finest first.

    A level whose parts are unknown or all hold one CPU is left out; levels with the same parts are named together.
    """
    out: list[PartLevel] = []
    for column in _COLUMNS:
        outline, numbers = NAMES[column], slots[:, column]
        if len(slots) < 2 or numbers.min() < 0:
            continue
        changes = np.flatnonzero((slots[1:, : column + 1] != slots[:-1, : column + 1]).any(axis=1)) + 1
        groups = tuple(
            PartGroup(start, stop, str(numbers[start])) for start, stop in pairwise([0, *changes.tolist(), len(slots)])
        )
        if all(group.stop - group.start == 1 for group in groups):
            continue
        name = ccx_name if column == CCX else outline
        if out and [(g.start, g.stop) for g in out[-1].groups] == [(g.start, g.stop) for g in groups]:
            out[-1] = PartLevel(outline, f"{out[-1].name} = {name}", out[-1].groups)
        else:
            out.append(PartLevel(outline, name, groups))
    return tuple(level for level in out if len(level.groups) > 1)


def draw_outlines(ax: Axes, levels: Sequence[PartLevel], size: int, style: Style, color: str) -> None:
    """A square around the pairs inside of each part, and lines over the whole matrix between sockets."""
    for level in levels:
        pen = style.outlines[level.outline]
        inner = [group for group in level.groups if group.stop - group.start > 1]
        squares = [_square(group.start - 0.5, group.stop - 0.5) for group in inner]
        across = level is levels[-1] and len(level.groups) <= 8
        lines = list(_between(level, size)) if across else []
        ax.add_collection(
            LineCollection(
                [*squares, *lines], linewidths=pen.points, linestyles=[pen.linestyle], colors=style.color(color)
            ),
            autolim=False,
        )


def _square(low: float, high: float) -> list[tuple[float, float]]:
    return [(low, low), (high, low), (high, high), (low, high), (low, low)]


def _between(level: PartLevel, size: int) -> Iterator[list[tuple[float, float]]]:
    for group in level.groups[1:]:
        at = group.start - 0.5
        yield [(at, -0.5), (at, size - 0.5)]
        yield [(-0.5, at), (size - 0.5, at)]


def root_of(ax: Axes) -> Figure:
    """The figure that axes are on."""
    root = ax.get_figure(root=True)
    assert root is not None
    return root


def size_pt(ax: Axes) -> tuple[float, float]:
    """Width and height of axes, in points: final ones while it is drawn."""
    points = 72 / root_of(ax).dpi
    return float(ax.bbox.width * points), float(ax.bbox.height * points)


def letters(ax: Axes, share: float, style: Style) -> int:
    """How many letters fit in a share of the width of axes."""
    return int(share * size_pt(ax)[0] / (_LETTER * style.letters_pt))


class FittedText(Text):
    """A text that is `shown` where it has room, which is known while it is drawn. Layouts leave it out."""

    def __init__(self, x: float, y: float, text: str, *, shown: Callable[[], bool], **properties: Any) -> None:
        self._shown = shown
        super().__init__(x, y, text, clip_on=False, **properties)
        self.set_in_layout(False)

    def get_visible(self) -> bool:
        """Whether it is drawn."""
        return self._shown()


class Places(Locator):
    """Ticks at places 0 to before `count`: at all, every second, every fourth, ..., as a tick needs so many points, and
    at `most` at so many."""

    def __init__(self, ax: Axes, across: bool, count: int, points: float, most: int) -> None:
        self.ax, self.across, self.count, self.points, self.most = ax, across, count, points, most

    def __call__(self) -> range:
        """Where ticks have room on axes as they are."""
        width, height = size_pt(self.ax)
        length = width if self.across else height
        return range(0, self.count, _power_of_two(max(self.count * self.points / length, self.count / self.most)))

    def tick_values(self, vmin: float, vmax: float) -> range:
        """The same on any interval."""
        return self()


def _power_of_two(least: float) -> int:
    return 1 << (max(1, math.ceil(least)) - 1).bit_length()


def name_places(axis: Axis, labels: Sequence[str], style: Style, *, turned: bool = False, most: int = 512) -> None:
    """Ticks with the names of places along an axis, as many as have room; those of an x axis may be `turned`."""
    wide = 1.6 if turned else max(map(len, labels), default=1) * _LETTER + 0.5
    ax, across = axis.axes, isinstance(axis, XAxis)
    axis.set_major_locator(Places(ax, across, len(labels), wide * style.letters_pt, most))
    axis.set_major_formatter(FuncFormatter(lambda at, _: labels[int(at)]))
    if turned and across:
        axis.set_tick_params(rotation=90)


def name_below(
    ax: Axes, labels: Sequence[str], levels: Sequence[PartLevel], title: str, style: Style, *, turned: bool = False
) -> None:
    """Name places below axes, then their parts with brackets, then what the places are."""
    ax.set_xlim(-0.7, len(labels) - 0.3)
    name_places(ax.xaxis, labels, style, turned=turned)
    if levels:
        along = max(map(len, labels)) * _LETTER if turned else 1.2
        draw_brackets(ax, levels, style, below=along * style.letters_pt + 12.0)
    ax.set_xlabel(title, labelpad=len(levels) * BRACKET_PT + 2)


def subplots(ax: Axes, rows: int, columns: int) -> list[Axes]:
    """Axes in rows and columns, from left to right and from above, in the place of `ax`, which becomes the lower left
    one unless it is that already."""
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


def _step(ax: Axes, points: float) -> int:
    """Every how many parts a number is drawn, if all of them need axes of so many points."""
    return _power_of_two(points / size_pt(ax)[0])


def _is_multiple(number: int, step: Callable[[], int]) -> bool:
    return number % step() == 0


def draw_brackets(ax: Axes, levels: Sequence[PartLevel], style: Style, *, below: float | None = None) -> None:
    """A line for each part above the axes, the finest level nearest, with its number where there is room.

    With `below` (points) they are below the axes, from that distance on.
    """
    ends = ax.get_xlim()
    each = size_pt(ax)[0] / abs(ends[1] - ends[0])
    letter = style.letters_pt * _LETTER
    for number, level in enumerate(levels):
        offset = 4.0 + number * BRACKET_PT if below is None else -below - number * BRACKET_PT
        edge = 1.0 if below is None else 0.0
        across = offset_copy(
            blended_transform_factory(ax.transData, ax.transAxes), root_of(ax), 0, offset, units="points"
        )
        gap = min(0.12 * each, 1.0) / each
        lines = [[(g.start - 0.5 + gap, edge), (g.stop - 0.5 - gap, edge)] for g in level.groups if g.label]
        pen = style.outlines[level.outline]
        brackets = LineCollection(
            lines,
            linewidths=max(pen.points, 0.6),
            linestyles=[pen.linestyle],
            colors=style.color("quiet"),
            transform=across,
            clip_on=False,
        )
        brackets.set_in_layout(False)  # the name of the level beside them is as high
        ax.add_collection(brackets, autolim=False)
        named = [group for group in level.groups if group.label]
        if not named:
            continue
        places = min(g.stop - g.start for g in named) / abs(ends[1] - ends[0])
        step = partial(_step, ax, (max(len(g.label) for g in named) * letter + 2) / places)
        for at, group in enumerate(named):
            ax.add_artist(
                FittedText(
                    (group.start + group.stop - 1) / 2,
                    edge,
                    group.label,
                    shown=partial(_is_multiple, at, step),
                    transform=across,
                    ha="center",
                    va="bottom",
                    fontsize=style.smallest_letters_pt,
                    color=style.color("ink"),
                )
            )
        ax.annotate(
            level.name,
            (0, edge),
            xycoords="axes fraction",
            xytext=(-5, offset),
            textcoords="offset points",
            ha="right",
            va="bottom" if below is None else "center",
            fontsize=style.smallest_letters_pt,
            color=style.color("quiet"),
        )
