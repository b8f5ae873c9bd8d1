"""A campaign's report: cluster.pdf, cluster.html and a PDF a node."""

from __future__ import annotations

import hashlib
import multiprocessing
import os
import re
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nodeprint import files
from nodeprint.errors import NodeprintError, printable
from nodeprint.report import cluster, html, pdf, scale
from nodeprint.report.differences import Peers, chosen, since_former_job
from nodeprint.report.node import ClassKey, Shown, node_page, scale_ends
from nodeprint.report.pages import Method, NodePage
from nodeprint.report.scale import Ends, Scale
from nodeprint.verdict import outputs

__all__ = ["write"]

#: Nodes that are shown against their peers, cell by cell.
_FLAGGED = ("DEVIATES", "SUSPECT", "OUTSIDE LIMIT", "UNSTABLE")
#: The colour scale is that of so many nodes, spread evenly over the fleet: more would not change it.
_SCALE_NODES = 32
#: Nodes that one process takes at a time.
_CHUNK = 16


def write(campaign: Path, out: Path | None = None, nodes: Sequence[str] | None = None) -> list[Path]:
    """Write cluster.pdf, the same as cluster.html, and a PDF a node into `out`; returns their paths in this order.

    `campaign` holds verdict.json and nodes/<node>; `out` is its report folder by default. With `nodes` only those get a
    PDF of their own; by default all that have a folder. The same campaign gives the same bytes. Raises NodeprintError
    when there is no verdict, a node is not part of it, or a file cannot be written.
    """
    verdict = outputs.read(campaign)
    looks = cluster.marks(verdict)
    for node in nodes or ():
        if node not in looks:
            raise NodeprintError(
                f"node {printable(node)} is not part of this campaign",
                where=campaign / "verdict.json",
                advice="name one of its nodes",
            )
    # What is of a node that was refused or never measured must not be shown as its figures.
    folders = {
        node: path for node, path in _folders(campaign).items() if node in looks and looks[node].word != "NOT MEASURED"
    }
    within = cluster.with_pages(verdict)
    task = _Task(
        verdict=verdict,
        folders=folders,
        scales=_scales([folders[node] for node in looks if node in folders]),
        fleet=cluster.fleet_medians(verdict),
        peers=_peers(verdict, folders) if any(look.word in _FLAGGED for look in looks.values()) else Peers(),
        within=frozenset(within),
        own=frozenset(node for node in (looks if nodes is None else nodes) if node in folders or nodes is not None),
        out=out or campaign / "report",
    )
    printed = task.run(list(looks))
    pages = {one.page.node: one.page for one in printed if one.page is not None}
    # What the pages behind the cluster's say of the method is not said twice.
    told = {method for page in pages.values() for method in page.methods}
    methods = dict.fromkeys(method for one in printed for method in one.methods if method not in told)
    problems = {one.node: one.problems for one in printed}
    # The page of an only node says all that the cluster's would.
    alone = len(looks) == 1
    first = None if alone else cluster.cluster_page(verdict, list(methods), problems, len(task.own - task.within))
    shown = [pages[node] for node in within]
    with pdf.Printer() as printer:
        document = files.write(task.out / "cluster.pdf", printer.pdf(first, shown))
    single_file = files.write(task.out / "cluster.html", html.page(first, shown).encode())
    return [document, single_file, *(one.path for one in printed if one.path is not None)]


def file_name(node: str) -> str:
    """The PDF of `node`: its name, or one with a hash where the name cannot be a file's or would be cluster.pdf."""
    if re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,199}", node) and node != "cluster":
        return f"{node}.pdf"
    harmless = re.sub(r"[^A-Za-z0-9_-]", "_", node)[:80]
    return f"{harmless}-{hashlib.sha256(node.encode('utf-8', 'surrogatepass')).hexdigest()[:8]}.pdf"


@dataclass(frozen=True, slots=True)
class _Printed:
    """What came of a node: its file, its page where cluster.pdf needs it, and what the cluster's page says of it."""

    node: str
    path: Path | None
    page: NodePage | None
    methods: tuple[Method, ...]
    problems: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Task:
    """What every node's page needs. `within` are the nodes whose pages cluster.pdf holds, `own` those with a file."""

    verdict: Mapping[str, Any]
    folders: Mapping[str, Path]
    scales: Mapping[str, Scale]
    fleet: Mapping[ClassKey, float]
    peers: Peers
    within: frozenset[str]
    own: frozenset[str]
    out: Path

    def run(self, nodes: Sequence[str]) -> list[_Printed]:
        """Print all nodes, a large fleet on all CPUs that we may use."""
        chunks = [nodes[i : i + _CHUNK] for i in range(0, len(nodes), _CHUNK)]
        if len(chunks) < 2:
            return [one for chunk in chunks for one in self.chunk(chunk)]
        # Not forked: Typst's threads would be missing in the copy, which then waits for them for ever.
        spawn = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(min(len(chunks), len(os.sched_getaffinity(0))), spawn) as pool:
            return [one for printed in pool.map(self.chunk, chunks) for one in printed]

    def chunk(self, nodes: Sequence[str]) -> list[_Printed]:
        """Print some nodes, one after another."""
        with pdf.Printer() as printer:
            return [self._print(node, printer) for node in nodes]

    def _print(self, node: str, printer: pdf.Printer) -> _Printed:
        shown = Shown.of(self.folders[node]) if node in self.folders else Shown()
        flagged = self.verdict["nodes"][node].get("verdict") in _FLAGGED
        compared = self.peers.compare(node, _group(self.verdict, node), shown) if flagged else ()
        compared += since_former_job(shown)
        page = node_page(self.verdict, node, shown, self.scales, self.fleet, compared, node in self.within)
        path = files.write(self.out / file_name(node), printer.pdf(None, [page])) if node in self.own else None
        return _Printed(node, path, page if node in self.within else None, page.methods, page.problems)


def _folders(campaign: Path) -> dict[str, Path]:
    """The folders of the nodes, by name: a name of the verdict is looked up here, never made a path."""
    nodes = campaign / "nodes"
    return {path.name: path for path in nodes.iterdir() if path.is_dir()} if nodes.is_dir() else {}


def _group(verdict: Mapping[str, Any], node: str) -> str:
    return str(verdict["nodes"][node].get("group") or "")


def _scales(folders: Sequence[Path]) -> dict[str, Scale]:
    """The colour scale of each measurement, a node in memory at a time."""
    count = min(len(folders), _SCALE_NODES)
    ends: dict[str, list[Ends]] = {}
    for i in range(count):
        for name, values in scale_ends(Shown.of(folders[i * len(folders) // count], labelled=False)).items():
            ends.setdefault(name, []).append(values)
    return {name: scale.of_nodes(values) for name, values in ends.items()}


def _peers(verdict: Mapping[str, Any], folders: Mapping[str, Path]) -> Peers:
    """The nodes that flagged ones are held against."""
    peers = Peers()
    for node in chosen(verdict["nodes"]):
        if node in folders:
            peers.add(node, _group(verdict, node), Shown.of(folders[node]))
    return peers
