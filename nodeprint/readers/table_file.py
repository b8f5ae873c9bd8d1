"""A table of figures from a file: CSV with any separator, Parquet or JSON lines; from `-` what comes in."""

from __future__ import annotations

import csv
import hashlib
import io
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pandas as pd

from nodeprint.errors import NodeprintError, printable
from nodeprint.files import sums
from nodeprint.machine import fingerprint
from nodeprint.machine.tree import contents
from nodeprint.readers import (
    table_blanks,
    table_columns,
    table_forms,
    table_numbering,
    table_numbers,
    tool_logs,
    units,
    value_table,
)
from nodeprint.readers.parsing import lines_of
from nodeprint.readers.registry import readers
from nodeprint.readers.table_columns import Columns
from nodeprint.readers.value_table import ValueTable
from nodeprint.settings.texts import say

#: Lines before the names of a table that are looked through for them.
_PREAMBLE = 60
_SEPARATORS = ("\t", ";", ",", "|")
#: The rule below the names of a table in Markdown.
_RULE = re.compile(r"\|?(?:\s*:?-+:?\s*\|)+(?:\s*:?-+:?\s*)?")
_PARQUET = b"PAR1"


def _no_table(what: str, source: str, line: int | None = None) -> NodeprintError:
    return NodeprintError(
        f"{what} begins no output of a known tool, and no table",
        where=source,
        line=line,
        advice=f"give outputs of {', '.join(readers('values'))}, or a table with a line of names,"
        " separated by commas or tabs",
    )


def read_table(path: Path, name: str = "", path_pattern: str = "", line_patterns: Sequence[str] = ()) -> ValueTable:
    """Read a table, or the outputs of known tools in a file or directory.

    `name` is the name in messages, by default the path. `path_pattern` states the parts of paths, and `line_patterns`
    those of lines before results (`nodeprint.readers.tool_logs`). Raises NodeprintError naming file, line and column of
    a cell that cannot be read, or is ambiguous.
    """
    source = name or str(path)
    if path.is_dir():
        return replace(tool_logs.read_logs(path, source, path_pattern, line_patterns), digest=_digest(path))
    raw = contents(path)
    return replace(_of_file(path, raw, source, path_pattern, line_patterns), digest=hashlib.sha256(raw).hexdigest())


def _digest(folder: Path) -> str:
    """The SHA-256 of the lines that sha256sum writes of a directory's files, in the order of their names."""
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    return hashlib.sha256(sums(paths, folder).encode()).hexdigest()


def _of_file(path: Path, raw: bytes, source: str, path_pattern: str, line_patterns: Sequence[str]) -> ValueTable:
    is_parquet = raw.startswith(_PARQUET)
    lines = [] if is_parquet else lines_of(path)
    if not is_parquet and tool_logs.has_output(lines):
        return tool_logs.read_logs(path, source, path_pattern, line_patterns)
    if path_pattern or line_patterns:
        problem = "it is for outputs, and a table has a column of nodes"
        raise NodeprintError(problem, key="--path" if path_pattern else "--line", advice="leave it out")
    if is_parquet:
        return _of_cells(*_parquet(raw, source), source, first_line=0, notes=())
    first = next((line for line in lines if line.strip()), "").strip()
    if first in ("{", "["):
        raise _no_table("its JSON object over several lines", source)
    if first.startswith("{"):
        return _of_cells(*_json(lines, source), source, first_line=0, notes=())
    if rows := table_blanks.grepped(lines, source):
        return _of_grep(lines, rows, source)
    names, cells, line, notes = _separated(lines, source)
    return _of_cells(names, cells, source, first_line=line, notes=notes)


def with_fields(table: ValueTable, path: Path) -> ValueTable:
    """The values with the configuration of their nodes from a file: a column of nodes, and one for each field of a
    fingerprint or `group`.

    Raises NodeprintError if the file has none of these, or contradicts itself.
    """
    names, cells, line, _ = _separated(lines_of(path), str(path))
    plain = [table_columns.plain(name) for name in names]
    wanted = {known.name for known in fingerprint.FIELDS}
    fields = {name: place for place, name in enumerate(plain) if name in wanted}
    known = table_columns.columns_named(
        [name if name not in fields else f"field {name}" for name in plain], str(path), line, figures=False
    )
    if not fields and "group" not in known.named:
        advice = "name a column `group`, or after a field of the fingerprint, as cpu, bios or kernel"
        raise NodeprintError("no column of a configuration", where=path, line=line, advice=advice)
    stripped = [column.astype(str).str.strip() for column in cells]
    of_nodes = _fields(stripped, replace(known, fields=fields), str(path))
    merged = {node: {**table.fields.get(node, {}), **of_nodes.get(node, {})} for node in {*table.fields, *of_nodes}}
    return replace(table, fields=merged)


