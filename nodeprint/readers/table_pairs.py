"""Tables of pairs of nodes: two columns or a cell name the ends of the link that a row is of."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pandas as pd
from ClusterShell.NodeSet import NodeSet, NodeSetException

from nodeprint.errors import NodeprintError, printable
from nodeprint.readers import node_pairs, table_columns
from nodeprint.readers.node_pairs import Pairs
from nodeprint.settings.texts import say

#: The two ends of a link by the name of their column.
_HOST = r"(?:node|host|hostname|nodename|machine|server|rank|endpoint|end|name)"
_FIRST = re.compile(
    rf"{_HOST}_?(?:1|a|0|x|from|src|left)|(?:src|source|from|sender|send|client|origin|local|initiator|first|a)(?:_?{_HOST})?"
)
_SECOND = re.compile(
    rf"{_HOST}_?(?:2|b|1|y|to|dst|dest|right)|(?:dst|dest|destination|to|receiver|recv|receive|server|target|remote|peer"
    rf"|partner|neighbou?r|second|other|b)(?:_?{_HOST})?"
)
#: What stands between two names in a cell, whatever the names; nodes have no such signs in their names.
_BETWEEN = re.compile(r"\s*(?:<?-+>|<-+|<?=+>|--+|\u2192|\u2194|\u2013|[,;|&+~]|\s(?:to|and|vs\.?)\s)\s*")
#: The same, between names that differ in their numbers alone.
_HYPHENS = re.compile(r"[\s:/_.-]+")
#: A number of a list that is too long to be written out.
_LARGE = re.compile(r"\d{7,}")
_ADDRESS = re.compile(r"\d{1,3}(?:\.\d{1,3}){3}")
_ADVICE = "give one row per node, or the two ends of a link in two columns, as node_a and node_b"


@dataclass(frozen=True)
class PairedCells:
    """A table whose column of nodes names pairs. `pairs` has the nodes of each, `columns` the words for its columns."""

    names: Sequence[str | None]
    cells: Sequence[pd.Series[str]]
    pairs: Pairs
    columns: str
    notes: tuple[str, ...] = ()


def paired(names: Sequence[str | None], cells: Sequence[pd.Series[str]], where: str, line: int) -> PairedCells | None:
    """The table with one column of nodes in which pairs have a name each; None if its values are of no pairs.

    Raises NodeprintError if a cell has more than two nodes, or if the table has a further column of nodes.
    """
    given = {place: table_columns.plain(name) for place, name in enumerate(names) if name is not None}
    kinds = {place: table_columns.kind(str(names[place])) for place in given}
    node = next((place for place, kind in kinds.items() if kind == "node"), None)
    ends = _by_names(given, node, cells) or (_by_cells(given, kinds, node, cells) if node is not None else None)
    if ends is None:
        return None if node is None else _of_cells(names, cells, node, where)
    first, second = (printable(str(names[place]).strip(), 30) for place in ends)
    further = next((place for place in given if place not in ends and _is_of_nodes(given[place], cells[place])), None)
    if further is not None:
        what = f"the column {printable(str(names[further]), 30)} is beside pairs of nodes ({first} and {second})"
        raise NodeprintError(what, where=where, line=line, column=further + 1, advice="take out what is no end")
    if not all(_are_nodes(cells[place]) for place in ends):
        what = f"nothing says whether {first} and {second} are nodes, ranks or GPUs"
        raise NodeprintError(what, where=where, line=line, column=ends[1] + 1, advice=_ADVICE)
    rows = zip(cells[ends[0]], cells[ends[1]], strict=True)
    return _joined(names, cells, list(rows), ends, f"the columns `{first}` and `{second}`")


def _of_cells(
    names: Sequence[str | None], cells: Sequence[pd.Series[str]], node: int, where: str
) -> PairedCells | None:
    """A table with the names of both ends in the cells of its column of nodes."""
    several = {str(cell): _names(str(cell)) for cell in cells[node].unique()}
    many = next((cell for cell, of_cell in several.items() if len(of_cell) > 2), None)
    if many is not None:
        at = int(cells[node].index[cells[node] == many][0])
        what = f"{printable(repr(many), 60)} is {len(several[many])} nodes, and no node"
        raise NodeprintError(what, where=where, line=at, column=node + 1, advice=_ADVICE)
    if all(len(of_cell) < 2 for of_cell in several.values()):
        return None
    rows = [(several[cell][0], several[cell][1] if len(several[cell]) > 1 else "") for cell in cells[node]]
    return _joined(names, cells, rows, (node, node), f"the column `{printable(str(names[node]).strip(), 30)}`")


def _is_of_nodes(name: str, cells: pd.Series[str]) -> bool:
    """Whether a column beside pairs of nodes names further nodes, or groups of them."""
    is_end = _FIRST.fullmatch(name) is not None or _SECOND.fullmatch(name) is not None
    return table_columns.kind(name) in ("node", "group") or (is_end and _are_nodes(cells))


def _joined(
    names: Sequence[str | None],
    cells: Sequence[pd.Series[str]],
    rows: Sequence[tuple[str, str]],
    ends: tuple[int, int],
    columns: str,
) -> PairedCells:
    """The table with pairs in the column of the first end. An empty second end leaves a value of a node."""
    called = [node_pairs.called(*row) if all(row) else "".join(row) for row in rows]
    pairs = {name: row for name, row in zip(called, rows, strict=True) if all(row) and row[0] != row[1]}
    own = pd.Series([bool(row[0]) and row[0] == row[1] for row in rows], index=cells[0].index)
    out = [column if place != ends[0] else pd.Series(called, index=column.index) for place, column in enumerate(cells)]
    kept = ["node" if place == ends[0] else None if place == ends[1] else name for place, name in enumerate(names)]
    notes = (say("read", "own_pairs", count=int(own.sum())),) if own.any() else ()
    return PairedCells(kept, [column[~own] for column in out], pairs, columns, notes)


def _by_names(given: Mapping[int, str], node: int | None, cells: Sequence[pd.Series[str]]) -> tuple[int, int] | None:
    """The columns of both ends by their names, whose cells may be nodes."""
    for first, one in given.items():
        for second, other in given.items():
            begins = _FIRST.fullmatch(one) is not None or first == node
            if first != second and begins and _SECOND.fullmatch(other) and _are_alike(one, other):
                may_be = node is None or all(_are_names(cells[place]) for place in (first, second))
                if may_be and not (first == node and (cells[first] == cells[second]).all()):
                    return min(first, second), max(first, second)
    return None


def _are_alike(one: str, other: str) -> bool:
    """Whether numbers behind the names of two columns are those of two ends."""
    ends = {one[-1], other[-1]}
    return not ends & set("012") or ends in ({"1", "2"}, {"0", "1"})


def _are_names(column: pd.Series[str]) -> bool:
    filled = column[column != ""]
    return bool(len(filled)) and bool(filled.str.fullmatch(r"[A-Za-z][\w.-]*\d[\w.-]*|[A-Za-z][A-Za-z_.-]*").all())


def _are_nodes(column: pd.Series[str]) -> bool:
    filled = column[column != ""]
    return _are_names(column) or (bool(len(filled)) and bool(filled.str.fullmatch(_ADDRESS).all()))


def _by_cells(
    given: Mapping[int, str], kinds: Mapping[int, str | None], node: int, cells: Sequence[pd.Series[str]]
) -> tuple[int, int] | None:
    """The column of nodes and another one with names of nodes, which differ between its lines."""
    nodes = set(cells[node].unique())
    stems = set(map(_stem, nodes))
    if "" in stems:
        return None
    for place, name in given.items():
        if place == node or kinds[place] is not None:
            continue
        unique = [str(text) for text in cells[place].unique() if text]
        may_be_component = table_columns.is_part(name) and not nodes.intersection(unique)
        others = bool(unique) and all(_stem(text) in stems for text in unique) and (cells[place] != cells[node]).any()
        if others and not may_be_component:
            return min(place, node), max(place, node)
    return None


def _stem(name: str) -> str:
    """A name without its number; empty where it has none, or is a number."""
    short = name.partition(".")[0]
    stem = short.rstrip("0123456789")
    return stem if stem != short and any(c.isalpha() for c in stem) else ""


def _names(cell: str) -> list[str]:
    """The names in a node's cell."""
    text = cell.strip("()[]{}'\" ") if cell[:1] in "([{'\"" else cell
    if "[" in text and not _LARGE.search(text):
        try:
            return [str(name) for name in NodeSet(text)]
        except NodeSetException:
            return [cell]
    parts = [part.strip("'\" ") for part in _BETWEEN.split(text)]
    if len(parts) > 1 and all(parts):
        return parts
    words = [word for word in _HYPHENS.split(text) if word]
    middle, odd = divmod(len(words), 2)
    return (
        [cell]
        if odd or not _alike(words[:middle], words[middle:])
        else ["-".join(words[:middle]), "-".join(words[middle:])]
    )


def _alike(first: Sequence[str], second: Sequence[str]) -> bool:
    """Whether two names with letters differ in the numbers that they end with alone."""
    letters = [[word.rstrip("0123456789") for word in words] for words in (first, second)]
    numbered = all(words and words[-1][-1].isdecimal() for words in (first, second))
    return numbered and letters[0] == letters[1] and any(letters[0])
