"""Ansible on real hosts: sshd in namespaces with names and addresses of their own, reached with host keys checked."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from .conftest import ROOT, environment, need
from .test_cluster import cluster, hosts, outcome, text_of, verdicts

pytestmark = pytest.mark.machine

CLUSTER = ROOT / "tests/cluster/cluster"
NODES = ("cn01", "cn02", "cn03")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Three hosts with sshd; the cluster's state folder."""
    need("sshd", "ssh", "ip", "nsenter", "ansible-playbook", root="start hosts in namespaces")
    state = tmp_path_factory.mktemp("hosts") / "state"
    cluster("up", str(len(NODES)), "--sshd", "--state", state)
    yield state
    cluster("down", state=state)


def inventory(site: Path, path: Path, **of_hosts: dict[str, Any]) -> Path:
    """An inventory of the hosts, each with variables of its own."""
    ssh = f"-o UserKnownHostsFile={site}/ssh/known_hosts -o ServerAliveInterval=1 -o ServerAliveCountMax=3"
    variables = {
        "ansible_user": "root", "ansible_ssh_private_key_file": f"{site}/ssh/user", "ansible_ssh_extra_args": ssh,
        "ansible_remote_tmp": "/run/node/tmp", "nodeprint_home": "/run/node/nodeprint",
        "nodeprint_measure_busy": True,  # no test depends on how quiet the machine is
    }  # fmt: skip
    path.write_text(json.dumps({"nodes": {"hosts": {name: {} for name in NODES} | of_hosts, "vars": variables}}))
    return path


def login(site: Path, house: Path, *command: str | Path, code: int = 0) -> str:
    """What a command says on the login node."""
    done = subprocess.run(
        [CLUSTER, "exec", "login", *command], cwd=house, env=environment() | {"CLUSTER_STATE": str(site)},
        capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout + done.stderr


def main_job(site: Path, house: Path, config: dict[str, Any], *more: str) -> str:
    """The main job on the login node."""
    path = house / f"{config['campaign']}.yaml"
    usual = {"preset": "test", "measure": ["coherence-cas"], "launch": "ansible", "inventory": "hosts.yml", "runs": 1}
    path.write_text(json.dumps(usual | config))
    return login(site, house, "workflow/run", "--config", path.name, *more)


def test_the_main_job_with_a_host_that_is_down(house: Path, site: Path) -> None:
    need("pdftotext")
    campaign = house / "results/ansible"
    inventory(site, house / "hosts.yml")
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
