"""What is asked of LinkTest: its command line, checked, and what follows from it without MPI."""

from __future__ import annotations

import argparse
import importlib.util
import math
import os
import re
import shlex
import socket
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn
from urllib.parse import unquote

from linktest import schedule

DONE, BAD_INPUT, NOT_AS_ASKED, UNAVAILABLE = 0, 2, 3, 4
MODES = ("semidirectional", "bidirectional", "unidirectional")
#: Below it mpi4py's own time for a message, 1 to 2 us, would be shown as the machine's.
LEAST_BYTES_OF_PYTHON = 64 * 1024
_LARGEST = 1 << 30
#: Most ranks: every rank holds the schedule, which has half the square of their number of pairs.
_MOST_RANKS = 4096
#: What a message is planned with: its start and the bytes a second of one pair and of all pairs at once.
_START_S, _PAIR_BYTES_PER_S, _ALL_BYTES_PER_S, _HANDOVER_S = 2e-6, 8e9, 200e9, 0.5e-3
#: Starting Python and MPI on every rank, where no two share a CPU.
_BEGIN_S = 10.0
#: The samples of a pair up to so many pairs (128 ranks), and the fewest of more.
_SAMPLES, _PAIRS, _FEWEST_SAMPLES = 16, 128 * 127 // 2, 4
_LAUNCHERS = {
    "node": "mpirun --host localhost:{ranks} --bind-to none -n {ranks}",
    "nodes": "srun --mpi=pmix --nodelist={nodes} --nodes={count} --ntasks={ranks} --ntasks-per-node={per_node} "
    "--exclusive --cpu-bind=none --kill-on-bad-exit=1",
}
_HELP = """\
LinkTest: messages between every pair of MPI ranks, on the CPUs of this node or between nodes.

USAGE         linktest --cpus LIST --out FILE [options]            every pair of CPUs of this node
              linktest --nodes A,B,.. --out FILE [options]         every pair of ranks over nodes
REQUIREMENTS  Open MPI (mpirun, or srun --mpi=pmix) and mpi4py; mpicc when the kernels are built, or messages
              below 64 KiB are refused
OVERHEAD      a rank a core; with --schedule serial all but two sleep, with parallel all are busy
WARNING       other MPI programs on these nodes are measured along
"""
_END = """\
exit codes: 0 done, also when FILE was complete before; 2 bad arguments or input; 3 could not measure as asked; 4 MPI or
mpi4py is not installed here; 128 + signal: stopped. The same call continues FILE. On a terminal minimum, mean, maximum,
the slowest pairs and a matrix of up to 32 ranks are printed at the end.
example: linktest --cpus cores --sizes 1M --out linktest.jsonl
"""


NO_GPU_PACKAGE = "--buffers cuda needs CuPy or torch, and neither is installed here; install one, or leave it out"


def gpu_package() -> str:
    """What gives buffers of a GPU: CuPy where it is installed, else torch; empty without either."""
    return next((package for package in ("cupy", "torch") if importlib.util.find_spec(package)), "")


class RefusalError(Exception):
    """One sentence on what is wrong and what to do, and the exit code."""

    def __init__(self, sentence: str, code: int = NOT_AS_ASKED) -> None:
        super().__init__(sentence)
        self.code = code


