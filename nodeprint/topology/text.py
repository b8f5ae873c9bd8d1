"""A topology as JSON and as a tree in the terminal."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import msgspec
from rich.markup import escape
from rich.tree import Tree as RichTree

from nodeprint.errors import NodeprintError
from nodeprint.topology.facts import list_text
from nodeprint.topology.model import LEVELS, Cpu, Level, Machine, NumaNode, Topology, Warning
from nodeprint.tree import contents

_WORDS: dict[Level, str] = {
    "socket": "socket",
    "half": "half",
    "quadrant": "quadrant",
    "ccd": "CCD",
    "ccx": "CCX",
    "cluster": "cluster",
    "core": "core",
    "numa": "NUMA node",
}


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


def as_text(topology: Topology) -> RichTree:
    """A compact tree: a line per part, down to the level below which only cores are left, then what is odd."""
    machine = topology.machine
    name = machine.name or machine.generation or "unknown processor"
    facts = [f"{len(topology.cpus)} CPUs"]
    if machine.generation:
        facts.insert(0, machine.generation)
    if machine.nps is not None:
        facts.append(
            "one NUMA node for all sockets"
            if machine.nps == 0
            else f"{machine.nps} NUMA node{'s' if machine.nps > 1 else ''} a socket"
        )
    if machine.smt is not None:
        facts.append("SMT on" if machine.smt else "SMT off")
    if machine.virtual:
        facts.append("virtual")
    if not machine.order_known:
        facts.append("order unknown")
    tree = RichTree(f"[bold]{escape(name)}[/bold]  {escape(', '.join(facts))}")
    levels = [level for level in (*LEVELS[:-1], "numa") if len(topology.groups(level)) > 1 or level == "socket"]
    _branch(tree, topology, list(topology.cpus), _nested(topology, levels))
    for node in topology.numa_nodes:
        if not node.cpus:
            tree.add(f"NUMA node {node.node} without CPUs{_memory(node.memory_bytes)}")
    sources = ", ".join(f"{level}: {source}" for level, source in topology.provenance.items() if source != "unknown")
    unknown = [level for level, source in topology.provenance.items() if source == "unknown"]
    tree.add(f"[dim]labels from {escape(sources)}; unknown: {', '.join(unknown) or 'none'}[/dim]")
    for warning in topology.warnings:
        tree.add(f"[yellow]{escape(warning.id)}[/yellow]: {escape(warning.text)}; {escape(warning.advice)}")
    return tree


def _nested(topology: Topology, levels: list[Level]) -> list[Level]:
    """The levels that say something, coarse to fine, without those that repeat the parts of one before."""
    seen: set[frozenset[tuple[int, ...]]] = set()
    out: list[tuple[float, Level]] = []
    for level in levels:
        groups = topology.groups(level)
        parts = frozenset(groups.values())
        if groups and parts not in seen:
            seen.add(parts)
            out.append((len(parts), level))
    return [level for _, level in sorted(out, key=lambda item: item[0])]


def _branch(tree: RichTree, topology: Topology, cpus: list[Cpu], levels: list[Level]) -> None:
    if not levels:
        return
    level, below = levels[0], levels[1:]
    groups: dict[int | None, list[Cpu]] = {}
    for cpu in cpus:
        groups.setdefault(getattr(cpu, level), []).append(cpu)
    for part, members in sorted(groups.items(), key=lambda item: (item[0] is None, item[0])):
        cores = len({cpu.core for cpu in members if cpu.core is not None})
        text = f"{_WORDS[level]} {'unknown' if part is None else part}"
        text += _also(topology, level, members)
        if cores:
            text += f"  {cores} core{'s' * (cores != 1)}"
        text += f"  [cyan]{_short(cpu.cpu for cpu in members)}[/cyan]"
        _branch(tree.add(text), topology, members, below)


def _also(topology: Topology, level: Level, members: list[Cpu]) -> str:
    """The names that the same CPUs have on other levels: a CCX that is also a CCD and a NUMA node."""
    here = tuple(sorted(cpu.cpu for cpu in members))
    text = ""
    for other in (*LEVELS[:-1], "numa"):
        if other == level:
            continue
        for part, cpus in topology.groups(other).items():
            if cpus == here:
                memory = ""
                if other == "numa":
                    memory = _memory(next((n.memory_bytes for n in topology.numa_nodes if n.node == part), None))
                text += f" = {_WORDS[other]} {part}{memory}"
    return text


def _memory(size: int | None) -> str:
    return "" if size is None else f" ({size / 2**30:.1f} GiB)"


def _short(cpus: Iterable[int]) -> str:
    """CPUs as a list, with a stride where they have one: `0-110:2`, as taskset writes it."""
    numbers = sorted(cpus)
    steps = {b - a for a, b in itertools.pairwise(numbers)}
    if len(numbers) > 2 and len(steps) == 1 and steps != {1}:
        return f"{numbers[0]}-{numbers[-1]}:{steps.pop()}"
    return list_text(numbers)
