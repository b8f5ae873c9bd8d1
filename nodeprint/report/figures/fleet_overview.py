"""The fleet: how much of each tolerance nodes use, their effects in one part, difference maps in small, values in
order."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from nodeprint.data.places.layout import Ints
from nodeprint.errors import NodeprintError
from nodeprint.judge.outcome import Outcome
from nodeprint.judge.verdict import Interval, Verdict
from nodeprint.report import text
from nodeprint.report.figures.grid import GridData
from nodeprint.report.figures.matrix import difference_reach, drawn_slots, home_of, square_of
from nodeprint.report.figures.node_levels import Floats, NodeLevels
from nodeprint.report.figures.part_levels import size_pt
from nodeprint.report.figures.pixels import ColorScale, draw_cells, draw_scale, wrapped
from nodeprint.report.figures.render import Frame
from nodeprint.report.figures.style import Style
from nodeprint.report.figures.tolerance_band import Tolerance
from nodeprint.report.names import shortened
from nodeprint.settings.texts import say

if TYPE_CHECKING:
    import xarray as xr

#: Maps in small: how many in a row, and their side and the room above each in shares of it.
_MAPS_A_ROW, _HEAD, _BETWEEN = 8, 0.2, 0.1
MOST_MAPS = 64
#: More effects than these are drawn as columns.
_MOST_ROWS = 48
#: Letters of a node's name beside its value.
_ORDER_LETTERS = 16
#: Shares of a tolerance are drawn up to this.
_MOST_SHARE = 2.0


# --- agreements ---


def agreements_of(verdict: Verdict, nodes: Sequence[str] = ()) -> GridData | None:
    """By node and metric the smallest tolerance at which the node would be the same as a share of the tolerance that
    applies, nodes with the largest on top; up to 1 the node is the same in it. None where no node has an agreement."""
    named = nodes or [name for name, node in verdict.nodes.items() if node.agreements]
    shares = {
        name: {agreement.metric: agreement.share for agreement in verdict.nodes[name].agreements} for name in named
    }
    metrics = list(dict.fromkeys(metric for of_node in shares.values() for metric in of_node))
    if not metrics:
        return None
    order = sorted(shares, key=lambda name: (-max(shares[name].values(), default=0.0), name))
    values = np.array([[shares[name].get(metric, np.nan) for metric in metrics] for name in order])
    scale = ColorScale(say("axes", "share"), 0.0, _MOST_SHARE, tolerance=1.0, tolerance_text="tolerance")
    marked = tuple(row for row, name in enumerate(order) if is_marked(verdict.nodes[name].outcome))
    columns = tuple(text.named("metrics", metric) for metric in metrics)
    return GridData(
        np.minimum(values, _MOST_SHARE),
        values,
        tuple(order),
        columns,
        "node",
        "metric",
        "share of the tolerance, 1",
        scale,
        marked,
        digits=2,
    )


def is_marked(outcome: Outcome) -> bool:
    """Whether an outcome asks for attention on a figure of the fleet."""
    return outcome.entry.found


# --- difference maps ---


class MapsData(msgspec.Struct, frozen=True):
    """Difference maps of nodes in percent: `values` (node, n, n), on one scale; `marked` are rows of findings."""

    nodes: tuple[str, ...]
    values: Floats
    scale: ColorScale
    marked: tuple[int, ...] = ()

    @property
    def columns(self) -> int:
        """How many maps are in a row."""
        return min(_MAPS_A_ROW, max(len(self.nodes), 3))

    @property
    def rows(self) -> int:
        """How many rows of maps there are."""
        return -(-len(self.nodes) // self.columns)

    @property
    def aspect(self) -> float:
        """How many times their width all are high."""
        return self.rows * (1 + _HEAD) / (self.columns * (1 + _BETWEEN) - _BETWEEN)

    def frame(self, width: float) -> Frame:
        """Squares side by side with their names above."""
        return Frame(width, aspect=self.aspect)

    def table(self) -> pd.DataFrame:
        """By node the median of its differences and the largest of both signs."""
        flat = self.values.reshape(len(self.nodes), -1)
        return pd.DataFrame(
            {
                "node": self.nodes,
                f"median {self.scale.title}": np.nanmedian(flat, axis=1),
                "lowest": np.nanmin(flat, axis=1),
                "highest": np.nanmax(flat, axis=1),
            }
        )


def difference_maps(
    levels: NodeLevels,
    nodes: Sequence[str],
    home: int | None = None,
    *,
    peers: Collection[str] = (),
    marked: Collection[str] = (),
    tolerance: float | None = None,
) -> MapsData:
    """The difference of each pair from the median of the peers (all nodes where none are named), for at most 64 nodes;
    those of large machines as means of neighboring pairs. `tolerance` is relative."""
    shown = list(nodes)[:MOST_MAPS]
    slots, at_home = drawn_slots(levels.quantity), home_of(levels.quantity, home)
    reference = [levels.rows[name] for name in peers if name in levels.rows] or list(range(len(levels.nodes)))
    middle = np.nanmedian(levels.values[reference], axis=0)
    maps = np.stack(
        [
            _smaller(square_of(levels.quantity, 100 * (levels.of(name) / middle - 1), at_home, slots), len(shown))
            for name in shown
        ]
    )
    percent = 100 * tolerance if tolerance is not None else None
    reach = difference_reach(maps, percent)
    tolerance_text = f"tolerance\n±{percent:.3g} %" if percent is not None else ""
    scale = ColorScale(
        "difference from the median, %",
        -reach,
        reach,
        "differences",
        percent,
        tolerance_text,
    )
    wanted = tuple(row for row, name in enumerate(shown) if name in marked)
    return MapsData(tuple(shown), maps, scale, wanted)


def _smaller(square: Floats, maps: int) -> Floats:
    """A map of at most so many cells that all `maps` have room, as the means of neighboring cells."""
    most = 64 if maps > 8 else 128
    step = -(-len(square) // most)
    if step == 1:
        return square
    size = -(-len(square) // step)
    padded = np.full((size * step, size * step), np.nan)
    padded[: len(square), : len(square)] = square
    blocks = padded.reshape(size, step, size, step)
    finite = np.isfinite(blocks)
    with np.errstate(invalid="ignore"):
        return np.asarray(np.where(finite, blocks, 0).sum(axis=(1, 3)) / finite.sum(axis=(1, 3)))


def maps(ax: Axes, data: MapsData, style: Style) -> None:
    """Draw the maps with the names of their nodes; those of findings are framed and marked."""
    ax.set_axis_off()
    step, down = 1 + _BETWEEN, 1 + _HEAD
    ax.set_xlim(0, data.columns * step - _BETWEEN)
    ax.set_ylim(data.rows * down, 0)
    for number, (name, values) in enumerate(zip(data.nodes, data.values, strict=True)):
        x, y = number % data.columns * step, number // data.columns * down + _HEAD
        diagonal = np.eye(len(values), dtype=np.bool_)
        draw_cells(ax, values, data.scale, style, blank=diagonal, extent=(x, x + 1, y + 1, y), pixels=192, shades=40)
        alarm = number in data.marked
        pen = {"color": style.color("alarm" if alarm else "hair"), "linewidth": 1.3 if alarm else 0.4}
        ax.plot([x, x + 1, x + 1, x, x], [y, y, y + 1, y + 1, y], clip_on=False, **pen)  # type: ignore[arg-type]
        room = int(size_pt(ax)[0] / (data.columns * step) / (0.62 * style.smallest_letters_pt))
        label = shortened(f"\N{BLACK UP-POINTING TRIANGLE} {name}" if alarm else name, room)
        ink = style.color("alarm" if alarm else "ink")
        ax.text(x, y - 0.03, label, fontsize=style.smallest_letters_pt, color=ink, va="bottom")
    ax.set_xlim(0, data.columns * step - _BETWEEN)
    ax.set_ylim(data.rows * down, 0)
    ax.set_aspect("auto")
    ax.set_box_aspect(data.aspect)
    draw_scale(ax, data.scale, style, length=min(1.0, 120 / size_pt(ax)[1]))


# --- effects of nodes in one part ---


class NodeEffect(msgspec.Struct, frozen=True):
    """A node's difference in one part with its interval, in percent."""

    node: str
    effect: float
    low: float
    high: float
    marked: bool


