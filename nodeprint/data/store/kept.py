"""Values that are made from files once, each in a file of its own with a stamp of its sources."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import numpy as np
import zstandard

from nodeprint import files, reading
from nodeprint.campaign import derived
from nodeprint.data import seal

Value = TypeVar("Value")


def stamp(made_of: Iterable[Path], *rules: Any) -> str:
    """Return a digest of source files (name, size, time of writing) and of the rules for them. An equal stamp means
    that the value is current. Take it before reading the files, because later writes count as new."""
    sources = []
    for path in made_of:
        with suppress(OSError):
            status = path.stat()
            sources.append(("/".join(path.parts[-3:]), status.st_size, status.st_mtime_ns))
    return hashlib.sha256(msgspec.json.encode([derived.SCHEMA, rules, sources])).hexdigest()[:16]


def read(path: Path, kind: type[Value], stamped: str | None) -> Value | None:
    """Read the value in a file: None if it has another stamp (unless `stamped` is None), cannot be read, or is not of
    this kind."""
    value: Value
    with suppress(OSError, ValueError, TypeError, RecursionError, msgspec.MsgspecError, zstandard.ZstdError):
        packed = seal.unsealed(reading.content(path, reading.RECORD_BYTES))
        of_kind: Any = kind
        stamp_of_value, value = _decoder(of_kind).decode(zstandard.ZstdDecompressor().decompress(packed))
        if stamped in (None, stamp_of_value):
            return value
    return None


def write(path: Path, value: object, stamped: str) -> None:
    """Write a value with its stamp. Raises CannotWriteError."""
    # its fastest level: a better one makes a twentieth less of a node's jobs, in three times the time
    packer = zstandard.ZstdCompressor(1)
    packed = packer.compress(msgspec.msgpack.encode((stamped, value), enc_hook=_encoded))
    files.write(path, seal.sealed(packed))


@cache
def _decoder(kind: Any) -> msgspec.msgpack.Decoder[Any]:
    return msgspec.msgpack.Decoder(tuple[str, kind], dec_hook=_decoded)


def _encoded(array: Any) -> Any:
    """An array as its type, shape and content, or a number of numpy's."""
    if isinstance(array, np.generic):
        return array.item()
    return array.dtype.str, array.shape, np.ascontiguousarray(array).tobytes()


def _decoded(_: type, content: Any) -> Any:
    """What `_encoded` made an array of, as an array. Raises ValueError or TypeError where it is none."""
    dtype, shape, raw = content
    return np.frombuffer(raw, dtype).reshape(shape)