@dataclass(frozen=True)
class Settings:
    """A checked command line. `cpus` are of this node; with `nodes` each has `per_node` ranks on CPUs of its own."""

    mode: str
    parallel: bool
    bisection: bool
    mix: bool
    sizes: tuple[int, ...]
    messages: int
    warm_up: int
    samples: int
    passes: int
    load: int
    retest: int
    cpus: tuple[int, ...]
    nodes: tuple[str, ...]
    per_node: int
    ranks: int
    launcher: str
    patience_s: float
    out: Path
    job: int
    run: int
    seed: int | None
    as_rank: bool
    plan: bool
    csv: bool = False
    min_seconds: int = 0
    in_gpu: bool = False

    @property
    def between_nodes(self) -> bool:
        """Whether ranks are on other nodes than this one."""
        return bool(self.nodes)

    @property
    def by_rank(self) -> bool:
        """Whether a pair's record names ranks; else it names CPUs, one rank on each."""
        return self.between_nodes or self.ranks != len(self.cpus)

    @property
    def oversubscribed(self) -> bool:
        """Whether ranks of this node share a CPU."""
        return not self.between_nodes and self.ranks > len(self.cpus)

    @property
    def directed(self) -> bool:
        """Whether a pair is measured in both directions apart."""
        return self.mode == "unidirectional"

    @property
    def words(self) -> list[str]:
        """Everything that shapes the measurement, as the header's `arguments`."""
        sizes = ",".join(map(str, self.sizes))
        words = ["--mode", self.mode, "--schedule", "parallel" if self.parallel else "serial", "--sizes", sizes]
        words += ["--bisection"] * self.bisection + ["--mix"] * self.mix
        for name in ("messages", "warm_up", "samples", "passes", "load", "retest"):
            words += ["--" + name.replace("_", "-"), str(getattr(self, name))]
        words += ["--min-seconds", str(self.min_seconds)] if self.min_seconds else []
        words += ["--buffers", "cuda"] if self.in_gpu else []
        if self.between_nodes:
            words += ["--nodes", ",".join(self.nodes), "--per-node", str(self.per_node)]
        elif self.by_rank:
            words += ["--ranks", str(self.ranks)]
        return [*words, "--launcher", self.launcher]

    def rounds(self, seed: int) -> list[schedule.Round]:
        """Rounds of pairs of ranks in one pass and message size."""
        rounds = schedule.bisection(self.ranks) if self.bisection else schedule.all_pairs(self.ranks)
        rounds = schedule.mixed(rounds, self.ranks, seed) if self.mix else rounds
        return schedule.both_ways(rounds) if self.directed else rounds

    def command(self) -> list[str]:
        """The launcher's words."""
        filled = {
            "ranks": self.ranks,
            "nodes": ",".join(self.nodes) or socket.gethostname(),
            "count": len(self.nodes) or 1,
            "per_node": self.per_node,
        }
        try:
            words = [word.format(**filled) for word in shlex.split(self.launcher)]
        except (KeyError, IndexError, ValueError) as error:
            what = f"the unknown placeholder {{{error.args[0]}}}" if isinstance(error, KeyError) else str(error)
            known = ", ".join(f"{{{name}}}" for name in filled)
            raise RefusalError(
                f"the launcher {self.launcher!r} cannot be read ({what}); placeholders are {known}", BAD_INPUT
            ) from error
        if not words:
            raise RefusalError("the launcher is blank; leave --launcher out for the default", BAD_INPUT)
        return words

    def seconds_per_pass(self) -> float:
        """How long a pass takes by plan, without starting."""
        rounds = self.rounds(0)
        at_once = max((len(one) for one in rounds), default=0) if self.parallel else 1
        visits = len(rounds) if self.parallel else sum(map(len, rounds))
        shared = max(1.0, at_once * _PAIR_BYTES_PER_S / _ALL_BYTES_PER_S)
        ways = 2 if self.mode == "semidirectional" else 1
        messages = self.messages or 1
        time = 0.0
        for size in self.sizes:
            message = _START_S + size / _PAIR_BYTES_PER_S * shared
            sample = max(ways * messages * message, 0 if self.messages else BATCH_S)
            time += visits * (self.warm_up * ways * message + (self.samples + 1) * sample + _HANDOVER_S)
        return time

    def plan_text(self) -> str:
        """What --plan prints (docs/formats.md)."""
        pairs = sum(map(len, self.rounds(0))) * len(self.sizes)
        each = self.seconds_per_pass()
        seconds = max(each * self.passes, self.min_seconds) + _BEGIN_S
        facts = {
            "kernel": "linktest",
            "operation": self.mode,
            "quantity": "message",
            "pairs" if len(self.sizes) == 1 else "cells": pairs,
            "passes": self.passes,
            "seconds_per_pass": f"{each:.3f}",
            "seconds": f"{seconds:.3f}",
            "seconds_at_195_ns": f"{seconds:.3f}",
            "memory_bytes": self.ranks * (_RANK_BYTES + 2 * (max(self.sizes) + self.load * self.ranks)),
            "cpus": ",".join(map(str, self.cpus)),
        }
        return "".join(f"{name} {value}\n" for name, value in facts.items() if value != "")


