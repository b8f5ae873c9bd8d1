"""Scales, tails and thresholds: how far a healthy node's term may be from its peers.

The evidence is a value per node, run and term. Scales come from the spread between nodes, never from cells. In small
groups the centre and scale that a node is compared with are computed without it. docs/method.md, the verdict, has the
derivation.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri, polygamma, stdtr, stdtrit

from nodeprint.verdict.terms import family_of_pool

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

#: Below this many nodes centre and scale leave the judged node out; above, one node in a median is no matter.
LEAVE_OUT_BELOW = 16
#: Weight of the family's scale against a position's own, in degrees of freedom, and of the prior against the data.
_FAMILY_DF, PRIOR_DF = 20.0, 8.0
#: Run-to-run spread of a term where no node has two runs: 0.31 % is what a node term showed over runs of one node.
RUN_PRIOR = 0.0031
_ALIKE: Floats = np.linspace(2.0, _FAMILY_DF, 37)
_WINSOR = 3.5
#: A node whose runs differ by more than this many times the usual variance is noisier than its peers.
_NOISIER = 2.0
_MAD = 1.4826
_MAX_TAIL_DF = 200.0


@dataclass(frozen=True)
class Spread:
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
    families: Mapping[str, Spread]


def statistics(
    values: Floats,
    pool: npt.NDArray[np.int64],
    bound: Floats,
    *,
    prior: Mapping[str, float],
    alpha: float,
    trusted: Bools,
    run_prior: float = RUN_PRIOR,
    own_tail: bool = True,
) -> Statistics:
    """Thresholds for `values` at a two-sided false alarm rate `alpha` for each node and family.

    `values` are (node, run, term), NaN where a run is missing. Centres and scales come from the `trusted` nodes;
    `bound` and `prior` (chip spread by family) are relative. Without `own_tail` a node of a small fleet is compared
    with the tail of the others alone, so that a defect does not widen its own.
    """
    mean = np.nanmean(values, axis=1)
    terms = mean.shape[1]
    runs = float(np.median(np.isfinite(values[:, :, 0]).sum(axis=1))) if terms else 1.0
    run_scale = run_scales(values, pool, run_prior)
    centre, v_family, v_position, others = _spreads(mean, pool, trusted)
    most = float(np.median(others))
    df = np.maximum(others - 1.0, 0.0)[:, None]
    template_error = np.where(others < 1000, 1.57 / np.maximum(others, 1.0), 0.0)[:, None]  # a median's: pi/2 over n
    deviation = mean - centre
    prior_variance = np.array([prior[family_of_pool(int(p))] for p in pool]) ** 2 + run_scale**2 / max(runs, 1.0)
    scale = np.empty_like(deviation)
    z = np.empty_like(deviation)
    families: dict[str, Spread] = {}
    silicon: Floats | None = None
    for number in np.unique(pool)[::-1]:  # cores first: coarser parts are too few to show a tail of their own
        mine = pool == number
        name = family_of_pool(int(number))
        many = bool(mine.sum() >= _MANY_PLACES)
        # values by the family's own scale show how many of its terms are independent, whatever the scale
        raw = _calmest((deviation[:, mine] / np.sqrt(v_family[:, mine] + _TINY))[trusted], few_places=not many)
        independent = _independent(raw)
        family_df = df * float(np.clip(independent / 2, 1.0, _MOST_INDEPENDENT))
        v_f = (family_df * v_family[:, mine] + PRIOR_DF * prior_variance[mine]) / (family_df + PRIOR_DF)
        alike = _alikeness(v_position[:, mine].mean(axis=0), max(most - 1.0, 0.0))
        v_t = (alike * v_f + df * v_position[:, mine]) / (alike + df)
        if many:
            v_t = v_t + _own_noise(values[:, :, mine], float(np.mean(run_scale[mine] ** 2)))[:, None]
        scale[:, mine] = np.sqrt(v_t * (1 + template_error))
        standard = deviation[:, mine] / scale[:, mine]
        calm = _calmest(standard[trusted], few_places=not many)
        feared = _ALL if name in _SINGLE_PARTS else _BULK
        tail = _tail(calm, independent, feared if many else _NO) if most >= 3 else _NORMAL
        if many and name in _SILICON:
            silicon = tail if silicon is None or _middle(tail) > _middle(silicon) else silicon
        elif silicon is not None and _middle(silicon) <= min(_HEAVY, _middle(tail)):
            tail = silicon
        share = alpha / mine.sum()
        degrees = np.zeros(len(mean))
        for count in np.unique(others):  # a node that is set aside has one peer more than the others
            of = others == count
            degrees[of] = each = _degrees(float(df[of][0, 0]), float(family_df[of][0, 0]), alike)
            z[np.ix_(of, mine)] = _reach(calm, tail, each, share) if many else _quantile(share, tail, each)
        z_f = float(np.median(z[:, mine]))
        for i in range(len(mean)) if many and not own_tail and 3 <= most < LEAVE_OUT_BELOW else ():
            rest = _calmest(np.delete(standard, i, axis=0)[np.delete(trusted, i)], few_places=False)
            theirs = _tail(rest, independent, feared)
            z[i, mine] = _reach(rest, theirs, float(degrees[i]), share)
        total = float(np.sqrt(np.median(v_t)))
        run = float(np.sqrt(np.mean(run_scale[mine] ** 2)))
        chip = float(np.sqrt(max(total**2 - run**2 / max(runs, 1.0), 0.0)))
        if name not in families or families[name].total < total:
            families[name] = Spread(total, run, chip, _middle(tail), z_f)
    threshold = np.maximum(bound, z * scale)
    return Statistics(deviation, scale, threshold, centre, run_scale, z, bound, families)


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
        pooled = _MAD * np.median(np.abs(differences[:, mine]))
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
        own[node] = (_MAD * np.nanmedian(apart[node])) ** 2 / 2
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
        pooled = _MAD * float(np.median(np.abs(residual[:, mine])))
        clipped = np.clip(residual[:, mine], -_WINSOR * pooled, _WINSOR * pooled) if pooled > 0 else residual[:, mine]
        v_family[mine] = max(pooled**2, float(np.mean(clipped**2))) * correction
        v_position[mine] = np.mean(clipped**2, axis=0) * correction
    return centre, v_family, v_position


def _calmest(standard: Floats, *, few_places: bool) -> Floats:
    """The nodes without those with the largest values, so that a defect does not widen the tail that would hide it.

    With few places one node in four is left out where nodes are few, one in twenty where they are many. Families with
    many places show a tail by themselves: there at most one in four is left out, and only nodes whose values reach
    half again as far as any other's, as several nodes with a defect each would otherwise hide one another.
    """
    n = len(standard)
    reach = np.max(np.abs(standard), axis=1)
    order = np.argsort(reach, kind="stable")
    drop = n // 4 if n < LEAVE_OUT_BELOW else max(2, n // 20)
    if not few_places:
        most = max(1, n // 4) if n > 2 else 0
        drop = max((k for k in range(1, most + 1) if reach[order[-k]] > 1.5 * reach[order[-k - 1]]), default=0)
    return standard[np.sort(order[: n - drop])]


def _independent(standard: Floats) -> float:
    """How many of a family's terms are independent, by how much their mean square differs between nodes."""
    squares = np.mean(standard**2, axis=1)
    middle = float(np.median(squares)) if len(squares) else 0.0
    wobble = _MAD * float(np.median(np.abs(squares - middle))) / middle if middle > 0 else np.inf
    return float(np.clip(2 / wobble**2, 1.0, standard.shape[1])) if wobble > 0 else float(standard.shape[1])


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
    return float(1 / inverse) if inverse > 0 else _MAX_TAIL_DF


