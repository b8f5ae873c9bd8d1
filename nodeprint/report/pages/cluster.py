"""The pages of the cluster. Nothing is judged here.

Page 1 says the outcome with its margins and what it rests on, what was disturbed, and who deviates, each with a figure
of its own quantity and what to do next. Maps of differences follow; tables, configuration and limits come last.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np
from msgspec.structs import replace

from nodeprint.errors import printable
from nodeprint.judge.outcome import MEANING, Outcome
from nodeprint.judge.verdict import ClassFigure, NodeVerdict
from nodeprint.machine.fingerprint import FIELDS, label
from nodeprint.report import message_rates, names, terminal, text
from nodeprint.report.pages import pictures
from nodeprint.report.pages.blocks import (
    Advice,
    Block,
    Bullets,
    Cell,
    Command,
    Contents,
    FactList,
    Figures,
    FindingBlock,
    Log,
    Mark,
    Page,
    Reference,
    Section,
    Table,
    Text,
    sections,
)
from nodeprint.report.pages.common import margin_table, state_mark, without_empty
from nodeprint.report.pages.judged_campaign import Campaign
from nodeprint.report.pages.order import natural, severity

#: Nodes that page 1 shows with a figure each; all others are in the table of nodes.
_MOST_SHOWN = 12
#: Rows of a table of nodes; of more, those that need no action are only counted.
_MOST_ROWS = 120
_MOST_NOTES = 12


def page(campaign: Campaign, linked: Mapping[str, Reference]) -> Page:
    """The cluster's pages; `linked` leads to the page of each node that has one."""
    verdict = campaign.verdict
    line = text.headline_of(verdict.fleet) + "."
    notes = text.fleet_notes(verdict)
    title = f"Cluster report, campaign {printable(verdict.campaign, 80)}"
    # a median over different machines would be that of none
    alike = {name: node for name, node in verdict.nodes.items() if node.outcome is not Outcome.NO_PEER}
    bounds = (Figures(tuple(pictures.bounds_map(campaign))), margin_table(verdict.fleet.margins))
    return Page(
        "cluster", "cluster", title, Mark.of(verdict.fleet.outcome),
        (text.sentence(line), " ".join(text.rests_on(verdict))),
        sections(
            Section("", (_disturbed(campaign),)),
            Section("Who deviates", tuple(_deviating(campaign, linked))),
            Section("Other nodes that need action", (_lines(campaign, linked),)),
            Section("What is to be known of the fleet", (Bullets(tuple(notes[:_MOST_NOTES])),)),
            Section("Contents", (Contents(),)),
            Section("Differences from the peers", (Figures(tuple(pictures.difference_maps(campaign))),)),
            Section("Machines side by side", (Figures(tuple(pictures.machines(campaign))),)),
            Section("How near nodes are to their bounds", bounds),
            Section("Effects and order", (Figures(tuple(pictures.effects_of_nodes(campaign))),)),
            Section("Medians over the fleet", (class_table(alike), cell_table(alike))),
            *_fabric(campaign),
            Section("Nodes without a result", tuple(_unmeasured(verdict.nodes))),
            Section("Configuration differences", (differences(verdict.nodes),)),
            Section("Warnings", tuple(_warnings(verdict.nodes))),
            Section("All nodes", (_all_nodes(campaign, linked),)),
        ),
        tuple((Mark.of(outcome), count) for outcome, count in text.counts_of(verdict.nodes.values()).items()),
    )  # fmt: skip


# --- page 1 ---


def _disturbed(campaign: Campaign) -> Block:
    folder, nodes = campaign.folder, campaign.verdict.nodes
    loads = [terminal.beside(folder, name) for name in nodes] if folder is not None else []
    sentences = (text.sentence(f"{load}.") for load in loads if load)
    disturbed = (line.strip() for line in text.disturbed(campaign.verdict))
    return Bullets((*sentences, *disturbed, *text.over_time(campaign.verdict)))


