"""Lines over one dimension of a measurement: working set, load, number of cores, message size."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from nodeprint.data.places.layout import Layout
from nodeprint.errors import NodeprintError
from nodeprint.report.figures.node_levels import Floats, NodeLevels
from nodeprint.report.figures.own_places import dim_name
from nodeprint.report.figures.part_levels import letters
from nodeprint.report.figures.render import Frame
from nodeprint.report.figures.style import Style
from nodeprint.report.message_rates import messages_at_once
from nodeprint.report.names import row

_DASHES: Sequence[tuple[float, ...]] = ((), (4, 2), (1, 1), (6, 2, 1, 2), (3, 1, 1, 1, 1, 1))
#: Units of dimensions, for titles.
_UNITS = {"size_bytes": "bytes", "delay": "cycles"}


class CurveLine(msgspec.Struct, frozen=True):
    """A line and, where there are several values at each x, the range of these. A `thin` one has no points."""

    name: str
    x: Floats
    y: Floats
    low: Floats | None = None
    high: Floats | None = None
    of_peers: bool = False
    thin: bool = False


class CurveData(msgspec.Struct, frozen=True):
    """Lines over one pair of axes; titles have units."""

    lines: tuple[CurveLine, ...]
    x_title: str
    y_title: str
    log_x: bool = False
    log_y: bool = False
    from_zero: bool = False

    def frame(self, width: float) -> Frame:
        """Axes, with the legend above."""
        return Frame(width, 42.0)

    def table(self) -> pd.DataFrame:
        """A row for each point of each line."""
        none = [np.full(len(line.x), np.nan) for line in self.lines]
        lows = [empty if line.low is None else line.low for line, empty in zip(self.lines, none, strict=True)]
        highs = [empty if line.high is None else line.high for line, empty in zip(self.lines, none, strict=True)]
        return pd.DataFrame(
            {
                "line": np.repeat([line.name for line in self.lines], [len(line.x) for line in self.lines]),
                self.x_title: np.concatenate([line.x for line in self.lines]),
                self.y_title: np.concatenate([line.y for line in self.lines]),
                "lowest": np.concatenate(lows),
                "highest": np.concatenate(highs),
            }
        )


def over(levels: NodeLevels, node: str, dim: str, *, peers: Sequence[str] = ()) -> CurveData:
    """A measurement over one of its dimensions, a line for each kind of word among the others (stream, scope, place);
    over CPUs and other numbers the median, with the range. A line of the peers' medians where there are any.

    Raises NodeprintError where the measurement has no such dimension.
    """
    quantity = levels.quantity
    if dim not in quantity.dims or dim in quantity.names:
        advice = f"choose from {', '.join(name for name in quantity.dims if name not in quantity.names)}"
        raise NodeprintError(f"{quantity.measurement} has no numbers of {dim}", advice=advice)
    values, x = levels.of(node) / levels.unit.size, quantity.places[dim].astype(np.float64)
    others = levels.of_peers(node, peers) / levels.unit.size
    words = [name for name in quantity.dims if name in quantity.names and len(set(quantity.places[name].tolist())) > 1]
    kinds = np.stack([quantity.places[name] for name in words]) if words else np.zeros((1, quantity.size), np.int64)
    lines = []
    for kind in np.unique(kinds, axis=1).T:
        of_kind = (kinds == kind[:, None]).all(axis=0)
        name = ", ".join(quantity.names[word][at] for word, at in zip(words, kind.tolist(), strict=False)) or node
        lines.append(_line(row(name), x[of_kind], values[of_kind][None]))
        if len(others) and len(words) == 0:
            lines.append(_line(f"{len(others)} peers", x[of_kind], others[:, of_kind], of_peers=True))
    several_sizes = dim == "size_bytes"
    x_title = f"{'working set' if several_sizes else dim_name(dim)}{f', {_UNITS[dim]}' if dim in _UNITS else ''}"
    return CurveData(tuple(lines), x_title, levels.title, several_sizes, several_sizes)


def by_class(levels: NodeLevels, node: str, *, bandwidth: bool = False) -> CurveData:
    """Messages over their size, a line for each class of pairs of the CPUs `a` and `b` (same CCX, ..., other socket):
    the median and range over pairs, as time or as `bandwidth`, of both messages where both ways are measured at
    once."""
    quantity = levels.quantity
    sizes = quantity.places["size_bytes"].astype(np.float64)
    slots, pairs = quantity.layout.slots, np.stack([quantity.places[end] for end in "ab"], axis=1)
    layout = Layout(slots, pairs, levels=quantity.layout.levels, kinds=quantity.layout.kinds)
    values, title = levels.of(node) / levels.unit.size, levels.title
    if bandwidth:
        values, title = messages_at_once(quantity.operation) * sizes / levels.of(node), "bandwidth, GB/s"
    lines = [
        _line(layout.class_names[number], sizes[here], values[here][None])
        for number in np.unique(layout.classes).tolist()
        for here in [layout.classes == number]
    ]
    return CurveData(tuple(lines), "message, bytes", title, log_x=True, log_y=True)


def _line(name: str, x: Floats, values: Floats, *, of_peers: bool = False) -> CurveLine:
    """The median and range of `values` (node, place) at each x."""
    at = np.unique(x)
    of_each = [values[:, x == each] for each in at]
    finite = [each[np.isfinite(each)] for each in of_each]
    middle, low, high = (
        np.array([float(reduce(each)) if each.size else np.nan for each in finite]) for reduce in _REDUCTIONS
    )
    several = max(each.size for each in finite) > 1
    return CurveLine(name, at, middle, low if several else None, high if several else None, of_peers)


_REDUCTIONS: tuple[Callable[[Floats], float], ...] = (np.median, np.min, np.max)


def curves(ax: Axes, data: CurveData, style: Style) -> None:
    """Draw the lines with their ranges, told apart by color and dashes."""
    own = 0
    for line in data.lines:
        color = style.colors["peers"] if line.of_peers else style.series[own % len(style.series)]
        dashes = () if line.of_peers else _DASHES[own % len(_DASHES)]
        own += not line.of_peers
        if line.low is not None and line.high is not None:
            ax.fill_between(line.x, line.low, line.high, color=color, alpha=0.18, linewidth=0)
        ax.plot(
            line.x,
            line.y,
            color=color,
            linestyle=(0, dashes) if dashes else "-",
            label=line.name,
            linewidth=0.6 if line.thin else None,
            marker="o" if len(line.x) <= 24 and not line.thin else "",
            markersize=2,
        )
    if data.log_x:
        ax.set_xscale("log", base=2)
        ax.xaxis.set_major_locator(LogLocator(2, numticks=max(2, letters(ax, 1.0, style) // 10)))
        ax.xaxis.set_major_formatter(FuncFormatter(_bytes))
        ax.xaxis.set_minor_formatter(NullFormatter())
    if data.log_y:
        ax.set_yscale("log")
        ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        ax.yaxis.set_minor_formatter(FuncFormatter(lambda value, _: f"{value:g}" if f"{value:e}"[0] in "25" else ""))
    if data.from_zero:
        ax.set_ylim(bottom=0)
    ax.grid(visible=True)
    ax.set_xlabel(data.x_title)
    ax.set_ylabel(data.y_title)
    ax.legend(
        loc="lower left",
        bbox_to_anchor=(-0.02, 1.0),
        ncols=max(1, letters(ax, 1.15, style) // (max(len(line.name) for line in data.lines) + 7)),
        borderaxespad=0.2,
        columnspacing=1.2,
        labelspacing=0.2,
    )


def _bytes(size: float, _: object) -> str:
    for unit, name in ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if size >= unit:
            return f"{size / unit:g} {name}"
    return f"{size:g} B"
