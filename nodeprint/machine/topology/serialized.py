"""A topology as JSON, and read back."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import msgspec

from nodeprint.errors import NodeprintError
from nodeprint.machine.topology.model import (
    LEVELS,
    Cpu,
    Level,
    Machine,
    NumaNode,
    Provenance,
    Topology,
    Warning,
)
from nodeprint.machine.tree import contents
from nodeprint.settings.keys import schema_of

_PRINTED: tuple[Level, ...] = (*LEVELS, "numa")


@dataclass(frozen=True, slots=True)
class LevelSizes:
    """A level that some CPU has: how many parts, and how many CPUs these have."""

    name: Level
    count: int
    cpus_each: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class MachineWithNodes(Machine):
    """A machine with the memory and distances of its NUMA nodes."""

    numa_nodes: tuple[NumaNode, ...] = ()


@dataclass(frozen=True, slots=True)
class PrintedTopology:
    """What `nodeprint topology --json` prints: null is unknown, and levels are from coarse to fine, `numa` last."""

    machine: MachineWithNodes
    levels: tuple[LevelSizes, ...]
    cpus: tuple[Cpu, ...]
    provenance: Mapping[str, Provenance]
    warnings: tuple[Warning, ...]


def as_json(topology: Topology) -> dict[str, Any]:
    """A topology as JSON has it: a `PrintedTopology`."""
    machine = MachineWithNodes(**asdict(topology.machine), numa_nodes=topology.numa_nodes)
    groups = {level: topology.groups(level) for level in _PRINTED}
    levels = tuple(
        LevelSizes(level, len(parts), tuple(sorted({len(cpus) for cpus in parts.values()})))
        for level, parts in groups.items()
        if parts
    )
    printed = PrintedTopology(machine, levels, topology.cpus, topology.provenance, topology.warnings)
    out: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(printed))
    return out


def schema() -> dict[str, Any]:
    """The JSON schema of `nodeprint topology --json`."""
    return schema_of(PrintedTopology, "nodeprint topology --json", whole=True)


def from_json(path: Path) -> Topology:
    """The topology in the file `path`, as `as_json` gives it. Raises NodeprintError where it is none."""
    try:
        return from_text(contents(path).decode("utf-8"))
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise NodeprintError(
            f"is not a topology of nodeprint ({type(error).__name__}: {error})",
            where=path,
            advice="write it with `nodeprint topology --json`",
        ) from None


def from_text(text: str) -> Topology:
    """The topology in JSON text of `as_json`; ValueError, KeyError, TypeError or AttributeError on other text."""
    data = json.loads(text)
    machine = {field.name: data["machine"].get(field.name, field.default) for field in fields(Machine)}
    cpus = sorted((Cpu(**cpu) for cpu in data["cpus"]), key=lambda cpu: cpu.cpu)
    nodes = [
        NumaNode(node["node"], tuple(node["cpus"]), node["memory_bytes"], tuple(node["distances"]))
        for node in data["machine"]["numa_nodes"]
    ]
    warnings = [Warning(**warning) for warning in data["warnings"]]
    return Topology(Machine(**machine), tuple(cpus), tuple(nodes), data["provenance"], tuple(warnings))
