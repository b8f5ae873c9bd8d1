"""The manifest of a campaign: path, size and SHA-256 of everything that its verdict is based on.

It is written when the campaign is gathered and when it is judged. The acceptance report lists the same digests, and
`nodeprint verify` names what changed since then.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec

from nodeprint import files, reading
from nodeprint.campaign import directories, followed
from nodeprint.data.job import jobs
from nodeprint.data.store import store
from nodeprint.errors import NodeprintError, printable
from nodeprint.settings.keys import key, schema_of

NAME = "manifest.json"
#: What a campaign has besides the files of its nodes; `verdict-N.json` are former verdicts.
_OF_CAMPAIGN = (
    "config.yaml",
    "acceptance.yaml",
    "nodes.tsv",
    "plan.tsv",
    "table.sha256",
    "verdict.json",
    "verdict-*.json",
    "fabric/job*/status.json",
    "fabric/job*/*/run*/*.jsonl",
    "fabric/job*/*/run*/*.jsonl.gz",
)


class Entry(msgspec.Struct, frozen=True):
    """A file as it was."""

    size: Annotated[int, key("in bytes", ge=0)]
    sha256: Annotated[str, key("the SHA-256 of its content, in hexadecimal digits")]
    modified_ns: Annotated[
        int, key("when it was last written, in ns since 1970: a file of the same size and time is not read again")
    ]


class Manifest(msgspec.Struct, frozen=True):
    """All files by their path in the campaign."""

    schema: Annotated[Literal[1], key("the version of this format")]
    files: Annotated[dict[str, Entry], key("by path, relative to the campaign")]


def write(campaign: Path) -> None:
    """Write the manifest of a campaign; nothing where the campaign cannot be written. Raises CannotWriteError."""
    if store.base(campaign) == campaign:
        content = msgspec.json.format(msgspec.json.encode(current(campaign, former=_read(campaign))), indent=1)
        files.write(campaign / NAME, content + b"\n")


def read(campaign: Path) -> Manifest:
    """The manifest of a campaign. Raises NodeprintError where it has none that can be read."""
    manifest = _read(campaign)
    if manifest is None:
        if not directories.is_campaign(campaign):
            raise directories.not_a_campaign(campaign)
        advice = f"run `nodeprint judge {campaign}`, which writes one"
        raise NodeprintError("no manifest of a campaign can be read", where=campaign / NAME, advice=advice)
    return manifest


def current(campaign: Path, former: Manifest | None = None) -> Manifest:
    """The manifest of a campaign as it is now. Digests of files that have the size and time of the `former` one are
    taken from there."""
    known = former.files if former is not None else {}
    entries = {}
    for name, path in sorted(_paths(campaign)):
        status = path.stat()
        same = known.get(name)
        if same is None or (same.size, same.modified_ns) != (status.st_size, status.st_mtime_ns):
            same = Entry(status.st_size, _sha256(path), status.st_mtime_ns)
        entries[name] = same
    return Manifest(1, entries)


def changes(campaign: Path, manifest: Manifest) -> dict[str, list[str]]:
    """The files that are not as a manifest has them, in the order of their names. Every file is read."""
    now = current(campaign).files
    then = manifest.files
    return {
        "missing": sorted(then.keys() - now.keys()),
        "changed": [name for name in sorted(then.keys() & now.keys()) if _content(then[name]) != _content(now[name])],
        "new": sorted(now.keys() - then.keys()),
    }


def schema() -> Mapping[str, Any]:
    """The JSON schema of manifest.json, made from its type."""
    return schema_of(Manifest, "manifest.json: files of a campaign")


def _content(entry: Entry) -> tuple[int, str]:
    return entry.size, entry.sha256


def _read(campaign: Path) -> Manifest | None:
    try:
        return msgspec.json.decode(reading.content(campaign / NAME, reading.RECORD_BYTES), type=Manifest)
    except (OSError, ValueError, msgspec.MsgspecError, RecursionError):
        return None


def _paths(campaign: Path) -> Iterator[tuple[str, Path]]:
    """The regular files that are there, by their path in the campaign; no link is followed."""
    nodes = campaign / "nodes"
    node_dirs = sorted(nodes.iterdir()) if nodes.is_dir() and not nodes.is_symlink() else []
    of_nodes = (path for node in node_dirs if node.is_dir() and not node.is_symlink() for path in _of_node(node))
    of_campaign = (path for pattern in _OF_CAMPAIGN for path in campaign.glob(pattern))
    for path in (*of_campaign, *of_nodes):
        if path.is_file() and not path.is_symlink():
            yield path.relative_to(campaign).as_posix(), path


def _of_node(node: Path) -> Iterator[Path]:
    # what was followed is noted by whoever launches a job, also after it was judged
    yield from (path for path in store.sources(node) if path.name != followed.NAME)
    yield from (folder / "plan.tsv" for folder in jobs.folders(node))


def _sha256(path: Path) -> str:
    """The digest of a file; empty where it cannot be read, as of one that nobody may read."""
    try:
        with reading.opened(path) as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        return printable(f"cannot be read ({error.strerror})")
