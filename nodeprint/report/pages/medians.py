"""The values of a fleet: medians over its nodes with the lowest and the highest node, and the share of the peak."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from statistics import median

from nodeprint.data.places.measured import is_metric
from nodeprint.errors import printable
from nodeprint.judge.verdict import NodeVerdict
from nodeprint.report import names, text
from nodeprint.report.pages.blocks import Table
from nodeprint.report.pages.common import is_on_paper, without_empty

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
    """The medians of a node; of a mixture of pairs those of its groups."""
    for figure in (figure for figure in node.classes if not figure.runs_disagree):
        words = ", ".join(filter(None, (text.measured(figure.measurement), names.home(figure.home))))
        for group, ns in (figure.groups or {"": figure.median_ns}).items():
            of = ", ".join(filter(None, (figure.name, group)))
            yield (figure.measurement, words, of, "ns"), (ns, math.nan)
    for cell in (cell for cell in node.cells if not cell.runs_disagree):
        key = (cell.measurement, text.measured(cell.measurement), names.row(cell.name), cell.unit)
        yield key, (cell.median, cell.achieved)


def _extremes(values: _Values, unit: str) -> tuple[str, ...]:
    low, high = min(values, key=lambda node: values[node]), max(values, key=lambda node: values[node])
    achieved = [share for _, share in values.values() if math.isfinite(share)]
    return (
        str(len(values)),
        names.quantity(median(value for value, _ in values.values()), unit),
        names.quantity(values[low][0], unit),
        names.shortened(printable(low), 20),
        names.quantity(values[high][0], unit),
        names.shortened(printable(high), 20),
        names.whole_percent(median(achieved)) if len(achieved) == len(values) else "",
    )
