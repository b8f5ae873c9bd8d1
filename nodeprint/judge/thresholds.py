"""Scales and thresholds: how far a healthy node's term may be from its peers.

The evidence is a value per node, run and term. Scales come from the spread between nodes, never from cells. In small
groups the centre and scale that a node is compared with are computed without it. docs/method.md, the verdict, has the
derivation.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from nodeprint.distributions import polygamma, robust_sd
from nodeprint.judge import tails
from nodeprint.judge.tails import MAX_DF, PRIOR_DF, Tail

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

#: Below this many nodes centre and scale leave the judged node out; above, one node in a median is no matter.
LEAVE_OUT_BELOW = 16
#: Weight of the family's scale against a position's own, in degrees of freedom.
_FAMILY_DF = 20.0
#: Run-to-run spread of a term where no node has two runs: 0.31 % is what a node term showed over runs of one node.
RUN_PRIOR = 0.0031
_ALIKE: Floats = np.linspace(2.0, _FAMILY_DF, 37)
_WINSOR = 3.5
#: A node whose runs differ by more than this many times the usual variance is noisier than its peers.
_NOISIER = 2.0
#: The variance of a median relative to that of a mean: pi / 2.
TEMPLATE_ERROR = 1.57
#: Families of single parts, whose tails may be heavy; of those that are means over many pairs, a tail that both show is
#: the chips' and not the cells'.
_SINGLE_PARTS, _SILICON = ("core-in", "core-near", "core-far"), ("core-near", "core-far")
#: A family's scale counts for at most so many independent places; beyond, the prior has no weight anyway.
_MOST_INDEPENDENT = 10.0
_TINY = 1e-18


@dataclass(frozen=True)
class FamilySpread:
    """Of one family: the scales between nodes, between runs and of the chips (relative), the tail's degrees of freedom,
    and `z`, the number of scales at the threshold."""

    total: float
    run: float
    chip: float
    tail_df: float
    z: float


@dataclass(frozen=True)
class Statistics:
    """Deviations, scales and thresholds by node and term.

    By node and term (relative): the deviation from the peers, its scale, the threshold, and `z`, the number of scales
    that a healthy node hardly exceeds. By term: the run-to-run scale.
    """

    deviation: Floats
    scale: Floats
    threshold: Floats
    centre: Floats
    run_scale: Floats
    z: Floats
    bound: Floats
    families: Mapping[str, FamilySpread]


def statistics(
    values: Floats,
    pool: npt.NDArray[np.int64],
    bound: Floats,
    *,
    prior: Floats,
    pools: Mapping[int, str],
    alpha: float,
    trusted: Bools,
    run_prior: float = RUN_PRIOR,
    own_tail: bool = True,
) -> Statistics:
    """Thresholds for `values` at a two-sided false alarm rate `alpha` for each node and family.

    `values` are (node, run, term), NaN where a run is missing. Centres and scales come from the `trusted` nodes;
    `bound` and `prior` (chip spread) are relative, by term; `pools` names the family of each pool. Without `own_tail` a
    node of a small fleet is compared with the tail of the others alone, so that a defect does not widen its own.
    """
    mean = np.nanmean(values, axis=1)
    runs = float(np.median(np.isfinite(values[:, :, 0]).sum(axis=1))) if mean.shape[1] else 1.0
    run_scale = run_scales(values, pool, run_prior)
    centre, v_family, v_position, others = _spreads(mean, pool, trusted)
    deviation = mean - centre
    prior_variance = prior**2 + run_scale**2 / max(runs, 1.0)
    scale, z = np.empty_like(deviation), np.empty_like(deviation)
    families: dict[str, FamilySpread] = {}
    silicon: Tail | None = None
    for number in np.unique(pool)[::-1]:  # cores first: coarser parts are too few to show a tail of their own
        mine, name = pool == number, pools[int(number)]
        many = bool(mine.sum() >= tails.MANY_PLACES)
        usual = float(np.mean(run_scale[mine] ** 2)) if many else np.inf
        family = _Family(
            deviation[:, mine], v_family[:, mine], v_position[:, mine], others, prior_variance[mine],
            _own_noise(values[:, :, mine], usual), trusted, name in _SINGLE_PARTS,
        )  # fmt: skip
        tail = family.tail
        if many and name in _SILICON:
            silicon = tail if silicon is None or tail.fear < silicon.fear else silicon
        elif silicon is not None:
            tail = tail.as_feared_as(silicon)
        scale[:, mine] = family.scale
        z[:, mine], z_all = family.z(tail, alpha / mine.sum(), own_tail=own_tail)
        total = float(np.sqrt(np.median(family.variance)))
        run = float(np.sqrt(np.mean(run_scale[mine] ** 2)))
        chip = float(np.sqrt(max(total**2 - run**2 / max(runs, 1.0), 0.0)))
        if name not in families or families[name].total < total:
            families[name] = FamilySpread(total, run, chip, tail.degrees, z_all)
    return Statistics(deviation, scale, np.maximum(bound, z * scale), centre, run_scale, z, bound, families)


@dataclass
class _Family:
    """The terms of one family, by node and term: deviations, variances of family and place, with how many `others` each
    node is compared, the variance assumed before (term), a node's own noise beyond the usual (node)."""

    deviation: Floats
    v_family: Floats
    v_position: Floats
    others: Floats
    prior_variance: Floats
    own_noise: Floats
    trusted: Bools
    single: bool

    @cached_property
    def many(self) -> bool:
        return bool(self.deviation.shape[1] >= tails.MANY_PLACES)

    @cached_property
    def df(self) -> Floats:
        return np.asarray(np.maximum(self.others - 1.0, 0.0)[:, None])

    @cached_property
    def independent(self) -> float:
        """How many of its terms are independent, whatever the scale: values by the family's own show it."""
        raw = (self.deviation / np.sqrt(self.v_family + _TINY))[self.trusted]
        return tails.independent_of(tails.calmest(raw, few_places=not self.many))

    @cached_property
    def family_df(self) -> Floats:
        return self.df * float(np.clip(self.independent / 2, 1.0, _MOST_INDEPENDENT))

    @cached_property
    def alike(self) -> float:
        return _alikeness(self.v_position.mean(axis=0), max(float(np.median(self.others)) - 1.0, 0.0))

    @cached_property
    def variance(self) -> Floats:
        """Of a healthy node from its centre (node, term): prior, family and place by their degrees of freedom."""
        family = (self.family_df * self.v_family + PRIOR_DF * self.prior_variance) / (self.family_df + PRIOR_DF)
        mixed = (self.alike * family + self.df * self.v_position) / (self.alike + self.df)
        return np.asarray(mixed + self.own_noise[:, None])

    @cached_property
    def scale(self) -> Floats:
        """The same with the template's error, as a standard deviation; of many nodes the error is no matter."""
        error = np.where(self.others < 1000, TEMPLATE_ERROR / np.maximum(self.others, 1.0), 0.0)[:, None]
        return np.asarray(np.sqrt(self.variance * (1 + error)))

    @cached_property
    def standard(self) -> Floats:
        return np.asarray(self.deviation / self.scale)

    @cached_property
    def calm(self) -> Floats:
        return tails.calmest(self.standard[self.trusted], few_places=not self.many)

    @property
    def feared(self) -> int:
        return (tails.ALL if self.single else tails.BULK) if self.many else tails.NO

    @cached_property
    def tail(self) -> Tail:
        if np.median(self.others) < 3:
            return tails.NORMAL
        return tails.tail_of(self.calm, self.independent, self.feared)

    def z(self, tail: Tail, alpha: float, *, own_tail: bool) -> tuple[Floats, float]:
        """How many scales a healthy value exceeds with probability `alpha` (node, term), and that of the middle node;
        see `statistics`."""
        z, degrees = np.empty_like(self.deviation), np.zeros(len(self.deviation))
        for count in np.unique(self.others):  # a node that is set aside has one peer more than the others
            of = self.others == count
            degrees[of] = each = _degrees(float(self.df[of][0, 0]), float(self.family_df[of][0, 0]), self.alike)
            z[of] = tails.reach(self.calm, tail, each, alpha) if self.many else tails.quantile(alpha, tail, each)
        middle = float(np.median(z))
        if self.many and not own_tail and 3 <= np.median(self.others) < LEAVE_OUT_BELOW:
            for i in range(len(z)):
                rest = tails.calmest(np.delete(self.standard, i, axis=0)[np.delete(self.trusted, i)], few_places=False)
                theirs = tails.tail_of(rest, self.independent, self.feared)
                z[i] = tails.reach(rest, theirs, float(degrees[i]), alpha)
        return z, middle


