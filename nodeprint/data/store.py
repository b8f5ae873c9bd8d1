"""A node's jobs and surveys, kept as arrays so that each is read from its records once.

`<campaign>/store/<node>/job<J>.arrays` is one job, `survey.json` what the newest survey says. Both name the files that
they were made of, with size and time; where these are others now, or the schema is, or the table of parts that labels
CPUs, they are made again. The folder may be removed at any time.
"""

from __future__ import annotations

import atexit
import math
import mmap
import os
import shutil
import sys
import tempfile
from collections.abc import Iterable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from nodeprint import files
from nodeprint.campaign import run_files
from nodeprint.data import jobs, senses
from nodeprint.data.jobs import Job, Measured
from nodeprint.errors import NodeprintError, printable
from nodeprint.machine import fingerprint, preflight, topology
from nodeprint.machine.topology import processors
from nodeprint.machine.tree import Tree, open_tree

FOLDER = "store"
#: Of what is kept, and of the rules that label CPUs: one more where either changes.
SCHEMA = 3
_ALIGNED = 64

Sources = list[list[Any]]


@cache
def base(campaign: Path) -> Path:
    """Where what is read of a campaign is kept: in its folder, or, where that cannot be written, in a temporary one
    until this process ends."""
    if not campaign.is_dir() or os.access(campaign, os.W_OK):
        return campaign
    folder = tempfile.mkdtemp(prefix="nodeprint-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    note = f"{printable(str(campaign))} cannot be written: what is read and judged is kept in {folder} until this ends"
    print(f"nodeprint: {note}", file=sys.stderr, flush=True)
    return Path(folder)


def kept(node_dir: Path) -> Path:
    """Where what was read of a node's folder is kept."""
    return base(node_dir.parent.parent) / FOLDER / node_dir.name


def job(job_dir: Path, *, write: bool = True) -> Job:
    """A job as arrays: as kept, where its files are the same, else from its records, and kept then.

    Raises CannotWriteError.
    """
    found = _load(_arrays(job_dir), _sources(_of_job(job_dir)))
    if found is None:
        made_of = _sources(_of_job(job_dir))  # before it is read: what is written in the meantime counts as new
        found = jobs.read(job_dir)
        if write:
            _save(found, _arrays(job_dir), made_of)
    return found


def column(job_dir: Path, name: str, key: str) -> jobs.Array:
    """One column of a measurement of a job that this process has read before, without the rest of the job."""
    opened = _opened(_arrays(job_dir), None)
    if opened is None:
        return job(job_dir).measured[name].columns[key]
    content, end, index = opened
    return _array(content, end, index.measured[name].columns[key])


def keep(found: Job, job_dir: Path) -> None:
    """Keep `found` as what the files in `job_dir` hold now. Raises CannotWriteError."""
    _save(found, _arrays(job_dir), _sources(_of_job(job_dir)))


def _arrays(job_dir: Path) -> Path:
    return kept(job_dir.parent) / f"{job_dir.name}.arrays"


def fill(node_dir: Path) -> None:
    """See that all of a node is kept. Raises CannotWriteError."""
    for folder in jobs.folders(node_dir):
        job(folder)
    survey(node_dir)


def is_filled(node_dir: Path) -> bool:
    """Whether all of a node is kept."""
    return _kept_survey(node_dir) is not None and all(
        _opened(_arrays(folder), _sources(_of_job(folder))) is not None for folder in jobs.folders(node_dir)
    )


def is_whole(job_dir: Path) -> bool:
    """Whether all of a job was read from its files as they are now, and nothing in them was damaged."""
    opened = _opened(_arrays(job_dir), _sources(_of_job(job_dir)))
    return opened is not None and not opened[2].problems


class Survey(msgspec.Struct, frozen=True):
    """What a node's newest survey says, for programs: `topology` as text of topology.as_json, empty where there is
    none; the rest is empty, too, where there is no survey that can be read."""

    topology: str = ""
    fingerprint: dict[str, Any] = {}
    warnings: list[dict[str, str]] = []
    senses: dict[str, Any] = {}
    problems: list[str] = []


class _KeptSurvey(msgspec.Struct):
    schema: int
    parts: str
    sources: Sources
    survey: Survey


_SURVEY = "survey.json"
_SURVEYS = msgspec.json.Decoder(_KeptSurvey)


def survey(node_dir: Path, *, write: bool = True) -> Survey:
    """What the newest survey of a node says, which is unpacked and labelled once. Raises CannotWriteError."""
    found = _kept_survey(node_dir)
    if found is None:
        found = _surveyed(node_dir)
        if write:
            made = _KeptSurvey(SCHEMA, processors.digest(), _sources(_of_survey(node_dir)), found)
            files.write(kept(node_dir) / _SURVEY, msgspec.json.encode(made))
    return found


def _kept_survey(node_dir: Path) -> Survey | None:
    path = kept(node_dir) / _SURVEY
    with suppress(OSError, msgspec.MsgspecError, RecursionError):
        known = _SURVEYS.decode(path.read_bytes() if path.is_file() else b"")
        by_this = (known.schema, known.parts) == (SCHEMA, processors.digest())
        if by_this and known.sources == _sources(_of_survey(node_dir)):
            return known.survey
    return None


def tree(node_dir: Path, problems: list[str] | None = None) -> Tree | None:
    """The newest survey that can be read, None where there is none; `problems` gets newer ones that cannot."""
    for path in sorted(node_dir.glob("job*/survey.tar.gz"), key=_number, reverse=True):
        try:
            return open_tree(path)
        except NodeprintError:
            if problems is not None:
                problems.append(f"{path.parent.name}/{path.name} cannot be read as an archive")
    return None


def _surveyed(node_dir: Path) -> Survey:
    problems: list[str] = []
    labels = None
    unpacked = tree(node_dir, problems)
    try:
        for path in sorted(node_dir.glob("job*/topology.json"), key=_number, reverse=True)[:1]:
            labels = topology.from_json(path)
        if labels is None and unpacked is not None:
            labels = topology.read(unpacked)
    except NodeprintError as error:
        problems.append(str(error))
    text = msgspec.json.encode(topology.as_json(labels)).decode() if labels is not None else ""
    if unpacked is None:
        return Survey(text, problems=problems)
    known = fingerprint.read(unpacked)
    warnings = [{"id": w.id, "text": w.text, "advice": w.advice} for w in preflight.check(unpacked, known)]
    return Survey(text, dict(known), warnings, senses.of_survey(unpacked), problems)


def _number(path: Path) -> int:
    return jobs.number_of(path.parent)


def _of_job(job_dir: Path) -> list[Path]:
    return [*run_files.paths(job_dir), job_dir / "status.json"]


def _of_survey(node_dir: Path) -> list[Path]:
    return [folder / name for folder in jobs.folders(node_dir) for name in ("survey.tar.gz", "topology.json")]


def sources(node_dir: Path) -> Sources:
    """All files that what is known of a node is made of."""
    made_of = [path for folder in jobs.folders(node_dir) for path in _beside(folder)]
    return _sources([*made_of, *_of_survey(node_dir)])


def _beside(job_dir: Path) -> list[Path]:
    return [*_of_job(job_dir), job_dir / "submission.txt", job_dir / "followed.json"]


def _sources(paths: Iterable[Path]) -> Sources:
    """The files that something is made of: name, size and when it was written, in ns."""
    out: Sources = []
    for path in paths:
        with suppress(OSError):
            found = path.stat()
            out.append(["/".join(path.parts[-3:]), found.st_size, found.st_mtime_ns])
    return out


# --- the file of a job: a line of JSON, then its arrays as C has them, each at a multiple of 64 bytes ---


class _Array(msgspec.Struct):
    dtype: str
    shape: list[int]
    at: int


class _Measured(msgspec.Struct):
    header: dict[str, Any]
    runs: list[dict[str, Any]]
    passes: list[int]
    names: dict[str, list[str]]
    places: dict[str, _Array]
    columns: dict[str, _Array]


class _Index(msgspec.Struct):
    schema: int
    sources: Sources
    number: int
    status: dict[str, Any]
    not_applicable: dict[str, str]
    problems: list[str]
    measured: dict[str, _Measured]
    bytes: int


_INDEX = msgspec.json.Decoder(_Index)


def _save(found: Job, path: Path, sources: Sources) -> None:
    blocks: list[bytes] = []
    at = 0

    def added(array: jobs.Array) -> _Array:
        nonlocal at
        block = np.ascontiguousarray(array).tobytes()
        entry = _Array(array.dtype.str, list(array.shape), at)
        blocks.append(block + b"\0" * (-len(block) % _ALIGNED))
        at += len(blocks[-1])
        return entry

    measured = {
        name: _Measured(
            dict(one.header), [dict(run) for run in one.runs], list(one.passes),
            {dim: list(words) for dim, words in one.names.items()},
            {dim: added(array) for dim, array in one.places.items()},
            {key: added(array) for key, array in one.columns.items()},
        )
        for name, one in found.measured.items()
    }  # fmt: skip
    made = _Index(
        SCHEMA,
        sources,
        found.number,
        dict(found.status),
        dict(found.not_applicable),
        list(found.problems),
        measured,
        at,
    )
    try:
        index = msgspec.json.encode(made)
    except (ValueError, OverflowError):  # a number or a character that JSON does not have: read anew each time
        return
    line = index + b" " * (-(len(index) + 1) % _ALIGNED) + b"\n"
    files.write(path, b"".join([line, *blocks]))


def _opened(path: Path, sources: Sources | None) -> tuple[mmap.mmap, int, _Index] | None:
    """What is kept in `path`, where its arrays begin, and which those are; None where it is not of these sources (None:
    of any)."""
    if not path.is_file():
        return None
    try:
        with path.open("rb") as file:
            content = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        end = content.find(b"\n") + 1
        index = _INDEX.decode(content[:end])
    except (OSError, ValueError, RecursionError, msgspec.MsgspecError):
        return None
    good = index.schema == SCHEMA and sources in (None, index.sources) and len(content) == end + index.bytes
    return (content, end, index) if good else None


def _array(content: mmap.mmap, begin: int, entry: _Array) -> jobs.Array:
    return np.frombuffer(content, entry.dtype, math.prod(entry.shape), begin + entry.at).reshape(entry.shape)


def _load(path: Path, sources: Sources) -> Job | None:
    """The job that is kept in `path`; None where there is none of these sources, or it cannot be read."""
    opened = _opened(path, sources)
    if opened is None:
        return None
    content, end, index = opened
    try:
        measured = {
            name: Measured(
                name, one.header, tuple(one.runs), tuple(one.passes),
                {dim: _array(content, end, entry) for dim, entry in one.places.items()},
                {dim: tuple(words) for dim, words in one.names.items()},
                {key: _array(content, end, entry) for key, entry in one.columns.items()},
            )
            for name, one in index.measured.items()
        }  # fmt: skip
    except (ValueError, TypeError):
        return None
    return Job(index.number, index.status, measured, index.not_applicable, tuple(index.problems))
