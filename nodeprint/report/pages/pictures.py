"""Figures of pages: what of a campaign each shows, drawn by `nodeprint.report.figures`, with its words."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
from msgspec.structs import replace

from nodeprint.data import homes
from nodeprint.data.layout import SOCKET
from nodeprint.data.packed_jobs import PackedJob
from nodeprint.errors import NodeprintError
from nodeprint.judge.outcome import MEANING
from nodeprint.judge.verdict import ClassFigure, Finding, Interval
from nodeprint.report import names
from nodeprint.report.figures import (
    curves,
    distributions,
    effects,
    floorplan,
    grid,
    load,
    matrix,
    own_places,
    quadrants,
    render,
    side_by_side,
    strips,
)
from nodeprint.report.figures import fabric as fabric_figures
from nodeprint.report.figures import fleet as fleet_figures
from nodeprint.report.figures.node_levels import NodeLevels
from nodeprint.report.pages.blocks import Picture
from nodeprint.report.pages.judged_campaign import Campaign
from nodeprint.report.pages.order import natural, severity

#: The subject of figures of the fleet.
CLUSTER = "cluster"
#: Widths in mm: of a page, of the larger part of one, of half of one.
PAGE, LARGE, MAIN, HALF, SMALL = 180.0, 128.0, 114.0, 88.0, 58.0

#: Signs that no XML may have, though the name of a node may.
_NO_XML = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f]")
#: Nodes of a map of bounds, and machines beside each other.
_MOST_ROWS, _MOST_MACHINES = 48, 6
#: Findings of messages that have a figure.
_MOST_FINDINGS = 6
#: Dimensions over which a measurement is drawn as a curve.
_LONG = ("size_bytes", "delay", "pairs", "cores", "threads")

#: Measurements of CPUs by a word or two, which get a strip of CPUs for each word.
_STRIPS = ("chase-pages", "fault-rate", "wake-futex", "barrier-all")


def picture(
    campaign: Campaign, subject: str, draw: render.Draw[Any], data: Any, width: float, *, name: str, alt: str,
    caption: str = "",
) -> Picture:  # fmt: skip
    """A figure of a page, which is saved as files, too, where the campaign's figures are."""
    if (saved := campaign.figures) is not None:
        folder, of_node = (CLUSTER, "") if subject == CLUSTER else (names.file_stem(subject), subject)
        stem = saved.folder / folder / names.file_stem(name)
        render.save(stem, draw, data, saved.in_style, saved.width_of(width), campaign.of_figures(of_node))
    drawn = render.figure(draw, data, campaign.style, width)
    return Picture(name, _NO_XML.sub("?", render.svg(drawn, campaign.style)), width, alt, caption)


# --- a finding ---


def of_finding(
    campaign: Campaign, node: str, finding: Finding, number: int, width: float = PAGE
) -> tuple[Picture, ...]:
    """A finding over its own pairs or cells beyond its own bound; nothing where its measurement is not here, or it is a
    change since a baseline, which no peer shows."""
    if finding.baseline:
        return ()
    of_messages = finding.part.term.startswith("fabric-")
    what = names.part(finding.part) if of_messages else f"{names.part(finding.part)} of {node}"
    try:
        if of_messages:
            places = "messages"
            data = fabric_figures.own_messages(fabric_figures.of_finding(campaign.verdict.fabric, finding), finding)
        else:
            levels = campaign.levels(finding.measurement, node)
            places = "pairs" if levels.quantity.of_pairs else "cells"
            data = own_places.own_places(levels, node, finding, campaign.peers(node, levels))
    except NodeprintError:
        return ()
    caption = (
        f"{finding.measurement}: {node} at the finding's own {places}; "
        f"dashed: the finding's bound; solid: its effect, with the interval shaded."
    )
    alt = (
        f"{what}: difference from {data.peers} peers at {len(data.places)} places; "
        f"effect {finding.effect * 100:+.1f} %, bound {finding.bound * 100:.3g} %"
    )
    return (
        picture(
            campaign, node, own_places.own_differences, data, width, name=f"finding-{number}", alt=alt, caption=caption
        ),
    )


