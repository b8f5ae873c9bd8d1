"""The same parts of the dies of many nodes: what each costs on every node.

Parts are aligned by the numbers of the labels, over nodes whose dies have the same ends and the same sites.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec
import numpy as np

from nodeprint.machine.topology.facts import list_text
from nodeprint.machine.topology.level_names import level_name
from nodeprint.machine.topology.model import Level
from nodeprint.settings.texts import say
from nodeprint_addons.iodie.analysis import Key, NodeDies, site_ends
from nodeprint_addons.iodie.data import Floats


class ComparedPart(msgspec.Struct, frozen=True):
    """One part on all nodes: what it is (`key`), its `name`, its `unit`, ns or share, and by node its `value` and
    `half`, half of the 95 % interval."""

    key: Key
    name: str
    unit: str
    value: Floats
    half: Floats


class DieComparison(msgspec.Struct, frozen=True):
    """The parts of all nodes that have the same dies, `nodes` in order, and the `not_compared` with the reason."""

    nodes: tuple[str, ...]
    parts: tuple[ComparedPart, ...]
    not_compared: Mapping[str, str]


def compare(nodes: Sequence[NodeDies]) -> DieComparison | None:
    """The parts of the nodes, None where fewer than two have the same dies. Of several kinds the most frequent one."""
    same = alike(nodes)
    if len(same) < 2:
        return None
    not_compared = {node.node: say("dies", "other_ends") for node in nodes if node not in same}
    names = tuple(node.node for node in same)
    parts = []
    for key, indices in shared(same):
        name = part_name(same[0].level, key)
        value = np.array([node.costs.value[index] for node, index in zip(same, indices, strict=True)])
        half = np.array([node.costs.half[index] for node, index in zip(same, indices, strict=True)])
        parts.append(ComparedPart(key, name, "share" if key[0] == "share" else "ns", value, half))
    return DieComparison(names, tuple(parts), not_compared)


def alike(nodes: Sequence[NodeDies]) -> list[NodeDies]:
    """The nodes whose parts can be compared one by one, of several kinds the most frequent one."""
    kinds: dict[object, list[NodeDies]] = {}
    for node in nodes:
        kinds.setdefault(_kind(node), []).append(node)
    return max(kinds.values(), key=len, default=[])


def shared(nodes: Sequence[NodeDies]) -> list[tuple[Key, list[int]]]:
    """The parts that all of the nodes have, and where each is among the costs of every node."""
    indices = [{key: i for i, key in enumerate(node.costs.parts)} for node in nodes]
    in_all = [key for key in nodes[0].costs.parts if all(key in index_of for index_of in indices)]
    return [(key, [index_of[key] for index_of in indices]) for key in in_all]


def part_name(level: Level, key: Key) -> str:
    """A part in words, with the numbers of the labels."""
    kind, socket, where = key
    word, ends = level_name(level), [list_text(numbers) for numbers in where]
    if kind == "way":
        return say("dies", "parts", "way", socket=socket, word=word, from_end=ends[0], to=ends[1])
    names = {"end": f"own part of {word}", "share": f"lines at {word}", "link": "link to socket"}
    return f"socket {socket}: {names[kind]} {ends[0]}"


def _kind(node: NodeDies) -> object:
    """Equal for nodes whose parts can be compared one by one."""
    return tuple(
        (frame.socket, die.homes, frame.level, tuple(frame.ends[frame.here].tolist()), site_ends(die))
        for die in node.dies
        for frame in (die.frame,)
    )
