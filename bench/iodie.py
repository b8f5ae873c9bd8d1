"""The map of the I/O die: what is found of planted dies, and how often something is found where there is nothing.

    python -m bench.iodie                 nodes of nodeprint's simulator and of another (tests/support/routed_dies.py)
    python -m bench.iodie --break         the same with the method broken on purpose, one way at a time: rows must miss
    python -m bench.iodie --here 200      lines of this machine, which have no geometry

All but the last simulated, at the noise of docs/validation.md.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import xarray as xr
from msgspec import structs

from bench import coherence, table
from bench.table import ROOT, Row, row
from nodeprint import simulate
from nodeprint.machine import dies
from nodeprint.machine.topology.model import Topology
from nodeprint.machine.topology.presets import from_part, preset
from nodeprint.simulate.lines import Hashing
from nodeprint.structure.matrix_arithmetic import rand_index
from nodeprint_addons.iodie import analysis, die, geometry, line_clusters, node_lines, paths, sites
from nodeprint_addons.iodie.data import pass_over_lines
from nodeprint_addons.iodie.die import Die
from tests.support import routed_dies as apart
from tests.support.detailed_runs import detailed, passes_of

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

ROME = from_part("EPYC 7742", 1, smt=False)
MILAN = from_part("EPYC 7763", 1, smt=False)
GENOA = from_part("EPYC 9654", 1, smt=False)
TURIN = from_part("EPYC 9755", 1, smt=False)
SMALL = from_part("EPYC 74F3", 1, smt=False)
HARVESTED = from_part("EPYC 7R13", 1, smt=False)


@dataclass(frozen=True)
class Case:
    """A kind of node: its part, the die by the words of both generators, and lines' hashing."""

    name: str
    topology: Topology
    kind: dies.Kind
    sites: int
    apart: str
    hashing: Hashing = "random"
    shares: tuple[float, ...] = ()


CASES = (
    Case("2 x 2, Rome", ROME, "mesh", 4, "2x2"),
    Case("2 x 2, Milan, parity", MILAN, "mesh", 4, "2x2", "parity"),
    Case("2 x 3, Genoa, modulo 3", GENOA, "mesh", 6, "2x3", "modulo 3"),
    Case("2 x 3, Turin, unequal shares", TURIN, "mesh", 6, "2x3", "random", (0.25, 0.25, 0.15, 0.15, 0.1, 0.1)),
    Case("ring of 6, Genoa", GENOA, "ring", 6, "ring6"),
    Case("crossbar of 4, Genoa", GENOA, "crossbar", 4, "crossbar4"),
    Case("2 x 2, six CCDs", HARVESTED, "mesh", 4, "2x2"),
)


@dataclass(frozen=True)
class Node:
    """A node to analyze, and the truth: site of each CCD, of each line by run and pass, and distances of sites."""

    topology: Topology
    passes: list[xr.Dataset]
    ccds: Ints
    line: dict[tuple[str, int], Ints]
    apart_ns: Floats

    def found(self, run: str = "") -> Die:
        """What is found of its first die, from one run or from all."""
        passes = [sweep for sweep in self.passes if sweep.attrs["run"].endswith(run)]
        node = analysis.NodeDies("node", "coherence-cas", self.topology, (), True)
        return analysis.analyze(node, passes, ()).dies[0]

    def line_index(self, die: Die) -> float:
        """Adjusted Rand index of the lines' clusters, unassigned ones being a cluster of their own."""
        truth = np.concatenate([self.line[sweep.attrs["run"], sweep.attrs["pass"]] for sweep in self.passes])
        return rand_index(np.where(die.clusters.label < 0, die.clusters.count, die.clusters.label), truth)

    def ccd_index(self, die: Die) -> float:
        """That of the CCDs' sites, 0 without a map."""
        return rand_index(die.sites.of_end, self.ccds) if die.sites is not None else 0.0

    def truth_of(self, die: Die) -> Floats:
        """The true distance of each two found sites, in the order of die.to_lines.between."""
        assert die.sites is not None and die.to_lines is not None
        ends = die.to_lines.between.ends
        at = np.array([np.bincount(self.ccds[die.sites.of_end == site]).argmax() for site in range(die.sites.count)])
        return np.asarray(self.apart_ns[at[ends[:, 0]], at[ends[:, 1]]])


