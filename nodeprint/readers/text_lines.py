"""Lines and numbers of files that other tools wrote, with the place of whatever is wrong in them."""

from __future__ import annotations

import codecs
import re
from contextlib import suppress
from pathlib import Path

import numpy as np
import numpy.typing as npt

from nodeprint.errors import NodeprintError, printable
from nodeprint.machine.tree import contents
from nodeprint.settings.texts import say

_NUMBER = re.compile(r"\+?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?")
_ZERO = re.compile(r"\+?(0+(\.0*)?|\.0+)(e[+-]?\d+)?")
#: What a terminal is told by what it prints: colours, and where the cursor goes.
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

    UTF-16 with a mark is read too, as a Windows shell writes it when output is redirected, and what a terminal, a mail
    or a web page adds to a text is taken away: colours, quotation marks and fences before and around it, and blanks
    that do not break.
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
    text = _CONTROL.sub("", text).replace("\r\n", "\n").translate(_SAME).replace("Â±", "±")
    lines = [line.rpartition("\r")[2] for line in text.rstrip("\n").split("\n")]
    if any(line.startswith(">") for line in lines) and all(line.startswith(">") for line in lines if line.strip()):
        lines = [line[1:].removeprefix(" ") for line in lines]
    lines = ["" if _FENCE.fullmatch(line) else line for line in lines]
    if not any(line.strip() for line in lines):
        raise NodeprintError("empty but for quotation marks", where=path, advice="give what the tool printed")
    return lines


def positive(text: str, path: Path, line: int, column: int, quantity: str = "latency") -> float:
    """The number in a cell. `column` counts cells from 1. Raises NodeprintError unless it is finite and above 0."""
    cell = text.strip()
    if _NUMBER.fullmatch(cell):
        value = float(cell)
        if 0 < value < float("inf"):
            return value
        fault = f"a {quantity} of 0" if value == 0 else f"{quantity} {printable(cell, 40)} is too large"
    elif cell.startswith("-") and _NUMBER.fullmatch(cell[1:]):
        fault = f"a negative {quantity} ({printable(cell, 40)})"
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


def latency(text: str, path: Path, line: int, column: int) -> float:
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


def latencies(cells: list[str], path: Path, line: int, column: int) -> npt.NDArray[np.float64]:
    """The latencies in cells of a line, the first of which is number `column`; as `latency` for each, and faster."""
    values = None
    text = "".join(cells)
    if text.isascii() and "_" not in text:  # float() accepts more than our formats
        with suppress(ValueError):
            values = np.array([float(cell or "nan") for cell in cells])
    if values is None:
        return np.array([latency(cell, path, line, column + i) for i, cell in enumerate(cells)])
    for i in np.flatnonzero(~((values > 0) & (values <= _MOST_NS))).tolist():
        values[i] = latency(cells[i], path, line, column + i)
    return values


def missing(values: npt.NDArray[np.float64]) -> tuple[str, ...]:
    """A note on the pairs of a filled matrix that have no latency, none if all have."""
    count = int(np.isnan(values).sum() - len(values)) // 2
    pairs = len(values) * (len(values) - 1) // 2
    return (say("read", "missing", missing=count, pairs=pairs),) if count else ()


def filled(values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Both triangles of a matrix of which one may be empty; the diagonal is NaN."""
    out = np.where(np.isnan(values), values.T, values)
    np.fill_diagonal(out, np.nan)
    return out
