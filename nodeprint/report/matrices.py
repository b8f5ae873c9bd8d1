"""What a node's page has of each matrix: the figure, medians by class, distributions, run against run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from nodeprint import captions
from nodeprint.fleet import homes
from nodeprint.fleet.jobs import Measured
from nodeprint.order_statistics import finite_median, quantile, row_medians
from nodeprint.report import (
    against,
    distribution_plots,
    formatting,
    linktest,
    matrix_figure,
    methods,
    plots,
    scale,
)
from nodeprint.report import (
    old_figures as figures,
)
from nodeprint.report.floorplan import floorplan as floorplan_drawing
from nodeprint.report.old_figures import Figure, Floats, Tick, three_digits
from nodeprint.report.pages import Block, Cell, Figures, Section, Table, Text
from nodeprint.report.peers import Peers, Template, name_of
from nodeprint.report.plots import Passes
from nodeprint.report.quadrants import section as quadrant_section
from nodeprint.report.scale import Scale
from nodeprint.report.shown import ClassKey, DrawnMatrix, Shown, class_key, medians_by_run, scale_ends
from nodeprint.topology.model import Topology

_STRIP = 62.0
#: An interval whose lower end is below this share of the median is one of too few runs, and is not shown.
_LEAST_END = 0.5
#: In mm: the width of a matrix that is not the first.
_LATER = 130.0


def sections(
    shown: Shown, node: str, said: Mapping[str, Any], scales: Mapping[str, Scale], fleet: Mapping[ClassKey, float],
    peers: Peers, bounds: Mapping[str, Any],
) -> list[Section | None]:  # fmt: skip
    """A section for each matrix of a node, and those that follow from it. `bounds` are the fleet's, by term."""
    job = shown.job
    # A measurement that none of the nodes behind the report's scales has is drawn on a scale of its own.
    unknown = {one.measurement for one in shown.matrices} - set(scales)
    colours = {name: scale.of_nodes([ends]) for name, ends in scale_ends(shown, unknown).items()} | dict(scales)
    out: list[Section | None] = []
    for one in shown.matrices if job is not None else ():
        assert job is not None
        data = job.measured[one.measurement]
        classes = [c for c in said.get("classes", ()) if _belongs(c, one) and formatting.number(c.get("median_ns"))]
        template = peers.template(node, str(said.get("group") or ""), shown, one)
        room = figures.PAGE - 8 if not out else _LATER
        drawn_as = colours.get(one.measurement, Scale(0.0, 1.0))
        out.append(_section(shown, one, data, classes, fleet, drawn_as, template, room))
        if template is not None and len(one.cpus) > 2:
            out.append(against.section(one, template, shown.topology, node, said, bounds))
        measured = [each.measured[one.measurement] for each in shown.jobs if one.measurement in each.measured]
        out.append(quadrant_section(measured, one, shown.topology))
    out.append(_homes([one for one in shown.matrices if len(one.cpus) > 2], shown, colours))
    return out


def _section(
    shown: Shown, one: DrawnMatrix, data: Measured, classes: Sequence[Mapping[str, Any]],
    fleet: Mapping[ClassKey, float], colours: Scale, template: Template | None, room: float,
) -> Section:  # fmt: skip
    header, job = data.header, shown.job
    messages = linktest.is_linktest(header)
    unit = _unit(one.values, header)
    at_home = homes.named(one.home)
    where = f", {at_home}" if at_home else methods.home(header)
    subtitle = f"{header.get('operation', one.measurement)}: {methods.quantity({**header, 'unit': unit})}{where}"
    subtitle += f", job {job.number}" if job is not None and job.number > 1 else ""
    blocks: list[Block] = []
    if len(one.cpus) == 2:
        blocks += _single(data, one, classes, unit)
        heading = "The pair, messages" if messages else "The pair"
    else:
        heading = "LinkTest" if messages else "Core to core"
        values = one.values / (1e3 if unit == "us" else 1.0)
        drawn_as = linktest.in_us(colours) if messages else colours
        medians = [(str(c.get("name", "")), float(c["median_ns"]) / (1e3 if unit == "us" else 1.0)) for c in classes]
        name = f"{one.measurement}-home{one.home}" if one.home >= 0 else one.measurement
        caption = "" if messages else captions.of("matrix", name=one.measurement, where=where)
        figure = matrix_figure.matrix(
            values, one.cpus, shown.topology, drawn_as, f"{unit}, {header.get('quantity', '')}", room,
            name=name, caption=caption, medians=medians,
        )  # fmt: skip
        if messages:
            once = linktest.each_once(values, str(header.get("operation", "")))
            bars = distribution_plots.histogram(once, drawn_as, name=f"{name}-histogram", caption="", unit="us")
            blocks += [Figures((figure,)), Figures((bars,), linktest.facts(values, header))]
        else:
            blocks.append(Figures((figure,)))
            blocks.append(Text(_sentence(one, len(data.cpus), shown.topology), quiet=True))
    blocks += class_table(classes, fleet, unit) if len(one.cpus) > 2 or fleet else []
    beside = [against.class_distributions(one, template, shown.topology)] if template and len(one.cpus) > 3 else []
    beside += _runs(data, one, unit) if len(data.runs) > 1 and len(one.cpus) > 3 else []
    blocks.append(Figures(tuple(beside)))
    return Section(heading, tuple(blocks), subtitle)


