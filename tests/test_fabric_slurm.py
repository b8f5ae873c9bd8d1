"""LinkTest between nodes on a real Slurm of four virtual nodes over their own addresses, with links slowed by tc.

Links are slowed in the nodes' own network namespaces: by netem where the kernel has it, else by a limit of the rate.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from nodeprint import records

from .conftest import ROOT, environment, need
from .schemas import valid_campaign, valid_records
from .test_cluster import CLUSTER, cluster, main_job, up

pytestmark = pytest.mark.machine

NODES = ("cn01", "cn02", "cn03", "cn04")
#: The address of cn04, as tests/cluster/cluster gives it.
CN04 = "10.77.0.5"


@pytest.fixture(scope="module")
def slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A cluster of four nodes; its state folder."""
    need("mpirun", "mpicc", "tc")
    state = up(tmp_path_factory.mktemp("fabric") / "state", len(NODES))
    yield state
    cluster("down", state=state)


def on(slurm: Path, node: str, *words: str, check: bool = True) -> None:
    cluster("exec", node, *words, state=slurm, check=check)


@contextmanager
def slowed(slurm: Path, node: str, to: str = "") -> Iterator[None]:
    """What `node` sends is slow, or only what it sends to the address `to`."""
    on(slurm, node, "tc", "qdisc", "add", "dev", "eth0", "root", "handle", "1:", "htb", "default", "1" if to else "2")
    try:
        for number, rate in (("1", "20gbit"), ("2", "100mbit")):
            on(
                slurm,
                node,
                "tc",
                "class",
                "add",
                "dev",
                "eth0",
                "parent",
                "1:",
                "classid",
                f"1:{number}",
                "htb",
                "rate",
                rate,
            )
        # not every kernel has netem; the rate alone is enough to be seen
        on(slurm, node, "tc", "qdisc", "add", "dev", "eth0", "parent", "1:2", "netem", "delay", "2ms", check=False)
        if to:
            match = ["u32", "match", "ip", "dst", f"{to}/32", "flowid", "1:2"]
            on(slurm, node, "tc", "filter", "add", "dev", "eth0", "parent", "1:", "protocol", "ip", "prio", "1", *match)
        yield
    finally:
        on(slurm, node, "tc", "qdisc", "del", "dev", "eth0", "root")


def job(house: Path, slurm: Path, campaign: str) -> dict[str, object]:
    """A campaign with LinkTest between its nodes; its verdict's part."""
    config = {
        "campaign": campaign, "launch": "sweep", "measure": ["coherence-cas", "linktest-fabric"],
        "arguments": {"linktest-fabric": "--sizes 512K --samples 8"},
    }  # fmt: skip
    done = main_job(house, slurm, config)
    folder = house / "results" / campaign
    outcomes = folder / "fabric/job1/outcomes.tsv"
    assert done.returncode == 0, done.stdout + done.stderr
    assert {row.split("\t")[2] for row in outcomes.read_text().splitlines()} == {"done"}, outcomes.read_text()
    valid_campaign(folder)
    (found,) = json.loads((folder / "verdict.json").read_text())["fabric"]
    assert found["nodes"] == list(NODES)
    assert found["places"] == ["leaf0", "leaf0", "leaf1", "leaf1"]
    return found


def test_a_slow_node_is_named_with_its_direction(house: Path, slurm: Path) -> None:
    with slowed(slurm, "cn02"):
        found = job(house, slurm, "slow-node")
    first = found["findings"][0]
    assert (first["term"], first["node"], first["sends"], first["receives"]) == ("node", "cn02", True, False), found


def test_a_slow_link_is_named_with_its_direction(house: Path, slurm: Path) -> None:
    with slowed(slurm, "cn03", CN04):
        found = job(house, slurm, "slow-link")
    first = found["findings"][0]
    assert (first["term"], first["node"], first["to"], first["receives"]) == ("link", "cn03", "cn04", False), found
    assert "from cn03 to cn04" in first["text"]


def test_a_rank_that_is_killed_is_named_and_the_rest_is_continued(house: Path, slurm: Path, tmp_path: Path) -> None:
    out = tmp_path / "fabric.jsonl"
    command = [
        CLUSTER, "exec", "login", house / "kernels/build/linktest", "--nodes", ",".join(NODES), "--out", out, "--sizes",
        "64K", "--mix", "--passes", "200", "--samples", "50",
    ]  # fmt: skip
    env = environment() | {"CLUSTER_STATE": str(slurm)}
    process = subprocess.Popen(command, env=env, cwd=house, stderr=subprocess.PIPE, text=True)
    until = time.monotonic() + 120
    while not (out.exists() and out.read_text().count('"pair"') > 12):
        assert process.poll() is None and time.monotonic() < until
        time.sleep(0.05)
    os.kill(process_with(b"--as-rank", environment_of=b"SLURMD_NODENAME=cn03"), signal.SIGKILL)
    said = process.communicate(timeout=120)[1].splitlines()[-1]
    kept = out.read_text().count('"pair"')
    assert process.returncode == 3, said
    assert f"{kept} pairs are kept" in said
    assert "rank" in said or "task" in said
    again = subprocess.Popen(command, env=env, cwd=house, stderr=subprocess.PIPE, text=True)
    while out.read_text().count('"pair"') < kept + 12:
        assert again.poll() is None and time.monotonic() < until + 120
        time.sleep(0.05)
    os.kill(process_with(b"linktest.py", b"--passes", without=b"--as-rank"), signal.SIGTERM)
    assert "the same call continues" in again.communicate(timeout=60)[1].splitlines()[-1]
    valid_records(out)
    file = records.read(out)
    assert [header["segment"] for header in file.headers] == [0, 1]
    keys = list(zip(file.pairs["pass"], file.pairs["a"], file.pairs["b"], strict=True))
    assert len(keys) == len(set(keys)) >= kept + 12


def process_with(*words: bytes, without: bytes = b"\0\0", environment_of: bytes = b"") -> int:
    """A process of LinkTest in the cluster, by its command line and environment."""
    for path in Path("/proc").glob("[0-9]*/environ"):
        try:
            line = (path.parent / "cmdline").read_bytes()
            known = [b"python" in line.split(b"\0")[0], without not in line, *(word in line for word in words)]
            if all(known) and b"nsenter" not in line and environment_of in path.read_bytes():
                return int(path.parent.name)
        except OSError:
            continue
    raise AssertionError(words)


def test_nodes_that_do_not_reach_each_other_are_named(house: Path, slurm: Path, tmp_path: Path) -> None:
    on(slurm, "cn02", "ip", "route", "add", "blackhole", CN04)
    try:
        done = subprocess.run(
            [CLUSTER, "exec", "login", house / "kernels/build/linktest", "--nodes", "cn02,cn04", "--out",
             tmp_path / "x", "--sizes", "64K", "--patience", "60"],
            env=environment() | {"CLUSTER_STATE": str(slurm)}, cwd=ROOT, capture_output=True, text=True, timeout=200,
            check=False,
        )  # fmt: skip
    finally:
        on(slurm, "cn02", "ip", "route", "del", "blackhole", CN04)
    assert done.returncode == 3
    assert "firewall" in done.stderr.splitlines()[-1]
