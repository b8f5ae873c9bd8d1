"""Stored forms of a node, so that its records are read once: its jobs as arrays, and its newest survey.

Both are in `<campaign>/store/nodes/<node>/` (`nodeprint.data.store.kept`).
"""

from __future__ import annotations

import atexit
import os
import shutil
import sys
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

from nodeprint import files
from nodeprint.campaign import derived, job_status, run_files
from nodeprint.data.job import jobs, sensors
from nodeprint.data.job.jobs import Job
from nodeprint.data.store import kept
from nodeprint.data.store.kept import Value
from nodeprint.errors import UNEXPECTED_CONTENT, NodeprintError, printable, unexpected
from nodeprint.machine import preflight
from nodeprint.machine.node_configuration import read_fingerprint
from nodeprint.machine.topology import captured, processors, serialized
from nodeprint.machine.topology.model import Machine
from nodeprint.machine.tree import Tree, open_tree
from nodeprint.settings.texts import say


@cache
def base(campaign: Path) -> Path:
    """Return the store's directory: in the campaign, or, if that is not writable, a temporary one until this process
    ends. Raises CannotWriteError if the campaign has a link there."""
    files.refuse_links(campaign / derived.FOLDER, campaign / derived.NODES)
    if not campaign.is_dir() or os.access(campaign, os.W_OK):
        return campaign
    folder = tempfile.mkdtemp(prefix="nodeprint-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    note = say("campaign", "unwritable", campaign=printable(str(campaign)), folder=folder)
    print(f"nodeprint: {note}", file=sys.stderr, flush=True)
    return Path(folder)


def folder(node_dir: Path) -> Path:
    """Return the directory of a node's stored forms."""
    return base(node_dir.parent.parent) / derived.NODES / node_dir.name


def sources(node_dir: Path) -> list[Path]:
    """All files that what is known of a node is made of; some of them may not be there."""
    made_of = [path for folder in jobs.folders(node_dir) for path in _beside(folder)]
    return [*made_of, *_of_survey(node_dir)]


_JOBS, _SURVEY = "jobs.msgpack.zst", "survey.msgpack.zst"


def jobs_of(node_dir: Path) -> tuple[Job, ...]:
    """The jobs of a node, the oldest first. Records are read once; without any in the campaign the stored jobs count.

    Raises CannotWriteError.
    """
    stamp = kept.stamp(sources(node_dir)) if node_dir.is_dir() else None
    if stamp is None and node_dir.parent.is_dir():
        return ()
    of_node = _stored(node_dir, _JOBS, tuple[Job, ...], stamp)
    if of_node is None and stamp is not None:
        of_node = tuple(jobs.read(job) for job in jobs.folders(node_dir))
        if any(job.measured or job.outputs for job in of_node):
            kept.write(folder(node_dir) / _JOBS, of_node, stamp)
    return of_node or ()


def _stored(node_dir: Path, name: str, kind: type[Value], stamp: str | None) -> Value | None:
    """Return a node's stored form, from the campaign's store or the temporary one."""
    places = dict.fromkeys((node_dir.parent.parent / derived.NODES / node_dir.name, folder(node_dir)))
    read = (kept.read(place / name, kind, stamp) for place in places)
    return next((value for value in read if value is not None), None)


def remove_former(campaign: Path) -> None:
    """Remove what former versions made of a campaign's records, which are still there: files by their names, and no
    link."""
    if not (campaign / "nodes").is_dir():
        return
    former = campaign / "packed"
    if (former / "index.json").is_file() and not former.is_symlink():
        shutil.rmtree(former, ignore_errors=True)  # which follows no link
    files.remove(campaign / "fleet.json")
    for pattern in ("*/survey.json", "nodes/*/survey.json"):
        for former_survey in (campaign / derived.FOLDER).glob(pattern):
            if not former_survey.parent.is_symlink():
                for name in ("survey.json", "dies.msgpack"):
                    files.remove(former_survey.with_name(name))
                with suppress(OSError):
                    former_survey.parent.rmdir()


class Survey(msgspec.Struct, frozen=True):
    """A node's newest survey for programs. `topology` is the text of serialized.as_json. Everything is empty without a
    readable survey. `former` has, by job (job1), the fields of an earlier survey that differ from the newest."""

    topology: str = ""
    fingerprint: dict[str, Any] = {}
    warnings: list[dict[str, str]] = []
    sensors: dict[str, Any] = {}
    former: dict[str, dict[str, Any]] = {}
    problems: list[str] = []


def survey(node_dir: Path, *, write: bool = True) -> Survey:
    """Return the newest survey of a node; it is unpacked and labeled once. Raises CannotWriteError."""
    if not node_dir.is_dir():
        gone = not node_dir.parent.is_dir()
        return (_stored(node_dir, _SURVEY, Survey, None) if gone else None) or Survey()
    # the processor table labels CPUs
    stamp = kept.stamp(_of_survey(node_dir), processors.digest())
    of_node = _stored(node_dir, _SURVEY, Survey, stamp)
    if of_node is None:
        of_node = _surveyed(node_dir)
        if write:
            kept.write(folder(node_dir) / _SURVEY, of_node, stamp)
    return of_node


def machine_of(node_dir: Path) -> Machine | None:
    """The processor of a node by its newest survey; None if that is unknown."""
    labels = survey(node_dir, write=False).topology
    return serialized.from_text(labels).machine if labels else None


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
    """The newest survey; where its content is none that its readers expect, the reason alone."""
    try:
        return _expected_survey(node_dir)
    except UNEXPECTED_CONTENT as error:
        newest = jobs.folders(node_dir)[-1:]
        return Survey(problems=[f"survey.tar.gz of {newest[0].name if newest else node_dir.name} {unexpected(error)}"])


def _expected_survey(node_dir: Path) -> Survey:
    problems: list[str] = []
    labels = None
    unpacked = tree(node_dir, problems)
    try:
        for path in sorted(node_dir.glob("job*/topology.json"), key=_number, reverse=True)[:1]:
            labels = serialized.from_json(path)
        if labels is None and unpacked is not None:
            labels = captured.read(unpacked)
    except NodeprintError as error:
        problems.append(str(error))
    text = msgspec.json.encode(serialized.as_json(labels)).decode() if labels is not None else ""
    if unpacked is None:
        return Survey(text, problems=problems)
    fields = read_fingerprint(unpacked)
    warnings = [{"id": w.id, "text": w.text, "advice": w.advice} for w in preflight.check(unpacked, fields)]
    former = _former(node_dir, dict(fields))
    return Survey(text, dict(fields), warnings, sensors.of_survey(unpacked), former, problems)


def _former(node_dir: Path, newest: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return by job the fields of its survey that differ from the `newest` ones; unreadable surveys have none."""
    out: dict[str, dict[str, Any]] = {}
    for path in sorted(node_dir.glob("job*/survey.tar.gz"), key=_number)[:-1]:
        with suppress(NodeprintError):
            fields = read_fingerprint(open_tree(path)) if not path.is_symlink() else newest
            differing = {key: value for key, value in fields.items() if newest.get(key) != value}
            if differing:
                out[path.parent.name] = differing
    return out


def _number(path: Path) -> int:
    return jobs.number_of(path.parent)


def _of_job(job_dir: Path) -> list[Path]:
    return [*run_files.paths(job_dir), job_dir / job_status.NAME]


def _of_survey(node_dir: Path) -> list[Path]:
    return [folder / name for folder in jobs.folders(node_dir) for name in ("survey.tar.gz", "topology.json")]


def _beside(job_dir: Path) -> list[Path]:
    return [*_of_job(job_dir), job_dir / "followed.json"]
