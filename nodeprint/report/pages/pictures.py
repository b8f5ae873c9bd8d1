"""Figures of pages: what of a campaign each shows, drawn by `nodeprint.report.figures`, with its words."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import numpy as np

from nodeprint.errors import NodeprintError
from nodeprint.fleet import homes
from nodeprint.judge.verdict import Finding
from nodeprint.layout import SOCKET
from nodeprint.report import names
from nodeprint.report.figures import (
    curves,
    distributions,
    effects,
    floorplan,
    grid,
    matrix,
    own_places,
    quadrants,
    render,
    strips,
)
from nodeprint.report.figures.node_levels import NodeLevels
from nodeprint.report.pages.blocks import Picture
from nodeprint.report.pages.campaign import Campaign

#: The subject of figures of the fleet.
CLUSTER = "cluster"
#: Widths in mm: of a page, of the larger part of one, of half of one.
PAGE, LARGE, MAIN, HALF, SMALL = 180.0, 128.0, 114.0, 88.0, 58.0

#: Dimensions over which a measurement is drawn as a curve.
_LONG = ("size_bytes", "delay", "pairs", "cores", "threads")


def picture(
    campaign: Campaign, subject: str, draw: render.Draw[Any], data: Any, width: float, *, name: str, alt: str,
    caption: str = "",
) -> Picture:  # fmt: skip
    """A figure of a page."""
    drawn = render.figure(draw, data, campaign.style, width)
    return Picture(name, render.svg(drawn, campaign.style), width, alt, caption)


# --- a finding ---


def of_finding(
    campaign: Campaign, node: str, finding: Finding, number: int, width: float = PAGE
) -> tuple[Picture, ...]:
    """A finding over its own pairs or cells beyond its own bound; nothing where its measurement is not here."""
    if finding.part.term.startswith("fabric-"):
        return ()
    what = f"{names.part(finding.part)} of {node}"
    try:
        known = campaign.levels(finding.measurement, node)
        data = own_places.own_places(known, node, finding, campaign.peers(node, known))
    except NodeprintError:
        return ()
    caption = (
        f"{finding.measurement}: {node} at the finding's own {'pairs' if known.quantity.of_pairs else 'cells'}; "
        f"dashed: the finding's bound; red: its effect with the interval."
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
    known = campaign.levels(measurement, node)
    if len(matrix.drawn_slots(known.quantity)) < 3:
        return
    for number, home in enumerate(known.quantity.homes):
        data = matrix.of_node(known, node, home)
        if np.isfinite(data.values).any():
            at_home = f", {homes.named(home)}" if homes.named(home) else ""
            ends = f"from {data.scale.low:.4g} to {data.scale.high:.4g} {known.unit.name}"
            alt = f"matrix of {measurement} of {node}{at_home}, {ends}"
            width = LARGE if number == 0 else HALF
            yield picture(campaign, node, matrix.matrix, data, width, name=f"{measurement}{_suffix(home)}", alt=alt)


def difference(campaign: Campaign, node: str, measurement: str, width: float = HALF) -> Iterator[Picture]:
    """The difference of a node's pairs from its peers', and beside it that of a healthy node on the same scale."""
    known = campaign.levels(measurement, node)
    peers = campaign.peers(node, known)
    if len(peers) < 2 or len(matrix.drawn_slots(known.quantity)) < 3:
        return
    findings = [f for f in campaign.verdict.nodes[node].counted if f.measurement == measurement]
    bound = findings[0].bound if findings else None
    marked = sorted({cpu for finding in findings[:1] for cpu in finding.pairs}) if findings else []
    marked = marked if len(marked) <= 8 else []
    first = matrix.difference(known, node, peers=peers, bound=bound, marked=marked)
    beside, others = peers[0], peers[1:]
    shown = [
        (node, first),
        (beside, matrix.difference(known, beside, peers=others, bound=bound, reach=first.scale.high)),
    ]
    for of, data in shown[: 2 if len(others) > 1 else 1]:
        caption = f"{of}: each pair against the median of {len(peers if of == node else others)} peers."
        caption = f"{caption} A peer, for comparison." if of != node else caption
        alt = f"difference matrix of {of} from its peers, {measurement}, to {data.scale.high:.3g} %"
        name = f"difference-{measurement}{'-peer' if of != node else ''}"
        yield picture(campaign, node, matrix.matrix, data, width, name=name, alt=alt, caption=caption)


def _suffix(home: int) -> str:
    return f"-home{home}" if 0 <= home < homes.FAR else "-far" if home >= homes.FAR else ""


def around(campaign: Campaign, node: str, measurement: str) -> Iterator[Picture]:
    """What follows from a matrix: its classes beside the peers', run against run, quadrants, and the floor plan."""
    known = campaign.levels(measurement, node)
    if len(matrix.drawn_slots(known.quantity)) < 4:
        return
    shown: list[tuple[str, Any, Any, float, str]] = []
    classes = distributions.by_class(known, node, peers=campaign.peers(node, known))
    shown.append(("classes", distributions.classes, classes, HALF, f"pairs of {node} by class"))
    with suppress(NodeprintError):
        runs = distributions.first_and_last_run(known, node)
        shown.append(("runs", distributions.run_pairs, runs, HALF, f"pairs of {node} in its first and its last run"))
    crossing = quadrants.of_node(known, node)
    if crossing is not None:
        shown.append(("quadrants", quadrants.quadrants, crossing, HALF, f"medians between the quadrants of {node}"))
    if measurement.startswith("coherence") and known.quantity.layout.slots[:, SOCKET].max(initial=-1) >= 0:
        plan = floorplan.of_pairs(known, node)
        shown.append(
            ("floorplan", floorplan.floorplan, plan, HALF, f"floor plan of {node} in the colours of its latencies")
        )
    for name, draw, data, width, alt in shown:
        yield picture(campaign, node, draw, data, width, name=f"{measurement}-{name}", alt=f"{alt}, {measurement}")


