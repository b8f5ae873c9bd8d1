"""Every kernel beside the programs known for what it measures, at their own definitions: `python -m bench.peers`. And
beside itself by another compiler, C library or optimization.

Rounds of a process each, in turns and in random order, at real-time priority where that is allowed: a round's ratio is
ours divided by theirs of the same quantity, size, pages and statistic, and a row is the median of ten rounds or more
with its 95% interval. `--only NAME` compares with some. Programs that are in no registry are built in a cache
(bench/peer.py). With an L3 of hundreds of MiB it takes an hour, as each array is four times as large.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from bench import peer, table
from bench.agreement import Agreement, agreement
from bench.real_time import real_time
from bench.table import ROOT, Row, row
from tests.support.real_parts import built

ROUNDS = 10
LINE_BYTES = 64
#: At real-time priority a program that hangs takes its CPU from everybody.
LONGEST_S = 300.0
AS_ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
#: likwid-bench's kernels by our streams; what it calls triad has four arrays. The ending by bytes of a vector.
LIKWID = {"load": "load", "store_mem": "store_mem", "copy": "copy", "copy_mem": "copy_mem", "triad": "stream"}
LIKWID_VECTORS = {16: "sse", 32: "avx", 64: "avx512"}
#: Those with the instructions of `load`, by the vectors that it says it has.
PEAKFLOPS = {"avx512": "peakflops_avx512_fma", "avx2": "peakflops_avx_fma", "sse2": "peakflops_sse"}
CORE_TO_CORE_VERSION = "1.2.0"
#: Its processes in a round: each has one line, and lines differ by 3 to 5%.
C2CLAT_LINES = 32

Values: TypeAlias = Mapping[str, float]


@dataclass(frozen=True)
class Contest:
    """Two programs that measure the same quantities, and between which ratios (ours / theirs) that is shown; None: the
    ratio is reported only."""

    name: str
    ours: Callable[[], Values]
    theirs: Callable[[], Values]
    between: tuple[float, float] | None


def records(kernel: str, *arguments: str, before: Sequence[str] = (), flavor: str = "") -> list[dict[str, Any]]:
    """What a call of one of our kernels writes; `before` are words before its own."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "r.jsonl"
        program = str(ROOT / "kernels/build" / flavor / kernel)
        command = [*before, program, *arguments, "--passes", "1", "--out", str(out)]
        subprocess.run(command, capture_output=True, check=True)
        return [json.loads(line) for line in out.read_text().splitlines()]


def said(*command: str | Path, **environment: str) -> str:
    """What a program prints."""
    return subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | environment,
        stdin=subprocess.DEVNULL,
        timeout=LONGEST_S,
    ).stdout


def listed(cpus: list[int]) -> str:
    """CPUs as lists of CPUs are written."""
    return ",".join(map(str, cpus))


def in_turns() -> tuple[str, ...]:
    """Words before a program with more threads than CPUs, one of which else would wait for the end of the other, or for
    ever: at real-time priority they take turns."""
    return ("chrt", "--rr", "1") if os.sched_getscheduler(0) == os.SCHED_FIFO else ()


# --- bandwidth ---


def streams(cpus: list[int], names: str, pages: str) -> list[dict[str, Any]]:
    """The cells of `bandwidth` on these CPUs, with the header before them."""
    arguments = ("--op", "machine", "--cpus", listed(cpus), "--streams", names, "--pages", pages)
    header, *lines = records("bandwidth", *arguments)
    return [header, *(line for line in lines if line["record"] == "cell" and line["scope"] == "machine")]


def stream_contest(cpus: list[int], pages: str) -> Contest | None:
    """STREAM with arrays as large as ours, which are four times the L3s; the best of ten by both."""
    _, first, *_ = streams(cpus, "copy", pages)
    elements = first["slice_bytes"] // 2 * first["threads"] // 8
    name, flags = f"stream-{elements}-{pages}", [f"-DSTREAM_ARRAY_SIZE={elements}"]
    if pages == "huge":  # where the arrays end may be beyond what the medium code model reaches
        flags += ["-mcmodel=large", "-fno-pie", "-no-pie", str(ROOT / "bench/huge_bss.c")]
    program = peer.built("stream", name, flags)
    if program is None:
        return None

    def ours() -> Values:
        return {cell["stream"]: cell["best_bytes_per_s"] for cell in streams(cpus, "copy,triad", pages)[1:]}

    def theirs() -> Values:
        places = {"OMP_NUM_THREADS": str(len(cpus)), "OMP_PROC_BIND": "true"}
        rates = re.findall(r"(Copy|Triad):\s+([\d.]+)", said("taskset", "-c", listed(cpus), program, **places))
        return {name.lower(): 1e6 * float(rate) for name, rate in rates}

    return Contest(f"STREAM, {len(cpus)} CPUs, {pages} pages", ours, theirs, (0.97, 1.03))


