"""The groups of a split fleet on its pages: their nodes, differences and medians."""

from __future__ import annotations

import math
from statistics import median

from nodeprint.judge.outcome import FleetOutcome
from nodeprint.judge.verdict import FleetVerdict, Verdict
from nodeprint.report import names, text
from nodeprint.report.pages.blocks import Cell, Table
from nodeprint.report.pages.common import without_empty
from nodeprint.settings.texts import say

#: The most rows of medians, the largest differences first.
_MOST_MEDIANS = 8


def of_nodes(fleet: FleetVerdict, letter: str) -> tuple[str, str, str, str]:
    """Return the cells of a group's nodes in the table of page 1: metric, difference, tolerance, and next step."""
    by_name = {of.name: of for of in fleet.groups}
    group = by_name[letter]
    if group.component is None:
        words = say("split_row", "first", name=letter, fields=text.goes_with(group))
        return words, "", "", ""
    words = say("split_row", "apart", name=letter, place=text.place(group), fields=text.goes_with(group))
    return words, names.signed(group.effect), names.tolerance(group.tolerance), text.to_do(group, by_name[group.than])


def numbers(fleet: FleetVerdict) -> Table:
    """Return the difference of each group from another: the numbers of the split fleet's figure."""
    rows = tuple(
        (
            group.name,
            str(len(group.nodes)),
            f"group {group.than}",
            names.signed(group.effect),
            names.quantity(in_unit, group.unit) if math.isfinite(in_unit := text.in_its_unit(group)) else "",
            names.interval(group.interval.low, group.interval.high, 1.0).removeprefix("interval "),
            names.tolerance(group.tolerance),
            f"{names.times(group.effect, group.tolerance)} times",
        )
        for group in (fleet.groups if fleet.outcome is FleetOutcome.SPLIT else ())
        if group.component is not None
    )
    header = ("group", "nodes", "beside", "difference", "in its unit", "interval", "tolerance", "of the tolerance")
    return without_empty(Table(header, rows, "lrlrrrrr"))


def medians(verdict: Verdict) -> Table:
    """Return the medians of each group of a split fleet with the largest differences, compared with the first group."""
    groups = verdict.fleet.groups if verdict.fleet.outcome is FleetOutcome.SPLIT else ()
    of_groups = [
        {key: median(values) for key, values in text.medians_over(text.members(verdict, group)).items()}
        for group in groups
    ]
    shared = [key for key in (of_groups or [{}])[0] if all(key in of for of in of_groups)]
    apart = {key: [of[key] / of_groups[0][key] for of in of_groups] for key in shared if of_groups[0][key] > 0}
    farthest = sorted(apart, key=lambda key: -max(abs(math.log(ratio)) for ratio in apart[key]))[:_MOST_MEDIANS]
    rows: list[tuple[Cell, ...]] = []
    for measurement, name, unit in farthest:
        values = [of[measurement, name, unit] for of in of_groups]
        shown = (names.quantity(value, names.of_measurement(unit, measurement)) for value in values)
        differences = (names.signed(ratio - 1) for ratio in apart[measurement, name, unit][1:])
        rows.append((text.measured(measurement), names.row(name), *shown, *differences))
    letters = [group.name for group in groups]
    beside = (f"{letter} beside {letters[0]}" for letter in letters[1:])
    header = ("medians of the groups", "of", *letters, *beside)
    return Table(header, tuple(rows), "ll" + "r" * (len(header) - 2))
