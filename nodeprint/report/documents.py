"""A campaign's report: cluster.pdf, cluster.html and a PDF a node."""

from __future__ import annotations

import gc
import hashlib
import multiprocessing
import os
import re
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from nodeprint import discover, files, outcomes
from nodeprint.errors import NodeprintError, printable
from nodeprint.outcomes import Outcome
from nodeprint.report import (
    cluster,
    explorer,
    exports,
    fleet_resolution,
    fleet_verdict,
    formatting,
    html,
    node_table,
    pdf,
    rules,
    scale,
    site_branding,
)
from nodeprint.report.drawing import Pixels
from nodeprint.report.fleet_figures import Overview
from nodeprint.report.methods import methods as methods_of
from nodeprint.report.node import node_page, origin
from nodeprint.report.pages import FactList, Method, Page, Section, Site, sections
from nodeprint.report.peers import Peers, chosen, since_former_job
from nodeprint.report.pseudonyms import NONE, Pseudonyms
from nodeprint.report.scale import Ends, Scale
from nodeprint.report.shown import ClassKey, Shown, scale_ends
from nodeprint.verdict import outputs

__all__ = ["write"]

#: Fleets up to this size have a file of every node; larger ones only of those with something found.
MOST_FILES = 128
#: The colour scale is that of so many nodes, spread evenly over the fleet: more would not change it.
_SCALE_NODES = 32
#: Nodes that one process takes at a time.
_CHUNK = 16


def write(
    campaign: Path,
    out: Path | None = None,
    nodes: Sequence[str] | None = None,
    *,
    figures: bool = False,
    pseudonyms: bool = False,
) -> list[Path]:
    """Write cluster.pdf, the same as cluster.html, and a PDF a node into `out`; returns their paths in this order.

    `campaign` holds verdict.json and nodes/<node>; `out` is its report folder by default. With `nodes` only those get a
    PDF of their own; by default all that have a folder, in a fleet of more than MOST_FILES those with something found.
    With `figures` each figure of cluster.pdf is written as files, too. With `pseudonyms` nodes and racks are called by
    numbers, in a folder of its own by default (`published`), and pseudonyms.tsv beside that folder says which is which.
    The same campaign gives the same bytes. Raises NodeprintError when there is no verdict, a node is not part of it, or
    a file cannot be written.
    """
    verdict = outputs.read(campaign)
    called = Pseudonyms.of(verdict) if pseudonyms else NONE
    task = prepared(campaign, verdict, out or campaign / ("published" if pseudonyms else "report"), nodes, called)
    pages = document(task)
    if pseudonyms:
        files.write(task.out.parent / "pseudonyms.tsv", called.table())
    with pdf.Printer() as printer:
        document_path = files.write(task.out / "cluster.pdf", printer.pdf(pages.shown, task.site))
    text = html.page(pages.shown, task.site, _explored(task, pages.printed))
    single_file = files.write(task.out / "cluster.html", text.encode())
    extra = exports.write(pages.shown, task.out / "figures") if figures else []
    return [document_path, single_file, *(one.path for one in pages.printed if one.path is not None), *extra]


class _Document(msgspec.Struct, frozen=True):
    """The pages of cluster.pdf in order, and what came of each node."""

    shown: list[Page]
    printed: list[_Printed]


def document(task: Task) -> _Document:
    """Print every node of a task, and put together the pages of cluster.pdf: the cluster's, those of nodes with
    something found, and the method."""
    verdict = task.verdict
    looks, within = fleet_verdict.marks(verdict), fleet_verdict.with_pages(verdict)
    printed = task.run(list(looks))
    pages = {one.node: one.page for one in printed if one.page is not None}
    methods = tuple(dict.fromkeys(method for one in printed for method in one.methods))
    problems = {one.node: one.problems for one in printed}
    # The page of an only node says all that the cluster's would.
    first = []
    if len(looks) != 1:
        maps = {one.node: one.map for one in printed if one.map is not None}
        started = {one.node: one.started for one in printed if one.started}
        origins = [one.origin for one in printed if one.origin]
        overview = Overview(started, maps, task.peers.first(), task.switches, origins[0] if origins else "")
        first.append(cluster.cluster_page(verdict, problems, len(task.own - task.within), overview))
    shown = [*first, *(pages[node] for node in within)]
    return _Document([*shown, method_page(shown[0], verdict, methods)], printed)


