"""The members of a tar file in memory, in one pass over its headers: a survey has seven thousand."""

from __future__ import annotations

import io
import struct
import tarfile
import zlib
from collections.abc import Iterable, Iterator
from typing import Literal, NamedTuple

Kind = Literal["file", "folder", "link", "hard link", "other"]

#: Name, size, checksum, kind, target of a link, and what precedes the name.
_HEADER = struct.Struct("100s24x12s12x8s1s100s88x155s12x")
_KINDS: dict[bytes, Kind] = {b"0": "file", b"5": "folder", b"2": "link", b"1": "hard link"}
_LONG_NAME, _LONG_TARGET = b"L", b"K"
#: The modulus of Adler-32, whose lower half is one more than the sum of the bytes.
_ADLER = 65521


class Member(NamedTuple):
    """A member: a file's bytes are content[start : start + size], a link's `target` is as written."""

    name: str
    kind: Kind
    start: int
    size: int
    target: str


def members(content: bytes) -> Iterable[Member]:
    """The members of the tar file `content`. Raises tarfile.TarError, ValueError or OverflowError where it is none."""
    usual = _usual(content)
    return _any(content) if usual is None else usual


def _any(content: bytes) -> Iterator[Member]:
    """By tarfile, which knows every kind of header and takes ten times as long."""
    with tarfile.open(fileobj=io.BytesIO(content), mode="r:") as tar:
        for one in tar:
            kind: Kind = "file" if one.isreg() and not one.issparse() else "other"
            kind = "folder" if one.isdir() else "link" if one.issym() else "hard link" if one.islnk() else kind
            yield Member(one.name, kind, one.offset_data, one.size, one.linkname)


def _usual(content: bytes) -> list[Member] | None:
    """Where all headers are as tar writes them of files, folders and links; None where any is not."""
    found: list[Member] = []
    long: dict[bytes, bytes] = {}
    at = 0
    try:
        while True:
            name, size_text, sum_text, kind, target, prefix = _HEADER.unpack_from(content, at)
            if not name[0]:
                break
            start, size = at + _HEADER.size, _octal(size_text)
            summed = zlib.adler32(content[at + 156 : start], zlib.adler32(content[at : at + 148])) & 0xFFFF
            if (_octal(sum_text) - 8 * ord(" ") + 1) % _ADLER != summed or not 0 <= size <= len(content) - start:
                return None
            at = start if kind in b"125" else start + -(-size // _HEADER.size) * _HEADER.size
            if kind in (_LONG_NAME, _LONG_TARGET):
                long[kind] = content[start : start + size]
                continue
            if prefix[0]:
                name = _text(prefix) + b"/" + _text(name)
            if long:
                name, target, long = long.get(_LONG_NAME, name), long.get(_LONG_TARGET, target), {}
            called = _decoded(name).rstrip("/") if kind == b"5" else _decoded(name)
            found.append(Member(called, _KINDS[kind], start, size, _decoded(target) if target[0] else ""))
    except (ValueError, KeyError, IndexError, struct.error):
        return None
    ended = not content[at : at + _HEADER.size].strip(b"\0")
    return found if ended and found and not long else None


def _octal(field: bytes) -> int:
    return int(_text(field).strip() or b"0", 8)


def _text(field: bytes) -> bytes:
    return field.partition(b"\0")[0]


def _decoded(name: bytes) -> str:
    return _text(name).decode("utf-8", "surrogateescape")
