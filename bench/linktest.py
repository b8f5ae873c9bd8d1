"""LinkTest against a plain ping-pong in C, in turn with it; what scheduling costs; and how long a large node takes.

Beside it OSU's benchmarks (osu_latency) and NetPIPE (NPopenmpi), where they are on the PATH; both report means, which
other programs on the machine distort, so that they have no limit.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from bench.table import ROOT, keep, row

KERNEL = ROOT / "kernels/build/linktest"
AS_ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
#: Other programs that measure half a round trip: their names and arguments.
PEERS = {
    "OSU": ("osu_latency", "-m", "{size}:{size}"),
    "NetPIPE": ("NPopenmpi", "-l", "{size}", "-u", "{size}", "-p", "0", "-o", "{out}"),
}
#: Bytes, samples and messages a sample of both programs, and how much slower LinkTest may be.
SIZES = {"1 MiB": (1 << 20, 100, 4, 1.05), "8 B": (8, 100, 500, 1.10)}


def plain(folder: Path, cpus: list[int], size: int, samples: int, messages: int) -> float:
    """Half a round trip in ns by bench/pingpong.c."""
    words = [str(word) for word in (size, 20, samples, messages, *cpus)]
    command = ["mpirun", "--host", "localhost:2", "--bind-to", "none", "-n", "2", f"{folder}/pingpong", *words]
    done = subprocess.run(command, env=os.environ | AS_ROOT, check=True, capture_output=True, text=True)
    return float(done.stdout)


def peer(name: str, folder: Path, size: int) -> float:
    """Half a round trip in ns by one of the PEERS, its ranks bound to two cores."""
    out = folder / "peer"
    words = [word.format(size=size, out=out) for word in PEERS[name]]
    done = subprocess.run(
        ["mpirun", "--host", "localhost:2", "--bind-to", "core", "-n", "2", *words],
        env=os.environ | AS_ROOT,
        check=True,
        capture_output=True,
        text=True,
    )
    if name == "NetPIPE":  # size, Mbit/s, seconds
        return float(out.read_text().split()[2]) * 1e9
    return float(done.stdout.split()[-1]) * 1e3  # the last line is size, us


def linktest(folder: Path, cpus: list[int], *words: str) -> list[dict[str, Any]]:
    """The records of a call."""
    out = folder / "records.jsonl"
    out.unlink(missing_ok=True)
    command: list[str | Path] = [KERNEL, "--cpus", ",".join(map(str, cpus)), "--out", out, "--retest", "0", *words]
    subprocess.run(command, check=True, capture_output=True)
    return [json.loads(line) for line in out.read_text().splitlines()]


def main() -> None:
    """Measure, print, keep."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=9, help="calls of each program")
    parser.add_argument("--ranks", type=int, default=64, help="ranks that share the CPUs")
    times, ranks = (parser.parse_args().times, parser.parse_args().ranks)
    load = os.getloadavg()[0]
    cpus = sorted(os.sched_getaffinity(0))[:2]
    ratios: dict[str, list[float]] = {name: [] for name in SIZES}
    raw: dict[str, list[tuple[float, float]]] = {name: [] for name in SIZES}
    peers: dict[tuple[str, str], list[float]] = {
        (name, what): [] for name, (program, *_) in PEERS.items() if shutil.which(program) for what in SIZES
    }
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        subprocess.run(["mpicc", "-O2", "-o", folder / "pingpong", ROOT / "bench/pingpong.c"], check=True)
        for _ in range(times):
            for what, (size, samples, messages, _) in SIZES.items():
                theirs = plain(folder, cpus, size, samples, messages)
                how = ("--sizes", str(size), "--samples", str(samples), "--messages", str(messages), "--warm-up", "20")
                ours = next(one for one in linktest(folder, cpus, *how) if one["record"] == "pair")["latency_ns"]
                ratios[what].append(ours / theirs)
                raw[what].append((ours, theirs))
                for name in {name for name, _ in peers}:
                    peers[name, what].append(peer(name, folder, size))
        rows = [row(f"LinkTest to plain C, {what}", ratios[what], limit) for what, (*_, limit) in SIZES.items()]
        for (name, what), found in peers.items():
            rows.append(
                row(f"LinkTest to {name}, {what}, means", [a / b for (a, _), b in zip(raw[what], found, strict=True)])
            )
            least = min(a for a, _ in raw[what]) / min(found)
            rows.append(row(f"LinkTest to {name}, {what}, least of {times} calls", least))
        for schedule in ("parallel", "serial"):
            one = ("--sizes", "8", "--samples", "1", "--warm-up", "0", "--messages", "1", "--schedule", schedule)
            many = linktest(folder, cpus, "--ranks", str(ranks), *one)[-1]
            each = 1e3 * many["elapsed_s"] / (ranks - 1 + ranks % 2)
            rows.append(row(f"a round of {ranks} ranks on {len(cpus)} CPUs, {schedule}", each, 1.0, "ms"))
    plan = subprocess.run([KERNEL, "--plan", "--cpus", "0-127"], check=True, capture_output=True, text=True).stdout
    facts = dict(line.split(maxsplit=1) for line in plan.splitlines())
    rows.append(row("plan of 128 ranks, serial, 1 MiB", float(facts["seconds"]), 180, "s"))
    keep("linktest", rows, load, pairs_ns=raw, peers_ns={" ".join(key): found for key, found in peers.items()})


if __name__ == "__main__":
    main()
