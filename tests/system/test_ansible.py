"""Ansible on real hosts: sshd in namespaces with names and addresses of their own, reached with host keys checked."""

import json
import os
import shutil
import signal
import subprocess
import tarfile
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from nodeprint import simulate
from nodeprint.machine import node_configuration
from nodeprint.machine.topology.presets import from_part
from tests.support import statuses
from tests.support.cluster_campaigns import caller, hosts, outcome, text_of, verdicts
from tests.support.made_records import one_record_file, record_texts
from tests.support.real_parts import built, environment, need, need_mount_namespace
from tests.support.virtual_cluster import CLUSTER, cluster, scontrol, up
from tests.support.waiting import wait_for

pytestmark = pytest.mark.machine

NODES = ("cn01", "cn02", "cn03", "cn04")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Three hosts with sshd; the cluster's state folder."""
    need("sshd", "ssh", "ip", "nsenter", "ansible-playbook", root="start hosts in namespaces")
    need_mount_namespace("start hosts in namespaces")
    state = tmp_path_factory.mktemp("hosts") / "state"
    cluster("up", str(len(NODES)), "--sshd", "--state", state)
    yield state
    cluster("down", state=state)


def inventory(
    site: Path, path: Path, nodes: Sequence[str] = NODES, of_hosts: Mapping[str, Mapping[str, object]] | None = None
) -> None:
    """An inventory of the hosts, some with variables of their own."""
    ssh = f"-o UserKnownHostsFile={site}/ssh/known_hosts -o ServerAliveInterval=1 -o ServerAliveCountMax=3"
    variables = {
        "ansible_user": "root",
        "ansible_ssh_private_key_file": f"{site}/ssh/user",
        "ansible_ssh_extra_args": ssh,
        "ansible_remote_tmp": "/run/node/tmp",
        "nodeprint_home": "/run/node/nodeprint",
        "nodeprint_record": "/run/node/record",
        "nodeprint_packages": ["likwid"],
        "nodeprint_measure_busy": True,  # no test depends on how quiet the machine is
    }
    path.write_text(
        json.dumps({"nodes": {"hosts": {name: {} for name in nodes} | dict(of_hosts or {}), "vars": variables}})
    )


