"""Achieved share of the theoretical peak: memory bandwidth and vector load.

If all nodes lack a memory module or have a low memory clock, a comparison of nodes does not show it. The code refers to
measurements by name, because the theoretical peak depends on the meaning of their measurement points.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

from msgspec.structs import replace

from nodeprint.judge.verdict import CellFigure, MemoryAchieved, NodeVerdict
from nodeprint.machine import peak

#: The report mentions nodes whose best stream achieves less than this share of peak (a choice).
_LITTLE = 0.6


def with_peak(rows: Sequence[CellFigure], facts: Mapping[str, Any]) -> list[CellFigure]:
    """The rows of a node with its theoretical peak, from its fingerprint `facts`; 0 if unknown."""
    memory, cycle = peak.memory(facts), peak.flops_per_cycle(facts)
    clocks = {row.name: row.median for row in rows if row.measurement == "load-ladder"}
    return [
        replace(row, peak=_bandwidth(row, facts, memory) if memory else 0.0)
        if row.measurement.startswith("bandwidth")
        else replace(row, peak=cycle * _clock(row, clocks))
        for row in rows
    ]


def _bandwidth(row: CellFigure, facts: Mapping[str, Any], memory: peak.Memory) -> float:
    """The theoretical peak of a row in its own memory, in bytes/s: the share of the machine, a socket or a NUMA node.
    It is 0 for other rows."""
    components = row.name.split(", ")
    if row.measurement == "bandwidth-machine":
        return memory.most_bytes_per_s / (max(1, int(facts.get("sockets", 1))) if components[0] == "socket" else 1)
    if row.measurement == "bandwidth-nodes" and "own node" in components:
        return memory.most_bytes_per_s / max(1, int(facts.get("numa_nodes", 1)))
    return 0.0


def _clock(row: CellFigure, clocks: Mapping[str, float]) -> float:
    """The clock (Hz) under vector load from the clock ladder, with one active core or all cores of the socket; 0 if
    unknown."""
    by_cores = {int(cores): hz for cores, hz in _vector_clocks(clocks)}
    if not by_cores or row.measurement not in ("load-alone", "load-together"):
        return 0.0
    return by_cores[min(by_cores) if row.measurement == "load-alone" else max(by_cores)]


def _vector_clocks(clocks: Mapping[str, float]) -> list[tuple[str, float]]:
    named = [(name.split(", "), hz) for name, hz in clocks.items()]
    return [(components[1], hz) for components, hz in named if len(components) == 3 and components[2] == "vector"]


def memory(nodes: Mapping[str, NodeVerdict]) -> tuple[MemoryAchieved, ...]:
    """Memory configurations below their potential, each with its nodes. Either a faster configuration exists, or the
    nodes achieve a small share of the peak."""
    return of_machines({name: (node.fingerprint, node.cells) for name, node in nodes.items()})


def of_machines(machines: Mapping[str, tuple[Mapping[str, Any], Sequence[CellFigure]]]) -> tuple[MemoryAchieved, ...]:
    """As `memory`, for machines by name, each with its fingerprint and its rows."""
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
