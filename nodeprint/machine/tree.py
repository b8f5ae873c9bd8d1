"""A machine's files below a root: the live system, a captured directory, or an archive that is not unpacked.

Paths are relative to the root: `sys/devices/system/cpu/online`. Links are followed inside the tree
only: an absolute link counts from its root, and nothing outside is read. Contents come from machines nobody
vouches for, so sizes are bounded.
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import re
import stat
import tarfile
import zlib
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import IO, cast

from nodeprint import reading
from nodeprint.errors import NodeprintError, unreadable

#: Paths that mark the root of a machine, best first.
ROOT_MARKS = ("sys/devices/system/cpu", "sys/devices/system/node", "proc/cpuinfo")

_FILE_LIMIT = 64 << 20  # the largest real file is an XML or cpuinfo of a few MiB
_MOST_LINKS = 40  # as Linux
_BROKEN = (tarfile.TarError, EOFError, OSError, zlib.error, lzma.LZMAError, ValueError, OverflowError)
_MAGIC = ((b"\x1f\x8b", gzip.open), (b"BZh", bz2.open), (b"\xfd7zXZ\x00", lzma.open))


def contents(path: Path, limit: int = _FILE_LIMIT) -> bytes:
    """All of the file `path`, unpacked where it is gzip, bzip2 or xz, at most `limit` bytes.

    Raises NodeprintError where it cannot be read, is garbled or larger.
    """
    try:
        with path.open("rb") as plain:
            opens = next((opens for magic, opens in _MAGIC if plain.peek(6).startswith(magic)), None)
            file = cast("IO[bytes]", opens(plain)) if opens else plain
            data = file.read(limit + 1)
    except _BROKEN as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise unreadable(path, error) from error
        raise NodeprintError("the compressed file is cut or garbled", where=path, advice="copy it again") from error
    if len(data) > limit:
        raise NodeprintError(f"is larger than {limit >> 20} MiB", where=path, advice="give one matrix or topology")
    return data


class Tree(ABC):
    """Files below a root. `source` names it in messages. Absent and unreadable are one: None, or no names."""

    def __init__(self, source: str) -> None:
        self.source = source

    @abstractmethod
    def read_bytes(self, path: str) -> bytes | None:
        """The contents of the regular file `path`, at most 64 MiB, or None."""

    @abstractmethod
    def names(self, path: str) -> list[str]:
        """The sorted names in the directory `path` (`""` is the root)."""

    def read_text(self, path: str) -> str | None:
        """The contents of `path` as UTF-8, bytes that are none replaced, or None."""
        data = self.read_bytes(path)
        return None if data is None else data.decode("utf-8", errors="replace")


class _Folder(Tree):
    """A directory on disk, or the live system."""

    def __init__(self, root: Path) -> None:
        super().__init__(str(root))
        self._root = os.path.realpath(root)
        self._folders: dict[str, str | None] = {}

    def _real(self, path: str) -> str | None:
        """`path` with links followed, or None where that leads out of the root."""
        if self._root == "/":
            return f"/{path}"
        folder, _, name = path.rpartition("/")
        if folder not in self._folders:
            self._folders[folder] = self._walk(self._root, folder)
        start = self._folders[folder]
        return None if start is None else self._walk(start, name)

    def _walk(self, start: str, path: str) -> str | None:
        todo, real, links = path.split("/")[::-1], start, 0
        while todo:
            name = todo.pop()
            if name == "..":
                if real == self._root:
                    return None
                real = real.rpartition("/")[0]
            elif name not in ("", "."):
                real = f"{real}/{name}"
                if os.path.islink(real):  # noqa: PTH114 (twenty thousand files: Path is six times slower)
                    links += 1
                    if links > _MOST_LINKS:
                        return None
                    target = os.readlink(real)  # noqa: PTH115
                    real = self._root if target.startswith("/") else real.rpartition("/")[0]
                    todo += target.split("/")[::-1]
        return real

    def read_bytes(self, path: str) -> bytes | None:
        try:
            real = self._real(path)
            if real is None or not stat.S_ISREG(os.stat(real).st_mode):  # noqa: PTH116
                return None
            with open(real, "rb") as file:  # noqa: PTH123
                data = _read(file)
        except (OSError, ValueError):
            return None
        return data if len(data) <= _FILE_LIMIT else None

    def names(self, path: str) -> list[str]:
        try:
            real = self._real(path)
            return [] if real is None else sorted(os.listdir(real))  # noqa: PTH208 (names, not paths)
        except (OSError, ValueError):
            return []


def _read(file: IO[bytes]) -> bytes:
    """Up to the limit and a little, in pieces: the kernel refuses to fill a buffer of MiBs from /proc/sys."""
    data = bytearray()
    while len(data) <= _FILE_LIMIT and (piece := file.read(1 << 16)):
        data += piece
    return bytes(data)


class _Archive(Tree):
    """A tar file's members in memory."""

    def __init__(self, source: str, files: dict[str, bytes], links: dict[str, str]) -> None:
        super().__init__(source)
        self._files, self._links = files, links
        self._folders: dict[str, str | None] = {"": ""}
        self._children: dict[str, set[str]] = {"": set()}
        for path in (*files, *links):
            self._add_parents(path)

    def _add_parents(self, path: str) -> None:
        while path:
            parent, _, name = path.rpartition("/")
            siblings = self._children.get(parent)
            if siblings is not None:
                siblings.add(name)
                return
            self._children[parent] = {name}
            path = parent

    def add_folders(self, paths: Iterable[str]) -> None:
        """Add directories, including empty ones: a CPU that is offline has one."""
        for path in paths:
            self._add_parents(path)
            self._children.setdefault(path, set())

    def find(self, marks: Sequence[str]) -> str | None:
        """The shortest prefix below which one of `marks` is, tried in order; None without any."""
        paths = {*self._children, *self._files}
        for mark in marks:
            if mark in paths:
                return ""
            tops = [p[: -len(mark)].rstrip("/") for p in paths if p == mark or p.endswith("/" + mark)]
            if tops:
                return min(tops, key=lambda top: (top.count("/") + bool(top), top))
        return None

    def rerooted(self, prefix: str) -> Tree:
        """The tree below `prefix`, with absolute links counted from there."""
        if not prefix:
            return self
        cut = len(prefix) + 1
        inside = prefix + "/"
        files = {p[cut:]: d for p, d in self._files.items() if p.startswith(inside)}
        links = {p[cut:]: t for p, t in self._links.items() if p.startswith(inside)}
        out = _Archive(self.source, files, links)
        out.add_folders(p[cut:] for p in self._children if p.startswith(inside))
        return out

    def _real(self, path: str) -> str | None:
        """`path` with links followed, or None where that leads out of the root."""
        if path in self._files:
            return path
        folder, _, name = path.rpartition("/")
        if folder not in self._folders:
            self._folders[folder] = self._real(folder)
        start = self._folders[folder]
        if start is None:
            return None
        real = f"{start}/{name}" if start else name
        return self._walk(real) if real in self._links or name in ("", ".", "..") else real

    def _walk(self, path: str) -> str | None:
        todo, done, links = path.split("/")[::-1], list[str](), 0
        while todo:
            name = todo.pop()
            if name == "..":
                if not done:
                    return None
                done.pop()
            elif name not in ("", "."):
                done.append(name)
                target = self._links.get("/".join(done))
                if target is not None:
                    links += 1
                    if links > _MOST_LINKS:
                        return None
                    done = [] if target.startswith("/") else done[:-1]
                    todo += target.split("/")[::-1]
        return "/".join(done)

    def read_bytes(self, path: str) -> bytes | None:
        real = self._real(path)
        return None if real is None else self._files.get(real)

    def names(self, path: str) -> list[str]:
        real = self._real(path)
        return [] if real is None else sorted(self._children.get(real, ()))


