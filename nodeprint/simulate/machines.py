"""Machines of a simulated fleet: their measured CPUs, and variants with other cores, numbers or NUMA nodes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from nodeprint.data.places import layout
from nodeprint.data.places.layout import Layout
from nodeprint.errors import NodeprintError
from nodeprint.machine.topology.model import Cpu, NumaNode, Topology
from nodeprint.machine.topology.processors import generation_of


def measured_places(topology: Topology) -> tuple[Layout, list[int]]:
    """The default selection: one thread of each core, and each core's own siblings.

    Raises NodeprintError for a machine of one core, which has no pair of cores.
    """
    slots, cpus = layout.slots_of(topology, [cpu.cpu for cpu in topology.cpus])
    first = slots[:, layout.THREAD] == 0
    if first.sum() < 2:
        raise NodeprintError(
            "the machine has one core, and a simulation needs two", advice="name a machine of two or more"
        )
    a, b = np.triu_indices(len(slots), 1)
    keep = (first[a] & first[b]) | np.all(slots[a, : layout.RANK + 1] == slots[b, : layout.RANK + 1], axis=1)
    return layout.layout_of(topology, slots, np.stack([a[keep], b[keep]], axis=1), cpus), cpus


def harvested(topology: Topology, count: int) -> Topology:
    """`topology` with `count` cores fewer in each CCX."""
    if not count:
        return topology
    kept = [cpu for cpu in topology.cpus if (cpu.rank or 0) < cores_of_a_ccx(topology) - count]
    if len({cpu.core for cpu in kept}) < 2:
        raise NodeprintError(f"harvest {count} leaves no two cores", advice="use a smaller number")
    new = {cpu.cpu: number for number, cpu in enumerate(kept)}
    machine = replace(topology.machine, core_positions=False)
    return _with_numbers(replace(topology, cpus=tuple(kept), machine=machine), new)


def cores_of_a_ccx(topology: Topology) -> int:
    """How many cores a CCX of `topology` has."""
    return 1 + max((cpu.rank or 0 for cpu in topology.cpus), default=0)


def cores_of_a_die(topology: Topology) -> int:
    """How many cores a CCX of `topology` has on the die, active or not; those that are active where that is unknown."""
    generation = generation_of(topology.machine)
    on_die = generation.cores_per_ccx if generation is not None else None
    return max(on_die or 0, cores_of_a_ccx(topology))


def renumbered(topology: Topology, cpus: list[int], rng: np.random.Generator) -> tuple[Topology, list[int]]:
    """`topology` under a random permutation of its OS numbers."""
    numbers = sorted(cpu.cpu for cpu in topology.cpus)
    new = dict(zip(numbers, rng.permutation(numbers).tolist(), strict=True))
    return _with_numbers(topology, new), [new[cpu] for cpu in cpus]


def one_node_a_socket(topology: Topology) -> Topology:
    """`topology` with the NUMA nodes of each socket made one."""
    of_cpu = {cpu.cpu: cpu.socket for cpu in topology.cpus}
    parts: dict[int | None, list[int]] = {}
    for i, node in enumerate(topology.numa_nodes):
        parts.setdefault(of_cpu[node.cpus[0]] if node.cpus else None, []).append(i)
    kept = [members[0] for members in parts.values()]
    nodes = []
    for number, members in enumerate(parts.values()):
        merged = [topology.numa_nodes[i] for i in members]
        sizes = [node.memory_bytes for node in merged]
        distances = merged[0].distances
        nodes.append(
            NumaNode(
                number,
                tuple(sorted(cpu for node in merged for cpu in node.cpus)),
                None if None in sizes else sum(size or 0 for size in sizes),
                tuple(distances[i] for i in kept) if distances else (),
            )
        )
    numa = {cpu: node.node for node in nodes for cpu in node.cpus}
    cpus = tuple(replace(cpu, numa=numa.get(cpu.cpu)) for cpu in topology.cpus)
    return replace(topology, cpus=cpus, numa_nodes=tuple(nodes), machine=replace(topology.machine, nps=1))


def _with_numbers(topology: Topology, new: dict[int, int]) -> Topology:
    cpus: list[Cpu] = sorted((replace(cpu, cpu=new[cpu.cpu]) for cpu in topology.cpus), key=lambda cpu: cpu.cpu)
    nodes = tuple(replace(n, cpus=tuple(sorted(new[c] for c in n.cpus if c in new))) for n in topology.numa_nodes)
    return replace(topology, cpus=tuple(cpus), numa_nodes=nodes)


def socket_index(topology: Topology, cpus: Sequence[int]) -> int:
    """The place of the socket of `cpus` (of the lowest, where they have several) among the sockets, from 0."""
    chosen = set(cpus)
    members = {cpu.socket for cpu in topology.cpus if cpu.cpu in chosen} - {None}
    sockets = sorted({cpu.socket for cpu in topology.cpus} - {None}, key=lambda s: s or 0)
    return sockets.index(min(members, key=lambda s: s or 0)) if members else 0
