"""The values of a fleet: medians over its nodes with the lowest and the highest node, and the share of the peak."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from statistics import median

from nodeprint.data.places import homes
from nodeprint.data.places.measured import is_metric
from nodeprint.errors import printable
from nodeprint.judge.outcome import FleetOutcome
from nodeprint.judge.verdict import FleetVerdict, NodeVerdict, Verdict
from nodeprint.report import names, text
from nodeprint.report.pages.blocks import Cell, Table
from nodeprint.report.pages.common import is_on_paper, tabulated, without_empty

_HEADER = ("measurement", "of", "nodes", "median", "lowest", "on", "highest", "on", "% of peak")
#: Metrics of another tool's table on paper; cluster.html has all.
_MOST_METRICS = 20
#: A measurement and its words, the kind of its pairs or cells, and their unit.
_Key = tuple[str, str, str, str]
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
    for name, node in nodes.items():
        for key, value in _of_node(node):
            by_key.setdefault(key, {})[name] = value
    rows = tuple(
        (words, of, *_extremes(values, names.of_measurement(unit, measurement)))
        for (measurement, words, of, unit), values in by_key.items()
        if len(values) > 1 and shown(measurement)
    )
    return without_empty(Table(_HEADER, rows, "llrrrlrlr"))


def _of_node(node: NodeVerdict) -> Iterator[tuple[_Key, tuple[float, float]]]:
    for figure in (figure for figure in node.classes if not figure.runs_disagree):
        words = ", ".join(filter(None, (text.measured(figure.measurement), homes.named(figure.home))))
        for group, ns in (figure.groups or {"": figure.median_ns}).items():
            of = ", ".join(filter(None, (figure.name, group)))
            yield (figure.measurement, words, of, "ns"), (ns, math.nan)
    for cell in (cell for cell in node.cells if not cell.runs_disagree):
        key = (cell.measurement, text.measured(cell.measurement), names.row(cell.name), cell.unit)
        yield key, (cell.median, cell.achieved)


def _extremes(values: _Values, unit: str) -> tuple[str, ...]:
    low, high = min(values, key=lambda node: values[node]), max(values, key=lambda node: values[node])
    achieved = [share for _, share in values.values() if math.isfinite(share)]
    shown = [names.quantity(median(value for value, _ in values.values()), unit)]
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
            "beside": f"group {group.than}",
            "difference": names.signed(group.effect),
            "in its unit": names.quantity(value, group.unit) if math.isfinite(value := text.in_its_unit(group)) else "",
            "interval": names.interval(group.interval.low, group.interval.high, 1.0).removeprefix("interval "),
            "tolerance": names.tolerance(group.tolerance),
            "of the tolerance": f"{names.times(group.effect, group.tolerance)} times",
        }
        for group in (fleet.groups if fleet.outcome is FleetOutcome.SPLIT else ())
        if group.component is not None
    ]
    return tabulated(rows, "lrlrrrrr")


def of_groups(verdict: Verdict) -> Table:
    """Return the medians of each group of a split fleet with the largest differences, compared with the first group."""
    groups = verdict.fleet.groups if verdict.fleet.outcome is FleetOutcome.SPLIT else ()
    of_each = [
        {key: median(values) for key, values in text.medians_over(text.members(verdict, group)).items()}
        for group in groups
    ]
    shared = [key for key in (of_each or [{}])[0] if all(key in of for of in of_each)]
    apart = {key: [of[key] / of_each[0][key] for of in of_each] for key in shared if of_each[0][key] > 0}
    farthest = sorted(apart, key=lambda key: -max(abs(math.log(ratio)) for ratio in apart[key]))[:_MOST_MEDIANS]
    rows: list[tuple[Cell, ...]] = []
    for measurement, name, unit in farthest:
        values = [of[measurement, name, unit] for of in of_each]
        shown = (names.quantity(value, names.of_measurement(unit, measurement)) for value in values)
        differences = (names.signed(ratio - 1) for ratio in apart[measurement, name, unit][1:])
        rows.append((text.measured(measurement), names.row(name), *shown, *differences))
    letters = [group.name for group in groups]
    beside = (f"{letter} beside {letters[0]}" for letter in letters[1:])
    header = ("medians of the groups", "of", *letters, *beside)
    return Table(header, tuple(rows), "ll" + "r" * (len(header) - 2))