def _deviating(campaign: Campaign, linked: Mapping[str, Reference]) -> list[Block]:
    """Nodes with findings by severity: the sentence, a small figure of its quantity, the next command and its page."""
    nodes = campaign.verdict.nodes
    by_severity = sorted(
        (name for name in nodes if nodes[name].counted), key=lambda name: (severity(nodes[name]), natural(name))
    )
    blocks: list[Block] = []
    for number, name in enumerate(by_severity[:_MOST_SHOWN], 1):
        first, *more = nodes[name].counted
        figures = pictures.of_finding(campaign, name, first, number, pictures.LARGE)
        details = [text.finding_sentence(finding) for finding in more[:2]]
        details += [f"It has {names.counted(len(more) - 2, 'more finding')}."] if len(more) > 2 else []
        links = (linked[name],) if name in linked else ()
        blocks.append(
            FindingBlock(
                f"{printable(name, 80)}: {names.subject(first)}", text.finding_sentence(first), state_mark(first),
                tuple(replace(figure, name=f"{name}-{figure.name}", caption="") for figure in figures),
                (*details, f"Next: {text.remedy(first)}"), (), Command(_next(campaign, name)), links,
            )
        )  # fmt: skip
    if len(by_severity) > _MOST_SHOWN:
        blocks.append(Text(f"{len(by_severity) - _MOST_SHOWN} more nodes with findings are in the table of all nodes."))
    return blocks


def _next(campaign: Campaign, node: str) -> str:
    """The next command for a node: a further job where that would decide, else its own page's figures."""
    name = node if names.nodes([node]) == node else "NAME"
    outcome = campaign.verdict.nodes[node].outcome
    return (
        f"make run NODES={name}"
        if MEANING[outcome].again
        else f"make run NODES={name}  # again after the remedy: before and after"
    )


def _lines(campaign: Campaign, linked: Mapping[str, Reference]) -> Block:
    """A line for nodes that are not the same and have no finding of their own."""
    nodes = campaign.verdict.nodes
    others = {name: node for name, node in nodes.items() if not node.counted and node.outcome is not Outcome.SAME}
    lines = text.node_lines(others)
    rows: list[tuple[Cell, ...]] = [
        (
            linked.get(line.nodes[0], line.names) if len(line.nodes) == 1 else line.names,
            Mark.of(line.outcome),
            line.text,
        )
        for line in lines[:_MOST_ROWS]
    ]
    if more := sum(len(line.nodes) for line in lines[_MOST_ROWS:]):
        rows.append((names.counted(more, "more node"), "", "see the table of all nodes, and verdict.json"))
    return Table(("nodes", "outcome", "why"), tuple(rows), "lll", 2)


# --- medians ---


def class_table(nodes: Mapping[str, NodeVerdict]) -> Table:
    """Classes of pairs over the fleet: median, lowest and highest node; of mixtures by group."""
    by_class: dict[tuple[str, int, str], dict[str, ClassFigure]] = {}
    for name, node in nodes.items():
        for figure in node.classes:
            by_class.setdefault((figure.measurement, figure.home, figure.name), {})[name] = figure
    rows: list[tuple[Cell, ...]] = []
    for (measurement, home, name), of_nodes in by_class.items():
        if len(of_nodes) < 2:
            continue
        where = ", ".join(filter(None, (measurement, names.home(home))))
        by_group: dict[str, dict[str, float]] = {}
        for node_name, figure in of_nodes.items():
            for group, median in (figure.groups or {"": figure.median_ns}).items():
                by_group.setdefault(group, {})[node_name] = median
        for group, values in by_group.items():
            rows.append((where, ", ".join(filter(None, (name, group))), *_extremes(values, "ns")))
    return Table(("measurement", "class", "nodes", "median", "lowest", "on", "highest", "on"), tuple(rows), "llrrrlrl")


def cell_table(nodes: Mapping[str, NodeVerdict]) -> Table:
    """Other measurements over the fleet."""
    by_cell: dict[tuple[str, str, str], dict[str, float]] = {}
    for name, node in nodes.items():
        for figure in node.cells:
            by_cell.setdefault((figure.measurement, figure.name, figure.unit), {})[name] = figure.median
    rows = tuple(
        (measurement, name, *_extremes(values, unit))
        for (measurement, name, unit), values in by_cell.items()
        if len(values) > 1
    )
    return Table(("measurement", "of", "nodes", "median", "lowest", "on", "highest", "on"), rows, "llrrrlrl")


def _extremes(values: Mapping[str, float], unit: str) -> tuple[str, ...]:
    low, high = min(values, key=lambda node: values[node]), max(values, key=lambda node: values[node])
    middle = float(np.median(list(values.values())))
    return (
        str(len(values)), names.quantity(middle, unit), names.quantity(values[low], unit),
        names.shortened(printable(low), 20), names.quantity(values[high], unit), names.shortened(printable(high), 20),
    )  # fmt: skip


# --- fabric, configuration, warnings, nodes ---


