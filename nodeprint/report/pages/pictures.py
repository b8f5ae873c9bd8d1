"""Figures of pages: the data of a campaign for each, drawn by `nodeprint.report.figures`, with captions."""

from __future__ import annotations

import itertools
import re
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
import xarray as xr

from nodeprint.data.job.jobs import Job
from nodeprint.data.places import homes
from nodeprint.data.places.layout import SOCKET
from nodeprint.data.places.measured import Measured, is_metric
from nodeprint.errors import NodeprintError, printable
from nodeprint.judge.agreements import decided_metrics
from nodeprint.judge.outcome import FleetOutcome, Kind, Outcome
from nodeprint.judge.verdict import ClassFigure, Finding, NodeVerdict
from nodeprint.report import names, text
from nodeprint.report.figures import (
    curves,
    differences,
    drawing,
    floorplan,
    matrix,
    matrix_tables,
    render,
    strips,
)
from nodeprint.report.figures.figure_data import title_of
from nodeprint.report.figures.node_levels import NodeLevels
from nodeprint.report.figures.part_levels import part_levels
from nodeprint.report.pages.blocks import Picture
from nodeprint.report.pages.judged_campaign import Campaign
from nodeprint.report.pages.order import natural, severity
from nodeprint.settings.measurements import known
from nodeprint.settings.texts import say

#: Widths in mm: a number in a matrix; in a table of blocks a letter, the gap between numbers, and the names and scale.
_CELL, _LETTER, _BETWEEN, _NAMES = 5.5, 1.36, 0.64, 30.0
#: Grids up to this many rows fit next to a table.
_FEW_ROWS = 4
#: As many CPUs need a figure as wide as a page.
_MOST_IN_HALF = 65
#: The fewest seconds of load that are drawn over time.
_FEWEST_SECONDS = 3
#: The prefix of the names of figures of CPUs.
BY_CPU = "by-cpu"
#: The subject of figures of the fleet.
CLUSTER = "cluster"
#: Widths in mm: of a page, of the larger part of a page, of half a page.
PAGE, LARGE, MAIN, HALF, SMALL = 180.0, 128.0, 114.0, 88.0, 58.0

#: Characters that XML forbids, though the name of a node may contain them.
_NO_XML = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f]")
#: The most nodes in a map of tolerances, maps of differences, machines side by side on a page, and machines in all.
_MOST_ROWS, _MOST_MAPS, _ON_A_PAGE, MOST_MACHINES = 48, 16, 6, 18
#: Dimensions over which a measurement is drawn as a curve.
_LONG = ("size_bytes", "delay", "pairs", "cores", "threads")


def picture(
    campaign: Campaign,
    subject: str,
    name: str,
    draw: render.Primitive[Any],
    data: Any,
    width: float,
    caption: str,
) -> Picture:
    """Draw a figure of a page, and save it if figures are saved."""
    if (saved := campaign.figures) is not None:
        folder, of_node = (CLUSTER, "") if subject == CLUSTER else (names.file_stem(subject), subject)
        stem = saved.folder / folder / names.file_stem(name)
        render.save(stem, draw, data, saved.in_style, saved.width_of(width), campaign.of_figures(of_node))
    drawn = render.figure(draw, data, campaign.style, width)
    shown = _NO_XML.sub("?", render.svg(drawn, campaign.style))
    return Picture(name, shown, render.width_mm(drawn), caption)


def _title(measurement: str) -> str:
    return text.sentence(text.measured(measurement))


def _called(campaign: Campaign, node: str, measurement: str) -> str:
    job = campaign.shown_job(node, measurement)
    return say("figures", "of_job", node=node, job=job) if job else node


# --- a finding ---


def of_finding(
    campaign: Campaign, node: str, finding: Finding, number: int, width: float = PAGE
) -> tuple[Picture, ...]:
    """Draw a finding over its own pairs or cells, with its tolerance.

    Nothing is drawn for a missing measurement, a change since a baseline (no peer shows it), or a table's single value
    (in the finding's numbers).
    """
    if finding.baseline:
        return ()
    try:
        if finding.component.term.startswith("fabric-"):
            within, line = say("figures", "own_messages"), say("figures", "own_line")
            data = strips.own_messages(strips.messages_of(finding, campaign.verdict.fabric), finding)
        else:
            levels = campaign.levels(finding.measurement, node)
            data = strips.own_places(levels, node, finding, campaign.peers(node, levels))
            within, line = names.within(finding.figures_of or finding.component), _line(finding, levels)
            axis = title_of(data.place).partition(" (")[0]
            # pairs are drawn one by one, or by one of their CPUs, as the title of the axis says
            within += f", by {axis}" if levels.quantity.of_pairs and not axis.startswith("pair ") else ""
    except NodeprintError:
        return ()
    if is_metric(finding.measurement) and data.sizes["place"] == 1:
        return ()
    key = "own_places" if data.marked_0.all() else "own_beside"
    caption = say("figures", key, measured=_title(finding.measurement), node=node, within=within, line=line)
    return (picture(campaign, node, f"finding-{number}", strips.strip, data, width, caption),)


