"""Safe reads of files that nodes wrote into a shared directory: only regular files, with limits on both sizes.

A named pipe would block, and a symbolic link may lead to another user's file. A compressed file of some KiB may hold
GiBs of zeros. Output of kernels and surveys packs at most 60-fold (a survey of 2x64 cores: 54, records: 5 to 13).
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedReader
from pathlib import Path

from nodeprint.errors import unreadable

#: A status.json, a list or a log is at most so large; a status of 50 measurements in 6 runs has 60 KiB.
TEXT_BYTES = 4 << 20
#: A record file or an archive on disk, and what it unpacks to; the archive of a run on 256 CPUs has 9 MiB unpacked.
RECORD_BYTES = 256 << 20
#: A verdict of ten thousand nodes is at most so large.
VERDICT_BYTES = 1 << 30
#: So much may be unpacked of any file; beyond it at most so many times the bytes that it has.
FREE_BYTES, MOST_TIMES = 8 << 20, 200
#: No number of a job, of a run or of CPUs is larger: nine digits fit every integer type that it is stored in.
MOST_WHOLE = 999_999_999


@contextmanager
def opened(path: Path, *, follows: bool = False) -> Iterator[BufferedReader]:
    """The regular file `path`, opened for reading; a link is followed where it `follows`, as to a file that a user
    names. Raises OSError where it is none, or cannot be opened."""
    no_link = 0 if follows else os.O_NOFOLLOW
    try:
        descriptor = os.open(path, os.O_RDONLY | no_link | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise OSError(errno.ELOOP, "it is a symbolic link, and none is followed", str(path)) from error
        raise
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "it is no regular file", str(path))
        yield file


def regular(path: Path) -> Path:
    """`path`, for a library that opens it itself: it is a regular file. Raises OSError where it is none."""
    with opened(path):
        return path


def content(path: Path, most: int = TEXT_BYTES, *, follows: bool = False) -> bytes:
    """All of the regular file `path`, as `opened` opens it. Raises OSError where it is none, cannot be read or has more
    than `most` bytes."""
    with opened(path, follows=follows) as file:
        if os.fstat(file.fileno()).st_size > most:
            raise OSError(errno.EFBIG, f"it is larger than {most >> 20} MiB", str(path))
        return file.read(most)


def text(path: Path, most: int = TEXT_BYTES) -> str:
    """All of the regular file `path` as UTF-8, with invalid bytes replaced. Raises OSError as `content` does."""
    return content(path, most).decode(errors="replace")


def required(path: Path) -> str:
    """The text of a file that must be there. Raises NodeprintError with its path."""
    try:
        return text(path)
    except OSError as error:
        raise unreadable(path, error) from error


def whole_number(text: str) -> int | None:
    """A number of at most nine ASCII digits; None where `text` is none."""
    return int(text) if len(text) <= len(str(MOST_WHOLE)) and text.isascii() and text.isdigit() else None


def beyond_limit(unpacked: int, packed: int, most: int = RECORD_BYTES) -> str:
    """The problem with a file of `packed` bytes that has yielded `unpacked` bytes so far; empty if none."""
    if unpacked > most:
        return f"unpacks to more than {most >> 20} MiB"
    if unpacked > max(FREE_BYTES, MOST_TIMES * packed):
        return f"unpacks to more than {MOST_TIMES} times its size"
    return ""
