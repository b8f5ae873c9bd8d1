"""CSV of core-to-core-latency and tools like it: a lower triangle, a full matrix, or either with something on the
diagonal.

Format: https://github.com/nviennot/core-to-core-latency, src/main.rs (`--csv`): the mean of a one-way hop by compare-
exchange on one line that all pairs share, in ns, CPUs in the order of the system; empty cells where nothing was
measured. Also read: other separators (`;`, tab, blanks), lines that end with the diagonal, and a first row and column
with CPU numbers.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from nodeprint.errors import NodeprintError
from nodeprint.importers.imported import CoreMatrix, Imported
from nodeprint.importers.parsing import filled, latencies, missing, nothing

NAME = "core-to-core-latency"
_SEPARATORS = (",", ";", "\t")
#: What may stand before a CPU's number.
_CPU_NAME = re.compile(r"^(?:cpu|core|thread)[ _]?(?=\d+$)", re.IGNORECASE)

#: A line's number from 1, and its text. Cells are split where they are read: as strings, those of 2,048 CPUs take
#: 250 MB.
Row = tuple[int, str]


def matches(lines: list[str]) -> bool:
    """Whether most lines are cells with a separator or numbers alone."""
    some = [line for line in lines if line.strip()]
    table = [line for line in some if any(separator in line for separator in _SEPARATORS)]
    numbers = [line for line in some if set(line.lower()) <= set("0123456789.+-e xna")]
    return 2 * max(len(table), len(numbers)) >= len(some)


def read(path: Path, lines: list[str]) -> Imported:
    """Parse the file's lines. Raises NodeprintError with line and column of the first fault."""
    separator = _separator(path, lines)
    rows, numbers = _without_numbers(path, list(enumerate(lines, start=1)), separator)
    skip = int(numbers is not None)
    rows, n, first = _square(path, rows, separator, skip)
    if n < 2:
        raise NodeprintError("less than two CPUs", where=path, advice="give a matrix with a row for each CPU")
    values = np.full((n, n), np.nan)
    for i, (number, text) in enumerate(rows, start=first):
        cells = _split(text, separator)[skip : skip + n]
        values[i, : len(cells)] = latencies(cells, path, number, 1 + skip)
    notes = () if np.isnan(values.diagonal()).all() else ("numbers on the diagonal were left out",)
    np.fill_diagonal(values, np.nan)
    if np.isnan(values).all():
        raise NodeprintError("no latency at all", where=path, advice="run the tool again and keep what it prints")
    values = filled(values)
    unknown = ("home", "topology", "spread", *(() if numbers else ("cpu numbers",)))
    cores = CoreMatrix(tuple(numbers or range(n)), values, "cas")
    return Imported(path, NAME, cores, unknown=unknown, notes=(*notes, *missing(values)))


def _separator(path: Path, lines: list[str]) -> str | None:
    """The one kind of separator in the whole file, None for blanks."""
    kinds = [separator for separator in _SEPARATORS if any(separator in line for line in lines)]
    for number, line in enumerate(lines, start=1):
        for separator in kinds[1:]:
            if separator in line:
                name = "a tab" if separator == "\t" else f"'{separator}'"
                raise NodeprintError(
                    f"{name} beside '{kinds[0]}' as separator",
                    where=path,
                    line=number,
                    column=line[: line.index(separator)].count(kinds[0]) + 1,
                    advice="write the whole table with one separator and with '.' in numbers",
                )
    return kinds[0] if kinds else None


def _split(text: str, separator: str | None) -> list[str]:
    return text.split(separator) or [""]


def _without_numbers(path: Path, rows: list[Row], separator: str | None) -> tuple[list[Row], list[int] | None]:
    """The table without a first row of CPU numbers, and those numbers, which its first column repeats; None where there
    are none.

    They are taken for numbers where the corner holds a word, or nothing and the first column is the same row once more,
    as pandas writes a table with its index; or where there is no corner, and they count from 0. CPUs may be called
    `cpu4`.
    """
    cells = [cell.strip().strip('"') for cell in _split(rows[0][1], separator)]
    corner, *heads = [_CPU_NAME.sub("", cell) if _CPU_NAME.match(cell) else cell for cell in cells]
    if heads and heads[-1] == "" and len(heads) == len(rows):
        heads.pop()
    if _without_index(rows, [corner, *heads], separator):
        return rows[1:], None
    if not heads or not all(head.isdecimal() for head in heads):
        return rows, None
    word = corner.isalpha() and corner.lower() != "x"
    if not (word or (corner == "" and (heads[0] == "0" or _is_index(rows[1:], heads, separator)))):
        return rows, None
    numbers = [int(head) for head in heads]
    line = rows[0][0]
    if len(set(numbers)) < len(numbers):
        raise NodeprintError("a CPU is listed twice", where=path, line=line, advice="give each CPU one column")
    body = [row for row in rows[1:] if row[1].strip(f" {separator or ''}")]
    for (line, text), number in zip(body, numbers, strict=False):
        if _CPU_NAME.sub("", _split(text, separator)[0].strip().strip('"')) != str(number):
            raise NodeprintError(
                f"the row is not that of CPU {number}", where=path, line=line, column=1, advice="order rows as columns"
            )
    if len(body) != len(numbers):
        raise NodeprintError(
            f"{len(body)} rows for {len(numbers)} columns", where=path, line=line, advice="give each CPU a row"
        )
    return body, numbers


def _is_index(rows: list[Row], heads: list[str], separator: str | None) -> bool:
    """Whether the first cells of the lines below a head are its numbers once more, and the other cells no whole
    numbers: the first line of a symmetric matrix of whole ns looks the same."""
    first = [_CPU_NAME.sub("", _split(text, separator)[0].strip().strip('"')) for _, text in rows if text.strip()]
    return first == heads and any("." in text for _, text in rows)


def _without_index(rows: list[Row], heads: list[str], separator: str | None) -> bool:
    """Whether the first line counts the columns of a square below it, as pandas writes a table without its index."""
    if len(rows) < 3:
        return False
    square = len([text for _, text in rows[1:] if text.strip()]) == len(heads) == len(_split(rows[1][1], separator))
    return square and heads == [str(number) for number in range(len(heads))]


def _square(path: Path, rows: list[Row], separator: str | None, skip: int) -> tuple[list[Row], int, int]:
    """Rows of an (n, n) table, n, and the place of the first row: a triangle may end before the diagonal or on it, and
    have no line for the first CPU. `skip` cells begin each line.
    """
    while rows and not rows[-1][1].strip():
        rows = rows[:-1]
    n = len(rows)
    widths = [(len(text.split()) or 1) if separator is None else text.count(separator) + 1 for _, text in rows]
    widths = [width - skip for width in widths]

    def last(row: Row) -> str:
        return _split(row[1], separator)[-1]

    if n > 1 and set(widths) == {n + 1} and not any(last(row).strip() for row in rows):
        return rows, n, 0
    if widths == list(range(1, n + 1)):
        # The last cell of each line is the diagonal, or the pair with the CPU before where the first line has a number.
        return (rows, n, 0) if n == 1 or all(nothing(last(row)) for row in rows) else (rows, n + 1, 1)
    if n > 2 and widths == [1, *range(1, n)] and not last(rows[0]).strip():
        return rows, n, 0
    odd = next((i for i, width in enumerate(widths) if width != n), None)
    if odd is not None:
        raise NodeprintError(
            f"{widths[odd]} cells in a table of {n} lines",
            where=path,
            line=rows[odd][0],
            column=min(widths[odd], n),
            advice="give a square matrix or its lower triangle, complete",
        )
    return rows, n, 0
