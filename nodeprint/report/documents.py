"""A campaign's report: cluster.pdf, cluster.html with everything, tables as CSV, a PDF of each node with findings."""

from __future__ import annotations

import gc
import math
import multiprocessing
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path

import msgspec
import pandas as pd
from msgspec.structs import replace

from nodeprint import files
from nodeprint.campaign import node_lists, node_sheet
from nodeprint.data.store import packing
from nodeprint.data.store.packed import FOLDER, PackedFleet
from nodeprint.errors import CannotWriteError, NodeprintError, unreadable
from nodeprint.judge.outcome import Outcome
from nodeprint.processes import mapped
from nodeprint.report import check_scripts, explorer, html, names, pdf, verdict_files
from nodeprint.report.explorer import Encoded
from nodeprint.report.figures import render
from nodeprint.report.pages import cluster, method
from nodeprint.report.pages import node as node_pages
from nodeprint.report.pages.blocks import Document, Page, Reference, SiteTexts, Table, word
from nodeprint.report.pages.judged_campaign import Campaign, FigureFiles, OverTime
from nodeprint.report.pages.method import How
from nodeprint.report.pages.tables import appendix
from nodeprint.report.pseudonyms import Pseudonyms
from nodeprint.settings import config
from nodeprint.settings.config_file import Site

#: The most pages of cluster.pdf, of a node's PDF, and of the PDF of a SAME node.
MOST_PAGES, MOST_OF_NODE, MOST_OF_SAME = 6, 4, 1
#: Nodes whose pages cluster.html holds.
_MOST_IN_HTML = 2
#: Nodes without a finding have a history only in fleets up to this size.
_MOST_OVER_TIME = 64
#: A function that returns the results of other campaigns for some nodes.
OfNodes = Callable[[Sequence[str]], Mapping[str, OverTime]]
_SITE_TEXTS = ("contact", "contract", "customer", "supplier", "system", "place")
#: Nodes per task of a process, and the number of nodes that does not justify more processes.
_CHUNK, _FEW = 8, 3


def write(
    campaign: Path,
    out: Path | None = None,
    *,
    nodes: Sequence[str] | None = None,
    of_nodes: bool = True,
    figures: bool = False,
    figure_width: float = 0.0,
    figure_style: Path | None = None,
    pseudonyms: bool = False,
    over_time: OfNodes | None = None,
) -> list[Path]:
    """Write the report of a campaign into `out`; return the paths of its files.

    In this order: cluster.pdf, cluster.html with all tables and figures, the tables as CSV, and a PDF of each node with
    findings. `campaign` holds verdict.json and nodes/<node>; `out` is its report directory by default. The file
    cluster.pdf has at most MOST_PAGES pages; for a single node it is the node report.

    With `nodes`, only the PDFs of these nodes are written, whatever their outcomes. Without `of_nodes` no node gets a
    PDF. `figures` saves each figure of every node as SVG, PDF and CSV in the
    directory `figures`. Figures are `figure_width` mm wide (0: a column or a page); the matplotlib style `figure_style`
    extends the report's.

    `pseudonyms` replaces the names of nodes and racks by numbers. The report then has its own directory by default
    (`published`), and pseudonyms.tsv in the campaign's directory maps numbers to names. `over_time` returns the results
    of other campaigns for nodes with a node report.

    The output is deterministic. Raises NodeprintError if there is no verdict, a node is not part of it, or a file
    cannot be written.
    """
    if figures and figure_width and not render.LEAST_MM <= figure_width <= render.MOST_MM:  # neither does nan
        advice = f"specify {render.LEAST_MM} to {render.MOST_MM}, or 0 for a column or a page"
        raise NodeprintError(f"'{figure_width:g}' is not a width of figures in mm", key="--width", advice=advice)
    target = out or campaign / ("published" if pseudonyms else "report")
    if not out:
        files.refuse_links(target, target / "tables", target / "figures")
    saved_to = FigureFiles(target / "figures", figure_width, figure_style) if figures else None
    if saved_to is not None:
        saved_to.in_style  # noqa: B018 (raises if the style is unusable, before drawing)
    own = tuple(nodes) if nodes is not None else None if of_nodes else ()
    task = Task(campaign, target, own, saved_to, pseudonyms, alone=nodes is not None)
    if nodes is not None and not nodes:
        raise NodeprintError("names no node", key="--nodes", advice="name one or several, as in cn[001-004],gpu7")
    if unknown := [node for node in nodes or () if node not in task.names]:
        raise node_lists.unknown_node(unknown[0], task.names, where=campaign / "verdict.json")
    printed = task.run(over_time)
    paths = [path for node_files in printed for path in node_files.paths]
    if task.alone:
        return paths
    with pdf.Printer() as printer:
        first, content = task.whole(printed, printer)
    document_path = files.write(task.out / "cluster.pdf", content)
    explored = explorer.document(task.source, {of.node: of.matrices for of in printed if of.matrices})
    single_file = files.write(task.out / "cluster.html", html.page(first, explored).encode())
    tables = task.tables(first)
    saved = sorted((task.out / "figures" / "cluster").glob("*")) if figures else []
    return [document_path, single_file, *tables, *paths, *saved]