def _line(finding: Finding, levels: NodeLevels) -> str:
    """Say which runs the values of a finding's figure are from, and how its difference follows from them."""
    runs = finding.runs_of_effect
    jobs = names.listed(dict.fromkeys(run.partition("/")[0] for of_job in runs for run in of_job))
    counted = f"{names.counted(sum(map(len, runs)), 'run')} of {jobs}"
    statistic = "median" if levels.quantity.model.scale == "share" else "mean"
    places = "pairs" if finding.pairs else "values"
    return say("figures", "own_line_of_runs", runs=counted, statistic=statistic, places=places) if jobs else ""


def of_runs(campaign: Campaign, node: str, finding: Finding, number: int) -> tuple[Picture, ...]:
    """Draw a finding's effect job by job and run by run; nothing for one without runs, such as a limit."""
    if not finding.runs or finding.of_limit:
        return ()
    beyond = sum(text.runs_past(finding, job) for job in finding.by_job)
    tolerance = f"{finding.tolerance * 100:.3g}{names.unit_of_difference(finding.measurement)}"
    component = names.component(finding.component)
    values = {"component": component, "tolerance": tolerance, "verb": "is" if beyond == 1 else "are"}
    caption = say("figures", "runs", beyond=beyond, runs=len(finding.runs), **values)
    data = differences.of_finding(finding)
    return (picture(campaign, node, f"runs-{number}", differences.intervals, data, SMALL, caption),)


# --- matrices ---


def between_cores(campaign: Campaign, node: str, *, messages: bool) -> list[str]:
    """Return the names of a node's measurements of pairs: of `messages`, or of cache lines."""
    names_of = campaign.measurements(node, pairs=True)
    return [name for name in names_of if is_of_messages(campaign.levels(name, node).quantity) is messages]


def is_of_messages(quantity: Measured) -> bool:
    """Tell whether pairs exchange messages, as LinkTest's do, instead of cache lines."""
    return quantity.quantity == "message"


def histogram(campaign: Campaign, node: str, measurement: str) -> Iterator[Picture]:
    """Draw the histogram of the pairs' values in a measurement's first matrix."""
    levels = campaign.levels(measurement, node)
    if len(levels.slots) > 2:
        yield _histogram(campaign, node, node, measurement, matrix.of_node(levels, node), SMALL)


def _histogram(
    campaign: Campaign, subject: str, node: str, measurement: str, data: xr.Dataset, width: float
) -> Picture:
    beyond = say("figures", "pairs_beyond") if _is_cut(data) else ""
    called = _called(campaign, node, measurement)
    caption = say("figures", "pairs_counted", node=called, extent=_extent(data), beyond=beyond)
    name = f"{measurement}-histogram" if subject == node else f"{measurement}-histogram-{node}"
    return picture(campaign, subject, name, matrix.histogram, data, width, caption)


def _is_cut(*matrices: xr.Dataset) -> bool:
    """Tell whether values lie visibly beyond the color scale of their matrix, by a step of its colors or more."""
    for value in (data.value for data in matrices):
        half = (value.attrs["high"] - value.attrs["low"]) / matrix.BARS / 2
        if float(value.min()) < value.attrs["low"] - half or float(value.max()) > value.attrs["high"] + half:
            return True
    return False


def _extent(data: xr.Dataset) -> str:
    value, unit = data.value, data.value.attrs["units"]
    low, mean, high = (f"{float(of):.3g} {unit}" for of in (value.min(), value.mean(), value.max()))
    return say("figures", "extent", low=low, mean=mean, high=high)


