"""Atomic writes that replace only regular files.

A rename replaces any target, and root may even replace /dev/null with a table. So each target is checked first. A
symbolic link is rejected: its target may belong to somebody else, and replacing the link would cut it off. Links among
the parent directories of a path are followed.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from nodeprint.errors import CannotWriteError

_KINDS = {
    stat.S_IFBLK: "a device",
    stat.S_IFCHR: "a device",
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a pipe",
    stat.S_IFLNK: "a symbolic link",
    stat.S_IFREG: "a file",
    stat.S_IFSOCK: "a socket",
}


def write(path: Path, content: str | bytes | memoryview) -> Path:
    """Write the file `path`, with the directories it lies in; returns it. Raises CannotWriteError."""
    with replacing(path) as partial:
        partial.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A new empty file next to `path`, to be written to; it becomes `path` at the end, in one step.

    A reader sees either the old file or the new one. Parent directories are created. Raises CannotWriteError if `path`
    exists and is not a regular file, before anything is written, or if writing fails.
    """
    with _partial(path, stat.S_IFREG) as partial:
        partial.touch(exist_ok=False)  # by O_EXCL: a link that waits under this name is not followed
        yield partial
        partial.replace(path)


@contextmanager
def replacing_folder(path: Path) -> Iterator[Path]:
    """As `replacing`, for a directory: its former content is gone at the end."""
    check_directories(path)
    with _partial(path, stat.S_IFDIR) as partial:
        partial.mkdir()
        yield partial
        if path.exists():
            shutil.rmtree(path)
        partial.replace(path)


def make_directories(path: Path) -> None:
    """Make the directory `path` with those it lies in. Raises CannotWriteError as `check_directories` does."""
    check_directories(path)
    path.mkdir(parents=True, exist_ok=True)


def check_directories(path: Path) -> None:
    """Raise CannotWriteError if the directory `path` would need a new one in `/`.

    Root may create it, but a path that begins with a missing name is a typing error.
    """
    top = Path(*path.absolute().parts[:2])
    if not top.exists():
        problem = "does not exist, and nodeprint creates no directory in `/`"
        raise CannotWriteError(problem, where=top, advice="create it, or name another path")


def opened(path: Path) -> int:
    """A descriptor that appends to the file `path`, made where it is not there; nothing is followed or waited for.

    Raises CannotWriteError where it is no regular file, has another name, or cannot be opened.
    """
    check(path)
    try:
        make_directories(path.parent)
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK, 0o666)
    except OSError as error:
        raise CannotWriteError(
            f"cannot be written by this user ({error.strerror})",
            where=path,
            advice="make it writable, or work in a copy of your own",
        ) from error


def own_folder(path: Path) -> Path:
    """Create the directory `path` if it is missing; returns it.

    Raises CannotWriteError if it is a link: the owner of its target would get the results.
    """
    try:
        if path.is_symlink():
            raise CannotWriteError("is a symbolic link; results need a directory", where=path, advice="remove the link")
        make_directories(path)
    except OSError as error:
        advice = "make it writable, or work in a copy of your own"
        raise CannotWriteError(f"cannot be made ({error.strerror})", where=path, advice=advice) from error
    return path


def refuse_links(*folders: Path) -> None:
    """Raise CannotWriteError if one of these directories of a campaign is a link."""
    for folder in folders:
        if folder.is_symlink():
            own_folder(folder)


def check(path: Path) -> None:
    """Raise CannotWriteError if a file of a campaign is not a regular file or has another name (a hard link).

    Call it before the file is appended to or another program writes it.
    """
    advice = "remove it, then run again"
    _check(path, stat.S_IFREG, advice)
    with suppress(OSError):
        if path.lstat().st_nlink > 1:
            problem = "has another name (a hard link), and what is written would change that file, too"
            raise CannotWriteError(problem, where=path, advice=advice)


def rename(path: Path, name: str) -> None:
    """Give a file another name in its directory. Raises CannotWriteError as `replacing` does."""
    target = path.with_name(name)
    _check(target, stat.S_IFREG)
    path.replace(target)


def remove(path: Path) -> None:
    """Remove `path` where it is a regular file; anything else stays."""
    with suppress(OSError):
        if stat.S_ISREG(path.lstat().st_mode):
            path.unlink()


@contextmanager
def _partial(path: Path, kind: int) -> Iterator[Path]:
    """A free name next to `path` that is removed at the end; an OSError becomes a CannotWriteError."""
    _check(path, kind)
    partial = path.with_name(f".{path.name[:100]}.{os.urandom(4).hex()}")
    try:
        make_directories(path.parent)
        yield partial
    except (FileExistsError, NotADirectoryError) as error:
        file = next((str(folder) for folder in path.parents if folder.is_file()), "a part of its path")
        what = f"cannot be written, as {file} is a file"
        raise CannotWriteError(what, where=path, advice="name a directory, or a free path") from error
    except OSError as error:
        raise CannotWriteError(
            f"cannot be written ({error.strerror or error})",
            where=path,
            advice="make room or make the directory writable, or set `results` in the configuration",
        ) from error
    finally:
        with suppress(OSError):
            shutil.rmtree(partial) if kind == stat.S_IFDIR else partial.unlink()


def _check(path: Path, kind: int, advice: str = "") -> None:
    """See that `path` is not there, or of this kind (stat.S_IFREG, stat.S_IFDIR). Raises CannotWriteError otherwise."""
    if path.parts[:1] == ("-",):
        advice = "name a file; without this option, or with `--json`, commands print to standard output"
        raise CannotWriteError("`-` is not accepted as a file", where=path, advice=advice)
    try:
        found = stat.S_IFMT(os.lstat(path).st_mode)
    except OSError:  # not there, or not to be reached: said where it is written
        return
    if found != kind:
        raise CannotWriteError(
            f"is {_KINDS.get(found, 'something else')}, and only {_KINDS[kind]} is replaced",
            where=path,
            advice=advice or f"name {_KINDS[kind]} or a free path",
        )


def real(path: Path) -> Path:
    """A path in full, without links; of links that lead to each other as far as they are followed."""
    return Path(os.path.realpath(path))


def sums(paths: Iterable[Path], base: Path) -> str:
    """A line each as sha256sum writes it, relative to `base`: `sha256sum -c` there checks them."""
    lines = []
    for path in paths:
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256")
        lines.append(f"{digest.hexdigest()}  {os.path.relpath(path, base)}\n")
    return "".join(lines)
