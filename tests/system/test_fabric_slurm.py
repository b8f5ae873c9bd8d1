"""LinkTest between nodes on a real Slurm of four virtual nodes over their own addresses, with links slowed by tc.

Links are slowed in the nodes' own network namespaces: by netem where the kernel has it, else by a limit of the rate.
"""

from __future__ import annotations

import gzip
import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from nodeprint.campaign import job_status
from nodeprint.campaign.job_status import RunOutcome
from nodeprint.data.format import records
from tests.support.changed_records import with_header
from tests.support.cluster_campaigns import main_job
from tests.support.own_processes import is_ours
from tests.support.real_parts import ROOT, environment, need
from tests.support.schemas import valid_campaign, valid_records
from tests.support.virtual_cluster import CLUSTER, cluster, up

pytestmark = pytest.mark.machine

NODES = ("cn01", "cn02", "cn03", "cn04")
#: Messages that take some 30 times as long over a slow link, also where other programs use the CPUs of all nodes.
WORDS = "--sizes 64K --samples 4 --warm-up 1"
#: The address of cn04, as tests/system/cluster/cluster gives it.
CN04 = "10.77.0.5"


@pytest.fixture(scope="module")
def slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A cluster of four nodes, all in one partition, and by halves in two more; its state folder."""
    need("mpirun", "mpicc", "tc")
    halves = (f"PartitionName={name} Nodes={','.join(of)}" for name, of in (("left", NODES[:2]), ("right", NODES[2:])))
    state = up(tmp_path_factory.mktemp("fabric") / "state", len(NODES), *halves)
    yield state
    cluster("down", state=state)


def on(slurm: Path, node: str, *words: str, check: bool = True) -> None:
    cluster("exec", node, *words, state=slurm, check=check)


@contextmanager
def slowed(slurm: Path, node: str, to: str = "") -> Iterator[None]:
    """What `node` sends is slow, or only what it sends to the address `to`."""
    on(slurm, node, "tc", "qdisc", "add", "dev", "eth0", "root", "handle", "1:", "htb", "default", "1" if to else "2")
    try:
        # 64 KiB take a quarter of a second, and over a single link, which has fewer figures, half a second
        for number, rate in (("1", "20gbit"), ("2", "1mbit" if to else "2mbit")):
            shape = ["dev", "eth0", "parent", "1:", "classid", f"1:{number}", "htb", "rate", rate]
            on(slurm, node, "tc", "class", "add", *shape)
        # not every kernel has netem; the rate alone is enough to be seen
        on(slurm, node, "tc", "qdisc", "add", "dev", "eth0", "parent", "1:2", "netem", "delay", "2ms", check=False)
        if to:
            match = ["u32", "match", "ip", "dst", f"{to}/32", "flowid", "1:2"]
            on(slurm, node, "tc", "filter", "add", "dev", "eth0", "parent", "1:", "protocol", "ip", "prio", "1", *match)
        yield
    finally:
        on(slurm, node, "tc", "qdisc", "del", "dev", "eth0", "root")


def job(house: Path, slurm: Path, campaign: str, changes: Mapping[str, object], *again: str) -> dict[str, Any]:
    """A call of the main job with LinkTest between the nodes of a campaign; its verdict."""
    config = {
        "campaign": campaign,
        "launch": "slurm",
        "measure": ["coherence-cas", "linktest-fabric"],
        "arguments": {"linktest-fabric": WORDS},
        **changes,
    }
    done = main_job(house, slurm, config, *again)
    assert done.returncode == 0, done.stdout + done.stderr
    folder = house / "results" / campaign
    valid_campaign(folder)
    verdict: dict[str, Any] = json.loads((folder / "verdict.json").read_text())
    return verdict


def states(verdict: Mapping[str, Any], node: str) -> dict[str, str]:
    """The findings in a node's messages, and how certain each is."""
    findings = verdict["nodes"][node]["findings"]
    return {finding["id"]: finding["state"] for finding in findings if finding["id"].startswith("fabric-")}


def outcomes(house: Path, campaign: str, number: int = 1) -> tuple[RunOutcome, ...]:
    status = job_status.read(house / "results" / campaign / f"fabric/job{number}")
    assert status is not None
    return status.measurements


def an_hour_before(folder: Path) -> None:
    """Let the records of a job have begun an hour earlier than they did, as no test waits for ten minutes."""
    for path in folder.glob("main/run*/*.jsonl.gz"):
        text = gzip.decompress(path.read_bytes()).decode()
        began = datetime.fromisoformat(json.loads(text.partition("\n")[0])["start_time"]) - timedelta(hours=1)
        changed = with_header(text, start_time=began.strftime("%Y-%m-%dT%H:%M:%SZ"))
        path.write_bytes(gzip.compress(changed.encode()))


