"""Small simulated fleets, judged: what tests of the judge begin with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache

from nodeprint.judge.judge import Judged, judge
from nodeprint.packed import PackedFleet
from nodeprint.simulate import Plan, fleet
from nodeprint.topology.presets import from_part, preset

#: Two sockets of 32 cores, and a part with six of eight cores a CCX.
FULL, HARVESTED = "naples-2x32", "EPYC 9454"


@lru_cache(maxsize=64)
def made(
    *defects: str, nodes: int = 8, jobs: int = 1, runs: int = 2, pair_runs: int = 6, seed: int = 1, cells: bool = False,
    machine: str = FULL,
) -> PackedFleet:  # fmt: skip
    """A simulated fleet with `defects`, as many runs as the standard preset makes."""
    topology = from_part(machine, 2) if machine.startswith("EPYC") else preset(machine)
    plan = Plan(
        topology, nodes=nodes, jobs=jobs, runs=runs, pair_runs=pair_runs, passes=1, seed=seed, cells=cells,
        defects=defects,
    )  # fmt: skip
    return fleet(plan)


@lru_cache(maxsize=64)
def judged(*defects: str, **changes: int | bool | str) -> Judged:
    """Such a fleet, judged by the defaults."""
    return judge(made(*defects, **changes))  # type: ignore[arg-type]


def with_outcomes(of: Judged) -> Mapping[str, str]:
    """By node its outcome."""
    return {name: node.outcome.value for name, node in of.verdict.nodes.items()}


def without(found: PackedFleet, measurement: str, *nodes: int) -> PackedFleet:
    """The fleet as if some nodes (all if none is named) had not made a measurement."""
    kept = []
    for quantity in found.quantities:
        if quantity.measurement == measurement:
            rows = [row for row, node in enumerate(quantity.node.tolist()) if nodes and node not in nodes]
            if not rows:
                continue
            kept.append(replace(
                quantity, values=quantity.values[rows], node=quantity.node[rows], job=quantity.job[rows],
                run=quantity.run[rows], started=tuple(quantity.started[row] for row in rows),
                disturbed=quantity.disturbed[rows],
            ))  # fmt: skip
        else:
            kept.append(quantity)
    return replace(found, quantities=tuple(kept))
