"""Fleets by other assumptions than the simulator's: what the method is judged with must not be what it was built on.

Lines stay through a run and are shared by all pairs, each with an effect of its own on every CCX; passes are
autocorrelated; a run drifts along the order of the pairs, which is not random; some pairs have two states; cells that
a chip keeps are resampled from a pool (published matrices' residuals where there are any, else a skewed one); some
nodes are noisier than others.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from nodeprint.fleet.job_parts import pair_layout, pair_places
from nodeprint.fleet.quantity import Quantity, models
from nodeprint.layout import CCX, RANK, Layout, codes
from nodeprint.packed import PackedFleet, PackedNode
from nodeprint.simulate.machines import measured_places
from nodeprint.structure.matrix_arithmetic import averaged, positive
from nodeprint.topology.model import Topology
from tests import published

Floats = npt.NDArray[np.float64]
#: Changes the true latencies (pair) of a node in a job: (node, job, run, latency, layout) -> latency.
Plant = Callable[[int, int, int, Floats, Layout], Floats]


@dataclass(frozen=True)
class Other:
    """Parameters, relative standard deviations unless said otherwise; `noisy` is that of the logarithm of how noisy the
    runs of a node are."""

    core: float = 0.005
    core_tail: float = 3.0
    ccx: float = 0.003
    node: float = 0.003
    line: float = 0.031
    line_ccx: float = 0.02
    lines: int = 32
    rho: float = 0.7
    cell: float = 0.012
    drift: float = 0.005
    bimodal: float = 0.01
    bimodal_step: float = 0.08
    keeps: float = 0.01
    noisy: float = 0.0


def fleet(
    topology: Topology,
    nodes: int,
    seed: int,
    *,
    jobs_of: Mapping[str, int] | None = None,
    jobs: int = 1,
    runs: int = 2,
    passes: int = 3,
    other: Other | None = None,
    pool: Floats | None = None,
    plant: Plant | None = None,
) -> PackedFleet:
    """A packed fleet; `pool` are relative residuals that chips' cells are drawn from."""
    p = other or Other()
    layout, cpus = measured_places(topology)
    keep = np.all(layout.slots[layout.pairs][:, :, 5] == 0, axis=1)
    layout = replace(layout, pairs=layout.pairs[keep])
    names = [f"node{i:03d}" for i in range(nodes)]
    base = _base(layout, np.random.default_rng([seed, 1_000_000]))
    pool = _skewed() if pool is None else pool
    rows, node_of, job_of, run_of, started = [], [], [], [], []
    for i, name in enumerate(names):
        rng = np.random.default_rng([seed, i])
        truth = base * _chip(layout, p, pool, rng)
        states = rng.random(len(base)) < p.bimodal
        times = float(np.exp(p.noisy * rng.standard_normal()))
        mine = replace(p, line=times * p.line, line_ccx=times * p.line_ccx, cell=times * p.cell, drift=times * p.drift)
        for job in range(1, (jobs_of or {}).get(name, jobs) + 1):
            for run in range(1, runs + 1):
                own = truth if plant is None else plant(i, job, run, truth.copy(), layout)
                rows.append(_run(own, layout, mine, states, np.random.default_rng([seed, i, job, run]), passes))
                node_of.append(i), job_of.append(job), run_of.append(run)
                started.append(f"2026-01-01T{job:02d}:{run:02d}:00+00:00")
    hops = Quantity(
        "coherence-cas", "cas", "hop", "ns", models()["coherence-cas"], pair_layout(layout),
        pair_places((-1,), layout.pairs), np.stack(rows).astype(np.float32), np.array(node_of), np.array(job_of),
        np.array(run_of), tuple(started), np.zeros(len(rows)),
    )  # fmt: skip
    packed = tuple(
        PackedNode(name, name, cpus=tuple(cpus), cores=tuple(codes(layout.slots[:, : RANK + 1]).tolist()))
        for name in names
    )
    return PackedFleet("other", True, packed, (hops,))


def truth(
    topology: Topology, nodes: int, seed: int, *, other: Other, pool: Floats | None = None
) -> tuple[Layout, Floats]:
    """The layout of `fleet` (one thread of each core) and the latencies of its silicon (node, pair), without noise."""
    layout, _ = measured_places(topology)
    keep = np.all(layout.slots[layout.pairs][:, :, 5] == 0, axis=1)
    layout = Layout(layout.slots, layout.pairs[keep], layout.harvested)
    base = _base(layout, np.random.default_rng([seed, 1_000_000]))
    pool = _skewed() if pool is None else pool
    return layout, np.stack([base * _chip(layout, other, pool, np.random.default_rng([seed, i])) for i in range(nodes)])