def _read_all(stream: io.BufferedIOBase, packed: int) -> bytes:
    """All of a stream that may unpack without end, from `packed` bytes. Raises tarfile.ReadError beyond the limit."""
    content = bytearray()
    while data := stream.read(1 << 20):
        content += data
        if too_much := reading.beyond_limit(len(content), packed):
            raise tarfile.ReadError(f"it {too_much}")
    return bytes(content)


def _member_path(name: str) -> str | None:
    """A member's path without `./` and leading `/`; None where it climbs."""
    if "." not in name and "//" not in name and name[:1] not in ("", "/") and name[-1] != "/":
        return name
    parts = [part for part in name.split("/") if part not in ("", ".")]
    return None if ".." in parts or not parts else "/".join(parts)


def _read_archive(path: Path) -> _Archive:
    from nodeprint.machine import tar  # noqa: PLC0415 (its numpy is for archives alone)

    files: dict[str, bytes] = {}
    links: dict[str, str] = {}
    folders: list[str] = []
    try:
        with path.open("rb") as file:
            magic = file.read(6)
        opener = next((opener for start, opener in _MAGIC if magic.startswith(start)), io.open)
        with opener(path, "rb") as stream:
            # to the end, where the checksum is; at once, as a stream of thousands of small files takes twice the time
            content = _read_all(stream, path.stat().st_size)
        for member in tar.members(content):
            name = _member_path(member.name)
            if name is None:
                continue
            files.pop(name, None), links.pop(name, None)  # the last of a name counts
            if member.isreg() and not member.issparse() and member.size <= _FILE_LIMIT:
                files[name] = content[member.offset_data : member.offset_data + member.size]
                if len(files[name]) < member.size:
                    raise tarfile.ReadError("unexpected end of data")
            elif member.issym():
                links[name] = member.linkname
            elif member.islnk():
                links[name] = "/" + member.linkname
            elif member.isdir():
                folders.append(name)
    except _BROKEN as error:
        raise NodeprintError(
            f"cannot be read as an archive ({error})",
            where=path,
            advice="capture it again or give its directory",
        ) from None
    # A hard link's target counts from the archive's top, which the tree's root need not be: resolve it now.
    for name, target in list(links.items()):
        inside = _member_path(target)
        if target.startswith("/") and inside in files:
            files[name] = files[inside]
            del links[name]
    archive = _Archive(str(path), files, links)
    archive.add_folders(folders)
    return archive


