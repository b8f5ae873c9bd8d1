"""Tables of pairs of nodes: their values are of links, so no row is a node's."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import pandas as pd
from ClusterShell.NodeSet import NodeSet, NodeSetException

from nodeprint.errors import NodeprintError, printable
from nodeprint.readers import table_columns

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
_ADVICE = (
    "give one row per node, such as the median over its pairs, or measure the messages between nodes with"
    " nodeprint's linktest-fabric"
)


def check(names: Sequence[str | None], cells: Sequence[pd.Series[str]], where: str, line: int) -> None:
    """Raise NodeprintError if two columns are the ends of links, or a node's cell has several names."""
    given = {place: table_columns.plain(name) for place, name in enumerate(names) if name is not None}
    kinds = {place: table_columns.kind(str(names[place])) for place in given}
    node = next((place for place, kind in kinds.items() if kind == "node"), None)
    ends = _by_names(given, node, cells) or (_by_cells(given, kinds, node, cells) if node is not None else None)
    if ends is not None:
        first, second = (printable(str(names[place]).strip(), 30) for place in ends)
        what = f"is a table of pairs of nodes ({first} and {second}): its values are of links, not of nodes"
        raise NodeprintError(what, where=where, line=line, column=ends[1] + 1, advice=_ADVICE)
    if node is None:
        return
    for name in cells[node].unique():
        several = _names(name)
        if len(several) > 1:
            at = int(cells[node].index[cells[node] == name][0])
            pair = "a pair of nodes" if len(several) == 2 else f"{len(several)} nodes"
            what = f"{printable(repr(name), 60)} is {pair}, and no node"
            raise NodeprintError(what, where=where, line=at, column=node + 1, advice=_ADVICE)


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
        unique = [str(text) for text in cells[place].unique()]
        may_be_component = table_columns.is_part(name) and not nodes.intersection(unique)
        others = all(_stem(text) in stems for text in unique) and (cells[place] != cells[node]).any()
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
