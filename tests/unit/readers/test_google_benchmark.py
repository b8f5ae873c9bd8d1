"""Google Benchmark's JSON."""

from __future__ import annotations

from pathlib import Path

import pytest

from nodeprint.errors import NodeprintError
from tests.support.tool_output import of_text, values


def _json(*benchmarks: str) -> str:
    return (
        '{\n"context": {"host_name": "cn1", "library_build_type": "release"},\n"benchmarks": ['
        + ",".join(benchmarks)
        + "]}"
    )


def test_repetitions_are_one_median_and_aggregates_count_alone(tmp_path: Path) -> None:
    of_run = [f'{{"name": "copy", "run_name": "copy", "real_time": {time}, "time_unit": "us"}}' for time in (3, 1, 8)]
    median = (
        '{"name": "copy_median", "run_name": "copy", "aggregate_name": "median", "real_time": 5, "time_unit": "us"}'
    )
    assert values(of_text(tmp_path, _json(*of_run, median))) == {("copy",): 3.0}
    assert values(of_text(tmp_path, _json(median))) == {("copy",): 5.0}


def test_an_aggregate_without_a_name_is_no_repetition(tmp_path: Path) -> None:
    run, aggregate = (f'{{"name": "copy", "run_type": "{of}", "real_time": 8}}' for of in ("iteration", "aggregate"))
    assert values(of_text(tmp_path, _json(run, aggregate.replace("8", "4")))) == {("copy",): 8.0}


def test_a_benchmark_that_failed_has_no_time(tmp_path: Path) -> None:
    good = '{"name": "add", "real_time": 2, "time_unit": "ns", "items_per_second": 7}'
    failed = '{"name": "copy", "error_occurred": true, "real_time": 0}'
    assert values(of_text(tmp_path, _json(good, failed))) == {("add",): 2.0, ("add items_per_second",): 7.0}
    with pytest.raises(NodeprintError):
        of_text(tmp_path, _json(failed))
