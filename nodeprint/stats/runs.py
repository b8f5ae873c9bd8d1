"""How far runs of one node differ: pooled over nodes, moderated part by part, larger for what is itself noisier."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np
import numpy.typing as npt
from scipy import special

from nodeprint.stats.robust import row_medians

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

#: Bursts in single runs count as no more than so many standard deviations of their family.
_WINSOR = 3.5
#: Weight of what is assumed of a family before the data, in degrees of freedom.
PRIOR_DEGREES = 8.0
#: Weight of the pooled variance against that of one node in one part. With two runs its own hardly counts; a burst in
#: one of six runs, or a part that comes and goes, is seen.
_OWN_DEGREES = 10.0
#: Variances of parts differ where they do by so many standard errors.
_SURE = 2.0
#: Degrees of freedom beyond which a variance counts as known.
MOST_DEGREES = 1e4


class RunSpread(msgspec.Struct, frozen=True):
    """Variance between the runs of a node: `pooled` (part) over the nodes, with its degrees of freedom (part), and how
    many times that each node has in each part (`ratio`, node x part, at least 1). The ratio is to `ratio_to` (part), in
    a later job the variance of that job."""

    pooled: Floats
    degrees: Floats
    ratio: Floats
    ratio_to: Floats

    def variance(self, rows: Ints | Sequence[int] | int | slice) -> Floats:
        """Of some nodes in each part (node, part)."""
        return np.asarray(self.pooled * self.ratio[rows])


def run_spread(values: Floats, family: Ints, prior: Floats) -> RunSpread:
    """The spread of `values` (node, run, part; NaN where a run is missing) over runs.

    `prior` (part) is the standard deviation assumed before the data. Part by part the variance is moderated by that of
    its family (Smyth 2004, empirical Bayes), the family's by the prior.
    """
    nodes, runs, parts = values.shape
    squares, spare = _within(values)
    total = spare.sum(axis=0)
    pooled, degrees = prior**2 * np.ones(parts), np.full(parts, PRIOR_DEGREES)
    if runs < 2 or not total.any():
        return RunSpread(pooled, degrees, np.ones((nodes, parts)), pooled)
    for number in np.unique(family):
        columns = np.flatnonzero((family == number) & (total > 0))
        if not len(columns):
            continue
        own = _clipped(squares[:, columns], spare[:, columns]).sum(axis=0) / total[columns]
        assumed = float(np.mean(prior[columns] ** 2))
        of_family, weight = moderation(own, total[columns])
        count = float(total[columns].sum())
        of_family = (count * of_family + PRIOR_DEGREES * assumed) / (count + PRIOR_DEGREES)
        pooled[columns] = (weight * of_family + total[columns] * own) / (weight + total[columns])
        degrees[columns] = np.minimum(weight + total[columns], MOST_DEGREES)
    return RunSpread(pooled, degrees, _ratio(squares, spare, pooled), pooled)


def _within(values: Floats) -> tuple[Floats, Floats]:
    """The sum of squares over the runs of a node about their mean (node, part), and its degrees of freedom."""
    present = np.isfinite(values)
    count = present.sum(axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        means = np.where(present, values, 0.0).sum(axis=1) / np.maximum(count, 1)
        squares = (np.where(present, values - means[:, None], 0.0) ** 2).sum(axis=1)
    return squares, np.maximum(count - 1, 0).astype(np.float64)


def _clipped(squares: Floats, spare: Floats) -> Floats:
    """Sums of squares (node, part) of a family, at most as large as bursts may count."""
    with np.errstate(invalid="ignore", divide="ignore"):
        variance = squares / spare
    estimated = variance[spare > 0]
    typical = float(np.median(estimated)) / 0.6 if len(estimated) else 0.0  # the median of a few runs' variances is low
    return np.where(spare > 0, np.minimum(squares, _WINSOR**2 * typical * spare), 0.0) if typical > 0 else squares


def moderation(variances: Floats, degrees: Floats) -> tuple[float, float]:
    """The common variance of a family and its weight in degrees of freedom, from each part's variance.

    Moments of the logarithms of variances that follow a scaled F distribution (Smyth 2004, section 6.2). Of how much
    they differ beyond chance the lower end counts, so many standard errors below: a few variances of one degree of
    freedom would appear to differ in half of all cases, and every interval would be ten times as wide. Where they
    differ no more, the weight is MOST_DEGREES.
    """
    usable = (variances > 0) & (degrees > 0)
    if usable.sum() < 3:
        return float(np.mean(variances)) if len(variances) else 0.0, PRIOR_DEGREES
    half = degrees[usable] / 2
    logs = np.log(variances[usable]) - special.digamma(half) + np.log(half)
    by_chance = special.polygamma(1, half)
    of_excess = np.sqrt(np.mean(special.polygamma(3, half) + 2 * by_chance**2) / len(logs))
    excess = float(np.var(logs, ddof=1) - np.mean(by_chance) - _SURE * of_excess)
    if excess <= special.polygamma(1, MOST_DEGREES / 2):
        return float(np.exp(np.mean(logs))), MOST_DEGREES
    weight = 2 * _inverse_trigamma(excess)
    common = float(np.exp(np.mean(logs) + special.digamma(weight / 2) - np.log(weight / 2)))
    return common, float(min(max(weight, 1.0), MOST_DEGREES))


def _inverse_trigamma(value: float) -> float:
    """The number whose trigamma function is `value`, by Newton's method (Smyth 2004, appendix)."""
    guess = 0.5 + 1 / value
    for _ in range(30):
        trigamma = float(special.polygamma(1, guess))
        step = trigamma * (1 - trigamma / value) / float(special.polygamma(2, guess))
        guess += step
        if -step / guess < 1e-8:
            break
    return guess


def _ratio(squares: Floats, spare: Floats, pooled: Floats) -> Floats:
    """How many times the pooled variance each node has in each part: its own, moderated, and at least that which it has
    over all parts."""
    with np.errstate(invalid="ignore", divide="ignore"):
        scaled = np.where(pooled > 0, squares / pooled, 0.0)
        own = (_OWN_DEGREES + scaled) / (_OWN_DEGREES + spare)
        each = np.where(spare > 0, scaled / np.maximum(spare, 1), np.nan)
    # of a chi-squared the median is below its mean, the more so the fewer runs
    runs = row_medians(np.where(spare > 0, spare, np.nan))
    whole = row_medians(each) / (special.gammaincinv(runs / 2, 0.5) * 2 / runs)
    return np.asarray(np.maximum(np.fmax(own, whole[:, None]), 1.0))
