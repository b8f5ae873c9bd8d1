"""Whether a median describes its values, or is that of a mixture of several kinds and describes none."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

#: Medians of components that differ by this factor are of different kinds, and the median of all is of none.
MIXED = 1.1
#: A median that fewer than this share of the values are near, within so much of it, is that of a mixture.
_FEW, _NEAR = 1 / 3, 0.1


def few_near(values: npt.NDArray[np.floating], median: float) -> bool:
    """Whether few of the values lie within 10% of their median, which is then that of a mixture; NaN is ignored."""
    finite = values[np.isfinite(values)]
    return bool(finite.size) and float(np.mean(np.abs(finite - median) <= _NEAR * median)) < _FEW
