"""Which geometry explains the distances between sites, if any, and where each site is in it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from itertools import permutations
from math import lgamma, log, pi

import msgspec
import numpy as np
from scipy.special import stdtrit

from nodeprint.iodie.data import Floats, Ints
from nodeprint.iodie.paths import Fit
from nodeprint.iodie.sites import Sites
from nodeprint.machine import dies

#: By so much in logarithms a geometry must foretell distances better than any other: a hundred to one.
PREFERRED = 4.6
#: A crossbar is named where distances scatter by no more than this share of their mean.
_EVEN = 0.1
#: More sites have too many placements to try them all.
_MOST_SITES = 8
#: Placements less likely by no more than this, in logarithms, are in the 95 % interval of a profile likelihood.
_PROFILE = 1.92
#: What distances scatter by at least, ns: two wires are never alike.
_LEAST_NS = 0.05


class Distances(msgspec.Struct, frozen=True):
    """What the way from site to site adds, ns: to lines (`line`) and to other CPUs (`pair`), each (m) in the order of
    `ends` (m, 2), with half of its 95 % interval. NaN where the data do not identify it."""

    ends: Ints
    line: Floats
    line_half: Floats
    pair: Floats
    pair_half: Floats


class Geometry(msgspec.Struct, frozen=True):
    """A geometry that foretells each distance from the others better than all other kinds do.

    `site` has the number of each found site in it (n). `hop_ns` is the cost of a step to a line by its direction, with
    half of its 95 % interval, which holds those of all placements that are about as likely; `pair_hop_ns` is that of a
    step from CPU to CPU. `advantage` is by how much it is preferred, in logarithms, `certain` the probability of this
    placement among all of its kind that are not its mirror images.
    """

    kind: dies.Kind
    sites: int
    site: Ints
    hop_ns: Floats
    hop_half: Floats
    pair_hop_ns: Floats
    pair_hop_half: Floats
    advantage: float
    certain: float


def distances(found: Fit, sites: Sites) -> Distances:
    """The free distances of a fit."""
    ends = np.array([(p, q) for p in range(sites.count) for q in range(p + 1, sites.count)], dtype=np.int64)

    def of(kind: str) -> tuple[Floats, Floats]:
        at = found.of(kind)
        known = [at.get((int(p), int(q)), -1) for p, q in ends]
        good = [i >= 0 and bool(found.identified[i]) for i in known]
        value = [found.value[i] if ok else np.nan for i, ok in zip(known, good, strict=True)]
        half = [found.half(i) if ok else np.nan for i, ok in zip(known, good, strict=True)]
        return np.array(value), np.array(half)

    return Distances(ends, *of("line"), *of("pair"))


@cache
def _placements(kind: dies.Kind, sites: int, count: int) -> tuple[tuple[int, ...], ...]:
    """Where `count` found sites may be among those of a geometry, one of each set that only a symmetry tells apart."""
    steps = dies.steps(kind, sites)
    seen: dict[bytes, tuple[int, ...]] = {}
    for one in permutations(range(sites), count):
        seen.setdefault(steps[np.ix_(one, one)].tobytes(), one)
    return tuple(seen.values())


def _candidates(count: int) -> Iterator[tuple[dies.Kind, int]]:
    even = count + count % 2
    yield "mesh", even
    if count != 4:  # a ring of four is a mesh of 2 x 2
        yield "ring", count
    yield "crossbar", count


def find(of: Distances, count: int) -> Geometry | str:
    """The geometry of `count` sites, or a sentence that says why none is named.

    Each distance is foretold from the others (leave-one-out predictive likelihood, Student's t with the scatter of the
    others); each placement of a kind is as likely as the others before the data. Distances to lines and from CPU to
    CPU have costs of their own.
    """
    if count < 4:
        return f"{count} sites have too few distances to test a geometry"
    if count > _MOST_SITES:
        return f"{count} sites have more placements than are tried"
    if not np.isfinite(of.line).all():
        return "not all distances between sites are identified"
    series = [(of.line, of.line_half)]
    if np.isfinite(of.pair).all():
        series.append((of.pair, of.pair_half))
    scores: dict[tuple[dies.Kind, int], list[tuple[float, tuple[int, ...]]]] = {}
    for kind, sites in _candidates(count):
        moves = dies.moves(kind, sites)
        options = _placements(kind, sites, count)
        places = np.array(options)
        designs = moves[:, places[:, of.ends[:, 0]], places[:, of.ends[:, 1]]].transpose(1, 2, 0).astype(float)
        by_columns = [np.sum([_leave_one_out(x, *one) for one in series], axis=0) for x in _columns(designs)]
        each = np.max(by_columns, axis=0)
        scores[kind, sites] = list(zip((each - log(len(options))).tolist(), options, strict=True))
    total = {key: _log_sum([score for score, _ in mine]) for key, mine in scores.items()}
    (kind, sites), *others = sorted(total, key=lambda key: -total[key])
    advantage = total[kind, sites] - max(total[key] for key in others)
    mean, scatter = float(of.line.mean()), float(of.line.std(ddof=1))
    if advantage < PREFERRED or (kind == "crossbar" and scatter > _EVEN * mean):
        return "no geometry predicts the distances better than the others"
    best, site = max(scores[kind, sites])
    near = [site, *(other for score, other in scores[kind, sites] if best - score <= _PROFILE and other != site)]
    steps = [dies.moves(kind, sites)[:, np.array(one)[of.ends[:, 0]], np.array(one)[of.ends[:, 1]]].T for one in near]
    unknown = np.full(steps[0].shape[1], np.nan)
    hop_ns, hop_half = _profile(steps, *series[0])
    pair_ns, pair_half = _profile(steps, *series[1]) if len(series) > 1 else (unknown, unknown)
    certain = float(np.exp(best - total[kind, sites]))
    return Geometry(kind, sites, np.array(site), hop_ns, hop_half, pair_ns, pair_half, advantage, certain)


def _columns(designs: Floats) -> list[Floats]:
    """A cost for each direction, or one for all."""
    return [designs, designs.sum(axis=2, keepdims=True)] if designs.shape[2] > 1 else [designs]


def _leave_one_out(designs: Floats, value: Floats, half: Floats) -> Floats:
    """Sum over distances of the log density of each given the others, for each of the designs (d, m, column)."""
    inverse = np.linalg.pinv(designs.transpose(0, 2, 1) @ designs)
    hat = np.einsum("dmi,dij,dmj->dm", designs, inverse, designs)
    left = value - np.einsum("dmi,dij,dnj,n->dm", designs, inverse, designs, value, optimize=True)
    degrees = len(value) - 1 - designs.shape[2]
    if degrees < 1:
        return np.full(len(designs), -np.inf)
    alone = np.maximum(1 - hat, 1e-9)
    squares = np.maximum((left**2).sum(axis=1, keepdims=True) - left**2 / alone, 0.0)  # of the others, without this one
    known = max(float(np.mean(half**2)) / 4, _LEAST_NS**2)
    df = degrees + 1
    scale = np.sqrt((squares + known) / df / alone)
    z = left / alone / scale
    density = lgamma((df + 1) / 2) - lgamma(df / 2) - 0.5 * log(df * pi) - np.log(scale)
    # a cost that only this distance shows cannot be foretold from the others
    density = np.where(hat > 1 - 1e-6, -np.inf, density - (df + 1) / 2 * np.log1p(z**2 / df))
    return np.asarray(density.sum(axis=1))


def _profile(moves: Sequence[Ints], value: Floats, half: Floats) -> tuple[Floats, Floats]:
    """The cost of a step by direction at the first placement, with half of an interval that holds those of all."""
    every = [_hops(one, value, half) for one in moves]
    cost = every[0][0]
    return cost, np.max([np.abs(other - cost) + own for other, own in every], axis=0)


def _hops(moves: Ints, value: Floats, half: Floats) -> tuple[Floats, Floats]:
    """The cost of a step by direction with half of its interval: from the scatter of the distances, or their own
    intervals where those are wider."""
    x = moves.astype(float)
    inverse = np.linalg.pinv(x.T @ x)
    cost = inverse @ (x.T @ value)
    left = value - x @ cost
    degrees = max(len(value) - x.shape[1], 1)
    scatter = float(left @ left) / degrees * np.diag(inverse) * float(stdtrit(degrees, 0.975)) ** 2
    own = np.diag(inverse @ x.T @ np.diag(half**2) @ x @ inverse)
    return cost, np.sqrt(np.maximum(scatter, own))


def _log_sum(scores: list[float]) -> float:
    most = max(scores)
    return most + log(sum(np.exp(score - most) for score in scores)) if most > -float("inf") else most
