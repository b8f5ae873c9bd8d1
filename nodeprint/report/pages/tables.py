"""Facts and tables of pages, for every medium; nothing here draws."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from operator import attrgetter
from typing import Any

from msgspec.structs import replace

from nodeprint.data.places import homes
from nodeprint.judge.outcome import Certainty
from nodeprint.judge.verdict import Agreement, CellFigure, ClassFigure, Finding, NodeVerdict
from nodeprint.machine.fingerprint import label
from nodeprint.report import check_scripts, names, text
from nodeprint.report.pages.blocks import Cell, FactRows, Mark, Section, Table
from nodeprint.settings.measurements import known
from nodeprint.settings.texts import say

_STATES = {
    Certainty.CONFIRMED: ("▲", "alarm"),
    Certainty.INTERMITTENT: ("◈", "warning"),
    Certainty.SUSPECTED: ("◆", "warning"),
    Certainty.MISMATCH: ("△", "warning"),
}


def appendix(*components: Section) -> tuple[Section, ...]:
    """Mark sections as appendix, which paper omits."""
    return tuple(replace(component, appendix=True) for component in components)


def anchor(node: str) -> str:
    """Return the anchor of a node report in a document: letters, digits and hyphens."""
    plain = re.sub(r"[^A-Za-z0-9]", lambda match: f"-{ord(match[0]):x}", node)
    return f"node-{plain}"


def facts(values: Mapping[str, Any]) -> FactRows:
    """Return keys and values in words; nested objects become `outer inner`, unknown values are omitted."""
    out: list[tuple[str, str]] = []
    for key, value in values.items():
        name = label(str(key))
        if isinstance(value, Mapping):
            out += [(f"{name} {inner}", words) for inner, words in facts(value)]
        elif isinstance(value, bool):
            out.append((name, "yes" if value else "no"))
        elif isinstance(value, float):
            out.append((name, f"{value:g}"))
        elif isinstance(value, list | tuple):
            out.append((name, ", ".join(map(str, value))))
        elif value is not None and value != "":
            out.append((name, str(value)))
    return tuple(out)


def state_mark(finding: Finding) -> Mark:
    """Return a finding's certainty as a mark."""
    if finding.waived:
        return Mark("○", "waived", "neutral")
    symbol, color = _STATES[finding.state]
    # limits, and counts by the node itself, need no peers or second job
    state = "limit" if finding.of_limit else finding.state if finding.measurement else "counted"
    state = "wrong-result" if finding.id == "wrong-result" else state
    return Mark(symbol, say("states", state), color)


def finding_numbers(finding: Finding) -> Table | None:
    """Return a row of the finding's numbers; None if it is only a count."""
    if not finding.measurement:
        return None
    unit = names.of_measurement(finding.unit, finding.measurement)
    measured, _ = names.with_limit(finding.value, finding.fails_at, unit)
    difference, tolerance = names.with_tolerance(finding.effect, finding.tolerance, finding.of_effect)
    interval = names.interval(finding.interval.low, finding.interval.high, 1.0, finding.of_effect)
    if finding.of_limit:
        interval = interval if math.isfinite(finding.interval.low) else ""
        row = {"measured": measured, "limit": check_scripts.accepted(finding)}
        return tabulated([{**row, "beyond it": difference, "interval": interval}], "rrrr")
    beyond = sum(text.runs_past(finding, job) for job in finding.by_job)
    row = {
        "measured": measured,
        "baseline" if finding.baseline else "peers": names.quantity(finding.peers, unit),
        "difference": difference,
        "interval": interval,
        "tolerance": tolerance,
        "of the tolerance": f"{names.times(finding.effect, finding.tolerance)} times",
        # of two nodes that differ, either may be right
        "accepted": "" if finding.state is Certainty.MISMATCH else check_scripts.accepted(finding),
        "runs beyond": f"{beyond} of {len(finding.runs)}" if finding.runs else "",
        f"{'pairs' if finding.pairs else 'values'} beyond": _places_beyond(finding),
    }
    return tabulated([row], "rrrrrrrrr")


def _places_beyond(finding: Finding) -> str:
    return f"{finding.places_beyond} of {finding.places}" if finding.places > 1 else ""


def _median(figures: Sequence[ClassFigure | CellFigure]) -> str:
    return median_header(marked=any(figure.is_marked for figure in figures))


def median_header(*, marked: bool) -> str:
    """Return the header of a column of medians, which explains the asterisk if there is one."""
    return "median (*: CPU time was lost)" if marked else "median"


def class_table(classes: tuple[ClassFigure, ...]) -> Table:
    """Return medians of classes of pairs; of a mixture, few of whose pairs are near it, those of its groups."""
    rows: list[tuple[Cell, ...]] = []
    for figure in classes:
        where = ", ".join(filter(None, (text.measured(figure.measurement), homes.named(figure.home))))
        runs = str(figure.runs)
        if figure.groups and not figure.runs_disagree:
            mark = " *" if figure.is_marked else ""
            rows += [(where, name, "", names.duration(ns) + mark, "", runs) for name, ns in figure.medians.items()]
        else:
            numbers = (f"{figure.pairs:,}", names.median(figure), names.median_interval(figure), runs)
            rows.append((where, figure.name, *numbers))
    header = ("measurement", "class", "pairs", _median(classes), "95% interval", "runs")
    return without_empty(Table(header, _without_repeats(rows), "llrrlr"))


