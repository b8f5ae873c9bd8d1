"""A node's matrix as a few rows of numbers, for a terminal."""

from __future__ import annotations

from nodeprint.report.figures.figure_data import title_of
from nodeprint.report.figures.matrix import drawn_slots, square_of
from nodeprint.report.figures.matrix_tables import block_medians
from nodeprint.report.figures.node_levels import NodeLevels
from nodeprint.report.pages.blocks import MatrixBlock

#: The most CPUs that get rows of their own.
_CPUS = 32


def matrix(levels: NodeLevels, node: str) -> MatrixBlock | None:
    """Return a node's matrix at the first home, by CPU, or by component if there are too many CPUs.

    None if there is nothing to compare, such as a single pair or component.
    """
    quantity = levels.quantity
    slots = drawn_slots(quantity)
    if len(slots) < 3:
        return None
    title = f"{node}: {quantity.measurement}, median in {levels.unit.name}"
    values = square_of(quantity, levels.of(node), quantity.homes[0], slots) / levels.unit.size
    if len(slots) <= _CPUS:
        names = tuple(map(str, levels.cpus(node, slots)))
        return MatrixBlock(f"{title}, CPU by CPU", names, tuple(map(tuple, values.tolist())))
    blocks = block_medians(levels, node)
    if blocks is None:
        return None
    level = title_of(blocks.row)
    names, rows = blocks.row.to_numpy().tolist(), blocks.value.to_numpy().tolist()
    return MatrixBlock(f"{title}, {level} by {level}", tuple(names), tuple(map(tuple, rows)))
