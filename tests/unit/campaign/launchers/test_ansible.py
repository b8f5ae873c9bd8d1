"""The sheet from an Ansible inventory, and what is said where there is none, or no Ansible."""

import importlib.util
import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml

from nodeprint.campaign.launchers import ansible, launcher_registry
from nodeprint.errors import NodeprintError
from nodeprint.machine import doctor
from nodeprint.settings import config
from nodeprint.settings.config_file import Config
from tests.support.real_parts import ROOT, need

LISTED: dict[str, Any] = {
    "_meta": {"hostvars": {"cn02": {"nodeprint_host": "node-b"}, "gpu01": {"ansible_host": "10.0.0.9"}}},
    "nodes": {"hosts": ["cn01.example.org", "cn02"], "children": ["gpus", "nodes"]},
    "gpus": {"hosts": ["gpu01", "cn02"]},
    "storage": {"hosts": ["oss01"]},
}


def launched(results: Path, hosts: Path | str) -> Config:
    """A configuration that measures these hosts by Ansible."""
    return Config("c", results=str(results), launch="ansible", inventory=str(hosts))


def test_the_hosts_of_the_group_and_of_its_children() -> None:
    nodes = ansible.sheet(LISTED, Path("hosts.yml"))
    assert [(node.node, node.host) for node in nodes] == [
        ("cn01.example.org", "cn01"),
        ("cn02", "node-b"),
        ("gpu01", "gpu01"),
    ]
    assert all(node.measure and node.job == 1 for node in nodes)


@pytest.mark.parametrize(
    "name", ["$(reboot)", "../../etc", "-oProxyCommand=x", "a b", "cn01\tx", "{{ lookup('pipe') }}"]
)
def test_a_hostile_name_is_refused(name: str) -> None:
    with pytest.raises(NodeprintError, match=r"hosts.yml: .* is not a node name"):
        ansible.sheet({"nodes": {"hosts": [name]}}, Path("hosts.yml"))
    hostile = {"nodes": {"hosts": ["cn01"]}, "_meta": {"hostvars": {"cn01": {"nodeprint_host": name}}}}
    with pytest.raises(NodeprintError, match=r"hosts.yml: .* is not a node name"):
        ansible.sheet(hostile, Path("hosts.yml"))


def test_a_list_of_hosts_becomes_an_inventory_of_the_campaign(tmp_path: Path) -> None:
    settings = launched(tmp_path, "cn[01-02],gpu7")
    assert [node.node for node in ansible.find(settings)] == ["cn01", "cn02", "gpu7"]
    path = ansible.inventory(settings)
    assert path == tmp_path / "c/launch/hosts.yml"
    assert yaml.safe_load(path.read_text()) == {"nodes": {"hosts": {"cn01": {}, "cn02": {}, "gpu7": {}}}}
    ansible.AnsibleLauncher().check(settings, tmp_path / "config.yaml")
    single = replace(settings, inventory="cn01,")
    assert [node.node for node in ansible.find(single)] == ["cn01"]
    assert yaml.safe_load(path.read_text()) == {"nodes": {"hosts": {"cn01": {}}}}
    own = replace(settings, inventory="hosts.yml")
    assert ansible.inventory(own) == Path("hosts.yml")
    with pytest.raises(NodeprintError, match=r"inventory: hosts.yml is not there; .* `make run LAUNCH=ansible HOSTS="):
        ansible.AnsibleLauncher().check(own, tmp_path / "config.yaml")


def test_without_the_group_the_example_is_named() -> None:
    with pytest.raises(NodeprintError, match=r"hosts.yml: it has no host in a group `nodes`; .*inventory.example.yml"):
        ansible.sheet({"all": {"hosts": ["cn01"]}}, Path("hosts.yml"))


