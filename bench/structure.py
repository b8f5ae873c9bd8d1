"""How fast and how right structure is: times by size, and published matrices whole and spoiled, by half.

Usage: python -m bench.structure [--data DIR] [--seeds N] [--thresholds]

DIR holds core-to-core-latency's CSV files (default: $NODEPRINT_DATA/c2c/core-to-core-latency; without it, times only).
The machines are two halves: thresholds were chosen on the first. `--thresholds` prints for each threshold the range in
which the first half stays exact.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from bench import table
from nodeprint import structure
from nodeprint.structure import levels as detection
from nodeprint.structure.matrices import numbered, rand_index
from tests import published
from tests.latencies import Made, epyc, spoiled

#: CPUs and the longest time in seconds that is aimed at.
SIZES = {128: None, 256: 0.2, 512: 1.0, 1024: None}
SPOILED: dict[str, dict[str, float]] = {
    "whole": {},
    "noise 10 %": {"noise": 0.1},
    "spikes 1 %, missing 1 %": {"spikes": 0.01, "missing": 0.01},
    "CPUs missing 10 %": {"gone": 0.1},
    "all of it": {"noise": 0.1, "spikes": 0.01, "missing": 0.01, "gone": 0.1},
}
THRESHOLDS = {
    "SMT_GAP": np.arange(0.05, 0.70, 0.05),
    "SMT_NS": np.arange(8, 60, 2.0),
    "LINKAGE_GAP": np.arange(0.05, 1.0, 0.05),
    "SEPARATED": np.arange(0.5, 1.001, 0.05),
    "ALIKE_INSIDE": np.arange(1.1, 6.0, 0.2),
    "SOCKET_CONTRAST": np.arange(0.02, 0.40, 0.02),
    "SOCKET_AUC": np.arange(0.6, 1.0, 0.02),
    "PROFILE_RATIO": np.arange(1.1, 5.0, 0.1),
    "CCX_NS": np.arange(10, 60, 2.0),
    "MANY_CCX_NS": np.arange(10, 100, 5.0),
    "SOCKET_NS": np.arange(50, 300, 10.0),
    "CCX_SOCKET_NS": np.arange(60, 300, 10.0),
    "DIE_SOCKET_NS": np.arange(60, 300, 10.0),
    "MIN_PACKAGE_CORES": np.arange(1, 20),
    "MIN_PACKAGE_CORES_NO_SMT": np.arange(1, 40),
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
    """Whether each level is exact that is there, 95 % of siblings, and whether nothing else was found."""
    found = {level.name: level.labels for level in detection.detect(matrix)}
    out = {}
    for level, part in machine.parts.items():
        truth, mine = numbered(part[cpus]), found.get(level)
        if mine is None:
            out[level] = False
        elif level == "smt":
            same = np.triu(truth[:, None] == truth[None, :], 1)
            out[level] = bool((mine[:, None] == mine[None, :])[same].sum() >= 0.95 * same.sum())
        else:
            out[level] = rand_index(truth, mine) == 1
    out["nothing else"] = set(found) <= set(machine.parts)
    return out


def exact(machines: dict[str, Made], names: list[str]) -> bool:
    """Whether every level of the whole matrices is as it is known."""
    for name in names:
        result = scores(machines[name], machines[name].matrix, list(range(len(machines[name].matrix))))
        if name in published.UNKNOWN_QUADRANTS:
            result.pop("nothing else")
        if not all(result.values()):
            return False
    return True


def accuracy(machines: dict[str, Made], seeds: int) -> Iterator[dict[str, Any]]:
    """Share of runs in which a level is exact, by half and accident."""
    for half, names in (("chosen on", published.CHOSEN_ON), ("held out", published.HELD_OUT)):
        for how, accident in SPOILED.items():
            results: dict[str, list[bool]] = {}
            for name in names:
                for seed in range(seeds if accident else 1):
                    matrix, cpus = spoiled(machines[name], seed=seed, **accident)
                    for level, right in scores(machines[name], matrix, cpus).items():
                        if level != "nothing else" or name not in published.UNKNOWN_QUADRANTS:
                            results.setdefault(level, []).append(right)
            for level, right in sorted(results.items()):
                yield {"half": half, "how": how, "level": level, "runs": len(right), "exact": sum(right)}


def ranges(machines: dict[str, Made]) -> Iterator[dict[str, Any]]:
    """For every threshold the values around the one in use that keep the first half exact."""
    for name, values in THRESHOLDS.items():
        used = getattr(detection, name)
        good = []
        for value in values:
            setattr(detection, name, value)
            good.append(exact(machines, published.CHOSEN_ON))
        near = int(np.argmin(np.abs(values - used)))
        low = near
        while low > 0 and good[low - 1]:
            low -= 1
        high = near
        while high < len(values) - 1 and good[high + 1]:
            high += 1
        setattr(detection, name, used)
        yield {"threshold": name, "used": float(used), "low": float(values[low]), "high": float(values[high])}


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
            for row in ranges(machines):
                kept["thresholds"].append(row)
                print(f"{row['threshold']:<26} {row['used']:>8.2f} {row['low']:>11.2f} {row['high']:>8.2f}")
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
