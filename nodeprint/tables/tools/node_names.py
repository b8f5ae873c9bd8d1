"""Which node an output is of: by the text, by what gathered several into one file, or by the file's name."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from ClusterShell.NodeSet import NodeSet, NodeSetException

from nodeprint.errors import NodeprintError, printable

_NAME = r"[A-Za-z0-9](?:[\w.-]*\w)?"
#: pdsh, clush and Ansible put a node's name before each of its lines.
_PREFIX = re.compile(rf"({_NAME}):(?: (.*)|)")
#: dshbak and clush -b write the nodes between two rules, tail the file.
_RULE = re.compile(r"-{15,16}")
_TAIL = re.compile(r"==> (.+) <==")
#: What scripts print of the host that they run on.
_HOST = re.compile(
    rf"(?:SLURMD_NODENAME|HOSTNAME|host ?name|host|node ?name|node|running on(?: host| node)?)\s*[:=]?\s+?({_NAME})|"
    rf"(?:SLURMD_NODENAME|HOSTNAME|host ?name|host|node ?name|node)\s*[:=]\s*({_NAME})",
    re.IGNORECASE,
)
#: Where a host is looked for: a job's first lines.
_FIRST = 60
#: A share of all lines that have a node before them.
_PREFIXED = 0.9
_ENDINGS = (".gz", ".xz", ".txt", ".log", ".out", ".json", ".jsonl", ".csv", ".dat", ".result", ".results")
_SEPARATORS = "-_./"
#: What may count runs at the end of a name.
_RUN = re.compile(r"[-_.](?:run|job|rep|iter|r)?[-_.]?\d{1,8}$", re.IGNORECASE)


def split(lines: list[str]) -> list[tuple[str, list[str]]]:
    """A text by node: its name, empty where the text does not say it, and its lines; those of others are empty, so that
    lines keep their numbers."""
    return _by_prefix(lines) or _by_rules(lines) or [(_host(lines), lines)]


def _by_prefix(lines: list[str]) -> list[tuple[str, list[str]]]:
    filled = [number for number, line in enumerate(lines) if line.strip()]
    found = {number: match for number in filled if (match := _PREFIX.fullmatch(lines[number]))}
    names = Counter(match[1] for match in found.values())
    # a task's number is no node, and a tool's own words before colons are many with a line each
    often = {name for name, count in names.items() if count > 2 and not name.isdecimal()}
    prefixed = {number: match for number, match in found.items() if match[1] in often}
    if not prefixed or len(prefixed) < _PREFIXED * len(filled):
        return []
    of_nodes: dict[str, list[str]] = {}
    for number, match in prefixed.items():
        of_nodes.setdefault(match[1], [""] * len(lines))[number] = match[2] or ""
    return list(of_nodes.items())


def _by_rules(lines: list[str]) -> list[tuple[str, list[str]]]:
    starts: list[tuple[int, int, list[str]]] = []
    for number, line in enumerate(lines):
        before, after = lines[number - 1] if number else "", lines[number + 1] if number + 1 < len(lines) else ""
        if _RULE.fullmatch(before) and _RULE.fullmatch(after) and " " not in line.strip():
            starts.append((number - 1, number + 2, _expanded(line.strip())))
        elif tail := _TAIL.fullmatch(line):
            starts.append((number, number + 1, [stem(Path(tail[1]).name)]))
    out: list[tuple[str, list[str]]] = []
    ends = [begin for begin, _, _ in starts[1:]] + [len(lines)]
    for (_, begin, names), end in zip(starts, ends, strict=False):
        own = ["" if number < begin or number >= end else line for number, line in enumerate(lines)]
        out += [(name, own) for name in names]
    return out


def _expanded(text: str) -> list[str]:
    """The nodes of a folded list, as dshbak -c has them."""
    try:
        return list(NodeSet(text)) or [text]
    except NodeSetException:
        return [text]


def _host(lines: Sequence[str]) -> str:
    """The host that a job's first lines name, empty where they name none or several."""
    found = {
        match[1] or match[2] for line in lines[:_FIRST] if (match := _HOST.fullmatch(line.strip())) and len(line) < 120
    }
    return found.pop() if len(found) == 1 else ""


def of_files(files: Sequence[Path], folder: Path, pattern: str, source: str) -> dict[Path, str]:
    """The node of each file by its path below a folder: where the `pattern` has {node}, else what differs between the
    names. Raises NodeprintError where the pattern fits none, or names may be of runs."""
    relative = {file: file.relative_to(folder).as_posix() for file in files}
    if pattern:
        return dict(_by_pattern(relative, pattern, source))
    if len(files) == 1:
        return {file: stem(Path(name).name) for file, name in relative.items()}
    stems = {file: stem(name) for file, name in relative.items()}
    first, last = _common(list(stems.values()))
    names = {file: name[first : len(name) - last] or name for file, name in stems.items()}
    runs = Counter(_RUN.sub("", name) for name in names.values())
    doubtful = next((name for name, count in runs.items() if count > 1 and len(runs) > 1), None)
    if doubtful is not None:
        first_name, second_name = [name for name in names.values() if _RUN.sub("", name) == doubtful][:2]
        raise NodeprintError(
            f"{printable(first_name, 40)} and {printable(second_name, 40)} may be two nodes, or two runs of "
            f"{printable(doubtful, 40)}",
            where=source,
            key="--node-name",
            advice="say where the node's name is, as '{node}-*.log'",
        )
    return {file: name.replace("/", "-") for file, name in names.items()}


def _by_pattern(relative: dict[Path, str], pattern: str, source: str) -> Iterator[tuple[Path, str]]:
    if pattern.count("{node}") != 1:
        raise NodeprintError("has no {node}", key="--node-name", advice="write it once, as 'stream-{node}.log'")
    parts = re.split(r"(\{node\}|\*)", pattern)
    text = "".join({"{node}": r"([^/]+?)", "*": r"[^/]*"}.get(part, re.escape(part)) for part in parts)
    expression = re.compile(rf"(?:.*/)?{text}")
    found = {file: match[1] for file, name in relative.items() if (match := expression.fullmatch(name))}
    if not found:
        first = next(iter(relative.values()), "no file")
        advice = "write a file's path with {node} in place of the name, and * for what differs beside it"
        raise NodeprintError(f"fits no file, as {printable(first, 60)}", where=source, key="--node-name", advice=advice)
    for file, name in relative.items():
        yield file, found.get(file, stem(name))


def stem(name: str) -> str:
    """A file's name without its endings."""
    while (ending := next((ending for ending in _ENDINGS if name.lower().endswith(ending)), None)) and name != ending:
        name = name[: -len(ending)]
    return name


def _common(names: Sequence[str]) -> tuple[int, int]:
    """How many letters all names begin and end with, to a separator."""
    shortest, longest = min(names, key=len), max(names, key=len)
    first = next((i for i in range(len(shortest)) if len({name[i] for name in names}) > 1), len(shortest))
    while first and shortest[first - 1] not in _SEPARATORS:
        first -= 1
    rest = len(shortest) - first
    last = next((i for i in range(rest) if len({name[-1 - i] for name in names}) > 1), rest)
    while last and longest[len(longest) - last] not in _SEPARATORS:
        last -= 1
    return first, last
