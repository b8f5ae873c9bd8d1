"""HPL: the rate of each solved problem (https://www.netlib.org/benchmark/hpl, HPL_pdtest.c). It also reads HPCC and
NVIDIA's build, which adds the rate of one GPU in brackets."""

from __future__ import annotations

import re
from pathlib import Path

from nodeprint.errors import NodeprintError
from nodeprint.readers.parsing import NUMBER, WrongResultError, tool_values, with_varying_points
from nodeprint.readers.tool_output import ToolEvidence, ToolOutput, ToolValue

NAME = "hpl"
KINDS = ("values",)
_HEAD = re.compile(r"T/V\s+N\s+NB\s+P\s+Q\s+Time\s+Gflops.*")
_ROW = re.compile(rf"(W[RC]\S+)\s+(\d+)\s+(\d+)\s+(\d+)\s+(\d+)\s+({NUMBER})\s+({NUMBER})(?:\s*\(.*\))?\s*")


def evidence(lines: list[str]) -> ToolEvidence:
    """Whether its banner or the head of its table is there."""
    found = any(line.startswith("HPLinpack ") or _HEAD.fullmatch(line.strip()) for line in lines)
    return ToolEvidence.NAME if found else ToolEvidence.NONE


def read_output(path: Path, lines: list[str]) -> ToolOutput:
    """A row for each problem; variant, order, block size and grid are its point where several were solved. Raises
    NodeprintError where a residual check failed, or nothing was solved."""
    failed = next((n for n, line in enumerate(lines, start=1) if "||_oo" in line and "FAILED" in line), None)
    if failed is not None:
        advice = "the node calculates wrongly or the build is broken: run it again"
        raise WrongResultError("HPL's residual check failed", where=path, line=failed, advice=advice)
    out: list[ToolValue] = []
    for number, line in enumerate(lines, start=1):
        if row := _ROW.fullmatch(line.strip()):
            point = {"variant": row[1], "N": int(row[2]), "NB": int(row[3]), "grid": f"{row[4]}x{row[5]}"}
            out += tool_values(float(row[7]), "hpl", "Gflop/s", number, point=point)
    if not out:
        advice = "see what it says at the end, and let it end"
        raise NodeprintError("HPL solved no problem", where=path, line=len(lines), advice=advice)
    return ToolOutput(path, NAME, values=with_varying_points(out))
