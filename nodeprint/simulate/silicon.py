"""The physics of a simulated chip: core-to-core latency along its path, in ns, and silicon variation.

The latency of a compare-exchange between two CPUs is the sum of the components that it passes. They are both cores;
inside a CCX the ring, else both CCX ports, both quadrants' mesh and the home node's detour; between sockets the link.
Base values reproduce the pair classes of published matrices of two-socket EPYCs (docs/validation.md). These are SMT 8
ns, CCX 24, other CCX 110, other socket 200.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt
import pandas as pd

from nodeprint.data.places.layout import CCD, CCX, QUADRANT, RANK, SOCKET, Ints, Layout, codes
from nodeprint.simulate import lines

Floats = npt.NDArray[np.float64]

#: Cost of a component, ns per latency. A core's share of protocol work scales with its own clock, that of a port and
#: the mesh with the fabric's.
CORE_NS, SMT_NS, RING_NS, RING_STEP_NS = 7.0, 3.0, 8.5, 0.6
PORT_NS, MESH_NS, HOME_DETOUR_NS, LINK_NS = 45.0, 53.0, 90.0, 88.0

#: Standard deviation of means inside CCXs, and its growth with the share of fused-off cores. Published parts have
#: 0.43 ns with six of eight cores (EPYC 9454) and 0.78 ns with three (EPYC 74F3). None is beyond 1.26 ns, so draws are
#: uniform, not normal.
HARVESTED_NS, HARVESTED_SLOPE_NS = 0.2, 0.93

#: A message: what MPI takes for itself, and how many cache lines a core copies at a time.
START_NS, LINES_UNDERWAY = 1500.0, 24.0
#: Extra time per byte of a message over that inside a quadrant, if a socket has four. Values are for the quadrant at
#: the same memory controller, which streams, and for those at the other one. The last is for another socket, for each
#: end in the later half of its quadrants. A message of 1 MiB takes 74 and 84 us instead of 78, and 10 us more
#: (docs/method/messages.md).
STREAMED_NS, CONTROLLERS_NS, FAR_NS = -4000.0 / (1 << 20), 6000.0 / (1 << 20), 10000.0 / (1 << 20)


@dataclass(frozen=True)
class Variation:
    """Healthy variation: relative standard deviations between chips, and between jobs, runs and passes.

    Defaults follow docs/validation.md: lines differ by 3.1% (32 a pass), half of it common and half per CCX. Runs vary
    by 0.3%. `tail` and `chip_tail` are the degrees of freedom of Student's t for cells and silicon, 0 for normal.
    `pass_rho` is the correlation of neighboring passes of a pair.
    """

    node: float = 0.002
    socket: float = 0.002
    port: float = 0.003
    link: float = 0.003
    core: float = 0.0036
    line: float = 0.031
    lines: int = 32
    run: float = 0.0015
    drift: float = 0.0015
    cell: float = 0.008
    run_cell: float = 0.003
    pass_rho: float = 0.4
    burst_rate: float = 0.001
    burst: float = 0.3
    tail: float = 4.0
    chip_tail: float = 0.0

    def times(self, factor: float) -> Variation:
        """All standard deviations so many times as large."""
        sizes = ("node", "socket", "port", "link", "core", "line", "run", "drift", "cell", "run_cell")
        return replace(self, **{name: factor * getattr(self, name) for name in sizes})


@dataclass(frozen=True)
class Paths:
    """Index of the parts that each pair passes (p), -1 where it passes none, from a layout."""

    layout: Layout
    core_a: Ints
    core_b: Ints
    ccx: Ints
    port_a: Ints
    port_b: Ints
    quadrant_a: Ints
    quadrant_b: Ints
    socket_a: Ints
    socket_b: Ints
    in_core: npt.NDArray[np.bool_]
    in_ccx: npt.NDArray[np.bool_]
    cross: npt.NDArray[np.bool_]
    n_cores: int
    n_ccx: int
    n_quadrants: int
    n_sockets: int
    #: Extra latency of the path between the sites of both ends, ns (p).
    apart_ns: Floats

    @property
    def core_slots(self) -> Ints:
        """The first slot of each core."""
        return np.unique(codes(self.layout.slots[:, :5]), return_index=True)[1].astype(np.int64)

    @property
    def ccx_of_core(self) -> Ints:
        """The CCX of each core."""
        return codes(self.layout.slots[:, : CCX + 1])[self.core_slots]


def paths(layout: Layout, modes: lines.Modes | None = None) -> Paths:
    """The parts each pair of `layout` passes, on the I/O die of `modes`."""
    slots, a, b = layout.slots, layout.pairs[:, 0], layout.pairs[:, 1]
    core = codes(slots[:, : RANK + 1])
    ccx = codes(slots[:, : CCX + 1])
    quadrant, socket = codes(slots[:, : QUADRANT + 1]), codes(slots[:, : SOCKET + 1])
    in_ccx = ccx[a] == ccx[b]
    modes = modes or lines.Modes()
    site = lines.sites_of(layout, modes)
    return Paths(
        layout,
        core[a],
        core[b],
        np.where(in_ccx, ccx[a], -1),
        ccx[a],
        ccx[b],
        quadrant[a],
        quadrant[b],
        socket[a],
        socket[b],
        core[a] == core[b],
        in_ccx,
        socket[a] != socket[b],
        int(core.max(initial=0)) + 1,
        int(ccx.max(initial=0)) + 1,
        int(quadrant.max(initial=0)) + 1,
        int(socket.max(initial=0)) + 1,
        np.asarray(modes.pair_step_ns * modes.steps[site[a], site[b]], dtype=np.float64),
    )


@dataclass(frozen=True)
class Chip:
    """Factors of a node's components (1 is nominal), added ns of its cores and CCXs (`ring_ns`), and ring positions."""

    core: Floats
    core_add_ns: Floats
    core_clock: Floats
    ring: Floats
    ring_ns: Floats
    ccx: Floats
    port: Floats
    quadrant_link: Floats
    socket: Floats
    socket_link: float = 1.0
    fabric: float = 1.0
    whole: float = 1.0
    #: One NUMA node a socket: lines are interleaved over its quadrants, which are equally far then.
    nps1: bool = False
    #: Extra factors of single pairs (p), for defects outside the path.
    pair: Floats = field(default_factory=lambda: np.ones(1))
    #: The share of its bandwidth that the port of each CCX has, for defects.
    port_rate: Floats = field(default_factory=lambda: np.ones(1))


