"""The kernel `load` against likwid-bench's peakflops on one core: `python -m bench load`, 2 minutes.

Both calculate by the same instructions on one core, in turns: rounds of a process each, in random order, at real-time
priority where that is allowed. likwid-bench divides all operations by its whole time; `load` counts those of bursts, so
its mean over the whole time is compared. Ratios are medians over rounds of the ratio within a round.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from bench import table
from bench.agreement import Others, agreement
from bench.real_time import real_time
from bench.table import ROOT, row

#: likwid-bench's kernels with the instructions of `load`, by the vectors that it says it has.
KERNELS = {"avx512": "peakflops_avx512_fma", "avx2": "peakflops_avx_fma", "sse2": "peakflops_sse"}
RUN_S = 0.15
LIMIT = 0.03
SECONDS = 120.0


@dataclass(frozen=True)
class Alone:
    """One core's operations in a second: the median over bursts and the mean over all; by which vectors."""

    median: float
    mean: float
    vector: str


def of_load(cpu: int) -> Alone:
    """What `load` says of a core with all others idle."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "r.jsonl"
        command = [f"{ROOT}/kernels/build/load", "--op", "alone", "--cpus", str(cpu), "--passes", "1"]
        subprocess.run([*command, "--out", out], capture_output=True, check=True)
        header, cell, _ = map(json.loads, out.read_text().splitlines())
    return Alone(cell["flops_per_s"], cell["mean_flops_per_s"], header["vector"])


def of_likwid_bench(kernel: str, iterations: int, cpu: int) -> float:
    """Its operations in a second on that core."""
    command = ["taskset", "-c", str(cpu), "likwid-bench", "-t", kernel, "-w", "N:16kB:1", "-i", str(iterations)]
    output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return 1e6 * float(re.findall(r"MFlops/s:\s+([\d.]+)", output)[0])


def iterations_for(kernel: str, flops_per_s: float) -> int:
    """How many times it goes through its 16 kB in RUN_S; the operations of one are counted by it."""
    listing = subprocess.run(["likwid-bench", "-l", kernel], capture_output=True, text=True, check=True).stdout
    flops_per_element = int(re.findall(r"Flops per element: (\d+)", listing)[0])
    return max(1, round(RUN_S * flops_per_s / (flops_per_element * 16000 / 8)))


def main() -> int:
    """Measure, print the table, keep it; 0 whatever came out."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=SECONDS, help=f"how long (default {SECONDS:.0f})")
    seconds = parser.parse_args().seconds
    cpu = min(os.sched_getaffinity(0))
    if shutil.which("likwid-bench") is None:
        print("load against likwid-bench: unverified, likwid-bench is not on the PATH")
        return 0
    load, others = os.getloadavg()[0], Others()
    alone = of_load(cpu)
    kernel = KERNELS.get(alone.vector)
    if kernel is None:
        print(f"load against likwid-bench: unverified, likwid-bench has no kernel for {alone.vector}")
        return 0
    iterations = iterations_for(kernel, alone.median)
    first = real_time()
    rng = np.random.default_rng(1)
    ours: list[Alone] = []
    theirs: list[float] = []
    ends = time.monotonic() + seconds
    while time.monotonic() < ends or len(ours) < 2:
        for which in rng.permutation(["load", "likwid-bench"]).tolist():
            if which == "load":
                ours.append(of_load(cpu))
            else:
                theirs.append(of_likwid_bench(kernel, iterations, cpu))
    means = agreement([burst.mean for burst in ours], theirs)
    # at real-time priority others are no reason to doubt: they had the other CPUs
    title = f"{alone.vector}: ours / likwid-bench, {means.words(LIMIT, 0.0 if first else others.share())}"
    rows = [
        row(f"{alone.vector}: ours, median over bursts", [burst.median / 1e9 for burst in ours], None, "Gflop/s"),
        row(f"{alone.vector}: ours, mean over all", [burst.mean / 1e9 for burst in ours], None, "Gflop/s"),
        row(f"{alone.vector}: likwid-bench", [value / 1e9 for value in theirs], None, "Gflop/s"),
        row("flops against likwid-bench: farthest end of the interval", means.farthest, LIMIT),
    ]
    table.keep("load", rows, load, said=title, real_time=first)
    print(title)
    return 0


if __name__ == "__main__":
    sys.exit(main())
