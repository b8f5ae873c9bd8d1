"""Findings on curves that are made up, so that what is true is known."""

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeprint.report import readings
from nodeprint.stats import memory_curves
from nodeprint.stats.memory_curves import MedianInterval

KIB, MIB = 2**10, 2**20
SIZES = sorted({int(half * 2**octave) for octave in range(14, 31) for half in (1, 1.5)})
TOLD = {"L1": 32 * KIB, "L2": MIB, "L3": 32 * MIB}


def sentences(caches: pd.DataFrame) -> list[str]:
    return [readings.cache_sentence(str(row.Index), row) for row in caches.itertuples()]


def staircase(steps: dict[int, float], top: float, noise: float = 0.0, seed: int = 0) -> list[float]:
    """Latencies at SIZES: that of the first step whose size holds the working set, with multiplicative noise."""
    spread = np.random.default_rng(seed).normal(0, noise, len(SIZES))
    plain = [next((ns for size, ns in steps.items() if working <= size), top) for working in SIZES]
    return [float(ns * math.exp(e)) for ns, e in zip(plain, spread, strict=True)]


@pytest.mark.parametrize("noise", [0.0, 0.01, 0.02])
def test_plateaus_of_a_staircase(noise: float) -> None:
    found = memory_curves.plateaus(SIZES, staircase({32 * KIB: 1.5, MIB: 5.0, 32 * MIB: 20.0}, 110.0, noise))
    assert found["first_bytes"].tolist() == [16 * KIB, 48 * KIB, MIB * 3 // 2, 48 * MIB]
    assert found["last_bytes"].tolist() == [32 * KIB, MIB, 32 * MIB, SIZES[-1]]
    np.testing.assert_allclose(found["latency_ns"], [1.5, 5, 20, 110], rtol=2 * noise + 1e-9)


def test_a_slope_is_no_plateau() -> None:
    assert memory_curves.plateaus(SIZES, [2.0**i for i in range(len(SIZES))]).empty


def test_levels_as_told() -> None:
    found = memory_curves.caches(SIZES, staircase({32 * KIB: 1.5, MIB: 5.0, 32 * MIB: 20.0}, 110.0, 0.01), TOLD)
    assert found["effective_bytes"].to_dict() == {"L1": 32 * KIB, "L2": MIB, "L3": 32 * MIB}
    assert not any("effective size" in words for words in sentences(found))


def test_an_l3_that_is_fiction_gives_its_effective_size() -> None:
    """As in a virtual machine: a large cache is told and a small part of it is one's own."""
    told = TOLD | {"L3": 256 * MIB}
    found = memory_curves.caches(SIZES, staircase({32 * KIB: 1.5, MIB: 5.0, 12 * MIB: 50.0}, 130.0, 0.01), told)
    assert found["effective_bytes"].loc["L3"] == 12 * MIB
    l1, l2, l3 = sentences(found)
    assert "effective size" not in l1 + l2
    assert "effective size 12 MiB" in l3 and "256 MiB" in l3


def test_a_cache_that_fills_up_in_steps_is_one_cache() -> None:
    steps = {32 * KIB: 1.5, 256 * KIB: 5.0, MIB: 6.5, 32 * MIB: 20.0}
    found = memory_curves.caches(SIZES, staircase(steps, 110.0), TOLD | {"L2": 2 * MIB})
    assert found.loc["L2"].to_dict() == {"reported_bytes": 2 * MIB, "effective_bytes": MIB, "latency_ns": 5.0}
    assert "effective size" not in sentences(found)[1]


def test_steps_further_apart_than_one_cache_are_two() -> None:
    """1.5 times is the farthest that plateaus of one cache are apart."""
    for step_ns, expected in ((7.5, MIB), (7.6, 256 * KIB)):
        steps = {32 * KIB: 1.5, 256 * KIB: 5.0, MIB: step_ns, 32 * MIB: 40.0}
        found = memory_curves.caches(SIZES, staircase(steps, 110.0), TOLD | {"L2": 2 * MIB})
        assert found["effective_bytes"].loc["L2"] == expected


def test_a_plateau_from_three_quarters_of_the_cache_below_on_is_of_the_next() -> None:
    steps = {32 * KIB: 1.5, MIB: 5.0, 32 * MIB: 20.0}
    found = memory_curves.caches(SIZES, staircase(steps, 110.0), TOLD | {"L1": 64 * KIB})
    assert found["effective_bytes"].tolist()[:2] == [32 * KIB, MIB]
    assert found["latency_ns"].loc["L2"] == 5.0


def test_a_plateau_is_three_sizes_within_15_percent() -> None:
    for latencies, count in (([20.0, 21.0, 22.9], 1), ([20.0, 21.0, 23.1], 0), ([20.0, 20.0], 0)):
        assert len(memory_curves.plateaus([KIB, 2 * KIB, 4 * KIB][: len(latencies)], latencies)) == count


def test_four_fifths_of_the_slowest_is_memory() -> None:
    for cache_ns, reached in ((79.0, True), (80.0, False)):
        found = memory_curves.caches(SIZES, staircase({32 * MIB: cache_ns}, 100.0), {"L1": 32 * MIB})
        assert (found["effective_bytes"].tolist() != [0]) == reached


def test_a_knee_is_where_latency_is_half_as_much_again() -> None:
    assert memory_curves.knee([1.0, 2.0], [100.0, 150.0], 100.0) == (2.0, 150.0)
    assert memory_curves.knee([1.0, 2.0], [100.0, 149.9], 100.0) is None


def test_no_l3_at_all_is_said_and_memory_is_not_taken_for_it() -> None:
    found = memory_curves.caches(SIZES, staircase({32 * KIB: 1.5, MIB: 5.0}, 110.0, 0.01), TOLD)
    assert found["effective_bytes"].loc["L3"] == 0
    assert "no plateau" in sentences(found)[-1]


def test_a_cache_that_is_not_told_is_left_out() -> None:
    found = memory_curves.caches(SIZES, staircase({32 * KIB: 1.5}, 110.0), TOLD | {"L2": 0})
    assert list(found.index) == ["L1", "L3"]


def test_knee_is_the_first_point_by_rate() -> None:
    found = memory_curves.knee([40e9, 10e9, 20e9, 30e9], [400.0, 101.0, 120.0, 150.0], 100.0)
    assert found == (30e9, 150.0)


@given(st.lists(st.floats(100, 149.9), min_size=1, max_size=20))
def test_below_the_threshold_there_is_never_a_knee(latencies: list[float]) -> None:
    assert memory_curves.knee([float(i) for i in range(len(latencies))], latencies, 100.0) is None


def trials(rates: list[float], noise: float, seed: int = 1) -> dict[int, list[float]]:
    generator = np.random.default_rng(seed)
    return {i + 1: list(rate * generator.normal(1, noise, 12)) for i, rate in enumerate(rates)}


def test_more_pairs_are_slower_from_the_first_that_is() -> None:
    assert memory_curves.slower_from(trials([10, 20, 30, 40, 30, 25, 20, 18], 0.01)) == 5
    assert memory_curves.slower_from(trials([10, 20, 30, 40], 0.01)) is None
    assert memory_curves.slower_from(trials([40, 40, 40, 40], 0.05)) is None
    assert memory_curves.slower_from({}) is None


def test_a_dip_that_recovers_is_no_decline() -> None:
    assert memory_curves.slower_from(trials([10, 40, 20, 40, 40], 0.01)) is None


def test_a_decline_within_noise_is_none() -> None:
    found = [memory_curves.slower_from(trials([40.0, 39.9, 39.8], 0.05, seed)) for seed in range(100)]
    assert sum(number is not None for number in found) <= 5


@given(st.integers(6, 60), st.integers(0, 2**32 - 1))
def test_the_interval_holds_its_median(count: int, seed: int) -> None:
    values = np.random.default_rng(seed).normal(5, 1, count)
    interval = memory_curves.median_interval(values)
    assert interval.low <= interval.middle <= interval.high
    assert interval.low in values and interval.high in values


def test_the_interval_covers_the_truth_as_often_as_it_says() -> None:
    for count in (6, 9, 20, 31):
        generator = np.random.default_rng(count)
        held = sum(memory_curves.median_interval(generator.lognormal(0, 1, count)).holds(1.0) for _ in range(2000))
        assert held / 2000 >= 0.94
    assert memory_curves.median_interval([1.0, math.nan, 3.0]).count == 2
    with pytest.raises(ValueError):
        memory_curves.median_interval([math.nan])


def test_touch_on_one_node_says_so() -> None:
    fine = readings.touch_sentence(MedianInterval(1.0, 0.99, 1.01, 31), 1)
    assert "one NUMA node" in fine and "as expected" in fine
    assert "disturbed" in readings.touch_sentence(MedianInterval(2.3, 2.1, 2.5, 31), 1)
    assert "1.00 (1.00 to 1.00), 1, as expected" in readings.touch_sentence(MedianInterval(0.998, 0.996, 0.9996, 31), 1)
    assert "0.99 (0.98 to 0.99), not 1" in readings.touch_sentence(MedianInterval(0.987, 0.984, 0.991, 31), 1)
    assert "1.50" in readings.touch_sentence(MedianInterval(1.5, 1.45, 1.56, 31), 2)
