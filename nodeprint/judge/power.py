"""How many nodes and runs are needed to find a difference: detection limits over simulated fleets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product

import msgspec
import numpy as np

from nodeprint.judge.judge import judge
from nodeprint.machine.topology.model import Topology
from nodeprint.settings.texts import say
from nodeprint.simulate import Plan, Spread, fleet


class Power(msgspec.Struct, frozen=True):
    """For a size of fleet: by family of parts, the smallest relative effect that is found (median over seeds)."""

    nodes: int
    runs: int
    smallest_effect: Mapping[str, float]


def power(
    topology: Topology,
    spread: Spread,
    nodes: Sequence[int] = (4, 8, 16, 64),
    runs: Sequence[int] = (2, 3, 6),
    seeds: int = 3,
) -> list[Power]:
    """The detection limits for each number of nodes and of runs, over `seeds` simulated fleets each."""
    out = []
    for count, repeats in product(nodes, runs):
        plans = (Plan(topology, nodes=count, runs=repeats, seed=seed, spread=spread) for seed in range(seeds))
        by_family: dict[str, list[float]] = {}
        for plan in plans:
            for limit in judge(fleet(plan)).verdict.fleet.limits:
                by_family.setdefault(limit.family, []).append(limit.effect)
        out.append(Power(count, repeats, {family: float(np.median(sizes)) for family, sizes in by_family.items()}))
    return out


def as_text(powers: Sequence[Power]) -> str:
    """For a terminal: a row per size of fleet, a column per family, in percent."""
    families = list(dict.fromkeys(family for power in powers for family in power.smallest_effect))
    rows = [["nodes", "runs", *families]]
    for size in powers:
        effects = [f"{size.smallest_effect.get(family, np.nan):.1%}" for family in families]
        rows.append([str(size.nodes), str(size.runs), *effects])
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = ["  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in rows]
    return "\n".join([say("power_heading"), *lines])
