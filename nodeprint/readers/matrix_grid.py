"""A square table of latencies as people paste it: find it among other lines, and decide its form or reject it. Tables
are squares, or triangles with or without the diagonal. CPU numbers are in a first line, in a first column or in
neither. Separators are commas, semicolons, tabs, bars or blanks; with blanks, an empty diagonal leaves no trace. Each
form fixes the number of cells of each line and the place of the CPU numbers, so all forms are tried. If two remain
whose latencies differ, the table is rejected.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise, product
from pathlib import Path
from typing import Literal

import numpy as np
import numpy.typing as npt

from nodeprint.errors import NodeprintError, printable
from nodeprint.readers.parsing import CPU_NAME, cpu_number, matrix_cells, nothing
from nodeprint.readers.tool_output import Matrix
from nodeprint.settings.texts import say

#: What separates cells; None is blanks.
Separator = Literal[",", ";", "\t", "|"] | None
_SEPARATORS: tuple[Separator, ...] = (";", "\t", "|", ",")
_NAMES = {",": "','", ";": "';'", "\t": "a tab", "|": "'|'", None: "blanks"}
#: Characters of lines that hold nothing but latencies.
_PLAIN = frozenset("0123456789.,;|\t +-exna±")
_CELL = re.compile(
    r"(?:(?:v?cpu|core|thread|pu|p|c)?[ _#-]?\d+|[+-]?(?:\d+[.,]?\d*|[.,]\d+)(?:e[+-]?\d+)?|x|-+|nan|n/?a)?",
    re.IGNORECASE,
)
#: A CPU with a blank inside its name, which is one cell where blanks separate.
_TWO_WORDS = re.compile(r"[\"']?\b(v?cpu|core|thread|pu) (\d+)\b[\"']?", re.IGNORECASE)
_FRAMED = re.compile(r"\s*\|(.*)\|\s*")
#: A line that states an argument, such as `Samples: 500`.
_SETTING = re.compile(r"[A-Za-z][A-Za-z ]*:")
#: A line that begins with a CPU instead of a comment.
_NUMBERED = re.compile(r"#\d+(?=[\s,;|]|$)")
#: A line under a head, of Markdown and of drawn tables.
_RULE = re.compile(r"[\s|+:=_-]*[-=_]{2,}[\s|+:=_-]*")
_DEVIATION = re.compile(r"\s*(?:±|\+/-)\s*[\d.,]*")
_DECIMAL_COMMA = re.compile(r"(?<=\d),(?=\d)")
Columns = slice | npt.NDArray[np.int64]
#: The labels of a form whose columns and rows both have their CPU.
_COMPLETE = 3
#: How much of a line that a note quotes.
_QUOTED = 40


@dataclass(frozen=True)
class _PastedTable:
    """One table: the `rows` (numbers from 1) of a file's `lines` that it has, and the separator of its cells."""

    lines: Sequence[str]
    rows: Sequence[int]
    separator: Separator

    def text(self, row: int) -> str:
        """The line of a row."""
        return self.lines[row - 1]

    def cells(self, row: int) -> list[str]:
        """The cells of a row, without blanks and quotes."""
        return [cell.strip().strip("\"'") for cell in self._cell_text(row).split(self.separator)] or [""]

    def width(self, row: int) -> int:
        """How many cells a row has: counted, as the cells of 2,048 CPUs take 250 MB."""
        if self.separator is None:
            return len(self.text(row).split())
        return self._cell_text(row).count(self.separator) + 1

    def _cell_text(self, row: int) -> str:
        """The line of a row without a frame of bars, which Markdown puts around cells."""
        text = self.text(row)
        framed = _FRAMED.fullmatch(text) if self.separator == "|" else None
        return framed[1] if framed else text