def run_quantile(standard: Floats, alpha: float) -> float:
    """How many scales two runs of a node (node x term) are apart with probability `alpha`.

    From the tail of calm nodes.
    """
    return tails.reach(standard, tails.tail_of(standard, tails.independent_of(standard)), tails.MAX_DF, alpha)


def run_scales(values: Floats, family: npt.NDArray[np.int64], prior: float = RUN_PRIOR) -> Floats:
    """Run-to-run standard deviation of each term, shrunk to its family; from differences of runs of one node."""
    _, runs, terms = values.shape
    if runs < 2:
        return np.full(terms, prior)
    differences = (np.diff(values, axis=1) / np.sqrt(2)).reshape(-1, terms)
    differences = differences[np.isfinite(differences).all(axis=1)]
    if not len(differences):
        return np.full(terms, prior)
    out = np.empty(terms)
    count = len(differences)
    for number in np.unique(family):
        mine = family == number
        pooled = robust_sd(differences[:, mine])
        pooled2 = (count * pooled**2 + PRIOR_DF * prior**2) / (count + PRIOR_DF)
        clipped = (
            np.clip(differences[:, mine], -_WINSOR * pooled, _WINSOR * pooled) if pooled > 0 else differences[:, mine]
        )
        own = np.mean(clipped**2, axis=0)
        out[mine] = np.sqrt((_FAMILY_DF * pooled2 + count * own) / (_FAMILY_DF + count))
    return out


