"""Checksums of derived files: a changed file is never used. A damaged disk, an interrupted copy or an editor changes
derived files without changing their names and sizes. Every reader of a store checks the seal first. It regenerates
files that do not match from the records. CRC-32 finds every error of up to 32 adjacent bits and misses one of four
billion others. It costs 0.4 s of CPU time per GB.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from pathlib import Path

import msgspec

from nodeprint import files, reading

#: The seal of a folder, in the folder.
NAME = "seal.json"
_PIECE = 1 << 20
_BYTES = 4


def write(base: Path, paths: Iterable[Path], seal: Path) -> None:
    """Seal files of the directory `base`: CRC-32 by relative path, under the key `crc32`. Raises CannotWriteError."""
    sums = {path.relative_to(base).as_posix(): _crc32(path) for path in sorted(paths)}
    files.write(seal, msgspec.json.encode({"crc32": sums}) + b"\n")


def write_folder(folder: Path) -> None:
    """Seal all files of a directory and its subdirectories. Raises CannotWriteError."""
    seal = folder / NAME
    write(folder, (path for path in folder.rglob("*") if path.is_file() and path != seal), seal)


def check(base: Path, seal: Path) -> None:
    """Check the sealed files of the directory `base`. Raises ValueError if one of them or the seal has changed, OSError
    if one is missing or not a regular file."""
    try:
        sums = msgspec.json.decode(reading.content(seal, reading.RECORD_BYTES), type=dict[str, dict[str, int]])["crc32"]
    except (KeyError, msgspec.MsgspecError) as error:
        raise ValueError(f"{seal.name} is not as it was written") from error
    for name, crc in sums.items():
        if _crc32(base / name) != crc:
            raise ValueError(f"{name} is not as it was written")


def sealed(content: bytes) -> bytes:
    """The content of a file with its checksum at the end."""
    return content + zlib.crc32(content).to_bytes(_BYTES, "little")


def unsealed(raw: bytes) -> bytes:
    """The content of `sealed`. Raises ValueError where it is not as it was written."""
    content, crc = raw[:-_BYTES], raw[-_BYTES:]
    if len(crc) < _BYTES or zlib.crc32(content) != int.from_bytes(crc, "little"):
        raise ValueError("is not as it was written")
    return content


def _crc32(path: Path) -> int:
    crc = 0
    with reading.opened(path) as file:
        while piece := file.read(_PIECE):
            crc = zlib.crc32(piece, crc)
    return crc
