"""How far every node is from its peers in each metric, in tolerances: one figure of a fleet of any size.

Of a split fleet it shows the part that splits it, each group with a sign of its own.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from textwrap import wrap

import msgspec
import numpy as np
import numpy.typing as npt
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import StrMethodFormatter

from nodeprint.data.places.layout import Ints
from nodeprint.judge.verdict import Group, NodeVerdict
from nodeprint.report.figures import tolerance_band
from nodeprint.report.figures.node_levels import Floats
from nodeprint.report.figures.part_levels import letters, size_pt
from nodeprint.report.figures.pixels import wrapped
from nodeprint.report.figures.render import Frame
from nodeprint.report.figures.style import Style
from nodeprint.report.names import shortened, without_domain
from nodeprint.settings.texts import say

#: Beyond so many tolerances the axis is logarithmic.
_LINEAR = 5.0
#: Nodes outside that have their names, a row; more points than these are an image.
_MOST_NAMED, _MOST_VECTORS = 3, 3000
#: The golden ratio: its multiples spread points over a row evenly, the same each time.
_GOLDEN = 0.6180339887
_SIGNS = "os^Dv"
#: Letters of a line of a row's name.
_LETTERS = 28


class Row(msgspec.Struct, frozen=True):
    """Differences of nodes in one metric or part, in tolerances."""

    name: str
    nodes: tuple[str, ...]
    values: Floats
    groups: tuple[str, ...]


class InTolerancesData(msgspec.Struct, frozen=True):
    """Rows from top to bottom; `marked` are nodes with findings."""

    rows: tuple[Row, ...]
    marked: frozenset[str]
    title: str

    @property
    def groups(self) -> tuple[str, ...]:
        """The groups of nodes, where there are several."""
        return tuple(sorted({group for row in self.rows for group in row.groups} - {""}))

    @property
    def reach(self) -> float:
        """The largest difference, in tolerances."""
        return max((float(np.abs(row.values).max(initial=0)) for row in self.rows), default=0.0)

    def outside(self, row: Row) -> npt.NDArray[np.bool_]:
        """By node of a row whether it is drawn as a triangle: one with findings that is beyond its tolerance here."""
        return np.array([node in self.marked for node in row.nodes]) & (np.abs(row.values) > 1)

    @property
    def has_triangles(self) -> bool:
        """Whether any node is drawn as a triangle."""
        return any(self.outside(row).any() for row in self.rows)

    def frame(self, width: float) -> Frame:
        """A row of 9 mm a metric."""
        return Frame(width, (9.0 if len(self.rows) > 1 else 18.0) * len(self.rows))

    def table(self) -> pd.DataFrame:
        """A row for each node and metric."""
        of_rows = [
            pd.DataFrame({"metric": row.name, "node": row.nodes, "group": row.groups, self.title: row.values})
            for row in self.rows
        ]
        return pd.concat(of_rows, ignore_index=True)


def of_nodes(
    nodes: Mapping[str, NodeVerdict], names: Mapping[str, str], marked: Collection[str] = ()
) -> InTolerancesData | None:
    """What each node differs by in the metrics that decide (`names` has their words), where that is nearest to its
    tolerance or farthest beyond; None where fewer than two nodes were compared."""
    by_metric: dict[str, dict[str, float]] = {metric: {} for metric in names}
    for name, node in nodes.items():
        for agreement in node.agreements:
            if agreement.metric in by_metric and np.isfinite(agreement.effect) and agreement.tolerance:
                by_metric[agreement.metric][name] = agreement.effect / agreement.tolerance
    rows = tuple(
        Row(names[metric], tuple(values), np.array(list(values.values())), ("",) * len(values))
        for metric, values in by_metric.items()
        if len(values) > 1
    )
    title = say("axes", "in_tolerances")
    return InTolerancesData(rows, frozenset(marked), title) if rows else None


def of_groups(groups: Sequence[Group], place: str) -> InTolerancesData | None:
    """The nodes of a split fleet in the part (`place`) that separates its groups, from the middle of the first group;
    None where the verdict does not have these differences."""
    apart = next((group for group in groups if group.differences), None)
    if apart is None:
        return None
    of_node = {node: group.name for group in groups for node in group.nodes}
    of_component = [
        of
        for of in groups
        if (of.measurement, of.component, of.than) == (apart.measurement, apart.component, apart.than)
    ]
    values = {node: value / group.tolerance for group in of_component for node, value in group.differences.items()}
    row = Row(place, tuple(values), np.array(list(values.values())), tuple(of_node.get(node, "") for node in values))
    return InTolerancesData((row,), frozenset(), say("axes", "groups", than=apart.than))


def in_tolerances(ax: Axes, data: InTolerancesData, style: Style) -> None:
    """Draw every node as a point between the tolerances, and those with findings as triangles with their names."""
    reach = max(1.2, data.reach)
    if reach > _LINEAR:
        ax.set_xscale("symlog", linthresh=1.0)
        ax.xaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    # the names stand outside of the farthest points
    most = min(letters(ax, 0.25, style), max((len(node) for node in without_domain(data.marked)), default=0))
    names_pt = (1.3 + 0.7 * most) * style.letters_pt
    scale = ax.xaxis.get_transform()
    farthest = float(scale.transform(np.array([reach]))[0]) / (1 - min(0.5, 2 * names_pt / size_pt(ax)[0]))
    reach = float(scale.inverted().transform(np.array([farthest]))[0])
    ax.set_xlim(-reach, reach)
    ax.set_ylim(len(data.rows) - 0.5, -0.5)
    tolerance_band.OF_ONE.draw(ax, style, upright=True)
    as_image = sum(len(row.nodes) for row in data.rows) > _MOST_VECTORS
    groups = data.groups or ("",)
    for at, row in enumerate(data.rows):
        y = at + 0.62 * ((np.arange(len(row.nodes)) * _GOLDEN) % 1 - 0.5)
        outside = data.outside(row)
        for number, group in enumerate(groups):
            chosen = ~outside & np.array([of_node == group for of_node in row.groups])
            ax.plot(
                row.values[chosen],
                y[chosen],
                linestyle="",
                marker=_SIGNS[number % len(_SIGNS)],
                markersize=2.6,
                color=style.series[number % len(style.series)],
                alpha=0.75,
                rasterized=as_image,
                label=f"group {group}" if group and not at else None,
            )
        ax.plot(row.values[outside], y[outside], linestyle="", marker="^", markersize=4, color=style.color("alarm"))
        _name(ax, row, y, np.flatnonzero(outside), most, style)
    ax.set_yticks(range(len(data.rows)), [_lines(row.name, letters(ax, 0.4, style)) for row in data.rows])
    ax.tick_params(axis="y", length=0)
    ax.spines["left"].set_visible(False)
    ax.set_xlabel(wrapped(data.title, size_pt(ax)[0], style))
    if len(groups) > 1:
        ax.legend(loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=len(groups), borderaxespad=2.0)
    for side in (-1, 1):
        ax.text(
            side,
            1.02,
            "tolerance",
            transform=ax.get_xaxis_transform(),
            ha="center",
            va="bottom",
            fontsize=style.smallest_letters_pt,
        )


def _lines(name: str, most: int) -> str:
    """A name in lines that leave room for the points."""
    return "\n".join(wrap(name, max(min(_LETTERS, most), 12)))


def _name(ax: Axes, row: Row, y: Floats, outside: Ints, most: int, style: Style) -> None:
    """The names of the nodes that are farthest outside beside them, one below another where they are close."""
    names = without_domain(row.nodes)
    farthest = sorted(outside.tolist(), key=lambda number: -abs(float(row.values[number])))[:_MOST_NAMED]
    below = 1.25 * style.letters_pt * abs(float(np.diff(ax.get_ylim())[0])) / size_pt(ax)[1]
    for side in (-1, 1):
        on_side = sorted((n for n in farthest if side * row.values[n] > 0), key=lambda number: float(y[number]))
        lines = np.arange(len(on_side)) * below
        if on_side:  # as near to their points as leaves each a line
            lines += float(np.mean(y[on_side] - lines))
        for number, line in zip(on_side, lines.tolist(), strict=True):
            # behind every triangle that is on the line
            on_line = [n for n in outside.tolist() if side * row.values[n] > 0 and abs(y[n] - line) < below]
            ax.annotate(
                shortened(names[number], most),
                (side * max(abs(float(row.values[n])) for n in (number, *on_line)), line),
                xytext=(5 * side, 0),
                textcoords="offset points",
                ha="left" if side > 0 else "right",
                va="center",
                color=style.color("alarm"),
            )