#: Of a rank without messages: Python, MPI and what the system keeps for them (OpenMPI 4.1, VmRSS less shared files).
_RANK_BYTES = 37 << 20
#: A sample without --messages lasts at least so long.
BATCH_S = 50e-6
#: Least and most of the options that are numbers.
_LIMITS = {
    "per_node": (1, _MOST_RANKS),
    "ranks": (0, _MOST_RANKS),
    "messages": (0, 10**6),
    "warm_up": (0, 10**6),
    "samples": (1, 10**6),
    "passes": (1, 10**4),
    "min_seconds": (0, 10**6),
    "retest": (0, 10**6),
    "patience": (1, math.inf),
    "seed": (0, 2**63 - 1),
    "job": (1, 10**9),
    "run": (1, 10**9),
}


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise RefusalError(f"{message}; see linktest --help", BAD_INPUT)


def _arguments(words: list[str]) -> argparse.Namespace:
    """The command line, its numbers within their limits."""
    parser = _Parser(
        prog="linktest",
        description=_HELP,
        epilog=_END,
        add_help=True,
        allow_abbrev=False,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )

    def number(option: str, default: int | None, text: str | None = None) -> None:
        parser.add_argument(option, type=int, metavar="N", default=default, help=text)

    parser.add_argument("--out", metavar="FILE", help="the record file; an incomplete one is continued")
    parser.add_argument("--cpus", metavar="LIST", help="cores (one thread of each), all, or numbers as 0-3,8")
    parser.add_argument("--nodes", metavar="A,B", default="", help="over these nodes instead of this one's CPUs")
    number("--per-node", 1, "with --nodes: ranks on each (default 1)")
    number("--ranks", 0, "ranks on the CPUs; more than CPUs are flagged")
    parser.add_argument("--mode", choices=MODES, default=MODES[0], help="to and fro; both ways at once; one way")
    parser.add_argument(
        "--schedule", choices=("serial", "parallel"), default="serial", help="a pair at a time, or all of a round"
    )
    parser.add_argument("--bisection", action="store_true", help="only pairs between the two halves of the ranks")
    parser.add_argument("--mix", action="store_true", help="random order of the ranks, by --seed")
    parser.add_argument("--sizes", default="1M", help="bytes of a message, or several: 8,64K,1M (default 1M)")
    parser.add_argument("--buffers", choices=("host", "cuda"), default="host", help="in memory, or a GPU's (untried)")
    number("--messages", 0, "messages of a sample (default: as many as take 50 us)")
    number("--warm-up", 2, "messages before the first sample (default 2)")
    number("--samples", None, "of a pair (default 16, on a node of more than 128 ranks fewer)")
    number("--passes", 1, "sweeps over all pairs (default 1)")
    number("--min-seconds", 0, "more sweeps until so long was measured")
    parser.add_argument("--load", default="0", help="bytes of an all-to-all between rounds (default 0: none)")
    number("--retest", None, "slowest pairs measured again, alone (default 3)")
    parser.add_argument("--launcher", default="", help="what starts the ranks; a blank may be written %%20")
    parser.add_argument("--patience", default=120.0, type=float, metavar="S", help="given up when silent for longer")
    number("--seed", None)
    number("--job", 1, "recorded")
    number("--run", 1, "recorded")
    parser.add_argument("--csv", action="store_true", help="print each pair and size as CSV to standard output")
    parser.add_argument("--plan", action="store_true", help="print what would be measured and its time")
    parser.add_argument("--as-rank", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args(words)
    for name, (least, most) in _LIMITS.items():
        value = getattr(given, name)
        if value is not None and not least <= value <= most:
            option = "--" + name.replace("_", "-")
            raise RefusalError(f"{option} must be from {least} to {most:g}, not {value}", BAD_INPUT)
    return given


def parse(words: list[str]) -> Settings:
    """The command line. Raises RefusalError with one sentence; --help prints and ends the process."""
    given = _arguments(words)
    if given.out is None and not given.plan:
        raise RefusalError("--out is missing; see linktest --help", BAD_INPUT)
    sizes = tuple(_bytes(word, "--sizes") for word in given.sizes.split(","))
    if len(set(sizes)) < len(sizes) or min(sizes) < 1:
        raise RefusalError(f"--sizes {given.sizes}: each size once, and none of 0 bytes", BAD_INPUT)
    retest = given.retest if given.retest is not None else 3 if len(sizes) == 1 else 0
    if retest and len(sizes) > 1:
        raise RefusalError("--retest is for one message size; leave it out with several --sizes", BAD_INPUT)
    nodes = tuple(name for name in given.nodes.split(",") if name)
    if len(set(nodes)) < len(nodes):
        raise RefusalError(f"--nodes {given.nodes}: a node appears twice; --per-node sets its ranks", BAD_INPUT)
    if nodes and given.cpus:
        raise RefusalError("--cpus is for one node and --nodes for several; leave one out", BAD_INPUT)
    cpus = () if nodes else _cpus(given.cpus or "cores", must_be_here=not given.plan and not given.as_rank)
    ranks = len(nodes) * given.per_node if nodes else given.ranks or len(cpus)
    if ranks < 2:
        raise RefusalError(f"{ranks} rank on {','.join(nodes) or 'the CPUs asked for'}: a pair needs two")
    if ranks > _MOST_RANKS:
        raise RefusalError(f"{ranks} ranks are more than {_MOST_RANKS}; name fewer CPUs or nodes", BAD_INPUT)
    launcher = unquote(given.launcher) or _LAUNCHERS["nodes" if nodes else "node"]
    return Settings(
        given.mode,
        given.schedule == "parallel",
        given.bisection,
        given.mix,
        sizes,
        given.messages,
        given.warm_up,
        given.samples or _samples(ranks, bool(nodes)),
        given.passes,
        _bytes(given.load, "--load"),
        retest,
        cpus,
        nodes,
        given.per_node,
        ranks,
        launcher,
        given.patience,
        Path(given.out or "-"),
        given.job,
        given.run,
        given.seed,
        given.as_rank,
        given.plan,
        given.csv,
        given.min_seconds,
        given.buffers == "cuda",
    )


def _samples(ranks: int, between_nodes: bool) -> int:
    """The samples of a pair where none are asked for: on a node of many ranks as many as keep those of all pairs."""
    pairs = ranks * (ranks - 1) // 2
    return _SAMPLES if between_nodes else min(_SAMPLES, max(_FEWEST_SAMPLES, round(_SAMPLES * _PAIRS / pairs)))


def _bytes(word: str, option: str) -> int:
    match = re.fullmatch(r"(\d{1,10})([KM]?)", word.strip())
    size = int(match[1]) * {"": 1, "K": 1 << 10, "M": 1 << 20}[match[2]] if match else -1
    if not 0 <= size <= _LARGEST:
        raise RefusalError(f"{option} {word!r}: a size is a number of bytes up to 1024M, as 8, 64K or 1M", BAD_INPUT)
    return size


def cpu_list(text: str) -> list[int]:
    """The CPUs of a list such as 0-3,8. Raises ValueError where it is none."""
    cpus: list[int] = []
    for part in text.strip().split(","):
        match = re.fullmatch(r"(\d{1,6})(?:-(\d{1,6}))?", part)
        if match is None:
            raise ValueError(part)
        cpus += range(int(match[1]), int(match[2] or match[1]) + 1)
    return cpus


def cores(allowed: set[int], siblings: Path = Path("/sys/devices/system/cpu")) -> list[int]:
    """The first allowed CPU of each core."""
    first = []
    for cpu in sorted(allowed):
        path = siblings / f"cpu{cpu}/topology/thread_siblings_list"
        mine = cpu_list(path.read_text()) if path.exists() else [cpu]
        if cpu == min(set(mine) & allowed, default=cpu):
            first.append(cpu)
    return first


def _cpus(text: str, must_be_here: bool) -> tuple[int, ...]:
    allowed = os.sched_getaffinity(0)
    if text in ("cores", "all"):
        return tuple(cores(allowed) if text == "cores" else sorted(allowed))
    try:
        wanted = cpu_list(text)
    except ValueError:
        raise RefusalError(
            f"--cpus {text!r} is not a list of CPUs such as 0-3,8, nor cores or all", BAD_INPUT
        ) from None
    if len(set(wanted)) < len(wanted):
        raise RefusalError(f"--cpus {text}: a CPU appears twice", BAD_INPUT)
    if must_be_here and (absent := sorted(set(wanted) - allowed)):
        online = cpu_list(Path("/sys/devices/system/cpu/online").read_text())
        if absent[0] not in online:
            raise RefusalError(f"--cpus {text}: CPU {absent[0]} is not online on this machine", BAD_INPUT)
        raise RefusalError(f"CPU {absent[0]} may not be used here; give the job the whole node")
    return tuple(wanted)


def say(sentence: str) -> None:
    """A message on standard error."""
    print(f"linktest: {sentence}", file=sys.stderr, flush=True)
