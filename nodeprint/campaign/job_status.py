"""The outcome of a job, status.json: its only type, reader and writer (docs/formats.md).

On a node, where there is no Python, `kernels/node-run` writes it. All other writers call `write`: the follower of lost
jobs, LinkTest between nodes, readers and the simulator. All readers use this module.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any, Literal

from nodeprint import files, reading
from nodeprint.errors import NodeprintError
from nodeprint.settings.keys import key, schema_of

NAME = "status.json"
#: What an outcome is called that was set aside, as the next call goes on with its job.
_FORMER = "status.former.json"
#: node-run writes ASCII alone; the message of a measurement is at most so long.
_LONGEST = 400
#: Thirty years.
_MOST_SECONDS = 1e9

Outcome = Literal["complete", "partial", "failed"]
RunOutcomeWord = Literal["done", "unavailable", "refused", "failed"]
_Moment = Annotated[str, key("ISO 8601, UTC", pattern=r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$")]


@dataclass(frozen=True, kw_only=True)
class RunOutcome:
    """What came of a run of a measurement."""

    name: Annotated[str, key("the measurement", pattern=r"^[ -~]+$")]
    run: Annotated[int, key("number of the run", ge=1, le=reading.MOST_WHOLE)]
    outcome: Annotated[RunOutcomeWord, key("what came of it")]
    exit_code: Annotated[int, key("the kernel's, 128 and more a signal; -1 where none was started", ge=-1, le=255)]
    seconds: Annotated[float, key("how long it took", ge=0, le=_MOST_SECONDS)]
    pinned_by: Annotated[Literal["likwid-pin", "native", ""], key("who pinned its threads")]
    message: Annotated[str, key("the kernel's last line, in printable ASCII", pattern=r"^[ -~]*$")]
    partition: Annotated[str, key("of a job between nodes the partition that it was measured in")] = ""


@dataclass(frozen=True, kw_only=True)
class JobStatus:
    """The outcome of a job of a node, or of LinkTest between the nodes (then of no node and host)."""

    schema: Annotated[Literal[1], key("the version of this format")]
    node: Annotated[str, key("its name in the sheet")]
    host: Annotated[str, key("the host name of the node")]
    job: Annotated[int, key("number of the job", ge=1, le=reading.MOST_WHOLE)]
    started: Annotated[_Moment | None, key("by the node's clock; null where no node says so")]
    ended: Annotated[_Moment | None, key("by the node's clock; null where no node says so")]
    runs: Annotated[
        int, key("the runs that were asked for where the plan says nothing else", ge=1, le=reading.MOST_WHOLE)
    ]
    outcome: Annotated[
        Outcome,
        key("`complete`: every run of every measurement is done or unavailable; `failed`: none is done"),
    ]
    cpus_allowed: Annotated[int, key("the CPUs that the job got; 0 unknown", ge=0, le=reading.MOST_WHOLE)]
    cpus_expected: Annotated[int, key("the CPUs that it had to get; 0 unknown", ge=0, le=reading.MOST_WHOLE)]
    simulated: Annotated[bool, key("whether it was simulated")]
    imported: Annotated[bool, key("whether its records are another tool's")] = False
    lost: Annotated[
        bool,
        key(
            "whether the job was cut off, canceled or refused, so that the process that followed it wrote this, "
            "with the reason. Such a node is not measured"
        ),
    ] = False
    rebooted: Annotated[
        bool,
        key(
            "whether the node rebooted after the job began. Nothing was added to its records, and the next "
            "call measures it in a new job"
        ),
    ] = False
    slurm_job: Annotated[
        str, key("the number of the Slurm job that wrote this; empty outside Slurm", pattern=r"^[0-9]*$")
    ] = ""
    measurements: Annotated[tuple[RunOutcome, ...], key("every run of every measurement")]

    @property
    def untaken(self) -> list[RunOutcome]:
        """The runs that the job lacks: those that are neither done nor unavailable."""
        return [run for run in self.measurements if run.outcome not in ("done", "unavailable")]

    @property
    def ended_early(self) -> bool:
        """Whether it ended before it could measure all, so that the next call goes on: it was cut off, or its node was
        booted again."""
        return (self.lost or self.rebooted) and self.outcome != "complete"

    @property
    def reason(self) -> str:
        """Why it lacks runs: the message of the first one, or of the whole job if it was lost; empty if it has all."""
        first = next(iter(self.untaken), None)
        return "" if first is None else first.message if self.lost else f"{first.name}: {first.message}"


def outcome_of(measurements: Collection[RunOutcome]) -> Outcome:
    """The outcome of a job with these runs, as node-run states it."""
    outcomes = [run.outcome for run in measurements]
    if "done" not in outcomes:
        return "failed"
    return "complete" if set(outcomes) <= {"done", "unavailable"} else "partial"


def of_exit_code(code: int) -> RunOutcomeWord:
    """What came of a run by its kernel's exit code."""
    return "done" if code == 0 else "refused" if code in (2, 3) else "failed"


def as_message(text: str) -> str:
    """A text as the message of a measurement."""
    return "".join(char if " " <= char <= "~" else "?" for char in text)[:_LONGEST]


def read(job: Path) -> JobStatus | None:
    """The outcome of the job in a directory; None if it has none yet. Raises NodeprintError if it cannot be read."""
    import msgspec  # noqa: PLC0415 (not there where Snakemake alone plans a clone)

    try:
        return msgspec.json.decode(reading.content(job / NAME), type=JobStatus)
    except FileNotFoundError:
        return None
    except (OSError, ValueError, msgspec.MsgspecError, RecursionError) as error:
        why = error.strerror if isinstance(error, OSError) else re.sub(r"\s+", " ", str(error))
        advice = "`make run` measures what the job lacks"
        problem = f"no outcome of a job can be read in it ({why})"
        raise NodeprintError(problem, where=job / NAME, advice=advice) from error


def known(job: Path) -> JobStatus | None:
    """The outcome of the job in a directory; None if it has none, or an unreadable one."""
    try:
        return read(job)
    except NodeprintError:
        return None


def write(job: Path, status: JobStatus) -> None:
    """Write the outcome of the job in a directory. Raises CannotWriteError."""
    files.write(job / NAME, json.dumps(plain(status), indent=1) + "\n")


def plain(status: JobStatus) -> dict[str, Any]:
    """An outcome as the file has it."""
    return _unusual(status) | {"measurements": [_unusual(run) for run in status.measurements]}


def _unusual(value: JobStatus | RunOutcome) -> dict[str, Any]:
    """The fields of a value without those that are as usual, which are not written."""
    content = {field.name: getattr(value, field.name) for field in fields(value)}
    return {field.name: content[field.name] for field in fields(value) if content[field.name] != field.default}


def set_aside(job: Path) -> None:
    """Give the outcome of a job another name, so that the next call goes on with the job. Raises CannotWriteError."""
    files.rename(job / NAME, _FORMER)


def schema() -> dict[str, Any]:
    """The JSON schema of status.json, made from its type: as everything that writes one does, with no other key."""
    return schema_of(JobStatus, "status.json: the outcome of one job of a node")
