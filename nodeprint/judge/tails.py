"""Tails: how far a healthy value may be from its centre, given what the values of a fleet look like.

A tail is how likely each of a few numbers of degrees of freedom of Student's t is. Values are in MAD-consistent scales,
by node and term. docs/method.md, thresholds, has the derivation.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import numpy.typing as npt

from nodeprint.distributions import ndtri, stdtr, stdtrit

Floats = npt.NDArray[np.float64]

MAX_DF = 200.0
#: Degrees of freedom that tails are distinguished by; values beyond three scales count as beyond and no more, so that a
#: defect does not widen the tail that would hide it.
_DEGREES: Floats = np.array([2.2, 2.4, 2.6, 2.8, 3, 3.3, 3.6, 4, 4.5, 5, 6, 7, 8, 10, 14, 20, 40, MAX_DF])
#: Before the data every octave of degrees of freedom is as likely.
_BEFORE: Floats = np.gradient(np.log(_DEGREES))
NORMAL: Floats = np.eye(len(_DEGREES))[-1]
#: Means over many pairs have no heavier tail than this, unless the chips' cores have one.
OF_MEANS = 8.0
#: Of fewer values no tail can be seen.
_FEWEST_VALUES = 100
_EDGES = np.append(np.linspace(0.0, 3.0, 61), np.inf)
_SCALES = np.linspace(0.75, 1.35, 25)


@lru_cache(maxsize=1)
def _log_probabilities() -> Floats:
    """Logarithms of the probability of |z| falling between edges, as (degrees, scale, bin).

    For Student's t with MAD-consistent scale 1 times `scale`.
    """
    tables = []
    for df in _DEGREES.tolist():
        unit = float(stdtrit(df, 0.75) / ndtri(0.75))
        cumulative = 2 * stdtr(df, _EDGES[None, :] * unit / _SCALES[:, None]) - 1
        tables.append(np.log(np.maximum(np.diff(cumulative, axis=1), 1e-300)))
    return np.stack(tables)


def tail_of(standard: Floats, least: float = 0.0) -> Floats:
    """The tail of pooled values (node, term), of `least` degrees of freedom or more, by likelihood with the scale free;
    normal where the values are too few to show one, or mostly equal."""
    pooled = np.abs(standard[np.isfinite(standard)])
    if len(pooled) < _FEWEST_VALUES or np.median(pooled) == 0:
        return NORMAL
    likelihood = (_log_probabilities() @ np.histogram(pooled, _EDGES)[0]).max(axis=1)
    likelihood[least > _DEGREES] = -np.inf
    weights = _BEFORE * np.exp(likelihood - likelihood.max())
    return np.asarray(weights / weights.sum())


def degrees_of(tail: Floats) -> float:
    """One number of degrees of freedom for a tail, in the mean of their inverses."""
    return float(1 / (tail @ (1 / _DEGREES)))


def quantile(alpha: float, tail: Floats, most: float = MAX_DF) -> float:
    """What |z| is beyond with probability `alpha`, over all degrees of freedom as likely as they are, in MAD-consistent
    scales; `most` degrees of freedom are behind the scale."""
    degrees = np.minimum(_DEGREES, most)
    unit = stdtrit(degrees, 0.75) / ndtri(0.75)
    low, high = 0.0, float(np.max(-stdtrit(degrees, alpha / 2) / unit))
    for _ in range(50):
        middle = (low + high) / 2
        beyond = float(tail @ (2 * stdtr(degrees, -middle * unit)))
        low, high = (middle, high) if beyond > alpha else (low, middle)
    return high


def calmest(standard: Floats) -> Floats:
    """Values (node, term) without those of nodes that reach half again as far as any other's, a quarter at most: nodes
    with a defect each would otherwise hide one another."""
    n = len(standard)
    reach = np.max(np.abs(standard), axis=1)
    order = np.argsort(reach, kind="stable")
    most = max(1, n // 4) if n > 2 else 0
    drop = max((k for k in range(1, most + 1) if reach[order[-k]] > 1.5 * reach[order[-k - 1]]), default=0)
    return standard[np.sort(order[: n - drop])]
