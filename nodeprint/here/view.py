"""The results of this machine for a terminal: matrix, medians, labels and disturbances."""

from __future__ import annotations

import math
from collections.abc import Sequence

from nodeprint.errors import printable
from nodeprint.here.matrix_text import square
from nodeprint.here.result import Result
from nodeprint.here.time_budget import steps
from nodeprint.machine.topology.level_names import level_name
from nodeprint.report import names, text
from nodeprint.report.pages import blocks
from nodeprint.report.pages.blocks import Bullets, Section, Table, Text
from nodeprint.settings.texts import say
from nodeprint.summary.node_summary import LEVELS, MedianValue, NodeSummary


def shown(measurement: str) -> str:
    """The title of a measurement."""
    known = steps().get(measurement)
    return known.here.name if known is not None and known.here is not None else measurement


def sections(result: Result) -> tuple[Section, ...]:
    """All sections, from the matrix to the advice."""
    summary = result.summary
    disturbances = text.apart(result.disturbances)
    moved = text.moved_most(disturbances)
    taken = text.taken_most(result.disturbances)
    disturbed = text.moved_cpus(moved) if moved else text.busy_machine(taken) if taken else ""
    outcome = f"{result.outcome.with_class}: {disturbed or say('here_outcomes', result.outcome)}"
    first = [outcome, *(text.memory_warning(memory, 1) for memory in result.memory)]
    has_matrix = summary.matrix is not None and len(summary.matrix.places.cpus) > 2
    lost = max((figure.disturbed or 0.0 for figure in summary.figures), default=0.0)
    star = f"* {say('marked', share=lost)}" if lost else ""
    published = [sentence for compared in result.references.values() for sentence in compared.sentences()]
    notes = [say("here_unmeasured", name=shown(name), reason=why) for name, why in result.unmeasured.items()]
    remaining = [disturbance for disturbance in disturbances if disturbance is not moved]
    notes += [text.sentence(text.disturbance(disturbance)) for disturbance in remaining]
    notes += [f"{text.sentence(f'{warning.text}; {warning.advice}')}" for warning in result.warnings]
    return blocks.sections(
        Section("", tuple(map(Text, first))),
        Section("", (Text(heading(summary)), Text(labels(summary)))),
        Section("", (square(summary.matrix),)) if has_matrix and summary.matrix else None,
        Section("", (medians(summary.figures), Bullets(tuple(filter(None, [star]))))),
        Section("", tuple(map(Text, [*published, *result.beside_fleet]))),
        Section(say("here_notes"), (Bullets(tuple(notes)),)),
        Section("", (Text(f"records: {result.folder}"),)),
    )


def heading(summary: NodeSummary) -> str:
    """The processor and what there is of it, as far as that is known."""
    made_of = summary.processor
    parts = ((made_of.sockets, "socket"), (made_of.cores, "core"), (made_of.cpus, "CPU"))
    counts = [names.counted(count, part) for count, part in parts if count]
    counts += ["a virtual machine"] if made_of.virtual else []
    return ": ".join(filter(None, [printable(made_of.name) or "unknown processor", ", ".join(counts)]))


def labels(summary: NodeSummary) -> str:
    """How many parts of each level the measured CPUs are in, and where that is known from."""
    labeled = summary.matrix.places if summary.matrix else None
    if labeled is None or not labeled.parts:
        return "no labels"
    lines = []
    for level in LEVELS[:-1]:
        parts = {part for part in labeled.parts.get(level, ()) if part >= 0}
        origin = labeled.provenance.get(level, "")
        if parts:
            lines.append(f"{names.counted(len(parts), level_name(level))}{f' ({origin})' if origin else ''}")
    return "labels: " + ", ".join(lines)


def medians(figures: Sequence[MedianValue]) -> Table:
    """A row for each result: its name, median and interval."""
    rows, before = [], ""
    for label, name, median, interval in (row for figure in figures for row in _rows(figure)):
        rows.append(("" if label == before else label, name, median, interval))
        before = label
    return Table((), tuple(rows), "llrl")


def _rows(figure: MedianValue) -> list[tuple[str, str, str, str]]:
    label = shown(figure.measurement)
    name = "" if figure.name == "all" else names.row(printable(figure.name, 40))
    unit = names.of_measurement(figure.unit, figure.measurement)
    mark = " *" if figure.disturbed else ""
    if figure.groups:
        return [
            (label, f"{name}, {group}", f"{names.quantity(value, unit)}{mark}", "")
            for group, value in figure.groups.items()
        ]
    low, high = (math.nan if end is None else end for end in (figure.low, figure.high))
    if figure.runs == figure.left_out == 2:
        return [(label, name, f"{names.span(low, high, unit)}{mark}", say("runs_disagree"))]
    left_out, interval = figure.left_out or 0, "one run, no interval" if figure.runs == 1 else ""
    if math.isfinite(low) and math.isfinite(high):
        of_runs = f"{figure.runs - left_out} of {figure.runs}" if left_out else str(figure.runs)
        over = "all runs" if left_out == figure.runs else f"95% over {of_runs} runs"
        interval = f"{over}: {names.span(low, high, unit)}"
    return [(label, name, f"{names.quantity(figure.median, unit)}{mark}", interval)]
