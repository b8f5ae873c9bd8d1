"""Cores inside the CCXs of harvested parts, where a rank is no place on the die: nodes are compared by sorted profiles.

The order of a node's cores in a profile is that of their own values, so that what is found in a profile is put back to
the node's own cores.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from nodeprint.judge.reduction import Matrix, filled
from nodeprint.layout import CCX, RANK, Ints, codes

Floats = npt.NDArray[np.float64]


def order_of(matrix: Matrix) -> Ints | None:
    """The numbers of the terms (node, term) with each CCX's cores in order of their values; None where ranks are places
    or there are no terms inside CCXs."""
    layout = matrix.terms.layout
    inside = matrix.terms.indices("core-in")
    if not layout.harvested or not len(inside):
        return None
    cores = np.unique(layout.slots[:, : RANK + 1], axis=0)
    ccx = codes(cores[:, : CCX + 1])[[int(matrix.terms.terms[number].where["core"]) for number in inside]]
    order = np.tile(np.arange(len(matrix.terms.terms)), (len(matrix.nodes), 1))
    mean = np.nanmean(filled(matrix.values), axis=1)
    for mine in (inside[ccx == number] for number in np.unique(ccx)):
        order[:, mine] = mine[np.argsort(mean[:, mine], axis=1, kind="stable")]
    return order


def of(values: Floats, order: Ints | None) -> Floats:
    """Values (node, ..., term) of the nodes' own cores as sorted profiles."""
    if order is None:
        return values
    return np.take_along_axis(values, order.reshape(len(order), *[1] * (values.ndim - 2), -1), axis=-1)


def to_cores(values: Floats, order: Ints | None) -> Floats:
    """Values (node, term) of sorted profiles as those of each node's own cores."""
    if order is None:
        return values
    out = np.empty_like(values)
    np.put_along_axis(out, order, values, axis=1)
    return out
