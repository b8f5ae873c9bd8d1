"""`nodeprint history --page`: the changes over campaigns as a document, with the renderers of the report."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from nodeprint import files
from nodeprint.errors import NodeprintError, printable
from nodeprint.history import change_sentences, courses
from nodeprint.history.changes import Change, Histories, NodeHistory
from nodeprint.history.selection import pictured
from nodeprint.judge.outcome import Outcome
from nodeprint.report import html, names, pdf
from nodeprint.report import text as report_text
from nodeprint.report.figures import curves, render, style
from nodeprint.report.figures.style import Style
from nodeprint.report.pages.blocks import (
    Bullets,
    Cell,
    Document,
    Figures,
    Page,
    Picture,
    Reference,
    Section,
    Table,
    Text,
    sections,
)
from nodeprint.report.pages.pictures import PAGE
from nodeprint.report.pages.tables import anchor
from nodeprint.settings.texts import say

#: The most campaigns with a row; of more, the first and the newest have one.
_MOST_CAMPAIGNS = 60
#: The anchor of the sections of the nodes.
_NODES = "nodes"


def write(to: Path, histories: Histories) -> Path:
    """Write the page as HTML or PDF, by the suffix of `to`. Raises NodeprintError for another suffix, CannotWriteError
    if it cannot be written."""
    if to.suffix not in (".html", ".pdf"):
        advice = "name a file that ends in .html or .pdf"
        raise NodeprintError("is neither HTML nor PDF by its name", where=to, key="--page", advice=advice)
    files.check(to)
    shown = document(histories)
    if to.suffix == ".html":
        return files.write(to, html.page(shown))
    with pdf.Printer() as printer:
        return files.write(to, printer.pdf(shown))


def document(histories: Histories) -> Document:
    """A page of all nodes, and a section for each drawn node."""
    drawn = pictured(histories.nodes)
    judged, in_style = histories.judged, style.load()
    names_of = list(dict.fromkeys((judged[0].name, judged[-1].name)))
    origin = say("origin", "simulated") if judged[0].simulated else ""
    of_nodes = sections(*(_node(history, in_style) for history in drawn))
    pages = (_fleet(histories, drawn), Page(_NODES, _NODES, "Node by node", None, (), of_nodes))
    return Document("nodeprint, history of campaigns", " to ".join(names_of), origin, pages)


def _fleet(of_campaigns: Histories, drawn: Sequence[NodeHistory]) -> Page:
    histories, common = of_campaigns.nodes, change_sentences.common(of_campaigns)
    changed = [
        *common,
        *(change_sentences.sentence(change, nodes) for change, nodes in change_sentences.shared(histories)),
    ]
    undrawn = [history.node for history in histories if history.changes and history not in drawn]
    more = say("history", "undrawn", count=names.counted(len(undrawn), "more node"), nodes=names.nodes(undrawn))
    links = {history.node: Reference(history.node, anchor=f"{_NODES}-{anchor(history.node)}") for history in drawn}
    listed = [history for history in histories if history.node in links]
    lead = report_text.sentence(f"{change_sentences.summary(histories, len(of_campaigns.judged))}.")
    return Page(
        "history",
        "history",
        "Over time",
        None,
        (lead,),
        sections(
            Section("What changed", (Bullets(tuple(changed)), Text(more if undrawn else "", quiet=True))),
            Section("Nodes", (Table(_NODE_HEADER, tuple(_node_row(h, links) for h in listed), "lrllrrl", 6),)),
            Section("Campaigns", (_campaigns(of_campaigns), Bullets(tuple(change_sentences.left_out(of_campaigns))))),
        ),
    )


_NODE_HEADER = ("node", "measured", "first", "last", "changes", "now, tolerances", "the component that moved most")


def _node_row(history: NodeHistory, links: dict[str, Reference]) -> tuple[Cell, ...]:
    course = history.courses[0]
    return (
        links[history.node],
        str(len(history.measured)),
        history.measured[0][:10],
        history.measured[-1][:10],
        str(len(history.changes) or ""),
        f"{course.distance[-1]:+z.1f}" if course.distance else "",
        change_sentences.component_name(course),
    )


def _campaigns(histories: Histories) -> Table:
    """The date of each campaign, and its number of nodes per outcome."""
    judged = histories.judged
    if len(judged) > _MOST_CAMPAIGNS:
        judged = (judged[0], *judged[1 - _MOST_CAMPAIGNS :])
    rows = []
    for campaign in judged:
        counts = dict.fromkeys(Outcome, 0)
        for node in campaign.nodes.values():
            counts[node.outcome] += 1
        outcomes = ", ".join(f"{count} {outcome}" for outcome, count in counts.items() if count)
        rows.append((printable(campaign.name, 80), campaign.last[:16], str(len(campaign.nodes)), outcomes))
    return Table(("campaign", "last run", "nodes", "outcomes"), tuple(rows), "llrl", 3)


def _node(history: NodeHistory, in_style: Style) -> Section:
    changes = tuple(_change_row(change) for change in history.changes)
    header = ("component", "measurement", "before", "after", "change", "95% interval", "tolerance", "between")
    blocks = (
        Bullets(tuple(map(change_sentences.of_node, history.changes)) or (change_sentences.unchanged(history),)),
        Figures(_picture(history, in_style)),
        Table(header, changes, "llrrrlrl", 0),
    )
    return Section(printable(history.node, 120), blocks, anchor=anchor(history.node))


def _picture(history: NodeHistory, in_style: Style) -> tuple[Picture, ...]:
    data = courses.data(history)
    if data is None:
        return ()
    svg = render.svg(render.figure(curves.curve, data, in_style, PAGE), in_style)
    caption = say("captions", "course", node=history.node)
    return (Picture(f"course-{names.file_stem(history.node)}", svg, PAGE, caption),)


def _change_row(change: Change) -> tuple[Cell, ...]:
    before, after = (names.quantity(value, change.unit) for value in (change.before, change.after))
    interval = names.interval(change.interval.low, change.interval.high, change.effect, change.measurement)
    effect, tolerance = names.with_tolerance(change.effect, change.tolerance, change.measurement)
    return (
        names.scoped(change.component),
        change.measurement,
        before,
        after,
        effect,
        interval,
        tolerance,
        f"{change.unchanged[:10]} and {change.by[:10]}",
    )
