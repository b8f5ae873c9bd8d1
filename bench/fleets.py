"""Fleets whose truth is known: a machine's nominal values, times what silicon, a job and a run do to each place.

Nothing here is the simulator's but the nominal values, so that the method is not judged by what it was built on. The
truth of a part is what the judge's parts show of values without runs and jobs; a node is within its bounds where each
of its parts truly is, whatever its chips were drawn from.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from pathlib import Path

import numpy as np
import numpy.typing as npt

from nodeprint.data.places.homes import FAR, NEAR
from nodeprint.data.places.layout import CCX, RANK, SOCKET, codes
from nodeprint.data.places.quantity import Quantity
from nodeprint.data.store.packed import PackedFleet
from nodeprint.judge import acceptance, bounds, sets
from nodeprint.judge.population import Population
from nodeprint.judge.reduction import Matrix
from nodeprint.machine.topology.presets import from_part, preset
from nodeprint.simulate import Plan
from nodeprint.simulate import fleet as simulated
from nodeprint.simulate.silicon import standard_draws
from nodeprint.structure.matrix_arithmetic import averaged, positive
from tests.support import published

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

#: What a job of the standard preset makes of what decides: two runs, six of them of pairs of cores.
RUNS, PAIR_RUNS = 2, 6
#: What decides, and is drawn here.
CELLS = ("chase-latency", "bandwidth-nodes", "bandwidth-ccx", "clock-together")
#: Relative standard deviations between chips: of pairs by part, of other places by label.
NODE, CCD, INSIDE, CORE, PAIR = 0.002, 0.003, 0.003, 0.0036, 0.002
BY_LABEL = {"memory_node": 0.004, "cpu_node x memory_node": 0.003, "ccd": 0.0015, "cpu": 0.0015}
#: Clocks of cores, and by how much a node's are below the fastest on average.
CLOCK, SLOWER = 0.0003, 0.0005
#: Between runs: common to all pairs, by CCX and of each pair; of other places common and each. A clock is steadier.
COMMON, BY_CCX, EACH, CELL_COMMON, CELL_EACH, STEADY = 0.0031, 0.0025, 0.008, 0.003, 0.005, 0.1
#: A line that two cores of one CCX pass to and fro stays in their L3.
IN_L3 = 0.3
#: Of parts whose cores are fused off, standard deviations in ns: the mean inside a CCX (EPYC 9454 and 74F3 as
#: published), and a pair there, as other cores are active.
HARVESTED_NS = {"9454": 0.43, "74F3": 0.78}
HARVESTED_PAIR_NS = 1.0


@dataclass(frozen=True)
class Kind:
    """How chips, jobs and runs differ from the usual: `chip` and `run` times as much, with Student's t of `chip_tail`
    and `run_tail` degrees of freedom; `job` is the standard deviation of an effect that stays through a job, of a
    node, its CCXs and cores; `bursts` the share of pairs that take 30 % more in a run. `published`: chips have the
    cores and CCXs of published matrices. `clocks`: nodes are of two kinds, whose clocks are so far apart, and runs
    have a tail downwards as nodes have."""

    chip: float = 1.0
    run: float = 1.0
    chip_tail: float = 0.0
    run_tail: float = 0.0
    job: float = 0.0
    bursts: float = 0.0
    published: bool = False
    clocks: float = 0.0


KINDS: Mapping[str, Kind] = {
    "usual": Kind(),
    "heavy tails": Kind(run_tail=3.0, bursts=0.003),
    "t3 chips": Kind(chip_tail=3.0),
    "loaded": Kind(run=2.5, bursts=0.003),
    "jobs": Kind(job=0.002),
    "published": Kind(published=True),
    "two clocks": Kind(clocks=0.006),
}
MACHINES = ("rome-2x64", "milan-2x64", "genoa-2x96", "turin-2x64", "naples-2x32", "icelake-2x40", "graviton3-64")
HARVESTED = {"9454": ("EPYC 9454", 2), "74F3": ("EPYC 74F3", 2)}


def data() -> Path | None:
    """The folder of published matrices, None where there is none."""
    folder = Path(os.environ.get("NODEPRINT_DATA", "")) / "c2c/core-to-core-latency"
    return folder if "NODEPRINT_DATA" in os.environ and folder.is_dir() else None


def kinds() -> list[str]:
    """The kinds that can be drawn here."""
    return [name for name, kind in KINDS.items() if not kind.published or data() is not None]


@dataclass(frozen=True)
class Planted:
    """A defect of one node: its measurement, the places that it changes, and the part that has to be named. In the
    part of `members` that shows most, the node is then truly `times` its bound from its peers."""

    measurement: str
    term: str
    where: Mapping[str, int | str]
    members: Ints
    covers: Ints
    times: float


@dataclass(frozen=True)
class Made:
    """A fleet by its seed; `machine` is a preset or a part of HARVESTED, `planted` are defects by node number: in all
    jobs, or in the one that is `only_in`."""

    machine: str
    nodes: int
    seed: int
    kind: Kind = field(default_factory=Kind)
    planted: Mapping[int, Planted] = field(default_factory=dict)
    only_in: int = 0

    @cached_property
    def base(self) -> PackedFleet:
        """One node with nominal values."""
        return nominal(self.machine)

    @cached_property
    def chips(self) -> list[Floats]:
        """By quantity the true values of each node without defects (node, place)."""
        return [self._drawn(number, quantity) for number, quantity in enumerate(self.base.quantities)]

    @cached_property
    def silicon(self) -> list[Floats]:
        """By quantity the true values of each node (node, place)."""
        if not self.planted:
            return self.chips
        drawn, matrices = [values.copy() for values in self.chips], self._matrices(self.chips)
        for node, planted in self.planted.items():
            for matrix in matrices:
                if matrix.name == planted.measurement:
                    number = next(k for k, q in enumerate(self.base.quantities) if q.measurement == matrix.name)
                    places = np.arange(drawn[number].shape[1])[matrix.part.places][planted.covers]
                    drawn[number][node, places] *= 1 + _size(matrix, node, planted)
        return drawn

    @cached_property
    def truth(self) -> list[Matrix]:
        """The truth as the judge's parts show it: `values` (node, 1, part)."""
        return self._matrices(self.silicon)

    @cached_property
    def reach(self) -> Floats:
        """How many times its bound each node is from its peers in truth, in the part where it is most (node)."""
        rules = acceptance.load()
        shares = [(np.abs(_apart(m)) / bounds.of_matrix(m, rules)).max(axis=1) for m in self.truth]
        return np.asarray(np.max(shares, axis=0))

    def fleet(self, jobs: Mapping[str, int] | None = None) -> PackedFleet:
        """What is measured of it, `jobs` of some nodes being more than one."""
        nodes = tuple(
            replace(self.base.nodes[0], name=f"node{i:03d}", host=f"node{i:03d}", rack="") for i in range(self.nodes)
        )
        return replace(
            self.base,
            nodes=nodes,
            quantities=tuple(
                self._measured(number, quantity, [(jobs or {}).get(node.name, 1) for node in nodes])
                for number, quantity in enumerate(self.base.quantities)
            ),
        )

    def _drawn(self, number: int, quantity: Quantity) -> Floats:
        nominal = np.nanmedian(quantity.values[0], axis=0).astype(np.float64)
        draws = [np.random.default_rng([self.seed, number, i]) for i in range(self.nodes)]
        if not quantity.of_pairs:
            return np.stack([nominal * _cells_of_chip(quantity, self.kind, rng) for rng in draws])
        pool = _published(self.seed) if self.kind.published else None
        spread = HARVESTED_NS.get(self.machine, 0.0)
        return np.stack([_pairs_of_chip(quantity, nominal, self.kind, rng, pool, spread) for rng in draws])

    def _matrices(self, values: Sequence[Floats]) -> list[Matrix]:
        nodes = tuple(replace(self.base.nodes[0], name=f"node{i:03d}") for i in range(self.nodes))
        quantities = [
            _of_rows(quantity, of_nodes[:, None], [1] * len(of_nodes), 1)
            for quantity, of_nodes in zip(self.base.quantities, values, strict=True)
        ]
        made = replace(self.base, nodes=nodes, quantities=tuple(quantities))
        population = Population.of(made, acceptance.load(), ())
        return [matrix for _, _, matrix in population.matrices(np.arange(self.nodes))]

    def _measured(self, number: int, quantity: Quantity, jobs: Sequence[int]) -> Quantity:
        runs = PAIR_RUNS if quantity.of_pairs else RUNS
        rows = []
        for node, count in enumerate(jobs):
            for job in range(1, count + 1):
                of_job = np.random.default_rng([self.seed, number, node, job])
                of_chip = self.silicon if self.only_in in (0, job) else self.chips
                base = of_chip[number][node] * _job(quantity, self.kind, of_job)
                rows += [
                    base * _run(quantity, self.kind, np.random.default_rng([self.seed, number, node, job, run]))
                    for run in range(runs)
                ]
        return _of_rows(quantity, np.stack(rows)[:, None], jobs, runs)