def login(site: Path, house: Path, *command: str | Path, code: int = 0) -> str:
    """What a command says on the login node."""
    # /run is the cluster's own: Ansible's connections by default are found by host name in the user's home, where those
    # of another cluster are, too
    variables = {"CLUSTER_STATE": str(site), "ANSIBLE_SSH_CONTROL_PATH_DIR": "/run/ansible"}
    done = subprocess.run(
        [CLUSTER, "exec", "login", *command],
        cwd=house,
        env=environment() | variables,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout + done.stderr


def main_job(
    site: Path, house: Path, config: dict[str, Any], *words: str, code: int = 0, forks: int = 64, campaign: str = ""
) -> str:
    """The main job on the login node, with more options; if it ended by itself, all statuses agree."""
    path = house / f"{config['campaign']}.yaml"
    usual: dict[str, Any] = {"preset": "test", "measure": ["coherence-cas"], "runs": 1, "recheck": False}
    usual |= {"launch": "ansible", "inventory": "hosts.yml"}
    path.write_text(json.dumps(usual | config))
    output = login(
        site,
        house,
        "env",
        f"ANSIBLE_FORKS={forks}",
        "workflow/run",
        "--config",
        path.name,
        "--fail-on",
        "nothing",
        *words,
        code=code,
    )
    if code in (0, 1):
        statuses.agree(house / "results" / (campaign or str(config["campaign"])), code, output)
    return output


def test_the_main_job_with_a_host_that_is_down(house: Path, site: Path) -> None:
    need("pdftotext")
    campaign = house / "results/ansible"
    inventory(site, house / "hosts.yml", nodes=NODES[:2])
    cluster("crash", "cn02", state=site)
    output = main_job(site, house, {"campaign": "ansible"}, code=1)
    assert "Not finished: cn02 failed (unreachable: ssh: connect to host cn02" in output
    assert outcome(campaign, "cn01") == "complete" and hosts(campaign, "cn01") == {"cn01"}
    assert "unreachable: ssh: connect to host cn02" in json.dumps(verdicts(campaign)["cn02"]["reasons"])
    assert "unreachable: ssh: connect to host cn02" in text_of(campaign)

    # The next call measures what is missing, and nothing else.
    before = {path: path.stat().st_mtime_ns for path in campaign.glob("nodes/*/job1/run1/*.gz")}
    cluster("start", "cn02", state=site)
    main_job(site, house, {"campaign": "ansible"})
    assert hosts(campaign, "cn02") == {"cn02"}
    assert {path: path.stat().st_mtime_ns for path in before} == before

    # Hosts on the command line: no inventory, a campaign of its own, and a call to copy where other hosts are named.
    variables = json.loads((house / "hosts.yml").read_text())["nodes"]["vars"]
    (house / "ansible/group_vars").mkdir()
    (house / "ansible/group_vars/nodes.json").write_text(json.dumps(variables))
    here = {"campaign": "hosts", "launch": "here", "inventory": ""}
    named = ("--launch", "ansible", "--hosts")
    main_job(site, house, here, *named, "cn01", campaign="hosts-ansible")
    other = main_job(site, house, here, *named, "cn02", code=2)
    shutil.rmtree(house / "ansible/group_vars")
    assert hosts(house / "results/hosts-ansible", "cn01") == {"cn01"}
    assert "as in `make run CONFIG=hosts.yaml CAMPAIGN=hosts-ansible-2 LAUNCH=ansible HOSTS=cn02 FAIL_ON" in other


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


#: Where settings are, and what stands in their place on the hosts: nothing of this machine is set.
SETTINGS = {
    "policy0/scaling_governor": ("/sys/devices/system/cpu/cpufreq", "powersave"),
    "policy1/scaling_governor": ("/sys/devices/system/cpu/cpufreq", "ondemand"),
    "numa_balancing": ("/proc/sys/kernel/numa_balancing", "1"),
    "perf_event_paranoid": ("/proc/sys/kernel/perf_event_paranoid", "4"),
    "thp/enabled": ("/sys/kernel/mm/transparent_hugepage", "always [never] madvise"),
    "thp/defrag": ("/sys/kernel/mm/transparent_hugepage", "always defer defer+madvise [madvise] never"),
}
#: What prepare.yml sets, by its tags.
SET = {
    "governor": {"policy0/scaling_governor": "performance", "policy1/scaling_governor": "performance"},
    "numa_balancing": {"numa_balancing": "0"},
    "huge_pages": {"thp/enabled": "madvise"},
    "perf": {"perf_event_paranoid": "0"},
}


@pytest.fixture
def settings(site: Path, tmp_path: Path) -> Iterator[dict[str, Path]]:
    """Files of each host's own in place of its settings; the folders by host."""
    targets = {"policy0": "", "policy1": "", "thp": "thp"}
    mounted = []
    for node in NODES:
        for name, (_, value) in SETTINGS.items():
            path = tmp_path / node / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"{value}\n")
        for name, (target, _) in SETTINGS.items():
            source = tmp_path / node / targets.get(name.partition("/")[0], name)
            if (node, target) not in mounted:
                cluster("exec", node, "mount", "--bind", source, target, state=site)
                mounted.append((node, target))
    yield {node: tmp_path / node for node in NODES}
    for node, target in mounted:
        cluster("exec", node, "umount", target, state=site)


def values(files: dict[str, Path]) -> dict[str, dict[str, str]]:
    """What the settings are, by host; of a list the choice."""
    return {
        node: {name: str(node_configuration.chosen((folder / name).read_text())) for name in SETTINGS}
        for node, folder in files.items()
    }