def matrices(campaign: Campaign, node: str, measurement: str, width: float = LARGE) -> Iterator[Picture]:
    """Draw a matrix of pairs at each home, the first `width` mm wide, or wider if its numbers then fit."""
    levels = campaign.levels(measurement, node)
    size = len(levels.slots)
    if size < 3:
        return
    for number, home in enumerate(levels.quantity.homes):
        data = matrix.of_node(levels, node, home)
        values = data.value.to_numpy()
        if not np.isfinite(values).any():
            continue
        at_home = f", {homes.named(home)}" if homes.named(home) else ""
        count = int(np.isfinite(values).sum() / 2)
        ends = (float(end) * levels.unit.size for end in (np.nanmin(values), np.nanmax(values)))
        low, high = (names.quantity(end, levels.quantity.unit) for end in ends)
        title = f"{_title(measurement)} of {_called(campaign, node, measurement)}{at_home}"
        caption = say("figures", "matrix", what=title, count=names.counted(count, "pair"), low=low, high=high)
        outlined = names.listed(level.name for level in part_levels(data, "b"))
        caption += f"; outlined are {outlined}." if outlined else "."
        has_numbers = size <= matrix.MOST_NUMBERS
        wide = max(LARGE, min(PAGE, _CELL * size + 38.0)) if has_numbers else width
        name = measurement + (f"-home{home}" if 0 <= home < homes.FAR else "-far" if home >= homes.FAR else "")
        yield picture(campaign, node, name, matrix.matrix, data, HALF if number else wide, caption)


def inside_sockets(campaign: Campaign, node: str, measurement: str) -> Iterator[Picture]:
    """Draw the first matrix on the scale of pairs inside a socket, if that of all pairs shows them as one."""
    data = matrix.inside_sockets(matrix.of_node(campaign.levels(measurement, node), node))
    if data is None:
        return
    called = _called(campaign, node, measurement)
    caption = say("figures", "inside_sockets", node=called, component=_finest(data))
    yield picture(campaign, node, f"{measurement}-inside", matrix.matrix, data, HALF, caption)


def difference(campaign: Campaign, node: str, measurement: str, width: float = HALF) -> Iterator[Picture]:
    """Draw the difference of a node's pairs from its peers; nothing without peers, as among unlike machines."""
    levels = campaign.levels(measurement, node)
    peers, verdict = campaign.peers(node, levels), campaign.verdict.nodes[node]
    if _is_compared_with_none(verdict) or len(peers) < 2 or len(levels.slots) < 3:
        return
    findings = [f for f in verdict.counted if f.measurement == measurement]
    tolerance = _common_tolerance(findings)
    marked = sorted({cpu for finding in findings[:1] for cpu in finding.pairs}) if findings else []
    data = matrix.difference(levels, node, peers=peers, tolerance=tolerance, marked=marked if len(marked) <= 8 else [])
    marked_words = say("figures", "map_marked") if "marked" in data.coords else ""
    title, called = _title(measurement), _called(campaign, node, measurement)
    caption = say("figures", "map", measurement=title, node=called, peers=len(peers), marked=marked_words)
    yield picture(campaign, node, f"difference-{measurement}", matrix.matrix, data, width, caption)


def _common_tolerance(findings: Iterable[Finding]) -> float | None:
    """Return the common tolerance of findings; None if they have several, as a scale applies to all of its pairs."""
    tolerances = {finding.tolerance for finding in findings if not finding.of_limit}
    return tolerances.pop() if len(tolerances) == 1 else None


def floor_plan(campaign: Campaign, node: str, measurement: str) -> Iterator[Picture]:
    """Draw the floor plan of a node in the colors of its latencies."""
    levels = campaign.levels(measurement, node)
    has_labels = levels.quantity.layout.slots[:, SOCKET].max(initial=-1) >= 0
    if measurement == "coherence-cas" and len(levels.slots) >= 4 and has_labels:
        plan, caption = floorplan.of_pairs(levels, node), say("captions", "floor_plan", node=node)
        yield picture(campaign, node, f"{measurement}-floorplan", floorplan.floorplan, plan, HALF, caption)


def blocks_of(campaign: Campaign, node: str, measurement: str) -> Iterator[Picture]:
    """Draw the medians between components of a large machine, such as CCD by CCD, with their numbers."""
    data = matrix_tables.blocks(campaign.levels(measurement, node), node)
    if data is None:
        return
    component, unit = title_of(data.row).rpartition(".")[2], data.number.attrs["units"]
    title, called = _title(measurement), _called(campaign, node, measurement)
    caption = say("captions", "blocks", measurement=title, node=called, component=component, unit=unit)
    yield picture(campaign, node, f"{measurement}-blocks", matrix.matrix, data, width_of_blocks(data), caption)


def width_of_blocks(data: xr.Dataset) -> float:
    """Return the width in mm at which the numbers of a table of blocks fit, limited to the page."""
    letters = max(len(drawing.short(value)) for value in data.number.to_numpy().ravel().tolist())
    return min(max(HALF, _NAMES + (_LETTER * letters + _BETWEEN) * data.sizes["row"]), PAGE)


