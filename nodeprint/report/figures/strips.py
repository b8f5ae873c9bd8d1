"""A value for each CPU in a row, with the range of the peers behind it: clock, jitter, memory of each core."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec
import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from nodeprint.data.layout import Ints
from nodeprint.errors import NodeprintError
from nodeprint.report.figures.node_levels import Floats, NodeLevels
from nodeprint.report.figures.part_levels import (
    BRACKET_PT,
    PartLevel,
    draw_brackets,
    names_room,
    part_levels,
    tick_step,
)
from nodeprint.report.figures.render import Frame
from nodeprint.report.figures.style import Style

_MM_A_POINT = 25.4 / 72


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
    axis: str = "CPU"
    shows: str = ""
    levels: tuple[PartLevel, ...] = ()
    marked: tuple[int, ...] = ()

    def frame(self, width: float) -> Frame:
        """A strip with the parts as brackets below."""
        below = 8.5 + len(self.levels) * BRACKET_PT * _MM_A_POINT
        return Frame(width, 26.0 + below + 5.0, max(14.0, names_room(self.levels)), 3.0, below, 5.0)

    def table(self) -> pd.DataFrame:
        """A row for each place."""
        unit = self.title.rpartition(", ")[2]
        return pd.DataFrame({
            self.axis: self.labels, self.title: self.values, f"peers' lowest, {unit}": self.peer_low,
            f"peers' highest, {unit}": self.peer_high,
        })  # fmt: skip


def by_cpu(
    levels: NodeLevels, node: str, fixed: Mapping[str, int | str] | None = None, *, peers: Sequence[str] = (),
    marked: Sequence[int] = (),
) -> StripData:  # fmt: skip
    """The values of a measurement by CPU, at `fixed` coordinates of its other dimensions (words, or canonical
    numbers; else the first). `marked` are OS numbers of CPUs. Raises NodeprintError where it has no CPUs."""
    quantity = levels.quantity
    if "cpu" not in quantity.dims:
        raise NodeprintError(f"{quantity.measurement} has no value for each CPU", advice="draw it as a curve or table")
    at = {dim: _coordinate(levels, dim, (fixed or {}).get(dim)) for dim in quantity.dims if dim != "cpu"}
    here = np.ones(quantity.size, dtype=np.bool_)
    for dim, coordinate in at.items():
        here &= quantity.places[dim] == coordinate
    places = np.flatnonzero(here)
    slots = quantity.places["cpu"][places]
    cpus = levels.nodes[levels.rows[node]].numbers["cpu"]
    names = tuple(str(cpus[slot]) for slot in slots.tolist())
    size = levels.unit.size
    others = levels.of_peers(node, peers)[:, places] / size
    none = np.full(len(places), np.nan)
    low, high = (np.nanmin(others, axis=0), np.nanmax(others, axis=0)) if len(others) else (none, none)
    at_words = [f"{dim.replace('_', ' ')} {quantity.named(dim, number)}" for dim, number in at.items()]
    wanted = set(map(str, marked))
    return StripData(
        node, names, levels.of(node)[places] / size, low, high, len(others),
        levels.title, shows=", ".join([quantity.measurement, *at_words]),
        levels=part_levels(quantity.layout.slots[slots]),
        marked=tuple(place for place, name in enumerate(names) if name in wanted),
    )  # fmt: skip


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
        np.repeat(x, 3), ends.ravel(), linewidth=1.2, color=style.colours["peers"], alpha=0.7, solid_capstyle="butt",
        label="_peers",
    )  # fmt: skip


def strip(ax: Axes, data: StripData, style: Style) -> None:
    """Draw the values as dots, those of a finding as triangles, before the range of the peers."""
    x = np.arange(len(data.labels))
    if data.peers:
        peer_ranges(ax, x, data.peer_low, data.peer_high, style)
    size = float(np.clip(200 / max(len(x), 1), 1.6, 3.5))
    quiet = np.setdiff1d(x, data.marked)
    ax.plot(quiet, data.values[quiet], linestyle="", marker="o", color=style.colours["node"], markersize=size)
    if data.marked:
        marked = list(data.marked)
        ax.plot(marked, data.values[marked], linestyle="", marker="^", color=style.colour("alarm"), markersize=4)
    ax.autoscale_view()
    ax.set_xlim(-0.7, len(x) - 0.3)
    step = tick_step(ax, data.labels, style)
    ax.set_xticks(range(0, len(x), step), data.labels[::step])
    if data.levels:
        draw_brackets(ax, data.levels, style, below=style.letters_pt * 1.2 + 12.0)
    ax.set_xlabel(data.axis, labelpad=len(data.levels) * BRACKET_PT + 2)
    ax.set_ylabel(data.title)
    behind = f"    | {data.peers} peers" if data.peers else ""
    ax.set_title(f"\N{BLACK CIRCLE} {data.node}{behind}    {data.shows}", fontsize=style.letters_pt)
