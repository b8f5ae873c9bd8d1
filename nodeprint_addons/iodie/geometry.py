"""Which geometry explains the distances between sites, if any, and where each site is in it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from itertools import combinations, permutations
from math import lgamma, log, pi

import msgspec
import numpy as np
from scipy.special import chdtrc, stdtrit

from nodeprint.machine import dies
from nodeprint_addons.iodie.data import Bools, Floats, Ints
from nodeprint_addons.iodie.iodie_texts import say
from nodeprint_addons.iodie.paths import UNKNOWN, Fit
from nodeprint_addons.iodie.sites import Sites

#: By so much in logarithms a geometry must predict distances better than any other: a hundred to one.
PREFERRED = 4.6
#: A crossbar is named where distances scatter by no more than this share of their mean.
_EVEN = 0.1
#: With fewer distances every geometry fits: four sites with ends have six.
_FEWEST_DISTANCES = 6
#: Steps to lines and from CPU to CPU that agree are taken for contradictions with this probability.
_DISAGREE = 0.001
#: More sites have too many placements to try them all.
_MOST_SITES = 8
#: Placements less likely by no more than this, in logarithms, are in the 95% interval of a profile likelihood.
_PROFILE = 1.92
#: What distances scatter by at least, ns: two wires are never alike.
_LEAST_NS = 0.05


class WayCosts(msgspec.Struct, frozen=True):
    """The costs `ns` (m) of the paths between two sites `ends` (m, 2), with `half` of the 95% interval (m).

    Values are NaN if the data do not identify them. Sites from number `sites` on have memory alone. For paths to their
    lines only differences are known, from their mean over the sites with ends.
    """

    sites: int
    ends: Ints
    ns: Floats
    half: Floats

    @property
    def between(self) -> WayCosts:
        """The ways between two sites with ends."""
        return self._only(self.ends[:, 1] < self.sites)

    def to_site(self, site: int) -> WayCosts:
        """The ways to a site without ends."""
        return self._only(self.ends[:, 1] == site)

    def _only(self, ways: Bools) -> WayCosts:
        return WayCosts(self.sites, self.ends[ways], self.ns[ways], self.half[ways])

    @property
    def with_memory(self) -> int:
        """The number of all sites."""
        return int(self.ends.max(initial=self.sites - 1)) + 1

    @property
    def offsets(self) -> Ints:
        """Which ways lead to each site without ends (m, s): their common part is not known."""
        return np.asarray(self.ends[:, 1:] == np.arange(self.sites, self.with_memory), dtype=np.int64)

    def designs(self, kind: dies.Kind, sites: int, places: Sequence[tuple[int, ...]]) -> Floats:
        """Steps on each way by their direction, for each placement of the sites (d, m, direction)."""
        place_of = np.array(places)
        moves = dies.moves(kind, sites)[:, place_of[:, self.ends[:, 0]], place_of[:, self.ends[:, 1]]]
        return np.asarray(moves.transpose(1, 2, 0).astype(float))

    def likelihood(self, designs: Floats) -> Floats:
        """How well each placement predicts each way from the others (d)."""
        offsets = np.broadcast_to(self.offsets, (len(designs), *self.offsets.shape))
        return _leave_one_out(np.concatenate([designs, offsets], axis=2), self.ns, self.half)


class Geometry(msgspec.Struct, frozen=True):
    """A geometry that predicts each distance from the others better than all other kinds do.

    `site` is the number of each found site in it (n). `hop_ns` is the cost of a step to a line by its direction, with
    half of its 95% interval over all similarly likely placements. `pair_hop_ns` is that of a step from CPU to CPU.
    `advantage` is its log likelihood ratio to the next best kind. `certain` is the probability of this placement among
    all of this kind that are not mirror images.
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


def to_lines(fit: Fit, sites: Sites) -> WayCosts:
    """The fitted costs of paths to lines: between two sites, then to each site without ends."""
    beyond = [(p, q) for q in range(sites.count, sites.with_memory) for p in range(sites.count)]
    return _ways(fit, "line", sites.count, [*combinations(range(sites.count), 2), *beyond])


