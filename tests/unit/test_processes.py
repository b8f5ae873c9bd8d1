"""Processes beside this one end with it and say nothing of their own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from nodeprint.processes import Pool
from tests.support.real_parts import ROOT
from tests.support.waiting import wait_for

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
