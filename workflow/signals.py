"""Signals in one place: they are blocked from the first line on and taken where a program waits, so that nothing is
ever interrupted between two statements. What is started gets them as they usually are."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

#: Those that end a call; what `nohup` or a shell's background start ignores stays ignored.
ENDING = {s for s in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP) if signal.getsignal(s) is not signal.SIG_IGN}


class Interrupted(BaseException):
    """The signal that ends this call."""

    def __init__(self, number: int) -> None:
        self.number = number


def block() -> None:
    """Call it first: from now on signals are taken by `pause` alone."""
    signal.pthread_sigmask(signal.SIG_BLOCK, ENDING | {signal.SIGCHLD})


def pause(seconds: float) -> None:
    """Wait so long, or until a process that we started ends. Raises Interrupted."""
    found = signal.sigtimedwait(ENDING | {signal.SIGCHLD}, max(0.0, seconds))
    # CPython returns a struct that it never filled where a stop (Ctrl-Z) outlasted the time
    if found is not None and found.si_signo in ENDING:
        raise Interrupted(found.si_signo)


def start(words: Sequence[str | Path], **how: Any) -> subprocess.Popen[bytes]:
    """Start a program, for which no signal is blocked or ignored."""

    def usual_signals() -> None:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())

    # the one thread beside may be a copier, which holds no lock that is needed between fork and exec
    return subprocess.Popen(words, preexec_fn=usual_signals, **how)  # noqa: PLW1509


def wait(process: subprocess.Popen[bytes]) -> int:
    """The exit code of a short command of ours; an interruption ends it, too."""
    try:
        while process.poll() is None:
            pause(1)
    except Interrupted:
        process.terminate()
        process.wait()
        raise
    return process.returncode
