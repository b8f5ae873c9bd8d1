"""What of a campaign could not be used when it was gathered, as fleet.json says: records of another host, garbage."""

from __future__ import annotations

import json
from pathlib import Path

from nodeprint import reading


def unusable(folder: Path) -> dict[str, str]:
    """By node why the campaign as it was gathered has no result of it; empty where nothing was gathered."""
    try:
        nodes = json.loads(reading.text(folder / "fleet.json", reading.RECORD_BYTES))["nodes"]
        return {node["node"]: str(node["reason"]) for node in nodes if node["state"] != "measured"}
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return {}


def is_of(job: Path, folder: Path) -> bool:
    """Whether a job had its outcome when the campaign in `folder` was gathered."""
    try:
        return (job / "status.json").stat().st_mtime <= (folder / "fleet.json").stat().st_mtime
    except OSError:
        return False
