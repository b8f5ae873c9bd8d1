"""Values of pairs of nodes: each pair has one name until a fleet is made of the values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import pandas as pd

#: By the name of a pair its two nodes, in the order of the text.
Pairs = Mapping[str, tuple[str, str]]
#: The second end of a link between nodes in the axes of a value.
PEER = "peer node"
_BETWEEN = " to "


def called(first: str, second: str) -> str:
    """The name of a pair."""
    return f"{first}{_BETWEEN}{second}"


def nodes_of_name(name: str) -> tuple[str, str]:
    """The nodes of a pair's name; the second is empty if the name is of a node."""
    first, _, second = name.partition(_BETWEEN)
    return first, second


def nodes_of(names: Iterable[str], pairs: Pairs) -> list[str]:
    """The nodes of values, each once: those of whole nodes and both of each pair."""
    return list(dict.fromkeys(node for name in names for node in pairs.get(name, (name,))))


def mirrored(frame: pd.DataFrame, pairs: Pairs, parts: Sequence[str]) -> list[str]:
    """The pairs that repeat the values of the same pair in the other order, if each pair with both orders does so."""
    by_name = {str(name): rows for name, rows in frame.groupby("node", sort=False)}
    both = {name: called(*reversed(ends)) for name, ends in pairs.items() if called(*reversed(ends)) in by_name}
    columns = ["metric", "job", "run", *parts, "value"]

    def rows_of(name: str) -> list[tuple[object, ...]]:
        return sorted(by_name[name][columns].itertuples(index=False, name=None), key=repr)

    place = {name: number for number, name in enumerate(by_name)}
    again = [other for name, other in both.items() if name in place and place[name] < place[other]]
    return again if again and all(rows_of(name) == rows_of(both[name]) for name in again) else []
