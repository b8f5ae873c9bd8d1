"""The parts of a machine along an axis of CPUs: CCX, CCD, quadrant and socket, as runs of neighbouring CPUs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

import msgspec
import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.transforms import blended_transform_factory, offset_copy

from nodeprint.data.places.layout import CCD, CCX, NAMES, QUADRANT, SOCKET, Ints
from nodeprint.report.figures.style import Style

_COLUMNS = (CCX, CCD, QUADRANT, SOCKET)
#: Brackets beside an axis: how far one is from the next, and the estimated width of a letter as a share of its size.
BRACKET_PT, _LETTER = 8.5, 0.62


class PartGroup(msgspec.Struct, frozen=True):
    """Neighbouring places from `start` to before `stop` that are one part, with its number as `label`."""

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


def draw_outlines(ax: Axes, levels: Sequence[PartLevel], size: int, style: Style, colour: str) -> None:
    """A square around the pairs inside of each part, and lines over the whole matrix between sockets."""
    for level in levels:
        pen = style.outlines[level.outline]
        inner = [group for group in level.groups if group.stop - group.start > 1]
        squares = [_square(group.start - 0.5, group.stop - 0.5) for group in inner]
        across = level is levels[-1] and len(level.groups) <= 8
        lines = list(_between(level, size)) if across else []
        ax.add_collection(
            LineCollection(
                [*squares, *lines], linewidths=pen.points, linestyles=[pen.linestyle], colors=style.colour(colour)
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


def size_pt(ax: Axes) -> tuple[float, float]:
    """Width and height of axes, in points."""
    width, height = 72 * ax.get_position().size * root_of(ax).get_size_inches()
    return float(width), float(height)


def root_of(ax: Axes) -> Figure:
    """The figure that axes are on."""
    root = ax.get_figure(root=True)
    assert root is not None
    return root


def tick_step(ax: Axes, labels: Sequence[str], style: Style, *, turned: bool = False) -> int:
    """Every how many places a label has room along the x axis: a power of two."""
    letters = 1.6 if turned else max(map(len, labels), default=1) * _LETTER + 0.5
    most = max(1.0, size_pt(ax)[0] / (letters * style.letters_pt))
    return 1 << (max(1, int(np.ceil(len(labels) / most))) - 1).bit_length()


def names_room(levels: Sequence[PartLevel]) -> float:
    """What the names of brackets need on the left of axes, in mm."""
    return 1.4 * max((len(level.name) for level in levels), default=0) + 2.0


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
        ax.add_collection(
            LineCollection(
                lines,
                linewidths=max(pen.points, 0.6),
                linestyles=[pen.linestyle],
                colors=style.colour("quiet"),
                transform=across,
                clip_on=False,
            ),
            autolim=False,
        )
        named = [group for group in level.groups if group.label]
        if not named:
            continue
        narrowest = min(g.stop - g.start for g in named) * each
        widest = max(len(g.label) for g in named) * letter + 2
        step = max(1, int(np.ceil(widest / narrowest)))
        step = 1 << (step - 1).bit_length()
        for group in named[::step]:
            ax.text(
                (group.start + group.stop - 1) / 2,
                edge,
                group.label,
                transform=across,
                ha="center",
                va="bottom",
                fontsize=style.smallest_letters_pt,
                color=style.colour("ink"),
            )
        ax.annotate(
            level.name,
            (0, edge),
            xycoords="axes fraction",
            xytext=(-3, offset),
            textcoords="offset points",
            ha="right",
            va="bottom" if below is None else "center",
            fontsize=style.smallest_letters_pt,
            color=style.colour("quiet"),
        )
