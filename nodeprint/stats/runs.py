"""Spread of a node's runs and jobs: pooled over nodes, with degrees of freedom for independent components.

Conditions of a run or a job (cache lines, pages, temperature) affect all components of a component type at once. Their
variances are therefore not independent, however many components there are.
"""

from __future__ import annotations

import msgspec
import numpy as np
import numpy.typing as npt
from scipy import special

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

#: The pooled variance excludes a node whose own, in a component type, is as large in one of so many nodes by chance.
RARE = 1e-3
#: Degrees of freedom of the variance that is assumed where no node has two runs.
PRIOR_DEGREES = 8.0
#: Weight of the pooled variance against that of one node, in degrees of freedom. With two runs a node's own variance
#: hardly counts. A burst in one of six runs and an intermittent component are detected.
OWN_DEGREES = 10.0
#: A normal value is beyond so many variances in one of 2,000 cases.
OUTLIER = 12.0
#: Steps in which outliers are found that others hid.
_STEPS = 3
#: Variances of components differ where they do by so many standard errors.
SURE = 2.0
#: Degrees of freedom beyond which a variance counts as known.
MOST_DEGREES = 1e4
#: From so many on Student's t is nearly normal, and nobody asks how independent the components of a component type are.
ENOUGH_DEGREES = 64.0


class PooledVariance(msgspec.Struct, frozen=True):
    """Variance between the runs of a job, or between the jobs of a node beyond that of their runs. `pooled` (component)
    is over all nodes, with its `degrees` of freedom (component). For jobs, it is the excess over the `assumed` variance
    (component); for runs, nothing is assumed. `ratio` (node x component, at least 1) is each node's variance relative
    to the usual one."""

    pooled: Floats
    degrees: Floats
    ratio: Floats
    assumed: Floats = np.zeros(1)

    @property
    def variance(self) -> Floats:
        """The variance of a usual node in each component."""
        return np.asarray(self.assumed + self.pooled)


def run_spread(values: Floats, component_type: Ints, prior: Floats, owner: Ints | None = None) -> PooledVariance:
    """The spread of `values` (job, run, component; NaN if a run is missing) over the runs of a job.

    The variance of each component is moderated by that of its component type (Smyth 2004, empirical Bayes). `prior`
    (component) is the standard deviation if no job has two runs. `owner` (job) numbers the node of each job, in order.
    If omitted, each job is its own node.
    """
    jobs, _, components = values.shape
    owner = np.arange(jobs) if owner is None else owner
    nodes = int(owner[-1]) + 1 if jobs else 0
    residual, squares, spare = _within(values)
    pooled, degrees, independent = (
        prior**2 * np.ones(components),
        np.full(components, PRIOR_DEGREES),
        np.ones(components),
    )
    if not spare.any():
        return PooledVariance(pooled, degrees, np.ones((nodes, components)))
    for number in np.unique(component_type):
        columns = np.flatnonzero((component_type == number) & spare.any(axis=0))
        if len(columns):
            usual = _usual(squares[:, columns], spare[:, columns])
            total = spare[np.ix_(usual, columns)].sum(axis=0)
            own = squares[np.ix_(usual, columns)].sum(axis=0) / total
            of_type, weight = moderation(own, total)
            pooled[columns] = (weight * of_type + total * own) / (weight + total)
            independent[columns] = independence(residual[usual][:, :, columns], own, total)
            degrees[columns] = np.minimum(weight + total, total * independent[columns])
    first = np.searchsorted(owner, np.arange(nodes))
    if nodes < jobs:
        squares, spare = (np.add.reduceat(each, first, axis=0) for each in (squares, spare))
    return PooledVariance(pooled, degrees, _ratio(squares, spare, pooled, float(np.median(independent))))


def _within(values: Floats) -> tuple[Floats, Floats, Floats]:
    """The differences of runs from their node's mean (node, run, component), 0 if missing; their sum of squares (node,
    component), and its degrees of freedom."""
    present = np.isfinite(values)
    count = present.sum(axis=1)
    means = np.where(present, values, 0.0).sum(axis=1) / np.maximum(count, 1)
    residual = np.where(present, values - means[:, None], 0.0)
    return residual, (residual**2).sum(axis=1), np.maximum(count - 1, 0).astype(np.float64)