def standard_draws(rng: np.random.Generator, tail: float, size: int | tuple[int, ...]) -> Floats:
    """Standard deviation 1, normal or Student's t with `tail` degrees of freedom."""
    if tail <= 2:
        return rng.standard_normal(size)
    return np.asarray(rng.standard_t(tail, size) * np.sqrt((tail - 2) / tail))


def chip(path: Paths, spread: Variation, rng: np.random.Generator, positions: int) -> Chip:
    """Silicon drawn for one node; each CCX of a harvested part has its cores at some of `positions` (0: at all)."""

    def factor(sd: float, size: int | tuple[int, ...]) -> Floats:
        return np.asarray(1.0 + sd * standard_draws(rng, spread.chip_tail, size))

    ring = path.layout.slots[path.core_slots, RANK].astype(float)
    ring_ns, ccx_of_core = np.zeros(path.n_ccx), path.ccx_of_core
    for ccx in range(path.n_ccx if positions else 0):  # which are active differs between chips
        of_ccx = ccx_of_core == ccx
        ring[of_ccx], ring_ns[ccx] = _harvested(int(of_ccx.sum()), positions, rng)
    link = factor(spread.link, (path.n_quadrants, path.n_quadrants))
    return Chip(
        core=factor(spread.core, path.n_cores),
        core_add_ns=np.zeros(path.n_cores),
        core_clock=np.ones(path.n_cores),
        ring=ring,
        ring_ns=ring_ns,
        ccx=factor(spread.port, path.n_ccx),
        port=factor(spread.port, path.n_ccx),
        quadrant_link=(link + link.T) / 2,
        socket=factor(spread.socket, path.n_sockets),
        socket_link=float(factor(spread.link, 1)[0]),
        whole=float(factor(spread.node, 1)[0]),
    )


