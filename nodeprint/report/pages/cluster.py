"""The pages of the cluster; they only present the verdict.

Page 1 begins with the outcome, the acceptance rules and date, and the nodes that do not pass with next steps. The
fleet's figure follows, on page 2 if the list of nodes is long, then findings with their figures, groups and matrices,
and the method. All tables are in the appendix, which only the HTML has.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import islice
from pathlib import Path

import numpy as np
from msgspec.structs import replace

from nodeprint.errors import printable
from nodeprint.judge.outcome import FleetOutcome, Outcome
from nodeprint.judge.verdict import Finding, NodeVerdict
from nodeprint.machine.fingerprint import FIELDS, label
from nodeprint.report import check_scripts, message_rates, names, text
from nodeprint.report.figures import part_levels
from nodeprint.report.pages import accepted, brief, medians, method, not_passing, pictures
from nodeprint.report.pages.blocks import (
    Advice,
    Block,
    Bullets,
    Cell,
    Command,
    FactList,
    Figures,
    FindingBlock,
    Mark,
    Page,
    Reference,
    Section,
    Table,
    Text,
    sections,
)
from nodeprint.report.pages.judged_campaign import Campaign
from nodeprint.report.pages.order import by_harm, natural, severity, worst_finding
from nodeprint.report.pages.tables import agreement_table, anchor, appendix, finding_numbers, state_mark, without_empty
from nodeprint.report.text import structure_sentences
from nodeprint.settings import config
from nodeprint.settings.texts import say

#: The most findings with a figure, in all and per node; all findings are in the table of page 1 or in the HTML.
MOST_FINDINGS, _MOST_OF_NODE = 6, 2
#: The most notes on page 1, and on the pages after it.
_FIRST_NOTES, _MOST_NOTES = 3, 12
#: The most rows of a table of nodes; beyond that, nodes that need no action are only counted.
_MOST_ROWS = 120
#: Partitions whose messages have figures on paper.
_MOST_PARTITIONS = 1


def page(campaign: Campaign, linked: Mapping[str, Reference], most_findings: int = MOST_FINDINGS) -> Page:
    """Return the cluster's pages; `linked` maps nodes to their files, and `most_findings` have figures."""
    verdict = campaign.verdict
    is_split = verdict.fleet.outcome is FleetOutcome.SPLIT
    identity = text.identity(verdict)
    notes = [*([identity] if identity else []), *text.over_time(verdict), *text.fleet_notes(verdict, in_table=is_split)]
    title = f"Cluster report, campaign {printable(verdict.campaign, 80)}"
    # a median over different machines would describe none of them
    alike = {name: node for name, node in verdict.nodes.items() if not node.is_alone}
    # the findings with a figure as (node, number of the finding), the most urgent nodes first
    every = ((n, number) for n in shown_nodes(verdict.nodes) for number in by_harm(verdict.nodes[n])[:_MOST_OF_NODE])
    shown = list(islice(every, most_findings))
    anchors = {name: _anchor(name, number) for name, number in reversed(shown)}
    loads = (
        [text.other_programs(campaign.folder, name) for name in verdict.nodes] if campaign.folder is not None else []
    )
    disturbed = [text.sentence(f"{load}.") for load in loads if load][:_FIRST_NOTES]
    disturbed += text.disturbed(verdict)[:_FIRST_NOTES]
    drift = brief.drift(campaign.folder or Path(verdict.campaign), verdict)[:_FIRST_NOTES]
    in_tolerances = Figures(tuple(pictures.in_tolerances(campaign))), medians.differences(verdict.fleet)
    tolerances = (Figures(tuple(pictures.tolerances_map(campaign))), agreement_table(verdict.fleet.agreements))
    return Page(
        "cluster",
        "cluster",
        title,
        Mark(verdict.entry.symbol, text.campaign_outcome(verdict), verdict.entry.color),
        tuple(text.headline(verdict)),
        sections(
            Section("", (Bullets(tuple(disturbed)), Bullets(tuple(drift)), Bullets(tuple(notes[:_FIRST_NOTES])))),
            Section("What was measured, and when", (FactList(accepted.rows(campaign), 2),)),
            Section("Tolerances", accepted.tolerances(verdict)),
            Section("Nodes that do not pass", (not_passing.table(verdict, linked, anchors),)),
            Section("All nodes against their tolerances", in_tolerances),
            Section("Findings", tuple(_findings(campaign, linked, shown))),
            Section("Measured values", (medians.of_fleet(verdict),), early=True),
            *_between_cores(campaign),
            Section("Machines side by side", tuple(_machines(campaign))),
            Section(say("headings", "fleet"), (Bullets(tuple(notes[_FIRST_NOTES:_MOST_NOTES])),)),
            Section("Over the time of measuring", (Figures(tuple(pictures.over_time(campaign))),)),
            *_fabric(campaign),
            Section("Configuration differences", (differences(verdict.nodes),)),
            Section("How it was measured", tuple(method.brief(campaign))),
            *appendix(
                Section(say("headings", "agreements"), tolerances),
                Section("Medians over the fleet", (medians.table(alike),)),
                Section("Nodes without a result", tuple(_unmeasured(verdict.nodes))),
                Section("Warnings", tuple(_warnings(verdict.nodes))),
                Section("All nodes", (_all_nodes(campaign, linked),)),
            ),
        ),
        tuple((Mark.of(outcome), count) for outcome, count in text.counts_of(verdict.nodes.values()).items()),
    )


