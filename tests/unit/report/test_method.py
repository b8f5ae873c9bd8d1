"""How measurements were made, as a node's page says it."""

from __future__ import annotations

from nodeprint.data.job.jobs import Job, JobMeasurement
from nodeprint.report.pages import method

WHY = "arrays of four times the L3s take up to 5760 MiB on NUMA node 0, where 2048 MiB may be taken"


def test_cells_without_a_figure_have_their_reason() -> None:
    """The record had it and no page did."""
    header = {"kernel": "bandwidth", "operation": "machine", "not_measured": {"2 of 4 cells": WHY}}
    measured = JobMeasurement("bandwidth-machine", header, (), (0,), {}, {}, {})
    ((name, facts),) = method.of_jobs([Job(1, None, {"bandwidth-machine": measured})])
    assert name == "bandwidth-machine" and dict(facts)["not measured"] == f"2 of 4 cells: {WHY}"
    without = JobMeasurement("x", header | {"not_measured": {}}, (), (0,), {}, {}, {})
    assert "not measured" not in dict(method.of_jobs([Job(1, None, {"x": without})])[0][1])