def _of_rows(quantity: Quantity, values: Floats, jobs: Sequence[int], runs: int) -> Quantity:
    """A quantity of (row, pass, place), rows by node, job and run."""
    rows = [(n, job, run) for n, count in enumerate(jobs) for job in range(1, count + 1) for run in range(1, runs + 1)]
    node, job, run = np.array(rows).T
    started = tuple(f"2026-01-{job:02d}T00:{run:02d}:00Z" for _, job, run in rows)
    return replace(
        quantity,
        values=values.astype(np.float32),
        node=node,
        job=job,
        run=run,
        started=started,
        disturbed=np.zeros(len(rows)),
    )


@lru_cache(maxsize=16)
def nominal(machine: str) -> PackedFleet:
    """One node of a machine with what decides."""
    topology = from_part(*HARVESTED[machine]) if machine in HARVESTED else preset(machine)
    homes = (NEAR, FAR) if machine == "naples-2x32" else (NEAR,)
    made = simulated(Plan(topology, nodes=1, runs=1, passes=3, cells=True, homes=homes))
    return replace(made, quantities=tuple(q for q in made.quantities if q.of_pairs or q.measurement in CELLS))


def _apart(matrix: Matrix) -> Floats:
    """The difference of each node (node, part) from the median of the others."""
    values = matrix.values.mean(axis=1)
    return np.stack([values[i] - np.median(np.delete(values, i, axis=0), axis=0) for i in range(len(values))])