def cells(campaign: Campaign, node: str) -> Iterator[Picture]:
    """Draw each measurement of cells: by NUMA node, over its one long dimension, or by CPU in one figure for all."""
    by_cpu: list[xr.Dataset] = []
    for measurement in campaign.measurements(node, pairs=False):
        levels = campaign.levels(measurement, node)
        with suppress(NodeprintError):
            by_cpu += _by_cpu(campaign, node, levels)
            for suffix, draw, data in _of_cells(campaign, node, levels):
                of_word = f", {names.row(suffix)}" if suffix else ""
                title = f"{_title(measurement)}{of_word}"
                caption = say("captions", "cells", what=title, node=node)
                name = f"{measurement}-{suffix}".rstrip("-")
                width = SMALL if data.sizes.get("row", _FEW_ROWS + 1) <= _FEW_ROWS else HALF
                yield picture(campaign, node, name, draw, data, width, caption)
    rows = strips.in_rows(by_cpu)
    for number, data in sorted(enumerate(rows, 1), key=lambda item: item[1].sizes["cpu"] >= _MOST_IN_HALF):
        of_peers = say("captions", "by_cpu_peers") if data.attrs["peers"] else ""
        caption = say("captions", "by_cpu", node=node, peers=of_peers)
        name = f"{BY_CPU}-{number}" if len(rows) > 1 else BY_CPU
        width = HALF if data.sizes["cpu"] < _MOST_IN_HALF else PAGE
        yield picture(campaign, node, name, strips.strip, data, width, caption)


def _by_cpu(campaign: Campaign, node: str, levels: NodeLevels) -> Iterator[xr.Dataset]:
    """Yield the strips of a measurement of CPUs: one, or one for each combination of words."""
    quantity, peers = levels.quantity, campaign.peers(node, levels)
    words = {dim: quantity.names[dim] for dim in quantity.dims if dim in quantity.names}
    if {"cpu", *words} != set(quantity.dims) or (words and not _in_strips(quantity.measurement)):
        return
    findings = campaign.verdict.nodes[node].counted
    marked = [f.component.where.get("cpu") for f in findings if f.measurement == quantity.measurement]
    cpus = [cpu for cpu in marked if isinstance(cpu, int)]
    for fixed in itertools.product(*words.values()):
        data = strips.by_cpu(levels, node, dict(zip(words, fixed, strict=True)), peers=peers, marked=cpus)
        if np.isfinite(data.value_0).sum() > 2:
            yield data


def _in_strips(measurement: str) -> bool:
    of = known(measurement)
    return of is not None and of.strips


def under_load(campaign: Campaign, node: str, jobs: Sequence[Job]) -> Iterator[Picture]:
    """Draw clock and rate over the seconds of the newest job that loaded the node, if it lasted long enough."""
    loaded: dict[str, list[Any]] = {}
    for job in reversed(jobs):
        of_each = {name: [run.get("load_seconds", ()) for run in of.runs] for name, of in sorted(job.measured.items())}
        loaded = loaded or {name: list(itertools.chain(*of_runs)) for name, of_runs in of_each.items() if any(of_runs)}
    for measurement, seconds in loaded.items():
        for quantity in curves.OF_SECONDS:
            data = curves.by_second(seconds, quantity)
            if data.sizes["point"] < _FEWEST_SECONDS:
                continue
            name = f"{measurement}-{quantity.split('_')[0]}"
            what = text.sentence(data.value.attrs["long_name"])
            caption = say("captions", "by_second", node=node, what=what, measured=text.measured(measurement))
            yield picture(campaign, node, name, curves.curve, data, HALF, caption)


def _of_cells(campaign: Campaign, node: str, levels: NodeLevels) -> Iterator[tuple[str, Any, Any]]:
    quantity = levels.quantity
    sizes = {dim: len(np.unique(column)) for dim, column in quantity.places.items()}
    if "memory_node" in sizes and len(sizes) > 1:
        if sizes["memory_node"] > 1:
            streams = quantity.names.get("stream", ("",))
            for stream in [name for name in ("load", "store_mem", "triad") if name in streams][:2] or streams[:1]:
                yield (stream, matrix.matrix, matrix_tables.numa(levels, node, stream))
    elif quantity.operation == "contend-pairs":
        for place, kind in enumerate(quantity.names["kind"]):
            if (pairs := matrix.of_cells(levels, node, "kind", place, kind)) is not None:
                yield kind, matrix.matrix, pairs
    elif quantity.quantity == "message" and sizes.get("size_bytes", 0) > 1:
        yield "time", curves.curve, curves.by_class(levels, node)
        yield "bandwidth", curves.curve, curves.by_class(levels, node, bandwidth=True)
        column = quantity.places["size_bytes"]
        for size in (int(column.min()), int(column.max())):
            word = names.message_size(size)
            if (pairs := matrix.of_cells(levels, node, "size_bytes", size, word)) is not None:
                yield word, matrix.matrix, pairs
    elif not _in_strips(quantity.measurement):
        long = next((dim for dim in _LONG if sizes.get(dim, 0) > 2 and dim not in quantity.names), None)
        if long is not None:
            yield ("", curves.curve, curves.over(levels, node, long, peers=campaign.peers(node, levels)))