#: The cells of a table by column, all as text.
_Cells = Sequence["pd.Series[str]"]


def _separated(lines: Sequence[str], source: str) -> tuple[list[str], _Cells, int, tuple[str, ...]]:
    """Names and cells of a table with separators, the line of the names (from 1), and notes on omitted lines."""
    lines = _of_markdown(lines)
    head = _head(lines)
    separator = next((mark for mark in _SEPARATORS if mark in lines[head]), "")
    if not separator and table_blanks.has_names(lines[head]) and len(lines) > head + 1:
        lines, separator = table_blanks.as_tabs(lines, head, source), "\t"
    separator = separator or ","
    names = [name.strip() for name in next(csv.reader([lines[head]], delimiter=separator))]
    if len(names) < 2 and not table_columns.has_node(names):
        raise _no_table(printable(repr(lines[head].strip()), 60), source, head + 1)
    body = ["" if line.startswith("#") else line for line in lines[head + 1 :]]
    wrong = _ragged(body, separator, len(names), head + 2, source)
    if wrong is not None:
        raise wrong
    try:
        frame = pd.read_csv(
            io.StringIO("\n".join(body)),
            sep=separator,
            header=None,
            names=range(len(names)),
            dtype=str,
            keep_default_na=False,
            skip_blank_lines=False,
            index_col=False,
            skipinitialspace=True,
            na_values=[],
        )
    except (pd.errors.ParserError, pd.errors.EmptyDataError, ValueError) as error:
        raise NodeprintError(
            f"is not a table ({printable(str(error).strip(), 120)})",
            where=source,
            line=head + 1,
            advice="give a line of names and a line for each figure, with as many cells",
        ) from error
    frame.index = frame.index + head + 2
    frame = frame.fillna("")
    frame = frame[(frame != "").any(axis=1)]
    skipped = [number for number in range(head) if lines[number].strip() and not lines[number].startswith("#")]
    notes = (say("read", "preamble", lines=len(skipped)),) if skipped else ()
    return names, [frame[place] for place in frame], head + 1, notes


def _of_grep(lines: Sequence[str], rows: Mapping[int, Sequence[str]], source: str) -> ValueTable:
    """The values of lines that grep printed."""
    cells = [pd.Series(column, index=list(rows), dtype=object) for column in zip(*rows.values(), strict=True)]
    notes = (say("read", "stream_times"),) if table_blanks.has_times(lines) else ()
    table = _of_cells(["node", "metric", "value", "unit"], cells, source, first_line=1, notes=notes)
    return replace(table, sources={**table.sources, "node": "the file names of grep"})


def _of_markdown(lines: Sequence[str]) -> Sequence[str]:
    """The lines of a table in Markdown without the bars at their ends and its rule; other lines as they are."""
    rule = next((number for number, line in enumerate(lines[:_PREAMBLE]) if _RULE.fullmatch(line.strip())), None)
    if rule is None:
        return lines
    stripped = [line.strip() for line in lines]
    plain = [line.removeprefix("|").removesuffix("|") if line.startswith("|") else line for line in stripped]
    return ["" if number == rule else line for number, line in enumerate(plain)]


def _head(lines: Sequence[str]) -> int:
    """The number of the line with the names of the columns: the first that has one for nodes, else the first line."""
    filled = [number for number, line in enumerate(lines[:_PREAMBLE]) if line.strip()]
    for number in filled:
        for separator in _SEPARATORS:
            names = lines[number].lstrip("# ").split(separator)
            if len(names) > 1 and table_columns.has_node([name.strip().strip("\"'") for name in names]):
                return number
    return table_blanks.head(lines, filled)


def _ragged(body: Sequence[str], separator: str, width: int, first: int, source: str) -> NodeprintError | None:
    """What to say of the first line that has more or fewer cells than there are names; None where none has."""
    # a line with a quoted separator is looked at more closely
    doubtful = (number for number, line in enumerate(body) if line.count(separator) != width - 1 or '"' in line)
    for number in doubtful:
        line = body[number]
        try:
            cells = next(csv.reader([line], delimiter=separator, strict=True), [])
        except csv.Error:
            advice = "close the quotation marks"
            return NodeprintError(
                "its quotation marks are not closed", where=source, line=first + number, advice=advice
            )
        if cells and len(cells) != width:
            comma = separator == "," and len(cells) > width
            advice = "write decimal points, or separate the cells by semicolons" if comma else "give the table complete"
            what = f"{len(cells)} cells where the names are {width}"
            return NodeprintError(what, where=source, line=first + number, column=len(cells), advice=advice)
    return None


