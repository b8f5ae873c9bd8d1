"""Turn a reader's facts into labels: numbers that are machine-wide, unique, and in the order of the chip."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from nodeprint.machine.topology import amd, processors
from nodeprint.machine.topology.amd import Order
from nodeprint.machine.topology.facts import Facts, groups_of, is_finer, list_text
from nodeprint.machine.topology.model import Cpu, Provenance, Topology
from nodeprint.settings.texts import say

_AMD = ("AuthenticAMD", "HygonGenuine")
_LABELS = ("socket", "half", "quadrant", "ccd", "ccx", "numa", "cluster", "core", "thread", "rank", "apicid")


def label(facts: Facts) -> Topology:
    """The topology of `facts`, with every label's provenance. Nothing is guessed: unknown is None."""
    generation = processors.generation_of(facts.machine)
    part = processors.part_of(facts.machine, generation)
    if generation is None:
        _note_unknown_part(facts)
    _drop_what_contradicts(facts)
    _note_partial(facts)
    packages = facts.parts.get("socket", {})
    numbers = {package: number for number, package in enumerate(sorted(set(packages.values())))}
    sockets = {cpu: numbers[package] for cpu, package in packages.items()}
    if sockets:
        facts.parts["socket"] = sockets
    order, order_known = _order(facts, generation is not None and generation.cpus_follow_apic)
    if not order_known:
        facts.warn("order-unknown")
    numa = _numa_of(facts)
    _note_crossing(facts, numa)
    l3_nodes = facts.machine.vendor in _AMD and amd.l3_as_numa(facts, numa)
    nps = None if l3_nodes else _nodes_per_socket(facts, numa)
    if l3_nodes:
        facts.warn("l3-as-numa")
    if facts.machine.vendor in _AMD:
        amd.chiplets(facts, generation, part, numa, nps, order if order_known else None)
    elif is_finer(facts.parts.get("die", {}), sockets):
        facts.parts["ccd"], facts.provenance["ccd"] = facts.parts["die"], facts.provenance["die"]
    labels = _numbers(facts, order)
    threads, ranks = _places(labels, facts.cpus, order)
    _note_missing(facts)
    cpus = tuple(
        Cpu(
            cpu,
            **{name: by_cpu.get(cpu) for name, by_cpu in labels.items()},
            half=facts.parts.get("half", {}).get(cpu),
            quadrant=facts.parts.get("quadrant", {}).get(cpu),
            numa=numa.get(cpu),
            thread=threads.get(cpu),
            rank=ranks.get(cpu),
            apicid=facts.apicids.get(cpu),
            kind=facts.kinds.get(cpu),
        )
        for cpu in facts.cpus
    )
    machine = replace(
        facts.machine,
        generation=generation.name if generation is not None else None,
        nps=nps,
        smt=len(set(labels["core"].values())) < len(labels["core"]) if labels["core"] else None,
        core_positions=facts.core_positions,
        ccd_positions=facts.ccd_positions,
        order_known=order_known,
    )
    return Topology(machine, cpus, facts.numa_nodes, _provenance(facts, cpus), tuple(facts.warnings))


def _note_unknown_part(facts: Facts) -> None:
    def number(value: int | None) -> str:
        return "unknown" if value is None else f"{value:x}h"

    machine = facts.machine
    if not (machine.vendor or machine.name):
        facts.warn("unknown-part", "nameless")
        return
    facts.warn(
        "unknown-part",
        "virtual" if machine.virtual else "real",
        name=machine.name or machine.vendor,
        family=number(machine.family),
        model=number(machine.model),
        consequence=say("warnings", "unknown-part", "chiplets" if machine.vendor in _AMD else "no_chiplets"),
    )


def _order(facts: Facts, cpus_follow_apic: bool) -> tuple[Order, bool]:
    """A key that sorts the CPUs of a socket as they are on the chip, and whether that order is known.

    The key is the APIC id, else the source's numbers of L3, die and core. Linux derives these from the APIC id
    (arch/x86/kernel/cpu/topology_common.c, cacheinfo.c), and hwloc passes them on. If they do not distinguish the cores
    of a socket, the key is the CPU number, whose order is the chip's only if `cpus_follow_apic`.
    """
    if facts.apicids:
        return lambda cpu: (facts.apicids[cpu], cpu), True
    everywhere = len(facts.cpus)
    ids = [number_of for number_of in (facts.l3_ids, facts.die_ids, facts.core_ids) if len(number_of) == everywhere]
    sockets, cores = facts.parts.get("socket", {}), facts.parts.get("core", {})
    places = {(sockets.get(cpu), *(number_of[cpu] for number_of in ids)) for cpu in facts.cpus}
    by_ids = len(facts.core_ids) == everywhere and len(places) == len({cores.get(cpu, -1 - cpu) for cpu in facts.cpus})
    if cpus_follow_apic and not by_ids:
        return lambda cpu: (cpu,), True
    return lambda cpu: (*(number_of[cpu] for number_of in ids), cpu), by_ids


def _drop_what_contradicts(facts: Facts) -> None:
    """Drop levels with a component in two sockets, which only a garbled or made-up view reports."""
    sockets = facts.parts.get("socket", {})
    for level in ("core", "ccx", "cluster", "die"):
        part_of = facts.parts.get(level, {})
        if sockets and any(len({sockets[c] for c in cpus if c in sockets}) > 1 for cpus in groups_of(part_of).values()):
            del facts.parts[level]
            facts.provenance.pop(level, None)
            facts.warn("contradicts-socket", of=level, level=level)


