"""How many nodes and runs are needed to see an effect: the judge's smallest effect over simulated fleets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product

import msgspec
import numpy as np

from nodeprint.simulate import Plan, Spread, fleet
from nodeprint.topology.model import Topology
from nodeprint.verdict.campaign_verdict import judge_fleet
from nodeprint.words.outcome import MOST_DETECTED


class Power(msgspec.Struct, frozen=True):
    """For a size of fleet: by term, the smallest relative effect that is found (median over seeds)."""

    nodes: int
    runs: int
    smallest_effect: Mapping[str, float]


def power(
    topology: Topology,
    spread: Spread,
    nodes: Sequence[int] = (4, 8, 16, 64),
    runs: Sequence[int] = (2, 3, 5),
    seeds: int = 3,
) -> list[Power]:
    """The smallest effects for each number of nodes and of runs, over `seeds` simulated fleets each."""
    out = []
    for n, r in product(nodes, runs):
        plans = (Plan(topology, nodes=n, runs=r, seed=seed, spread=spread) for seed in range(seeds))
        found = [judge_fleet(fleet(plan)).fleet.smallest_effect for plan in plans]
        names = sorted({name for effects in found for name, value in effects.items() if value is not None})
        out.append(Power(n, r, {name: float(np.median([e[name] or np.nan for e in found])) for name in names}))
    return out


def as_text(found: Sequence[Power]) -> str:
    """For a terminal: a row per size of fleet, a column per term, in percent."""
    terms = sorted({term for power in found for term in power.smallest_effect})
    rows = [["nodes", "runs", *terms]]
    for power in found:
        effects = (power.smallest_effect.get(term, np.nan) for term in terms)
        told = [f"{effect:.1%}" if effect <= MOST_DETECTED else "none" for effect in effects]
        rows.append([str(power.nodes), str(power.runs), *told])
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = ["  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in rows]
    return "SIMULATED: the detection limit by term (none: above 20 %)\n" + "\n".join(lines)
