"""A node's matrix in a few lines of text, for a terminal."""

from __future__ import annotations

from rich.text import Text

from nodeprint.data.store.packed import PackedFleet
from nodeprint.report.figures.figure_data import title_of
from nodeprint.report.figures.matrix import drawn_slots, square_of
from nodeprint.report.figures.matrix_tables import block_medians
from nodeprint.report.figures.node_levels import NodeLevels, levels
from nodeprint.report.painted import Square, painted

#: Up to so many CPUs are shown each for itself.
_CPUS = 32


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
    blocks = block_medians(levels, node)
    if blocks is None:
        return None
    level = title_of(blocks.row)
    return Square(f"{title}, {level} by {level}", tuple(blocks.row.to_numpy().tolist()), blocks.value.to_numpy())