def cells(campaign: Campaign, node: str) -> Iterator[Picture]:
    """A figure of each measurement of cells that has one: by NUMA node, by CPU, or over its one long dimension."""
    for measurement in campaign.measurements(node, pairs=False):
        known = campaign.levels(measurement, node)
        with suppress(NodeprintError):
            for suffix, draw, data, width in _of_cells(campaign, node, known):
                alt = f"{measurement} of {node}"
                yield picture(campaign, node, draw, data, width, name=f"{measurement}{suffix}", alt=alt)


def _of_cells(campaign: Campaign, node: str, known: NodeLevels) -> Iterator[tuple[str, Any, Any, float]]:
    quantity = known.quantity
    sizes = {dim: len(np.unique(column)) for dim, column in quantity.places.items()}
    peers = campaign.peers(node, known)
    if "memory_node" in sizes:
        if sizes["memory_node"] > 1:
            streams = quantity.names.get("stream", ("",))
            for stream in [name for name in ("load", "store", "triad") if name in streams][:2] or streams[:1]:
                yield (f"-{stream}" if stream else "", grid.grid, grid.numa(known, node, stream), HALF)
    elif list(sizes) == ["cpu"] and sizes["cpu"] > 2:
        yield ("", strips.strip, strips.by_cpu(known, node, peers=peers), HALF if sizes["cpu"] < 65 else PAGE)
    else:
        long = next((dim for dim in _LONG if sizes.get(dim, 0) > 2 and dim not in quantity.names), None)
        if long is not None:
            yield ("", curves.curves, curves.over(known, node, long, peers=peers), HALF)


def difference_maps(campaign: Campaign) -> list[Picture]:
    """TODO."""
    return []


bounds_map = fleet = difference_maps


def fabric(campaign: Campaign, number: int) -> list[Picture]:
    """TODO."""
    return []