def _usual(squares: Floats, spare: Floats) -> Bools:
    """The nodes (node) that are not unusually noisy in a component type: chance makes one in RARE noisier. It is an F
    test of a node's runs against those of the others, as if all components shared the differences of runs."""
    degrees = spare.max(axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        own = np.where(degrees > 0, squares.sum(axis=1) / np.maximum(spare.sum(axis=1), 1), 0.0)
    usual = degrees > 0
    while usual.sum() > 2:
        rest = degrees[usual].sum() - degrees[usual]
        others = ((own * degrees)[usual].sum() - (own * degrees)[usual]) / np.maximum(rest, 1)
        noisy = own[usual] > special.fdtri(degrees[usual], np.maximum(rest, 1), 1 - RARE) * others
        if not noisy.any():
            break
        usual[np.flatnonzero(usual)[np.where(noisy, own[usual], 0.0).argmax()]] = False
    return np.asarray(usual)


def independence(residual: Floats, variance: Floats, degrees: Floats) -> float:
    """The effective number of independent components of a component type. Inputs are the `residual` of runs (node, run,
    component) and the `variance` of each component with its `degrees` of freedom. It is one over the mean of their
    squared correlations. For independent components, chance adds 1 / degrees to that mean, which is subtracted. A floor
    on the rest keeps a few runs from proving independence."""
    count = float(np.median(degrees))
    usable = variance > 0
    if count >= ENOUGH_DEGREES or usable.sum() < 2:
        return 1.0
    flat = residual.reshape(-1, residual.shape[2])[:, usable] / np.sqrt(variance[usable])
    gram = flat @ flat.T / usable.sum()
    shared = float(np.sum(gram**2)) / count**2
    beyond_chance = (shared * count - 1) / (count - 1) if count > 1 else shared
    return max(1 / max(beyond_chance, shared / count), 1.0)


def moderation(variances: Floats, degrees: Floats) -> tuple[float, float]:
    """The common variance of a component type and its weight in degrees of freedom, from each component's variance.

    The method uses moments of the logarithms of variances that follow a scaled F distribution (Smyth 2004, section
    6.2). The excess over chance counts with its lower end, SURE standard errors below. Otherwise, a few variances of
    one degree of freedom would appear to differ in half of all cases. Without an excess, the weight is MOST_DEGREES.
    """
    usable = (variances > 0) & (degrees > 0)
    if usable.sum() < 3:
        return float(np.mean(variances)) if len(variances) else 0.0, PRIOR_DEGREES
    half = degrees[usable] / 2
    logs = np.log(variances[usable]) - special.digamma(half) + np.log(half)
    by_chance = special.polygamma(1, half)
    of_excess = np.sqrt(np.mean(special.polygamma(3, half) + 2 * by_chance**2) / len(logs))
    excess = float(np.var(logs, ddof=1) - np.mean(by_chance) - SURE * of_excess)
    if excess <= special.polygamma(1, MOST_DEGREES / 2):
        # the mean of all: that of logarithms is of no use where components share what they differ by
        return float(np.average(variances[usable], weights=degrees[usable])), MOST_DEGREES
    weight = 2 * _inverse_trigamma(excess)
    common = float(np.exp(np.mean(logs) + special.digamma(weight / 2) - np.log(weight / 2)))
    return common, float(min(max(weight, 1.0), MOST_DEGREES))


def _inverse_trigamma(value: float) -> float:
    """The number whose trigamma function is `value`, searched between 1 / `value` and half more."""
    from scipy import optimize  # noqa: PLC0415 (a fifth of what pages import, none of which needs it)

    return float(optimize.brentq(lambda number: special.polygamma(1, number) - value, 1 / value, 0.5 + 1 / value))


def _ratio(squares: Floats, spare: Floats, pooled: Floats, independent: float) -> Floats:
    """Each node's variance in each component, in `pooled` variances: its own, moderated. It is at least the ratio over
    all components, which count as `independent` components."""
    scaled = squares / np.where(pooled > 0, pooled, np.inf)
    own = (OWN_DEGREES + scaled) / (OWN_DEGREES + spare)
    degrees = spare.max(axis=1, initial=0.0) * independent
    over_all = scaled.sum(axis=1) / np.maximum(spare.sum(axis=1), 1)
    whole = (OWN_DEGREES + degrees * over_all) / (OWN_DEGREES + degrees)
    return np.asarray(np.maximum(np.maximum(own, whole[:, None]), 1.0))


def job_spread(means: Floats, owner: Ints, of_runs: Floats, component_type: Ints, assumed: Floats) -> PooledVariance:
    """The spread between jobs from their `means` (job, component; NaN if it has none). `owner` (job) numbers the node
    of each job, in order. `of_runs` (component) is the variance of a usual job's mean by its runs. `assumed`
    (component) is the assumed variance between jobs.

    A component type has one variance, as conditions of a job (pages, temperature) affect all of its components. It is
    never less than the assumed one, so that two jobs that agree by chance narrow no interval. The excess has the
    degrees of freedom of the jobs that show it. If no node has two jobs, the variance is the assumed one, taken as
    known.
    """
    jobs, components = means.shape
    nodes = int(owner[-1]) + 1 if jobs else 0
    excess, degrees = np.zeros(components), np.full(components, MOST_DEGREES)
    if jobs == nodes:
        return PooledVariance(excess, degrees, np.broadcast_to(1.0, (nodes, components)), assumed)
    residual, squares, spare = _between(means, owner, nodes)
    usual_variance = of_runs + assumed
    independent = np.ones(components)
    for number in np.unique(component_type):
        columns = np.flatnonzero((component_type == number) & spare.any(axis=0))
        if not len(columns):
            continue
        usual = _usual(squares[:, columns] / usual_variance[columns], spare[:, columns])
        total = spare[np.ix_(usual, columns)].sum(axis=0)
        shown = _without_outliers(squares[np.ix_(usual, columns)], usual_variance[columns], total)
        scaled = residual[np.ix_(usual[owner], columns)] / np.sqrt(usual_variance[columns])
        independent[columns] = independence(scaled[:, None], shown / usual_variance[columns], total)
        excess[columns] = max(float(np.mean(shown - usual_variance[columns])), 0.0)
        degrees[columns] = np.maximum(total * independent[columns], 1.0)
    ratio = _ratio(squares, spare, usual_variance + excess, float(np.median(independent)))
    return PooledVariance(excess, degrees, ratio, assumed)


def _without_outliers(squares: Floats, expected: Floats, total: Floats) -> Floats:
    """The variance of each component (component) from sums of `squares` (node, component) with `total` degrees of
    freedom (component). No component of a node counts more than OUTLIER times the usual. An intermittent fault in one
    component is a finding, not a variance of all. `expected` (component) is the variance within a component type."""
    scaled, many = squares / expected, max(float(total.sum()), 1.0)
    usual = float(scaled.sum()) / many
    for _ in range(_STEPS):
        scaled = np.minimum(scaled, OUTLIER * usual)
        usual = float(scaled.sum()) / many
    return np.asarray(scaled.sum(axis=0) * expected / np.maximum(total, 1))


def _between(means: Floats, owner: Ints, nodes: int) -> tuple[Floats, Floats, Floats]:
    """The differences of jobs (job, component) from their node's mean, 0 if missing. Also their sum of squares by node
    and component, and its degrees of freedom."""
    first = np.searchsorted(owner, np.arange(nodes))
    present = np.isfinite(means)
    count = np.add.reduceat(present, first, axis=0, dtype=np.int64)
    center = np.add.reduceat(np.where(present, means, 0.0), first, axis=0) / np.maximum(count, 1)
    residual = np.where(present, means - center[owner], 0.0)
    squares = np.add.reduceat(residual**2, first, axis=0)
    return residual, squares, np.maximum(count - 1, 0).astype(np.float64)
