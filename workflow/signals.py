"""Signals are blocked from the first line on, and taken only while the program waits.

So nothing is interrupted between two statements. Started programs get signals unblocked.
"""

from __future__ import annotations

import ctypes
import os
import select
import signal
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

_LIBC = ctypes.CDLL(None)
#: prctl.h: the signal that a process gets when its parent ends.
_PR_SET_PDEATHSIG = 1

#: Those that end a call; what `nohup` or a shell's background start ignores stays ignored.
ENDING = {s for s in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP) if signal.getsignal(s) is not signal.SIG_IGN}


class Interrupted(BaseException):
    """The signal that ends this call."""

    def __init__(self, number: int) -> None:
        self.number = number


class _Terminal:
    """The terminal of this call. One that is closed sends SIGHUP to the leader of its session alone, and if that is
    `make`, it waits for us."""

    def __init__(self) -> None:
        self._is_in_front = False
        self._poll = select.poll()
        self._descriptor = -1
        with suppress(OSError):  # there is none
            self._descriptor = os.open("/dev/tty", os.O_RDONLY | os.O_NOCTTY | os.O_CLOEXEC)
            self._poll.register(self._descriptor, select.POLLHUP)

    def is_closed(self) -> bool:
        """Whether it was closed while this call was in its foreground. In the background it goes on."""
        if self._descriptor < 0 or signal.SIGHUP not in ENDING:
            return False
        if any(event & select.POLLHUP for _, event in self._poll.poll(0)):
            return self._is_in_front
        with suppress(OSError):
            self._is_in_front = os.tcgetpgrp(self._descriptor) == os.getpgrp()
        return False


_terminal = _Terminal()


def block() -> None:
    """Call it first: from now on signals are taken by `pause` alone."""
    signal.pthread_sigmask(signal.SIG_BLOCK, ENDING | {signal.SIGCHLD})


def pause(seconds: float) -> None:
    """Wait so long, or until a process that we started ends. Raises Interrupted, also if the terminal was closed."""
    if _terminal.is_closed():
        raise Interrupted(signal.SIGHUP)
    received = signal.sigtimedwait(ENDING | {signal.SIGCHLD}, max(0.0, seconds))
    # CPython returns a struct that it never filled where a stop (Ctrl-Z) outlasted the time
    if received is not None and received.si_signo in ENDING:
        raise Interrupted(received.si_signo)


def start(words: Sequence[str | Path], *, with_us: bool = False, **how: Any) -> subprocess.Popen[bytes]:
    """Start a program, for which no signal is blocked or ignored. `with_us`: it is killed when this process ends,
    however it ends."""
    parent = os.getpid()

    def prepare() -> None:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        if with_us:
            _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
            if os.getppid() != parent:  # it has ended meanwhile
                os._exit(1)

    # there is no thread beside us that could hold a lock between fork and exec
    return subprocess.Popen(words, preexec_fn=prepare, **how)  # noqa: PLW1509


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