def of_runs(campaign: Campaign, node: str, finding: Finding, number: int, width: float = SMALL) -> tuple[Picture, ...]:
    """A finding's effect job by job and run by run; nothing of one that has no jobs."""
    if not finding.by_job:
        return ()
    alt = f"effect of {names.part(finding.part)} in {len(finding.runs)} runs, bound {finding.bound * 100:.3g} %"
    data = effects.of_finding(finding, share=finding.unit == "share")
    return (picture(campaign, node, effects.effect, data, width, name=f"runs-{number}", alt=alt),)


# --- matrices ---


def matrices(campaign: Campaign, node: str, measurement: str) -> Iterator[Picture]:
    """The matrix of a measurement of pairs at each of its homes."""
    levels = campaign.levels(measurement, node)
    if len(matrix.drawn_slots(levels.quantity)) < 3:
        return
    for number, home in enumerate(levels.quantity.homes):
        data = matrix.of_node(levels, node, home)
        if np.isfinite(data.values).any():
            at_home = f", {homes.named(home)}" if homes.named(home) else ""
            ends = f"from {data.scale.low:.4g} to {data.scale.high:.4g} {levels.unit.name}"
            alt = f"matrix of {measurement} of {node}{at_home}, {ends}"
            width = LARGE if number == 0 else HALF
            yield picture(campaign, node, matrix.matrix, data, width, name=f"{measurement}{_suffix(home)}", alt=alt)


def difference(campaign: Campaign, node: str, measurement: str, width: float = HALF) -> Iterator[Picture]:
    """The difference of a node's pairs from its peers', and beside that of a node with findings a healthy node's on the
    same scale."""
    levels = campaign.levels(measurement, node)
    peers = campaign.peers(node, levels)
    if len(peers) < 2 or len(matrix.drawn_slots(levels.quantity)) < 3:
        return
    findings = [f for f in campaign.verdict.nodes[node].counted if f.measurement == measurement]
    bound = findings[0].bound if findings else None
    marked = sorted({cpu for finding in findings[:1] for cpu in finding.pairs}) if findings else []
    marked = marked if len(marked) <= 8 else []
    first = matrix.difference(levels, node, peers=peers, bound=bound, marked=marked)
    beside, others = peers[0], peers[1:]
    shown = [(node, first)]
    if len(others) > 1 and campaign.verdict.nodes[node].counted:
        shown.append((beside, matrix.difference(levels, beside, peers=others, bound=bound, reach=first.scale.high)))
    for of, data in shown:
        caption = f"{of}: each pair against the median of {len(peers if of == node else others)} peers."
        caption = f"{caption} A peer, for comparison." if of != node else caption
        alt = f"difference matrix of {of} from its peers, {measurement}, to {data.scale.high:.3g} %"
        name = f"difference-{measurement}{'-peer' if of != node else ''}"
        yield picture(campaign, node, matrix.matrix, data, width, name=name, alt=alt, caption=caption)


def _suffix(home: int) -> str:
    return f"-home{home}" if 0 <= home < homes.FAR else "-far" if home >= homes.FAR else ""


def around(campaign: Campaign, node: str, measurement: str) -> Iterator[Picture]:
    """What follows from a matrix: its classes beside the peers', run against run, quadrants, and the floor plan."""
    levels = campaign.levels(measurement, node)
    if len(matrix.drawn_slots(levels.quantity)) < 4:
        return
    shown: list[tuple[str, Any, Any, float, str]] = []
    classes = distributions.by_class(levels, node, peers=campaign.peers(node, levels))
    shown.append(("classes", distributions.classes, classes, HALF, f"pairs of {node} by class"))
    with suppress(NodeprintError):
        runs = distributions.first_and_last_run(levels, node)
        shown.append(("runs", distributions.run_pairs, runs, HALF, f"pairs of {node} in its first and its last run"))
    crossing = quadrants.of_node(levels, node)
    if crossing is not None:
        shown.append(("quadrants", quadrants.quadrants, crossing, HALF, f"medians between the quadrants of {node}"))
    if measurement.startswith("coherence") and levels.quantity.layout.slots[:, SOCKET].max(initial=-1) >= 0:
        plan = floorplan.of_pairs(levels, node)
        shown.append(
            ("floorplan", floorplan.floorplan, plan, HALF, f"floor plan of {node} in the colours of its latencies")
        )
    for name, draw, data, width, alt in shown:
        yield picture(campaign, node, draw, data, width, name=f"{measurement}-{name}", alt=f"{alt}, {measurement}")


