"""SIGKILL of each process of a call, at each phase, on a real Slurm: then the same call again. Nothing is measured
twice or lost, nothing waits for who is gone, and all statuses agree."""

import json
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from nodeprint.campaign import node_status
from nodeprint.machine.tree import open_tree
from tests.support import statuses
from tests.support.cluster_campaigns import Campaign, caller, nothing_is_left, outcome
from tests.support.made_records import record_files
from tests.support.paced_kernel import paced  # noqa: F401 (a fixture)
from tests.support.real_parts import environment
from tests.support.replayed_fleet import SUSPECT, fleet, replaying  # noqa: F401 (fixtures)
from tests.support.virtual_cluster import CLUSTER, cluster, kill_slurmctld, login, reach, up
from tests.support.waiting import wait_for

pytestmark = [pytest.mark.machine, pytest.mark.usefixtures("paced")]


NODES = ("rack-J01", "cn-n", "cn03")


@pytest.fixture(scope="module")
def slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A cluster of three nodes; its state folder."""
    state = up(tmp_path_factory.mktemp("killed") / "state", len(NODES), "MinJobAge=2", names=NODES)
    yield state
    cluster("down", state=state)


def kill(campaign: Campaign, victim: str) -> None:
    """SIGKILL for a process of the call; of those on a node for that of rack-J01."""
    name, slurm = campaign.folder.name, campaign.slurm
    if victim == "make":
        login(slurm, f"pkill -KILL -f '[m]ake .*CONFIG={name}.yaml'")
    elif victim == "run":
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


def start_slurmd(slurm: Path) -> None:
    """Start the slurmd of rack-J01 again."""
    cluster("exec", "rack-J01", "slurmd", "-b", "-N", "rack-J01", state=slurm)


#: sbatch as on a busy controller: it answers late.
LATE_SBATCH = """\
#!/bin/sh
touch {mark}
sleep 1
exec {sbatch} "$@"
"""


def prepare(campaign: Campaign, victim: str, phase: str) -> None:
    """Let the call be as its victim and phase need it."""
    if victim == "make":  # set-up is not what is killed here
        set_up = ["-o", "able-to-run", "-o", "kernels"]
        campaign.command = ["make", *set_up, "run", f"CONFIG={campaign.config.name}", "FAIL_ON=nothing"]
    if phase == "submitting":
        sbatch = campaign.tmp / "bin/sbatch"
        sbatch.parent.mkdir()
        sbatch.write_text(LATE_SBATCH.format(mark=campaign.tmp / "submitting", sbatch=shutil.which("sbatch")))
        sbatch.chmod(0o755)
        campaign.path = f"{sbatch.parent}:{campaign.path}"
    elif phase == "pending":
        for node in NODES:
            login(campaign.slurm, f"sbatch -J before --exclusive --nodelist={node} -o /dev/null --wrap 'sleep 600'")


def reached(campaign: Campaign, phase: str) -> None:
    """Wait for a phase of the call."""
    if phase == "submitting":
        wait_for((campaign.tmp / "submitting").exists, "sbatch is called")
    elif phase == "pending":
        pending = "squeue --noheader -t PENDING -o %j"
        wait_for(lambda: login(campaign.slurm, pending).count("nodeprint-") == len(NODES), "all jobs wait")
    elif phase == "running":
        campaign.measuring("rack-J01")
    elif phase == "completing":
        wait_for(lambda: any(campaign.folder.glob("nodes/*/job1/status.json")), "the first outcome")
    else:
        wait_for((campaign.folder / "store/fleet.json").exists, "fleet.json")


CALL = ("make", "run", "snakemake")
CASES = [
    *((victim, "submitting") for victim in (*CALL, "slurmctld")),
    *((victim, "pending") for victim in (*CALL, "slurmd", "slurmctld")),
    *((victim, "running") for victim in (*CALL, "node-run", "kernel", "slurmd", "slurmctld")),
    *((victim, "completing") for victim in (*CALL, "slurmd", "slurmctld")),
    *((victim, "judging") for victim in (*CALL, "slurmctld")),
]
#: Where most can be lost; a call on this machine is killed while it measures by test_workflow.
QUICK = {("snakemake", "submitting"), ("make", "running")}


@pytest.mark.parametrize(
    ("victim", "phase"),
    [pytest.param(*case, marks=[] if case in QUICK else pytest.mark.long, id="-".join(case)) for case in CASES],
)
def test_a_killed_process_costs_nothing(house: Path, slurm: Path, victim: str, phase: str) -> None:
    campaign = Campaign(house, slurm, f"{victim}-{phase}", passes=16)
    prepare(campaign, victim, phase)
    first = campaign.call()
    reached(campaign, phase)
    kill(campaign, victim)
    if phase == "pending":
        if victim == "slurmd":
            start_slurmd(slurm)
        login(slurm, "scancel --name=before")
    second = campaign.call() if victim in CALL else None
    output = first.communicate(timeout=600)[0]
    assert "Traceback" not in output
    if victim in CALL:
        assert first.returncode != 0
    else:
        statuses.agree(campaign.folder, first.returncode, output)
        assert first.returncode == 0 or "Not finished: rack-J01 " in output.splitlines()[-1]
    if victim == "slurmd" and phase != "pending":
        start_slurmd(slurm)
        reach(slurm, {"rack-J01": "idle"})
    campaign.done(second)
    assert campaign.outcomes() == dict.fromkeys(NODES, "complete")
    campaign.once(*NODES)
    assert node_status.read(campaign.folder).counts == {"measured": len(NODES)}
    # a controller that was killed takes up its former state, and hears from the nodes that these jobs have ended
    wait_for(lambda: login(slurm, "squeue --noheader") == "", "an empty queue", 120)
    shutil.rmtree(campaign.tmp / "bin", ignore_errors=True)
    nothing_is_left(campaign)


@pytest.fixture(scope="module")
def five_nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A cluster of the nodes of the simulated fleet."""
    names = [f"node{number:03}" for number in range(5)]
    state = up(tmp_path_factory.mktemp("recheck") / "state", len(names), "MinJobAge=2", names=names)
    yield state
    cluster("down", state=state)