@dataclass(frozen=True)
class _Form:
    """The form of a table: does it begin with a line of CPU numbers (`head`), and each line with one (`index`)? It also
    has the number of empty cells at the end of each line, and the CPU numbers. For the rows below the head, it has the
    `shape`, the number `n` of CPUs and the `first` CPU with a row."""

    head: bool
    index: bool
    ends: int
    cpus: tuple[int, ...] | None
    shape: Literal["square", "without diagonal", "lower", "upper"]
    n: int
    first: int

    @property
    def labels(self) -> int:
        """How surely its numbers are CPUs: both ways of numbering agree, one is there, or none."""
        return self.head + 2 * self.index


def rows_of(lines: Sequence[str]) -> int:
    """How many lines of a file could be rows of a table."""
    return sum(map(len, _blocks(_with_short_names(lines))))


def read_grid(path: Path, lines: Sequence[str]) -> tuple[tuple[int, ...] | None, Matrix, tuple[str, ...]]:
    """Read the only table of a file. Return the CPUs of its rows (None if it does not number them) and its numbers (n,
    n) in its unit (NaN if empty). Notes tell which lines were left out.

    Raises NodeprintError with line and column (cells counted from 1) of the first fault. It also rejects two tables and
    ambiguous ones."""
    lines = _with_short_names(lines)
    blocks = _blocks(lines)
    every = [row for block in blocks for row in block]
    if not every:
        raise NodeprintError("no table of numbers", where=path, advice="give a matrix with a row for each CPU")
    table, form = _decided(path, lines, every)
    if form is None:
        large = [block for block in blocks if len(block) > 1]
        decided = [(block, *_decided(path, lines, block)) for block in large]
        readable = [(block, table, form) for block, table, form in decided if form is not None]
        if len(large) > 1 and len(readable) == len(large):
            raise NodeprintError(
                f"{len(large)} tables, from line {' and from line '.join(str(block[0]) for block in large)}",
                where=path,
                advice="give one table a file",
            )
        complete = [item for item in readable if item[2].labels == _COMPLETE] or readable
        if len(complete) != 1 or (len(large) > 1 and complete == readable and readable[0][2].labels < _COMPLETE):
            raise _misfit(path, table)
        readable = complete
        every, table, form = readable[0]
    notes = _left_out(path, lines, every, form)
    values = np.full((form.n, form.n), np.nan)
    commas = False
    for place, row in enumerate(every[form.head :]):
        cells = table.cells(row)
        if "±" in table.text(row) or "+/-" in table.text(row):
            cells = [_DEVIATION.sub("", cell) for cell in cells]
        if table.separator != "," and "," in table.text(row):
            commas, cells = True, [_DECIMAL_COMMA.sub(".", cell) for cell in cells]
        cells = cells[form.index : len(cells) - form.ends if form.ends else None]
        _check_separators(path, row, cells, table.separator, form.index)
        values[form.first + place, _columns(form, place, len(cells))] = matrix_cells(cells, path, row, 1 + form.index)
    if commas:
        notes = (*notes, "decimal commas were read as points")
    return form.cpus, values, notes


def _with_short_names(lines: Sequence[str]) -> Sequence[str]:
    """The lines with `Core0` for `Core 0`, if one of them has several CPUs with such names."""
    if all(len(_TWO_WORDS.findall(line)) < 2 for line in lines):
        return lines
    return [_TWO_WORDS.sub(r"\1\2", line) for line in lines]


def _columns(form: _Form, place: int, width: int) -> Columns:
    """The columns of the cells of the row at this place."""
    if form.shape == "without diagonal":
        return np.delete(np.arange(form.n), form.first + place)
    return slice(form.n - width, form.n) if form.shape == "upper" else slice(0, width)