def _anchor(node: str, number: int) -> str:
    return f"finding-{number}-{anchor(node)}"


# --- findings, matrices ---


def _findings(campaign: Campaign, linked: Mapping[str, Reference], shown: Sequence[tuple[str, int]]) -> list[Block]:
    nodes = campaign.verdict.nodes
    blocks: list[Block] = []
    for at, (name, number) in enumerate(shown, 1):
        finding = nodes[name].counted[number - 1]
        figures = pictures.of_finding(campaign, name, finding, at, pictures.LARGE)
        figures = figures or pictures.of_runs(campaign, name, finding, at)
        figures = tuple(replace(figure, name=f"{name}-{figure.name}") for figure in figures)
        title = f"{printable(name, 80)}: {text.component_in_words(finding)}"
        words, numbers = (text.finding_sentence(finding), state_mark(finding)), finding_numbers(finding)
        details = (_next(campaign, name, finding), *_by_hand(finding))
        links = (linked[name],) if name in linked else ()
        anchor = _anchor(name, number)
        blocks.append(FindingBlock(title, *words, numbers, figures, details, links=links, anchor=anchor))
    count = sum(len(node.counted) for node in nodes.values())
    if shown and count > len(shown):
        blocks.append(Text(say("more_in_files", count=count - len(shown)), quiet=True))
    return blocks


def _next(campaign: Campaign, node: str, finding: Finding) -> str:
    name = node if names.nodes([node]) == node else "NAME"
    command = config.again(campaign.folder or Path(campaign.verdict.campaign), name)
    place = "imported" if campaign.verdict.imported else "by_command"
    nodes = campaign.verdict.nodes
    return text.action(finding, nodes, place, command=command)


def _by_hand(finding: Finding) -> tuple[str, ...]:
    """Return the command that repeats the test that found wrong results."""
    return (check_scripts.Again(finding, {}).why_not,) if finding.id == "wrong-result" else ()


def _between_cores(campaign: Campaign) -> list[Section]:
    """Return two nodes and the differences of all: of a split fleet and of messages, differences only with findings."""
    fleet, nodes = campaign.verdict.fleet, campaign.verdict.nodes
    is_split = fleet.outcome is FleetOutcome.SPLIT
    odd = {group.measurement for group in fleet.groups}
    odd |= set() if is_split else {finding.measurement for node in nodes.values() for finding in node.counted}
    out: list[Section] = []
    for messages in sorted({pictures.is_of_messages(of) for of in campaign.fleet.pairs}):
        is_odd = any(of.measurement in odd for of in campaign.fleet.pairs if pictures.is_of_messages(of) is messages)
        has_two, has_maps = messages or not is_split or is_odd, is_odd or not (is_split or out)
        title = say("headings", "messages" if messages else "pairs")
        two = tuple(pictures.two_nodes(campaign, messages=messages)) if has_two else ()
        maps = tuple(pictures.difference_maps(campaign, messages=messages)) if has_maps else ()
        of_kind = [Section(title, (Figures(two),)), Section(f"{title}, all nodes", (Figures(maps),), early=True)]
        out += reversed(of_kind) if is_split else of_kind
    return out


def _machines(campaign: Campaign) -> list[Block]:
    """Return machines without peers side by side, with the structure of imported ones, and those left out."""
    shown, left_out = pictures.machines(campaign)
    blocks: list[Block] = []
    for name in pictures.machines_in_order(campaign)[: pictures.MOST_MACHINES if shown else 0]:
        measured = campaign.measurements(name, pairs=True) if campaign.packed[name].imported else []
        structure = part_levels.found_at(campaign.levels(measured[0], name), name) if measured else None
        if structure is None:
            continue
        machine = printable(name, 60)
        if summary := structure_sentences.structure_summary(structure):
            blocks.append(Text(f"{machine}: {summary}"))
        blocks += [Advice(seen.text, seen.advice, "" if summary else machine) for seen in structure.findings]
    return [Figures(tuple(shown)), *blocks, Text(left_out)]


# --- fabric, configuration, warnings, nodes ---


