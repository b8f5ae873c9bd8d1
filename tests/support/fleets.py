"""Small simulated fleets, judged: what tests of the judge begin with."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from nodeprint.data.store.packed import PackedFleet
from nodeprint.judge.judge import Judged, judge
from nodeprint.machine.topology.presets import from_part, preset
from nodeprint.simulate import Plan, fleet

#: Two sockets of 32 cores, and a part with six of eight cores a CCX.
FULL, HARVESTED = "naples-2x32", "EPYC 9454"


@lru_cache(maxsize=64)
def made(
    *defects: str,
    nodes: int = 8,
    jobs: int = 1,
    runs: int = 2,
    pair_runs: int = 6,
    seed: int = 1,
    cells: bool = False,
    machine: str = FULL,
    passes: int = 1,
) -> PackedFleet:
    """A simulated fleet with `defects`, as many runs as the standard preset makes."""
    topology = from_part(machine, 2) if machine.startswith("EPYC") else preset(machine)
    plan = Plan(
        topology,
        nodes=nodes,
        jobs=jobs,
        runs=runs,
        pair_runs=pair_runs,
        passes=passes,
        seed=seed,
        cells=cells,
        defects=defects,
    )
    return fleet(plan)


@lru_cache(maxsize=64)
def judged(*defects: str, **changes: int | bool | str) -> Judged:
    """Such a fleet, judged by the defaults."""
    return judge(made(*defects, **changes))


def with_outcomes(of: Judged) -> Mapping[str, str]:
    """By node its outcome."""
    return {name: node.outcome.value for name, node in of.verdict.nodes.items()}


def without(fleet: PackedFleet, measurement: str, *nodes: int) -> PackedFleet:
    """The fleet as if some nodes (all if none is named) had not made a measurement."""
    kept = []
    for quantity in fleet.quantities:
        of_measurement = quantity.measurement == measurement
        rows = [
            row
            for row, node in enumerate(quantity.node.tolist())
            if not of_measurement or (nodes and node not in nodes)
        ]
        if rows:
            kept.append(quantity.of_rows(np.array(rows)))
    return replace(fleet, quantities=tuple(kept))


def times(
    fleet: PackedFleet, measurement: str, factor: Callable[[int, int], float | npt.NDArray[np.floating]]
) -> PackedFleet:
    """The fleet with the values of a measurement multiplied by `factor` of the node and job."""
    kept = []
    for quantity in fleet.quantities:
        if quantity.measurement == measurement:
            rows = zip(quantity.node.tolist(), quantity.job.tolist(), quantity.values, strict=True)
            values = np.stack([np.asarray(value * factor(node, job)) for node, job, value in rows])
            kept.append(quantity.assign(values=values.astype(np.float32)))
        else:
            kept.append(quantity)
    return replace(fleet, quantities=tuple(kept))
