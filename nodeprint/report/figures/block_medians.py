"""Medians of the pairs between parts of a machine, CCD by CCD or the like: a large matrix in numbers."""

from __future__ import annotations

import msgspec
import numpy as np

from nodeprint.data.places.layout import CCD, CCX, NAMES, QUADRANT, SOCKET
from nodeprint.report.figures.grid import GridData
from nodeprint.report.figures.matrix import drawn_slots, square_of
from nodeprint.report.figures.node_levels import Floats, NodeLevels
from nodeprint.report.figures.pixels import ColorScale, value_limits
from nodeprint.settings.texts import say
from nodeprint.stats.robust import finite_median

#: From coarse to fine; the first of these levels is shown of which a node has several parts, and at most so many.
_LEVELS = (CCD, CCX, QUADRANT, SOCKET)
_MOST_COMPONENTS = 32


class Blocks(msgspec.Struct, frozen=True):
    """Medians in the unit that is shown (part, part), the parts' numbers as `names`, and the socket of each."""

    level: str
    names: tuple[str, ...]
    sockets: tuple[int, ...]
    values: Floats


def of(levels: NodeLevels, node: str) -> Blocks | None:
    """The blocks of a node at the first home; None where it has no level of several parts."""
    quantity = levels.quantity
    slots = drawn_slots(quantity)
    values = square_of(quantity, levels.of(node), quantity.homes[0], slots) / levels.unit.size
    for level in _LEVELS:
        components, part_of = np.unique(quantity.layout.slots[slots][:, [SOCKET, level]], axis=0, return_inverse=True)
        if components.min() >= 0 and 2 <= len(components) <= _MOST_COMPONENTS:
            members = [np.flatnonzero(part_of.ravel() == number) for number in range(len(components))]
            blocks = np.array([[finite_median(values[np.ix_(row, column)]) for column in members] for row in members])
            sockets, numbers = components.T.tolist()
            return Blocks(NAMES[level], tuple(map(str, numbers)), tuple(sockets), blocks)
    return None


def of_node(levels: NodeLevels, node: str) -> GridData | None:
    """The blocks as a table in colors. The colors go over what is between parts of one socket, which on a scale with
    other sockets would all look the same; the numbers are those of all."""
    blocks = of(levels, node)
    if blocks is None or len(drawn_slots(levels.quantity)) <= len(blocks.names):
        return None
    sockets = np.array(blocks.sockets)
    inside = (sockets[:, None] == sockets[None, :]) & ~np.eye(len(sockets), dtype=np.bool_)
    of_scale = blocks.values[inside] if np.isfinite(blocks.values[inside]).any() else blocks.values
    low, high = value_limits(np.asarray(of_scale))
    several = len(set(blocks.sockets)) > 1
    names = tuple(
        f"{socket}.{name}" if several else name for socket, name in zip(blocks.sockets, blocks.names, strict=True)
    )
    axis = f"{'socket.' if several else ''}{blocks.level}"
    scale = ColorScale(say("axes", "blocks", level=blocks.level, name=levels.unit.name), low, high)
    shown = np.clip(blocks.values, low, high)
    return GridData(shown, blocks.values, names, names, axis, axis, levels.title, scale)
