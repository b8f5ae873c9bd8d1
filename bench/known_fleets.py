"""Fleets whose truth is known, drawn from what was measured of real machines and judged in memory.

Silicon: the effects of cores, CCXs and pairs of published matrices are drawn for the CCXs of each node, those of
bandwidth and clocks from nodes of real fleets. Runs are drawn from the runs of real fleets, or are normal. Nothing is
of nodeprint.simulate, so that the method is not judged by what it was built on. `NODEPRINT_DATA` names the data.

The truth of a component is its contrast of the values without days, jobs and runs, from the median of the other nodes
as they were before defects. A node is healthy if no component that decides is farther from it than its tolerance.
The judge is asked only which components there are and what their tolerances are, never for an estimate.
"""

from __future__ import annotations

import csv
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import cached_property, lru_cache
from pathlib import Path

import numpy as np
import numpy.typing as npt

from nodeprint.data.places.layout import (
    OTHER_SOCKET,
    SAME_CCD,
    SAME_CCX,
    SAME_QUADRANT,
    SAME_SOCKET,
    Layout,
    pair_classes,
)
from nodeprint.data.places.measured import Measured, models
from nodeprint.data.store.packed import PackedFleet, PackedNode
from nodeprint.judge import acceptance, pairs, sets, tolerances
from nodeprint.judge.reduction import term_values
from nodeprint.judge.terms import Terms
from tests.support import published

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
#: The days on which the jobs of each node were measured, in the order of the jobs' numbers.
Schedule = Sequence[Sequence[int]]

PAIRS, MEMORY, BANDWIDTH, CLOCK = "coherence-cas", "chase-latency", "bandwidth-nodes", "clock-together"
#: Runs of a job of the standard preset.
RUNS = {PAIRS: 6, MEMORY: 2, BANDWIDTH: 2, CLOCK: 2}
#: Core-to-core latency in ns by what two cores share, near the published values of EPYC 7742 and 7763.
LATENCY_NS = {SAME_CCX: 25.0, SAME_CCD: 100.0, SAME_QUADRANT: 104.0, SAME_SOCKET: 115.0, OTHER_SOCKET: 205.0}
#: Latency in ns and bandwidth in bytes per second of own and other memory, bandwidth by stream; clock in Hz.
MEMORY_NS, STREAMS, OTHER_MEMORY, CLOCK_HZ = (98.0, 190.0), (120e9, 110e9, 95e9, 118e9), 0.5, 3.4e9
STREAM_NAMES = ("copy", "load", "store_mem", "triad")

#: Standard deviations of pairs: between nodes and of the ports of their CCXs, of which no fleet was published; between
#: runs common to all pairs, by CCX and of each pair. A line that two cores of one CCX exchange stays in their L3.
NODE, PORT, COMMON, BY_CCX, EACH, IN_L3 = 0.002, 0.003, 0.0031, 0.0025, 0.008, 0.3
#: Those of memory latency between nodes, by memory node and by CPU; of a run common to all cells and of each.
MEMORY_NODE, MEMORY_CELL, MEMORY_CPU, CELL_COMMON, CELL_EACH = 0.003, 0.002, 0.0015, 0.003, 0.004
#: How much steadier clocks are than all else.
CLOCK_SHARE = 0.1
#: The size of a burst, of a run that is off on a few cores, and of a pair in heavy tails.
BURST, TAIL = (0.05, 0.3), 0.3


