"""One pair's samples as numbers: a low quantile with its interval. Means break where anything else runs."""

from __future__ import annotations

import math

#: The quantile that stands for a pair, and the error that each end of its interval may have.
LOW = 0.25
_ERROR = 0.025
#: A value is disturbed where its rank lost more than this share of the time that it is made of.
_MOST_LOST = 0.1


def summary(times_ns: list[float], messages: int = 1, lost_ns: float = 0.0) -> dict[str, float | list[str]]:
    """The members of a pair's record (docs/formats.md) from its samples, in ns a message.

    A sample is of so many `messages` one after another, and a rank did not run for `lost_ns` meanwhile.
    """
    ordered = sorted(times_ns)
    low, high = interval(len(ordered))
    return {
        "latency_ns": _rounded(quantile(ordered, LOW)),
        "ci_low_ns": _rounded(ordered[low]),
        "ci_high_ns": _rounded(ordered[high]),
        "min_ns": _rounded(ordered[0]),
        "median_ns": _rounded(quantile(ordered, 0.5)),
        "p99_ns": _rounded(quantile(ordered, 0.99)),
        "flags": ["disturbed"] if is_disturbed(ordered, lost_ns / messages) else [],
    }


def quantile(ordered: list[float], share: float) -> float:
    """The quantile of sorted values, linear between neighbors."""
    at = share * (len(ordered) - 1)
    below = int(at)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (at - below) * (ordered[above] - ordered[below])


def interval(count: int) -> tuple[int, int]:
    """Indices of the two order statistics that hold the low quantile with 95 %; the outermost of few samples."""
    below, low, high = 0.0, 0, count - 1
    for k in range(count):  # the number of samples below the quantile is binomial
        below += math.comb(count, k) * LOW**k * (1 - LOW) ** (count - k)
        if below <= _ERROR:
            low = k
        if below >= 1 - _ERROR:
            high = min(high, k)
            break
    return low, high


def is_disturbed(ordered: list[float], lost_ns: float = 0.0) -> bool:
    """More than a quarter of the samples took twice the low quarter, or a rank did not run for a part of the others.

    Of samples that all lost time none is slow beside another. What was lost of the time of all samples is in the slow
    ones, or else in those that the value is made of.
    """
    low = quantile(ordered, LOW)
    slow = [time for time in ordered if time > 2 * low]
    unexplained_ns = lost_ns - sum(time - low for time in slow)
    return len(slow) > len(ordered) / 4 or unexplained_ns > _MOST_LOST * low * (len(ordered) - len(slow))


def _rounded(value: float) -> float:
    return float(f"{value:.6g}")