def _decided(path: Path, lines: Sequence[str], rows: Sequence[int]) -> tuple[_PastedTable, _Form | None]:
    """The table of some rows and its form, None where it has none that is known. Raises NodeprintError where two forms
    remain."""
    separator = _separator([lines[row - 1] for row in rows])
    tables = [_PastedTable(lines, rows, separator)]
    if separator == "\t":  # also used to align columns, several in a row
        tables.append(_PastedTable(lines, rows, None))
    for table in tables:
        forms = list(_forms(table))
        plain = next((form for form in forms if not form.labels), None)
        numbered = sorted((form for form in forms if form.labels), key=lambda form: -form.labels)
        sure = next((form for form in numbered if _surely_numbers(table, form)), None)
        if sure is not None or (plain is None and numbered):
            return table, sure or numbered[0]
        if numbered and numbered[0].labels == _COMPLETE and _counted(numbered[0].cpus or ()):
            raise NodeprintError(
                "its first line and first column may be CPU numbers or latencies",
                where=path,
                line=rows[0],
                column=1,
                advice="write CPU in the corner, or latencies with a decimal point",
            )
        if plain is not None:
            _check_order(path, table, plain)
            return table, plain
    return tables[0], None


def _check_order(path: Path, table: _PastedTable, form: _Form) -> None:
    """Raise NodeprintError where the first line has every CPU's number in another order than counted, as of rows sorted
    as text: these are no latencies."""
    cells = table.cells(table.rows[0])
    heads = cells[1:] if len(cells) == form.n and not cells[0] else cells
    numbers = [cpu_number(text) for text in heads]
    if len(numbers) > 2 and sorted(numbers) in (list(range(len(numbers))), list(range(1, len(numbers) + 1))):
        what, advice = "CPU numbers in another order than the rows", "order rows as columns"
        raise NodeprintError(what, where=path, line=table.rows[0], column=1, advice=advice)


def _counted(cpus: Sequence[int]) -> bool:
    """Whether numbers follow each other in equal steps, as CPUs mostly do and latencies hardly ever."""
    return len(cpus) > 2 and len({b - a for a, b in pairwise(cpus)}) == 1 and cpus[0] < cpus[1]


def _forms(table: _PastedTable) -> Iterator[_Form]:
    """All forms that a table can have by its widths and its CPU numbers."""
    widths = [table.width(row) for row in table.rows]
    empty_ends = all(not table.cells(row)[-1] for row in table.rows) if table.separator is not None else False
    for head, index, ends in product((False, True), (False, True), (0, 1) if empty_ends else (0,)):
        body = table.rows[head:]
        corner = table.cells(table.rows[0])[0]
        if len(body) < 1 + head or (not head and corner.isalpha() and not nothing(corner)):
            continue
        for shape, n, first in _shapes(
            table, body, [width - index - ends for width in widths[head:]], int(index), ends
        ):
            cpus = _cpus(table, head, index, ends, n, first)
            if cpus is not None or not (head or index):
                yield _Form(head, index, ends, cpus, shape, n, first)


def _shapes(
    table: _PastedTable, body: Sequence[int], widths: Sequence[int], skip: int, ends: int
) -> Iterator[tuple[Literal["square", "without diagonal", "lower", "upper"], int, int]]:
    """By the widths of the rows the shapes that they can have, the number of CPUs and the first that has a row."""
    count = len(body)

    def diagonal(end: int) -> bool:
        return all(nothing(table.cells(row)[end]) for row in body)

    if widths == [count] * count:
        yield "square", count, 0
    elif count > 1 and widths == [count - 1] * count and all(all(table.cells(row)) for row in body):
        yield "without diagonal", count, 0
    if count > 1 and widths == list(range(1, count + 1)):
        # the last cell of each line is the diagonal, or the pair with the CPU before where the first line has a number
        yield ("lower", count, 0) if diagonal(-1 - ends) else ("lower", count + 1, 1)
    elif count > 1 and (
        widths == list(range(count))
        or (count > 2 and widths == [1, *range(1, count)] and nothing(table.cells(body[0])[skip]))
    ):
        yield "lower", count, 0
    if count > 1 and widths == list(range(count, 0, -1)):
        yield ("upper", count, 0) if diagonal(skip) else ("upper", count + 1, 0)
    elif count > 1 and widths == list(range(count - 1, -1, -1)):
        yield "upper", count, 0


