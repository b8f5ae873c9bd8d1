"""How fast and how right structure is: times by size, and published matrices whole and spoiled, by half.

Usage: python -m bench.structure [--data DIR] [--seeds N] [--thresholds]

DIR holds core-to-core-latency's CSV files (default: $NODEPRINT_DATA/c2c/core-to-core-latency; without it, times only).
The machines are two halves: thresholds were chosen on the first. `--thresholds` prints for each threshold the range in
which the first half, whole and spoiled, and the made-up machines of tests/support/strange_matrices.py stay exact; `any`
is the end of what was tried.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypedDict

import numpy as np

from bench import table
from nodeprint import structure
from nodeprint.structure import levels as detection
from nodeprint.structure.matrix_arithmetic import numbered, rand_index
from tests.support import published
from tests.support.latencies import Made, epyc, spoiled
from tests.support.strange_matrices import LEVELS

#: CPUs and the longest time in seconds that is aimed at.
SIZES = {128: None, 256: 0.2, 512: 1.0, 1024: None, 2048: 4.0}


class Accident(TypedDict, total=False):
    """What `spoiled` does to a matrix: its noise and shares."""

    noise: float
    spikes: float
    missing: float
    gone: float


SPOILED: dict[str, Accident] = {
    "whole": {},
    "noise 10%": {"noise": 0.1},
    "spikes 1%, missing 1%": {"spikes": 0.01, "missing": 0.01},
    "CPUs missing 10%": {"gone": 0.1},
    "all of it": {"noise": 0.1, "spikes": 0.01, "missing": 0.01, "gone": 0.1},
}
#: Every threshold of the search, with the values to try.
THRESHOLDS = {
    "SMT_GAP": np.arange(0.05, 0.70, 0.05),
    "SMT_COVERAGE": np.arange(0.0, 1.0, 0.1),
    "SMT_NS": np.arange(8, 60, 2.0),
    "LINKAGE_GAP": np.arange(0.05, 1.0, 0.05),
    "CLEAN_GAP": np.arange(0.01, 0.2, 0.01),
    "GAP_SPREAD": np.arange(1, 20, 1.0),
    "BLOCK_CELLS": np.arange(0, 20, 1.0),
    "SEPARATED": np.arange(0.5, 1.001, 0.05),
    "ALONE": np.arange(0.1, 1.0, 0.1),
    "ALIKE_ROW": np.arange(1.1, 3.0, 0.1),
    "SOCKET_CONTRAST": np.arange(0.03, 0.40, 0.02),
    "SOCKETS_CONTRAST": np.arange(0.04, 0.40, 0.02),
    "SOCKET_AUC": np.arange(0.6, 1.0, 0.02),
    "RESIDUAL_NOISE": np.arange(0, 20, 1.0),
    "PROFILE_RATIO": np.arange(1.1, 5.0, 0.1),
    "PROFILE_NOISE": np.arange(0.002, 0.04, 0.002),
    "CCX_NS": np.arange(10, 60, 2.0),
    "MANY_CCX_NS": np.arange(10, 100, 5.0),
    "CCX_RATIO": np.arange(1.0, 6.0, 0.25),
    "MIN_PACKAGE_CORES": np.arange(1, 20),
    "SOCKET_NS": np.arange(50, 300, 10.0),
    "CCX_SOCKET_NS": np.arange(60, 300, 10.0),
    "DIE_SOCKET_NS": np.arange(60, 300, 10.0),
}


def times() -> Iterator[dict[str, Any]]:
    """Seconds of processor time, five times, for a two-socket EPYC of every size."""
    for cpus, goal in SIZES.items():
        machine = epyc(2, 4, cpus // 128, 8)
        seconds = []
        for _ in range(5):
            start = time.process_time()
            structure.find(machine.matrix, range(cpus))
            seconds.append(time.process_time() - start)
        yield {"cpus": cpus, "seconds": seconds, "goal_seconds": goal}


def scores(machine: Made, matrix: np.ndarray, cpus: list[int]) -> dict[str, bool]:
    """Whether each level is exact that is there, 95% of siblings, and whether nothing else was found."""
    found: dict[str, np.ndarray] = {level.name: level.labels for level in detection.detect(matrix).levels}
    out = {}
    for level, part in machine.parts.items():
        truth, labels = numbered(part[cpus]), found.get(level)
        if labels is None:
            out[level] = False
        elif level == "smt":
            same = np.triu(truth[:, None] == truth[None, :], 1)
            out[level] = bool((labels[:, None] == labels[None, :])[same].sum() >= 0.95 * same.sum())
        else:
            out[level] = rand_index(truth, labels) == 1
    out["nothing else"] = set(found) <= set(machine.parts)
    return out


def exact(machines: dict[str, Made]) -> set[tuple[str, str, str]]:
    """Which levels come out as they are known: of the first half's machines, whole and spoiled, and of made-up ones."""
    out = set()
    for name, machine in machines.items():
        hows = ("whole", "spikes 1%, missing 1%", "CPUs missing 10%") if name in published.CHOSEN_ON else ("whole",)
        for how in hows:
            for level, right in scores(machine, *spoiled(machine, **SPOILED[how])).items():
                if right:
                    out.add((name, how, level))
    return out


