"""The kernel `ports` against likwid-bench on one L3's cores: `python -m bench ports`, 10 minutes.

Both stream through as many bytes for each thread with the same instructions (16-byte loads, or non-temporal stores), on
the same CPUs and kind of pages, for as long (a pass), in turns: rounds of a process each, in random order. What is
compared is likwid-bench's figure, all bytes divided by the time that its slowest thread took, with the like of `ports`,
the threads times the mean rate of the slowest, which its records have beside the median over windows of 7 ms. Both
count what other programs or the host take from a thread. The result is the median over rounds of the ratio within a
round, with its bootstrap interval. `taskset -c 0 python -m bench ports` does it with one core.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import resource
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
from bench.table import ROOT, Row, row

#: likwid-bench's kernels with the instructions of `ports`.
KERNELS = {"load": "load_sse", "store_mem": "store_mem_sse"}
#: glibc's malloc (2.35 and later) then asks for huge pages, as `ports` does; likwid-bench has base pages by itself.
HUGE_PAGES = {"GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"}
PASS_S = 0.063
LIMIT = 0.03
SECONDS = 600.0


@dataclass(frozen=True)
class Ours:
    """A process of `ports` with one pass: of each stream the threads times the mean rate of the slowest, and the median
    over windows, both in B/s; its threads, and the bytes of each.
    """

    rates: dict[str, float]
    medians: dict[str, float]
    threads: int
    slice_bytes: int
    huge: bool


def of_ports() -> Ours:
    """What `ports` says of the first CCX and its own memory."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "r.jsonl"
        command = [ROOT / "kernels/build/ports", "--op", "bandwidth", "--cpus", "cores", "--passes", "1"]
        subprocess.run([*command, "--out", out], capture_output=True, check=True)
        header, *found = [json.loads(line) for line in out.read_text().splitlines()]
    cells = [r for r in found if r["record"] == "cell" and (r["scope"], r["memory"]) == ("ccx", "own")]
    rates = {r["stream"]: r["threads"] * r["slowest_thread_bytes_per_s"] for r in cells}
    medians = {r["stream"]: r["rate_bytes_per_s"] for r in cells}
    huge = all(place["huge_bytes"] == place["bytes"] for place in header["placement"].values())
    return Ours(rates, medians, cells[0]["threads"], header["slice_bytes"], huge)


def of_likwid_bench(stream: str, like: Ours) -> tuple[float, bool]:
    """Its rate in B/s for as long as `like` streamed, and whether its memory was on huge pages (by its page faults)."""
    size_kb = like.threads * like.slice_bytes // 1000
    iterations = max(1, round(PASS_S * like.rates[stream] / (1000 * size_kb)))
    command = ["likwid-bench", "-t", KERNELS[stream], "-w", f"N:{size_kb}kB:{like.threads}", "-i", str(iterations)]
    faults = resource.getrusage(resource.RUSAGE_CHILDREN).ru_minflt
    said = subprocess.run(command, capture_output=True, text=True, check=True, env={**os.environ, **HUGE_PAGES}).stdout
    faults = resource.getrusage(resource.RUSAGE_CHILDREN).ru_minflt - faults
    return 1e6 * float(re.findall(r"MByte/s:\s+([\d.]+)", said)[0]), faults * resource.getpagesize() < 500 * size_kb


def unlike(ours: Ours, huge: bool) -> str:
    """Why the two cannot be compared here; empty where they can."""
    if ours.threads != len(os.sched_getaffinity(0)):
        return "the CPUs here do not share one L3 with one thread a core; allow those of one (taskset)"
    if ours.huge != huge:
        return "one has huge pages and the other has not; likwid-bench needs glibc 2.35 and transparent huge pages"
    return ""


@dataclass(frozen=True)
class Rounds:
    """Of one stream our rates, our medians over windows, and likwid-bench's rates in B/s, a round each."""

    ours: list[float]
    medians: list[float]
    theirs: list[float]


def rounds(seconds: float) -> tuple[dict[str, Rounds], str]:
    """The rounds of each stream until the time is over; or why there are none."""
    rng = np.random.default_rng(1)
    first = of_ports()
    found = {stream: Rounds([], [], []) for stream in KERNELS}
    if why := unlike(first, of_likwid_bench("load", first)[1]):
        return found, why
    ends = time.monotonic() + seconds
    while time.monotonic() < ends or len(found["load"].ours) < 2:
        for which in rng.permutation(["ports", *KERNELS]).tolist():
            if which != "ports":
                found[which].theirs.append(of_likwid_bench(which, first)[0])
                continue
            own = of_ports()
            for stream, one in found.items():
                one.ours.append(own.rates[stream])
                one.medians.append(own.medians[stream])
    return found, ""


def main() -> int:
    """Measure, print the table, keep it; 0 whatever came out."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=SECONDS, help=f"how long (default {SECONDS:.0f})")
    seconds = parser.parse_args().seconds
    if shutil.which("likwid-bench") is None:
        print("ports against likwid-bench: unverified, likwid-bench is not on the PATH")
        return 0
    load = os.getloadavg()[0]
    others = Others()
    found, why = rounds(seconds)
    if why:
        print(f"ports against likwid-bench: unverified, {why}")
        return 0
    rows: list[Row] = []
    said = []
    for stream, of in found.items():
        one = agreement(of.ours, of.theirs)
        said.append(f"{stream}: ours / likwid-bench, {one.words(LIMIT, others.share())}")
        rows += [
            row(f"{stream}: ours, median over windows", [value / 1e9 for value in of.medians], None, "GB/s"),
            row(f"{stream}: ours", [value / 1e9 for value in of.ours], None, "GB/s"),
            row(f"{stream}: likwid-bench", [value / 1e9 for value in of.theirs], None, "GB/s"),
            row(f"{stream}: ours / likwid-bench", [a / b for a, b in zip(of.ours, of.theirs, strict=True)]),
            row(f"{stream}: farthest end of the interval from 1", one.farthest, LIMIT),
        ]
    table.keep("ports", rows, load, said=said)
    print("\n".join(said))
    return 0


if __name__ == "__main__":
    sys.exit(main())
