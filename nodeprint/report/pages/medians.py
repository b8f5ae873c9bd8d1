"""The values of a fleet: medians over its nodes with the lowest and the highest node, and the share of the peak."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from statistics import median

from nodeprint.data.places import homes
from nodeprint.data.places.measured import is_metric
from nodeprint.errors import printable
from nodeprint.judge.outcome import FleetOutcome
from nodeprint.judge.verdict import CellFigure, ClassFigure, FleetVerdict, NodeVerdict, Verdict
from nodeprint.report import names, text
from nodeprint.report.pages.blocks import Cell, Table
from nodeprint.report.pages.tables import is_on_paper, median_header, tabulated, without_empty
from nodeprint.settings.texts import say

#: Metrics of another tool's table on paper; cluster.html has all.
_MOST_METRICS = 20
#: The longest list of the nodes that a row leaves out; of more their number is given.
_MOST_LEFT_OUT = 24
#: A measurement and its words, and the kind of its pairs or cells; also the group of a mixture, and the unit.
_Kind = tuple[str, str, str]
_Key = tuple[str, str, str, str, str]


@dataclass(frozen=True)
class _Row:
    """The values of nodes in one kind of pairs or cells: by node a value and its share of the peak, NaN if unknown.

    `left_out` explains the nodes that have no value; `is_marked` if one was measured under load.
    """

    measurement: str
    words: str
    of: str
    unit: str
    values: Mapping[str, tuple[float, float]]
    left_out: str
    is_marked: bool

    @property
    def of_nodes(self) -> str:
        """The kind with the nodes that it is without: in a column of their own they would be far from most rows."""
        return f"{self.of} ({self.left_out})" if self.left_out else self.of


def of_fleet(verdict: Verdict) -> Table:
    """The medians that say which performance is accepted: over the compared nodes, of a split fleet of each group."""
    if verdict.fleet.outcome is FleetOutcome.SPLIT:
        return of_groups(verdict)
    # a median over different machines would describe none of them
    return on_paper({name: node for name, node in verdict.nodes.items() if not node.is_alone})


def table(nodes: Mapping[str, NodeVerdict]) -> Table:
    """Every median that several nodes have."""
    return _table(_rows(nodes, lambda _: True))


def on_paper(nodes: Mapping[str, NodeVerdict]) -> Table:
    """The main medians: latencies between cores, memory, caches and clock, and the metrics of another tool's table."""
    return _table(_rows(nodes, _on_paper(nodes)))


def _on_paper(nodes: Mapping[str, NodeVerdict]) -> Callable[[str], bool]:
    classes = next((figure.measurement for node in nodes.values() for figure in node.classes), "")
    metrics = dict.fromkeys(cell.measurement for node in nodes.values() for cell in node.cells)
    shown = {classes, *[metric for metric in metrics if is_metric(metric)][:_MOST_METRICS]}
    return lambda measurement: measurement in shown or is_on_paper(measurement)


def _rows(nodes: Mapping[str, NodeVerdict], shown: Callable[[str], bool]) -> Iterator[_Row]:
    """Yield a row for each kind of pairs or cells of the measurements `shown` that several nodes have."""
    by_key: dict[_Key, dict[str, tuple[float, float]]] = {}
    disagree: dict[_Kind, dict[str, bool]] = {}
    marked: set[_Kind] = set()
    for name, node in nodes.items():
        for key, value in _of_node(node):
            by_key.setdefault(key, {})[name] = value
        figures: list[ClassFigure | CellFigure] = [*node.classes, *node.cells]
        for figure in figures:
            disagree.setdefault(_kind(figure), {})[name] = figure.runs_disagree
        marked.update(_kind(figure) for figure in figures if figure.is_marked)
    for (measurement, words, kind, group, unit), values in by_key.items():
        of = measurement, words, kind
        if len(values) > 1 and shown(measurement):
            shown_unit, name = names.of_measurement(unit, measurement), ", ".join(filter(None, (kind, group)))
            yield _Row(measurement, words, name, shown_unit, values, _left_out(values, disagree[of]), of in marked)