def _cpus(table: _PastedTable, head: bool, index: bool, ends: int, n: int, first: int) -> tuple[int, ...] | None:
    """The CPU numbers in a first line, a first column or both; None where these are no numbers or contradict."""
    heads: list[str] | None = None
    if head:
        cells = table.cells(table.rows[0])
        if len(cells) == n + index + ends:
            heads = cells[index : index + n]
        elif len(cells) == n:
            heads = cells
        else:
            return None
        if not _numbers(heads):
            return None
    if index:
        column = [table.cells(row)[0] for row in table.rows[head:]]
        expected = [cpu_number(text) for text in heads or map(str, range(n))][first : first + len(column)]
        if [cpu_number(text) for text in column] != expected:
            return None
    elif heads is not None and [cpu_number(text) for text in heads] != list(range(n)):
        return None  # without a column beside it a line of any whole numbers could be latencies
    return tuple(cpu_number(text) for text in heads) if heads is not None else tuple(range(n)) if index else None


def _numbers(texts: Sequence[str]) -> bool:
    numbers = [cpu_number(text) for text in texts]
    return bool(numbers) and min(numbers) >= 0 and len(set(numbers)) == len(numbers)


def _surely_numbers(table: _PastedTable, form: _Form) -> bool:
    """Whether the numbers of a form are CPUs instead of latencies. They count from 0 without a gap, they are named, or
    only the latencies have decimals."""
    if form.cpus == tuple(range(form.n)) or form.cpus is None:
        return form.cpus is not None
    if not form.head:
        return False
    corner, *heads = table.cells(table.rows[0])
    named = any(CPU_NAME.match(head) for head in heads)
    word = corner.isalpha() and corner.lower() != "x"
    from_zero = form.cpus[0] == 0 and not corner
    decimals = any("." in table.text(row) for row in table.rows)
    return named or word or from_zero or (decimals and not (corner and nothing(corner)))


def _separator(rows: Sequence[str]) -> Separator:
    """What separates the cells of most rows; a comma beside another separator is a decimal comma."""
    counts = {kind: sum(kind in row for row in rows) for kind in _SEPARATORS if kind is not None}
    most = max(counts.values())
    if 2 * most < len(rows) and not (most and len(rows) < 3):
        return None
    return next(kind for kind in _SEPARATORS if kind is not None and counts[kind] == most)


def _blocks(lines: Sequence[str]) -> list[list[int]]:
    """The numbers of lines (from 1) that may be rows of a table, those between two other lines together; empty lines
    and rules are neither."""
    rows = [row for row, line in enumerate(lines, start=1) if line.strip(" ") and not _RULE.fullmatch(line)]
    rows = [row for row in rows if row == 1 or not _is_index_name(lines[row - 1], lines[row - 2])]
    some = [lines[row - 1] for row in rows]
    inside = [_is_row(line) for line in some]
    for place in range(1, len(some)):  # one with a fault has as many separators as the one before it
        inside[place] |= inside[place - 1] and _as_wide(some[place], some[place - 1])
    if len(some) > 1 and inside[1]:
        inside[0] |= _as_wide(some[0], some[1])
    for place in reversed(range(len(some) - 1)):  # the first CPU has no latency in a lower triangle: tabs alone
        is_empty = not some[place].strip()
        inside[place] |= inside[place + 1] and is_empty and _as_wide(some[place], some[place + 1])
    blocks: list[list[int]] = [[]]
    for row, is_inside in zip(rows, inside, strict=True):
        if is_inside:
            blocks[-1].append(row)
        elif blocks[-1]:
            blocks.append([])
    return [block for block in blocks if block]


def _is_index_name(line: str, head: str) -> bool:
    """Whether a line has nothing but the name of the rows, as pandas prints it under that of the columns."""
    columns, *cpus = head.split() or [""]
    return line.strip().isalpha() and columns.isalpha() and len(cpus) > 1 and all(cpu_number(cpu) >= 0 for cpu in cpus)


def _as_wide(line: str, row: str) -> bool:
    """Whether a line has as many separators as a row, of any kind but blanks."""
    return any(kind and kind in row and line.count(kind) == row.count(kind) for kind in _SEPARATORS)