@pytest.mark.long
@pytest.mark.usefixtures("replaying")
@pytest.mark.parametrize("victim", [*CALL, "slurmctld"])
def test_killed_at_the_recheck(house: Path, five_nodes: Path, victim: str) -> None:
    """The suspect and two others have one second job each, and no other node has one."""
    campaign = Campaign(house, five_nodes, f"recheck-{victim}", passes=3)
    prepare(campaign, victim, "recheck")
    config = json.loads(campaign.config.read_text()) | {"recheck": True, "recheck_minutes": 0.05, "runs": 2}
    campaign.config.write_text(json.dumps(config))
    first = campaign.call()
    rounds = campaign.folder / "launch/recheck1.tsv"
    wait_for(lambda: rounds.exists() and SUSPECT in rounds.read_text(), "the second measurement")
    kill(campaign, victim)
    second = campaign.call() if victim in CALL else None
    output = first.communicate(timeout=600)[0]
    assert "Traceback" not in output
    if victim not in CALL:
        statuses.agree(campaign.folder, first.returncode, output)
    campaign.done(second)
    jobs = {node.name: len([*node.glob("job*")]) for node in (campaign.folder / "nodes").iterdir()}
    assert jobs[SUSPECT] == 2 and sorted(jobs.values()) == [1, 1, 2, 2, 2], jobs
    for job in campaign.folder.glob("nodes/*/job*"):
        assert json.loads((job / "status.json").read_text())["outcome"] == "complete"
        assert [(file.header["run"], file.complete) for file in record_files(job)] == [(1, True), (2, True)]
    assert json.loads((campaign.folder / "verdict.json").read_text())["nodes"][SUSPECT]["outcome"] == "DEVIATES"
    wait_for(lambda: login(five_nodes, "squeue --noheader") == "", "an empty queue", 120)
    nothing_is_left(campaign)


