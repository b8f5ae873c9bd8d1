"""Keep the former verdict of a campaign that is judged by other rules, and name each outcome that changed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from nodeprint import files, reading
from nodeprint.campaign import node_lists
from nodeprint.errors import printable
from nodeprint.settings.texts import say

#: Keys of rules, and groups of nodes with one change, that a message names.
_MOST_KEYS, _MOST_CHANGES = 4, 12


class _Node(msgspec.Struct):
    outcome: str


class _Rules(msgspec.Struct):
    """The rules of a verdict and the outcomes by them; older versions of verdicts state no rules."""

    fleet: _Node
    nodes: dict[str, _Node]
    method: int = 0
    rules: dict[str, Any] = {}


def read(folder: Path) -> bytes | None:
    """Return the verdict in a directory before it is judged again; None without a readable one."""
    try:
        return reading.content(folder / "verdict.json", reading.VERDICT_BYTES)
    except OSError:
        return None


def keep(folder: Path, former: bytes | None) -> str:
    """Keep a former verdict as verdict-N.json in the same directory if its rules were different.

    Returns the changes as sentences; empty if the rules are the same. Raises CannotWriteError.
    """
    before, now = _rules(former), _rules(read(folder))
    if former is None or before is None or now is None or (before.method, before.rules) == (now.method, now.rules):
        return ""
    number = next(n for n in range(1, 1 << 30) if not (folder / f"verdict-{n}.json").exists())
    kept = files.write(folder / f"verdict-{number}.json", former)
    changed = _outcomes(before, now)
    lines = [say("rejudged", "rules", changes=_changes(before, now), kept=kept)]
    lines += [f"  {line}" for line in changed[:_MOST_CHANGES]] or [f"  {say('rejudged', 'same')}"]
    if len(changed) > _MOST_CHANGES:
        lines.append(f"  {say('rejudged', 'more', count=len(changed) - _MOST_CHANGES)}")
    return "\n".join(lines)


def _rules(verdict: bytes | None) -> _Rules | None:
    try:
        return None if verdict is None else msgspec.json.decode(verdict, type=_Rules)
    except (ValueError, msgspec.MsgspecError, RecursionError):
        return None


def _outcomes(before: _Rules, now: _Rules) -> list[str]:
    """`cn[01-02]: SAME -> INCONCLUSIVE`, a line for each change of an outcome; the fleet's first."""
    groups: dict[tuple[str, str], list[str]] = {}
    for name in sorted(before.nodes.keys() & now.nodes.keys()):
        change = before.nodes[name].outcome, now.nodes[name].outcome
        if change[0] != change[1]:
            groups.setdefault(change, []).append(name)
    lines = [(node_lists.fold(names), change) for change, names in groups.items()]
    if before.fleet.outcome != now.fleet.outcome:
        lines.insert(0, ("fleet", (before.fleet.outcome, now.fleet.outcome)))
    return [printable(f"{names}: {old} -> {new}", 300) for names, (old, new) in lines]


def _changes(before: _Rules, now: _Rules) -> str:
    """Describe the changed rules: the version of the method, and acceptance keys with both values."""
    old, new = dict(_items(before.rules)), dict(_items(now.rules))
    keys = sorted(key for key in old.keys() | new.keys() if old.get(key) != new.get(key)) if before.rules else []
    words = [say("rejudged", "method", old=before.method, new=now.method)] if before.method != now.method else []
    words += [f"{key} {old.get(key, '-')} -> {new.get(key, '-')}" for key in keys[:_MOST_KEYS]]
    if len(keys) > _MOST_KEYS:
        words.append(say("rejudged", "more", count=len(keys) - _MOST_KEYS))
    return printable(", ".join(words), 400)


def _items(rules: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, object]]:
    for key, value in rules.items():
        if isinstance(value, Mapping):
            yield from _items(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value
