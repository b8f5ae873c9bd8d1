"""Limits of this process by a machine's control groups (versions 1 and 2), from the files of a root.

The limits of all parent groups apply too: the smallest is effective. Sources:
https://docs.kernel.org/admin-guide/cgroup-v2.html, .../cgroup-v1/memory.html, .../scheduler/sched-bwc.html.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from nodeprint.machine.tree import Tree

#: Version 1 writes "no limit" as the largest multiple of a page that fits; nothing real comes near.
_UNLIMITED_BYTES = 1 << 60


def cpu_quota(tree: Tree) -> float | None:
    """The quota of the process of `proc/self/cgroup` in CPUs' worth of time; None if there is no limit."""
    quotas = (_quota(tree, folder) for folder in _folders_of_process(tree))
    return min((quota for quota in quotas if quota is not None), default=None)


def memory_limit(tree: Tree) -> int | None:
    """The most memory of the process of `proc/self/cgroup` in bytes; None if there is no limit."""
    names = ("memory.max", "memory.high", "memory.limit_in_bytes")
    sizes = (_number(tree.read_text(f"{folder}/{name}")) for folder in _folders_of_process(tree) for name in names)
    return min((size for size in sizes if size is not None and size < _UNLIMITED_BYTES), default=None)


def _folders_of_process(tree: Tree) -> list[str]:
    return sorted(set(_folders(tree.read_text("proc/self/cgroup") or "")))


def _folders(groups: str) -> Iterator[str]:
    """Possible mount points of the groups of `proc/self/cgroup` and their parents."""
    for line in groups.splitlines():
        _, _, rest = line.partition(":")
        controllers, colon, path = rest.partition(":")
        if not colon or ".." in path.split("/"):
            continue
        parts = [part for part in path.split("/") if part]
        names = {"", "unified"} if not controllers else {controllers, *controllers.split(",")}
        for name in names:
            for depth in range(len(parts) + 1):
                yield "/".join(["sys/fs/cgroup", *([name] if name else []), *parts[:depth]])


def _quota(tree: Tree, folder: str) -> float | None:
    both = (tree.read_text(f"{folder}/cpu.max") or "").split()
    if len(both) == 2:
        quota, period = _number(both[0]), _number(both[1])
    else:
        quota = _number(tree.read_text(f"{folder}/cpu.cfs_quota_us"))
        period = _number(tree.read_text(f"{folder}/cpu.cfs_period_us"))
    return quota / period if quota and period else None


def _number(text: str | None) -> int | None:
    """A whole number; None for `max`, -1 and anything else."""
    return int(text) if text is not None and re.fullmatch(r"\s*\d{1,20}\s*", text) else None
