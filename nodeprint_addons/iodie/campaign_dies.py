"""The I/O dies of one node, or of all nodes of a campaign that have the records.

The store caches the result of a campaign's node. It is regenerated if the node's records or SCHEMA change.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from nodeprint.campaign import node_sheet
from nodeprint.data.store import kept, store
from nodeprint.errors import NodeprintError
from nodeprint.machine.topology import processors
from nodeprint.machine.topology.model import Topology
from nodeprint.processes import mapped
from nodeprint.waiting import counted
from nodeprint_addons.iodie import analysis, json_output, line_files, listing, node_lines
from nodeprint_addons.iodie.analysis import NodeDies

#: The version of a node's cached result and its method; increase it if either changes.
SCHEMA = 6
_FILE = "dies.msgpack.zst"


def as_json(nodes: Sequence[NodeDies], not_analyzed: Mapping[str, str]) -> dict[str, Any]:
    """As nodeprint_addons/iodie/iodie.json has them."""
    return {
        "simulated": any(node.simulated for node in nodes),
        "nodes": [json_output.of_node(node) for node in nodes],
        "not_analyzed": dict(not_analyzed),
        "fleet": json_output.of_fleet(nodes),
    }


def as_text(nodes: Sequence[NodeDies], not_analyzed: Mapping[str, str]) -> str:
    """For a terminal."""
    text = listing.listing(nodes)
    text += [f"{node}: not analyzed: {reason}" for node, reason in not_analyzed.items()]
    fleet = listing.fleet_rows(nodes)
    return "\n".join([*text, *([""] if fleet else []), *fleet])


def read(where: Path) -> tuple[list[NodeDies], dict[str, str]]:
    """The dies of a node or of the nodes of a campaign, by its directory, and the reason for each other node by name.

    Raises NodeprintError if it is neither, or no node has the records; CannotWriteError.
    """
    if not (where / "nodes.tsv").exists():
        return [analysis.analyze(*node_lines.read(where))], {}
    sheet = where / "nodes.tsv"
    folders = {name: where / "nodes" / name for name in sorted(node.node for node in node_sheet.read_sheet(sheet))}
    results: dict[str, NodeDies | NodeprintError] = {
        name: dies
        for name, folder in folders.items()
        if (dies := kept.read(store.folder(folder) / _FILE, NodeDies, _stamp(folder))) is not None
    }
    new = {name: folder for name, folder in folders.items() if name not in results}
    made = counted(mapped(_made, new.values(), len(os.sched_getaffinity(0))), len(new), "nodes mapped")
    for name, (stamp, results[name]) in zip(new, made, strict=True):
        if isinstance(node := results[name], NodeDies):
            kept.write(store.folder(folders[name]) / _FILE, node, stamp)
    nodes = [node for name in folders if isinstance(node := results[name], NodeDies)]
    failed = {name: error for name in folders if isinstance(error := results[name], NodeprintError)}
    if not nodes:
        raise next(iter(failed.values()), NodeprintError("lists no node", where=sheet, advice="measure one first"))
    return nodes, {name: str(error) for name, error in failed.items()}


def of_files(paths: Sequence[Path], labels: Topology | None) -> NodeDies:
    """The dies of the machine whose records or tables the files are. Raises NodeprintError as line_files.read does."""
    return analysis.analyze(*line_files.read(paths, labels))


def _made(folder: Path) -> tuple[str, NodeDies | NodeprintError]:
    """The stamp of a node's files, and its dies, or why there are none."""
    stamp = _stamp(folder)
    try:
        return stamp, analysis.analyze(*node_lines.read(folder))
    except NodeprintError as error:
        return stamp, error


def _stamp(node_dir: Path) -> str:
    return kept.stamp(store.sources(node_dir), SCHEMA, processors.digest())