# --- the fleet ---


def in_tolerances(campaign: Campaign) -> Iterator[Picture]:
    """Draw how far nodes are from their peers in the deciding metrics, or in the component that splits the fleet."""
    verdict = campaign.verdict
    apart = next((group for group in verdict.fleet.groups if group.component is not None), None)
    data = None
    if verdict.fleet.outcome is FleetOutcome.SPLIT and apart is not None and apart.component is not None:
        place = f"{names.scoped(apart.component)} ({text.measured(apart.measurement)})"
        data = differences.of_groups(verdict.fleet.groups, text.sentence(place))
    if data is None:
        metrics = {metric: text.sentence(text.named("metrics", metric)) for metric in decided_metrics(verdict)}
        data = differences.of_nodes(verdict.nodes, metrics)
    if data is None:
        return
    count, has_groups = data.sizes["node"], (data.group != "").any()
    caption = say("figures", "groups" if has_groups else "in_tolerances", nodes=names.counted(count, "node"))
    beyond, marked = differences.outside(data), data.marked.to_numpy()
    caption += say("figures", "in_tolerances_marked") if (beyond & marked).any() else ""
    if unmarked := data.node[(beyond & ~marked).any(axis=0)].to_numpy().tolist():
        caption += say("figures", "in_tolerances_unmarked", nodes=_by_outcome(campaign, unmarked))
    if unnamed := data.node[(beyond & ~differences.with_names(data)).any(axis=0)].to_numpy().tolist():
        caption += say("figures", "in_tolerances_unnamed", nodes=_by_outcome(campaign, unnamed))
    if gone := [name for name, node in verdict.nodes.items() if node.outcome is Outcome.INTERMITTENT]:
        caption += say("figures", "in_tolerances_gone", nodes=names.shortened(names.nodes(gone), 60))
    yield picture(campaign, CLUSTER, "in-tolerances", differences.differences, data, PAGE, caption)


def _by_outcome(campaign: Campaign, nodes: Sequence[str]) -> str:
    """Name nodes with their outcomes, in the order of the verdict."""
    by_outcome: dict[Outcome, list[str]] = {}
    for name in nodes:
        by_outcome.setdefault(campaign.verdict.nodes[name].outcome, []).append(name)
    each = (f"{names.shortened(names.nodes(members), 60)} ({outcome})" for outcome, members in by_outcome.items())
    return names.listed(each)


def two_nodes(campaign: Campaign, *, messages: bool = False) -> Iterator[Picture]:
    """Draw matrices of a typical and another node on one scale; of messages also histograms with extremes."""
    for measurement, names_of in itertools.islice(_kinds(campaign, messages), 1):
        if len(names_of) < 2 or campaign.verdict.fleet.outcome is FleetOutcome.NO_PEERS:
            continue
        levels = campaign.levels(measurement, names_of[0])
        if len(levels.slots) < 3:
            continue
        of_layout = [name for _, members in _kinds(campaign, messages) for name in members if name in levels.rows]
        pair, nodes = _typical_and_farthest(campaign, levels, of_layout), campaign.verdict.nodes
        groups = [nodes[name].group for name in pair]
        key = "groups" if groups[0] != groups[1] else _of_two(nodes[pair[0]], nodes[pair[1]], measurement)
        drawn = [matrix.of_node(levels, name) for name in pair]
        titles = [f"{name}, group {group}" if group else name for name, group in zip(pair, groups, strict=True)]
        below = [(_extent(square),) for square in drawn] if messages else ()
        data = matrix.on_one_scale(titles, drawn, text.sentence(levels.title), below)
        first, second = (_called(campaign, name, measurement) for name in pair)
        caption = say("figures", f"two_{key}", first=first, second=second, what=text.measured(measurement))
        finding = next((of for of in nodes[pair[1]].counted if of.measurement == measurement), None)
        inside = [scaled for square in drawn if (scaled := matrix.inside_sockets(square)) is not None]
        limits = None
        if finding is not None:
            limits = matrix.near_limits(data, _pairs_of(finding, *drawn))
            caption += say("figures", "two_finding") if limits is not None else ""
        elif not messages and len(inside) == len(pair):
            limits = min(of.value.attrs["low"] for of in inside), max(of.value.attrs["high"] for of in inside)
            caption += say("figures", "two_inside", component=_finest(inside[0]))
        if limits is not None:
            data = tuple(matrix.scaled(square, *limits) for square in data)
        elif _is_cut(*data):
            caption += say("figures", "two_beyond")
        name = "two-nodes-messages" if messages else "two-nodes"
        yield picture(campaign, CLUSTER, name, matrix.side_by_side, data, PAGE, caption)
        if messages:
            for name, square in zip(pair, matrix.counted_alike(data), strict=True):
                yield _histogram(campaign, CLUSTER, name, measurement, square, HALF)