class ForestData(msgspec.Struct, frozen=True):
    """The effects of all nodes in one part, the smallest first, with the tolerance in percent."""

    effects: tuple[NodeEffect, ...]
    title: str
    tolerance: float

    @property
    def in_rows(self) -> bool:
        """Whether every node has a row with its name; else they are columns."""
        return len(self.effects) <= _MOST_ROWS

    def frame(self, width: float) -> Frame:
        """A row of 3.2 mm a node, or columns."""
        return Frame(width, 3.2 * len(self.effects) + 2.0 if self.in_rows else 40.0)

    def table(self) -> pd.DataFrame:
        """A row for each node."""
        rows = [(e.node, e.effect, e.low, e.high, self.tolerance) for e in self.effects]
        return pd.DataFrame(rows, columns=["node", self.title, "interval from", "interval to", "tolerance"])


def forest_of(
    title: str, effects: Mapping[str, tuple[float, Interval]], tolerance: float, marked: Collection[str] = ()
) -> ForestData:
    """The effects of nodes (relative) with their intervals in one part; `title` says what it is, without its unit."""
    rows = [
        NodeEffect(name, 100 * effect, 100 * interval.low, 100 * interval.high, name in marked)
        for name, (effect, interval) in effects.items()
    ]
    return ForestData(tuple(sorted(rows, key=lambda row: row.effect)), f"{title}, %", 100 * tolerance)


