"""How far the runs of a job agree."""

from __future__ import annotations

import numpy as np
import pytest

from nodeprint.data.job import run_medians
from nodeprint.data.job.jobs import JobMeasurement


def test_runs_have_medians_over_points_and_a_spread() -> None:
    runs = np.array([[[10.0, 30.0], [10.0, np.nan]], [[11.0, 33.0], [11.0, 33.0]]])
    columns = {"latency_ns": runs, "flags": np.zeros(runs.shape, dtype=np.uint8)}
    columns["flags"][0, 0, 0] = 1
    header = {"kernel": "chase", "operation": "curve", "cells": {"values": {"latency_ns": "ns"}}}
    measured = JobMeasurement("chase-levels", header, ({}, {}), (0, 1), {"size_bytes": np.array([4, 8])}, {}, columns)
    values = run_medians.values_of_runs(measured)
    assert [run_medians.median_over_points(run) for run in values] == [20.0, 22.0]
    assert run_medians.unit_of(measured) == "ns" and run_medians.flagged_share(measured) == 1 / 8
    assert run_medians.between_runs(values) == pytest.approx(2**0.5 * 0.0476, rel=1e-2)  # one run is 10% above
    assert run_medians.between_runs(values[:1]) is None


def test_a_measurement_that_is_not_compared_has_no_values() -> None:
    measured = JobMeasurement("unknown", {}, ({},), (0,), {}, {}, {})
    values = run_medians.values_of_runs(measured)
    assert values.shape == (1, 0) and run_medians.unit_of(measured) == ""
    assert run_medians.median_over_points(values[0]) is None
