"""Medians and robust standard deviations of values with gaps (NaN)."""

from __future__ import annotations

import warnings

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

#: From a median absolute deviation to the standard deviation of a normal distribution.
_MAD = 1.4826


def row_medians(rows: npt.NDArray[np.floating]) -> Floats:
    """The median of the measured values in each row; NaN if there are none."""
    with warnings.catch_warnings(action="ignore", category=RuntimeWarning):  # a row without any
        return np.asarray(np.nanmedian(rows, axis=1), dtype=np.float64)


def finite_median(values: npt.NDArray[np.floating]) -> float:
    """The median of the finite values, NaN if there are none."""
    finite = values[np.isfinite(values)]
    return float(np.median(finite)) if finite.size else float("nan")


def robust_sd(differences: Floats) -> float:
    """The standard deviation of differences about zero, by their median absolute value; NaN if there are none."""
    return _MAD * float(row_medians(np.abs(differences).reshape(1, -1))[0])


def median_of_passes(values: npt.NDArray[np.floating]) -> npt.NDArray[np.floating]:
    """The median over axis 1 of the measured values (run, pass, point); NaN if there are none."""
    ordered = np.sort(values, axis=1)  # NaN last
    finite = np.isfinite(ordered).sum(axis=1, keepdims=True)
    # of none the last and the first, which are NaN
    low, high = (np.take_along_axis(ordered, at, axis=1)[:, 0] for at in ((finite - 1) // 2, finite // 2))
    return np.asarray((low + high) / 2)
