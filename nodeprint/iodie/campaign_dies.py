"""The I/O dies of one node, or of all nodes of a campaign that have the records."""

from __future__ import annotations

import os
from collections.abc import Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nodeprint import discover
from nodeprint.errors import NodeprintError
from nodeprint.fleet.waiting import counted
from nodeprint.iodie import analysis, listing, node_lines, part_comparison
from nodeprint.iodie.analysis import NodeDies
from nodeprint.iodie.part_comparison import Comparison


@dataclass(frozen=True)
class Found:
    """Nodes that were analysed, of the others why not, and the comparison of the nodes where there are several."""

    nodes: tuple[NodeDies, ...]
    not_analysed: Mapping[str, str]
    fleet: Comparison | None = None

    @property
    def simulated(self) -> bool:
        """Whether any of it is simulated."""
        return any(node.simulated for node in self.nodes)

    def as_json(self) -> dict[str, Any]:
        """As nodeprint/schemas/iodie.json has it."""
        return {
            "simulated": self.simulated,
            "nodes": [listing.as_json(node) for node in self.nodes],
            "not_analysed": dict(self.not_analysed),
            "fleet": listing.fleet_json(self.fleet) if self.fleet is not None else None,
        }

    def as_text(self) -> str:
        """For a terminal."""
        said = listing.node_rows(self.nodes)
        said += [f"{node}: not analysed: {reason}" for node, reason in self.not_analysed.items()]
        return "\n".join([*said, *(["", *listing.fleet_rows(self.fleet)] if self.fleet is not None else ())])


def read(where: Path) -> Found:
    """The dies of the node whose folder it is, or of the campaign's nodes.

    Raises NodeprintError where it is neither, or no node has the records.
    """
    if not (where / "nodes.tsv").exists():
        return Found((analysis.analyse(node_lines.read(where)),), {})
    names = sorted(node.node for node in discover.read_sheet(where / "nodes.tsv"))
    nodes, failed = [], {}
    first: NodeprintError | None = None
    with ProcessPoolExecutor(min(len(names), len(os.sched_getaffinity(0))) or 1) as pool:
        folders = [where / "nodes" / name for name in names]
        for name, found in zip(names, counted(pool.map(_node, folders), len(names), "nodes mapped"), strict=True):
            if isinstance(found, NodeDies):
                nodes.append(found)
            else:
                failed[name] = str(found)
                first = first or found
    if not nodes:
        raise first or NodeprintError("lists no node", where=where / "nodes.tsv", advice="measure one first")
    return Found(tuple(nodes), failed, part_comparison.compare(nodes))


def _node(folder: Path) -> NodeDies | NodeprintError:
    """The dies of one node, or why there are none."""
    try:
        return analysis.analyse(node_lines.read(folder))
    except NodeprintError as error:
        return error
