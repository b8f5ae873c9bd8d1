"""Does the verdict keep its promises for measurements other than pairs of CPUs? Simulated fleets of eight with fixed
seeds, bounds one-sided at 95 % (Clopper and Pearson).

    python -m bench.cells --fleets 299

Healthy fleets without any node accused; defects of 0.5 and 1.2 times the printed smallest effect, each with its flow of
second jobs; how often the first finding names the place; and whether the promises break without a part of the method.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from types import ModuleType
from unittest import mock

import numpy as np
from msgspec import structs

from bench import table
from bench import verdict as pairs
from bench.table import Row, row
from bench.verdict import flow, lower, upper
from nodeprint.fleet.quantity import Quantity
from nodeprint.judge import causes, confirmation, evidence
from nodeprint.packed import PackedFleet
from nodeprint.simulate import Plan, fleet
from nodeprint.topology.presets import preset
from nodeprint.verdict.campaign_verdict import judge_fleet
from nodeprint.words.outcome import Finding, Verdict

_NODES = 8


@dataclass(frozen=True)
class Planted:
    """A defect with its size (signed, in percent) left open, the term it is found by, and its place."""

    text: str
    sign: int
    term: str
    where: Mapping[str, int]


PLANTED = (
    Planted("memory-channel node 1 {:+.3f}%", -1, "bandwidth", {"socket": 1}),
    Planted("core-clock 37 {:+.3f}%", -1, "clock", {"core": 37}),
)


def made(
    seed: int, defects: tuple[str, ...] = (), jobs: Mapping[str, int] | None = None, nodes: int = _NODES
) -> PackedFleet:
    """A fleet's cells alone, so that nothing is found by its pairs."""
    topology = preset(("naples-2x32", "icelake-2x40")[seed % 2])
    plan = Plan(topology, nodes=nodes, passes=1, seed=seed, cells=True, defects=defects)
    found = fleet(plan, jobs)
    return replace(found, quantities=found.others)


def wide(found: PackedFleet, seed: int, spread: float = 0.02) -> PackedFleet:
    """The fleet with each node's cells apart by `spread` more (SD), in all of its runs: near the bounds, where these
    alone keep no healthy node from being accused."""
    rng = np.random.default_rng([seed, 11])

    def apart(one: Quantity) -> Quantity:
        factor = np.exp(spread * rng.standard_normal((len(found.nodes), 1, one.size)))
        return replace(one, values=(one.values * factor[one.node]).astype(np.float32))

    return replace(found, quantities=tuple(map(apart, found.quantities)))


def both(seed: int, defects: tuple[str, ...] = (), nodes: int = _NODES) -> tuple[Verdict, Verdict]:
    """The verdict of the first job, and that after the second jobs."""
    return flow(lambda jobs: made(seed, defects, jobs, nodes))


def judged(seed: int, defects: tuple[str, ...] = ()) -> Verdict:
    """The verdict after its second jobs."""
    return both(seed, defects)[1]


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


_CONFIRM = confirmation._confirm
#: By name of a part of the method what stands in its place; of the others, which pairs have too, as in bench.verdict.
OWN_MUTATIONS: Mapping[str, tuple[ModuleType, str, object]] = {
    "no crowd": (evidence, "CROWD", 2.0),
    "one run is enough": (causes, "shown_by_runs", lambda values, *_: np.ones(values.shape[1], dtype=bool)),
    "no second job": (confirmation, "_confirm", lambda *seen: structs.replace(_CONFIRM(*seen), state="confirmed")),
}
MUTATIONS = ("no z", "template holds the node", "no grouping", "no parents", *OWN_MUTATIONS)


@contextmanager
def mutated(name: str) -> Iterator[None]:
    """The method without one of its parts."""
    own = mock.patch.object(*OWN_MUTATIONS[name]) if name in OWN_MUTATIONS else nullcontext()
    with own, pairs.mutated(name):
        yield


def failures(fleets: int) -> list[str]:
    """The promises, those that are broken."""
    broken = []
    accused = suspects = 0
    for seed in range(fleets):
        first, verdict = flow(lambda jobs, seed=seed: wide(made(seed, (), jobs), seed))  # type: ignore[misc]
        accused += verdict.fleet.counts.get("DEVIATES", 0) > 0
        suspects += first.fleet.counts.get("SUSPECT", 0)
    if accused or suspects > fleets:
        broken.append(f"{accused} of {fleets} healthy fleets accused, {suspects} suspects")
    half = tuple(f"node{i:03d}: memory-channel node 1 -12%" for i in range(_NODES // 2))
    verdict = judged(0, half)
    if verdict.fleet.outcome != "TWO POPULATIONS" or verdict.fleet.counts.get("DEVIATES"):
        broken.append(f"two populations told as {verdict.fleet.outcome}, {dict(verdict.fleet.counts)}")
    many = tuple(f"node{i:03d}: core-clock 37 -15%" for i in range(_NODES // 2))
    if {"DEVIATES", "SUSPECT"} & set(judged(0, many).fleet.counts):
        broken.append("half of the nodes accused of what they share")
    for text, term, where in (
        ("memory-channel node 1 -15%", "bandwidth", {"socket": 1}),
        ("core-clock 37 -15%", "clock", {"core": 37}),
        ("global +12%", "bandwidth", {}),
    ):
        wrong = sum(not _alone(judged(seed, (f"node001: {text}",)), term, where) for seed in range(fleets))
        if wrong:
            broken.append(f"{text} not found, not named or not as one cause {wrong} times")
    missed = sum(
        both(seed, ("node001: memory-channel node 1 -12%",), nodes=2)[0].nodes["node001"].verdict != "DIFFER"
        for seed in range(fleets)
    )
    if missed:
        broken.append(f"two nodes 12 % apart not told apart {missed} times")
    for runs in ((1,), (1, 2)):
        busy = tuple(f"node001: busy core 5 run {run}" for run in runs)
        first, verdict = both(0, busy)
        outcome, loud = verdict.nodes["node001"].verdict, [f.term for f in first.nodes["node001"].findings]
        if outcome not in ("SAME", "INCONCLUSIVE") or ("jitter" in loud) != (len(runs) > 1):
            broken.append(f"a core busy in {len(runs)} of 2 runs of one job told as {outcome}, first as {loud}")
    return broken


def _alone(verdict: Verdict, term: str, where: Mapping[str, int]) -> bool:
    """Whether node001 deviates by one cause, at this place first, and no other node does.

    A memory channel shows in the bandwidth of its node and in that of its socket and the machine.
    """
    errors: list[Finding] = [f for f in verdict.nodes["node001"].findings if f.severity == "error"]
    named = {error.term for error in errors} == {term} and where.items() <= errors[0].where.items()
    return named and bool(where) == bool(errors[0].where) and verdict.fleet.counts.get("DEVIATES") == 1


def mutations(fleets: int) -> list[Row]:
    """Whether the promises hold, and whether each mutation breaks one; prints which."""
    rows = []
    for name in ("none", *MUTATIONS):
        with mutated(name):
            failed = failures(fleets)
        print(f"mutation {name:26} {'fails: ' + '; '.join(failed) if failed else 'passes'}", flush=True)
        rows.append(row(f"mutation {name}: wrongly told", float(bool(failed) != (name != "none")), 0, ""))
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
    rows += mutations(max(options.fleets // 60, 2))
    table.keep("cells", rows, load)


if __name__ == "__main__":
    main()