def _fabric(campaign: Campaign) -> list[Section]:
    out = []
    for number, fabric in enumerate(campaign.verdict.fabric):
        slow = tuple(text.fabric_findings(fabric))
        title = f"Messages between nodes, partition {printable(fabric.partition, 40)}"
        title = title if fabric.partition else f"{printable(fabric.measurement, 60)} between nodes"
        rates = message_rates.of_fabric(fabric)
        mark = " *" if fabric.is_marked else ""
        values = [(name, f"{value}{mark}") for name, value in rates.items()]
        message = (("message size", names.message_size(fabric.message_bytes)), ("mode", fabric.operation))
        facts = FactList((*values, *(row for row in message if fabric.partition or row[1])), 2)
        blocks = (Text(text.fabric(fabric)), Bullets(slow[:_MOST_NOTES]), facts)
        figures = Figures(tuple(pictures.fabric(campaign, number)))
        out.append(Section(title, (*blocks, figures), appendix=number >= _MOST_PARTITIONS))
    return out


def _unmeasured(nodes: Mapping[str, NodeVerdict]) -> list[Block]:
    """Return the logs of nodes without a result; each reason has the log of its first node."""
    without = {name: node for name, node in nodes.items() if not node.outcome.entry.measured}
    blocks: list[Block] = []
    for line in text.node_lines(without)[:_MOST_NOTES]:
        log, first = nodes[line.nodes[0]].log_tail, printable(line.nodes[0], 80)
        of_first = f" The log is that of {first}." if len(line.nodes) > 1 and log else ""
        blocks += [Text(f"{line.names}: {line.sentence}{of_first}"), Command("\n".join(log))]
    return blocks


def differences(nodes: Mapping[str, NodeVerdict]) -> Table:
    """List fingerprint fields that differ: the most frequent value, and the nodes with each other value."""
    rows: list[tuple[Cell, ...]] = []
    for field in (field for field in FIELDS if field.name not in ("serials", "ppin")):
        values = {n: str(value) for n, node in nodes.items() if (value := node.fingerprint.get(field.name))}
        # of equally frequent ones the first in sort order, as for the fields in which a node differs
        counts = sorted(Counter(values.values()).items(), key=lambda item: (-item[1], item[0]))
        (usual, count), *other_values = counts or [("", 0)]
        if other_values:
            listed = [f"{v[:60]}: {names.nodes(n for n in values if values[n] == v)}" for v, _ in other_values[:4]]
            listed += [f"and {names.counted(len(other_values) - 4, 'more value')}"] if len(other_values) > 4 else []
            hard = "yes" if field.hard else ""
            rows.append((label(field.name), hard, f"{usual[:60]} ({count})", "; ".join(listed)))
    return Table(("field", "must agree", "most frequent", "other nodes"), tuple(rows), "llll", 3)


def _warnings(nodes: Mapping[str, NodeVerdict]) -> list[Block]:
    seen: dict[tuple[str, str], list[str]] = {}
    for name, node in nodes.items():
        for warning in {str(warning.get("id")): warning for warning in node.warnings}.values():
            key = (str(warning.get("text") or warning.get("id")), str(warning.get("advice") or ""))
            seen.setdefault(key, []).append(name)
    ordered = sorted(seen.items(), key=lambda item: -len(item[1]))
    listed = {of: "all nodes" if len(on) == len(nodes) > 1 else names.nodes(on) for of, on in ordered}
    return [Advice(words, advice, on) for (words, advice), on in listed.items()]


def _all_nodes(campaign: Campaign, linked: Mapping[str, Reference]) -> Table:
    """Return a row per node: outcome, rack position, used share of its tolerances, and worst finding."""
    nodes = campaign.verdict.nodes
    order = sorted(nodes, key=lambda name: (severity(nodes[name]), natural(name)))
    shown = [name for name in order if len(order) <= _MOST_ROWS or nodes[name].outcome is not Outcome.SAME]
    rows: list[tuple[Cell, ...]] = []
    for name in shown:
        node = nodes[name]
        worst = worst_finding(node)
        share = max((agreement.share for agreement in node.agreements if agreement.criterion), default=float("nan"))
        if worst is not None and worst.measurement and not worst.of_limit:  # others have no tolerance
            share = worst.times_tolerance
        used = f"{share * 100:.0f}%" if np.isfinite(share) else ""
        first = text.component_in_words(worst) if worst is not None else ""
        place = ", ".join(filter(None, (node.rack, campaign.switches.get(name, ""))))
        rows.append((linked.get(name, printable(name, 40)), Mark.of(node.outcome), node.group, place, used, first))
    header = ("node", "outcome", "group", "rack, switch", "of its tolerance", "worst finding")
    table, hidden = without_empty(Table(header, tuple(rows), "llllrl")), len(order) - len(shown)
    more = (f"{hidden} more are SAME", *[""] * (len(table.header) - 1))
    return replace(table, rows=(*table.rows, more)) if hidden else table


def shown_nodes(nodes: Mapping[str, NodeVerdict]) -> Sequence[str]:
    """Return the nodes with findings, the most urgent first."""
    deviating = [name for name in nodes if nodes[name].counted]
    return sorted(deviating, key=lambda name: (severity(nodes[name]), natural(name)))
