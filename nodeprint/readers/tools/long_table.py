"""A long table: a line for each pair of CPUs, or for each pair and line of memory, under a line of names.

pandas, spreadsheets and some tools write such tables, for example core-to-core-latency with several addresses (its
per_pair and per_address files). They have two columns of CPUs and one of latencies, known by their names, or
three columns without names. The unit in the latency's name is converted to ns, the unit without one. The median of
several lines of a pair counts.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np

from nodeprint.errors import NodeprintError, printable
from nodeprint.readers import units
from nodeprint.readers.parsing import cpu_number, matrix_cell, missing
from nodeprint.readers.tool_output import CoreMatrix, ToolEvidence, ToolOutput
from nodeprint.settings.texts import say

NAME = "long-table"
KINDS = ("matrix",)
#: Names of the columns of CPUs: a word for a CPU, for an end of a pair, or both in any order.
_CPU = r"(?:v?cpu|core|thread|hwthread|pu)"
_END = (
    r"(?:src|dst|source|dest|destination|target|from|to|local|remote|first|second|ping|pong|reader|writer|sender|"
    r"receiver|a|b|i|j|x|y)"
)
_ENDS = re.compile(rf"{_CPU}?{_END}{_CPU}?(?:id)?|{_CPU}\d?(?:id)?")
#: Words of the name of a latency's column, in the order in which the columns are read: what interrupts disturb least.
_VALUES = (
    frozenset({"median", "med", "p50"}),
    frozenset({"latency", "lat", "time", "value", "delay", "oneway", "one", "way", "hop"}),
    frozenset({"mean", "avg", "average"}),
    frozenset({"min", "minimum", "best"}),
)
_PLAIN = 1  # the place of names that say nothing but that it is a latency
_MEAN_OF_MEDIANS = {"mean", "of", "medians"}
_ADDRESSES = ("addr", "address", "line", "offset", "addr_index", "address_index")
#: Names of the columns that count repetitions, whose median is read.
_REPETITIONS = (*_ADDRESSES, "run", "sample", "iteration", "iter", "repetition", "rep", "trial", "round", "pass",
                "batch", "block", "index", "id", "n", "time", "timestamp", "seed", "attempt", "experiment")  # fmt: skip
_WORD = re.compile(r"[A-Za-z]")
_NAME_WORD = re.compile(r"[a-z\N{MICRO SIGN}\N{GREEK SMALL LETTER MU}]+\d*")
#: The rule under a head and the frame of a row, in Markdown.
_RULE = re.compile(r"[\s|+:=_-]*[-=_]{2,}[\s|+:=_-]*")
_FRAMED = re.compile(r"\s*\|(.*)\|\s*")
#: So many lines may stand before the table.
_FIRST = 40


@dataclass(frozen=True)
class _Table:
    """A table: its rows of cells with their line numbers, and the columns of both CPUs and of the latency.

    `ns` is the number of nanoseconds of the latency's unit. `head` has the columns' names, none if it has no head.
    """

    rows: Sequence[tuple[int, list[str]]]
    ends: tuple[int, int]
    value: int
    ns: float
    head: Sequence[str]

    def column(self, names: Collection[str]) -> int | None:
        """The first column of these names."""
        return next((place for place, name in enumerate(self.head) if name.lower() in names), None)


def evidence(lines: list[str]) -> ToolEvidence:
    """Whether a head with two CPUs is there, or its first lines are three numbers each, the first two whole."""
    table = _rows(lines)
    if len(table) < 2:
        return ToolEvidence.NONE
    if _head(table) is not None:
        return ToolEvidence.LAYOUT
    first = [cells for _, cells in table[:50]]
    triples = all(len(cells) == 3 and cells[0].isdecimal() and cells[1].isdecimal() for cells in first)
    triples = triples and len({tuple(cells[:2]) for cells in first}) > 3 and any("." in cells[2] for cells in first)
    return ToolEvidence.LAYOUT if triples else ToolEvidence.NONE


def read_output(path: Path, lines: list[str]) -> ToolOutput:
    """Parse the file's lines. Raises NodeprintError with line and column of the first fault."""
    table = _table(path, lines)
    _check_repetitions(path, table)
    by_pair: dict[tuple[int, int], list[float]] = {}
    for a, b, _, value in _values(path, table):
        by_pair.setdefault((a, b), []).append(value)
    return _imported(path, by_pair)


def by_address(path: Path, lines: list[str]) -> dict[tuple[int, int], dict[str, list[float]]]:
    """The latencies of each two CPUs, the lower first, on each line of memory, by the text of its address, ns.

    Raises NodeprintError as `read` does, and where the table has no column of addresses.
    """
    by_pair: dict[tuple[int, int], dict[str, list[float]]] = {}
    for a, b, address, value in _values(path, _table(path, lines)):
        if address is None:
            raise NodeprintError(
                "no column of addresses", where=path, line=1, advice="call it addr, address or line: one for each line"
            )
        if np.isfinite(value):
            by_pair.setdefault((min(a, b), max(a, b)), {}).setdefault(address, []).append(value)
    return by_pair


