"""A node's matrix in a few lines of text."""

from __future__ import annotations

import numpy as np

from nodeprint.report.painted import Square, painted


def test_missing_values_are_dots() -> None:
    values = np.array([[np.nan, 20.0, 300.0], [20.0, np.nan, np.nan], [300.0, np.nan, np.nan]])
    square = Square("m", ("0", "1", "2"), values)
    shown = painted(square, 80).plain.splitlines()
    assert shown[2].split() == ["0", ".", "20", "300"] and shown[3].split() == ["1", "20", ".", "."]
