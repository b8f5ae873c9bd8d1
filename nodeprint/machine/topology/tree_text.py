"""A topology as a tree in the terminal."""

from __future__ import annotations

import itertools
from collections.abc import Iterable

from rich.markup import escape
from rich.tree import Tree as RichTree

from nodeprint.machine.topology.facts import list_text
from nodeprint.machine.topology.level_names import level_name
from nodeprint.machine.topology.model import LEVELS, Cpu, Level, Topology


def as_text(topology: Topology) -> RichTree:
    """A compact tree: a line per part, down to the level below which only cores are left, then what is odd."""
    machine = topology.machine
    name = machine.name or machine.generation or "unknown processor"
    facts = [f"{len(topology.cpus)} CPU{'s' * (len(topology.cpus) > 1)}"]
    if machine.generation not in (None, name):
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
    kinds: dict[str, list[int]] = {}
    for cpu in topology.cpus:
        if cpu.kind is not None:
            kinds.setdefault(cpu.kind, []).append(cpu.cpu)
    for kind, cpus in kinds.items():
        tree.add(f"cores of kind {escape(kind)}  [cyan]{_short(cpus)}[/cyan]")
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
        text = f"{level_name(level)} {'unknown' if part is None else part}"
        text += _also(topology, level, members)
        if cores:
            text += f"  {cores} core{'s' * (cores != 1)}"
        text += f"  [cyan]{_short(cpu.cpu for cpu in members)}[/cyan]"
        # a level with the same CPUs is on this line, and not below again
        here = tuple(sorted(cpu.cpu for cpu in members))
        finer = [lower for lower in below if here not in topology.groups(lower).values()]
        _branch(tree.add(text), topology, members, finer)


def _also(topology: Topology, level: Level, members: list[Cpu]) -> str:
    """The names that the same CPUs have on other levels: a CCX that is also a CCD and a NUMA node."""
    here = tuple(sorted(cpu.cpu for cpu in members))
    text = ""
    if here not in topology.groups(level).values():
        return text  # a piece of a part, which goes on in another branch
    for alias in (*LEVELS[:-1], "numa"):
        if alias == level:
            continue
        for part, cpus in topology.groups(alias).items():
            if cpus == here:
                memory = ""
                if alias == "numa":
                    memory = _memory(next((n.memory_bytes for n in topology.numa_nodes if n.node == part), None))
                text += f" = {level_name(alias)} {part}{memory}"
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
