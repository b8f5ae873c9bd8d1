"""hyperfine's JSON (https://github.com/sharkdp/hyperfine, --export-json): the time of each call of a command, a process
of its own and therefore a run."""

from __future__ import annotations

from pathlib import Path

from nodeprint.errors import NodeprintError, printable
from nodeprint.readers.parsing import json_number, json_of, listed, tool_values
from nodeprint.readers.tool_output import ToolEvidence, ToolOutput, ToolValue

NAME = "hyperfine"
KINDS = ("values",)


def evidence(lines: list[str]) -> ToolEvidence:
    """Whether results of commands are there."""
    text = "\n".join(lines)
    found = '"results"' in text and '"command"' in text and ('"stddev"' in text or '"times"' in text)
    return ToolEvidence.NAME if found else ToolEvidence.NONE


def read_output(path: Path, lines: list[str]) -> ToolOutput:
    """A row for each call, or the median where the file has no calls. Raises NodeprintError where a command failed."""
    out: list[ToolValue] = []
    for result in listed(json_of(path, lines), "results", path):
        command = str(result.get("command") or "")
        codes = result.get("exit_codes")
        if isinstance(codes, list) and any(code not in (0, None) for code in codes):
            advice = "a command that failed has no time: mend it, and measure again"
            raise NodeprintError(f"{printable(command, 60)} failed", where=path, advice=advice)
        times = result.get("times")
        values = times if isinstance(times, list) and times else [result.get("median", result.get("mean"))]
        for value in values:
            out += tool_values(json_number(value), command, "s")
    return ToolOutput(path, NAME, values=out)