def _unit(values: Floats, header: Mapping[str, Any]) -> str:
    """us where a matrix is of messages, or of anything as long, else ns."""
    return "us" if linktest.is_linktest(header) or finite_median(values) >= 1e4 else "ns"


def _sentence(one: DrawnMatrix, measured: int, topology: Topology | None) -> str:
    """How many CPUs and pairs a figure shows, and its range."""
    finite = one.values[np.isfinite(one.values) & ~np.eye(len(one.cpus), dtype=bool)]
    drawn_of = f" of {formatting.thousands(measured)}" if measured > len(one.cpus) else ""
    text = f"{formatting.thousands(len(one.cpus))}{drawn_of} CPUs, {formatting.thousands(int(finite.size) // 2)} pairs"
    if finite.size:
        low, middle, high = (three_digits(float(v)) for v in (finite.min(), finite_median(finite), finite.max()))
        text += f": lowest {low}, median {middle}, highest {high} ns"
    return f"{text}. CPUs are in {'topology order' if topology is not None else 'order of their OS numbers'}."


def _belongs(c: Mapping[str, Any], one: DrawnMatrix) -> bool:
    measurement, home, _ = class_key(c)
    return measurement in ("", one.measurement) and (home == one.home or (home == homes.NEAR and one.home < homes.FAR))


# --- medians by class ---


def class_table(classes: Sequence[Mapping[str, Any]], fleet: Mapping[ClassKey, float], unit: str) -> list[Block]:
    """Medians by class: against the fleet's in percent where there is a fleet, else in `unit` (ns or us)."""
    if not classes:
        return []
    of_ns = 1e3 if unit == "us" else 1.0

    def known(value: Any) -> float | None:
        found = formatting.number(value)
        return None if found is None else found / of_ns

    medians = [float(c["median_ns"]) / of_ns for c in classes]
    lows = [known(c.get("ci_low_ns")) for c in classes]
    highs = [known(c.get("ci_high_ns")) for c in classes]
    beside = [known(fleet.get(class_key(c))) for c in classes]
    against = all(beside)
    # an interval of two runs that reaches zero says only that two runs are too few
    ends = zip(lows, medians, highs, strict=True)
    wide = [low is None or high is None or low <= _LEAST_END * middle for low, middle, high in ends]

    def on_axis(value: float | None, i: int) -> float:
        there = medians[i] if value is None or wide[i] else value
        base = beside[i]
        return 100 * (there / base - 1) if against and base else there

    spans = [[on_axis(value, i) for value in (lows[i], medians[i], highs[i])] for i in range(len(classes))]
    if against:
        end = percent_reach([x for span in spans for x in span])
        start = -end
    else:
        start, end = 0.0, 1.06 * max(x for span in spans for x in span)
    zero = 0.5 if against else None
    rows = []
    for i, c in enumerate(classes):
        low, at, high = (position(x, start, end) for x in spans[i])
        interval = "too few runs" if wide[i] and lows[i] is not None else ""
        if not wide[i]:
            interval = f"{lows[i]:.1f} to {highs[i]:.1f}"
        rows.append((
            str(c.get("name", "")), formatting.thousands(c.get("pairs")), f"{medians[i]:.1f}", interval,
            *((formatting.percent(medians[i] / (beside[i] or 1.0) - 1, signed=True),) if against else ()),
            Cell(figures.interval(low, at, high, zero, _STRIP)),
        ))  # fmt: skip
    axis = "% from the fleet's median" if against else unit
    header = ("class", "pairs", f"median {unit}", "95 % interval", *(("to the fleet",) if against else ()), axis)
    ruler = ("",) * (len(header) - 1) + (Cell(figures.ruler(axis_ticks(start, end), _STRIP)),)
    return [Table(header, (*rows, ruler), align="lrrr" + ("r" if against else "") + "l", dense=True)]


