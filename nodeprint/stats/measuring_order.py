"""Whether values go with the order in which they were measured: a trend or a step over it."""

from __future__ import annotations

import warnings

import msgspec
import numpy as np
import numpy.typing as npt
from scipy import stats

Floats = npt.NDArray[np.float64]

#: Of fewer values nothing is said, and a step has so many on each side.
FEWEST, _EACH_SIDE = 6, 3
#: To see whether the order matters, values count as no farther from the median than this many standard deviations: one
#: that differs, and is measured last, is no step.
_WINSOR = 2.5


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

    The clearer of a regression on the ranks of the moments and of the clearest step, a t test before and after each
    moment by Bonferroni's inequality; two tests count twice. The order decides and not the time, as the clocks of
    nodes may be wrong.
    """
    count = len(values)
    if count < FEWEST or len(np.unique(moments)) < 2:
        return None
    clipped = _clipped(values)
    if not np.ptp(clipped) > 0:
        return None
    order = np.argsort(moments, kind="stable")
    candidates = [(_trend(clipped, moments)[2], None), *_clearest_step(clipped[order], moments[order])]
    p, step = min(candidates, key=lambda candidate: candidate[0])
    size, half, _ = _trend(values, moments) if step is None else _step(values[order], step)
    return OrderEffect(size, half, min(1.0, 2 * p), step)


def holm(p: Floats, level: float) -> npt.NDArray[np.bool_]:
    """Which of several hypotheses are rejected with a chance of `level` of any false rejection (Holm 1979)."""
    order = np.argsort(p, kind="stable")
    passes = p[order] <= level / np.arange(len(p), 0, -1)
    rejected = np.zeros(len(p), dtype=np.bool_)
    rejected[order[: len(p) if passes.all() else int(np.argmin(passes))]] = True
    return rejected


def _clipped(values: Floats) -> Floats:
    middle = np.median(values)
    scale = _WINSOR * float(stats.median_abs_deviation(values, scale="normal"))
    return np.asarray(np.clip(values, middle - scale, middle + scale))


def _trend(values: Floats, moments: Floats) -> tuple[float, float, float]:
    """By how much values change over the ranks of the moments, half of the 95 % interval, and the chance."""
    ranks = stats.rankdata(moments)
    line = stats.linregress(ranks, values)
    span = float(np.ptp(ranks))
    half = float(stats.t.isf(0.025, len(values) - 2)) * float(line.stderr) * span
    return float(line.slope) * span, half, float(line.pvalue)


def _step(ordered: Floats, cut: int) -> tuple[float, float, float]:
    """By how much the mean of the values from a cut on is above that before, half of the 95 % interval, and the
    chance."""
    with warnings.catch_warnings(
        action="ignore", category=RuntimeWarning
    ):  # values that are equal once they are clipped
        compared = stats.ttest_ind(ordered[cut:], ordered[:cut])
        interval = compared.confidence_interval(0.95)
    return float(np.mean(interval)), float(np.ptp(interval)) / 2, float(compared.pvalue)


def _clearest_step(ordered: Floats, moments: Floats) -> list[tuple[float, int]]:
    """The cut between two moments that is clearest, with its chance; none where none has enough values on both
    sides."""
    count = len(ordered)
    cuts = np.arange(_EACH_SIDE, count - _EACH_SIDE + 1)
    cuts = cuts[moments[cuts - 1] < moments[cuts]]
    if not len(cuts):
        return []
    sums = np.cumsum(ordered - ordered.mean())[cuts - 1]  # the t of all cuts is largest where this is
    best = int(cuts[np.argmax(np.abs(sums) / np.sqrt(cuts * (count - cuts)))])
    return [(min(1.0, _step(ordered, best)[2] * len(cuts)), best)]
