"""Intel Memory Latency Checker: idle latencies, bandwidths between nodes and cache-to-cache latencies, as it prints
them, peak bandwidths and loaded latencies.

Format: versions 2 to 3.11 (`mlc`, `--latency_matrix`, `--bandwidth_matrix`, `--c2c_latency`), from public logs such as
those of FD.io CSIT's test beds. A megabyte is 1,000,000 bytes, as the output states. Several
results in one file are runs: each begins with the name of the tool, or with a section that was there already.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from nodeprint.errors import NodeprintError
from nodeprint.readers.parsing import NUMBER, positive, slug, tool_values
from nodeprint.readers.tool_output import ToolEvidence, ToolOutput, ToolValue

NAME = "intel-mlc"
KINDS = ("matrix", "values")


@dataclass(frozen=True)
class _Section:
    """A matrix of the output: the first words of its section, and the meaning of its numbers.

    `factor` converts them to `unit`. `words` precede the node or socket of each of `ends`.
    """

    begins: str
    name: str
    quantity: str
    unit: str
    ends: tuple[str, str]
    factor: float = 1.0

    @property
    def words(self) -> tuple[str, str]:
        return ("", "memory of ") if self.ends[1] == "memory" else ("writer on ", "reader on ")


_SECTIONS = (
    _Section("Measuring idle latencies", "idle-latency", "load", "ns", ("from", "memory")),
    _Section("Measuring Memory Bandwidths between nodes", "bandwidth", "rate", "B/s", ("from", "memory"), 1e6),
    _Section("homed in writer socket", "c2c-writer-homed", "transfer", "ns", ("writer", "reader")),
    _Section("homed in reader socket", "c2c-reader-homed", "transfer", "ns", ("writer", "reader")),
)
_PEAKS, _LOADED = "Measuring Peak Injection", "Measuring Loaded Latencies"
_TITLE = "Intel(R) Memory Latency Checker"
#: How the sections of one result begin, each at most once.
_MARKS = (_TITLE, *(section.begins for section in _SECTIONS), _PEAKS, _LOADED)
_HEAD = re.compile(r"\s*(?:(?:Writer |Memory )?(Numa node|Numa Node|node|Socket))\s+(\d+(?:\s+\d+)*)\s*")
_LOCAL = re.compile(r"\s*Local Socket L2->L2 (HITM|HIT)\s+latency\s+(\S+)\s*")
_ROW = re.compile(r"\s*(\d+)\s+(\S.*)")
_PEAK = re.compile(rf"\s*((?:ALL|All|\d:\d) (?:Reads|Reads-Writes|NTW?)|Stream-triad like)\s*:\s*({NUMBER})\s*")

#: A row of loaded latencies: the delay has five digits.
_DELAY = re.compile(rf"\s*(\d{{5}})\s+({NUMBER})\s+({NUMBER})\s*")


def evidence(lines: list[str]) -> ToolEvidence:
    """Whether a section of the tool is there."""
    found = any(mark in line for line in lines for mark in _MARKS) or any(_LOCAL.match(line) for line in lines)
    return ToolEvidence.NAME if found else ToolEvidence.NONE


def read_output(path: Path, lines: list[str]) -> ToolOutput:
    """The cells of the matrices of each result, and a value for each mix of reads and writes. Raises NodeprintError
    where a matrix is cut, or nothing is there."""
    begins = _begins(lines)
    values = [value for begin, end in pairwise((*begins, len(lines))) for value in _result(path, lines, begin, end)]
    return ToolOutput(path, NAME, values=values, unknown=("topology", "spread", "cpus"))


def _begins(lines: list[str]) -> list[int]:
    """The places where results begin: at the title, or at the first table of an output without it."""
    begins: list[int] = []
    seen: set[str] = set()
    for number, line in enumerate(lines):
        mark = next((mark for mark in _MARKS if mark in line), None)
        is_first = not begins and (mark is not None or _LOCAL.fullmatch(line) is not None)
        if is_first or mark in seen or mark == _TITLE:
            begins.append(number)
            seen.clear()
        seen |= {mark} if mark is not None else set()
    return begins or [0]


def _result(path: Path, lines: list[str], begin: int, end: int) -> list[ToolValue]:
    """The values of the result in lines from `begin` to before `end`; those of its matrices stand where it begins."""
    out: list[ToolValue] = []
    number = begin
    while number < end:
        line = lines[number]
        number += 1
        if match := _LOCAL.fullmatch(line):
            latency, point = positive(match[2], path, number, 6), {"state": match[1].lower()}
            out += tool_values(latency, f"{NAME}-c2c-local", "ns", begin + 1, quantity="transfer", point=point)
        elif peak := _PEAK.fullmatch(line):
            out += tool_values(float(peak[2]), f"{NAME}-peak-{slug(peak[1])}", "MB/s", number)
        elif loaded := _DELAY.fullmatch(line):
            point = {"delay": int(loaded[1])}
            latency, rate = (positive(loaded[cell], path, number, cell) for cell in (2, 3))
            out += tool_values(latency, f"{NAME}-loaded-latency", "ns", number, point=point)
            out += tool_values(rate, f"{NAME}-loaded-bandwidth", "MB/s", number, point=point)
        elif section := next((section for section in _SECTIONS if section.begins in line), None):
            of_matrix, number = _matrix(path, lines[:end], number, section, begin + 1)
            out += of_matrix
    if not out:
        raise NodeprintError(
            "no matrix of latencies or bandwidths",
            where=path,
            line=end,
            column=1,
            advice="give the output of mlc with --latency_matrix, --bandwidth_matrix or --c2c_latency",
        )
    return out


def _matrix(path: Path, lines: list[str], start: int, section: _Section, result: int) -> tuple[list[ToolValue], int]:
    """The values of the matrix that begins after line `start`, and the line after it; they stand in line `result`."""
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
    out: list[ToolValue] = []
    while number < len(lines) and (row := _ROW.fullmatch(lines[number])):
        texts = row[2].split()
        number += 1
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
                ends = (f"{word}{part} {end}" for word, end in zip(section.words, (int(row[1]), column), strict=True))
                link, name = dict(zip(section.ends, ends, strict=True)), f"{NAME}-{section.name}"
                out += tool_values(value, name, section.unit, result, quantity=section.quantity, link=link)
    if not out:
        raise NodeprintError(
            f"no values for {section.name}", where=path, line=number, column=1, advice="give the whole output"
        )
    return out, number
