"""Processes beside this one end with it and say nothing of their own."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from multiprocessing import get_context
from pathlib import Path

import pytest

from nodeprint import simulate
from nodeprint.cli.shared import judge_and_write
from nodeprint.machine.topology.presets import preset
from nodeprint.processes import Pool
from nodeprint.simulate import Plan
from tests.support.real_parts import ROOT
from tests.support.waiting import wait_for

KILLED = """
import os, sys, time
from pathlib import Path
from nodeprint.processes import mapped

def work(number):
    marks = Path(sys.argv[1])
    if number == 3 and len(list(marks.iterdir())) < int(sys.argv[2]):
        Path(marks, str(os.getpid())).touch()
        time.sleep(0.3)
        os.kill(os.getpid(), 9)
    return number * number

if __name__ == "__main__":
    print(*mapped(work, range(8), 3))
"""


@pytest.mark.parametrize(
    ("kills", "code", "words"),
    [
        (0, 0, []),
        (1, 0, ["2 other processes will do its part"]),
        (2, 0, ["2 other processes will do its part", "1 other process will do its part"]),
        (9, 1, ["2 other processes", "1 other process", "killed; free memory, as"]),
    ],
)
def test_a_killed_process_costs_a_sentence_and_one_process(
    tmp_path: Path, kills: int, code: int, words: list[str]
) -> None:
    program, marks = tmp_path / "program.py", tmp_path / "marks"
    program.write_text(KILLED)
    marks.mkdir()
    command: list[str | Path] = [sys.executable, program, marks, str(kills)]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == code
    assert done.stdout == ("" if code else "0 1 4 9 16 25 36 49\n")
    assert len(list(marks.iterdir())) == min(kills, 3)
    said = [line for line in done.stderr.splitlines() if "was killed" in line]
    assert len(said) == len(words) and all(word in line for word, line in zip(words, said, strict=True)), done.stderr


PROGRAM = """
import sys, tempfile, time
from pathlib import Path
from nodeprint.processes import Pool

def work(folder):
    with tempfile.TemporaryDirectory(dir=folder):
        Path(folder, "ready").touch()
        time.sleep(600)

if __name__ == "__main__":
    with Pool(2) as pool:
        list(pool.map(work, sys.argv[1:] * 2))
"""


def test_results_come_in_order_and_errors_as_they_are() -> None:
    with Pool(2) as pool:
        assert list(pool.map(abs, [-1, 2, -3])) == [1, 2, 3]


def test_processes_are_forks_whatever_python_prefers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Python 3.14 starts them from a server, which inherits neither the blocked signal nor loaded modules."""
    monkeypatch.setattr(multiprocessing.context._default_context, "_actual_context", get_context("forkserver"))
    with Pool(1) as pool:
        assert pool.submit(os.getppid).result() == os.getpid()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_processes_end_with_a_call_that_is_killed(tmp_path: Path, number: signal.Signals) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    folder = tmp_path / "work"
    folder.mkdir()
    with subprocess.Popen(
        [sys.executable, program, folder], env=os.environ | {"PYTHONPATH": str(ROOT)}, start_new_session=True
    ) as process:
        wait_for((folder / "ready").exists, "a process at work")
        time.sleep(0.2)
        process.send_signal(number)
        process.wait(60)
        wait_for(lambda: not _in_session(process.pid), "the end of its processes", 60)
    assert not [path for path in folder.iterdir() if path.is_dir()]


@pytest.mark.machine
def test_a_report_that_is_ended_by_a_signal_leaves_nothing(tmp_path: Path) -> None:
    """Its processes, their temporary folders, and the semaphores that Python names when it finds them."""
    folder = tmp_path / "main"
    simulate.write(Plan(preset("milan-2x64"), nodes=12, runs=2, passes=1), folder)
    judge_and_write(folder)
    (tmp_path / "tmp").mkdir()
    command: list[str | Path] = [sys.executable, "-m", "nodeprint", "report", folder, "--figures"]
    environment = os.environ | {"PYTHONPATH": str(ROOT), "TMPDIR": str(tmp_path / "tmp")}
    with subprocess.Popen(
        command, env=environment, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        wait_for(lambda: len(_in_session(process.pid)) > 2, "processes of the report", 120)
        time.sleep(1)
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=120)
        wait_for(lambda: not _in_session(process.pid), "the end of its processes", 60)
    assert (process.returncode, errors) == (128 + signal.SIGTERM, "")
    assert not list((tmp_path / "tmp").iterdir())


def _in_session(leader: int) -> list[str]:
    """The processes of the session that `leader` began."""
    stats = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):  # it has ended
            stats.append(path.read_text())
    fields = [stat.rpartition(") ")[2].split() for stat in stats]  # state, parent, group, session (man 5 proc)
    return [
        stat
        for stat, (state, _, _, session, *_) in zip(stats, fields, strict=True)
        if int(session) == leader and state != "Z"
    ]


def test_an_interrupted_call_ends_its_processes_without_a_word_of_theirs(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    folder = tmp_path / "work"
    folder.mkdir()
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    with subprocess.Popen(
        [sys.executable, program, folder], env=environment, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        wait_for((folder / "ready").exists, "a process at work")
        time.sleep(0.2)
        os.killpg(process.pid, signal.SIGINT)  # as a terminal sends it: to all of them
        _, errors = process.communicate(timeout=60)
    assert errors.count("Traceback") == 1 and "KeyboardInterrupt" in errors  # that of this program, which catches none
    assert not [path for path in folder.iterdir() if path.is_dir()]
