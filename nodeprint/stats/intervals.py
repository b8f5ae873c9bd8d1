"""Intervals of a difference: from the components of its error to degrees of freedom and half widths."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from scipy import special

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

#: Two one-sided tests at 5% each: a 90% interval inside the tolerance shows equivalence (Schuirmann 1987).
EQUIVALENCE = 0.05


def inside(difference: Floats, half: Floats, tolerance: Floats | float) -> Bools:
    """Whether an interval lies within the tolerance on both sides. For a 90% interval, this shows equivalence."""
    return np.asarray(np.abs(difference) + half <= tolerance)


def outside(difference: Floats, half: Floats, tolerance: Floats | float) -> Bools:
    """Whether the whole interval lies beyond the tolerance: a difference between nodes or over time."""
    return np.asarray(np.abs(difference) - half > tolerance)


def combined(components: Sequence[tuple[Floats, Floats | float]]) -> tuple[Floats, Floats]:
    """The standard error and degrees of freedom of a sum of independent components (variance, degrees of freedom).

    The degrees of freedom of a sum of variance estimates follow Satterthwaite 1946.
    """
    total = np.asarray(sum(variance for variance, _ in components), dtype=np.float64)
    with np.errstate(invalid="ignore", divide="ignore"):
        spread = np.asarray(sum(variance**2 / degrees for variance, degrees in components), dtype=np.float64)
        degrees = np.where(spread > 0, total**2 / spread, np.inf)
    return np.sqrt(total), np.maximum(degrees, 1.0)


def half_width(error: Floats, degrees: Floats, tail: Floats | float) -> Floats:
    """Half the width of the interval that leaves `tail` outside at each end, by Student's t."""
    return quantile(degrees, tail) * error


def quantile(degrees: Floats, tail: Floats | float) -> Floats:
    """The number of standard errors beyond which Student's t leaves `tail` at one end.

    A fleet's table has few different degrees of freedom; each is computed once.
    """
    degrees, tail = np.broadcast_arrays(np.minimum(degrees, 1e6), tail)
    out = np.full(degrees.shape, np.nan)
    for probability in np.unique(tail):
        same_tail = tail == probability
        different, place = np.unique(degrees[same_tail], return_inverse=True)
        out[same_tail] = -special.stdtrit(different, probability)[place]
    return out
