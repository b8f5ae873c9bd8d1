"""Processes that these tests started: signals go to them alone, as others may run beside them."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

#: Handed down to all processes that the tests start.
MARK = {"NODEPRINT_TESTS": f"{os.getpid()}-{secrets.token_hex(8)}"}


def is_ours(pid: int) -> bool:
    """Whether these tests started a process: it, or one above it, has our mark in its environment."""
    try:  # the name of a program may hold blanks and brackets
        state, parent, *_ = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
    except OSError:
        return False
    environment = b""
    with suppress(OSError):  # a program that is just being started may have none that can be read
        environment = Path(f"/proc/{pid}/environ").read_bytes() if state not in "ZX" else b""
    (mark,) = (f"{name}={value}".encode() for name, value in MARK.items())
    return pid == os.getpid() or mark in environment.split(b"\0") or is_ours(int(parent))


def _lives(pid: int) -> bool:
    """Whether there is such a process that did not end yet (then it has an environment)."""
    with suppress(OSError):
        return Path(f"/proc/{pid}/environ").read_bytes() != b""
    return Path(f"/proc/{pid}").exists()


def guarded(send: Callable[[int, int], None]) -> Callable[[int, int], None]:
    def kill(pid: int, number: int) -> None:
        if pid <= 0 or (_lives(pid) and not is_ours(pid) and _lives(pid)):  # it may end meanwhile
            raise AssertionError(f"signal {number} for process {pid}, which these tests did not start")
        send(pid, number)

    return kill