def test_a_slow_node_is_named_with_its_direction_and_confirmed_by_a_second_job(house: Path, slurm: Path) -> None:
    """Of two message sizes, of which the larger decides."""
    drain = house / "results/slow-node/drain.sh"
    sizes = {"linktest-fabric-sizes": WORDS.replace("64K", "8,64K")}
    changes = {"measure": ["coherence-cas", *sizes], "arguments": sizes}
    with slowed(slurm, "cn02"):
        once = job(house, slurm, "slow-node", changes)
        (fabric,) = once["fabric"]
        assert fabric["message_bytes"] == 64 << 10
        assert [(of["message_bytes"], of["within"]) for of in fabric["by_size"]] == [
            (size, within) for size in (8, 64 << 10) for within in (True, False)
        ]
        assert sum(time is not None for row in fabric["smallest_ns"] for time in row) == 12
        assert fabric["nodes"] == list(NODES)
        assert fabric["places"] == ["leaf0", "leaf0", "leaf1", "leaf1"]
        part = fabric["findings"][0]["component"]
        assert (part["term"], part["where"]) == ("fabric-node", {"node": "cn02", "sends": 1, "receives": 0})
        assert states(once, "cn02") == {"fabric-node-slow": "suspected"}
        assert "cn02" in once["recheck"]
        assert "NodeName='cn02'" not in drain.read_text()
        an_hour_before(house / "results/slow-node/fabric/job1")
        twice = job(house, slurm, "slow-node", changes, "--again", "cn02")
    assert [run.outcome for run in outcomes(house, "slow-node", 2)] == ["done", "done"]
    assert twice["fabric"][0]["findings"][0]["state"] == "confirmed"
    assert states(twice, "cn02") == {"fabric-node-slow": "confirmed"}
    # cores measured on a busy machine may make a node INVALID, which then says nothing of draining it
    assert ("NodeName='cn02'" in drain.read_text()) == (twice["nodes"]["cn02"]["outcome"] == "DEVIATES")


@pytest.mark.long
def test_a_slow_link_is_named_with_its_direction_by_two_ranks_a_node(house: Path, slurm: Path) -> None:
    """Beside it all pairs of a round at once: they share the CPUs of this machine, so that their times say nothing."""
    names = ["linktest-fabric", "linktest-fabric-parallel"]
    changes = {
        "measure": ["coherence-cas", *names],
        "mpi": {"ranks_per_node": 2},
        "arguments": dict(zip(names, (WORDS, "--sizes 1K --samples 4 --warm-up 1"), strict=True)),
    }
    with slowed(slurm, "cn03", CN04):
        verdict = job(house, slurm, "slow-link", changes)
    assert {run.outcome for run in outcomes(house, "slow-link")} == {"done"}, outcomes(house, "slow-link")
    serial, parallel = verdict["fabric"]
    part = serial["findings"][0]["component"]
    between = {"node": "cn03", "to": "cn04", "sends": 1, "receives": 0}
    assert (part["term"], part["where"]) == ("fabric-link", between), serial
    assert [states(verdict, name) for name in ("cn03", "cn04")] == [{}, {}], "which end it is cannot be known"
    assert [[median is None for median in row] for row in parallel["median_ns"]] == [
        [a == b for b in NODES] for a in NODES
    ]
    for name, at_once in zip(names, (1, 4), strict=True):
        file = records.read(house / f"results/slow-link/fabric/job1/main/run1/{name}.jsonl.gz")
        assert [host for host, _ in file.header["ranks"]] == [host for host in NODES for _ in range(2)]
        assert len(file.pairs["a"]) == 8 * 7
        assert file.header.get("parallel", 1) == at_once


@pytest.mark.long
def test_each_partition_is_measured_and_a_missing_pmix_is_named(house: Path, slurm: Path) -> None:
    """The first call asks for a plugin that this Slurm does not have, the second measures."""
    setup = house / "setup.sh"
    setup.write_text("export OMPI_MCA_btl=self,vader,tcp\n")
    common = {
        "runs": 1,
        "slurm": {"partition": "left,right"},
        "site": {"setup": setup.name},
        "arguments": {"linktest-fabric": "--sizes 64K --samples 3"},
    }
    launcher = "srun --mpi=pmix_v9 -p {partition} --nodelist={nodes} --ntasks-per-node={per_node}"
    missing = job(house, slurm, "partitions", common | {"mpi": {"fabric_launcher": launcher}})
    assert {run.outcome for run in outcomes(house, "partitions")} == {"refused"}
    notes = [note["detail"] for note in missing["fleet"]["notes"] if note["kind"] == "fabric"]
    assert [note.partition(": ")[0] for note in notes] == [f"linktest-fabric, partition {p}" for p in ("left", "right")]
    assert all("`srun --mpi=list` names those that it has" in note for note in notes)
    measured = job(house, slurm, "partitions", common)
    assert [(run.partition, run.run, run.name, run.outcome) for run in outcomes(house, "partitions")] == [
        (partition, 1, "linktest-fabric", "done") for partition in ("left", "right")
    ]
    assert [(one["partition"], one["nodes"]) for one in measured["fabric"]] == [
        ("left", ["cn01", "cn02"]),
        ("right", ["cn03", "cn04"]),
    ]
    assert measured["fabric"][0]["inconclusive"] == "too-few-nodes"
    path = house / "results/partitions/fabric/job1/left/run1/linktest-fabric.jsonl.gz"
    assert records.read(path).header["transport"]["environment"] == {"OMPI_MCA_btl": "self,vader,tcp"}


