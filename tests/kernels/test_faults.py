"""Faults while a kernel measures, which its record must say: `python -m bench.faults` has all of them with rates."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from tests.support.real_parts import ALLOWED, built, need
from tests.support.two_nodes import two_nodes

pytestmark = pytest.mark.machine

CHASE = ("chase", "--op", "latency", "--size-mib", "8", "--passes", "4")


def lines(out: Path, kind: str) -> list[dict[str, Any]]:
    return [line for line in map(json.loads, out.read_text().splitlines()) if line["record"] == kind]


def run(out: Path, kernel: str, *arguments: str, **more: Any) -> subprocess.CompletedProcess[str]:
    command: list[str | Path] = [built() / kernel, *arguments, "--out", out]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, **more)


def test_what_a_stopped_process_loses_is_lost_time_and_flagged(tmp_path: Path) -> None:
    """The system counts a stop as a sleep, and no other program takes the CPU."""
    out = tmp_path / "r.jsonl"
    command: list[str | Path] = [built() / "clock", "--op", "together", "--cpus", str(ALLOWED[0]), "--seconds", "1"]
    with subprocess.Popen([*command, "--passes", "1", "--out", out], stderr=subprocess.DEVNULL) as process:
        while not out.exists() or not out.read_bytes():
            time.sleep(0.01)
        time.sleep(0.2)
        process.send_signal(signal.SIGSTOP)
        time.sleep(0.6)
        process.send_signal(signal.SIGCONT)
    assert process.returncode == 0
    (trailer,), (cell,) = lines(out, "trailer"), lines(out, "cell")
    assert trailer["voluntary_switches"] > 0
    assert 0.3 < trailer["lost_share"] <= 1
    assert "disturbed" in cell["flags"]


def test_bound_pages_that_move_are_put_back_and_what_was_measured_is_measured_again(tmp_path: Path) -> None:
    need("gcc", cpus=2)
    out = tmp_path / "r.jsonl"
    cpus = ("--cpus", f"{ALLOWED[0]},{ALLOWED[1]}")
    done = run(out, *CHASE, *cpus, env=two_nodes(tmp_path, "moved"))
    assert done.returncode == 0 and "had moved to another NUMA node" in done.stderr
    assert lines(out, "trailer")[0]["moved_pages"] > 0
    assert any("moved" in cell["flags"] for cell in lines(out, "cell"))


@pytest.mark.parametrize(("fault", "words"), [("placed", "are on another node"), ("stuck", "cannot be put back")])
def test_pages_that_are_elsewhere_are_refused(tmp_path: Path, fault: str, words: str) -> None:
    need("gcc", cpus=2)
    cpus = ("--cpus", f"{ALLOWED[0]},{ALLOWED[1]}")
    done = run(tmp_path / "r.jsonl", *CHASE, *cpus, env=two_nodes(tmp_path, fault))
    assert done.returncode == 3 and words in done.stderr


def test_without_a_fault_pages_stay(tmp_path: Path) -> None:
    need("gcc", cpus=2)
    out = tmp_path / "r.jsonl"
    assert run(out, *CHASE, "--cpus", f"{ALLOWED[0]},{ALLOWED[1]}", env=two_nodes(tmp_path)).returncode == 0
    assert lines(out, "trailer")[0]["moved_pages"] == 0


def test_of_cpus_that_are_measured_at_once_the_one_that_lost_its_time_is_flagged(tmp_path: Path) -> None:
    """Whichever of them is the first unit of a pass."""
    need("taskset", cpus=2)
    out, cpus = tmp_path / "r.jsonl", f"{ALLOWED[0]},{ALLOWED[1]}"
    loop = ["taskset", "-c", str(ALLOWED[1]), "sh", "-c", "while :; do :; done"]
    loops = [subprocess.Popen(loop) for _ in range(4)]
    try:
        done = run(out, "jitter", "--op", "detours", "--cpus", cpus, "--seconds", "1", "--passes", "3", "--seed", "1")
    finally:
        for process in loops:
            process.kill()
            process.wait()
    assert done.returncode == 0, done.stderr
    cells = lines(out, "cell")
    assert {cell["cpu"] for cell in cells if cells.index(cell) in (0, 2, 4)} == {ALLOWED[0], ALLOWED[1]}
    assert all("disturbed" in cell["flags"] for cell in cells if cell["cpu"] == ALLOWED[1])
