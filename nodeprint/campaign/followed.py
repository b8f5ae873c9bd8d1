"""What is known of a job by the clock of the login node, in followed.json of the job's folder."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

from nodeprint import files, reading

NAME = "followed.json"


@dataclass(frozen=True)
class Followed:
    """When a job was submitted and when it had ended, by the clock of the login node or Slurm's, never the node's: ISO
    8601, empty where it is not known."""

    submitted: str = ""
    ended: str = ""


def note(job_folder: Path, *, submitted: datetime | None = None, ended: datetime | None = None) -> None:
    """Note when a job was submitted, or had ended, by what launches it; what was noted before stays.

    Of a job that is continued the first submission and the last end count. Times have a time zone. Raises
    NodeprintError where it cannot be written.
    """
    noted = read(job_folder)
    first = noted.submitted or (_iso(submitted) if submitted else "")
    last = _iso(ended) if ended else "" if submitted else noted.ended
    for folder in (job_folder.parent, job_folder):
        files.own_folder(folder)
    files.write(job_folder / NAME, json.dumps(asdict(Followed(first, last))) + "\n")


def read(job_folder: Path) -> Followed:
    """What was noted of a job; nothing where nothing was, or nothing that can be read."""
    try:
        content = json.loads(reading.text(job_folder / NAME))
        return Followed(str(content["submitted"]), str(content["ended"]))
    except (OSError, ValueError, TypeError, KeyError, RecursionError):
        return Followed()


def _iso(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="seconds")