def _harvested(cores: int, positions: int, rng: np.random.Generator) -> tuple[Floats, float]:
    """Positions of the active cores of a CCX, and its extra latency in ns.

    CCX means then differ as on published parts.
    """
    ring = np.sort(rng.permutation(positions)[:cores]).astype(float)
    widest = np.sqrt(3) * (HARVESTED_NS + HARVESTED_SLOPE_NS * (1 - cores / positions))
    steps = np.abs(np.subtract.outer(ring, ring)).sum() / max(cores * (cores - 1), 1)
    return ring, float(rng.uniform(-widest, widest) - RING_STEP_NS * (steps - (positions + 1) / 3))


def latency(path: Paths, chip: Chip, home: Ints | None = None) -> Floats:
    """True core-to-core latency of each pair in ns (p).

    `home` is the home socket of the lines (p), by default that of the first CPU.
    """
    a, b = path.core_a, path.core_b
    work = CORE_NS * (1 / chip.core_clock[a] + 1 / chip.core_clock[b]) + chip.core_add_ns[a] + chip.core_add_ns[b]
    own = np.maximum(path.ccx, 0)
    ring = RING_NS + RING_STEP_NS * np.abs(chip.ring[a] - chip.ring[b]) + chip.ring_ns[own]
    inside = (work + ring) * chip.ccx[own]
    core_factor = chip.core[a] + chip.core[b] - 1
    qa, qb = path.quadrant_a, path.quadrant_b
    mesh = (MESH_NS + path.apart_ns * (not chip.nps1)) * chip.quadrant_link[qa, qb]
    home = path.socket_a if home is None else home
    detour = np.where((path.socket_a != home) & (path.socket_b != home), HOME_DETOUR_NS, 0.0)
    outside = work + (PORT_NS / 2 * (chip.port[path.port_a] + chip.port[path.port_b]) + mesh) * chip.fabric
    outside = outside + (np.where(path.cross, LINK_NS, 0.0) + detour) * chip.socket_link
    value = np.where(path.in_core, SMT_NS + work * 0.4, np.where(path.in_ccx, inside, outside))
    own = np.where(path.cross, 1.0, chip.socket[path.socket_a])
    return np.asarray(value * core_factor * own * chip.whole * chip.pair, dtype=np.float64)


def message_ns(path: Paths, chip: Chip, size: int) -> Floats:
    """Time of a message of each pair (p) from its core-to-core latency (Little's law) and its path through the I/O die.

    A copy keeps LINES_UNDERWAY cache lines underway; START_NS is MPI's own time. Steps between sites are those of
    messages, not of single lines.
    """
    hop_ns = latency(replace(path, apart_ns=np.zeros_like(path.apart_ns)), chip)
    return np.asarray(START_NS + size / 64 * hop_ns / LINES_UNDERWAY + size * _through_die_ns(path), dtype=np.float64)


