"""How much of the theoretical peak a node reaches: bandwidth by memory channels and their clock, load by cores'
vectors.

Nodes that are all alike may all have a channel without a module, or memory at a low clock, which comparing them does
not show. Measurements are known by name here, as the theoretical peak follows from what their places are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

from msgspec.structs import replace

from nodeprint.judge.verdict import CellFigure, MemoryAchieved, NodeVerdict
from nodeprint.machine import peak

#: A choice: a node whose best stream reaches a smaller share of its channels' peak gets a sentence.
_LITTLE = 0.6


def with_peak(rows: Sequence[CellFigure], facts: Mapping[str, Any]) -> list[CellFigure]:
    """The rows of a node with this fingerprint, each with the theoretical peak in its place; 0 where that is
    unknown."""
    memory, cycle = peak.memory(facts), peak.flops_per_cycle(facts)
    clocks = {row.name: row.median for row in rows if row.measurement == "load-ladder"}
    return [
        replace(row, peak=_bandwidth(row, facts, memory) if memory else 0.0)
        if row.measurement.startswith("bandwidth")
        else replace(row, peak=cycle * _clock(row, clocks))
        for row in rows
    ]


def _bandwidth(row: CellFigure, facts: Mapping[str, Any], memory: peak.Memory) -> float:
    """Of a row in memory of its own: the machine's, a socket's or a NUMA node's share of the channels."""
    components = row.name.split(", ")
    if row.measurement == "bandwidth-machine":
        return memory.most_bytes_per_s / (max(1, int(facts.get("sockets", 1))) if components[0] == "socket" else 1)
    if row.measurement == "bandwidth-nodes" and "own node" in components:
        return memory.most_bytes_per_s / max(1, int(facts.get("numa_nodes", 1)))
    return 0.0


def _clock(row: CellFigure, clocks: Mapping[str, float]) -> float:
    """The clock with as many cores at work by vectors, by the ladder: one alone, or all of the socket."""
    by_cores = {int(cores): hz for cores, hz in _vector_clocks(clocks)}
    if not by_cores or row.measurement not in ("load-alone", "load-together"):
        return 0.0
    return by_cores[min(by_cores) if row.measurement == "load-alone" else max(by_cores)]


def _vector_clocks(clocks: Mapping[str, float]) -> list[tuple[str, float]]:
    named = [(name.split(", "), hz) for name, hz in clocks.items()]
    return [(components[1], hz) for components, hz in named if len(components) == 3 and components[2] == "vector"]


def memory(nodes: Mapping[str, NodeVerdict]) -> tuple[MemoryAchieved, ...]:
    """Nodes by their memory, where it could be more than it is configured for, or gives little of what it is."""
    return of_machines({name: (node.fingerprint, node.cells) for name, node in nodes.items()})


def of_machines(machines: Mapping[str, tuple[Mapping[str, Any], Sequence[CellFigure]]]) -> tuple[MemoryAchieved, ...]:
    """The same of machines by name, each with its fingerprint and its rows."""
    by_memory: dict[peak.Memory, dict[str, float]] = {}
    for name, (facts, rows) in machines.items():
        highest = max((row.median for row in rows if _of_machine(row)), default=0.0)
        if highest and (kind := peak.memory(facts)) is not None:
            by_memory.setdefault(kind, {})[name] = highest
    out = []
    for kind, rates in by_memory.items():
        rate = median(rates.values())
        if kind.could_be_more or rate < _LITTLE * kind.bytes_per_s:
            out.append(MemoryAchieved(tuple(rates), kind, rate / kind.bytes_per_s, rate / kind.most_bytes_per_s))
    return tuple(out)


def _of_machine(row: CellFigure) -> bool:
    return row.measurement == "bandwidth-machine" and row.name.startswith("machine, ")
