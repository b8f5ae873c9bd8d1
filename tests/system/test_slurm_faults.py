"""What may happen to a campaign on a real Slurm: after each fault what was measured is there once, what was not has its
true reason, and nothing is left behind. The nodes have odd names, Slurm forgets jobs after two seconds and gives little
memory by default."""

import json
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from nodeprint.data.format import records
from tests.support import statuses
from tests.support.cluster_campaigns import Campaign, caller, nothing_is_left, outcome, verdicts
from tests.support.made_records import record_files
from tests.support.paced_kernel import PACED, paced  # noqa: F401 (a fixture)
from tests.support.real_parts import ROOT, environment, need, small_file_system
from tests.support.virtual_cluster import CLUSTER, cluster, kill_slurmctld, login, reach, up
from tests.support.waiting import wait_for

pytestmark = [pytest.mark.machine, pytest.mark.usefixtures("paced")]

NODES = ("rack-J01", "cn-n", "cn03")


@pytest.fixture(scope="module")
def slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A cluster of three nodes; its state folder."""
    lines = ("MinJobAge=2", "DefMemPerNode=100", "PartitionName=slow Nodes=cn03 MaxTime=1")
    state = up(tmp_path_factory.mktemp("faults") / "state", len(NODES), *lines, names=NODES)
    yield state
    cluster("down", state=state)


def test_a_killed_login_two_calls_at_once_and_a_controller_that_is_away(house: Path, slurm: Path) -> None:
    campaign = Campaign(house, slurm, "killed", passes=40)
    first = campaign.call()
    campaign.measuring("rack-J01")
    jobs = login(slurm, "squeue --noheader -o %i").split()
    assert len(jobs) == 3
    memory = login(slurm, f"scontrol -o show job {jobs[0]}")
    assert "MinMemoryNode=0 " in memory, "all of it, whatever DefMemPerNode says"
    pid = caller(house, "killed")
    cluster("exec", "login", "sh", "-c", f"kill -KILL $(pgrep -f '[k]illed.yaml') {pid}", state=slurm, check=False)
    first.communicate(timeout=60)
    calls = [campaign.call(), campaign.call()]
    campaign.measuring("cn-n")
    kill_slurmctld(slurm)
    time.sleep(8)
    cluster("exec", "login", "slurmctld", state=slurm)
    said = [campaign.done(process) for process in calls]
    assert any("another call is at work" in text for text in said)
    assert campaign.outcomes() == dict.fromkeys(NODES, "complete")
    campaign.once(*NODES)
    assert int(login(slurm, "sbatch --parsable -o /dev/null --wrap true")) == int(jobs[-1]) + 1, "none submitted twice"
    wait_for(lambda: login(slurm, "squeue --noheader") == "", "an empty queue")
    nothing_is_left(campaign)


@pytest.mark.long
def test_a_node_that_crashes_costs_itself_alone_and_is_measured_in_a_new_job(house: Path, slurm: Path) -> None:
    campaign = Campaign(house, slurm, "crashed", passes=16)
    process = campaign.call()
    campaign.measuring("cn-n")
    kept = len(campaign.cut("cn-n"))
    cluster("crash", "cn-n", state=slurm)
    output = campaign.done(process, code=1)
    assert kept == 1
    assert [outcome(campaign.folder, node) for node in ("rack-J01", "cn03")] == ["complete", "complete"]
    # Slurm forgets in two seconds: its own word where a poll came in time, else the state of the node
    lost = ("NODE_FAIL, the node was lost", "the node is down*: Not responding")
    assert any(text in campaign.reason("cn-n") for text in lost), campaign.reason("cn-n")
    assert "node-run: run 1 of 1: coherence-cas" in campaign.reason("cn-n")
    assert "2 of 3 nodes came back" in output
    fleet = {node["node"]: node for node in json.loads((campaign.folder / "store/fleet.json").read_text())["nodes"]}
    problems = " ".join(fleet["cn-n"]["problems"])
    assert any(text in problems for text in lost), "also where a part is judged"
    assert fleet["cn03"]["problems"] == []
    cluster("start", "cn-n", state=slurm)
    reach(slurm, {"cn-n": "idle"})
    campaign.done()
    # what the boot before has begun stays as it is
    assert [len(campaign.cut(node)) for node in NODES] == [0, 1, 0]
    campaign.once("rack-J01", "cn03")
    campaign.once("cn-n", job=2)
    nothing_is_left(campaign)


@pytest.mark.long
def test_a_read_only_folder_a_late_outcome_and_a_node_without_python(house: Path, slurm: Path) -> None:
    """The login node does not see what rack-J01 wrote until long after its job, and cn-n has no Python."""
    campaign = Campaign(house, slurm, "hidden", passes=16)
    folder, hidden = campaign.folder, campaign.folder / "nodes/rack-J01/job1"
    folder.mkdir(parents=True)
    python = f"{ROOT}/.venv"
    cluster(
        "exec", "cn03", "sh", "-c", f"mount --bind {folder} {folder} && mount -o remount,ro,bind {folder}", state=slurm
    )
    cluster("exec", "cn-n", "mount", "-t", "tmpfs", "none", python, state=slurm)
    try:
        process = campaign.call()
        campaign.measuring("rack-J01")
        cluster("exec", "login", "mount", "-t", "tmpfs", "none", hidden, state=slurm)
        wait_for(
            lambda: (hidden / "status.json").exists() and login(slurm, "squeue --noheader") == "",
            "the end of all jobs",
        )
        time.sleep(4)
        assert process.poll() is None, "a job that left the queue has time to show its outcome"
        cluster("exec", "login", "umount", hidden, state=slurm)
        output = campaign.done(process, code=1)
    finally:
        cluster("exec", "cn03", "umount", folder, state=slurm)
        cluster("exec", "cn-n", "umount", python, state=slurm)
    assert "2 of 3 nodes came back" in output
    why = campaign.reason("cn03")
    assert f"it wrote nothing; does the node see {folder}/nodes/cn03/job1, and may it write there?" in why
    campaign.once("rack-J01", "cn-n")
    nothing_is_left(campaign)


@pytest.mark.long
def test_nodes_that_crash_before_a_call_and_between_two_runs(house: Path, slurm: Path) -> None:
    campaign = Campaign(house, slurm, "crashes", passes=16, unavailable_minutes=0.1)
    campaign.config.write_text(campaign.config.read_text().replace('"runs": 1', '"runs": 2'))
    cluster("crash", "cn03", state=slurm)
    try:
        process = campaign.call()
        packed = campaign.folder / "nodes/cn-n/job1/run1.tar.zst"
        wait_for(packed.exists, f"{packed}", 600)
        cluster("crash", "cn-n", state=slurm)
        before = packed.read_bytes()
        output = campaign.done(process, code=1)
    finally:
        for node in ("cn03", "cn-n"):
            cluster("start", node, state=slurm, check=False)
    assert "1 of 3 nodes came back" in output and outcome(campaign.folder, "rack-J01") == "complete"
    for node in ("cn03", "cn-n"):
        words = ("NODE_FAIL, the node was lost", "the node is down*", "for the node, which is down")
        assert any(text in campaign.reason(node) for text in words), campaign.reason(node)
    reach(slurm, dict.fromkeys(NODES, "idle"))
    campaign.done()
    jobs = {"rack-J01": "job1", "cn03": "job1", "cn-n": "job2"}  # cn03 had not begun when it crashed
    for node, job in jobs.items():
        files = record_files(campaign.folder / "nodes" / node / job)
        assert [file.header["run"] for file in files] == [1, 2] and all(file.complete for file in files)
        assert all(list(file.pairs["pass"]) == list(range(16)) for file in files), node
    assert packed.read_bytes() == before, "the job of the boot before stays as it was"
    nothing_is_left(campaign)


@pytest.mark.long
def test_a_job_that_is_requeued_is_continued(house: Path, slurm: Path) -> None:
    """Ours are submitted with --no-requeue; an administrator may requeue them all the same."""
    campaign = Campaign(house, slurm, "requeued", passes=40)
    process = campaign.call()
    campaign.measuring("cn03")
    rows = [line.split("\t") for line in (campaign.folder / "launch/jobs.tsv").read_text().splitlines()]
    job = next(row[2] for row in rows if row[0] == "cn03")
    refused = cluster("exec", "login", "scontrol", "requeue", job, state=slurm, check=False)
    assert refused.returncode != 0 and process.poll() is None
    login(slurm, f"scontrol update jobid={job} requeue=1 && scontrol requeue {job}")
    wait_for(lambda: "PENDING" in login(slurm, f"squeue --noheader -j {job} -o %T"), f"job {job} is requeued")
    login(slurm, f"scontrol update jobid={job} starttime=now")
    campaign.done(process)
    assert campaign.outcomes() == dict.fromkeys(NODES, "complete")
    campaign.once(*NODES)
    nothing_is_left(campaign)


@pytest.mark.long
def test_nodes_of_different_size_and_cpus_that_slurm_keeps(house: Path, tmp_path: Path) -> None:
    """task/affinity confines a job to the CPUs that Slurm gives it, as a cgroup would."""
    conf = (
        "NodeName=cn02 CPUs=1 CoresPerSocket=1",
        "NodeName=cn03 CoreSpecCount=1",
        "NodeName=cn04 CoreSpecCount=1",
        "AllowSpecResourcesUsage=YES",
        "PartitionName=whole Nodes=cn04",
    )
    state = up(tmp_path / "state", 4, *conf)
    try:
        said, allowed = "", {}
        for name, options in (
            ("sizes", {"partition": "main"}),
            ("given", {"partition": "whole", "extra": "--core-spec=0"}),
        ):
            config = {
                "campaign": name,
                "preset": "test",
                "measure": ["clock-alone"],
                "runs": 1,
                "launch": "slurm",
                "recheck": False,
                "slurm": {"deadline_hours": 1, "poll_seconds": 2} | options,
            }
            (house / f"{name}.yaml").write_text(json.dumps(config))
            done = subprocess.run(
                [CLUSTER, "exec", "login", "workflow/run", "--config", f"{name}.yaml"],
                cwd=house,
                env=environment() | {"CLUSTER_STATE": str(state)},
                capture_output=True,
                text=True,
                timeout=300,
                check=False,
            )
            assert done.returncode == 0, done.stdout + done.stderr
            said += done.stdout + done.stderr
            for path in (house / "results" / name / "nodes").glob("*/job1/status.json"):
                status = json.loads(path.read_text())
                allowed[name, status["node"]] = (status["outcome"], status["cpus_allowed"], status["cpus_expected"])
    finally:
        cluster("down", state=state)
    assert allowed == {
        ("sizes", "cn01"): ("complete", 2, 2),
        ("sizes", "cn02"): ("complete", 1, 1),
        ("sizes", "cn03"): ("complete", 1, 1),
        ("sizes", "cn04"): ("complete", 1, 1),
        ("given", "cn04"): ("complete", 2, 1),
    }
    assert "--core-spec=0" in said
    found = verdicts(house / "results/sizes")
    assert {node["outcome"] for node in found.values()} == {"INCONCLUSIVE"}, "of one machine, and compared by CPU 0"


@pytest.mark.long
def test_a_controller_that_is_away_for_longer_than_jobs_take(house: Path, slurm: Path) -> None:
    campaign = Campaign(house, slurm, "away", passes=40, jobs_at_a_time=2)
    process = campaign.call()
    wait_for(lambda: any(campaign.cut(node) for node in NODES), "the first records")
    kill_slurmctld(slurm)
    time.sleep(70)
    assert process.poll() is None, "nothing is given up"
    cluster("exec", "login", "slurmctld", state=slurm)
    said = campaign.done(process)
    assert "no answer from Slurm" in said and "Slurm answers again" in said
    assert campaign.outcomes() == dict.fromkeys(NODES, "complete")
    campaign.once(*NODES)
    nothing_is_left(campaign)


@pytest.mark.long
def test_slurmd_and_its_step_killed(house: Path, slurm: Path) -> None:
    """node-run goes on without them, and what it measured counts."""
    campaign = Campaign(house, slurm, "daemons", passes=30)
    process = campaign.call()
    campaign.measuring("cn03")
    cluster("exec", "cn03", "pkill", "-KILL", "slurm", state=slurm)
    output = process.communicate(timeout=600)[0]
    statuses.agree(campaign.folder, process.returncode, output)
    assert [outcome(campaign.folder, node) for node in ("rack-J01", "cn-n")] == ["complete", "complete"]
    cluster("exec", "cn03", "slurmd", "-b", "-N", "cn03", state=slurm)
    reach(slurm, {"cn03": "idle"})
    campaign.done()
    campaign.once(*NODES)
    nothing_is_left(campaign)


@pytest.mark.long
def test_a_time_limit_a_canceled_job_and_a_node_that_does_not_see_the_programs(house: Path, slurm: Path) -> None:
    campaign = Campaign(house, slurm, "limits", passes=5000, minutes=1)
    cluster("exec", "cn03", "mount", "-t", "tmpfs", "none", house / "kernels", state=slurm)
    try:
        process = campaign.call()
        campaign.measuring("rack-J01", "cn-n")
        rows = [line.split("\t") for line in (campaign.folder / "launch/jobs.tsv").read_text().splitlines()]
        cluster("exec", "login", "scancel", next(row[2] for row in rows if row[0] == "cn-n"), state=slurm)
        campaign.done(process, code=1)
    finally:
        cluster("exec", "cn03", "umount", house / "kernels", state=slurm)
    kept = {node: records.read(campaign.cut(node)[0]).pairs["pass"] for node in ("rack-J01", "cn-n")}
    assert all(len(passes) for passes in kept.values())
    # Slurm forgets after two seconds: its word is there where a poll came in time, node-run's always
    for node in ("rack-J01", "cn-n"):
        assert "Slurm job" in campaign.reason(node) and "node-run: run 1 of 1" in campaign.reason(node)
    assert "node-run: not found" in campaign.reason("cn03"), campaign.reason("cn03")
    nothing_is_left(campaign)


@pytest.mark.long
def test_a_node_drained_while_its_job_waits(house: Path, slurm: Path) -> None:
    campaign = Campaign(house, slurm, "drained-late", passes=3, unavailable_minutes=0.1)
    before = login(slurm, "sbatch --parsable --exclusive --nodelist=cn03 -o /dev/null --wrap 'sleep 1000'").strip()
    process = campaign.call()
    submitted = f"cat {campaign.folder}/launch/jobs.tsv 2>/dev/null"
    wait_for(lambda: "cn03\t1\t" in login(slurm, submitted), "the job of cn03 is submitted")
    cluster("exec", "login", "scontrol", "update", "nodename=cn03", "state=drain", "reason=fan 2", state=slurm)
    login(slurm, f"scancel {before}")
    output = campaign.done(process, code=1)
    cluster("exec", "login", "scontrol", "update", "nodename=cn03", "state=resume", state=slurm)
    assert "2 of 3 nodes came back" in output
    assert "which is drained: fan 2; it was canceled" in campaign.reason("cn03")
    campaign.done()
    campaign.once(*NODES)
    nothing_is_left(campaign)


@pytest.mark.long
def test_a_shared_folder_that_is_full(house: Path, tmp_path: Path) -> None:
    folder = house / "results" / "full"
    folder.parent.mkdir(exist_ok=True)
    with small_file_system(folder, "48k"):
        state = up(tmp_path / "state", 1)
        try:
            campaign = Campaign(house, state, "full", passes=3)
            first = campaign.call()
            said = first.communicate(timeout=600)[0]
            assert first.returncode != 0 and "Traceback" not in said, said
            assert "cannot be written" in said or "No space left" in said, said
            subprocess.run(["mount", "-o", "remount,size=64m", folder], check=True)
            campaign.done()
            assert outcome(folder, "cn01") == "complete"
        finally:
            cluster("down", state=state)


@pytest.mark.long
def test_accounting_knows_what_slurm_forgot(house: Path, tmp_path: Path) -> None:
    need("slurmdbd", "mariadbd", "mariadb-install-db")
    state = up(tmp_path / "state", 3, "MinJobAge=2", accounting=True)
    try:
        campaign = Campaign(house, state, "accounted", passes=60)
        process = campaign.call()
        campaign.measuring("cn01")
        rows = [line.split("\t") for line in (campaign.folder / "launch/jobs.tsv").read_text().splitlines()]
        job = next(row[2] for row in rows if row[0] == "cn01")
        login(state, "pkill -STOP -f 'bin/[s]nakemake'")  # so that it asks when accounting alone knows the job
        login(state, f"scancel {job}")
        wait_for(lambda: "JobState" not in login(state, f"scontrol show job {job}"), f"Slurm forgets job {job}")
        login(state, "pkill -CONT -f 'bin/[s]nakemake'")
        output = campaign.done(process, code=1)
        assert "2 of 3 nodes came back" in output, output
        assert f"Slurm job {job}: CANCELLED" in campaign.reason("cn01"), campaign.reason("cn01")
        assert "does not know any more" not in campaign.reason("cn01")
        campaign.done()
        campaign.once("cn01", "cn02", "cn03")
        listed = login(state, "sacct -n -X -P -o State").split("\n")
        assert sum(row.startswith("CANCELLED") for row in listed) == 1 and listed.count("COMPLETED") == 3
        nothing_is_left(campaign)
    finally:
        cluster("down", state=state)


@pytest.mark.long
def test_a_simulated_fleet_through_a_real_slurm_names_the_planted_core() -> None:
    need("slurmctld", root="start a virtual cluster")
    done = subprocess.run(
        [ROOT / "tests/system/cluster/run", "4", "rome-2x64", "node002: core 37 +8%"],
        env=environment(),
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "recheck 1 of at most 2" in done.stderr
    assert "SIMULATED: FAIL (DEVIATIONS): " in done.stdout
    found = verdicts(ROOT / "results/cluster-4-rome-2x64")
    assert found["cn03"]["outcome"] == "DEVIATES" and "cn03: FAIL (DEVIATES). Core 37 (CPU 37)" in done.stdout
    assert all(node["outcome"] != "DEVIATES" for name, node in found.items() if name != "cn03")
