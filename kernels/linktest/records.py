"""LinkTest's record file (docs/formats.md): what a former call left in it, and lines added to it."""

from __future__ import annotations

import hashlib
import json
import os
import stat
import zlib
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from linktest.settings import BAD_INPUT, RefusalError, Settings

_HERE = Path(__file__).parent
#: How every record file begins, also one whose first line was cut.
_BEGIN = b'{"record":"header"'
#: A pair of a pass and message size.
Key = tuple[int, int, int, int]


def kernel_hash() -> str:
    """As in kernels/Makefile: the first 16 digits over the sources of LinkTest."""
    sources = sorted((*_HERE.glob("*.py"), *_HERE.glob("*.c")))
    return hashlib.sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()[:16]


def identity(settings: Settings, host: str) -> dict[str, Any]:
    """What must be alike for a file to be continued."""
    return {
        "kernel": "linktest",
        "operation": settings.mode,
        "kernel_hash": kernel_hash(),
        "arguments": settings.words,
        "cpus": list(settings.cpus),
        "host": host,
        "job": settings.job,
        "run": settings.run,
    }


@dataclass
class Former:
    """What a file holds: number of segments, seed, the lowest time of each measured pair, second looks, and its end; of
    its whole lines how many bytes they are, their checksum, and how many there are of each kind."""

    segments: int
    seed: int | None
    done: dict[Key, float]
    again: set[tuple[int, int]]
    complete: bool
    length: int
    crc32: int = 0
    lines: Counter[str] = field(default_factory=Counter)


def read(path: Path, wanted: dict[str, Any]) -> Former:
    """Read what is there; a last line that was cut does not count. Raises RefusalError where it cannot be continued."""
    found = Former(0, None, {}, set(), False, 0)
    try:
        if os.path.lexists(path) and not stat.S_ISREG(path.lstat().st_mode):
            raise RefusalError(f"{path} is not a regular file", BAD_INPUT)
        if path.exists() and path.stat().st_nlink > 1:
            raise RefusalError(f"{path} has another name (a hard link); remove it, then run again", BAD_INPUT)
        text = path.read_bytes() if path.exists() else b""
    except OSError as error:
        raise RefusalError(f"{path} cannot be read ({error.strerror})", BAD_INPUT) from error
    if not text.startswith(_BEGIN[: len(text)]):
        raise RefusalError(f"{path}, line 1: no header; move the file away", BAD_INPUT)
    for number, line in enumerate(text.splitlines(keepends=True), 1):
        if not line.endswith(b"\n"):
            break
        found.length += len(line)
        try:
            record = json.loads(line)
            kind = record["record"]
            found.lines[kind] += 1
            if kind == "header":
                _check(path, number, record, wanted)
                found.segments, found.seed = found.segments + 1, int(record["seed"])
            elif kind in ("pair", "cell"):
                found.done[_key(record)] = float(record["latency_ns"])
            elif kind == "again":
                found.again.add((record["a"], record["b"]))
            elif kind == "trailer":
                found.complete = record["complete"] is True
        except (ValueError, KeyError, TypeError) as error:
            raise RefusalError(f"{path}, line {number}: malformed; move the file away", BAD_INPUT) from error
    found.crc32 = zlib.crc32(text[: found.length])
    return found


def _key(record: dict[str, Any]) -> Key:
    return int(record["pass"]), int(record.get("size_bytes", 0)), int(record["a"]), int(record["b"])


def _check(path: Path, number: int, header: dict[str, Any], wanted: dict[str, Any]) -> None:
    names = {"kernel_hash": "version of this kernel", "cpus": "set of CPUs", "arguments": "set of arguments"}
    for key, value in wanted.items():
        before = header[key]
        if key == "arguments":  # the launcher, which comes last, is not what is measured: its time limit may be raised
            before, value = before[:-1], value[:-1]  # noqa: PLW2901
        if before != value:
            what = f"{path} was measured with another {names.get(key, key)} (line {number})"
            raise RefusalError(f"{what}, which cannot be continued; start a new job")


class Writer:
    """Adds whole lines to the end of a record file, so that a reader never sees half of one but the last."""

    def __init__(self, path: Path, former: Former) -> None:
        self._path = path
        self._crc32, self._lines = former.crc32, former.lines
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK, 0o644)
            os.ftruncate(self._file, former.length)
            os.lseek(self._file, 0, os.SEEK_END)
        except OSError as error:
            raise self._refusal(error) from error

    def add(self, records: list[dict[str, Any]]) -> None:
        """Write records at once. Raises RefusalError where the file system refuses."""
        self._lines.update(record["record"] for record in records)
        self._write("".join(f"{_as_json(record)}\n" for record in records).encode())

    def end(self, trailer: dict[str, Any]) -> None:
        """Write the last record with what proves that the file is complete: how many lines of each kind precede it, and
        the CRC-32 of all bytes before the name of that. Raises RefusalError where the file system refuses."""
        opened = _as_json({**trailer, "lines_by_kind": self._lines}).removesuffix("}").encode()
        self._write(opened + f',"crc32":{zlib.crc32(opened, self._crc32)}}}\n'.encode())

    def _write(self, text: bytes) -> None:
        self._crc32 = zlib.crc32(text, self._crc32)
        try:
            while text:
                text = text[os.write(self._file, text) :]
        except OSError as error:
            raise self._refusal(error) from error

    def _refusal(self, error: OSError) -> RefusalError:
        return RefusalError(f"{self._path} cannot be written ({error.strerror}); make room or make it writable")


def _as_json(record: dict[str, Any]) -> str:
    return json.dumps(record, separators=(",", ":"))
