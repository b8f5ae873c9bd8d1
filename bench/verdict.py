"""Does the verdict keep its promises? Fleets with fixed seeds, bounds one-sided at 95 % (Clopper and Pearson).

    python -m bench.verdict --section clean --fleets 299
    python -m bench.verdict --quick            every section, minutes

Sections: clean (false accusations, and healthy nodes that are SAME), equal (nodes 1.2 times a bound off, which must not
be SAME), advice (INCONCLUSIVE nodes in as many runs as the verdict asks for, and detection limits with more runs),
power (found at 1.2 and 0.5 times the printed smallest effect, named right), shapes (defects that are no terms), few
(fleets of two to four), peers (what other rules find), scale, mutations.
"""

from __future__ import annotations

import argparse
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from types import ModuleType
from unittest import mock

import numpy as np
from nodeprint.verdict.campaign_verdict import judge_fleet
from nodeprint.words.outcome import Verdict
from scipy.stats import beta

from bench import other, table
from bench.table import Row, row
from nodeprint import outcomes, packed
from nodeprint.judge import acceptance, causes, confirmation, evidence, pairs, populations, tails, terms, thresholds
from nodeprint.layout import Layout
from nodeprint.packed import PackedFleet
from nodeprint.simulate import Plan, Spread, fleet
from nodeprint.topology.model import Topology
from nodeprint.topology.presets import preset

Make = Callable[[Mapping[str, int]], PackedFleet]

#: Spreads that healthy fleets are drawn with.
SPREADS: Mapping[str, Spread] = {
    "core 0.2 %": Spread(core=0.002),
    "core 0.5 %": Spread(core=0.005),
    "core 1.0 %": Spread(core=0.01),
    "t3 cells": Spread(core=0.0036, tail=3.0, burst_rate=0.003),
    "t3 chips": Spread(core=0.005, chip_tail=3.0),
    "passes alike": Spread(pass_rho=0.9, run_cell=0.006),
    "wide lines": Spread(line=0.055),
    "runs move 1 %": Spread(run=0.01),
    "fused": Spread(fused=True),
}
#: Of these cores differ as healthy ones usually do (docs/method.md), so that nodes should be SAME.
USUAL = ("core 0.2 %", "core 0.5 %")
OTHERS: Mapping[str, other.Other] = {
    "other, normal cores 0.2 %": other.Other(core=0.002, core_tail=0),
    "other, normal cores 0.5 %": other.Other(core_tail=0),
    "other, t3 cores 0.5 %": other.Other(),
    "other, t3 cores 1.0 %": other.Other(core=0.01),
    "other, drift 2 %": other.Other(core_tail=0, drift=0.02),
    "other, 5 % bimodal": other.Other(core_tail=0, bimodal=0.05),
    "other, noisy nodes": other.Other(core_tail=0, noisy=0.6),
}
#: Of the other generator, as quiet as what two runs resolve: lines drawn equally from where they live.
QUIET = other.Other(
    core=0.002, core_tail=0, ccx=0.0015, node=0.002, line=0.01, line_ccx=0.006, cell=0.006, drift=0.002, keeps=0.004
)
#: Of the other generator too, with what published matrices leave unexplained as its chips' cells; of them where
#: $NODEPRINT_DATA has these matrices.
PUBLISHED: Mapping[str, other.Other] = {
    "published residuals 1 %": other.Other(core_tail=0),
    "published residuals 2 %": other.Other(core=0.002, core_tail=0, keeps=0.02),
}


@lru_cache(maxsize=1)
def published_pool() -> np.ndarray | None:
    """The residuals of the published matrices, None where there are none."""
    folder = Path(os.environ.get("NODEPRINT_DATA", "")) / "c2c/core-to-core-latency"
    return other.published_pool(folder) if "NODEPRINT_DATA" in os.environ and folder.is_dir() else None


def healthy(name: str, topology: Topology, nodes: int, seed: int) -> Make:
    """Healthy fleets by the name of their spread."""
    if name in SPREADS:
        return simulated(topology, nodes, seed, SPREADS[name])
    if name in OTHERS:
        return others(topology, nodes, seed, OTHERS[name])
    pool = published_pool()
    return lambda jobs: other.fleet(topology, nodes, seed, jobs_of=jobs, other=PUBLISHED[name], pool=pool)


