"""What a simulated node's memory, caches, clock and jitter are: cells as the kernels write them.

Base figures are those of a two-socket EPYC: DRAM 95 ns (other socket 200), 150 GB/s a NUMA node (the link to another
socket carries 70), 3.4 GHz, caches of 4, 14 and 46 cycles. Each node's memory, links and cores are drawn by its
seed, and runs apart from each other, as for pairs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from nodeprint.data.places.layout import CCD, SOCKET, Ints, codes
from nodeprint.data.places.quantity import Key, models
from nodeprint.machine.topology.model import Topology
from nodeprint.settings.measurements import measurements
from nodeprint.simulate import system_cells
from nodeprint.simulate.defects import MemoryPath, NodeDefects
from nodeprint.simulate.silicon import Chip, Paths
from nodeprint.simulate.silicon import latency as latency_of
from nodeprint.simulate.survey import FINGERPRINT, memory_modules

Floats = npt.NDArray[np.float64]

#: DRAM latency by distance: a part in the core's clock, a part of the fabric and memory.
_CORE_NS, _DRAM_NS = 12.0, {"own": 83.0, "near": 98.0, "far": 188.0}
_RATE, _LINK_RATE = {"load": 150e9, "store_mem": 75e9, "copy": 110e9, "triad": 115e9}, 70e9
#: What base pages leave of a rate: address translations that huge pages do not need.
_PAGES = {"huge": 1.0, "base": 0.9}
#: A CCD's port: 32 and 16 bytes in a cycle of a fabric of 1.467 GHz; what a CCX draws where it shares one; what is left
#: of it from another socket and from all memory.
_PORT = {"load": 46.9e9, "store_mem": 23.5e9}
_SHARING_CCX, _FROM = 0.85, {"own": 1.0, "other_socket": 0.8, "all": 0.9}
#: A hop out of a CCX beside the traffic of another: an idle fabric is a little slower than one at work, and on a full
#: one a hop waits.
_BESIDE = {"idle": 1.0, "light": 0.985, "full": 1.12}
_HZ = 3.4e9
_CYCLES = {"l1": 4.0, "l2": 14.0, "l3": 46.0}
#: Relative standard deviations: between nodes' memories and links, between cores, of a run, of a cell in a run, of a
#: pass of it. The system takes 0.02 % of a CPU's time, on the first core five times as much.
_MEMORY, _CORE, _RUN, _CELL, _PASS = 0.004, 0.0003, 0.003, 0.005, 0.006
#: By how much a node's clock is below the fastest, on average: clocks of a fleet have a tail downwards.
_SLOWER = 0.0005
#: Of a clock probe: between runs, between probes of a run.
_CLOCK_RUN, _PROBE = 0.001, 0.003
#: Operations in a cycle by vectors of 256 bits in two units; what all cores at work leave of a core's clock at first
#: and when the node is hot; standard deviation between processors.
_FLOPS_A_CYCLE, _PHASES = 16.0, {"ramp": 0.97, "first": 0.93, "steady": 0.9}
_PROCESSOR, _LOAD_CELL = 0.015, 0.3
_LOST, _LOST_SD, _FIRST_CORE, _BUSY = 2e-4, 0.6, 5.0, 0.45

#: What `draw` gives: measurements that share one model of the chip (a slow clock shows in all of them), and so are no
#: single value of their kernels' measurements.yaml as others are.
MEASUREMENTS = (
    "chase-latency",
    "chase-levels",
    "jitter-detours",
    "clock-together",
    "bandwidth-nodes",
    "bandwidth-ccx",
    "bandwidth-machine",
    "load-alone",
    "load-ladder",
    "load-together",
    "coherence-loaded",
    *system_cells.MEASUREMENTS,
)


@dataclass(frozen=True)
class DrawnRun:
    """One run of one measurement: `coordinates` by dimension, `values` (pass, a dimension each) with their units."""

    measurement: str
    coordinates: Mapping[str, list[Key]]
    values: Mapping[str, tuple[str, Floats]]

    @property
    def identity(self) -> dict[str, str]:
        """Its kernel, operation, quantity and unit, as the header of its records has them."""
        of = measurements()[self.measurement]
        return {"kernel": of.kernel, "operation": of.operation, "quantity": of.quantity, "unit": of.unit}

    @property
    def declared(self) -> dict[str, Any]:
        """Its dimensions and units, as the header of its records declares them."""
        return {"dims": list(self.coordinates), "values": {key: unit for key, (unit, _) in self.values.items()}}


def core_hz(chip: Chip, seeds: Sequence[int]) -> Floats:
    """The clock of each core of a node in Hz (core); `seeds` begin with those of the campaign and the node."""
    silicon = np.random.default_rng([*seeds[:2], 0, 8])
    cores = _CORE * silicon.standard_normal(len(chip.core_clock))
    return np.asarray(_HZ * chip.core_clock * (1 + cores - _SLOWER * silicon.exponential()))


def probed_ghz(chip: Chip, cores: Ints, seeds: Sequence[int]) -> Floats:
    """What the clock probes just before pairs see of their `cores`, in GHz (as `cores`); `seeds` as of `draw`."""
    rng = np.random.default_rng([*seeds, 8])
    run = 1 + _CLOCK_RUN * rng.standard_normal()
    return np.asarray(core_hz(chip, seeds)[cores] / 1e9 * run * (1 + _PROBE * rng.standard_normal(cores.shape)))


def draw(  # noqa: PLR0915 (a measurement after the other)
    topology: Topology,
    cpus: list[int],
    path: Paths,
    chip: Chip,
    state: NodeDefects,
    *,
    seeds: tuple[int, int, int, int],
    passes: int,
) -> list[DrawnRun]:
    """One run's cells; `cpus` are OS numbers by slot, `seeds` those of the campaign, node, job and run.

    A disturbance of one run is planted in the first job.
    """
    silicon = np.random.default_rng([*seeds[:2], 0, 7])
    rng = np.random.default_rng([*seeds, 7])
    core_of = codes(path.layout.slots[:, :5])
    members = [[cpus[slot] for slot in np.flatnonzero(core_of == core)] for core in range(path.n_cores)]
    first = [min(core_cpus) for core_cpus in members]
    nodes = [n for n in topology.numa_nodes if n.cpus] or []
    numbers = [n.node for n in nodes] or [0]
    home = {cpu: n.node for n in nodes for cpu in n.cpus}
    socket = {cpu.cpu: cpu.socket for cpu in topology.cpus}
    of_node = {n.node: socket.get(n.cpus[0]) for n in nodes}

    def factor(sd: float, size: int | tuple[int, ...]) -> Floats:
        return np.asarray(1 + sd * silicon.standard_normal(size))

    memory = factor(_MEMORY, len(numbers))
    link = factor(_MEMORY, (len(numbers), len(numbers)))
    hertz = core_hz(chip, seeds)
    clock = hertz / _HZ
    ccx = chip.ccx[path.ccx_of_core]
    busy = np.ones(path.n_cores)
    lost = _LOST * np.exp(_LOST_SD * rng.standard_normal((passes, path.n_cores)))
    lost[:, 0] *= _FIRST_CORE
    for disturbance in state.disturbances:
        if disturbance.run in (0, seeds[3]) and (disturbance.run == 0 or seeds[2] == 1):
            busy[disturbance.core] = 1 + (disturbance.by - 1) * disturbance.rate
            if disturbance.busy:
                lost[:, disturbance.core] = _BUSY * rng.uniform(0.9, 1.1, passes)

    def seen(truth: Floats, noise: float = 1.0, run: float = 1.0) -> Floats:
        """Passes of a run over true cells: the run's own shift, what stays in it, and each pass's noise."""
        tails = rng.standard_t(4, (passes, *truth.shape)) / np.sqrt(2)
        stays = 1 + run * _RUN * rng.standard_normal() + noise * _CELL * rng.standard_normal(truth.shape)
        return np.asarray(truth * stays * (1 + noise * _PASS * tails))

    def distance(a: int, b: int) -> str:
        return "own" if a == b else "near" if of_node.get(a) == of_node.get(b) else "far"

    of_core = [numbers.index(home.get(cpu, numbers[0])) for cpu in first]
    dram = np.array([[_DRAM_NS[distance(numbers[c], m)] for m in numbers] for c in of_core])
    longer = _memory_paths(state.memory_path, topology, first, numbers)
    latency = (_CORE_NS / clock * busy)[:, None] + dram * link[of_core] / memory * chip.fabric
    latency = latency * longer
    levels = np.stack([cycles / _HZ * 1e9 / clock * busy for cycles in _CYCLES.values()], axis=1)
    levels[:, 2] = (0.4 / clock + 0.6 * ccx) * _CYCLES["l3"] / _HZ * 1e9 * busy
    modules = memory_modules(topology, {**FINGERPRINT, **state.fingerprint})
    configured = modules.bytes_per_s / modules.most_bytes_per_s if modules else 1.0
    channels = configured * np.array([state.memory_channel.get(number, 1.0) for number in numbers])
    rates = np.array(
        [
            [
                [
                    rate * memory[m] * channels[m]
                    if c == m
                    else min(_LINK_RATE * link[c, m], rate * memory[m] * channels[m])
                    for rate in _RATE.values()
                ]
                for m in range(len(numbers))
            ]
            for c in range(len(numbers))
        ]
    )
    hz = seen(hertz, 0.1, run=0.1)[:1]  # a median over a second's windows
    chase = seen(latency * chip.whole)
    caches = seen(levels * chip.whole)
    rate = seen(rates / chip.whole)[:1]
    ports = seen(_ports(path, chip, first, len(numbers)), 0.3)[:1, ..., None]
    own_rates = np.diagonal(rates).T / chip.whole
    machine = seen(_machine(own_rates, [of_node.get(number) for number in numbers]), 0.3)
    beside = _hops_beside(path, latency_of(path, chip), home_of_core=of_core)
    hops = seen(np.array([[[list(hop.values())] for hop in beside.values()]]))
    drawn = np.array([0.0, 5e9, _PORT["load"]]) / (chip.port * chip.fabric).mean()
    injectors = np.array([0.0, 1.0, float(np.bincount(path.ccx_of_core)[-1])])
    cores: list[Key] = list(first)
    memories: list[Key] = list(numbers)
    streams: list[Key] = list(_RATE)
    return [
        DrawnRun(
            "chase-latency",
            {"cpu": cores, "memory_node": memories},
            {**_statistics(chase), "core_hz": ("Hz", np.broadcast_to(hertz[None, :, None], chase.shape))},
        ),
        DrawnRun(
            "chase-levels",
            {"cpu": cores, "level": list(_CYCLES)},
            {**_statistics(caches), "core_hz": ("Hz", np.broadcast_to(hertz[None, :, None], caches.shape))},
        ),
        DrawnRun(
            "jitter-detours",
            {"cpu": cores},
            {
                "detours": ("1", np.round(lost[:1] * 1e5)),
                "share": ("1", lost[:1]),
                "longest_ns": ("ns", lost[:1] * 1e8),
            },
        ),
        DrawnRun(
            "clock-together",
            {"cpu": cores},
            {
                "core_hz": ("Hz", hz),
                "ci_low_hz": ("Hz", hz * 0.9995),
                "ci_high_hz": ("Hz", hz * 1.0005),
                "start_hz": ("Hz", hz),
                "end_hz": ("Hz", hz),
                "mean_hz": ("Hz", hz * (1 - lost[:1])),
            },
        ),
        DrawnRun(
            "bandwidth-nodes",
            {"cpu_node": memories, "memory_node": memories, "stream": streams, "pages": ["huge"]},
            {"rate_bytes_per_s": ("B/s", rate[..., None])},
        ),
        DrawnRun(
            "bandwidth-ccx",
            {
                "cpu": [first[core] for core in _first_of_ccx(path)],
                "scope": ["ccx", "ccd"],
                "memory": list(_FROM),
                "stream": list(_PORT),
                "pages": ["huge"],
            },
            {"rate_bytes_per_s": ("B/s", ports)},
        ),
        DrawnRun(
            "bandwidth-machine",
            {
                "cpu": _first_of_socket(path, first),
                "scope": ["socket", "machine"],
                "stream": streams,
                "pages": list(_PAGES),
            },
            {"rate_bytes_per_s": ("B/s", machine)},
        ),
        *_loads(path, first, hertz, _under_load(path.layout.slots[path.core_slots, SOCKET], state, silicon), seen),
        DrawnRun(
            "coherence-loaded",
            {
                "a": cores[:1],
                "b": [first[core] for core in beside],
                "home": [numbers[of_core[0]]],
                "load": list(_BESIDE),
            },
            {
                **_statistics(hops),
                "rate_bytes_per_s": ("B/s", np.broadcast_to(drawn, hops.shape)),
                "injectors": ("1", np.broadcast_to(injectors, hops.shape)),
            },
        ),
        *_of_the_system(
            system_cells.Cores(
                first, np.array(of_core), path.ccx_of_core, path.layout.slots[path.core_slots, SOCKET], clock
            ),
            np.take_along_axis(latency, np.array(of_core)[:, None], axis=1)[:, 0],
            float(np.mean(chip.fabric)),
            numbers,
            state,
            seeds=seeds,
            passes=passes,
        ),
    ]


def _of_the_system(
    cores: system_cells.Cores,
    own_latency_ns: Floats,
    fabric: float,
    memories: Sequence[int],
    state: NodeDefects,
    *,
    seeds: tuple[int, int, int, int],
    passes: int,
) -> list[DrawnRun]:
    """Pages, faults, wake-ups and barriers, as of `system_cells.draw`."""
    drawn = system_cells.draw(cores, own_latency_ns, fabric, memories, state, seeds=seeds, passes=passes)
    out = []
    for cells in drawn:
        unit, key = measurements()[cells.measurement].unit, models()[cells.measurement].value
        values = _statistics(cells.values) if key == "latency_ns" else {key: (unit, cells.values)}
        out.append(DrawnRun(cells.measurement, cells.coordinates, values))
    return out


def _memory_paths(
    paths_of: Sequence[MemoryPath], topology: Topology, cpus: Sequence[int], memories: Sequence[int]
) -> Floats:
    """By which factor the way of each of the `cpus` to the memory of each NUMA node takes longer (cpu, memory)."""
    factor = np.ones((len(cpus), len(memories)))
    by_number = {cpu.cpu: cpu for cpu in topology.cpus}
    for memory_path in paths_of:
        level = "numa" if memory_path.level == "node" else memory_path.level
        of_part = [getattr(by_number[cpu], level) == memory_path.number for cpu in cpus]
        factor[np.ix_(of_part, [number == memory_path.memory for number in memories])] *= memory_path.by
    return factor


def _under_load(socket_of_core: Ints, state: NodeDefects, silicon: np.random.Generator) -> Floats:
    """What of a core's clock is left with all cores at work: (core, phase)."""
    sockets = int(socket_of_core.max()) + 1
    processor = 1 + _PROCESSOR * silicon.standard_normal(sockets)
    limit = np.array([state.power_limit.get(socket, 1.0) for socket in range(sockets)])
    cooling = np.array([state.cooling.get(socket, 1.0) for socket in range(sockets)])
    phases = np.outer(processor * limit, list(_PHASES.values()))
    phases[:, -1] *= cooling
    return np.asarray(phases[socket_of_core])


