"""A campaign's figures at a glance, for a terminal of 80 columns: medians in a few lines, and a small matrix."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt
from rich.style import Style
from rich.text import Text

from nodeprint import packed
from nodeprint.errors import NodeprintError, printable
from nodeprint.fleet.homes import FAR
from nodeprint.fleet.quantity import Quantity
from nodeprint.layout import CCD, CCX, QUADRANT, SOCKET
from nodeprint.packed import PackedFleet
from nodeprint.report import formatting, scale, terminal
from nodeprint.report.scale import Scale
from nodeprint.verdict import outputs

Floats = npt.NDArray[np.float64]

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


def text(campaign: Path) -> Text:
    """The figures of a judged campaign; no line where there is none. Raises NodeprintError without a verdict."""
    verdict = outputs.read(campaign)
    measured = {name: node for name, node in verdict["nodes"].items() if node.get("verdict") != "NOT MEASURED"}
    busy = [name for name, node in measured.items() if terminal.busy(campaign, name, node)]
    lines = medians(measured, marked=2 * len(busy) >= len(measured) > 0)
    if lines and verdict.get("simulated"):
        lines[0] = f"SIMULATED: {lines[0]}"
    out = Text("\n").join(map(Text, lines))
    if len(measured) > _NODES:
        return out
    try:
        fleet = packed.read(campaign)
    except NodeprintError:  # a verdict alone, without what was measured
        return out
    for name in measured:
        for square in squares(fleet, name):
            out.append("\n\n" if out.plain else "").append(painted(square))
    return out


# --- medians ---


def medians(nodes: Mapping[str, Any], marked: bool = False) -> list[str]:
    """A line per class of pairs and per kind of memory, bandwidth and clock: its median, with the 95 % interval of one
    node, or with the lowest and the highest of several; `marked` with an asterisk, where other programs were at work.
    """
    found: dict[tuple[str, str, str], list[tuple[float, Any, Any]]] = {}
    for node in nodes.values():
        for key, value, low, high in _figures(node):
            known = formatting.number(value)
            if known is not None:
                found.setdefault(key, []).append((known, low, high))
    several = len(nodes) > 1
    rows = [(label, name, *_row(values, unit, several)) for (label, name, unit), values in found.items()]
    mark = " *" if marked else ""
    if not rows:
        return []
    first = f"medians over {len(nodes)} nodes (lowest to highest)" if several else _machine(nodes)
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    lines, before = [printable(first, _COLUMNS)], ""
    for label, name, median, interval in rows:
        shown = "" if label == before else label
        lines.append(
            f"  {shown:{widths[0]}}  {name:{widths[1]}}  {median:>{widths[2]}}{mark}  {interval}".rstrip()[:_COLUMNS]
        )
        before = label
    return lines


def _figures(node: Mapping[str, Any]) -> Iterable[tuple[tuple[str, str, str], Any, Any, Any]]:
    """(label, name, unit), median and the ends of its interval of all that is shown of a node."""
    classes = [
        row for row in node.get("classes", ()) if (formatting.number(row.get("home")) or 0) < FAR
    ]  # pages have all
    operations, homes = ({str(row.get(key)) for row in classes} for key in ("measurement", "home"))
    hops = operations - set(_MESSAGES)
    for row in classes:
        measurement = str(row.get("measurement"))
        label = _MESSAGES.get(measurement) or ("core to core" if len(hops) == 1 else measurement)
        home = f", home {row.get('home')}" if len(homes) > 1 else ""
        values = [formatting.number(row.get(key)) for key in ("median_ns", "ci_low_ns", "ci_high_ns")]
        long = any(value is not None and value >= 1e4 for value in values)  # messages
        median, low, high = (None if value is None else value / 1e3 if long else value for value in values)
        yield (
            (printable(label, 20), f"{printable(str(row.get('name')), 20)}{home}", "us" if long else "ns"),
            median,
            low,
            high,
        )
    for row in node.get("cells", ()):
        if kind := _CELLS.get(str(row.get("measurement"))):
            name = "" if row.get("name") == "all" else printable(str(row.get("name")), 24)
            yield (kind, name, str(row.get("unit"))), row.get("median"), row.get("ci_low"), row.get("ci_high")


def _row(values: Sequence[tuple[float, Any, Any]], unit: str, several: bool) -> tuple[str, str]:
    """The median, and the interval of one node or the range over several."""
    of = [median for median, _, _ in values]
    if several:
        ends, what = (min(of), max(of)), ""
    else:
        ends, what = (values[0][1], values[0][2]), "95 %: "
    low, high = (formatting.with_unit(end, unit).partition(" ")[0] for end in ends)
    return formatting.with_unit(float(np.median(of)), unit), f"{what}{low} to {high}" if low and high else ""


def _machine(nodes: Mapping[str, Any]) -> str:
    (name, node), *_ = nodes.items()
    facts = node.get("fingerprint", {})
    cpus = f"{facts['cpus']} CPUs" if facts.get("cpus") else ""
    return ", ".join(filter(None, (f"node {name}", str(facts.get("cpu", "")), cpus)))


# --- matrices ---


def squares(fleet: PackedFleet, node: str) -> list[Square]:
    """The matrices of a node's newest job, of the first home: CPU by CPU, or block medians where there are too many."""
    number = next((i for i, known in enumerate(fleet.nodes) if known.name == node), None)
    out = []
    for one in fleet.pairs:
        rows = one.newest_rows.get(number) if number is not None else None
        if rows is not None and len(rows):
            cpus = fleet.nodes[number].cpus if number is not None else ()
            found = _square(one, _matrix(one, np.asarray(rows)), cpus, f"{node}: {one.measurement}, median in ns")
            out += [found] if found else []
    return out


