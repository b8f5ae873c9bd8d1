"""What is kept beside a node's records, so that each is read once: its jobs as arrays, and what its newest survey says.

In `<campaign>/store/nodes/<node>/` each names the files that it was made of, with size and time; where these are others
now, or the schema is, or, of a survey, the table of parts that labels CPUs, it is made again.
"""

from __future__ import annotations

import atexit
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
import zstandard

from nodeprint import files, reading
from nodeprint.campaign import derived, job_status, run_files
from nodeprint.data.job import jobs, sensors
from nodeprint.data.job.jobs import Job
from nodeprint.data.store import msgpack_arrays
from nodeprint.errors import NodeprintError, printable
from nodeprint.machine import fingerprint, preflight, topology
from nodeprint.machine.topology import processors
from nodeprint.machine.tree import Tree, open_tree
from nodeprint.settings.texts import say

Sources = list[list[Any]]


@cache
def base(campaign: Path) -> Path:
    """Where what is read of a campaign is kept: in its folder, or, where that cannot be written, in a temporary one
    until this process ends. Raises CannotWriteError where the campaign has a link in its place."""
    files.refuse_links(campaign / derived.FOLDER, campaign / derived.NODES)
    if not campaign.is_dir() or os.access(campaign, os.W_OK):
        return campaign
    folder = tempfile.mkdtemp(prefix="nodeprint-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    note = say("campaign", "unwritable", campaign=printable(str(campaign)), folder=folder)
    print(f"nodeprint: {note}", file=sys.stderr, flush=True)
    return Path(folder)


def kept(node_dir: Path) -> Path:
    """Where what was read of a node's folder is kept."""
    return base(node_dir.parent.parent) / derived.NODES / node_dir.name


class _KeptJobs(msgspec.Struct):
    schema: int
    sources: Sources
    jobs: tuple[Job, ...]


_JOBS = "jobs.msgpack.zst"
_JOBS_DECODER = msgspec.msgpack.Decoder(_KeptJobs, dec_hook=msgpack_arrays.decoded)


def jobs_of(node_dir: Path) -> tuple[Job, ...]:
    """The jobs of a node, the oldest first, of which the records are read once. Raises CannotWriteError."""
    made_of = sources(node_dir)  # before they are read: what is written in the meantime counts as new
    path = kept(node_dir) / _JOBS
    with suppress(OSError, ValueError, TypeError, RecursionError, msgspec.MsgspecError, zstandard.ZstdError):
        packed = reading.content(path, reading.RECORD_BYTES)
        of_node = _JOBS_DECODER.decode(zstandard.ZstdDecompressor().decompress(packed))
        if (of_node.schema, of_node.sources) == (derived.SCHEMA, made_of):
            return of_node.jobs
    measured = tuple(jobs.read(job) for job in jobs.folders(node_dir))
    if any(job.measured for job in measured):
        content = _KeptJobs(derived.SCHEMA, made_of, measured)
        # its fastest level: a better one makes a twentieth less of it, in three times the time
        packer = zstandard.ZstdCompressor(1)
        files.write(path, packer.compress(msgspec.msgpack.encode(content, enc_hook=msgpack_arrays.encoded)))
    return measured


def remove_former(campaign: Path) -> None:
    """Remove what former versions made of a campaign's records, which are still there: files by their names, and no
    link."""
    if not (campaign / "nodes").is_dir():
        return
    former = campaign / "packed"
    if (former / "index.json").is_file() and not former.is_symlink():
        shutil.rmtree(former, ignore_errors=True)  # which follows no link
    files.remove(campaign / "fleet.json")
    for kept_survey in (campaign / derived.FOLDER).glob(f"*/{_SURVEY}"):
        if not kept_survey.parent.is_symlink():
            for name in (_SURVEY, "dies.msgpack"):
                files.remove(kept_survey.with_name(name))
            with suppress(OSError):
                kept_survey.parent.rmdir()


class Survey(msgspec.Struct, frozen=True):
    """What a node's newest survey says, for programs: `topology` as text of topology.as_json, empty where there is
    none; the rest is empty, too, where there is no survey that can be read."""

    topology: str = ""
    fingerprint: dict[str, Any] = {}
    warnings: list[dict[str, str]] = []
    sensors: dict[str, Any] = {}
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
    survey_now = _kept_survey(node_dir)
    if survey_now is None:
        survey_now = _surveyed(node_dir)
        if write:
            made = _KeptSurvey(derived.SCHEMA, processors.digest(), _sources(_of_survey(node_dir)), survey_now)
            files.write(kept(node_dir) / _SURVEY, msgspec.json.encode(made))
    return survey_now


def _kept_survey(node_dir: Path) -> Survey | None:
    path = kept(node_dir) / _SURVEY
    with suppress(OSError, msgspec.MsgspecError, RecursionError):
        kept_survey = _SURVEYS.decode(path.read_bytes() if path.is_file() else b"")
        by_this = (kept_survey.schema, kept_survey.parts) == (derived.SCHEMA, processors.digest())
        if by_this and kept_survey.sources == _sources(_of_survey(node_dir)):
            return kept_survey.survey
    return None


def tree(node_dir: Path, problems: list[str] | None = None) -> Tree | None:
    """The newest survey that can be read, None where there is none; `problems` gets newer ones that cannot."""
    for path in sorted(node_dir.glob("job*/survey.tar.gz"), key=_number, reverse=True):
        try:
            if path.is_symlink():
                raise NodeprintError("it is a symbolic link, and none is followed", where=path)
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
    fields = fingerprint.read(unpacked)
    warnings = [{"id": w.id, "text": w.text, "advice": w.advice} for w in preflight.check(unpacked, fields)]
    return Survey(text, dict(fields), warnings, sensors.of_survey(unpacked), problems)


def _number(path: Path) -> int:
    return jobs.number_of(path.parent)


def _of_job(job_dir: Path) -> list[Path]:
    return [*run_files.paths(job_dir), job_dir / job_status.NAME]


def _of_survey(node_dir: Path) -> list[Path]:
    return [folder / name for folder in jobs.folders(node_dir) for name in ("survey.tar.gz", "topology.json")]


def sources(node_dir: Path) -> Sources:
    """All files that what is known of a node is made of."""
    made_of = [path for folder in jobs.folders(node_dir) for path in _beside(folder)]
    return _sources([*made_of, *_of_survey(node_dir)])


def _beside(job_dir: Path) -> list[Path]:
    return [*_of_job(job_dir), job_dir / "followed.json"]


def _sources(paths: Iterable[Path]) -> Sources:
    """The files that something is made of: name, size and when it was written, in ns."""
    out: Sources = []
    for path in paths:
        with suppress(OSError):
            status = path.stat()
            out.append(["/".join(path.parts[-3:]), status.st_size, status.st_mtime_ns])
    return out
