"""How the coherence kernel compares with core-to-core-latency, and with its own limits. `make bench` runs it.

Every figure is a ratio measured in one run, the two sides in turn, and its medians. Where spreads are compared, a loop
of the lowest priority (SCHED_IDLE, which yields to everything) keeps both CPUs awake: the host of a virtual machine
moves a CPU that sleeps, and the pair is then another one. It takes 3 to 5 minutes where nothing else runs.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import bootstrap

from bench import table
from bench.agreement import agreement
from bench.table import ROOT, Row, row

OURS = ROOT / "kernels/build/coherence"
PEER_VERSION = "1.2.0"
PEER = ROOT / "build/bench/peer/bin/core-to-core-latency"
PAIRS_OF_128_CPUS = 128 * 127 // 2
TIMED_PAIRS = 1000
LEAD_IN = 3
#: Beyond this share a value was measured over another path: no kernel's noise, but another place of the CPUs.
OTHER_PATH = 0.25
#: So often at most what changed its path is measured again: three blocks of processes, and those beside busy ones.
MOST_TRIES = 3


def ours(cpus: tuple[int, int], *arguments: str, pairs: int = 1, passes: int = 1) -> list[dict[str, Any]]:
    """Records of one process that measures the pair `pairs` times in a pass."""
    with tempfile.TemporaryDirectory() as folder:
        out, listed = Path(folder, "r.jsonl"), Path(folder, "pairs")
        listed.write_text(f"{cpus[0]} {cpus[1]}\n" * pairs)
        command = [str(OURS), "--op", "cas", "--passes", str(passes), *arguments]
        subprocess.run([*command, "--pairs", listed, "--out", out], check=True, capture_output=True)
        return [json.loads(line) for line in out.read_text().splitlines()]


def our_passes(cpus: tuple[int, int], *arguments: str) -> list[float]:
    """The pair's hop in ns in each of the default's three passes of one process."""
    return [float(r["latency_ns"]) for r in ours(cpus, *arguments, passes=3) if r["record"] == "pair"]


def our_value(cpus: tuple[int, int], *arguments: str) -> float:
    """What such a process says: the median of its passes, as everywhere (docs/method/core-to-core.md)."""
    return statistics.median(our_passes(cpus, *arguments))


def peer_value(cpus: tuple[int, int], *arguments: str) -> float:
    """The same by core-to-core-latency, in ns."""
    command = [str(PEER), "--cores", f"{cpus[0]},{cpus[1]}", "--csv", *arguments]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return float(re.findall(r"[\d.]+", text)[-1])


def install_peer() -> bool:
    """core-to-core-latency into build/bench; False where it cannot be built."""
    if not PEER.exists() and shutil.which("cargo"):
        command = ["cargo", "install", "--quiet", "--locked", f"core-to-core-latency@{PEER_VERSION}"]
        # rustc takes source text from what is left on standard input
        subprocess.run([*command, "--root", PEER.parent.parent], stdin=subprocess.DEVNULL, check=False)
    return PEER.exists()


def timed(action: Callable[[], object]) -> float:
    """Seconds that `action` takes."""
    start = time.monotonic()
    action()
    return time.monotonic() - start


def cv(values: list[float]) -> float:
    """Standard deviation as a share of the mean."""
    return statistics.stdev(values) / statistics.fmean(values)


def cv_less_drift(values: list[float]) -> float:
    """The same from the differences of neighbors, in which what drifts over many processes cancels (von Neumann)."""
    return float(np.std(np.diff(values)) / np.sqrt(2) / np.mean(values))


def cv_ratio_bound(a: list[list[float]], b: list[list[float]]) -> float:
    """Upper end of the 95% bootstrap interval of the ratio of CVs of a and b, processes resampled within blocks."""

    def ratio(x: np.ndarray[Any, Any], y: np.ndarray[Any, Any], axis: int = -1) -> Any:
        return (np.std(x, axis=axis, ddof=1) / np.mean(x, axis=axis)) / (
            np.std(y, axis=axis, ddof=1) / np.mean(y, axis=axis)
        )

    bounds = [
        bootstrap((np.array(x), np.array(y)), ratio, paired=False, method="percentile", rng=1)
        for x, y in zip(a, b, strict=True)
    ]
    return float(np.median([bound.confidence_interval.high for bound in bounds]))


@contextmanager
def looping(cpus: tuple[int, int], policy: int) -> Iterator[None]:
    """A process on each CPU that does nothing else than run, by the scheduler's `policy`."""
    loop = "import os; os.sched_setaffinity(0, {{{}}}); os.sched_setscheduler(0, {}, os.sched_param(0))\nwhile 1: pass"
    processes = [subprocess.Popen([sys.executable, "-c", loop.format(cpu, policy)]) for cpu in cpus]
    time.sleep(0.5)
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