def ours(case: Case, hop_ns: float, seed: int, *, drift: float = 0.0015, port_ns: float = 0.0, runs: int = 2) -> Node:
    """A node of nodeprint's simulator. A slow port is CCD 1's, whose every hop out of its CCXs is longer."""
    modes = simulate.Modes(
        hop_ns,
        case.shares,
        clustered=not case.shares,
        pair_step_ns=hop_ns,
        die=case.kind,
        sites=case.sites,
        hashing=case.hashing,
    )
    plan = simulate.Plan(
        case.topology, nodes=1, runs=runs, modes=modes, seed=seed, spread=replace(simulate.Variation(), drift=drift)
    )
    passes: list[xr.Dataset] = []
    truth: dict[tuple[str, int], Ints] = {}
    ccds: Ints = np.zeros(0, dtype=np.int64)
    for number, run in enumerate(detailed(plan), start=1):
        passes += passes_of(run, number)
        pool = run.pools[0]
        truth |= {(f"job1/run{number}", p): pool.site[pool.drawn[p]] for p in range(len(run.ns))}
        site = simulate.sites_of(run.layout, modes)
        of_cpu = dict(zip(run.cpus, site.tolist(), strict=True))
        parts = sorted(case.topology.groups("ccd").items())
        ccds = np.array([of_cpu[cpus[0]] for _, cpus in parts])
    if port_ns:
        slow = case.topology.groups("ccd")[1]
        ends = [np.isin(one.a, slow).astype(float) + np.isin(one.b, slow) for one in passes]
        passes = [sweep.assign(ns=sweep.ns + port_ns * of[:, None]) for sweep, of in zip(passes, ends, strict=True)]
    return Node(case.topology, passes, ccds, truth, hop_ns * modes.steps.astype(np.float64))


def theirs(case: Case, hop_ns: float, seed: int, *, port_ns: float = 0.0, **more: Any) -> Node:
    """A node of the generator that was written apart."""
    rng = np.random.default_rng([seed, 77])
    slow = (1, port_ns) if port_ns else None
    made = apart.make(case.topology, case.apart, hop_ns, rng, slow_port=slow, **more)
    return Node(case.topology, made.passes, made.site_of_ccd, made.site_of_line, made.apart_ns)


GENERATORS: dict[str, Callable[..., Node]] = {"ours": ours, "apart": theirs}


def planted(nodes: int) -> list[Row]:
    """Lines and CCDs at their sites, geometry, costs, intervals, two runs: over all cases of both generators."""
    rows: list[Row] = []
    for hop, limit in ((2.0, 0.01), (1.0, 0.05)):
        for name, make in GENERATORS.items():
            of_lines, of_ccds, costs, wrong, inside = [], [], [], [], []
            pairs: list[bool] = []
            for case in CASES:
                for seed in range(nodes):
                    node = make(case, hop, seed)
                    die = node.found()
                    of_lines.append(1 - node.line_index(die))
                    of_ccds.append(1 - node.ccd_index(die))
                    if die.geometry is not None:
                        costs.append(float(np.abs(die.geometry.hop_ns - hop).max()))
                    whole = len(np.unique(node.ccds)) == case.sites and die.here.sum() > case.sites
                    wrong.append(float(whole and (die.geometry is None or die.geometry.kind != case.kind)))
                    if die.to_lines is not None and die.to_cpus is not None and node.ccd_index(die) == 1:
                        truth = node.truth_of(die)
                        to_lines, to_cpus = die.to_lines.between, die.to_cpus
                        inside += (np.abs(to_lines.ns - truth) <= to_lines.half).tolist()
                        good = np.isfinite(to_cpus.ns)
                        pairs += (np.abs(to_cpus.ns - truth) <= to_cpus.half)[good].tolist()
            inside, pairs = inside or [False], pairs or [False]  # without any map no interval holds anything
            label = f"{name}, step {hop:g} ns"
            rows += [
                row(f"{label}: 1 - Rand index of lines, mean", float(np.mean(of_lines)), limit),
                row(f"{label}: 1 - Rand index of CCDs, mean", float(np.mean(of_ccds)), limit),
                row(f"{label}: geometry other than planted", float(np.mean(wrong)), 0.05),
                row(
                    f"{label}: cost of a step off by, worst of 20",
                    float(np.quantile(costs or [np.inf], 0.95)),
                    0.5,
                    "ns",
                ),
                row(f"{label}: intervals of ways to lines miss", float(1 - np.mean(inside)), 0.07),
                row(f"{label}: they hold more than", float(np.mean(inside)), 0.97),
            ]
            if name == "apart":  # nodeprint's simulator gives each link of quadrants silicon of its own
                rows += [
                    row(f"{label}: intervals from CPU to CPU miss", float(1 - np.mean(pairs)), 0.07),
                    row(f"{label}: they hold more than ", float(np.mean(pairs)), 0.97),
                ]
    return rows