def _json(lines: Sequence[str], source: str) -> tuple[list[str], _Cells]:
    """Names and cells of JSON lines, an object a line."""
    rows: dict[int, Mapping[str, Any]] = {}
    decoder = msgspec.json.Decoder(dict[str, Any])
    for number, line in enumerate(lines, start=1):
        if line.strip():
            try:
                rows[number] = decoder.decode(line)
            except (ValueError, msgspec.MsgspecError, RecursionError) as error:
                what = f"is no JSON object ({printable(str(error), 100)})"
                advice = 'write an object a line, as {"node": "cn001", "metric": "triad", "value": 3034.6}'
                raise NodeprintError(what, where=source, line=number, advice=advice) from error
    names = list(dict.fromkeys(key for row in rows.values() for key in row))
    for number, row in rows.items():
        nested = next((key for key, value in row.items() if isinstance(value, dict | list)), None)
        if nested is not None:
            what, advice = f"{printable(nested, 40)} is no single value", "give a key a number or a text"
            raise NodeprintError(what, where=source, line=number, advice=advice)
    cells = [
        pd.Series([_text(row.get(name)) for row in rows.values()], index=list(rows), dtype=object) for name in names
    ]
    return names, cells


def _parquet(raw: bytes, source: str) -> tuple[list[str], _Cells]:
    try:
        frame = pd.read_parquet(io.BytesIO(raw))
    except ImportError as error:
        advice = "pip install 'nodeprint[parquet]', or give the table as CSV"
        raise NodeprintError("Parquet needs the package pyarrow", where=source, advice=advice) from error
    except Exception as error:  # pyarrow raises types of its own for each kind of garbage
        what = f"not readable as Parquet ({type(error).__name__})"
        raise NodeprintError(what, where=source, advice="write the table again, or give it as CSV") from error
    frame = frame.reset_index() if frame.index.names != [None] else frame
    frame.index = pd.RangeIndex(1, len(frame) + 1)
    for name, column in frame.items():
        if pd.api.types.is_datetime64_any_dtype(column):
            frame[name] = column.dt.strftime("%Y-%m-%dT%H:%M:%S%z")
    return [str(name) for name in frame], [column.map(_text).astype(object) for _, column in frame.items()]


def _text(value: object) -> str:
    """A value of a typed table as a cell has it."""
    if value is None or value is pd.NA or value is pd.NaT:
        return ""
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    return str(value)


def _of_cells(names: list[str], cells: _Cells, source: str, *, first_line: int, notes: tuple[str, ...]) -> ValueTable:
    """The values of a table; a row's name is its line in the file, or its number if the file has no lines."""
    if not cells or not len(cells[0]):
        table_columns.columns_named(names, source, first_line or 1)
        raise NodeprintError("has names of columns and no figure", where=source, advice="give a line for each figure")
    table = table_forms.of_rows(names, [column.astype(str).str.strip() for column in cells], source, first_line or 1)
    stripped, notes = table.cells, notes + table.notes
    known = table_columns.columns_named(table.names, source, first_line or 1, is_wide=table.is_wide)
    known, of_identities = _without_identities(known)
    notes += of_identities
    known, of_statistics = table_forms.without_statistics(stripped, known, source, first_line or 1)
    notes += of_statistics
    known, of_words = _without_words(stripped, known, source, first_line)
    notes += of_words
    known, of_settings = _without_settings(stripped, known)
    notes += of_settings
    if not known.metrics and "value" not in known.named:
        advice = "name metric and value columns, or give a figure its unit, as `triad (MB/s)`"
        raise NodeprintError("no column of figures", where=source, line=first_line or 1, advice=advice)
    notes += _numbering(stripped, known, source, first_line)
    frame = _wide(stripped, known, source) if known.is_wide else _long(stripped, known, source)
    frame, of_metrics = table_forms.without_statistic_metrics(frame, source)
    notes += of_metrics
    missing = frame["value"].isna()
    nodes = set(frame["node"])
    unmeasured = tuple(sorted(nodes - set(frame["node"][~missing]) - {""}))
    if missing.any():
        line = int(frame["line"][missing].iloc[0])
        notes += (say("read", "empty", empty=int(missing.sum()), figures=len(frame), line=line),)
    frame = frame[~missing].reset_index(drop=True)
    parts = tuple(known.parts)
    fields = _fields(stripped, known, source)
    stated = table_columns.sources(table.names, known, len(names)) | ({"node": table.ends} if table.pairs else {})
    figures = ValueTable(source, frame, parts, fields, unmeasured, notes, sources=stated, pairs=table.pairs)
    return value_table.checked(figures)


