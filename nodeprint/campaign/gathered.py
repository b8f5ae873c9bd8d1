"""What of a campaign could not be used when it was gathered, by store/fleet.json: records of another host, garbage."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from nodeprint import reading
from nodeprint.campaign import derived, job_status


@dataclass(frozen=True)
class Unusable:
    """What of a node could not be used. `reason`: why the campaign has no result of it, or, where `in_part`, not all
    that its newest job has as done, so that it is to be measured again; empty where only a former job lacks something.
    `problem` is the first of all."""

    reason: str
    in_part: bool
    problem: str


def unusable(folder: Path) -> dict[str, Unusable]:
    """By name the nodes of which not everything could be used; empty where nothing was gathered."""
    try:
        nodes = json.loads(reading.text(folder / derived.STATES, reading.RECORD_BYTES))["nodes"]
        return {
            str(node["node"]): Unusable(
                str(node["reason"]), node["state"] == "measured", str(next(iter(node["problems"]), node["reason"]))
            )
            for node in nodes
            if node["reason"] or node["problems"]
        }
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return {}


def is_of(job: Path, folder: Path) -> bool:
    """Whether a job had its outcome when the campaign in `folder` was gathered."""
    try:
        return (job / job_status.NAME).stat().st_mtime <= (folder / derived.STATES).stat().st_mtime
    except OSError:
        return False
