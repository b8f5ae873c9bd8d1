"""The nodes of a campaign: which were measured, which were not, and why."""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from nodeprint import addons, reading
from nodeprint.campaign import followed, job_status, preparation
from nodeprint.campaign.gathered import NodeState
from nodeprint.campaign.job_status import JobStatus
from nodeprint.campaign.node_sheet import Node, short
from nodeprint.data.job.jobs import Job
from nodeprint.data.job.whole_runs import whole_runs
from nodeprint.data.store import store
from nodeprint.errors import printable
from nodeprint.settings.config_file import site_measurements
from nodeprint.settings.texts import say

#: Of a log the last lines are shown; its end has them.
_LOG_LINES, _LOG_BYTES = 8, 1 << 16
#: Clocks that differ by less are no matter: outcomes are seen late on shared folders.
_OFF_MINUTES = 5


def read(folder: Path, node: Node) -> tuple[NodeState, list[Job]]:
    """What came of a node of the campaign in `folder`, and its jobs (`store.jobs_of`), without runs that were cut off
    or are copies of others."""
    place = folder / "nodes" / node.node
    measured = _jobs(place) if place.is_dir() else []
    return _state(folder, node, measured), measured


def jobs_of(folder: Path, node: str) -> list[Job]:
    """The same jobs of a node of the campaign in `folder`, also if its records are gone."""
    return _jobs(folder / "nodes" / node)


def _jobs(node_dir: Path) -> list[Job]:
    jobs = store.jobs_of(node_dir)
    if any(job.outputs for job in jobs):
        jobs = addons.load_one(addons.SITE_VALUES, "read")(jobs, site_measurements(node_dir.parent.parent))
    return whole_runs(jobs)


def _state(folder: Path, node: Node, measured: Sequence[Job]) -> NodeState:
    node_dir = folder / "nodes" / node.node
    if not node_dir.is_dir():
        return NodeState(node.node, node.host, "not measured", _not_begun(node))
    hosts = sorted({host for job in measured for host in job.hosts})
    wrong = [host for host in hosts if short(host) != short(node.host)]
    if wrong:
        reason = say("unmeasured", "other_host", host=printable(wrong[0], 80), own=node.host)
        return NodeState(node.node, node.host, "refused", reason, _log_tail(preparation.job_folder(folder, node)))
    current = next((job for job in measured if job.number == node.job), None)
    status = current.status if current else None
    failed = [
        printable(f"{run.name}, job{node.job}/run{run.run}: {run.outcome}, {run.message}", 300)
        for run in (status.untaken if status is not None else ())
    ]
    lost = status.reason if status is not None and status.lost else ""
    problems = (*(problem.text for job in measured for problem in job.problems), *failed)
    if current is not None and current.wrong:
        return NodeState(node.node, node.host, "wrong", current.wrong, problems=problems)
    if (garbled := _garbled_outcome(current)) and current and current.measured:
        return NodeState(node.node, node.host, "measured", garbled, problems=problems)
    if any(job.measured for job in measured) and not _is_cut(node, measured):
        tail = _log_tail(preparation.job_folder(folder, node)) if problems else ()
        return NodeState(node.node, node.host, "measured", _unusable(current), problems=problems, log_tail=tail)
    reasons = (lost, *failed, *problems, say("unmeasured", "before_all"))
    reason = next(text for text in reasons if text)
    if not node.measure:
        reason = _not_begun(node)
    return NodeState(
        node.node, node.host, "not measured", reason, _log_tail(preparation.job_folder(folder, node)), problems
    )


def clock_is_off(job_dir: Path, status: JobStatus) -> str:
    """Return in a sentence how far a node's clock is from the login node's, if that is certain. A job begins after its
    submission and ends before its outcome is seen. Empty if neither is violated by five minutes. Minutes are multiples
    of five, so nodes with the same offset share a sentence."""
    noted = followed.read(job_dir)
    behind = _minutes(status.started, noted.submitted)
    ahead = _minutes(noted.ended, status.ended)
    for minutes, word in ((ahead, "ahead of"), (behind, "behind")):
        if minutes >= _OFF_MINUTES:
            at_least = minutes // _OFF_MINUTES * _OFF_MINUTES
            return say("unmeasured", "clock", minutes=f"{at_least:.0f}", side=word)
    return ""


def _minutes(earlier: object, later: object) -> float:
    """Minutes from one moment to another (ISO 8601); 0 where one is not known."""
    try:
        return (datetime.fromisoformat(str(later)) - datetime.fromisoformat(str(earlier))).total_seconds() / 60
    except (ValueError, TypeError):
        return 0.0


def _unusable(job: Job | None) -> str:
    """Return the runs that a job lists as done but that have no record that counts. The reason is that it is malformed,
    cut off, a copy, or missing. Empty if there are none."""
    if job is None:
        return ""
    used = {(of_name.of_measurement, run["run"]) for of_name in job.measured.values() for run in of_name.runs}
    unused = [
        run
        for run in job.rows
        if run.outcome == "done"
        and run.name not in {**job.not_applicable, **job.unread}  # another job would print no other output
        and (run.name, run.run) not in used
    ]
    if not unused:
        return ""
    first = unused[0]
    why = next(
        (problem.text for problem in job.problems if problem.is_of(first.name, first.run)),
        printable(f"{first.name}, job{job.number}/run{first.run}", 200),
    )
    return say("unmeasured", "unusable", count=len(unused), records=len(job.rows), job=f"job{job.number}", why=why)


def _garbled_outcome(job: Job | None) -> str:
    """Why the outcome of a job cannot be read; empty where it has none, or one that can."""
    return next((problem.text for problem in job.problems if problem.is_of(job_status.NAME, 0)), "") if job else ""


def _is_cut(node: Node, jobs: Sequence[Job]) -> bool:
    """Whether the node's only job with records is incomplete. It was cut off, still runs, or completed none of its
    measurements, for example because a kernel was killed."""
    with_records = [job for job in jobs if job.measured]
    if [job.number for job in with_records] != [node.job]:
        return False
    status = with_records[0].status
    return status is None or status.outcome == "failed" or status.ended_early


def _not_begun(node: Node) -> str:
    if node.measure:
        return "its job never began to measure"
    return ": ".join(text for text in (node.state or "left out by the sheet", printable(node.reason)) if text)


def _log_tail(job_dir: Path) -> tuple[str, ...]:
    """The last lines of node-run's log, or of its launch where it never began."""
    for name in ("node-run.log", "launch.log"):
        try:
            with reading.opened(job_dir / name) as log:
                log.seek(max(0, log.seek(0, os.SEEK_END) - _LOG_BYTES))
                lines = log.read(_LOG_BYTES).decode(errors="replace").splitlines()
                return tuple(printable(line) for line in lines[-_LOG_LINES:])
        except OSError:
            continue
    return ()