def _finest(data: xr.Dataset) -> str:
    return part_levels(data, "b")[0].name.partition(" = ")[0]


def _of_two(typical: NodeVerdict, farthest: NodeVerdict, measurement: str) -> str:
    """Return the caption key of two nodes in a measurement; among a few that differ, none is typical."""
    if not farthest.counted:
        return "same" if {typical.outcome, farthest.outcome} == {Outcome.SAME} else "unverified"
    if typical.counted:
        return "both"
    return "differs" if any(finding.measurement == measurement for finding in farthest.counted) else "found"


def _pairs_of(finding: Finding, typical: xr.Dataset, own: xr.Dataset) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Return the pairs (a, b) of a finding that differ from a `typical` node's by more than its tolerance."""
    of_finding = {frozenset((str(a), str(b))) for a, partners in finding.pairs.items() for b in partners}
    cpus = own.b.to_numpy().tolist()
    chosen = np.array([[frozenset((a, b)) in of_finding for b in cpus] for a in cpus])
    return np.asarray(chosen & (np.abs(own.value.to_numpy() / typical.value.to_numpy() - 1) > finding.tolerance))


def _typical_and_farthest(campaign: Campaign, levels: NodeLevels, names_of: Sequence[str]) -> list[str]:
    """Return a typical node, SAME if one is, and the most different one; of a split fleet a node of each group."""
    nodes = campaign.verdict.nodes

    def standing(name: str) -> tuple[bool, bool, bool]:
        """Lowest for nodes that are SAME, then for those without findings, then for those with the usual settings."""
        has_other_settings = any(str(of.get("id")).startswith("fingerprint-") for of in nodes[name].warnings)
        return nodes[name].outcome is not Outcome.SAME, bool(nodes[name].counted), has_other_settings

    groups = list(dict.fromkeys(nodes[name].group for name in sorted(names_of, key=natural)))
    if len(groups) > 1:
        return [min((n for n in names_of if nodes[n].group == group), key=standing) for group in groups[:2]]
    best = min(map(standing, names_of))
    alike = [name for name in names_of if standing(name) == best]
    with warnings.catch_warnings(action="ignore", category=RuntimeWarning):
        middle = np.nanmedian(levels.values[[levels.rows[name] for name in names_of]], axis=0)
        apart = {name: float(np.nanmedian(np.abs(levels.of(name) / middle - 1))) for name in names_of}
    typical = min(alike, key=lambda name: apart[name])

    def distance(name: str) -> tuple[float, float]:
        """By its findings in this measurement, or else by its pairs."""
        findings = (f for f in nodes[name].counted if f.measurement == levels.quantity.measurement and f.tolerance)
        return max((abs(f.effect) / f.tolerance for f in findings), default=0.0), apart[name]

    return [typical, max((name for name in names_of if name != typical), key=distance)]


def difference_maps(campaign: Campaign, *, messages: bool = False) -> Iterator[Picture]:
    """Draw small maps of the differences of every node's pairs by kind of machine, nodes with findings first."""
    nodes, is_split = campaign.verdict.nodes, campaign.verdict.fleet.outcome is FleetOutcome.SPLIT
    for measurement, names_of in _compared(campaign, messages):
        levels = campaign.levels(measurement, names_of[0])
        peers = campaign.peers("", levels, campaign.verdict.nodes[names_of[0]].group)
        compared = [n for n in names_of if not _is_compared_with_none(nodes[n])]
        if len(compared) < 3 or len(peers) < 2 or len(levels.slots) < 3:
            continue
        shown = sorted(compared[:_MOST_MAPS], key=lambda name: nodes[name].group)
        of_kind = {of.measurement for of in campaign.fleet.pairs if is_of_messages(of) is messages}
        marked = [name for name in compared if any(f.measurement in of_kind for f in nodes[name].counted)]
        findings = (f for name in compared for f in nodes[name].counted if f.measurement == measurement)
        tolerance = _common_tolerance(findings)
        data = matrix.difference_maps(levels, shown, peers=peers, marked=marked, tolerance=tolerance)
        order = say("figures", "maps_findings") if any(name in marked for name in shown) else ""
        if is_split:
            data = data.assign_coords(node=[f"{nodes[name].group}: {name}" for name in shown])
            order = say("figures", "maps_groups", group=nodes[names_of[0]].group)
        first = f" The first {len(shown)} of {len(compared)} nodes." if len(compared) > len(shown) else ""
        counted = names.counted(len(peers), "node")
        caption = say("figures", "maps", measured=_title(measurement), peers=counted, order=order, shown=first)
        if of_job := [called for name in shown if (called := _called(campaign, name, measurement)) != name]:
            caption += say("figures", "maps_of_job", nodes=names.listed(of_job))
        name = "difference-maps-messages" if messages else "difference-maps"
        yield picture(campaign, CLUSTER, name, matrix.maps, data, PAGE, caption)


