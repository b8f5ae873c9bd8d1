"""How measurements were made, as a node's page says it."""

from __future__ import annotations

from nodeprint.data.store.packed_jobs import JobMeasured, PackedJob
from nodeprint.report.pages import method

WHY = "arrays of four times the L3s take up to 5760 MiB on NUMA node 0, where 2048 MiB may be taken"


def test_cells_without_a_figure_have_their_reason() -> None:
    """The record had it and no page did."""
    header = {"kernel": "bandwidth", "operation": "machine", "not_measured": {"2 of 4 cells": WHY}}
    measured = JobMeasured(header, (), 1, "B/s", None, 0.0, of_pairs=False)
    ((name, facts),) = method.of_jobs([PackedJob(1, {"bandwidth-machine": measured})])
    assert name == "bandwidth-machine" and dict(facts)["not measured"] == f"2 of 4 cells: {WHY}"
    without = JobMeasured(header | {"not_measured": {}}, (), 1, "B/s", None, 0.0, of_pairs=False)
    assert "not measured" not in dict(method.of_jobs([PackedJob(1, {"x": without})])[0][1])