def to_cpus(fit: Fit, sites: Sites) -> WayCosts:
    """The fitted costs of paths from CPU to CPU."""
    return _ways(fit, "pair", sites.count, [*combinations(range(sites.count), 2)])


def _ways(fit: Fit, kind: str, sites: int, ends: Sequence[tuple[int, int]]) -> WayCosts:
    index_of = fit.positions(kind)
    costs = [fit.estimate(index_of[way]) if way in index_of else UNKNOWN for way in ends]
    ns, half = (np.array([getattr(cost, key) for cost in costs]) for key in ("value", "half"))
    return WayCosts(sites, np.array(ends, dtype=np.int64), ns, half)


@cache
def _placements(kind: dies.Kind, sites: int, with_ends: int, count: int) -> tuple[tuple[int, ...], ...]:
    """The placements of `count` found sites in a geometry, one of each set that differ only by a symmetry.

    No latency includes the path between two sites without ends.
    """
    steps = dies.steps(kind, sites)
    seen: dict[bytes, tuple[int, ...]] = {}
    for placement in permutations(range(sites), count):
        seen.setdefault(steps[np.ix_(placement[:with_ends], placement)].tobytes(), placement)
    return tuple(seen.values())


def _candidates(count: int) -> Iterator[tuple[dies.Kind, int]]:
    even = count + count % 2
    yield "mesh", even
    if count != 4:  # a ring of four is a mesh of 2 x 2
        yield "ring", count
    yield "crossbar", count


def find(to_lines: WayCosts, to_cpus: WayCosts) -> Geometry | str:
    """The geometry of the sites, or a sentence that says why none is named.

    Each distance is predicted from the others (leave-one-out predictive likelihood, Student's t with their scatter).
    All placements of a kind have equal prior probability. Distances to lines and from CPU to CPU have costs of their
    own, which must agree.
    """
    count = to_lines.with_memory
    if len(to_lines.ends) - (count - to_lines.sites) < _FEWEST_DISTANCES:
        return say("no_geometry", "few_distances", sites=count)
    if count > _MOST_SITES:
        return say("no_geometry", "placements", sites=count)
    if not np.isfinite(to_lines.ns).all():
        return say("no_geometry", "identified")
    series = [to_lines, *([to_cpus] if np.isfinite(to_cpus.ns).all() else [])]
    scores: dict[tuple[dies.Kind, int], list[tuple[float, tuple[int, ...]]]] = {}
    for kind, sites in _candidates(count):
        options = _placements(kind, sites, to_lines.sites, count)
        designs = [ways.designs(kind, sites, options) for ways in series]
        by_columns = [
            np.sum([ways.likelihood(x) for ways, x in zip(series, columns, strict=True)], axis=0)
            for columns in zip(*map(_columns, designs), strict=True)
        ]
        each = np.max(by_columns, axis=0)
        scores[kind, sites] = list(zip((each - log(len(options))).tolist(), options, strict=True))
    total = {key: _log_sum([score for score, _ in scored]) for key, scored in scores.items()}
    (kind, sites), *runners_up = sorted(total, key=lambda key: -total[key])
    advantage = total[kind, sites] - max(total[key] for key in runners_up)
    between = to_lines.between.ns
    mean, scatter = float(between.mean()), float(between.std(ddof=1))
    if advantage < PREFERRED or (kind == "crossbar" and scatter > _EVEN * mean):
        return say("no_geometry", "none_better")
    best, site = max(scores[kind, sites])
    likely = (placement for score, placement in scores[kind, sites] if best - score <= _PROFILE and placement != site)
    near = [site, *likely]
    hop_ns, hop_half = _profile(series[0], kind, sites, near)
    unknown = np.full(len(hop_ns), np.nan)
    pair_ns, pair_half = _profile(series[1], kind, sites, near) if len(series) > 1 else (unknown, unknown)
    if not _agree(hop_ns, hop_half, pair_ns, pair_half):
        return say("no_geometry", "disagree", hops=_words(hop_ns, hop_half), pairs=_words(pair_ns, pair_half))
    certain = float(np.exp(best - total[kind, sites]))
    return Geometry(kind, sites, np.array(site), hop_ns, hop_half, pair_ns, pair_half, advantage, certain)