def _states(layout: Layout, p: Other, pool: Floats | None, seed: int, node: int) -> npt.NDArray[np.bool_]:
    rng = np.random.default_rng([seed, node])
    _chip(layout, p, _skewed() if pool is None else pool, rng)  # the draws before
    return np.asarray(rng.random(len(layout.pairs)) < p.bimodal)


def published_pool(folder: Path) -> Floats:
    """What is left of published matrices without class medians and cores, each in its own standard deviations.

    `folder` holds core-to-core-latency's files. One thread of each core, machines of 16 cores and more. The shape is
    theirs, heavy tails and skew; how large it is `Other.keeps` says.
    """
    parts = []
    for name in (*published.CHOSEN_ON, *published.HELD_OUT):
        known = published.machine(folder, name)
        n = len(known.matrix)
        first = np.unique(known.parts.get("smt", np.arange(n)), return_index=True)[1]
        if len(first) < 16:
            continue
        matrix = averaged(positive(known.matrix))[np.ix_(first, first)]
        a, b = np.triu_indices(len(first), 1)
        levels = [labels[first] for level, labels in sorted(known.parts.items()) if level != "smt"]
        same = np.array([labels[a] == labels[b] for labels in levels]).reshape(len(levels), len(a)).T
        sides = np.array([np.minimum(labels[a], labels[b]) for labels in levels[-1:]]).reshape(-1, len(a)).T
        classes = codes(np.concatenate([same.astype(np.int64), sides], axis=1)) if levels else np.zeros(len(a), int)
        left = np.log(matrix[a, b])
        for _ in range(3):
            for number in np.unique(classes):
                left[classes == number] -= np.median(left[classes == number])
            cores = np.array([np.median(left[(a == core) | (b == core)]) for core in range(len(first))])
            left -= cores[a] + cores[b]
        parts.append((left - left.mean()) / left.std())
    return np.concatenate(parts)


def _base(layout: Layout, rng: np.random.Generator) -> Floats:
    level = np.array([8.0, 25.0, 112.0, 114.0, 130.0, 230.0])[layout.classes]
    return np.asarray(level * (1 + 0.03 * rng.standard_normal(len(level))))


def _skewed() -> Floats:
    rng = np.random.default_rng(7)
    values = rng.gamma(2.0, 1.0, 5000)
    return np.asarray((values - values.mean()) / values.std())


def _chip(layout: Layout, p: Other, pool: Floats, rng: np.random.Generator) -> Floats:
    a, b = layout.pairs.T
    core, ccx = codes(layout.slots[:, : RANK + 1]), codes(layout.slots[:, : CCX + 1])
    tail = p.core_tail
    draw = (
        rng.standard_t(tail, core.max() + 1) * np.sqrt((tail - 2) / tail)
        if tail > 2
        else rng.standard_normal(core.max() + 1)
    )
    cores = p.core * draw
    ports = p.ccx * rng.standard_normal(ccx.max() + 1)
    cells = p.keeps * rng.choice(pool, len(a))
    return np.asarray(
        (1 + p.node * rng.standard_normal())
        * (1 + cores[core[a]] + cores[core[b]] + ports[ccx[a]] + ports[ccx[b]] + cells)
    )


def _run(
    truth: Floats, layout: Layout, p: Other, states: npt.NDArray[np.bool_], rng: np.random.Generator, passes: int
) -> Floats:
    ccx = codes(layout.slots[:, : CCX + 1])
    a, b = ccx[layout.pairs[:, 0]], ccx[layout.pairs[:, 1]]
    common = p.line * rng.standard_normal(p.lines)
    per_ccx = p.line_ccx * rng.standard_normal((p.lines, ccx.max() + 1))
    # the median over lines of a pair of CCXs, for each pair of CCXs once
    table = np.median(common[:, None, None] + per_ccx[:, :, None] + per_ccx[:, None, :], axis=0)
    drift = p.drift * rng.standard_normal() * np.linspace(-1, 1, len(truth))
    out = np.empty((passes, len(truth)))
    noise = rng.standard_normal(len(truth))
    for k in range(passes):
        if k:
            noise = p.rho * noise + np.sqrt(1 - p.rho**2) * rng.standard_normal(len(truth))
        two = np.where(states & (rng.random(len(truth)) < 0.5), p.bimodal_step, 0.0)
        out[k] = truth * (1 + table[a, b] + drift + p.cell * noise + two)
    return out
