"""Select the runs of a node that are complete and no copies. A run is an independent replicate. Half of a run looks
complete, because it has the passes and places before it was cut off. Copies have no spread, so six copies of one run
look like six runs that agree.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec
import numpy as np

from nodeprint.campaign.run_files import Problem
from nodeprint.data.job.jobs import Job, JobMeasurement


def whole_runs(jobs: Sequence[Job]) -> list[Job]:
    """A node's jobs without the runs that are none; `problems` says which these are, and why."""
    first: dict[tuple[str, object], str] = {}
    return [_whole(job, first) for job in jobs]


def _whole(job: Job, first: dict[tuple[str, object], str]) -> Job:
    problems, measured = list(job.problems), {}
    for name, of_name in job.measured.items():
        kept = []
        for number, run in enumerate(of_name.runs):
            where = f"job{job.number}/{run.get('folder') or 'run{run}'.format(**run)}"
            why = _why_not(name, where, run, of_name, number, first)
            if why:
                problems.append(Problem(f"{name}, {where}: {why}; it counts as no run", int(run["run"]), (name,)))
            else:
                kept.append(number)
        if kept:
            measured[name] = of_name if len(kept) == len(of_name.runs) else of_runs(of_name, kept)
    return msgspec.structs.replace(job, measured=measured, problems=tuple(problems))


def _why_not(
    name: str,
    where: str,
    run: Mapping[str, Any],
    of_name: JobMeasurement,
    number: int,
    first: dict[tuple[str, object], str],
) -> str:
    """Return why a run does not count; empty if it counts. Then `first` gets its unique marks."""
    if not run["trailer"]:
        return "its record has no end, as it was cut off"
    for mark in _marks(run, of_name, number):
        earlier = first.setdefault((name, mark), where)
        if earlier != where:
            return f"it is a copy of {earlier}"
    return ""


def _marks(run: Mapping[str, Any], of_name: JobMeasurement, number: int) -> Iterator[object]:
    """Return the marks that two runs of a measurement on a host never share. One is the seed (from node, job, run and
    name, or drawn by the kernel) with the second of the start. The other is all measured values."""
    if run["seed"] and run["start_time"]:
        yield of_name.header.get("host"), run["seed"], run["start_time"]
    values = [column[number] for key, column in of_name.columns.items() if column.dtype.kind == "f"]
    if sum(int(np.isfinite(column).sum()) for column in values) > _FEW:
        yield b"".join(column.tobytes() for column in values)


#: So few figures may be equal by chance.
_FEW = 32


def of_runs(measured: JobMeasurement, kept: Sequence[int]) -> JobMeasurement:
    """A measurement with some of its runs (their places among them)."""
    columns = {key: column[list(kept)] for key, column in measured.columns.items()}
    return msgspec.structs.replace(measured, runs=tuple(measured.runs[number] for number in kept), columns=columns)
