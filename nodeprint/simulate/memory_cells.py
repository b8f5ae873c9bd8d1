"""Memory and caches of a simulated node: latencies and rates.

Base values are those of a two-socket EPYC. DRAM takes 95 ns (other socket 200), caches 4, 14 and 46 cycles. A socket
with eight channels of DDR4-3200 has 150 GB/s, and others the same share of their theoretical peak. The link to another
socket has 70 GB/s.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from nodeprint.data.places.layout import CCD, CCX, Ints, codes
from nodeprint.data.places.measured import Key
from nodeprint.machine.topology.model import Topology
from nodeprint.simulate.drawn_run import DrawnRun, Floats, Measure, statistics
from nodeprint.simulate.silicon import Chip, Paths
from nodeprint.simulate.simulated_node import HZ, NodeRun
from nodeprint.simulate.survey import FINGERPRINT, memory_modules

#: DRAM latency by distance: a part in the core's clock, a part of the fabric and memory.
_CORE_NS, _DRAM_NS = 12.0, {"own": 83.0, "near": 98.0, "far": 188.0}
_RATE, _LINK_RATE = {"load": 150e9, "store_mem": 75e9, "copy": 110e9, "triad": 115e9}, 70e9
#: The theoretical peak of the memory that has these rates.
_PEAK = 204.8e9
#: What base pages leave of a rate: address translations that huge pages do not need.
_PAGES = {"huge": 1.0, "base": 0.9}
#: A CCD's port: 32 and 16 bytes in a cycle of a fabric of 1.467 GHz. Factors for a CCX that shares one, and for
#: traffic from another socket and from all memory.
PORT = {"load": 46.9e9, "store_mem": 23.5e9}
_SHARING_CCX, _FROM = 0.85, {"own": 1.0, "other_socket": 0.8, "all": 0.9}
#: By the read:write ratio of the ladder, the share of reads, and the bandwidth of such memory: its channels lose time
#: between reads and writes. A core alone has so much of its port.
_LADDER = {
    "load": (1.0, 150e9),
    "read3_write1": (3 / 4, 142e9),
    "read2_write1": (2 / 3, 139e9),
    "read1_write1": (1 / 2, 134e9),
    "store_mem": (0.0, 75e9),
}
_ONE_CORE = 0.6
_CYCLES = {"l1": 4.0, "l2": 14.0, "l3": 46.0}


def chases(of: NodeRun, measure: Measure) -> list[DrawnRun]:
    """Latency of memory and of caches, by core."""
    whole = of.node.chip.whole
    memory = measure(latency(of) * whole)
    caches = measure(_cache_latency(of) * whole)
    cores: list[Key] = list(of.cpu_of_core)

    def with_clock(latency_ns: Floats) -> dict[str, tuple[str, Floats]]:
        hertz = np.broadcast_to(of.core_hz[None, :, None], latency_ns.shape)
        return {**statistics(latency_ns), "core_hz": ("Hz", hertz)}

    return [
        DrawnRun("chase-latency", {"cpu": cores, "memory_node": list(of.memories)}, with_clock(memory)),
        DrawnRun("chase-levels", {"cpu": cores, "level": list(_CYCLES)}, with_clock(caches)),
    ]


def bandwidths(of: NodeRun, measure: Measure) -> list[DrawnRun]:
    """Rates between NUMA nodes, of each CCX, and of all cores."""
    path, chip, cpus = of.node.path, of.node.chip, of.cpu_of_core
    rates = _rates(of) / chip.whole
    between = measure(rates)[:1]
    own = np.diagonal(rates).T
    of_ports = _ports(path, chip, len(of.memories))
    of_memory = own[of.memory_of_core[_first_of_ccx(path)]][:, None, [list(_RATE).index(stream) for stream in PORT]]
    of_ports[:, :, 0] = np.minimum(of_ports[:, :, 0], of_memory)
    ports = measure(of_ports, 0.3)[:1]
    machine = measure(_machine(own, of.socket_of_memory), 0.3)
    numbers: list[Key] = list(of.memories)
    streams: list[Key] = list(_RATE)
    places: list[dict[str, list[Key]]] = [
        {"cpu_node": numbers, "memory_node": numbers, "stream": streams, "pages": ["huge"]},
        {
            "cpu": [cpus[core] for core in _first_of_ccx(path)],
            "scope": ["ccx", "ccd"],
            "memory": list(_FROM),
            "stream": list(PORT),
            "pages": ["huge"],
        },
        {
            "cpu": [cpus[core] for core in first_of_socket(of)],
            "scope": ["socket", "machine"],
            "stream": streams,
            "pages": list(_PAGES),
        },
    ]
    values = {
        "bandwidth-nodes": between[..., None],
        "bandwidth-ccx": ports[..., None],
        "bandwidth-machine": machine,
    }
    return [
        DrawnRun(name, place, {"rate_bytes_per_s": ("B/s", rate)})
        for (name, rate), place in zip(values.items(), places, strict=True)
    ]


def ladder(of: NodeRun, measure: Measure) -> DrawnRun:
    """Rates by the read:write ratio: of a core and all of each CCD, of each NUMA node, and of the machine."""
    path, chip = of.node.path, of.node.chip
    slots = path.layout.slots[path.core_slots]
    fabric = 1 / (chip.port * chip.fabric)[path.ccx_of_core]
    port = np.broadcast_to(chip.port_rate, path.n_ccx)[path.ccx_of_core] * fabric
    mixed = np.array([_port_rate(reads) for reads, _ in _LADDER.values()])
    own = _own_rates(of, [rate for _, rate in _LADDER.values()])
    groups = {
        "ccd": codes(slots[:, : CCD + 1] if (slots[:, CCD] >= 0).all() else slots[:, : CCX + 1]),
        "numa": of.memory_of_core,
        "machine": np.zeros(path.n_cores, dtype=np.int64),
    }
    rates: dict[tuple[int, str], Floats] = {}
    for first in _firsts(groups["ccd"]):
        rates[first, "core"] = min(_ONE_CORE * fabric[first], port[first]) * mixed
    for number, (scope, group) in enumerate(groups.items()):
        wider = list(groups.values())[number + 1 :]
        for first in _firsts(group):
            members = group == group[first]
            if any(np.array_equal(members, other == other[first]) for other in wider):
                continue  # the same cores, by the wider name
            memory = own[np.unique(of.memory_of_core[members])].sum(axis=0)
            rates[first, scope] = port[members].mean() * mixed if scope == "ccd" else memory
    scopes = ["core", *groups]
    firsts = sorted({first for first, _ in rates})
    truth = np.full((len(firsts), len(scopes), len(_LADDER)), np.nan)
    for (first, scope), values in rates.items():
        truth[firsts.index(first), scopes.index(scope)] = values / chip.whole
    coordinates: dict[str, list[Key]] = {
        "cpu": [of.cpu_of_core[first] for first in firsts],
        "scope": list(scopes),
        "stream": list(_LADDER),
        "pages": ["huge"],
    }
    values = measure(truth, 0.3)[:1, ..., None]
    return DrawnRun("bandwidth-ladder", coordinates, {"rate_bytes_per_s": ("B/s", values)})


def _port_rate(reads: float) -> float:
    """The bandwidth of a CCD's port by the share of reads; a port reads and writes at once."""
    loads = PORT["load"] / reads if reads else np.inf
    stores = PORT["store_mem"] / (1 - reads) if reads < 1 else np.inf
    return float(min(loads, stores))


