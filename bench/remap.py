"""One pair of `remap` beside two busy loops: `python -m bench remap`, a minute.

The spread of its rate over processes (the median of three passes each), which must be small or be flagged as disturbed.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

import numpy as np

from bench import table
from bench.table import ROOT, row

LIMIT_PERCENT = 5.0


def pair(cpus: tuple[int, int]) -> tuple[float, bool]:
    """The rate of the pair in B/s, and whether every pass of it is flagged as disturbed."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "r.jsonl"
        command = [f"{ROOT}/kernels/build/remap", "--op", "pairs", "--cpus", f"{cpus[0]},{cpus[1]}", "--passes", "3"]
        subprocess.run([*command, "--out", out], capture_output=True, check=True)
        records = [json.loads(line) for line in out.read_text().splitlines()]
    cells = [r for r in records if r["record"] == "cell" and r["pairs"] == 1]
    return float(np.median([r["rate_bytes_per_s"] for r in cells])), all("disturbed" in r["flags"] for r in cells)


def main() -> int:
    """Measure, print the table, keep it; 0 whatever came out."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=20)
    runs = parser.parse_args().runs
    allowed = sorted(os.sched_getaffinity(0))
    if len(allowed) < 2:
        print("remap: unverified, only one CPU is allowed here")
        return 0
    cpus, load = (allowed[0], allowed[1]), os.getloadavg()[0]
    with ExitStack() as stack:
        for cpu in cpus:
            loop = subprocess.Popen(["taskset", "-c", str(cpu), "sh", "-c", "while :; do :; done"])
            stack.callback(loop.kill)
        results = [pair(cpus) for _ in range(runs)]
    rates = np.array([rate for rate, _ in results])
    spread = 100 * float(np.std(rates, ddof=1) / np.mean(rates))
    rows = [
        row("one pair beside two busy loops", (rates / 1e9).tolist(), None, "GB/s"),
        row(f"spread over {runs} processes", spread, LIMIT_PERCENT, "%"),
        row("processes that say they were disturbed", 100 * float(np.mean([flag for _, flag in results])), None, "%"),
    ]
    table.keep("remap", rows, load)
    return 0


if __name__ == "__main__":
    sys.exit(main())
