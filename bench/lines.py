"""What a run of three passes gains by drawing lines from the clusters that they live in (docs/method/core-to-core.md).

    python -m bench.lines                 machines of bench/lines.c with quadrants of lines, then this machine

The census, clusters, draws and statistics are the kernel's own; the machines are not made by its assumptions (a ring of
quadrants with a spacing, unequal shares, noise). Here, a pair is measured with and without clusters in turn.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from bench import coherence, table
from bench.table import ROOT, Row, row

EVEN, UNEVEN = (0.25, 0.25, 0.25, 0.25), (0.5, 0.25, 0.15, 0.1)
#: Name, spacing in ns, shares of the quadrants, L3s of the socket, noise of half a census in ns, whether they separate.
MACHINES = (
    ("10 ns", 10.0, EVEN, 16, 2.4, True),
    ("5 ns", 5.0, EVEN, 16, 2.4, True),
    ("10 ns, unequal shares", 10.0, UNEVEN, 16, 2.4, True),
    ("10 ns, eight L3s, twice the noise", 10.0, EVEN, 8, 5.0, True),
    ("none", 0.0, EVEN, 16, 2.4, False),
)
PAIRS = ("one quadrant", "neighbors", "opposite")


def build(folder: Path) -> Path:
    """bench/lines.c with the kernels' harness."""
    program = folder / "lines"
    sources = [ROOT / "bench/lines.c", *sorted((ROOT / "kernels/harness").glob("*.c"))]
    command = ["gcc", "-std=c11", "-O2", "-pthread", f"-I{ROOT}/kernels", '-DCOMPILER=""']
    subprocess.run([*command, "-o", program, *sources, "-lm"], check=True)
    return program


def simulated(program: Path, runs: int) -> list[Row]:
    """The standard deviation of a run, in percent, of the pair that suffers most."""
    rows = []
    for name, spacing, shares, l3s, noise, separate in MACHINES:
        words = [runs, spacing, *shares, l3s, noise, 1]
        done = subprocess.run([program, *map(str, words)], capture_output=True, text=True, check=True)
        values = np.array([line.split() for line in done.stdout.splitlines()], dtype=float)
        sd = 100 * values[:, 1:].std(axis=0, ddof=1) / values[:, 1:].mean(axis=0)
        whole, clustered = sd[0::2], sd[1::2]
        limit = 0.5 if separate else 1.05 * float(whole.max())
        rows.append(row(f"{name}: a run's SD, lines of the whole pool", float(whole.max()), None, "%"))
        rows.append(row(f"{name}: a run's SD, lines of the clusters", float(clustered.max()), limit, "%"))
        right = 4 if separate else 1
        rows.append(row(f"{name}: runs with other than {right} clusters", float(np.mean(values[:, 0] != right)), 0.01))
    return rows


def here(runs: int) -> list[Row]:
    """The same of the first two CPUs here, and what the census costs."""
    allowed = sorted(os.sched_getaffinity(0))
    cpus = (allowed[0], allowed[1])
    values: dict[str, list[float]] = {"--any-lines": [], "--census": []}
    seconds: dict[str, list[float]] = {"--any-lines": [], "--census": []}
    with coherence.looping(cpus, os.SCHED_IDLE):
        for _ in range(runs):
            for option, mine in values.items():
                mine.append(coherence.our_value(cpus, option))
    for _ in range(9):
        for option, mine in seconds.items():
            mine.append(coherence.timed(lambda option=option: coherence.ours(cpus, option)))  # type: ignore[misc]
    whole, clustered = (100 * coherence.cv_less_drift(mine) for mine in values.values())
    cost = [1e3 * (b - a) for a, b in zip(*seconds.values(), strict=True)]
    return [
        row("here: a run's SD, lines of the whole pool", whole, None, "%"),
        row("here: a run's SD, lines of the clusters", clustered, 1.25 * whole, "%"),
        row("here: a census from one CPU", cost, None, "ms"),
    ]


def main() -> int:
    """Measure, print the table, keep it; 0 whatever came out."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=400, help="runs of each simulated machine (default 400)")
    parser.add_argument("--here", type=int, default=60, help="runs here, 0 for none (default 60)")
    chosen = parser.parse_args()
    load = os.getloadavg()[0]
    raw: dict[str, Any] = {"runs": chosen.runs}
    with tempfile.TemporaryDirectory() as folder:
        rows = simulated(build(Path(folder)), chosen.runs)
    if chosen.here:
        rows += here(chosen.here)
    table.keep("lines", rows, load, **raw)
    return 0


if __name__ == "__main__":
    sys.exit(main())
