"""Differences in tolerances: of every node in each metric, of a finding in its jobs and runs, of nodes in an order.

A split fleet has one row, the component that separates its groups, and each group has its own marker.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from textwrap import wrap
from typing import Any

import numpy as np
import numpy.typing as npt
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.ticker import StrMethodFormatter
from matplotlib.transforms import offset_copy

from nodeprint.data.places.layout import Ints
from nodeprint.judge.agreements import metric_of
from nodeprint.judge.verdict import Finding, Group, NodeVerdict
from nodeprint.report import names
from nodeprint.report.figures import figure_data
from nodeprint.report.figures.drawing import letters, root_of, size_pt, wrapped
from nodeprint.report.figures.figure_data import named, title_of
from nodeprint.report.figures.node_levels import Floats, shown_unit
from nodeprint.report.figures.render import Frame, primitive
from nodeprint.report.figures.style import Style
from nodeprint.report.names import counted, shortened, without_domain
from nodeprint.settings.texts import say

Bools = npt.NDArray[np.bool_]

#: Beyond so many tolerances the axis is logarithmic.
_LINEAR = 5.0
#: Nodes outside that have their names, on each side of a row; more points than these are an image.
_MOST_NAMED, _MOST_VECTORS = 3, 3000
#: The golden ratio: its multiples spread points over a row evenly, the same each time.
_GOLDEN = 0.6180339887
_SIGNS = "os^Dv"
#: Letters of a line of a row's name.
_LETTERS = 28


def of_nodes(nodes: Mapping[str, NodeVerdict], names: Mapping[str, str]) -> xr.Dataset | None:
    """The difference of each node in the metrics that decide (`names` has their words).

    It is that of the component nearest to its tolerance or farthest beyond, findings included. None if fewer than two
    nodes were compared.
    """
    by_metric: dict[str, dict[str, float]] = {metric: {} for metric in names}
    for name, node in nodes.items():
        relative = [f for f in node.findings if f.tolerance and not (f.of_limit or f.baseline)]
        for agreement in node.agreements:
            if agreement.metric in by_metric and np.isfinite(agreement.effect) and agreement.tolerance:
                effects = [agreement.effect / figure_data.tolerance_toward(agreement)]
                effects += [f.effect / f.tolerance for f in relative if metric_of(f) == agreement.metric]
                by_metric[agreement.metric][name] = max(effects, key=abs)
    rows = {names[metric]: values for metric, values in by_metric.items() if len(values) > 1}
    marked = {
        names[metric]: [name for name, node in nodes.items() if any(metric_of(of) == metric for of in node.counted)]
        for metric in by_metric
    }
    return differences_of(rows, {}, say("axes", "in_tolerances"), marked) if rows else None


def of_groups(groups: Sequence[Group], place: str) -> xr.Dataset | None:
    """The nodes of a split fleet in the component (`place`) that separates them, from the first group; or None."""
    apart = next((group for group in groups if group.differences), None)
    if apart is None:
        return None
    of_node = {node: group.name for group in groups for node in group.nodes}
    same = apart.measurement, apart.component, apart.than
    of_component = [of for of in groups if (of.measurement, of.component, of.than) == same]
    values = {node: value / group.tolerance for group in of_component for node, value in group.differences.items()}
    return differences_of({place: values}, of_node, say("axes", "groups", than=apart.than))


def differences_of(
    rows: Mapping[str, Mapping[str, float]],
    groups: Mapping[str, str],
    title: str,
    marked: Mapping[str, Collection[str]] | None = None,
) -> xr.Dataset:
    """Differences in tolerances by the name of their row and by node (row, node), with the group of each node.

    `marked` has by row the nodes with findings in it.
    """
    nodes = list(dict.fromkeys(node for values in rows.values() for node in values))
    table = np.array([[values.get(node, np.nan) for node in nodes] for values in rows.values()])
    coordinates = {
        "metric": list(rows),
        "node": nodes,
        "group": ("node", np.array([groups.get(node, "") for node in nodes], dtype=object)),
        "marked": (("metric", "node"), np.array([np.isin(nodes, list((marked or {}).get(row, ()))) for row in rows])),
    }
    data = xr.Dataset({"value": named(("metric", "node"), table, title)}, coordinates)
    return data.assign_coords(figure_data.tolerance_coordinates(1.0, 1.0, "1"))


def outside(data: xr.Dataset) -> Bools:
    """By row and node whether it is beyond its tolerance; not the groups of a split fleet, whose markers name them."""
    return np.asarray((np.abs(data.value) > 1) & (data.group == ""))


def with_names(data: xr.Dataset) -> Bools:
    """By row and node whether its name is beside its point: the farthest outside on each side, findings first."""
    beyond, marked, out = outside(data), data.marked.to_numpy(), np.zeros(data.value.shape, dtype=np.bool_)
    for row, values in enumerate(data.value.to_numpy()):
        order = np.lexsort((-np.abs(values), ~marked[row]))
        for side in (-1, 1):
            out[row, order[(beyond[row] & (side * values > 0))[order]][:_MOST_NAMED]] = True
    return out


@primitive(lambda data, width: Frame(width, 18.0 if (rows := data.sizes["metric"]) == 1 else 9.0 * rows))
def differences(ax: Axes, data: xr.Dataset, style: Style) -> None:
    """Draw every node as a point between the tolerances, and those with findings beyond them as triangles.

    The points of `with_names` have names.
    """
    values = data.value.to_numpy()
    names, of_node = data.metric.to_numpy().tolist(), data.group.to_numpy()
    beyond, marked = outside(data), data.marked.to_numpy()
    title = title_of(data.value)
    reach = max(1.2, float(np.nanmax(np.abs(values), initial=0)))
    if reach > _LINEAR:
        title = say("axes", "log_beyond", title=title)
        ax.set_xscale("symlog", linthresh=1.0)
        ax.xaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    # the names stand outside of the farthest points
    shown = without_domain(data.node[beyond.any(axis=0)].to_numpy().tolist())
    most = min(letters(ax, 0.25, style), max(map(len, shown), default=0))
    names_pt = (1.3 + 0.7 * most) * style.letters_pt
    scale = ax.xaxis.get_transform()
    farthest = float(scale.transform(np.array([reach]))[0]) / (1 - min(0.5, 2 * names_pt / size_pt(ax)[0]))
    reach = float(scale.inverted().transform(np.array([farthest]))[0])
    ax.set_xlim(-reach, reach)
    ax.set_ylim(len(names) - 0.5, -0.5)
    figure_data.draw_tolerance(ax, data, style, upright=True)
    measured = np.isfinite(values)
    as_image = measured.sum() > _MOST_VECTORS
    groups = sorted(set(of_node) - {""}) or [""]
    for at, row in enumerate(values):
        y = at + 0.62 * (((np.cumsum(measured[at]) - 1) * _GOLDEN) % 1 - 0.5)
        triangles = beyond[at] & marked[at]
        for number, group in enumerate(groups):
            chosen = measured[at] & ~triangles & (of_node == group)
            marker, color = _SIGNS[number % len(_SIGNS)], style.series[number % len(style.series)]
            label = f"group {group}" if group and not at else None
            look: dict[str, Any] = {"linestyle": "", "markersize": 2.6, "alpha": 0.75, "rasterized": as_image}
            ax.plot(row[chosen], y[chosen], marker=marker, color=color, label=label, **look)
        ax.plot(row[triangles], y[triangles], linestyle="", marker="^", markersize=4, color=style.color("alarm"))
        _name(ax, data.isel(metric=[at]), y, most, style)
    most_letters = max(min(_LETTERS, letters(ax, 0.4, style)), 12)  # of a line, beside which the points have room
    ax.set_yticks(range(len(names)), ["\n".join(wrap(name, most_letters)) for name in names])
    ax.tick_params(axis="y", length=0)
    ax.spines["left"].set_visible(False)
    ax.set_xlabel(wrapped(title, size_pt(ax)[0], style))
    if len(groups) > 1:
        ax.legend(loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=len(groups), borderaxespad=2.0)
    pen: dict[str, Any] = {"ha": "center", "va": "bottom", "fontsize": style.smallest_letters_pt}
    for side in (-1, 1):
        ax.text(side, 1.02, "tolerance", transform=ax.get_xaxis_transform(), **pen)


def _name(ax: Axes, data: xr.Dataset, y: Floats, most: int, style: Style) -> None:
    """Write the names of the nodes of a row next to their points, one below another if they are close."""
    names = without_domain(data.node.to_numpy().tolist())
    (row,), (marked,), (beyond,), (has_name,) = data.value.to_numpy(), data.marked, outside(data), with_names(data)
    below = 1.25 * style.letters_pt * abs(float(np.diff(ax.get_ylim())[0])) / size_pt(ax)[1]
    for side in (-1, 1):
        on_side = sorted(np.flatnonzero(has_name & (side * row > 0)).tolist(), key=lambda number: float(y[number]))
        lines = np.arange(len(on_side)) * below
        if on_side:  # as near to their points as leaves each a line
            lines += float(np.mean(y[on_side] - lines))
        for number, line in zip(on_side, lines.tolist(), strict=True):
            # behind every point that is on the line, with a line to its own
            on_line = np.abs(row[beyond & (side * row > 0) & (np.abs(y - line) < below)])
            behind = side * float(max(abs(row[number]), on_line.max(initial=0)))
            color = style.color("alarm" if marked[number] else "ink")
            where: Any = offset_copy(ax.transData, root_of(ax), 5 * side, 0, units="points")
            arrow = {"arrowstyle": "-", "color": color, "linewidth": 0.4, "shrinkA": 0}
            look: dict[str, Any] = {
                "ha": "left" if side > 0 else "right",
                "va": "center",
                "color": color,
                "arrowprops": arrow,
            }
            name, at = shortened(names[number], most), (float(row[number]), float(y[number]))
            ax.annotate(name, at, xytext=(behind, line), textcoords=where, **look)


# --- a finding in its jobs ---


#: Letters of a name beside its value, and of a row.
_NAME_LETTERS, _ROW_LETTERS = 16, 24


def of_finding(finding: Finding) -> xr.Dataset:
    """A finding in each of its jobs and runs, in percent (of a `share`: points), with simultaneous intervals."""
    jobs, most = finding.by_job, max(len(job.runs) for job in finding.by_job)
    runs = np.full((len(jobs), most), np.nan)
    run_names = np.full((len(jobs), most), "", dtype=object)
    for row, job in enumerate(jobs):
        runs[row, : len(job.runs)] = [100 * effect for effect in job.runs.values()]
        run_names[row, : len(job.runs)] = [run.rpartition("/")[2] for run in job.runs]
    effects = np.array([(100 * job.effect, 100 * job.interval.low, 100 * job.interval.high) for job in jobs])
    share = finding.unit == "share"
    title = f"difference from the peers, {'percentage points' if share else '%'}"
    unit = shown_unit(names.of_measurement(finding.unit, finding.measurement), np.array([[finding.value]]))
    has_unit = bool(finding.effect and np.isfinite(finding.effect_unit)) and not share
    titles = {"value": title, "low": "interval from", "high": "interval to"}
    variables = {name: named("job", of, titles[name]) for name, of in zip(titles, effects.T, strict=True)}
    variables["of_run"] = named(("job", "number"), runs, "effect in the run, %")
    coordinates = {
        "job": [job.job for job in jobs],
        "run": xr.Variable(("job", "number"), run_names, {"long_name": "run"}),
        "marked": xr.Variable("job", [job.shows for job in jobs]),
    }
    data = xr.Dataset(variables, coordinates | figure_data.tolerance_of(finding))
    times = names.times(finding.effect, finding.tolerance)
    effect, _ = names.with_tolerance(finding.effect, finding.tolerance, finding.measurement)
    heading = f"{effect}: {times} times its tolerance"
    size = abs(finding.effect_unit / (100 * finding.effect) / unit.size) if has_unit else 0.0
    return data.assign_attrs(heading=heading, unit=unit.name, unit_size=size)


@primitive(lambda data, width: Frame(width, 7.0 * data.sizes["job"]))
def intervals(ax: Axes, data: xr.Dataset, style: Style) -> None:
    """Draw the effect in each job with its interval before the tolerance, and below it those in its runs as dots.

    Jobs that show the finding are triangles.
    """
    value, of_run = data.value.to_numpy(), data.of_run.to_numpy()
    marked, at = data.marked.to_numpy().astype(np.bool_), np.arange(len(value))
    figure_data.draw_tolerance(ax, data, style, upright=True)
    errors = np.nan_to_num(np.abs(np.stack([data.low, data.high]) - value))
    for chosen, look in zip((~marked, marked), _looks(style), strict=True):
        pen = look | {"ecolor": look["color"], "elinewidth": 0.9, "linestyle": ""}
        ax.errorbar(value[chosen], at[chosen] - 0.12, xerr=errors[:, chosen], **pen)
    below = np.broadcast_to(at[:, None] + 0.22, of_run.shape)
    pen = {"linestyle": "", "marker": "o", "markersize": 2.2, "alpha": 0.8, "color": style.colors["node"]}
    ax.plot(of_run.ravel(), below.ravel(), **pen)
    jobs, counts = data.job.to_numpy().tolist(), np.isfinite(of_run).sum(axis=1)
    ax.margins(x=0.08)
    ax.set(ylim=(len(jobs) - 0.5, -0.5), xlabel=wrapped(title_of(data.value), size_pt(ax)[0], style))
    words = (f"{name}\n{counted(count, 'run')}" for name, count in zip(jobs, counts, strict=True))
    ax.set_yticks(range(len(jobs)), [shortened(word, _ROW_LETTERS) for word in words])
    ax.tick_params(axis="y", length=0)
    for label in (ax.get_yticklabels()[row] for row in np.flatnonzero(marked)):
        label.set_color(style.color("alarm"))
    if size := data.attrs["unit_size"]:
        top = ax.secondary_xaxis("top", functions=(lambda values: values * size, lambda values: values / size))
        top.set_xlabel(f"the same in {data.attrs['unit']}")
        ax.spines["top"].set_visible(False)
    heading, pad = data.attrs["heading"], 25 if size else 4
    ax.set_title(heading, fontsize=style.letters_pt, color=style.color("alarm"), pad=pad)


def _looks(style: Style) -> tuple[dict[str, Any], dict[str, Any]]:
    """The markers of values, and of those that are marked."""
    return (
        {"color": style.colors["node"], "marker": "o", "markersize": 2.4},
        {"color": style.color("alarm"), "marker": "^", "markersize": 3.8},
    )


# --- nodes in an order ---


def in_order(
    values: Mapping[str, float], order: Mapping[str, str], title: str, order_title: str, marked: Collection[str] = ()
) -> xr.Dataset:
    """The values of nodes in an order, such as that of time."""
    nodes = sorted(values, key=lambda node: (order.get(node, ""), node))
    value = named("node", [values[node] for node in nodes], title)
    coordinates = {"node": nodes, "marked": ("node", np.isin(nodes, list(marked)))}
    return xr.Dataset({"value": value}, coordinates, {"order": order_title})


@primitive(lambda _, width: Frame(width, 29.0))
def points(ax: Axes, data: xr.Dataset, style: Style) -> None:
    """Draw the value of each node as a point, and those that are marked as triangles with their names."""
    nodes, value = data.node.to_numpy().tolist(), data.value.to_numpy()
    marked, at = data.marked.to_numpy().astype(np.bool_), np.arange(len(nodes))
    for chosen, look in zip((~marked, marked), _looks(style), strict=True):
        ax.plot(at[chosen], value[chosen], linestyle="", **look)
    ax.set(xlim=(-0.7, len(at) - 0.3), xlabel=data.attrs["order"])
    ax.set_ylabel(wrapped(title_of(data.value), size_pt(ax)[1], style))
    ax.set_xticks([])
    ax.margins(y=0.2)
    _name_above(ax, nodes, value, np.flatnonzero(marked), style)


def _name_above(ax: Axes, labels: list[str], values: np.ndarray[Any, Any], marked: Ints, style: Style) -> None:
    """Write the names of marked values above them, of those that have room side by side."""
    width = size_pt(ax)[0]
    free_from = -np.inf
    for row in marked.tolist():
        middle = (row + 0.7) / len(labels) * width
        half = 0.35 * style.letters_pt * (min(len(labels[row]), _NAME_LETTERS) + 1)
        if middle - half > free_from:
            free_from = middle + half
            look: dict[str, Any] = {"textcoords": "offset points", "ha": "center", "va": "bottom"}
            at, name = (row, np.nan_to_num(values[row])), shortened(labels[row], _NAME_LETTERS)
            ax.annotate(name, at, xytext=(0, 4), color=style.color("alarm"), **look)
