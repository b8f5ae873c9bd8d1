"""Disagreement of repetitions of one measurement: the passes of a run, the runs of a job, the jobs of a node.

A disturbed repetition is found however far it is off, and its own values do not influence that. The reference is the
repetitions that are nearest to each other (the shortest half of the values, Rousseeuw and Leroy 1988).
"""

from __future__ import annotations

import warnings
from itertools import combinations

import msgspec
import numpy as np
import numpy.typing as npt
from msgspec.structs import replace

Floats = npt.NDArray[np.float64]
Reals = npt.NDArray[np.floating]

#: Repetitions that differ by a smaller factor agree. The standard deviation of a core-to-core latency between runs is
#: 1.0 to 1.5% (32 lines), and 3.4% under load (docs/validation.md). The factor is three of the larger.
LEAST = 1.1
#: Beyond this factor a pair of CPUs is another pair. In the matrices that core-to-core-latency publishes, pairs inside
#: a core are 2.3 times faster than others. Inside a CCX they are 3.6 times faster, inside a socket 2.0 times. On two
#: machines whose lines had an uncontrolled home it is 1.3 and 1.4 times.
APART = 1.5
#: A pair that is once so many times faster than usual ran as two threads of one core. In the matrices that
#: core-to-core-latency publishes, siblings are at least 2.3 times faster than any other pair.
NEARER = 2.3
#: Standard deviations of a difference that chance explains: beyond are 6 of 100,000 normal ones.
_BY_CHANCE = 4.0
#: If pairs were exchanged, fewer places lie between these factors than _BETWEEN times those beyond APART. Normal noise
#: has more, up to a standard deviation of 70%.
_NEAR, _FAR, _BETWEEN = 1.2, 1.45, 0.2
#: In a smaller share of the places it is bursts in single ones.
_SHARE = 0.05


class Disagreement(msgspec.Struct, frozen=True):
    """A disagreement of repetitions. `odd` are those that differ from the majority, farthest first, empty without a
    majority. `factor` (above 1) is the ratio of the farthest to the majority, or of the highest to the lowest. `apart`
    is the share of measurement points whose repetitions differ by APART or more. `place` is a typical one that differs,
    with its `lowest` and `highest` repetition. `both_ways`: between two repetitions, many points fall by APART and as
    many rise, as if exchanged. A slow machine moves them one way. If `run` (its number in the array) is given, the
    repetitions are its passes."""

    odd: tuple[int, ...]
    factor: float
    apart: float
    place: int
    lowest: int
    highest: int
    both_ways: bool = False
    run: int | None = None

    @property
    def is_far(self) -> bool:
        """Whether so many points differ by APART that they must be other points of the machine."""
        return self.apart >= _SHARE


