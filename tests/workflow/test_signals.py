"""Signals are taken where a call waits, and what it starts gets them as they usually are."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from tests.support.real_parts import ROOT


def test_a_stop_that_outlasts_the_wait_is_no_interruption() -> None:
    code = "import signals; signals.block(); print('waits', flush=True); signals.pause(0.5)"
    command = [sys.executable, "-c", code]
    with subprocess.Popen(command, cwd=ROOT / "workflow", stdout=subprocess.PIPE) as process:
        assert process.stdout and process.stdout.readline() == b"waits\n"
        time.sleep(0.1)
        process.send_signal(signal.SIGSTOP)  # Ctrl-Z
        time.sleep(0.6)
        process.send_signal(signal.SIGCONT)
    assert process.returncode == 0


def _ended(code: str) -> tuple[int, str]:
    """How a program that uses `signals` ends, and what it prints."""
    words = [sys.executable, "-c", f"import os, signal, signals; signals.block(); {code}"]
    done = subprocess.run(words, cwd=ROOT / "workflow", stdout=subprocess.PIPE, text=True, timeout=60, check=False)
    return done.returncode, done.stdout


def test_a_command_has_its_exit_code_and_its_usual_signals() -> None:
    """A shell that was started kills itself, although we block the signal."""
    end = "print(signals.wait(signals.start(['sh', '-c', 'kill -{} $$; exit 5'])))"
    for name, code in (("0", 5), ("TERM", -signal.SIGTERM), ("INT", -signal.SIGINT), ("HUP", -signal.SIGHUP)):
        assert _ended(end.format(name)) == (0, f"{code}\n")


def test_an_interruption_ends_the_command_that_is_waited_for() -> None:
    code = """
child = signals.start(['sleep', '60'])
os.kill(os.getpid(), signal.SIGHUP)
try:
    signals.wait(child)
except signals.Interrupted as interruption:
    print(interruption.number == signal.SIGHUP, child.returncode)
"""
    assert _ended(f"exec({code!r})") == (0, "True -15\n")


def test_what_is_started_with_us_ends_with_us(tmp_path: Path) -> None:
    """However this process ends: it kills itself. Its other children live on."""
    code = (
        "[open(str(n), 'w').write(str(signals.start(['sleep', '60'], with_us=bool(n), stdout=-3).pid)) for n in (0, 1)]"
    )
    kill = "os.kill(os.getpid(), signal.SIGKILL)"
    assert _ended(f"os.chdir({str(tmp_path)!r}); {code}; {kill}")[0] == -signal.SIGKILL
    alone, with_us = (int((tmp_path / name).read_text()) for name in "01")
    os.kill(alone, signal.SIGKILL)  # raises where it has ended
    until = time.monotonic() + 30
    while _lives(with_us):
        assert time.monotonic() < until
        time.sleep(0.02)


def _lives(pid: int) -> bool:
    try:
        return ") Z " not in Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
