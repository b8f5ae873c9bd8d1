"""SIGKILL of each process of a call, at each phase, on a real Slurm: then the same call again. Nothing is measured
twice or lost, nothing waits for who is gone, and status, exit status and last line agree."""

import json
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from nodeprint.campaign import node_status
from tests.support.real_parts import environment
from tests.system.test_cluster import CLUSTER, caller, cluster, outcome, reach, up
from tests.system.test_slurm_faults import NODES, Campaign, kill_slurmctld, login, nothing_is_left, wait_for

pytestmark = pytest.mark.machine


@pytest.fixture(scope="module")
def slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A cluster of three nodes; its state folder."""
    state = up(tmp_path_factory.mktemp("killed") / "state", len(NODES), "MinJobAge=2", names=NODES)
    yield state
    cluster("down", state=state)


def kill(campaign: Campaign, victim: str) -> None:
    """SIGKILL for a process of the call; of those on a node for that of rack-J01."""
    name, slurm = campaign.folder.name, campaign.slurm
    if victim == "run":
        cluster("exec", "login", "kill", "-KILL", caller(campaign.house, name), state=slurm)
    elif victim == "snakemake":
        login(slurm, f"pkill -KILL -f 'bin/[s]nakemake .*{name}.yaml'")
    elif victim == "slurmctld":
        kill_slurmctld(slurm)
        time.sleep(3)
        cluster("exec", "login", "slurmctld", state=slurm)
    elif victim == "kernel":  # likwid-pin calls it by its name alone
        cluster("exec", "rack-J01", "pkill", "-KILL", "-x", "coherence", state=slurm)
    else:
        words = {"node-run": "kernels/[n]ode-run .*--node rack-J01", "slurmd": "[s]lurmd -b"}
        cluster("exec", "rack-J01", "pkill", "-KILL", "-f", words[victim], state=slurm)


def reached(campaign: Campaign, phase: str) -> None:
    """Wait for a phase of the call."""
    if phase == "submitting":
        wait_for(lambda: bool(login(campaign.slurm, "squeue --noheader")))
    elif phase == "running":
        campaign.measuring("rack-J01")
    else:
        wait_for((campaign.folder / "fleet.json").exists)


CASES = [
    (victim, phase)
    for phase in ("submitting", "running", "judging")
    for victim in ("run", "snakemake", "node-run", "kernel", "slurmd", "slurmctld")
    if phase == "running" or victim in ("run", "snakemake", "slurmctld")
]
QUICK = {("run", "running"), ("snakemake", "submitting")}


@pytest.mark.parametrize(
    ("victim", "phase"),
    [pytest.param(*case, marks=[] if case in QUICK else pytest.mark.long, id="-".join(case)) for case in CASES],
)
def test_a_killed_process_costs_nothing(house: Path, slurm: Path, victim: str, phase: str) -> None:
    campaign = Campaign(house, slurm, f"{victim}-{phase}", passes=40)
    process = campaign.call()
    reached(campaign, phase)
    kill(campaign, victim)
    output = process.communicate(timeout=300)[0]
    assert "Traceback" not in output
    if victim in ("run", "snakemake"):
        assert process.returncode != 0
    elif process.returncode:
        assert process.returncode == node_status.read(campaign.folder).code == 1, output
        assert "Not finished: rack-J01 " in output.splitlines()[-1]
    if victim == "slurmd":
        cluster("exec", "rack-J01", "slurmd", "-b", "-N", "rack-J01", state=slurm)
        reach(slurm, {"rack-J01": "idle"})
    campaign.done()
    assert campaign.outcomes() == dict.fromkeys(NODES, "complete")
    campaign.once(*NODES)
    assert node_status.read(campaign.folder).counts == {"measured": len(NODES)}
    # a controller that was killed takes up its former state, and hears from the nodes that these jobs have ended
    wait_for(lambda: login(slurm, "squeue --noheader") == "", 120)
    nothing_is_left(campaign)


def test_cancelled_jobs_are_not_measured(house: Path, slurm: Path) -> None:
    campaign = Campaign(house, slurm, "cancelled", passes=400)
    process = campaign.call()
    campaign.measuring(*NODES)
    login(slurm, "scancel -u $(id -un)")
    output = campaign.done(process, code=1)
    assert "0 of 3 nodes came back" in output and "NOT MEASURED" not in output.splitlines()[-1]
    status = node_status.read(campaign.folder)
    assert set(status.counts) <= {"failed", "interrupted"} and status.code == 1
    nothing_is_left(campaign)


def test_a_hang_up_leaves_the_jobs_to_the_next_call(house: Path, slurm: Path) -> None:
    campaign = Campaign(house, slurm, "hung-up", passes=120)
    process = campaign.call()
    campaign.measuring(*NODES)
    jobs = login(slurm, "squeue --noheader -o %i").split()
    cluster("exec", "login", "kill", "-HUP", caller(house, "hung-up"), state=slurm)
    output = process.communicate(timeout=120)[0]
    assert process.returncode == 128 + signal.SIGHUP
    assert "Its Slurm jobs go on, and the next call follows them." in output.splitlines()[-1]
    assert login(slurm, "squeue --noheader -o %i").split() == jobs
    shown = json.loads(login(slurm, f"cd {house} && nodeprint status {campaign.folder} --json"))
    assert shown["counts"] == {"running": 3} and not shown["followed"]
    campaign.done()
    campaign.once(*NODES)
    nothing_is_left(campaign)


def test_two_campaigns_from_one_checkout_and_node_lists(house: Path, slurm: Path) -> None:
    first, second = (Campaign(house, slurm, name, passes=10) for name in ("both-1", "both-2"))
    calls = [first.call(), second.call()]
    output = [campaign.done(call) for campaign, call in zip((first, second), calls, strict=True)]
    assert not any("another call is at work" in text for text in output)
    for campaign in (first, second):
        campaign.once(*NODES)
    again = subprocess.run(
        [CLUSTER, "exec", "login", *first.command, "--again", "cn-n,cn[03]"],
        cwd=house, env=environment() | {"CLUSTER_STATE": str(slurm)}, capture_output=True, text=True, timeout=300,
        check=False,
    )  # fmt: skip
    assert again.returncode == 0, again.stdout + again.stderr
    jobs = {node: len([*(first.folder / "nodes" / node).glob("job*")]) for node in NODES}
    assert jobs == {"rack-J01": 1, "cn-n": 2, "cn03": 2}
    assert [outcome(first.folder, node, 2) for node in ("cn-n", "cn03")] == ["complete", "complete"]
    nothing_is_left(first)


def test_a_controller_that_is_away_at_the_beginning_is_waited_for(house: Path, slurm: Path) -> None:
    campaign = Campaign(house, slurm, "away-first", passes=3)
    kill_slurmctld(slurm)
    process = campaign.call()
    assert process.stdout is not None
    line = process.stdout.readline()
    cluster("exec", "login", "slurmctld", state=slurm)
    assert line.startswith("nodeprint: no answer from Slurm"), line
    campaign.done(process)
    campaign.once(*NODES)
