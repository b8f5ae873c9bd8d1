"""A node whose only job was cut off is not measured; one that did what it could is."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nodeprint.campaign import lost_jobs, node_sheet
from nodeprint.data import nodes


@pytest.fixture
def partial(campaign: Callable[..., Path]) -> tuple[Path, Path, dict[str, Any]]:
    """A campaign of one node whose second run failed: its folder, the job's, and its status.json."""
    folder = campaign("a")
    job = folder / "nodes/a/job1"
    status = json.loads((job / "status.json").read_text())
    status["measurements"][1] |= {"outcome": "failed", "exit_code": -1, "message": "no kernel coherence"}
    return folder, job, status | {"outcome": "partial"}


def state(folder: Path) -> nodes.NodeState:
    (row,) = node_sheet.read_sheet(folder / "nodes.tsv")
    node, _ = nodes.read(folder, row)
    return node


def test_a_kernel_that_is_missing_costs_its_measurement_alone(partial: tuple[Path, Path, dict[str, Any]]) -> None:
    folder, job, status = partial
    (job / "status.json").write_text(json.dumps(status))
    assert state(folder).state == "measured"


def test_a_job_that_was_lost_is_not_measured_and_says_why(partial: tuple[Path, Path, dict[str, Any]]) -> None:
    folder, job, _ = partial
    lost_jobs.settle(job, "Slurm job 7: CANCELLED, it was cancelled")
    node = state(folder)
    assert node.state == "not measured" and "Slurm job 7: CANCELLED" in node.reason


def test_a_job_without_an_outcome_is_not_measured(partial: tuple[Path, Path, dict[str, Any]]) -> None:
    folder, job, _ = partial
    (job / "status.json").unlink()
    assert state(folder).state == "not measured"


def test_a_job_that_completed_no_measurement_is_not_measured(partial: tuple[Path, Path, dict[str, Any]]) -> None:
    """A kernel that was killed leaves the begin of its records."""
    folder, job, status = partial
    (job / "status.json").write_text(json.dumps(status | {"outcome": "failed"}))
    node = state(folder)
    assert node.state == "not measured" and "no kernel coherence" in node.reason
