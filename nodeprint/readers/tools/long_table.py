"""A long table: a line for each pair of CPUs, or for each pair and line of memory, under a line of names.

pandas, spreadsheets and some tools write such tables, for example core-to-core-latency with several addresses (its
per_pair and per_address files). They have two columns of CPUs and one of latencies in ns, known by their names, or
three columns without names. The median of several lines of a pair counts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from nodeprint.errors import NodeprintError, printable
from nodeprint.readers.parsing import matrix_cell, missing
from nodeprint.readers.tool_output import CoreMatrix, ToolEvidence, ToolOutput
from nodeprint.settings.texts import say

NAME = "long-table"
KINDS = ("matrix",)
_CPU = r"(?:cpu|core|thread|src|dst|source|target|from|to|local|remote|first|second|ping|pong|a|b|i|j|x|y)"
_ENDS = re.compile(rf"{_CPU}(?:[ _]?(?:core|cpu|id|a|b|i|j|x|y|0|1|2|from|to))?")
#: Names of the column that is read, the best first: what interrupts disturb least.
_VALUES = ("median_ns", "mean_of_medians_ns", "latency_ns", "ns", "latency", "latency (ns)", "latency(ns)", "mean_ns",
           "avg_ns", "median", "mean_of_medians", "mean", "avg", "average", "value", "min_ns", "min")  # fmt: skip
_ADDRESSES = ("addr", "address", "line", "offset", "addr_index", "address_index")
_WORD = re.compile(r"[A-Za-z]")


def evidence(lines: list[str]) -> ToolEvidence:
    """Whether its first lines are a head with two CPUs and a latency, or three numbers each, the first two whole."""
    table = _rows(lines)
    if len(table) < 2:
        return ToolEvidence.NONE
    if _columns([cell.lower() for cell in table[0][1]]) is not None:
        return ToolEvidence.LAYOUT
    first = [cells for _, cells in table[:50]]
    triples = all(len(cells) == 3 and cells[0].isdecimal() and cells[1].isdecimal() for cells in first)
    triples = triples and len({tuple(cells[:2]) for cells in first}) > 3 and any("." in cells[2] for cells in first)
    return ToolEvidence.LAYOUT if triples else ToolEvidence.NONE


def read_output(path: Path, lines: list[str]) -> ToolOutput:
    """Parse the file's lines. Raises NodeprintError with line and column of the first fault."""
    by_pair: dict[tuple[int, int], list[float]] = {}
    for a, b, _, value in _values(path, lines):
        by_pair.setdefault((a, b), []).append(value)
    return _imported(path, by_pair)


def by_address(path: Path, lines: list[str]) -> dict[tuple[int, int], dict[str, list[float]]]:
    """The latencies of each two CPUs, the lower first, on each line of memory, by the text of its address, ns.

    Raises NodeprintError as `read` does, and where the table has no column of addresses.
    """
    by_pair: dict[tuple[int, int], dict[str, list[float]]] = {}
    for a, b, address, value in _values(path, lines):
        if address is None:
            raise NodeprintError(
                "no column of addresses", where=path, line=1, advice="call it addr, address or line: one for each line"
            )
        if np.isfinite(value):
            by_pair.setdefault((min(a, b), max(a, b)), {}).setdefault(address, []).append(value)
    return by_pair


def _values(path: Path, lines: list[str]) -> Iterator[tuple[int, int, str | None, float]]:
    """The two CPUs, the address where there is one, and the latency of each row between two CPUs."""
    table = _rows(lines)
    head = [cell.lower() for cell in table[0][1]]
    columns = _columns(head)
    address = next((place for place, name in enumerate(head) if columns is not None and name in _ADDRESSES), None)
    body = table if columns is None else table[1:]
    if columns is None:
        if any(_WORD.search(cell) for cell in table[0][1]):
            raise NodeprintError(
                "no two columns of CPUs and one of latencies by these names",
                where=path,
                line=table[0][0],
                column=1,
                advice="call them a, b and latency_ns",
            )
        columns = (0, 1, 2)
    width = len(table[0][1])
    for number, cells in body:
        if len(cells) != width:
            raise NodeprintError(
                f"{len(cells)} cells where the first line has {width}",
                where=path,
                line=number,
                column=len(cells),
                advice="give the table complete",
            )
        ends = [cells[column] for column in columns[:2]]
        for column, end in zip(columns, ends, strict=False):
            if not re.fullmatch(r"\d{1,6}", end):
                raise NodeprintError(
                    f"{printable(repr(end), 40)} is no CPU",
                    where=path,
                    line=number,
                    column=column + 1,
                    advice="number CPUs as the system does",
                )
        value = matrix_cell(cells[columns[2]], path, number, columns[2] + 1)
        if ends[0] != ends[1]:
            yield int(ends[0]), int(ends[1]), None if address is None else cells[address], value


def _imported(path: Path, by_pair: dict[tuple[int, int], list[float]]) -> ToolOutput:
    cpus = sorted({cpu for ends in by_pair for cpu in ends})
    if len(cpus) < 2:
        raise NodeprintError("less than two CPUs", where=path, advice="give a line for each pair")
    place = {cpu: row for row, cpu in enumerate(cpus)}
    values = np.full((len(cpus), len(cpus)), np.nan)
    for (a, b), of_pair in by_pair.items():
        finite = [value for value in of_pair if np.isfinite(value)]
        values[place[a], place[b]] = np.median(finite) if finite else np.nan
    if np.isnan(values).all():
        raise NodeprintError("no latency at all", where=path, advice="run the tool again and keep what it prints")
    values = np.where(np.isnan(values), values.T, values)
    most = max(map(len, by_pair.values()))
    notes = (say("read", "lines_a_pair", lines=most),) if most > 1 else ()
    cores = CoreMatrix(tuple(cpus), values, "unknown")
    unknown = ("operation", "home", "topology", *(() if most > 1 else ("spread",)))
    return ToolOutput(path, NAME, cores, unknown=unknown, notes=(*notes, *missing(values)))


def _rows(lines: Sequence[str]) -> list[tuple[int, list[str]]]:
    """Lines with their numbers from 1 and their cells, without comments and empty ones."""
    some = [(number, line) for number, line in enumerate(lines, start=1) if line.strip() and not line.startswith("#")]
    separator = next((kind for kind in (",", ";", "\t") if some and kind in some[0][1]), None)
    return [(number, [cell.strip().strip('"') for cell in line.split(separator)]) for number, line in some]


def _columns(head: Sequence[str]) -> tuple[int, int, int] | None:
    """The places of the two CPUs and of the latency among names; None where they are not all there."""
    ends = [place for place, name in enumerate(head) if _ENDS.fullmatch(name)]
    value = next((head.index(name) for name in _VALUES if name in head), None)
    return (ends[0], ends[1], value) if len(ends) >= 2 and value is not None else None
