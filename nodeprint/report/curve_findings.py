"""Findings in the cells of the memory, bandwidth, jitter and clock kernels: plateaus, knees, declines, ratios.

Everything here is a function of arrays; units are in the names. docs/method/memory.md says where each rule comes from.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec
import numpy as np
import numpy.typing as npt
from msgspec.structs import replace

from nodeprint.settings.texts import say

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
#: What a CCD's port carries in a cycle of the fabric to the cores (Zen 2 to Zen 4; docs/method/memory.md).
PORT_BYTES_A_CYCLE = 32


class MedianInterval(msgspec.Struct, frozen=True):
    """A median with its 95 % interval by order statistics, over `count` values."""

    middle: float
    low: float
    high: float
    count: int

    def holds(self, value: float) -> bool:
        """Whether the value is within the interval."""
        return self.low <= value <= self.high


class Plateau(msgspec.Struct, frozen=True):
    """Working sets between two sizes that have one latency (the median of theirs)."""

    first_bytes: int
    last_bytes: int
    latency_ns: float


class Level(msgspec.Struct, frozen=True):
    """A cache: the size that the system reports, and the size up to which the curve has its plateau."""

    name: str
    told_bytes: int
    effective_bytes: int | None
    latency_ns: float | None

    @property
    def agrees(self) -> bool:
        """Whether the plateau reaches half of the reported size: a cache is never available up to its full size."""
        return self.effective_bytes is not None and self.effective_bytes >= self.told_bytes / 2

    @property
    def sentence(self) -> str:
        """What a report says of this level."""
        if self.effective_bytes is None:
            return say("readings", "curve", "none", cache=self.name, reported=_size(self.told_bytes))
        found = f"{self.latency_ns:.1f} ns up to {_size(self.effective_bytes)}"
        if self.agrees:
            return f"{self.name}: {found}, reported size {_size(self.told_bytes)}"
        return say(
            "readings",
            "curve",
            "other",
            cache=self.name,
            effective=_size(self.effective_bytes),
            latency=found,
            reported=_size(self.told_bytes),
        )


class Knee(msgspec.Struct, frozen=True):
    """Where loaded latency rises: the first point at 1.5 x idle, or that of the highest rate where there is none."""

    idle_ns: float
    rate_bytes_per_s: float
    latency_ns: float
    reached: bool

    @property
    def sentence(self) -> str:
        """What a report says."""
        at = f"{self.rate_bytes_per_s / 1e9:.1f} GB/s"
        if self.reached:
            return say("readings", "knee", rate=at, latency=f"{self.latency_ns:.0f}", idle=f"{self.idle_ns:.0f}")
        return f"no knee up to {at}"


def median_interval(values: Sequence[float] | Array) -> MedianInterval:
    """The median of finite values and its distribution-free 95 % interval; lowest and highest under six values.

    Method: the number of values below the median is binomial(n, 1/2) (David and Nagaraja, Order Statistics, 7.1).
    Raises ValueError when no value is finite.
    """
    found = np.sort(np.asarray(values, dtype=np.float64).ravel())
    found = found[np.isfinite(found)]
    if len(found) == 0:
        raise ValueError("no finite value")
    from scipy.special import bdtr  # noqa: PLC0415 (a tenth of a second, which few calls need)

    rank = int(np.searchsorted(bdtr(np.arange(len(found) + 1), len(found), 0.5), 0.025))
    rank = max(rank - 1, 0)
    return MedianInterval(float(np.median(found)), float(found[rank]), float(found[len(found) - 1 - rank]), len(found))


def plateaus(size_bytes: Sequence[int], latency_ns: Sequence[float]) -> tuple[Plateau, ...]:
    """Stretches of at least three neighboring sizes within 15 % of each other, ascending, none within another.

    Sizes need no order; the longest stretches are taken first. Raises ValueError for lists of different lengths.
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
        found.append(Plateau(int(sizes[first]), int(sizes[last]), float(np.median(latencies[first : last + 1]))))
    return tuple(sorted(found, key=lambda plateau: plateau.first_bytes))


def _reach(latencies: Array, start: int) -> int:
    """The end of the longest stretch from `start` whose latencies lie within PLATEAU_RANGE."""
    end = start + 1
    while (
        end < len(latencies)
        and np.ptp(latencies[start : end + 1]) <= (PLATEAU_RANGE - 1) * latencies[start : end + 1].min()
    ):
        end += 1
    return end


