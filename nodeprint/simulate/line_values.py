"""The value of each line of a simulated run, as records of `--detail` have them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from nodeprint.data.places.layout import Layout
from nodeprint.machine.topology.model import Topology
from nodeprint.simulate import lines, silicon
from nodeprint.simulate.plan import Plan, draw_pairs, homes_of, planned_nodes, pools_of
from nodeprint.simulate.simulated_node import NodePlan


def line_values(
    plan: Plan,
    node: NodePlan,
    pools: Sequence[lines.Pool],
    home: npt.NDArray[np.int64],
    values: npt.NDArray[np.float32],
    run_pass: int,
    rng: np.random.Generator,
) -> silicon.Floats:
    """The hop of each pair on each line of a pass (pair, line); the pair's value is that of its lines' clusters."""
    out = np.empty((len(values), plan.spread.lines))
    over = np.asarray(values, dtype=np.float64)
    if not node.path.in_ccx.all():  # hops inside a CCX are no part of the mean of a way over the die
        over = np.where(node.path.in_ccx, over[~node.path.in_ccx].mean(), over)
    for socket, pool in enumerate(pools):
        on = lines.ways(node.layout, over, pool.modes, socket)
        at_home = np.flatnonzero(home == socket)
        added = lines.line_ns(pool, on, run_pass)[on.of_pair[at_home]]
        added[node.path.in_ccx[at_home]] = 0
        own = plan.spread.line * np.sqrt(0.5) * values[at_home, None] * rng.standard_normal(added.shape)
        each = values[at_home, None] + added + own
        out[at_home] = each + (values[at_home] - lines.figure(pool, run_pass, each))[:, None]
    return out


def line_texts(
    pools: Sequence[lines.Pool], home: npt.NDArray[np.int64], each: silicon.Floats, run_pass: int
) -> list[str]:
    """What `--detail` adds to the record of each pair."""
    out = [""] * len(each)
    for socket, pool in enumerate(pools):
        at_home = np.flatnonzero(home == socket)
        clusters = lines.medians(pool, run_pass, each[at_home])
        for i, of_lines, of_clusters in zip(at_home.tolist(), each[at_home].tolist(), clusters.tolist(), strict=True):
            out[i] = (
                f',"line_ns":[{",".join(f"{ns:.2f}" for ns in of_lines)}]'
                f',"cluster_ns":[{",".join(f"{ns:.3f}" for ns in of_clusters)}]'
            )
    return out


@dataclass(frozen=True)
class Detailed:
    """One run of a node with the value of each line, as `write` would have it in the records of `--detail`.

    `a` and `b` are the OS numbers of each pair (p) and `socket` that of its lines (p), `ns` its hops (pass, p, line);
    `pools` has the lines of each socket, and where they live.
    """

    node: str
    topology: Topology
    a: npt.NDArray[np.int64]
    b: npt.NDArray[np.int64]
    socket: npt.NDArray[np.int64]
    ns: silicon.Floats
    pools: Sequence[lines.Pool]
    layout: Layout
    cpus: Sequence[int]


def detailed(plan: Plan) -> Iterator[Detailed]:
    """The runs of the plan's nodes in order, from the same draws as `write`, for the first of its homes."""
    for number, node in enumerate(planned_nodes(plan)):
        home = homes_of(plan, node.topology, node.path)[0]
        a, b = np.array(node.cpus)[node.layout.pairs].T
        for run in range(1, plan.runs_of_pairs + 1):
            rng = np.random.default_rng([plan.seed, number, 1, run, 98])
            values = draw_pairs(plan, number, node, 1, run)[:, 0]
            pools = pools_of(plan, number, node, 1, run)
            ns = [line_values(plan, node, pools, home, values[p], p, rng) for p in range(plan.passes)]
            yield Detailed(node.name, node.topology, a, b, home, np.stack(ns), pools, node.layout, node.cpus)
