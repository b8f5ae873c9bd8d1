"""c2clat: a full matrix under a line of CPU numbers, or the gnuplot script with the matrix in it (`-p`).

Format: https://github.com/rigtorp/c2clat, c2clat.cpp. A value is the lowest of 1,000 batches: half a round trip by
store and load on two lines, in whole ns. The diagonal is 0. The lines are on the stack of the main thread, so their
home follows from where that ran first.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from nodeprint.errors import NodeprintError
from nodeprint.readers.parsing import filled, matrix_cells, missing
from nodeprint.readers.tool_output import CoreMatrix, ToolEvidence, ToolOutput

NAME = "c2clat"
KINDS = ("matrix",)
_DATA = "$data << EOD"


def evidence(lines: list[str]) -> ToolEvidence:
    """Whether it is the table, which has something on its diagonal and no tabs, or the script."""
    table = any(
        _is_head(head) and "\t" not in head and len(head.split()) == len(first.split()) == len(second.split())
        for head, first, second in zip(lines[:40], lines[1:], lines[2:], strict=False)
    )
    if any(line.strip() == _DATA for line in lines[:40]):
        return ToolEvidence.NAME
    return ToolEvidence.LAYOUT if table else ToolEvidence.NONE


def read_output(path: Path, lines: list[str]) -> ToolOutput:
    """Parse the file's lines. Raises NodeprintError with line and column of the first fault."""
    script = next((number for number, line in enumerate(lines) if line.strip() == _DATA), None)
    if script is not None:
        rows = _until(path, lines, script + 1, "EOD")
        cpus = list(range(len(rows)))
        skip = 0
    else:
        heads = [number for number, line in enumerate(lines) if _is_head(line)]
        if not heads:
            raise NodeprintError(
                "no line of CPU numbers", where=path, line=1, column=1, advice="give what c2clat printed"
            )
        if len(heads) > 1:
            raise NodeprintError("a second table", where=path, line=heads[1] + 1, column=1, advice="give one a file")
        head = heads[0]
        cpus = [int(cell) for cell in lines[head].split()[1:]]
        rows = _until(path, lines, head + 1, "")
        skip = 1
    if len(rows) != len(cpus) or len(cpus) < 2 or len(set(cpus)) != len(cpus):
        last = rows[-1][0] if rows else len(lines)
        raise NodeprintError(
            f"{len(rows)} lines for {len(cpus)} CPUs", where=path, line=last, column=1, advice="give the whole output"
        )
    values = np.full((len(cpus), len(cpus)), np.nan)
    for i, (line, cells) in enumerate(rows):
        if len(cells) != len(cpus) + skip:
            raise NodeprintError(
                f"{len(cells) - skip} latencies for {len(cpus)} CPUs",
                where=path,
                line=line,
                column=len(cells),
                advice="give the whole output",
            )
        if skip and cells[0] != str(cpus[i]):
            raise NodeprintError(
                f"the row is not that of CPU {cpus[i]}",
                where=path,
                line=line,
                column=1,
                advice="give the output as it was",
            )
        values[i] = matrix_cells(cells[skip:], path, line, 1 + skip)
    unknown = ("home", "topology", "spread", *(() if skip else ("cpu numbers",)))
    values = filled(values)
    cores = CoreMatrix(tuple(cpus), values, "store-load")
    return ToolOutput(path, NAME, cores, unknown=unknown, notes=missing(values))


def _is_head(line: str) -> bool:
    cells = line.split()
    return len(cells) > 2 and cells[0] == "CPU" and all(cell.isdecimal() for cell in cells[1:])


def _until(path: Path, lines: list[str], start: int, end: str) -> list[tuple[int, list[str]]]:
    """Lines with their cells from `start` to the line `end`, which may be missing only where it is the file's."""
    rows: list[tuple[int, list[str]]] = []
    for number in range(start, len(lines)):
        if lines[number].strip() == end:
            return rows
        rows.append((number + 1, lines[number].split()))
    if end:
        raise NodeprintError(
            f"no line {end!r} after the data", where=path, line=len(lines), column=1, advice="give it all"
        )
    return rows
