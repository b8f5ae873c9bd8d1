"""Rows that are distinct, against numpy's own search."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from nodeprint.stats.distinct import distinct


@given(arrays(np.int64, array_shapes(min_dims=2, max_dims=2, max_side=12), elements=st.integers(-40, 40)))
def test_kinds_are_those_of_numpy(rows: np.ndarray) -> None:
    one_of_kind, kind = distinct(rows)
    expected, inverse = np.unique(rows, axis=0, return_inverse=True)
    np.testing.assert_array_equal(rows[one_of_kind], expected)
    np.testing.assert_array_equal(kind, inverse.ravel())


@pytest.mark.parametrize("wide", [1, 16, 17, 10**12])
def test_numbers_may_be_far_apart(wide: int) -> None:
    one_of_kind, kind = distinct(np.array([[wide, 0], [0, wide], [wide, 0]]))
    assert kind.tolist() == [1, 0, 1] and one_of_kind.tolist() == [1, 2]


def test_no_row_is_of_no_kind() -> None:
    one_of_kind, kind = distinct(np.zeros((0, 3), dtype=np.int64))
    assert (len(one_of_kind), len(kind)) == (0, 0)
