"""Scales and thresholds: how far a healthy node's term may be from its peers.

The evidence is a value per node, run and term. Scales come from the spread between nodes, never from cells. In small
groups the centre and scale that a node is compared with are computed without it. docs/method.md, the verdict, has the
derivation.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

import msgspec
import numpy as np
import numpy.typing as npt

from nodeprint.distributions import robust_sd, robust_sds
from nodeprint.judge import tails
from nodeprint.judge.tails import MAX_DF
from nodeprint.order_statistics import row_medians

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

#: Below this many nodes centre and scale leave the judged node out; above, one node in a median is no matter.
LEAVE_OUT_BELOW = 16
#: Weight of what is assumed against the data, in nodes or runs.
PRIOR_DF = 8.0
#: From so many places on a family shows its tail.
MANY_PLACES = 32
#: Weight of the family's scale against a position's own, in degrees of freedom.
_FAMILY_DF = 20.0
#: Run-to-run standard deviation that is assumed of a term before the data: 0.31 % is that of a node term over runs of
#: one node.
RUN_PRIOR = 0.0031
_WINSOR = 3.5
#: A centre is the mean of values that are moved to so many scales from their median (Huber 1964, one step): two faulty
#: peers of seven move it by less than a scale, and its variance is this many times that of a mean (docs/method.md).
_HUBER, TEMPLATE_ERROR = 1.5, 1.1
#: Families of single parts that are means over many pairs: a tail that both show is the chips'.
_SILICON = ("core-near", "core-far")
#: A family of many places counts as so many independent ones, one of few as one, as the same lines are in all of them.
_INDEPENDENT = 10.0


class FamilySpread(msgspec.Struct, frozen=True):
    """Of one family: the scales between nodes, between runs and of the chips (relative), the tail's degrees of freedom,
    and `z`, the number of scales at the threshold."""

    total: float
    run: float
    chip: float
    tail_df: float
    z: float


class Statistics(msgspec.Struct, frozen=True):
    """Deviations, scales and thresholds by node and term.

    By node and term (relative): the deviation from the peers, its scale, the threshold, and `z`, the number of scales
    that a healthy node hardly exceeds. By term: the run-to-run scale; by node: its own noise, in that scale, and with
    how many peers it is compared.
    """

    deviation: Floats
    scale: Floats
    threshold: Floats
    centre: Floats
    run_scale: Floats
    noise: Floats
    peers: Floats
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
) -> Statistics:
    """Thresholds for `values` at a two-sided false alarm rate `alpha` for each node and family.

    `values` are (node, run, term), NaN where a run is missing. Centres and scales come from the `trusted` nodes;
    `bound` and `prior` (chip spread) are relative, by term; `pools` names the family of each pool.
    """
    mean = np.nanmean(values, axis=1)
    runs = float(np.median(np.isfinite(values[:, :, 0]).sum(axis=1))) if mean.shape[1] else 1.0
    run_scale = run_scales(values, pool, run_prior)
    noise = _own_noise(values / run_scale)
    runs_of = np.maximum(np.isfinite(values).any(axis=2).sum(axis=1), 1)
    beside = ((noise**2 - 1) / runs_of)[:, None] * run_scale**2
    of_runs = run_scale**2 / max(runs, 1.0)
    centre, v_family, v_position, others = _spreads(mean, pool, trusted)
    deviation = mean - centre
    prior_variance = prior**2 + of_runs
    scale, z = np.empty_like(deviation), np.empty_like(deviation)
    families: dict[str, FamilySpread] = {}
    of_chips: list[Floats] = []
    for number in np.unique(pool)[::-1]:  # cores first: coarser parts are too few to show a tail of their own
        mine, name = pool == number, pools[int(number)]
        many = bool(mine.sum() >= MANY_PLACES)
        family = _Family(
            deviation[:, mine], v_family[:, mine], v_position[:, mine], others, prior_variance[mine],
            beside[:, mine], of_runs[mine], many,
        )  # fmt: skip
        before = tails.BEFORE if name in _SILICON else tails.OF_MEANS
        if name == "core-in":  # of few pairs, so that its noise hides what the same cores show near and far
            before = max(of_chips, key=tails.degrees_of, default=tails.BEFORE)
        own = family.tail(before)
        of_chips += [own] if many and name in _SILICON else []
        chips = max(of_chips, key=tails.degrees_of, default=tails.NORMAL)
        tail = min(own, chips, key=tails.degrees_of)
        scale[:, mine] = family.scale
        z[:, mine], z_all = family.z(tail, alpha / mine.sum())
        total = float(np.sqrt(np.median(family.variance)))
        run = float(np.sqrt(np.mean(run_scale[mine] ** 2)))
        chip = float(np.sqrt(max(total**2 - run**2 / max(runs, 1.0), 0.0)))
        if name not in families or families[name].total < total:
            families[name] = FamilySpread(total, run, chip, tails.degrees_of(tail), z_all)
    return Statistics(
        deviation, scale, np.maximum(bound, z * scale), centre, run_scale, noise, others, z, bound, families
    )


class _Family(msgspec.Struct, dict=True):
    """The terms of one family, by node and term: deviations, variances of family and place, with how many `others` each
    node is compared, the variance assumed before (term), that of a node's own noise beyond the usual."""

    deviation: Floats
    v_family: Floats
    v_position: Floats
    others: Floats
    prior_variance: Floats
    own_noise: Floats
    of_runs: Floats
    many: bool

    @cached_property
    def df(self) -> Floats:
        return np.asarray(np.maximum(self.others - 1.0, 0.0)[:, None])

    @cached_property
    def family_df(self) -> Floats:
        return self.df * (_INDEPENDENT if self.many else 1.0)

    @cached_property
    def variance(self) -> Floats:
        """Of a healthy node from its centre (node, term): prior, family and place by their degrees of freedom."""
        family = (self.family_df * self.v_family + PRIOR_DF * self.prior_variance) / (self.family_df + PRIOR_DF)
        mixed = (_FAMILY_DF * family + self.df * self.v_position) / (_FAMILY_DF + self.df)
        return np.asarray(mixed + self.own_noise)

    @cached_property
    def scale(self) -> Floats:
        """The same with the template's error, as a standard deviation."""
        return np.asarray(np.sqrt(self.variance * (1 + TEMPLATE_ERROR / np.maximum(self.others, 1.0)[:, None])))

    @cached_property
    def noise(self) -> float:
        """The share of runs and of the template in the variance, of the middle node and term."""
        noise = self.scale**2 - self.variance + self.of_runs + self.own_noise
        return float(np.median(noise / self.scale**2))

    def tail(self, before: Floats) -> Floats:
        """The family's tail, given what is likely before its values; normal where they are too few."""
        if not self.many or np.median(self.others) < 3:
            return tails.NORMAL
        calm = tails.calmest(self.deviation / self.scale)
        return tails.tail_of(calm, before, self.noise)

    def z(self, tail: Floats, alpha: float) -> tuple[Floats, float]:
        """How many scales a healthy value exceeds with probability `alpha` (node, term), and that of the middle
        node."""
        z = np.empty_like(self.deviation)
        for count in np.unique(self.others):  # nodes that are left out have one peer more than the others
            of = self.others == count
            degrees = _degrees(float(self.df[of][0, 0]), float(self.family_df[of][0, 0]))
            z[of] = tails.quantile(alpha, tail, degrees, self.noise)
        return z, float(np.median(z))


