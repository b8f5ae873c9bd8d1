"""The same parts of the dies of many nodes: what each costs on every node, and what the verdict says of it.

Parts are aligned by the numbers of the labels, over nodes whose dies have the same ends and the same sites.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec
import numpy as np

from nodeprint.iodie.analysis import Key, NodeDies, site_ends
from nodeprint.iodie.data import Floats
from nodeprint.topology.facts import list_text
from nodeprint.topology.model import Level

#: Which quantity (nodeprint/derived.yaml) has the parts of a kind.
QUANTITY = {"end": "die-ports", "way": "die-ways", "link": "die-links", "share": "die-lines"}
#: What the ends of a way are called.
WORDS = {"ccd": "CCD", "ccx": "CCX", "cluster": "cluster", "core": "core"}


class Judged(msgspec.Struct, frozen=True):
    """What the verdict says of the parts of dies: its findings, the sentence by node and name of the part, or of the
    quantity where all of its parts deviate, and by term the smallest effect that it finds, as a share."""

    findings: Mapping[str, Mapping[str, str]]
    smallest: Mapping[str, float]


class ComparedPart(msgspec.Struct, frozen=True):
    """One part on all nodes: what it is (`key`), its `name`, its `unit`, ns or share, and by node its `value` and
    `half`, half of the 95 % interval. `findings` are the verdict's, the sentence by node."""

    key: Key
    name: str
    unit: str
    value: Floats
    half: Floats
    findings: Mapping[str, str]


class Comparison(msgspec.Struct, frozen=True):
    """The parts of all nodes that have the same dies, `nodes` in order, and the `others` with the reason. `smallest` as
    of `Judged`, None where the campaign has not been judged."""

    nodes: tuple[str, ...]
    parts: tuple[ComparedPart, ...]
    others: Mapping[str, str]
    smallest: Mapping[str, float] | None


def compare(nodes: Sequence[NodeDies], judged: Judged | None) -> Comparison | None:
    """The parts of the nodes, None where fewer than two have the same dies. Of several kinds the most frequent one."""
    same = alike(nodes)
    if len(same) < 2:
        return None
    others = {node.node: "it has other ends or sites than most nodes" for node in nodes if node not in same}
    names = tuple(node.node for node in same)
    found = judged.findings if judged is not None else {}
    parts = []
    for key, at in shared(same):
        name = part_name(same[0].level, key)
        value = np.array([node.costs.value[i] for node, i in zip(same, at, strict=True)])
        half = np.array([node.costs.half[i] for node, i in zip(same, at, strict=True)])
        told = {node: said[what] for node, said in found.items() for what in (name, QUANTITY[key[0]]) if what in said}
        parts.append(ComparedPart(key, name, "share" if key[0] == "share" else "ns", value, half, told))
    return Comparison(names, tuple(parts), others, judged.smallest if judged is not None else None)


def alike(nodes: Sequence[NodeDies]) -> list[NodeDies]:
    """The nodes whose parts can be compared one by one, of several kinds the most frequent one."""
    kinds: dict[object, list[NodeDies]] = {}
    for node in nodes:
        kinds.setdefault(_kind(node), []).append(node)
    return max(kinds.values(), key=len, default=[])


def shared(nodes: Sequence[NodeDies]) -> list[tuple[Key, list[int]]]:
    """The parts that all of the nodes have, and where each is among the costs of every node."""
    at = [{key: i for i, key in enumerate(node.costs.parts)} for node in nodes]
    return [(key, [of[key] for of in at]) for key in nodes[0].costs.parts if all(key in of for of in at)]


def part_name(level: Level, key: Key) -> str:
    """A part in words, with the numbers of the labels."""
    kind, socket, where = key
    word, ends = WORDS[level], [list_text(one) for one in where]
    if kind == "way":
        return f"socket {socket}: way from {word} {ends[0]} to a line at {word} {ends[1]}"
    names = {"end": f"own part of {word}", "share": f"lines at {word}", "link": "link to socket"}
    return f"socket {socket}: {names[kind]} {ends[0]}"


def _kind(node: NodeDies) -> object:
    """Equal for nodes whose parts can be compared one by one."""
    return tuple(
        (of.socket, die.homes, of.level, tuple(of.ends[of.here].tolist()), site_ends(die))
        for die in node.dies
        for of in (die.frame,)
    )
