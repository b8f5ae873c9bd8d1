"""A simulated node under load: clocks with all cores busy, OS noise, and core-to-core latency with traffic.

A core's clock is 3.4 GHz alone. The fabric is slower for a transfer if another CCX fills it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from nodeprint.data.places.layout import Ints
from nodeprint.data.places.measured import Key
from nodeprint.machine.topology.processors import generation_of
from nodeprint.simulate.drawn_run import DrawnRun, Floats, Measure, statistics
from nodeprint.simulate.memory_cells import PORT, first_of_socket
from nodeprint.simulate.silicon import Paths
from nodeprint.simulate.silicon import latency as hop_latency
from nodeprint.simulate.simulated_node import NodeRun

#: Factor on latency out of a CCX by the traffic of another. An idle fabric is a little slower than a busy one; on a
#: full one a transfer waits.
_BESIDE = {"idle": 1.0, "light": 0.985, "full": 1.12}
#: Operations in a cycle by vectors of 256 bits in two units, if the processor's are unknown. Remaining share of a
#: core's clock with all cores busy, at first and on a hot node; noise of a cell.
_FLOPS_A_CYCLE, _PHASES = 16.0, {"ramp": 0.97, "first": 0.93, "steady": 0.9}
_LOAD_CELL = 0.3
#: The system takes 0.02% of a CPU's time, on the first core five times as much.
_LOST, _LOST_SD, _FIRST_CORE, _BUSY = 2e-4, 0.6, 5.0, 0.45


def lost_time(of: NodeRun, rng: np.random.Generator) -> Floats:
    """The share of its time that others take of each core: (pass, core)."""
    lost = _LOST * np.exp(_LOST_SD * rng.standard_normal((of.passes, of.node.path.n_cores)))
    lost[:, 0] *= _FIRST_CORE
    for disturbance in of.disturbances:
        if disturbance.busy:
            lost[:, disturbance.core] = _BUSY * rng.uniform(0.9, 1.1, of.passes)
    return np.asarray(lost)


def jitter(of: NodeRun, lost: Floats) -> DrawnRun:
    """Detours of each core, of which `lost` is (pass, core)."""
    values = {
        "detours": ("1", np.round(lost[:1] * 1e5)),
        "share": ("1", lost[:1]),
        "longest_ns": ("ns", lost[:1] * 1e8),
    }
    return DrawnRun("jitter-detours", {"cpu": list(of.cpu_of_core)}, values)


def clocks(of: NodeRun, lost: Floats, measure: Measure) -> DrawnRun:
    """The clock of each core; `lost` is the share of OS noise (pass, core)."""
    hz = measure(of.core_hz, 0.1, run=0.1)[:1]  # a median over a second's windows
    values = {
        "core_hz": hz,
        "ci_low_hz": hz * 0.9995,
        "ci_high_hz": hz * 1.0005,
        "start_hz": hz,
        "end_hz": hz,
        "mean_hz": hz * (1 - lost[:1]),
    }
    cores: list[Key] = list(of.cpu_of_core)
    return DrawnRun("clock-together", {"cpu": cores}, {key: ("Hz", value) for key, value in values.items()})


def loads(of: NodeRun, measure: Measure) -> list[DrawnRun]:
    """Each core alone, by the number of cores, and all together."""
    hertz, clock_share = of.core_hz, _under_load(of)
    cores: list[Key] = list(of.cpu_of_core)
    sockets: list[Key] = [of.cpu_of_core[core] for core in first_of_socket(of)]
    steps = _steps(int(np.bincount(of.socket_of_core).max()))
    alone = measure(hertz, _LOAD_CELL)[:1]
    together = measure(hertz[:, None] * clock_share, _LOAD_CELL)[:1]
    ladder = measure(_ladder(hertz, clock_share[:, 1], of.socket_of_core, steps), _LOAD_CELL)[:1]

    generation = generation_of(of.node.topology.machine)
    flops = (generation.flops_per_cycle if generation is not None else 0) or _FLOPS_A_CYCLE

    def at_work(clock: Floats) -> dict[str, tuple[str, Floats]]:
        return {"flops_per_s": ("1/s", clock * flops), "core_hz": ("Hz", clock)}

    return [
        DrawnRun("load-alone", {"cpu": cores}, at_work(alone)),
        DrawnRun(
            "load-ladder",
            {"cpu": sockets, "scope": ["socket"], "cores": steps, "work": ["scalar", "vector"]},
            {"core_hz": ("Hz", ladder)},
        ),
        DrawnRun("load-together", {"cpu": cores, "phase": list(_PHASES)}, at_work(together)),
    ]


def hops_beside_load(of: NodeRun, measure: Measure) -> DrawnRun:
    """Core-to-core latency of the first core during traffic of another CCX."""
    path, chip = of.node.path, of.node.chip
    beside = _hops_beside(path, hop_latency(path, chip), of.memory_of_core)
    hops = measure(np.array([[[list(hop.values())] for hop in beside.values()]]))
    drawn = np.array([0.0, 5e9, PORT["load"]]) / (chip.port * chip.fabric).mean()
    injectors = np.array([0.0, 1.0, float(np.bincount(path.ccx_of_core)[-1])])
    return DrawnRun(
        "coherence-loaded",
        {
            "a": [of.cpu_of_core[0]],
            "b": [of.cpu_of_core[core] for core in beside],
            "home": [of.memories[of.memory_of_core[0]]],
            "load": list(_BESIDE),
        },
        {
            **statistics(hops),
            "rate_bytes_per_s": ("B/s", np.broadcast_to(drawn, hops.shape)),
            "injectors": ("1", np.broadcast_to(injectors, hops.shape)),
        },
    )


def _under_load(of: NodeRun) -> Floats:
    """The remaining share of a core's clock when all cores are busy: (core, phase)."""
    state, processor = of.node.state, of.processor_factor
    limit = np.array([state.power_limit.get(socket, 1.0) for socket in range(len(processor))])
    cooling = np.array([state.cooling.get(socket, 1.0) for socket in range(len(processor))])
    phases = np.outer(processor * limit, list(_PHASES.values()))
    phases[:, -1] *= cooling
    return np.asarray(phases[of.socket_of_core])


def _steps(cores: int) -> list[Key]:
    """The numbers of busy cores: the powers of two, and all."""
    return [count for count in range(1, cores + 1) if count == cores or count & (count - 1) == 0]


def _ladder(hertz: Floats, clock_share: Floats, socket_of_core: Ints, steps: Sequence[Key]) -> Floats:
    """The clock of each socket by the number of busy cores (socket, scope, step, work); scalar work costs half as much.

    `clock_share` (core) is the remaining share of a core's clock when all are busy.
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


def _hops_beside(path: Paths, hop_ns: Floats, home_of_core: Ints) -> dict[int, dict[str, float]]:
    """Core-to-core latency in ns from the first core to one other of each distance, by that core and load."""
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
