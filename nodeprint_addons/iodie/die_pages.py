"""Pages of the maps of I/O dies: a floor plan of each with its costs, the parts as tables, and the fleet's parts."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from nodeprint import files
from nodeprint.machine.topology.level_names import level_name
from nodeprint.report import pdf
from nodeprint.report.figures import render, style
from nodeprint.report.pages.blocks import (
    Block,
    Bullets,
    Document,
    Figures,
    Page,
    Picture,
    Section,
    Table,
    Text,
    sections,
)
from nodeprint.report.pages.tables import anchor
from nodeprint.settings import texts
from nodeprint_addons.iodie import die_figure, part_comparison, sentences
from nodeprint_addons.iodie.analysis import NodeDies
from nodeprint_addons.iodie.die import Die
from nodeprint_addons.iodie.iodie_texts import say

_WIDTH = 128.0


def write(nodes: Sequence[NodeDies], campaign: str, to: Path) -> Path:
    """Write the pages of all nodes as a PDF. Raises CannotWriteError."""
    origin = texts.say("origin", "simulated") if any(node.simulated for node in nodes) else ""
    document = Document(f"I/O dies, campaign {campaign}", campaign, origin, tuple(pages(nodes)))
    with pdf.Printer() as printer:
        return files.write(to, printer.pdf(document))


def pages(nodes: Sequence[NodeDies]) -> list[Page]:
    """A page for each node, and before them the comparison where there are several."""
    of_nodes = [_node(node) for node in nodes]
    compared = part_comparison.compare(nodes)
    if compared is None:
        return of_nodes
    lead = (say("page", "nodes", nodes=compared["node"].nunique()),)
    others = [f"{node}: not compared: {why}" for node, why in part_comparison.not_compared(nodes).items()]
    parts = sections(Section("Parts of the I/O dies", (Bullets(tuple(others)), _compared_parts(compared))))
    return [Page("cluster", "cluster", "I/O dies of all nodes", None, lead, parts), *of_nodes]


def _node(node: NodeDies) -> Page:
    lead = (say("page", "from_hops", measurement=node.measurement),)
    missing = Section("Missing data", (Bullets(node.missing),))
    each = [_die(die) for die in node.dies]
    return Page(node.node, anchor(node.node), f"{node.node}: I/O dies", None, lead, sections(missing, *each))


def _die(die: Die) -> Section:
    title = sentences.title(die)
    line_facts = (
        f"{len(die.clusters.label)} lines, {sentences.lines_sentence(die)}",
        *sentences.hidden_sentences(die.clusters),
    )
    where = Text(" ".join(map(sentences.sentence, line_facts)))
    parts = sentences.part_sentences(die)
    if die.sites is None:
        sentences_shown = Bullets(tuple(map(sentences.sentence, parts)))
        return Section(title, (where, Text(f"No map: {sentences.no_map_sentence(die)}"), sentences_shown))
    drawn = floorplan(die)
    facts = Bullets(tuple(map(sentences.sentence, (*sentences.map_sentences(die), *parts))))
    return Section(title, (where, Figures((drawn,) if drawn is not None else ()), facts, _ways(die)))


def floorplan(die: Die) -> Picture | None:
    """The sites of a die with their CCDs and memory, and the cost of each step; None with too many paths."""
    data = die_figure.of_die(die)
    if data is None or die.sites is None:
        return None
    of_figures = style.load()
    drawn = render.figure(die_figure.die, data, of_figures, _WIDTH)
    shape = f"as a {sentences.shape(die.geometry)}" if die.geometry is not None else "without a named geometry"
    caption = say("page", "caption", shape=shape, word=level_name(die.level))
    if die.agrees != 1:
        caption += say("page", "reflection")
    return Picture(f"iodie-socket{die.socket}", render.svg(drawn, of_figures), render.width_mm(drawn), caption)


def _ways(die: Die) -> Block:
    """The cost of the path between two sites."""
    assert die.to_lines is not None and die.to_cpus is not None
    to_lines, to_cpus = die.to_lines.between, die.to_cpus
    rows = tuple(
        (
            sentences.site_name(die, int(p)),
            sentences.site_name(die, int(q)),
            sentences.interval(to_lines.ns[i], to_lines.half[i]),
            sentences.interval(to_cpus.ns[i], to_cpus.half[i]),
        )
        for i, (p, q) in enumerate(to_lines.ends)
    )
    return Table(("from", "to", "way to a line", "way from CPU to CPU"), rows, "llrr")


def _compared_parts(compared: pd.DataFrame) -> Block:
    """Each part over all nodes."""
    rows = []
    for name, part in compared.groupby("name", sort=False):
        value, node, unit = part["value"].to_numpy(), part["node"].tolist(), part["unit"].iloc[0]
        median, lowest, highest = (
            sentences.in_unit(unit, float(figure)) for figure in (np.median(value), value.min(), value.max())
        )
        rows.append((str(name), median, lowest, node[value.argmin()], highest, node[value.argmax()]))
    return Table(("part", "median", "lowest", "on", "highest", "on"), tuple(rows), "lrrlrl", 0)