def _firsts(group: Ints) -> list[int]:
    """The first core of each group."""
    return [int(core) for core in np.unique(group, return_index=True)[1]]


def latency(of: NodeRun) -> Floats:
    """The latency of each NUMA node's memory in ns: (core, NUMA node)."""
    node = of.node
    sockets = of.socket_of_memory
    distances = [
        ["own" if a == b else "near" if sockets[a] == sockets[b] else "far" for b in range(len(sockets))]
        for a in range(len(sockets))
    ]
    dram = np.array([[_DRAM_NS[distance] for distance in row] for row in distances])[of.memory_of_core]
    own = (_CORE_NS / of.clock * of.busy)[:, None]
    out = own + dram * of.link_factor[of.memory_of_core] / of.memory_factor * node.chip.fabric
    return np.asarray(out * _longer_paths(node.state.memory_path, node.topology, of.cpu_of_core, of.memories))


def _cache_latency(of: NodeRun) -> Floats:
    """The latency of each level of caches in ns: (core, level)."""
    ccx = of.node.chip.ccx[of.node.path.ccx_of_core]
    levels = np.stack([cycles / HZ * 1e9 / of.clock * of.busy for cycles in _CYCLES.values()], axis=1)
    # an L3 runs in part in the clock of its CCX
    levels[:, 2] = (0.4 / of.clock + 0.6 * ccx) * _CYCLES["l3"] / HZ * 1e9 * of.busy
    return levels


