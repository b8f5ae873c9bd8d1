"""How measurements were made, as a node's page says it."""

from __future__ import annotations

from nodeprint.data.job.jobs import Job, JobMeasurement
from nodeprint.report.pages import method
from nodeprint.report.pages.blocks import Text
from nodeprint.settings.measurements import kernel_files

WHY = "arrays of four times the L3s take up to 5760 MiB on NUMA node 0, where 2048 MiB may be taken"


def test_cells_without_a_figure_have_their_reason() -> None:
    """The record had it and no page did."""
    header = {"kernel": "bandwidth", "operation": "machine", "not_measured": {"2 of 4 cells": WHY}}
    measured = JobMeasurement("bandwidth-machine", header, (), (0,), {}, {}, {})
    ((name, facts),) = method.of_jobs([Job(1, None, {"bandwidth-machine": measured})])
    assert name == "bandwidth-machine" and dict(facts)["not measured"] == f"2 of 4 cells: {WHY}"
    without = JobMeasurement("x", header | {"not_measured": {}}, (), (0,), {}, {}, {})
    assert "not measured" not in dict(method.of_jobs([Job(1, None, {"x": without})])[0][1])


def test_the_test_of_a_kernel_is_true_of_each_of_its_operations() -> None:
    """Held lines, of some pairs for each closeness, were said to be measured for every pair of CPUs."""
    header = {"kernel": "coherence", "operation": "place"}
    job = Job(1, None, {"coherence-place": JobMeasurement("coherence-place", header, (), (0,), {}, {}, {})})
    (block,) = method.tested([job], ["coherence-place"])
    assert isinstance(block, Text) and str(block.text).startswith("Latency of held lines: ")
    several = {name: of.test for name, of in kernel_files().items() if len(of.measurements) > 1}
    assert "coherence" in several and not [name for name, words in several.items() if " every " in words]
