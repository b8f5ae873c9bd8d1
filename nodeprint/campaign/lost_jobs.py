"""Jobs that ended early: status.json of one that could not write its own, as it was cut off, canceled, or refused by
the scheduler."""

from __future__ import annotations

from pathlib import Path

from nodeprint import files, reading
from nodeprint.campaign import job_status, node_sheet, run_files
from nodeprint.campaign.job_status import JobStatus, RunOutcome
from nodeprint.settings import config as configuration


def settle(job: Path, reason: str) -> JobStatus:
    """Write status.json of the directory `job` (<campaign>/nodes/<node>/job<J>), as node-run does if it cannot measure.

    Measurements with complete records are done, and all others failed for `reason`; `lost` says that the job did not
    write it. Raises NodeprintError.
    """
    campaign, node = job.parents[2], job.parent.name
    sheet = {row.node: row for row in node_sheet.read_sheet(campaign / "nodes.tsv")}
    begun = job / "plan.tsv"
    plan = configuration.read_plan(reading.required(begun if begun.exists() else campaign / "plan.tsv"))
    complete = run_files.complete(job)
    why = job_status.as_message(reason)
    rows = tuple(_row(run, name, (run, name) in complete, why) for run, name in configuration.steps(plan))
    status = JobStatus(
        schema=1,
        node=node,
        host=sheet[node].host if node in sheet else node,
        job=int(job.name.removeprefix("job")),
        started=None,
        ended=None,
        runs=max(row.runs for row in plan),
        outcome=job_status.outcome_of(rows),
        cpus_allowed=0,
        cpus_expected=sheet[node].cpus if node in sheet else 0,
        simulated=False,
        lost=True,
        measurements=rows,
    )
    for folder in (job.parent, job):
        files.own_folder(folder)
    job_status.write(job, status)
    return status


def _row(run: int, name: str, done: bool, reason: str) -> RunOutcome:
    """What came of a run of a measurement."""
    return RunOutcome(
        name=name,
        run=run,
        outcome="done" if done else "failed",
        exit_code=0 if done else -1,
        seconds=0.0,
        pinned_by="native",
        message="" if done else reason,
    )