def _rates(of: NodeRun) -> Floats:
    """Bandwidth of the cores of a NUMA node from the memory of another: (NUMA node, NUMA node, stream)."""
    memory = _own_rates(of, list(_RATE.values()))
    count = len(of.memories)
    out = np.minimum(_LINK_RATE * of.link_factor[:, :, None], memory[None])
    own = np.arange(count)
    out[own, own] = memory
    return np.asarray(out)


def _own_rates(of: NodeRun, rates: Sequence[float]) -> Floats:
    """Bandwidth of each NUMA node from its own memory, by the `rates` of memory of _PEAK: (NUMA node, stream)."""
    state = of.node.state
    modules = memory_modules(of.node.topology, {**FINGERPRINT, **state.fingerprint})
    configured = modules.bytes_per_s / len(of.memories) / _PEAK if modules else 1.0
    channels = configured * np.array([state.memory_channel.get(number, 1.0) for number in of.memories])
    return np.asarray(np.multiply.outer(of.memory_factor, rates) * channels[:, None])


def _longer_paths(
    factors: Mapping[tuple[str, int, int], float], topology: Topology, cpus: Sequence[int], memories: Sequence[int]
) -> Floats:
    """By which factor the way of each of the `cpus` to the memory of each NUMA node takes longer (cpu, memory)."""
    out = np.ones((len(cpus), len(memories)))
    by_number = {cpu.cpu: cpu for cpu in topology.cpus}
    for (level, number, memory), factor in factors.items():
        part = "numa" if level == "node" else level
        in_part = [getattr(by_number[cpu], part) == number for cpu in cpus]
        out[np.ix_(in_part, [of == memory for of in memories])] *= factor
    return out


def _first_of_ccx(path: Paths) -> list[int]:
    """The first core of each CCX."""
    return _firsts(path.ccx_of_core)


def first_of_socket(of: NodeRun) -> list[int]:
    """The first core of each socket."""
    return _firsts(of.socket_of_core)


def _machine(own_rates: Floats, socket_of_node: Sequence[int | None]) -> Floats:
    """Bandwidth of all cores from their own memory: (socket, scope, stream, pages) of `own_rates` (NUMA node, stream).

    NaN for the machine at other sockets than the first, and for the only socket, which is the machine.
    """
    sockets = sorted({socket or 0 for socket in socket_of_node})
    out = np.full((len(sockets), 2, own_rates.shape[1], len(_PAGES)), np.nan)
    pages = np.array(list(_PAGES.values()))
    for row, socket in enumerate(sockets):
        members = [number for number, its_socket in enumerate(socket_of_node) if (its_socket or 0) == socket]
        if len(sockets) > 1:
            out[row, 0] = own_rates[members].sum(axis=0)[:, None] * pages
    out[0, 1] = own_rates.sum(axis=0)[:, None] * pages
    return out


def _ports(path: Paths, chip: Chip, memories: int) -> Floats:
    """Bandwidth of each CCX, and of each CCD with several CCXs: (CCX, scope, memory, stream).

    NaN where there is no such memory, and for a CCD at other CCXs than its first.
    """
    slots = path.layout.slots[path.core_slots]
    cores = _first_of_ccx(path)
    ccd = [tuple(slots[core, : CCD + 1].tolist()) for core in cores]
    slow = chip.port * chip.fabric / chip.port_rate
    out = np.full((len(cores), 2, len(_FROM), len(PORT)), np.nan)
    port_rates = np.outer(list(_FROM.values()), list(PORT.values()))
    port_rates[1:] = port_rates[1:] / chip.socket_link if memories > 1 else np.nan
    for number, die in enumerate(ccd):
        members = [index for index, its in enumerate(ccd) if its == die and min(its) >= 0] or [number]
        share = _SHARING_CCX if len(members) > 1 else 1.0
        out[number, 0] = port_rates * share / slow[number]
        if len(members) > 1 and members[0] == number:
            out[number, 1] = port_rates / slow[members].mean()
    return out
