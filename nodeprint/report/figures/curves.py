"""Curves: lines over a number or a time, each with the range of its values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import matplotlib.dates as mdates
import numpy as np
import numpy.typing as npt
import pandas as pd
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter

from nodeprint.data.places.layout import Layout
from nodeprint.errors import NodeprintError
from nodeprint.judge.verdict import FabricVerdict
from nodeprint.report.figures import figure_data
from nodeprint.report.figures.drawing import letters, size_pt, wrapped
from nodeprint.report.figures.figure_data import named, title_of
from nodeprint.report.figures.node_levels import Floats, NodeLevels, shown_unit
from nodeprint.report.figures.render import Frame, primitive
from nodeprint.report.figures.style import Style
from nodeprint.report.message_rates import messages_at_once
from nodeprint.report.names import binary_size, counted, dimension, row, shortened
from nodeprint.settings.texts import say

#: A line of the node, of its peers, or one beside another line, which is thin and has no points.
Role = Literal["node", "peers", "thin"]

_DASHES: Sequence[tuple[float, ...]] = ((), (4, 2), (1, 1), (6, 2, 1, 2), (3, 1, 1, 1, 1, 1))
_MARKERS = "osD^v"
#: Units of dimensions, for titles.
_UNITS = {"size_bytes": "bytes", "delay": "cycles"}
#: What of a second is drawn, by the key of its record: the title of the axis, and how many make one of its unit.
OF_SECONDS: Mapping[str, tuple[str, float]] = {
    "core_hz": ("clock, GHz", 1e9),
    "flops_per_s": ("rate of all cores, Gflop/s", 1e9),
}
#: Lines of more points have no markers.
_MOST_MARKERS = 24


def line(
    name: str,
    x: npt.ArrayLike,
    y: npt.ArrayLike,
    low: npt.ArrayLike | None = None,
    high: npt.ArrayLike | None = None,
    role: Role = "node",
    **beside: xr.Variable,
) -> xr.Dataset:
    """A line over its points, with the range of the values at each; `beside` are further coordinates of its points."""
    values = np.asarray(y, dtype=np.float64)
    ends = [np.full(values.shape, np.nan) if end is None else end for end in (low, high)]
    variables = {name: ("point", value) for name, value in zip(("value", "low", "high"), (values, *ends), strict=True)}
    return xr.Dataset(variables, {"line": name, "role": role, "x": ("point", np.asarray(x)), **beside})


def lines(each: Sequence[xr.Dataset], x_title: str, y_title: str, **how: Any) -> xr.Dataset:
    """Lines of one figure (line, point), the shorter ones padded. `how` may be `log_x` (powers of two of bytes),
    `log_y`, `from_zero`, and `bars` if ranges are intervals of single points."""
    most = max(of_line.sizes["point"] for of_line in each)
    padded = [of_line.pad(point=(0, most - of_line.sizes["point"])) for of_line in each]
    out = xr.concat(padded, "line", data_vars="all", coords="all", join="override", combine_attrs="override")
    for variable, title in (("x", x_title), ("value", y_title), ("low", "lowest"), ("high", "highest")):
        out[variable].attrs.update(named((), 0, title).attrs)
    return out.assign_attrs(how)


@primitive(lambda data, width: Frame(width, 34.0 if data.attrs.get("bars") else 42.0))
def curve(ax: Axes, data: xr.Dataset, style: Style) -> None:
    """Draw lines with ranges before the tolerance, if any; a vertical line where a coordinate `changed` is true."""
    figure_data.draw_tolerance(ax, data, style)
    timed = np.issubdtype(data.x.dtype, np.datetime64)
    x = mdates.date2num(data.x.to_numpy()) if timed else data.x.to_numpy()  # type: ignore[no-untyped-call]
    low, middle, high = (data[name].to_numpy() for name in ("low", "value", "high"))
    names = [shortened(name, max(letters(ax, 1.2, style) - 5, 12)) for name in data.line.to_numpy().tolist()]
    own = 0
    for number, role in enumerate(data.role.to_numpy().tolist()):
        at = np.isfinite(x[number])
        of_line = x[number, at]
        color = style.colors["peers"] if role == "peers" else style.series[own % len(style.series)]
        dashes = () if role == "peers" else _DASHES[own % len(_DASHES)]
        pen: dict[str, Any] = {"color": color, "linestyle": (0, dashes) if dashes else "-", "label": names[number]}
        pen["markersize"] = 2.2
        pen["marker"] = _MARKERS[own % len(_MARKERS)] if len(of_line) <= _MOST_MARKERS and role != "thin" else ""
        pen["linewidth"] = 0.6 if role == "thin" else 0.9
        ends = np.abs(np.stack([low, high])[:, number, at] - middle[number, at])
        if data.attrs.get("bars"):
            ax.errorbar(of_line, middle[number, at], yerr=ends, elinewidth=0.5, **pen)
        else:
            if np.isfinite(ends).any():
                ax.fill_between(of_line, low[number, at], high[number, at], color=color, alpha=0.18, linewidth=0)
            ax.plot(of_line, middle[number, at], **pen)
        own += role != "peers"
        if timed and "changed" in data.coords:
            for since in of_line[data.changed.to_numpy()[number, at].astype(np.bool_)]:
                ax.axvline(since, color=color, linewidth=0.6, linestyle=(0, (1, 2)))
    _scale(ax, data, style, timed=timed)
    _legend(ax, names, style)


def _scale(ax: Axes, data: xr.Dataset, style: Style, *, timed: bool) -> None:
    how = data.attrs
    if timed:
        dates = mdates.AutoDateLocator(minticks=3, maxticks=8)  # type: ignore[no-untyped-call]
        ax.xaxis.set_major_locator(dates)
        ax.xaxis.set_major_formatter(mdates.ConciseDateFormatter(dates))  # type: ignore[no-untyped-call]
    elif np.issubdtype(data.x.dtype, np.integer) or how.get("bars"):
        ax.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=7))
    if how.get("bars"):
        ax.margins(y=0.15)
        ax.yaxis.set_major_locator(MaxNLocator(integer=True, nbins=7))
    if how.get("log_x"):
        ax.set_xscale("log", base=2)
        ax.xaxis.set_major_locator(LogLocator(2, numticks=max(2, letters(ax, 1.0, style) // 10)))
        ax.xaxis.set_major_formatter(FuncFormatter(lambda size, _: binary_size(size, "B")))
        ax.xaxis.set_minor_formatter(NullFormatter())
    if how.get("log_y"):
        ax.set_yscale("log")
        ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        ax.yaxis.set_minor_formatter(FuncFormatter(lambda value, _: f"{value:g}" if f"{value:e}"[0] in "25" else ""))
    if how.get("from_zero"):
        ax.set_ylim(bottom=0)
    ax.grid(visible=not how.get("bars"))
    x_title, y_title = title_of(data.x), title_of(data.value)
    ax.set_xlabel(say("axes", "log", title=x_title) if how.get("log_x") else x_title)
    y_title = say("axes", "log", title=y_title) if how.get("log_y") else y_title
    ax.set_ylabel(wrapped(y_title, size_pt(ax)[1], style))


def _legend(ax: Axes, names: Sequence[str], style: Style) -> None:
    ncols = max(1, letters(ax, 1.15, style) // (max(map(len, names)) + 7))
    gaps = {"borderaxespad": 0.2, "columnspacing": 1.2, "labelspacing": 0.2}
    ax.legend(loc="lower left", bbox_to_anchor=(-0.02, 1.0), ncols=ncols, **gaps)


# --- curves of measurements ---


def over(levels: NodeLevels, node: str, dim: str, *, peers: Sequence[str] = ()) -> xr.Dataset:
    """A measurement over one of its dimensions, a line for each kind of word among the others (stream, scope, place).

    Lines are medians with ranges over CPUs and other numbers. Peers have a line of their own.

    Raises NodeprintError if the measurement has no such dimension.
    """
    quantity = levels.quantity
    if dim not in quantity.dims or dim in quantity.names:
        advice = f"choose from {', '.join(name for name in quantity.dims if name not in quantity.names)}"
        raise NodeprintError(f"{quantity.measurement} has no numbers of {dim}", advice=advice)
    values, x = levels.of(node) / levels.unit.size, quantity.places[dim].astype(np.float64)
    others = levels.of_peers(node, peers) / levels.unit.size
    words = [name for name in quantity.dims if name in quantity.names and len(set(quantity.places[name].tolist())) > 1]
    kinds = np.stack([quantity.places[name] for name in words]) if words else np.zeros((1, quantity.size), np.int64)
    each = []
    for kind in np.unique(kinds, axis=1).T:
        of_kind = (kinds == kind[:, None]).all(axis=0)
        name = ", ".join(quantity.names[word][at] for word, at in zip(words, kind.tolist(), strict=False)) or node
        each.append(_line(row(name), x[of_kind], values[of_kind][None]))
        if len(others) and len(words) == 0:
            each.append(_line(counted(len(others), "peer"), x[of_kind], others[:, of_kind], "peers"))
    several_sizes = dim == "size_bytes"
    x_title = f"{'working set' if several_sizes else dimension(dim)}{f', {_UNITS[dim]}' if dim in _UNITS else ''}"
    return lines(each, x_title, levels.title, log_x=several_sizes, log_y=several_sizes)


def by_class(levels: NodeLevels, node: str, *, bandwidth: bool = False) -> xr.Dataset:
    """Messages over their size, a line for each class of pairs of the CPUs `a` and `b` (same CCX, ..., other socket).

    Lines are medians with ranges over pairs, as time or as `bandwidth`. If both ways are measured at once, it is the
    bandwidth of both messages.
    """
    quantity = levels.quantity
    sizes = quantity.places["size_bytes"].astype(np.float64)
    slots, pairs = quantity.layout.slots, np.stack([quantity.places[end] for end in "ab"], axis=1)
    layout = Layout(slots, pairs, levels=quantity.layout.levels, kinds=quantity.layout.kinds)
    values, title = levels.of(node) / levels.unit.size, levels.title
    if bandwidth:
        values, title = messages_at_once(quantity.operation) * sizes / levels.of(node), "bandwidth, GB/s"
    each = [
        _line(layout.class_names[number], sizes[here], values[here][None])
        for number in np.unique(layout.classes).tolist()
        for here in [layout.classes == number]
    ]
    return lines(each, "message, bytes", title, log_x=True, log_y=True)


def of_links(verdict: FabricVerdict, *, bandwidth: bool = False) -> xr.Dataset:
    """Return median and range of links, within switches or racks and between, over sizes, as time or as `bandwidth`."""
    several = all(verdict.places) and len(set(verdict.places)) > 1
    unit = shown_unit("ns", np.array([[figure.median_ns for figure in verdict.by_size]]))
    each = []
    for within in (True, False):
        figures = [figure for figure in verdict.by_size if figure.within is within]
        if not figures:
            continue
        sizes = np.array([figure.message_bytes for figure in figures], dtype=np.float64)
        times = np.array([(figure.median_ns, figure.low_ns, figure.high_ns) for figure in figures]).T
        middle, low, high = times / unit.size
        if bandwidth:
            middle, high, low = messages_at_once(verdict.operation) * sizes / times  # bytes per nanosecond
        name = ("within a switch or rack" if within else "between switches or racks") if several else "all links"
        each.append(line(name, sizes, middle, low, high))
    title = "bandwidth, GB/s" if bandwidth else f"time of a message, {unit.name}"
    return lines(each, "message, bytes", title, log_x=True, log_y=True)


def _line(name: str, x: Floats, values: Floats, role: Role = "node") -> xr.Dataset:
    """The median and range of `values` (node, place) at each x."""
    at = np.unique(x)
    of_each = [values[:, x == each] for each in at]
    finite = [each[np.isfinite(each)] for each in of_each]
    ends = [(np.median(of), np.min(of), np.max(of)) if of.size else (np.nan,) * 3 for of in finite]
    middle, low, high = np.array(ends, dtype=np.float64).T
    several = max(each.size for each in finite) > 1
    return line(name, at, middle, low if several else None, high if several else None, role)


def by_second(seconds: Sequence[Mapping[str, Any]], quantity: str) -> xr.Dataset:
    """The load of one job by second: `quantity` (a key of OF_SECONDS) of its records load_second.

    Each socket's cores have a line, the median over runs and passes with the range. The clock also has a thin line for
    the slowest core.
    """
    title, size = OF_SECONDS[quantity]
    table = pd.DataFrame([{**cores, "second": record["second"]} for record in seconds for cores in record["sockets"]])
    each = []
    for number, of_socket in table.groupby("socket"):
        by = of_socket.groupby("second")
        middle, low, high = ((by[quantity].agg(how) / size).to_numpy() for how in ("median", "min", "max"))
        at = np.array(list(by.groups), dtype=np.float64)
        name = f"socket {number}" if int(str(number)) >= 0 else "all cores"
        each.append(line(name, at, middle, low, high))
        if quantity == "core_hz":
            slowest = say("slowest_core", change=say("change", "time", "most"))
            clock = by["lowest_core_hz"].median().to_numpy() / size
            each.append(line(f"{name}, {slowest}", at, clock, role="thin"))
    return lines(each, "seconds of full load", title, from_zero=True)
