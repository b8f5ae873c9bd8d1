"""The coherency test of Chips and Cheese: for each offset of the line in a page a full matrix, under a line of its own.

Format: https://github.com/ChipsandCheese/Microbenchmarks, CoherencyLatency: half a round trip by compare-exchange in
ns, `x` on the diagonal, both directions of each pair. With its standard error in the file there are lines of progress
before it, which say the same once more. Plain loads and stores look the same, so the operation is not known.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from nodeprint.errors import NodeprintError
from nodeprint.readers.parsing import matrix_cells, missing
from nodeprint.readers.tool_output import CoreMatrix, Matrix, ToolEvidence, ToolOutput
from nodeprint.settings.texts import say

NAME = "chips-and-cheese"
KINDS = ("matrix",)
_HEAD = re.compile(r"Cache line offset: (\d+)\s*")


def evidence(lines: list[str]) -> ToolEvidence:
    """Whether a table begins as this tool begins each."""
    return ToolEvidence.NAME if any(_HEAD.fullmatch(line) for line in lines) else ToolEvidence.NONE


def read_output(path: Path, lines: list[str]) -> ToolOutput:
    """Parse the file's lines; of several offsets the median. Raises NodeprintError with line and column of the first
    fault."""
    heads = [number for number, line in enumerate(lines) if _HEAD.fullmatch(line)]
    if not heads:
        raise NodeprintError("no line of an offset", where=path, line=1, column=1, advice="give the whole output")
    tables = [_table(path, lines, head + 1, end) for head, end in zip(heads, [*heads[1:], len(lines)], strict=True)]
    for number, table in zip(heads, tables, strict=True):
        if table.shape != tables[0].shape:
            raise NodeprintError(
                f"a table of {len(table)} CPUs after one of {len(tables[0])}",
                where=path,
                line=number + 1,
                column=1,
                advice="give the output of one run",
            )
    values = tables[0] if len(tables) == 1 else np.median(np.stack(tables), axis=0)
    values = np.where(np.isnan(values), values.T, values)
    np.fill_diagonal(values, np.nan)
    notes = (say("read", "offsets", tables=len(tables)),) if len(tables) > 1 else ()
    cores = CoreMatrix(tuple(range(len(values))), values, "unknown")
    unknown = ("operation", "home", "topology", "spread")
    return ToolOutput(path, NAME, cores, unknown=unknown, notes=(*notes, *missing(values)))


def _table(path: Path, lines: list[str], start: int, end: int) -> Matrix:
    """The square of cells in the lines from `start` to before `end`."""
    rows = [(number + 1, lines[number].split(",")) for number in range(start, end) if lines[number].strip()]
    for number, cells in rows:
        if len(cells) != len(rows) or len(rows) < 2:
            raise NodeprintError(
                f"{len(cells)} latencies for {len(rows)} CPUs",
                where=path,
                line=number,
                column=len(cells),
                advice="let the tool end, and give its standard output",
            )
    return np.array([matrix_cells(cells, path, number, 1) for number, cells in rows])
