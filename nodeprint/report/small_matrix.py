"""A node's matrix in a few lines of text, for a terminal."""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec
import numpy as np
from rich.style import Style
from rich.text import Text

from nodeprint.data.packed import PackedFleet
from nodeprint.report.figures import block_medians
from nodeprint.report.figures import style as styles
from nodeprint.report.figures.matrix import drawn_slots, square_of
from nodeprint.report.figures.node_levels import Floats, NodeLevels, levels
from nodeprint.report.figures.pixels import value_limits

#: Up to so many CPUs are shown each for itself.
_CPUS = 32


class Square(msgspec.Struct, frozen=True):
    """A matrix to print: `values` (n x n, NaN where there is none), a name for each row, and its title."""

    title: str
    names: tuple[str, ...]
    values: Floats


def text(fleet: PackedFleet, measurement: str, node: str, columns: int) -> Text | None:
    """The matrix of a measurement of pairs on a node; None where there is nothing to see. Raises NodeprintError where
    the node has none."""
    matrix = square(levels(fleet, measurement, node), node)
    return painted(matrix, columns) if matrix else None


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
    blocks = block_medians.of(levels, node)
    return Square(f"{title}, {blocks.level} by {blocks.level}", blocks.names, blocks.values) if blocks else None


def painted(square: Square, columns: int) -> Text:
    """A matrix as text whose background is the report's colours; its numbers say the same without any colour.

    Where there is no room for a value in so many `columns`, the numbers are tens of them.
    """
    finite = square.values[np.isfinite(square.values)]
    low, high = value_limits(square.values)
    margin = max(map(len, square.names)) + 1
    room = (columns - margin) // len(square.names)
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