def likwid_contest(cpus: list[int]) -> Contest | None:
    """likwid-bench with as many bytes and vectors as wide; the mean over ten sweeps by both, on base pages."""
    if peer.installed("likwid-bench", "likwid") is None:
        return None
    header, *cells = streams(cpus, ",".join(LIKWID), "base")
    kb = {cell["stream"]: cell["slice_bytes"] * cell["threads"] // 1000 for cell in cells}

    def ours() -> Values:
        return {cell["stream"]: cell["mean_bytes_per_s"] for cell in streams(cpus, ",".join(LIKWID), "base")[1:]}

    def theirs() -> Values:
        rates = {}
        for stream, kernel in LIKWID.items():
            words = ("-t", f"{kernel}_{LIKWID_VECTORS[header['vector_bytes']]}", "-i", "10")
            output = said(*in_turns(), "likwid-bench", *words, "-w", f"N:{kb[stream]}kB:{len(cpus)}")
            rates[stream] = 1e6 * float(re.findall(r"MByte/s:\s+([\d.]+)", output)[0])
        return rates

    return Contest(f"likwid-bench, {len(cpus)} CPUs", ours, theirs, (0.97, 1.03))


# --- between cores ---


def hop(pair: list[int], operation: str, before: Sequence[str] = ()) -> float:
    """A pair's hop in ns."""
    cells = records("coherence", "--op", operation, "--cpus", listed(pair), before=before)
    return float(next(cell["latency_ns"] for cell in cells if cell["record"] == "pair"))


def core_to_core_contest(pair: list[int]) -> Contest | None:
    """core-to-core-latency: compare-exchange on one line; its mean beside our median."""
    program = peer.crate("core-to-core-latency", CORE_TO_CORE_VERSION)
    if program is None:
        return None
    return Contest(
        "core-to-core-latency",
        lambda: {"hop": hop(pair, "cas")},
        lambda: {"hop": float(re.findall(r"[\d.]+", said(program, "--cores", listed(pair), "--csv"))[-1])},
        (0.95, 1.03),
    )


def c2clat_contest(pair: list[int]) -> Contest | None:
    """c2clat: loads and stores, a line each way; the median over lines of the lower of two batches on each, of which
    ours has many in a process, and c2clat one. It cuts a time to whole ns, which takes half of one on average."""
    program = peer.built("c2clat", "c2clat")
    if program is None:
        return None

    def theirs() -> Values:
        command = ("taskset", "-c", listed(pair), program, "-s", "3")  # the first batch waits for the other thread
        return {"hop": float(np.median([float(said(*command).split()[-2]) for _ in range(C2CLAT_LINES)])) + 0.5}

    return Contest("c2clat", lambda: {"hop": hop(pair, "flag2")}, theirs, (0.95, 1.03))


def pingpong_contest(pair: list[int]) -> Contest | None:
    """multichase's pingpong: compare-exchange on one line, the mean over a second, without the pauses that it makes."""
    program = peer.built("multichase", "pingpong")
    if program is None:
        return None
    command = ("taskset", "-c", listed(pair), program, "-l", "-r", "0")
    return Contest(
        "multichase pingpong",
        lambda: {"hop": hop(pair, "cas", in_turns())},
        lambda: {"hop": float(said(*in_turns(), *command).split()[-1])},
        None,  # its loop looks between tries whether it is to end
    )


# --- memory ---


def multichase_contest(cpu: int) -> Contest | None:
    """multichase through 256 MiB of transparent huge pages, beside the curve's point of that size."""
    program = peer.built("multichase", "multichase")
    if program is None:
        return None

    def ours() -> Values:
        cells = [
            c for c in records("chase", "--op", "curve", "--cpus", str(cpu), "--size-mib", "256") if "size_bytes" in c
        ]
        return {"load": max(cells, key=lambda cell: int(cell["size_bytes"]))["latency_ns"]}

    words = ("-m", "256m", "-T", "256m", "-s", "64", "-H")
    return Contest(
        "multichase, 256 MiB",
        ours,
        lambda: {"load": float(said(*in_turns(), "taskset", "-c", str(cpu), program, *words).split()[-1])},
        (0.95, 1.05),
    )


def compiled(name: str, folder: Path) -> Path:
    """A program that is written from its definition, of bench/."""
    program = folder / name
    subprocess.run(["gcc", "-O2", "-pthread", "-o", program, ROOT / f"bench/{name}.c"], check=True)
    return program


def first_touch_contest(pair: list[int], folder: Path) -> Contest:
    """The microbenchmark of first touch by its definition: other arrays divided by own ones, both cores at once."""
    program = compiled("first_touch", folder)

    def ours() -> Values:
        cells = [line for line in records("touch", "--op", "ratio", "--cpus", listed(pair)) if "together" in line]
        return {"other / own": next(cell["ratio"] for cell in cells if cell["together"] == "both")}

    def theirs() -> Values:
        (own, _, _, other) = np.array(said(program, *map(str, pair)).split(), dtype=float).reshape(4, 2)
        return {"other / own": float(np.sqrt(np.prod(other / own)))}

    return Contest("first touch, by its definition", ours, theirs, (0.99, 1.01))


def ring_contest(cpus: list[int], folder: Path) -> Contest:
    """xcpumemperf's ring by its definition: accesses with a fence behind each in a second. Its bytes follow each other,
    so that 63 of 64 find their line in the core; each of ours is of another line."""
    program = compiled("ring", folder)

    def ours() -> Values:
        lines = records("remap", "--op", "ring", "--cpus", listed(cpus), before=in_turns())
        cells = [line for line in lines if line["record"] == "cell"]
        return {
            end: float(np.median([cell[f"{field}_bytes_per_s"] / LINE_BYTES for cell in cells]))
            for end, field in (("writer", "written"), ("reader", "read"))
        }

    def theirs() -> Values:
        lines = [line.split() for line in said(*in_turns(), program, "4", *map(str, cpus)).splitlines()]
        return {
            end: float(np.median([float(rate) for which, rate in lines if which == end]))
            for end in ("writer", "reader")
        }

    return Contest("xcpumemperf's ring, by its definition", ours, theirs, None)


# --- messages and load ---


def messages_contest(pair: list[int], folder: Path) -> Contest | None:
    """IMB's PingPong, bound to the same cores: half a round trip; its mean beside our median."""
    program = peer.built("IMB", "IMB-MPI1")
    if program is None:
        return None
    sizes = {"8 B": (8, 500), "1 MiB": (1 << 20, 4)}
    (folder / "lengths").write_text("".join(f"{size}\n" for size, _ in sizes.values()))

    def ours() -> Values:
        halves = {}
        for name, (size, messages) in sizes.items():
            words = ("--sizes", str(size), "--samples", "100", "--messages", str(messages), "--warm-up", "20")
            lines = linktest("--cpus", listed(pair), "--retest", "0", *words)
            halves[name] = float(next(line["median_ns"] for line in lines if line["record"] == "pair"))
        return halves

    def theirs() -> Values:
        places = ("--host", "localhost:2", "-n", "2", "--cpu-list", listed(pair), "--bind-to", "cpu-list:ordered")
        output = said("mpirun", *places, program, "PingPong", "-msglen", folder / "lengths", "-iter", "2000", **AS_ROOT)
        times = {int(size): 1e3 * float(us) for size, us in re.findall(r"^\s+(\d+)\s+\d+\s+([\d.]+)\s", output, re.M)}
        return {name: times[size] for name, (size, _) in sizes.items()}

    return Contest("IMB PingPong", ours, theirs, (0.97, 1.03))


def linktest(*arguments: str) -> list[dict[str, Any]]:
    """The records of linktest, which has passes of its own."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "r.jsonl"
        command = [f"{ROOT}/kernels/build/linktest", *arguments, "--out", str(out)]
        subprocess.run(command, capture_output=True, check=True)
        return [json.loads(line) for line in out.read_text().splitlines()]


def flops_contest(cpu: int) -> Contest | None:
    """likwid-bench's peakflops by the same vectors on one core; the mean of both."""
    if peer.installed("likwid-bench", "likwid") is None:
        return None
    header, first, _ = records("load", "--op", "alone", "--cpus", str(cpu))
    kernel = PEAKFLOPS.get(header["vector"])
    if kernel is None:
        print(f"peakflops: not compared, as likwid-bench has none for {header['vector']}")
        return None
    flops_per_element = int(re.findall(r"Flops per element: (\d+)", said("likwid-bench", "-l", kernel))[0])
    iterations = max(1, round(0.15 * first["flops_per_s"] / (flops_per_element * 16000 / 8)))

    def theirs() -> Values:
        words = ("taskset", "-c", str(cpu), "likwid-bench", "-t", kernel, "-w", "N:16kB:1", "-i", str(iterations))
        return {"flops": 1e6 * float(re.findall(r"MFlops/s:\s+([\d.]+)", said(*words))[0])}

    def ours() -> Values:
        return {"flops": records("load", "--op", "alone", "--cpus", str(cpu))[1]["mean_flops_per_s"]}

    return Contest(f"likwid-bench {kernel}", ours, theirs, (0.97, 1.03))


# --- ours by other compilers ---


def flavor_contest(flavor: str, cpus: list[int]) -> Contest:
    """The programs of a flavor of kernels/Makefile: latencies, streams of caches and arithmetic."""
    built(flavor)

    def values(flavor: str) -> Values:
        pair, first = listed(cpus[:2]), str(cpus[0])
        measured = dict[str, float]()
        for operation in ("cas", "faa", "flag1", "flag2") if len(cpus) > 1 else ():
            hops = records("coherence", "--op", operation, "--cpus", pair, flavor=flavor)
            measured[operation] = next(line["latency_ns"] for line in hops if line["record"] == "pair")
        for kernel, words, value in (
            ("chase", "--op levels", "latency_ns"),
            ("bandwidth", "--op caches --streams load,copy", "rate_bytes_per_s"),
            ("load", "--op alone", "flops_per_s"),
        ):
            lines = records(kernel, *words.split(), "--cpus", first, flavor=flavor)
            for line in lines[1:]:
                if line["record"] == "cell" and line[value] and line.get("level") != "l3":  # the L3 has other users
                    measured[" ".join([kernel, *(line[key] for key in ("level", "stream") if key in line)])] = line[
                        value
                    ]
        return measured

    return Contest(f"the same by {flavor}", partial(values, ""), partial(values, flavor), (0.97, 1.03))


# --- all of them ---


def contests(cpus: list[int], folder: Path, only: str) -> Iterator[Contest]:
    """Those whose program's name has `only` in it."""
    first, pair = cpus[0], cpus[:2]
    makers: dict[str, Callable[[], Contest | None]] = {}
    for some in ([first], cpus) if len(cpus) > 1 else ([first],):
        for pages in ("base", "huge"):
            makers[f"STREAM {len(some)} {pages}"] = partial(stream_contest, some, pages)
        makers[f"likwid-bench {len(some)}"] = partial(likwid_contest, some)
    makers |= {"peakflops": lambda: flops_contest(first), "multichase": lambda: multichase_contest(first)}
    if len(cpus) > 1:
        makers |= {
            "core-to-core-latency": lambda: core_to_core_contest(pair),
            "c2clat": lambda: c2clat_contest(pair),
            "pingpong": lambda: pingpong_contest(pair),
            "first-touch": lambda: first_touch_contest(pair, folder),
            "ring": lambda: ring_contest(cpus, folder),
            "IMB": lambda: messages_contest(pair, folder),
        }
    makers |= {flavor: partial(flavor_contest, flavor, cpus) for flavor in ("clang", "musl", "native")}
    for name, make in makers.items():
        if only.lower() in name.lower() and (contest := make()) is not None:
            yield contest


def play(contest: Contest, rounds: int) -> dict[str, list[tuple[float, float]]]:
    """Ours and theirs of each quantity, by round."""
    values: dict[str, list[tuple[float, float]]] = {}
    order = np.random.default_rng(1)
    for _ in range(rounds):
        if order.integers(2):
            ours, theirs = contest.ours(), contest.theirs()
        else:
            theirs, ours = contest.theirs(), contest.ours()
        for name in ours:
            values.setdefault(name, []).append((ours[name], theirs[name]))
    return values


def outcome(ratio: Agreement, between: tuple[float, float] | None) -> str:
    """Whether the median is where it must be, and whether its interval leaves that open."""
    if between is None:
        return "reported"
    low, high = between
    inside = low <= ratio.ratio <= high
    sure = (low <= ratio.low and ratio.high <= high) if inside else (ratio.high < low or ratio.low > high)
    return ("met" if inside else "NOT met") + ("" if sure else ", within the interval undecided")


def main() -> int:
    """Measure, print the table, keep it; 0 whatever came out."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=ROUNDS, help=f"of each two programs (default {ROUNDS})")
    parser.add_argument("--only", default="", metavar="NAME", help="programs whose name contains it")
    chosen = parser.parse_args()
    average = os.getloadavg()[0]
    first = real_time()
    rows: list[Row] = []
    lines = ["| beside | quantity | ours / theirs | 95% interval | required | |", "|---|---|---|---|---|---|"]
    kept: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        for contest in contests(sorted(os.sched_getaffinity(0)), Path(folder), chosen.only):
            for quantity, values in play(contest, chosen.rounds).items():
                ratio = agreement(*zip(*values, strict=True))
                between = contest.between
                required = "" if between is None else f"{between[0]:.2f} to {between[1]:.2f}"
                interval = f"{ratio.low:.3f} to {ratio.high:.3f}"
                end = outcome(ratio, between)
                lines.append(f"| {contest.name} | {quantity} | {ratio.ratio:.3f} | {interval} | {required} | {end} |")
                rows.append(row(f"{contest.name}: {quantity}"[:54], [ours / theirs for ours, theirs in values]))
                kept[f"{contest.name}: {quantity}"] = values
                print(lines[-1], flush=True)
    table.keep("peers", rows, average, values=kept, real_time=first, rounds=chosen.rounds)
    print("\n".join(lines))
    return 0


if __name__ == "__main__":
    sys.exit(main())