def _without_words(
    cells: Sequence[pd.Series[str]], known: Columns, source: str, first_line: int
) -> tuple[Columns, tuple[str, ...]]:
    """The columns without those that have no number and are no settings. Raises NodeprintError if all nodes have the
    same words in such a column, which tell apart what their lines are of."""
    words = {
        name: place
        for name, (place, unit) in known.metrics.items()
        if not table_numbers.has_any(cells[place].tolist()) and not table_columns.is_setting(name, unit)
    }
    if not words or len(words) == len(known.metrics):
        return known, ()
    node = cells[known.named["node"]]
    for name, place in words.items():
        counts = (
            pd.crosstab(node.to_numpy(), cells[place].to_numpy()) if 1 < cells[place].nunique() < len(node) else None
        )
        if counts is not None and (counts == counts.iloc[0, 0]).to_numpy().all():
            what = f"the column {printable(name, 40)} has {counts.shape[1]} words on each node"
            advice = "call it `metric` if it says what a line is of and the figures `value`, or take it out"
            raise NodeprintError(what, where=source, line=first_line or 1, column=place + 1, advice=advice)
    kept = {name: at for name, at in known.metrics.items() if name not in words}
    listed = ", ".join(printable(name, 40) for name in words)
    return replace(known, metrics=kept), (say("read", "no_numbers", columns=listed),)


def _without_identities(known: Columns) -> tuple[Columns, tuple[str, ...]]:
    """The columns without those whose names say that they tell things apart."""
    left_out = [name for name, (_, unit) in known.metrics.items() if table_columns.is_identity(name, unit)]
    left_out += [name for name in known.parts if table_columns.is_identity(name)]
    if not left_out:
        return known, ()
    metrics = {name: at for name, at in known.metrics.items() if name not in left_out}
    parts = {name: place for name, place in known.parts.items() if name not in left_out}
    listed = ", ".join(printable(name, 40) for name in left_out)
    return replace(known, metrics=metrics, parts=parts), (say("read", "identities", columns=listed),)


def _numbering(cells: Sequence[pd.Series[str]], known: Columns, source: str, first_line: int) -> tuple[str, ...]:
    """Refuse columns without a unit that count, number the lines or are dates, and are neither figures nor parts. In a
    long table what counts on each node may be a part: a note says how it is taken."""
    node, notes = cells[known.named["node"]], []
    places = {
        name: place
        for name, (place, unit) in known.metrics.items()
        if name != "value" and units.better(name, unit) is None
    }
    unknown_parts = {name: place for name, place in known.parts.items() if not table_columns.is_part(name)}
    for name, place in {**places, **unknown_parts}.items():
        what, column = table_numbering.problem(cells[place], node) or ("", "")
        if column == "run" and name in known.parts:
            notes += [say("read", "counts", column=printable(name, 40))] if "run" not in known.named else []
        elif what:
            advice = f"call it `{column}`, or take it out" if column and column not in known.named else "take it out"
            if name not in known.parts:
                advice += f"; a figure needs its unit, as `{printable(name, 40)} (MB/s)`"
            what = f"the column {printable(name, 40)} {what}"
            raise NodeprintError(what, where=source, line=first_line or 1, column=place + 1, advice=advice)
    return tuple(notes)


def _without_settings(cells: Sequence[pd.Series[str]], known: Columns) -> tuple[Columns, tuple[str, ...]]:
    """The columns without settings. A setting is known by its name, or has no unit and one value in all runs of all
    nodes. A column that differs between nodes is never a setting, because it may be the rounded value of a slow node.
    Settings are fields of the configuration if each node has one value."""
    node = cells[known.named["node"]]
    candidates = dict(known.metrics)
    candidates |= {name: (place, "") for name, place in known.parts.items() if not known.is_wide}
    of_nodes = {name: cells[place].groupby(node).nunique() for name, (place, _) in candidates.items()}
    steady = {name for name, of_node in of_nodes.items() if of_node.max() == 1}
    # of a long table, numbers of threads that vary on a node say what a figure is of
    settings = {
        name
        for name, (_, unit) in candidates.items()
        if table_columns.is_setting(name, unit) and (known.is_wide or name in steady)
    }
    constant = {
        name
        for name, (place, unit) in candidates.items()
        if known.is_wide and len(node) > 1 and units.better(name, unit) is None and cells[place].nunique() == 1
    }
    # what is left has to have a figure
    settings |= constant if not settings | constant >= known.metrics.keys() else set()
    if not settings:
        return known, ()
    fields = {table_columns.plain(name): candidates[name][0] for name in candidates if name in settings & steady}
    without = replace(
        known,
        metrics={name: at for name, at in known.metrics.items() if name not in settings},
        parts={name: place for name, place in known.parts.items() if name not in settings},
        fields={**known.fields, **fields},
    )
    columns_of_settings = ", ".join(printable(name, 40) for name in candidates if name in settings)
    named = say("read", "settings", columns=columns_of_settings)
    by_node: dict[str, dict[str, str]] = {}
    for name, place in fields.items():
        for at, value in cells[place].groupby(node).first().items():
            by_node.setdefault(str(at), {})[name] = str(value)
    return without, (named, *value_table.differing_settings(by_node))


