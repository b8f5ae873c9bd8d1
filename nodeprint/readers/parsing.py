"""What readers share: the lines of a file, numbers with the place of their faults, matrices, and JSON in logs."""

from __future__ import annotations

import codecs
import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from nodeprint.errors import NodeprintError, printable
from nodeprint.machine.tree import contents
from nodeprint.readers.tool_output import Matrix, ToolValue
from nodeprint.settings.texts import say

#: A number as tools print it.
NUMBER = r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?"
_ZERO = re.compile(r"\+?(0+(\.0*)?|\.0+)(e[+-]?\d+)?")
#: What a terminal is told by what it prints: colors, and where the cursor goes.
_CONTROL = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")
#: Characters that look alike, as web pages and tables have them.
_SAME = str.maketrans(
    {"\u00a0": " ", "\u2007": " ", "\u202f": " ", "\u2009": " ", "\u2212": "-", "\u2502": "|", "\u2503": "|"}
)
_FENCE = re.compile(r"\s*(?:```|~~~)\s*\w*\s*")
_NO_TEXT = re.compile(r"[\x00-\x08\x0e-\x1a\x1c-\x1f]")
#: What stands on the diagonal instead of a latency, and where a pair was not measured.
NOTHING = ("", "x", "-", "--", "nan", "n/a", "na", "0")


def lines_of(path: Path) -> list[str]:
    """The lines of a text file, plain or compressed. Raises NodeprintError where it is not text, or empty.

    UTF-16 with a mark is read too: a Windows shell writes it when output is redirected. Additions of a terminal, a
    mail or a web page are removed: colors, quotation marks, fences, and blanks that do not break.
    """
    raw = contents(path)
    wide = raw.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    try:
        text = raw.decode("utf-16" if wide else "utf-8-sig")
    except UnicodeDecodeError as error:
        text = raw.decode("latin-1")
        if wide or _NO_TEXT.search(text):
            raise NodeprintError("not text", where=path, advice="give the tool's output as it was printed") from error
    if "\0" in text:
        raise NodeprintError("not text", where=path, advice="give the tool's output as it was printed")
    if not text.strip():
        raise NodeprintError("empty", where=path, advice="run the tool again and keep what it prints")
    lines = as_shown(text)
    if any(line.startswith(">") for line in lines) and all(line.startswith(">") for line in lines if line.strip()):
        lines = [line[1:].removeprefix(" ") for line in lines]
    lines = ["" if _FENCE.fullmatch(line) else line for line in lines]
    if not any(line.strip() for line in lines):
        raise NodeprintError("empty but for quotation marks", where=path, advice="give what the tool printed")
    return lines


def as_shown(text: str) -> list[str]:
    """The lines of a text as a terminal shows them."""
    text = _CONTROL.sub("", text).replace("\r\n", "\n").translate(_SAME).replace("Â±", "±")
    return [line.rpartition("\r")[2] for line in text.rstrip("\n").split("\n")]


def positive(text: str, path: Path, line: int, column: int, quantity: str = "latency") -> float:
    """The number in a cell. `column` counts cells from 1. Raises NodeprintError unless it is finite and above 0."""
    cell = text.strip()
    if re.fullmatch(NUMBER, cell):
        value = float(cell)
        if 0 < value < float("inf"):
            return value
        fault = f"{quantity} {printable(cell, 40)} is too large"
        if value <= 0:
            fault = f"a negative {quantity} ({printable(cell, 40)})" if value else f"a {quantity} of 0"
    elif cell.lower().lstrip("+-") in ("nan", "inf", "infinity"):
        fault = f"{printable(cell, 40)} instead of a {quantity}"
    elif not cell:
        fault = f"a {quantity} is missing"
    else:
        fault = f"{printable(repr(cell), 40)} is not a number"
    raise NodeprintError(
        fault, where=path, line=line, column=column, advice="measure again, or take the line out if it is not data"
    )


#: No hop between CPUs takes a second: such a figure is in another unit, or of a broken clock.
_MOST_NS = 1e9


def nothing(text: str) -> bool:
    """Whether a cell says that nothing was measured: a word for it, or zero in any form."""
    cell = text.strip().lower()
    return cell in NOTHING or _ZERO.fullmatch(cell) is not None


