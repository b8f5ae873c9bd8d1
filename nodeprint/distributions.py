"""Distributions and the robust standard deviation that verdicts and maps use.

scipy.special is loaded with the first value that is asked for: it takes a fifth of a second to import, and pages and
terminal need none of it.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from nodeprint.order_statistics import finite_median

#: From a median absolute deviation to the standard deviation of a normal distribution.
_MAD = 1.4826


@cache
def _special() -> Any:
    from scipy import special  # noqa: PLC0415

    return special


def ndtr(value: Any) -> Any:
    """The share of the normal distribution below `value`."""
    return _special().ndtr(value)


def chi2_quantile(degrees: Any, share: Any) -> Any:
    """The quantile of chi-squared of `share`."""
    return 2 * _special().gammaincinv(degrees / 2, share)


def ndtri(share: Any) -> Any:
    """The normal quantile of `share`."""
    return _special().ndtri(share)


def stdtr(degrees: Any, value: Any) -> Any:
    """The share of Student's distribution below `value`."""
    return _special().stdtr(degrees, value)


def stdtrit(degrees: Any, share: Any) -> Any:
    """Student's quantile of `share`."""
    return _special().stdtrit(degrees, share)


def robust_sd(values: npt.NDArray[Any], middle: float = 0.0) -> float:
    """The standard deviation of `values` about `middle`, by their median absolute deviation, without NaN values."""
    return _MAD * finite_median(np.abs(values - middle))


def robust_sds(rows: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    """That of each row about 0; NaN of a row without values."""
    sizes = np.abs(rows)
    middle = np.median(sizes, axis=1)
    for row in np.flatnonzero(np.isnan(middle) & np.isfinite(sizes).any(axis=1)):
        middle[row] = np.nanmedian(sizes[row])
    return np.asarray(_MAD * middle, dtype=np.float64)
