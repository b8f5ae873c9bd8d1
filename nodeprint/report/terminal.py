"""Render blocks of pages as text for a terminal of a given width: the third medium after PDF and HTML.

Lines break between words, and lists of nodes after a comma. Names, numbers and paths are never broken.
"""

from __future__ import annotations

import itertools
import math
import re
import textwrap
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from rich.color import Color
from rich.color_triplet import ColorTriplet
from rich.style import Style
from rich.text import Text

from nodeprint.judge.outcome import FleetOutcome, Outcome, OutcomeClass
from nodeprint.report.outcome_colors import outcome_colors
from nodeprint.report.pages import blocks
from nodeprint.report.pages.blocks import Block, Bullets, FactList, MatrixBlock, Section, Table
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
    rows = [tuple(blocks.word(cell) for cell in row) for row in table.rows]
    named = [table.header] if any(table.header) else []
    align = table.align or "l" * len(rows[0])
    of_rows = _rows([*named, *rows], align, table.wide, columns - _TABLE)
    return [f"{'':{_TABLE}}{line}".rstrip() for lines in of_rows for line in lines]


def _rows(rows: Sequence[Sequence[str]], align: str, wide: int, room: int) -> list[list[str]]:
    """Return the lines of each row; if the columns do not fit, the first has its own line above the others."""
    if len(rows[0]) == 1:
        return [_wrapped(row[0], room) for row in rows]
    if (widths := _widths(rows, wide, room)) is not None:
        return [_row(row, widths, align) for row in rows]
    behind, left = [row[1:] for row in rows], room - _GAP
    if (widths := _widths(behind, wide - 1, left)) is not None:
        below = [_row(row, widths, align[1:]) for row in behind]
    else:
        below = [_wrapped((" " * _GAP).join(filter(None, row)), left, " " * _GAP) for row in behind]
    return [
        [*_wrapped(row[0], room, " " * _GAP), *(f"{'':{_GAP}}{line}" for line in lines)]
        for row, lines in zip(rows, below, strict=True)
    ]


def _widths(rows: Sequence[Sequence[str]], wide: int, room: int) -> list[int] | None:
    """Return the column widths; the `wide` column takes the remaining room. None if they do not fit side by side."""
    widths = [max(1, *map(len, column)) for column in zip(*rows, strict=True)]
    beyond = sum(widths) + _GAP * (len(widths) - 1) - room
    if beyond <= 0:
        return widths
    words = (word for row in rows for word in _GLUED.sub(_GLUE, row[wide]).split(" ") if "/" not in word)
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
