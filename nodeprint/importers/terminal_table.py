"""What core-to-core-latency prints on a terminal: a lower triangle of whole ns with their deviation, `25±0`.

Format: https://github.com/nviennot/core-to-core-latency, src/main.rs: under a line of CPU numbers a line a CPU. With
--csv the table follows it without rounding, and is taken then.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from nodeprint.errors import NodeprintError
from nodeprint.importers import core_to_core_latency
from nodeprint.importers.imported import CoreMatrix, Imported
from nodeprint.importers.parsing import filled, latencies, missing

NAME = "core-to-core-latency-terminal"
_TITLE = re.compile(r"\s*\d+\) (.*)")
#: What a test's title says of its operation.
_OPERATIONS = (("CAS", "cas"), ("writer", "store-load"), ("Message passing", "one-way"))


def matches(lines: list[str]) -> bool:
    """Whether it has the tool's first lines."""
    return any(line.startswith("Num cores:") for line in lines[:20])


def read(path: Path, lines: list[str]) -> Imported:
    """Parse the file's lines: the first test in it. Raises NodeprintError with line and column of the first fault."""
    head = next((number for number, line in enumerate(lines) if _cpus(line)), None)
    if head is None:
        raise NodeprintError("no line of CPU numbers", where=path, line=len(lines), column=1, advice="give all of it")
    table = [number for number, line in enumerate(lines) if number > head and line.count(",") > 1]
    if table and not any("±" in lines[number] for number in table):
        # lines before it are kept empty, so that a fault is named where it is
        return core_to_core_latency.read(path, lines[table[0] : table[-1] + 1])
    cpus = _cpus(lines[head])
    values = np.full((len(cpus), len(cpus)), np.nan)
    for row, cpu in enumerate(cpus):
        number = head + 1 + row
        cells = re.sub(r"±\s*[\d.]+", " ", lines[number]).split() if number < len(lines) else []
        if cells[:1] != [str(cpu)] or len(cells) != row + 1:
            raise NodeprintError(
                f"not the line of CPU {cpu} with {row} latencies", where=path, line=min(number + 1, len(lines)),
                column=max(len(cells), 1), advice="let the tool end, and give all that it printed",
            )  # fmt: skip
        values[row, :row] = latencies(cells[1:], path, number + 1, 2)
    title = next((match[1] for line in lines[:head] if (match := _TITLE.match(line))), "CAS")
    operation = next((name for word, name in _OPERATIONS if word in title), "unknown")
    values = filled(values)
    notes = (f"rounded to whole ns; of the tests the first is read ({title.strip()[:60]})", *missing(values))
    cores = CoreMatrix(tuple(cpus), values, operation)
    return Imported(path, NAME, cores, unknown=("home", "topology"), notes=notes)


def _cpus(line: str) -> list[int]:
    """The CPUs of a head; empty where it is none."""
    cells = line.split()
    return [int(cell) for cell in cells] if len(cells) > 1 and all(cell.isdecimal() for cell in cells) else []