def percent_reach(values: Sequence[float]) -> float:
    """Half the width of an axis of differences in percent: what holds `values`, from 2 to 25 %."""
    return float(np.clip(1.15 * max(map(abs, values), default=0.0), 2.0, 25.0))


def axis_ticks(start: float, end: float) -> tuple[Tick, ...]:
    """Round values from `start` to `end` at their positions from 0 to 1."""
    return tuple(Tick(position(value, start, end), text) for value, text in scale.ticks(start, end))


def position(value: float, start: float, end: float) -> float:
    """Where a value is on an axis, from 0 to 1."""
    return float(np.clip((value - start) / (end - start), 0.0, 1.0))


# --- one pair ---


def _single(data: Measured, one: DrawnMatrix, classes: Sequence[Mapping[str, Any]], unit: str) -> list[Block]:
    """The one pair of a two-CPU machine at one home: its value, and all its passes."""
    (at_pair,) = np.flatnonzero(data.places["home"] == one.home)
    by = 1e3 if unit == "us" else 1.0

    def column(key: str) -> Floats:
        values: Floats = data.columns[key][:, :, at_pair].astype(np.float64) / by
        return values

    value, low, high = column("latency_ns"), column("ci_low_ns"), column("ci_high_ns")
    fastest, p99, flagged = column("min_ns"), column("p99_ns"), (column("flags") != 0).sum(axis=1)
    runs, rows = [], []
    for r, run in enumerate(data.numbers):
        there = np.isfinite(value[r])
        if not there.any():
            continue
        first, last = _reach(fastest[r], value[r], min), _reach(p99[r], value[r], max)
        runs.append(Passes(str(run), value[r][there], low[r][there], high[r][there], first, last))
        rows.append((
            str(run), f"{np.nanmedian(value[r]):.1f}",
            f"{_reach(low[r], value[r], min):.1f} to {_reach(high[r], value[r], max):.1f}",
            formatting.with_unit(first * by, "ns"), formatting.with_unit(last * by, "ns"),
            f"{int(flagged[r])} of {int(there.sum())}",
        ))  # fmt: skip
    # A machine with one pair has one class: the verdict's figures for it are the pair's.
    mine = classes[0] if len(classes) == 1 else {"median_ns": np.nanmedian(value) * by}
    ends = [formatting.number(mine.get(key)) for key in ("ci_low_ns", "ci_high_ns")]
    lower, upper = ends
    if lower is not None and upper is not None and lower > _LEAST_END * float(mine["median_ns"]):
        known = f", 95 % interval over runs {lower / by:.1f} to {upper / by:.1f} {unit}"
    else:
        known = (
            f"; {len(runs)} {'run gives' if len(runs) == 1 else 'runs give'} no useful interval"
            if lower is not None
            else ""
        )
    kind = f" ({mine['name']})" if mine.get("name") else ""
    text = f"CPU {one.cpus[0]} and CPU {one.cpus[1]}{kind}: {float(mine['median_ns']) / by:.1f} {unit}{known}."
    figure = plots.passes(
        runs, unit, name=f"passes-{one.measurement}",
        caption=captions.of("passes"),
    )  # fmt: skip
    header = ("run", f"median {unit}", "95 % intervals of passes", "fastest batch", "99th percentile", "flagged passes")
    return [Text(text), Figures((figure,)), Table(header, tuple(rows), align="lrrrrr")]


def _reach(values: Floats, otherwise: Floats, end: Any) -> float:
    """The smallest or largest (`end`: min or max) of `values` that are known, else of `otherwise`."""
    known = values[np.isfinite(values)]
    return float(end(known if known.size else otherwise[np.isfinite(otherwise)]))


# --- homes, runs, floor plan ---


