"""What a call of the main job shows: a line of progress, sentences, and which lines of its log."""

import os
import pty
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.support.real_parts import ROOT
from tests.support.terminal import read_to_end

sys.path.insert(0, str(ROOT / "workflow"))

import terminal


def test_what_was_there_is_said_once() -> None:
    assert terminal.already(0, 1, 6, 1, "make run") == ""
    assert (
        terminal.already(3, 1, 6, 1, "make run") == "3 of 6 measurements of this node were there already and are kept"
    )
    assert terminal.already(18, 3, 6, 0, "make run CONFIG=q.yaml") == (
        "all measurements of these 3 nodes were there already; `make run CONFIG=q.yaml NODES=a,b` measures nodes again"
    )


@pytest.mark.parametrize(
    "line, shown",
    [
        ("node-run: run 1 of 2: coherence-cas", False),
        ("node-run: node vm, job 1 on vm: 2 runs of 7 measurements, 2 CPUs allowed", False),
        ("node-run: complete: /x/nodes/vm/job1/status.json", False),
        ("Select jobs to execute...", False),
        ("    log: results/t2/logs/gather.log", False),
        ("cas: 12 of 300 (4%), 70 s left", False),
        ("node-run: chase-latency refused with exit code 3: chase: no memory on node 1", True),
        ("node-run: waiting: another node-run measures vm", True),
        ("slurm: 3 of 3 nodes came back in 7 s", True),
        ("nodeprint: x.yaml: presets: unknown key", True),
    ],
)
def test_lines_that_are_shown(line: str, shown: bool) -> None:
    assert terminal.is_shown(line) is shown


def test_a_log_is_read_while_another_writes_it(tmp_path: Path) -> None:
    log = terminal.Log(tmp_path / "logs/run.log")
    os.write(log.descriptor, b"nodeprint: one\nslurm: t")
    assert log.new_lines() == ["nodeprint: one"]
    os.write(log.descriptor, b"wo\n\x1b[2J\xff\n")
    assert log.new_lines() == ["slurm: two", "?[2J\ufffd"]
    assert log.new_lines() == []
    os.write(log.descriptor, b"a\r\n" + b"b" * 9999 + b"\n")
    plain, long = log.new_lines()
    assert plain == "a" and len(long) <= 5 * 80, "a line that no terminal of 80 columns holds on five"
    assert terminal.Log(tmp_path / "logs/run.log").new_lines() == [], "a new call has a new log"


def test_progress_lines_are_few_where_there_is_no_terminal(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    moment = [0.0]
    monkeypatch.setattr(terminal, "time", SimpleNamespace(monotonic=lambda: moment[0]))
    screen = terminal.Screen(verbose=False)
    for second in range(8 * 3600):
        moment[0] = 1000.0 + second
        screen.show("measure", f"{second} of 28800", second / 28800)
        screen.show("gather", f"{second} s")
    lines = capfd.readouterr().err.splitlines()
    assert 20 < len(lines) < 150
    assert lines[0] == "nodeprint: measure: 10 of 28800"
    assert all("gather" not in line for line in lines)


def test_on_a_terminal_one_line_is_redrawn() -> None:
    script = """
import sys; sys.path.insert(0, sys.argv[1])
import terminal
screen = terminal.Screen(verbose=False)
for part in range(4):
    screen.show("measure", f"{part} of 3 measurements", part / 3)
screen.say("nodeprint: said")
screen.show("judge", "1 s")
screen.clear()
"""
    master, slave = pty.openpty()
    subprocess.run(
        [sys.executable, "-c", script, ROOT / "workflow"],
        stderr=slave,
        check=True,
        env=os.environ | {"TERM": "xterm", "COLUMNS": "80"},
    )
    os.close(slave)
    seen = read_to_end(master)
    assert "3 of 3 measurements" in seen and "nodeprint: said" in seen
    assert seen.endswith(("\x1b[2K", "\x1b[?25h")) or "\x1b[2K" in seen.rsplit("judge", 1)[1], "nothing of it stays"


@pytest.mark.parametrize("verbose", [True, False])
def test_a_line_is_written_at_once_where_nothing_is_redrawn(capfd: pytest.CaptureFixture[str], verbose: bool) -> None:
    screen = terminal.Screen(verbose=verbose)
    screen.say("nodeprint: [bold]said\udc80")
    screen.clear()
    assert capfd.readouterr().err == "nodeprint: [bold]said?\n"


def test_all_of_a_text_is_written_or_as_much_as_somebody_reads() -> None:
    ours, theirs = os.pipe()
    terminal.write(theirs, b"x" * 1000)
    assert os.read(ours, 9999) == b"x" * 1000
    os.close(ours)
    terminal.write(theirs, b"nobody reads it")  # raises nothing
    os.close(theirs)