def cell_table(cells: tuple[CellFigure, ...]) -> Table:
    """Return measurements of cells: a row for each kind of cell, with the median of the node's group."""
    rows: list[tuple[Cell, ...]] = []
    for figure in cells:
        unit = names.of_measurement(figure.unit, figure.measurement)
        group = names.quantity(figure.group, unit) if math.isfinite(figure.group) else ""
        ratio = names.signed(figure.median / figure.group - 1) if group and figure.group else ""
        compared = ("", "") if figure.runs_disagree else (ratio, names.whole_percent(figure.achieved))
        worst = (names.quantity(figure.worst_value, unit), names.place(figure.worst)) if figure.worst else ("", "")
        numbers = (names.median(figure), names.median_interval(figure), group, *compared, *worst)
        rows.append((text.measured(figure.measurement), names.row(figure.name), *numbers))
    header = ("measurement", "of", _median(cells), "95% interval", "peers", "to them", "% of peak", "worst", "where")
    return without_empty(Table(header, _without_repeats(rows), "llrrrrrrl"))


def main_cells(verdict: NodeVerdict) -> Table:
    """Return the table of the main results; a row has its worst place if a finding is there."""
    cells = []
    for cell in (cell for cell in verdict.cells if is_on_paper(cell.measurement)):
        wheres = (finding.component.where for finding in verdict.counted if finding.measurement == cell.measurement)
        shared = ([cell.worst[key] == where[key] for key in where if key in cell.worst] for where in wheres)
        is_there = any(of and all(of) for of in shared)
        worst = {key: of for key, of in cell.worst.items() if is_there and not isinstance(of, str)}
        cells.append(replace(cell, worst=worst))
    return replace(cell_table(tuple(cells)), wide=-1)


def further_cells(verdict: NodeVerdict) -> Table:
    """Return a row for each measurement that is not in `main_cells`, with its lowest and highest medians.

    The report of a node thus has every measurement, such as one of a new kernel.
    """
    cells_of: dict[str, list[CellFigure]] = {}
    for cell in verdict.cells:
        if math.isfinite(cell.median) and not is_on_paper(cell.measurement):
            cells_of.setdefault(cell.measurement, []).append(cell)
    rows = []
    for measurement, cells in cells_of.items():
        ends = (min(cells, key=attrgetter("median")), max(cells, key=attrgetter("median")))
        low, at_low, high, at_high = (of for cell in ends for of in (names.median(cell), names.row(cell.name)))
        rows.append((text.measured(measurement), low, *((at_low, high, at_high) if low != high else ("", "", ""))))
    lowest = "lowest" if any(row[3] for row in rows) else "median"
    return without_empty(Table(("other measurements", lowest, "of", "highest", "of"), tuple(rows), "lrlrl"))


def is_on_paper(measurement: str) -> bool:
    """Tell whether a measurement is one of the main results."""
    of = known(measurement)
    return of is not None and of.on_paper


def agreement_table(agreements: tuple[Agreement, ...]) -> Table:
    """Compare a node with its tolerances by metric: the closest component, and the smallest tolerance that it meets."""
    rows = [
        {
            "metric": text.named("metrics", agreement.metric),
            "criteria": "yes" if agreement.criterion else "",
            "nearest to its tolerance": text.noun_phrase(agreement),
            "differs by": names.percent(agreement.effect, agreement.measurement),
            **agreement_numbers(agreement),
            "used": names.whole_percent(agreement.share),
            "to resolve it": text.agreement_remedy(agreement) if agreement.share > 1 else "",
        }
        for agreement in agreements
    ]
    return tabulated(rows, "lllrrrrl", 2)


def agreement_numbers(agreement: Agreement) -> dict[str, str]:
    """Return the smallest tolerance that an agreement meets, or why none is known, and its tolerance."""
    unknown = say("agreement_unknown", "no center" if agreement.runs > 1 else "one run")
    digits = names.digits_beyond(agreement.within, agreement.tolerance)
    within, tolerance = (
        names.tolerance(share, agreement.measurement, digits) for share in (agreement.within, agreement.tolerance)
    )
    return {"the same within": within if math.isfinite(agreement.within) else unknown, "tolerance": tolerance}


def tabulated(rows: Sequence[Mapping[str, Cell]], align: str, wide: int = -1) -> Table:
    """Return a table of rows by the titles of their columns, without its empty columns."""
    return without_empty(Table(tuple(rows[0]) if rows else (), tuple(tuple(row.values()) for row in rows), align, wide))


def without_empty(table: Table) -> Table:
    """Remove the empty columns of a table."""
    return table.only([column for column in range(len(table.header)) if any(row[column] for row in table.rows)])


def _without_repeats(rows: list[tuple[Cell, ...]]) -> tuple[tuple[Cell, ...], ...]:
    return tuple(("", *row[1:]) if i and row[0] == rows[i - 1][0] else row for i, row in enumerate(rows))
