"""Campaigns on a real Grid Engine of virtual nodes: qmaster, execd and their commands, no Slurm."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.cluster_campaigns import Campaign, outcome
from tests.support.paced_kernel import paced  # noqa: F401 (a fixture)
from tests.support.real_parts import ROOT
from tests.support.virtual_cluster import cluster, inside, login, up_gridengine
from tests.support.waiting import wait_for

pytestmark = [pytest.mark.machine, pytest.mark.long]

#: A call of the launcher on the login node, by a program that prints JSON.
PROGRAM = """
import json, sys, time
from pathlib import Path
from nodeprint.campaign.launchers.gridengine import GridEngineLauncher
from nodeprint.campaign.launchers.launcher import RefusedError, Submission
from nodeprint.settings.config_file import Config, Jobs

launcher, config = GridEngineLauncher(), Config(launch="gridengine")
nodes = {node.node: node for node in launcher.nodes(config)}
lock = open("lock", "w").fileno()

def submit(node, script, extra=""):
    config = Config(launch="gridengine", scheduler=Jobs(extra=extra))
    job = Submission("nodeprint-x-1", node, launcher.options(config, nodes[node], 1), script, lock)
    try:
        return launcher.submit(job)
    except RefusedError as refusal:
        return str(refusal)

def wait(true):
    until = time.monotonic() + 60
    while not true(launcher.follow(["nodeprint-x-1"])):
        assert time.monotonic() < until, launcher.follow(["nodeprint-x-1"])
        time.sleep(0.3)

def state(node):
    return lambda queue: queue.get(("nodeprint-x-1", node))

numbers = {"cn01": submit("cn01", "pwd >where; hostname >>where; exit 3"), "cn02": submit("cn02", "sleep 600")}
refused = submit("cn01", "true", "-l nosuch=1")
wait(lambda queue: state("cn01")(queue) is None and (job := state("cn02")(queue)) and job.state == "RUNNING")
second = submit("cn02", "sleep 600")  # the node is whole: it waits
time.sleep(2)
queue = launcher.follow(["nodeprint-x-1"])
wait(lambda queue: launcher.how_ended({numbers["cn01"]: ("nodeprint-x-1", "cn01")}))
ended = launcher.how_ended({numbers["cn01"]: ("nodeprint-x-1", "cn01")})[numbers["cn01"]]
launcher.cancel([numbers["cn02"], second])
wait(lambda queue: not queue)
launcher.cancel([second])  # it is gone, which is what was asked for
print(json.dumps({
    "nodes": {name: [node.partition, node.state, node.measure] for name, node in nodes.items()},
    "numbers": numbers, "refused": refused, "second": second, "where": Path("where").read_text().split(),
    "waits": [queue["nodeprint-x-1", "cn02"].id, queue["nodeprint-x-1", "cn02"].state],
    "other": launcher.follow(["nodeprint-y-1"]) == {}, "idle": sorted(launcher.idle_nodes(config)),
    "reason": launcher.reason("cn01", ended),
}))
"""


def test_a_job_has_a_node_for_itself_is_followed_and_ends_with_its_reason(tmp_path: Path) -> None:
    state = up_gridengine(tmp_path / "state", 2)
    try:
        done = cluster(
            "exec",
            "login",
            "env",
            f"PYTHONPATH={ROOT}",
            "sh",
            "-c",
            'cd "$0" && exec "$@"',
            tmp_path,
            ROOT / ".venv/bin/python",
            "-c",
            PROGRAM,
            state=state,
        )
    finally:
        cluster("down", state=state)
    found = json.loads(done.stdout)
    assert found["nodes"] == {name: ["main.q", "idle", True] for name in ("cn01", "cn02")}
    assert found["refused"] == 'unknown resource "nosuch"'
    assert found["where"] == [str(tmp_path), "cn01"], "in the directory of the call, on the node that was asked for"
    assert found["waits"] == [found["second"], "PENDING"]
    assert found["other"] and found["idle"] == ["cn01", "cn02"]
    assert found["reason"] == f"Grid Engine job {found['numbers']['cn01']}: FAILED, exit code 3"


@pytest.fixture
def six_nodes(tmp_path: Path) -> Iterator[Path]:
    state = up_gridengine(tmp_path / "state", 6)
    yield state
    cluster("down", state=state)


@pytest.mark.usefixtures("paced")
def test_a_killed_and_a_disabled_node_cost_themselves_alone(house: Path, six_nodes: Path) -> None:
    """cn02 loses its power while it measures, and the queue of cn05 is disabled before the call, that of cn06 while its
    job waits. All others are measured once; the next call measures these three."""
    login(six_nodes, "qmod -d main.q@cn05")
    blocker = login(six_nodes, "qsub -terse -b y -l hostname=cn06,exclusive=true -o /dev/null -j y sleep 600").strip()
    campaign = Campaign(house, six_nodes, "grid", 20, launch="gridengine", unavailable_minutes=0.2)
    call = campaign.call()
    campaign.measuring("cn01", "cn02", "cn03", "cn04")
    cluster("crash", "cn02", state=six_nodes)
    login(six_nodes, f"qmod -d main.q@cn06; qdel {blocker}")
    said = campaign.done(call, code=1)
    assert "gridengine: 3 of 5 nodes came back" in said, said
    assert campaign.outcomes() == {
        **dict.fromkeys(("cn01", "cn03", "cn04"), "complete"),
        **dict.fromkeys(("cn02", "cn06"), "failed"),
    }
    assert campaign.reason("cn02").startswith("Grid Engine job ")
    assert "for the node, which is unreachable; it was canceled" in campaign.reason("cn02")
    assert "for the node, which is disabled in queue main.q; it was canceled" in campaign.reason("cn06")
    assert "disabled in queue main.q" in said
    cluster("start", "cn02", state=six_nodes)
    login(six_nodes, "qmod -e main.q@cn05 main.q@cn06")
    wait_for(lambda: inside(six_nodes, "login", "qstat", "-u", "root") == "", "the lost job has left the queue")
    campaign.done()
    once = ("cn01", "cn03", "cn04", "cn05", "cn06")
    assert [outcome(campaign.folder, node) for node in once] == ["complete"] * 5
    assert outcome(campaign.folder, "cn02", job=2) == "complete", "it was booted again"
    campaign.once(*once)
    campaign.once("cn02", job=2)
    submitted = int(login(six_nodes, "qsub -terse -b y -o /dev/null -j y true")) - int(blocker)
    assert submitted == 5 + 3 + 1 + 1, "none was submitted twice, but cn02 in a new job"
