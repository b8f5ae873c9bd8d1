"""What each node is compared with: the centre of the others, how far these spread, and how many they are."""

from __future__ import annotations

import msgspec
import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]
Ints = npt.NDArray[np.int64]

#: Below this many nodes the centre is that of the others; above, a node in the median of all is of no matter.
LEAVE_OUT_BELOW = 16
#: A centre is one where so many of the nodes are within their bound of it, of FEWEST nodes or more. Of fewer each is
#: named, as nobody knows which of them is right.
MAJORITY, FEWEST = 0.6, 5
#: A centre is the mean of values that are moved to so many standard deviations from their median (Huber 1964, one
#: step): two outliers of seven move it by about one, and its variance is TEMPLATE_ERROR times that of a mean.
HUBER, TEMPLATE_ERROR = 1.5, 1.1
#: From a median absolute deviation to the standard deviation of a normal distribution, and from the mean of the squares
#: of values that are moved to HUBER standard deviations to its variance.
_MAD, _OF_CLIPPED = 1.4826, 0.7785


class Peers(msgspec.Struct, frozen=True):
    """By node and part: the `centre` of the peers and the variance of a node about it, pooled over the part's family
    (`between`); by node, how many peers (`count`). `shared`: all nodes have the same."""

    centre: Floats
    between: Floats
    count: Floats
    shared: bool = False


def peers(means: Floats, family: Ints, trusted: Bools) -> Peers:
    """The peers of each node from `means` (node, part); only `trusted` nodes are peers.

    `family` (part) numbers the parts that share a variance.
    """
    nodes = len(means)
    if nodes >= LEAVE_OUT_BELOW:
        shape = means.shape
        centre, between = (np.broadcast_to(row, shape) for row in _centre_and_spread(means[trusted], family))
        return Peers(centre, between, trusted.sum() - trusted.astype(np.float64), shared=True)
    centres, spreads = np.zeros_like(means), np.zeros_like(means)
    count = np.zeros(nodes)
    for node in range(nodes):
        rest = trusted.copy()
        rest[node] = False
        if not rest.any():
            rest = np.arange(nodes) != node
        count[node] = rest.sum()
        centres[node], spreads[node] = _centre_and_spread(means[rest], family)
    return Peers(centres, spreads, count)


def centred(differences: Floats, bound: Floats) -> Bools:
    """Whether a majority of the nodes is within `bound` (part) of the centre that `differences` are from (node, part;
    NaN where a node has none). Without one there is nothing that a node could differ from or be the same as."""
    measured = np.isfinite(differences)
    count = measured.sum(axis=0)
    with np.errstate(invalid="ignore"):
        within = (np.abs(differences) <= bound).sum(axis=0)
    return np.asarray((count < FEWEST) | (within >= MAJORITY * count))


def _centre_and_spread(means: Floats, family: Ints) -> tuple[Floats, Floats]:
    """Of nodes (node, part): their centre, and the variance about it by family; 0 of a single node."""
    count = len(means)
    centre = np.median(means, axis=0)
    if count < 2:
        return centre, np.zeros_like(centre)
    residual = means - centre
    between = np.empty_like(centre)
    correction = count / (count - 1)
    for number in np.unique(family):
        columns = family == number
        scale = _MAD * _typical(residual[:, columns])
        step = np.mean(np.clip(residual[:, columns], -HUBER * scale, HUBER * scale), axis=0)
        centre[columns] += step
        rest = residual[:, columns] - step
        squares = np.clip(rest, -HUBER * scale, HUBER * scale) ** 2 / _OF_CLIPPED if scale > 0 else rest**2
        between[columns] = float(np.mean(squares)) * correction
    return centre, between


def _typical(residual: Floats) -> float:
    """The median of the distances (node, part) from each part's median over the nodes, but the smallest one: of an odd
    number of nodes the median is one of them, at no distance. So the scale of three is that of many."""
    return float(np.median(np.sort(np.abs(residual), axis=0)[1:]))