def _matrix(one: Quantity, rows: npt.NDArray[np.int64]) -> Floats:
    """The medians over runs and passes of `rows`, symmetric (n x n), NaN where not measured."""
    n = len(one.layout.slots)
    runs = np.asarray(one.by_home[rows, :, 0], dtype=np.float64).reshape(-1, len(one.pairs))
    known = np.isfinite(runs).any(axis=0)
    a, b = one.pairs[known].T
    out = np.full((n, n), np.nan)
    out[a, b] = out[b, a] = np.nanmedian(runs[:, known], axis=0)
    return out


def _square(one: Quantity, matrix: Floats, cpus: Sequence[int], title: str) -> Square | None:
    """CPU by CPU, or part by part; None where there is nothing to see, as of a single pair or part."""
    # a CPU that was measured with its own sibling alone is no row
    rows = np.flatnonzero(np.isfinite(matrix).sum(axis=1) > 1).tolist()
    if len(rows) < 3:
        return None
    if len(rows) <= _CPUS:
        names = tuple(str(cpus[row]) if row < len(cpus) else str(row) for row in rows)
        return Square(f"{title}, CPU by CPU", names, matrix[np.ix_(rows, rows)])
    for level, name in _LEVELS:
        parts = one.layout.slots[rows][:, [SOCKET, level]]
        found, part_of = np.unique(parts, axis=0, return_inverse=True)
        if found.min() >= 0 and 2 <= len(found) <= _CPUS:
            members = [np.array(rows)[part_of.ravel() == i] for i in range(len(found))]
            blocks = np.array([[_median(matrix[np.ix_(one, other)]) for other in members] for one in members])
            return Square(f"{title}, {name} by {name}", tuple(str(part) for _, part in found), blocks)
    return None


def _median(block: Floats) -> float:
    finite = block[np.isfinite(block)]
    return float(np.median(finite)) if finite.size else float("nan")


def painted(square: Square) -> Text:
    """A matrix as text whose background is the report's colours; its numbers say the same without any colour.

    Where there is no room for nanoseconds, the numbers are tens of them.
    """
    ends = scale.ends(square.values)
    colours = scale.of_nodes([ends] if ends else [])
    margin = max(map(len, square.names)) + 1
    room = (_COLUMNS - margin) // len(square.names)
    digits = len(f"{np.nanmax(square.values):.0f}") if ends else 1
    width, unit = (min(room, digits + 1), 1) if room > digits else (max(2, min(room, 3)), 10)
    out = Text(f"{square.title}{' / 10' if unit == 10 else ''}\n")
    step = 1 + (max(map(len, square.names)) >= width)
    heads = (name.rjust(width) if i % step == 0 else " " * width for i, name in enumerate(square.names))
    out.append(" " * margin + "".join(heads))
    for name, row in zip(square.names, square.values, strict=True):
        out.append("\n" + name.rjust(margin - 1) + " ")
        for value in row:
            shown = f"{value / unit:.0f}" if np.isfinite(value) else "."
            out.append(shown.rjust(width), _style(value, colours))
    return out


def _style(value: float, colours: Scale) -> Style:
    if not np.isfinite(value):
        return Style()
    entry = int(colours.index(value))
    red, green, blue = scale.palette(colours.map)[entry]
    ink = "white" if scale.is_dark(entry, colours.map) else "black"
    return Style(color=ink, bgcolor=f"rgb({red},{green},{blue})")
