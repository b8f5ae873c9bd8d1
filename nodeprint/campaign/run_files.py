"""Record files of a job: an archive for each complete run, separate files for the others.

`run1.tar.zst` (or `.tar.xz`, `.tar.gz`) holds what would be `run1/*.jsonl`; an archive takes precedence over a file of
the same name.
"""

from __future__ import annotations

import io
import lzma
import os
import re
import tarfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nodeprint import reading

#: Endings of an archive of a run, and of a record file.
ARCHIVE, LOOSE = (".tar.zst", ".tar.xz", ".tar.gz"), (".jsonl", ".jsonl.gz")
_RUN = re.compile(r"run([1-9][0-9]{0,8})(\.tar\.(?:zst|xz|gz))?")
_RECORDS = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]*\.jsonl")


def _zstd() -> Any:
    import zstandard  # noqa: PLC0415 (the workflow asks where records are with the packages of Snakemake alone)

    return zstandard


#: The memory of an unpacker is what the file asks for, up to these: `xz -9` needs 65 MiB, `zstd -19` a window of 8.
_XZ_BYTES, _ZSTD_WINDOW = 80 << 20, 8 << 20
_STREAMS: dict[str, Callable[[], Any]] = {
    ".gz": lambda: zlib.decompressobj(wbits=31),
    ".xz": lambda: lzma.LZMADecompressor(memlimit=_XZ_BYTES),
    ".zst": lambda: _zstd().ZstdDecompressor(max_window_size=_ZSTD_WINDOW).decompressobj(),
}
#: So much is unpacked at once: zstd may make 32768 times as much of it, gzip 1032 times.
_PIECE, _PIECE_OF_GZIP = 1 << 8, 1 << 12
#: An archive holds the records of so many measurements at most; a preset has 60.
_MOST_MEMBERS = 1000
#: What may be wrong with a compressed file, where it is not too large.
CUT, GARBLED = "is cut", "is garbled"
_DAMAGED = "is cut or garbled; what precedes the damage counts"
_REMEDY = "restore the file, or call `make run`, which measures what is lost of a node's newest job"


@dataclass(frozen=True)
class Problem:
    """A part of a job that cannot be used: a sentence, its run (0: the whole job) and its measurements (empty: all)."""

    text: str
    run: int = 0
    names: tuple[str, ...] = ()

    def is_of(self, name: str, run: int) -> bool:
        """Whether it is why a run of a measurement cannot be used."""
        if self.run == 0:
            return name in self.names
        return self.run == run and (not self.names or name in self.names)


def paths(job_dir: Path) -> list[Path]:
    """The files that hold the records of a job: archives, and record files; none if the directory is missing."""
    entries = [(job_dir / name, match[2]) for name in sorted(_names(job_dir)) if (match := _RUN.fullmatch(name))]
    return [path for entry, ending in entries for path in ([entry] if ending else _loose(entry))]


def contents(job_dir: Path, problems: list[Problem]) -> Iterator[tuple[Path, bytes | None]]:
    """The content of each record file of a job, plain or compressed, by run and name; None if it cannot be read.

    Files of an archive have the path that unpacking would give them. If an archive is damaged, the files before the
    damage count unless they are also elsewhere, and `problems` gets one of its run.
    """
    for run in sorted({int(match[1]) for name in _names(job_dir) if (match := _RUN.fullmatch(name))}):
        folder = job_dir / f"run{run}"
        by_name: dict[str, tuple[Path, bytes | None]] = {
            _measurement(path): (path, _read(path)) for path in _loose(folder)
        }
        # after the files: node-run removes those when the archive is there
        for ending in ARCHIVE:
            if (archive := job_dir / f"run{run}{ending}").is_file():
                wrong: list[str] = []
                packed = {_measurement(path): (path, content) for path, content in members(archive, wrong)}
                problems += [Problem(f"{text}; {_REMEDY}", run) for text in wrong]
                by_name = packed | by_name if wrong else by_name | packed
        for name in sorted(by_name):
            yield by_name[name]


def complete(job_dir: Path) -> set[tuple[int, str]]:
    """Run and name of the measurements whose records are complete, for archives by outcomes.tsv."""
    measurements: set[tuple[int, str]] = set()
    packed = set()
    for path in paths(job_dir):
        if path.name.endswith(ARCHIVE):
            packed.add(path.name.partition(".")[0])
        elif path.suffix == ".gz":
            measurements.add((int(path.parent.name.removeprefix("run")), _measurement(path)))
    return measurements | {(run, name) for run, name in _done(job_dir) if f"run{run}" in packed}


