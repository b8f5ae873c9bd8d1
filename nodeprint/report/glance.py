"""A campaign's figures at a glance, for a terminal of 80 columns: medians in a few lines, and a small matrix."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import msgspec
import numpy as np
from rich.text import Text

from nodeprint.data.places.homes import FAR
from nodeprint.data.store import packed
from nodeprint.data.store.packed import PackedFleet
from nodeprint.errors import NodeprintError, printable
from nodeprint.judge.verdict import NodeVerdict
from nodeprint.report import further_cells, names, terminal, text, verdict_files
from nodeprint.settings.measurements import known
from nodeprint.settings.texts import say

_COLUMNS = 80
#: Letters of a class's or row's name; lines that are longer for it are broken.
_LONGEST = 60
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
    verdict = verdict_files.read(campaign)
    measured = {name: node for name, node in verdict.nodes.items() if node.outcome.entry.measured}
    busy = [name for name in measured if terminal.busy(campaign, name)]
    lines = of_nodes(measured, marked=2 * len(busy) >= len(measured) > 0)
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
        from nodeprint.report import matrix_words, small_matrix  # noqa: PLC0415
        from nodeprint.report.figures.node_levels import levels  # noqa: PLC0415

        if any(node.imported for node in fleet.nodes):
            out.append(_found(fleet, measured, pairs))
        texts = [small_matrix.text(fleet, pair, name, _COLUMNS) for name in measured for pair in pairs]
        for pair in pairs if len(measured) == 1 else ():
            ((name, node),) = measured.items()
            of_pair = levels(fleet, pair, name)
            words = matrix_words.placement_of_node(of_pair, name, node.fingerprint)
            words += matrix_words.quadrants_of_node(of_pair, name)
            texts.append(Text(terminal.wrapped("\n".join(words), _COLUMNS)) if words else None)
    except NodeprintError:  # a verdict alone, without what was measured
        return out
    return Text("\n\n").join(filter(None, (out, *texts)))


def _found(fleet: PackedFleet, nodes: Iterable[str], pairs: Iterable[str]) -> str:
    """What imported matrices say by themselves, a line each."""
    from nodeprint.report import matrix_words  # noqa: PLC0415 (as above)
    from nodeprint.report.figures import matrix, node_levels  # noqa: PLC0415

    lines = []
    for node, pair in itertools.product(nodes, pairs):
        structure = matrix.found_at(node_levels.levels(fleet, pair, node), node)
        if structure is not None and (words := matrix_words.structure_summary(structure)):
            lines.append(f"\n  {printable(node, _LONGEST)}: {words}")
    return terminal.wrapped("".join(lines), _COLUMNS)


# --- medians ---


def of_nodes(nodes: Mapping[str, NodeVerdict], marked: bool = False) -> list[str]:
    """The medians over nodes; of a few without peers each for itself, as a median of different machines is of none."""
    if len(nodes) <= _NODES and all(node.is_alone for node in nodes.values()):
        return [line for name, node in nodes.items() for line in medians({name: node}, marked)]
    return medians(nodes, marked)


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
    if not rows and (several or not nodes):
        return []
    first = say("medians_over", nodes=len(nodes)) if several else _machine(nodes)
    widest = max((len(row[0]) for row in rows), default=0)
    lines, before = [printable(first, _COLUMNS)], ""
    for label, name, median, interval in rows:
        shown = "" if label == before else label
        names_of, medians_of = (max(len(row[column]) for row in rows if row[0] == label) for column in (1, 2))
        line = f"  {shown:{widest}}  {name:{names_of}}  {median:>{medians_of}}  {interval}"
        lines += terminal.wrapped(line.rstrip(), _COLUMNS).split("\n")
        before = label
    for node in () if several else nodes.values():
        lines += terminal.wrapped("\n".join(_further(node)), _COLUMNS).split("\n")
    return [*lines, f"  * {say('marked', share=names.percent(lost))}"] if lost else lines


def _further(node: NodeVerdict) -> Iterable[str]:
    """A line for each measurement of a lone node that has no short name, and so no row."""
    for measurement, cells in further_cells.ends(node.cells, lambda name: bool(_short_name(name))).items():
        of_each = (f" ({names.row(cell.name)})" if len(cells) > 1 else "" for cell in cells)
        values = (f"{further_cells.value(cell)}{of}" for cell, of in zip(cells, of_each, strict=True))
        yield f"  {text.measured(measurement)}: {' to '.join(values)}"


def _figures(node: NodeVerdict) -> Iterable[tuple[tuple[str, str, str], Figure]]:
    """(label, name, unit) and the figure of all that is shown of a node; of a mixture of values its groups."""
    near = [figure for figure in node.classes if figure.home < FAR]  # pages have all
    homes = {figure.home for figure in near}
    hops = {figure.measurement for figure in near if not _short_name(figure.measurement)}
    for figure in near:
        label = printable(
            _short_name(figure.measurement) or ("core-to-core" if len(hops) == 1 else figure.measurement), 20
        )
        at_home = f", home {figure.home}" if len(homes) > 1 else ""
        name = f"{printable(figure.name, _LONGEST)}{at_home}"
        if figure.groups:
            for group, ns in figure.medians.items():
                of_group = Figure(ns, math.nan, math.nan, disturbed=figure.disturbed if figure.is_marked else 0.0)
                yield (label, f"{printable(group, _LONGEST)}{at_home}", "ns"), of_group
        else:
            ends = figure.ci_low_ns, figure.ci_high_ns
            lost = figure.disturbed if figure.is_marked else 0.0
            yield (label, name, "ns"), Figure(figure.median_ns, *ends, figure.runs, figure.left_out, lost)
    for cell in node.cells:
        if kind := _short_name(cell.measurement):
            name = "" if cell.name == "all" else names.row(printable(cell.name, _LONGEST))
            lost = cell.disturbed if cell.is_marked else 0.0
            ends = cell.ci_low, cell.ci_high
            yield (kind, name, cell.unit), Figure(cell.median, *ends, cell.runs, cell.left_out, lost)


def _short_name(measurement: str) -> str:
    """What a measurement is called here beside those of hops; empty where it is in the report alone."""
    of = known(measurement)
    return "" if of is None else of.short_name


#: Spaces in a range that has one unit: `23.3 to 24.1 ns`.
_ONE_UNIT = 3


def _row(values: Sequence[Figure], unit: str, several: bool) -> tuple[str, str]:
    """The median, and the interval of one node or the range over several."""
    of_nodes = [figure.median for figure in values]
    median = names.quantity(float(np.median(of_nodes)), unit)
    if not several:
        (figure,) = values
        interval = names.over_runs(figure.low, figure.high, unit, figure.runs, figure.left_out)
        level = "all runs" if figure.left_out == figure.runs else "95 %"
        return median, f"{level}: {interval}" if interval else ""
    ends = names.span(min(of_nodes), max(of_nodes), unit)
    return median, ends.removesuffix(median.partition(" ")[2]).rstrip() if ends.count(" ") == _ONE_UNIT else ends


def _machine(nodes: Mapping[str, NodeVerdict]) -> str:
    (name, node), *_ = nodes.items()
    facts = node.fingerprint
    cpus = f"{facts['cpus']} CPUs" if facts.get("cpus") else ""
    return ", ".join(filter(None, (f"node {name}", str(facts.get("cpu", "")), cpus)))