def spreads() -> list[str]:
    """The names of all spreads that can be drawn here."""
    if published_pool() is None:
        print("clean  residuals of published matrices are left out: set NODEPRINT_DATA to the reference data")
        return [*SPREADS, *OTHERS]
    return [*SPREADS, *OTHERS, *PUBLISHED]


def upper(count: int, of: int) -> float:
    """One-sided 95 % upper bound of a rate."""
    return 1.0 if count >= of else float(beta.ppf(0.95, count + 1, of - count))


def lower(count: int, of: int) -> float:
    """One-sided 95 % lower bound of a rate."""
    return 0.0 if count == 0 else float(beta.ppf(0.05, count, of - count + 1))


def flow(make: Make) -> tuple[Verdict, Verdict]:
    """The verdict of the first job and, after at most two rounds of second jobs, the final one."""
    jobs: dict[str, int] = {}
    first = verdict = judge_fleet(make(jobs))
    for _ in range(2):
        if not verdict.recheck:
            break
        for name in verdict.recheck:
            jobs[name] = jobs.get(name, 1) + 1
        verdict = judge_fleet(make(jobs))
    return first, verdict


def simulated(topology: Topology, nodes: int, seed: int, spread: Spread, defects: tuple[str, ...] = ()) -> Make:
    """Fleets of the simulator."""
    return lambda jobs: fleet(Plan(topology, nodes=nodes, seed=seed, spread=spread, defects=defects), jobs)


def others(topology: Topology, nodes: int, seed: int, how: other.Other, plant: other.Plant | None = None) -> Make:
    """Fleets of the other generator."""
    return lambda jobs: other.fleet(topology, nodes, seed, jobs_of=jobs, other=how, plant=plant)


def clean(
    fleets: int,
    nodes: int,
    names: list[str],
    presets: tuple[str, ...] = ("rome-2x64", "milan-2x64"),
    start: int = 0,
) -> Counter[str]:
    """Healthy fleets by each spread from seed `start` on: prints a row each.

    Returns the total of fleets and of those with any DEVIATES, of nodes and of those SAME, and these of USUAL spreads.
    """
    total: Counter[str] = Counter()
    for name in names:
        counts: Counter[str] = Counter()
        accused, began = 0, time.monotonic()
        for seed in range(start, start + fleets):
            _, verdict = flow(healthy(name, preset(presets[seed % len(presets)]), nodes, seed))
            counts.update(verdict.fleet.counts)
            accused += verdict.fleet.counts.get("DEVIATES", 0) > 0
        same = counts["SAME"]
        total.update({"fleets": fleets, "accused": accused, "nodes": fleets * nodes, "same": same})
        if name in USUAL:
            total.update({"usual nodes": fleets * nodes, "usual same": same})
        print(
            f"clean  N={nodes:<5}{name:28} fleets {fleets}, with DEVIATES {accused} (at most "
            f"{100 * upper(accused, fleets):.1f} %), SAME {same} of {fleets * nodes} (at least "
            f"{100 * lower(same, fleets * nodes):.0f} %), {dict(counts)}, "
            f"{(time.monotonic() - began) / fleets:.2f} s a fleet",
            flush=True,
        )
    most, least = 100 * upper(total["accused"], total["fleets"]), 100 * lower(total["same"], total["nodes"])
    print(
        f"clean  N={nodes:<5}all: {total['accused']} of {total['fleets']} accused, at most {most:.2f} %; SAME "
        f"{total['same']} of {total['nodes']} healthy nodes, at least {least:.1f} %",
        flush=True,
    )
    return total


@dataclass(frozen=True)
class Planted:
    """A defect with its size left open, the entry of smallest_effect it is measured by, and its right name.

    `alone`: no other part of the node stands beside it, so what silicon gave that node is part of the effect.
    """

    text: str
    effect: str
    term: str
    where: Mapping[str, int]
    alone: bool = True


PLANTED = (
    Planted("core 37 {:+.3f}%", "core", "core", {"core": 37}, alone=False),
    Planted("ccd 3 {:+.3f}%", "ccd", "ccd", {"ccd": 3}, alone=False),
    Planted("ccd 3 to-others {:+.3f}%", "ccd", "ccd", {"ccd": 3}, alone=False),
    Planted("link q0-q2 {:+.3f}%", "link", "link", {"quadrant": 0, "to_quadrant": 2}, alone=False),
    Planted("socket 1 {:+.3f}%", "socket", "socket", {"socket": 1}),
    Planted("socket-link {:+.3f}%", "socket_link", "class", {"to_socket": 1}),
    Planted("fabric {:+.3f}%", "fabric", "class", {"beyond_class": 1}),
    Planted("global {:+.3f}%", "node", "node", {}),
)