def disagreement(values: Reals, noise: float = 0.0) -> Disagreement | None:
    """The disagreement of repetitions (repetition, point), NaN if one lacks a point; None if they agree.

    The deviation of a repetition is the median over its points, or over the points that differ by APART, if these are
    5% or more. `noise` is the relative standard deviation of one repetition, estimated from its parts (a run's passes).
    """
    usable = (np.isfinite(values) & (values > 0)).sum(axis=0) > 1
    logs = np.log(np.where(values > 0, values, np.nan)[:, usable].astype(np.float64)) if usable.any() else None
    if logs is None or not differs(values[:, usable]):
        return None
    ratio = np.nanmax(logs, axis=0) - np.nanmin(logs, axis=0)
    width = max(np.log(LEAST), _BY_CHANCE * np.sqrt(2) * noise)
    far = ratio >= max(np.log(APART), width)
    apart = float(far.mean())
    odd_and_factor = _odd(logs, width)
    if odd_and_factor is None and apart >= _SHARE:
        odd_and_factor = _odd(logs[:, far], width) or ((), float(np.median(ratio[far])))
    if odd_and_factor is None:
        return None
    among = np.flatnonzero(far) if apart >= _SHARE else np.arange(len(ratio))
    typical = among[np.argsort(ratio[among])[len(among) // 2]]
    of_place = logs[:, typical]
    return Disagreement(
        odd_and_factor[0],
        float(np.exp(odd_and_factor[1])),
        apart,
        int(np.flatnonzero(usable)[typical]),
        int(np.nanargmin(of_place)),
        int(np.nanargmax(of_place)),
        apart >= _SHARE and _both_ways(logs),
    )


def _both_ways(logs: Floats) -> bool:
    """Whether, between two repetitions, half of _SHARE of the points rise by APART, as many fall, and few lie in
    between. Exchanged pairs have other levels; noise has all levels."""
    with np.errstate(invalid="ignore"):
        steps = [logs[second] - logs[first] for first, second in combinations(range(len(logs)), 2)]
        return any(
            min(np.mean(step >= np.log(APART)), np.mean(step <= -np.log(APART))) >= _SHARE / 2
            and np.mean((np.abs(step) > np.log(_NEAR)) & (np.abs(step) < np.log(_FAR)))
            < _BETWEEN * np.mean(np.abs(step) >= np.log(APART))
            for step in steps
        )


def nearer_once(values: Reals) -> Disagreement | None:
    """The point of `values` (repetition, point) with one repetition furthest below its median, by NEARER times or more.
    By chance, a latency is too long, but never that much too short. None without such a point, or with fewer than three
    repetitions."""
    if len(values) < 3:
        return None
    with warnings.catch_warnings(action="ignore", category=RuntimeWarning):  # a place that no repetition has
        typical = np.nanmedian(values, axis=0)
        factors = typical / np.nanmin(values, axis=0)
    if not (factors >= NEARER).any():
        return None
    place = int(np.nanargmax(factors))
    near = np.flatnonzero((factors >= NEARER)[None] & (values * NEARER <= typical))
    return Disagreement(
        tuple(sorted({int(at) // values.shape[1] for at in near})),
        float(factors[place]),
        float((factors >= NEARER).mean()),
        place,
        int(np.nanargmin(values[:, place])),
        int(np.nanargmin(np.abs(values[:, place] - typical[place]))),
    )


def of_runs(values: Reals) -> Disagreement | None:
    """The disagreement of runs (run, pass, point), else of the passes of the run in which they differ most; None if
    they agree."""
    with warnings.catch_warnings(action="ignore", category=RuntimeWarning):  # what no pass measured stays NaN
        level = np.nanmedian(values, axis=1)
    between = disagreement(level, _noise(values)) if differs(level) else None
    if between is not None:
        return between
    within = [replace(found, run=run) for run, passes in enumerate(values) if (found := disagreement(passes))]
    return max(within, key=lambda found: found.factor, default=None)


def _noise(values: Reals) -> float:
    """The relative standard deviation of the median of a run's passes, in the typical run."""
    if values.shape[1] < 2:
        return 0.0
    with warnings.catch_warnings(action="ignore", category=RuntimeWarning), np.errstate(invalid="ignore"):
        logs = np.log(np.where(values > 0, values, np.nan).astype(np.float64))
        shifts = np.nanmedian(logs - np.nanmedian(logs, axis=1, keepdims=True), axis=2)
        of_runs = np.nanstd(shifts, axis=1, ddof=1) * np.sqrt(np.pi / 2 / values.shape[1])
        noise = float(np.nanmedian(of_runs))
    return noise if np.isfinite(noise) else 0.0


def differs(values: Reals, axis: int = 0) -> npt.NDArray[np.bool_]:
    """Whether repetitions along `axis`, points along the last, differ by LEAST in enough points to possibly disagree.
    It is a fast screen, as nearly all agree."""
    return _far(np.fmax.reduce(values, axis=axis), np.fmin.reduce(values, axis=axis))


#: Groups of repetitions that are looked at together.
_AT_ONCE = 256


def differing(values: Reals, begins: npt.NDArray[np.intp]) -> npt.NDArray[np.bool_]:
    """The same for groups of repetitions that follow each other along the first axis (group). `begins` has their
    starts."""
    out = np.zeros(len(begins), dtype=np.bool_)
    ends = [*begins[1:].tolist(), len(values)]
    for at in range(0, len(begins), _AT_ONCE):
        some = begins[at : at + _AT_ONCE]
        block = values[some[0] : ends[min(at + _AT_ONCE, len(begins)) - 1]]
        out[at : at + _AT_ONCE] = _far(*(of.reduceat(block, some - some[0], axis=0) for of in (np.fmax, np.fmin)))
    return out


def _far(highest: Reals, lowest: Reals) -> npt.NDArray[np.bool_]:
    with np.errstate(invalid="ignore", divide="ignore"):  # what no repetition has
        ratio = highest / lowest
    return np.asarray(np.count_nonzero(ratio > LEAST, axis=-1) >= np.maximum(_SHARE * ratio.shape[-1], 1))


def agreeing(values: Reals) -> npt.NDArray[np.bool_]:
    """The repetitions of one value (repetition) that belong to the agreeing majority: none without a majority."""
    present = np.isfinite(values)
    of_values = disagreement(values[:, None])
    if of_values is None:
        return present
    kept = present & bool(of_values.odd)
    kept[list(of_values.odd)] = False
    return kept


def _odd(logs: Floats, width: float) -> tuple[tuple[int, ...], float] | None:
    """The repetitions that are off by more than `width`, farthest first, and the deviation of the farthest; None if
    none is. Without a majority none is odd, and the deviation is the range of all."""
    with warnings.catch_warnings(action="ignore", category=RuntimeWarning):  # a repetition without any of the places
        shifts = np.nanmedian(logs - np.nanmedian(logs, axis=0), axis=1)
    present = np.flatnonzero(np.isfinite(shifts))
    ordered = np.sort(shifts[present])
    count = len(ordered)
    if count < 2 or ordered[-1] - ordered[0] <= width:
        return None
    half = count // 2 + 1
    start = int(np.argmin(ordered[half - 1 :] - ordered[: count - half + 1]))
    away = np.abs(shifts - np.median(ordered[start : start + half]))
    odd = present[away[present] > width]
    if not len(odd) and count > 2:
        return None
    if 2 * len(odd) >= count or count == 2:
        return (), float(ordered[-1] - ordered[0])
    agreed = np.nanmedian(np.delete(shifts, odd))
    farthest = sorted(odd.tolist(), key=lambda number: -abs(shifts[number] - agreed))
    return tuple(farthest), float(abs(shifts[farthest[0]] - agreed))