def nothing(nodes: int) -> list[Row]:
    """The share of nodes without geometry that have a map, of four kinds."""
    none = Case("none", ROME, "ring", 4, "none")
    wide = apart.Noise(line_ccd_ns=1.5, tail=3.0)
    kinds: dict[str, Callable[[int], Node]] = {
        "ours, lines all alike": lambda seed: ours(none, 0.0, seed),
        "apart, lines all alike": lambda seed: theirs(none, 0.0, seed),
        "apart, wide tails for each CCD": lambda seed: theirs(none, 0.0, seed, noise=wide),
        "apart, two clusters by chance": lambda seed: theirs(none, 0.0, seed, clusters=True),
    }
    rows = []
    for name, make in kinds.items():
        maps = [make(seed).found().sites is not None for seed in range(nodes)]
        rows.append(row(f"no geometry ({name}): maps", float(np.mean(maps)), 0.01))
    return rows


def here(nodes: int) -> list[Row]:
    """The null that is real: one pair of CPUs here, measured as often as a Rome has pairs, on real lines.

    All its pairs are the same two CPUs, so that nothing distinguishes ends; noise, drift and lines are this machine's.
    """
    cpus = sorted(os.sched_getaffinity(0))[:2]
    ends, a, b = ROME.groups("ccd"), [], []
    for first in ends:
        for second in ends:
            a += [ends[first][i] for i in range(4)] * (first < second)
            b += [ends[second][i] for i in range(4)] * (first < second)
    maps = []
    for _ in range(nodes):
        passes = []
        for run in ("job1/run1", "job1/run2"):
            found = coherence.ours((cpus[0], cpus[1]), "--detail", pairs=len(a), passes=3)
            sets = {r["pass"]: np.array(r["line_set"]) for r in found if r["record"] == "pass"}
            for p, lines_of in sets.items():
                ns = np.array([r["line_ns"] for r in found if r["record"] == "pair" and r["pass"] == p])
                # records are in order of time; the kernel measures pairs in random order
                ns = np.random.default_rng(p).permutation(ns)
                if len(ns) != len(a):  # a pass of repeats
                    continue
                ghz = np.full((len(a), 2), np.nan)
                passes.append(pass_over_lines(run, p, 0, np.array(a), np.array(b), lines_of[: ns.shape[1]], ns, ghz))
        node = Node(ROME, passes, np.zeros(len(ends), dtype=np.int64), {}, np.zeros((1, 1)))
        maps.append(node.found().sites is not None)
    return [row("no geometry (lines of this machine): maps", float(np.mean(maps)), 0.01)]


def ports(nodes: int) -> list[Row]:
    """The share of slow ports that are not named, and of healthy ones that are."""
    rows = []
    for name, make in GENERATORS.items():
        missed, false = [], []
        for seed in range(nodes):
            for case in (CASES[0], CASES[2]):
                missed.append(list(make(case, 2.0, seed, port_ns=3.0).found().odd_ends) != [1])
                false.append(bool(make(case, 2.0, 1000 + seed).found().odd_ends))
        rows.append(row(f"{name}: port of one CCD 3 ns slow, not named", float(np.mean(missed)), 0.05))
        rows.append(row(f"{name}: healthy nodes with a port named", float(np.mean(false)), 0.05))
    return rows


def repeats(nodes: int) -> list[Row]:
    """How far two runs of a node are from the same map."""
    rows = []
    for name, make in GENERATORS.items():
        apart_by = []
        for seed in range(nodes):
            for case in CASES:
                node = make(case, 2.0, seed)
                one, other = node.found("run1"), node.found("run2")
                same = one.sites is not None and other.sites is not None
                apart_by.append(1 - rand_index(one.sites.of_end, other.sites.of_end) if same else 1.0)  # type: ignore[union-attr]
        rows.append(row(f"{name}: two runs of a node, 1 - Rand index", float(np.mean(apart_by)), 0.02))
    drifting = [
        1 - ours(CASES[0], 2.0, seed, drift=0.01).ccd_index(ours(CASES[0], 2.0, seed, drift=0.01).found())
        for seed in range(nodes)
    ]
    rows.append(row("ours, fabric clock drifts by 1%: 1 - Rand index", float(np.mean(drifting)), 0.01))
    return rows


