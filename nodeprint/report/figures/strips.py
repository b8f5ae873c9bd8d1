"""A value for each CPU, with the range of the peers behind it: clock, jitter, memory of each core, a row for each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.ticker import MaxNLocator

from nodeprint.data.places.layout import Ints
from nodeprint.errors import NodeprintError
from nodeprint.report import text
from nodeprint.report.figures.node_levels import Floats, NodeLevels
from nodeprint.report.figures.part_levels import (
    BRACKET_PT,
    PartLevel,
    draw_brackets,
    names_room,
    part_levels,
    root_of,
    size_pt,
    tick_step,
)
from nodeprint.report.figures.render import Frame
from nodeprint.report.figures.style import Style
from nodeprint.report.names import place as place_in_words
from nodeprint.report.names import shortened

_MM_A_POINT = 25.4 / 72
#: What the places of a strip are.
_AXIS = "CPU"
#: The height of a row, alone and among others, and that of the line above it; the most rows of a figure.
_ONLY_ROW_MM, _ROW_MM, _HEAD_MM, _MOST_ROWS = 26.0, 17.0, 5.0, 8
#: Letters of a node's name below the rows.
_NODE_LETTERS = 24


class StripData(msgspec.Struct, frozen=True):
    """`values` of the places that `labels` name, in the unit of `title`, of what the strip `shows` (a measurement at
    coordinates of its other dimensions); `peer_low` to `peer_high` is the range of `peers` (none: NaN). `levels` are
    the parts of the machine, places at `marked` those of a finding."""

    node: str
    labels: tuple[str, ...]
    values: Floats
    peer_low: Floats
    peer_high: Floats
    peers: int
    title: str
    shows: str
    levels: tuple[PartLevel, ...] = ()
    marked: tuple[int, ...] = ()

    def table(self) -> pd.DataFrame:
        """A row for each place."""
        unit = self.title.rpartition(", ")[2]
        return pd.DataFrame(
            {
                _AXIS: self.labels,
                f"{self.shows}: {self.title}": self.values,
                f"{self.shows}: peers' lowest, {unit}": self.peer_low,
                f"{self.shows}: peers' highest, {unit}": self.peer_high,
            }
        )


class StripRows(msgspec.Struct, frozen=True):
    """Strips of the same node and CPUs above each other, which share the ticks and the parts of the machine."""

    strips: tuple[StripData, ...]

    def frame(self, width: float) -> Frame:
        """A row for each strip, and the parts as brackets below."""
        levels = self.strips[0].levels
        below = 8.5 + len(levels) * BRACKET_PT * _MM_A_POINT
        row = _ONLY_ROW_MM if len(self.strips) == 1 else _ROW_MM
        height = row * len(self.strips) + _HEAD_MM * (len(self.strips) - 1)
        return Frame(width, height + below + _HEAD_MM, max(14.0, names_room(levels)), 3.0, below, _HEAD_MM)

    def table(self) -> pd.DataFrame:
        """A row for each place, with the columns of every strip."""
        first, *others = (strip.table() for strip in self.strips)
        return pd.concat([first, *(table.drop(columns=_AXIS) for table in others)], axis=1)


def in_rows(strips: Sequence[StripData]) -> list[StripRows]:
    """Strips of a node as figures: those of the same CPUs are rows of one, at most so many that a page holds it."""
    alike: dict[tuple[str, ...], list[StripData]] = {}
    for strip in strips:
        alike.setdefault(strip.labels, []).append(strip)
    return [
        StripRows(tuple(of_cpus[start : start + _MOST_ROWS]))
        for of_cpus in alike.values()
        for start in range(0, len(of_cpus), _MOST_ROWS)
    ]


def by_cpu(
    levels: NodeLevels,
    node: str,
    fixed: Mapping[str, int | str] | None = None,
    *,
    peers: Sequence[str] = (),
    marked: Sequence[int] = (),
) -> StripData:
    """The values of a measurement by CPU, at `fixed` coordinates of its other dimensions (words, or canonical
    numbers; else the first). `marked` are OS numbers of CPUs. Raises NodeprintError where it has no CPUs."""
    quantity = levels.quantity
    if "cpu" not in quantity.dims:
        raise NodeprintError(f"{quantity.measurement} has no value for each CPU", advice="draw it as a curve or table")
    at = {dim: _coordinate(levels, dim, (fixed or {}).get(dim)) for dim in quantity.dims if dim != "cpu"}
    chosen = np.ones(quantity.size, dtype=np.bool_)
    for dim, coordinate in at.items():
        chosen &= quantity.places[dim] == coordinate
    places = np.flatnonzero(chosen)
    slots = quantity.places["cpu"][places]
    cpus = levels.nodes[levels.rows[node]].numbers["cpu"]
    names = tuple(str(cpus[slot]) for slot in slots.tolist())
    size = levels.unit.size
    others = levels.of_peers(node, peers)[:, places] / size
    none = np.full(len(places), np.nan)
    low, high = (np.nanmin(others, axis=0), np.nanmax(others, axis=0)) if len(others) else (none, none)
    at_words = [place_in_words({dim: quantity.named(dim, number)}) for dim, number in at.items()]
    wanted = set(map(str, marked))
    return StripData(
        node,
        names,
        levels.of(node)[places] / size,
        low,
        high,
        len(others),
        levels.title,
        ", ".join([text.measured(quantity.measurement), *at_words]),
        part_levels(quantity.layout.slots[slots]),
        tuple(place for place, name in enumerate(names) if name in wanted),
    )


def _coordinate(levels: NodeLevels, dim: str, wanted: int | str | None) -> int:
    """The canonical coordinate of a dimension, its first where none is wanted."""
    quantity = levels.quantity
    if isinstance(wanted, str):
        return quantity.names[dim].index(wanted)
    return int(quantity.places[dim].min()) if wanted is None else wanted


def peer_ranges(ax: Axes, x: Ints, low: Floats, high: Floats, style: Style) -> None:
    """Draw by place a line from the lowest to the highest of the peers, all as one path."""
    ends = np.column_stack([low, high, np.full(len(x), np.nan)])
    ax.plot(
        np.repeat(x, 3),
        ends.ravel(),
        linewidth=1.2,
        color=style.colours["peers"],
        alpha=0.7,
        solid_capstyle="butt",
        label="_peers",
    )


def strips(ax: Axes, data: StripRows, style: Style) -> None:
    """Draw the rows: values as dots, those of a finding as triangles, before the range of the peers.

    `ax` becomes the lowest row, which has the ticks and the brackets of all.
    """
    box, height = ax.get_position(), size_pt(ax)[1]
    head = _HEAD_MM / _MM_A_POINT / height * box.height
    row = (box.height - head * (len(data.strips) - 1)) / len(data.strips)
    lowest = data.strips[-1]
    for at, strip in enumerate(reversed(data.strips)):
        bounds = (box.x0, box.y0 + at * (row + head), box.width, row)
        if at == 0:
            ax.set_position(bounds)
        of_row = ax if at == 0 else root_of(ax).add_axes(bounds)
        _draw_row(of_row, strip, style)
        if at:
            of_row.set_xticks([])
    step = tick_step(ax, lowest.labels, style)
    ax.set_xticks(range(0, len(lowest.labels), step), lowest.labels[::step])
    if lowest.levels:
        draw_brackets(ax, lowest.levels, style, below=style.letters_pt * 1.2 + 12.0)
    ax.set_xlabel(_AXIS, labelpad=len(lowest.levels) * BRACKET_PT + 2)
    lines = {line.get_label(): line for line in ax.get_lines()}
    if "_peers" not in lines:
        return
    below = (len(lowest.levels) * BRACKET_PT + 3.2 * style.letters_pt) / size_pt(ax)[1]
    ax.legend(
        [lines["_node"], lines["_peers"]],
        [shortened(lowest.node, _NODE_LETTERS), f"{lowest.peers} peers"],
        loc="center right",
        bbox_to_anchor=(1.0, -below),
        ncols=2,
        borderpad=0,
    )


def _draw_row(ax: Axes, data: StripData, style: Style) -> None:
    x = np.arange(len(data.labels))
    if data.levels:  # what a part has stands between the same lines in every row
        borders = [group.start - 0.5 for group in data.levels[-1].groups[1:]]
        lines = LineCollection(
            [[(at, 0), (at, 1)] for at in borders],
            linewidths=0.4,
            colors=style.colours["hair"],
            transform=ax.get_xaxis_transform(),
        )
        ax.add_collection(lines, autolim=False)
    if data.peers:
        peer_ranges(ax, x, data.peer_low, data.peer_high, style)
    size = float(np.clip(200 / max(len(x), 1), 1.6, 3.5))
    quiet = np.setdiff1d(x, data.marked)
    ax.plot(
        quiet, data.values[quiet], linestyle="", marker="o", color=style.colours["node"], markersize=size, label="_node"
    )
    if data.marked:
        marked = list(data.marked)
        ax.plot(marked, data.values[marked], linestyle="", marker="^", color=style.colour("alarm"), markersize=4)
    ax.margins(y=0.1)
    ax.set_xlim(-0.7, len(x) - 0.3)
    ax.yaxis.set_major_locator(MaxNLocator(4, steps=[1, 2, 2.5, 5, 10]))
    ax.set_title(f"{data.shows}: {data.title}", fontsize=style.letters_pt)
