"""The reference of each node: the center of its peers, their spread and their number."""

from __future__ import annotations

import msgspec
import numpy as np
import numpy.typing as npt

from nodeprint.stats.runs import independence

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]
Ints = npt.NDArray[np.int64]

#: Below this many nodes the center of the peers is computed for each node. Above, the node's share is subtracted from
#: the center of all.
LEAVE_OUT_BELOW = 16
#: Who is right is known only if so many of the nodes agree.
MAJORITY = 2 / 3
#: With fewer nodes all are named, as none is known to be right.
FEWEST = 5
#: Nodes are left out of a reference only as long as this share of them remains.
REMAINDER = 0.6
#: A center is the mean of values that are clipped at so many standard deviations from their median (Huber 1964, one
#: step). Two outliers of seven move it by about one, and its variance is TEMPLATE_ERROR times that of a mean.
HUBER, TEMPLATE_ERROR = 1.5, 1.1
#: The standard deviation of a normal distribution as a multiple of its median absolute deviation. The mean square of
#: normal values clipped at HUBER standard deviations.
_MAD, _OF_CLIPPED = 1.4826, 0.7785


class Peers(msgspec.Struct, frozen=True):
    """The peers of each node: their `center` (node, component) and `count` (node).

    `between` (node, component) is the variance of a healthy node about the center, pooled over the component's type,
    with its `degrees` of freedom. A peer has the variances `of_runs` and `of_movement` (by larger changes between jobs
    than others), and `of_jobs` times the variance between jobs. The variance of the center is a `share` (node) of
    these. In a large fleet all nodes see one row.
    """

    center: Floats
    count: Floats
    between: Floats
    degrees: Floats
    of_runs: Floats
    of_jobs: Floats
    of_movement: Floats
    share: Floats


def peers(
    means: Floats, component_type: Ints, trusted: Bools, by_runs: Floats, by_jobs: Floats, by_movement: Floats
) -> Peers:
    """The peers of each node from `means` (node, component); only `trusted` nodes are peers. `by_runs`, `by_jobs` and
    `by_movement` (node, component) are the variances of nodes.

    `component_type` (component) numbers the components that share a variance.
    """
    of_runs, of_jobs, of_movement = (_over_peers(own, trusted) for own in (by_runs, by_jobs, by_movement))
    if len(means) >= LEAVE_OUT_BELOW:
        centers, count, between, degrees = _of_many(means, component_type, trusted)
    else:
        nodes = len(means)
        centers, between, degrees = np.zeros_like(means), np.zeros_like(means), np.ones_like(means)
        count = np.zeros(nodes)
        for node in range(nodes):
            rest = trusted.copy()
            rest[node] = False
            if not rest.any():
                rest = np.arange(nodes) != node
            of_rest = _center_and_spread(means[rest], component_type)
            count[node], centers[node], between[node], degrees[node] = rest.sum(), *of_rest[:3]
    share = TEMPLATE_ERROR / np.maximum(count, 1.0)
    return Peers(centers, count, between, degrees, of_runs, of_jobs, of_movement, share)


def _over_peers(values: Floats, trusted: Bools) -> Floats:
    """The mean of `values` (node, component) over the peers of each node; in a large fleet all see one row."""
    if len(values) >= LEAVE_OUT_BELOW:
        return np.broadcast_to(values[trusted].mean(axis=0), values.shape)
    others = trusted & ~np.eye(len(trusted), dtype=np.bool_)
    others[~others.any(axis=1)] = True
    return np.asarray((others @ values) / others.sum(axis=1)[:, None])


def _of_many(means: Floats, component_type: Ints, trusted: Bools) -> tuple[Floats, Floats, Floats, Floats]:
    """The center of all trusted nodes without each node's own share, their number, and the spread with its degrees of
    freedom."""
    center, between, degrees, scale = _center_and_spread(means[trusted], component_type)
    middle = np.median(means[trusted], axis=0)
    count = trusted.sum() - trusted.astype(np.float64)
    centers = np.clip(means - middle, -HUBER * scale, HUBER * scale)
    centers -= center - middle
    centers *= -(trusted / np.maximum(count, 1.0))[:, None]
    centers += center
    return centers, count, np.broadcast_to(between, means.shape), np.broadcast_to(degrees, means.shape)


def agreeing(values: Floats, tolerance: Floats, slack: Floats | None = None, fewest: int = FEWEST) -> Floats:
    """The largest share of the nodes that are within `tolerance` (component) of one of them (component). `values` are
    (node, component), NaN if a node has none. It is 1 for fewer than `fewest` nodes, which show nothing. `slack`
    (component) widens the tolerance by the chance difference of two nodes."""
    within = tolerance if slack is None else tolerance + slack
    share = np.ones(values.shape[1])
    ordered, count = np.sort(values, axis=0), np.isfinite(values).sum(axis=0)
    for component in np.flatnonzero(count >= fewest).tolist():
        of_component = ordered[: count[component], component]
        first = np.searchsorted(of_component, of_component - within[component], side="left")
        last = np.searchsorted(of_component, of_component + within[component], side="right")
        share[component] = (last - first).max() / count[component]
    return share


def _center_and_spread(means: Floats, component_type: Ints) -> tuple[Floats, Floats, Floats, Floats]:
    """The center of nodes (node, component), the variance about it by component type with its degrees of freedom, and
    the clipping scale. A single node has its value and no spread."""
    count = len(means)
    center = np.median(means, axis=0)
    between, scales, degrees = np.zeros_like(center), np.zeros_like(center), np.ones_like(center)
    if count < 2:
        return center, between, degrees, scales
    residual = means - center
    correction = count / (count - 1)
    for number in np.unique(component_type):
        columns = component_type == number
        scale = _MAD * _typical(residual[:, columns])
        moved = np.clip(residual[:, columns], -HUBER * scale, HUBER * scale)
        step = np.mean(moved, axis=0)
        center[columns] += step
        rest = residual[:, columns] - step
        clipped = np.clip(rest, -HUBER * scale, HUBER * scale) if scale > 0 else rest
        variance = np.mean(clipped**2, axis=0) * correction
        between[columns] = float(np.mean(variance)) / (_OF_CLIPPED if scale > 0 else 1.0)
        scales[columns] = scale
        own = np.full(variance.shape, count - 1.0)
        degrees[columns] = (count - 1) * independence(clipped[:, None], variance, own)
    return center, between, degrees, scales


def _typical(residual: Floats) -> float:
    """The median of the distances (node, component) from each component's median over the nodes, without the smallest.
    In an odd number of nodes, the median is one of them, at distance 0. So three nodes have the same scale as many."""
    return float(np.median(np.sort(np.abs(residual), axis=0)[1:]))
