"""Intervals: values with their intervals against a tolerance, a row for each, or columns if there are many."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes

from nodeprint.data.places.layout import Ints
from nodeprint.errors import NodeprintError
from nodeprint.judge.verdict import Finding
from nodeprint.report import names
from nodeprint.report.figures import tolerance_band
from nodeprint.report.figures.figure_data import named, title_of
from nodeprint.report.figures.node_levels import shown_unit
from nodeprint.report.figures.part_levels import size_pt
from nodeprint.report.figures.pixels import wrapped
from nodeprint.report.figures.render import Frame, primitive
from nodeprint.report.figures.style import Style
from nodeprint.report.names import shortened
from nodeprint.settings.texts import say

#: More rows than these are drawn as columns.
_MOST_ROWS = 48
#: Letters of a name beside its value, and of a row.
_LETTERS, _ROW_LETTERS = 16, 24


def of_finding(finding: Finding, *, share: bool = False) -> xr.Dataset:
    """A finding in each of its jobs and runs, in percent (of a `share`: points), with simultaneous intervals."""
    jobs, most = finding.by_job, max(len(job.runs) for job in finding.by_job)
    runs = np.full((len(jobs), most), np.nan)
    run_names = np.full((len(jobs), most), "", dtype=object)
    for row, job in enumerate(jobs):
        runs[row, : len(job.runs)] = [100 * effect for effect in job.runs.values()]
        run_names[row, : len(job.runs)] = [run.rpartition("/")[2] for run in job.runs]
    ends = [(100 * job.effect, 100 * job.interval.low, 100 * job.interval.high) for job in jobs]
    title = say("axes", "lost") if share else "difference from the peers, %"
    unit = shown_unit(names.of_measurement(finding.unit, finding.measurement), np.array([[finding.value]]))
    has_unit = bool(finding.effect and np.isfinite(finding.effect_unit)) and not share
    data = _intervals("job", [job.job for job in jobs], np.array(ends), title).assign(
        of_run=named(("job", "number"), runs, "effect in the run, %")
    )
    coordinates = {
        "run": xr.Variable(("job", "number"), run_names, {"long_name": "run"}),
        "marked": xr.Variable("job", [job.shows for job in jobs]),
    }
    data = data.assign_coords(coordinates | tolerance_band.of_finding(finding))
    times = names.times(finding.effect, finding.tolerance)
    allowed = tolerance_band.text(data, finding.effect)
    heading = f"{names.signed(finding.effect)}: {times} times its tolerance, {allowed}"
    size = abs(finding.effect_unit / (100 * finding.effect) / unit.size) if has_unit else 0.0
    return data.assign_attrs(heading=heading, unit=unit.name, unit_size=size)


def of_component(deviations: xr.Dataset, measurement: str, component_type: str, place: str) -> xr.Dataset:
    """The difference of every node in one component, the smallest first. Raises NodeprintError if there is none."""
    wanted = (deviations.measurement == measurement) & (deviations.component_type == component_type)
    columns = np.flatnonzero((wanted & (deviations.place == place)).to_numpy())
    if not len(columns):
        what = f"{measurement} has no part {place!r} of component type {component_type!r}"
        raise NodeprintError(what, advice="choose from `measurement`, `component_type` and `place` of the deviations")
    component = deviations.isel(component=int(columns[0]))
    columns_of = (component[name].to_numpy().tolist() for name in ("node", "difference", "half_simultaneous"))
    effects = {  # the pooled sample of a node is its last
        node: (effect, effect - half, effect + half)
        for node, effect, half in zip(*columns_of, strict=True)
        if np.isfinite(effect)
    }
    if not effects:
        what = f"no node has a difference in {place!r} of {measurement}"
        raise NodeprintError(what, advice="choose a component that several nodes of a kind have")
    title = f"{measurement}, {place}: difference from the peers, %"
    return of_nodes(effects, title, 100 * float(np.nanmax(component.tolerance.to_numpy())))


def of_nodes(
    effects: Mapping[str, tuple[float, float, float]], title: str, percent: float, marked: Collection[str] = ()
) -> xr.Dataset:
    """The relative effects of nodes with the ends of their intervals, the smallest first; the tolerance in percent."""
    order = sorted(effects, key=lambda node: effects[node][0])
    data = _intervals("node", order, 100 * np.array([effects[node] for node in order]), title)
    data = data.assign_coords(marked=("node", np.isin(order, list(marked))))
    return data.assign_coords(tolerance_band.coordinates(percent, percent)).assign_attrs(
        order=f"{len(order)} nodes, the smallest first"
    )


def in_order(
    values: Mapping[str, float], order: Mapping[str, str], title: str, order_title: str, marked: Collection[str] = ()
) -> xr.Dataset:
    """The values of nodes in an order, such as that of time; they have no intervals."""
    nodes = sorted(values, key=lambda node: (order.get(node, ""), node))
    value = named("node", [values[node] for node in nodes], title)
    coordinates = {"node": nodes, "marked": ("node", np.isin(nodes, list(marked)))}
    return xr.Dataset({"value": value}, coordinates, {"order": order_title})


def _intervals(dim: str, rows: list[str], ends: np.ndarray[Any, np.dtype[np.float64]], title: str) -> xr.Dataset:
    titles = (title, "interval from", "interval to")
    variables = {
        name: named(dim, column, of) for name, column, of in zip(("value", "low", "high"), ends.T, titles, strict=True)
    }
    return xr.Dataset(variables, {dim: rows})


def _in_rows(data: xr.Dataset) -> bool:
    return "low" in data and data.sizes[str(data.value.dims[0])] <= _MOST_ROWS


def _frame(data: xr.Dataset, width: float) -> Frame:
    """A row for each, higher with the values of runs, or columns."""
    rows = data.sizes[str(data.value.dims[0])]
    if not _in_rows(data):
        return Frame(width, 40.0 if "low" in data else 29.0)
    return Frame(width, 7.0 * rows if "of_run" in data else 3.2 * rows + 2.0)


@primitive(_frame)
def intervals(ax: Axes, data: xr.Dataset, style: Style) -> None:
    """Draw each value with its interval before the tolerance, the marked ones as triangles, and below a value those of
    its runs as dots."""
    dim = str(data.value.dims[0])
    labels, value = data[dim].to_numpy().tolist(), data.value.to_numpy()
    marked = data.marked.to_numpy().astype(np.bool_)
    rows, at = _in_rows(data), np.arange(len(labels))
    tolerance_band.draw(ax, data, style, upright=rows)
    low, high = (data[end].to_numpy() if end in data else value for end in ("low", "high"))
    errors = np.nan_to_num(np.abs(np.stack([low, high]) - value))
    shift = 0.12 if "of_run" in data else 0.0
    for chosen, marker, color, size in (
        (~marked, "o", style.colors["node"], 2.4),
        (marked, "^", style.color("alarm"), 3.8),
    ):
        pen: dict[str, Any] = {"color": color, "markersize": size, "elinewidth": 0.9, "fmt": marker}
        pen["ecolor"] = color if "of_run" in data else style.colors["peers"]
        if rows:
            ax.errorbar(value[chosen], at[chosen] - shift, xerr=errors[:, chosen], **pen)
        else:
            ax.errorbar(at[chosen], value[chosen], yerr=errors[:, chosen] if "low" in data else None, **pen)
    if "of_run" in data:
        of_run = data.of_run.to_numpy()
        below = np.broadcast_to(at[:, None] + 0.22, of_run.shape)
        pen = {"linestyle": "", "marker": "o", "markersize": 2.2, "alpha": 0.8, "color": style.colors["node"]}
        ax.plot(of_run.ravel(), below.ravel(), **pen)
        labels = [f"{name}\n{count} runs" for name, count in zip(labels, np.isfinite(of_run).sum(axis=1), strict=True)]
    if rows:
        _label_rows(ax, data, labels, marked, style)
    else:
        ax.set(xlim=(-0.7, len(at) - 0.3), xlabel=data.attrs["order"])
        ax.set_ylabel(wrapped(title_of(data.value), size_pt(ax)[1], style))
        ax.set_xticks([])
        ax.margins(y=0.2)
        _name(ax, labels, high, np.flatnonzero(marked), style)


def _label_rows(ax: Axes, data: xr.Dataset, labels: list[str], marked: np.ndarray[Any, Any], style: Style) -> None:
    """Name the rows and the axis, in percent and in the unit of the measurement if it is known, with a heading."""
    ax.margins(x=0.08)
    ax.set(ylim=(len(labels) - 0.5, -0.5), xlabel=wrapped(title_of(data.value), size_pt(ax)[0], style))
    ax.set_yticks(range(len(labels)), [shortened(label, _ROW_LETTERS) for label in labels])
    ax.tick_params(axis="y", length=0)
    for label in (ax.get_yticklabels()[row] for row in np.flatnonzero(marked)):
        label.set_color(style.color("alarm"))
    if size := data.attrs.get("unit_size"):
        top = ax.secondary_xaxis("top", functions=(lambda values: values * size, lambda values: values / size))
        top.set_xlabel(f"the same in {data.attrs['unit']}")
        ax.spines["top"].set_visible(False)
    if heading := data.attrs.get("heading"):
        ax.set_title(heading, fontsize=style.letters_pt, color=style.color("alarm"), pad=25 if size else 4)


def _name(ax: Axes, labels: list[str], values: np.ndarray[Any, Any], marked: Ints, style: Style) -> None:
    """Write the names of marked values above them, of those that have room side by side."""
    width = size_pt(ax)[0]
    free_from = -np.inf
    for row in marked.tolist():
        middle = (row + 0.7) / len(labels) * width
        half = 0.35 * style.letters_pt * (min(len(labels[row]), _LETTERS) + 1)
        if middle - half > free_from:
            free_from = middle + half
            look: dict[str, Any] = {"textcoords": "offset points", "ha": "center", "va": "bottom"}
            at, name = (row, np.nan_to_num(values[row])), shortened(labels[row], _LETTERS)
            ax.annotate(name, at, xytext=(0, 4), color=style.color("alarm"), **look)