def _columns(designs: Floats) -> list[Floats]:
    """A cost for each direction, or one for all."""
    return [designs, designs.sum(axis=2, keepdims=True)] if designs.shape[2] > 1 else [designs]


def _leave_one_out(designs: Floats, value: Floats, half: Floats) -> Floats:
    """Sum over distances of the log density of each given the others, for each of the designs (d, m, column)."""
    inverse = np.linalg.pinv(designs.transpose(0, 2, 1) @ designs)
    hat = np.einsum("dmi,dij,dmj->dm", designs, inverse, designs)
    residual = value - np.einsum("dmi,dij,dnj,n->dm", designs, inverse, designs, value, optimize=True)
    degrees = len(value) - 1 - designs.shape[2]
    if degrees < 1:
        return np.full(len(designs), -np.inf)
    alone = np.maximum(1 - hat, 1e-9)
    # the sum of squares that a fit to the other distances, without this one, leaves of them
    squares = np.maximum((residual**2).sum(axis=1, keepdims=True) - residual**2 / alone, 0.0)
    own_variance = max(float(np.mean(half**2)) / 4, _LEAST_NS**2)
    df = degrees + 1
    scale = np.sqrt((squares + own_variance) / df / alone)
    z = residual / alone / scale
    density = lgamma((df + 1) / 2) - lgamma(df / 2) - 0.5 * log(df * pi) - np.log(scale)
    # a cost that only this distance shows cannot be predicted from the others
    density = np.where(hat > 1 - 1e-6, -np.inf, density - (df + 1) / 2 * np.log1p(z**2 / df))
    return np.asarray(density.sum(axis=1))


def _agree(line: Floats, line_half: Floats, pair: Floats, pair_half: Floats) -> bool:
    """Whether steps to lines and from CPU to CPU may be steps on the same paths: one proportion for all directions.

    Both cross the same wires with different messages. The best proportion, from 1:2 to 2:1, must fit by a chi-squared
    test at level _DISAGREE.
    """
    if not np.isfinite(pair).all():
        return True
    proportion = np.geomspace(0.5, 2, 200)[:, None]
    variance = (pair_half**2 + (proportion * line_half) ** 2) / 1.96**2
    misfit = ((pair - proportion * line) ** 2 / variance).sum(axis=1)
    return bool(chdtrc(max(len(line) - 1, 1), misfit.min()) > _DISAGREE)


def _words(cost: Floats, half: Floats) -> str:
    names = ("across", "along") if len(cost) > 1 else ("",)
    steps = (f"{ns:.1f} ± {by:.1f} ns {name}".strip() for ns, by, name in zip(cost, half, names, strict=True))
    return " and ".join(steps)


def _profile(ways: WayCosts, kind: dies.Kind, sites: int, places: Sequence[tuple[int, ...]]) -> tuple[Floats, Floats]:
    """The cost of a step by direction at the first placement, with half of an interval that holds those of all."""
    every = [_hops(ways, steps) for steps in ways.designs(kind, sites, places)]
    cost = every[0][0]
    return cost, np.max([np.abs(placement_cost - cost) + half for placement_cost, half in every], axis=0)


def _hops(ways: WayCosts, steps: Floats) -> tuple[Floats, Floats]:
    """The cost of a step by direction with half of its interval, from the scatter of the distances or, if wider, their
    own intervals."""
    x = np.concatenate([steps, ways.offsets], axis=1)
    inverse = np.linalg.pinv(x.T @ x)
    cost = inverse @ (x.T @ ways.ns)
    residual = ways.ns - x @ cost
    degrees = max(len(ways.ns) - x.shape[1], 1)
    scatter = float(residual @ residual) / degrees * np.diag(inverse) * float(stdtrit(degrees, 0.975)) ** 2
    own = np.diag(inverse @ x.T @ np.diag(ways.half**2) @ x @ inverse)
    directions = steps.shape[1]
    return cost[:directions], np.sqrt(np.maximum(scatter, own))[:directions]


def _log_sum(scores: list[float]) -> float:
    most = max(scores)
    return most + log(sum(np.exp(score - most) for score in scores)) if most > -float("inf") else most
