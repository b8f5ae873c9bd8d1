"""CSV of core-to-core-latency and tools like it: a square table of latencies in any form that `grid` reads.

Format: https://github.com/nviennot/core-to-core-latency, src/main.rs (`--csv`). A value is the mean one-way latency by
compare-exchange on one line that all pairs share, in ns. CPUs are in the order of the system; cells without a
measurement are empty.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from nodeprint.errors import NodeprintError
from nodeprint.readers import matrix_grid
from nodeprint.readers.parsing import filled, missing
from nodeprint.readers.tool_output import CoreMatrix, ToolEvidence, ToolOutput
from nodeprint.settings.texts import say

NAME = "core-to-core-latency"
KINDS = ("matrix",)


def evidence(lines: list[str]) -> ToolEvidence:
    """Whether lines of it could be a table's."""
    return ToolEvidence.NUMBERS if matrix_grid.rows_of(lines) > 0 else ToolEvidence.NONE


def read_output(path: Path, lines: list[str]) -> ToolOutput:
    """Parse the file's lines. Raises NodeprintError with line and column of the first fault."""
    cpus, values, notes = matrix_grid.read_grid(path, lines)
    if len(values) < 2:
        raise NodeprintError("less than two CPUs", where=path, advice="give a matrix with a row for each CPU")
    if not np.isnan(values.diagonal()).all():
        notes = (*notes, say("read", "diagonal"))
    np.fill_diagonal(values, np.nan)
    if np.isnan(values).all():
        raise NodeprintError("no latency at all", where=path, advice="run the tool again and keep what it prints")
    values = filled(values)
    unknown = ("home", "topology", "spread", *(() if cpus else ("cpu numbers",)))
    cores = CoreMatrix(cpus or tuple(range(len(values))), values, "cas")
    return ToolOutput(path, NAME, cores, unknown=unknown, notes=(*notes, *missing(values)))