def cells(campaign: Campaign, node: str) -> Iterator[Picture]:
    """A figure of each measurement of cells that has one, by NUMA node or over its one long dimension, and of all that
    have values by CPU one a kind of CPUs: what a core has stands above each other."""
    by_cpu: list[strips.StripData] = []
    for measurement in campaign.measurements(node, pairs=False):
        levels = campaign.levels(measurement, node)
        with suppress(NodeprintError):
            by_cpu += _by_cpu(campaign, node, levels)
            for suffix, draw, data in _of_cells(campaign, node, levels):
                alt = f"{measurement} of {node}"
                yield picture(campaign, node, draw, data, HALF, name=f"{measurement}{suffix}", alt=alt)
    rows = strips.in_rows(by_cpu)
    for number, data in sorted(enumerate(rows, 1), key=lambda item: _width(item[1])):
        alt = f"{names.listed(strip.shows for strip in data.strips)} of {node} by CPU"
        name = f"by-cpu-{number}" if len(rows) > 1 else "by-cpu"
        yield picture(campaign, node, strips.strips, data, _width(data), name=name, alt=alt)


def _width(data: strips.StripRows) -> float:
    return HALF if len(data.strips[0].labels) < 65 else PAGE


def _by_cpu(campaign: Campaign, node: str, levels: NodeLevels) -> Iterator[strips.StripData]:
    """The strips of a measurement of CPUs: one, or one for each word of those that have a word or two."""
    quantity, peers = levels.quantity, campaign.peers(node, levels)
    words = {dim: quantity.names[dim] for dim in quantity.dims if dim in quantity.names}
    if (
        "cpu" not in quantity.dims
        or (words and quantity.measurement not in _STRIPS)
        or len(quantity.dims) > 1 + len(words)
    ):
        return
    findings = campaign.verdict.nodes[node].counted
    marked = [f.part.where.get("cpu") for f in findings if f.measurement == quantity.measurement]
    cpus = [cpu for cpu in marked if isinstance(cpu, int)]
    for fixed in itertools.product(*words.values()):
        data = strips.by_cpu(levels, node, dict(zip(words, fixed, strict=True)), peers=peers, marked=cpus)
        if np.isfinite(data.values).sum() > 2:
            yield data


def under_load(campaign: Campaign, node: str, jobs: Sequence[PackedJob]) -> Iterator[Picture]:
    """Of the newest job that loaded the node, clock and rate second by second."""
    by_job = (
        {name: [s for run in of.runs for s in run.load_seconds] for name, of in sorted(job.measured.items())}
        for job in reversed(jobs)
    )
    loaded = ({name: seconds for name, seconds in of_job.items() if seconds} for of_job in by_job)
    for measurement, seconds in next(filter(None, loaded), {}).items():
        for quantity in load.QUANTITIES:
            alt = f"{measurement} of {node}, {quantity.removesuffix('_per_s').removesuffix('_hz')} by second"
            data = load.by_second(node, seconds, quantity)
            name = f"{measurement}-{quantity.split('_')[0]}"
            yield picture(campaign, node, load.seconds, data, HALF, name=name, alt=alt)


def _of_cells(campaign: Campaign, node: str, levels: NodeLevels) -> Iterator[tuple[str, Any, Any]]:
    quantity = levels.quantity
    sizes = {dim: len(np.unique(column)) for dim, column in quantity.places.items()}
    if "memory_node" in sizes and len(sizes) > 1:
        if sizes["memory_node"] > 1:
            streams = quantity.names.get("stream", ("",))
            for stream in [name for name in ("load", "store_mem", "triad") if name in streams][:2] or streams[:1]:
                yield (f"-{stream}" if stream else "", grid.grid, grid.numa(levels, node, stream))
    elif quantity.measurement not in _STRIPS:
        long = next((dim for dim in _LONG if sizes.get(dim, 0) > 2 and dim not in quantity.names), None)
        if long is not None:
            yield ("", curves.curves, curves.over(levels, node, long, peers=campaign.peers(node, levels)))