@pytest.mark.long
@pytest.mark.parametrize("canceled", [NODES[:1], NODES], ids=["one", "all"])
def test_canceled_jobs_are_not_measured_and_continued(house: Path, slurm: Path, canceled: tuple[str, ...]) -> None:
    campaign = Campaign(house, slurm, f"canceled-{len(canceled)}", passes=24)
    process = campaign.call()
    campaign.measuring(*NODES)
    login(slurm, " ".join(f"scancel $(squeue -h -w {node} -o %i);" for node in canceled))
    output = campaign.done(process, code=1)
    assert f"{len(NODES) - len(canceled)} of 3 nodes came back" in output
    status = node_status.read(campaign.folder)
    assert {node.node for node in status.nodes if node.standing in ("failed", "interrupted")} == set(canceled)
    nothing_is_left(campaign)
    campaign.done()
    campaign.once(*NODES)
    nothing_is_left(campaign)


@pytest.mark.long
def test_a_node_that_is_booted_again_gets_a_new_job(house: Path, slurm: Path, tmp_path: Path) -> None:
    """With another command line of its kernel, while its job is unfinished."""
    campaign = Campaign(house, slurm, "rebooted", passes=40)
    process = campaign.call()
    campaign.measuring(*NODES)
    login(slurm, "scancel $(squeue -h -w rack-J01 -o %i)")
    campaign.done(process, code=1)
    job = campaign.folder / "nodes/rack-J01/job1"
    before = {path: path.read_bytes() for path in (*job.glob("run1/*"), job / "survey.tar.gz")}
    facts = {"proc/sys/kernel/random/boot_id": "b007b007-0000-4000-8000-000000000001", "proc/cmdline": "quiet iommu=pt"}
    for path, text in facts.items():
        (tmp_path / Path(path).name).write_text(text + "\n")
        cluster("exec", "rack-J01", "mount", "--bind", tmp_path / Path(path).name, f"/{path}", state=slurm)
    try:
        output = campaign.done()
        assert "as they were booted again within the former: rack-J01" in output
    finally:
        for path in facts:
            cluster("exec", "rack-J01", "umount", f"/{path}", state=slurm)
    assert {path: path.read_bytes() for path in before} == before
    assert [len([*campaign.folder.glob(f"nodes/{node}/job*")]) for node in NODES] == [2, 1, 1]
    survey = open_tree(job.with_name("job2") / "survey.tar.gz")
    assert {path: (survey.read_text(path) or "").strip() for path in facts} == facts
    (records,) = record_files(job.with_name("job2"))
    assert records.complete and records.header["boot_id"] == facts["proc/sys/kernel/random/boot_id"]
    campaign.once("cn-n", "cn03")
    nothing_is_left(campaign)


@pytest.mark.long
def test_a_hang_up_leaves_the_jobs_to_the_next_call(house: Path, slurm: Path) -> None:
    campaign = Campaign(house, slurm, "hung-up", passes=30)
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


@pytest.mark.long
def test_two_campaigns_from_one_checkout_and_node_lists(house: Path, slurm: Path) -> None:
    first, second = (Campaign(house, slurm, name, passes=3) for name in ("both-1", "both-2"))
    calls = [first.call(), second.call()]
    output = [campaign.done(call) for campaign, call in zip((first, second), calls, strict=True)]
    assert not any("another call is at work" in text for text in output)
    for campaign in (first, second):
        campaign.once(*NODES)
    again = subprocess.run(
        [CLUSTER, "exec", "login", *first.command, "--again", "cn-n,cn[03]"],
        cwd=house,
        env=environment() | {"CLUSTER_STATE": str(slurm)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert again.returncode == 0, again.stdout + again.stderr
    jobs = {node: len([*(first.folder / "nodes" / node).glob("job*")]) for node in NODES}
    assert jobs == {"rack-J01": 1, "cn-n": 2, "cn03": 2}
    assert [outcome(first.folder, node, 2) for node in ("cn-n", "cn03")] == ["complete", "complete"]
    nothing_is_left(first)


@pytest.mark.long
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
