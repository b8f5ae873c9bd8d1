"""What several pages ask of the verdict of a fleet: outcomes, class medians, groups, and which nodes have pages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from nodeprint import outcomes
from nodeprint.outcomes import Outcome
from nodeprint.report import formatting
from nodeprint.report.shown import ClassKey, class_medians

#: Fleets up to this size have every node's pages in cluster.pdf, larger ones only those of nodes with something found.
SMALL_FLEET = 2
#: At most this many nodes have their pages in cluster.pdf; the others have a file of their own anyway.
MOST_NODE_PAGES = 40


def node_names(verdict: Mapping[str, Any]) -> list[str]:
    """The nodes of a verdict in natural order (cn2 before cn10)."""
    return sorted(verdict["nodes"], key=formatting.natural)


def marks(verdict: Mapping[str, Any]) -> dict[str, Outcome]:
    """How each node's verdict looks."""
    return {node: outcomes.of(str(verdict["nodes"][node].get("verdict", ""))) for node in node_names(verdict)}


def fleet_medians(verdict: Mapping[str, Any]) -> dict[ClassKey, float]:
    """The median over nodes of each class's median in ns, for classes that at least three nodes have."""
    return {
        key: float(np.median(list(by_node.values())))
        for key, by_node in by_class_of(verdict).items()
        if len(by_node) >= 3
    }


def by_class_of(verdict: Mapping[str, Any]) -> dict[ClassKey, dict[str, float]]:
    out: dict[ClassKey, dict[str, float]] = {}
    for node in node_names(verdict):
        for key, median in class_medians(verdict["nodes"][node]).items():
            out.setdefault(key, {})[node] = median
    return out


def with_pages(verdict: Mapping[str, Any]) -> list[str]:
    """The nodes whose own pages belong into cluster.pdf, worst first in a large fleet."""
    found = marks(verdict)
    if len(found) <= SMALL_FLEET:
        return list(found)
    nodes = verdict["nodes"]
    odd = [
        n for n, m in found.items() if m.word != "NOT MEASURED" and (m.accuses or m.again or nodes[n].get("findings"))
    ]
    return sorted(odd, key=lambda node: found[node].rank)[:MOST_NODE_PAGES]


def groups_of(groups: Any) -> list[tuple[str, list[str]]]:
    """Groups of nodes as (name, members), whether they come as a list of objects or by name."""
    named = groups.items() if isinstance(groups, Mapping) else enumerate(groups if isinstance(groups, list) else (), 1)
    out = []
    for key, group in named:
        name = group.get("name") or group.get("id") or key if isinstance(group, Mapping) else key
        members = group.get("nodes", ()) if isinstance(group, Mapping) else group
        out.append((str(name), [str(member) for member in members] if isinstance(members, list) else []))
    return out