def _note_partial(facts: Facts) -> None:
    """Warn about CPUs that lack a level that others report. A virtual machine makes up such an L3 or die, so the level
    is dropped; on a real machine the other CPUs keep it."""
    for level, name in (("socket", "socket"), ("ccx", "L3"), ("die", "die"), ("core", "core")):
        known = facts.parts.get(level, {})
        lacking = [cpu for cpu in facts.cpus if cpu not in known]
        if not known or not lacking:
            continue
        made_up = facts.machine.virtual is True and level in ("ccx", "die")
        if made_up:
            del facts.parts[level]
            facts.provenance.pop(level, None)
        consequence = say("warnings", "partial", "made_up" if made_up else "unknown", others=len(known))
        facts.warn("partial", of=level, cpus=list_text(lacking), part=name, consequence=consequence)


def _note_crossing(facts: Facts, numa: Mapping[int, int]) -> None:
    """Say where NUMA nodes and sockets contradict each other, and which CPUs are in no node."""
    sockets = facts.parts.get("socket", {})
    nodes_of = {socket: {numa.get(cpu) for cpu in cpus} for socket, cpus in groups_of(sockets).items()}
    crossing = [
        node
        for node, cpus in sorted(groups_of(numa).items())
        if len({sockets.get(cpu) for cpu in cpus}) > 1
        and any(len(nodes_of[sockets[cpu]]) > 1 for cpu in cpus if cpu in sockets)
    ]
    if crossing:
        facts.warn("numa-contradicts-socket", nodes=", ".join(map(str, crossing)))
    without = [cpu for cpu in facts.cpus if cpu not in numa]
    if numa and without:
        facts.warn("numa-partial", cpus=list_text(without))


def _numa_of(facts: Facts) -> dict[int, int]:
    """The NUMA node of each CPU by the OS's number; a CPU in two (numa=fake) has the first."""
    numa: dict[int, int] = {}
    twice = False
    for node in facts.numa_nodes:
        twice |= any(cpu in numa for cpu in node.cpus)
        numa |= {cpu: node.node for cpu in node.cpus if cpu not in numa}
    if twice:
        facts.warn("numa-overlaps")
    return numa


def _nodes_per_socket(facts: Facts, numa: Mapping[int, int]) -> int | None:
    """NUMA nodes per socket; 0 where one node holds several sockets; None where nodes are no even partition."""
    sockets = facts.parts.get("socket", {})
    if not sockets or set(numa) != set(sockets):
        return None
    if len(set(numa.values())) == 1 and len(set(sockets.values())) > 1:
        return 0
    if any(len({sockets[c] for c in cpus}) > 1 for cpus in groups_of(numa).values()):
        return None
    counts = {len({numa[c] for c in cpus}) for cpus in groups_of(sockets).values()}
    return counts.pop() if len(counts) == 1 else None


def _numbers(facts: Facts, order: Order) -> dict[str, dict[int, int]]:
    """Sockets, CCDs, CCXs, clusters and cores numbered socket by socket in the order of the chip."""
    sockets = facts.parts.get("socket", {})
    parts = {
        "socket": sockets,
        **{name: facts.parts.get(name, {}) for name in ("ccd", "ccx", "cluster", "core")},
    }
    parts["cluster"] = _between(parts["cluster"], parts["ccx"] or sockets)
    place = {cpu: (sockets.get(cpu, -1), *order(cpu)) for cpu in facts.cpus}
    out: dict[str, dict[int, int]] = {}
    for name, parts_of in parts.items():
        groups = sorted(groups_of(parts_of).values(), key=lambda cpus: min(map(place.__getitem__, cpus)))
        out[name] = {cpu: number for number, cpus in enumerate(groups) for cpu in cpus}
        place = {cpu: (*(numbers.get(cpu, -1) for numbers in out.values()), *order(cpu)) for cpu in facts.cpus}
    return out


def _between(cluster: Mapping[int, int], above: Mapping[int, int]) -> dict[int, int]:
    """Clusters say something only where the level above has several."""
    return dict(cluster) if len(set(cluster.values())) > len(set(above.values())) else {}


def _places(
    labels: Mapping[str, Mapping[int, int]], cpus: tuple[int, ...], order: Order
) -> tuple[dict[int, int], dict[int, int]]:
    """Each CPU's position in its core, and its core's position in the CCX, both by APIC id from 0."""
    threads: dict[int, int] = {}
    for members in groups_of(labels["core"]).values():
        threads |= {cpu: place for place, cpu in enumerate(sorted(members, key=order))}
    ranks: dict[int, int] = {}
    core = labels["core"]
    for members in groups_of(labels["ccx"]).values():
        inside = sorted({core[c] for c in members if c in core})
        ranks |= {c: inside.index(core[c]) for c in members if c in core}
    return threads, ranks


def _note_missing(facts: Facts) -> None:
    if "ccx" not in facts.parts and not any(w.id in ("ccx-contradicts-socket", "ccx-partial") for w in facts.warnings):
        facts.warn("no-l3")
    memory_only = [node.node for node in facts.numa_nodes if not node.cpus]
    if memory_only:
        facts.warn("numa-without-cpus", nodes=", ".join(map(str, memory_only)))


def _provenance(facts: Facts, cpus: tuple[Cpu, ...]) -> dict[str, Provenance]:
    """The source of each label; `unknown` if no CPU has it."""
    provenance: dict[str, Provenance] = dict(facts.provenance)
    provenance.setdefault("thread", provenance.get("core", "unknown"))
    provenance.setdefault("rank", provenance.get("apicid", provenance.get("ccx", "unknown")))
    if facts.numa_nodes:
        provenance.setdefault("numa", "sysfs")
    return {
        name: provenance.get(name, "unknown") if any(getattr(c, name) is not None for c in cpus) else "unknown"
        for name in _LABELS
    }
