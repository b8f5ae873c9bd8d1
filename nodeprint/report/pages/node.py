"""The node report; it only presents the verdict.

Page 1 is for the vendor: the node and component, the finding with its figure and numbers, and a command that checks it.
A matrix compared with the peers follows. Every other table is in the appendix, which only the HTML has.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from nodeprint.data.job import run_medians
from nodeprint.data.job.jobs import Job, JobMeasurement
from nodeprint.data.places.layout import NAMES
from nodeprint.errors import printable
from nodeprint.judge.outcome import Outcome
from nodeprint.judge.verdict import Finding, NodeVerdict
from nodeprint.machine.fingerprint import LISTS, label
from nodeprint.machine.topology.facts import list_text
from nodeprint.machine.topology.level_names import level_name
from nodeprint.report import check_scripts, message_rates, names, readings, text
from nodeprint.report.figures import curves, part_levels
from nodeprint.report.figures.node_levels import NodeLevels
from nodeprint.report.pages import accepted, method, pictures
from nodeprint.report.pages.blocks import (
    Advice,
    Block,
    Bullets,
    Cell,
    Command,
    FactList,
    FactRows,
    Figures,
    FindingBlock,
    Mark,
    Page,
    Section,
    Table,
    Text,
    sections,
)
from nodeprint.report.pages.judged_campaign import Campaign
from nodeprint.report.pages.tables import (
    agreement_table,
    anchor,
    appendix,
    cell_table,
    class_table,
    facts,
    finding_numbers,
    further_cells,
    main_cells,
    state_mark,
    tabulated,
    without_empty,
)
from nodeprint.report.text import structure_sentences
from nodeprint.settings.texts import say
from nodeprint.structure.found import PairClass

#: The most findings with figures on paper, the most rows of findings, and the most lines of a list.
MOST_FINDINGS, _MOST_ROWS, _MOST_NOTES = 3, 20, 8
#: Facts that take a line of their own.
_LONG = {label(key) for key in ("cmdline", "serials", *LISTS)}
#: Further fingerprint fields that identify the machine, for a reader who has only the node report.
_IDENTITY = ("bmc", "serials", "ppin")
#: The CPUs of more groups per level are not listed.
_MOST_GROUPS = 8


def page(campaign: Campaign, node: str, jobs: Sequence[Job] | None = None, *, complete: bool = True) -> Page:
    """Return the node report, with its appendix if `complete`; `jobs` are read if none are given."""
    verdict = campaign.verdict.nodes[node]
    jobs = campaign.jobs(node) if jobs is None else jobs
    blocks = [
        finding_block(
            campaign, node, finding, number, check_scripts.header(jobs, finding.measurement), is_first=number == 1
        )
        for number, finding in enumerate(verdict.counted[: None if complete else MOST_FINDINGS], 1)
    ]
    shown, rest = blocks[:MOST_FINDINGS], blocks[MOST_FINDINGS:]
    alone = len(campaign.verdict.nodes) == 1
    notes = text.memory_warnings(campaign.verdict.fleet, node)
    notes += text.fleet_notes(campaign.verdict)[:_MOST_NOTES] if alone else []
    of_peak = Bullets(tuple(text.peak(verdict)))
    elsewhere = Text(say("values_elsewhere"), quiet=True)
    brief = (elsewhere,) if verdict.outcome is Outcome.SAME else (main_cells(verdict), of_peak)
    # a node that matches its peers has one page, and two such nodes are in cluster.pdf
    has_messages = alone or verdict.counted
    messages = tuple(_matrix(campaign, node, verdict, jobs, messages=True)) if has_messages else ()
    cells: tuple[Block, ...] = _cells(campaign, node, verdict, jobs) if alone else brief
    return Page(
        node,
        anchor(node),
        printable(node, 120),
        Mark.of(verdict.outcome),
        _lead(campaign, node, verdict),
        sections(
            Section("", (Bullets(tuple(notes)),)),
            Section("The machine", (FactList(_identity(campaign, node, verdict, jobs, alone=alone), 2),)),
            Section("What was found", (*shown, *_further(node, verdict, jobs))),
            Section("How it was tested", method.tested(jobs, [finding.measurement for finding in verdict.counted])),
            Section("Disturbed data", (Bullets(tuple(text.further(verdict)[:_MOST_NOTES])),)),
            Section("Last lines of its log", (Command("\n".join(verdict.log_tail)),)),
            Section("Over time", _over_time(campaign, node)),
            Section(say("headings", "pairs"), tuple(_matrix(campaign, node, verdict, jobs))),
            Section(say("headings", "messages"), messages),
            Section("Memory, bandwidth and clock", cells),
            Section("How it was measured", method.brief(campaign) if alone else ()),
            *(_appendix(campaign, node, jobs, tuple(rest), alone) if complete else ()),
        ),
    )


def _appendix(
    campaign: Campaign, node: str, jobs: Sequence[Job], findings: tuple[Block, ...], alone: bool
) -> tuple[Section, ...]:
    verdict = campaign.verdict.nodes[node]
    cells = () if alone else _cells(campaign, node, verdict, jobs)
    others = (f for f in verdict.findings if not f.counts)  # they do not affect the outcome
    warnings = (
        Advice(str(of.get("text") or of.get("id") or ""), str(of.get("advice") or "")) for of in verdict.warnings
    )
    short, long = (tuple(f for f in facts(verdict.fingerprint) if (f[0] in _LONG) is own) for own in (False, True))
    problems = tuple(problem.text for job in jobs for problem in job.problems)
    other_findings = (f"{text.finding_sentence(f)} {' '.join(text.finding_details(f))}".strip() for f in others)
    return appendix(
        Section("Further findings", findings),
        Section("Further matrices", tuple(_matrices(campaign, node, verdict, jobs))),
        Section(say("headings", "cells"), (cell_table(verdict.cells), *cells[1:])),
        Section(say("headings", "node_agreements"), (agreement_table(verdict.agreements),)),
        Section("Other findings", (Bullets(tuple(other_findings)),)),
        Section("Runs", (_runs(jobs, verdict),)),
        Section("Warnings", tuple(warnings)),
        Section("Files that could not be used", (Bullets(problems),)),
        Section("Configuration", (FactList(short, 2), FactList(long))),
    )


def _lead(campaign: Campaign, node: str, verdict: NodeVerdict) -> tuple[str, ...]:
    """Explain the node's outcome, and locate the node."""
    place = [f"{key} {value}" for key, value in (("group", verdict.group), ("rack", verdict.rack)) if value]
    host = campaign.packed[node].host if node in campaign.packed else ""
    place += [f"host {printable(host, 80)}"] if host and host != node else []
    load = text.other_programs(campaign.folder, node) if campaign.folder is not None else ""
    where = f"({', '.join(place)})" if place else ""
    now = campaign.jobs_changed(node)
    changed = text.jobs_changed(verdict, now) if now is not None else ""
    groups = campaign.verdict.fleet.groups
    # findings on a node of a split fleet are relative to its own group only
    split = any(reason.outcome is Outcome.SPLIT for reason in verdict.reasons[1:])
    apart = text.belongs(verdict.group, groups) if split else ""
    beside = text.sentence(f"{load}.") if load else ""
    return tuple(filter(None, (text.node_sentence(verdict, groups), apart, changed, where, beside)))