def _explored(task: Task, printed: Sequence[_Printed]) -> str:
    """The data of the interactive part of cluster.html."""
    rows, columns = node_table.explorer_rows(task.verdict)
    return explorer.document(rows, columns, {one.node: one.matrices for one in printed}, task.scales)


def method_page(first: Page, verdict: Mapping[str, Any], methods: Sequence[Method]) -> Page:
    """The last page: how everything was measured and judged, with the statistics that the other pages leave out."""
    versions = formatting.facts(verdict.get("versions", {}))
    return replace(
        first, title="Method", mark=None, lead=(), counts=(),
        sections=sections(
            fleet_resolution.statistics(verdict) if first.subject == "cluster" else None,
            Section("How it was measured", tuple(methods)),
            Section("Versions", (FactList(versions, 2),)),
            Section("Reading and citing this report", rules.blocks()),
        ),
    )  # fmt: skip


def prepared(
    campaign: Path,
    verdict: Mapping[str, Any],
    out: Path,
    nodes: Sequence[str] | None = None,
    called: Pseudonyms = NONE,
) -> Task:
    """What the page of every node needs, by the names that nodes are `called`.

    Raises NodeprintError where one of `nodes` is not part of the campaign.
    """
    looks = fleet_verdict.marks(verdict)
    for node in nodes or ():
        if node not in looks:
            raise NodeprintError(
                f"node {printable(node)} is not part of this campaign",
                where=campaign / "verdict.json",
                advice="name one of its nodes",
            )
    found = {called.text(node): path for node, path in _folders(campaign).items()}
    verdict = called.verdict(verdict)
    nodes = None if nodes is None else [called.text(node) for node in nodes]
    looks = fleet_verdict.marks(verdict)
    # What is of a node that was refused or never measured must not be shown as its figures.
    folders = {node: path for node, path in found.items() if node in looks and looks[node].word != "NOT MEASURED"}
    return Task(
        verdict=verdict,
        folders=folders,
        site=Site() if called.names else site_branding.of(campaign),
        called=called,
        switches=_switches(campaign, called),
        scales=_scales([folders[node] for node in looks if node in folders]),
        fleet=fleet_verdict.fleet_medians(verdict),
        peers=_peers(verdict, folders) if len(folders) > 2 else Peers(),
        within=frozenset(fleet_verdict.with_pages(verdict)),
        own=frozenset(node for node in _own(looks, nodes) if node in folders or nodes is not None),
        explored=frozenset(
            sorted(folders, key=lambda node: (looks[node].quiet, formatting.natural(node)))[: explorer.MOST_NODES]
        ),
        out=out,
    )


def _own(looks: Mapping[str, Outcome], nodes: Sequence[str] | None) -> Sequence[str]:
    """The nodes that get a file of their own: those asked for, all, or of a large fleet those with something found."""
    if nodes is not None:
        return nodes
    return [node for node, look in looks.items() if len(looks) <= MOST_FILES or not look.quiet]


def file_name(node: str) -> str:
    """The PDF of `node`: its name, or one with a hash where the name cannot be a file's or would be cluster.pdf."""
    if re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,199}", node) and node != "cluster":
        return f"{node}.pdf"
    harmless = re.sub(r"[^A-Za-z0-9_-]", "_", node)[:80]
    return f"{harmless}-{hashlib.sha256(node.encode('utf-8', 'surrogatepass')).hexdigest()[:8]}.pdf"


class _Printed(msgspec.Struct, frozen=True):
    """What came of a node: its file, its page where cluster.pdf needs it, and what the cluster's page says of it: when
    its first run began (ISO 8601), its difference map, and whether it was simulated or imported."""

    node: str
    path: Path | None
    page: Page | None
    methods: tuple[Method, ...]
    problems: tuple[str, ...]
    started: str
    map: Pixels | None
    origin: str
    matrices: tuple[explorer.Encoded, ...]


