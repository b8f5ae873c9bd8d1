"""Intel Memory Latency Checker: its matrices, as the importer reads them, and peak bandwidths."""

from __future__ import annotations

import re
from pathlib import Path

from nodeprint.errors import NodeprintError
from nodeprint.importers import intel_mlc
from nodeprint.tables.row import Row
from nodeprint.tables.tools.parsing import NUMBER, figure, slug

NAME = "intel-mlc"
_PEAK = re.compile(rf"((?:ALL|All|\d:\d) (?:Reads|Reads-Writes|NTW?)|Stream-triad like)\s*:\s*({NUMBER})\s*")


def matches(lines: list[str]) -> bool:
    """Whether a section of the tool is there."""
    return intel_mlc.matches(lines)


def rows(path: Path, lines: list[str]) -> list[Row]:
    """A row for each cell of its tables, and for each mix of reads and writes."""
    out: list[Row] = []
    for number, line in enumerate(lines, start=1):
        if peak := _PEAK.fullmatch(line.strip()):
            out += figure(float(peak[2]), f"intel-mlc-peak-{slug(peak[1])}", "MB/s", number)
    try:
        tables = intel_mlc.read(path, lines).tables
    except NodeprintError:
        if not out:
            raise
        tables = ()
    for table in tables:
        for place, value in table.cells:
            out += figure(value, f"intel-mlc-{table.name}", table.unit, 0, dict(zip(table.dims, place, strict=True)))
    return out
