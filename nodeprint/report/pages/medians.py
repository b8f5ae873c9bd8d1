"""The values of a fleet: medians over its nodes with the lowest and the highest node, and the share of the peak."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from statistics import median

from nodeprint.data.places import homes
from nodeprint.data.places.measured import is_metric
from nodeprint.errors import printable
from nodeprint.judge.outcome import FleetOutcome
from nodeprint.judge.verdict import CellFigure, ClassFigure, FleetVerdict, NodeVerdict, Verdict
from nodeprint.report import names, text
from nodeprint.report.pages.blocks import Cell, Table
from nodeprint.report.pages.common import is_on_paper, median_header, tabulated, without_empty
from nodeprint.settings.texts import say

#: Metrics of another tool's table on paper; cluster.html has all.
_MOST_METRICS = 20
#: The longest list of the nodes that a row leaves out; of more their number is given.
_MOST_LEFT_OUT = 24
#: A measurement and its words, and the kind of its pairs or cells; also the group of a mixture, and the unit.
_Kind = tuple[str, str, str]
_Key = tuple[str, str, str, str, str]
#: By node a value and its share of the theoretical peak, NaN if unknown.
_Values = dict[str, tuple[float, float]]


def table(nodes: Mapping[str, NodeVerdict]) -> Table:
    """Every median that several nodes have."""
    return _table(nodes, lambda _: True)


def on_paper(nodes: Mapping[str, NodeVerdict]) -> Table:
    """The medians that say which performance was accepted: latencies between cores, memory, caches and clock, and the
    metrics of another tool's table."""
    classes = next((figure.measurement for node in nodes.values() for figure in node.classes), "")
    metrics = dict.fromkeys(cell.measurement for node in nodes.values() for cell in node.cells)
    shown = {classes, *[metric for metric in metrics if is_metric(metric)][:_MOST_METRICS]}
    return _table(nodes, lambda measurement: measurement in shown or is_on_paper(measurement))


def _table(nodes: Mapping[str, NodeVerdict], shown: Callable[[str], bool]) -> Table:
    by_key: dict[_Key, _Values] = {}
    disagree: dict[_Kind, dict[str, bool]] = {}
    marked: set[_Kind] = set()
    for name, node in nodes.items():
        for key, value in _of_node(node):
            by_key.setdefault(key, {})[name] = value
        figures: list[ClassFigure | CellFigure] = [*node.classes, *node.cells]
        for figure in figures:
            disagree.setdefault(_kind(figure), {})[name] = figure.runs_disagree
        marked.update(_kind(figure) for figure in figures if figure.is_marked)
    rows = tuple(
        (
            words,
            ", ".join(filter(None, (of, group))),
            *_extremes(values, names.of_measurement(unit, measurement), " *" * ((measurement, words, of) in marked)),
            _left_out(values, disagree[measurement, words, of]),
        )
        for (measurement, words, of, group, unit), values in by_key.items()
        if len(values) > 1 and shown(measurement)
    )
    header = ("measurement", "of", "nodes", median_header(marked=any("*" in row[3] for row in rows)))
    ends = ("lowest", "on", "highest", "on", "% of peak", "left out")
    return without_empty(Table((*header, *ends), rows, "llrrrlrlrl"))


def _of_node(node: NodeVerdict) -> Iterator[tuple[_Key, tuple[float, float]]]:
    for figure in (figure for figure in node.classes if not figure.runs_disagree):
        for group, ns in (figure.groups or {"": figure.median_ns}).items():
            yield (*_kind(figure), group, "ns"), (ns, math.nan)
    for cell in (cell for cell in node.cells if not cell.runs_disagree):
        yield (*_kind(cell), "", cell.unit), (cell.median, cell.achieved)


def _kind(figure: ClassFigure | CellFigure) -> _Kind:
    """The measurement of a figure and its words, and the kind of its pairs or cells."""
    if isinstance(figure, CellFigure):
        return figure.measurement, text.measured(figure.measurement), names.row(figure.name)
    words = (text.measured(figure.measurement), homes.named(figure.home))
    return figure.measurement, ", ".join(filter(None, words)), figure.name