def _through_die_ns(path: Paths) -> Floats:
    """Extra time per byte of a message (p) by the quadrants of both ends; 0 without four quadrants per socket."""
    if path.n_quadrants != 4 * path.n_sockets or path.layout.slots[:, QUADRANT].min(initial=0) < 0:
        return np.zeros(len(path.core_a))
    a, b = path.quadrant_a % 4, path.quadrant_b % 4
    inside = np.where(a == b, 0.0, np.where(a // 2 == b // 2, STREAMED_NS, CONTROLLERS_NS))
    return np.asarray(np.where(path.cross, FAR_NS * ((a >= 2) + (b >= 2).astype(float)), inside), dtype=np.float64)


@dataclass(frozen=True)
class CoreDisturbance:
    """Factor `by` on the pairs of a core, with probability `rate` each, in run `run` (from 1; 0 is every run).

    `busy`: something else takes the core's time.
    """

    core: int
    by: float
    run: int = 0
    rate: float = 1.0
    busy: bool = False


def draw_run(
    path: Paths,
    truth: Sequence[Floats],
    spread: Variation,
    rng: np.random.Generator,
    *,
    passes: int,
    run: int,
    disturbances: Sequence[CoreDisturbance],
    pools: Sequence[lines.LinePool] = (),
    homes: Sequence[Ints] = (),
) -> npt.NDArray[np.float32]:
    """The values of one run: (pass, home, pair) in ns, with a home for each of `truth`.

    New draws: the lines of each pass (common, per CCX), the run's temperature and drift, cell offsets of the run,
    autocorrelated heavy-tailed passes, and bursts. `pools` are the lines of each socket, and `homes` the socket of each
    pair's lines (p) for each of `truth`. Without them lines are common draws alone.
    """
    n = len(path.core_a)
    out = np.empty((passes, len(truth), n), dtype=np.float32)
    order = np.empty(n)
    order[rng.permutation(n)] = np.arange(n) / max(n - 1, 1) - 0.5  # place of each pair in the run's order
    shift = spread.run * rng.standard_normal()
    drift = spread.drift * rng.standard_normal()
    median_of_lines = spread.line * 1.25 / np.sqrt(spread.lines)
    for h, base in enumerate(truth):
        stays = spread.run_cell * rng.standard_normal(n)
        noise = np.zeros(n)
        on = [lines.ways(path.layout, base, pool.modes, socket) for socket, pool in enumerate(pools)]
        for p in range(passes):
            if pools:
                common = common_of_lines(path, base, pools, homes[h], on, p)
            else:
                common = np.full(n, median_of_lines * np.sqrt(0.5) * rng.standard_normal())
            per_ccx = median_of_lines * 0.5 * rng.standard_normal(path.n_ccx)
            # a line that two cores of one CCX pass to and fro stays in their L3
            line = np.where(path.in_ccx, 0.3, 1.0) * (common + per_ccx[path.port_a] + per_ccx[path.port_b])
            fresh = rng.standard_normal(n) if spread.tail <= 2 else standard_draws(rng, spread.tail, n)
            noise = fresh if p == 0 else spread.pass_rho * noise + np.sqrt(1 - spread.pass_rho**2) * fresh
            moved = shift + drift * ((p + order + 0.5) / passes - 0.5) * 2
            factor = 1 + line + moved + stays + spread.cell * noise
            factor = factor + spread.burst * (rng.random(n) < spread.burst_rate)
            for d in disturbances:
                hit = (path.core_a == d.core) | (path.core_b == d.core)
                if d.run not in (0, run):
                    continue
                factor = np.where(hit & (rng.random(n) < d.rate), factor * d.by, factor)
            out[p, h] = np.maximum(base * factor, 0.5)
    return out


def common_of_lines(
    path: Paths,
    base: Floats,
    pools: Sequence[lines.LinePool],
    home: Ints,
    on: Sequence[tuple[Ints, pd.DataFrame]],
    run_pass: int,
) -> Floats:
    """By which share the lines of a pass make each pair slower (p): inside a CCX not by their place.

    `on` is each pair's way to the lines of a socket, and these ways, of each socket.
    """
    out = np.zeros(len(base))
    for socket, pool in enumerate(pools):
        at_home = home == socket
        way_of, ways = on[socket]
        added = lines.figure(pool, run_pass, lines.line_ns(pool, ways, run_pass))
        alone = np.median(pool.own[pool.drawn[run_pass]])
        out[at_home] = np.where(path.in_ccx, alone, added[way_of] / base)[at_home]
    return out


def with_pairs(chip: Chip, factor: Floats) -> Chip:
    """`chip` with `factor` (p) on single pairs."""
    return replace(chip, pair=chip.pair * factor)


__all__ = ["CCD", "Chip", "CoreDisturbance", "Paths", "Variation", "chip", "draw_run", "latency", "paths", "with_pairs"]
