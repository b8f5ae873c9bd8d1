"""Topologies without a machine: a part by its name, and the machines of the simulator."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from nodeprint.errors import NodeprintError, printable
from nodeprint.machine.topology.facts import Facts
from nodeprint.machine.topology.label import label
from nodeprint.machine.topology.model import Machine, NumaNode, Provenance, Topology
from nodeprint.machine.topology.processors import Processor, part_named

#: SLIT distances as the firmware of EPYC and Xeon machines reports them: the node, its socket, another socket.
_DISTANCES = {"AuthenticAMD": (10, 12, 32), "GenuineIntel": (10, 11, 21)}


@dataclass(frozen=True, slots=True)
class Preset:
    """A machine by name: the part, sockets and SMT."""

    part: str
    sockets: int
    smt: bool = True


PRESETS: dict[str, Preset] = {
    "naples-2x32": Preset("EPYC 7601", 2),
    "rome-2x64": Preset("EPYC 7742", 2),
    "milan-2x64": Preset("EPYC 7763", 2),
    "genoa-2x96": Preset("EPYC 9654", 2),
    "turin-2x64": Preset("EPYC 9555", 2),
    "bergamo-2x128": Preset("EPYC 9754", 2),
    "icelake-2x40": Preset("Xeon Platinum 8380", 2),
    "graviton3-64": Preset("Graviton3", 1, smt=False),
}


def preset(name: str) -> Topology:
    """The topology of the preset `name`. Raises NodeprintError naming the presets where there is no such."""
    if name not in PRESETS:
        raise NodeprintError(f"{printable(name, 60)!r} is not a preset", advice=f"presets are {', '.join(PRESETS)}")
    entry = PRESETS[name]
    return from_part(entry.part, entry.sockets, entry.smt)


def from_part(name: str, sockets: int, smt: bool = True, *, nps: int = 1) -> Topology:
    """The topology of `sockets` processors called `name`, as Linux numbers their CPUs.

    Linux numbers the first threads of all cores socket by socket, and second threads after them all. `nps` is the NUMA
    nodes per socket: 1, or 4 on parts with every CCD in place. If the part's CPU order is not that of its APIC ids, the
    table's order applies. Labels have the provenance `table`. Raises NodeprintError for an unknown part, or impossible
    values.
    """
    part = part_named(name)
    if not 1 <= sockets <= 8:
        raise NodeprintError(f"{sockets} sockets are not supported", advice="give 1 to 8")
    generation = part.generation
    if nps not in (1, 4) or (nps == 4 and (part.ccds != generation.ccds or not generation.has_quadrants)):
        raise NodeprintError(f"{part.name} is not known with {nps} NUMA nodes per socket", advice="give 1")
    cores = [(socket, *place) for socket in range(sockets) for place in _cores(part)]
    facts = Facts(
        part.name,
        Machine(
            vendor=generation.vendor,
            family=generation.family,
            model=generation.models[0],
            name=_full_name(part),
            architecture="x86_64" if not generation.vendor.startswith("0x") else "aarch64",
            virtual=False,
        ),
        tuple(range(len(cores) * (2 if smt else 1))),
        parts={level: {} for level in ("socket", "ccx", "core")},
        provenance=dict.fromkeys(("socket", "ccx", "core", "apicid"), "table"),
        complete=True,
    )
    per_ccd = generation.ccx_per_ccd or 1
    strides = _strides(part)
    nodes: dict[int, list[int]] = {}
    for number, (socket, ccd, ccx, core) in enumerate(cores):
        for thread in range(2 if smt else 1):
            cpu = number + thread * len(cores)
            facts.parts["socket"][cpu] = socket
            facts.parts["ccx"][cpu] = (socket * part.ccds + ccd) * per_ccd + ccx
            facts.parts["core"][cpu] = number
            facts.apicids[cpu] = sum(
                place * stride for place, stride in zip((socket, ccd, ccx, core, thread), strides, strict=True)
            )
            inside = (generation.quadrant_order.index(generation.quadrant_of(ccd) or 0)) if nps == 4 else 0
            nodes.setdefault(socket * nps + inside, []).append(cpu)
    facts.numa_nodes = tuple(_nodes(nodes, nps, _DISTANCES.get(generation.vendor, (10, 20, 20))))
    facts.provenance["numa"] = "table"
    topology = label(facts)
    if generation.vendor.startswith("0x"):
        cpus = tuple(replace(cpu, apicid=None) for cpu in topology.cpus)
        return replace(topology, cpus=cpus, provenance={**topology.provenance, "apicid": "unknown"})
    return replace(topology, provenance=_of_table(topology))


def _of_table(topology: Topology) -> dict[str, Provenance]:
    return {name: "unknown" if source == "unknown" else "table" for name, source in topology.provenance.items()}


def _full_name(part: Processor) -> str:
    maker = {"AuthenticAMD": "AMD ", "GenuineIntel": "Intel "}.get(part.generation.vendor, "")
    return f"{maker}{part.name}"


def _cores(part: Processor) -> Iterator[tuple[int, int, int]]:
    """(CCD, CCX, core) of a socket in the order of CPU numbers."""
    generation = part.generation
    for ccd in sorted(
        range(part.ccds), key=lambda ccd: generation.quadrant_order.index(generation.quadrant_of(ccd) or 0)
    ):
        for ccx in range(generation.ccx_per_ccd or 1):
            for core in range(part.cores_per_ccx):
                yield ccd, ccx, core


def _strides(part: Processor) -> tuple[int, int, int, int, int]:
    """APIC id steps of a socket, CCD, CCX, core and thread: powers of two, as the processors lay them out."""
    full = part.generation.cores_per_ccx or part.cores_per_ccx
    ccx = 1 << (full * 2 - 1).bit_length()
    ccd = ccx * (part.generation.ccx_per_ccd or 1)
    return ccd * (1 << (part.ccds - 1).bit_length()), ccd, ccx, 2, 1


def _nodes(nodes: dict[int, list[int]], nps: int, distances: tuple[int, int, int]) -> Iterator[NumaNode]:
    here, near, far = distances
    for node, cpus in sorted(nodes.items()):
        row = tuple(here if to == node else near if to // nps == node // nps else far for to in sorted(nodes))
        yield NumaNode(node, tuple(sorted(cpus)), None, row)
