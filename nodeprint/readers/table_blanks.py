"""Tables whose cells are separated by blanks: `column -t`, awk, printed data frames of pandas, and lines of grep.

A blank separates cells or stands in one. Lines have to fit the names in one way, or the table is rejected.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import islice
from operator import or_

from nodeprint.errors import NodeprintError, printable
from nodeprint.readers import host_words, path_fields, table_columns
from nodeprint.readers.parsing import NUMBER

#: Two blanks or more separate cells that are aligned; a single one may stand in a cell.
_WIDE = re.compile(r" {2,}|\t+")
#: A line under the names of psql and sacct.
_RULE = re.compile(r"[\s+|=-]*[-=]{2,}[\s+|=-]*")
#: What pandas prints under a frame, and where it leaves out rows, columns or ends of cells.
_SHAPE = re.compile(r"\[(\d+) rows x (\d+) columns\]")
_OMITTED = re.compile(r"(?:^|\s)\.{2,3}(?:\s|$)|\S\.\.\.(?:\s|$)")
#: Cells with a blank in them that are read: a number with a unit, or a time.
_WITH_BLANK = re.compile(rf"{NUMBER} [A-Za-z%][\w%/]*|\d{{4}}-\d\d-\d\d \d\d:\d\d(?::\d\d(?:\.\d+)?)?")
_WHOLE = "write the whole table, in pandas with to_csv"
_ADVICE = "separate the cells by commas or tabs, in pandas with to_csv"
#: A line of grep: a file's name, a line's number, what was looked for, and numbers.
_GREP = re.compile(r"(?P<file>[^\s:][^:]*):(?:\d+:)?(?P<text>\s*\S.*)")
_STREAM = re.compile(rf"(?P<metric>Copy|Scale|Add|Triad):\s+(?P<value>{NUMBER})(?:\s+{NUMBER}){{3,4}}\s*")
_ONE_VALUE = re.compile(rf"(?P<metric>[A-Za-z][^:=]*?)\s*[:=]\s*(?P<value>{NUMBER})\s*(?P<unit>[A-Za-z%][\w%/]*)?\s*")
_ENDING = re.compile(r"\.(?:out|log|txt|o\d+|err|dat|res|result)$", re.IGNORECASE)


def has_names(line: str) -> bool:
    """Whether a line has the name of a column of nodes between blanks."""
    return table_columns.has_node(line.lstrip("# ").split())


def head(lines: Sequence[str], filled: Sequence[int]) -> int:
    """The number of the line with the names, of the first `filled` lines; the first of all if none has them."""
    named = [number for number in filled if has_names(lines[number])]
    rows = {number: next((text for text in lines[number + 1 :] if _is_row(text)), "").split() for number in named}
    fitting = [n for n in named if len(lines[n].lstrip("# ").split()) in (1, len(rows[n]), len(rows[n]) - 1)]
    return next(iter([*fitting, *named]), filled[0])


def as_tabs(lines: Sequence[str], head: int, source: str) -> list[str]:
    """The lines from the names on (number `head`, from 0) with tabs between their cells; others stay.

    Raises NodeprintError with line and column where blanks separate cells in no way, or in two ways.
    """
    out = list(lines)
    body = [number for number in range(head + 1, len(lines)) if _is_row(lines[number])]
    _check_whole(lines, head, body, source)
    if not body:
        raise NodeprintError("has names of columns and no figure", where=source, advice="give a line for each figure")
    rows = [lines[number] for number in body]
    splits = _splits(rows)
    if not splits:
        widths = [len(row.split()) for row in rows]
        odd = next(at for at, width in enumerate(widths) if width != widths[0])
        what = f"{widths[odd]} cells where the first line has {widths[0]}"
        raise NodeprintError(what, where=source, line=body[odd] + 1, column=widths[odd], advice=_ADVICE)
    above = next((number for number in range(head - 1, -1, -1) if lines[number].strip()), None)
    fitting = []
    for cells in splits:
        below = _with_index_below(lines[head], lines[above], len(cells[0])) if above is not None else None
        names = below or _names(lines[head], rows, len(cells[0]))
        fitting += [(names, cells, below is not None)] if names else []
    if len(fitting) != 1:
        raise _misfit(lines[head], head, len(splits[0][0]), source)
    ((names, cells, is_below),) = fitting
    _check_shift(names, cells, head, source)
    if is_below and above is not None:
        out[above] = ""
    out[head] = "\t".join(names)
    for number in range(head + 1, len(lines)):
        out[number] = ""
    for number, of_line in zip(body, cells, strict=True):
        out[number] = "\t".join(of_line)
    return out


def _is_row(line: str) -> bool:
    text = line.strip()
    return bool(text) and not text.startswith("#") and not _RULE.fullmatch(text) and not _SHAPE.fullmatch(text)


def _check_whole(lines: Sequence[str], head: int, body: Sequence[int], source: str) -> None:
    """Raise NodeprintError where pandas left out rows, columns or ends of cells, or wrapped its lines."""
    for number in (*range(max(head - 1, 0), head + 1), *body):
        text = lines[number].rstrip()
        is_omitted = _OMITTED.search(text) is not None
        if is_omitted or text.endswith("\\"):
            what = "rows, columns or cells are left out (...)" if is_omitted else "its columns are wrapped (\\)"
            raise NodeprintError(what, where=source, line=number + 1, advice=_WHOLE)
    for number in range(head + 1, len(lines)):
        if (shape := _SHAPE.fullmatch(lines[number].strip())) and int(shape[1]) != len(body):
            what = f"{len(body)} rows where pandas had {shape[1]}"
            raise NodeprintError(what, where=source, line=number + 1, advice=_WHOLE)


def _aligned(line: str) -> list[str]:
    return _WIDE.split(line.strip())


def _splits(rows: Sequence[str]) -> list[list[list[str]]]:
    """The cells of lines, in each way in which all lines have as many."""
    single, aligned = [row.split() for row in rows], [_aligned(row) for row in rows]
    blanks = [cell for of_row in aligned for cell in of_row if " " in cell]
    ways = [single, *([aligned] if blanks and all(map(_WITH_BLANK.fullmatch, blanks)) else [])]
    return [way for way in ways if len(set(map(len, way))) == 1]


def _with_index_below(line: str, above: str, width: int) -> list[str] | None:
    """The names where pandas prints that of the index below those of the columns; None if it does not."""
    fitting = [names for names in (_aligned(above), above.split()) if len(names) == width - 1]
    return [line.strip(), *fitting[0]] if fitting and above[:1] == " " and len(line.split()) == 1 else None


def _names(text: str, rows: Sequence[str], width: int) -> list[str] | None:
    """The names of the columns: as many as cells, where an index of pandas has none; None if they fit in no way."""
    line = text.replace("#", " ", 1) if text.lstrip().startswith("#") else text
    wide, narrow = _aligned(line), line.split()
    begin = len(text) - len(text.lstrip())
    if begin and all(begin >= len(row) - len(row.lstrip()) + len(row.split()[0]) for row in rows):
        return next((["", *names] for names in (wide, narrow) if len(names) == width - 1), None)
    if len(wide) == width:
        return wide if wide == narrow or not _are_under(line, rows) else None
    # without two blanks anywhere nothing is aligned; else each cell has to be under its name
    is_certain = _WIDE.search(line.strip()) is None or _are_under(line, rows)
    return narrow if len(narrow) == width and is_certain else None


def _check_shift(names: Sequence[str], cells: Sequence[Sequence[str]], head: int, source: str) -> None:
    """Raise NodeprintError where numbers of rows are under the name of the nodes, and nodes under another."""
    node = next((place for place, name in enumerate(names) if table_columns.has_node([name])), None)
    if node is None or not all(row[node].isdecimal() for row in cells):
        return
    for place, name in enumerate(names):
        if all(host_words.is_numbered_host(row[place]) for row in cells):
            what = f"numbers are under {printable(names[node], 30)}, and names of nodes under {printable(name, 30)}"
            raise NodeprintError(what, where=source, line=head + 1, column=place + 1, advice=_ADVICE)


def _are_under(line: str, rows: Sequence[str]) -> bool:
    """Whether all cells of each column begin or end under its name."""
    names = [match.span() for match in re.finditer(r"\S+", line)]
    left, right = [True] * len(names), [True] * len(names)
    for row in islice(rows, 1000):
        spans = [match.span() for match in re.finditer(r"\S+", row)]
        if len(spans) != len(names):
            return False
        left = [is_left and a == c for is_left, (a, _), (c, _) in zip(left, names, spans, strict=True)]
        right = [is_right and b == d for is_right, (_, b), (_, d) in zip(right, names, spans, strict=True)]
    return all(map(or_, left, right))


def _misfit(line: str, head: int, width: int, source: str) -> NodeprintError:
    wide, narrow = _aligned(line), line.split()
    shown = printable(", ".join(wide), 80)
    if width in (len(wide), len(narrow)):
        what = f"the names ({shown}) fit the {width} cells of lines in no way, or in several"
    else:
        what = f"{len(narrow)} words in the names ({shown}) where lines have {width} cells"
    return NodeprintError(what, where=source, line=head + 1, column=min(len(narrow), width), advice=_ADVICE)


def grepped(lines: Sequence[str], source: str) -> dict[int, tuple[str, ...]] | None:
    """The node, metric, value and unit of each line (from 1) that grep printed; None if grep did not print the lines.

    Raises NodeprintError with the line whose file is named after something else, or which has no single value.
    """
    filled = [(number, line) for number, line in enumerate(lines, start=1) if line.strip() and line != "--"]
    found = [(number, match) for number, line in filled if (match := _GREP.fullmatch(line))]
    values = [_value(match["text"].strip()) for _, match in found]
    is_of_files = any(_is_file(match["file"]) for _, match in found)
    if not is_of_files or len(found) < len(filled) or not any(values):
        return None
    advice = "give nodeprint the directory of these files, whose outputs it reads whole"
    rows: dict[int, tuple[str, ...]] = {}
    for (number, match), value in zip(found, values, strict=True):
        node = path_fields.stem(match["file"])
        if "." in node or not host_words.is_numbered_host(node):
            what = f"{printable(match['file'], 60)} is named after more or other than a node"
            raise NodeprintError(what, where=source, line=number, column=1, advice=advice)
        if value is None:
            what = f"{printable(match['text'].strip(), 60)} is no name with a single value"
            raise NodeprintError(what, where=source, line=number, column=2, advice=advice)
        rows[number] = (node, *value)
    return rows


def has_times(lines: Sequence[str]) -> bool:
    """Whether lines of grep are STREAM's, with times behind the rate."""
    return any((match := _GREP.fullmatch(line)) and _STREAM.fullmatch(match["text"].strip()) for line in lines)


def _is_file(name: str) -> bool:
    return _ENDING.search(name) is not None or host_words.is_numbered_host(name)


def _value(text: str) -> tuple[str, str, str] | None:
    """The metric, value and unit of what grep found; None if these are not all that is there."""
    if match := _STREAM.fullmatch(text):
        return match["metric"].lower(), match["value"], ""
    match = _ONE_VALUE.fullmatch(text)
    return (match["metric"].strip(), match["value"], match["unit"] or "") if match else None
