"""The machine stays as it is: what a test that runs as root could break, and nothing else changes within a test."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

#: What a test that runs as root could break, and nothing else on a machine changes within a test: devices that all
#: programs use, and files of the administrator. (The virtual cluster has an /etc of its own in a namespace.)
_DEVICES = ("null", "zero", "full", "random", "urandom", "tty", "ptmx", "stdin", "stdout", "stderr", "fd", "shm")


_FILES = ("passwd", "group", "shadow", "hosts", "hostname", "fstab", "profile", "environment", "ld.so.preload")


WATCHED = (*(Path("/dev", name) for name in _DEVICES), *(Path("/etc", name) for name in _FILES))


def condition(paths: Iterable[Path]) -> dict[Path, tuple[int, ...] | None]:
    """What each path is: kind, rights and device number; outside /dev also which file or folder, and how old."""
    conditions: dict[Path, tuple[int, ...] | None] = {}
    for path in paths:
        try:
            facts = path.lstat()
        except OSError:
            conditions[path] = None
            continue
        own = () if path.parent == Path("/dev") or path.is_symlink() else (facts.st_ino, facts.st_mtime_ns)
        conditions[path] = (facts.st_mode, facts.st_rdev, *own)
    return conditions