@pytest.mark.long
def test_prepare_changes_what_is_named_once_and_restore_puts_it_back(
    house: Path, site: Path, settings: dict[str, Path]
) -> None:
    need("likwid-pin")
    inventory(site, house / "hosts.yml")
    before = values(settings)
    everything = ("--tags", ",".join(("all", *SET)))

    said = playbook(site, house, "prepare", "--check", "--diff", *everything)
    assert "-/sys/devices/system/cpu/cpufreq/policy1/scaling_governor: ondemand" in said
    assert "+/sys/devices/system/cpu/cpufreq/policy1/scaling_governor: performance" in said
    assert "-/sys/kernel/mm/transparent_hugepage/enabled: never" in said
    assert values(settings) == before
    for path in ("/run/node/record", "/run/node/nodeprint"):
        assert "No such file" in cluster("exec", "cn01", "ls", path, state=site, check=False).stderr

    playbook(site, house, "prepare")
    assert values(settings) == before, "a setting was changed whose tag was not named"
    for tag, changed in SET.items():
        playbook(site, house, "prepare", "--limit", "cn01", "--tags", tag)
        assert values(settings) == before | {"cn01": before["cn01"] | changed}, tag
        playbook(site, house, "restore", "--limit", "cn01", "--tags", tag)
        assert values(settings) == before, tag
    all_set = {name: value for changed in SET.values() for name, value in changed.items()}
    playbook(site, house, "prepare", *everything)
    assert values(settings) == {node: of_node | all_set for node, of_node in before.items()}
    assert all(host["changed"] == 0 for host in recap(playbook(site, house, "prepare", *everything)).values())

    (settings["cn03"] / "numa_balancing").write_text("2\n")  # by somebody else, since
    playbook(site, house, "restore")
    assert values(settings)["cn01"] == before["cn01"] | all_set, "a setting was changed whose tag was not named"
    said = unwrapped(playbook(site, house, "restore", *everything))
    assert "cn03: /proc/sys/kernel/numa_balancing is left as it is: somebody else has changed it since" in said
    assert values(settings) == before | {"cn03": before["cn03"] | {"numa_balancing": "2"}}
    assert all(host["changed"] == 0 for host in recap(playbook(site, house, "restore", *everything)).values())
    playbook(site, house, "restore", "--tags", "kernels")
    assert "No such file" in cluster("exec", "cn01", "ls", "/run/node/nodeprint", state=site, check=False).stderr


def unwrapped(said: str) -> str:
    """What was said, as one line: Ansible breaks warnings into lines."""
    return " ".join(said.split())


@pytest.mark.long
def test_a_setting_that_a_machine_refuses_or_lacks_is_named(house: Path, site: Path, settings: dict[str, Path]) -> None:
    inventory(site, house / "hosts.yml", nodes=("cn01", "cn02"))
    before = values(settings)
    governor = "/sys/devices/system/cpu/cpufreq/policy1/scaling_governor"
    cluster("exec", "cn01", "mount", "--bind", "/proc/sys/kernel/ns_last_pid", governor, state=site)  # a number alone
    cluster("exec", "cn02", "mount", "-t", "tmpfs", "tmpfs", "/sys/devices/system/cpu/cpufreq", state=site)
    said = unwrapped(playbook(site, house, "prepare", "--tags", "governor", code=2))
    assert f"{governor}: Invalid argument; only root may change it, and not every machine has this value" in said
    assert "cn02: there is nothing to set: no file /sys/devices/system/cpu/cpufreq/policy*/scaling_governor" in said
    cluster("exec", "cn01", "umount", governor, state=site)
    cluster("exec", "cn02", "umount", "/sys/devices/system/cpu/cpufreq", state=site)
    playbook(site, house, "restore", "--tags", "governor")
    assert values(settings) == before


