"""What core-to-core-latency prints on a terminal: a lower triangle of whole ns with their deviation, `25±0`.

Format: https://github.com/nviennot/core-to-core-latency, src/main.rs: under a line of CPU numbers a line a CPU. With
--csv the table follows it without rounding, and is taken then. A terminal may have broken its lines.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from nodeprint.errors import NodeprintError
from nodeprint.readers import matrix_grid
from nodeprint.readers.parsing import filled, matrix_cells, missing
from nodeprint.readers.tool_output import CoreMatrix, Matrix, ToolEvidence, ToolOutput
from nodeprint.settings.texts import say

NAME = "core-to-core-latency-terminal"
KINDS = ("matrix",)
_TITLE = re.compile(r"\s*\d+\) (.*)")
#: What a test's title says of its operation.
_OPERATIONS = (("CAS", "cas"), ("writer", "store-load"), ("Message passing", "one-way"))
_DEVIATION = re.compile(r"\s*(?:±|\+/-|\+-)\s*[\d.]+")


def evidence(lines: list[str]) -> ToolEvidence:
    """Whether it has the tool's first lines, or its latencies with their deviation.

    Other tools print `Num cores:` too, such as macos-core-to-core-latency above its table.
    """
    first = "\n".join(lines[:40])
    others = any(text in first for text in ("Num samples:", "Using RDTSC")) or any(map(_TITLE.fullmatch, lines[:40]))
    if "Num cores:" in first and others:
        return ToolEvidence.NAME
    return ToolEvidence.LAYOUT if sum("±" in line for line in lines) > 1 else ToolEvidence.NONE


def read_output(path: Path, lines: list[str]) -> ToolOutput:
    """Parse the file's lines: the first test in it. Raises NodeprintError with line and column of the first fault."""
    titles = [number for number, line in enumerate(lines) if _TITLE.fullmatch(line)]
    start, end = ([*titles, len(lines)] if titles else [0, len(lines)])[:2]
    title = _TITLE.fullmatch(lines[titles[0]]) if titles else None
    notes: tuple[str, ...] = ()
    if len(titles) > 1:
        notes = (say("read", "first_test", tests=len(titles)),)
    # lines before it are kept empty, so that a fault is named where it is
    exact = _csv(lines, start, end)
    if exact:
        cpus, values, _ = matrix_grid.read_grid(path, exact)
    else:
        cpus, values = _terminal(path, lines, start, end)
        notes = ("rounded to whole ns", *notes)
    values = filled(values)
    name = title[1] if title else "CAS"
    operation = next((operation for word, operation in _OPERATIONS if word in name), "unknown")
    cores = CoreMatrix(cpus or tuple(range(len(values))), values, operation)
    unknown = ("home", "topology", *(("spread",) if exact else ()))
    return ToolOutput(path, NAME, cores, unknown=unknown, notes=(*notes, *missing(values)))


def _csv(lines: Sequence[str], start: int, end: int) -> list[str]:
    """The lines of a file with nothing but the table with commas between two of them; empty where there is none."""
    table = [number for number in range(start, end) if lines[number].count(",") > 1 and "±" not in lines[number]]
    if not table or matrix_grid.rows_of([lines[number] for number in table]) < 2:
        return []
    return ["" if number not in table else lines[number] for number in range(table[-1] + 1)]


def _terminal(path: Path, lines: Sequence[str], start: int, end: int) -> tuple[tuple[int, ...], Matrix]:
    """The triangle between two lines: the CPUs, then of each its number and its latencies with those before it,
    wherever a terminal broke the lines."""
    cells: list[tuple[int, int, str]] = []
    for number in range(start, end):
        of_line = _DEVIATION.sub(" ", lines[number]).split()
        if of_line and all(cell.replace(".", "", 1).isdecimal() for cell in of_line):
            cells += [(number + 1, column, cell) for column, cell in enumerate(of_line, start=1)]
        elif cells:
            break
    texts = [cell for _, _, cell in cells]
    count = texts.index(texts[0], 1) if texts and texts[0] in texts[1:] else 0
    if count < 2 or len(set(texts[:count])) < count:
        raise NodeprintError("no line of CPU numbers", where=path, line=end, column=1, advice="give all of it")
    values = np.full((count, count), np.nan)
    at = count
    for row, cpu in enumerate(texts[:count]):
        place = cells[min(at + (row if texts[at : at + 1] == [cpu] else 0), len(cells) - 1)]
        if texts[at : at + 1] != [cpu] or len(texts) < at + 1 + row:
            raise NodeprintError(
                f"not the line of CPU {cpu} with {row} latencies",
                where=path,
                line=place[0],
                column=place[1],
                advice="let the tool end, and give all that it printed",
            )
        for column in range(row):
            line, cell, text = cells[at + 1 + column]
            values[row, column] = matrix_cells([text], path, line, cell)[0]
        at += 1 + row
    if at < len(cells):
        raise NodeprintError(
            f"{len(cells) - at} numbers after the latencies of CPU {texts[count - 1]}",
            where=path,
            line=cells[at][0],
            column=cells[at][1],
            advice="give the table as it was printed",
        )
    return tuple(int(text) for text in texts[:count]), values
