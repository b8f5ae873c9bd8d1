"""Outputs of a site's own programs: lines with units, JSON with units beside or within the names, and other text."""

from __future__ import annotations

import json

import pytest

from nodeprint.readers import registry, site_metrics, site_values


def values(text: str) -> list[tuple[str, float, str, int]]:
    return [(value.metric, value.value, value.unit, value.line) for value in site_metrics.read(text.split("\n"))]


def test_lines_with_a_unit_are_results_and_others_are_not() -> None:
    text = "probe 3.1\npid: 4711\nhost: cn1\nRead bandwidth = 12.5 GB/s\nlatency: 1.72e0 us\nidle : 98 %\nerrors: 0 1/s"
    assert values(text) == [("read-bandwidth", 12.5, "GB/s", 4), ("latency", 1.72, "us", 5), ("idle", 98.0, "%", 6)]


@pytest.mark.parametrize("before", ["", "a banner: 3 s\n"])
def test_json_has_its_units_in_the_names_or_beside_the_values(before: str) -> None:
    content = {
        "bandwidth_GBps": 12.5,
        "latency_us": 2,
        "score": 7.5,
        "host": "cn01",
        "ok": True,
        "gpu0": {"rate": {"value": 3.5, "unit": "TFLOP/s"}, "clock_MHz": 1980},
    }
    assert values(before + json.dumps(content)) == [
        ("bandwidth", 12.5, "GBps", 0),
        ("latency", 2.0, "us", 0),
        ("score", 7.5, "", 0),
        ("gpu0-rate", 3.5, "TFLOP/s", 0),
        ("gpu0-clock", 1980.0, "MHz", 0),
    ]


def test_json_over_several_lines_is_read_and_cut_json_is_not() -> None:
    text = json.dumps({"time_s": 1.5}, indent=1)
    assert values(text) == [("time", 1.5, "s", 0)]
    assert values(text[:-3]) == values("[1, 2]") == values("") == []


def test_it_is_named_by_a_measurement_and_claims_no_other_output() -> None:
    assert site_metrics.NAME in site_values.reader_names() and site_metrics.NAME not in registry.readers("values")
