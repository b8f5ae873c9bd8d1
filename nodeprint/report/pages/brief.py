"""A campaign in brief: the medians, matrices, sentences and nodes that `show`, `judge` and the end of a run print.

The headline is that of page 1. The most urgent node is the last one, where a reader's eye is.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from nodeprint.data.places.homes import FAR
from nodeprint.data.store import packed
from nodeprint.data.store.packed import PackedFleet
from nodeprint.errors import NodeprintError, printable
from nodeprint.judge.outcome import Outcome
from nodeprint.judge.verdict import NodeVerdict, Verdict
from nodeprint.machine.fingerprint import label
from nodeprint.report import names, text, verdict_files
from nodeprint.report.pages import medians
from nodeprint.report.pages.blocks import Block, Bullets, Section, Table, Text, sections
from nodeprint.report.pages.order import class_rank, severity
from nodeprint.report.pages.tables import class_table, further_cells, main_cells
from nodeprint.settings import config
from nodeprint.settings.texts import say

#: Above this many nodes only those that need attention are listed.
_ALL_NODES = 16
#: More nodes than these with one outcome are a table, in which a node's own row is found.
_MOST_LINES = 3
#: Letters of a class's or row's name.
_LONGEST = 60
#: Up to so many nodes have a matrix here, if they have so many CPUs: of a single pair there is nothing to see.
_NODES, _FEWEST_CPUS = 3, 3


def campaign(folder: Path) -> tuple[Section, ...]:
    """A judged campaign. Raises NodeprintError without a verdict."""
    verdict = verdict_files.read(folder)
    pdf = folder / "report" / "cluster.pdf"
    report = f"report: {pdf}" if pdf.exists() else say("remarks", "no_report", campaign=folder)
    sentences = summary(verdict, most=_ALL_NODES, remarks=remarks(folder, verdict))
    return (*glance(folder, verdict), Section("", (*sentences, Text(report))))


def is_complete(folder: Path) -> bool:
    """Whether a campaign has a measured node and a PDF. Raises NodeprintError without a verdict."""
    nodes = verdict_files.read(folder).nodes.values()
    return any(node.outcome.entry.measured for node in nodes) and (folder / "report" / "cluster.pdf").exists()


# --- sentences and nodes ---


def summary(verdict: Verdict, *, most: int = 0, remarks: Sequence[str] = ()) -> tuple[Block, ...]:
    """The first line of a campaign, its disturbances, notes, `remarks` and messages, then its nodes. Above it is whose
    values of other programs are.

    Nodes that are SAME are left out if there are more than `most` nodes.
    """
    shown = {n: v for n, v in verdict.nodes.items() if len(verdict.nodes) <= most or v.outcome is not Outcome.SAME}
    notes = [*text.disturbed(verdict), *text.over_time(verdict)]
    notes += [*(f"note: {words}" for words in text.fleet_notes(verdict)), *remarks]
    for partition in verdict.fabric:
        notes += [text.fabric(partition), *text.fabric_findings(partition)]
    identity = text.identity(verdict)
    first = (*([Text(identity)] if identity else []), Text(text.first_line(verdict)))
    return *first, Bullets(tuple(notes)), *_nodes(shown, verdict)


def _nodes(nodes: Mapping[str, NodeVerdict], verdict: Verdict) -> Iterator[Block]:
    """Why nodes have their outcome, by outcome, the most urgent last."""
    lines = sorted(
        text.node_lines(nodes, verdict.fleet.groups),
        key=lambda line: (class_rank(line.outcome), min(severity(nodes[name])[1:3] for name in line.nodes)),
        reverse=True,  # of equal ones the order is kept
    )
    for outcome, of_outcome in itertools.groupby(lines, key=lambda line: line.outcome):
        rows = list(of_outcome)
        if len(rows) <= _MOST_LINES:
            yield Bullets(tuple(f"{line.names}: {outcome.with_class}. {line.sentence}" for line in rows))
        else:
            yield Bullets((f"{outcome.with_class}:",))
            yield Table((), tuple((line.names, line.sentence) for line in rows), "ll", 1)


def node(name: str, of_node: NodeVerdict, verdict: Verdict) -> tuple[Block, ...]:
    """One node of a campaign."""
    first, *further = text.one_node(name, of_node, verdict.fleet.groups)
    return Text(first), Bullets(tuple(further))


def recheck(verdict: Verdict) -> list[str]:
    """Say which nodes a further job would decide, and which are its control nodes; empty if none is needed."""
    deciding = [name for name in verdict.recheck if verdict.nodes[name].outcome.entry.again]
    controls = names.nodes(name for name in verdict.recheck if name not in deciding)
    return [say("remarks", "recheck", nodes=names.nodes(deciding), controls=controls)] if deciding else []


def drift(folder: Path, verdict: Verdict) -> list[str]:
    """Return the settings in which nodes differ from the others, those of the same nodes in one sentence."""
    settings: dict[str, list[str]] = {}
    for name, of_node in sorted(verdict.nodes.items()):
        for warning in of_node.warnings:
            kind, _, key = str(warning.get("id")).partition("-")
            if kind == "fingerprint":
                settings.setdefault(printable(label(key)), []).append(name)
    alike: dict[str, list[str]] = {}
    for setting, on in sorted(settings.items()):
        alike.setdefault(names.nodes(on), []).append(setting)
    verbs = {on: "differs" if len(settings[fields[0]]) == 1 else "differ" for on, fields in alike.items()}
    return [
        say("remarks", "drift", nodes=on, verb=verbs[on], fields=names.listed(fields), campaign=folder)
        for on, fields in alike.items()
    ]


def remarks(folder: Path, verdict: Verdict) -> list[str]:
    """Facts that no outcome states: settings that differ, nodes to remeasure, records, presets, pinning, clocks."""
    nodes, out = verdict.nodes, drift(folder, verdict)
    loads = {name: load for name in nodes if (load := text.other_programs(folder, name))}
    again_by = {name: config.again(folder, names.nodes([name])) for name in loads}
    out += [f"{text.sentence(load)}; `{again_by[name]}` measures it again" for name, load in loads.items()]
    again = [name for name, of_node in nodes.items() if of_node.outcome is Outcome.INVALID]
    if again and not verdict.imported:
        out.append(f"`{config.again(folder, names.nodes(again))}` measures {names.nodes(again)} again")
    if aside := sum(1 for _ in folder.glob("nodes/*/job*/run*/*.bad*")):
        files_were = "file was" if aside == 1 else "files were"
        out.append(say("remarks", "malformed", count=aside, files=files_were))
    with suppress(NodeprintError):  # without a configuration
        if left_out := config.left_out(config.kept(folder)):
            out.append(say("remarks", "preset", measurements=", ".join(left_out)))
    warned: dict[str, list[str]] = {}
    for name, of_node in nodes.items():
        for warning in of_node.warnings:
            if warning.get("id") in ("likwid", "clock"):
                warned.setdefault(f"{warning['text']}; {warning['advice']}", []).append(name)
    out += [f"{names.nodes(on)}: {printable(words)}." for words, on in warned.items()]
    same = sum(of_node.outcome is Outcome.SAME for of_node in nodes.values())
    if same and len(nodes) > _ALL_NODES:
        out.append(f"{names.counted(same, 'node')} that need no action")
    return out


# --- medians and matrices ---


def glance(folder: Path, verdict: Verdict) -> tuple[Section, ...]:
    """The medians of a judged campaign; of a few nodes also the matrices, with sentences, if their values are there."""
    nodes = {name: of_node for name, of_node in verdict.nodes.items() if of_node.outcome.entry.measured}
    sections = tuple(medians_of(verdict))
    if len(nodes) > _NODES:
        return sections
    try:
        fleet = packed.read(folder)
        pairs = list(dict.fromkeys(of.measurement for of in fleet.pairs if len(of.layout.slots) >= _FEWEST_CPUS))
        return (*sections, *_matrices(fleet, nodes, pairs)) if pairs else sections
    except NodeprintError:
        return sections


def _matrices(fleet: PackedFleet, nodes: Mapping[str, NodeVerdict], pairs: Sequence[str]) -> Iterator[Section]:
    # with matplotlib and SciPy it takes two seconds to import
    from nodeprint.report.figures import matrix_tables  # noqa: PLC0415
    from nodeprint.report.figures.node_levels import levels  # noqa: PLC0415
    from nodeprint.report.text import structure_sentences  # noqa: PLC0415

    of_each = [(name, levels(fleet, pair, name)) for name in nodes for pair in pairs]
    if any(of_node.imported for of_node in fleet.nodes):
        from nodeprint.report.figures import part_levels  # noqa: PLC0415

        structures = [(name, part_levels.found_at(of_pair, name)) for name, of_pair in of_each]
        summaries = [(name, structure_sentences.structure_summary(of)) for name, of in structures if of is not None]
        words = tuple(f"{printable(name, _LONGEST)}: {summary}" for name, summary in summaries if summary)
        yield from [Section("", (Bullets(words),))] if words else []
    for name, of_pair in of_each:
        square = matrix_tables.in_short(of_pair, name)
        yield from [Section("", (square,))] if square is not None else []
    for name, of_pair in of_each if len(nodes) == 1 else ():
        sentences = structure_sentences.placement_of_node(of_pair, name, nodes[name].fingerprint)
        sentences += structure_sentences.quadrants_of_node(of_pair, name)
        yield from [Section("", tuple(map(Text, sentences)))] if sentences else []


def medians_of(verdict: Verdict) -> Iterator[Section]:
    """Yield the fleet's table of medians; for a single node, or machines without peers, the tables of their reports."""
    nodes = {name: of_node for name, of_node in verdict.nodes.items() if of_node.outcome.entry.measured}
    origin = text.origin(verdict)
    compared = [name for name, of_node in nodes.items() if not of_node.is_alone]
    if len(nodes) == 1 or (len(nodes) <= _ALL_NODES and not compared):
        for name, of_node in nodes.items():
            fields = of_node.fingerprint
            machine = (f"node {name}", str(fields.get("cpu", "")), f"{fields['cpus']} CPUs" if "cpus" in fields else "")
            title = ", ".join(filter(None, map(printable, machine)))
            near = tuple(figure for figure in of_node.classes if figure.home < FAR)  # pages have all
            head = Section("", (Text(f"{origin}: {title}".removeprefix(": ")), class_table(near)))
            yield from sections(head, *(Section("", (table(of_node),)) for table in (main_cells, further_cells)))
    elif (table := medians.of_fleet(verdict)).rows:
        title = say("medians_over", nodes=len(compared))
        yield Section("", (Text(f"{origin}: {title}".removeprefix(": ")), table))
