"""Jobs that ended early: status.json of one that could not write its own, as it was cut off, cancelled, or refused by
the scheduler."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from nodeprint import files, reading
from nodeprint.campaign import node_sheet, run_files
from nodeprint.settings import config as configuration

#: node-run writes ASCII alone.
_LONGEST = 400


def settle(job: Path, reason: str) -> None:
    """Write status.json of the folder `job` (<campaign>/nodes/<node>/job<J>), as node-run does where it cannot measure.

    What the records have complete is done, and all else failed for `reason`; `lost` says that the job did not write it.
    Raises NodeprintError.
    """
    campaign, node = job.parents[2], job.parent.name
    sheet = {row.node: row for row in node_sheet.read_sheet(campaign / "nodes.tsv")}
    begun = job / "plan.tsv"
    plan = configuration.read_plan(reading.required(begun if begun.exists() else campaign / "plan.tsv"))
    complete = run_files.complete(job)
    why = "".join(char if " " <= char <= "~" else "?" for char in reason)[:_LONGEST]
    rows = [_row(run, name, (run, name) in complete, why) for run, name in configuration.steps(plan)]
    done = sum(row["outcome"] == "done" for row in rows)
    status = {
        "schema": 1, "node": node, "host": sheet[node].host if node in sheet else node,
        "job": int(job.name.removeprefix("job")), "started": None, "ended": None, "runs": max(row.runs for row in plan),
        "outcome": "complete" if done == len(rows) else "partial" if done else "failed", "cpus_allowed": 0,
        "cpus_expected": sheet[node].cpus if node in sheet else 0, "simulated": False, "lost": True,
        "measurements": rows,
    }  # fmt: skip
    for folder in (job.parent, job):
        files.own_folder(folder)
    files.write(job / "status.json", json.dumps(status, indent=1) + "\n")


def ended_early(status: Mapping[str, Any]) -> bool:
    """Whether a job ended before it could measure all, by its status.json, so that the next call goes on: it was cut
    off, or its node was booted again."""
    early = status.get("lost") is True or status.get("rebooted") is True
    return early and status.get("outcome") != "complete"


def _row(run: int, name: str, done: bool, reason: str) -> dict[str, Any]:
    """What came of a run of a measurement."""
    return {
        "name": name, "run": run, "outcome": "done" if done else "failed", "exit_code": 0 if done else -1,
        "seconds": 0.0, "pinned_by": "native", "message": "" if done else reason,
    }  # fmt: skip