def levels(size_bytes: Sequence[int], latency_ns: Sequence[float], told_bytes: Mapping[str, int]) -> tuple[Level, ...]:
    """The plateau of each reported cache (name to bytes, the smallest first; 0: unknown) in a curve.

    A level's plateaus begin behind the cache below and within its own size, and are nearly as fast as the first of them
    (a cache that fills up gets slower in steps of its own); one as slow as the slowest size is memory. Where the last
    one ends before half of the reported size, that end is the effective size.
    """
    found = [p for p in plateaus(size_bytes, latency_ns) if p.latency_ns < MEMORY_SHARE * max(latency_ns)]
    result = []
    below = 0
    for name, told in told_bytes.items():
        if told == 0:
            continue
        inside = [p for p in found if below * 0.75 <= p.first_bytes <= told]
        own = [p for p in inside if p.latency_ns <= SAME_CACHE * inside[0].latency_ns]
        result.append(Level(name, told, own[-1].last_bytes if own else None, own[0].latency_ns if own else None))
        found = [p for p in found if p not in own]
        below = told
    return tuple(result)


def knee(rate_bytes_per_s: Sequence[float], latency_ns: Sequence[float], idle_ns: float) -> Knee:
    """The first point, by rate, at 1.5 x the idle latency. Raises ValueError without a point."""
    if len(rate_bytes_per_s) == 0 or len(rate_bytes_per_s) != len(latency_ns):
        raise ValueError("a curve needs as many rates as latencies, and at least one")
    for rate, latency in sorted(zip(rate_bytes_per_s, latency_ns, strict=True)):
        if latency >= KNEE * idle_ns:
            return Knee(idle_ns, float(rate), float(latency), True)
    highest = int(np.argmax(rate_bytes_per_s))
    return Knee(idle_ns, float(rate_bytes_per_s[highest]), float(latency_ns[highest]), False)


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


def touch_sentence(ratio: MedianInterval, nodes: int) -> str:
    """What a report says of own against other arrays on a machine with so many NUMA nodes."""
    found = f"{ratio.middle:.2f} ({ratio.low:.2f} to {ratio.high:.2f})"
    if nodes > 1:
        return say("readings", "touch", "ratio", found=found)
    # as printed: with many repeats an interval may be narrower than any difference that matters
    printed = replace(ratio, low=round(ratio.low, 2), high=round(ratio.high, 2))
    verdict = "1, as expected" if printed.holds(1) else "not 1: the measurement was disturbed"
    return say("readings", "touch", "one_node", found=found, verdict=verdict)


def port_sentence(of: str, count: int, loads: float, stores: float, port_known: bool) -> str:
    """What a report says of the rates (bytes/s) that so many CCXs or CCDs draw from their own memory; where the width
    of the port is known (EPYC 7002 to 9004), also of the fabric clock."""
    said = say(
        "readings",
        "port",
        "rates",
        component=of,
        loads=f"{loads / 1e9:.1f}",
        stores=f"{stores / 1e9:.1f}",
        count=_counted(count, of),
    )
    if not port_known:
        return said
    least_ghz = loads / PORT_BYTES_A_CYCLE / 1e9
    return say("readings", "port", "clock", rates=said, bytes=PORT_BYTES_A_CYCLE, ghz=f"{least_ghz:.2f}")


def stream_sentence(pages: str, figures: Mapping[str, tuple[float, float]]) -> str:
    """What a report says of the whole machine's streams: of each the best of ten sweeps and their median (bytes/s)."""
    each = ", ".join(f"{stream} {best / 1e9:.1f} ({median / 1e9:.1f})" for stream, (best, median) in figures.items())
    return say("readings", "stream", pages=pages, each=each)


def methods_sentence(state: str, latencies_ns: Sequence[float], apart: int, places: int) -> str:
    """What a report says of lines in a state whose latency is another by a chase than by single timed loads."""
    chase, single = latencies_ns
    return say(
        "readings", "methods", state=state, chase=f"{chase:.1f}", single=f"{single:.1f}", apart=apart, places=places
    )


def beside_sentence(light: MedianInterval, full: MedianInterval) -> str:
    """What a report says of hops beside traffic, as ratios to the idle ones."""
    return say(
        "readings",
        "beside",
        light=f"{light.middle:.3f}",
        full=f"{full.middle:.3f}",
        count=_counted(light.count, "pair"),
    )


def _counted(count: int, what: str) -> str:
    """What a figure is of: `medians of 8 pairs`, or `one pair`."""
    return f"medians of {count} {what}s" if count > 1 else f"one {what}"


def _size(size_bytes: int) -> str:
    """Bytes as KiB, MiB or GiB, without a needless fraction."""
    for unit, factor in (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if size_bytes >= factor:
            return f"{size_bytes / factor:.4g} {unit}"
    return f"{size_bytes} bytes"