@pytest.mark.parametrize("hosts", ["a,b", "hosts.yml"])
def test_without_ansible_the_remedy_is_named_and_nothing_written(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, hosts: str
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("sys.executable", str(tmp_path / "my python"))
    with pytest.raises(NodeprintError) as rejection:
        ansible.find(launched(tmp_path / "results", hosts))
    assert str(rejection.value) == (
        "launch: Ansible is not installed (ansible-inventory is not on PATH), and nothing was written; install it with "
        f"`'{tmp_path}/my python' -m pip install ansible-core`, then call this again"
    )
    assert not list(tmp_path.iterdir())


def test_the_environments_own_ansible_needs_no_path(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """`.venv/bin/nodeprint` is called by its path, where `.venv/bin` is on nobody's PATH."""
    for name, prints in (("ansible-inventory", json.dumps(LISTED)), ("ansible-playbook", "ansible [core 2.19.1]")):
        (tmp_path / "bin").mkdir(exist_ok=True)
        (tmp_path / "bin" / name).write_text(f"#!/bin/sh\necho '{prints}'\n")
        (tmp_path / "bin" / name).chmod(0o755)
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setattr("sys.executable", str(tmp_path / "bin/python"))
    nodes = ansible.find(launched(tmp_path, tmp_path / "hosts.yml"))
    assert [node.node for node in nodes] == ["cn01.example.org", "cn02", "gpu01"]
    found = {fact.name: fact for fact in doctor.facts()}
    assert (found["ansible-playbook"].answer, found["ansible-playbook"].detail) == ("yes", "ansible [core 2.19.1]")


def test_the_example_is_an_inventory() -> None:
    need("ansible-inventory")
    nodes = ansible.find(launched(ROOT, ROOT / "ansible/inventory.example.yml"))
    assert [node.node for node in nodes] == [f"cn{number:03d}" for number in range(1, 65)]


def test_what_is_no_inventory_is_named(tmp_path: Path) -> None:
    need("ansible-inventory")
    path = tmp_path / "hosts.yml"
    path.write_text("nodes: {hosts: [[}")
    with pytest.raises(NodeprintError, match=r"hosts.yml: "):
        ansible.find(launched(tmp_path, path))


@pytest.mark.parametrize(
    "changes, sentence",
    [
        ({}, "inventory: `launch: ansible` needs one"),
        ({"inventory": "none.yml"}, "inventory: none.yml is not there"),
        ({"inventory": "/dev", "site": {"setup": "setup.sh"}}, "site.setup: the nodes do not see this directory"),
        ({"serials": "maybe"}, "serials: 'maybe' is not allowed; choose from hash, no, yes"),
    ],
)
def test_what_is_missing_in_the_configuration(tmp_path: Path, changes: dict[str, Any], sentence: str) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(json.dumps({"launch": "ansible", "acceptance": str(ROOT / "config/acceptance.yaml")} | changes))
    with pytest.raises(NodeprintError, match=sentence):
        launcher_registry.check(config.load(path), path)


@pytest.mark.parametrize("word", ["no", "hash", "yes"])
def test_the_words_of_serials_are_no_truth_values(tmp_path: Path, word: str) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(f"serials: {word}\n")
    assert config.load(path).serials == word


def test_no_playbook_changes_a_setting_whose_tag_is_not_named() -> None:
    tasks = yaml.safe_load((ROOT / "ansible/roles/nodeprint/tasks/settings.yml").read_text())
    assert len(tasks) == 4
    assert all(task["tags"][0] == "never" and task["tags"][1:] == [task["kernel_setting"]["name"]] for task in tasks)


def test_a_reason_has_neither_users_nor_addresses(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    need("ansible-playbook")
    path = ROOT / "ansible/callback_plugins/reasons.py"
    spec = importlib.util.spec_from_file_location("reasons", path)
    assert spec is not None and spec.loader is not None
    reasons = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(reasons)
    monkeypatch.setenv("NODEPRINT_REASONS", str(tmp_path / "reasons"))

    def result(**said: str) -> SimpleNamespace:
        host, task = SimpleNamespace(get_name=lambda: "cn07"), SimpleNamespace(get_name=lambda: "Survey")
        return SimpleNamespace(_result=said, _host=host, _task=task)

    callback = reasons.CallbackModule()
    failed = "Task failed: Failed to connect to the host via ssh: "
    callback.v2_runner_on_unreachable(result(msg=f"{failed}admin@10.0.0.9: Permission denied (publickey)."))
    callback.v2_runner_on_unreachable(result(msg=f"{failed}ssh: connect to host 10.0.0.9 port 22:\tNo route\x1b[31m"))
    python = "/bin/sh: 1: /usr/bin/python3: not found"
    callback.v2_runner_on_failed(result(msg="The module failed.", module_stderr=f"trace\n{python}\n"))
    banner = "*" * 300 + "\n* Authorised use only *\n" * 9
    callback.v2_runner_on_unreachable(result(msg=f"{failed}{banner}root@10.0.0.9: Permission denied (password)."))
    callback.v2_runner_on_failed(result(msg="Missing sudo password"))
    callback.v2_runner_on_failed(result())
    of_ssh = reasons.ADVICE["Permission denied ("]
    assert (tmp_path / "reasons").read_text().splitlines() == [
        f"cn07\tunreachable: cn07: Permission denied (publickey); {of_ssh}",
        "cn07\tunreachable: ssh: connect to host cn07 port 22: No route [31m",
        f"cn07\tThe module failed: {python}",
        f"cn07\tunreachable: cn07: Permission denied (password); {of_ssh}",
        f"cn07\tMissing sudo password; {reasons.ADVICE['Missing sudo password']}",
        "cn07\tSurvey",
    ]
