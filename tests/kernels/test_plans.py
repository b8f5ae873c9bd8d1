"""What `--plan` expects of a pass against the CPU seconds that a pass takes here."""

from __future__ import annotations

import resource
import subprocess
from pathlib import Path

import pytest

from tests.support.real_parts import ALLOWED, built

# long: other users of a cache may make a pass slower than any plan
pytestmark = [pytest.mark.machine, pytest.mark.long]

#: A plan is within 1.3 of the CPU seconds on an idle machine. Other users of its caches make passes slower.
MOST = 1.8
TRIES = 4

#: Operations that keep one CPU busy, with passes enough to see beyond a kernel's start and its memory.
BUSY = {
    "latency": ("chase", ["--op", "latency"], 100),
    "levels": ("chase", ["--op", "levels"], 20),
    "curve": ("chase", ["--op", "curve", "--size-mib", "16"], 5),
    "pages": ("chase", ["--op", "pages", "--size-mib", "64"], 3),
    "faults": ("fault", ["--op", "rate"], 40),
    "huge faults": ("fault", ["--op", "huge", "--size-mib", "64"], 40),
}


def plan_seconds(command: list[str], passes: int) -> float:
    words = [*command, "--plan", "--passes", str(passes)]
    done = subprocess.run(words, capture_output=True, text=True, check=True, timeout=60)
    return float(dict(line.split(" ", 1) for line in done.stdout.splitlines())["seconds"])


def cpu_seconds(command: list[str], out: Path, passes: int) -> float:
    out.unlink(missing_ok=True)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([*command, "--passes", str(passes), "--out", str(out)], check=True, capture_output=True, timeout=120)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


@pytest.mark.parametrize("operation", BUSY)
def test_a_pass_takes_the_cpu_seconds_of_its_plan(tmp_path: Path, operation: str) -> None:
    kernel, arguments, passes = BUSY[operation]
    command = [str(built() / kernel), *arguments, "--cpus", str(ALLOWED[0])]
    planned = (plan_seconds(command, 1 + passes) - plan_seconds(command, 1)) / passes
    ratios: list[float] = []
    while len(ratios) < TRIES and not any(1 / MOST < ratio < MOST for ratio in ratios):
        out = tmp_path / "r.jsonl"
        a_pass = (cpu_seconds(command, out, 1 + passes) - cpu_seconds(command, out, 1)) / passes
        ratios.append(a_pass / planned)
    assert any(1 / MOST < ratio < MOST for ratio in ratios), ratios