def run_scales(values: Floats, family: npt.NDArray[np.int64], prior: float) -> Floats:
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
        pooled, clipped = _winsorised(differences[:, mine])
        of_family = (count * pooled**2 + PRIOR_DF * prior**2) / (count + PRIOR_DF)
        own = np.mean(clipped**2, axis=0)
        out[mine] = np.sqrt((_FAMILY_DF * of_family + count * own) / (_FAMILY_DF + count))
    return out


def _winsorised(values: Floats, at: float = _WINSOR) -> tuple[float, Floats]:
    """The robust standard deviation of a family's values about 0, and the values clipped `at` so many times that."""
    pooled = robust_sd(values)
    return pooled, np.clip(values, -at * pooled, at * pooled) if pooled > 0 else values


def _own_noise(values: Floats) -> Floats:
    """By node, how far its runs differ (values in run-to-run scales), over all terms, 1 where it is not beyond usual.

    A node that is noisier than its peers is compared with its own noise, not with theirs.
    """
    if values.shape[1] < 2:
        return np.ones(len(values))
    apart = np.diff(values, axis=1) / np.sqrt(2)
    known = np.where(np.isfinite(apart).any(axis=2, keepdims=True), apart, 0.0)
    shift = row_medians(known.reshape(-1, known.shape[2])).reshape(*known.shape[:2], 1)
    apart = apart - shift  # what moves a whole run is one value for all terms
    apart = np.nan_to_num(robust_sds(apart.reshape(len(values), -1)))
    return np.asarray(np.maximum(apart, 1.0))


def _spreads(mean: Floats, family: npt.NDArray[np.int64], trusted: Bools) -> tuple[Floats, Floats, Floats, Floats]:
    """Centre, family variance and position variance (node x term), and with how many others each node is compared."""
    n = len(mean)
    if n >= LEAVE_OUT_BELOW:
        centre, v_family, v_position = (np.broadcast_to(one, mean.shape) for one in _spread_of(mean[trusted], family))
        return centre, v_family, v_position, np.full(n, float(trusted.sum()))
    centres, families, positions = (np.zeros_like(mean) for _ in range(3))
    counts = np.zeros(n)
    for i in range(n):
        others = trusted.copy()
        others[i] = False
        if not others.any():
            others = np.arange(n) != i
        counts[i] = others.sum()
        centres[i], families[i], positions[i] = _spread_of(mean[others], family)
    return centres, families, positions, counts


def centres(values: Floats, family: npt.NDArray[np.int64], chosen: Bools) -> Floats:
    """The centre of the chosen nodes' `values` by node and term; in small groups that of the others of each node."""
    return _spreads(values, family, chosen)[0]


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
        step = np.mean(_winsorised(residual[:, mine], _HUBER)[1], axis=0)
        centre[mine] += step
        pooled, clipped = _winsorised(residual[:, mine] - step)
        v_family[mine] = max(pooled**2, float(np.mean(clipped**2))) * correction
        v_position[mine] = np.mean(clipped**2, axis=0) * correction
    return centre, v_family, v_position


def _degrees(df: float, family_df: float) -> float:
    """Degrees of freedom behind a scale that mixes prior, family and position (Welch and Satterthwaite)."""
    w_prior = PRIOR_DF / (family_df + PRIOR_DF)
    w_position = df / (_FAMILY_DF + df)
    w_family = (1 - w_position) * (1 - w_prior)
    inverse = 0.0
    if df > 0:
        inverse += w_family**2 / family_df + w_position**2 / df
    inverse += ((1 - w_position) * w_prior) ** 2 / PRIOR_DF
    return float(1 / inverse) if inverse > 0 else MAX_DF