#: What must not be SAME at 1.2 times its bound.
UNEQUAL = (*PLANTED, Planted("core 37 {:+.3f}ns", "core", "core", {"core": 37}, alone=False))


def named(verdict: Verdict, node: str, planted: Planted) -> bool:
    """Whether the first finding of a node is the planted part."""
    findings = [f for f in verdict.nodes[node].findings if f.severity in ("error", "warning")]
    return (
        bool(findings)
        and findings[0].term == planted.term
        and all(findings[0].where.get(key) == value for key, value in planted.where.items())
    )


#: What a campaign adds to silicon, taken away.
_STILL = {"line": 0.0, "run": 0.0, "drift": 0.0, "cell": 0.0, "run_cell": 0.0, "burst_rate": 0.0}


def own_share(topology: Topology, nodes: int, seed: int, spread: Spread, planted: Planted) -> float:
    """How much of a planted effect node001 has already by its silicon: its true deviation from its peers, along it."""

    def truth(*defects: str) -> np.ndarray:
        (stack,) = simulated(topology, nodes, seed, replace(spread, **_STILL), defects)({}).pairs
        return stack.values[:: len(stack.values) // nodes, 0].astype(float)

    healthy = truth()
    shape = truth(f"node001: {planted.text.format(1)}")[1] / healthy[1] - 1
    apart = healthy[1] / np.median(np.delete(healthy, 1, axis=0), axis=0) - 1
    return float(shape @ apart / (shape @ shape)) / 100


def equal(fleets: int, nodes: int, spread: Spread, planted: tuple[Planted, ...] = UNEQUAL) -> dict[str, int]:
    """How many nodes 1.2 times a bound off are SAME in their first job, of `fleets`; prints a row each with the peers.

    The size is what the node is apart from its peers in truth: what silicon gave it and what is planted.
    """
    rules, results = acceptance.load(), {}
    for one in planted:
        in_ns = one.text.endswith("ns")
        bound = rules.least_ns["core-in"] if in_ns else 100 * rules.bounds.get(one.term, rules.bounds["class"])
        outcomes: Counter[str] = Counter()
        peers = 0
        for seed in range(fleets):
            topology = preset("milan-2x64" if seed % 2 else "rome-2x64")
            size = 1.2 * bound - 100 * own_share(topology, nodes, seed, spread, one)
            first = judge_fleet(simulated(topology, nodes, seed, spread, (f"node001: {one.text.format(size)}",))({}))
            outcomes[first.nodes["node001"].verdict] += 1
            peers += sum(node.verdict == "SAME" for name, node in first.nodes.items() if name != "node001")
        results[one.text] = outcomes["SAME"]
        print(
            f"equal  N={nodes:<5}{one.text:28} SAME {outcomes['SAME']}/{fleets} (at most "
            f"{100 * upper(outcomes['SAME'], fleets):.0f} %): {dict(outcomes)}; peers {peers}/{fleets * (nodes - 1)}",
            flush=True,
        )
    return results


def equal_elsewhere(fleets: int, nodes: int, how: other.Other) -> dict[str, tuple[int, int]]:
    """As `equal`, in fleets of the second generator: by family of terms how many nodes are SAME, and of how many.

    In each fleet one term of each family, drawn at random, is brought to 1.2 times its bound, up or down.
    """
    rules, counts = acceptance.load(), Counter[tuple[str, str]]()
    for seed in range(fleets):
        topology = preset(("milan-2x64", "rome-2x64", "naples-2x32", "genoa-2x96")[seed % 4])
        layout, silicon = other.truth(topology, nodes, seed, other=how)
        template = np.median(np.delete(silicon, 1, axis=0), axis=0)
        residual, tested = silicon / template - 1, pairs.of(layout)
        bounds = evidence.pair_bounds(tested, np.array([template[t.covers].mean() for t in tested.terms]), rules)
        rng = np.random.default_rng([seed, 1])
        for family in terms.FAMILIES:
            if not len(tested.indices(family)):
                continue
            number = int(rng.choice(tested.indices(family)))
            contrast, covers = tested.contrast[number].astype(np.float64), tested.terms[number].covers
            own = contrast @ residual[1] - np.median(np.delete(residual, 1, axis=0) @ contrast)
            size = (rng.choice((-1.2, 1.2)) * bounds[number] - own) / (contrast[covers] @ (1 + residual[1, covers]))

            def plant(node: int, _job: int, _run: int, latency: np.ndarray, _layout: Layout) -> np.ndarray:
                latency[covers] *= 1 + (size if node == 1 else 0)  # noqa: B023 - called in this turn alone
                return latency

            found = judge_fleet(other.fleet(topology, nodes, seed, other=how, plant=plant)).nodes
            counts[family, found["node001"].verdict] += 1
            counts["peers", "SAME"] += sum(node.verdict == "SAME" for node in found.values()) - (
                found["node001"].verdict == "SAME"
            )
            counts["peers", "all"] += nodes - 1
    results = {}
    for family in terms.FAMILIES:
        mine = {outcome: count for (name, outcome), count in counts.items() if name == family}
        results[family] = mine.get("SAME", 0), sum(mine.values())
        print(f"equal  N={nodes:<5}second generator, {family:12} {mine}", flush=True)
    print(f"equal  N={nodes:<5}their peers SAME {counts['peers', 'SAME']} of {counts['peers', 'all']}", flush=True)
    return results


def advice(fleets: int, nodes: int, how: other.Other) -> tuple[int, int]:
    """How many INCONCLUSIVE nodes are SAME where the runs that the verdict asks for are measured, and of how many.

    Nodes that it does not ask more runs for are left out. Prints a row.
    """
    same = asked = without = 0
    for seed in range(fleets):
        topology = preset(("milan-2x64", "rome-2x64", "naples-2x32")[seed % 3])
        first = judge_fleet(other.fleet(topology, nodes, seed, other=how)).nodes
        runs = {
            name: int(found[1])
            for name, node in first.items()
            if (found := re.search(r"to resolve it, (\d+) runs are needed", node.text))
        }
        open_ = [name for name, node in first.items() if node.verdict == "INCONCLUSIVE"]
        without += len(open_) - len(runs)
        asked += len(runs)
        if runs:  # the configuration has one number for all nodes
            again = judge_fleet(other.fleet(topology, nodes, seed, runs=max(runs.values()), other=how)).nodes
            same += sum(again[name].verdict == "SAME" for name in runs)
    print(
        f"advice N={nodes:<5}followed, SAME {same} of {asked} (at least {100 * lower(same, asked):.0f} %); {without} "
        "INCONCLUSIVE for another reason",
        flush=True,
    )
    return same, asked


def rise(fleets: int, nodes: int, spread: Spread) -> float:
    """By how much more runs of the same nodes raise a detection limit at most (2 to 6 runs); prints the terms."""
    most: dict[str, float] = {}
    for seed in range(fleets):
        topology, before = preset("milan-2x64" if seed % 2 else "naples-2x32"), dict[str, float]()
        for runs in (2, 3, 4, 6):
            found = judge_fleet(fleet(Plan(topology, nodes=nodes, runs=runs, seed=seed, spread=spread))).fleet
            for term, limit in found.smallest_effect.items():
                if limit is not None:
                    most[term] = max(most.get(term, 0.0), limit / before.get(term, limit) - 1)
                    before[term] = min(limit, before.get(term, limit))
    worst = ", ".join(
        f"{term} {100 * share:.0f} %" for term, share in sorted(most.items(), key=lambda one: -one[1])[:4]
    )
    print(f"rise   N={nodes:<5}a detection limit rises with more runs by at most: {worst}", flush=True)
    return max(most.values())


def power(
    fleets: int, nodes: int, spread: Spread, planted: tuple[Planted, ...] = PLANTED
) -> dict[str, tuple[int, int, int]]:
    """Found at 1.2 and 0.5 times the printed smallest effect, and named right, of `fleets`; prints a row each.

    The effect is what the node is apart from its peers in truth: what silicon gave it and what is planted.
    """
    results = {}
    for one in planted:
        strong = weak = right = 0
        for seed in range(fleets):
            topology = preset("milan-2x64" if seed % 2 else "rome-2x64")
            smallest = judge_fleet(simulated(topology, nodes, seed, spread)({})).fleet.smallest_effect[one.effect]
            assert smallest is not None
            own = own_share(topology, nodes, seed, spread, one) if one.alone else 0.0
            for factor in (1.2, 0.5):
                defect = f"node001: {one.text.format(100 * (factor * smallest - own))}"
                _, verdict = flow(simulated(topology, nodes, seed, spread, (defect,)))
                found = verdict.nodes["node001"].verdict == "DEVIATES"
                if factor > 1:
                    strong += found
                    right += found and named(verdict, "node001", one)
                else:
                    weak += found
        name = one.text.partition(" {")[0]
        results[name] = (strong, weak, right)
        print(
            f"power  N={nodes:<5}{name:20} at 1.2: {strong}/{fleets} "
            f"(at least {100 * lower(strong, fleets):.0f} %), "
            f"at 0.5: {weak}/{fleets} (at most {100 * upper(weak, fleets):.0f} %), "
            f"named right {right}/{strong}",
            flush=True,
        )
    return results


#: Defects that are no fitted term, with the outcome that must come in the end.
SHAPES: tuple[tuple[tuple[str, ...], tuple[str, ...]], ...] = (
    (("core 37 +3ns",), ("DEVIATES",)),
    (("core 37 +6ns",), ("DEVIATES",)),
    (("core-clock 37 -25%",), ("DEVIATES",)),
    (("fabric +6%",), ("DEVIATES",)),
    (("socket 1 +6%",), ("DEVIATES",)),
    (("ccd 3 to-others +6%",), ("DEVIATES",)),
    (("half-row 37 +12%",), ("DEVIATES",)),
    (("intermittent core 9 +40%",), ("DEVIATES", "UNSTABLE", "INVALID")),
    (("core 37 +12%", "link q0-q2 +8%"), ("DEVIATES",)),
    (("busy core 5 run 1",), ("SAME", "INCONCLUSIVE")),
    (("busy core 5 run 1", "busy core 5 run 2"), ("SAME", "INCONCLUSIVE")),
)


def shapes(fleets: int, nodes: int, spread: Spread) -> dict[str, int]:
    """Defects that are no terms: how often the outcome was right; prints a row per defect."""
    results = {}
    for defects, right in SHAPES:
        counts: Counter[str] = Counter()
        for seed in range(fleets):
            topology = preset("milan-2x64" if seed % 2 else "rome-2x64")
            texts = tuple(f"node001: {text}" for text in defects)
            _, verdict = flow(simulated(topology, nodes, seed, spread, texts))
            counts[verdict.nodes["node001"].verdict] += 1
        ok = sum(counts[outcome] for outcome in right)
        results["; ".join(defects)] = ok
        print(f"shapes N={nodes:<5}{'; '.join(defects):44} right {ok}/{fleets}: {dict(counts)}", flush=True)
    return results


def few(fleets: int, spread: Spread) -> dict[str, Counter[str]]:
    """Fleets of two to four: healthy ones, and one node with 1.5 times the bound planted, which must never be SAME."""
    results = {}
    for nodes in (2, 3, 4):
        for text in ("", "global +3%", "core 37 +6%", "ccd 3 +4.5%", "core 37 +20%"):
            counts: Counter[str] = Counter()
            for seed in range(fleets):
                topology = preset("milan-2x64" if seed % 2 else "rome-2x64")
                _, verdict = flow(simulated(topology, nodes, seed, spread, (f"node001: {text}",) if text else ()))
                counts[verdict.nodes["node001"].verdict] += 1
                counts["others accused"] += any(
                    v.verdict == "DEVIATES" for name, v in verdict.nodes.items() if name != "node001" or not text
                )
            results[f"{nodes} {text}"] = counts
            print(f"few    N={nodes:<5}{text or 'healthy':28} {dict(counts)}", flush=True)
    return results


def peers(fleets: int, nodes: int, spread: Spread) -> None:
    """What other rules find, beside ours: share of defective nodes found, and of healthy nodes accused."""
    rules = {
        "mean + 5 %": lambda m: m.mean(axis=1) > 1.05 * m.mean(),
        "mean + 3 SD": lambda m: m.mean(axis=1) > m.mean(axis=1).mean() + 3 * m.mean(axis=1).std(),
        "median + 6 MAD": lambda m: (
            np.abs(m.mean(axis=1) - np.median(m.mean(axis=1)))
            > 6 * 1.4826 * np.median(np.abs(m.mean(axis=1) - np.median(m.mean(axis=1))))
        ),
        "CDF similarity 95 %": _cdf,
        "per-cell z > 4": lambda m: (
            (np.abs(m - m.mean(axis=0)) > 4 * m.std(axis=0) * (1 - 1e-9)).any(axis=1)
            if nodes > 18
            else (
                np.abs(m - np.median(m, axis=0)) > 4 * 1.4826 * np.median(np.abs(m - np.median(m, axis=0)), axis=0)
            ).any(axis=1)
        ),
    }
    for text in ("core 37 +10%", "core 37 +30%", "ccd 3 to-others +6%", "link q0-q2 +8%", "fabric +5%", "global +5%"):
        found: Counter[str] = Counter()
        false: Counter[str] = Counter()
        for seed in range(fleets):
            make = simulated(preset("rome-2x64"), nodes, seed, spread, (f"node001: {text}",))
            packed = make({})
            values = np.median(packed.pairs[0].values, axis=1)
            per_node = values.reshape(nodes, -1, values.shape[1]).mean(axis=1)
            for name, rule in rules.items():
                flagged = rule(per_node)
                found[name] += bool(flagged[1])
                false[name] += int(flagged.sum() - flagged[1])
            _, verdict = flow(make)
            flagged_ours = {name for name, v in verdict.nodes.items() if v.verdict == "DEVIATES"}
            found["nodeprint"] += "node001" in flagged_ours
            false["nodeprint"] += len(flagged_ours - {"node001"})
        healthy = fleets * (nodes - 1)
        row = ", ".join(
            f"{n}: {100 * found[n] / fleets:.0f} % / {100 * false[n] / healthy:.0f} %" for n in (*rules, "nodeprint")
        )
        print(f"peers  N={nodes:<5}{text:22} found / healthy accused: {row}", flush=True)


def _cdf(matrix: np.ndarray) -> np.ndarray:
    """SuperBench's similarity of a node's sorted values to the middle node's, below 95 %."""
    ordered = np.sort(matrix, axis=1)
    middle = np.median(ordered, axis=0)
    return 1 - np.abs(ordered - middle).sum(axis=1) / middle.sum() < 0.95


def _without_parents(one: evidence.Evidence, job: evidence.Observed, i: int) -> list[causes.Cause]:
    accepted = causes._accepted(job) & ~_parents(one.matrix.terms)
    with mock.patch.object(causes, "_accepted", lambda _: accepted):
        return causes.causes(one, job, i)


def _parents(tested: terms.Terms) -> np.ndarray:
    """Which terms are no part's: classes of pairs, and sets that hold others."""
    if len(tested.layout.pairs):
        return np.asarray(tested.family == 0)
    member = tested.contrast > 0
    return np.asarray((member.astype(int) @ ~member.T == 0).sum(axis=0) > 1)


#: By name of a part of the method what stands in its place.
MUTATIONS: Mapping[str, tuple[tuple[ModuleType, str, object], ...]] = {
    "no z": ((tails, "quantile", lambda *_: 1.0),),
    "template holds the node": ((thresholds, "LEAVE_OUT_BELOW", 0),),
    "no grouping": ((populations, "split", lambda means, *_, **__: [(np.arange(len(means)), -1)]),),
    "runs agree": ((evidence, "runs_differ", lambda matrix, *_: np.zeros_like(matrix.values[:, 0], dtype=bool)),),
    "all that deviate left out at once": ((evidence, "LEAVE_OUT_BELOW", 0),),
    "faulty nodes in the tail": ((tails, "calmest", lambda standard: standard),),
    "no mirror": ((confirmation, "_mirrored", lambda *_: False),),
    "no spread over passes": ((evidence, "_wobble", lambda *_: None),),
    "no parents": ((confirmation, "causes", _without_parents),),
    "normal tails": ((tails, "tail_of", lambda *_: tails.NORMAL),),
    "tails at a fixed scale": ((tails, "_SCALES", np.ones(1)),),
    "no tail of the chips": ((thresholds, "_SILICON", ()),),
}


@contextmanager
def mutated(name: str) -> Iterator[None]:
    """The method without one of its parts."""
    tails.mixture.cache_clear()
    with ExitStack() as changes:
        for module, part, instead in MUTATIONS.get(name, ()):
            changes.enter_context(mock.patch.object(module, part, instead))
        yield
    tails.mixture.cache_clear()


def mutations(fleets: int, nodes: int) -> dict[str, bool]:
    """Whether each mutation makes the benchmark fail; prints what failed."""
    caught = {}
    spread = Spread(core=0.005)
    for name in ("none", *MUTATIONS):
        with mutated(name):
            failed = failures(fleets, nodes, spread) + heavy(4 * fleets) + unsteady(nodes, spread) + beside(fleets)
        caught[name] = bool(failed)
        print(f"mutation {name:26} {'fails: ' + '; '.join(failed) if failed else 'passes'}", flush=True)
    return caught


def failures(fleets: int, nodes: int, spread: Spread) -> list[str]:
    """A short list of promises, those that are broken."""
    broken = []
    accused = suspects = 0
    for seed in range(fleets):
        first, verdict = flow(simulated(preset("rome-2x64"), nodes, seed, spread))
        accused += verdict.fleet.counts.get("DEVIATES", 0) > 0
        suspects += first.fleet.counts.get("SUSPECT", 0)
    if accused or suspects > fleets:
        broken.append(f"{accused} of {fleets} healthy fleets accused, {suspects} suspects")
    split = tuple(f"node{i:03d}: fabric +5%" for i in range(nodes // 2))
    _, verdict = flow(simulated(preset("rome-2x64"), nodes, 5, spread, split))
    if verdict.fleet.outcome != "TWO POPULATIONS" or verdict.fleet.counts.get("DEVIATES"):
        broken.append(f"two populations told as {verdict.fleet.outcome}, {dict(verdict.fleet.counts)}")
    wrong = 0
    for seed in range(max(3, fleets // 2)):
        _, verdict = flow(simulated(preset("rome-2x64"), nodes, seed, spread, ("node001: global +5%",)))
        wrong += not named(verdict, "node001", Planted("", "node", "node", {}))
    if wrong:
        broken.append(f"a slow node named wrong {wrong} times")
    missed = 0
    for seed in range(max(3, fleets // 2)):
        first, _ = flow(simulated(preset("rome-2x64"), 2, seed, spread, ("node001: global +7%",)))
        missed += first.nodes["node001"].verdict != "DIFFER"
    if missed:
        broken.append(f"two nodes 7 % apart not told apart {missed} times")
    return broken


def unsteady(nodes: int, spread: Spread) -> list[str]:
    """What comes and goes, in passes or in runs, must be told as UNSTABLE."""
    broken = []
    for defect, spoilt in (("intermittent core 9 +10%", ()), ("global +0%", (0, 9, 0, 9))):
        make = simulated(preset("naples-2x32"), nodes, 1, spread, (f"node001: {defect}",))
        _, verdict = flow(lambda jobs, make=make, spoilt=spoilt: in_runs(make(jobs), spoilt))  # type: ignore[misc]
        if verdict.nodes["node001"].verdict != "UNSTABLE":
            broken.append(f"what comes and goes is told as {verdict.nodes['node001'].verdict}: {defect}, {spoilt}")
    return broken


def beside(fleets: int) -> list[str]:
    """Where nodes of three are blamed, the promise that the others are not accused; of six nodes two, each found."""
    broken = []
    cores, fabric = ("node001: core 7 +25%", "node002: core 20 +20%"), "node001: fabric +10%"
    small, large = preset("naples-2x32"), preset("rome-2x64")
    for nodes, machine, slow in (
        (3, small, ("node001: socket 1 +6%",)),
        (3, large, cores[:1]),
        (3, small, (fabric, cores[1])),
        (6, small, cores),
    ):
        off = {text.partition(":")[0] for text in slow}
        for seed in range(fleets):
            plan = Plan(machine, nodes=nodes, jobs=2, seed=seed, spread=Spread(core=0.003), defects=slow)
            judged = {name: one.verdict for name, one in judge_fleet(fleet(plan)).nodes.items()}
            if any(outcomes.of(word).accuses for name, word in judged.items() if name not in off):
                broken.append(f"of {nodes} nodes {', '.join(sorted(off))} are off, and told is {judged}")
            if nodes == 6 and any(judged[name] != "DEVIATES" for name in off):
                broken.append(f"two faulty nodes of six hide one another: {judged}")
    return broken


def in_runs(found: PackedFleet, percent: tuple[float, ...]) -> PackedFleet:
    """A fleet of pairs with the runs of node001 slower by so many percent, the first of them first."""
    (stack,) = found.pairs
    factor = np.ones((len(stack.values), 1, 1), dtype=np.float32)
    mine = np.flatnonzero(stack.node == 1)[: len(percent)]
    factor[mine, 0, 0] += np.array(percent[: len(mine)]) / 100
    return replace(found, quantities=(replace(stack, values=stack.values * factor),))


def heavy(fleets: int) -> list[str]:
    """Where chips' cores have three degrees of freedom, the promise that healthy nodes are not even suspects."""
    made = (others(preset("naples-2x32"), 16, 500 + seed, OTHERS["other, t3 cores 1.0 %"]) for seed in range(fleets))
    suspect = sum(judge_fleet(make({})).fleet.counts.get("SUSPECT", 0) > 0 for make in made)
    return [f"{suspect} of {fleets} healthy fleets with heavy tails have a suspect"] if suspect > 0.02 * fleets else []


def scale(nodes: int = 1000) -> list[Row]:
    """Seconds and memory for large fleets from packed arrays: pairs alone, with cells, and of 256 cores a node.

    Each runs by itself, imports included.
    """
    rows = []
    for cores, machine, cells, limit in (
        (128, "milan-2x64", False, 8),
        (128, "milan-2x64", True, 8),
        (256, "bergamo-2x128", False, 25),
    ):
        name = f"{nodes} nodes of {cores} cores{' with cells' if cells else ''}"
        with tempfile.TemporaryDirectory() as folder:
            packed.write(fleet(Plan(preset(machine), nodes=nodes, cells=cells)), Path(folder))
            code = "import sys; from pathlib import Path; from nodeprint.verdict.campaign_verdict import judge; "
            code += "judge(Path(sys.argv[1]))"
            began = time.monotonic()
            subprocess.run([sys.executable, "-c", code, folder], check=True)
            seconds = time.monotonic() - began
        peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024  # of the largest so far
        rows += [row(f"{name} judged", seconds, limit, "s"), row(f"{name}, memory", peak, 2048, "MiB")]
    return rows


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--section",
        choices=("clean", "equal", "advice", "power", "shapes", "few", "peers", "mutations", "scale", "all"),
        default="all",
    )
    parser.add_argument("--fleets", type=int, default=299)
    parser.add_argument("--nodes", type=int, default=8)
    parser.add_argument("--start", type=int, default=0, help="the first seed of healthy fleets")
    parser.add_argument("--quick", action="store_true", help="few fleets")
    args = parser.parse_args()
    fleets = 10 if args.quick else args.fleets
    every = args.section == "all"
    spread = Spread(core=0.002)
    load = os.getloadavg()[0]
    rows: list[Row] = []
    if every or args.section == "clean":
        total = clean(fleets, args.nodes, spreads(), start=args.start)
        rows.append(row(f"of {total['fleets']} healthy fleets accused", total["accused"] / total["fleets"], 0.01))
        rows.append(row(f"of {total['nodes']} healthy nodes, not SAME", 1 - total["same"] / total["nodes"]))
        missed = 1 - total["usual same"] / total["usual nodes"]
        rows.append(row(f"of {total['usual nodes']} of them with usual noise, not SAME", missed, 0.1))
    if every or args.section == "equal":
        some = max(3, fleets // 3)
        for name, same in equal(some, args.nodes, spread).items():
            rows.append(row(f"of {some} nodes 1.2 times a bound off, SAME: {name}", same / some, 0.05))
        for name, (same, of) in equal_elsewhere(max(4, fleets // 10), args.nodes, QUIET).items():
            rows.append(row(f"of {of} of the second generator, SAME: {name}", same / max(of, 1), 0.05))
    if every or args.section == "advice":
        share = rise(max(3, fleets // 10), args.nodes, Spread(core=0.004))
        rows.append(row("a detection limit rises with more runs", share, 0.1))
        same, asked = advice(max(3, fleets // 10), args.nodes, other.Other(core_tail=0))
        rows.append(
            row(f"of {asked} INCONCLUSIVE nodes with the runs asked for, not SAME", 1 - same / max(asked, 1), 0.3)
        )
    if every or args.section == "power":
        some = max(3, fleets // 3)
        for text, (strong, weak, right) in power(some, args.nodes, spread).items():
            rows.append(row(f"missed of {some} at 1.2 times the smallest: {text}", 1 - strong / some, 0.01))
            rows.append(row(f"found of {some} at half of it: {text}", weak / some, 0.05))
            rows.append(row(f"misnamed of {strong}: {text}", 1 - right / max(strong, 1), 0.02))
    if every or args.section == "shapes":
        shapes(max(3, fleets // 3), args.nodes, spread)
    if every or args.section == "few":
        few(max(3, fleets // 3), spread)
    if every or args.section == "peers":
        peers(max(3, fleets // 10), args.nodes, spread)
    if every or args.section == "mutations":
        mutations(max(3, fleets // 30), args.nodes)
    if every or args.section == "scale":
        rows += scale()
    table.keep("verdict", rows, load, arguments=sys.argv[1:])


if __name__ == "__main__":
    main()
