"""Faults while a kernel measures, which its record must say: `python -m bench.faults` has all of them with rates."""

from __future__ import annotations

import json
import os
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


def begun(out: Path, *command: str | Path) -> subprocess.Popen[str]:
    """A kernel that has written its header."""
    process = subprocess.Popen([*command, "--out", out], stderr=subprocess.PIPE, text=True)
    while process.poll() is None and not (out.exists() and b'"header"' in out.read_bytes()):
        time.sleep(0.01)
    return process


def test_a_worker_that_is_back_on_its_cpu_at_the_end_of_a_task_was_moved(tmp_path: Path) -> None:
    need(cpus=2)
    arguments = ["--op", "detours", "--cpus", str(ALLOWED[0]), "--seconds", "2", "--passes", "1"]
    with begun(tmp_path / "r.jsonl", built() / "jitter", *arguments) as process:
        (worker,) = {int(task.name) for task in Path(f"/proc/{process.pid}/task").iterdir()} - {process.pid}
        ran = Path(f"/proc/{process.pid}/task/{worker}/schedstat")
        for cpu in (ALLOWED[1], ALLOWED[0]):
            time.sleep(0.1)
            os.sched_setaffinity(worker, {cpu})
            before_ns = int(ran.read_text().split()[0])
            while process.poll() is None and int(ran.read_text().split()[0]) < before_ns + 20e6:
                time.sleep(0.01)
        messages = process.communicate()[1]
    assert process.returncode == 3 and f"was moved to CPU {ALLOWED[1]}" in messages


@pytest.mark.parametrize("operation", ["latency", "curve"])
def test_an_address_that_changed_ends_a_chase_that_it_only_shortens(tmp_path: Path, operation: str) -> None:
    """A copy of the next element's address leaves out the lines between them. What was measured is not kept."""
    out, size = tmp_path / "r.jsonl", 64 << 20
    words = ["--op", operation, "--size-mib", "64", "--pages", "base", "--cpus", str(ALLOWED[0]), "--passes", "60"]
    with begun(out, built() / "chase", *words) as process, Path(f"/proc/{process.pid}/mem").open("r+b", 0) as memory:
        spans = (line.split()[0] for line in Path(f"/proc/{process.pid}/maps").read_text().splitlines())
        ends = [tuple(int(address, 16) for address in span.split("-")) for span in spans]
        (begin,) = (first for first, last in ends if size <= last - first < size + (1 << 20))
        while process.poll() is None:
            for line in range(2, 60, 4):
                memory.seek(begin + 64 * line)
                other = memory.read(8)
                memory.seek(begin + 64 * (line + 1))
                memory.write(other)
            if operation == "latency":  # whose addresses are laid once
                process.wait()
            time.sleep(0.001)
        messages = process.communicate()[1]
    assert process.returncode == 3 and "changed while they were followed" in messages
    assert operation == "curve" or not out.exists()


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
