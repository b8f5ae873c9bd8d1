"""Render blocks of pages as text for a terminal of a given width: the third medium after PDF and HTML.

Lines break between words, and lists of nodes after a comma. Names, numbers and paths are never broken.
"""

from __future__ import annotations

import itertools
import math
import re
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from rich.color import Color
from rich.color_triplet import ColorTriplet
from rich.style import Style
from rich.text import Text

from nodeprint.judge.outcome import FleetOutcome, Outcome, OutcomeClass
from nodeprint.report.outcome_colors import outcome_colors
from nodeprint.report.pages import blocks
from nodeprint.report.pages.blocks import Block, Bullets, Cell, FactList, MatrixBlock, Section, Table
from nodeprint.settings import checked_yaml, sources

#: Indentation of lists and tables, and the gap between columns.
_LIST, _TABLE, _GAP = 2, 4, 2
#: A column of sentences that would be narrower moves below the others.
_NARROWEST = 24
#: No line breaks at these blanks: before a unit, and after the word before a path.
_GLUED = re.compile(r"(?<=\d) (?=(?:ns|µs|ms|s|GB/s|GHz|Gflop/s|times|points)\b|%)|(?<=^report:) |(?<=^records:) ")
_GLUE, _BREAK = "\N{NO-BREAK SPACE}", "\v"


def painted(sections: Iterable[Section], columns: int) -> Text:
    """Return sections separated by empty lines; a section is its title and its blocks."""
    parts = []
    for section in sections:
        title = [_colored(section.title)] if section.title else []
        lines = [line for block in section.blocks for line in _lines(block, columns)]
        parts.append(Text("\n").join([*title, *lines]))
    return Text("\n\n").join(part for part in parts if part)


def _lines(block: Block, columns: int) -> list[Text]:
    match block:
        case blocks.Text(text=words):
            lines = [line for row in words.split("\n") for line in _broken(row, columns)]
        case Bullets(items=items):
            lines = [line for item in items for line in _broken(" " * _LIST + item, columns)]
        case FactList(rows=rows):
            lines = [line for key, value in rows for line in _broken(f"{' ' * _LIST}{key}: {value}", columns)]
        case Table():
            lines = _table(block, columns)
        case MatrixBlock():
            return _matrix(block, columns)
        case _:
            raise TypeError(f"no block of a terminal: {type(block).__name__}")
    return [_colored("\n".join(lines))] if lines else []


def _broken(line: str, columns: int) -> list[str]:
    """Break a line to fit; its continuation lines keep the indentation."""
    indent = len(line) - len(line.lstrip(" "))
    return _wrapped(line, columns, " " * max(_TABLE, indent + 2)) or [""]


def _wrapped(words: str, columns: int, below: str = "") -> list[str]:
    """Wrap words into lines, with `below` in front of all lines but the first."""
    glued = _GLUED.sub(_GLUE, words)
    room = columns - len(below)
    with_breaks = " ".join(_with_breaks(word) if len(word) > room else word for word in glued.split(" "))
    whole: dict[str, Any] = {"break_long_words": False, "break_on_hyphens": False, "replace_whitespace": False}
    lines = textwrap.wrap(with_breaks, columns, subsequent_indent=below, **whole)
    return [line.replace(_GLUE, " ").replace(_BREAK, "") for line in lines]


def _with_breaks(word: str) -> str:
    """Add break points after each comma of a list that is too long for a line; a path stays whole."""
    return word if "/" in word else re.sub(r",(?=\S)", f",{_BREAK}", word)


def _table(table: Table, columns: int) -> list[str]:
    """Return the lines of a table: without its minor columns if they do not fit, then with the first cell above
    the others. Rows that share their first cell have it once."""
    room = columns - _TABLE
    if (widths := _widths(table, room)) is None:
        table = table.only(set(range(len(table.rows[0]))) - set(table.minor))
        widths = _widths(table, room)
    align = table.align or "l" * len(table.rows[0])
    of_rows = _stacked(table, align, room) if widths is None else (_row(row, widths, align) for row in _cells(table))
    return [f"{'':{_TABLE}}{line}".rstrip() for lines in of_rows for line in lines]


def _cells(table: Table) -> Iterator[tuple[str, ...]]:
    """Yield the titles and rows; the first cell is empty if it is that of the row above."""
    if any(table.header):
        yield table.header
    above = ""
    for first, *others in map(_words, table.rows):
        yield ("" if others and first == above else first, *others)
        above = first


def _words(row: Sequence[Cell]) -> tuple[str, ...]:
    return tuple(map(blocks.word, row))


def _stacked(table: Table, align: str, room: int) -> Iterator[list[str]]:
    """Yield the lines of rows that do not fit, the first cell above the others."""
    room_behind, title = room - _GAP, table.header[0] if table.header else ""
    columns = table.only(range(1, len(align)))
    widths = _widths(columns, room_behind) or _widths(columns, room_behind, wraps=True)
    for first, *others in _cells(table):
        if first not in ("", title):
            yield _wrapped(first, room, " " * _GAP)
        joined = (" " * _GAP).join(filter(None, others))
        lines = _wrapped(joined, room_behind, " " * _GAP) if widths is None else _row(others, widths, align[1:])
        yield [f"{'':{_GAP}}{line}" for line in lines]