def _homes(matrices: Sequence[DrawnMatrix], shown: Shown, colours: Mapping[str, Scale]) -> Section | None:
    """A small map for each home of one measurement, and what the home changes."""
    names = sorted({one.measurement for one in matrices})
    blocks: list[Block] = []
    for name in names:
        mine = [one for one in matrices if one.measurement == name]
        if len(mine) < 2:
            continue
        as_drawn = colours.get(name, Scale(0, 1))
        maps = [(homes.named(one.home) or "near home", figures.thumbnail(one.values, as_drawn), False) for one in mine]
        caption = captions.of("homes", name=name)
        blocks.append(Figures((figures.multiples(maps, as_drawn, "ns", name=f"homes-{name}", caption=caption),)))
        blocks.append(Text(_home_sentence(mine, shown.topology)))
    return Section("Home by home", tuple(blocks), together=True) if blocks else None


def _home_sentence(mine: Sequence[DrawnMatrix], topology: Topology | None) -> str:
    """How much a pair's latency depends on where its line is at home."""
    common = np.stack([one.values for one in mine if one.cpus == mine[0].cpus])
    change = 100 * (common.max(axis=0) / common.min(axis=0) - 1)
    known = change[np.isfinite(change)]
    if len(common) < 2 or not known.size:
        return ""
    return (
        "The home of a line is the NUMA node whose memory holds it. Between the fastest and the slowest home the "
        f"latency of a pair differs by {np.median(known):.1f} % in the median, and by {known.max():.0f} % at most."
    )


def _runs(data: Measured, one: DrawnMatrix, unit: str) -> list[Figure]:
    """Run against run, and where two runs differ, as the largest differences say whether pairs are steady."""
    by = 1e3 if unit == "us" else 1.0
    _, _, medians = medians_by_run(data, one)
    x, y = medians[0] / by, medians[-1] / by
    good = np.isfinite(x) & np.isfinite(y)
    if not good.any():
        return []
    change = 100 * (y[good] / x[good] - 1)
    figure = distribution_plots.density(
        x, y, name=f"runs-{one.measurement}", x_name=f"run {data.numbers[0]}, {unit}",
        y_name=f"run {data.numbers[-1]}, {unit}",
        caption=captions.of(
            "runs", median=f"{finite_median(change):+z.2f}", most=f"{quantile(np.abs(change), 0.95):.1f}"
        ),
    )  # fmt: skip
    return [figure]


def floorplan(shown: Shown) -> Section | None:
    """The machine with each core in the colour of its median to all others, and each CCD in that of its bandwidth."""
    topology = shown.topology
    if topology is None or not shown.matrices or len(shown.matrices[0].cpus) < 3:
        return None
    first = shown.matrices[0]
    others = np.where(np.eye(len(first.cpus), dtype=bool), np.nan, first.values)
    found = zip(first.cpus, row_medians(others).tolist(), strict=True)
    medians = {cpu: median for cpu, median in found if np.isfinite(median)}
    quantity = f"{name_of(first)}: a core's median to all others"
    rates = _ccd_rates(shown) if len({cpu.ccd for cpu in topology.cpus} - {None}) > 1 else {}
    room = figures.PAGE / 2 - 2 if rates else figures.PAGE
    plans = [_plan(topology, medians, "ns", quantity, "core", "floorplan-cores", room)]
    if rates:
        text = "load bandwidth of each CCD, all its cores"
        plans.append(_plan(topology, rates, "GB/s", text, "ccd", "floorplan-ccds", room))
    return Section("Floor plan", (Figures(tuple(plans)),), together=True)


def _plan(
    topology: Topology, values: Mapping[int, float], unit: str, quantity: str, level: Any, name: str, room: float
) -> Figure:
    drawing = floorplan_drawing(topology, values, unit=unit, quantity=quantity, level=level, room=(room, 205.0))
    data: dict[str, Sequence[Any]] = {"cpu": list(values), unit: list(values.values())}
    return figures.finished(drawing, name, "", f"Floor plan: {quantity} in {unit}.", data)


def _ccd_rates(shown: Shown) -> dict[int, float]:
    """The bandwidth of each CCD's port in GB/s, by the CPU that stands for it."""
    job = shown.job
    data = job.measured.get("bandwidth-ccx") if job is not None else None
    if data is None:
        return {}
    rates = np.nanmedian(data.columns["rate_bytes_per_s"].astype(np.float64), axis=(0, 1))
    keys = zip(data.keys("cpu"), data.keys("scope"), data.keys("memory"), data.keys("stream"), strict=True)
    return {
        int(str(cpu)): float(rate) / 1e9
        for (cpu, scope, memory, stream), rate in zip(keys, rates, strict=True)
        if (scope, memory, stream) == ("ccd", "all", "load") and np.isfinite(rate)
    }