def seconds() -> list[Row]:
    """What it costs: of a run by --plan, and the analysis of a node's records."""
    kernel = ROOT / "kernels/build/coherence"

    def planned(*more: str) -> float:
        command = [str(kernel), "--op", "cas", "--cpus", "0-255", "--plan", *more]
        lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
        return float(next(line for line in lines if line.startswith("seconds_at_195_ns")).split()[1])

    rows = [row("2 x 128: a run with --detail takes longer by", planned("--detail") - planned(), 30, "s")]
    with tempfile.TemporaryDirectory() as folder:
        for name in ("rome-2x64", "bergamo-2x128"):
            plan = simulate.Plan(preset(name), nodes=1, runs=2, detail=True)
            node = simulate.write(plan, Path(folder) / name) / "nodes/node000"
            took = []
            for _ in range(3):
                start = time.process_time()
                analysis.analyze(*node_lines.read(node))
                took.append(time.process_time() - start)
            rows.append(row(f"{name}, two runs: analysis of a node, of one CPU", took, 5, "s"))
    return rows


@contextmanager
def replaced(module: Any, name: str, value: Any) -> Iterator[None]:
    """A module with another value for a while."""
    before = getattr(module, name)
    setattr(module, name, value)
    try:
        yield
    finally:
        setattr(module, name, before)


def _too_sure(*words: Any) -> paths.Fit:
    found = _FIT(*words)
    return structs.replace(found, covariance=found.covariance / 16)


def _unweighted(tensor: Any, cells: Any = None) -> Floats:
    return np.asarray(_DISTANCES(tensor, cells)[:, ::-1])


def _by_size(clusters: Any) -> Any:
    found = _SITES(clusters)
    return found if isinstance(found, str) else structs.replace(found, of_end=np.roll(found.of_end, 1))


def _longer(ns: Floats, half: Floats) -> npt.NDArray[np.bool_]:
    return np.asarray(ns > np.median(ns) + 0 * half)


_FIT, _DISTANCES, _SITES = paths.fit, line_clusters.distances, sites.find
#: Ways to break the method: what, where, and its broken form.
BROKEN: dict[str, tuple[Any, str, Any]] = {
    "any two clusters separate": (line_clusters, "SEPARATION", 0.0),
    "intervals a quarter as wide": (paths, "fit", _too_sure),
    "CCDs in the wrong order": (line_clusters, "distances", _unweighted),
    "sites shifted by a CCD": (sites, "find", _by_size),
    "no geometry is ever preferred": (geometry, "PREFERRED", 1e9),
    "no port stands apart": (die, "_APART_NS", 1e9),
    "every longer port stands apart": (die, "stands_apart", _longer),
}


def broken(nodes: int) -> list[Row]:
    """For each way to break the method, 1 where no row missed that holds otherwise."""

    def missed() -> set[str]:
        return {one.name for one in [*planted(nodes), *nothing(4 * nodes), *ports(nodes)] if one.missed}

    rows, usual = [], missed()
    for name, (module, key, value) in BROKEN.items():
        with replaced(module, key, value):
            found = sorted(missed() - usual)
        print(f"{name}: {'; '.join(found) or 'NOTHING MISSED'}", flush=True)
        rows.append(row(f"broken, {name}: not noticed", float(not found), 0))
    return rows


def main() -> int:
    """Measure, print the table, keep it; 0 whatever came out."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=12, help="nodes of each case and generator (default 12)")
    parser.add_argument("--nulls", type=int, default=200, help="nodes of each kind without geometry (default 200)")
    parser.add_argument("--here", type=int, default=0, help="only the null of this machine's lines, so many times")
    parser.add_argument("--break", dest="broken", action="store_true", help="break the method on purpose")
    chosen = parser.parse_args()
    load = os.getloadavg()[0]
    if chosen.here:
        table.keep("iodie-here", here(chosen.here), load)
        return 0
    if chosen.broken:
        table.keep("iodie-broken", broken(1), load)
        return 0
    rows = [
        *planted(chosen.nodes),
        *nothing(chosen.nulls),
        *ports(2 * chosen.nodes),
        *repeats(chosen.nodes),
        *seconds(),
    ]
    table.keep("iodie", rows, load, nodes=chosen.nodes, nulls=chosen.nulls)
    return 0


if __name__ == "__main__":
    sys.exit(main())