def matrix_cell(text: str, path: Path, line: int, column: int) -> float:
    """The latency in a cell, NaN where it says that nothing was measured; as `positive` otherwise."""
    value = np.nan if nothing(text) else positive(text, path, line, column)
    if value > _MOST_NS:
        raise NodeprintError(
            f"a latency of {printable(text.strip(), 40)} ns is more than a second",
            where=path,
            line=line,
            column=column,
            advice="give latencies in nanoseconds",
        )
    return value


def matrix_cells(cells: list[str], path: Path, line: int, column: int) -> Matrix:
    """The values of cells of a line, the first of which is number `column`; as `matrix_cell` for each, and faster."""
    values = None
    text = "".join(cells)
    if text.isascii() and "_" not in text:  # float() accepts more than our formats
        with suppress(ValueError):
            values = np.array([float(cell or "nan") for cell in cells])
    if values is None:
        return np.array([matrix_cell(cell, path, line, column + i) for i, cell in enumerate(cells)])
    for i in np.flatnonzero(~((values > 0) & (values <= _MOST_NS))).tolist():
        values[i] = matrix_cell(cells[i], path, line, column + i)
    return values


def missing(values: Matrix) -> tuple[str, ...]:
    """A note on the pairs of a filled matrix that have no latency, none if all have."""
    count = int(np.isnan(values).sum() - len(values)) // 2
    pairs = len(values) * (len(values) - 1) // 2
    return (say("read", "missing", missing=count, pairs=pairs),) if count else ()


def filled(values: Matrix) -> Matrix:
    """Both triangles of a matrix, where one may be empty; the diagonal is NaN."""
    out = np.where(np.isnan(values), values.T, values)
    np.fill_diagonal(out, np.nan)
    return out


#: What may stand before a CPU's number: `cpu0`, `Core 0`, `C0`, `#0`.
CPU_NAME = re.compile(r"^(?:(?:v?cpu|core|thread|pu|p|c)[ _#-]?|#)(?=\d+$)", re.IGNORECASE)


def cpu_number(text: str) -> int:
    """A CPU's number, with a word for it or not; -1 for any other text."""
    digits = CPU_NAME.sub("", text)
    return int(digits) if digits.isdecimal() and len(digits) < 7 else -1


class WrongResultError(NodeprintError):
    """A benchmark checked its own result and found it wrong: no figure, and a fault of the node or the build."""


#: How an object begins that a tool printed: after a line's beginning, or right behind another.
_OBJECT = re.compile(r"(?:^|(?<=\}))\s*\{(?=\s*(?:\"|$))", re.MULTILINE)
#: Letters of a metric's name: all others become a hyphen.
_OTHERS = re.compile(r"[^A-Za-z0-9_./:<>=,+-]+")


def tool_values(value: float, metric: str, unit: str, line: int = 0, **axes: Any) -> list[ToolValue]:
    """The value with its axes, or none if nothing can be compared: a tool prints 0 below its resolution."""
    if not math.isfinite(value) or value <= 0:
        return []
    return [ToolValue(value=value, metric=metric, unit=unit, line=line, **axes)]


def slug(text: str) -> str:
    """A title as the name of a metric: `OSU MPI Allreduce` is osu-mpi-allreduce."""
    return _OTHERS.sub("-", text.strip()).strip("-").lower()


def with_varying_points(values: Sequence[ToolValue], always: str = "") -> list[ToolValue]:
    """Values with only those points that vary within their metric: a constant one is an argument of the call. The
    point `always` stays."""
    seen: dict[tuple[str, str], set[int | str]] = {}
    for value in values:
        for name, at in value.point.items():
            seen.setdefault((value.metric, name), set()).add(at)
    out = []
    for value in values:
        varying = {name for name in value.point if name == always or len(seen[value.metric, name]) > 1}
        point = {name: at for name, at in value.point.items() if name in varying}
        arguments = {name: at for name, at in value.point.items() if name not in varying}
        out.append(msgspec.structs.replace(value, point=point, arguments=arguments))
    return out


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


def json_number(value: object) -> float:
    """A number of a JSON file, also as text; NaN of anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return math.nan
    try:
        return float(value)
    except (ValueError, OverflowError):
        return math.nan
