"""Namespaces that a process and all it starts live in: what the virtual nodes of `cluster` are made of."""

from __future__ import annotations

import ctypes
import json
import os
import shlex
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

#: Where users of a cluster log in, and what says which process a cluster is.
LOGIN, STATE_FILE = "login", "cluster.json"

# linux/sched.h: mount, host-name, IPC, PID and network namespaces
CLONE_ALL = 0x00020000 | 0x04000000 | 0x08000000 | 0x20000000 | 0x40000000


class ClusterError(Exception):
    """What is wrong and what to do, in one sentence."""


def run(*command: str) -> str:
    """Run `command`; its standard output. Raises ClusterError with its last line where it fails."""
    done = subprocess.run(
        command, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False, close_fds=False
    )
    if done.returncode:
        said = (done.stderr or done.stdout).strip().splitlines() or [f"exit code {done.returncode}"]
        raise ClusterError(f"{shlex.join(command)}: {said[-1]}")
    return done.stdout


def spawn(body: Callable[[], None], born: Callable[[int], object], orphaned: Callable[[], object]) -> None:
    """Run `body` as the init of new namespaces, in a session of its own, which only reaps after it.

    `born` is called with its PID as the caller sees it; `orphaned`, in the init, where the caller is dead when
    `body` has ended. Returns when `body` has returned. Raises ClusterError where it failed: then its namespaces are
    gone.
    """
    outcome_r, outcome_w = os.pipe()
    pid_r, pid_w = os.pipe()
    helper = os.fork()
    if helper == 0:
        # unshare() puts the *children* of the caller into the new PID namespace, hence a second fork.
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.unshare(CLONE_ALL):
            os.write(outcome_w, f"new namespaces: {os.strerror(ctypes.get_errno())}".encode())
            os._exit(1)
        init = os.fork()
        if init:
            os.write(pid_w, str(init).encode())
            os._exit(0)
        for fd in (outcome_r, pid_r, pid_w):
            os.close(fd)
        be_init(body, outcome_w, orphaned)
    os.close(outcome_w)
    os.close(pid_w)
    with os.fdopen(pid_r) as pipe:
        pid = pipe.read()
    os.waitpid(helper, 0)
    if pid:
        born(int(pid))
    with os.fdopen(outcome_r) as pipe:
        # A line, not the end: nodes that were forked from the login node hold its pipe too.
        outcome = pipe.readline().rstrip()
    if outcome != "ready":
        raise ClusterError(outcome or "the first process of the namespaces ended before it was ready")


def be_init(body: Callable[[], None], outcome: int, orphaned: Callable[[], object]) -> NoReturn:
    """Process 1 of a PID namespace: set up with `body`, say how it went, then reap. When it ends, all in it ends."""
    code = 1
    try:
        os.setsid()
        run("mount", "--make-rprivate", "/")
        run("mount", "-t", "proc", "proc", "/proc")
        run("mount", "-t", "tmpfs", "tmpfs", "/dev/shm")
        body()
        os.write(outcome, b"ready\n")
        os.close(outcome)
        while True:
            try:
                os.wait()
            except ChildProcessError:
                time.sleep(0.5)
    except (ClusterError, OSError) as error:
        try:
            os.write(outcome, f"{error}\n".encode())
        except OSError:
            orphaned()
    finally:
        os._exit(code)


def quiet(log: Path) -> None:
    """Detach from the caller's terminal and pipes: a reader of them must see their end."""
    null = os.open(os.devnull, os.O_RDONLY)
    out = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    for source, target in ((null, 0), (out, 1), (out, 2)):
        os.dup2(source, target)
    os.close(null)
    os.close(out)
    os.chdir("/")


def start_time(pid: int) -> str:
    """When process `pid` started, in clock ticks since boot; empty where it is gone or dead. Tells a PID used again."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return ""
    return "" if fields[0] in "XZ" else fields[19]


def wait_for(true: Callable[[], bool], seconds: float) -> None:
    """Wait until `true`. Raises ClusterError after `seconds`."""
    end = time.monotonic() + seconds
    while not true():
        if time.monotonic() > end:
            raise ClusterError(f"still waiting after {seconds:.0f} s")
        time.sleep(0.02)


def first_process(state: Path) -> int:
    """The PID of the cluster's first process. Raises ClusterError where no cluster runs from this folder."""
    try:
        record = json.loads((state / STATE_FILE).read_text())
        pid, started = int(record["pid"]), str(record["start_time"])
    except (OSError, ValueError, KeyError, TypeError):
        raise ClusterError(f"{state}: no cluster runs from this folder; start one with `up`") from None
    if start_time(pid) != started:
        raise ClusterError(f"{state}: the cluster of this folder is dead; clear it away with `down`")
    return pid


def enter(state: Path, node: str) -> list[str]:
    """The command prefix that runs a command on `node` (`login` or a node's name) in the current folder."""
    # in a chroot a namespace of mounts has the machine's root, so that the process's own root is asked for
    prefix = ["nsenter", f"--target={first_process(state)}", "--all", "--root", "--"]
    if node != LOGIN:
        pid_file = state / "nodes" / node
        if not pid_file.is_file():
            raise ClusterError(f"{node}: not a node that runs; `exec login sinfo -N` lists them")
        prefix += ["nsenter", f"--target={pid_file.read_text()}", "--all", "--root", "--"]
    return [*prefix, "sh", "-c", 'cd "$0" && exec "$@"', str(Path.cwd())]