def _left_out(values: _Values, disagree: Mapping[str, bool]) -> str:
    """Why a row is without some nodes: two runs that disagree have no median, and a mixture has one for each group."""
    reasons: dict[str, list[str]] = {}
    for name in disagree.keys() - values.keys():
        reasons.setdefault("runs_disagree_on" if disagree[name] else "other_groups_on", []).append(name)
    listed = {reason: names.nodes(on) for reason, on in sorted(reasons.items())}
    return "; ".join(
        say(reason, nodes=words if len(words) <= _MOST_LEFT_OUT else names.counted(len(reasons[reason]), "node"))
        for reason, words in listed.items()
    )


def _extremes(values: _Values, unit: str, mark: str) -> tuple[str, ...]:
    low, high = min(values, key=lambda node: values[node]), max(values, key=lambda node: values[node])
    achieved = [share for _, share in values.values() if math.isfinite(share)]
    shown = [names.quantity(median(value for value, _ in values.values()), unit) + mark]
    for node in (low, high):
        shown += [names.quantity(values[node][0], unit), names.shortened(printable(node), 20)]
    of_peak = names.whole_percent(median(achieved)) if len(achieved) == len(values) else ""
    return str(len(values)), *shown, of_peak


# --- groups of a split fleet ---


#: The most rows of medians, the largest differences first.
_MOST_MEDIANS = 8


def differences(fleet: FleetVerdict) -> Table:
    """Return the difference of each group from another: the numbers of the split fleet's figure."""
    rows = [
        {
            "group": group.name,
            "nodes": str(len(group.nodes)),
            "compared with": f"group {group.than}",
            "difference": effect,
            "in its unit": names.quantity(value, group.unit) if math.isfinite(value := text.in_its_unit(group)) else "",
            "interval": names.interval(group.interval.low, group.interval.high, 1.0).removeprefix("interval "),
            "tolerance": tolerance,
            "of the tolerance": f"{names.times(group.effect, group.tolerance)} times",
        }
        for group in (fleet.groups if fleet.outcome is FleetOutcome.SPLIT else ())
        if group.component is not None
        for effect, tolerance in [names.with_tolerance(group.effect, group.tolerance)]
    ]
    return tabulated(rows, "lrlrrrrr")


def of_groups(verdict: Verdict) -> Table:
    """Return the medians of each group of a split fleet, compared with the first group.

    They are the largest difference of each measurement that separates the groups, then the largest of all.
    """
    groups = verdict.fleet.groups if verdict.fleet.outcome is FleetOutcome.SPLIT else ()
    of_each = [
        {key: median(values) for key, values in text.medians_over(text.members(verdict, group)).items()}
        for group in groups
    ]
    shared = [key for key in (of_each or [{}])[0] if all(key in of for of in of_each)]
    apart = {key: [of[key] / of_each[0][key] for of in of_each] for key in shared if of_each[0][key] > 0}
    in_order = sorted(apart, key=lambda key: -max(abs(math.log(ratio)) for ratio in apart[key]))
    separating = text.separating(verdict) if groups else ()
    first = {key[0]: key for key in reversed(in_order) if key[0] in separating}
    separate = [key for key in in_order if first.get(key[0]) == key]
    farthest = [*separate, *(key for key in in_order if key not in separate)][: max(_MOST_MEDIANS, len(separate))]
    rows: list[tuple[Cell, ...]] = []
    for measurement, name, unit in farthest:
        values = [of[measurement, name, unit] for of in of_each]
        shown = (names.quantity(value, names.of_measurement(unit, measurement)) for value in values)
        differences = (names.signed(ratio - 1) for ratio in apart[measurement, name, unit][1:])
        rows.append((text.measured(measurement), names.row(name), *shown, *differences))
    letters = [group.name for group in groups]
    compared = (f"{letter} compared with {letters[0]}" for letter in letters[1:])
    header = ("medians of the groups", "of", *letters, *compared)
    return Table(header, tuple(rows), "ll" + "r" * (len(header) - 2))
