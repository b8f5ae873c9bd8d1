"""Lines that other CPUs have used before against fresh ones: `python -m bench fresh`, a minute.

All pairs of up to four CPUs, one from each L3 where there are several, play on the same lines in random order, so that
a pair's lines were used by a third CPU before; with `--fresh flush` they are in no cache when the pair begins, with
`--fresh page` they lie on new pages. Ratios to used lines are medians over rounds of processes in turns.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from bench import table
from bench.agreement import agreement
from bench.table import ROOT, row

LIMIT = 0.02
SECONDS = 60.0
KINDS = {"used": (), "flush": ("--fresh", "flush"), "page": ("--fresh", "page")}


def cpus() -> list[int]:
    """Up to four allowed CPUs: of different L3s first, as the lines of a third cache are what it is about."""
    by_line: dict[str, list[int]] = {}
    for cpu in sorted(os.sched_getaffinity(0)):
        path = Path(f"/sys/devices/system/cpu/cpu{cpu}/cache/index3/shared_cpu_list")
        by_line.setdefault(path.read_text() if path.exists() else "", []).append(cpu)
    turns = [members[turn] for turn in range(4) for members in by_line.values() if turn < len(members)]
    return sorted(turns[:4])


def median_hop(chosen: list[int], *arguments: str) -> float:
    """The median hop in ns over pairs and passes of one process."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "r.jsonl"
        command = [f"{ROOT}/kernels/build/coherence", "--op", "cas", "--cpus", ",".join(map(str, chosen)), *arguments]
        subprocess.run([*command, "--passes", "3", "--out", out], capture_output=True, check=True)
        records = [json.loads(line) for line in out.read_text().splitlines()]
    return float(np.median([r["latency_ns"] for r in records if r["record"] == "pair"]))


def main() -> int:
    """Measure, print the table, keep it; 0 whatever came out."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=SECONDS, help=f"how long (default {SECONDS:.0f})")
    seconds = parser.parse_args().seconds
    chosen, load = cpus(), os.getloadavg()[0]
    if len(chosen) < 2:
        print("fresh lines: unverified, only one CPU is allowed here")
        return 0
    rng, hops = np.random.default_rng(1), {kind: list[float]() for kind in KINDS}
    ends = time.monotonic() + seconds
    while time.monotonic() < ends or len(hops["used"]) < 2:
        for kind in rng.permutation(list(KINDS)).tolist():
            hops[kind].append(median_hop(chosen, *KINDS[kind]))
    rows = [row(f"a hop on {kind} lines", values, None, "ns") for kind, values in hops.items()]
    said = []
    for kind in ("flush", "page"):
        ratio = agreement(hops[kind], hops["used"])
        said.append(f"--fresh {kind} / used lines: {ratio.words(LIMIT)}")
    if len(chosen) < 3:
        said.append("no third CPU is allowed here: lines were used by the same pair alone")
    table.keep("fresh", rows, load, said=said)
    print("\n".join(said))
    return 0


if __name__ == "__main__":
    sys.exit(main())