# --- the fleet ---


def difference_maps(campaign: Campaign) -> Iterator[Picture]:
    """Of each kind of machine the difference of every node's pairs in small, nodes with findings first."""
    for measurement, names_of in _kinds(campaign):
        levels = campaign.levels(measurement, names_of[0])
        peers = campaign.peers("", levels, campaign.verdict.nodes[names_of[0]].group)
        if len(names_of) < 3 or len(peers) < 2 or len(matrix.drawn_slots(levels.quantity)) < 3:
            continue
        marked = _marked(campaign)
        bounds = [
            f.bound for name in names_of for f in campaign.verdict.nodes[name].counted if f.measurement == measurement
        ]
        data = fleet_figures.difference_maps(
            levels, names_of, peers=peers, marked=marked, bound=max(bounds) if bounds else None
        )
        caption = f"{measurement}: each pair of each node against the median of {names.counted(len(peers), 'node')}."
        if len(names_of) > len(data.nodes):
            caption += f" The first {len(data.nodes)} of {len(names_of)} nodes, those with findings first."
        alt = f"difference maps of {len(data.nodes)} nodes, {measurement}"
        yield picture(
            campaign, CLUSTER, fleet_figures.maps, data, PAGE, name="difference-maps", alt=alt, caption=caption
        )


def machines(campaign: Campaign) -> Iterator[Picture]:
    """Matrices of different machines beside each other, on one scale for each measurement."""
    by_measurement: dict[str, list[str]] = {}
    for measurement, names_of in _kinds(campaign):
        by_measurement.setdefault(measurement, []).append(names_of[0])
    for measurement, firsts in by_measurement.items():
        if not 1 < len(firsts) <= _MOST_MACHINES:
            continue
        shown = [matrix.of_node(campaign.levels(measurement, name), name) for name in firsts]
        title = f"{measurement}, {campaign.levels(measurement, firsts[0]).title}"
        data = side_by_side.on_one_scale(firsts, shown, title)
        alt = f"matrices of {names.listed(firsts)} on one scale, {measurement}"
        yield picture(campaign, CLUSTER, side_by_side.side_by_side, data, PAGE, name=f"machines-{measurement}", alt=alt)


def _kinds(campaign: Campaign) -> Iterator[tuple[str, list[str]]]:
    """The measurement of pairs that every kind of machine has first, with the nodes of that kind, urgent ones first."""
    nodes, listed = campaign.verdict.nodes, set[str]()
    order = sorted(nodes, key=lambda name: (severity(nodes[name]), natural(name)))
    for quantity in campaign.fleet.pairs:
        here = {campaign.fleet.nodes[number].name for number in quantity.newest_rows}
        of_kind = [
            name for name in order if name in here and MEANING[nodes[name].outcome].measured and name not in listed
        ]
        for group in dict.fromkeys(nodes[name].group for name in of_kind):
            yield quantity.measurement, [name for name in of_kind if nodes[name].group == group]
        listed |= set(of_kind)


def _marked(campaign: Campaign) -> list[str]:
    return [name for name, node in campaign.verdict.nodes.items() if node.counted]


def bounds_map(campaign: Campaign) -> Iterator[Picture]:
    """How much of its bounds each node uses, by subject; of many nodes those that use most."""
    nodes = campaign.verdict.nodes
    share = {
        name: max((margin.share for margin in node.margins), default=0.0)
        for name, node in nodes.items()
        if node.margins
    }
    shown = sorted(share, key=lambda name: (-share[name], natural(name)))[:_MOST_ROWS]
    data = fleet_figures.margins_of(campaign.verdict, shown) if len(share) > 1 else None
    if data is not None:
        caption = (
            "The smallest bound at which a node would be the same, as a share of its bound: up to 1 it is the same."
        )
        caption += f" The {len(shown)} of {len(share)} nodes that use most." if len(shown) < len(share) else ""
        alt = f"shares of bounds of {len(shown)} nodes by subject"
        yield picture(campaign, CLUSTER, fleet_figures.margins, data, LARGE, name="bounds", alt=alt, caption=caption)


