"""Whether values go with the order in which they were measured: a trend or a step over it."""

from __future__ import annotations

import msgspec
import numpy as np
import numpy.typing as npt
from scipy import stats

Floats = npt.NDArray[np.float64]

#: Fewer values show no order; a step has so many on each side.
FEWEST, _EACH_SIDE = 6, 3


class OrderEffect(msgspec.Struct, frozen=True):
    """How values change over the order of measuring: by `effect` from the first to the last, or from value number
    `step` on (in that order), with half of its 95 % interval and the chance `p` of one as clear where the order does
    not matter."""

    effect: float
    half_95: float
    p: float
    step: int | None


def effect(values: Floats, moments: Floats) -> OrderEffect | None:
    """How `values` (value) go with their `moments` (value; any unit); None where that cannot be seen, as of few values
    or of one moment.

    The chance is that of the clearer of a trend (Kendall 1938) and of the clearest step, the values before and after
    each moment (Mann and Whitney 1947), by Bonferroni's inequality; two tests count twice. Both are of ranks: nodes in
    two groups are no normal values, and one that differs, and is measured last, is no step. Which of the two it is
    follows from what explains more of the ranks. The order decides and not the time, as clocks of nodes may be wrong.
    """
    count = len(values)
    if count < FEWEST or len(np.unique(moments)) < 2 or not np.ptp(values) > 0:
        return None
    order = np.argsort(moments, kind="stable")
    p, step = float(stats.kendalltau(moments, values).pvalue), None
    explained = _explained_by_cuts(values[order], moments[order])
    if len(cuts := np.flatnonzero(np.isfinite(explained))):
        cut = int(cuts[np.argmax(explained[cuts])])
        p = min(p, float(stats.mannwhitneyu(values[order[cut:]], values[order[:cut]]).pvalue) * len(cuts))
        line = 1 - float(stats.spearmanr(moments, values).statistic) ** 2  # a step has its cut as one more parameter
        step = cut if (1 - explained[cut]) / (count - 3) < line / (count - 2) else None
    size, half = _trend(values, moments) if step is None else _step(values[order], step)
    return OrderEffect(size, half, min(1.0, 2 * p), step)


def holm(p: Floats, level: float) -> npt.NDArray[np.bool_]:
    """Which of several hypotheses are rejected with a chance of `level` of any false rejection (Holm 1979)."""
    order = np.argsort(p, kind="stable")
    passes = p[order] <= level / np.arange(len(p), 0, -1)
    rejected = np.zeros(len(p), dtype=np.bool_)
    rejected[order[: len(p) if passes.all() else int(np.argmin(passes))]] = True
    return rejected


def _trend(values: Floats, moments: Floats) -> tuple[float, float]:
    """By how much values change over the ranks of the moments, and half of the 95 % interval (least squares)."""
    ranks = stats.rankdata(moments)
    line = stats.linregress(ranks, values)
    span = float(np.ptp(ranks))
    return float(line.slope) * span, float(stats.t.isf(0.025, len(values) - 2)) * float(line.stderr) * span


def _step(ordered: Floats, cut: int) -> tuple[float, float]:
    """By how much the mean of the values from a cut on is above that before, and half of the 95 % interval
    (Student's)."""
    interval = stats.ttest_ind(ordered[cut:], ordered[:cut]).confidence_interval(0.95)
    return float(np.mean(interval)), float(np.ptp(interval)) / 2


def _explained_by_cuts(ordered: Floats, moments: Floats) -> Floats:
    """The share of the squares of ranks that is between the values before and from each on (value); NaN where no cut is
    between two moments, with enough values on both sides."""
    count = len(ordered)
    cuts = np.arange(_EACH_SIDE, count - _EACH_SIDE + 1)
    cuts = cuts[moments[cuts - 1] < moments[cuts]]
    ranks = stats.rankdata(ordered) - (count + 1) / 2
    explained = np.full(count, np.nan)
    explained[cuts] = np.cumsum(ranks)[cuts - 1] ** 2 * count / (cuts * (count - cuts)) / np.sum(ranks**2)
    return explained
