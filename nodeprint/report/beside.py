"""Matrix figures of two campaigns or two processors side by side, on one color scale."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from nodeprint import __version__
from nodeprint.data.store import packing
from nodeprint.data.store.packed import PackedFleet
from nodeprint.errors import NodeprintError
from nodeprint.report import names
from nodeprint.report.figures import matrix, render
from nodeprint.report.figures import style as styles
from nodeprint.report.figures.node_levels import NodeLevels, levels
from nodeprint.report.figures.render import Origin

#: The most nodes drawn if two campaigns have many in common.
MOST_NODES = 16


def write(campaigns: Sequence[Path], to: Path, first: Sequence[str] = ()) -> list[Path]:
    """Draw the matrices of two campaigns into the directory `to`, each as SVG, PDF and CSV; return the paths.

    Each node of both campaigns is paired with itself, nodes in `first` come first, at most MOST_NODES. Campaigns
    without a common node, such as two processors, are compared by their first nodes. Raises NodeprintError if the
    campaigns share no matrix of one operation.
    """
    fleets = [packing.pack(campaign) for campaign in campaigns]
    listed = [[node.name for node in fleet.nodes] for fleet in fleets]
    common = [name for name in dict.fromkeys([*first, *listed[0]]) if all(name in of for of in listed)]
    chosen = [(name, name) for name in common[:MOST_NODES]] or [(listed[0][0], listed[1][0])]
    paths = []
    for nodes in chosen:
        for of_nodes in _measured_alike(fleets, nodes):
            paths += _drawn(fleets, nodes, of_nodes, to)
    if not paths:
        reason = f"no matrix of the same operation is in it and in {campaigns[1]}"
        advice = "measure one operation in both, such as coherence-cas"
        raise NodeprintError(reason, where=campaigns[0], advice=advice)
    return paths


def _measured_alike(fleets: Sequence[PackedFleet], nodes: Sequence[str]) -> Iterator[list[NodeLevels]]:
    """Each measurement of pairs that both nodes have of one operation, quantity and unit."""
    for quantity in {quantity.measurement: quantity for quantity in fleets[0].pairs}.values():
        try:
            both = [levels(fleet, quantity.measurement, node) for fleet, node in zip(fleets, nodes, strict=True)]
        except NodeprintError:
            continue
        if len({(of.quantity.operation, of.quantity.quantity, of.quantity.unit) for of in both}) == 1:
            yield both


def _drawn(fleets: Sequence[PackedFleet], nodes: Sequence[str], both: Sequence[NodeLevels], to: Path) -> list[Path]:
    shown = [matrix.of_node(of, node) for of, node in zip(both, nodes, strict=True)]
    titles = [f"{fleet.campaign}: {node}" for fleet, node in zip(fleets, nodes, strict=True)]
    measurement = both[0].quantity.measurement
    data = matrix.on_one_scale(titles, shown, f"{measurement}, {both[0].title}")
    imported = any(node.imported for fleet in fleets for node in fleet.nodes)
    simulated = any(fleet.simulated for fleet in fleets)
    of_nodes = " and ".join(dict.fromkeys(nodes))
    origin = Origin(" and ".join(fleet.campaign for fleet in fleets), of_nodes, __version__, simulated, imported)
    stem = to / names.file_stem(f"{'-'.join(dict.fromkeys(map(names.file_stem, nodes)))}-{measurement}")
    style = styles.load()
    return render.save(stem, matrix.side_by_side, data, style, style.widths_mm["page"], origin)