def kernels(folder: Path, change: bytes = b"") -> Path:
    """The static kernels in a new folder; with `change` as the beginning of the hash of coherence's sources. Its end
    stays, as linkers let a short string, such as the key "a" of a pair, share a longer one's end.
    """
    shutil.copytree(built("static"), folder, ignore=shutil.ignore_patterns("objects", "tests"))
    if change:
        rows = dict(line.split("\t") for line in (folder / "hashes.tsv").read_text().splitlines())
        program = (folder / "coherence").read_bytes()
        assert rows["coherence"].encode() in program
        hashed = rows["coherence"].encode()
        (folder / "coherence").write_bytes(program.replace(hashed, change + hashed[len(change) :]))
    return folder


@pytest.fixture
def spinners(site: Path) -> Iterator[list[subprocess.Popen[bytes]]]:
    """Programs at work on cn04, more than there are CPUs, so that they get their share on a busy machine, too."""
    command: list[str | Path] = [CLUSTER, "exec", "cn04", "sh", "-c", "while :; do :; done"]
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
    other = kernels(tmp_path / "other", b"01234567")
    of_hosts: dict[str, dict[str, object]] = {
        "cn02": {"nodeprint_kernels": str(other)},
        "cn03": {"nodeprint_kernels": str(slow)},
        "cn04": {"nodeprint_measure_busy": False},
    }
    inventory(site, house / "hosts.yml", of_hosts=of_hosts)
    campaign = house / "results/hard"
    with ThreadPoolExecutor() as pool:
        call = pool.submit(main_job, site, house, {"campaign": "hard"})
        wait_for(lambda: begun.exists() or call.done(), "cn03 measures", 300)
        cluster("crash", "cn03", state=site)
        call.result()
    found = verdicts(campaign)
    assert [outcome(campaign, node) for node in ("cn01", "cn02")] == ["complete", "complete"]
    assert "unreachable: " in json.dumps(found["cn03"]["reasons"])
    assert "the node is busy: sh: " in json.dumps(found["cn04"]["reasons"])
    assert "CPUs in all; measure when it is idle" in json.dumps(found["cn04"]["reasons"])

    end(spinners)
    go.touch()
    cluster("start", "cn03", state=site)
    main_job(site, house, {"campaign": "hard"})
    assert [outcome(campaign, node) for node in ("cn03", "cn04")] == ["complete", "complete"]
    found = verdicts(campaign)
    assert found["cn02"]["outcome"] == "DIFFERENT CONFIGURATION"
    assert "sources of nodeprint's kernels" in found["cn02"]["text"]
    assert all(found[node]["outcome"] != "DIFFERENT CONFIGURATION" for node in ("cn01", "cn03", "cn04"))


#: In place of a kernel: the records that a simulated node has in this job and run, as if measured on this host.
REPLAY = """\
#!/bin/sh
case "$*" in *--plan* | *--help*) exit 0 ;; esac
while [ $# -gt 0 ]; do
    case $1 in --out) out=$2 ;; --job) job=$2 ;; --run) run=$2 ;; esac
    shift
done
host=$(uname -n)
from={fleet}/nodes/node00${{host#cn0}}/job$job
cp $from/survey.tar.gz .
zcat $from/run$run/coherence-cas.jsonl.gz | sed "1s/\\"host\\": \\"[^\\"]*\\"/\\"host\\": \\"$host\\"/" >"$out"
"""


@pytest.mark.long
def test_the_next_host_begins_when_the_records_of_one_are_fetched(house: Path, site: Path) -> None:
    inventory(site, house / "hosts.yml", nodes=NODES[:2])
    main_job(site, house, {"campaign": "waves"}, forks=1)
    first, second = (house / f"results/waves/nodes/{node}/job1/status.json" for node in NODES[:2])
    begun = datetime.strptime(json.loads(second.read_text())["started"], "%Y-%m-%dT%H:%M:%S%z")
    assert int(first.stat().st_mtime) <= begun.timestamp()


