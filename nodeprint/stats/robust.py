"""Medians and robust standard deviations of values of which some were not measured (NaN)."""

from __future__ import annotations

import warnings

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

#: From a median absolute deviation to the standard deviation of a normal distribution.
_MAD = 1.4826


def row_medians(rows: npt.NDArray[np.floating]) -> Floats:
    """The median of what was measured in each row; NaN where nothing was."""
    with warnings.catch_warnings(action="ignore", category=RuntimeWarning):  # a row without any
        return np.asarray(np.nanmedian(rows, axis=1), dtype=np.float64)


def robust_sd(differences: Floats) -> float:
    """The standard deviation of differences about zero, by their median absolute value; NaN where there is none."""
    return _MAD * float(row_medians(np.abs(differences).reshape(1, -1))[0])
