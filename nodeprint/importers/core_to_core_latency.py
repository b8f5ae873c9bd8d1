"""CSV of core-to-core-latency and tools like it: a lower triangle, a full matrix, or either with something on the
diagonal.

Format: https://github.com/nviennot/core-to-core-latency, src/main.rs (`--csv`): the mean of a one-way hop by compare-
exchange on one line that all pairs share, in ns, CPUs in the order of the system; empty cells where nothing was
measured. Also read: other separators (`;`, tab, blanks), lines that end with the diagonal, and a first row and column
with CPU numbers.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from nodeprint.errors import NodeprintError
from nodeprint.importers.model import CoreMatrix, Imported
from nodeprint.importers.text import NOTHING, filled, positive

NAME = "core-to-core-latency"
_SEPARATORS = (",", ";", "\t")

Row = tuple[int, list[str]]


def matches(lines: list[str]) -> bool:
    """Whether most lines are cells with a separator or numbers alone, or it is this tool's output on a terminal."""
    if any(line.startswith("Num cores:") for line in lines[:5]):
        return True
    some = [line for line in lines if line.strip()]
    table = [line for line in some if any(separator in line for separator in _SEPARATORS)]
    numbers = [line for line in some if set(line.lower()) <= set("0123456789.+-e xna")]
    return 2 * max(len(table), len(numbers)) >= len(some)


def read(path: Path, lines: list[str]) -> Imported:
    """Parse the file's lines. Raises NodeprintError with line and column of the first fault."""
    for number, line in enumerate(lines, start=1):
        if line.startswith("Num cores:") or "round-trip-time" in line:
            raise NodeprintError(
                "output for a terminal, not a table",
                where=path,
                line=number,
                column=1,
                advice="run core-to-core-latency with --csv and keep its standard output",
            )
    rows, numbers = _without_numbers(path, _cells(path, lines))
    rows = _square(path, rows)
    n = len(rows)
    if n < 2:
        raise NodeprintError("less than two CPUs", where=path, advice="give a matrix with a row for each CPU")
    values = np.full((n, n), np.nan)
    notes: list[str] = []
    for i, (at, cells) in enumerate(rows):
        for j, cell in enumerate(cells):
            column = j + 1 + (numbers is not None)
            if i == j:
                if not _nothing(cell):
                    positive(cell, path, at, column)
                    notes = ["numbers on the diagonal were left out"]
            elif cell.strip():
                values[i, j] = positive(cell, path, at, column)
    if np.isnan(values).all():
        raise NodeprintError("no latency at all", where=path, advice="run the tool again and keep what it prints")
    values = filled(values)
    missing = int(np.isnan(values).sum() - n) // 2
    if missing:
        notes.append(f"{missing} pairs have no latency")
    unknown = ("home", "topology", "spread", *(() if numbers else ("cpu numbers",)))
    cores = CoreMatrix(tuple(numbers or range(n)), values, "cas")
    return Imported(path, NAME, cores, unknown=unknown, notes=tuple(notes))


def _nothing(cell: str) -> bool:
    text = cell.strip().lower()
    return text in NOTHING or (text.replace(".", "").strip("0") == "" and "0" in text)


def _cells(path: Path, lines: list[str]) -> list[Row]:
    """Cells of every line; one kind of separator in the whole file."""
    kinds = [separator for separator in _SEPARATORS if any(separator in line for line in lines)]
    if len(kinds) > 1:
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
    if kinds:
        return [(number, line.split(kinds[0])) for number, line in enumerate(lines, start=1)]
    return [(number, line.split() or [""]) for number, line in enumerate(lines, start=1)]


def _without_numbers(path: Path, rows: list[Row]) -> tuple[list[Row], list[int] | None]:
    """The table without a first row and column of CPU numbers, and those numbers; None where there are none.

    They are taken for numbers where the corner holds a word, or nothing and the numbers start at 0, which no latency
    is.
    """
    corner, *heads = (cell.strip() for cell in rows[0][1])
    if heads and heads[-1] == "" and len(heads) == len(rows):
        heads.pop()
    whole = all(head.isdecimal() for head in heads) and len(heads) > 0
    if not whole or not ((corner.isalpha() and corner.lower() != "x") or (corner == "" and heads[0] == "0")):
        return rows, None
    numbers = [int(head) for head in heads]
    line = rows[0][0]
    if len(set(numbers)) < len(numbers):
        raise NodeprintError("a CPU is listed twice", where=path, line=line, advice="give each CPU one column")
    body = [row for row in rows[1:] if any(cell.strip() for cell in row[1])]
    for (line, cells), number in zip(body, numbers, strict=False):
        if cells[0].strip() != str(number):
            raise NodeprintError(
                f"the row is not that of CPU {number}", where=path, line=line, column=1, advice="order rows as columns"
            )
    if len(body) != len(numbers):
        raise NodeprintError(
            f"{len(body)} rows for {len(numbers)} columns", where=path, line=line, advice="give each CPU a row"
        )
    return [(line, cells[1:]) for line, cells in body], numbers


def _square(path: Path, rows: list[Row]) -> list[Row]:
    """The rows of an (n, n) table; a triangle whose lines end at or before the diagonal is completed."""
    while rows and not any(cell.strip() for cell in rows[-1][1]) and len(rows[-1][1]) == 1:
        rows = rows[:-1]
    n = len(rows)
    widths = [len(cells) for _, cells in rows]
    if n > 1 and all(width == n + 1 and not cells[-1].strip() for width, (_, cells) in zip(widths, rows, strict=True)):
        return [(line, cells[:-1]) for line, cells in rows]
    if widths == list(range(1, n + 1)):
        # The last cell of each line is the diagonal, or the pair with the CPU before where the first line has a number.
        if n > 1 and not all(_nothing(cells[-1]) for _, cells in rows):
            before = [(rows[0][0], [""])] + [(line, [*cells, ""]) for line, cells in rows]
            return [(line, cells + [""] * (n + 1 - len(cells))) for line, cells in before]
        return [(line, cells + [""] * (n - len(cells))) for line, cells in rows]
    if n > 2 and widths == [1, *range(1, n)] and not rows[0][1][0].strip():
        return [
            (line, (cells if i else []) + [""] * (n - (len(cells) if i else 0))) for i, (line, cells) in enumerate(rows)
        ]
    odd = next((i for i, width in enumerate(widths) if width != n), None)
    if odd is not None:
        raise NodeprintError(
            f"{widths[odd]} cells in a table of {n} lines",
            where=path,
            line=rows[odd][0],
            column=min(widths[odd], n),
            advice="give a square matrix or its lower triangle, complete",
        )
    return rows
