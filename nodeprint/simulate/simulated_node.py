"""A simulated node and one run of it: the source of all its measurements.

Each node's memory, links and cores are drawn by its seed, and runs apart from each other, as for pairs.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from nodeprint.data.places.layout import SOCKET, Ints, Layout, codes
from nodeprint.machine.topology.model import Topology
from nodeprint.simulate.defects import NodeDefects
from nodeprint.simulate.silicon import Chip, CoreDisturbance, Paths

Floats = npt.NDArray[np.float64]

#: The clock of a core.
HZ = 3.4e9
#: Relative standard deviations: between nodes' memories and links, between cores, between busy processors.
_MEMORY, _CORE, _PROCESSOR = 0.004, 0.0003, 0.015
#: By how much a node's clock is below the fastest, on average: clocks of a fleet have a tail downwards.
_SLOWER = 0.0005
#: Standard deviations of a clock probe: between runs, between probes of a run.
_CLOCK_RUN, _PROBE = 0.001, 0.003


@dataclass(frozen=True)
class NodePlan:
    """A simulated node: its machine, OS numbers by slot, the latency of each home (pair), and its chip and defects."""

    name: str
    topology: Topology
    layout: Layout
    cpus: list[int]
    cores: tuple[int, ...]
    truth: list[Floats]
    path: Paths
    chip: Chip
    state: NodeDefects


@dataclass(frozen=True)
class NodeRun:
    """A run of a node: the `seeds` of the campaign, node, job and run, and the `passes` over every place.

    Cores are in the order of the layout, NUMA nodes in that of the topology.
    """

    node: NodePlan
    seeds: tuple[int, int, int, int]
    passes: int

    @cached_property
    def cpu_of_core(self) -> list[int]:
        """The first CPU of each core."""
        path, cpus = self.node.path, self.node.cpus
        core_of = codes(path.layout.slots[:, :5])
        return [min(cpus[slot] for slot in np.flatnonzero(core_of == core)) for core in range(path.n_cores)]

    @cached_property
    def memories(self) -> list[int]:
        """The number of each NUMA node that has CPUs."""
        return [numa.node for numa in self.node.topology.numa_nodes if numa.cpus] or [0]

    @cached_property
    def socket_of_memory(self) -> list[int | None]:
        """The socket of each NUMA node; None where it is not known."""
        socket = {cpu.cpu: cpu.socket for cpu in self.node.topology.cpus}
        numas = [numa for numa in self.node.topology.numa_nodes if numa.cpus]
        return [socket.get(numa.cpus[0]) for numa in numas] or [None]

    @cached_property
    def memory_of_core(self) -> Ints:
        """The place of each core's own NUMA node in `memories`."""
        home = {cpu: numa.node for numa in self.node.topology.numa_nodes for cpu in numa.cpus}
        return np.array([self.memories.index(home.get(cpu, self.memories[0])) for cpu in self.cpu_of_core])

    @cached_property
    def socket_of_core(self) -> Ints:
        """The socket of each core by number."""
        path = self.node.path
        return np.asarray(path.layout.slots[path.core_slots, SOCKET])

    @cached_property
    def _silicon(self) -> list[Floats]:
        """Standard draws by the node's seed for its memories, the links between them, and its processors."""
        rng = np.random.default_rng([*self.seeds[:2], 0, 7])
        memories, sockets = len(self.memories), int(self.socket_of_core.max()) + 1
        return [rng.standard_normal(size) for size in ((memories,), (memories, memories), (sockets,))]

    @property
    def memory_factor(self) -> Floats:
        """How fast the memory of each NUMA node is (1 is nominal)."""
        return np.asarray(1 + _MEMORY * self._silicon[0])

    @property
    def link_factor(self) -> Floats:
        """How fast the way between each two NUMA nodes is (1 is nominal)."""
        return np.asarray(1 + _MEMORY * self._silicon[1])

    @property
    def processor_factor(self) -> Floats:
        """How fast each socket's processor is under load (1 is nominal)."""
        return np.asarray(1 + _PROCESSOR * self._silicon[2])

    @cached_property
    def core_hz(self) -> Floats:
        """The clock of each core in Hz."""
        rng = np.random.default_rng([*self.seeds[:2], 0, 8])
        cores = _CORE * rng.standard_normal(len(self.node.chip.core_clock))
        return np.asarray(HZ * self.node.chip.core_clock * (1 + cores - _SLOWER * rng.exponential()))

    @property
    def clock(self) -> Floats:
        """The clock of each core as a share of the usual one."""
        return self.core_hz / HZ

    @cached_property
    def busy(self) -> Floats:
        """The factor on a core's time by its disturbances in this run; those of one run are injected in the first
        job."""
        out = np.ones(self.node.path.n_cores)
        for disturbance in self.disturbances:
            out[disturbance.core] = 1 + (disturbance.by - 1) * disturbance.rate
        return out

    @property
    def disturbances(self) -> list[CoreDisturbance]:
        """The disturbances of this run."""
        _, _, job, run = self.seeds
        return [d for d in self.node.state.disturbances if d.run == 0 or (d.run == run and job == 1)]

    def probed_ghz(self, cores: Ints) -> Floats:
        """The clocks that the probes just before pairs read on their `cores`, in GHz (as `cores`)."""
        rng = np.random.default_rng([*self.seeds, 8])
        of_run = 1 + _CLOCK_RUN * rng.standard_normal()
        return np.asarray(self.core_hz[cores] / 1e9 * of_run * (1 + _PROBE * rng.standard_normal(cores.shape)))