def _loads(
    path: Paths, first: Sequence[int], hertz: Floats, clock_share: Floats, seen: Callable[[Floats, float], Floats]
) -> list[DrawnRun]:
    """Each core alone, by the number of cores, and all together; `clock_share` is what is left of the clocks `hertz`
    (core) when all are at work (core, phase)."""
    socket_of_core = path.layout.slots[path.core_slots, SOCKET]
    cores: list[Key] = list(first)
    steps = _steps(int(np.bincount(socket_of_core).max()))
    alone = seen(hertz, _LOAD_CELL)[:1]
    together = seen(hertz[:, None] * clock_share, _LOAD_CELL)[:1]
    ladder = seen(_ladder(hertz, clock_share[:, 1], socket_of_core, steps), _LOAD_CELL)[:1]
    return [
        DrawnRun(
            "load-alone", {"cpu": cores}, {"flops_per_s": ("1/s", alone * _FLOPS_A_CYCLE), "core_hz": ("Hz", alone)}
        ),
        DrawnRun(
            "load-ladder",
            {"cpu": _first_of_socket(path, first), "scope": ["socket"], "cores": steps, "work": ["scalar", "vector"]},
            {"core_hz": ("Hz", ladder)},
        ),
        DrawnRun(
            "load-together",
            {"cpu": cores, "phase": list(_PHASES)},
            {"flops_per_s": ("1/s", together * _FLOPS_A_CYCLE), "core_hz": ("Hz", together)},
        ),
    ]


