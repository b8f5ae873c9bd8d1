"""The main job through a real Slurm of three virtual nodes, and that nothing of it stays behind."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from nodeprint.campaign import node_sheet
from nodeprint.campaign.launchers import slurm as slurm_options
from nodeprint.campaign.node_sheet import Node
from nodeprint.data.format import records
from nodeprint.errors import NodeprintError
from nodeprint.settings import config
from tests.support.cluster_campaigns import caller, hosts, main_job, outcome, text_of, verdicts
from tests.support.made_records import one_record_file
from tests.support.paced_kernel import PACED, paced  # noqa: F401 (a fixture)
from tests.support.real_parts import environment, need, need_mount_namespace
from tests.support.virtual_cluster import CLUSTER, cluster, reach, scontrol, up
from tests.support.waiting import wait_for

pytestmark = pytest.mark.machine

NODES = ("cn01", "cn02", "cn03")


@pytest.fixture(scope="module")
def slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A cluster of three nodes; its state folder."""
    state = up(tmp_path_factory.mktemp("cluster") / "state", len(NODES))
    yield state
    cluster("down", state=state)


@pytest.fixture(scope="module")
def crashing(house: Path) -> Iterator[Path]:
    """The house with a kernel that crashes on the host that kernels/build/crash names; that file."""
    kernel, crash = house / "kernels/build/coherence", house / "kernels/build/crash"
    real = kernel.rename(kernel.with_name("coherence.real"))
    kernel.write_text(
        f'#!/bin/sh\ncase $* in *--out*) [ "$(cat {crash})" != "$(uname -n)" ] || kill -SEGV $$ ;; esac\n'
        f'exec {real} "$@"\n'
    )
    kernel.chmod(0o755)
    crash.write_text("nowhere")
    yield crash
    real.rename(kernel)  # other tests use the house too


def test_a_crashing_kernel_a_drained_node_and_a_bundle_of_another_host(
    house: Path, slurm: Path, crashing: Path
) -> None:
    need("pdftotext")
    config = {"campaign": "three", "launch": "slurm", "slurm": {"deadline_hours": 1, "poll_seconds": 2}}
    campaign = house / "results/three"

    crashing.write_text("cn02")
    first = main_job(house, slurm, config)
    crashing.write_text("nowhere")
    assert first.returncode == 1, first.stdout + first.stderr
    assert "Not finished: cn02 failed (coherence-cas: killed by signal 11" in first.stderr.splitlines()[-1]
    assert [outcome(campaign, node) for node in NODES] == ["complete", "failed", "complete"]
    assert all(hosts(campaign, node) == {node} for node in ("cn01", "cn03"))
    found = verdicts(campaign)
    assert found["cn02"]["outcome"] == "NOT MEASURED"
    assert all(found[node]["outcome"] != "NOT MEASURED" for node in ("cn01", "cn03"))
    page = text_of(campaign)
    assert "cn02" in page
    assert "killed by signal 11" in page
    assert "node-run: run 1 of 2" in (campaign / "report/cluster.html").read_text()  # the end of its log
    assert {node.node: node.switch for node in node_sheet.read_sheet(campaign / "nodes.tsv")} == {
        "cn01": "leaf0",
        "cn02": "leaf0",
        "cn03": "leaf1",
    }

    # The next call tries the failed node again, and no other. A node that was taken out of service, asked for by name,
    # waits until the deadline, which is a minute, and not for ever; a campaign that begins then leaves it out.
    before = {p: p.stat().st_mtime_ns for node in ("cn01", "cn03") for p in (campaign / "nodes" / node).rglob("*.gz")}
    scontrol(slurm, "update", "nodename=cn03", "state=drain", "reason=DIMM 7 is bad")
    short = config | {"slurm": {"minutes": 1, "deadline_hours": 0.018, "poll_seconds": 2}}
    second = main_job(house, slurm, short, "--again", "cn03")
    a_campaign_without_a_drained_node(house, slurm)
    scontrol(slurm, "update", "nodename=cn03", "state=resume")
    assert second.returncode == 1, second.stdout + second.stderr
    assert {path: path.stat().st_mtime_ns for path in before} == before
    assert outcome(campaign, "cn02") == "complete"
    assert verdicts(campaign)["cn02"]["outcome"] != "NOT MEASURED"
    assert "DEADLINE" in (campaign / "nodes/cn03/job2/status.json").read_text()
    problems = {
        node["node"]: node["problems"] for node in json.loads((campaign / "store/fleet.json").read_text())["nodes"]
    }
    assert any("DEADLINE" in problem for problem in problems["cn03"])
    assert hosts(campaign, "cn03") == {"cn03"}

    # Records in the folder of a node that did not write them.
    drained = house / "results/drained"
    shutil.copytree(drained / "nodes/cn01", drained / "nodes/cn03")
    for command in ("judge", "report"):
        subprocess.run(["nodeprint", command, drained], cwd=house, env=environment(), check=True, capture_output=True)
    assert "written on host cn01" in json.dumps(verdicts(drained)["cn03"]["reasons"])
    page = text_of(drained)
    assert "cn03" in page
    assert "written on host cn01, not on cn03" in page