#: From so many places on a family shows its tail; then heavy tails are allowed for.
_MANY_PLACES = 32
_SINGLE_PARTS = ("core-in", "core-near", "core-far")
_NO, _BULK, _ALL = range(3)
#: Tails heavier than this are seldom in single parts, and means over several have none unless silicon's is.
_LIGHT, _SELDOM = 8.0, 0.05
#: Families of single parts of silicon, means over many pairs: a tail that both show is the chips' and not the cells'.
_SILICON = ("core-near", "core-far")
#: Degrees of freedom from which on down the chips' tail is plainly there: then coarser parts have it too.
_HEAVY = 6.0
#: A family's scale counts for at most so many independent places; beyond, the prior has no weight anyway.
_MOST_INDEPENDENT = 10.0
_TINY = 1e-18
#: By so much in logarithms a tail must be less likely than the likeliest to be ruled out, and a normal one to be
#: thought heavy: too light a tail accuses healthy nodes, too heavy a one hides defects.
_NOT_RULED_OUT, _PLAIN = 3.0, 1.0
#: What is assumed at least where a tail is plainly heavy: its far end is never seen, and noise lightens the body.
_FEARED = 3.0
#: And what the likeliest tail looks like then, noise included.
_PLAINLY = 14.0
#: How the far end of a tail is checked: on so many resamples of the nodes, among so many of the largest values.
_RESAMPLES, _FAR_VALUES, _TENTH = 200, 200, 10
#: At least this share of many places counts as independent, whatever a few nodes' wobble says.
_LEAST_SHARE = 0.3
#: Of the cores of a CCX of four, each against the others, three are free.
_FREE_SHARE = 0.75
#: Degrees of freedom that tails are distinguished by; values beyond three scales count as beyond and no more, so that a
#: defect does not widen the tail that would hide it.
_DEGREES = (2.2, 2.4, 2.6, 2.8, 3.0, 3.3, 3.6, 4.0, 4.5, 5.0, 6.0, 7.0, 8.0, 10.0, 14.0, 20.0, 40.0, _MAX_TAIL_DF)
_NORMAL: Floats = np.eye(len(_DEGREES))[-1]
#: Before the data, every octave of degrees of freedom is as likely.
_BEFORE: Floats = np.gradient(np.log(np.array(_DEGREES)))
#: Values narrower than this, in their scale, are stretched to it before their tail is estimated.
_NARROW = 0.4
_EDGES = np.append(np.linspace(0.0, 3.0, 61), np.inf)
_SCALES = np.linspace(0.75, 1.35, 25)