def finding_block(
    campaign: Campaign, node: str, finding: Finding, number: int, header: Mapping[str, Any], *, is_first: bool = False
) -> FindingBlock:
    """Return a finding in full: sentence, numbers, figures of its own pairs or cells and by run, and check command.

    The sentence is omitted if the page began with it (`is_first`). A finding without a check command has the reason
    instead.
    """
    why_not = check_scripts.Again(finding, header).why_not
    check = why_not if campaign.folder is not None else ""
    action = text.action(finding, campaign.verdict.nodes)
    rows = (("place", _place(campaign, node, finding)), ("next", action), ("check", check))
    file = check_scripts.file_name(node)
    command = Command(check_scripts.command(node, number), say("check_purpose", node=printable(node, 80), file=file))
    figures = pictures.of_finding(campaign, node, finding, number, pictures.MAIN)
    if len(finding.runs) > 1:
        figures += pictures.of_runs(campaign, node, finding, number)
    title, words = text.component_in_words(finding), "" if is_first else text.finding_sentence(finding)
    details, facts = tuple(text.finding_details(finding)), tuple(row for row in rows if row[1])
    head = (text.sentence(title), words, state_mark(finding), finding_numbers(finding))
    return FindingBlock(*head, figures, details, facts, None if why_not else command)