def forest_of_component(
    deviations: xr.Dataset, measurement: str, component_type: str, place: str, marked: Collection[str] = ()
) -> ForestData:
    """The difference of every node in one part, from the table of deviations: pooled over jobs where there are several,
    with the simultaneous interval. Raises NodeprintError where the table has no such part."""
    wanted = (
        (deviations.measurement == measurement)
        & (deviations.component_type == component_type)
        & (deviations.place == place)
    )
    columns = np.flatnonzero(wanted.to_numpy())
    if not len(columns):
        what = f"{measurement} has no part {place!r} of component type {component_type!r}"
        raise NodeprintError(what, advice="choose from `measurement`, `component_type` and `place` of the deviations")
    component = deviations.isel(component=int(columns[0]))
    effects: dict[str, tuple[float, Interval]] = {}
    for row in range(component.sizes["sample"]):  # the pooled sample of a node is its last
        sample = component.isel(sample=row)
        effect, half = float(sample.difference), float(sample.half_simultaneous)
        if np.isfinite(effect):
            half = half if np.isfinite(half) else np.nan
            effects[str(sample.node.item())] = effect, Interval(effect - half, effect + half)
    tolerance = float(np.nanmax(component.tolerance.to_numpy()))
    return forest_of(f"{measurement}, {place}: difference from the peers", effects, tolerance, marked)


