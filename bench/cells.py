"""Does the verdict keep its promises for what is no pair of CPUs? Simulated fleets of eight with fixed seeds, bounds
one-sided at 95 % (Clopper and Pearson).

    python -m bench.cells --fleets 299

Healthy fleets without any node accused; defects of 0.5 and 1.2 times the printed smallest effect, each with its flow of
second jobs; and how often the first finding names the place.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping
from dataclasses import dataclass, replace

from bench import table
from bench.table import Row, row
from bench.verdict import flow, lower, upper
from nodeprint.packed import PackedFleet
from nodeprint.simulate import Plan, fleet
from nodeprint.topology.presets import preset
from nodeprint.verdict import Verdict, judge_fleet

_NODES = 8


@dataclass(frozen=True)
class Planted:
    """A defect with its size (signed, in percent) left open, the term it is found by, and its place."""

    text: str
    sign: int
    term: str
    where: Mapping[str, int]


PLANTED = (
    Planted("memory-channel node 1 {:+.3f}%", -1, "bandwidth", {"memory_node": 1}),
    Planted("core-clock 37 {:+.3f}%", -1, "clock", {"core": 37}),
)


def made(seed: int, defects: tuple[str, ...] = (), jobs: Mapping[str, int] | None = None) -> PackedFleet:
    """A fleet's cells alone, so that nothing is found by its pairs."""
    topology = preset(("naples-2x32", "icelake-2x40")[seed % 2])
    plan = Plan(topology, nodes=_NODES, passes=1, seed=seed, cells=True, defects=defects)
    return replace(fleet(plan, jobs), stacks=())


def judged(seed: int, defects: tuple[str, ...] = ()) -> Verdict:
    """The verdict after its second jobs."""
    return flow(lambda jobs: made(seed, defects, jobs))[1]


def clean(fleets: int) -> list[Row]:
    """Healthy fleets: how many have an accused node, and how many of their nodes are SAME."""
    accused = same = 0
    for seed in range(fleets):
        counts = judged(seed).fleet.counts
        accused += any(counts.get(outcome) for outcome in ("DEVIATES", "UNSTABLE", "DIFFER"))
        same += counts.get("SAME", 0)
    return [
        row(f"healthy: fleets of {fleets} with an accused node, at most", 100 * upper(accused, fleets), 1.05, "%"),
        row("healthy: nodes that are not SAME", 100 * (1 - same / (fleets * _NODES)), 5.0, "%"),
    ]


def power(planted: Planted, fleets: int) -> list[Row]:
    """How often a defect below and beyond the printed smallest effect is found, and named right."""
    rows = []
    for factor, found_limit in ((0.5, 5.0), (1.2, None)):
        found = right = 0
        for seed in range(fleets):
            size = judge_fleet(made(seed)).fleet.smallest_effect[planted.term] or 1.0
            verdict = judged(seed, (f"node001: {planted.text.format(planted.sign * 100 * factor * size)}",))
            node = verdict.nodes["node001"]
            hit = node.verdict == "DEVIATES"
            found += hit
            first = node.findings[0] if hit else None
            right += first is not None and first.term == planted.term and planted.where.items() <= first.where.items()
        name = f"{planted.term}, {factor} of the smallest effect"
        rows.append(row(f"{name}: found of {fleets}", 100 * found / fleets, found_limit, "%"))
        if factor > 1:
            rows.append(row(f"{name}: missed, at most", 100 * (1 - lower(found, fleets)), 8.0, "%"))
            rows.append(row(f"{name}: found and named otherwise", 100 * (found - right) / max(found, 1), 2.0, "%"))
    return rows


def main() -> None:
    """Print the table, keep JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fleets", type=int, default=299)
    options = parser.parse_args()
    load = os.getloadavg()[0]
    rows = clean(options.fleets)
    for planted in PLANTED:
        rows += power(planted, max(options.fleets // 5, 20))
    table.keep("cells", rows, load)


if __name__ == "__main__":
    main()