def apart(values: list[float]) -> bool:
    """Whether a value is so far from the middle one that it belongs to another path."""
    middle = statistics.median(values)
    return any(abs(value / middle - 1) > OTHER_PATH for value in values)


def by_path(ours_ns: list[float], theirs_ns: list[float]) -> list[list[int]]:
    """Indices of rounds by the path that was measured, the shortest first; without those in which it changed."""
    paths: list[list[int]] = []
    steady = [i for i, (a, b) in enumerate(zip(ours_ns, theirs_ns, strict=True)) if abs(a / b - 1) < OTHER_PATH]
    for i in sorted(steady, key=ours_ns.__getitem__):
        if paths and ours_ns[i] < (1 + OTHER_PATH) * ours_ns[paths[-1][-1]]:
            paths[-1].append(i)
        else:
            paths.append([i])
    return paths


def spread_block(cpus: tuple[int, int], processes: int, peer: bool) -> dict[str, list[list[float]]]:
    """Passes of single processes, the contenders in turn."""
    contenders: dict[str, Callable[[], list[float]]] = {
        "ours": lambda: our_passes(cpus),
        "ours, 64 lines": lambda: our_passes(cpus, "--lines", "64"),
    }
    if peer:
        contenders["peer"] = lambda: [peer_value(cpus)]
    values: dict[str, list[list[float]]] = {name: [] for name in contenders}
    for _ in range(processes):
        for name, measure in contenders.items():
            values[name].append(measure())
    return values


def of_lines_alone(cpus: tuple[int, int], processes: int) -> list[float]:
    """What the draw of lines alone makes of the default's CV, where all lines are of one cluster: for each process the
    CV of its values when the lines of each pass are drawn again from themselves.
    """
    rng = np.random.default_rng(1)
    found = []
    for _ in range(processes):
        lines = np.array([r["line_ns"] for r in ours(cpus, "--detail", passes=3) if r["record"] == "pair"])
        drawn = rng.integers(lines.shape[1], size=(1000, *lines.shape))
        values = np.median(np.median(np.take_along_axis(lines[None], drawn, axis=2), axis=2), axis=1)
        found.append(float(values.std() / values.mean()))
    return found


def bench_time(cpus: tuple[int, int], peer: bool, kept: dict[str, Any]) -> list[Row]:
    """Seconds of measuring a pair and pass: ours from the trailer, the peer's process less its start.

    With nothing else running, not even a loop: our coordinator shares the two CPUs with the pair it measures.
    """
    own, hops, others, their_hops = [], [], [], []
    for _ in range(9):
        records = ours(cpus, pairs=TIMED_PAIRS)
        own.append(records[-1]["elapsed_s"] / TIMED_PAIRS)
        hops.append(statistics.median(r["latency_ns"] for r in records if r["record"] == "pair"))
        if peer:
            start = time.monotonic()
            their_hops.append(peer_value(cpus))
            others.append(time.monotonic() - start - timed(lambda: peer_value(cpus, "1", "1")))
    kept["time"] = {"ours_s": own, "hop_ns": hops, "peer_s": others, "peer_hop_ns": their_hops}
    rows = [row("a pair and pass", [1e3 * value for value in own], None, "ms"), row("its hop", hops, None, "ns")]
    if peer:
        rows.append(row("the peer's pair", [1e3 * value for value in others], None, "ms"))
        rows.append(row("the peer's hop", their_hops, None, "ns"))
        same = agreement(hops, their_hops)
        rows.append(row("hop: ours / the peer's", [a / b for a, b in zip(hops, their_hops, strict=True)]))
        rows.append(row("hop: ends of the ratio's 95% interval", (same.low, same.high)))
        ratios = [a / b for a, b in zip(own, others, strict=True)]
        rows.append(row("time: ours / peer", ratios, 0.01))
        for path in by_path(hops, their_hops):
            at_ns = statistics.median(hops[i] for i in path)
            rows.append(row(f"time: ours / peer, at a hop of {at_ns:.0f} ns", [ratios[i] for i in path]))
    return rows


