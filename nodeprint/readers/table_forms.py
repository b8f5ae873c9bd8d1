"""Tables as people keep them become tables of one row per run: runs as columns, statistics, and rows with a number."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pandas as pd

from nodeprint.readers import table_columns, table_numbers, table_pairs, table_runs, table_statistics
from nodeprint.readers.table_columns import Columns
from nodeprint.readers.table_runs import Unpivoted
from nodeprint.readers.table_statistics import Statistic
from nodeprint.settings.texts import say

#: What programs call the numbers of rows that they write in front of a table.
_INDEXES = frozenset(("index", "level_0"))
_UNNAMED = "unnamed:_"


def of_rows(names: Sequence[str], cells: Sequence[pd.Series[str]], where: str, line: int) -> Unpivoted:
    """The table with one row for each run and no rows of other statistics, and with a name for each pair of nodes.

    Raises NodeprintError with line and column where a table may be read in two ways.
    """
    kept, notes = _without_index(names, cells)
    of_pairs = table_pairs.paired(kept, cells, where, line)
    if of_pairs is None:
        return _of_rows(kept, cells, where, line, notes)
    table = _of_rows(list(of_pairs.names), of_pairs.cells, where, line, (*notes, *of_pairs.notes))
    return replace(table, pairs=of_pairs.pairs, ends=of_pairs.columns)


def _of_rows(
    kept: list[str | None], cells: Sequence[pd.Series[str]], where: str, line: int, notes: tuple[str, ...]
) -> Unpivoted:
    kinds = {kind: place for place, name in enumerate(kept) if name is not None and (kind := table_columns.kind(name))}
    other = [kinds[kind] for kind in kinds if kind != "run"]
    place = table_statistics.column(kept, cells, frozenset(other)) if "node" in kinds else None
    if place is not None:
        metric = cells[kinds["metric"]] if "metric" in kinds else cells[place].map(lambda _: "")
        keep, note = table_statistics.of_cells(str(kept[place]), cells[place], metric, where)
        cells, kept[place], notes = [column[keep] for column in cells], None, (*notes, note)
    figures = [place for place, name in enumerate(kept) if name is not None and table_columns.may_be_figure(name)]
    if "value" in kinds or "node" not in kinds:
        return Unpivoted(kept, cells, notes=notes)
    table = table_runs.unpivoted(kept, cells, figures, kinds, where, line)
    return replace(table, notes=(*notes, *table.notes))


def _without_index(names: Sequence[str], cells: Sequence[pd.Series[str]]) -> tuple[list[str | None], tuple[str, ...]]:
    """The names without those of columns that number the rows, and a note on them."""
    is_long = any(table_columns.kind(name) == "value" for name in names)
    out: list[str | None] = list(names)
    for place, name in enumerate(names):
        plain = table_columns.plain(name) if name.strip() else ""
        is_index = not name.strip() or plain in _INDEXES or plain.startswith(_UNNAMED)
        # in a long table an index that is there again may be a component's
        if is_index and (not is_long or cells[place].is_unique) and cells[place].str.fullmatch(r"\d{1,9}").all():
            out[place] = None
    left_out = [name or "(no name)" for name, kept in zip(names, out, strict=True) if kept is None]
    return out, (say("read", "indexes", columns=table_statistics.listed(left_out)),) if left_out else ()


def without_statistics(
    cells: Sequence[pd.Series[str]], known: Columns, where: str, line: int
) -> tuple[Columns, tuple[str, ...]]:
    """The columns with one statistic of each metric, and notes on the others."""
    if not known.is_wide or "value" in known.named:
        return _of_each_row(cells, known)
    figures = [
        name
        for name, (place, unit) in known.metrics.items()
        if not table_columns.is_setting(name, unit) and table_numbers.has_any(cells[place].tolist())
    ]
    varying = [name for name in figures if cells[known.metrics[name][0]].nunique() > 1]
    of_one = [
        name for name in figures if name not in varying and table_statistics.statistic(name)[1] is Statistic.VALUE
    ]
    figures = [name for name in figures if name not in of_one] if varying else figures
    choice = table_statistics.chosen(figures, where, line)
    metrics = {name: at for name, at in known.metrics.items() if name not in choice.dropped}
    return replace(known, metrics=metrics), table_statistics.notes(choice)


def _of_each_row(cells: Sequence[pd.Series[str]], known: Columns) -> tuple[Columns, tuple[str, ...]]:
    """The columns of a long table without statistics of its values. A count is one if a node has one of each metric:
    otherwise it may be a size."""
    keys = [cells[known.named[kind]] for kind in ("node", "metric") if kind in known.named]
    names = [
        name
        for name, place in known.parts.items()
        if (kind := table_statistics.of_row(name)) not in (Statistic.VALUE, Statistic.EDGE)
        and (kind is not Statistic.COUNT or cells[place].groupby(keys).nunique().max() == 1)
    ]
    parts = {name: place for name, place in known.parts.items() if name not in names}
    notes = (say("read", "statistics", columns=table_statistics.listed(names)),) if names else ()
    return replace(known, parts=parts), notes


def without_statistic_metrics(frame: pd.DataFrame, where: str) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """The values with one statistic of each metric, where names of metrics in rows state it, as `triad_sd`."""
    names = [str(name) for name in pd.unique(frame["metric"])]
    if len(names) < 2 or all(table_statistics.statistic(name)[1] is Statistic.VALUE for name in names):
        return frame, ()
    choice = table_statistics.chosen(names, where)
    kept = frame[~frame["metric"].isin(choice.dropped)].reset_index(drop=True)
    return kept, table_statistics.notes(choice)
