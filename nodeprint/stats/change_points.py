"""Change points of a series, from values with their standard errors: arrays in, arrays out.

The partition into stretches of one level each minimizes the sum of squared residuals, in standard errors, plus a
penalty for each change. It is the optimal partitioning of Jackson et al. (2005), which is exact and takes milliseconds
for hundreds of values. With the penalty z squared, a change is a likelihood ratio test at z standard errors at every
point (Hinkley 1970). Bonferroni's inequality limits its false alarms (`threshold`).
"""

from __future__ import annotations

import msgspec
import numpy as np
import numpy.typing as npt
from scipy import special

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

#: A stretch between two others has at least so many values: a single one that is not seen again is no level.
_LEAST = 2
#: Twice the drop of the log likelihood at the end of a 95% interval of one parameter.
_DROP_95 = 3.841
#: The median of a squared normal variable.
_MEDIAN_SQUARE = 0.4549


class Stretch(msgspec.Struct, frozen=True):
    """Values from `start` to before `stop` at one `level` (their mean weighted by their errors) with its `error`.

    The level begins in one of the values from `earliest` to `latest` (95%, by the drop of the likelihood).
    """

    start: int
    stop: int
    level: float
    error: float
    earliest: int
    latest: int

    @property
    def count(self) -> int:
        """The number of values."""
        return self.stop - self.start


def threshold(alarm: float, series: int, values: int) -> float:
    """The z of a change, so that `alarm` limits the probability of any false change in `series` series of `values`
    values. Each series is tested after every new value, which makes half of `values` squared tests each."""
    return float(-special.ndtri(alarm / (max(series, 1) * values**2)))  # a difference has two sides


def scatter(values: Floats, errors: Floats) -> Floats:
    """The scatter of each series of (value, series), in units of its standard errors. It is based on the median of
    squared successive differences, which a few changes do not move. NaN for a single value."""
    squares = np.diff(values, axis=0) ** 2 / (errors[1:] ** 2 + errors[:-1] ** 2)
    usable = np.isfinite(squares).any(axis=0)
    out = np.full(values.shape[1], np.nan)
    if usable.any():
        out[usable] = np.sqrt(np.nanmedian(squares[:, usable], axis=0) / _MEDIAN_SQUARE)
    return out


def isolated(values: Floats, errors: Floats, z: float) -> Bools:
    """Single values inside a series (value) that are `z` standard errors from both neighbors, on one side. The next
    measurement does not repeat them."""
    out = np.zeros(len(values), dtype=np.bool_)
    if len(values) < 3:
        return out
    before, after = values[1:-1] - values[:-2], values[1:-1] - values[2:]
    far = [
        np.abs(step) > z * np.sqrt(errors[1:-1] ** 2 + neighbor**2)
        for step, neighbor in ((before, errors[:-2]), (after, errors[2:]))
    ]
    # where values go up and down in turn, one in two is alone
    out[1:-1] = far[0] & far[1] & (np.sign(before) == np.sign(after))
    out[1:] &= ~out[:-1]
    return out


def stretches(values: Floats, errors: Floats, z: float) -> list[Stretch]:
    """The stretches of one level each of finite `values` with standard `errors`, one if nothing changes. `z` is as in
    `threshold`. The first and the last stretch may have one value."""
    count, weight = len(values), 1 / errors**2
    sums = [np.concatenate([[0.0], np.cumsum(term)]) for term in (weight, weight * values, weight * values**2)]
    best, previous = np.full(count + 1, np.inf), np.zeros(count + 1, dtype=np.int64)
    best[0] = -(z**2)
    for stop in range(1, count + 1):
        starts = np.arange(stop)
        long_enough = (stop - starts >= _LEAST) | (starts == 0) | (stop == count)
        total = best[:stop] + _squares(sums, starts, stop) + z**2
        total[~long_enough] = np.inf
        previous[stop] = int(np.argmin(total))
        best[stop] = total[previous[stop]]
    cuts = [count]
    while cuts[0] > 0:
        cuts.insert(0, int(previous[cuts[0]]))
    return [_stretch(sums, cuts, number) for number in range(len(cuts) - 1)]


def _squares(sums: list[Floats], start: npt.NDArray[np.int64] | int, stop: npt.NDArray[np.int64] | int) -> Floats:
    """The weighted squares about their mean of the values from `start` to before `stop`."""
    weight, first, second = (term[stop] - term[start] for term in sums)
    return np.asarray(np.maximum(second - first**2 / weight, 0.0))


def _stretch(sums: list[Floats], cuts: list[int], number: int) -> Stretch:
    start, stop = cuts[number], cuts[number + 1]
    weight, first, _ = (term[stop] - term[start] for term in sums)
    earliest = latest = start
    if number:
        places = np.arange(cuts[number - 1] + 1, stop)
        cost = _squares(sums, cuts[number - 1], places) + _squares(sums, places, stop)
        likely = places[cost - cost.min() < _DROP_95]
        earliest, latest = int(min(likely.min(), start)), int(max(likely.max(), start))
    return Stretch(start, stop, float(first / weight), float(weight**-0.5), earliest, latest)
