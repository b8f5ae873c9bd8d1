"""The pages of a node. Nothing is judged here.

Page 1 is for the vendor: which node and which part, what was found with its figure, what is expected and a command that
checks it. Difference maps, matrices and quantities follow; runs, warnings and configuration come last.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from nodeprint.data.packed_jobs import NodeJobs, PackedJob
from nodeprint.errors import printable
from nodeprint.judge.verdict import NodeVerdict
from nodeprint.machine.fingerprint import LISTS, label
from nodeprint.report import message_rates, names, quadrant_words, readings, structure_words, terminal, text
from nodeprint.report.figures import matrix
from nodeprint.report.pages import method, over_time, pictures
from nodeprint.report.pages.blocks import (
    Advice,
    Block,
    Bullets,
    Cell,
    FactList,
    FactRows,
    Figures,
    Log,
    Mark,
    Page,
    Section,
    Table,
    Text,
    sections,
)
from nodeprint.report.pages.common import (
    anchor,
    cell_table,
    class_table,
    facts,
    finding_block,
    margin_table,
    without_empty,
)
from nodeprint.report.pages.judged_campaign import Campaign
from nodeprint.structure.found import PairClass

#: FactList that take a line of their own.
_LONG = {label(key) for key in ("cmdline", "serials", *LISTS)}
#: What of the fingerprint says which machine it is, for somebody who gets the page alone.
_IDENTITY = ("product", "serials", "ppin", "dimms", "dimm_speed", "bios", "microcode", "bmc", "os", "kernel")


def page(campaign: Campaign, node: str, kept: NodeJobs | None = None) -> Page:
    """The page of a node. `kept` are its jobs, read where none are given."""
    verdict = campaign.verdict.nodes[node]
    kept = campaign.jobs(node) if kept is None else kept
    jobs = kept.jobs
    counted, others = verdict.counted, [finding for finding in verdict.findings if not finding.counts]
    blocks = [
        finding_block(campaign, node, finding, number, method.header(jobs, finding.measurement), told=number == 1)
        for number, finding in enumerate(counted, 1)
    ]
    alone = text.fleet_notes(campaign.verdict) if len(campaign.verdict.nodes) == 1 else []
    differences = Section("Difference from the peers", _differences(campaign, node))
    return Page(
        node, anchor(node), printable(node, 120), Mark.of(verdict.outcome), _lead(campaign, node, verdict),
        sections(
            Section("", (Bullets(tuple(alone)),)),
            Section("The machine", (FactList(_identity(campaign, node, verdict, jobs), 2),)),
            Section("What was found", tuple(blocks)),
            Section("Disturbed data", (Bullets(tuple(text.further(verdict))),)),
            Section("How it was tested", method.tested(jobs, [finding.measurement for finding in counted])),
            Section("Last lines of its log", (Log(verdict.log_tail),)),
            Section("Over time", over_time.blocks(campaign, node)),
            differences,
            Section("Core to core", tuple(_matrices(campaign, node, verdict, jobs))),
            Section("Memory, caches, bandwidth, clock and lost time", tuple(_cells(campaign, node, verdict, kept))),
            Section("How near it is to its bounds", (margin_table(verdict.margins),)),
            Section("Other findings", _others(campaign, node, others, jobs)),
            Section("Runs", (_runs(jobs, verdict),)),
            Section("Warnings", tuple(Advice(*_advice(warning)) for warning in verdict.warnings)),
            Section("Files that could not be used", (Bullets(tuple(p for job in jobs for p in job.problems)),)),
            Section("Configuration", _configuration(verdict)),
        ),
    )  # fmt: skip


def _lead(campaign: Campaign, node: str, verdict: NodeVerdict) -> tuple[str, ...]:
    """Why the node has its outcome, and where it is."""
    place = [f"{key} {value}" for key, value in (("group", verdict.group), ("rack", verdict.rack)) if value]
    host = campaign.packed[node].host if node in campaign.packed else ""
    place += [f"host {printable(host, 80)}"] if host and host != node else []
    load = terminal.beside(campaign.folder, node) if campaign.folder is not None else ""
    where = f"({', '.join(place)})" if place else ""
    now = campaign.jobs_changed(node)
    changed = text.jobs_changed(verdict, now) if now is not None else ""
    return tuple(
        filter(None, (text.node_sentence([verdict]), changed, where, text.sentence(f"{load}.") if load else ""))
    )


def _identity(campaign: Campaign, node: str, verdict: NodeVerdict, jobs: Sequence[PackedJob]) -> FactRows:
    """Which machine this is."""
    fields = verdict.fingerprint
    times = sorted(run.started[:10] for job in jobs for m in job.measured.values() for run in m.runs if run.started)
    processors = fields.get("cpu")
    if processors and fields.get("sockets"):
        processors = f"{fields['sockets']} x {processors}"
    rows: dict[str, Any] = {
        "node": node,
        "processors": processors,
        "memory, GiB": fields.get("memory_gib"),
        **{label(key): fields[key] for key in _IDENTITY if fields.get(key)},
        "measured": names.listed(dict.fromkeys((times[0], times[-1]))) if times else "",
        "contact": campaign.site.contact,
        "contract": campaign.site.contract,
    }
    if verdict.counted and fields.get("bios") and not fields.get("serials"):
        rows["serial numbers"] = "not recorded (`serials` in the configuration)"
    return tuple((key, str(value)) for key, value in rows.items() if value)


def _others(campaign: Campaign, node: str, findings: Sequence[Any], jobs: Sequence[PackedJob]) -> tuple[Block, ...]:
    """Findings that are no part of the outcome, in a line each."""
    return (
        Bullets(tuple(f"{text.finding_sentence(f)} {' '.join(text.finding_details(f))}".strip() for f in findings)),
    )


def _differences(campaign: Campaign, node: str) -> tuple[Block, ...]:
    """Of each measurement of pairs the node against its peers."""
    pictures_of_pairs = (pictures.difference(campaign, node, name) for name in campaign.measurements(node, pairs=True))
    return tuple(Figures(tuple(shown)) for shown in pictures_of_pairs)


def _matrices(campaign: Campaign, node: str, verdict: NodeVerdict, jobs: Sequence[PackedJob]) -> list[Block]:
    """Each measurement of pairs: its matrices, what is in them, medians by class."""
    blocks: list[Block] = []
    for name in campaign.measurements(node, pairs=True):
        shown = tuple(pictures.matrices(campaign, node, name))
        blocks += [Figures(shown), Text(_range(campaign, node, name), quiet=True)]
        levels = campaign.levels(name, node)
        if levels.quantity.quantity == "message":
            blocks.append(FactList(message_rates.facts(levels.of(node), method.header(jobs, name)), 2))
        blocks.append(class_table(tuple(figure for figure in verdict.classes if figure.measurement == name)))
        blocks.append(Figures(tuple(pictures.around(campaign, node, name))))
        blocks.append(Bullets(tuple(quadrant_words.of_node(levels, node))))
        blocks += _structure(campaign, node, name)
    left = [figure for figure in verdict.classes if figure.measurement not in campaign.measurements(node, pairs=True)]
    return [*blocks, class_table(tuple(left))]


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
    summary = structure_words.summary(seen)
    if matrix.structure_at(levels, node) is None:
        return [Text(summary), *odd]
    rows = tuple(
        (
            level.name, str(len(level.groups)),
            names.listed(map(str, sorted({len(group) for group in level.groups}))),
            _of_classes(level.within), _of_classes(level.between), f"{level.stability:.2f}",
        )
        for level in seen.levels
    )  # fmt: skip
    if not rows:
        none = Text("Its CPUs have no labels, and no groups are found from the latencies alone.")
        return [none, *odd]
    header = ("level", "groups", "CPUs in each", "within", "to the next", "stability")
    heading = Text("Its CPUs have no labels. Groups that are found from the latencies alone:")
    return [Text(summary), heading, Table(header, rows, "lrrllr"), *odd]


def _of_classes(classes: Sequence[PairClass]) -> str:
    """A median, or that of each part with how many times the fastest the slowest is."""
    if len(classes) < 2:
        return names.quantity(classes[0].median_ns, "ns") if classes else ""
    medians = [pairs.median_ns for pairs in classes]
    each = (f"{pairs.part}: {names.quantity(pairs.median_ns, 'ns')}" for pairs in classes)
    return f"{', '.join(each)} ({max(medians) / min(medians):.1f} times)"


def _range(campaign: Campaign, node: str, measurement: str) -> str:
    """How many pairs were measured, and their range."""
    levels = campaign.levels(measurement, node)
    values = levels.of(node)
    finite = values[np.isfinite(values)]
    if not finite.size:
        return f"{measurement}: no pair was measured."
    low, high = (names.quantity(float(end), levels.quantity.unit) for end in (finite.min(), finite.max()))
    homes = f" at {len(levels.quantity.homes)} homes" if len(levels.quantity.homes) > 1 else ""
    if finite.size == 1:  # its median is in the table below
        return f"{measurement}: 1 pair{homes}."
    return f"{measurement}: {finite.size:,} pairs{homes}, from {low} to {high} (each the median of its runs)."


def _cells(campaign: Campaign, node: str, verdict: NodeVerdict, kept: NodeJobs) -> list[Block]:
    """Every other measurement: the table, what curves say in words, and the figure of each that has one."""
    blocks: list[Block] = [cell_table(verdict.cells)]
    if kept.jobs:
        blocks += [Text(words) for words in readings.readings(kept.jobs[-1].curves, kept.machine)]
    return [*blocks, Figures((*pictures.cells(campaign, node), *pictures.under_load(campaign, node, kept.jobs)))]


def _runs(jobs: Sequence[PackedJob], verdict: NodeVerdict) -> Table:
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
            medians = [run.median for run in measured.runs if run.median is not None]
            if not medians:
                continue
            alike = kinds[name] == 1 and name not in mixtures
            bad = [run.number for run in measured.runs if (name, f"job{job.number}/run{run.number}") in invalid]
            rows.append((
                str(job.number), name, str(measured.passes), str(len(medians)),
                _together(medians, measured.unit) if alike else "",
                names.percent(measured.between_runs) if measured.between_runs is not None else "",
                names.percent(measured.flagged) if measured.flagged else "",
                min(run.started for run in measured.runs)[:16],
                f"✕ invalid: {names.listed(map(str, bad))}" if bad else "",
            ))  # fmt: skip
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
