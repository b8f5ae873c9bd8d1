"""Ansible on real hosts: sshd in namespaces with names and addresses of their own, reached with host keys checked."""

import gzip
import json
import os
import shutil
import signal
import subprocess
import tarfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from .conftest import ROOT, built, environment, need
from .test_cluster import cluster, hosts, outcome, scontrol, text_of, up, verdicts
from .test_node_run import wait_for

pytestmark = pytest.mark.machine

CLUSTER = ROOT / "tests/cluster/cluster"
NODES = ("cn01", "cn02", "cn03", "cn04")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Three hosts with sshd; the cluster's state folder."""
    need("sshd", "ssh", "ip", "nsenter", "ansible-playbook", root="start hosts in namespaces")
    state = tmp_path_factory.mktemp("hosts") / "state"
    cluster("up", str(len(NODES)), "--sshd", "--state", state)
    yield state
    cluster("down", state=state)


def inventory(site: Path, path: Path, nodes: Sequence[str] = NODES, **of_hosts: dict[str, Any]) -> None:
    """An inventory of the hosts, each with variables of its own."""
    ssh = f"-o UserKnownHostsFile={site}/ssh/known_hosts -o ServerAliveInterval=1 -o ServerAliveCountMax=3"
    variables = {
        "ansible_user": "root", "ansible_ssh_private_key_file": f"{site}/ssh/user", "ansible_ssh_extra_args": ssh,
        "ansible_remote_tmp": "/run/node/tmp", "nodeprint_home": "/run/node/nodeprint",
        "nodeprint_record": "/run/node/record", "nodeprint_packages": ["likwid"],
        "nodeprint_measure_busy": True,  # no test depends on how quiet the machine is
    }  # fmt: skip
    path.write_text(json.dumps({"nodes": {"hosts": {name: {} for name in nodes} | of_hosts, "vars": variables}}))