def a_campaign_without_a_drained_node(house: Path, slurm: Path) -> None:
    """A campaign `drained`, one job at a time, while cn03 is drained: it is left out, with Slurm's reason."""
    config = {"campaign": "drained", "slurm": {"jobs_at_a_time": 1, "deadline_hours": 1, "poll_seconds": 2}}
    campaign = house / "results/drained"
    named = ("--campaign", "drained", "--launch", "slurm", "--partition")  # as make hands them on, without YAML
    absent = main_job(house, slurm, config, *named, "nosuch")
    assert absent.returncode == 2 and "`make run LAUNCH=slurm PARTITION=x` with one of them" in absent.stderr
    done = main_job(house, slurm, config, *named, "main")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "partition: main" in (campaign / "config.yaml").read_text()
    rows = (line.split("\t") for line in (campaign / "launch/jobs.tsv").read_text().splitlines())
    assert sorted((row[0], row[3]) for row in rows) == [("cn01", "complete"), ("cn02", "complete")]
    assert all(hosts(campaign, node) == {node} for node in ("cn01", "cn02"))
    assert verdicts(campaign)["cn03"]["outcome"] == "NOT MEASURED"
    assert "DIMM 7 is bad" in text_of(campaign)
    assert not (campaign / "nodes/cn03").exists()