@pytest.mark.long
def test_a_rank_that_is_killed_is_named_and_the_rest_is_continued(house: Path, slurm: Path, tmp_path: Path) -> None:
    out = tmp_path / "fabric.jsonl"
    command = [*between_nodes(house, out), "--mix", "--passes", "200", "--samples", "50"]
    env = environment() | {"CLUSTER_STATE": str(slurm)}
    process = subprocess.Popen(command, env=env, cwd=house, stderr=subprocess.PIPE, text=True)
    until = time.monotonic() + 600
    while not (out.exists() and out.read_text().count('"pair"') > 12):
        assert process.poll() is None and time.monotonic() < until
        time.sleep(0.05)
    os.kill(process_with(b"--as-rank", environment_of=b"SLURMD_NODENAME=cn03"), signal.SIGKILL)
    said = process.communicate(timeout=600)[1].splitlines()[-1]
    kept = out.read_text().count('"pair"')
    assert process.returncode == 3, said
    assert f"{kept} pairs are kept" in said
    assert "rank" in said or "task" in said
    again = subprocess.Popen(command, env=env, cwd=house, stderr=subprocess.PIPE, text=True)
    while out.read_text().count('"pair"') < kept + 12:
        assert again.poll() is None and time.monotonic() < until + 120
        time.sleep(0.05)
    os.kill(process_with(b"linktest/__main__.py", b"--passes", without=b"--as-rank"), signal.SIGTERM)
    assert "the same call continues" in again.communicate(timeout=300)[1].splitlines()[-1]
    valid_records(out)
    file = records.read(out)
    assert [header["segment"] for header in file.headers] == [0, 1]
    keys = list(zip(file.pairs["pass"], file.pairs["a"], file.pairs["b"], strict=True))
    assert len(keys) == len(set(keys)) >= kept + 12


def between_nodes(house: Path, out: Path) -> list[str | Path]:
    """A call of LinkTest on the login node, between all nodes."""
    linktest = house / "kernels/build/linktest"
    return [CLUSTER, "exec", "login", linktest, "--nodes", ",".join(NODES), "--out", out, "--sizes", "64K"]


def process_with(*words: bytes, without: bytes = b"\0\0", environment_of: bytes = b"") -> int:
    """A process of LinkTest in the cluster of these tests, by its command line and environment."""
    for path in Path("/proc").glob("[0-9]*/environ"):
        try:
            line = (path.parent / "cmdline").read_bytes()
            known = [b"python" in line.split(b"\0")[0], without not in line, *(word in line for word in words)]
            pid = int(path.parent.name)
            if all(known) and b"nsenter" not in line and environment_of in path.read_bytes() and is_ours(pid):
                return pid
        except OSError:
            continue
    raise AssertionError(words)


@pytest.mark.long
def test_a_firewall_between_two_nodes_is_named(house: Path, slurm: Path, tmp_path: Path) -> None:
    """What cn02 sends to cn04 from or to MPI's ports goes to a neighbor that is not there: a firewall that drops."""
    nobody, table = "10.77.99.99", ("table", "100")
    on(slurm, "cn02", "ip", "neigh", "add", nobody, "lladdr", "02:00:00:00:00:01", "dev", "eth0")
    on(slurm, "cn02", "ip", "route", "add", CN04, "via", nobody, "dev", "eth0", "onlink", *table)
    tcp = "6"  # its name is in /etc/protocols, which a small Debian does not have
    rules = [["to", CN04, "ipproto", tcp, port, "1024-1300", *table] for port in ("sport", "dport")]
    for rule in rules:
        on(slurm, "cn02", "ip", "rule", "add", *rule)
    try:
        done = subprocess.run(
            between_nodes(house, tmp_path / "x"),
            env=environment() | {"CLUSTER_STATE": str(slurm)},
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=200,
            check=False,
        )
    finally:
        for rule in rules:
            on(slurm, "cn02", "ip", "rule", "del", *rule)
    assert done.returncode == 3
    said = done.stderr.splitlines()[-1]
    assert "firewall" in said
    assert {node for node in NODES if node in said} == {"cn02", "cn04"}
