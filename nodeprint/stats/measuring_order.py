"""Trends and steps of values over the order in which they were measured."""

from __future__ import annotations

import msgspec
import numpy as np
import numpy.typing as npt
from scipy import stats

Floats = npt.NDArray[np.float64]

#: Fewer values show no order; a step has so many on each side.
FEWEST, _EACH_SIDE = 6, 3


class OrderEffect(msgspec.Struct, frozen=True):
    """The change of values over the order of measuring: `effect` from the first to the last, or from value number
    `step` on (in that order). `half_95` is half of its 95% interval. `p` is the probability of an effect as clear if
    the order does not matter."""

    effect: float
    half_95: float
    p: float
    step: int | None


def effect(values: Floats, moments: Floats) -> OrderEffect | None:
    """The change of `values` (value) over their `moments` (value; any unit). None if it cannot be determined: few
    values or one moment.

    The probability is the smaller one of two tests, by Bonferroni's inequality; two tests count twice. One is for a
    trend (Kendall 1938). The other is for the clearest step, between the values before and after each moment (Mann and
    Whitney 1947). Both use ranks: nodes in two groups are not normal values, and one outlier that is measured last is
    no step. The better explanation of the ranks decides between trend and step. The order counts, not the time, as
    clocks of nodes may be wrong.
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
    """The rejected hypotheses, with a probability of `level` of any false rejection (Holm 1979)."""
    order = np.argsort(p, kind="stable")
    passes = p[order] <= level / np.arange(len(p), 0, -1)
    rejected = np.zeros(len(p), dtype=np.bool_)
    rejected[order[: len(p) if passes.all() else int(np.argmin(passes))]] = True
    return rejected


def _trend(values: Floats, moments: Floats) -> tuple[float, float]:
    """The change of values over the ranks of the moments, and half of its 95% interval (least squares)."""
    ranks = stats.rankdata(moments)
    line = stats.linregress(ranks, values)
    span = float(np.ptp(ranks))
    return float(line.slope) * span, float(stats.t.isf(0.025, len(values) - 2)) * float(line.stderr) * span


def _step(ordered: Floats, cut: int) -> tuple[float, float]:
    """The mean of the values from a cut on minus that before, and half of its 95% interval (Student's)."""
    interval = stats.ttest_ind(ordered[cut:], ordered[:cut]).confidence_interval(0.95)
    return float(np.mean(interval)), float(np.ptp(interval)) / 2


def _explained_by_cuts(ordered: Floats, moments: Floats) -> Floats:
    """The share of the squares of ranks between the values before and from each cut on (value). NaN if the cut is not
    between two moments, or has too few values on a side."""
    count = len(ordered)
    cuts = np.arange(_EACH_SIDE, count - _EACH_SIDE + 1)
    cuts = cuts[moments[cuts - 1] < moments[cuts]]
    ranks = stats.rankdata(ordered) - (count + 1) / 2
    explained = np.full(count, np.nan)
    explained[cuts] = np.cumsum(ranks)[cuts - 1] ** 2 * count / (cuts * (count - cuts)) / np.sum(ranks**2)
    return explained
