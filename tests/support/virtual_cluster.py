"""A Slurm of virtual nodes on this machine (tests/system/cluster): started, called, waited for."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

from tests.support.real_parts import ROOT, environment, need, need_mount_namespace
from tests.support.waiting import wait_for
from tests.system.cluster.namespaces import enter

CLUSTER = ROOT / "tests/system/cluster/cluster"


def cluster(*words: str | Path, state: Path | None = None, check: bool = True) -> subprocess.CompletedProcess[str]:
    """Call tests/system/cluster/cluster."""
    done = subprocess.run(
        [CLUSTER, *words],
        env=environment() | ({"CLUSTER_STATE": str(state)} if state else {}),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert not check or done.returncode == 0, done.stdout + done.stderr
    return done


def inside(state: Path, node: str, *words: str | Path) -> str:
    """What a command on `login` or a node prints, as `cluster exec` calls it but without a Python more: for what is
    asked again and again."""
    command = [*enter(state, node), *words]
    return subprocess.run(command, env=environment(), capture_output=True, text=True, timeout=300, check=False).stdout


def up(state: Path, count: int, *conf: str, names: Sequence[str] = (), accounting: bool = False) -> Path:
    """Start a cluster of `count` nodes with lines of `conf` in its slurm.conf."""
    need("slurmctld", "slurmd", "munged", "ip", "nsenter", root="start a virtual cluster")
    need_mount_namespace("start a virtual cluster")
    lines = [word for line in conf for word in ("--conf", line)]
    lines += ["--accounting"] if accounting else []
    cluster("up", str(count), "--state", state, "--names", ",".join(names), *lines)
    return state


def up_gridengine(state: Path, count: int) -> Path:
    """Start a cluster of `count` nodes with Grid Engine."""
    need("sge_qmaster", "sge_execd", "qstat", "ip", "nsenter", root="start a virtual cluster")
    need_mount_namespace("start a virtual cluster")
    cluster("up", str(count), "--state", state, "--gridengine")
    return state


def login(slurm: Path, text: str) -> str:
    """What a line of shell prints on the login node."""
    return inside(slurm, "login", "sh", "-c", text)


def scontrol(slurm: Path, *words: str) -> None:
    """Call scontrol on the login node."""
    cluster("exec", "login", "scontrol", *words, state=slurm)


def states(slurm: Path) -> dict[str, str]:
    """The state of each node, as sinfo prints it."""
    return dict(line.split() for line in inside(slurm, "login", "sinfo", "-h", "-N", "-o", "%N %T").splitlines())


def reach(slurm: Path, wanted: dict[str, str]) -> None:
    """Wait until nodes are in these states; ten minutes at most."""
    wait_for(lambda: wanted.items() <= states(slurm).items(), f"nodes are {wanted}", 600)


def kill_slurmctld(slurm: Path) -> None:
    """Kill the controller when its queue is on disk: it saves changes seconds later and forgets the rest."""
    changed, queue = time.time(), login(slurm, "squeue --noheader -o %i").split()
    for job in queue:
        login(slurm, f"scontrol update jobid={job} comment=kept")
    wait_for(lambda: not queue or (slurm / "ctld/job_state").stat().st_mtime > changed, "the queue is on disk")
    login(slurm, "kill -KILL $(cat /run/slurm/slurmctld.pid)")
