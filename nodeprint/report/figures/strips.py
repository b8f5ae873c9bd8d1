"""A value for each CPU, with the range of the peers behind it: clock, jitter, memory of each core, a row for each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.ticker import MaxNLocator
from matplotlib.transforms import offset_copy

from nodeprint.data.places.layout import Ints
from nodeprint.errors import NodeprintError
from nodeprint.report import text
from nodeprint.report.figures.node_levels import Floats, NodeLevels
from nodeprint.report.figures.part_levels import (
    BRACKET_PT,
    PartLevel,
    name_below,
    part_levels,
    root_of,
    size_pt,
    subplots,
)
from nodeprint.report.figures.pixels import wrapped
from nodeprint.report.figures.render import Frame
from nodeprint.report.figures.style import Style
from nodeprint.report.names import place as place_in_words
from nodeprint.report.names import shortened

#: What the places of a strip are.
_AXIS = "CPU"
#: The height of a row, alone and among others; the most rows of a figure.
_ONLY_ROW_MM, _ROW_MM, _MOST_ROWS = 26.0, 17.0, 8
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
        rows = len(self.strips)
        return Frame(width, _ROW_MM if rows > 1 else _ONLY_ROW_MM, rows=rows)

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
        color=style.colors["peers"],
        alpha=0.7,
        solid_capstyle="butt",
        label="_peers",
    )


def strips(ax: Axes, data: StripRows, style: Style) -> None:
    """Draw the rows: values as dots, those of a finding as triangles, before the range of the peers.

    `ax` becomes the lowest row, which has the ticks and the brackets of all.
    """
    lowest = data.strips[-1]
    rows = len(data.strips)
    every = subplots(ax, rows, 1)
    for of_row, strip in zip(every, data.strips, strict=True):
        _draw_row(of_row, strip, style)
        of_row.set_xticks([])
    name_below(ax, lowest.labels, lowest.levels, _AXIS, style)
    ax.xaxis.label.set(x=0.0, ha="left")  # the legend is on the right
    lines = {line.get_label(): line for line in ax.get_lines()}
    if "_peers" not in lines:
        return
    below = len(lowest.levels) * BRACKET_PT + 3.2 * style.letters_pt
    ax.legend(
        [lines["_node"], lines["_peers"]],
        [shortened(lowest.node, _NODE_LETTERS), f"{lowest.peers} peers"],
        loc="center right",
        bbox_to_anchor=(1.0, 0.0),
        bbox_transform=offset_copy(ax.transAxes, root_of(ax), 0, -below, units="points"),
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
            colors=style.colors["hair"],
            transform=ax.get_xaxis_transform(),
        )
        ax.add_collection(lines, autolim=False)
    if data.peers:
        peer_ranges(ax, x, data.peer_low, data.peer_high, style)
    size = float(np.clip(200 / max(len(x), 1), 1.6, 3.5))
    quiet = np.setdiff1d(x, data.marked)
    ax.plot(
        quiet, data.values[quiet], linestyle="", marker="o", color=style.colors["node"], markersize=size, label="_node"
    )
    if data.marked:
        marked = list(data.marked)
        ax.plot(marked, data.values[marked], linestyle="", marker="^", color=style.color("alarm"), markersize=4)
    ax.margins(y=0.1)
    ax.set_xlim(-0.7, len(x) - 0.3)
    ax.yaxis.set_major_locator(MaxNLocator(4, steps=[1, 2, 2.5, 5, 10]))
    title = wrapped(f"{data.shows}: {data.title}", size_pt(ax)[0], style)
    ax.set_title(title, fontsize=style.letters_pt)