def forest(ax: Axes, data: ForestData, style: Style) -> None:
    """Draw each node's effect with its interval between the tolerances; few nodes are rows, many are columns."""
    at = np.arange(len(data.effects))
    values = np.array([[e.low, e.effect, e.high] for e in data.effects])
    marked = np.array([e.marked for e in data.effects], dtype=np.bool_)
    rows = data.in_rows
    Tolerance(data.tolerance, data.tolerance).draw(ax, style, upright=rows)
    errors = np.abs(values[:, [0, 2]] - values[:, [1]]).T
    for chosen, marker, color, size in (
        (~marked, "o", style.colors["node"], 2.4),
        (marked, "^", style.color("alarm"), 3.6),
    ):
        pen: dict[str, Any] = {"color": color, "markersize": size, "ecolor": style.colors["peers"], "elinewidth": 0.9}
        if rows:
            ax.errorbar(values[chosen, 1], at[chosen], xerr=errors[:, chosen], fmt=marker, **pen)
        else:
            ax.errorbar(at[chosen], values[chosen, 1], yerr=errors[:, chosen], fmt=marker, **pen)
    across = (-0.7, len(at) - 0.3)
    if rows:
        ax.set(ylim=across[::-1], xlabel=data.title)
        ax.set_yticks(at, [shortened(e.node, 24) for e in data.effects])
        ax.tick_params(axis="y", length=0)
        for label in (ax.get_yticklabels()[row] for row in np.flatnonzero(marked)):
            label.set_color(style.color("alarm"))
    else:
        ax.set(
            xlim=across,
            ylabel=wrapped(data.title, size_pt(ax)[1], style),
            xlabel=f"{len(at)} nodes, the smallest first",
        )
        ax.set_xticks([])
        names = [effect.node for effect in data.effects]
        _name(ax, names, np.nan_to_num(values[:, 2], nan=0.0), np.flatnonzero(marked).tolist(), style)


# --- values in an order ---


class OrderData(msgspec.Struct, frozen=True):
    """A value for each node in an order, such as that of time."""

    nodes: tuple[str, ...]
    values: Floats
    title: str
    order: str
    marked: tuple[int, ...] = ()

    def frame(self, width: float) -> Frame:
        """A strip."""
        return Frame(width, 29.0)

    def table(self) -> pd.DataFrame:
        """A row for each node."""
        return pd.DataFrame({"node": self.nodes, self.title: self.values})


def in_order(
    values: Mapping[str, float],
    order: Mapping[str, str],
    title: str,
    order_title: str,
    marked: Collection[str] = (),
) -> OrderData:
    """The values of nodes by what they are ordered by, such as a time."""
    names = sorted(values, key=lambda name: (order.get(name, ""), name))
    wanted = tuple(row for row, name in enumerate(names) if name in marked)
    return OrderData(tuple(names), np.array([values[name] for name in names]), title, order_title, wanted)


def ordered(ax: Axes, data: OrderData, style: Style) -> None:
    """Draw the values in their order, those of findings with their names."""
    at: Ints = np.arange(len(data.nodes))
    marked = np.isin(at, data.marked)
    ax.plot(at[~marked], data.values[~marked], linestyle="", marker="o", color=style.colors["node"], markersize=2.4)
    ax.plot(at[marked], data.values[marked], linestyle="", marker="^", color=style.color("alarm"), markersize=3.8)
    _name(ax, data.nodes, data.values, data.marked, style)
    ax.margins(y=0.2)
    ax.set_xlim(-0.7, len(at) - 0.3)
    ax.set_xticks([])
    ax.set_xlabel(data.order)
    ax.set_title(data.title, fontsize=style.letters_pt)


def _name(ax: Axes, nodes: Sequence[str], values: Floats, marked: Sequence[int], style: Style) -> None:
    """Write the names of marked nodes above their values, of those that have room beside each other."""
    width = size_pt(ax)[0]
    free_from = -np.inf
    for row in marked:
        middle = (row + 0.7) / len(nodes) * width
        half = 0.35 * style.letters_pt * (min(len(nodes[row]), _ORDER_LETTERS) + 1)
        if middle - half > free_from:
            free_from = middle + half
            ax.annotate(
                shortened(nodes[row], _ORDER_LETTERS),
                (row, values[row]),
                xytext=(0, 4),
                textcoords="offset points",
                ha="center",
                va="bottom",
                color=style.color("alarm"),
            )
