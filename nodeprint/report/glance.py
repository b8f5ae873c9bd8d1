"""A campaign's figures at a glance, for a terminal of 80 columns: medians in a few lines, and a small matrix."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import msgspec
import numpy as np
from rich.style import Style
from rich.text import Text

from nodeprint.data import packed
from nodeprint.data.homes import FAR
from nodeprint.data.layout import CCD, CCX, QUADRANT, SOCKET
from nodeprint.errors import NodeprintError, printable
from nodeprint.judge.outcome import MEANING
from nodeprint.judge.verdict import NodeVerdict
from nodeprint.report import files, names, terminal, text
from nodeprint.report.figures import style as styles
from nodeprint.report.figures.matrix import drawn_slots, square_of
from nodeprint.report.figures.node_levels import Floats, NodeLevels, levels
from nodeprint.report.figures.pixels import value_limits

#: Measurements of cells that are shown beside those of pairs, and what they are called; all are in the report.
_CELLS = {
    "chase-latency": "memory latency",
    "bandwidth-nodes": "bandwidth",
    "clock-together": "clock of all cores",
    "clock-alone": "clock of one core",
}
#: Of pairs that are no hops.
_MESSAGES = {"linktest-node": "messages by MPI"}
_COLUMNS = 80
#: Up to so many nodes have a matrix here, and up to so many CPUs are shown each for itself.
_NODES, _CPUS = 3, 32
#: From coarse to fine; the first of these levels is shown of which a node has several parts.
_LEVELS = ((CCD, "CCD"), (CCX, "CCX"), (QUADRANT, "quadrant"), (SOCKET, "socket"))


class Square(msgspec.Struct, frozen=True):
    """A matrix to print: `values` (n x n, NaN where there is none), a name for each row, and its title."""

    title: str
    names: tuple[str, ...]
    values: Floats


class Figure(msgspec.Struct, frozen=True):
    """A median with the ends of its interval, NaN where there is none."""

    median: float
    low: float
    high: float


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
        pairs = dict.fromkeys(quantity.measurement for quantity in fleet.pairs)
        shown = [found for name in measured for pair in pairs if (found := square(levels(fleet, pair, name), name))]
    except NodeprintError:  # a verdict alone, without what was measured
        return out
    for matrix in shown:
        out.append("\n\n" if out.plain else "").append(painted(matrix))
    return out


# --- medians ---


def medians(nodes: Mapping[str, NodeVerdict], marked: bool = False) -> list[str]:
    """A line per class of pairs and per kind of memory, bandwidth and clock: its median, with the 95 % interval of one
    node, or with the lowest and the highest of several; `marked` with an asterisk, where other programs were at work.
    """
    by_class: dict[tuple[str, str, str], list[Figure]] = {}
    for node in nodes.values():
        for key, figure in _figures(node):
            if math.isfinite(figure.median):
                by_class.setdefault(key, []).append(figure)
    several = len(nodes) > 1
    rows = [(label, name, *_row(values, unit, several)) for (label, name, unit), values in by_class.items()]
    mark = " *" if marked else ""
    if not rows:
        return []
    first = f"medians over {len(nodes)} nodes (lowest to highest)" if several else _machine(nodes)
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    lines, before = [printable(first, _COLUMNS)], ""
    for label, name, median, interval in rows:
        shown = "" if label == before else label
        line = f"  {shown:{widths[0]}}  {name:{widths[1]}}  {median:>{widths[2]}}{mark}  {interval}"
        lines.append(line.rstrip()[:_COLUMNS])
        before = label
    return lines


def _figures(node: NodeVerdict) -> Iterable[tuple[tuple[str, str, str], Figure]]:
    """(label, name, unit) and the figure of all that is shown of a node; of a mixture of values its groups."""
    near = [figure for figure in node.classes if figure.home < FAR]  # pages have all
    homes, hops = {figure.home for figure in near}, {figure.measurement for figure in near} - set(_MESSAGES)
    for figure in near:
        unit = _MESSAGES.get(figure.measurement)
        label = printable(unit or ("core to core" if len(hops) == 1 else figure.measurement), 20)
        name = f"{printable(figure.name, 20)}{f', home {figure.home}' if len(homes) > 1 else ''}"
        if figure.groups:
            for group, ns in figure.groups.items():
                yield (label, printable(f"{name}, {group}", 34), "ns"), Figure(ns, math.nan, math.nan)
        else:
            yield (label, name, "ns"), Figure(figure.median_ns, figure.ci_low_ns, figure.ci_high_ns)
    for cell in node.cells:
        if kind := _CELLS.get(cell.measurement):
            name = "" if cell.name == "all" else printable(cell.name, 24)
            yield (kind, name, cell.unit), Figure(cell.median, cell.ci_low, cell.ci_high)


def _row(values: Sequence[Figure], unit: str, several: bool) -> tuple[str, str]:
    """The median, and the interval of one node or the range over several."""
    of_nodes = [figure.median for figure in values]
    ends = (min(of_nodes), max(of_nodes)) if several else (values[0].low, values[0].high)
    if not all(map(math.isfinite, ends)):
        return names.quantity(float(np.median(of_nodes)), unit), ""
    low, high = (names.quantity(end, unit).partition(" ")[0] for end in ends)
    return names.quantity(float(np.median(of_nodes)), unit), f"{'' if several else '95 %: '}{low} to {high}"


def _machine(nodes: Mapping[str, NodeVerdict]) -> str:
    (name, node), *_ = nodes.items()
    facts = node.fingerprint
    cpus = f"{facts['cpus']} CPUs" if facts.get("cpus") else ""
    return ", ".join(filter(None, (f"node {name}", str(facts.get("cpu", "")), cpus)))


# --- matrices ---


def square(levels: NodeLevels, node: str) -> Square | None:
    """A node's matrix of the first home, CPU by CPU, or part by part where there are too many; None where there is
    nothing to see, as of a single pair or part."""
    quantity = levels.quantity
    slots = drawn_slots(quantity)
    if len(slots) < 3:
        return None
    title = f"{node}: {quantity.measurement}, median in {levels.unit.name}"
    values = square_of(quantity, levels.of(node), quantity.homes[0], slots) / levels.unit.size
    if len(slots) <= _CPUS:
        cpus = levels.nodes[levels.rows[node]].cpus or tuple(range(len(quantity.layout.slots)))
        return Square(f"{title}, CPU by CPU", tuple(str(cpus[slot]) for slot in slots.tolist()), values)
    for level, name in _LEVELS:
        parts, part_of = np.unique(quantity.layout.slots[slots][:, [SOCKET, level]], axis=0, return_inverse=True)
        if parts.min() >= 0 and 2 <= len(parts) <= _CPUS:
            members = [np.flatnonzero(part_of.ravel() == number) for number in range(len(parts))]
            blocks = np.array([[_median(values[np.ix_(row, column)]) for column in members] for row in members])
            return Square(f"{title}, {name} by {name}", tuple(str(part) for _, part in parts.tolist()), blocks)
    return None


def _median(block: Floats) -> float:
    finite = block[np.isfinite(block)]
    return float(np.median(finite)) if finite.size else math.nan


def painted(square: Square) -> Text:
    """A matrix as text whose background is the report's colours; its numbers say the same without any colour.

    Where there is no room for a value, the numbers are tens of them.
    """
    finite = square.values[np.isfinite(square.values)]
    low, high = value_limits(square.values)
    margin = max(map(len, square.names)) + 1
    room = (_COLUMNS - margin) // len(square.names)
    digits = len(f"{finite.max():.0f}") if finite.size else 1
    width, unit = (min(room, digits + 1), 1) if room > digits else (max(2, min(room, 3)), 10)
    out = Text(f"{square.title}{' / 10' if unit == 10 else ''}\n")
    step = 1 + (max(map(len, square.names)) >= width)
    heads = (name.rjust(width) if i % step == 0 else " " * width for i, name in enumerate(square.names))
    out.append(" " * margin + "".join(heads))
    colours = styles.load().map("values")((square.values - low) / (high - low))
    for name, row, shades in zip(square.names, square.values.tolist(), colours.tolist(), strict=True):
        out.append("\n" + name.rjust(margin - 1) + " ")
        for value, shade in zip(row, shades, strict=True):
            shown = f"{value / unit:.0f}" if math.isfinite(value) else "."
            out.append(shown.rjust(width), _style(shade) if math.isfinite(value) else Style())
    return out


def _style(shade: Sequence[float]) -> Style:
    red, green, blue = (round(255 * part) for part in shade[:3])
    ink = "white" if 0.299 * red + 0.587 * green + 0.114 * blue < 140 else "black"
    return Style(color=ink, bgcolor=f"rgb({red},{green},{blue})")
