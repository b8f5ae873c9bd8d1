"""The kernel `bandwidth` against likwid-bench on one L3's cores: `python -m bench bandwidth`, 10 minutes.

Both stream through as many bytes for each thread by vectors as wide, on the same CPUs and
base pages, for as long (a pass), in turns: rounds of a process each, in random order, at real-time priority where that
is allowed. likwid-bench gives each thread as many bytes and divides them all by the time that its slowest thread took;
`bandwidth` has all threads begin each sweep together. Where they share the memory unequally, likwid-bench's slowest thread has
it for itself at the end: its figure lies between the threads times the mean rate of the slowest of ours, and the sum of
their mean rates (of one core both are the same). Ratios are medians over rounds of the ratio within a round, with their
bootstrap intervals.
`taskset -c 0 python -m bench bandwidth` does it with one core.
"""

from __future__ import annotations

import argparse
import ctypes
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
from bench.agreement import Others, agreement, conclusion
from bench.real_time import real_time
from bench.table import ROOT, Row, row

#: likwid-bench's kernels with the instructions of the streams, by bytes of a vector; what it calls triad has four arrays.
KERNELS = {
    "load": "load", "store_mem": "store_mem", "copy": "copy", "copy_mem": "copy_mem", "triad": "stream",
    "triad_mem": "stream_mem",
}  # fmt: skip
VECTORS = {16: "sse", 32: "avx"}
#: prctl: this process and all that it starts have base pages, as likwid-bench does not ask for others (Linux 3.15).
_NO_HUGE_PAGES = 41
PASS_S = 0.063
LIMIT = 0.03
SECONDS = 600.0


@dataclass(frozen=True)
class Ours:
    """A process of `bandwidth` with one pass. Rates by stream in B/s: the threads times the mean rate of the slowest,
    the sum of their mean rates, and the median over sweeps; its threads, and the bytes of each by stream.
    """

    least: dict[str, float]
    most: dict[str, float]
    medians: dict[str, float]
    threads: int
    slice_bytes: dict[str, int]
    vector_bytes: int


def of_bandwidth() -> Ours:
    """What `bandwidth` says of the first CCX and its own memory, on base pages."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "r.jsonl"
        command = [f"{ROOT}/kernels/build/bandwidth", "--op", "groups", "--cpus", "cores", "--passes", "1"]
        streams = ["--streams", ",".join(KERNELS), "--pages", "base"]
        subprocess.run([*command, *streams, "--out", out], capture_output=True, check=True)
        lines = [json.loads(line) for line in out.read_text().splitlines()]
    cells = [r for r in lines if r["record"] == "cell" and (r["scope"], r["memory"]) == ("ccx", "own")]
    return Ours(
        {r["stream"]: r["threads"] * r["slowest_thread_bytes_per_s"] for r in cells},
        {r["stream"]: r["mean_bytes_per_s"] for r in cells},
        {r["stream"]: r["rate_bytes_per_s"] for r in cells},
        cells[0]["threads"],
        {r["stream"]: r["slice_bytes"] for r in cells},
        lines[0]["vector_bytes"],
    )


def of_likwid_bench(stream: str, like: Ours) -> float:
    """Its rate in B/s for as long as `like` streamed."""
    size_kb = like.threads * like.slice_bytes[stream] // 1000
    iterations = max(1, round(PASS_S * like.most[stream] / (1000 * size_kb)))
    kernel = f"{KERNELS[stream]}_{VECTORS[like.vector_bytes]}"
    command = ["likwid-bench", "-t", kernel, "-w", f"N:{size_kb}kB:{like.threads}", "-i", str(iterations)]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return 1e6 * float(re.findall(r"MByte/s:\s+([\d.]+)", said)[0])


@dataclass(frozen=True)
class Rounds:
    """Of one stream our rates by either count, our medians over sweeps, and likwid-bench's rates in B/s, a round
    each."""

    least: list[float]
    most: list[float]
    medians: list[float]
    theirs: list[float]


def rounds(seconds: float) -> dict[str, Rounds]:
    """The rounds of each stream until the time is over; none where the CPUs here are not those of one L3."""
    rng = np.random.default_rng(1)
    first = of_bandwidth()
    if first.threads != len(os.sched_getaffinity(0)):
        return {}
    found = {stream: Rounds([], [], [], []) for stream in KERNELS}
    ends = time.monotonic() + seconds
    while time.monotonic() < ends or len(found["load"].least) < 2:
        for which in rng.permutation(["bandwidth", *KERNELS]).tolist():
            if which != "bandwidth":
                found[which].theirs.append(of_likwid_bench(which, first))
                continue
            own = of_bandwidth()
            for stream, one in found.items():
                one.least.append(own.least[stream])
                one.most.append(own.most[stream])
                one.medians.append(own.medians[stream])
    return found


def main() -> int:
    """Measure, print the table, keep it; 0 whatever came out."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=SECONDS, help=f"how long (default {SECONDS:.0f})")
    seconds = parser.parse_args().seconds
    if shutil.which("likwid-bench") is None:
        print("bandwidth against likwid-bench: unverified, likwid-bench is not on the PATH")
        return 0
    load = os.getloadavg()[0]
    others = Others()
    if ctypes.CDLL(None, use_errno=True).prctl(_NO_HUGE_PAGES, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "transparent huge pages cannot be turned off for this process")
    first = real_time()
    found = rounds(seconds)
    if not found:
        why = "the CPUs here do not share one L3 with one thread a core; allow those of one (taskset)"
        print(f"bandwidth against likwid-bench: unverified, {why}")
        return 0
    rows: list[Row] = []
    said = []
    for stream, of in found.items():
        least, most = agreement(of.least, of.theirs), agreement(of.most, of.theirs)
        both = [f"{one.ratio:.3f} ({one.low:.3f} to {one.high:.3f})" for one in (least, most)]
        end = f"likwid-bench's figure between both: {conclusion(least, most, LIMIT, 0.0 if first else others.share())}"
        said.append(
            f"{stream}: ours / likwid-bench {both[0]} by the slowest thread, {both[1]} by the sum of all, "
            f"{least.rounds} rounds: {end}"
        )
        rows += [
            row(f"{stream}: ours, median over sweeps", [value / 1e9 for value in of.medians], None, "GB/s"),
            row(f"{stream}: ours, sum of the means", [value / 1e9 for value in of.most], None, "GB/s"),
            row(f"{stream}: ours, by the slowest thread", [value / 1e9 for value in of.least], None, "GB/s"),
            row(f"{stream}: likwid-bench", [value / 1e9 for value in of.theirs], None, "GB/s"),
            row(f"{stream}: outside of both, end of the interval", max(least.high - 1, 1 - most.low), LIMIT),
        ]
    table.keep("bandwidth", rows, load, said=said, real_time=first)
    print("\n".join(said))
    return 0


if __name__ == "__main__":
    sys.exit(main())
