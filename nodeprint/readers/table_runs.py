"""Runs as columns: a table with a column for each run, job or date has their values below one another."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from nodeprint.errors import NodeprintError, printable
from nodeprint.readers import table_numbers, table_statistics
from nodeprint.readers.node_pairs import Pairs
from nodeprint.settings.texts import say

_DATE = r"\d{4}-\d\d(?:-\d\d)?(?:[T ]\d\d:?\d\d(?::?\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:?\d\d)?)?"
_DAY = r"20\d\d(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01])"
#: What a column of one run, job or date is called after, and the column that has these in other tables.
_AXES: Mapping[str, str] = {
    "run": r"(?:runs?|rep|repetition|repeat|iteration|iter|trial|sample|attempt|try|pass|round|loop)"
    r"[ _.#-]*0*(\d{1,6})",
    "job": r"(?:job|jobid|job_id|session)[ _.#-]*(\d{1,12})",
    "time": rf"({_DATE}|{_DAY})",
}
_ALONE = {axis: re.compile(text, re.IGNORECASE) for axis, text in _AXES.items()}
_BEHIND = {axis: re.compile(rf"(.*[^\s_@.(-])[\s_@.(-]+{text}\)?", re.IGNORECASE) for axis, text in _AXES.items()}
_BEFORE = {axis: re.compile(rf"{text}[\s_:.-]+(.*\D.*)", re.IGNORECASE) for axis, text in _AXES.items()}
_NUMBER = re.compile(r"#?0*(\d{1,12})")
#: Dates that are not in ISO 8601, in which day and month cannot be told apart.
_OTHER_DATE = re.compile(
    r"\d{1,2}[./-]\d{1,2}[./-](?:\d{4}|\d\d)|(?:\d{1,2}[ .-]*)?(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?"
    r"|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)[ .-]*\d{0,4}"
    r"|(?:mon|tues?|wed(?:nes)?|thu(?:rs)?|fri|sat(?:ur)?|sun)(?:day)?|(?:day|week|w|month|kw)[ _-]?\d{1,3}",
    re.IGNORECASE,
)
_WITH_UNIT = re.compile(r"(.*\S)\s*[(\[]([^()\[\]]{1,20})[)\]]\s*")
#: A name with a number behind it, which may count runs or components.
_COUNTED = re.compile(r"(.*[^\s_.#-])[\s_.#-]+0*(\d{1,3})|([rtvxymsikn])0*(\d{1,3})", re.IGNORECASE)


@dataclass(frozen=True)
class _RunColumn:
    """A column of one run: its place, the metric in its name (empty if none), its unit, and the run by its axis."""

    place: int
    metric: str
    unit: str
    axis: str
    label: str


@dataclass(frozen=True)
class Unpivoted:
    """Names (None: left out) and cells of a table without runs as columns. `is_wide`: its column `value` is one
    of several metrics. `pairs` are the pairs of nodes in its column of nodes, `ends` the words for their columns."""

    names: Sequence[str | None]
    cells: Sequence[pd.Series[str]]
    is_wide: bool = False
    notes: tuple[str, ...] = ()
    pairs: Pairs = field(default_factory=dict)
    ends: str = ""


def unpivoted(
    names: Sequence[str | None],
    cells: Sequence[pd.Series[str]],
    figures: Collection[int],
    kinds: Collection[str],
    where: str,
    line: int,
) -> Unpivoted:
    """The table with one row for each run. `figures` are the places of its columns that may hold values, `kinds` what
    other columns are.

    Raises NodeprintError where nothing says whether columns are runs, or runs stand beside another metric.
    """
    named = {place: str(names[place]) for place in figures}
    columns = [column for place, name in named.items() if (column := _column(place, name)) is not None]
    columns = _without_lone(columns, len(named))
    if not columns:
        _check_counted(named, where, line)
        return Unpivoted(names, cells)
    _check(columns, named, kinds, where, line)
    of_run = {column.place for column in columns}
    others = {place: name for place, name in named.items() if place not in of_run}
    stems = {column.metric for column in columns}
    left_out = [place for place, name in others.items() if _is_statistic_of(name, stems)]
    for place, name in others.items():
        if place not in left_out and table_numbers.has_any(cells[place].tolist()) and cells[place].nunique() > 1:
            example = printable(named[columns[0].place], 40)
            what = f"the column {printable(name, 40)} is beside columns of runs, as {example}"
            advice = "give the runs of each metric columns, as triad_run1, or one row per run"
            raise NodeprintError(what, where=where, line=line, column=place + 1, advice=advice)
    for column in columns:
        _check_numbers(cells[column.place], column.place, where)
    notes = _notes(columns, [others[place] for place in left_out], [named[column.place] for column in columns])
    gone = of_run.union(left_out)
    kept: list[str | None] = [None if place in gone else name for place, name in enumerate(names)]
    return _melted(kept, cells, columns, notes)


def _without_lone(columns: list[_RunColumn], figures: int) -> list[_RunColumn]:
    """The columns of runs; none if one of several figures alone has a name as `triad_run1`."""
    return columns if len(columns) > 1 or len(columns) == figures or not all(c.metric for c in columns) else []


def _column(place: int, name: str) -> _RunColumn | None:
    """The run, metric and unit in the name of a column of one run; None for any other column."""
    with_unit = _WITH_UNIT.fullmatch(name)
    is_run = with_unit is not None and any(form.fullmatch(with_unit[2].strip()) for form in _ALONE.values())
    text, unit = (with_unit[1].strip(), with_unit[2].strip()) if with_unit and not is_run else (name.strip(), "")
    for axis, form in _ALONE.items():
        if match := form.fullmatch(text):
            return _RunColumn(place, "", unit, axis, _label(axis, match[1]))
    for axis, form in _BEHIND.items():
        if match := form.fullmatch(text):
            return _RunColumn(place, match[1], unit, axis, _label(axis, match[2]))
    for axis, form in _BEFORE.items():
        if match := form.fullmatch(text):
            return _RunColumn(place, match[2].strip(), unit, axis, _label(axis, match[1]))
    if match := _NUMBER.fullmatch(text):
        return _RunColumn(place, "", unit, "number", match[1])
    return _RunColumn(place, "", unit, "date", text) if _OTHER_DATE.fullmatch(text) else None


def _label(axis: str, text: str) -> str:
    is_day = axis == "time" and text.isdecimal()
    return f"{text[:4]}-{text[4:6]}-{text[6:]}" if is_day else text


def _check(
    columns: Sequence[_RunColumn], named: Mapping[int, str], kinds: Collection[str], where: str, line: int
) -> None:
    """See that columns of runs are of one kind and each there once, and that no column states the runs already."""
    axes = {column.axis for column in columns}
    first = columns[0]
    shown = table_statistics.listed([named[column.place] for column in columns])

    def error(what: str, advice: str, column: _RunColumn = first) -> NodeprintError:
        return NodeprintError(what, where=where, line=line, column=column.place + 1, advice=advice)

    if "date" in axes:
        odd = next(column for column in columns if column.axis == "date")
        raise error(f"the column {printable(odd.label, 40)} may be a date", "write dates as 2026-11-26", odd)
    of_axes = any(form.fullmatch(column.metric) for column in columns for form in _ALONE.values())
    if of_axes or len(axes) > 1 or len({column.metric == "" for column in columns}) > 1:
        raise error(f"the columns {shown} are named after different things", "name them run1, run2 and so on")
    (axis,) = axes
    numbers = sorted(int(column.label) for column in columns) if axis == "number" else []
    if numbers and numbers != list(range(1, len(numbers) + 1)):
        advice = "name them run1, run2 or job1, job2; sizes and components need a column with one row each"
        raise error(f"the columns {shown} may be runs, jobs, sizes or components", advice)
    kind = "run" if axis == "number" else axis
    if kind in kinds:
        raise error(f"the columns {shown} are beside a column of the {kind}", "name them after what they are")
    keys = [(column.metric, column.label) for column in columns]
    again = next((column for at, column in enumerate(columns) if keys[at] in keys[:at]), None)
    if again is not None:
        raise error(f"{printable(named[again.place], 40)} appears twice", "keep one of the two", again)
    for metric in {column.metric for column in columns}:
        if len({column.unit for column in columns if column.metric == metric}) > 1:
            raise error(f"the columns {shown} have several units", "give all runs of a metric one unit")


def _check_counted(named: Mapping[int, str], where: str, line: int) -> None:
    """Raise NodeprintError where names count from 0 or 1 behind one word, which may be runs or components."""
    by_stem: dict[str, dict[int, int]] = {}
    for place, name in named.items():
        with_unit = _WITH_UNIT.fullmatch(name)
        if match := _COUNTED.fullmatch(with_unit[1].strip() if with_unit else name.strip()):
            by_stem.setdefault(match[1] or match[3], {})[int(match[2] or match[4])] = place
    for stem, places in by_stem.items():
        numbers = sorted(places)
        whole = next((place for place, name in named.items() if name.strip() == stem), None)
        first, last = numbers[0], numbers[-1]
        counts = first in (0, 1) and len(numbers) == last - first + 1 and len(numbers) + (whole is not None) > 1
        if counts and not _COMPONENT.search(stem):
            all_names = [*([stem] if whole is not None else []), *(named[places[number]] for number in numbers)]
            shown = table_statistics.listed(all_names)
            example = printable(re.sub(r"\s+", "_", stem), 30)
            advice = f"name them {example}_run1 and so on if they are runs, or {example}_gpu0 after the component"
            what = f"the columns {shown} may be runs or components of the node"
            raise NodeprintError(what, where=where, line=line, column=places[numbers[0]] + 1, advice=advice)


#: The last word of a name whose number is no run's.
_COMPONENT = re.compile(
    r"(?:^|[\s_.-])(?:socket|numa|node|domain|ccd|ccx|core|cpu|thread|gpu|device|dev|link|nic|hca|port|rail|rank|channel|dimm"
    r"|disk|level|l|cache|size|bytes|mode|step|case|kernel|test|phase|stage|tile|die|chip|card|lane|nvlink|pcie|mlx)s?$",
    re.IGNORECASE,
)


def _is_statistic_of(name: str, stems: Collection[str]) -> bool:
    """Whether a column is a statistic of the runs."""
    stem, kind = table_statistics.statistic(name)
    of = {table_statistics.plain_name(text) for text in stems}
    return kind is not table_statistics.Statistic.VALUE and (not stem or stem in of or of == {""})


def _check_numbers(column: pd.Series[str], place: int, where: str) -> None:
    """Raise NodeprintError with the place of a cell without a number, which is lost once runs are rows."""
    try:
        table_numbers.read_numbers(column.tolist())
    except table_numbers.NotANumber as error:
        if "may be" in error.problem:
            return  # cells of other runs may show the meaning of a comma
        line = int(column.index[error.cell])
        raise NodeprintError(error.problem, where=where, line=line, column=place + 1, advice=error.advice) from error


def _notes(columns: Sequence[_RunColumn], left_out: Sequence[str], names: Sequence[str]) -> tuple[str, ...]:
    out = [say("read", "statistics", columns=table_statistics.listed(left_out))] if left_out else []
    if columns[0].axis in ("number", "time"):
        out.append(say("read", "run_columns", columns=table_statistics.listed(names)))
    return tuple(out)


def _melted(
    names: list[str | None], cells: Sequence[pd.Series[str]], columns: Sequence[_RunColumn], notes: tuple[str, ...]
) -> Unpivoted:
    labels = list(dict.fromkeys(column.label for column in columns))
    times, length = len(labels), len(cells[0])
    tall = [pd.concat([column] * times) for column in cells]
    index = tall[0].index
    axis = "run" if columns[0].axis == "number" else columns[0].axis
    tall.append(pd.Series(np.repeat(labels, length).astype(object), index=index))
    names = [*names, axis]
    for metric in dict.fromkeys(column.metric for column in columns):
        of_label = {column.label: column for column in columns if column.metric == metric}
        empty = pd.Series([""] * length, index=cells[0].index, dtype=object)
        tall.append(pd.concat([cells[of_label[label].place] if label in of_label else empty for label in labels]))
        unit = next(iter(of_label.values())).unit
        names.append(f"{metric or 'value'} ({unit})" if unit else metric or "value")
    return Unpivoted(names, tall, not columns[0].metric, notes)
