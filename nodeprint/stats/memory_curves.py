"""Findings in the cells of the memory, bandwidth, jitter and clock kernels: plateaus, knees, declines, ratios.

Everything here is a function of arrays; units are in the names. docs/method/memory.md says where each rule comes from.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec
import numpy as np
import numpy.typing as npt
import pandas as pd

Array = npt.NDArray[np.float64]

#: Latencies of one plateau lie within this factor: a cache that is nearly full is a little slower than an empty one.
PLATEAU_RANGE = 1.15
#: Sizes that a plateau has at least; at two sizes an octave it spans an octave.
PLATEAU_POINTS = 3
#: A plateau this near to the slowest size is memory, not a cache.
MEMORY_SHARE = 0.8
#: Plateaus of one cache lie within this factor; the next level is farther away.
SAME_CACHE = 1.5
#: Loaded latency: the knee is the first point at this multiple of the idle latency.
KNEE = 1.5


class MedianInterval(msgspec.Struct, frozen=True):
    """A median with its 95% interval from order statistics, over `count` values."""

    middle: float
    low: float
    high: float
    count: int

    def holds(self, value: float) -> bool:
        """Whether the value is within the interval."""
        return self.low <= value <= self.high


def median_interval(values: Sequence[float] | Array) -> MedianInterval:
    """Return the median of the finite values and its distribution-free 95% interval.

    Under six values the interval is the range. Method: the number of values below the median is binomial(n, 1/2) (David
    and Nagaraja, Order Statistics, 7.1). Raises ValueError if no value is finite.
    """
    found = np.sort(np.asarray(values, dtype=np.float64).ravel())
    found = found[np.isfinite(found)]
    if len(found) == 0:
        raise ValueError("no finite value")
    from scipy.special import bdtr  # noqa: PLC0415 (a tenth of a second, which few calls need)

    rank = int(np.searchsorted(bdtr(np.arange(len(found) + 1), len(found), 0.5), 0.025))
    rank = max(rank - 1, 0)
    return MedianInterval(float(np.median(found)), float(found[rank]), float(found[len(found) - 1 - rank]), len(found))


def plateaus(size_bytes: Sequence[int], latency_ns: Sequence[float]) -> pd.DataFrame:
    """Return the plateaus of a latency curve: at least three neighboring sizes within 15% of each other.

    Columns: first_bytes, last_bytes and latency_ns (the median of the plateau), in ascending order. No plateau contains
    another. Sizes may come in any order; the longest plateaus are taken first. Raises ValueError for lists of different
    lengths.
    """
    if len(size_bytes) != len(latency_ns):
        raise ValueError("sizes and latencies differ in number")
    order = np.argsort(size_bytes)
    sizes, latencies = np.asarray(size_bytes)[order], np.asarray(latency_ns, dtype=np.float64)[order]
    runs = [(_reach(latencies, start) - start, start) for start in range(len(sizes))]
    taken = np.zeros(len(sizes), dtype=bool)
    found = []
    for length, start in sorted(runs, key=lambda run: (-run[0], run[1])):
        inside = np.flatnonzero(~taken[start : start + length])
        if len(inside) < PLATEAU_POINTS or len(inside) != inside[-1] - inside[0] + 1:
            continue
        first, last = start + inside[0], start + inside[-1]
        taken[first : last + 1] = True
        found.append((int(sizes[first]), int(sizes[last]), float(np.median(latencies[first : last + 1]))))
    return pd.DataFrame(sorted(found), columns=["first_bytes", "last_bytes", "latency_ns"])


def _reach(latencies: Array, start: int) -> int:
    """The end of the longest stretch from `start` whose latencies lie within PLATEAU_RANGE."""
    end = start + 1
    while (
        end < len(latencies)
        and np.ptp(latencies[start : end + 1]) <= (PLATEAU_RANGE - 1) * latencies[start : end + 1].min()
    ):
        end += 1
    return end


def caches(size_bytes: Sequence[int], latency_ns: Sequence[float], reported_bytes: Mapping[str, int]) -> pd.DataFrame:
    """Return the plateau of each reported cache in a latency curve.

    `reported_bytes` maps cache names to bytes, the smallest first; 0 means unknown. Columns by cache: reported_bytes,
    effective_bytes (the end of the plateau) and latency_ns; 0 and NaN without a plateau.

    A cache's plateaus begin beyond the cache below and within its own size. Their latencies are close to the first, as
    a cache that fills up gets slower in steps. A plateau as slow as the slowest size is memory. If the last plateau
    ends before half of the reported size, that end is the effective size.
    """
    found = plateaus(size_bytes, latency_ns)
    found = found[found["latency_ns"] < MEMORY_SHARE * max(latency_ns)]
    rows, below = {}, 0
    for name, reported in reported_bytes.items():
        if reported == 0:
            continue
        own = found[(found["first_bytes"] >= 0.75 * below) & (found["first_bytes"] <= reported)]
        own = own[own["latency_ns"] <= SAME_CACHE * own["latency_ns"].iloc[:1].sum()]
        rows[name] = (reported, *((own["last_bytes"].iloc[-1], own["latency_ns"].iloc[0]) if len(own) else (0, np.nan)))
        found, below = found.drop(own.index), reported
    return pd.DataFrame.from_dict(rows, "index", columns=["reported_bytes", "effective_bytes", "latency_ns"])


def knee(rate_bytes_per_s: Sequence[float], latency_ns: Sequence[float], idle_ns: float) -> tuple[float, float] | None:
    """Return rate and latency of the first point, by rate, at 1.5x the idle latency; None without such a point."""
    points = sorted(zip(rate_bytes_per_s, latency_ns, strict=True))
    return next(((rate, latency) for rate, latency in points if latency >= KNEE * idle_ns), None)


def slower_from(trials: Mapping[int, Sequence[float]]) -> int | None:
    """The number from which on more is slower, beyond noise: `trials` are rates by number of pairs.

    It is the first number above the fastest one from which on every interval lies below that of the fastest. None where
    there is no such number. With fewer than six trials an interval is lowest to highest.
    """
    intervals = {count: median_interval(values) for count, values in sorted(trials.items()) if len(values)}
    if not intervals:
        return None
    best = max(intervals, key=lambda count: intervals[count].middle)
    slower = None
    for count in sorted((count for count in intervals if count > best), reverse=True):
        if intervals[count].high >= intervals[best].low:
            break
        slower = count
    return slower
