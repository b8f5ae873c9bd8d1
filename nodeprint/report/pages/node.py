"""The pages of a node. Nothing is judged here.

Page 1 is for the vendor: which node and which part, what was found with its figure and numbers, and a command that
checks it. Its matrix beside the peers follows; every other table is the appendix, which the HTML alone has.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from nodeprint.data.job import run_medians
from nodeprint.data.job.jobs import Job
from nodeprint.errors import printable
from nodeprint.judge.outcome import Outcome
from nodeprint.judge.verdict import Finding, NodeVerdict
from nodeprint.machine.fingerprint import LISTS, label
from nodeprint.machine.topology.facts import list_text
from nodeprint.machine.topology.level_names import level_name
from nodeprint.report import (
    check_scripts,
    matrix_words,
    message_rates,
    names,
    other_programs,
    readings,
    text,
)
from nodeprint.report.figures import curves, matrix
from nodeprint.report.figures.node_levels import NodeLevels
from nodeprint.report.pages import accepted, mapped_twice, method, pictures
from nodeprint.report.pages.blocks import (
    Advice,
    Block,
    Bullets,
    Cell,
    Command,
    FactList,
    FactRows,
    Figures,
    Mark,
    Page,
    Section,
    Table,
    Text,
    sections,
)
from nodeprint.report.pages.common import (
    agreement_table,
    anchor,
    appendix,
    cell_table,
    class_table,
    facts,
    finding_block,
    further_cells,
    main_cells,
    without_empty,
)
from nodeprint.report.pages.judged_campaign import Campaign
from nodeprint.settings.texts import say
from nodeprint.structure.found import PairClass

#: Findings that have figures on paper, that have a row there, and lines of a list.
MOST_FINDINGS, _MOST_ROWS, _MOST_NOTES = 3, 20, 8
#: FactList that take a line of their own.
_LONG = {label(key) for key in ("cmdline", "serials", *LISTS)}
#: What else of the fingerprint says which machine it is, for somebody who gets the page alone.
_IDENTITY = ("bmc", "serials", "ppin")
#: Of more groups of a level the CPUs are not named.
_MOST_GROUPS = 8


def page(campaign: Campaign, node: str, jobs: Sequence[Job] | None = None, *, complete: bool = True) -> Page:
    """The page of a node, with its appendix if it is to be `complete`. Its `jobs` are read if none are given."""
    verdict = campaign.verdict.nodes[node]
    jobs = campaign.jobs(node) if jobs is None else jobs
    blocks = [
        finding_block(campaign, node, finding, number, method.header(jobs, finding.measurement), is_first=number == 1)
        for number, finding in enumerate(verdict.counted[: None if complete else MOST_FINDINGS], 1)
    ]
    shown, rest = blocks[:MOST_FINDINGS], blocks[MOST_FINDINGS:]
    alone = len(campaign.verdict.nodes) == 1
    notes = text.memory_warnings(campaign.verdict.fleet, node)
    notes += text.fleet_notes(campaign.verdict)[:_MOST_NOTES] if alone else []
    of_peak = Bullets(tuple(text.peak(verdict)))
    elsewhere = Text(say("values_elsewhere"), quiet=True)
    brief = (elsewhere,) if verdict.outcome is Outcome.SAME else (main_cells(verdict), of_peak)
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
            # a node that passes beside others has one page, and two such nodes are in cluster.pdf
            Section(
                say("headings", "messages"),
                tuple(_matrix(campaign, node, verdict, jobs, messages=True)) if alone or verdict.counted else (),
            ),
            Section("Memory, bandwidth and clock", cells),
            Section("How it was measured", method.brief(campaign) if alone else ()),
            *(_appendix(campaign, node, jobs, tuple(rest), alone) if complete else ()),
        ),
    )


def _appendix(
    campaign: Campaign, node: str, jobs: Sequence[Job], findings: tuple[Block, ...], alone: bool
) -> tuple[Section, ...]:
    """What is no page of paper: all tables and figures."""
    verdict = campaign.verdict.nodes[node]
    cells = () if alone else _cells(campaign, node, verdict, jobs)
    return appendix(
        Section("Further findings", findings),
        Section("Further matrices", tuple(_matrices(campaign, node, verdict, jobs))),
        Section(say("headings", "cells"), (cell_table(verdict.cells), *cells[1:])),
        Section(say("headings", "node_agreements"), (agreement_table(verdict.agreements),)),
        Section("Other findings", _others([finding for finding in verdict.findings if not finding.counts])),
        Section("Runs", (_runs(jobs, verdict),)),
        Section("Warnings", tuple(Advice(*_advice(warning)) for warning in verdict.warnings)),
        Section(
            "Files that could not be used", (Bullets(tuple(problem.text for job in jobs for problem in job.problems)),)
        ),
        Section("Configuration", _configuration(verdict)),
    )


def _lead(campaign: Campaign, node: str, verdict: NodeVerdict) -> tuple[str, ...]:
    """Why the node has its outcome, and where it is."""
    place = [f"{key} {value}" for key, value in (("group", verdict.group), ("rack", verdict.rack)) if value]
    host = campaign.packed[node].host if node in campaign.packed else ""
    place += [f"host {printable(host, 80)}"] if host and host != node else []
    load = other_programs.sentence(campaign.folder, node) if campaign.folder is not None else ""
    where = f"({', '.join(place)})" if place else ""
    now = campaign.jobs_changed(node)
    changed = text.jobs_changed(verdict, now) if now is not None else ""
    groups = campaign.verdict.fleet.groups
    # what is found on a node of a split fleet is beside its own group alone
    split = any(reason.outcome is Outcome.SPLIT for reason in verdict.reasons[1:])
    apart = text.belongs(verdict.group, groups) if split else ""
    beside = text.sentence(f"{load}.") if load else ""
    return tuple(filter(None, (text.node_sentence(verdict, groups), apart, changed, where, beside)))


def _further(node: str, verdict: NodeVerdict, jobs: Sequence[Job]) -> tuple[Block, ...]:
    """Findings beyond those with figures, in a row each, with the command that checks it; how many more there are."""
    rows: list[tuple[Cell, ...]] = [
        (
            text.component_in_words(finding),
            names.signed(finding.effect),
            names.tolerance(finding.tolerance),
            text.named("states", finding.state),
            "" if check_scripts.Again(finding, header).why_not else check_scripts.command(node, number),
        )
        for number, finding in enumerate(verdict.counted[:_MOST_ROWS], 1)
        for header in [method.header(jobs, finding.measurement)]
        if number > MOST_FINDINGS
    ]
    table = without_empty(Table(("further findings", "by", "tolerance", "", "to check it"), tuple(rows), "lrrll"))
    left = len(verdict.counted) - _MOST_ROWS
    return table, Text(f"{names.counted(left, 'more finding')} of it in verdict.json." if left > 0 else "", quiet=True)


def _identity(campaign: Campaign, node: str, verdict: NodeVerdict, jobs: Sequence[Job], *, alone: bool) -> FactRows:
    """Which machine this is; where it is `alone` also what it was measured by."""
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


def _others(findings: Sequence[Finding]) -> tuple[Block, ...]:
    """Findings that are no part of the outcome, in a line each."""
    return (
        Bullets(tuple(f"{text.finding_sentence(f)} {' '.join(text.finding_details(f))}".strip() for f in findings)),
    )


def _matrix(
    campaign: Campaign, node: str, verdict: NodeVerdict, jobs: Sequence[Job], *, messages: bool = False
) -> list[Block]:
    """The first measurement of pairs, of cache lines or of `messages`: its matrix, the differences from the peers, the
    numbers between its parts, what is found in it where its CPUs have no labels, and medians by class; of messages the
    histogram with its ends, too."""
    measured = pictures.between_cores(campaign, node, messages=messages)
    if not measured:
        return [] if messages or campaign.measurements(node, pairs=True) else [class_table(verdict.classes)]
    name = measured[0]
    levels = campaign.levels(name, node)
    difference = tuple(pictures.difference(campaign, node, name))
    # beside its peers a node has the difference there
    difference = difference or (() if messages else tuple(pictures.inside_sockets(campaign, node, name)))
    width = pictures.HALF if difference else pictures.MAIN
    shown = tuple(itertools.islice(pictures.matrices(campaign, node, name, width), 1))
    counted = tuple(pictures.histogram(campaign, node, name)) if messages else ()
    has_room = verdict.outcome is not Outcome.SAME  # of which there is one page
    blocks = tuple(pictures.blocks_of(campaign, node, name)) if has_room else ()
    plan = tuple(pictures.floor_plan(campaign, node, name)) if has_room and not blocks else ()
    classes = tuple(figure for figure in verdict.classes if figure.measurement == name)
    structure = _structure(campaign, node, name)
    return [
        *structure,
        Figures((*shown, *difference, *counted)),
        *([_messages(levels, node, jobs)] if messages else []),
        Bullets(tuple(matrix_words.placement_of_node(levels, node, verdict.fingerprint)), bool(verdict.counted)),
        Bullets(
            tuple(words for pair in measured for words in _quadrants(campaign, node, pair, measured[0])),
            bool(verdict.counted),
        ),
        # what was found without labels has the same figures
        class_table(() if any(isinstance(block, Table) for block in structure) else classes),
        Figures((*blocks, *plan)),
    ]


def _messages(levels: NodeLevels, node: str, jobs: Sequence[Job]) -> FactList:
    """Minimum, mean and maximum of messages with their rates, and how they were measured."""
    name = levels.quantity.measurement
    runs = next((job.measured[name].runs for job in reversed(jobs) if name in job.measured), ())
    slowest = [pair for run in runs for pair in run.get("slowest_again", ())]
    return FactList(message_rates.facts(levels.of(node), method.header(jobs, name), slowest), 2)


def _quadrants(campaign: Campaign, node: str, measurement: str, first: str) -> list[str]:
    """What is said of quadrants; of other than the first measurement with its name."""
    sentences = matrix_words.quadrants_of_node(campaign.levels(measurement, node), node)
    name = text.sentence(text.measured(measurement))
    return sentences if measurement == first else [f"{name}: {words}" for words in sentences]


def _matrices(campaign: Campaign, node: str, verdict: NodeVerdict, jobs: Sequence[Job]) -> list[Block]:
    """What paper has no room for: every other matrix, with medians by class."""
    blocks: list[Block] = []
    measured = campaign.measurements(node, pairs=True)
    first = {name for of in (False, True) for name in pictures.between_cores(campaign, node, messages=of)[:1]}
    for name in measured:
        shown = tuple(pictures.matrices(campaign, node, name))
        if name in first:
            blocks.append(Figures(shown[1:]))
            continue
        blocks.append(Figures(shown))
        levels = campaign.levels(name, node)
        if pictures.is_of_messages(levels.quantity):
            blocks.append(_messages(levels, node, jobs))
        blocks += _structure(campaign, node, name)
        blocks.append(class_table(tuple(figure for figure in verdict.classes if figure.measurement == name)))
    others = [figure for figure in verdict.classes if figure.measurement not in measured]
    return [*blocks, class_table(tuple(others))]


def _structure(campaign: Campaign, node: str, measurement: str) -> list[Block]:
    """Groups of CPUs that are found in an imported matrix, in a sentence; and as a table where its CPUs have no labels,
    with what is odd about them."""
    levels = campaign.levels(measurement, node)
    if matrix.structure_at(levels, node) is None and not campaign.packed[node].imported:
        return []
    seen = matrix.found_at(levels, node)
    if seen is None:
        return []
    odd = tuple(Advice(finding.text, finding.advice) for finding in seen.findings)
    summary = matrix_words.structure_summary(seen)
    if matrix.structure_at(levels, node) is None:
        return [Text(summary), *odd]
    rows = tuple(
        (
            level_name(level.name),
            str(len(groups)),
            names.listed(map(str, sorted({len(group) for group in groups}))),
            "; ".join(map(list_text, groups)) if len(groups) <= _MOST_GROUPS else "",
            _of_classes(level.within),
            _of_classes(level.between),
            f"{level.stability:.2f}",
        )
        for level, groups in seen.own_groups()
    )
    if not rows:
        none = Text(say("no_labels", "none"))
        return [none, *odd]
    header = ("level", "groups", "CPUs in each", "CPUs", "within", "to the next", "stability")
    heading = Text(say("no_labels", "found"))
    return [Text(summary), heading, without_empty(Table(header, rows, "lrrlllr")), *odd]


def _of_classes(classes: Sequence[PairClass]) -> str:
    """A median, or that of each part with how many times the fastest the slowest is."""
    if len(classes) < 2:
        return names.quantity(classes[0].median_ns, "ns") if classes else ""
    medians = [pairs.median_ns for pairs in classes]
    each = (f"{pairs.part}: {names.quantity(pairs.median_ns, 'ns')}" for pairs in classes)
    return f"{', '.join(each)} ({max(medians) / min(medians):.1f} times)"


def _cells(campaign: Campaign, node: str, verdict: NodeVerdict, jobs: Sequence[Job]) -> tuple[Block, ...]:
    """Every other measurement: what a reader looks for as a table, what curves say in words, and the figure of each
    that has one."""
    sentences = tuple(text.peak(verdict))
    cells = jobs[-1].cells if jobs else []
    sentences += readings.readings(cells, campaign.machine(node))
    sentences += readings.of_counters(campaign.packed[node].sensors) if node in campaign.packed else ()
    figures = (*pictures.cells(campaign, node), *pictures.under_load(campaign, node, jobs))
    few = tuple(of for of in figures if of.name.startswith(pictures.BY_CPU) and of.width < pictures.PAGE)
    main = tuple(of for of in figures if of not in few)
    # of few CPUs values are in a table, too
    shown = (Figures(main), Figures(few, dispensable=True)) if len(few) < len(figures) else (Figures(few),)
    return (
        main_cells(verdict),
        *shown,
        further_cells(verdict),
        Bullets(sentences),
        *mapped_twice.of_curves(cells),
    )


def _runs(jobs: Sequence[Job], verdict: NodeVerdict) -> Table:
    """A row for each measurement of each job: its passes and runs, the median of every run where its values are of one
    kind, flagged values, and when its first run began."""
    kinds = Counter([figure.measurement for figure in verdict.classes])
    kinds.update(cell.measurement for cell in verdict.cells)
    mixtures = {figure.measurement for figure in verdict.classes if figure.groups}
    invalid = {
        (disturbance.measurement, disturbance.run) for disturbance in verdict.disturbances if disturbance.invalid
    }
    rows: list[tuple[Cell, ...]] = []
    for job in jobs:
        for name, measured in sorted(job.measured.items()):
            values = run_medians.values_of_runs(measured)
            medians = [median for run in values if (median := run_medians.median_over_points(run)) is not None]
            if not medians:
                continue
            alike = kinds[name] == 1 and name not in mixtures
            bad = [run for run in measured.numbers if (name, f"job{job.number}/run{run}") in invalid]
            spread, flagged = run_medians.between_runs(values), run_medians.flagged_share(measured)
            rows.append(
                (
                    str(job.number),
                    name,
                    str(len(measured.passes)),
                    str(len(medians)),
                    _together(medians, run_medians.unit_of(measured)) if alike else "",
                    names.percent(spread) if spread is not None else "",
                    names.percent(flagged) if flagged else "",
                    min(str(run["start_time"]) for run in measured.runs)[:16],
                    f"✕ invalid: {names.listed(map(str, bad))}" if bad else "",
                )
            )
    header = ("job", "measurement", "passes", "runs", "median of runs", "between runs", "flagged", "began", "")
    return without_empty(Table(header, tuple(rows), "llrrrrrll"))


def _together(values: Sequence[float], unit: str) -> str:
    """A median, or the lowest and the highest of several."""
    low, high = (names.quantity(end, unit) for end in (min(values), max(values)))
    return low if low == high else f"{low} to {high}"


def _advice(warning: Mapping[str, str]) -> tuple[str, str]:
    return str(warning.get("text") or warning.get("id") or ""), str(warning.get("advice") or "")


def _configuration(verdict: NodeVerdict) -> tuple[Block, ...]:
    facts_of_node = facts(verdict.fingerprint)
    return (
        FactList(tuple(fact for fact in facts_of_node if fact[0] not in _LONG), 2),
        FactList(tuple(fact for fact in facts_of_node if fact[0] in _LONG)),
    )


def _over_time(campaign: Campaign, node: str) -> tuple[Block, ...]:
    """The changes of a node, the figure of its courses and which campaigns they are from; nothing without others."""
    of_node = campaign.over_time.get(node)
    if of_node is None or of_node.course is None:
        return ()
    components = names.listed(of_node.course.component.to_numpy().tolist())
    alt = say("alt", "over_time", node=node, components=components, sentences=" ".join(of_node.sentences))
    data, caption = of_node.course, say("captions", "course", node=node)
    drawn = pictures.picture(campaign, node, "over-time", curves.curve, data, pictures.PAGE, caption, alt)
    return Bullets(of_node.sentences), Figures((drawn,)), Text(of_node.campaigns, quiet=True)
