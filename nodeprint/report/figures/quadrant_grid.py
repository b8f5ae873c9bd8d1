"""Quadrant by quadrant: what the I/O die does to the pairs that cross it, on a scale of its own."""

from __future__ import annotations

import numpy as np

from nodeprint.data.places import homes
from nodeprint.data.places.layout import CCX, QUADRANT, SOCKET
from nodeprint.report.figures.grid import GridData
from nodeprint.report.figures.matrix import difference_reach, home_of
from nodeprint.report.figures.node_levels import Floats, NodeLevels
from nodeprint.report.figures.pixels import ColorScale
from nodeprint.settings.texts import say

_LEAST_REACH = 2.0


def of_node(levels: NodeLevels, node: str, home: int | None = None) -> GridData | None:
    """Medians of the pairs between quadrants, those of cores of different CCXs alone, as the others do not cross the
    I/O die; None of a machine without two known quadrants.

    The numbers are medians; the colors are their differences in percent from the median of their kind: inside a
    quadrant, between quadrants of one socket (each on its own), between two sockets. On one scale of values the
    difference between sockets would leave one color to all quadrants.
    """
    quantity = levels.quantity
    at_home = home_of(quantity, home)
    slots, pairs = quantity.layout.slots, quantity.pairs
    components = np.unique(slots[:, [SOCKET, QUADRANT]], axis=0)
    if slots[:, QUADRANT].min(initial=0) < 0 or len(components) < 2:
        return None
    number = {tuple(component): order for order, component in enumerate(components.tolist())}
    of_slot = np.array([number[tuple(component)] for component in slots[:, [SOCKET, QUADRANT]].tolist()])
    a, b = pairs.T
    start = quantity.homes.index(at_home) * len(pairs)
    values = levels.of(node)[start : start + len(pairs)] / levels.unit.size
    crossing = ((slots[a, CCX] != slots[b, CCX]) | (slots[a, CCX] < 0)) & np.isfinite(values)
    table = np.full((len(components), len(components)), np.nan)
    low, high = np.minimum(of_slot[a], of_slot[b]), np.maximum(of_slot[a], of_slot[b])
    for p in range(len(components)):
        for q in range(p, len(components)):
            block = values[crossing & (low == p) & (high == q)]
            table[p, q] = table[q, p] = np.median(block) if block.size else np.nan
    away = _from_kind(table, components[:, 0].tolist())
    reach = difference_reach(away, None, least=_LEAST_REACH)
    several = len(set(components[:, 0].tolist())) > 1
    names = tuple(f"{socket}.{quadrant}" if several else str(quadrant) for socket, quadrant in components.tolist())
    place = homes.named(at_home)
    title = f"{quantity.measurement}, {f'{place}: ' if place else ''}{levels.title}"
    axis = "socket.quadrant" if several else "quadrant"
    scale = ColorScale(say("axes", "quadrants"), -reach, reach, "differences")
    return GridData(away, table, names, names, f"from {axis}", f"to {axis}", title, scale)


def _from_kind(table: Floats, sockets: list[int]) -> Floats:
    """By block the difference in percent from the median of the blocks of its kind."""
    size = len(table)
    kinds: dict[tuple[int, int, bool], list[tuple[int, int]]] = {}
    for p in range(size):
        for q in range(p, size):
            first, second = sorted((sockets[p], sockets[q]))
            if np.isfinite(table[p, q]):
                kinds.setdefault((first, second, p == q), []).append((p, q))
    out = np.full_like(table, np.nan)
    for blocks in kinds.values():
        middle = float(np.median([table[block] for block in blocks]))
        for p, q in blocks:
            out[p, q] = out[q, p] = 100 * (table[p, q] / middle - 1)
    return out
