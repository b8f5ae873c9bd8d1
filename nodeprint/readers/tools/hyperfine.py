"""hyperfine's JSON (https://github.com/sharkdp/hyperfine, --export-json): the time of each call of a command, a process
of its own and therefore a run."""

from __future__ import annotations

from pathlib import Path

from nodeprint.errors import NodeprintError, printable
from nodeprint.readers.parsing import figure, json_of, listed, number
from nodeprint.readers.tool_value import Row

NAME = "hyperfine"


def matches(lines: list[str]) -> bool:
    """Whether results of commands are there."""
    text = "\n".join(lines)
    return '"results"' in text and '"command"' in text and ('"stddev"' in text or '"times"' in text)


def rows(path: Path, lines: list[str]) -> list[Row]:
    """A row for each call, or the median where the file has no calls. Raises NodeprintError where a command failed."""
    out: list[Row] = []
    for result in listed(json_of(path, lines), "results", path):
        command = str(result.get("command") or "")
        codes = result.get("exit_codes")
        if isinstance(codes, list) and any(code not in (0, None) for code in codes):
            advice = "a command that failed has no time: mend it, and measure again"
            raise NodeprintError(f"{printable(command, 60)} failed", where=path, advice=advice)
        times = result.get("times")
        values = times if isinstance(times, list) and times else [result.get("median", result.get("mean"))]
        for value in values:
            out += figure(number(value), command, "s", 0)
    return out
