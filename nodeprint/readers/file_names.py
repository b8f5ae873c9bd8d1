"""The node of a file by its path: from the user's pattern, or from the only part that differs between the names."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence

from nodeprint.errors import NodeprintError, printable
from nodeprint.readers import host_words

_ENDINGS = (".gz", ".xz", ".txt", ".log", ".out", ".json", ".jsonl", ".csv", ".dat", ".result", ".results")
_SEPARATOR = re.compile(r"[-_./]+")
#: What a pattern's parts stand for, at their shortest and at their longest; a node's name has no folder in it.
_SHORTEST = {"{node}": r"([^/]+?)", "*": r"[^/]*"}
_LONGEST = {"{node}": r"([^/]+)", "*": r"[^/]*?"}
#: What to do where names do not tell which node each file is of.
_STATE = "state where the node's name is, as '{node}-*.log' or '{node}/run*.out'"


def nodes(paths: Sequence[str], pattern: str, source: str) -> dict[str, str]:
    """The node of each path below a directory: from {node} in the `pattern`, else the only part in which names differ.

    A single path is a node of its name. Raises NodeprintError if the pattern does not fit, or if names may count runs,
    jobs or days.
    """
    names = host_words.distinct(paths)
    if pattern:
        return _by_pattern(names, pattern, source)
    if len(names) == 1:
        return {names[0]: stem(names[0].rpartition("/")[2])}
    return _by_difference(names, source)


def _by_pattern(names: Sequence[str], pattern: str, source: str) -> dict[str, str]:
    if pattern.count("{node}") != 1:
        raise NodeprintError("has no {node}", key="--node-name", advice="write it once, as 'stream-{node}.log'")
    parts = re.split(r"(\{node\}|\*)", pattern)
    found, longest = (
        {name: match[1] for name in names if (match := expression.fullmatch(name))}
        for expression in (_expression(parts, meant) for meant in (_SHORTEST, _LONGEST))
    )
    twofold = next((name for name in found if found[name] != longest[name]), None)
    if twofold is not None:
        ways = f"{printable(found[twofold], 40)} and {printable(longest[twofold], 40)}"
        raise NodeprintError(
            f"fits {printable(twofold, 60)} in two ways ({ways})",
            where=source,
            key="--node-name",
            advice="write more of what stands beside the node's name",
        )
    other = next((name for name in names if name not in found), None)
    if other is not None:
        which = "fits no file, as" if not found else "does not fit"
        raise NodeprintError(
            f"{which} {printable(other, 60)}",
            where=source,
            key="--node-name",
            advice="write a file's path with {node} for the name and * for other differences",
        )
    return found


def _expression(parts: Sequence[str], meant: Mapping[str, str]) -> re.Pattern[str]:
    return re.compile("(?:.*/)?" + "".join(meant.get(part, re.escape(part)) for part in parts))


def _by_difference(names: Sequence[str], source: str) -> dict[str, str]:
    stems = {name: stem(name) for name in names}
    first, last = _common(list(stems.values()))
    rests = {name: text[first : len(text) - last] or text for name, text in stems.items()}
    in_front = next(iter(stems.values()))[:first].rpartition("/")[2]
    before = (host_words.words(in_front) or [""])[-1]
    found = {}
    for name, rest in rests.items():
        fields = set(_SEPARATOR.split(rest))  # cn001/cn001 says it twice
        if len(fields) > 1:
            raise _several_parts(list(rests.values()), rest, source)
        field = fields.pop()
        if not host_words.may_be_host(field, before):
            what = f"its files differ in {printable(rest, 40)}, which may be a run, a job or a part of a node"
            raise NodeprintError(what, where=source, key="--node-name", advice=_STATE)
        found[name] = field
    often = Counter(found.values())
    again = next((name for name in names if often[found[name]] > 1), None)
    if again is not None:
        what = f"{printable(again, 60)} and another file would be {printable(found[again], 40)}"
        raise NodeprintError(what, where=source, key="--node-name", advice=_STATE)
    return found


def _several_parts(rests: Sequence[str], rest: str, source: str) -> NodeprintError:
    """The refusal of names that differ in several parts, with two files that share what may be a node's name."""
    fields = [_SEPARATOR.split(text) for text in rests]
    hosts = [
        (at, field) for at, field in enumerate(fields[0]) if not field.isdecimal() and host_words.may_be_host(field)
    ]
    for at, field in hosts:
        others = [text for text, own in zip(rests[1:], fields[1:], strict=True) if own[at : at + 1] == [field]]
        if others:
            pair = f"{printable(rests[0], 40)} and {printable(others[0], 40)}"
            return NodeprintError(
                f"{pair} may be two nodes, or two runs of {printable(field, 40)}",
                where=source,
                key="--node-name",
                advice=_STATE,
            )
    return NodeprintError(
        f"its files differ in several parts, as {printable(rest, 40)}", where=source, key="--node-name", advice=_STATE
    )


def stem(name: str) -> str:
    """A file's name without its endings."""
    while (ending := next((ending for ending in _ENDINGS if name.lower().endswith(ending)), None)) and name != ending:
        name = name[: -len(ending)]
    return name


def _common(names: Sequence[str]) -> tuple[int, int]:
    """How many letters all names begin and end with, to a separator."""
    shortest, longest = min(names, key=len), max(names, key=len)
    first = next((i for i in range(len(shortest)) if len({name[i] for name in names}) > 1), len(shortest))
    while first and not _SEPARATOR.fullmatch(shortest[first - 1]):
        first -= 1
    rest = len(shortest) - first
    last = next((i for i in range(rest) if len({name[-1 - i] for name in names}) > 1), rest)
    while last and not _SEPARATOR.fullmatch(longest[len(longest) - last]):
        last -= 1
    return first, last