def _is_row(line: str) -> bool:
    """Whether at least half of a line's words are cells of a table."""
    text = line.strip().lower()
    if text.startswith("//") or (text.startswith("#") and not _NUMBERED.match(text)) or _SETTING.match(text):
        return False
    if set(text) <= _PLAIN and (any(c.isdigit() for c in text) or any(kind and kind in text for kind in _SEPARATORS)):
        return True
    kinds = [kind for kind in _SEPARATORS if kind and kind in text]
    cells = re.split(f"[{''.join(kinds)}]", text) if kinds else text.split()
    cells = [cell.strip().strip("\"'") for cell in cells]
    cells = [_DEVIATION.sub("", cell) for cell in cells if cell]
    good = sum(_CELL.fullmatch(cell) is not None for cell in cells)
    return good > 0 and 2 * good >= len(cells)


def _left_out(path: Path, lines: Sequence[str], rows: Sequence[int], form: _Form) -> tuple[str, ...]:
    """Notes on lines that are not rows. Raises NodeprintError if other lines may have cut the table."""
    inside = set(rows)
    others = [
        number
        for number, line in enumerate(lines, start=1)
        if line.strip() and number not in inside and not _RULE.fullmatch(line)
    ]
    after = [number for number in others if number > rows[-1]]
    if after and form.shape in ("lower", "upper") and not form.head:
        raise NodeprintError(
            f"{_quoted(lines[after[0] - 1])} after a triangle, which may be cut there",
            where=path,
            line=after[0],
            column=1,
            advice="take the line out where the table is complete",
        )
    if not others:
        return ()
    count = f"{len(others)} line{'s' * (len(others) > 1)}"
    return (say("read", "beside", lines=count, first=_quoted(lines[others[0] - 1])),)


def _quoted(line: str) -> str:
    return printable(repr(line.strip()), _QUOTED)


def _check_separators(path: Path, row: int, cells: Sequence[str], separator: Separator, skip: bool) -> None:
    """Raise NodeprintError where a cell has another separator in it."""
    for column, cell in enumerate(cells, start=1 + skip):
        kind = next((kind for kind in _SEPARATORS if kind and kind != separator and kind in cell), None)
        if kind is not None:
            raise NodeprintError(
                f"{_NAMES[kind]} beside {_NAMES[separator]} as separator",
                where=path,
                line=row,
                column=column,
                advice="write the whole table with one separator",
            )


def _misfit(path: Path, table: _PastedTable) -> NodeprintError:
    """Why a table has no form: another separator, contradictory CPU numbers, or a first line whose number of cells
    differs from the number of lines."""
    heads = table.cells(table.rows[0])
    if heads[0].isalpha() and heads[0].lower() != "x" and all(cpu_number(text) >= 0 for text in heads[1:]):
        twice = next((text for text in heads[1:] if heads.count(text) > 1), None)
        if twice is not None:
            return NodeprintError(
                f"CPU {cpu_number(twice)} is listed twice",
                where=path,
                line=table.rows[0],
                column=1,
                advice="give each CPU one column",
            )
        for row, text in zip(table.rows[1:], heads[1:], strict=False):
            if cpu_number(table.cells(row)[0]) != cpu_number(text):
                return NodeprintError(
                    f"the row is not that of CPU {cpu_number(text)}",
                    where=path,
                    line=row,
                    column=1,
                    advice="order rows as columns",
                )
    widths = [table.width(row) for row in table.rows]
    odd = next((i for i, width in enumerate(widths) if width != len(widths)), 0)
    if table.separator is not None:
        try:
            for row in table.rows:
                _check_separators(path, row, table.cells(row), table.separator, skip=False)
        except NodeprintError as error:
            return error
    return NodeprintError(
        f"{widths[odd]} cells in a table of {len(widths)} lines",
        where=path,
        line=table.rows[odd],
        column=min(widths[odd], len(widths)),
        advice="give a square matrix or its lower triangle, complete",
    )