def site_texts(campaign: Path) -> SiteTexts:
    """The logo and texts of `site` in the configuration, if any. Raises NodeprintError for an unusable logo."""
    path = campaign / "config.yaml"
    site = config.kept(campaign).site if path.is_file() else Site()
    texts, logo = {key: getattr(site, key) for key in _SITE_TEXTS}, Path(site.logo)
    if not site.logo:
        return SiteTexts(None, **texts)
    try:
        content = logo.read_bytes()
    except OSError as error:
        raise unreadable(logo, error) from error
    if not content.startswith(b"\x89PNG") and b"<svg" not in content[:2000]:
        advice = f"name a PNG or SVG file at site.logo of {path}"
        raise NodeprintError("is neither PNG nor SVG", where=logo, key="site.logo", advice=advice)
    return SiteTexts(content, **texts)


def file_name(node: str) -> str:
    """The PDF of a node."""
    return f"{names.file_stem(node)}.pdf"


class Printed(msgspec.Struct, frozen=True):
    """The output of a node: files, page for the cluster's documents, its measurement, and matrices for the explorer."""

    node: str
    paths: tuple[Path, ...]
    page: Page | None
    methods: How
    matrices: tuple[Encoded, ...]


class Task(msgspec.Struct, frozen=True, dict=True):
    """The work of one call, which every process reads for itself.

    `nodes` get files of their own (None: the default selection); with `alone` nothing else is written.
    """

    folder: Path
    out: Path
    nodes: tuple[str, ...] | None
    figures: FigureFiles | None
    pseudonyms: bool
    alone: bool = False
    over_time: dict[str, OverTime] = {}

    @cached_property
    def called(self) -> Pseudonyms:
        """The pseudonyms of nodes; none by default."""
        return Pseudonyms.of(verdict_files.read(self.folder)) if self.pseudonyms else Pseudonyms()

    @cached_property
    def source(self) -> Campaign:
        """The campaign as the report shows it."""
        verdict = verdict_files.read(self.folder)
        sheet = self.folder / "nodes.tsv"
        if sheet.exists() or (self.folder / FOLDER / "index.json").exists():
            fleet = packing.pack(self.folder)
        else:  # a verdict without measured data
            fleet = PackedFleet(verdict.campaign, verdict.simulated, (), ())
        rows = node_sheet.read_sheet(sheet) if sheet.is_file() and not self.pseudonyms else []
        switches = {row.node: row.switch for row in rows if row.switch}
        return Campaign(
            self.called.verdict(verdict),
            self.called.fleet(fleet),
            None if self.pseudonyms else self.folder,
            SiteTexts() if self.pseudonyms else site_texts(self.folder),
            switches,
            self.figures,
            self.over_time,
            tuple(row.node for row in rows),
        )

    @cached_property
    def names(self) -> list[str]:
        """All nodes, by the names that the campaign has."""
        return list(verdict_files.read(self.folder).nodes)

    @cached_property
    def own(self) -> frozenset[str]:
        """The nodes with files: requested, with findings (of several nodes), or if figures are saved, measured."""
        if self.nodes is not None:
            return frozenset(self.called.text(node) for node in self.nodes)
        nodes = self.source.verdict.nodes
        if self.figures is not None:
            return frozenset(name for name, node in nodes.items() if node.outcome.entry.measured)
        return frozenset(name for name, node in nodes.items() if node.counted) if len(nodes) > 1 else frozenset()

    @cached_property
    def within(self) -> tuple[str, ...]:
        """The nodes whose pages the cluster's documents hold."""
        nodes = self.source.verdict.nodes
        if self.alone:
            return ()
        changed = [name for name in nodes if name in self.over_time and self.over_time[name].has_changed]
        shown = dict.fromkeys((*cluster.shown_nodes(nodes), *changed))
        return tuple(nodes) if len(nodes) == 1 else tuple(shown)[:_MOST_IN_HTML]

    @cached_property
    def paged(self) -> frozenset[str]:
        """The nodes that have a page, here or in a file of their own."""
        return self.own.union(self.within)

    @cached_property
    def explored(self) -> frozenset[str]:
        """The nodes whose matrices the explorer has."""
        return frozenset() if self.alone else frozenset(explorer.explored(self.source))

    def run(self, over_time: OfNodes | None) -> list[Printed]:
        """Print all nodes that have anything to be printed, more than a few on all CPUs that we may use."""
        if self.pseudonyms:  # in the campaign, which is not published: beside the pages it would be copied with them
            try:
                files.write(self.folder / "pseudonyms.tsv", self.called.table())
            except CannotWriteError as error:
                advice = "make the campaign writable or work in a copy of it, as this says which node is which"
                raise CannotWriteError(error.problem, advice=advice) from error
        if over_time is not None:
            nodes = self.source.verdict.nodes
            few = len(nodes) <= _MOST_OVER_TIME and not self.alone
            self.over_time.update(over_time([node for node in nodes if few or node in self.own]))
        wanted = [n for n in self.source.verdict.nodes if n in self.paged or n in self.explored]
        cpus = len(os.sched_getaffinity(0))
        size = min(_CHUNK, math.ceil(len(wanted) / cpus)) if len(wanted) > _FEW else _CHUNK
        chunks = [wanted[i : i + size] for i in range(0, len(wanted), size)]
        count = min(len(chunks), cpus)
        if count < 2:
            return [document for chunk in chunks for document in self.chunk(chunk)]
        # Not forked: the copy would lack Typst's threads and wait for them forever.
        spawn = multiprocessing.get_context("spawn")
        printed = mapped(_chunk, chunks, count, spawn, initializer=_begin, initargs=(self,))
        return [node_files for of_chunk in printed for node_files in of_chunk]

    def chunk(self, nodes: Sequence[str]) -> list[Printed]:
        """Print some nodes, one after another."""
        self.source  # noqa: B018 (read before what stays is left out of the collections)
        with pdf.Printer() as printer, _few_collected():
            return [self._print(node, printer) for node in nodes]

    def _print(self, node: str, printer: pdf.Printer) -> Printed:
        source, paths = self.source, []
        jobs = source.jobs(node)
        methods = () if self.alone else method.of_jobs(jobs)
        complete = node in self.within or self.figures is not None
        page = node_pages.page(source, node, jobs, complete=complete) if node in self.paged else None
        if page is not None and node in self.own:
            title = f"nodeprint, campaign {source.verdict.campaign}, {node}"
            document = Document(title, source.verdict.campaign, source.origin, (page,), source.site)
            most = MOST_OF_SAME if source.verdict.nodes[node].outcome is Outcome.SAME else MOST_OF_NODE
            paths.append(files.write(self.out / file_name(node), printer.fewest(document.printed, most)))
            if self.figures:
                paths += sorted((self.out / "figures" / names.file_stem(node)).glob("*"))
        findings = check_scripts.again(jobs, source.verdict.nodes[node].counted)
        if page is not None and not all(finding.why_not for finding in findings):
            disturbed = check_scripts.disturbed_percent(self.folder)
            script = check_scripts.script(node, findings, source.origin, disturbed)
            paths.append(files.write(self.out / check_scripts.file_name(node), script))
        matrices = explorer.encoded(source, node) if node in self.explored else ()
        return Printed(node, tuple(paths), page if node in self.within else None, methods, matrices)

    def whole(self, printed: Sequence[Printed], printer: pdf.Printer) -> tuple[Document, bytes]:
        """Return the complete cluster document for HTML, and its PDF with as many findings as fit on MOST_PAGES."""
        for most in range(cluster.MOST_FINDINGS, -1, -1):
            document = self.first(printed, most)
            content = printer.fewest(document.printed, MOST_PAGES if not most else 0)
            if pdf.pages_of(content) <= MOST_PAGES:
                break
        return document, content

    def first(self, printed: Sequence[Printed], most_findings: int = cluster.MOST_FINDINGS) -> Document:
        """The document of the cluster: its page (unless a node is alone), those of some nodes, and the method."""
        source = self.source
        pages = {node_files.node: node_files.page for node_files in printed if node_files.page is not None}
        links = {name: Reference(name, file=file_name(name)) for name in self.own}
        alone = len(source.verdict.nodes) == 1
        ahead = [] if alone else [cluster.page(source, links, most_findings)]
        how = method.page(source, [node_files.methods for node_files in printed])
        of_nodes = [pages[node] for node in self.within if node in pages]
        if not alone:  # paper has them as files of their own
            of_nodes = [replace(page, sections=appendix(*page.sections)) for page in of_nodes]
        title = f"nodeprint, campaign {source.verdict.campaign}"
        return Document(title, source.verdict.campaign, source.origin, (*ahead, *of_nodes, how), source.site)

    def tables(self, document: Document) -> list[Path]:
        """Write the tables of the appendix as CSV into `tables`; returns their paths."""
        out = []
        for component in (of for page in document.pages if page.subject == "cluster" for of in page.sections):
            if component.appendix:
                for number, table in enumerate((block for block in component.blocks if isinstance(block, Table)), 1):
                    name = component.anchor + (f"-{number}" if number > 1 else "")
                    rows = pd.DataFrame([list(map(word, row)) for row in table.rows])
                    as_csv = rows.to_csv(index=False, header=list(table.header), lineterminator="\n")
                    out.append(files.write(self.out / "tables" / f"{name}.csv", as_csv))
        return out


@contextmanager
def _few_collected() -> Iterator[None]:
    """Exclude the existing objects from garbage collection.

    Figures contain many small reference cycles. Each collection would also scan the campaign and all modules, a sixth
    of a node's time.
    """
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


_task: Task | None = None


def _begin(task: Task) -> None:
    global _task  # noqa: PLW0603 (what a process of the pool works on)
    _task = task


def _chunk(nodes: Sequence[str]) -> list[Printed]:
    assert _task is not None
    return _task.chunk(nodes)
