"""Medians and quantiles by sorting are those of numpy."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from nodeprint.stats import order_statistics as by_sorting

FINITE = st.floats(-1e6, 1e6)
GAPS = st.one_of(FINITE, st.just(float("nan")))


@given(arrays(float, st.integers(1, 40), elements=FINITE), st.floats(0, 1))
def test_quantiles_are_linear_between_neighbours(values: np.ndarray, share: float) -> None:  # type: ignore[type-arg]
    np.testing.assert_allclose(by_sorting.quantile(values, share), np.quantile(values, share), atol=1e-6)


@given(arrays(float, st.tuples(st.integers(1, 7), st.integers(1, 7)), elements=GAPS))
def test_medians_of_rows_leave_out_what_was_not_measured(values: np.ndarray) -> None:  # type: ignore[type-arg]
    for row, found in zip(values, by_sorting.row_medians(values), strict=True):
        known = row[~np.isnan(row)]
        np.testing.assert_allclose(found, np.median(known) if known.size else np.nan, atol=1e-6)