def _place(campaign: Campaign, node: str, finding: Finding) -> str:
    """Locate a CPU of a finding: its socket, quadrant, CCD and CCX, and its memory node."""
    cpu, packed = finding.component.where.get("cpu"), campaign.packed.get(node)
    quantity = next((q for q in campaign.fleet.quantities if q.measurement == finding.measurement), None)
    if cpu is None or packed is None or quantity is None:
        return ""
    cpus = packed.cpus if quantity.of_pairs else packed.numbers.get("cpu", ())
    if cpu not in cpus or cpus.index(cpu) >= len(quantity.layout.slots):
        return ""
    slot = quantity.layout.slots[cpus.index(cpu)].tolist()
    components = zip(NAMES, slot, strict=False)
    return f"CPU {cpu}: " + ", ".join(f"{name} {number}" for name, number in components if number >= 0)


def _further(node: str, verdict: NodeVerdict, jobs: Sequence[Job]) -> tuple[Block, ...]:
    """Return findings without figures, one row each with its check command, and the number of the remaining ones."""
    rows = []
    for number, finding in enumerate(verdict.counted[MOST_FINDINGS:_MOST_ROWS], MOST_FINDINGS + 1):
        why_not = check_scripts.Again(finding, check_scripts.header(jobs, finding.measurement)).why_not
        effect, tolerance = names.with_tolerance(finding.effect, finding.tolerance, finding.of_effect)
        row: dict[str, Cell] = {
            "further findings": text.component_in_words(finding),
            "by": effect,
            "tolerance": tolerance,
            "": text.named("states", finding.state),
            "to check it": "" if why_not else check_scripts.command(node, number),
        }
        rows.append(row)
    table = tabulated(rows, "lrrll")
    left = len(verdict.counted) - _MOST_ROWS
    return table, Text(f"{names.counted(left, 'more finding')} of it in verdict.json." if left > 0 else "", quiet=True)


def _identity(campaign: Campaign, node: str, verdict: NodeVerdict, jobs: Sequence[Job], *, alone: bool) -> FactRows:
    """Identify the machine; if it is `alone`, with the measurement facts."""
    if alone:
        serials = str(verdict.fingerprint.get("serials") or "")
        return (*accepted.rows(campaign), *((("serial numbers", serials),) if serials else ()))
    fields = verdict.fingerprint
    times = sorted(
        at[:10] for job in jobs for m in job.measured.values() for run in m.runs if (at := run["start_time"])
    )
    rows: dict[str, Any] = {
        "node": node,
        **dict(accepted.machines({node: verdict})),
        **{label(key): fields[key] for key in _IDENTITY if fields.get(key)},
        "measured": names.listed(dict.fromkeys((times[0], times[-1]))) if times else "",
        "contact": campaign.site.contact,
        "contract": campaign.site.contract,
    }
    if verdict.counted and fields.get("bios") and not fields.get("serials"):
        rows["serial numbers"] = say("no_serials")
    return tuple((key, str(value)) for key, value in rows.items() if value)


def _matrix(
    campaign: Campaign, node: str, verdict: NodeVerdict, jobs: Sequence[Job], *, messages: bool = False
) -> list[Block]:
    """Return the first measurement of pairs, cache lines or `messages`: matrix, differences, groups, medians."""
    measured = pictures.between_cores(campaign, node, messages=messages)
    if not measured:
        return [] if messages or campaign.measurements(node, pairs=True) else [class_table(verdict.classes)]
    name = measured[0]
    levels = campaign.levels(name, node)
    difference = tuple(pictures.difference(campaign, node, name))
    # a node with peers has the difference there
    difference = difference or (() if messages else tuple(pictures.inside_sockets(campaign, node, name)))
    width = pictures.HALF if difference else pictures.MAIN
    shown = tuple(itertools.islice(pictures.matrices(campaign, node, name, width), 1))
    counted = tuple(pictures.histogram(campaign, node, name)) if messages else ()
    has_room = verdict.outcome is not Outcome.SAME  # a SAME node has only one page
    blocks = tuple(pictures.blocks_of(campaign, node, name)) if has_room else ()
    plan = tuple(pictures.floor_plan(campaign, node, name)) if has_room and not blocks else ()
    classes = tuple(figure for figure in verdict.classes if figure.measurement == name)
    structure, quadrants = _structure(campaign, node, name), list[str]()
    for pair in measured:
        of_pair = structure_sentences.quadrants_of_node(campaign.levels(pair, node), node)
        quadrants += (
            of_pair if pair == name else (f"{text.sentence(text.measured(pair))}: {words}" for words in of_pair)
        )
    return [
        *structure,
        Figures((*shown, *difference, *counted)),
        _of_job(verdict, campaign.shown_job(node, name)),
        *([_messages(levels, node, jobs)] if messages else []),
        Bullets(tuple(structure_sentences.placement_of_node(levels, node, verdict.fingerprint)), bool(verdict.counted)),
        Bullets(tuple(quadrants), bool(verdict.counted)),
        # groups detected without labels have the same values
        class_table(() if any(isinstance(block, Table) for block in structure) else classes),
        Figures((*blocks, *plan)),
    ]