def _fabric(campaign: Campaign) -> list[Section]:
    """A section for each measurement of messages between nodes."""
    out = []
    for number, fabric in enumerate(campaign.verdict.fabric):
        slow = tuple(text.fabric_findings(fabric))
        title = f"Messages between nodes: {fabric.measurement}, partition {printable(fabric.partition, 40)}"
        times = {"minimum": fabric.minimum_ns, "mean": fabric.mean_ns, "maximum": fabric.maximum_ns}
        rates = message_rates.rates(times, fabric.message_bytes, fabric.operation, fabric.at_once)
        facts = FactList(
            (*rates.items(), ("message", message_rates.size(fabric.message_bytes)), ("mode", fabric.operation)), 2
        )
        blocks = (Text(text.fabric(fabric)), Bullets(slow), facts, Figures(tuple(pictures.fabric(campaign, number))))
        out.append(Section(title, blocks))
    return out


def _unmeasured(nodes: Mapping[str, NodeVerdict]) -> list[Block]:
    """The logs of nodes without a result with their reasons, of each reason that of the first node."""
    without = {name: node for name, node in nodes.items() if not MEANING[node.outcome].measured}
    blocks: list[Block] = []
    for line in text.node_lines(without)[:_MOST_SHOWN]:
        first = line.nodes[0]
        of_first = (
            f" The log is that of {printable(first, 80)}." if len(line.nodes) > 1 and nodes[first].log_tail else ""
        )
        blocks += [Text(f"{line.names}: {line.text}{of_first}"), Log(nodes[first].log_tail)]
    return blocks


def differences(nodes: Mapping[str, NodeVerdict]) -> Table:
    """Fields of the fingerprint in which nodes differ: the majority's value, and who has which other one."""
    rows: list[tuple[Cell, ...]] = []
    for field in FIELDS:
        values = {
            name: str(node.fingerprint[field.name]) for name, node in nodes.items() if node.fingerprint.get(field.name)
        }
        counted = Counter(values.values()).most_common()
        if len(counted) < 2 or field.name in ("serials", "ppin"):
            continue
        others = [f"{value[:60]}: {names.nodes(n for n in values if values[n] == value)}" for value, _ in counted[1:5]]
        more = [f"and {len(counted) - 5} more values"] if len(counted) > 5 else []
        usual, count = counted[0]
        rows.append(
            (label(field.name), "yes" if field.hard else "", f"{usual[:60]} ({count})", "; ".join([*others, *more]))
        )
    return Table(("field", "must agree", "most nodes", "other nodes"), tuple(rows), "llll", 3)


def _warnings(nodes: Mapping[str, NodeVerdict]) -> list[Block]:
    """Each warning once, with the nodes that have it, the most frequent first."""
    seen: dict[tuple[str, str], list[str]] = {}
    for name, node in nodes.items():
        for warning in {str(warning.get("id")): warning for warning in node.warnings}.values():
            key = (str(warning.get("text") or warning.get("id")), str(warning.get("advice") or ""))
            seen.setdefault(key, []).append(name)
    ordered = sorted(seen.items(), key=lambda item: -len(item[1]))
    return [
        Advice(words, advice, "all nodes" if len(on) == len(nodes) > 1 else names.nodes(on))
        for (words, advice), on in ordered
    ]


def _all_nodes(campaign: Campaign, linked: Mapping[str, Reference]) -> Table:
    """A row a node: outcome, place, how much of its bounds it uses, and its first finding."""
    nodes = campaign.verdict.nodes
    order = sorted(nodes, key=lambda name: (MEANING[nodes[name].outcome].rank, natural(name)))
    shown = [name for name in order if len(order) <= _MOST_ROWS or nodes[name].outcome is not Outcome.SAME]
    rows: list[tuple[Cell, ...]] = []
    for name in shown:
        node = nodes[name]
        share = max((margin.share for margin in node.margins if margin.decides), default=float("nan"))
        used = f"{share * 100:.0f} %" if np.isfinite(share) else ""
        first = names.subject(node.counted[0]) if node.counted else ""
        place = ", ".join(filter(None, (node.rack, campaign.switches.get(name, ""))))
        rows.append((linked.get(name, printable(name, 40)), Mark.of(node.outcome), node.group, place, used, first))
    table = without_empty(
        Table(("node", "outcome", "group", "rack, switch", "of what decides", "first finding"), tuple(rows), "llllrl")
    )
    left = len(order) - len(shown)
    return (
        replace(table, rows=(*table.rows, (f"{left} more are SAME", *[""] * (len(table.header) - 1))))
        if left
        else table
    )


def shown_nodes(nodes: Mapping[str, NodeVerdict]) -> Sequence[str]:
    """The nodes whose pages the cluster's document holds: those with findings, the most urgent first."""
    deviating = [name for name in nodes if nodes[name].counted]
    return sorted(deviating, key=lambda name: (severity(nodes[name]), natural(name)))