def _own_noise(values: Floats, usual: float) -> Floats:
    """By node, the variance that its mean over runs has beyond what is `usual` of a run, from all terms of a family.

    A node that is clearly noisier than its peers is compared with its own noise, not with theirs.
    """
    runs = np.isfinite(values).any(axis=2).sum(axis=1)
    apart = np.abs(np.diff(values, axis=1)).reshape(len(values), -1)
    own = np.zeros(len(values))
    for node in np.flatnonzero(np.isfinite(apart).any(axis=1)):
        own[node] = robust_sd(apart[node]) ** 2 / 2
    return np.asarray(np.maximum(own - _NOISIER * usual, 0) / np.maximum(runs, 1))


def _spreads(mean: Floats, family: npt.NDArray[np.int64], trusted: Bools) -> tuple[Floats, Floats, Floats, Floats]:
    """Centre, family variance and position variance (node x term), and with how many others each node is compared."""
    n = len(mean)
    if n >= LEAVE_OUT_BELOW:
        centre, v_family, v_position = _spread_of(mean[trusted], family)
        shape = mean.shape
        return (
            np.broadcast_to(centre, shape),
            np.broadcast_to(v_family, shape),
            np.broadcast_to(v_position, shape),
            np.full(n, float(trusted.sum())),
        )
    centres, families, positions = (np.zeros_like(mean) for _ in range(3))
    counts = np.zeros(n)
    for i in range(n):
        others = trusted.copy()
        others[i] = False
        if others.sum() < min(2, n - 1):
            others = np.arange(n) != i
        counts[i] = others.sum()
        if others.any():
            centres[i], families[i], positions[i] = _spread_of(mean[others], family)
        else:
            centres[i] = mean[i]
    return centres, families, positions, counts


def _spread_of(mean: Floats, family: npt.NDArray[np.int64]) -> tuple[Floats, Floats, Floats]:
    n = len(mean)
    centre = np.median(mean, axis=0)
    if n < 2:
        return centre, np.zeros_like(centre), np.zeros_like(centre)
    residual = mean - centre
    correction = n / (n - 1)
    v_family, v_position = np.empty_like(centre), np.empty_like(centre)
    for number in np.unique(family):
        mine = family == number
        pooled = robust_sd(residual[:, mine])
        clipped = np.clip(residual[:, mine], -_WINSOR * pooled, _WINSOR * pooled) if pooled > 0 else residual[:, mine]
        v_family[mine] = max(pooled**2, float(np.mean(clipped**2))) * correction
        v_position[mine] = np.mean(clipped**2, axis=0) * correction
    return centre, v_family, v_position


def _alikeness(variances: Floats, df: float) -> float:
    """How many degrees of freedom the family's variance counts beside a place's own, at most _FAMILY_DF.

    Few where places spread unlike: by how much more the logarithms of their `variances`, of `df` degrees of freedom
    each, differ than chance explains (Smyth 2004).
    """
    if df < 1 or len(variances) < 3 or variances.min() <= 0:
        return _FAMILY_DF
    excess = float(np.var(np.log(variances), ddof=1)) - float(polygamma(1, df / 2))
    return float(_ALIKE[int(np.argmin(np.abs(polygamma(1, _ALIKE / 2) - excess)))])


def _degrees(df: float, family_df: float, alike: float) -> float:
    """Degrees of freedom behind a scale that mixes prior, family and position (Welch and Satterthwaite)."""
    w_prior = PRIOR_DF / (family_df + PRIOR_DF)
    w_position = df / (alike + df)
    w_family = (1 - w_position) * (1 - w_prior)
    inverse = 0.0
    if df > 0:
        inverse += w_family**2 / family_df + w_position**2 / df
    inverse += ((1 - w_position) * w_prior) ** 2 / PRIOR_DF
    return float(1 / inverse) if inverse > 0 else MAX_DF
