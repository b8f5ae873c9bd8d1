"""Tails: how far a healthy value may be from its centre, given what the values of a fleet look like.

Values are in MAD-consistent scales, by node and term. docs/method.md, the verdict, says which tails are allowed for.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from nodeprint.distributions import ndtri, robust_sd, stdtr, stdtrit

Floats = npt.NDArray[np.float64]

MAX_DF = 200.0
#: Weight of what is assumed against the data, in nodes.
PRIOR_DF = 8.0
#: From so many places on a family shows its tail; then heavy tails are allowed for.
MANY_PLACES = 32
NO, BULK, ALL = range(3)
#: Tails heavier than this are seldom in single parts, and means over several have none unless silicon's is.
_LIGHT, _SELDOM = 8.0, 0.05
#: What is assumed at least where a tail is heavy: its far end is never seen, and noise lightens the body.
_FEARED = 3.0
#: How much a heavy tail is feared goes from none to all between these: by how much in logarithms a normal one is less
#: likely than the likeliest, and between these degrees of freedom of the likely ones. Too light a tail accuses healthy
#: nodes, too heavy a one hides defects; steps would make thresholds jump.
_PLAIN, _PLAINLY = (1.0, 6.0), (20.0, 10.0)
#: So slowly is it feared at first: healthy fleets often look a little heavy.
_SLOWLY = 3
#: How the far end of a tail is checked: on so many resamples of the nodes, among so many of the largest values.
_RESAMPLES, _FAR_VALUES, _TENTH = 200, 200, 10
#: At least this share of many places counts as independent, whatever a few nodes' wobble says.
_LEAST_SHARE = 0.3
#: Of the cores of a CCX of four, each against the others, three are free.
_FREE_SHARE = 0.75
#: Degrees of freedom that tails are distinguished by; values beyond three scales count as beyond and no more, so that a
#: defect does not widen the tail that would hide it.
_DEGREES = (2.2, 2.4, 2.6, 2.8, 3.0, 3.3, 3.6, 4.0, 4.5, 5.0, 6.0, 7.0, 8.0, 10.0, 14.0, 20.0, 40.0, MAX_DF)


@dataclass(frozen=True)
class Tail:
    """How likely each tail of _DEGREES is (`usual`, `feared`), and how much (0 to 1) the second is `feared`."""

    usual: Floats
    feared: Floats
    fear: float

    @property
    def degrees(self) -> float:
        """One number of degrees of freedom, in the mean of their inverses."""
        weights = (1 - self.fear) * self.usual + self.fear * self.feared
        return float(1 / (weights @ (1 / np.array(_DEGREES))))

    def as_feared_as(self, other: Tail) -> Tail:
        """This tail, feared at least as much as another, whose heavy one is feared then."""
        return replace(self, feared=other.feared, fear=other.fear) if other.fear > self.fear else self


NORMAL = Tail(np.eye(len(_DEGREES))[-1], np.eye(len(_DEGREES))[-1], 0.0)
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


def tail_of(standard: Floats, independent: float, feared: int = NO) -> Tail:
    """How likely each tail of _DEGREES is, from pooled values (node x term), by likelihood with the scale free.

    `feared` NO: the likeliest alone, as means over many parts are near normal. BULK: every light tail by its weight.
    ALL, for single parts: every tail by its weight, and the more the values speak for a heavy one, the more t3 and
    heavier. `independent` of the terms count, the others repeat them. Fewer than 100 values make no tail, nor do values
    that are mostly equal.
    """
    pooled = np.abs(standard[np.isfinite(standard)]) * _stretch(standard)
    if len(pooled) < 100 or np.median(pooled) == 0:
        return NORMAL
    counts = np.histogram(pooled, _EDGES)[0]
    share = float(np.clip(independent / standard.shape[1], 0.0, 1.0))
    if feared != NO:  # few nodes estimate the share badly: then what the contrasts within a CCX leave free counts too
        weight = len(standard) / (len(standard) + PRIOR_DF)
        share = float(np.clip(share, _LEAST_SHARE, 1.0) ** weight * _FREE_SHARE ** (1 - weight))
    likelihood = (_log_probabilities() @ counts).max(axis=1) * share
    if feared == NO:
        return replace(NORMAL, usual=np.eye(len(_DEGREES))[int(np.argmax(likelihood))])
    degrees = np.array(_DEGREES)
    weights = _BEFORE * np.exp(likelihood - likelihood.max())
    usual = _normed(weights * np.where(degrees < _LIGHT, _SELDOM if feared == ALL else 0.0, 1.0))
    if feared == BULK:
        return replace(NORMAL, usual=usual)
    heaviest = np.where(degrees <= _FEARED, _BEFORE * np.exp(likelihood - likelihood[degrees <= _FEARED].max()), 0.0)
    inverse = float(_normed(weights) @ (1 / degrees))
    plain = _between(float(likelihood.max() - likelihood[-1]), *_PLAIN)
    plainly = _between(inverse, *(1 / end for end in _PLAINLY))
    return Tail(usual, _normed(heaviest), plainly * plain**_SLOWLY)


def _normed(weights: Floats) -> Floats:
    return np.asarray(weights / weights.sum())


def _between(value: float, low: float, high: float) -> float:
    """How far a value is from `low` (0) to `high` (1)."""
    return float(np.clip((value - low) / (high - low), 0.0, 1.0))


def _stretch(standard: Floats) -> float:
    """The factor that brings values to the scales of the tail table: above 1 where the prior made their scale too wide.

    In the first bins they would look like a peak with the heaviest of tails, and nothing could be resolved with chips
    that are very much alike.
    """
    middle = robust_sd(standard) if np.isfinite(standard).any() else 0.0
    return max(1.0, _NARROW / middle) if middle > 0 else 1.0


def reach(standard: Floats, tail: Tail, most: float, alpha: float) -> float:
    """How many scales a value of a family with many places exceeds with probability `alpha`."""
    stretch = _stretch(standard)
    far = quantile(alpha, tail, most) * _tail_check(standard * stretch, tail, most)
    return max(far / stretch, quantile(alpha, NORMAL, most))


def quantile(alpha: float, tail: Tail, most: float = MAX_DF) -> float:
    """What |z| is beyond with probability `alpha`, over all tails as likely as they are, in MAD-consistent scales.

    `most` degrees of freedom are behind the scale. Between the usual and the feared tail in the logarithm.
    """
    usual = _quantile(alpha, tail.usual, most)
    return usual if not tail.fear else usual ** (1 - tail.fear) * _quantile(alpha, tail.feared, most) ** tail.fear


def _quantile(alpha: float, weights: Floats, most: float) -> float:
    degrees = np.minimum(np.array(_DEGREES), most)
    unit = stdtrit(degrees, 0.75) / ndtri(0.75)
    low, high = 0.0, float(np.max(-stdtrit(degrees, alpha / 2) / unit))
    for _ in range(50):
        middle = (low + high) / 2
        beyond = float(weights @ (2 * stdtr(degrees, -middle * unit)))
        low, high = (middle, high) if beyond > alpha else (low, middle)
    return high


def _tail_check(standard: Floats, tail: Tail, most: float = MAX_DF) -> float:
    """How much further than the fitted tail the far values are, at least 1, from resampled nodes.

    The tenth largest value against what the fit expects, over resamples of whole nodes (their terms are no independent
    draws): where nineteen of twenty lie beyond the fit, the nineteenth counts, in full from a tenth beyond it on. One
    odd node is absent from every third resample and moves nothing.
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
    ratio = tenth / quantile((_TENTH - 0.3) / values.size, tail, most)
    low, high = np.quantile(ratio, [0.05, 0.95])
    return 1 + (float(high) - 1) * _between(float(low), 1.0, 1.1)