@pytest.mark.long
def test_a_suspicion_is_confirmed_by_a_second_job(house: Path, site: Path, tmp_path: Path) -> None:
    plan = simulate.Plan(from_part("EPYC 7302", 1), 5, 3, 2, 1, 5, defects=("node002: core 5 +40%",))
    fleet, programs = simulate.write(plan, tmp_path / "fleet"), tmp_path / "replaying"
    programs.mkdir()
    (programs / "coherence").write_text(REPLAY.format(fleet=fleet))
    (programs / "coherence").chmod(0o755)
    inventory(site, house / "hosts.yml", of_hosts={node: {"nodeprint_kernels": str(programs)} for node in NODES})
    config = {"campaign": "suspected", "runs": 2, "recheck": True, "recheck_minutes": 0.05}
    said = main_job(site, house, config)
    jobs = {node: len(list((house / f"results/suspected/nodes/{node}").glob("job*"))) for node in NODES}
    assert jobs["cn02"] == 2 and sorted(jobs.values()) == [1, 2, 2, 2], "the suspect and two unsuspected nodes"
    assert "recheck 1 of at most 2, in 0.05 minutes: " in said
    found = verdicts(house / "results/suspected")
    assert found["cn02"]["outcome"] == "DEVIATES", found["cn02"]
    assert all(found[node]["outcome"] != "DEVIATES" for node in NODES if node != "cn02")


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
        cluster("exec", "login", "kill", "-INT", caller(house, "stopped"), state=site)
        assert "stays on the nodes" in call.result()
    log = ("exec", "cn01", "sh", "-c", f"cat {there}/node-run.log")
    wait_for(lambda: "stopped by SIGHUP" in cluster(*log, state=site).stdout, "node-run has stopped", 60)
    assert not (here / "nodes/cn01/job1/status.json").exists()
    playbook(site, house, "fetch", "-e", f"nodeprint_campaign={here}")
    (begun,) = (here / "nodes/cn01/job1/run1").glob("*.jsonl")
    assert begun.read_text().count('"record":"header"') == 1

    main_job(site, house, config)
    (whole,) = record_texts(here / "nodes/cn01/job1").values()
    assert whole.count(b'"record":"header"') == 2


def holds(site: Path, node: str, condition: str) -> bool:
    """Whether a command of the shell ends with 0 on a node."""
    return cluster("exec", node, "sh", "-c", condition, state=site, check=False).returncode == 0


@pytest.mark.long
def test_a_host_that_is_booted_again_gets_a_new_job(house: Path, site: Path) -> None:
    """While its job is unfinished: what it has measured is fetched and stays, whether the host kept it or not."""
    inventory(site, house / "hosts.yml", nodes=NODES[:2])
    config = {"campaign": "rebooted", "arguments": {"coherence-cas": "--passes 100 --lines 512"}}
    campaign, there = house / "results/rebooted", "/run/node/nodeprint/rebooted-*/nodes/*/job1"
    with ThreadPoolExecutor() as pool:
        call = pool.submit(main_job, site, house, config, code=130)
        begun = f"[ $(find {there}/run1 -size +20k | wc -l) = 1 ]"
        wait_for(lambda: call.done() or all(holds(site, node, begun) for node in NODES[:2]), "both have records", 300)
        cluster("exec", "login", "kill", "-INT", caller(house, "rebooted"), state=site)
        call.result()
    stopped = f"grep -q 'stopped by SIGHUP' {there}/node-run.log"
    wait_for(lambda: all(holds(site, node, stopped) for node in NODES[:2]), "node-run has stopped", 60)
    playbook(site, house, "fetch", "-e", f"nodeprint_campaign={campaign}")
    cluster("crash", "cn01", state=site)  # with all that was on it
    cluster("start", "cn01", state=site)
    cluster("exec", "cn02", "sh", "-c", "cat /proc/sys/kernel/random/uuid >/run/node/boot_id", state=site)
    before = {path: path.read_bytes() for path in campaign.glob("nodes/*/job1/run1/*")}
    said = main_job(site, house, config)
    assert "measured in a new job, as they were booted again within the former: cn[01-02]" in said
    for node in NODES[:2]:
        first, second = (campaign / f"nodes/{node}/job{number}" for number in (1, 2))
        assert {path: path.read_bytes() for path in first.glob("run*/*")} == {
            path: raw for path, raw in before.items() if path.is_relative_to(first)
        }
        assert not [*first.glob("run*.tar.*")] and outcome(campaign, node, 2) == "complete"
        boot = cluster("exec", node, "cat", "/proc/sys/kernel/random/boot_id", state=site).stdout.strip()
        assert one_record_file(second).header["boot_id"] == boot


