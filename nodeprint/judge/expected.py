"""The data for remeasuring a finding: its measurement points, with the values of the peers.

To repeat the comparison, measure these points and take the weighted mean of their differences from `usual`. Neither the
peers' records nor the judge are necessary.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from nodeprint.data.places.homes import FAR, NEAR
from nodeprint.data.places.layout import SOCKET, Ints
from nodeprint.data.places.measured import Key, Measured
from nodeprint.data.store.packed import PackedNode, os_places
from nodeprint.judge.reduction import Matrix
from nodeprint.judge.verdict import Expected

Floats = npt.NDArray[np.float64]

#: The number of pairs to remeasure on each side of a contrast, evenly over all of them. They detect a shift of half a
#: tolerance in a second.
_MOST_PAIRS = 192


def of_term(matrix: Matrix, number: int, center: float, node: PackedNode) -> Expected | None:
    """The expected values for a component of a matrix. `center` is the value of the peers on its scale. None if no
    measurement point is left."""
    quantity = matrix.measured
    if matrix.terms.share:
        return of_median(quantity, matrix.terms.terms[number].covers, node)
    measured = np.isfinite(matrix.template) & (matrix.template > 0)
    weights = np.where(measured, matrix.terms.contrast[number].astype(np.float64), 0.0)
    if quantity.of_pairs:
        weights = _thinned(weights)
    at = np.flatnonzero(weights)
    if not len(at):
        return None
    statistic = "log" if matrix.terms.scale == "log" else "mean"
    return Expected(
        quantity.model.value,
        statistic,
        *_places(quantity, matrix.home, at, node),
        tuple(matrix.template[at].astype(float).tolist()),
        tuple(weights[at].tolist()),
        center,
    )


def of_median(quantity: Measured, places: Ints, node: PackedNode) -> Expected:
    """The expected values for the median over `places` (of all homes), such as a contract limit or a share of the
    time."""
    each = len(quantity.pairs) if quantity.of_pairs else quantity.size
    home = quantity.homes[int(places[0]) // each] if quantity.of_pairs else NEAR
    named = _places(quantity, home, places % each, node)
    return Expected(quantity.model.value, "median", *named, (1.0,) * len(places), (1.0,) * len(places), 0.0)


def _thinned(weights: Floats) -> Floats:
    """Weights of about _MOST_PAIRS places a side at most. Places of equal weight are thinned evenly, and the sum of
    their weights stays."""
    out = np.zeros_like(weights)
    for side in (weights > 0, weights < 0):
        keep = _MOST_PAIRS / max(int(side.sum()), _MOST_PAIRS)
        for weight in np.unique(weights[side]):
            alike = np.flatnonzero(weights == weight)
            count = max(1, round(len(alike) * keep))
            out[alike[np.arange(count) * len(alike) // count]] = weight * len(alike) / count
    return out


def _places(
    quantity: Measured, home: int, at: Ints, node: PackedNode
) -> tuple[tuple[str, ...], tuple[tuple[Key, ...], ...]]:
    """The names of the coordinates of a record, and the coordinates of each place in the node's numbering. The home of
    a pair's line is the list of NUMA nodes that may have it, or `any` if the arguments determine it."""
    if quantity.of_pairs:
        slots = quantity.pairs[at]
        cpus = np.sort(np.array(node.cpus or range(len(quantity.layout.slots)), dtype=np.int64)[slots], axis=1)
        allowed = _homes(quantity, home, slots, node)
        return ("a", "b", "home"), tuple((a, b, of) for (a, b), of in zip(cpus.tolist(), allowed, strict=True))
    named = os_places(quantity, node)
    return quantity.dims, tuple(tuple(named[number].values()) for number in at.tolist())


def _homes(quantity: Measured, home: int, slots: Ints, node: PackedNode) -> list[str]:
    """By pair, the NUMA nodes that may have its line. Sockets determine near and far."""
    if NEAR < home < FAR:
        return [str(home)] * len(slots)
    layout = quantity.layout
    if all(known < FAR for known in quantity.homes):
        return ["any"] * len(slots)
    sockets = np.unique(layout.slots[:, SOCKET])
    steps = home - FAR + 1 if home >= FAR else 0
    numbers = node.numbers.get("node", tuple(range(layout.numa_nodes)))
    by_socket = {
        int(socket): ",".join(
            str(numbers[order]) for order in np.unique(layout.numa[layout.slots[:, SOCKET] == socket])
        )
        for socket in sockets
    }
    own = np.searchsorted(sockets, layout.slots[slots, SOCKET].min(axis=1))
    return [by_socket[int(sockets[number])] for number in (own + steps) % len(sockets)]
