"""What the memory kernels must reach, measured here: `python -m bench.numa [--runs 20]`.

The spread over runs (new processes and pages, the median over three passes), the cycles of an L1 load, the share of
other instructions in the chase, and DRAM against multichase where it is on the PATH. A figure that misses its limit is
marked; nothing is asserted, as it says something of this machine, and of what runs beside, too.
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
from pathlib import Path

import numpy as np

from bench import table
from bench.agreement import agreement
from bench.table import Row, row

KERNELS = Path(__file__).parent.parent / "kernels" / "build"


def cells(*arguments: str) -> list[dict[str, object]]:
    """The cells of one call of chase."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "r.jsonl"
        command = [str(KERNELS / "chase"), *arguments, "--out", str(out)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise RuntimeError(done.stderr.strip())
        return [r for r in map(json.loads, out.read_text().splitlines()) if r["record"] == "cell"]


def median(found: list[dict[str, object]]) -> float:
    """The median latency of these cells, ns."""
    return float(np.median([float(str(cell["latency_ns"])) for cell in found]))


def spread(values: list[float]) -> float:
    """Coefficient of variation in percent."""
    return float(100 * np.std(values, ddof=1) / np.mean(values))


def chase_overhead() -> float:
    """Percent of instructions in the loop of `cycle_follow` that are not its loads."""
    listing = subprocess.run(
        ["objdump", "-d", "--no-show-raw-insn", str(KERNELS / "chase")], capture_output=True, text=True, check=True
    ).stdout
    body = re.search(r"<cycle_follow>:\n(.*?)\n\n", listing, re.DOTALL)
    if body is None:
        raise RuntimeError("cycle_follow is not in the program")
    found = [(int(a, 16), text) for a, text in re.findall(r"^\s*([0-9a-f]+):\t(.*)$", body[1], re.MULTILINE)]
    jumps = [(at, int(m[1], 16)) for at, text in found if (m := re.match(r"j\w+\s+([0-9a-f]+)", text))]
    back = max((jump for jump in jumps if jump[1] < jump[0]), key=lambda jump: jump[0] - jump[1])
    loop = [text for at, text in found if back[1] <= at <= back[0]]
    loads = sum(re.match(r"mov\s+\(%(\w+)\),%\1", text) is not None for text in loop)
    return 100 * (len(loop) - loads) / len(loop)


def levels(runs: int) -> list[Row]:
    """Spread of L1 and L2, in ns and in cycles of the clock probe beside each cell, on transparent huge pages.

    L1 and L2 run at the core's clock: where the spread in cycles is small, that in ns is the clock's.
    """
    ns: dict[str, list[float]] = {"l1": [], "l2": []}
    cycles: dict[str, list[float]] = {"l1": [], "l2": []}
    for _ in range(runs):
        found = cells("--op", "levels", "--cpus", "0", "--passes", "3")
        for level, values in ns.items():
            of_level = [cell for cell in found if cell["level"] == level]
            values.append(median(of_level))
            cycles[level].append(
                float(np.median([float(str(c["latency_ns"])) * float(str(c["core_hz"])) / 1e9 for c in of_level]))
            )
    rows = [row("L1 load, cycles by the clock probe (4 or 5)", cycles["l1"], 5.1, "cycles")]
    for level, limit in (("l1", 2.0), ("l2", 1.0)):
        rows.append(row(f"{level.upper()}: spread over {runs} runs", spread(ns[level]), limit, "%"))
        rows.append(row(f"{level.upper()}: spread in cycles", spread(cycles[level]), None, "%"))
    return rows


def memory(runs: int) -> list[Row]:
    """Spread of DRAM on each kind of page that can be had."""
    rows = []
    for pages, limit in (("huge", 3.0), ("thp", 3.0), ("base", 5.0)):
        found = []
        try:
            for _ in range(runs):
                passes = cells("--op", "latency", "--cpus", "0", "--pages", pages, "--passes", "3")
                found.append(median([cell for cell in passes if cell["memory_node"] == 0]))
        except RuntimeError as error:
            print(f"DRAM, {pages} pages: {error}")
            continue
        rows.append(row(f"DRAM, {pages} pages: spread over {runs} runs", spread(found), limit, "%"))
    return rows


def against_multichase() -> list[Row]:
    """DRAM by the curve's last point against multichase with the same buffer, pages and stride, in turns."""
    if shutil.which("multichase") is None:
        print("DRAM against multichase: unverified, multichase is not on the PATH")
        return []
    ours, theirs = [], []
    for _ in range(9):
        curve = cells("--op", "curve", "--cpus", "0", "--size-mib", "256", "--passes", "1")
        ours.append(float(str(max(curve, key=lambda cell: int(str(cell["size_bytes"])))["latency_ns"])))
        command = ["taskset", "-c", "0", "multichase", "-m", "256m", "-T", "256m", "-s", "64", "-H"]
        theirs.append(float(subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()[-1]))
    same = agreement(ours, theirs)
    print(f"DRAM: ours / multichase, {same.words(0.05)}")
    return [
        row("DRAM, 256 MiB: ours", ours, None, "ns"),
        row("DRAM, 256 MiB: multichase", theirs, None, "ns"),
        row("DRAM against multichase: farthest end of the interval", same.farthest, 0.05),
    ]


def main() -> int:
    """Measure, print the table, keep it; 0 whatever came out."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=20)
    runs = parser.parse_args().runs
    load = os.getloadavg()[0]
    rows = [row("chase: other instructions", chase_overhead(), 4.0, "%")]
    table.keep("numa", rows + levels(runs) + memory(runs) + against_multichase(), load)
    return 0


if __name__ == "__main__":
    sys.exit(main())
