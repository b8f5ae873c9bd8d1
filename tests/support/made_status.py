"""Outcomes of jobs that nobody ran, written as everything writes them."""

from pathlib import Path
from typing import Any

from nodeprint.campaign import job_status
from nodeprint.campaign.job_status import JobStatus, Outcome, RunOutcome


def run_outcome(name: str = "coherence-cas", run: int = 1, **changes: Any) -> RunOutcome:
    """A run that was done, but for `changes`."""
    usual: dict[str, Any] = {"outcome": "done", "exit_code": 0, "seconds": 1.0, "pinned_by": "native", "message": ""}
    return RunOutcome(name=name, run=run, **usual | changes)


def job_outcome(outcome: Outcome = "complete", *measurements: RunOutcome, **changes: Any) -> JobStatus:
    """The outcome of a node's first job, but for `changes`."""
    usual: dict[str, Any] = {
        "schema": 1,
        "node": "a",
        "host": "a",
        "job": 1,
        "started": None,
        "ended": None,
        "runs": 2,
        "cpus_allowed": 2,
        "cpus_expected": 2,
        "simulated": False,
    }
    return JobStatus(**usual | {"outcome": outcome, "measurements": measurements} | changes)


def put(job: Path, outcome: Outcome = "complete", *measurements: RunOutcome, **changes: Any) -> None:
    """Write the outcome of the job in a folder."""
    job_status.write(job, job_outcome(outcome, *measurements, **changes))