def login(site: Path, house: Path, *command: str | Path, code: int = 0) -> str:
    """What a command says on the login node."""
    done = subprocess.run(
        [CLUSTER, "exec", "login", *command], cwd=house, env=environment() | {"CLUSTER_STATE": str(site)},
        capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout + done.stderr


def main_job(site: Path, house: Path, config: dict[str, Any], code: int = 0) -> str:
    """The main job on the login node."""
    path = house / f"{config['campaign']}.yaml"
    usual = {"preset": "test", "measure": ["coherence-cas"], "launch": "ansible", "inventory": "hosts.yml", "runs": 1}
    path.write_text(json.dumps(usual | config))
    return login(site, house, "workflow/run", "--config", path.name, code=code)


def test_the_main_job_with_a_host_that_is_down(house: Path, site: Path) -> None:
    need("pdftotext")
    campaign = house / "results/ansible"
    inventory(site, house / "hosts.yml", nodes=NODES[:3])
    cluster("crash", "cn03", state=site)
    main_job(site, house, {"campaign": "ansible"})
    assert [outcome(campaign, node) for node in ("cn01", "cn02")] == ["complete", "complete"]
    assert all(hosts(campaign, node) == {node} for node in ("cn01", "cn02"))
    assert "unreachable: ssh: connect to host cn03" in verdicts(campaign)["cn03"]["reason"]
    assert "unreachable: ssh: connect to host cn03" in text_of(campaign)

    # The next call measures what is missing, and nothing else.
    before = {path: path.stat().st_mtime_ns for path in campaign.glob("nodes/*/job1/run1/*.gz")}
    cluster("start", "cn03", state=site)
    main_job(site, house, {"campaign": "ansible"})
    assert hosts(campaign, "cn03") == {"cn03"}
    assert {path: path.stat().st_mtime_ns for path in before} == before
    assert not (campaign / "nodes/cn03/job1/submission.txt").exists()


# --- the long ones ----------------------------------------------------------------------------------------------------


def playbook(site: Path, house: Path, name: str, *words: str, code: int = 0) -> str:
    """What a playbook of ansible/ says."""
    configured = ["env", "ANSIBLE_CONFIG=ansible/ansible.cfg", "ANSIBLE_NOCOLOR=1"]
    return login(
        site, house, *configured, "ansible-playbook", "-i", "hosts.yml", f"ansible/{name}.yml", *words, code=code
    )


def recap(said: str) -> dict[str, dict[str, int]]:
    """Of each host, how many tasks were ok, changed, failed and so on."""
    lines = (line.split(" : ") for line in said.partition("PLAY RECAP")[2].splitlines() if " : " in line)
    return {
        name.strip(): {key: int(value) for key, value in (word.split("=") for word in counts.split())}
        for name, counts in lines
    }


def settings(site: Path, tmp_path: Path) -> dict[str, Path]:
    """Files of each host's own in place of a governor and of NUMA balancing: nothing of this machine is set."""
    for node in NODES:
        (tmp_path / node / "policy0").mkdir(parents=True)
        (tmp_path / node / "policy0/scaling_governor").write_text(f"{'ondemand' if node == 'cn02' else 'powersave'}\n")
        (tmp_path / node / "numa_balancing").write_text("1\n")
        for name, target in (
            ("", "/sys/devices/system/cpu/cpufreq"),
            ("numa_balancing", "/proc/sys/kernel/numa_balancing"),
        ):
            cluster("exec", node, "mount", "--bind", tmp_path / node / name, target, state=site)
    return {node: tmp_path / node for node in NODES}


def values(files: dict[str, Path]) -> dict[str, list[str]]:
    names = ("policy0/scaling_governor", "numa_balancing")
    return {node: [(folder / name).read_text().strip() for name in names] for node, folder in files.items()}


@pytest.mark.long
def test_prepare_changes_what_is_named_once_and_restore_puts_it_back(house: Path, site: Path, tmp_path: Path) -> None:
    need("likwid-pin")
    inventory(site, house / "hosts.yml")
    files = settings(site, tmp_path)
    before = values(files)
    tags = ("--tags", "all,governor,numa_balancing")

    said = playbook(site, house, "prepare", "--check", "--diff", *tags)
    assert "-/sys/devices/system/cpu/cpufreq/policy0/scaling_governor: ondemand" in said
    assert "+/sys/devices/system/cpu/cpufreq/policy0/scaling_governor: performance" in said
    assert values(files) == before
    assert "No such file" in cluster("exec", "cn01", "ls", "/run/node/record", state=site, check=False).stderr

    playbook(site, house, "prepare")
    assert values(files) == before, "a setting was changed whose tag was not named"
    playbook(site, house, "prepare", *tags)
    assert values(files) == {node: ["performance", "0"] for node in NODES}
    assert all(host["changed"] == 0 for host in recap(playbook(site, house, "prepare", *tags)).values())

    (files["cn03"] / "numa_balancing").write_text("2\n")  # by somebody else, since
    playbook(site, house, "restore")
    assert values(files)["cn01"] == ["performance", "0"], "a setting was changed whose tag was not named"
    playbook(site, house, "restore", *tags)
    assert values(files) == before | {"cn03": ["powersave", "2"]}
    playbook(site, house, "restore", "--tags", "kernels")
    assert "No such file" in cluster("exec", "cn01", "ls", "/run/node/nodeprint", state=site, check=False).stderr


def kernels(folder: Path, change: bytes = b"") -> Path:
    """The static kernels in a new folder; with `change` as the hash of coherence's sources."""
    shutil.copytree(built("static"), folder, ignore=shutil.ignore_patterns("objects", "tests"))
    if change:
        rows = dict(line.split("\t") for line in (folder / "hashes.tsv").read_text().splitlines())
        program = (folder / "coherence").read_bytes()
        assert rows["coherence"].encode() in program
        (folder / "coherence").write_bytes(program.replace(rows["coherence"].encode(), change))
    return folder


@pytest.fixture
def spinners(site: Path) -> Iterator[list[subprocess.Popen[bytes]]]:
    """Programs at work on cn04, more than there are CPUs, so that they get their share on a busy machine, too."""
    command = [CLUSTER, "exec", "cn04", "sh", "-c", "while :; do :; done"]
    found = [subprocess.Popen(command, env=environment() | {"CLUSTER_STATE": str(site)}) for _ in range(8)]
    yield found
    end(found)


def end(processes: list[subprocess.Popen[bytes]]) -> None:
    """nsenter becomes the parent of what it starts, and ends with it."""
    for process in processes:
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
        for pid in children.read_text().split() if children.exists() else []:
            for below in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
                os.kill(int(below), signal.SIGKILL)
    for process in processes:
        process.wait()


@pytest.mark.long
def test_a_busy_host_one_that_dies_and_one_with_other_kernels(
    house: Path, site: Path, tmp_path: Path, spinners: list[subprocess.Popen[bytes]]
) -> None:
    slow = kernels(tmp_path / "slow")
    begun, go = tmp_path / "begun", tmp_path / "go"
    (slow / "coherence").rename(slow / "coherence.real")
    (slow / "coherence").write_text(
        f"#!/bin/sh\ncase $* in *--out*) [ -e {go} ] || {{ touch {begun}; sleep 600; }} ;; esac\n"
        f'exec {slow}/coherence.real "$@"\n'
    )
    (slow / "coherence").chmod(0o755)
    other = kernels(tmp_path / "other", b"0123456789abcdef")
    of_hosts = {
        "cn02": {"nodeprint_kernels": str(other)},
        "cn03": {"nodeprint_kernels": str(slow)},
        "cn04": {"nodeprint_measure_busy": False},
    }
    inventory(site, house / "hosts.yml", **of_hosts)
    campaign = house / "results/hard"
    with ThreadPoolExecutor() as pool:
        call = pool.submit(main_job, site, house, {"campaign": "hard"})
        wait_for(lambda: begun.exists() or call.done(), "cn03 measures", 300)
        cluster("crash", "cn03", state=site)
        call.result()
    found = verdicts(campaign)
    assert [outcome(campaign, node) for node in ("cn01", "cn02")] == ["complete", "complete"]
    assert found["cn03"]["reason"].startswith("unreachable: "), found["cn03"]
    assert "the node is busy: sh: " in found["cn04"]["reason"]
    assert "CPUs in all; measure when it is idle" in found["cn04"]["reason"]

    end(spinners)
    go.touch()
    cluster("start", "cn03", state=site)
    main_job(site, house, {"campaign": "hard"})
    assert [outcome(campaign, node) for node in ("cn03", "cn04")] == ["complete", "complete"]
    found = verdicts(campaign)
    assert found["cn02"]["verdict"] == "DIFFERENT CONFIGURATION"
    assert "sources of nodeprint's kernels" in found["cn02"]["text"]
    assert all(found[node]["verdict"] != "DIFFERENT CONFIGURATION" for node in ("cn01", "cn03", "cn04"))


@pytest.mark.long
def test_an_interrupted_call_stops_the_hosts_and_is_continued(house: Path, site: Path) -> None:
    inventory(site, house / "hosts.yml", nodes=("cn01",))
    config = {"campaign": "stopped", "arguments": {"coherence-cas": "--passes 400 --lines 512"}}
    here, there = house / "results/stopped", "/run/node/nodeprint/stopped-*/nodes/cn01/job1"
    with ThreadPoolExecutor() as pool:
        call = pool.submit(main_job, site, house, config, code=130)
        look = ("exec", "cn01", "sh", "-c", f"find {there}/run1 -size +20k | grep .")
        wait_for(
            lambda: cluster(*look, state=site, check=False).returncode == 0 or call.done(), "cn01 has records", 300
        )
        pid = (house / ".snakemake/nodeprint.lock").read_text().split()[1]
        cluster("exec", "login", "kill", "-INT", pid, state=site)
        assert "stays on the nodes" in call.result()
    log = ("exec", "cn01", "sh", "-c", f"cat {there}/node-run.log")
    wait_for(lambda: "stopped by SIGHUP" in cluster(*log, state=site).stdout, "node-run has stopped", 60)
    assert not (here / "nodes/cn01/job1/status.json").exists()
    playbook(site, house, "fetch", "-e", f"nodeprint_campaign={here}")
    (begun,) = (here / "nodes/cn01/job1/run1").glob("*.jsonl")
    assert begun.read_text().count('"record":"header"') == 1

    main_job(site, house, config)
    (whole,) = (here / "nodes/cn01/job1/run1").glob("*.jsonl.gz")
    assert gzip.decompress(whole.read_bytes()).count(b'"record":"header"') == 2


@pytest.mark.long
def test_facts_name_what_drifted_and_hold_no_serial_numbers(house: Path, site: Path, tmp_path: Path) -> None:
    inventory(site, house / "hosts.yml")
    (tmp_path / "swappiness").write_text("7\n")
    (tmp_path / "cmdline").write_text('quiet BOOTIF=01-aa-bb-cc-dd-ee-ff rd.password=secret17 "a b\'s"\n')
    cluster("exec", "cn02", "mount", "--bind", tmp_path / "swappiness", "/proc/sys/vm/swappiness", state=site)
    cluster("exec", "cn03", "mount", "--bind", tmp_path / "cmdline", "/proc/cmdline", state=site)
    (house / "facts.yaml").write_text("campaign: facts\nlaunch: ansible\ninventory: hosts.yml\n")
    login(site, house, "nodeprint", "discover", "--config", "facts.yaml")
    playbook(site, house, "facts", "-e", f"nodeprint_campaign={house}/results/facts")
    said = login(site, house, "nodeprint", "drift", "results/facts")
    assert "cn02: kernel parameters is vm.swappiness=7, most nodes have vm.swappiness=" in said
    assert 'cn03: kernel command line is quiet rd.password=* "a b\'s", most nodes have' in said
    with tarfile.open(house / "results/facts/nodes/cn03/job1/survey.tar.gz") as survey:
        cmdline = survey.extractfile("proc/cmdline")
        assert cmdline is not None and cmdline.read() == b'quiet BOOTIF=* rd.password=* "a b\'s"\n'


@pytest.mark.long
def test_a_folder_of_somebody_else_is_not_used(house: Path, site: Path) -> None:
    inventory(site, house / "hosts.yml")
    cluster("exec", "cn01", "sh", "-c", "rm -rf /run/node/nodeprint && mkdir /run/node/nodeprint", state=site)
    cluster("exec", "cn01", "chown", "12345", "/run/node/nodeprint", state=site)
    said = playbook(site, house, "prepare", "--tags", "kernels", "--limit", "cn01", code=2)
    assert "/run/node/nodeprint cannot be made or belongs to somebody else; set nodeprint_home" in said
    cluster("exec", "cn01", "rmdir", "/run/node/nodeprint", state=site)


@pytest.mark.long
def test_a_host_whose_key_is_not_known_is_not_reached(house: Path, site: Path) -> None:
    inventory(site, house / "hosts.yml", nodes=("cn01",))
    hosts_file = house / "hosts.yml"
    anew = "-o ControlPath=none -o UserKnownHostsFile=/dev/null"  # no connection of another test
    hosts_file.write_text(hosts_file.read_text().replace(f"-o UserKnownHostsFile={site}/ssh/known_hosts", anew))
    assert "Host key verification failed" in playbook(site, house, "prepare", "--tags", "kernels", code=4)


@pytest.mark.long
def test_only_named_nodes_are_drained_and_none_that_has_a_reason(house: Path, tmp_path: Path) -> None:
    state, campaign = up(tmp_path / "state", 3), tmp_path / "results"
    campaign.mkdir()
    lines = (
        f"scontrol update NodeName='{node}' State=DRAIN Reason='nodeprint: DEVIATES: core 3 \"is\" $(slow); x'"
        for node in ("cn01", "cn02", "cn03")
    )
    (campaign / "drain.sh").write_text("#!/bin/sh\n" + "\n".join(lines) + "\n")
    (house / "hosts.yml").write_text("")

    def drain(names: str, code: int = 0) -> str:
        return playbook(
            state, house, "slurm-drain", "-e", f"nodeprint_campaign={campaign}", "-e", f"nodeprint_drain={names}",
            code=code,
        )  # fmt: skip

    def reasons() -> dict[str, str]:
        listed = cluster("exec", "login", "sinfo", "-h", "-N", "-o", "%N|%E", state=state).stdout.splitlines()
        return dict(line.split("|", 1) for line in listed)

    try:
        scontrol(state, "update", "nodename=cn02", "state=drain", "reason=DIMM 7")
        assert "name the nodes to drain" in drain("", code=2)
        assert "cn09 is not suggested in" in drain("cn01,cn09", code=2)
        assert reasons() == {"cn01": "none", "cn02": "DIMM 7", "cn03": "none"}
        assert "cn02 is left alone, Slurm has a reason: DIMM 7" in drain("cn01,cn02")
        drained = {"cn01": 'nodeprint: DEVIATES: core 3 "is" $(slow); x', "cn02": "DIMM 7", "cn03": "none"}
        assert reasons() == drained
        assert recap(drain("cn01,cn02"))["localhost"]["changed"] == 0
        assert reasons() == drained
    finally:
        cluster("down", state=state)