def accuracy(machines: dict[str, Made], seeds: int) -> Iterator[dict[str, Any]]:
    """Share of runs in which a level is exact, by half and accident."""
    for half, names in (("chosen on", published.CHOSEN_ON), ("held out", published.HELD_OUT)):
        for how, accident in SPOILED.items():
            results: dict[str, list[bool]] = {}
            for name in names:
                for seed in range(seeds if accident else 1):
                    matrix, cpus = spoiled(machines[name], seed=seed, **accident)
                    for level, right in scores(machines[name], matrix, cpus).items():
                        results.setdefault(level, []).append(right)
            for level, outcomes in sorted(results.items()):
                yield {"half": half, "how": how, "level": level, "runs": len(outcomes), "exact": sum(outcomes)}


def ranges(machines: dict[str, Made]) -> Iterator[dict[str, Any]]:
    """For every threshold the values around the one in use that lose no level that is exact with it."""
    usual = exact(machines)
    for name, values in THRESHOLDS.items():
        used = getattr(detection, name)
        good = []
        for value in values:
            setattr(detection, name, value)
            good.append(exact(machines) >= usual)
        near = int(np.argmin(np.abs(values - used)))
        low = near
        while low > 0 and good[low - 1]:
            low -= 1
        high = near
        while high < len(values) - 1 and good[high + 1]:
            high += 1
        setattr(detection, name, used)
        tolerances = (
            None if low == 0 else float(values[low]),
            None if high == len(values) - 1 else float(values[high]),
        )
        yield {"threshold": name, "used": float(used), "low": tolerances[0], "high": tolerances[1]}


def shown_levels() -> dict[str, Made]:
    """The made-up machines, with the levels alone that their matrices show."""
    return {
        name: Made(machine.matrix, {level: machine.parts[level] for level in levels})
        for name, (machine, levels) in LEVELS.items()
    }


def main() -> None:
    """Print tables, keep JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=None)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--thresholds", action="store_true")
    options = parser.parse_args()
    folder = options.data
    if folder is None and "NODEPRINT_DATA" in os.environ:
        folder = Path(os.environ["NODEPRINT_DATA"]) / "c2c" / "core-to-core-latency"

    kept: dict[str, list[dict[str, Any]]] = {"times": []}
    load = os.getloadavg()[0]
    rows = []
    for row in times():
        kept["times"].append(row)
        rows.append(table.row(f"{row['cpus']} CPUs, processor time", row["seconds"], row["goal_seconds"], "s"))
    if folder is not None:
        machines = {name: published.machine(folder, name) for name in (*published.CHOSEN_ON, *published.HELD_OUT)}
        if options.thresholds:
            kept["thresholds"] = []
            print(f"\n{'threshold':<26} {'used':>8} {'exact from':>11} {'to':>8}")
            tried = {name: machines[name] for name in published.CHOSEN_ON} | shown_levels()
            for row in ranges(tried):
                kept["thresholds"].append(row)
                low, high = ("any" if row[end] is None else f"{row[end]:.3f}" for end in ("low", "high"))
                print(f"{row['threshold']:<26} {row['used']:>8.3f} {low:>11} {high:>8}", flush=True)
        kept["accuracy"] = []
        print(f"\n{'half':<10} {'matrices':<24} {'level':<13} {'exact':>9}")
        for row in accuracy(machines, options.seeds):
            kept["accuracy"].append(row)
            print(f"{row['half']:<10} {row['how']:<24} {row['level']:<13} {row['exact']:>4}/{row['runs']}")
            rows.append(table.row(f"exact: {row['half']}, {row['how']}, {row['level']}", row["exact"] / row["runs"]))
    else:
        print("NODEPRINT_DATA is not set: times only, no published matrix")
    table.keep("structure", rows, load, **kept)


if __name__ == "__main__":
    main()
