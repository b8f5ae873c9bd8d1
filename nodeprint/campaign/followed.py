"""Times of a job by the clock of the login node, in followed.json of the job's directory."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

from nodeprint import files, reading

NAME = "followed.json"


@dataclass(frozen=True)
class Followed:
    """The times at which a job was submitted and had ended: ISO 8601, empty if unknown.

    They are by the clock of the login node or the scheduler's, never the node's.
    """

    submitted: str = ""
    ended: str = ""


def note(job_folder: Path, *, submitted: datetime | None = None, ended: datetime | None = None) -> None:
    """Note when a job was submitted or had ended; for its launcher. Earlier notes stay.

    For a resumed job the first submission and the last end count. Times have a time zone. Raises NodeprintError if the
    file cannot be written.
    """
    noted = read(job_folder)
    first = noted.submitted or (_iso(submitted) if submitted else "")
    last = _iso(ended) if ended else "" if submitted else noted.ended
    for folder in (job_folder.parent, job_folder):
        files.own_folder(folder)
    files.write(job_folder / NAME, json.dumps(asdict(Followed(first, last))) + "\n")


def read(job_folder: Path) -> Followed:
    """The recorded times of a job; empty ones if there is no readable file."""
    try:
        content = json.loads(reading.text(job_folder / NAME))
        return Followed(str(content["submitted"]), str(content["ended"]))
    except (OSError, ValueError, TypeError, KeyError, RecursionError):
        return Followed()


def _iso(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="seconds")