def lost(job_dir: Path) -> list[tuple[int, str]]:
    """Run and name of the measurements that outcomes.tsv has as done, and whose records are gone."""
    files = {path for path in paths(job_dir) if path.is_file()}
    packed = {path.name.partition(".")[0] for path in files if path.name.endswith(ARCHIVE)}
    loose = {(path.parent.name, _measurement(path)) for path in files}
    return sorted(
        (run, name) for run, name in _done(job_dir) if f"run{run}" not in packed and (f"run{run}", name) not in loose
    )


def _done(job_dir: Path) -> set[tuple[int, str]]:
    """Run and name of the measurements that were done by outcomes.tsv."""
    lines = (_read(job_dir / "outcomes.tsv") or b"").decode(errors="replace").splitlines()
    rows = [line.split("\t") for line in lines]
    return {(run, row[1]) for row in rows if (run := reading.whole_number(row[0])) and row[2:3] == ["done"]}


def is_damaged(job_dir: Path) -> bool:
    """Whether a compressed record file or an archive of a job cannot be unpacked to its end."""
    return any(_is_cut(path) for path in paths(job_dir) if path.suffix in _STREAMS)


def _is_cut(path: Path) -> bool:
    raw = _read(path)
    if raw is None:
        return False
    wrong = (_untarred(path, raw) if path.name.endswith(ARCHIVE) else unpacked(raw, path.suffix))[1]
    return wrong in (CUT, GARBLED, _DAMAGED)


def members(archive: Path, problems: list[str]) -> Iterator[tuple[Path, bytes]]:
    """The record files in an archive: the path that unpacking would give each, and its text."""
    raw = _read(archive)
    records, wrong = _untarred(archive, raw or b"")
    yield from records
    if wrong:
        why = "cannot be read" if raw is None else wrong
        problems.append(f"{archive.name} of {archive.parent.name}: the archive {why}")


def _untarred(archive: Path, raw: bytes) -> tuple[list[tuple[Path, bytes]], str]:
    """The record files in an archive that holds `raw`, and the problem with it."""
    folder = archive.with_name(archive.name.partition(".")[0])
    text, wrong = unpacked(raw, archive.suffix)
    wrong = _DAMAGED if wrong in (CUT, GARBLED) else wrong and f"{wrong}; what is beyond does not count"
    records, end = [], 0
    try:
        with tarfile.open(fileobj=io.BytesIO(text), mode="r:") as tar:
            for number, member in enumerate(tar):
                if number == _MOST_MEMBERS:
                    wrong = wrong or f"has more than {_MOST_MEMBERS} members; what is beyond does not count"
                    break
                end = member.offset_data + member.size
                name = member.name.removeprefix(f"{folder.name}/")
                if member.isreg() and not member.issparse() and _RECORDS.fullmatch(name):
                    records.append((folder / name, text[member.offset_data : end]))
                else:
                    wrong = wrong or _DAMAGED
    except (tarfile.TarError, ValueError, OverflowError):
        wrong = wrong or _DAMAGED
    # an archive ends with blocks of zeros, and a garbled header looks like its end
    if not wrong and (len(text) <= end or text[end:].strip(b"\0")):
        wrong = _DAMAGED
    return records, wrong


def _loose(folder: Path) -> list[Path]:
    return [folder / name for name in sorted(_names(folder)) if name.endswith(LOOSE)]


def _measurement(path: Path) -> str:
    return path.name.split(".")[0]


def unpacked(raw: bytes, suffix: str) -> tuple[bytes, str]:
    """All that can be unpacked within the limits of `reading`, and the problem if that is not everything."""
    stream, out, size = _STREAMS[suffix](), list[bytes](), 0
    piece = _PIECE_OF_GZIP if suffix == ".gz" else _PIECE
    try:
        for start in range(0, len(raw), piece):
            out.append(stream.decompress(raw[start : start + piece]))
            size += len(out[-1])
            if too_much := reading.beyond_limit(size, start + piece):
                return b"".join(out), too_much
    except (zlib.error, lzma.LZMAError, _zstd().ZstdError, EOFError):
        return b"".join(out), GARBLED
    return b"".join(out), (GARBLED if stream.unused_data else "") if stream.eof else CUT


def _read(path: Path) -> bytes | None:
    try:
        return reading.content(path, reading.RECORD_BYTES)
    except OSError:
        return None


def _names(folder: Path) -> list[str]:
    """The names in a directory; none if it cannot be read or is a link."""
    try:
        return [] if folder.is_symlink() else os.listdir(folder)  # noqa: PTH208 (a thousand nodes have a hundred thousand files)
    except OSError:
        return []
