"""Operations of the kernels with their `--plan`: what was planned, and what a run used."""

from __future__ import annotations

import functools
import json
import os
import statistics
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.real_parts import ALLOWED, built

CPUS = ",".join(map(str, ALLOWED[:2]))
#: A run that lost less is as good as undisturbed.
CALM = 0.02
#: A batch of hand-overs takes at least 2 us, so that 25 round trips of less are made more.
SHORTEST_HOP_NS = 40.0


@dataclass(frozen=True)
class Operation:
    """An operation with passes enough to see beyond the resolution of clocks.

    `hop`: whose latency its plan is for: `own` or `cas` (none if empty); `timed`: it ends by the clock.
    """

    name: str
    passes: int
    more: str = ""
    hop: str = ""
    timed: bool = False

    def command(self) -> list[str]:
        """Its program with arguments, on two CPUs."""
        kernel, operation = self.name.split()
        words = ["--op", operation, "--cpus", CPUS, "--passes", str(self.passes), *self.more.split()]
        return [str(built() / kernel), *words]


OPERATIONS = (
    *(Operation(f"coherence {name}", 30, hop="own") for name in ("cas", "faa", "flag1", "flag2")),
    Operation("coherence oneway", 20, hop="cas"),
    Operation("coherence payload", 5, hop="cas"),
    Operation("coherence contend", 5),
    Operation("coherence contend-pairs", 5),
    Operation("coherence state", 5, hop="cas"),
    Operation("coherence place", 2, hop="cas"),
    Operation("coherence stream", 2, hop="cas"),
    Operation("barrier all", 10, hop="cas"),
    Operation("wake futex", 1, timed=True),
    *(
        Operation(f"bandwidth {name}", 2)
        for name in ("nodes", "scaling", "cpus", "groups", "machine", "ladder", "caches")
    ),
    Operation("loaded latency", 3),
    Operation("remap pairs", 2, timed=True),
    Operation("remap ring", 5, hop="cas"),
    Operation("touch ratio", 2),
    Operation("load alone", 2, timed=True),
    Operation("load ladder", 1, timed=True),
    Operation("load together", 1, "--seconds 2", timed=True),
    Operation("load check", 1, "--seconds 2", timed=True),
    Operation("clock alone", 2, timed=True),
    Operation("clock together", 1, "--seconds 2", timed=True),
    Operation("jitter detours", 1, "--seconds 2", timed=True),
    Operation("chase latency", 20),
    Operation("chase levels", 10),
    Operation("chase curve", 5, "--size-mib 16"),
    Operation("chase pages", 3, "--size-mib 64"),
    Operation("fault rate", 20),
    Operation("fault huge", 20, "--size-mib 64"),
)


@dataclass(frozen=True)
class Comparison:
    """Planned and used seconds of all passes and of what comes before them, and the share that workers lost."""

    planned_s: float
    used_s: float
    prepare_planned_s: float
    prepare_used_s: float
    lost_share: float

    @property
    def ratio(self) -> float:
        """Used to planned."""
        return self.used_s / self.planned_s


@functools.cache
def undisturbed() -> list[str]:
    """What a command begins with so that other programs of this machine wait; empty where that is not allowed."""
    prefix = ["chrt", "-r", "1"]  # round robin: two programs that spin on each CPU end
    try:
        done = subprocess.run([*prefix, "true"], check=False, capture_output=True)
    except FileNotFoundError:
        return []
    return prefix if done.returncode == 0 else []


def planned(command: Sequence[str], environment: Mapping[str, str] | None = None) -> dict[str, float]:
    """The numbers of a plan, with more environment."""
    whole, variables = [*undisturbed(), *command, "--plan"], os.environ | dict(environment or {})
    done = subprocess.run(whole, env=variables, capture_output=True, text=True, check=True, timeout=60)
    lines = (line.split(" ", 1) for line in done.stdout.splitlines() if " " in line)
    return {name: float(value) for name, value in lines if "seconds" in name}


def recorded(command: Sequence[str]) -> list[dict[str, Any]]:
    """The lines of a record."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder, "r.jsonl")
        whole = [*undisturbed(), *command, "--out", str(out)]
        subprocess.run(whole, capture_output=True, check=True, timeout=120)
        return [json.loads(line) for line in out.read_text().splitlines()]


def latency_ns(lines: Sequence[dict[str, Any]]) -> float:
    """The median latency of the pairs of a record."""
    return statistics.median(float(line["latency_ns"]) for line in lines if line["record"] == "pair")


def hop_and_record(operation: Operation) -> tuple[float, list[dict[str, Any]]]:
    """The latency that a plan is compared at, and a record. A hypervisor moves CPUs: then it is measured again."""
    command = operation.command()
    if operation.hop == "own":
        lines = recorded(command)
        return max(latency_ns(lines), SHORTEST_HOP_NS), lines
    if not operation.hop:
        return 150.0, recorded(command)
    cas = [str(built() / "coherence"), "--op", "cas", "--cpus", CPUS, "--passes", "3"]
    for _ in range(5):
        before_ns, lines, after_ns = latency_ns(recorded(cas)), recorded(command), latency_ns(recorded(cas))
        if 0.8 < before_ns / after_ns < 1.25:
            break
    return (before_ns + after_ns) / 2, lines


def compare(operation: Operation) -> Comparison:
    """Plan an operation, run it, and compare."""
    plan = planned(operation.command())
    hop_ns, lines = hop_and_record(operation)
    a_nanosecond_s = (plan["seconds_at_195_ns"] - plan["seconds"]) / 45
    a_pass_s = plan["seconds_per_pass" if operation.timed else "busy_seconds_per_pass"]
    trailer = lines[-1]
    return Comparison(
        planned_s=a_pass_s * operation.passes + (hop_ns - 150) * a_nanosecond_s,
        used_s=trailer["elapsed_s" if operation.timed else "busy_s"],
        prepare_planned_s=plan["seconds_once"],
        prepare_used_s=trailer["prepare_busy_s"],
        lost_share=trailer.get("lost_share", 0.0),
    )


def calmest(operation: Operation, tries: int) -> Comparison:
    """The run that lost least, and of those that lost next to nothing the one with the median ratio."""
    runs = [compare(operation) for _ in range(tries)]
    calm = [run for run in runs if run.lost_share < CALM] or [min(runs, key=lambda run: run.lost_share)]
    return sorted(calm, key=lambda run: run.ratio)[len(calm) // 2]