def _of_job(verdict: NodeVerdict, job: str = "") -> Text:
    """Name the job of figures and sentences, `job` or the newest, whose values are not the medians over several."""
    jobs = verdict.jobs
    return Text(say("of_one_job", job=job or jobs[-1], jobs=jobs) if len(jobs) > 1 else "", quiet=True)


def _messages(levels: NodeLevels, node: str, jobs: Sequence[Job]) -> FactList:
    name = levels.quantity.measurement
    runs = next((job.measured[name].runs for job in reversed(jobs) if name in job.measured), ())
    slowest = [pair for run in runs for pair in run.get("slowest_again", ())]
    return FactList(message_rates.facts(levels.of(node), check_scripts.header(jobs, name), slowest), 2)


def _matrices(campaign: Campaign, node: str, verdict: NodeVerdict, jobs: Sequence[Job]) -> list[Block]:
    """Return the matrices that do not fit on paper, with medians by class."""
    blocks: list[Block] = []
    measured = campaign.measurements(node, pairs=True)
    first = {name for of in (False, True) for name in pictures.between_cores(campaign, node, messages=of)[:1]}
    for name in measured:
        shown = tuple(pictures.matrices(campaign, node, name))
        blocks.append(Figures(shown[1:] if name in first else shown))
        if name not in first:
            levels = campaign.levels(name, node)
            blocks += [_messages(levels, node, jobs)] if pictures.is_of_messages(levels.quantity) else []
            classes = tuple(figure for figure in verdict.classes if figure.measurement == name)
            blocks += [*_structure(campaign, node, name), class_table(classes)]
    return [*blocks, class_table(tuple(of for of in verdict.classes if of.measurement not in measured))]


def _structure(campaign: Campaign, node: str, measurement: str) -> list[Block]:
    """Describe the groups of CPUs in an imported or unlabeled matrix, with anomalies; without labels in a table."""
    levels = campaign.levels(measurement, node)
    if part_levels.structure_at(levels, node) is None and not campaign.packed[node].imported:
        return []
    seen = part_levels.found_at(levels, node)
    if seen is None:
        return []
    odd = tuple(Advice(finding.text, finding.advice) for finding in seen.findings)
    summary = structure_sentences.structure_summary(seen)
    if part_levels.structure_at(levels, node) is None:
        return [Text(summary), *odd]
    header, rows = ("level", "groups", "CPUs in each", "CPUs", "within", "to the next", "stability"), []
    for level, groups in seen.own_groups():
        sizes = names.listed(map(str, sorted({len(group) for group in groups})))
        cpus = "; ".join(map(list_text, groups)) if len(groups) <= _MOST_GROUPS else ""
        medians = _of_classes(level.within), _of_classes(level.between)
        rows.append((level_name(level.name), str(len(groups)), sizes, cpus, *medians, f"{level.stability:.2f}"))
    if not rows:
        return [Text(say("no_labels", "none")), *odd]
    table = without_empty(Table(header, tuple(rows), "lrrlllr"))
    return [Text(summary), Text(say("no_labels", "found")), table, *odd]


def _of_classes(classes: Sequence[PairClass]) -> str:
    """Return a median, or that of each component with the slowest-to-fastest ratio."""
    if len(classes) < 2:
        return names.quantity(classes[0].median_ns, "ns") if classes else ""
    medians = [pairs.median_ns for pairs in classes]
    each = (f"{pairs.part}: {names.quantity(pairs.median_ns, 'ns')}" for pairs in classes)
    return f"{', '.join(each)} ({max(medians) / min(medians):.1f} times)"


def _cells(campaign: Campaign, node: str, verdict: NodeVerdict, jobs: Sequence[Job]) -> tuple[Block, ...]:
    """Return all other measurements: a table of main results, sentences about curves, and figures."""
    sentences = tuple(text.peak(verdict))
    cells = jobs[-1].cells if jobs else []
    sentences += readings.readings(cells, campaign.machine(node))
    sentences += readings.of_counters(campaign.packed[node].sensors) if node in campaign.packed else ()
    figures = (*pictures.cells(campaign, node), *pictures.under_load(campaign, node, jobs))
    few = tuple(of for of in figures if of.name.startswith(pictures.BY_CPU) and of.width < pictures.PAGE)
    main = tuple(of for of in figures if of not in few)
    # the values of a few CPUs are also in a table
    shown = (Figures(main), Figures(few, dispensable=True)) if len(few) < len(figures) else (Figures(few),)
    of_job = (_of_job(verdict),) if figures or sentences else ()
    return main_cells(verdict), *of_job, *shown, further_cells(verdict), Bullets(sentences), *mapped_twice(cells)