@pytest.mark.long
def test_facts_name_what_drifted_and_hold_no_serial_numbers(house: Path, site: Path, tmp_path: Path) -> None:
    inventory(site, house / "hosts.yml")
    (tmp_path / "swappiness").write_text("7\n")
    private = "BOOTIF=01-aa-bb-cc-dd-ee-ff ip=10.1.2.3 root=UUID=0d5a3c11-94b7-4e6e-8c55-6a0e0f2a7b10"
    (tmp_path / "cmdline").write_text(f'quiet {private} rd.password=secret17 "a b\'s"\n')
    cluster("exec", "cn02", "mount", "--bind", tmp_path / "swappiness", "/proc/sys/vm/swappiness", state=site)
    cluster("exec", "cn03", "mount", "--bind", tmp_path / "cmdline", "/proc/cmdline", state=site)
    (house / "facts.yaml").write_text("campaign: facts\nlaunch: ansible\ninventory: hosts.yml\n")
    login(site, house, "nodeprint", "discover", "--config", "facts.yaml")
    playbook(site, house, "facts", "-e", f"nodeprint_campaign={house}/results/facts")
    said = login(site, house, "nodeprint", "drift", "results/facts")
    assert "cn02: kernel parameters is vm.swappiness=7, other nodes have vm.swappiness=" in said
    assert 'cn03: kernel command line is quiet rd.password=* "a b\'s", other nodes have' in said
    with tarfile.open(house / "results/facts/nodes/cn03/job1/survey.tar.gz") as survey:
        cmdline = survey.extractfile("proc/cmdline")
        hidden = b'quiet BOOTIF=* ip=* root=UUID=* rd.password=* "a b\'s"\n'
        assert cmdline is not None and cmdline.read() == hidden

    # A day later one host is not reached: nothing of another day is said of it.
    for node, path in (("cn02", "/proc/sys/vm/swappiness"), ("cn03", "/proc/cmdline")):
        cluster("exec", node, "umount", path, state=site)
    cluster("crash", "cn02", state=site)
    playbook(site, house, "facts", "-e", f"nodeprint_campaign={house}/results/facts", code=4)
    said = login(site, house, "nodeprint", "drift", "results/facts")
    assert "cn02: unknown: it was not surveyed" in said
    assert "cn03: kernel command line" not in said and "swappiness" not in said
    cluster("start", "cn02", state=site)


@pytest.mark.long
def test_facts_are_taken_in_a_campaign_of_their_own(house: Path, site: Path) -> None:
    inventory(site, house / "hosts.yml", nodes=("cn01",))
    (house / "facts.yaml").write_text("campaign: own\nlaunch: ansible\ninventory: hosts.yml\n")
    words = ("-e", f"nodeprint_campaign={house}/results/own")
    assert "has no nodes.tsv; `nodeprint discover` makes a campaign" in unwrapped(
        playbook(site, house, "facts", *words, code=2)
    )
    login(site, house, "nodeprint", "discover", "--config", "facts.yaml")
    inventory(site, house / "hosts.yml", nodes=("cn01", "cn02"))
    assert "it is not in" in playbook(site, house, "facts", *words, code=2)
    (house / "results/own/nodes/cn01/job1/run1").mkdir(parents=True)
    (house / "results/own/nodes/cn01/job1/survey.tar.gz").write_bytes(b"of the measurement")
    said = unwrapped(playbook(site, house, "facts", "--limit", "cn01", *words, code=2))
    assert "has measurements, whose survey is kept" in said
    assert (house / "results/own/nodes/cn01/job1/survey.tar.gz").read_bytes() == b"of the measurement"


