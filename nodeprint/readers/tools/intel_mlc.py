"""Intel Memory Latency Checker: idle latencies, bandwidths between nodes and cache-to-cache latencies, as it prints
them.

Format: as printed by versions 2 to 3.11 (`mlc`, `--latency_matrix`, `--bandwidth_matrix`, `--c2c_latency`), seen in
public logs, among them FD.io CSIT's test beds; a megabyte is 1,000,000 bytes, as its output says. Loaded latencies and
peak bandwidths are left out.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from nodeprint.errors import NodeprintError
from nodeprint.readers.text_lines import positive
from nodeprint.readers.tool_output import ImportedTable, ToolOutput

NAME = "intel-mlc"


@dataclass(frozen=True)
class _Section:
    """A table of the output: how its section begins, and what its numbers are; `factor` makes them the value's unit.
    `words` are put before a node or socket of each of `dims`."""

    begins: str
    name: str
    quantity: str
    unit: str
    value: str
    dims: tuple[str, str]
    factor: float = 1.0

    @property
    def words(self) -> tuple[str, str]:
        return ("", "memory of ") if self.dims[1] == "memory" else ("writer on ", "reader on ")


_TABLES = (
    _Section("Measuring idle latencies", "idle-latency", "load", "ns", "latency_ns", ("from", "memory")),
    _Section(
        "Measuring Memory Bandwidths between nodes", "bandwidth", "rate", "B/s", "bytes_per_s", ("from", "memory"), 1e6
    ),
    _Section("homed in writer socket", "c2c-writer-homed", "transfer", "ns", "latency_ns", ("writer", "reader")),
    _Section("homed in reader socket", "c2c-reader-homed", "transfer", "ns", "latency_ns", ("writer", "reader")),
)
_LEFT_OUT = ("Measuring Peak Injection", "Measuring Loaded Latencies")
#: How the sections of one result begin, each at most once.
SECTIONS = (*(section.begins for section in _TABLES), *_LEFT_OUT)
_HEAD = re.compile(r"\s*(?:(?:Writer |Memory )?(Numa node|Numa Node|node|Socket))\s+(\d+(?:\s+\d+)*)\s*")
_LOCAL = re.compile(r"\s*Local Socket L2->L2 (HITM|HIT)\s+latency\s+(\S+)\s*")
_ROW = re.compile(r"\s*(\d+)\s+(\S.*)")


def matches(lines: list[str]) -> bool:
    """Whether a section of the tool is there."""
    marks = (*SECTIONS, "Intel(R) Memory Latency Checker")
    return any(mark in line for line in lines for mark in marks) or any(_LOCAL.match(line) for line in lines)


def has_tables(lines: list[str]) -> bool:
    """Whether a section that `read` reads is there."""
    begins = [section.begins for section in _TABLES]
    return any(_LOCAL.match(line) or any(mark in line for mark in begins) for line in lines)


def read(path: Path, lines: list[str]) -> ToolOutput:
    """Parse the file's lines. Raises NodeprintError with line and column of the first fault."""
    tables: list[ImportedTable] = []
    local: list[tuple[tuple[str], float]] = []
    notes: list[str] = []
    number = 0
    while number < len(lines):
        line = lines[number]
        number += 1
        if match := _LOCAL.fullmatch(line):
            local.append(((match[1].lower(),), positive(match[2], path, number, 6)))
        elif any(mark in line for mark in _LEFT_OUT):
            notes.append(f"left out: {line.strip().removeprefix('Measuring ').rstrip('.')}")
        elif section := next((section for section in _TABLES if section.begins in line), None):
            table, number = _table(path, lines, number, section)
            tables.append(table)
    if local:
        tables.append(ImportedTable("c2c-local", "transfer", "ns", "latency_ns", ("state",), tuple(local)))
    if not tables:
        raise NodeprintError(
            "no matrix of latencies or bandwidths",
            where=path,
            line=len(lines),
            column=1,
            advice="give the output of mlc with --latency_matrix, --bandwidth_matrix or --c2c_latency",
        )
    names = [table.name for table in tables]
    if len(set(names)) < len(names):
        raise NodeprintError("the same table twice", where=path, advice="give the output of one run a file")
    return ToolOutput(path, NAME, None, tuple(tables), ("topology", "spread", "cpus"), tuple(notes))


def _table(path: Path, lines: list[str], start: int, section: _Section) -> tuple[ImportedTable, int]:
    """The table that begins after line `start`, and the line after it."""
    number, head = start, None
    while number < len(lines) and head is None and "Measuring" not in lines[number]:
        head = _HEAD.fullmatch(lines[number])
        number += 1
    if head is None:
        raise NodeprintError(
            f"no line of node numbers for {section.name}",
            where=path,
            line=start,
            column=1,
            advice="give the whole output",
        )
    columns = [int(cell) for cell in head[2].split()]
    part = "socket" if head[1] == "Socket" else "node"
    cells: list[tuple[tuple[int | str, ...], float]] = []
    rows = 0
    while number < len(lines) and (row := _ROW.fullmatch(lines[number])):
        texts = row[2].split()
        number += 1
        rows += 1
        if len(texts) != len(columns):
            raise NodeprintError(
                f"{len(texts)} cells for {len(columns)} {part}s",
                where=path,
                line=number,
                column=len(texts) + 1,
                advice="give the whole output",
            )
        for position, (column, text) in enumerate(zip(columns, texts, strict=True), start=2):
            if text != "-":
                value = section.factor * positive(text, path, number, position, section.quantity)
                first, second = (
                    f"{word}{part} {end}" for word, end in zip(section.words, (int(row[1]), column), strict=True)
                )
                cells.append(((first, second), value))
    if not rows or not cells:
        raise NodeprintError(
            f"no values for {section.name}", where=path, line=number, column=1, advice="give the whole output"
        )
    table = ImportedTable(section.name, section.quantity, section.unit, section.value, section.dims, tuple(cells))
    return table, number
