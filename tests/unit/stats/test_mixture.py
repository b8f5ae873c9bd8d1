"""A median of two kinds of values is that of neither."""

import numpy as np

from nodeprint.stats.mixture import few_near


def test_few_are_near_the_median_of_two_kinds() -> None:
    assert few_near(np.array([80.0, 120.0]), 100.0)
    assert few_near(np.array([50.0, 50.0, np.nan, 90.0, 200.0, 200.0]), 90.0)
    assert not few_near(np.array([99.0, 100.0, 200.0]), 100.0)
    assert not few_near(np.array([np.nan]), np.nan)