def _steps(cores: int) -> list[Key]:
    """How many cores are at work: the powers of two, and all."""
    return [count for count in range(1, cores + 1) if count == cores or count & (count - 1) == 0]


def _ladder(hertz: Floats, clock_share: Floats, socket_of_core: Ints, steps: Sequence[Key]) -> Floats:
    """The clock of each socket by the cores at work: (socket, scope, step, work); half of what all cost by scalars.

    `clock_share` is what is left of a core's clock (core) when all are at work.
    """
    sockets = np.unique(socket_of_core)
    out = np.empty((len(sockets), 1, len(steps), 2))
    for row, socket in enumerate(sockets):
        members = socket_of_core == socket
        clock, loss = float(hertz[members].mean()), 1 - float(clock_share[members].mean())
        for column, count in enumerate(steps):
            share = (int(count) - 1) / max(int(members.sum()) - 1, 1)
            out[row, 0, column] = [clock * (1 - loss * share / 2), clock * (1 - loss * share)]
    return out


def _hops_beside(path: Paths, hop_ns: Floats, home_of_core: Sequence[int]) -> dict[int, dict[str, float]]:
    """Of the first core and one other of each distance: the hop in ns by load, by that other core."""
    out: dict[int, dict[str, float]] = {}
    met = set()
    partners = np.where(path.core_a == 0, path.core_b, path.core_a)
    for pair in np.flatnonzero(((path.core_a == 0) | (path.core_b == 0)) & ~path.in_core):
        partner = int(partners[pair])
        kind = (bool(path.in_ccx[pair]), bool(path.cross[pair]), home_of_core[partner] == home_of_core[0])
        if kind not in met:
            met.add(kind)
            out[partner] = {
                load: float(hop_ns[pair]) * (1.0 if path.in_ccx[pair] else factor) for load, factor in _BESIDE.items()
            }
    return out