class Task(msgspec.Struct, frozen=True):
    """What every node's page needs. `within` are the nodes whose pages cluster.pdf holds, `own` those with a file,
    `explored` those whose matrices cluster.html holds."""

    verdict: Mapping[str, Any]
    folders: Mapping[str, Path]
    site: Site
    called: Pseudonyms
    switches: Mapping[str, str]
    scales: Mapping[str, Scale]
    fleet: Mapping[ClassKey, float]
    peers: Peers
    within: frozenset[str]
    own: frozenset[str]
    explored: frozenset[str]
    out: Path

    def run(self, nodes: Sequence[str]) -> list[_Printed]:
        """Print all nodes, a large fleet on all CPUs that we may use."""
        chunks = [nodes[i : i + _CHUNK] for i in range(0, len(nodes), _CHUNK)]
        if len(chunks) < 2:
            return [one for chunk in chunks for one in self.chunk(chunk)]
        # Not forked: Typst's threads would be missing in the copy, which then waits for them for ever.
        spawn = multiprocessing.get_context("spawn")
        count = min(len(chunks), len(os.sched_getaffinity(0)))
        as_here = gc.get_threshold()
        with ProcessPoolExecutor(count, spawn, initializer=gc.set_threshold, initargs=as_here) as pool:
            return [one for printed in pool.map(self.chunk, chunks) for one in printed]

    def chunk(self, nodes: Sequence[str]) -> list[_Printed]:
        """Print some nodes, one after another."""
        with pdf.Printer() as printer:
            return [self._print(node, printer) for node in nodes]

    def _print(self, node: str, printer: pdf.Printer) -> _Printed:
        shown = self.called.shown(node, Shown.of(self.folders[node])) if node in self.folders else Shown()
        group = _group(self.verdict, node)
        methods, started = methods_of(shown, self.verdict), _started(shown)
        page, path = None, None
        if node in self.own or node in self.within:
            flagged = outcomes.of(str(self.verdict["nodes"][node].get("verdict"))).accuses
            maps = self.peers.compare(node, group, shown) if flagged else ()
            maps += since_former_job(shown)
            page = node_page(
                self.verdict, node, shown, self.scales, self.fleet, self.peers, maps, node in self.within, self.site
            )
        if page is not None and node in self.own:
            document = printer.pdf([page, method_page(page, self.verdict, methods)], self.site)
            path = files.write(self.out / file_name(node), document)
        inside = page if node in self.within else None
        small = self.peers.map_of(node, group, shown)
        matrices = explorer.encoded(shown) if node in self.explored else ()
        return _Printed(
            node, path, inside, methods, shown.problems, started, small, origin(self.verdict, shown.job), matrices
        )


def _started(shown: Shown) -> str:
    """When the first run that is shown began."""
    job = shown.job
    times = [str(run["start_time"]) for one in (job.measured.values() if job is not None else ()) for run in one.runs]
    return min(filter(None, times), default="")


def _folders(campaign: Path) -> dict[str, Path]:
    """The folders of the nodes, by name: a name of the verdict is looked up here, never made a path."""
    nodes = campaign / "nodes"
    return {path.name: path for path in nodes.iterdir() if path.is_dir()} if nodes.is_dir() else {}


def _switches(campaign: Path, called: Pseudonyms) -> dict[str, str]:
    """The leaf switch of each node by the campaign's sheet; none where names are not for publication."""
    sheet = campaign / "nodes.tsv"
    if called.names or not sheet.is_file():
        return {}
    return {node.node: node.switch for node in discover.read_sheet(sheet) if node.switch}


def _group(verdict: Mapping[str, Any], node: str) -> str:
    return str(verdict["nodes"][node].get("group") or "")


def _scales(folders: Sequence[Path]) -> dict[str, Scale]:
    """The colour scale of each measurement, a node in memory at a time."""
    count = min(len(folders), _SCALE_NODES)
    ends: dict[str, list[Ends]] = {}
    for i in range(count):
        for name, values in scale_ends(Shown.of(folders[i * len(folders) // count])).items():
            ends.setdefault(name, []).append(values)
    return {name: scale.of_nodes(values) for name, values in ends.items()}


def _peers(verdict: Mapping[str, Any], folders: Mapping[str, Path]) -> Peers:
    """The nodes that flagged ones are held against."""
    peers = Peers()
    for node in chosen(verdict["nodes"]):
        if node in folders:
            peers.add(node, _group(verdict, node), Shown.of(folders[node]))
    return peers
