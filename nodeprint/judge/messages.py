"""Which nodes and links of a fabric are slower than the others, and in which direction: numbers and places.

The log of a message's time is the sum of its class (within a switch, between switches), what the sending node adds,
what the receiving node adds, and what this one link adds. The first three are medians, so that a slow link does not
make its nodes slow, nor a slow node all its links; docs/method.md has the formula and what it cannot tell.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from itertools import combinations

import msgspec
import numpy as np
import numpy.typing as npt

from nodeprint.distributions import ndtri, robust_sd
from nodeprint.fabric import Fabric
from nodeprint.judge.acceptance import Acceptance
from nodeprint.judge.confirmation import CONFIRM_REACH, CONFIRM_SHARE, STATES
from nodeprint.judge.reduction import independent

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

#: A node's term is a median over its links: of fewer nodes a link cannot be told from a node.
FEWEST_NODES = 4
#: Terms of findings, which are their ids, too.
NODE, LINK = "fabric-node", "fabric-link"
#: Rounds of medians; they settle in two or three.
_ROUNDS = 6
#: Thresholds that are tried.
_GRID = 64
#: The other direction counts as slow, too, from this share of the slower one's effect on.
_BOTH_WAYS = 0.5


class SlowPart(msgspec.Struct, frozen=True):
    """A slow node or link: `sends` and `receives` are the directions of a node, (True, False) of a link from `node`.

    `state` is one of confirmation.STATES, `effect` relative with its 95 % `interval`, of the later jobs where they
    confirm it; `runs` show it.
    """

    term: str
    node: str
    to: str
    sends: bool
    receives: bool
    state: str
    effect: float
    effect_ns: float
    interval: tuple[float, float]
    runs: tuple[str, ...]

    @property
    def ends(self) -> tuple[str, ...]:
        """The nodes that it is a finding of."""
        return (self.node, self.to) if self.to else (self.node,)


class JudgedFabric(msgspec.Struct, frozen=True):
    """A fabric with what was found in it; `smallest` are the relative effects from which on a node or link is found,
    without any where it is `too_small` to name one, for this reason. Nodes that are `alone` are compared with none."""

    fabric: Fabric
    found: tuple[SlowPart, ...]
    smallest: Mapping[str, float]
    tests: int
    alone: tuple[str, ...] = ()
    too_small: str = ""


class MessageTerms(msgspec.Struct, frozen=True):
    """Of each run, in log: the level of each link's class, what a node adds when it sends (`out`) or receives (`into`),
    (run, node), and what a link adds beyond that (run, from, to)."""

    level: Floats
    out: Floats
    into: Floats
    link: Floats


def terms(logs: Floats, places: Sequence[str]) -> MessageTerms:
    """Median polish of log times (run, from, to), by run; NaN where nothing was measured."""
    place = np.array(places)
    near = place[:, None] == place[None, :]
    level = np.zeros_like(logs)
    n = len(places)
    out, into = (np.zeros((len(logs), n)) for _ in range(2))
    with warnings.catch_warnings(action="ignore", category=RuntimeWarning):  # a class or node without a value stays NaN
        for _ in range(_ROUNDS):
            left = logs - out[:, :, None] - into[:, None, :]
            for kind in (near, ~near):
                level[:, kind] = np.nanmedian(left[:, kind], axis=1, keepdims=True) if kind.any() else 0
            out = np.nanmedian(logs - level - into[:, None, :], axis=2)
            out -= np.nanmedian(out, axis=1, keepdims=True)
            into = np.nanmedian(logs - level - out[:, :, None], axis=1)
            into -= np.nanmedian(into, axis=1, keepdims=True)
    return MessageTerms(level, out, into, logs - level - out[:, :, None] - into[:, None, :])


def judge(fabric: Fabric, rules: Acceptance, alpha: float) -> JudgedFabric:
    """The slow nodes and links of a fabric, largest first; none of fewer than four nodes or two runs.

    `alpha` is the chance that a healthy fabric has any.
    """
    n = len(fabric.nodes)
    if reason := _too_small(fabric):
        return JudgedFabric(fabric, (), {}, 0, (), reason)
    logs = np.log(fabric.values)
    fitted = terms(logs, fabric.places)
    tests = 2 * n + n * (n - 1)
    z, run, sitting = float(-ndtri(alpha / 2 / tests)), _run_scale(logs), _sittings(fabric)
    families = (
        (NODE, _nodes(fabric, fitted), rules.fabric_node, run * np.sqrt(np.pi / 2 / (n - 1))),
        (LINK, _links(fabric, fitted), rules.fabric_link, run),
    )
    found: list[SlowPart] = []
    smallest = {}
    for term, ways, bound, of_runs in families:
        scale = max(robust_sd(ways.values), of_runs)
        threshold = _beyond_bursts(ways.values, max(float(np.log1p(bound)), z * scale), sitting, alpha / 2)
        smallest[term] = float(np.expm1(threshold))
        slow = (_slow(fabric, term, ways, part, threshold, scale, sitting) for part in range(len(ways.ends)))
        found += [one for one in slow if one is not None]
    return JudgedFabric(fabric, tuple(sorted(found, key=lambda one: -one.effect)), smallest, tests, _alone(fabric))


def _alone(fabric: Fabric) -> tuple[str, ...]:
    """The nodes whose links no others can be compared with, as of the only one behind another switch."""
    place = np.array(fabric.places)
    near = (place[:, None] == place[None, :]).sum(axis=1) - 1
    each = np.stack([near, len(place) - 1 - near])  # links of each node within a switch and between switches
    compared = ((each > 0) & (each.sum(axis=1, keepdims=True) > 2 * each)).any(axis=0)
    return tuple(node for node, known in zip(fabric.nodes, compared, strict=True) if not known)


def _too_small(fabric: Fabric) -> str:
    """Why nothing can be named; empty where it can."""
    if len(fabric.nodes) < FEWEST_NODES:
        return f"with fewer than {FEWEST_NODES}, a slow link cannot be distinguished from a slow node"
    return "" if len(fabric.runs) > 1 else "with one run the spread between runs is unknown; two are needed (`runs`)"


def _run_scale(logs: Floats) -> float:
    """The standard deviation of a link over runs; with few nodes the median polish absorbs much of it, so that the
    terms show too little."""
    apart = np.diff(logs - np.nanmedian(logs, axis=(1, 2), keepdims=True), axis=0)
    return robust_sd(apart) / 2**0.5


def _beyond_bursts(values: Floats, threshold: float, sitting: Ints, alpha: float) -> float:
    """The lowest threshold, from `threshold` on, at which bursts that come and go make `alpha` findings at most.

    Other traffic delays some links far beyond the spread of the rest, others in each run. A value of `values` (run,
    term) beyond the threshold is of a burst where not all runs of its job show half of the threshold; all k runs of a
    job show one of m terms by chance m p^k times, where p is the share of bursts.
    """
    parts = [values[sitting == number].reshape((sitting == number).sum(), -1) for number in np.unique(sitting)]
    terms_of = int(np.isfinite(values).any(axis=0).sum())

    def by_chance(at: float) -> float:
        passing = [part[:, (part <= at / 2).any(axis=0)] for part in parts]
        bursts = sum(int((part > at).sum()) for part in passing)
        share = bursts / max(1, sum(int(np.isfinite(part).sum()) for part in passing))
        return float(sum(terms_of * share ** len(part) for part in parts))

    grid = np.linspace(threshold, max(threshold, float(np.nanmax(values))), _GRID)
    return next((at for at in grid.tolist() if by_chance(at) <= alpha), float(grid[-1]))


def _sittings(fabric: Fabric) -> Ints:
    """Of each run the number of its job, jobs that are not independent counted as one."""
    jobs = [int(run.partition("/")[0].removeprefix("job")) for run in fabric.runs]
    begun: dict[int, list[str]] = {}
    for job, start in zip(jobs, fabric.started, strict=True):
        begun.setdefault(job, []).append(start)
    number = {job: k for k, part in enumerate(independent(begun)) for job in part}
    return np.array([number[job] for job in jobs])


class _Ways(msgspec.Struct, frozen=True):
    """Nodes or links in both directions: `ends` are (from, to) of a link in each direction, or twice (node, "");
    `values` (run, part, direction) are their terms, `usual` (part, direction) is the log of the time that these add
    to."""

    ends: Sequence[tuple[tuple[str, str], tuple[str, str]]]
    values: Floats
    usual: Floats


def _nodes(fabric: Fabric, fitted: MessageTerms) -> _Ways:
    """Every node as it sends and as it receives."""
    usual = [np.nanmedian(fitted.level, axis=(0, 2)), np.nanmedian(fitted.level, axis=(0, 1))]
    ends = [((node, ""), (node, "")) for node in fabric.nodes]
    return _Ways(ends, np.stack([fitted.out, fitted.into], axis=2), np.stack(usual, axis=1))


def _links(fabric: Fabric, fitted: MessageTerms) -> _Ways:
    """Every link in both directions."""
    a, b = np.triu_indices(len(fabric.nodes), 1)
    both = [a, b], [b, a]  # (end, direction, link)
    with warnings.catch_warnings(action="ignore", category=RuntimeWarning):  # a link that was not measured stays NaN
        usual = np.nanmedian(fitted.level + fitted.out[:, :, None] + fitted.into[:, None, :], axis=0)
    ends = [((one, other), (other, one)) for one, other in combinations(fabric.nodes, 2)]
    return _Ways(ends, np.moveaxis(fitted.link[:, *both], 1, 2), usual[both].T)


def _slow(
    fabric: Fabric, term: str, ways: _Ways, part: int, threshold: float, scale: float, sitting: Ints
) -> SlowPart | None:
    """The finding of a node or link that is slow in one or both directions, by the most certain of these; None where it
    is not slow."""
    values = ways.values[:, part].T
    seen = [_shown(way, threshold, sitting) for way in values]
    state = min((one.state for one in seen if one is not None), key=STATES.index, default="")
    effects = [
        float(np.nanmedian(way[one.sized])) if one is not None and one.state == state else 0.0
        for way, one in zip(values, seen, strict=True)
    ]
    most = int(np.argmax(effects))
    (node, to), shown = ways.ends[part][most], seen[most]
    if shown is None:
        return None
    either = not fabric.header.get("directed")
    beside = (float(np.nanmedian(way[shown.sized])) if np.isfinite(way[shown.sized]).any() else 0.0 for way in values)
    sends, receives = (either or effect > _BOTH_WAYS * effects[most] for effect in beside)
    if to:  # a link is named from where it is slower
        sends, receives = True, sends and receives
    low, size, high = (float(np.expm1(effects[most] + side * 1.96 * scale)) for side in (-1, 0, 1))
    in_ns = size * float(np.exp(ways.usual[part, most]))
    runs = tuple(np.array(fabric.runs)[shown.runs].tolist())
    return SlowPart(term, node, to, sends, receives, state, size, in_ns, (low, high), runs)


class _Shown(msgspec.Struct, frozen=True):
    """A term that stands out: how certain that is, the runs that size it, and those that show it."""

    state: str
    sized: Flags
    runs: Flags


def _shown(values: Floats, threshold: float, sitting: Ints) -> _Shown | None:
    """What the jobs show of a term (run): the first job all of whose runs show it is confirmed or refuted by the newest
    job after it."""
    high, known = values > threshold, np.isfinite(values)

    def by(job: Flags) -> bool:
        return bool((job & known).sum() >= min(2, job.sum()) and high[job & known].all())

    jobs = [sitting == number for number in np.unique(sitting[known])]
    first = next((k for k, job in enumerate(jobs) if by(job)), None)
    if first is None:
        return None
    job, newest = jobs[first], jobs[-1]
    if job is newest:
        return _Shown("fresh", job, high & job)
    again = max(CONFIRM_SHARE * float(np.nanmedian(values[job])), CONFIRM_REACH * threshold)
    if np.nanmedian(values[newest]) >= again:
        return _Shown("confirmed", newest, (values >= again) & (sitting >= sitting[job][0]))
    return _Shown("fresh", newest, high & newest) if by(newest) else _Shown("refuted", job, high)