def _long(cells: Sequence[pd.Series[str]], known: Columns, source: str) -> pd.DataFrame:
    column = {kind: cells[place] for kind, place in known.named.items()}
    values, units = _numbers(column["value"], known.named["value"], source)
    unit = _joined(column.get("unit"), units, column["value"], source, known.named["value"])
    return pd.DataFrame(_common(cells, known) | {"metric": column["metric"], "unit": unit, "value": values})


def _wide(cells: Sequence[pd.Series[str]], known: Columns, source: str) -> pd.DataFrame:
    parts = []
    common = pd.DataFrame(_common(cells, known))
    for metric, (place, unit) in known.metrics.items():
        values, units = _numbers(cells[place], place, source)
        given = cells[known.named["unit"]] if "unit" in known.named and not unit else None
        own = _joined(given, units, cells[place], source, place)
        parts.append(common.assign(metric=metric, unit=unit or own, value=values))
    return pd.concat(parts, ignore_index=True)


def _common(cells: Sequence[pd.Series[str]], known: Columns) -> dict[str, Any]:
    """The columns that both forms have."""
    length = len(cells[0])
    empty = np.full(length, "", dtype=object)
    texts = {
        kind: cells[known.named[kind]] if kind in known.named else empty for kind in ("node", "job", "run", "time")
    }
    return texts | {"line": cells[0].index.to_numpy()} | {name: cells[place] for name, place in known.parts.items()}


def _numbers(column: pd.Series[str], place: int, source: str) -> tuple[table_numbers.Floats, Any]:
    try:
        return table_numbers.read_numbers(column.tolist())
    except table_numbers.NotANumber as error:
        line = int(column.index[error.cell])
        raise NodeprintError(error.problem, where=source, line=line, column=place + 1, advice=error.advice) from error


def _joined(
    unit: pd.Series[str] | None, behind: Any, column: pd.Series[str], source: str, place: int
) -> pd.Series[str] | Any:
    """The unit of each figure, from its own column or from behind the number; both have to say the same."""
    if unit is None:
        return behind
    texts = unit.to_numpy(dtype=object)
    wrong = np.flatnonzero((behind != "") & (texts != "") & (behind != texts))
    if len(wrong):
        what = f"{printable(str(column.iloc[wrong[0]]), 40)} has another unit than its column, {texts[wrong[0]]}"
        line = int(column.index[wrong[0]])
        raise NodeprintError(what, where=source, line=line, column=place + 1, advice="write the unit once")
    return np.where(texts == "", behind, texts)


def _fields(cells: Sequence[pd.Series[str]], known: Columns, source: str) -> dict[str, dict[str, str]]:
    """By node what the table says of its configuration; the column `group` is the node's processor: nodes of two
    groups are never compared."""
    node = cells[known.named["node"]]
    taken = {**known.fields, **({"cpu": known.named["group"]} if "group" in known.named else {})}
    out: dict[str, dict[str, str]] = {}
    for name, place in taken.items():
        pairs = pd.DataFrame({"node": node, "value": cells[place]}).drop_duplicates()
        pairs = pairs[pairs["value"] != ""]
        twice = pairs.index[pairs.duplicated("node")]
        if len(twice):
            what = f"node {printable(str(pairs['node'].at[twice[0]]), 60)} has two values of {name}"
            advice = "give a node one, or take the column out"
            raise NodeprintError(what, where=source, line=int(twice[0]), column=place + 1, advice=advice)
        for of_node, value in zip(pairs["node"], pairs["value"], strict=True):
            out.setdefault(of_node, {})[name] = value
    return out