#: With fewer nodes one in four is left out of a tail, with more one in twenty.
FEW = 16


def calmest(standard: Floats, *, few_places: bool) -> Floats:
    """The nodes without those with the largest values, so that a defect does not widen the tail that would hide it.

    With few places one node in four is left out where nodes are few, one in twenty where they are many. Families with
    many places show a tail by themselves: there at most one in four is left out, and only nodes whose values reach
    half again as far as any other's, as several nodes with a defect each would otherwise hide one another.
    """
    n = len(standard)
    reach = np.max(np.abs(standard), axis=1)
    order = np.argsort(reach, kind="stable")
    drop = n // 4 if n < FEW else max(2, n // 20)
    if not few_places:
        most = max(1, n // 4) if n > 2 else 0
        drop = max((k for k in range(1, most + 1) if reach[order[-k]] > 1.5 * reach[order[-k - 1]]), default=0)
    return standard[np.sort(order[: n - drop])]


def independent_of(standard: Floats) -> float:
    """How many of a family's terms are independent, by how much their mean square differs between nodes."""
    squares = np.mean(standard**2, axis=1)
    middle = float(np.median(squares)) if len(squares) else 0.0
    wobble = robust_sd(squares, middle) / middle if middle > 0 else np.inf
    return float(np.clip(2 / wobble**2, 1.0, standard.shape[1])) if wobble > 0 else float(standard.shape[1])
