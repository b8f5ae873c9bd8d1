"""Every topology that is known or was captured, with every home policy and number of NUMA nodes a socket, through
simulate, judge and iodie: none of them ends in a traceback."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from nodeprint.data.places.homes import FAR, NEAR
from nodeprint.judge.campaign import judge
from nodeprint.machine.topology import captured
from nodeprint.machine.topology.model import NumaNode, Topology
from nodeprint.machine.topology.presets import PRESETS, preset
from nodeprint.machine.tree import open_tree
from nodeprint.simulate import Plan, Variation, write
from nodeprint_addons.iodie import analysis, listing, node_lines
from tests.support.combinations import in_turn

QUADRANTS = {1: {0: 0, 1: 0, 2: 0, 3: 0}, 2: {0: 0, 1: 0, 2: 1, 3: 1}, 4: {0: 0, 1: 1, 2: 2, 3: 3}}


def with_nodes(machine: Topology, nps: int) -> Topology:
    """A machine of quadrants with so many NUMA nodes a socket; 0 is one for all sockets."""
    place = QUADRANTS[nps or 1]
    of = {cpu.cpu: ((cpu.socket or 0) * nps + place[(cpu.quadrant or 0) % 4]) if nps else 0 for cpu in machine.cpus}
    nodes = tuple(
        NumaNode(node, tuple(cpu for cpu in of if of[cpu] == node), None, ()) for node in sorted(set(of.values()))
    )
    cpus = tuple(replace(cpu, numa=of[cpu.cpu]) for cpu in machine.cpus)
    return replace(machine, cpus=cpus, numa_nodes=nodes, machine=replace(machine.machine, nps=nps))


def few_cores(machine: Topology, count: int = 2) -> Topology:
    """The first cores of each L3, cluster and NUMA node, one thread each: a small run of the same machine."""
    taken: dict[object, set[int | None]] = {}
    kept = []
    for cpu in machine.cpus:
        cores = taken.setdefault((cpu.socket, cpu.ccd, cpu.ccx, cpu.cluster, cpu.numa), set())
        if cpu.core not in cores and len(cores) < count:
            cores.add(cpu.core)
            kept.append(cpu)
    numbers = {cpu.cpu for cpu in kept}
    nodes = tuple(replace(node, cpus=tuple(c for c in node.cpus if c in numbers)) for node in machine.numa_nodes)
    return replace(machine, cpus=tuple(kept), numa_nodes=nodes)


def topology_of(path: Path) -> Topology:
    if path.suffix == ".xml":
        return captured.read_xml(path)
    return captured.read_cpuid(path) if path.parent.name == "hwloc-x86-cpuid" else captured.read(open_tree(path))


def homes_of(machine: Topology, policy: str) -> tuple[int, ...]:
    nodes = tuple(node.node for node in machine.numa_nodes if node.cpus)
    if policy == "sockets" and len(nodes) < len(
        machine.groups("socket")
    ):  # NPS0, or a dump of CPUID: nothing to choose from
        policy = "first"
    return {"first": (NEAR,), "sockets": (NEAR, FAR), "each": nodes or (0,), "last": nodes[-1:] or (0,)}[policy]


def files() -> Iterator[Path]:
    folder = Path(os.environ.get("NODEPRINT_DATA", "/nonexistent")) / "topology"
    yield from sorted(path for path in folder.rglob("*") if path.is_file())


#: Presets, some of them with other numbers of NUMA nodes, and captured machines.
MACHINES = [*PRESETS, *(f"{name} nps{nps}" for name in ("rome-2x64", "genoa-2x96") for nps in (0, 2, 4)), *files()]
POLICIES = ("first", "sockets", "each", "last")


@pytest.mark.parametrize(("machine", "policy"), in_turn(MACHINES, POLICIES))
def test_every_machine_is_judged_and_mapped(tmp_path: Path, machine: str | Path, policy: str) -> None:
    if isinstance(machine, Path):
        full = topology_of(machine)
    else:
        name, _, nps = machine.partition(" nps")
        full = with_nodes(preset(name), int(nps)) if nps else preset(name)
    known = few_cores(full, 1 if len(full.groups("ccx")) >= 8 else 2)
    plan = Plan(known, nodes=1, runs=1, passes=1, detail=True, homes=homes_of(known, policy), spread=Variation(lines=8))
    folder = write(plan, tmp_path / "a")
    assert set(judge(folder).verdict.nodes) == {"node000"}
    found = analysis.analyze(*node_lines.read(folder / "nodes/node000"))
    assert found.dies or found.missing
    assert listing.as_text(found).startswith("node000: coherence-cas")
