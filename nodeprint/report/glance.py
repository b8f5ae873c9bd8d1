"""A campaign's figures at a glance, for a terminal of 80 columns: medians in a few lines, and a small matrix."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import msgspec
import numpy as np
from rich.text import Text

from nodeprint.data import packed
from nodeprint.data.homes import FAR
from nodeprint.data.packed import PackedFleet
from nodeprint.errors import NodeprintError, printable
from nodeprint.judge.outcome import MEANING
from nodeprint.judge.verdict import NodeVerdict
from nodeprint.report import files, names, terminal, text
from nodeprint.settings.measurements import known
from nodeprint.settings.texts import say

_COLUMNS = 80
#: Up to so many nodes have a matrix here, where they have so many CPUs: of a single pair there is nothing to see.
_NODES, _FEWEST_CPUS = 3, 3


class Figure(msgspec.Struct, frozen=True):
    """A median over `runs` with the ends of its interval, NaN where there is none, without the runs `left_out`."""

    median: float
    low: float
    high: float
    runs: int = 2
    left_out: int = 0
    disturbed: float = 0.0


def summary(campaign: Path) -> Text:
    """The figures of a judged campaign; no line where there is none. Raises NodeprintError without a verdict."""
    verdict = files.read(campaign)
    measured = {name: node for name, node in verdict.nodes.items() if MEANING[node.outcome].measured}
    busy = [name for name in measured if terminal.busy(campaign, name)]
    lines = medians(measured, marked=2 * len(busy) >= len(measured) > 0)
    if lines and (origin := text.origin(verdict)):
        lines[0] = f"{origin}: {lines[0]}"
    out = Text("\n").join(map(Text, lines))
    if len(measured) > _NODES:
        return out
    try:
        fleet = packed.read(campaign)
        pairs = dict.fromkeys(q.measurement for q in fleet.pairs if len(q.layout.slots) >= _FEWEST_CPUS)
        if not pairs:
            return out
        # with matplotlib and SciPy it takes two seconds to import
        from nodeprint.report import placement_words, quadrant_words, small_matrix  # noqa: PLC0415
        from nodeprint.report.figures.node_levels import levels  # noqa: PLC0415

        if any(node.imported for node in fleet.nodes):
            out.append(_found(fleet, measured, pairs))
        texts = [small_matrix.text(fleet, pair, name, _COLUMNS) for name in measured for pair in pairs]
        for pair in pairs if len(measured) == 1 else ():
            ((name, node),) = measured.items()
            of_pair = levels(fleet, pair, name)
            words = placement_words.of_node(of_pair, name, node.fingerprint) + quadrant_words.of_node(of_pair, name)
            texts.append(Text(terminal.wrapped("\n".join(words), _COLUMNS)) if words else None)
    except NodeprintError:  # a verdict alone, without what was measured
        return out
    return Text("\n\n").join(filter(None, (out, *texts)))


def _found(fleet: PackedFleet, nodes: Iterable[str], pairs: Iterable[str]) -> str:
    """What imported matrices say by themselves, a line each."""
    from nodeprint.report import structure_words  # noqa: PLC0415 (as above)
    from nodeprint.report.figures import matrix, node_levels  # noqa: PLC0415

    structures = (matrix.found_at(node_levels.levels(fleet, pair, node), node) for node in nodes for pair in pairs)
    texts = (structure_words.summary(structure) for structure in structures if structure is not None)
    return "".join(f"\n  {text}" for text in filter(None, texts))


# --- medians ---


def medians(nodes: Mapping[str, NodeVerdict], marked: bool = False) -> list[str]:
    """A line per class of pairs and per kind of memory, bandwidth and clock: its median, with the 95 % interval of one
    node, or with the lowest and the highest of several; with an asterisk where CPU time was lost beside it, or where
    all are `marked`.
    """
    by_class: dict[tuple[str, str, str], list[Figure]] = {}
    for node in nodes.values():
        for key, figure in _figures(node):
            if math.isfinite(figure.median):
                by_class.setdefault(key, []).append(figure)
    several = len(nodes) > 1
    rows = []
    for (label, name, unit), values in by_class.items():
        median, interval = _row(values, unit, several)
        star = " *" if marked or any(figure.disturbed for figure in values) else ""
        rows.append((label, name, f"{median}{star}", interval))
    lost = max((figure.disturbed for values in by_class.values() for figure in values), default=0.0)
    if not rows:
        return []
    first = say("medians_over", nodes=len(nodes)) if several else _machine(nodes)
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    lines, before = [printable(first, _COLUMNS)], ""
    for label, name, median, interval in rows:
        shown = "" if label == before else label
        line = f"  {shown:{widths[0]}}  {name:{widths[1]}}  {median:>{widths[2]}}  {interval}"
        lines.append(line.rstrip()[:_COLUMNS])
        before = label
    return [*lines, f"  * {say('marked', share=names.percent(lost))}"] if lost else lines


def _figures(node: NodeVerdict) -> Iterable[tuple[tuple[str, str, str], Figure]]:
    """(label, name, unit) and the figure of all that is shown of a node; of a mixture of values its groups."""
    near = [figure for figure in node.classes if figure.home < FAR]  # pages have all
    homes = {figure.home for figure in near}
    hops = {figure.measurement for figure in near if not _short_name(figure.measurement)}
    for figure in near:
        label = printable(
            _short_name(figure.measurement) or ("core to core" if len(hops) == 1 else figure.measurement), 20
        )
        name = f"{printable(figure.name, 20)}{f', home {figure.home}' if len(homes) > 1 else ''}"
        if figure.groups:
            for group, ns in figure.groups.items():
                of_group = Figure(ns, math.nan, math.nan, disturbed=figure.disturbed if figure.is_marked else 0.0)
                yield (label, printable(f"{name}, {group}", 34), "ns"), of_group
        else:
            ends = figure.ci_low_ns, figure.ci_high_ns
            lost = figure.disturbed if figure.is_marked else 0.0
            yield (label, name, "ns"), Figure(figure.median_ns, *ends, figure.runs, figure.left_out, lost)
    for cell in node.cells:
        if kind := _short_name(cell.measurement):
            name = "" if cell.name == "all" else printable(cell.name, 24)
            lost = cell.disturbed if cell.is_marked else 0.0
            ends = cell.ci_low, cell.ci_high
            yield (kind, name, cell.unit), Figure(cell.median, *ends, cell.runs, cell.left_out, lost)


def _short_name(measurement: str) -> str:
    """What a measurement is called here beside those of hops; empty where it is in the report alone."""
    of = known(measurement)
    return "" if of is None else of.short_name


def _row(values: Sequence[Figure], unit: str, several: bool) -> tuple[str, str]:
    """The median, and the interval of one node or the range over several."""
    of_nodes = [figure.median for figure in values]
    median = names.quantity(float(np.median(of_nodes)), unit)
    if not several:
        (figure,) = values
        interval = names.over_runs(figure.low, figure.high, unit, figure.runs, figure.left_out)
        level = "all runs" if figure.left_out == figure.runs else "95 %"
        return median, f"{level}: {interval}" if interval else ""
    low, high = (names.quantity(end, unit).partition(" ")[0] for end in (min(of_nodes), max(of_nodes)))
    return median, f"{low} to {high}"


def _machine(nodes: Mapping[str, NodeVerdict]) -> str:
    (name, node), *_ = nodes.items()
    facts = node.fingerprint
    cpus = f"{facts['cpus']} CPUs" if facts.get("cpus") else ""
    return ", ".join(filter(None, (f"node {name}", str(facts.get("cpu", "")), cpus)))