@pytest.mark.long
def test_a_folder_of_somebody_else_is_not_used(house: Path, site: Path) -> None:
    inventory(site, house / "hosts.yml")
    cluster("exec", "cn01", "sh", "-c", "rm -rf /run/node/nodeprint && mkdir /run/node/nodeprint", state=site)
    cluster("exec", "cn01", "chown", "12345", "/run/node/nodeprint", state=site)
    said = playbook(site, house, "prepare", "--tags", "kernels", "--limit", "cn01", code=2)
    assert "/run/node/nodeprint cannot be made or belongs to somebody else; set nodeprint_home" in said
    cluster("exec", "cn01", "rmdir", "/run/node/nodeprint", state=site)


@pytest.mark.long
def test_a_copy_that_was_cut_short_is_made_again(house: Path, site: Path) -> None:
    inventory(site, house / "hosts.yml", nodes=("cn01",))
    said = login(site, house, "kernels/archive")
    (archive,) = (line for line in said.splitlines() if line.endswith(".tar.gz"))
    folder = f"/run/node/nodeprint/{Path(archive).name.removesuffix('.tar.gz')}"
    cut = f"rm -rf {folder} && mkdir -p {folder} && touch {folder}/node-run"
    cluster("exec", "cn01", "sh", "-c", cut, state=site)
    assert recap(playbook(site, house, "prepare", "--tags", "kernels"))["cn01"]["changed"] == 2
    cluster("exec", "cn01", f"{folder}/build/static/coherence", "--help", state=site)
    assert recap(playbook(site, house, "prepare", "--tags", "kernels"))["cn01"]["changed"] == 0


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
    hostile = 'nodeprint: DEVIATES: core 3 "is" $(slow) $HOME ~ {{ 7 * 7 }}; x'
    lines = (
        f"scontrol update NodeName='{node}' State=DRAIN Reason='{hostile}'" for node in ("cn01", "cn02", "cn03", "cn10")
    )
    (campaign / "drain.sh").write_text("#!/bin/sh\n" + "\n".join(lines) + "\n")
    (house / "hosts.yml").write_text("")

    def drain(names: str, code: int = 0, more: Sequence[str] = ()) -> str:
        variables = json.dumps({"nodeprint_campaign": str(campaign), "nodeprint_drain": names})
        return playbook(state, house, "slurm-drain", "-e", variables, *more, code=code)

    def reasons() -> dict[str, str]:
        listed = cluster("exec", "login", "sinfo", "-h", "-N", "-o", "%N|%E", state=state).stdout.splitlines()
        return dict(line.split("|", 1) for line in listed)

    try:
        scontrol(state, "update", "nodename=cn02", "state=drain", "reason=DIMM 7")
        assert "name the nodes to drain" in drain("", code=2)
        assert "cn09 is not suggested in" in drain("cn01,cn09", code=2)
        assert "cn10 is no node of this Slurm" in drain("cn01,cn10", code=2)
        said = drain("cn01,cn02", more=("--check",))
        assert "NodeName='cn01' State=DRAIN" in said and "NodeName='cn02'" not in said
        assert recap(said)["localhost"]["changed"] == 1
        assert reasons() == {"cn01": "none", "cn02": "DIMM 7", "cn03": "none"}
        assert "cn02 is left alone, Slurm has a reason: DIMM 7" in drain("cn01, cn02,")
        assert reasons() == {"cn01": hostile, "cn02": "DIMM 7", "cn03": "none"}
        assert recap(drain("cn01,cn02"))["localhost"]["changed"] == 0
        assert reasons() == {"cn01": hostile, "cn02": "DIMM 7", "cn03": "none"}
    finally:
        cluster("down", state=state)