@lru_cache(maxsize=1)
def _log_probabilities() -> Floats:
    """Logarithms of the probability of |z| falling between edges, as (degrees, scale, bin).

    For Student's t with MAD-consistent scale 1 times `scale`.
    """
    tables = []
    for df in _DEGREES:
        unit = float(stdtrit(df, 0.75) / ndtri(0.75))
        cumulative = 2 * stdtr(df, _EDGES[None, :] * unit / _SCALES[:, None]) - 1
        tables.append(np.log(np.maximum(np.diff(cumulative, axis=1), 1e-300)))
    return np.stack(tables)


def _tail(standard: Floats, independent: float, feared: int = _NO) -> Floats:
    """How likely each tail of _DEGREES is, from pooled values (node x term), by likelihood with the scale free.

    `feared` _NO: the likeliest alone, as means over many parts are near normal. _BULK: every light tail by its weight.
    _ALL, for single parts: every tail by its weight, and where the values speak for a heavy one the heaviest that they
    do not rule out, t3 or heavier. `independent` of the terms count, the others repeat them. Fewer than 100
    values make no tail, nor do values that are mostly equal.
    """
    pooled = np.abs(standard[np.isfinite(standard)]) * _stretch(standard)
    if len(pooled) < 100 or np.median(pooled) == 0:
        return _NORMAL
    counts = np.histogram(pooled, _EDGES)[0]
    share = float(np.clip(independent / standard.shape[1], 0.0, 1.0))
    if feared != _NO:  # few nodes estimate the share badly: then what the contrasts within a CCX leave free counts too
        weight = len(standard) / (len(standard) + PRIOR_DF)
        share = float(np.clip(share, _LEAST_SHARE, 1.0) ** weight * _FREE_SHARE ** (1 - weight))
    likelihood = (_log_probabilities() @ counts).max(axis=1) * share
    if feared == _NO:
        return np.asarray(np.eye(len(_DEGREES))[int(np.argmax(likelihood))])
    open_still = likelihood >= likelihood.max() - _NOT_RULED_OUT
    plain = _DEGREES[int(np.argmax(likelihood))] <= _PLAINLY and likelihood[-1] < likelihood.max() - _PLAIN
    if feared == _ALL and plain:
        return np.asarray(np.eye(len(_DEGREES))[min(int(np.argmax(open_still)), _DEGREES.index(_FEARED))])
    heavy_share = _SELDOM if feared == _ALL else 0.0
    weights = _BEFORE * np.where(np.array(_DEGREES) < _LIGHT, heavy_share, 1.0) * np.exp(likelihood - likelihood.max())
    return np.asarray(weights / weights.sum())


