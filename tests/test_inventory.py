"""The sheet from an Ansible inventory, and what is said where there is none, or no Ansible."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from nodeprint import config
from nodeprint.discover import inventory
from nodeprint.errors import NodeprintError

from .conftest import ROOT, need

LISTED: dict[str, Any] = {
    "_meta": {"hostvars": {"cn02": {"nodeprint_host": "node-b"}, "gpu01": {"ansible_host": "10.0.0.9"}}},
    "nodes": {"hosts": ["cn01.example.org", "cn02"], "children": ["gpus", "nodes"]},
    "gpus": {"hosts": ["gpu01", "cn02"]},
    "storage": {"hosts": ["oss01"]},
}


def test_the_hosts_of_the_group_and_of_its_children() -> None:
    nodes = inventory.sheet(LISTED, Path("hosts.yml"))
    assert [(node.node, node.host) for node in nodes] == [
        ("cn01.example.org", "cn01"), ("cn02", "node-b"), ("gpu01", "gpu01"),
    ]  # fmt: skip
    assert all(node.measure and node.job == 1 for node in nodes)


@pytest.mark.parametrize(
    "name", ["$(reboot)", "../../etc", "-oProxyCommand=x", "a b", "cn01\tx", "{{ lookup('pipe') }}"]
)
def test_a_hostile_name_is_refused(name: str) -> None:
    with pytest.raises(NodeprintError, match=r"hosts.yml: .* is not a node name"):
        inventory.sheet({"nodes": {"hosts": [name]}}, Path("hosts.yml"))
    hostile = {"nodes": {"hosts": ["cn01"]}, "_meta": {"hostvars": {"cn01": {"nodeprint_host": name}}}}
    with pytest.raises(NodeprintError, match=r"hosts.yml: .* is not a node name"):
        inventory.sheet(hostile, Path("hosts.yml"))


def test_without_the_group_the_example_is_named() -> None:
    with pytest.raises(NodeprintError, match=r"hosts.yml: it has no host in a group `nodes`; .*inventory.example.yml"):
        inventory.sheet({"all": {"hosts": ["cn01"]}}, Path("hosts.yml"))


def test_without_ansible_the_remedy_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(NodeprintError, match=r"launch: ansible-inventory is not on PATH; .*pip install ansible-core"):
        inventory.find(tmp_path / "hosts.yml")


def test_the_example_is_an_inventory() -> None:
    need("ansible-inventory")
    nodes = inventory.find(ROOT / "ansible/inventory.example.yml")
    assert [node.node for node in nodes] == [f"cn{number:03d}" for number in range(1, 65)]


def test_what_is_no_inventory_is_named(tmp_path: Path) -> None:
    need("ansible-inventory")
    path = tmp_path / "hosts.yml"
    path.write_text("nodes: {hosts: [[}")
    with pytest.raises(NodeprintError, match=r"hosts.yml: "):
        inventory.find(path)


@pytest.mark.parametrize(
    "changes, sentence",
    [
        ({}, "inventory: `launch: ansible` needs one"),
        ({"inventory": "none.yml"}, "inventory: none.yml is not there"),
        ({"inventory": "/dev", "site": {"setup": "setup.sh"}}, "site.setup: the nodes do not see this folder"),
        ({"serials": "maybe"}, "serials: 'maybe' is not allowed; choose from no, hash, yes"),
    ],
)
def test_what_is_missing_in_the_configuration(tmp_path: Path, changes: dict[str, Any], sentence: str) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(json.dumps({"launch": "ansible", "acceptance": str(ROOT / "config/acceptance.yaml")} | changes))
    with pytest.raises(NodeprintError, match=sentence):
        config.check_files(config.load(path), path)


@pytest.mark.parametrize("word", ["no", "hash", "yes"])
def test_serials_as_yaml_reads_them(tmp_path: Path, word: str) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(f"serials: {word}\n")
    assert config.serials(config.load(path)) == word


def test_no_playbook_changes_a_setting_whose_tag_is_not_named() -> None:
    tasks = yaml.safe_load((ROOT / "ansible/roles/nodeprint/tasks/settings.yml").read_text())
    assert len(tasks) == 4
    assert all(task["tags"][0] == "never" and task["tags"][1:] == [task["kernel_setting"]["name"]] for task in tasks)
