"""multichase's pingpong: an upper triangle, a line a CPU, each with the CPU's number and a colon.

Format: https://github.com/google/multichase, pingpong.c. A value is the best of five samples of the one-way latency in
ns. The pair's first thread allocates the line, so its home is that CPU's node. Which of -l, -u and -x was used is not
printed.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from nodeprint.errors import NodeprintError
from nodeprint.readers.parsing import filled, matrix_cells, missing
from nodeprint.readers.tool_output import CoreMatrix, ToolEvidence, ToolOutput

NAME = "multichase-pingpong"
KINDS = ("matrix",)
_ROW = re.compile(r"\s*(\d+):(.*)")


def evidence(lines: list[str]) -> ToolEvidence:
    """Whether the tool's first line is there, or lines that begin with a CPU and a colon."""
    if any("communicate a modified line" in line for line in lines[:20]):
        return ToolEvidence.NAME
    rows = sum(_ROW.fullmatch(line) is not None for line in lines)
    return ToolEvidence.LAYOUT if rows >= max(2, len(lines) - 3) else ToolEvidence.NONE


def read_output(path: Path, lines: list[str]) -> ToolOutput:
    """Parse the file's lines. Raises NodeprintError with line and column of the first fault."""
    head: list[int] | None = None
    rows: list[tuple[int, int, list[str]]] = []
    for number, line in enumerate(lines, start=1):
        row = _ROW.fullmatch(line)
        cells = line.split()
        if row:
            rows.append((number, int(row[1]), row[2].split()))
        elif head is None and cells and all(cell.isdecimal() for cell in cells):
            head = [int(cell) for cell in cells]
        elif rows and cells:
            raise NodeprintError(
                f"{cells[0][:40]!r} among the rows",
                where=path,
                line=number,
                column=1,
                advice="give the output as it was",
            )
    if head is None or not rows:
        raise NodeprintError("no table of CPUs", where=path, line=len(lines), column=1, advice="give the whole output")
    cpus = [rows[0][1], *head]
    place = {cpu: index for index, cpu in enumerate(cpus)}
    if len(place) != len(cpus):
        raise NodeprintError("a CPU is listed twice", where=path, line=rows[0][0], column=1, advice="give one output")
    values = np.full((len(cpus), len(cpus)), np.nan)
    for index, (number, cpu, cells) in enumerate(rows):
        if index >= len(cpus) or cpu != cpus[index]:
            raise NodeprintError(
                f"a row of CPU {cpu} at the place of another",
                where=path,
                line=number,
                column=1,
                advice="give one output",
            )
        if len(cells) != len(cpus) - index - 1:
            raise NodeprintError(
                f"{len(cells)} latencies for {len(cpus) - index - 1} CPUs",
                where=path,
                line=number,
                column=len(cells) + 1,
                advice="let the tool end, and give the whole output",
            )
        values[index, index + 1 :] = matrix_cells(cells, path, number, 2)
    values = filled(values)
    cores = CoreMatrix(tuple(cpus), values, "unknown", home="first")
    return ToolOutput(path, NAME, cores, unknown=("operation", "topology", "spread"), notes=missing(values))
