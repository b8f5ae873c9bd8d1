"""Intel Memory Latency Checker: its matrices, as the importer reads them, and peak bandwidths.

Several results in one file are runs, one after another: each begins with the name of the tool, or where a section comes
again.
"""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path

from nodeprint.readers.parsing import NUMBER, figure, slug
from nodeprint.readers.tool_value import Row
from nodeprint.readers.tools import intel_mlc

NAME = "intel-mlc"
_TITLE = "Intel(R) Memory Latency Checker"
_PEAK = re.compile(rf"((?:ALL|All|\d:\d) (?:Reads|Reads-Writes|NTW?)|Stream-triad like)\s*:\s*({NUMBER})\s*")


def matches(lines: list[str]) -> bool:
    """Whether a section of the tool is there."""
    return intel_mlc.matches(lines)


def rows(path: Path, lines: list[str]) -> list[Row]:
    """A row for each cell of the tables of each result, and for each mix of reads and writes. Raises NodeprintError
    where a table is cut, or nothing is there."""
    begins = _begins(lines)
    out: list[Row] = []
    for begin, end in pairwise((*begins, len(lines))):
        # empty lines keep the numbers that messages name
        out += _of_result(path, [*[""] * begin, *lines[begin:end]], begin + 1)
    return out


def _begins(lines: list[str]) -> list[int]:
    """The places where results begin; what stands before the first belongs to it."""
    begins = [0]
    seen: set[str] = set()
    for number, line in enumerate(lines):
        mark = next((mark for mark in (_TITLE, *intel_mlc.SECTIONS) if mark in line), None)
        if mark is not None and (mark in seen or (mark == _TITLE and seen)):
            begins.append(number)
            seen.clear()
        seen |= {mark} if mark is not None else set()
    return begins


def _of_result(path: Path, lines: list[str], begin: int) -> list[Row]:
    out: list[Row] = []
    for number, line in enumerate(lines, start=1):
        if peak := _PEAK.fullmatch(line.strip()):
            out += figure(float(peak[2]), f"intel-mlc-peak-{slug(peak[1])}", "MB/s", number)
    if out and not intel_mlc.has_tables(lines):
        return out
    for table in intel_mlc.read(path, lines).tables:
        for place, value in table.cells:
            out += figure(
                value, f"intel-mlc-{table.name}", table.unit, begin, dict(zip(table.dims, place, strict=True))
            )
    return out