def _size(matrix: Matrix, node: int, planted: Planted) -> float:
    """The relative change of the planted places that brings the part of `members` that shows most to `times` its
    bound."""
    rules, members = acceptance.load(), planted.members
    sign = -1.0 if matrix.quantity.model.better == "higher" else 1.0
    bound = bounds.of_matrix(matrix, rules)[members] * planted.times
    gain = matrix.terms.contrast[np.ix_(members, planted.covers)].sum(axis=1).astype(np.float64)
    needed = float(np.min((bound - sign * _apart(matrix)[node, members]) / gain))
    return sign * needed if matrix.scale.kind == "linear" else float(np.expm1(sign * needed))


class _Parts:
    """Numbers of the core, CCX and socket at both ends of each place of a quantity of pairs."""

    def __init__(self, quantity: Quantity) -> None:
        slots, pairs = quantity.layout.slots, np.tile(quantity.pairs, (len(quantity.homes), 1))
        core, ccx, socket = (codes(slots[:, : level + 1]) for level in (RANK, CCX, SOCKET))
        self.core, self.ccx, self.socket = core[pairs].T, ccx[pairs].T, socket[pairs].T
        self.inside = (self.ccx[0] == self.ccx[1]) & (slots[:, CCX].min() >= 0)
        self.cores, self.ccxs = int(core.max()) + 1, int(ccx.max()) + 1
        self.ccx_of_core = ccx[np.unique(core, return_index=True)[1]]


_PARTS: dict[bytes, _Parts] = {}


def _parts(quantity: Quantity) -> _Parts:
    key = quantity.layout.key + quantity.pairs.tobytes()
    if key not in _PARTS:
        _PARTS[key] = _Parts(quantity)
    return _PARTS[key]