@pytest.mark.usefixtures("paced")
def test_an_interrupted_call_cancels_its_jobs_and_is_continued(house: Path, slurm: Path) -> None:
    name = "interrupted-jobs"
    config = {
        "campaign": name,
        "preset": "test",
        "measure": ["coherence-cas"],
        "runs": 1,
        "launch": "slurm",
        "recheck": False,
        "arguments": {"coherence-cas": f"--passes 24 {PACED}"},
        "slurm": {"nodes": "cn01", "deadline_hours": 1, "poll_seconds": 2},
    }
    (house / f"{name}.yaml").write_text(json.dumps(config))
    command = ["workflow/run", "--config", f"{name}.yaml"]
    process = subprocess.Popen(
        [CLUSTER, "exec", "login", *command],
        cwd=house,
        env=environment() | {"CLUSTER_STATE": str(slurm)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    records_of = house / "results" / name / "nodes/cn01/job1/run1"
    deadline = time.monotonic() + 600
    while not any('"pair"' in path.read_text() for path in records_of.glob("*.jsonl")):
        assert time.monotonic() < deadline, "nothing was measured in ten minutes"
        assert process.poll() is None, process.communicate()[0]
        time.sleep(0.05)
    cluster("exec", "login", "kill", "-INT", caller(house, name), state=slurm)
    said = process.communicate(timeout=600)[0]
    assert process.returncode == 130, said
    assert said.splitlines()[-1].startswith(f"nodeprint: interrupted: what was measured is kept in results/{name} ")
    assert "Its Slurm jobs were canceled" in said.splitlines()[-1]
    reach(slurm, {"cn01": "idle"})
    assert cluster("exec", "login", "squeue", "--noheader", state=slurm).stdout == ""
    (cut,) = records_of.glob("*.jsonl")
    kept = list(records.read(cut).pairs["latency_ns"])
    assert 0 < len(kept) < 24

    again = main_job(house, slurm, config)
    assert again.returncode == 0, again.stdout + again.stderr
    file = one_record_file(records_of.parent)
    assert file.complete
    assert len(file.headers) == 2, "the same file, continued once"
    assert list(file.pairs["latency_ns"][: len(kept)]) == kept


@pytest.fixture
def sleepy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A cluster of four nodes that Slurm may switch off and on; its state folder."""
    folder = tmp_path_factory.mktemp("sleepy")
    state = folder / "state"
    each = '#!/bin/sh\nexport PATH=$PATH:/usr/sbin:/sbin\nfor node in $(scontrol show hostnames "$1"); do\n'
    boot = f"{sys.executable} {CLUSTER} boot-here {state} $node </dev/null >>{state}/log/resume.log 2>&1"
    programs = {
        "SuspendProgram": f'kill -KILL "$(cat {state}/nodes/$node)"; rm {state}/nodes/$node',
        # Slurm counts seconds, and a node's uptime is rounded to them: one that is up within the second in which it was
        # asked to boot may be taken for one that did not, until ResumeTimeout
        "ResumeProgram": f"sleep 2; until {boot}; do sleep 1; done",
    }
    conf = ["SuspendTime=86400", "SuspendTimeout=2", "ResumeTimeout=200"]
    for name, body in programs.items():
        path = folder / name
        path.write_text(f"{each}    {body}\ndone\n")
        path.chmod(0o755)
        conf.append(f"{name}={path}")
    up(state, 4, *conf)
    yield state
    cluster("down", state=state)


@pytest.mark.long
def test_reserved_and_powered_down_nodes(house: Path, sleepy: Path) -> None:
    reserve = ["create", "reservation", "starttime=now", "duration=60", "users=root"]
    scontrol(sleepy, *reserve, "reservationname=upkeep", "nodes=cn02", "flags=maint")
    scontrol(sleepy, *reserve, "reservationname=course", "nodes=cn03")
    scontrol(sleepy, "update", "nodename=cn04", "state=power_down")
    reach(sleepy, {"cn01": "idle", "cn02": "maint", "cn03": "reserved", "cn04": "idle~"})

    def sheet(name: str, **selection: object) -> dict[str, Node]:
        path = house / f"{name}.yaml"
        path.write_text(json.dumps({"campaign": name, "launch": "slurm", "preset": "test", "slurm": selection}))
        command = ["nodeprint", "discover", "--config", path.name]
        done = subprocess.run(
            [CLUSTER, "exec", "login", *command],
            cwd=house,
            env=environment() | {"CLUSTER_STATE": str(sleepy)},
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        if done.returncode:
            raise NodeprintError(done.stderr)
        return {node.node: node for node in node_sheet.read_sheet(house / "results" / name / "nodes.tsv")}

    found = sheet("asleep-none")
    assert [name for name, node in found.items() if node.measure] == ["cn01"]
    assert all("name the reservation in slurm.reservation" in found[name].reason for name in ("cn02", "cn03"))
    assert "is powered down; set slurm.wake" in found["cn04"].reason
    assert [name for name, node in sheet("asleep-woken", wake=True).items() if node.measure] == ["cn01", "cn04"]
    for name, node in (("upkeep", "cn02"), ("course", "cn03")):
        assert {n: row.measure for n, row in sheet(f"asleep-{name}", reservation=name).items()} == {node: True}
    with pytest.raises(NodeprintError, match=r"slurm\.reservation: Reservation nosuch not found"):
        sheet("asleep-nosuch", reservation="nosuch")

    # A job in the reservation, and one that switches its node on, with the options that rule measure gives them.
    def submit(campaign: str, name: str, **selection: object) -> None:
        node = sheet(campaign, **selection)[name]
        settings = config.load(house / f"{campaign}.yaml").slurm
        words = ["--parsable", *slurm_options.sbatch_words(node, settings, minutes=5)]
        command = f"hostname >{house}/{campaign}.host"
        cluster("exec", "login", "sbatch", *words, "-o", house / f"{campaign}.log", "--wrap", command, state=sleepy)
        # `sbatch --wait` asks more and more rarely
        host = house / f"{campaign}.host"
        wait_for(lambda: host.exists() and host.read_text() == f"{name}\n", f"a job on {name}")

    submit("upkeep", "cn02", reservation="upkeep", deadline_hours=1, poll_seconds=2)
    assert "Reservation=upkeep" in cluster("exec", "login", "scontrol", "-o", "show", "job", state=sleepy).stdout
    submit("woken", "cn04", nodes="cn04", wake=True, deadline_hours=1, poll_seconds=2)
    reach(sleepy, {"cn04": "idle"})


def test_each_node_is_a_job_of_snakemake(house: Path, slurm: Path) -> None:
    """By Snakemake alone, with its own options: a part of the nodes, then all, and a summary of them."""
    config = {
        "campaign": "profile",
        "preset": "test",
        "measure": ["coherence-cas"],
        "runs": 1,
        "launch": "slurm",
        "recheck": False,
        "slurm": {"nodes": "cn[01-02]", "deadline_hours": 1, "poll_seconds": 2},
    }
    (house / "profile.yaml").write_text(json.dumps(config))
    campaign = house / "results/profile"

    def snakemake(*words: str) -> str:
        profile = ("snakemake", "--configfile", "profile.yaml", "--workflow-profile", "profiles/slurm")
        done = subprocess.run(
            [CLUSTER, "exec", "login", *profile, *words],
            cwd=house,
            timeout=300,
            check=False,
            text=True,
            env=environment() | {"CLUSTER_STATE": str(slurm)},
            capture_output=True,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout + done.stderr

    snakemake("--until", "discover")
    snakemake(f"{campaign.relative_to(house)}/nodes/cn02/job1/status.json")
    assert [path.parent.parent.name for path in campaign.glob("nodes/*/job1/status.json")] == ["cn02"]
    snakemake("--until", "measure")
    assert not (campaign / "store/fleet.json").exists()
    snakemake()
    assert [outcome(campaign, node) for node in NODES[:2]] == ["complete", "complete"]
    assert hosts(campaign, "cn02") == {"cn02"}
    assert (campaign / "report/cluster.pdf").exists()
    rows = [row.split("\t") for row in snakemake("--summary").splitlines() if "/status.json" in row]
    assert {row[0].split("/")[3]: row[-1] for row in rows} == {"cn01": "no update", "cn02": "no update"}

    config["measure"] = ["coherence-cas", "clock-alone"]  # after `discover`
    (house / "profile.yaml").write_text(json.dumps(config))
    assert "discover" in snakemake("--dry-run")


def test_the_local_executor_does_not_measure_under_other_names(house: Path) -> None:
    campaign = house / "results/elsewhere"
    node_sheet.write_sheet(campaign / "nodes.tsv", [node_sheet.Node("cn01", "cn01", partition="main", cpus=2)])
    (house / "elsewhere.yaml").write_text("campaign: elsewhere\nlaunch: here\npreset: test\n")
    done = subprocess.run(
        ["snakemake", "--configfile", "elsewhere.yaml"],
        cwd=house,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode != 0
    assert "cn01 is not this host" in done.stdout + done.stderr
    assert not (campaign / "nodes").exists()


def namespaces(pid: str) -> set[str]:
    """Network, mount, PID, host-name and IPC namespaces of a process; none where it is gone."""
    try:
        return {str(Path(f"/proc/{pid}/ns/{kind}").readlink()) for kind in ("net", "mnt", "pid", "uts", "ipc")}
    except OSError:
        return set()


def processes_in(spaces: set[str]) -> list[str]:
    """Processes in any of these namespaces."""
    return [entry.name for entry in Path("/proc").iterdir() if entry.name.isdigit() and namespaces(entry.name) & spaces]


def test_nothing_is_left(tmp_path: Path) -> None:
    need("slurmctld", "slurmd", "munged", "ip", "nsenter")
    interfaces = {p.name for p in Path("/sys/class/net").iterdir()}
    etc = {path: path.stat().st_mtime_ns for path in (Path("/etc"), Path("/etc/hosts"), Path("/etc/slurm"))}
    state, other = up(tmp_path / "one", 2), up(tmp_path / "two", 1)
    processes = [p for p in Path("/proc").iterdir() if p.name.isdigit() and namespaces(p.name)]
    host = namespaces("self")
    mine = str(json.loads((state / "cluster.json").read_text())["pid"])
    spaces = namespaces(mine)
    for node in ("login", "cn01", "cn02"):
        shown = cluster(
            "exec", node, "readlink", *(f"/proc/self/ns/{k}" for k in ("net", "mnt", "pid", "uts", "ipc")), state=state
        )
        spaces |= set(shown.stdout.split())
    assert len(spaces) == 15
    assert not spaces & host
    assert processes
    names = cluster("exec", "login", "srun", "-N2", "--exclusive", "hostname", state=state)
    assert sorted(names.stdout.split()) == ["cn01", "cn02"]
    cluster("exec", "login", "sbatch", "-N2", "-o", tmp_path / "job", "--wrap", "srun sleep 300", state=state)
    cluster("crash", "cn02", state=state)
    assert cluster("exec", "cn02", "true", state=state, check=False).returncode == 1
    assert len(processes_in(spaces)) > 3

    cluster("down", state=state)
    assert processes_in(spaces) == []
    assert not state.exists()
    assert str(state) not in Path("/proc/self/mountinfo").read_text()
    assert not {"br0", "v1", "v2"} & ({p.name for p in Path("/sys/class/net").iterdir()} - interfaces)
    assert {path: path.stat().st_mtime_ns for path in etc} == etc

    # The other one is not touched; and it goes too where its first process was killed.
    assert cluster("exec", "login", "srun", "hostname", state=other).stdout.split() == ["cn01"]
    # A node boots while something still holds the network that it had.
    held = f"nsenter --net --target=$(cat {other}/nodes/cn01) sh -c 'echo held; exec sleep 600'"
    command: list[str | Path] = [CLUSTER, "exec", "--state", other, "login", "sh", "-c", held]
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment(), text=True) as holder:
        try:
            assert holder.stdout and holder.stdout.readline() == "held\n"
            cluster("crash", "cn01", state=other)
            cluster("start", "cn01", state=other)
        finally:
            holder.kill()
    pid = int(json.loads((other / "cluster.json").read_text())["pid"])
    spaces = namespaces(str(pid))
    os.kill(pid, signal.SIGKILL)
    cluster("down", state=other)
    assert processes_in(spaces) == []
    assert not other.exists()


def test_a_cluster_that_does_not_start_leaves_nothing(tmp_path: Path) -> None:
    need("slurmctld", "slurmd", "munged", "ip", "nsenter")
    need_mount_namespace("start a virtual cluster")
    state = tmp_path / "state"
    done = cluster("up", "1", "--state", state, "--conf", "NoSuchKey=1", check=False)
    assert done.returncode == 1
    assert "slurmctld" in done.stderr
    assert "Traceback" not in done.stderr
    assert not state.exists()
    known = [entry for entry in Path("/proc").iterdir() if entry.name.isdigit()]
    assert not any(str(state) in _cmdline(entry) for entry in known)


def _cmdline(entry: Path) -> str:
    try:
        return (entry / "cmdline").read_text(errors="replace")
    except OSError:
        return ""
