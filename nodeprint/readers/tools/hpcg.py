"""HPCG: its rating, of the file that it writes (https://github.com/hpcg-benchmark/hpcg, ReportResults.cpp), versions 2
and 3."""

from __future__ import annotations

import re
from pathlib import Path

from nodeprint.errors import NodeprintError
from nodeprint.readers.parsing import NUMBER, tool_values
from nodeprint.readers.tool_output import ToolEvidence, ToolOutput, ToolValue

NAME = "hpcg"
KINDS = ("values",)
_RATING = re.compile(rf".*HPCG result is (VALID|INVALID)(?: with a GFLOP/s rating of\s*[=:]?\s*({NUMBER}))?.*")
_MARKS = ("HPCG-Benchmark", "HPCG result is")


def evidence(lines: list[str]) -> ToolEvidence:
    """Whether it is such a file, or the summary of one."""
    return ToolEvidence.NAME if any(mark in line for line in lines for mark in _MARKS) else ToolEvidence.NONE


def read_output(path: Path, lines: list[str]) -> ToolOutput:
    """The rating. Raises NodeprintError where the result is invalid, or the file ends before it."""
    out: list[ToolValue] = []
    for number, line in enumerate(lines, start=1):
        rating = _RATING.fullmatch(line.strip())
        if rating is None:
            continue
        if rating[1] == "INVALID" or rating[2] is None:
            raise NodeprintError("HPCG's result is invalid", where=path, line=number, advice="run it again, longer")
        out += tool_values(float(rating[2]), "hpcg", "Gflop/s", number)
    if not out:
        raise NodeprintError(
            "no HPCG result", where=path, line=len(lines), advice="let HPCG end, and give the file that it wrote"
        )
    return ToolOutput(path, NAME, values=out)