def _widths(table: Table, room: int, *, wraps: bool = False) -> list[int] | None:
    """Return the column widths, with titles in several lines if need be; None if they do not fit.

    The column `wide`, or if the table `wraps` the widest column of text, takes the remaining room.
    """
    columns, titles = list(zip(*map(_words, table.rows), strict=True)), table.header or ("",) * len(table.rows[0])
    for title_widths in (map(len, titles), [max(map(len, title.split(" "))) for title in titles]):
        widths = [max(1, least, *map(len, cells)) for least, cells in zip(title_widths, columns, strict=True)]
        beyond = sum(widths) + _GAP * (len(widths) - 1) - room
        if beyond <= 0:
            return widths
    texts = [at for at, side in enumerate(table.align) if side == "l" and wraps]
    wide = table.wide if table.wide >= 0 else max(texts, key=lambda at: widths[at], default=-1)
    words = (word for cell in columns[wide] for word in _GLUED.sub(_GLUE, cell).split(" ") if "/" not in word)
    if wide < 0 or widths[wide] - beyond < max(_NARROWEST, *map(len, words)):
        return None
    widths[wide] -= beyond
    return widths


def _row(row: Sequence[str], widths: Sequence[int], align: str) -> list[str]:
    cells = [_wrapped(cell, width) for cell, width in zip(row, widths, strict=True)]
    lines = []
    for parts in itertools.zip_longest(*cells, fillvalue=""):
        padded = (
            part.rjust(width) if side == "r" else part.ljust(width)
            for part, width, side in zip(parts, widths, align, strict=True)
        )
        lines.append((" " * _GAP).join(padded).rstrip())
    return lines


def _colored(words: str) -> Text:
    """Return text with its outcomes in color, which a pipe does not get."""
    out = Text(words)
    for outcome in sorted((*Outcome, *FleetOutcome), key=len):  # the longer last, as one may contain another
        color = outcome_colors()[outcome.entry.color].terminal
        either = rf"\b{re.escape(outcome.with_class)}|(?<!\()\b{re.escape(outcome)}\b"
        out.highlight_regex(either.replace("\\ ", r"\s+"), f"bold {color}")
    # a fleet's class may be that of a node or of the messages
    fails = rf"\b{OutcomeClass.FAIL} \([^)]*\)"
    out.highlight_regex(fails, f"bold {outcome_colors()[FleetOutcome.DEVIATIONS.entry.color].terminal}")
    return out


# --- matrices ---


def _matrix(matrix: MatrixBlock, columns: int) -> list[Text]:
    """Return a line per row, on colors; numbers that do not fit are tens, or else only the colors remain."""
    values = np.array(matrix.values, dtype=np.float64)
    finite = values[np.isfinite(values)]
    # without the outermost thousandth, as one disturbed cell would leave one color for all others
    low, high = np.quantile(finite, (0.001, 0.999)) if finite.size else (0.0, 1.0)
    before = max(map(len, matrix.names)) + 1
    room = (columns - before) // len(matrix.names)
    digits = len(f"{finite.max(initial=0.0):.0f}")
    width, unit = (min(room, digits + 1), 1) if room > digits else (max(1, min(room, 3)), 10)
    in_tens = unit == 10 and width >= digits
    title = f"{matrix.title}{' / 10' if in_tens else ''}"
    step = -(-before // width)
    heads = (name.rjust(width) if i % step == 0 else " " * width for i, name in enumerate(matrix.names))
    out = [*map(Text, _broken(title, columns)), Text(" " * before + "".join(heads))]
    scale: Sequence[str] = checked_yaml.read(sources.folder() / "reports" / "style.yaml")["terminal"]
    colors = [Color.parse(name).get_truecolor() for name in scale]
    for name, row in zip(matrix.names, values.tolist(), strict=True):
        line = Text(name.rjust(before - 1) + " ")
        for value in row:
            share = min(max((value - low) / (high - low), 0.0), 1.0) if high > low else 0.0
            number = f"{value / unit:.0f}" if unit == 1 or in_tens else ""
            shown = number if math.isfinite(value) else "."
            line.append(shown.rjust(width), _style(colors, share) if math.isfinite(value) else Style())
        out.append(line)
    return out


def _style(colors: Sequence[ColorTriplet], share: float) -> Style:
    at = share * (len(colors) - 1)
    first = min(int(at), len(colors) - 2)
    ends = zip(colors[first], colors[first + 1], strict=True)
    red, green, blue = (round(a + (b - a) * (at - first)) for a, b in ends)
    ink = "white" if 0.299 * red + 0.587 * green + 0.114 * blue < 140 else "black"
    return Style(color=ink, bgcolor=f"rgb({red},{green},{blue})")