def _table(rows: Iterable[_Row]) -> Table:
    cells, marked = list[tuple[Cell, ...]](), False
    for row in rows:
        shown = [names.quantity(median(value for value, _ in row.values.values()), row.unit) + " *" * row.is_marked]
        for node in (min(row.values, key=row.values.__getitem__), max(row.values, key=row.values.__getitem__)):
            shown += [names.quantity(row.values[node][0], row.unit), names.shortened(printable(node), 20)]
        achieved = [share for _, share in row.values.values() if math.isfinite(share)]
        of_peak = names.whole_percent(median(achieved)) if len(achieved) == len(row.values) else ""
        cells.append((row.words, row.of_nodes, str(len(row.values)), *shown, of_peak))
        marked |= row.is_marked
    header = ("measurement", "of", "nodes", median_header(marked=marked))
    ends = ("lowest", "on", "highest", "on", "% of peak")
    # a narrow terminal has no room for the number and the names of nodes
    return without_empty(Table((*header, *ends), tuple(cells), "llrrrlrlr", minor=(2, 5, 7)))


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


def _left_out(values: Collection[str], disagree: Mapping[str, bool]) -> str:
    """Why a row is without some nodes: two runs that disagree have no median, and a mixture has one for each group."""
    reasons: dict[str, list[str]] = {}
    for name in disagree.keys() - set(values):
        reasons.setdefault("runs_disagree_on" if disagree[name] else "other_groups_on", []).append(name)
    listed = {reason: names.nodes(on) for reason, on in sorted(reasons.items())}
    return "; ".join(
        say(reason, nodes=words if len(words) <= _MOST_LEFT_OUT else names.counted(len(reasons[reason]), "node"))
        for reason, words in listed.items()
    )


# --- groups of a split fleet ---


def differences(fleet: FleetVerdict) -> Table:
    """Return the difference of each group from another: the numbers of the split fleet's figure."""
    rows = [
        {
            "group": group.name,
            "nodes": str(len(group.nodes)),
            "compared with": f"group {group.than}",
            "difference": effect,
            "in its unit": names.quantity(value, group.unit) if math.isfinite(value := text.in_its_unit(group)) else "",
            "interval": names.interval(group.interval.low, group.interval.high, 1.0, group.measurement),
            "tolerance": tolerance,
            "of the tolerance": f"{names.times(group.effect, group.tolerance)} times",
        }
        for group in (fleet.groups if fleet.outcome is FleetOutcome.SPLIT else ())
        if group.component is not None
        for effect, tolerance in [names.with_tolerance(group.effect, group.tolerance, group.measurement)]
    ]
    return tabulated(rows, "lrlrrrrr")


def of_groups(verdict: Verdict) -> Table:
    """Return the medians of each group of a split fleet, for the rows of `on_paper`, compared with the first group."""
    groups = verdict.fleet.groups if verdict.fleet.outcome is FleetOutcome.SPLIT else ()
    nodes = {name: verdict.nodes[name] for group in groups for name in group.nodes if name in verdict.nodes}
    rows = []
    for row in _rows(nodes, _on_paper(nodes)):
        of_each = [[row.values[name][0] for name in group.nodes if name in row.values] for group in groups]
        if all(of_each):
            first, *of_other_groups = medians = list(map(median, of_each))
            cells = {group.name: names.quantity(value, row.unit) for group, value in zip(groups, medians, strict=True)}
            for group, value in zip(groups[1:], of_other_groups, strict=True):
                ratio = value / first - 1 if first else math.nan
                cells[f"{group.name} compared with {groups[0].name}"] = names.signed(ratio)
            rows.append({"medians of the groups": row.words, "of": row.of_nodes, **cells})
    return tabulated(rows, "ll" + "r" * (2 * len(groups) - 1))