@dataclass(frozen=True)
class Machine:
    """Sockets of `ccds` dies with `ccxs` CCXs of `cores` cores each, one thread a core; two dies a quadrant. Memory
    has a node a socket, or a quadrant where there is one socket."""

    sockets: int
    ccds: int
    ccxs: int
    cores: int

    @cached_property
    def slots(self) -> Ints:
        """A row (socket, quadrant, CCD, CCX, rank, thread) each CPU."""
        per_ccx = np.arange(self.sockets * self.ccds * self.ccxs * self.cores) // self.cores
        ccd = per_ccx // self.ccxs
        rank = np.arange(len(ccd)) % self.cores
        return np.stack([ccd // self.ccds, ccd // 2, ccd, per_ccx, rank, np.zeros_like(ccd)], axis=1)

    @cached_property
    def numa(self) -> Ints:
        """The memory node of each CPU."""
        return np.asarray(self.slots[:, 0 if self.sockets > 1 else 1])

    @cached_property
    def pairs(self) -> Ints:
        """Pairs of CPUs (pair, 2)."""
        return np.stack(np.triu_indices(len(self.slots), 1), axis=1)


#: Machines by sockets and cores of each.
MACHINES: Mapping[str, Machine] = {
    "1x16": Machine(1, 4, 1, 4),
    "2x8": Machine(2, 2, 1, 4),
    "1x32": Machine(1, 4, 2, 4),
    "2x16": Machine(2, 4, 1, 4),
    "2x32": Machine(2, 4, 1, 8),
}
#: A published machine for CCXs of four and of eight cores.
_PUBLISHED = {4: "Dual AMD EPYC 7742 64-Core Processor", 8: "AMD EPYC 7R13 48-Core Processor"}
#: The one whose pairs show silicon; those of the other differ by 3% with the noise of the tool.
_QUIET = 8
#: Fleets without known defects, with the metric that shows nodes and runs best.
_STREAMS = {
    "aws-hpc6a-64.stream": "stream-triad-96p",
    "azure-hb96-64.stream": "stream-triad-96p",
    "azure-hb96-64-placed.stream": "stream-triad-96p",
    "cyclecloud-128.stream": "stream-triad-1p",
    "cyclecloud-64.stream": "stream-triad-1p",
}
_CLOCKS = {"aws-hpc6a-128.sysbench": "sysbench-cpu-1thread"}


@dataclass(frozen=True)
class Kind:
    """How nodes, jobs, runs and days differ: `chip` and `run` times as much as usual; runs with Student's t of `tail`
    degrees of freedom (0: normal, or drawn from real runs if `real`) and `bursts` of single pairs, as a share; `job`
    is the standard deviation of an effect of a job, `shared` the share of its variance that all CPUs have in common;
    `off` is the share of jobs of which one run is off on a few cores. All nodes of a day move together, by `season`
    as a standard deviation, and by a wave of `yearly` over a year."""

    chip: float = 1.0
    run: float = 1.0
    tail: float = 0.0
    bursts: float = 0.0
    real: bool = False
    job: float = 0.001
    shared: float = 0.5
    off: float = 0.0
    season: float = 0.0
    yearly: float = 0.0


KINDS: Mapping[str, Kind] = {
    "quiet": Kind(chip=0.5, run=0.4, job=0.0005),
    "usual": Kind(),
    "real": Kind(run=1.5, real=True, job=0.004, shared=0.7),
    "tails": Kind(tail=3.0, bursts=0.003),
    "bursts": Kind(off=0.05),
    "seasons": Kind(season=0.015),
    "shared": Kind(job=0.003, shared=1.0),
}


@dataclass(frozen=True)
class Defect:
    """A component that is off: the places of a measurement, so much that the component where the node is then
    farthest from its peers is `times` its tolerance away; in the jobs of some `days` alone, or in all (None). The
    clock and bandwidth are lower, latencies higher."""

    component: str
    measurement: str
    places: Ints
    times: float
    days: frozenset[int] | None = None

    @property
    def label(self) -> str:
        """What it is of, for messages."""
        days = "" if self.days is None else f" in jobs of days {sorted(self.days)}"
        return f"{self.component} {self.times}x{days}"


@dataclass(frozen=True)
class Components:
    """What is compared of a measurement, with the tolerance of each component."""

    terms: Terms
    tolerance: Floats
    template: Floats

    def values(self, silicon: Floats) -> Floats:
        """Of values (node, place) those of components (node, component)."""
        template = np.asarray(self.template, dtype=silicon.dtype)
        return np.asarray(term_values(silicon.copy(), template, self.terms), dtype=np.float64)


@dataclass(frozen=True)
class KnownFleet:
    """A fleet by its seed, with defects by node number."""

    machine: str
    nodes: int
    seed: int
    kind: Kind = field(default_factory=Kind)
    defects: Mapping[int, Sequence[Defect]] = field(default_factory=dict)

    @cached_property
    def chips(self) -> Mapping[str, Floats]:
        """By measurement the true values (node, place) before defects."""
        return {name: _chips(self, name) for name in RUNS}

    @cached_property
    def components(self) -> Mapping[str, Components]:
        """By measurement what is compared."""
        return {name: _components(self.machine, name, np.median(chips, axis=0)) for name, chips in self.chips.items()}

    @cached_property
    def factors(self) -> Mapping[int, Sequence[float]]:
        """By node the factor of the places of each of its defects."""
        return {node: [_factor(self, node, defect) for defect in of_node] for node, of_node in self.defects.items()}

    def silicon(self, name: str, node: int, day: int | None = None) -> Floats:
        """The true values of a node (place) on a day; those with all its defects without a day."""
        values = self.chips[name][node].copy()
        for defect, factor in zip(self.defects.get(node, ()), self.factors.get(node, ()), strict=True):
            if defect.measurement == name and (day is None or defect.days is None or day in defect.days):
                values[defect.places] *= factor
        return np.asarray(values)

    @cached_property
    def shares(self) -> Mapping[str, Floats]:
        """By measurement the signed distance of each component from the other nodes in tolerances, with all defects
        (node, component)."""
        return {
            name: np.stack([_shares(self, name, node, self.silicon(name, node)) for node in range(self.nodes)])
            for name in RUNS
        }

    @cached_property
    def reach(self) -> Floats:
        """The largest of a node's distances in tolerances (node)."""
        return np.asarray(np.max([np.abs(share).max(axis=1) for share in self.shares.values()], axis=0))

    @property
    def healthy(self) -> npt.NDArray[np.bool_]:
        """Whether each node is within every tolerance (node)."""
        return np.asarray(self.reach <= 1)

    def measured(self, schedule: Schedule | int = 1, relabel: Mapping[int, int] | None = None) -> PackedFleet:
        """The fleet as it is measured: jobs of the days of a schedule, or so many of each node, one a day.

        `relabel` gives days another date, their effects stay: what changes is only the order of the jobs.
        """
        days = [tuple(range(1, schedule + 1))] * self.nodes if isinstance(schedule, int) else schedule
        nodes = tuple(_node(self.machine, f"n{node:02d}") for node in range(self.nodes))
        quantities = tuple(_measured(self, name, days, relabel or {}) for name in RUNS)
        return PackedFleet("known", True, nodes, quantities)


def arranged(fleet: PackedFleet, nodes: Sequence[int], runs: np.random.Generator | None = None) -> PackedFleet:
    """The fleet with some nodes in another order, and the runs of each job in another one if a generator is given."""
    quantities = tuple(_arranged(quantity, nodes, runs) for quantity in fleet.quantities)
    return replace(fleet, nodes=tuple(fleet.nodes[node] for node in nodes), quantities=quantities)


def _arranged(quantity: Measured, nodes: Sequence[int], runs: np.random.Generator | None) -> Measured:
    order = {node: number for number, node in enumerate(nodes)}
    kept = np.flatnonzero(np.isin(quantity.node, list(nodes)))
    run = quantity.run.copy()
    if runs is not None:
        for of_job in _by_job(quantity):
            run[of_job] = runs.permutation(run[of_job])
    node = np.array([order[number] for number in quantity.node[kept].tolist()])
    rows = np.lexsort((run[kept], quantity.job[kept], node))
    chosen = kept[rows]
    return quantity.assign(
        values=quantity.values[chosen],
        node=node[rows],
        job=quantity.job[chosen],
        run=run[chosen],
        started=tuple(quantity.started[row] for row in chosen),
        disturbed=quantity.disturbed[chosen],
    )


def with_runs_off(
    fleet: PackedFleet, node: int, places: Ints, runs: Sequence[int], factor: float, job: int = 1
) -> PackedFleet:
    """The fleet with some runs of a job of a node off at some places of pairs."""
    first, *others = fleet.quantities
    rows = (first.node == node) & (first.job == job) & np.isin(first.run, runs)
    values = first.values.copy()
    values[np.ix_(rows, np.ones(values.shape[1], dtype=bool), places)] *= np.float32(factor)
    return replace(fleet, quantities=(first.assign(values=values), *others))


def defect(fleet: KnownFleet, component: str, rng: np.random.Generator, times: float) -> Defect:
    """A defect of a kind of PARTS somewhere on the machine."""
    measurement, places = COMPONENTS[component](MACHINES[fleet.machine], rng)
    return Defect(component, measurement, np.flatnonzero(places), times)


def _by_job(quantity: Measured) -> Iterable[Ints]:
    keys = quantity.node * 1000 + quantity.job
    return (np.flatnonzero(keys == key) for key in np.unique(keys))


# Kinds of defects: the measurement, and which of its places are off.


def _core(machine: Machine, rng: np.random.Generator) -> tuple[str, npt.NDArray[np.bool_]]:
    return PAIRS, (machine.pairs == rng.integers(len(machine.slots))).any(axis=1)


def _ccx(machine: Machine, rng: np.random.Generator) -> tuple[str, npt.NDArray[np.bool_]]:
    ccx = machine.slots[machine.pairs, 3]
    return PAIRS, (ccx == rng.choice(machine.slots[:, 3])).all(axis=1)


def _ccd(machine: Machine, rng: np.random.Generator) -> tuple[str, npt.NDArray[np.bool_]]:
    is_in = machine.slots[machine.pairs, 2] == rng.choice(machine.slots[:, 2])
    return PAIRS, is_in[:, 0] ^ is_in[:, 1]


def _link(machine: Machine, rng: np.random.Generator) -> tuple[str, npt.NDArray[np.bool_]]:
    a, b = rng.choice(np.unique(machine.slots[:, 2]), 2, replace=False)
    ccd = np.sort(machine.slots[machine.pairs, 2], axis=1)
    return PAIRS, (ccd == sorted((a, b))).all(axis=1)


def _node_of_pairs(machine: Machine, _rng: np.random.Generator) -> tuple[str, npt.NDArray[np.bool_]]:
    return PAIRS, np.ones(len(machine.pairs), dtype=bool)


def _memory(machine: Machine, rng: np.random.Generator) -> tuple[str, npt.NDArray[np.bool_]]:
    ccd, node = np.repeat(machine.slots[:, 2], machine.numa.max() + 1), _memory_node(machine)
    return MEMORY, (ccd == rng.choice(ccd)) & (node == rng.choice(node))


def _bandwidth(machine: Machine, rng: np.random.Generator) -> tuple[str, npt.NDArray[np.bool_]]:
    node = _bandwidth_places(machine)["memory_node"]
    return BANDWIDTH, node == rng.choice(node)


def _clock(machine: Machine, rng: np.random.Generator) -> tuple[str, npt.NDArray[np.bool_]]:
    places = np.arange(len(machine.slots))
    return CLOCK, places == rng.choice(places)


def _clock_of_node(machine: Machine, _rng: np.random.Generator) -> tuple[str, npt.NDArray[np.bool_]]:
    return CLOCK, np.ones(len(machine.slots), dtype=bool)


COMPONENTS = {
    "core": _core,
    "ccx": _ccx,
    "ccd": _ccd,
    "link": _link,
    "node": _node_of_pairs,
    "memory cell": _memory,
    "bandwidth": _bandwidth,
    "clock": _clock,
    "clock of node": _clock_of_node,
}


# Places and nominal values.


def _memory_node(machine: Machine) -> Ints:
    nodes = int(machine.numa.max()) + 1
    return np.tile(np.arange(nodes), len(machine.slots))


def _bandwidth_places(machine: Machine) -> dict[str, Ints]:
    nodes = np.arange(machine.numa.max() + 1)
    cpu, memory, stream = (of.ravel() for of in np.meshgrid(nodes, nodes, np.arange(4), indexing="ij"))
    return {"cpu_node": cpu, "memory_node": memory, "stream": stream, "pages": np.zeros_like(cpu)}


@lru_cache(maxsize=64)
def _blank(machine_name: str, name: str) -> tuple[Measured, Floats]:
    """A measurement of a machine without rows, and its nominal values (place)."""
    machine = MACHINES[machine_name]
    cpus = np.arange(len(machine.slots))
    nodes = int(machine.numa.max()) + 1
    layout = Layout(machine.slots, numa=machine.numa, numa_nodes=nodes)
    if name == PAIRS:
        layout = Layout(machine.slots, numa=np.full(len(cpus), -1))
        a, b = machine.pairs.T
        places = {"home": np.full(len(a), -1), "a": a, "b": b}
        classes = pair_classes(machine.slots, machine.pairs)
        nominal = np.array([LATENCY_NS[number] for number in classes.tolist()])
        kind = ("cas", "hop", "ns")
    elif name == MEMORY:
        places = {"cpu": np.repeat(cpus, nodes), "memory_node": _memory_node(machine)}
        nominal = np.where(machine.numa[places["cpu"]] == places["memory_node"], *MEMORY_NS)
        kind = ("latency", "load", "ns")
    elif name == BANDWIDTH:
        places = _bandwidth_places(machine)
        nominal = np.array(STREAMS)[places["stream"]]
        nominal = nominal * np.where(places["cpu_node"] == places["memory_node"], 1, OTHER_MEMORY)
        kind = ("nodes", "rate", "B/s")
    else:
        places, nominal, kind = {"cpu": cpus}, np.full(len(cpus), CLOCK_HZ), ("together", "frequency", "Hz")
    names = {"stream": STREAM_NAMES, "pages": ("huge",)} if name == BANDWIDTH else {}
    none = np.zeros(0, dtype=np.int64)
    values = np.zeros((0, 1, len(nominal)), dtype=np.float32)
    quantity = Measured.from_arrays(
        name, *kind, models()[name], layout, places, values, none, none, none, (), np.zeros(0), names=names
    )
    return quantity, np.asarray(nominal, dtype=np.float64)


def _components(machine: str, name: str, template: Floats) -> Components:
    quantity, _ = _blank(machine, name)
    rules = acceptance.load()
    if quantity.of_pairs:
        terms = pairs.of(quantity.pair_layout)
        levels = np.array([template[term.covers].mean() for term in terms.terms])
        return Components(terms, tolerances.of_pairs(terms, levels, rules), template)
    model = quantity.model
    terms = sets.of(quantity, rules.cell(model.term).tolerance)
    tolerance = np.full(len(terms.terms), tolerances.of_cells(model, rules))
    return Components(terms, tolerance, template)


@lru_cache(maxsize=256)
def _node(machine_name: str, name: str) -> PackedNode:
    cpus = tuple(range(len(MACHINES[machine_name].slots)))
    numbers = {"cpu": cpus, "core": cpus, "node": tuple(range(int(MACHINES[machine_name].numa.max()) + 1))}
    return PackedNode(name, name, cpus=cpus, cores=cpus, fingerprint={"governor": "performance"}, numbers=numbers)


# Truth.


def _shares(fleet: KnownFleet, name: str, node: int, values: Floats) -> Floats:
    """By component how far `values` of a node (place) are from the other nodes without defects, in tolerances."""
    of = fleet.components[name]
    others = np.median(np.delete(_component_values(fleet, name), node, axis=0), axis=0)
    return np.asarray((of.values(values[None])[0] - others) / of.tolerance)


def _component_values(fleet: KnownFleet, name: str) -> Floats:
    cache: dict[str, Floats] = fleet.__dict__.setdefault("_values", {})
    if name not in cache:
        cache[name] = fleet.components[name].values(fleet.chips[name])
    return cache[name]


def _factor(fleet: KnownFleet, node: int, defect: Defect) -> float:
    """The factor of a defect's places with which the node is as far from its peers as it says, by bisection."""
    chip = fleet.chips[defect.measurement][node]
    slower = _blank(fleet.machine, defect.measurement)[0].model.better == "lower"
    low, high = 0.0, 1.0
    for _ in range(40):
        size = (low + high) / 2
        values = chip.copy()
        values[defect.places] *= 1 + size if slower else 1 / (1 + size)
        if np.abs(_shares(fleet, defect.measurement, node, values)).max() < defect.times:
            low = size
        else:
            high = size
    return 1 + high if slower else 1 / (1 + high)


# Silicon.


@dataclass(frozen=True)
class _Silicon:
    """Relative effects of a published machine: by CCX its cores to others (ccx, core), the CCX inside (ccx), pairs
    inside (ccx, core, core), and all pairs between CCXs."""

    cores: Floats
    inside: Floats
    pairs_inside: Floats
    pairs: Floats


@lru_cache(maxsize=4)
def _silicon(cores: int) -> _Silicon:
    """The effects of the parts of a published machine of two sockets with CCXs of so many cores.

    Its sockets are two chips of one model: what both show alike is design, half of their difference is of each chip.
    """
    latency, ccx, socket = _published(_PUBLISHED[cores])
    each = len(np.unique(ccx)) // 2
    order = np.lexsort((ccx, socket))
    both = np.log(latency[np.ix_(order, order)]).reshape(2, each, cores, 2, each, cores)
    chips = np.stack([both[0, :, :, 0], both[1, :, :, 1]])
    own = (chips[0] - chips[1]) / np.sqrt(2)  # (ccx, core, ccx, core)
    inside = own[np.arange(each), :, np.arange(each)]
    means = np.nanmean(inside, axis=(1, 2))
    # Where the one line of this tool was is no silicon: no effect of whole CCXs to each other.
    outer = own - own.mean(axis=(1, 3), keepdims=True)
    outer[np.arange(each), :, np.arange(each)] = np.nan
    rows = np.nanmean(outer, axis=(2, 3))
    of_pairs = outer - rows[:, :, None, None] - rows[None, None]
    return _Silicon(
        rows,
        means - means.mean(),
        np.nan_to_num(inside - means[:, None, None]),
        of_pairs[np.isfinite(of_pairs)],
    )


def _published(name: str) -> tuple[Floats, Ints, Ints]:
    """A published matrix of cores in ns, NaN on its diagonal, and the CCX and socket of each core."""
    known = published.machine(data() / "c2c/core-to-core-latency", name)
    first = np.unique(known.parts["smt"], return_index=True)[1]
    latency = known.matrix[np.ix_(first, first)]
    both = np.where(np.isnan(latency), latency.T, latency)
    out = (both + both.T) / 2
    np.fill_diagonal(out, np.nan)
    return out, known.parts["ccx"][first], known.parts["socket"][first]


def _chips(fleet: KnownFleet, name: str) -> Floats:
    machine, (_, nominal) = MACHINES[fleet.machine], _blank(fleet.machine, name)
    draw = {PAIRS: _of_pairs, MEMORY: _of_memory, BANDWIDTH: _of_bandwidth, CLOCK: _of_clock}[name]
    effects = [draw(machine, _rng(fleet.seed, name, node)) for node in range(fleet.nodes)]
    return np.stack([nominal * (1 + fleet.kind.chip * effect) for effect in effects])


def _rng(seed: int, name: str, *numbers: int) -> np.random.Generator:
    return np.random.default_rng([seed, list(RUNS).index(name), *numbers])


def _of_pairs(machine: Machine, rng: np.random.Generator) -> Floats:
    silicon = _silicon(machine.cores)
    ccxs = len(machine.slots) // machine.cores
    chosen = rng.integers(len(silicon.inside), size=ccxs)
    a, b = machine.pairs.T
    ccx, rank = machine.slots[:, 3], machine.slots[:, 4]
    cores, ports = silicon.cores[chosen].ravel(), PORT * rng.standard_normal(ccxs)
    outer = cores[a] + cores[b] + (ports[ccx[a]] + ports[ccx[b]]) / 2 + rng.choice(_silicon(_QUIET).pairs, len(a))
    inner = silicon.inside[chosen[ccx[a]]] + silicon.pairs_inside[chosen[ccx[a]], rank[a], rank[b]]
    return np.asarray(NODE * rng.standard_normal() + np.where(ccx[a] == ccx[b], inner, outer))


def _of_memory(machine: Machine, rng: np.random.Generator) -> Floats:
    nodes = int(machine.numa.max()) + 1
    node = _memory_node(machine)
    cpu = np.repeat(np.arange(len(machine.slots)), nodes)
    cell = machine.numa[cpu] * nodes + node
    return np.asarray(
        MEMORY_NODE * rng.standard_normal(nodes)[node]
        + MEMORY_CELL * rng.standard_normal(nodes**2)[cell]
        + MEMORY_CPU * rng.standard_normal(len(machine.slots))[cpu]
    )


def _of_bandwidth(machine: Machine, rng: np.random.Generator) -> Floats:
    places = _bandwidth_places(machine)
    effects = rng.choice(_stream_nodes(), int(machine.numa.max()) + 1)
    return np.asarray(effects[places["memory_node"]] + 0.002 * rng.standard_normal(len(places["stream"])))


def _of_clock(machine: Machine, rng: np.random.Generator) -> Floats:
    return np.asarray(rng.choice(_clock_nodes()) + 0.0003 * rng.standard_normal(len(machine.slots)))


# Real fleets.


def data() -> Path:
    """The folder of reference data."""
    if "NODEPRINT_DATA" not in os.environ:
        raise SystemExit("NODEPRINT_DATA: not set. Name the folder of the reference data (fleets/, c2c/).")
    return Path(os.environ["NODEPRINT_DATA"])


@lru_cache(maxsize=32)
def _values(fleet: str, metric: str) -> Floats:
    """The values of a real fleet (node, run), relative to its median; nodes that lack a run are left out."""
    by_node: dict[str, list[float]] = {}
    with (data() / f"fleets/{fleet}.csv").open() as file:
        for line in csv.DictReader(file):
            if line["metric"] == metric:
                by_node.setdefault(line["node"], []).append(float(line["value"]))
    most = max(map(len, by_node.values()))
    values = np.array([runs for runs in by_node.values() if len(runs) == most])
    return np.asarray(values / np.median(values) - 1)


@lru_cache(maxsize=1)
def _stream_nodes() -> Floats:
    """Effects of nodes on bandwidth."""
    return np.concatenate([_values(*of).mean(axis=1) for of in _STREAMS.items()])


@lru_cache(maxsize=1)
def _clock_nodes() -> Floats:
    """Effects of nodes on the clock."""
    return np.concatenate([_values(*of).mean(axis=1) for of in _CLOCKS.items()])


@lru_cache(maxsize=1)
def _stream_runs() -> Floats:
    """Effects of runs on bandwidth, corrected for the mean of their node's."""
    runs = [_values(*of) for of in _STREAMS.items()]
    inside = [(of - of.mean(axis=1, keepdims=True)) * np.sqrt(of.shape[1] / (of.shape[1] - 1)) for of in runs]
    return np.concatenate([of.ravel() for of in inside])


# Days, jobs and runs.


def _measured(fleet: KnownFleet, name: str, schedule: Schedule, relabel: Mapping[int, int]) -> Measured:
    blank, _ = _blank(fleet.machine, name)
    machine, kind = MACHINES[fleet.machine], fleet.kind
    rows, started, values = [], [], []
    for node, days in enumerate(schedule):
        for number, day in enumerate(days, 1):
            rng = _rng(fleet.seed, name, node, 1000 + day)
            season = _season(kind, day, _rng(fleet.seed, name, 10_000, day))
            base = fleet.silicon(name, node, day)
            base = base * (1 + _scale(name) * (season + _job(machine, name, kind, rng)))
            effects = _runs(machine, name, kind, rng)
            values += [base * (1 + effect) for effect in effects]
            rows += [(node, number, run) for run in range(1, len(effects) + 1)]
            started += [_started(relabel.get(day, day), node, run) for run in range(len(effects))]
    node_of, job, run = np.array(rows).T
    measured = np.maximum(np.stack(values), 1e-3)[:, None].astype(np.float32)
    zeros = np.zeros(len(rows))
    return blank.assign(values=measured, node=node_of, job=job, run=run, started=tuple(started), disturbed=zeros)


def _season(kind: Kind, day: int, rng: np.random.Generator) -> float:
    """By how much all nodes of a day move together."""
    return float(kind.season * rng.standard_normal() + kind.yearly * np.sin(2 * np.pi * day / 365))


def _started(day: int, node: int, run: int) -> str:
    """Nodes begin within minutes of each other, runs follow."""
    begun = datetime(2026, 1, 1, 8, tzinfo=UTC) + timedelta(days=day - 1, minutes=10 * run + (7 * node) % 10)
    return begun.strftime("%Y-%m-%dT%H:%M:%SZ")


def _scale(name: str) -> float:
    return CLOCK_SHARE if name == CLOCK else 1.0


def _job(machine: Machine, name: str, kind: Kind, rng: np.random.Generator) -> Floats:
    """What stays through a job (place): an effect of the node, and one of each CPU or cell."""
    quantity_places = _sizes(machine)[name]
    common = np.sqrt(kind.shared) * rng.standard_normal()
    if name == PAIRS:
        cores = rng.standard_normal(len(machine.slots))
        each = cores[machine.pairs].sum(axis=1) / np.sqrt(2)
    else:
        each = rng.standard_normal(quantity_places)
    return np.asarray(kind.job * (common + np.sqrt(1 - kind.shared) * each))


def _sizes(machine: Machine) -> Mapping[str, int]:
    cpus, nodes = len(machine.slots), int(machine.numa.max()) + 1
    return {PAIRS: len(machine.pairs), MEMORY: cpus * nodes, BANDWIDTH: 4 * nodes**2, CLOCK: cpus}


def _runs(machine: Machine, name: str, kind: Kind, rng: np.random.Generator) -> Floats:
    """What each run of a job does (run, place)."""
    runs, size = RUNS[name], _sizes(machine)[name]
    drawn = rng.standard_t(kind.tail, (runs, size)) if kind.tail else rng.standard_normal((runs, size))
    common = rng.standard_t(kind.tail, (runs, 1)) if kind.tail else rng.standard_normal((runs, 1))
    cores = np.zeros((runs, len(machine.slots)))
    if kind.off and rng.random() < kind.off:  # one run is off on a few cores
        which = rng.choice(len(machine.slots), rng.integers(1, 5), replace=False)
        cores[rng.integers(runs), which] = rng.uniform(*BURST) * _scale(name)
    if name == PAIRS:
        a, b = machine.pairs.T
        ccx = machine.slots[:, 3]
        by_ccx = BY_CCX * rng.standard_normal((runs, int(ccx.max()) + 1))
        line = COMMON * common + (by_ccx[:, ccx[a]] + by_ccx[:, ccx[b]]) / 2
        bursts = TAIL * (rng.random((runs, size)) < kind.bursts)
        usual = kind.run * (np.where(ccx[a] == ccx[b], IN_L3, 1.0) * line + EACH * drawn)
        return np.asarray(usual + bursts + np.maximum(cores[:, a], cores[:, b]))
    if name == BANDWIDTH and kind.real:
        return np.asarray(rng.choice(_stream_runs(), (runs, 1)) + 0.003 * drawn)
    usual = kind.run * _scale(name) * (CELL_COMMON * common + CELL_EACH * drawn)
    if name == BANDWIDTH:
        return np.asarray(usual - cores.max(axis=1, keepdims=True) / 4)
    of_cpu = np.repeat(cores, size // cores.shape[1], axis=1)
    return np.asarray(usual + (of_cpu if name == MEMORY else -of_cpu))
