"""Messages between nodes: times from the row's node to the column's, and the messages of a finding."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import xarray as xr

from nodeprint.data.job.fabric_times import slowness
from nodeprint.errors import NodeprintError
from nodeprint.judge import messages
from nodeprint.judge.verdict import FabricVerdict, Finding
from nodeprint.report.figures.curves import line, lines
from nodeprint.report.figures.matrix import square
from nodeprint.report.figures.node_levels import shown_unit
from nodeprint.report.figures.part_levels import outlined
from nodeprint.report.figures.strips import finding_strip
from nodeprint.report.message_rates import messages_at_once
from nodeprint.report.names import message_size


def medians(verdict: FabricVerdict, *, smallest: bool = False) -> xr.Dataset:
    """Return medians over runs, node by node, of the deciding size or the `smallest`; nodes of findings are marked."""
    shown = verdict.shown
    values = np.array(verdict.smallest_ns if smallest else shown.median, dtype=np.float64)
    unit = shown_unit("ns" if smallest else shown.unit, values)
    values = values / unit.size
    size = verdict.by_size[0].message_bytes if smallest else verdict.message_bytes
    of_size = f" of {message_size(size)}" if verdict.by_size else ""
    title = f"{_measured(verdict, smallest=smallest)}{of_size}, {unit.name or '1'}"
    findings = () if smallest else verdict.findings
    odd = {str(finding.component.where.get(key)) for finding in findings for key in ("node", "to")}
    places, marked = verdict.places, [row for row, name in enumerate(verdict.nodes) if name in odd]
    several = all(places) and len(set(places)) > 1
    parts = {"place": outlined(np.array(places, dtype=object), "switch or rack", "group")} if several else {}
    return square(values, verdict.nodes, title, parts, axis="node", marked=marked, directed=verdict.directed)


def _measured(verdict: FabricVerdict, *, smallest: bool = False) -> str:
    return "time of a message" if smallest or verdict.shown.unit == "ns" else verdict.measurement


def over_sizes(verdict: FabricVerdict, *, bandwidth: bool = False) -> xr.Dataset:
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


def of_finding(fabrics: Iterable[FabricVerdict], finding: Finding) -> FabricVerdict:
    """Return the messages of a finding. Raises NodeprintError if they are not among `fabrics`."""
    ends = {str(finding.component.where[key]) for key in ("node", "to") if key in finding.component.where}
    for fabric in fabrics:
        if fabric.measurement == finding.measurement and ends <= set(fabric.nodes):
            return fabric
    raise NodeprintError(f"{finding.measurement} between {', '.join(sorted(ends))} was not measured")


def own_messages(verdict: FabricVerdict, finding: Finding) -> xr.Dataset:
    """Return the messages of a finding, compared with their expected times.

    For a slow node these are its messages with every other node, in the slow direction. For a slow link they are the
    messages between its two ends. Expected times come from the kind of link and the other end (for a link, both ends).
    They are the sums in the judge's fit (`judge.messages.terms`) of the medians over all runs. Peers are the messages
    of the other nodes with the same end. Raises NodeprintError if no message of the finding was measured.
    """
    shown = verdict.shown
    logs = slowness(np.array(shown.median, dtype=np.float64), shown.better)
    fitted = messages.terms(logs[None], verdict.places)
    out, into, link = (fitted[of].values[0] for of in ("sends", "receives", "link"))
    number = {name: at for at, name in enumerate(verdict.nodes)}
    where = finding.component.where
    node, of_link = number[str(where["node"])], "to" in where
    ways = [(node, number[str(where["to"])])] if of_link else [(node, at) for at in range(len(logs)) if at != node]
    backward = verdict.directed and where.get("receives")
    forward = of_link or not verdict.directed or where.get("sends")
    ends = [*(ways if forward else []), *((b, a) for a, b in ways if backward)]
    ends = [(a, b) for a, b in ends if np.isfinite(logs[a, b])]
    if not ends:
        raise NodeprintError(f"no message of {where['node']} was measured", advice="draw the matrix of the fabric")
    rows = []
    for a, b in ends:
        sends = not of_link and a == node
        beside = [at for at in range(len(logs)) if at not in (a, b)]
        if of_link:
            own, peers = link[a, b], np.concatenate([link[a, beside], link[beside, b]])
        elif sends:
            own, peers = link[a, b] + out[a], link[beside, b] + out[beside]
        else:
            own, peers = link[a, b] + into[b], link[a, beside] + into[beside]
        peers = peers[np.isfinite(peers)] if np.isfinite(peers).any() else np.array([np.nan])
        rows.append([own, float(peers.min()), float(np.median(peers)), float(peers.max())])
    sign = 1 if shown.better == "lower" else -1
    relative = np.expm1(sign * np.array(rows))  # (place; own, peers' lowest, median and highest)
    relative[:, 1:] = np.sort(relative[:, 1:], axis=1)
    unit = shown_unit(shown.unit, np.array(shown.median, dtype=np.float64))
    values = np.exp(sign * np.array([logs[a, b] for a, b in ends])) / unit.size
    usual = values / (1 + relative[:, 0])
    names = tuple(f"{verdict.nodes[a]} to {verdict.nodes[b]}" for a, b in ends)
    differences = relative[:, 0], relative[:, 1:].T
    measured = values, usual * (1 + differences[1])
    title, what = f"{_measured(verdict)}, {unit.name or '1'}", "difference from what is expected, %"
    places, own = ("message from node to node", names), np.ones(len(names), dtype=np.bool_)
    percent = 100 * differences[0], 100 * differences[1]
    data = finding_strip(finding, str(where["node"]), places, measured, title, percent, what, own)
    return data.assign_attrs(peers=len(verdict.nodes) - 1 - of_link)
