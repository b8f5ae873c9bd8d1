"""Runs of nodeprint's simulator with the value of each line, without their records."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import xarray as xr

from nodeprint.data.places.layout import Layout
from nodeprint.machine.topology.model import Topology
from nodeprint.simulate.line_values import line_values
from nodeprint.simulate.lines import LinePool
from nodeprint.simulate.plan import Plan, draw_pairs, homes_of, planned_nodes, pools_of
from nodeprint_addons.iodie.data import Floats, Ints, pass_over_lines


@dataclass(frozen=True)
class Detailed:
    """One run of a node with the value of each line, as `simulate.write` has it in the records of `--detail`.

    `a` and `b` are the OS numbers of each pair (p) and `socket` that of its lines (p), `ns` its hops (pass, p, line);
    `pools` has the lines of each socket, and where they live.
    """

    node: str
    topology: Topology
    a: Ints
    b: Ints
    socket: Ints
    ns: Floats
    pools: Sequence[LinePool]
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


def visits_of(tensor: xr.Dataset) -> list[tuple[str, int]]:
    """Run and pass of the lines of a tensor, in their order."""
    return list(dict.fromkeys(zip(tensor["run"].to_numpy().tolist(), tensor["pass"].to_numpy().tolist(), strict=True)))


def passes_of(run: Detailed, number: int) -> Iterator[xr.Dataset]:
    """A run of nodeprint's simulator as its records would have it."""
    homes = sorted(node.node for node in run.topology.numa_nodes if node.cpus)
    for p, ns in enumerate(run.ns):
        for socket, of in enumerate(run.pools):
            own = run.socket == socket
            if own.any():
                ghz = np.full((int(own.sum()), 2), 3.0)
                drawn = of.lines[of.drawn[p]]
                yield pass_over_lines(
                    f"job1/run{number}", p, homes[socket], run.a[own], run.b[own], drawn, ns[own], ghz
                )