def _runs(jobs: Sequence[Job], verdict: NodeVerdict) -> Table:
    """Return a row per measurement of each job; the median of its runs if the values are of one kind."""
    kinds = Counter([figure.measurement for figure in verdict.classes])
    kinds.update(cell.measurement for cell in verdict.cells)
    mixtures = {figure.measurement for figure in verdict.classes if figure.groups}
    invalid = {(seen.measurement, seen.run) for seen in verdict.disturbances if seen.invalid}
    rows: list[dict[str, Cell]] = []
    for job in jobs:
        for name, measured in sorted(job.measured.items()):
            values = run_medians.values_of_runs(measured)
            medians = [median for run in values if (median := run_medians.median_over_points(run)) is not None]
            if not medians:
                continue
            alike = kinds[name] == 1 and name not in mixtures
            bad = [run for run in measured.numbers if (name, f"job{job.number}/run{run}") in invalid]
            unit = run_medians.unit_of(measured)
            ends = dict.fromkeys(names.quantity(end, unit) for end in (min(medians), max(medians)))
            spread, flagged = run_medians.between_runs(values), run_medians.flagged_share(measured)
            row: dict[str, Cell] = {"job": str(job.number), "measurement": name, "passes": str(len(measured.passes))}
            row |= {"runs": str(len(medians)), "median of runs": " to ".join(ends) if alike else ""}
            row["between runs"] = names.percent(spread) if spread is not None else ""
            row["flagged"] = names.percent(flagged) if flagged else ""
            row["began"] = min(str(run["start_time"]) for run in measured.runs)[:16]
            row[""] = f"✕ invalid: {names.listed(map(str, bad))}" if bad else ""
            rows.append(row)
    return tabulated(rows, "llrrrrrll")


def _over_time(campaign: Campaign, node: str) -> tuple[Block, ...]:
    """Return the changes of a node, the figure of its courses and their campaigns; empty without other campaigns."""
    of_node = campaign.over_time.get(node)
    if of_node is None or of_node.course is None:
        return ()
    data, caption = of_node.course, say("captions", "course", node=node)
    drawn = pictures.picture(campaign, node, "over-time", curves.curve, data, pictures.PAGE, caption)
    return Bullets(of_node.sentences), Figures((drawn,)), Text(of_node.campaigns, quiet=True)


# --- memory that is mapped twice ---


_SECONDS = ("writer_s", "reader_s", "writer_staggered_s", "reader_staggered_s")
_HEADER = ("pair", "writer", "reader", "writer's time", "reader's time", "writer, staggered", "reader, staggered")
#: Rows of a table that is read; with more pairs half of them are the first and half the last.
MOST_PAIRS = 16


def mapped_twice(curves_of_job: Sequence[JobMeasurement]) -> Iterator[Block]:
    """The seconds of pairs in memory that is mapped twice, with their averages, as in xcpumemperf's table."""
    for data in curves_of_job:
        if (data.header["kernel"], data.header["operation"]) == ("remap", "ring") and set(_SECONDS) <= set(
            data.columns
        ):
            yield Text(f"{text.sentence(text.measured(data.name))}, seconds of each pair:")
            yield _seconds(data)


def _seconds(data: JobMeasurement) -> Table:
    seconds = np.stack([readings.over_runs(data.columns[key]) for key in _SECONDS], axis=1)
    ends = list(zip(data.keys("writer"), data.keys("reader"), strict=True))
    rows = [
        (str(number), f"CPU {writer}", f"CPU {reader}", *(names.duration(1e9 * value) for value in of_pair))
        for number, ((writer, reader), of_pair) in enumerate(zip(ends, seconds.tolist(), strict=True), 1)
    ]
    hidden = len(rows) - MOST_PAIRS
    if hidden > 0:
        between = (f"{hidden} more", *[""] * (len(_HEADER) - 1))
        rows = [*rows[: MOST_PAIRS // 2], between, *rows[-(MOST_PAIRS // 2) :]]
    average = ("average", "", "", *(names.duration(1e9 * value) for value in np.nanmean(seconds, axis=0).tolist()))
    return Table(_HEADER, (*rows, average), "lllrrrr")