def _table(path: Path, lines: list[str]) -> _Table:
    """The table of a file. Raises NodeprintError where the names of its columns do not say which to read."""
    rows = _rows(lines)
    found = _head(rows)
    if found is None:
        if any(_WORD.search(cell) for cell in rows[0][1]):
            raise NodeprintError(
                "no two columns of CPUs and one of latencies by these names",
                where=path,
                line=rows[0][0],
                column=1,
                advice="call them a, b and latency_ns",
            )
        return _Table(rows, (0, 1), 2, 1.0, ())
    number, head = rows[found]
    ends = _ends(head)
    if len(ends) > 2:
        names = ", ".join(printable(repr(head[place]), 40) for place in ends)
        raise NodeprintError(
            f"{len(ends)} columns of CPUs ({names})",
            where=path,
            line=number,
            advice="leave the two between which it is",
        )
    values = sorted((rank, place, ns) for place, name in enumerate(head) for rank, ns in _latency(name))
    if not values:
        names = ", ".join(printable(repr(name), 40) for place, name in enumerate(head) if place not in ends)
        raise NodeprintError(
            f"no column is a latency by its name ({names})",
            where=path,
            line=number,
            column=1,
            advice="call the column of one-way latencies latency_ns or latency_us",
        )
    _, value, ns = values[0]
    return _Table(rows[found + 1 :], (ends[0], ends[1]), value, ns, head)


def _head(rows: Sequence[tuple[int, list[str]]]) -> int | None:
    """The place of the first row that names two CPUs and another column above as many cells with a CPU."""
    for at, ((_, cells), (_, after)) in enumerate(pairwise(rows[: _FIRST + 1])):
        ends = _ends(cells)
        is_head = len(ends) >= 2 and any(map(_is_name, cells)) and len(after) == len(cells)
        if is_head and any(cpu_number(after[end]) >= 0 for end in ends):
            return at
    return None


def _is_name(cell: str) -> bool:
    """Whether a cell names a column of anything but CPUs."""
    return _WORD.search(cell) is not None and _ENDS.fullmatch(_joined(cell)) is None


def _joined(name: str) -> str:
    """A name without signs inside: `Core 1`, `core_1` and `core-1` are core1."""
    return re.sub(r"(?<=\w)[\s_#.-]+", "", name.lower())


def _ends(head: Sequence[str]) -> list[int]:
    """The columns that name a CPU."""
    return [place for place, name in enumerate(head) if _ENDS.fullmatch(_joined(name))]


def _latency(name: str) -> Iterator[tuple[int, float]]:
    """The rank of a column among those of latencies and the nanoseconds of its unit; nothing for another column."""
    words = _NAME_WORD.findall(name.lower())
    found = [factor for word in words if (factor := units.factor(word, "ns")) is not None and word != "min"]
    rest = {word for word in words if units.factor(word, "ns") is None or word == "min"} - {"in"}
    if len(found) > 1 or (not found and not rest):
        return
    ns = found[0] if found else 1.0
    if rest == _MEAN_OF_MEDIANS:
        yield 0, ns
    elif rest <= frozenset[str]().union(*_VALUES):
        rank = next((at for at, kind in enumerate(_VALUES) if at != _PLAIN and kind & rest), _PLAIN)
        yield rank, ns


def _check_repetitions(path: Path, table: _Table) -> None:
    """Raise NodeprintError where the rows of a pair differ in a column that counts no repetitions: their median would
    join two tests."""
    pairs: dict[tuple[str, ...], int] = {}
    for _, cells in table.rows:
        pair = tuple(cells[end] for end in table.ends if end < len(cells))
        pairs[pair] = pairs.get(pair, 0) + 1
    most = max(pairs.values(), default=0)
    for place, name in enumerate(table.head):
        if most < 2 or place in (*table.ends, table.value) or name.lower() in _REPETITIONS or [*_latency(name)]:
            continue
        texts = list(dict.fromkeys(cells[place] for _, cells in table.rows if place < len(cells)))
        if 1 < len(texts) <= most and not any("." in text for text in texts):
            shown = " and ".join(printable(repr(text), 20) for text in texts[:2])
            raise NodeprintError(
                f"up to {most} rows of a pair, which differ in {printable(repr(name), 40)} ({shown})",
                where=path,
                line=table.rows[0][0],
                column=place + 1,
                advice="leave the rows of one test, or call the column run if it counts repetitions",
            )


def _values(path: Path, table: _Table) -> Iterator[tuple[int, int, str | None, float]]:
    """The two CPUs, the address where there is one, and the latency in ns of each row between two CPUs."""
    address = table.column(_ADDRESSES)
    width = len(table.head or table.rows[0][1])
    for number, cells in table.rows:
        if len(cells) != width:
            raise NodeprintError(
                f"{len(cells)} cells where the first line has {width}",
                where=path,
                line=number,
                column=len(cells),
                advice="give the table complete, without other lines",
            )
        ends = [cpu_number(cells[column]) for column in table.ends]
        for column, end in zip(table.ends, ends, strict=True):
            if end < 0:
                raise NodeprintError(
                    f"{printable(repr(cells[column]), 40)} is no CPU",
                    where=path,
                    line=number,
                    column=column + 1,
                    advice="number CPUs as the system does",
                )
        value = matrix_cell(cells[table.value], path, number, table.value + 1) * table.ns
        if ends[0] != ends[1]:
            yield ends[0], ends[1], None if address is None else cells[address], value


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
    """Lines with their numbers from 1 and their cells, without comments, rules and empty ones."""
    some = [
        (number, line)
        for number, line in enumerate(lines, start=1)
        if line.strip() and not line.startswith("#") and not _RULE.fullmatch(line)
    ]
    some = [(number, framed[1] if (framed := _FRAMED.fullmatch(line)) else line) for number, line in some]
    separator = next((kind for kind in (",", ";", "\t", "|") if _separates(kind, some)), None)
    return [(number, [cell.strip().strip("\"'") for cell in line.split(separator)]) for number, line in some]


def _separates(kind: str, rows: Sequence[tuple[int, str]]) -> bool:
    """Whether a character is in at least half of the first rows."""
    first = [line for _, line in rows[:_FIRST]]
    return bool(first) and 2 * sum(kind in line for line in first) >= len(first)
