"""Names of nodes and runs in few words."""

from __future__ import annotations

from collections.abc import Sequence

#: Longer lists are cut.
_MOST_ITEMS = 12


def name_list(names: Sequence[str]) -> str:
    """Names in few words: following numbers as cn[001-040] or job1/run[1-6], and no more than _MOST_ITEMS items."""
    runs: list[list[str]] = []
    for name in names:
        if runs and _follows(runs[-1][-1], name):
            runs[-1].append(name)
        else:
            runs.append([name])
    parts: list[str] = []
    for run in runs:
        prefix = _prefix(run[0])
        parts += [f"{prefix}[{run[0][len(prefix) :]}-{run[-1][len(prefix) :]}]"] if len(run) > 2 else run
    more = len(parts) - _MOST_ITEMS
    return ", ".join(parts[:_MOST_ITEMS]) + (f" and {more} more" if more > 0 else "")


def _prefix(name: str) -> str:
    return name.rstrip("0123456789")


def _follows(before: str, after: str) -> bool:
    prefix = _prefix(before)
    if _prefix(after) != prefix:
        return False
    left, right = before[len(prefix) :], after[len(prefix) :]
    if not left or not right or int(right) != int(left) + 1:
        return False
    return len(left) == len(right) or not (left + right).startswith("0")
