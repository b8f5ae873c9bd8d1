"""What of a campaign could not be used when it was gathered, by store/fleet.json: records of another host, garbage."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from nodeprint import reading
from nodeprint.campaign import derived, job_status


def unusable(folder: Path) -> dict[str, str]:
    """By node why the campaign as it was gathered has no result of it, or not all that its newest job has as done;
    empty where nothing was gathered."""
    try:
        nodes = json.loads(reading.text(folder / derived.STATES, reading.RECORD_BYTES))["nodes"]
        reasons = {node["node"]: _reason(node) for node in nodes}
        return {node: reason for node, reason in reasons.items() if reason}
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return {}


def _reason(node: Mapping[str, Any]) -> str:
    """Why a node of fleet.json is to be measured again; empty where it is not."""
    if node["state"] != "measured":
        return str(node["reason"])
    unused = node.get("unused", [])
    if not unused:
        return ""
    count = f"{len(unused)} measurements" if len(unused) > 1 else "a measurement"
    named = next((text for text in node["problems"] if str(text).startswith(str(unused[0]))), unused[0])
    return f"the records of {count} that its job has as done cannot be used ({named})"


def is_of(job: Path, folder: Path) -> bool:
    """Whether a job had its outcome when the campaign in `folder` was gathered."""
    try:
        return (job / job_status.NAME).stat().st_mtime <= (folder / derived.STATES).stat().st_mtime
    except OSError:
        return False
