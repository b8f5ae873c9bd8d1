"""Pages of the maps of I/O dies: a floor plan of each with its costs, the parts as tables, and the fleet's parts."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from nodeprint import dies, files
from nodeprint.iodie import listing, sentences
from nodeprint.iodie.analysis import NodeDies
from nodeprint.iodie.campaign_dies import Found
from nodeprint.iodie.die import Die
from nodeprint.iodie.part_comparison import WORDS, Comparison
from nodeprint.report import pdf
from nodeprint.report.drawing import ALARM, HAIR, INK, QUIET, SMALL, WASH, Drawing
from nodeprint.report.old_figures import PAGE, Figure, finished
from nodeprint.report.pages import Block, Bullets, Figures, Page, Section, Table, Text, sections

#: In mm: a site, a CCD beside it, what is between sites across and along, the margin above.
_SITE, _END, _ACROSS, _ALONG, _TOP = (34.0, 15.0), (22.0, 6.5), 24.0, 17.0, 3.0
#: So many sites have room for a line between every two.
_MOST_LINKED = 6
_ORIGIN = "SIMULATED, not a measurement"


def write(found: Found, campaign: str, to: Path) -> Path:
    """Write the pages of all nodes as one PDF. Raises CannotWriteError."""
    with pdf.Printer() as printer:
        return files.write(to, printer.pdf(pages(found, campaign)))


def pages(found: Found, campaign: str) -> list[Page]:
    """A page for each node, and before them the comparison where there are several."""
    out = [_node(node, campaign) for node in found.nodes]
    if found.fleet is not None:
        origin = _ORIGIN if found.simulated else ""
        lead = (f"{len(found.fleet.nodes)} nodes with the same dies, part by part.",)
        blocks = sections(Section("Parts of the I/O dies", tuple(_fleet(found.fleet))))
        out.insert(0, Page(campaign, "cluster", "I/O dies of all nodes", origin, None, lead, blocks))
    return out


def _node(node: NodeDies, campaign: str) -> Page:
    lead = (f"What its I/O dies look like from the hops of {node.measurement} alone (docs/iodie.md).",)
    missing = Section("Missing data", (Bullets(node.missing),))
    each = [_die(die) for die in node.dies]
    origin = _ORIGIN if node.simulated else ""
    return Page(campaign, node.node, f"{node.node}: I/O dies", origin, None, lead, sections(missing, *each))


def _die(die: Die) -> Section:
    title = sentences.title(die)
    where = Text(f"{len(die.clusters.label)} lines, {sentences.lines_sentence(die)}.")
    if die.sites is None:
        said = (
            Text(f"No map: {sentences.no_map_sentence(die)}"),
            Bullets(tuple(map(sentences.sentence, sentences.part_sentences(die)))),
        )
        return Section(title, (where, *said), together=True)
    drawn = (Figures((floorplan(die),)),) if die.geometry is not None or die.sites.count <= _MOST_LINKED else ()
    facts = Bullets(tuple(map(sentences.sentence, (*sentences.map_sentences(die), *sentences.part_sentences(die)))))
    return Section(title, (where, *drawn, facts, _ways(die)), together=True)


def _ways(die: Die) -> Block:
    """What the way between two sites adds."""
    assert die.distances is not None
    found = die.distances
    rows = tuple(
        (
            sentences.site_name(die, int(p)), sentences.site_name(die, int(q)),
            sentences.interval(found.line[i], found.line_half[i]),
            sentences.interval(found.pair[i], found.pair_half[i]),
        )
        for i, (p, q) in enumerate(found.ends)
    )  # fmt: skip
    return Table(("from", "to", "way to a line", "way from CPU to CPU"), rows, align="llrr", dense=True)


def _fleet(found: Comparison) -> Sequence[Block]:
    header = ("part", "median", "lowest", "highest", "finding")
    rows = tuple(
        (
            part.name, sentences.in_unit(part, float(np.median(part.value))),
            sentences.in_unit(part, float(part.value.min())), sentences.in_unit(part, float(part.value.max())),
            ", ".join(part.findings),
        )
        for part in found.parts
    )  # fmt: skip
    marked = tuple(i for i, part in enumerate(found.parts) if part.findings)
    others = tuple(f"{node}: not compared: {reason}" for node, reason in found.others.items())
    said = tuple(f"{words}." for words in sentences.verdict_sentences(found))  # they begin with a node's name
    return Bullets(others), Table(header, rows, marked, "lrrrl", 0, True), Bullets(said)


# --- the floor plan ---


def floorplan(die: Die) -> Figure:
    """The sites of a die with their CCDs and memory, and what the way from site to site adds to the way to a line.

    Where a geometry is named sites stand as it has them, else as in a table of two columns with every way die_maps.
    """
    assert die.sites is not None and die.distances is not None
    places = _places(die)
    rows = 1 + max(row for row, _ in places.values())
    of_site = [sentences.ends_of(die, site) for site in range(die.sites.count)]
    left = max((len(of_site[s]) for s, (_, c) in places.items() if c == 0), default=0)
    height = max(_SITE[1], left * (_END[1] + 1)) + _ALONG
    width = 2 * (_END[0] + 4) + 2 * _SITE[0] + _ACROSS
    drawing = Drawing(min(width, PAGE), _TOP + rows * height - _ALONG + 4)
    corner = {
        s: (_END[0] + 4 + column * (_SITE[0] + _ACROSS), _TOP + row * height + (height - _ALONG - _SITE[1]) / 2)
        for s, (row, column) in places.items()
    }
    for i, (p, q) in enumerate(die.distances.ends.tolist()):
        if _adjacent(die, p, q):
            _link(drawing, corner[p], corner[q], sentences.cost(die.distances.line[i], die.distances.line_half[i]))
    ns = {int(end): (value, half) for end, value, half, _ in zip(*die.end_ns, strict=True)}
    odd = dict(die.odd_ends)
    for site, (x, y) in corner.items():
        _site(drawing, die, site, x, y)
        outside = x - _END[0] - 2 if places[site][1] == 0 else x + _SITE[0] + 2
        top = y + _SITE[1] / 2 - len(of_site[site]) * (_END[1] + 1) / 2
        for i, end in enumerate(of_site[site]):
            at = top + i * (_END[1] + 1)
            drawing.rect(outside, at, *_END, fill="#ffffff", stroke=ALARM if end in odd else INK)
            drawing.text(outside + 1, at + 2, f"{WORDS[die.frame.level]} {end}", size=SMALL)
            value, half = ns[end]
            drawing.text(outside + 1, at + 4.6, f"{value:.1f} ± {half:.1f} ns", size=SMALL, fill=QUIET)
            if end in odd:
                drawing.triangle(outside + _END[0] - 2, at + 2.2)
    shape = f"as a {sentences.shape(die.geometry)}" if die.geometry is not None else "without a named geometry"
    anchored = "" if die.agrees == 1 else " The plan holds up to reflection and rotation."
    ways = zip(die.distances.ends.tolist(), die.distances.line.tolist(), die.distances.line_half.tolist(), strict=True)
    columns = [(*pair, value, half) for pair, value, half in ways]
    return finished(
        drawing, f"iodie-socket{die.frame.socket}",
        f"The I/O die {shape}: ns (with half of the 95 % interval) that a step adds on the way to a line; below a "
        f"{WORDS[die.frame.level]} its own part of a hop.{anchored}",
        f"Floor plan of an I/O die with {die.sites.count} sites.",
        dict(zip(("from", "to", "ns", "half_ns"), zip(*columns, strict=True), strict=True)),
    )  # fmt: skip


def _places(die: Die) -> dict[int, tuple[int, int]]:
    """Row and column of each site."""
    assert die.sites is not None
    if die.geometry is None or die.geometry.kind == "crossbar":
        return {site: (site // 2, site % 2) for site in range(die.sites.count)}
    rows = listing.grid(die.geometry)
    return {site: (r, c) for r, row in enumerate(rows) for c, site in enumerate(row) if site is not None}


def _adjacent(die: Die, p: int, q: int) -> bool:
    """Whether the way between two sites is drawn: a single step of the geometry, or any without one."""
    found = die.geometry
    if found is None:
        return True
    return bool(dies.steps(found.kind, found.sites)[found.site[p], found.site[q]] == 1)


def _site(drawing: Drawing, die: Die, site: int, x: float, y: float) -> None:
    """A site of the I/O die: its name, and how many lines live there as a bar."""
    assert die.sites is not None
    width, height = _SITE
    share, half = die.share(site)
    drawing.rect(x, y, width, height, fill=WASH, stroke=INK, line=0.25)
    drawing.text(x + width / 2, y + 3, sentences.site_name(die, site), anchor="middle", bold=True)
    drawing.text(x + width / 2, y + 7, f"{100 * share:.0f} ± {100 * half:.0f} % of lines", size=SMALL, anchor="middle")
    drawing.rect(x + 3, y + 10, width - 6, 2.4, fill="#ffffff", stroke=HAIR)
    drawing.rect(x + 3, y + 10, (width - 6) * min(share, 1), 2.4, fill=QUIET)


def _link(drawing: Drawing, one: tuple[float, float], other: tuple[float, float], cost: str) -> None:
    """A way between the middles of two sites, and what it adds in its middle, beside the sites that it passes."""
    (x1, y1), (x2, y2) = ((x + _SITE[0] / 2, y + _SITE[1] / 2) for x, y in (one, other))
    drawing.line(x1, y1, x2, y2, width=0.5)
    # two diagonals of a square cross in the middle: each has its figure near a third of its length
    share = 0.5 if x1 == x2 or y1 == y2 else 0.32
    x, y = x1 + share * (x2 - x1), y1 + share * (y2 - y1)
    drawing.rect(x - 8, y - 1.8, 16, 3.6, fill="#ffffff")
    drawing.text(x, y, cost, size=SMALL, anchor="middle")
