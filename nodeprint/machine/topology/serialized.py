"""A topology as JSON, and read back."""

from __future__ import annotations

import json
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import msgspec

from nodeprint.errors import NodeprintError
from nodeprint.machine.topology.model import LEVELS, Cpu, Machine, NumaNode, Topology, Warning
from nodeprint.machine.tree import contents


def as_json(topology: Topology) -> dict[str, Any]:
    """What `nodeprint topology --json` prints: `machine`, `levels`, `cpus`, `provenance` and `warnings`.

    The machine has NUMA nodes with memory and distances. Null is unknown. A level is listed where some CPU has it, from
    coarse to fine, `numa` last.
    """
    levels = []
    for level in (*LEVELS, "numa"):
        groups = topology.groups(level)
        if groups:
            sizes = sorted({len(cpus) for cpus in groups.values()})
            levels.append({"name": level, "count": len(groups), "cpus_each": sizes})
    return {
        "machine": {
            **asdict(topology.machine),
            "numa_nodes": [
                {
                    "node": node.node,
                    "cpus": list(node.cpus),
                    "memory_bytes": node.memory_bytes,
                    "distances": list(node.distances),
                }
                for node in topology.numa_nodes
            ],
        },
        "levels": levels,
        "cpus": list(msgspec.to_builtins(topology.cpus)),
        "provenance": dict(topology.provenance),
        "warnings": [asdict(warning) for warning in topology.warnings],
    }


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