def _first_of_ccx(path: Paths) -> list[int]:
    """The first core of each CCX."""
    return [int(core) for core in np.unique(path.ccx_of_core, return_index=True)[1]]


def _first_of_socket(path: Paths, first: Sequence[int]) -> list[Key]:
    """The first core of each socket, by its CPU."""
    sockets = path.layout.slots[path.core_slots, SOCKET]
    return [first[int(core)] for core in np.unique(sockets, return_index=True)[1]]


def _machine(own_rates: Floats, socket_of_node: Sequence[int | None]) -> Floats:
    """What all cores draw from their own memory: (socket, scope, stream, pages) of `own_rates` (NUMA node, stream).

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


def _ports(path: Paths, chip: Chip, first: Sequence[int], memories: int) -> Floats:
    """What each CCX draws, and each CCD of several: (CCX, scope, memory, stream).

    NaN where there is no such memory, and for a CCD at other CCXs than its first.
    """
    slots = path.layout.slots[path.core_slots]
    cores = _first_of_ccx(path)
    ccd = [tuple(slots[core, : CCD + 1].tolist()) for core in cores]
    slow = chip.port * chip.fabric
    out = np.full((len(cores), 2, len(_FROM), len(_PORT)), np.nan)
    port_rates = np.outer(list(_FROM.values()), list(_PORT.values()))
    port_rates[1:] = port_rates[1:] / chip.socket_link if memories > 1 else np.nan
    for number, die in enumerate(ccd):
        members = [index for index, its in enumerate(ccd) if its == die and min(its) >= 0] or [number]
        share = _SHARING_CCX if len(members) > 1 else 1.0
        out[number, 0] = port_rates * share / slow[number]
        if len(members) > 1 and members[0] == number:
            out[number, 1] = port_rates / slow[members].mean()
    return out


def _statistics(value: Floats) -> dict[str, tuple[str, Floats]]:
    """A chase's values around its latency."""
    shares = {
        "latency_ns": 1.0,
        "ci_low_ns": 0.997,
        "ci_high_ns": 1.003,
        "min_ns": 0.97,
        "median_ns": 1.0,
        "p99_ns": 1.1,
    }
    return {key: ("ns", value * share) for key, share in shares.items()}
