"""What readers of tools' output share: numbers in lines, rows of figures, JSON with its faults."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from nodeprint.errors import NodeprintError, printable
from nodeprint.readers.tool_value import Row


class WrongResultError(NodeprintError):
    """A benchmark checked its own result and found it wrong: no figure, and a fault of the node or the build."""


#: A number as tools print it.
NUMBER = r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?"
#: How an object begins that a tool printed: after a line's beginning, or right behind another.
_OBJECT = re.compile(r"(?:^|(?<=\}))\s*\{(?=\s*(?:\"|$))", re.MULTILINE)
#: Letters of a metric's name: all others become a hyphen.
_OTHERS = re.compile(r"[^A-Za-z0-9_./:<>=,+-]+")


def figure(
    value: float, metric: str, unit: str, line: int, parts: Mapping[str, int | str] | None = None, node: str = ""
) -> list[Row]:
    """The row of a figure, or none where the tool printed nothing that can be compared: 0 of what it could not resolve,
    or no number."""
    if not math.isfinite(value) or value <= 0:
        return []
    return [Row(node=node, metric=metric, value=value, unit=unit, parts=parts or {}, line=line)]


def slug(text: str) -> str:
    """A title as the name of a metric: `OSU MPI Allreduce` is osu-mpi-allreduce."""
    return _OTHERS.sub("-", text.strip()).strip("-").lower()


def with_parts_that_differ(rows: Sequence[Row], always: str = "") -> list[Row]:
    """Rows with those parts alone in which figures of one metric differ: what is the same in all of them is how the
    tool was called, and no part of a node. The part `always` stays."""
    values: dict[tuple[str, str], set[int | str]] = {}
    for row in rows:
        for part, value in row.parts.items():
            values.setdefault((row.metric, part), set()).add(value)
    return [
        msgspec.structs.replace(
            row,
            parts={
                part: value for part, value in row.parts.items() if part == always or len(values[row.metric, part]) > 1
            },
        )
        for row in rows
    ]


def json_of(path: Path, lines: Iterable[str]) -> Any:
    """The JSON object in a text: logs have lines before and after it. Raises NodeprintError where it is broken, and
    where another follows, which may be of another node."""
    text = "\n".join(lines)
    start = text.find("{")
    if start < 0:
        raise NodeprintError("no JSON object", where=path, advice="give the tool's JSON output")
    try:
        content, end = json.JSONDecoder().raw_decode(text, start)
    except (ValueError, RecursionError) as error:
        line = text.count("\n", 0, start + getattr(error, "pos", 0)) + 1
        raise NodeprintError(
            f"its JSON is broken ({printable(str(error).partition(':')[0], 60)})",
            where=path,
            line=line,
            advice="give the file complete, as the tool wrote it",
        ) from error
    if another := _OBJECT.search(text, end):
        raise NodeprintError(
            "several JSON objects, and nothing says of which nodes",
            where=path,
            line=text.count("\n", 0, another.end()) + 1,
            advice="give each a file of its own, named after its node",
        )
    return content


def listed(value: Any, key: str, path: Path) -> list[Mapping[str, Any]]:
    """The objects of a list under a key. Raises NodeprintError where it is none."""
    items = value.get(key) if isinstance(value, dict) else None
    if not isinstance(items, list):
        raise NodeprintError(f"has no list {key}", where=path, advice="give the tool's JSON output, complete")
    return [item for item in items if isinstance(item, dict)]


def number(value: object) -> float:
    """A number of a JSON file, also as text; NaN of anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return math.nan
    try:
        return float(value)
    except (ValueError, OverflowError):
        return math.nan
