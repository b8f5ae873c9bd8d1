"""A campaign in brief: the medians, matrices, sentences and nodes that `show`, `judge` and the end of a run print.

The headline is that of page 1. The most urgent node is the last one, where a reader's eye is.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from statistics import median

from nodeprint.data.places.homes import FAR
from nodeprint.data.store import packed
from nodeprint.data.store.packed import PackedFleet
from nodeprint.errors import NodeprintError, printable
from nodeprint.judge.outcome import Outcome
from nodeprint.judge.verdict import CellFigure, ClassFigure, NodeVerdict, Verdict
from nodeprint.machine.fingerprint import label
from nodeprint.report import further_cells, names, text, verdict_files
from nodeprint.report.pages.blocks import Block, Bullets, Section, Table, Text
from nodeprint.report.pages.order import class_rank, severity
from nodeprint.settings import config
from nodeprint.settings.measurements import known
from nodeprint.settings.texts import say

#: Above this many nodes only those that need attention are listed.
_ALL_NODES = 16
#: More nodes than these with one outcome are a table, in which a node's own row is found.
_MOST_LINES = 3
#: Letters of a class's or row's name.
_LONGEST = 60
#: Up to so many nodes have a matrix here, if they have so many CPUs: of a single pair there is nothing to see.
_NODES, _FEWEST_CPUS = 3, 3
#: Spaces in a range that has one unit: `23.3 to 24.1 ns`.
_ONE_UNIT = 3
#: What a median is of: a measurement in short, the kind of its pairs or cells, and the unit.
_Key = tuple[str, str, str]
#: A median with the figure that it is of; that of a group of pairs is not the figure's own.
_Value = tuple[float, ClassFigure | CellFigure]


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
    """Return the settings in which nodes differ from the majority, those of the same nodes in one sentence."""
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
    out += [f"* {load}; `{again_by[name]}` measures it again" for name, load in loads.items()]
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
    busy = [name for name in nodes if text.busy_during_job(folder, name)]
    blocks = of_nodes(nodes, text.origin(verdict), marked=2 * len(busy) >= len(nodes) > 0)
    sections = (Section("", blocks),) if blocks else ()
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


def of_nodes(nodes: Mapping[str, NodeVerdict], origin: str = "", *, marked: bool = False) -> tuple[Block, ...]:
    """The medians over nodes; of a few without peers each for itself, as a median of different machines is of none."""
    alone = len(nodes) <= _NODES and all(of_node.is_alone for of_node in nodes.values())
    sets = [{name: of_node} for name, of_node in nodes.items()] if alone else [nodes]
    origins = itertools.chain([f"{origin}: " if origin else ""], itertools.repeat(""))
    return tuple(
        block for of_set, first in zip(sets, origins, strict=False) for block in medians(of_set, first, marked=marked)
    )


def medians(nodes: Mapping[str, NodeVerdict], first: str = "", *, marked: bool = False) -> tuple[Block, ...]:
    """A row per class of pairs and kind of cell, with interval or extremes; marked values have an asterisk."""
    by_key: dict[_Key, list[_Value]] = {}
    for of_node in nodes.values():
        for key, value in _values(of_node):
            if math.isfinite(value[0]):
                by_key.setdefault(key, []).append(value)
    several = len(nodes) > 1
    if not by_key and (several or not nodes):
        return ()
    rows, before = [], ""
    for (of, name, unit), values in by_key.items():
        star = " *" if marked or any(figure.is_marked for _, figure in values) else ""
        center, ends = _over_nodes(values, unit) if several else _of_runs(*values[0], unit)
        rows.append(("" if of == before else of, name, f"{center}{star}", ends))
        before = of
    disturbed = (figure.disturbed for values in by_key.values() for _, figure in values if figure.is_marked)
    lost = max(disturbed, default=0.0)
    title, further = say("medians_over", nodes=len(nodes)), list[str]()
    if not several:
        ((node_name, of_node),) = nodes.items()
        cpus = f"{of_node.fingerprint['cpus']} CPUs" if of_node.fingerprint.get("cpus") else ""
        processor = str(of_node.fingerprint.get("cpu", ""))
        title, further = ", ".join(filter(None, (f"node {node_name}", processor, cpus))), list(_further(of_node))
    marking = (f"* {say('marked', share=lost)}",) if lost else ()
    disagree = any(figure.runs_disagree for values in by_key.values() for _, figure in values)
    left_out = (say("runs_of_others_disagree"),) if several and disagree else ()
    table = (Table((), tuple(rows), "llrl"),) if rows else ()
    return Text(first + printable(title, 200)), *table, Bullets((*further, *marking, *left_out))


def _of_runs(value: float, figure: ClassFigure | CellFigure, unit: str) -> tuple[str, str]:
    """The median of one node with its interval, or two runs that disagree."""
    if figure.runs_disagree:
        return names.span(figure.ci_low, figure.ci_high, unit), say("runs_disagree")
    is_of_group = isinstance(figure, ClassFigure) and figure.groups
    interval = "" if is_of_group else names.median_interval(figure)
    level = "95%: " if interval and figure.left_out < figure.runs else ""
    return names.quantity(value, unit), f"{level}{interval}"


def _over_nodes(values: Sequence[_Value], unit: str) -> tuple[str, str]:
    """The median of nodes whose runs agree, with the lowest and the highest; else the range of all runs."""
    of_nodes = [value for value, figure in values if not figure.runs_disagree]
    if not of_nodes:
        low, high = min(figure.ci_low for _, figure in values), max(figure.ci_high for _, figure in values)
        return names.span(low, high, unit), say("runs_disagree")
    center, ends = names.quantity(median(of_nodes), unit), names.span(min(of_nodes), max(of_nodes), unit)
    has_one_unit = ends.count(" ") == _ONE_UNIT  # which the median has, too
    ends = ends.removesuffix(center.partition(" ")[2]).rstrip() if has_one_unit else ends
    left_out = f" ({len(of_nodes)} of {len(values)})" if len(of_nodes) < len(values) else ""
    return center, f"{ends}{left_out}"


def _further(of_node: NodeVerdict) -> Iterator[str]:
    for measurement, cells in further_cells.ends(of_node.cells, lambda name: bool(_short_name(name))).items():
        of_each = (f" ({names.row(cell.name)})" if len(cells) > 1 else "" for cell in cells)
        # not `to`: the value of two runs that disagree is a range
        ends = ("lowest ", "highest ") if len(cells) > 1 else ("",)
        values = (f"{end}{names.median(cell)}{of}" for end, cell, of in zip(ends, cells, of_each, strict=True))
        yield f"{text.measured(measurement)}: {', '.join(values)}"


def _values(of_node: NodeVerdict) -> Iterator[tuple[_Key, _Value]]:
    near = [figure for figure in of_node.classes if figure.home < FAR]  # pages have all
    homes = {figure.home for figure in near}
    hops = {figure.measurement for figure in near if not _short_name(figure.measurement)}
    for figure in near:
        called = _short_name(figure.measurement) or ("core-to-core" if len(hops) == 1 else figure.measurement)
        of = printable(called, 20)
        at_home = f", home {figure.home}" if len(homes) > 1 else ""
        for name, ns in figure.medians.items():
            yield (of, f"{printable(name, _LONGEST)}{at_home}", "ns"), (ns, figure)
    for cell in of_node.cells:
        if of := _short_name(cell.measurement):
            name = "" if cell.name == "all" else names.row(printable(cell.name, _LONGEST))
            yield (of, name, cell.unit), (cell.median, cell)


def _short_name(measurement: str) -> str:
    of = known(measurement)
    return "" if of is None else of.short_name
