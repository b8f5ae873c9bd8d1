"""Tails: how far a healthy value may be from its centre, given what the values of a fleet look like.

A value is what its part is, of Student's t, and what runs and peers add, which is normal: a heavy tail beneath noise
looks lighter than it is. A tail is how likely each of a few numbers of degrees of freedom of the t is, and which share
of the variance is noise. Values are in MAD-consistent scales, by node and term. docs/method.md, thresholds, has the
derivation.
"""

from __future__ import annotations

from functools import cached_property, lru_cache
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from nodeprint.distributions import chi2_quantile, ndtr, ndtri, stdtr, stdtrit

Floats = npt.NDArray[np.float64]

MAX_DF = 200.0
#: Degrees of freedom that tails are distinguished by; values beyond three scales count as beyond and no more, so that a
#: defect does not widen the tail that would hide it.
_DEGREES: Floats = np.array([2.2, 2.4, 2.6, 2.8, 3, 3.3, 3.6, 4, 4.5, 5, 6, 7, 8, 10, 14, 20, 40, MAX_DF])
#: Before the data every octave of degrees of freedom is as likely.
BEFORE: Floats = np.gradient(np.log(_DEGREES))
NORMAL: Floats = np.eye(len(_DEGREES))[-1]
#: Means over many pairs have no heavier tail than that of 8 degrees, unless the chips' cores have one.
OF_MEANS: Floats = np.where(_DEGREES < 8, 0.0, BEFORE)
#: Of fewer values no tail can be seen.
_FEWEST_VALUES = 100
#: With three degrees of freedom the farthest of eight healthy nodes reaches so much farther than the next in one fleet
#: of seven.
_FAR = 2.0
_EDGES = np.append(np.linspace(0.0, 3.0, 61), np.inf)
_SCALES = np.linspace(0.75, 1.35, 25)
#: Shares of noise are distinguished in steps, up to a half: what is hidden deeper no values show, and the tail would be
#: what is assumed before them.
_STEP, _MOST_NOISE = 0.02, 0.5
#: A t is a normal value of random variance: normal quantiles over which that is averaged, with their weights.
_POINTS = np.linspace(-8.0, 8.0, 33)
_WEIGHTS: Floats = np.exp(-(_POINTS**2) / 2) / np.exp(-(_POINTS**2) / 2).sum()


class _Mixture(msgspec.Struct, frozen=True, dict=True):
    """By degrees of freedom, a t plus a normal value, which has the share `noise` of the variance; together of the
    MAD-consistent scale 1."""

    noise: float

    @cached_property
    def deviations(self) -> Floats:
        """The standard deviations of the normal distributions that are mixed (degrees, point)."""
        variance = _DEGREES[:, None] / chi2_quantile(_DEGREES[:, None], ndtr(_POINTS))
        low, high = np.zeros((len(_DEGREES), 1)), np.ones((len(_DEGREES), 1))
        for _ in range(50):
            middle = (low + high) / 2
            half = _within(ndtri(0.75), np.sqrt(middle * variance + self.noise)) > 0.5
            low, high = np.where(half[:, None], middle, low), np.where(half[:, None], high, middle)
        return np.asarray(np.sqrt(low * variance + self.noise))

    @cached_property
    def log_probabilities(self) -> Floats:
        """Logarithms of the probability of |z| falling between edges, as (degrees, scale, bin), where the scale is as
        many times as wide."""
        edges = _EDGES / _SCALES[:, None]
        inside = np.stack([_within(edges[:, :, None], deviations) for deviations in self.deviations])
        return np.asarray(np.log(np.maximum(np.diff(inside, axis=2), 1e-300)))


def _within(value: Any, deviations: Floats) -> Floats:
    """How likely a smaller |z| is."""
    return np.asarray((2 * ndtr(value / deviations) - 1) @ _WEIGHTS)


@lru_cache(maxsize=64)
def mixture(step: int) -> _Mixture:
    """The mixture whose noise is so many steps of the squared scale."""
    return _Mixture(step * _STEP)


def _of(noise: float) -> _Mixture:
    return mixture(round(min(noise, _MOST_NOISE) / _STEP))


def tail_of(standard: Floats, before: Floats = BEFORE, noise: float = 0.0) -> Floats:
    """The tail of pooled values (node, term), given what is likely `before` them, by likelihood with the scale free;
    normal where the values are too few to show one, or mostly equal. `noise` is its share of their variance."""
    pooled = np.abs(standard[np.isfinite(standard)])
    if len(pooled) < _FEWEST_VALUES or np.median(pooled) == 0:
        return NORMAL
    likelihood = (_of(noise).log_probabilities @ np.histogram(pooled, _EDGES)[0]).max(axis=1)
    weights = before * np.exp(np.minimum(likelihood - likelihood[before > 0].max(), 0.0))
    return np.asarray(weights / weights.sum())


def degrees_of(tail: Floats) -> float:
    """One number of degrees of freedom for a tail, in the mean of their inverses."""
    return float(1 / (tail @ (1 / _DEGREES)))


def quantile(alpha: float, tail: Floats, most: float = MAX_DF, noise: float = 0.0) -> float:
    """What |z| is beyond with probability `alpha`, over all degrees of freedom as likely as they are, in MAD-consistent
    scales; `most` degrees of freedom are behind the scale, `noise` is its share of the variance."""
    deviations, unit = _of(noise).deviations, stdtrit(most, 0.75) / ndtri(0.75)
    low, high = 0.0, float(-ndtri(alpha / 2) * deviations.max())
    for _ in range(50):
        middle = (low + high) / 2
        beyond = float(tail @ np.maximum(2 * ndtr(-middle / deviations) @ _WEIGHTS, 2 * stdtr(most, -middle * unit)))
        low, high = (middle, high) if beyond > alpha else (low, middle)
    return high


def calmest(standard: Floats) -> Floats:
    """Values (node, term) without those of nodes that reach _FAR times as far as any other's, half of them at most:
    nodes with a defect each would otherwise hide one another."""
    half, reach = len(standard) // 2, np.max(np.abs(standard), axis=1)
    order = np.argsort(-reach, kind="stable")
    apart = reach[order[:half]] > _FAR * reach[order[1 : half + 1]]
    drop = int(np.flatnonzero(apart).max(initial=-1)) + 1
    return standard[np.sort(order[drop:])]
