"""macos-core-to-core-latency: a line for each experiment, with the cores on which macOS ran both threads.

Format: https://github.com/hydroo/macos-core-to-core-latency, main.cpp: compare-exchange on one line. Its
Python script prints the medians of each two cores, which `core_to_core_latency` reads as any square. A core's number
has its cluster in it: 0, 4100 and 8200 are of three clusters. The median of the latencies at the second core is read,
as the script does.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from nodeprint.errors import NodeprintError
from nodeprint.readers.parsing import missing, positive
from nodeprint.readers.tool_output import CoreMatrix, ToolEvidence, ToolOutput
from nodeprint.settings.texts import say

NAME = "macos-core-to-core-latency"
KINDS = ("matrix",)
_EXPERIMENTS = "# Info: Experiments per core pair:"
_ROW = re.compile(r"\s*\d+,\s*\d+,\s*(\d+),\s*(\d+),\s*[\d.]+ ns,\s*([\d.]+),.*")


def evidence(lines: list[str]) -> ToolEvidence:
    """Whether experiments are announced, or lines of experiments are there."""
    if any(line.startswith(_EXPERIMENTS) for line in lines[:40]):
        return ToolEvidence.NAME
    return ToolEvidence.LAYOUT if any(map(_ROW.fullmatch, lines[:100])) else ToolEvidence.NONE


def read_output(path: Path, lines: list[str]) -> ToolOutput:
    """Parse the file's lines. Raises NodeprintError with the line of the first fault."""
    by_pair: dict[tuple[int, int], list[float]] = {}
    for number, line in enumerate(lines, start=1):
        if not line.strip() or line.startswith("#"):
            continue
        row = _ROW.fullmatch(line)
        if row is None:
            advice = "give the output as it was"
            raise NodeprintError("not the line of an experiment", where=path, line=number, column=1, advice=advice)
        by_pair.setdefault((int(row[1]), int(row[2])), []).append(positive(row[3], path, number, 6))
    cpus = sorted({cpu for pair in by_pair for cpu in pair})
    if len(cpus) < 2:
        raise NodeprintError(
            "no experiment between two cores", where=path, line=len(lines), column=1, advice="give the whole output"
        )
    values = np.full((len(cpus), len(cpus)), np.nan)
    for (a, b), latencies in by_pair.items():
        if a != b:
            values[cpus.index(a), cpus.index(b)] = np.median(latencies)
    values = np.where(np.isnan(values), values.T, values)
    most = max(map(len, by_pair.values()))
    notes = (say("read", "lines_a_pair", lines=most), *missing(values))
    return ToolOutput(path, NAME, CoreMatrix(tuple(cpus), values, "cas"), notes=notes, unknown=("home", "topology"))
