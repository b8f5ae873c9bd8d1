"""The cost of each component of the dies of many nodes.

Components are aligned by the numbers of the labels, over nodes whose dies have the same ends and the same sites.
"""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from nodeprint.machine.topology.facts import list_text
from nodeprint.machine.topology.level_names import level_name
from nodeprint.machine.topology.model import Level
from nodeprint_addons.iodie.analysis import PART, NodeDies, part_costs, site_ends
from nodeprint_addons.iodie.iodie_texts import say


def compare(nodes: Sequence[NodeDies]) -> pd.DataFrame | None:
    """The components shared by all nodes of the most frequent kind: a row for each (with its `name`) and `node`.

    They are in the order of the first node. None if fewer than two nodes have the same dies.
    """
    same = alike(nodes)
    if len(same) < 2:
        return None
    parts = pd.concat([part_costs(node.dies).assign(node=node.node) for node in same], ignore_index=True)
    parts = parts[parts.groupby(PART)["node"].transform("size") == len(same)]
    level = same[0].level
    keys = list(parts[PART].itertuples(index=False, name=None))
    names = {key: part_name(level, *key) for key in dict.fromkeys(keys)}
    return parts.assign(name=[names[key] for key in keys])


def not_compared(nodes: Sequence[NodeDies]) -> dict[str, str]:
    """The nodes that have other dies than most, with the reason."""
    same = alike(nodes)
    return {node.node: say("other_ends") for node in nodes if node not in same}


def alike(nodes: Sequence[NodeDies]) -> list[NodeDies]:
    """The nodes whose parts can be compared one by one, of several kinds the most frequent one."""
    kinds: dict[object, list[NodeDies]] = {}
    for node in nodes:
        kinds.setdefault(_kind(node), []).append(node)
    return max(kinds.values(), key=len, default=[])


def part_name(level: Level, kind: str, socket: int, where: Sequence[Sequence[int]]) -> str:
    """A part in words, with the numbers of the labels."""
    word, ends = level_name(level), [list_text(numbers) for numbers in where]
    if kind == "way":
        return say("parts", "way", socket=socket, word=word, from_end=ends[0], to=ends[1])
    names = {"end": f"own part of {word}", "share": f"lines at {word}", "link": "link to socket"}
    return f"socket {socket}: {names[kind]} {ends[0]}"


def _kind(node: NodeDies) -> object:
    """Equal for nodes whose parts can be compared one by one."""
    return tuple(
        (die.socket, die.homes, die.level, tuple(die.ends[die.here].tolist()), site_ends(die)) for die in node.dies
    )