def bench_spread(cpus: tuple[int, int], processes: int, peer: bool, kept: dict[str, Any]) -> list[Row]:
    """CVs over processes, three blocks.

    A block in which the path changed is measured again. The peer only serves to detect such a block: its values
    differ by 3 to 8% on one path, and by factors between paths.
    """
    blocks: list[dict[str, list[list[float]]]] = []
    again = kept["spread on changing paths"] = []
    while len(blocks) < 3:
        block = spread_block(cpus, processes, peer)
        if peer and apart([one[0] for one in block["peer"]]) and len(again) < MOST_TRIES:
            again.append(block)
            print(f"block {len(blocks) + 1} of 3 again: the peer, too, saw two paths", flush=True)
        else:
            blocks.append(block)
    kept["spread"] = blocks
    runs = {name: [[statistics.median(one) for one in block[name]] for block in blocks] for name in blocks[0]}
    first = {name: [[one[0] for one in block[name]] for block in blocks] for name in blocks[0]}
    rows = []
    for title, name, limit in (("at the default", "ours", 0.016), ("with 64 lines", "ours, 64 lines", 0.012)):
        rows.append(row(f"CV {title}", list(map(cv, runs[name])), limit))
        rows.append(row(f"CV {title}, from neighboring processes", list(map(cv_less_drift, runs[name]))))
        rows.append(row(f"CV {title}, of the first pass alone", list(map(cv, first[name]))))
    kept["spread of lines alone"] = of_lines_alone(cpus, max(5, processes // 4))
    rows.append(row("CV at the default, by the draw of lines alone", kept["spread of lines alone"]))
    if peer:
        rows.append(row("the peer's CV at its default", list(map(cv, runs["peer"]))))
        rows.append(row("CV: ours, first pass / peer, upper bound", cv_ratio_bound(first["ours"], first["peer"]), 1.25))
        rows.append(row("blocks again, as the peer saw two paths", len(again)))
        many = kept["peer 5000 x 300"] = [peer_value(cpus, "5000", "300") for _ in range(max(5, processes // 6))]
        rows.append(row("the peer's CV at 5000 x 300", cv(many), None))
    return rows


def bench_busy(cpus: tuple[int, int], processes: int, peer: bool, kept: dict[str, Any]) -> list[Row]:
    """The same with a busy process on each CPU; again where the quiet values before and after are of two paths."""
    for _ in range(MOST_TRIES):
        before = [our_value(cpus) for _ in range(processes)]
        with looping(cpus, os.SCHED_OTHER):
            loaded = [our_value(cpus) for _ in range(processes)]
            others = [peer_value(cpus) for _ in range(3)] if peer else []
        after = [our_value(cpus) for _ in range(processes)]
        if not apart(before + after):
            break
    kept["busy"] = {"quiet": before + after, "busy": loaded, "peer": others}
    middle = statistics.median(before + after)
    rows = [
        row("busy: median against quiet", abs(statistics.median(loaded) / middle - 1), 0.04),
        row("busy: CV", cv(loaded), 0.025),
    ]
    if peer:
        rows.append(row("busy: the peer's value / ours", [value / middle for value in others]))
    return rows


def bench_harness(cpus: tuple[int, int], kept: dict[str, Any]) -> list[Row]:
    """A pairs file with the pair 8,128 times, against its round trips and against --plan."""
    records: list[dict[str, Any]] = []
    wall = timed(lambda: records.extend(ours(cpus, pairs=PAIRS_OF_128_CPUS)))
    pairs = [r for r in records if r["record"] == "pair"]
    hop_s = statistics.median(r["latency_ns"] for r in pairs) / 1e9
    lines, batches, shortest = (records[0][name] for name in ("lines", "batches", "round_trips"))
    round_trips_s = sum(lines * (LEAD_IN + batches * r["round_trips"]) * 2 * r["latency_ns"] / 1e9 for r in pairs)
    # --plan is for hops of 40 ns and more; below, a batch of 2 us has more round trips than it reckons with
    plan = planned("0-127")
    at_150, at_195 = (plan[name] - plan["seconds_once"] for name in ("seconds", "seconds_at_195_ns"))
    planned_s = lines * (LEAD_IN + batches * shortest) * 2 * 45e-9 * len(pairs)
    expected = at_150 + (at_195 - at_150) * (round_trips_s / planned_s - 150 / 45)
    allowed = 1.25 * round_trips_s + 0.1e-3 * len(pairs)
    kept["harness"] = {"wall_s": wall, "hop_ns": hop_s * 1e9, "elapsed_s": records[-1]["elapsed_s"], "plan_s": expected}
    return [
        row("8,128 pairs", wall, None, "s"),
        row("8,128 pairs / (1.25 x round trips + 0.1 ms a pair)", wall / allowed, 1),
        row("--plan against the truth", abs(expected / records[-1]["elapsed_s"] - 1), 0.3),
    ]


def planned(cpus: str) -> dict[str, float]:
    """Figures of --plan for one pass."""
    command = [str(OURS), "--plan", "--op", "cas", "--cpus", cpus, "--passes", "1"]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return {k: float(v) for k, v in (line.split(" ", 1) for line in text.splitlines()) if re.fullmatch(r"[\d.]+", v)}


def bench_plan(cpus: tuple[int, int], kept: dict[str, Any]) -> list[Row]:
    """What --plan says of large nodes, and the memory to plan 512 CPUs and to measure as many pairs by two."""
    small, large = planned("0-127"), planned("0-255")
    # a small parent: the high-water mark of a forked child begins with its parent's
    small_parent = (
        "import resource, subprocess, sys; subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, "
        "stderr=subprocess.DEVNULL); print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
    )

    def rss_bytes(*arguments: str) -> int:
        command = [sys.executable, "-S", "-E", "-c", small_parent, str(OURS), "--op", "cas", *arguments]
        return 1024 * int(subprocess.run(command, check=True, capture_output=True, text=True).stdout)

    planning = rss_bytes("--plan", "--cpus", "0-511")
    with tempfile.TemporaryDirectory() as folder:
        out, listed = f"{folder}/r.jsonl", Path(folder, "pairs")
        listed.write_text(f"{cpus[0]} {cpus[1]}\n" * (512 * 511 // 2))
        measuring = rss_bytes("--pairs", str(listed), "--lines", "6", "--passes", "3", "--out", out)
    measuring -= int(small["memory_bytes"])  # the pool
    kept["plan"] = {"128": small, "256": large, "rss_512_bytes": planning, "rss_130816_pairs_bytes": measuring}
    return [
        row("--plan of 128 CPUs at 150 ns", small["seconds"], 8, "s"),
        row("--plan of 128 CPUs at 195 ns", small["seconds_at_195_ns"], None, "s"),
        row("--plan of 256 CPUs at 150 ns", large["seconds"], 30, "s"),
        row("memory to plan 512 CPUs", planning / 2**20, 64, "MiB"),
        row("memory to measure 130,816 pairs, less the pool", measuring / 2**20, 64, "MiB"),
    ]


def main() -> int:
    """Measure, print the table, keep it; 0 whatever came out."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--processes", type=int, default=40, help="processes a block (default 40)")
    parser.add_argument("--cpus", default="", help="two CPUs, as 0,1 (default: the first two allowed)")
    chosen = parser.parse_args()
    allowed = sorted(os.sched_getaffinity(0))
    first, second = map(int, chosen.cpus.split(",")) if chosen.cpus else allowed[:2]
    cpus, peer = (first, second), install_peer()
    if not peer:
        print("core-to-core-latency is not here (cargo missing, or its words above): its columns are left out")
    load = os.getloadavg()[0]
    kept: dict[str, Any] = {}
    rows = bench_time(cpus, peer, kept) + bench_plan(cpus, kept) + bench_harness(cpus, kept)
    with looping(cpus, os.SCHED_IDLE):
        rows += bench_busy(cpus, max(5, chosen.processes // 3), peer, kept)
        rows += bench_spread(cpus, chosen.processes, peer, kept)
    table.keep("coherence", rows, load, **kept)
    return 0


if __name__ == "__main__":
    sys.exit(main())