def _pairs_of_chip(
    quantity: Quantity,
    nominal: Floats,
    kind: Kind,
    rng: np.random.Generator,
    pool: tuple[Floats, Floats] | None,
    harvested_ns: float,
) -> Floats:
    at = _parts(quantity)
    cores = CORE * kind.chip * standard_draws(rng, kind.chip_tail, at.cores)
    ports = CCD * kind.chip * standard_draws(rng, kind.chip_tail, at.ccxs)
    inside = INSIDE * kind.chip * standard_draws(rng, kind.chip_tail, at.ccxs)
    if pool is not None:
        cores, inside = rng.choice(pool[0], at.cores), rng.choice(pool[1], at.ccxs)
    factor = 1 + NODE * kind.chip * standard_draws(rng, kind.chip_tail, 1)[0]
    own = np.where(at.inside, inside[at.ccx[0]], (ports[at.ccx[0]] + ports[at.ccx[1]]) / 2)
    each = PAIR * rng.standard_normal(len(nominal) // len(quantity.homes))
    out = nominal * factor * (1 + cores[at.core[0]] + cores[at.core[1]] + own + np.tile(each, len(quantity.homes)))
    if harvested_ns:
        means = harvested_ns * rng.standard_normal(at.ccxs)
        pairs = HARVESTED_PAIR_NS * rng.standard_normal(len(out))
        _, group = np.unique(np.where(at.inside, at.ccx[0], -1), return_inverse=True)
        pairs -= (np.bincount(group, pairs) / np.bincount(group))[group]  # the mean inside a CCX is as drawn
        out = out + np.where(at.inside & (at.core[0] != at.core[1]), means[at.ccx[0]] + pairs, 0.0)
    return np.asarray(out)


def _cells_of_chip(quantity: Quantity, kind: Kind, rng: np.random.Generator) -> Floats:
    factor = np.ones(quantity.size)
    if quantity.model.term == "clock":  # with a tail downwards
        slower = SLOWER * kind.chip * rng.exponential() + kind.clocks * (rng.random() < 0.5)
        return factor - slower + CLOCK * standard_draws(rng, kind.chip_tail, quantity.size)
    for label, sd in BY_LABEL.items():
        if (group := _groups(quantity, label)) is not None:
            factor += sd * kind.chip * standard_draws(rng, kind.chip_tail, int(group.max()) + 1)[group]
    return factor


_GROUPS: dict[tuple[str, bytes, str], Ints | None] = {}


def _groups(quantity: Quantity, label: str) -> Ints | None:
    """The number of the values of labels at each place; None where the quantity has no such labels."""
    key = (quantity.measurement, quantity.layout.key, label)
    if key not in _GROUPS:
        labels, names = sets.labels(quantity), label.split(" x ")
        _GROUPS[key] = None
        if set(names) <= set(labels):
            values = [tuple(labels[name][place] for name in names) for place in range(quantity.size)]
            order = {value: number for number, value in enumerate(dict.fromkeys(values))}
            _GROUPS[key] = np.array([order[value] for value in values])
    return _GROUPS[key]


def _job(quantity: Quantity, kind: Kind, rng: np.random.Generator) -> Floats:
    """What stays through a job."""
    if not kind.job:
        return np.ones(quantity.size)
    common = 1 + kind.job * rng.standard_normal()
    if not quantity.of_pairs:
        return np.asarray(common + kind.job * rng.standard_normal(quantity.size))
    at = _parts(quantity)
    cores, ccxs = (kind.job * rng.standard_normal(count) for count in (at.cores, at.ccxs))
    return np.asarray(common + cores[at.core].sum(axis=0) + ccxs[at.ccx].sum(axis=0) / 2)


def _run(quantity: Quantity, kind: Kind, rng: np.random.Generator) -> Floats:
    if not quantity.of_pairs:
        steady = STEADY if quantity.model.term == "clock" else 1.0
        each = CELL_EACH * standard_draws(rng, kind.run_tail, quantity.size)
        tail = rng.exponential() - 1 if kind.clocks and quantity.model.term == "clock" else 0.0
        return np.asarray(1 + kind.run * steady * (CELL_COMMON * (rng.standard_normal() - 3 * tail) + each))
    at = _parts(quantity)
    ccxs = BY_CCX * rng.standard_normal(at.ccxs)
    line = COMMON * rng.standard_normal() + ccxs[at.ccx].sum(axis=0) / 2
    each = EACH * standard_draws(rng, kind.run_tail, quantity.size)
    bursts = 0.3 * (rng.random(quantity.size) < kind.bursts)
    return np.asarray(np.maximum(1 + kind.run * (np.where(at.inside, IN_L3, 1.0) * line + each) + bursts, 0.2))


#: Published matrices whose CCXs are known, of one cache line a pair of CCXs at least.
_EPYC = ("AMD EPYC 7773X", "AMD EPYC 7R13 48-Core Processor", "Dual AMD EPYC 7742 64-Core Processor")


def _published(seed: int) -> tuple[Floats, Floats]:
    """Relative effects of the cores and of the insides of the CCXs of a published machine."""
    return _effects(_EPYC[seed % len(_EPYC)])


@lru_cache(maxsize=len(_EPYC))
def _effects(name: str) -> tuple[Floats, Floats]:
    folder = data()
    assert folder is not None
    known = published.machine(folder, name)
    first = np.unique(known.parts["smt"], return_index=True)[1]
    matrix = np.log(averaged(positive(known.matrix))[np.ix_(first, first)])
    ccx = known.parts["ccx"][first]
    socket = known.parts["socket"][first] if "socket" in known.parts else np.zeros_like(ccx)
    near = (socket[:, None] == socket) & (ccx[:, None] != ccx)
    rows = np.array([np.median(row[mask]) for row, mask in zip(matrix, near, strict=True)])
    cores = np.concatenate([rows[ccx == number] - rows[ccx == number].mean() for number in np.unique(ccx)])
    inside = np.array(
        [
            matrix[np.ix_(*2 * [ccx == number])][~np.eye((ccx == number).sum(), dtype=bool)].mean()
            for number in np.unique(ccx)
        ]
    )
    return cores, inside - np.median(inside)