def effects_of_nodes(campaign: Campaign) -> Iterator[Picture]:
    """The class with most pairs on every node: with intervals, in the order of time, and by rack and switch."""
    nodes, marked = campaign.verdict.nodes, _marked(campaign)
    by_class: dict[tuple[str, int, str], dict[str, ClassFigure]] = {}
    for name, node in nodes.items():
        for figure in (figure for figure in node.classes if not figure.groups):
            by_class.setdefault((figure.measurement, figure.home, figure.name), {})[name] = figure
    if not by_class:
        return
    (measurement, home, kind), figures = max(by_class.items(), key=lambda item: sum(f.pairs for f in item[1].values()))
    if len(figures) < 3:
        return
    middle = float(np.median([figure.median_ns for figure in figures.values()]))
    what = ", ".join(filter(None, (f"{measurement}, {kind}", homes.named(home))))
    title = f"{what}: difference from the median of {len(figures)} nodes"
    shift = {name: figure.median_ns / middle - 1 for name, figure in figures.items()}
    of_class = (limit for limit in campaign.verdict.fleet.limits if limit.measurement == measurement)
    bound = next((limit.bound for limit in of_class if limit.family == "class"), None)
    if bound is not None:
        none = Interval(np.nan, np.nan)  # of two runs Student's interval is 12.7 times their spread
        ends = {
            name: (
                shift[name],
                Interval(figure.ci_low_ns / middle - 1, figure.ci_high_ns / middle - 1) if figure.runs > 2 else none,
            )
            for name, figure in figures.items()
        }
        data = fleet_figures.forest_of(title, ends, bound, marked)
        interval = ", with their 95 % interval over runs" if any(f.runs > 2 for f in figures.values()) else ""
        caption = f"Medians{interval}; dashed: the bound of a class of pairs."
        yield picture(campaign, CLUSTER, fleet_figures.forest, data, PAGE, name="effects", alt=title, caption=caption)
    orders = {
        "time of the first run": (_started(campaign, measurement), False),
        "rack": ({name: node.rack for name, node in nodes.items()}, True),
        "switch": (campaign.switches, True),
    }
    for order, (of_node, grouped) in orders.items():
        if len({of_node.get(name, "") for name in shift} - {""}) > 1:
            values = {name: 100 * value for name, value in shift.items()}
            row = fleet_figures.in_order(values, of_node, f"{title}, %", order, marked, grouped=grouped)
            name = f"by-{order.split()[0]}"
            yield picture(campaign, CLUSTER, fleet_figures.ordered, row, PAGE, name=name, alt=f"{title}, by {order}")


def _started(campaign: Campaign, measurement: str) -> dict[str, str]:
    """When the first run of each node's newest job began."""
    out: dict[str, str] = {}
    for quantity in campaign.fleet.pairs:
        if quantity.measurement == measurement:
            for number, rows in quantity.newest_rows.items():
                out[campaign.fleet.nodes[number].name] = min(quantity.started[row] for row in rows)
    return out


def fabric(campaign: Campaign, number: int) -> Iterator[Picture]:
    """The messages between the nodes of a partition: a matrix, a histogram, and the largest findings."""
    fabric = campaign.verdict.fabric[number]
    if not np.isfinite(np.array(fabric.median_ns, dtype=np.float64)).any():
        return
    alt = f"medians of messages between {len(fabric.nodes)} nodes, {fabric.measurement}"
    stem, bars = f"{fabric.measurement}-{number}", fabric_figures.histogram(fabric)
    yield picture(campaign, CLUSTER, matrix.matrix, fabric_figures.medians(fabric), LARGE, name=stem, alt=alt)
    yield picture(campaign, CLUSTER, distributions.histogram, bars, HALF, name=f"{stem}-histogram", alt=alt)
    for at, finding in enumerate([finding for finding in fabric.findings if finding.counts][:_MOST_FINDINGS], 1):
        for shown in of_finding(campaign, str(finding.part.where["node"]), finding, at, LARGE):
            yield replace(shown, name=f"{stem}-{shown.name}")