def _stretch(standard: Floats) -> float:
    """The factor that brings values to the scales of the tail table: above 1 where the prior made their scale too wide.

    In the first bins they would look like a peak with the heaviest of tails, and nothing could be resolved with chips
    that are very much alike.
    """
    middle = _MAD * float(np.nanmedian(np.abs(standard))) if np.isfinite(standard).any() else 0.0
    return max(1.0, _NARROW / middle) if middle > 0 else 1.0


def _reach(standard: Floats, tail: Floats, most: float, alpha: float) -> float:
    """How many scales a value of a family with many places exceeds with probability `alpha`."""
    stretch = _stretch(standard)
    far = _quantile(alpha, tail, most) * _tail_check(standard * stretch, tail, most)
    return max(far / stretch, _quantile(alpha, _NORMAL, most))


def _middle(tail: Floats) -> float:
    """One number of degrees of freedom for a tail, in the mean of their inverses."""
    return float(1 / (tail @ (1 / np.array(_DEGREES))))


def _quantile(alpha: float, tail: Floats, most: float = _MAX_TAIL_DF) -> float:
    """What |z| is beyond with probability `alpha`, over all tails as likely as they are, in MAD-consistent scales.

    `most` degrees of freedom are behind the scale.
    """
    degrees = np.minimum(np.array(_DEGREES), most)
    unit = stdtrit(degrees, 0.75) / ndtri(0.75)
    low, high = 0.0, float(np.max(-stdtrit(degrees, alpha / 2) / unit))
    for _ in range(50):
        middle = (low + high) / 2
        beyond = float(tail @ (2 * stdtr(degrees, -middle * unit)))
        low, high = (middle, high) if beyond > alpha else (low, middle)
    return high


def _tail_check(standard: Floats, tail: Floats, most: float = _MAX_TAIL_DF) -> float:
    """How much further than the fitted tail the far values are, at least 1, from resampled nodes.

    The tenth largest value against what the fit expects, over resamples of whole nodes (their terms are no independent
    draws): where nineteen of twenty lie beyond the fit, the nineteenth counts. One odd node is absent from every third
    resample and moves nothing.
    """
    values = np.abs(standard)
    nodes, terms = values.shape
    if values.size < 500:
        return 1.0
    far = np.argpartition(values, -_FAR_VALUES, axis=None)[-_FAR_VALUES:]
    far = far[np.argsort(-values.ravel()[far], kind="stable")]
    rng = np.random.default_rng(20240602)
    copies = rng.multinomial(nodes, np.full(nodes, 1 / nodes), size=_RESAMPLES)[:, far // terms]
    tenth = values.ravel()[far[np.argmax(np.cumsum(copies, axis=1) >= _TENTH, axis=1)]]
    ratio = tenth / _quantile((_TENTH - 0.3) / values.size, tail, most)
    low, high = np.quantile(ratio, [0.05, 0.95])
    return float(high) if low > 1 else 1.0


def run_quantile(standard: Floats, alpha: float) -> float:
    """How many scales two runs of a node (node x term) are apart with probability `alpha`.

    From the tail of calm nodes.
    """
    return _reach(standard, _tail(standard, _independent(standard)), _MAX_TAIL_DF, alpha)
