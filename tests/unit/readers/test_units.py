"""Units that differ by a factor are one; which side is better follows from them."""

from __future__ import annotations

import pytest

from nodeprint.readers import units


@pytest.mark.parametrize(
    ("unit", "into", "factor"),
    [
        ("GB/s", "MB/s", 1e3),
        ("MiB/s", "MB/s", 1.048576),
        ("GBps", "GB/s", 1.0),
        ("us", "ns", 1e3),
        ("MHz", "GHz", 1e-3),
        ("TFLOPS", "Gflop/s", 1e3),
        ("events/s", "1/s", 1.0),
    ],
)
def test_units_of_one_kind(unit: str, into: str, factor: float) -> None:
    assert units.factor(unit, into) == pytest.approx(factor)


@pytest.mark.parametrize(("unit", "into"), [("MB/s", "Mb/s"), ("MB/s", "MHz"), ("furlong", "m"), ("", "MB/s")])
def test_units_of_two_kinds(unit: str, into: str) -> None:
    assert units.factor(unit, into) is None


def test_lower_is_better_of_times_alone() -> None:
    assert units.better("osu_latency", "us") == "lower"
    assert units.better("ping latency", "") == "lower"
    assert units.better("triad", "MB/s") == "higher"
    assert units.better("score", "") is None