def _compared(campaign: Campaign, messages: bool) -> Iterator[tuple[str, list[str]]]:
    """Yield the kinds of machines; of a split fleet its groups together, first equally many nodes of each."""
    if campaign.verdict.fleet.outcome is not FleetOutcome.SPLIT:
        yield from _kinds(campaign, messages)
        return
    by_layout: dict[tuple[str, bytes], list[list[str]]] = {}
    kinds = sorted(_kinds(campaign, messages), key=lambda kind: campaign.verdict.nodes[kind[1][0]].group)
    for measurement, members in kinds:
        key = (measurement, campaign.levels(measurement, members[0]).quantity.layout.key)
        by_layout.setdefault(key, []).append(members)
    for (measurement, _), groups in by_layout.items():
        each = max(1, _MOST_MAPS // len(groups))
        first = [name for members in groups for name in members[:each]]
        yield measurement, [*first, *(name for members in groups for name in members[each:])]


def machines(campaign: Campaign) -> tuple[list[Picture], str]:
    """Draw machines without peers on one scale, with medians; also return a sentence about those without a figure."""
    nodes, alone = campaign.verdict.nodes, machines_in_order(campaign)
    if len(alone) < 2:
        return [], ""
    by_measurement: dict[str, list[str]] = {}
    for name in alone:
        first = next(iter(campaign.measurements(name, pairs=True)), "")
        by_measurement.setdefault(first, []).append(name)
    without, shown = by_measurement.pop("", []), []
    left_out = {"has no matrix": without} if without else {}
    for measurement, members in by_measurement.items():
        every = [matrix.of_node(campaign.levels(measurement, n), n) for n in members[:MOST_MACHINES]]
        for start in range(0, len(every), _ON_A_PAGE):
            on_page = members[:MOST_MACHINES][start : start + _ON_A_PAGE]
            drawn = every[start : start + _ON_A_PAGE]
            below = [medians(nodes[name].classes, measurement) for name in on_page]
            title = text.sentence(campaign.levels(measurement, on_page[0]).title)
            titles = [printable(name, 60) for name in on_page]
            data = matrix.on_one_scale(titles, drawn, title, below, among=every)
            caption = say("figures", "machines", measured=_title(measurement))
            if any(str(name).startswith("found_") for data_of_node in drawn for name in data_of_node.coords):
                caption += say("figures", "unlabeled")
            name = f"machines-{measurement}" + (f"-{start // _ON_A_PAGE + 1}" if start else "")
            shown.append(picture(campaign, CLUSTER, name, matrix.side_by_side, data, PAGE, caption))
        if beyond := members[MOST_MACHINES:]:
            left_out[say("left_out_room")] = beyond
    return shown, " ".join(say("left_out", nodes=names.nodes(on), why=why) for why, on in left_out.items())


def machines_in_order(campaign: Campaign) -> list[str]:
    """Return the machines without peers in the given order."""
    nodes = campaign.verdict.nodes
    order = [name for name in dict.fromkeys((*campaign.sheet, *nodes)) if name in nodes]
    return [name for name in order if _is_compared_with_none(nodes[name])]


def _is_compared_with_none(node: NodeVerdict) -> bool:
    return node.is_alone or node.outcome.entry.kind is Kind.CONFIGURATION


def medians(classes: Sequence[ClassFigure], measurement: str) -> tuple[str, ...]:
    """Return the medians of the classes of a measurement in words, with one median per group of a mixture."""
    return tuple(
        f"{name}: {names.median(figure) if figure.runs_disagree else names.duration(ns)}"
        for figure in classes
        if figure.measurement == measurement and figure.home < homes.FAR
        for name, ns in figure.medians.items()
    )


def _kinds(campaign: Campaign, messages: bool) -> Iterator[tuple[str, list[str]]]:
    """Yield the first measurement of pairs, of `messages` or cache lines, by kind of machine, urgent nodes first."""
    nodes, listed = campaign.verdict.nodes, set[str]()
    order = sorted(nodes, key=lambda name: (severity(nodes[name]), natural(name)))
    for quantity in (of for of in campaign.fleet.pairs if is_of_messages(of) is messages):
        measured_nodes = {campaign.fleet.nodes[number].name for number in quantity.newest_rows}
        new = [name for name in order if name in measured_nodes and name not in listed]
        of_kind = [name for name in new if nodes[name].outcome.entry.measured]
        for group in dict.fromkeys(nodes[name].group for name in of_kind):
            yield quantity.measurement, [name for name in of_kind if nodes[name].group == group]
        listed |= set(of_kind)


def _marked(campaign: Campaign) -> list[str]:
    return [name for name, node in campaign.verdict.nodes.items() if node.counted]


def tolerances_map(campaign: Campaign) -> Iterator[Picture]:
    """Draw the share of its tolerances that each node uses, by metric; in a large fleet, the largest shares."""
    nodes = campaign.verdict.nodes
    share = {name: max(of.share for of in node.agreements) for name, node in nodes.items() if node.agreements}
    shown = sorted(share, key=lambda name: (-share[name], natural(name)))[:_MOST_ROWS]
    if len(share) < 2:
        return
    caption = say("captions", "agreements")
    if len(shown) < len(share):
        caption += say("captions", "agreements_most", shown=len(shown), nodes=len(share))
    data = matrix_tables.agreements_of(campaign.verdict, shown)
    yield picture(campaign, CLUSTER, "tolerances", matrix.matrix, data, LARGE, caption)


def over_time(campaign: Campaign) -> Iterator[Picture]:
    """Draw the largest class of pairs of each node over the time of measuring, if there is a trend."""
    if not campaign.verdict.fleet.over_time:
        return
    by_class: dict[tuple[str, int, str], dict[str, ClassFigure]] = {}
    for name, node in campaign.verdict.nodes.items():
        for figure in (figure for figure in node.classes if not figure.groups):
            by_class.setdefault((figure.measurement, figure.home, figure.name), {})[name] = figure
    if not by_class:
        return
    (measurement, home, kind), figures = max(by_class.items(), key=lambda item: sum(f.pairs for f in item[1].values()))
    started = {  # the first run of each node's newest job
        campaign.fleet.nodes[number].name: min(quantity.started[row] for row in rows)
        for quantity in campaign.fleet.pairs
        if quantity.measurement == measurement
        for number, rows in quantity.newest_rows.items()
    }
    if len(set(started.values())) < 3:
        return
    middle = float(np.median([figure.median_ns for figure in figures.values()]))
    title = ", ".join(filter(None, (text.measured(measurement), kind, homes.named(home))))
    values = {name: 100 * (figure.median_ns / middle - 1) for name, figure in figures.items()}
    row = differences.in_order(values, started, f"{title}, %", "time of the first run", _marked(campaign))
    caption = say("captions", "in_order", what=text.sentence(title))
    yield picture(campaign, CLUSTER, "by-time", differences.points, row, PAGE, caption)


def fabric(campaign: Campaign, number: int) -> Iterator[Picture]:
    """Draw messages between the nodes of a partition: matrices, histogram, and if there are sizes, curves over them."""
    fabric = campaign.verdict.fabric[number]
    if not np.isfinite(np.array(fabric.shown.median, dtype=np.float64)).any():
        return
    data = matrix_tables.messages(fabric)
    unit = data.value.attrs["units"]
    title = say("figures", "messages_from", measured=_title(fabric.measurement))
    marked = say("figures", "messages_marked") if "marked" in data.coords else ""
    caption = say("figures", "messages", measured=title, marked=marked)
    stem = f"{fabric.measurement}-{number}"
    yield picture(campaign, CLUSTER, stem, matrix.matrix, data, HALF, caption)
    counted = "the time of a message" if fabric.partition else printable(fabric.measurement, 60)
    caption = say("figures", "messages_counted", what=counted, unit=unit)
    yield picture(campaign, CLUSTER, f"{stem}-histogram", matrix.histogram, data, HALF, caption)
    if not fabric.by_size:
        return
    data = matrix_tables.messages(fabric, smallest=True)
    if np.isfinite(data.value).any():
        caption = say("figures", "messages_smallest", size=names.message_size(fabric.by_size[0].message_bytes))
        yield picture(campaign, CLUSTER, f"{stem}-smallest", matrix.matrix, data, HALF, caption)
    for name in ("time", "bandwidth"):
        data_of_curve = curves.of_links(fabric, bandwidth=name == "bandwidth")
        caption = say("figures", "messages_over_size", what=name)
        yield picture(campaign, CLUSTER, f"{stem}-{name}", curves.curve, data_of_curve, HALF, caption)