def _folder_root(path: Path, marks: Sequence[str]) -> Path | None:
    """`path`, or the only directory up to two levels below that holds one of `marks` (an unpacked archive)."""
    for mark in marks:
        if (path / mark).exists():
            return path
    for depth in ("*", "*/*"):
        roots = sorted({below for mark in marks for below in path.glob(depth) if (below / mark).exists()})
        if len(roots) == 1:
            return roots[0]
    return None


def open_tree(path: Path, marks: Sequence[str] = ROOT_MARKS) -> Tree:
    """The tree of a machine: a root directory (`/` is the live system) or a tar file (plain, gzip, bzip2, xz).

    An archive may hold the root below any directory: the root is where one of `marks` is found, tried in order.
    Raises NodeprintError where `path` is absent, garbled, or holds no such root.
    """
    try:
        if path.is_dir():
            root = _folder_root(path, marks)
            if root is not None:
                return _Folder(root)
        elif path.is_file():
            archive = _read_archive(path)
            prefix = archive.find(marks)
            if prefix is not None:
                return archive.rerooted(prefix)
        else:
            raise NodeprintError(
                "no such directory or archive", where=path, advice="give a root directory or a tar file of one"
            )
    except OSError as error:
        raise unreadable(path, error) from None
    wanted = re.sub(r", (?=[^,]*$)", " or ", ", ".join(marks))
    raise NodeprintError(
        f"holds no {wanted}", where=path, advice="give the root of a machine's files, or a survey.tar.gz"
    )
