"""Ansible: nodes without a scheduler, which ansible/measure.yml measures in one call.

The sample sheet is made of what `ansible-inventory --list` prints, of the hosts in group `nodes`.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from nodeprint import files, reading
from nodeprint.campaign import node_lists
from nodeprint.campaign.launchers.launcher import Engine
from nodeprint.campaign.node_sheet import Node, checked_name, short
from nodeprint.errors import NodeprintError, printable
from nodeprint.settings import config as configuration
from nodeprint.settings.config_file import Config
from nodeprint.settings.texts import say

#: The group whose hosts are measured.
GROUP = "nodes"
_SECONDS = 120.0


class AnsibleLauncher(Engine):
    """Measures the hosts of an inventory by a playbook."""

    name, title = "ansible", "Ansible"
    shares_directory = False
    call_keys: ClassVar = {"hosts": "inventory"}

    def nodes(self, config: Config) -> list[Node]:
        return find(config)

    def check(self, config: Config, path: Path) -> None:
        own = config.inventory
        if configuration.is_host_list(own) or (own and Path(own).exists()):
            return
        what = f"{own} is not there" if own else "`launch: ansible` needs one"
        advice = (
            "name an Ansible inventory, as ansible/inventory.example.yml, or call `make run LAUNCH=ansible HOSTS=a,b,c`"
        )
        raise NodeprintError(what, where=path, key="inventory", advice=advice)

    def other_nodes(self, former: Mapping[str, Any], config: Config) -> tuple[str, str, str] | None:
        before, now = former.get("inventory", config.inventory), config.inventory
        # another path may be the same inventory, and the sheet has its nodes
        is_other = before != now and any(map(configuration.is_host_list, (before, now)))
        return ("inventory", before, now) if is_other else None

    def at_an_interruption(self, config: Config, *, jobs_go_on: bool) -> str:
        campaign = configuration.campaign_folder(config)
        playbook = f"ansible-playbook -i {inventory(config)} ansible/fetch.yml"
        return say("launch", "on_nodes", fetch=f"{playbook} -e nodeprint_campaign={campaign}")

    def measure(self, campaign: Path, config: Config, hosts: Sequence[str], listed: Path) -> Mapping[str, str]:
        beside = {name: listed.with_name(f"{listed.name}.{name}") for name in ("hosts", "reasons")}
        queue = listed.with_name("jobs.tsv")
        files.write(beside["reasons"], "")
        files.write(beside["hosts"], "".join(f"{host}\n" for host in hosts))
        archive = subprocess.run(["kernels/archive"], stdout=subprocess.PIPE, text=True, check=False)
        if archive.returncode:
            reasons = dict.fromkeys(hosts, say("launch", "no_kernels"))
        else:
            variables = {
                "ANSIBLE_CONFIG": os.environ.get("ANSIBLE_CONFIG", "ansible/ansible.cfg"),
                "ANSIBLE_NOCOLOR": "1",
                "ANSIBLE_CALLBACKS_ENABLED": "reasons",
                "NODEPRINT_REASONS": str(beside["reasons"].absolute()),
                "NODEPRINT_JOBS": str(queue.absolute()),
            }
            extra = json.dumps({"nodeprint_campaign": str(campaign), "nodeprint_archive": archive.stdout.strip()})
            command = ["ansible-playbook", "--inventory", str(inventory(config)), "--limit", f"@{beside['hosts']}"]
            words = [*command, "--extra-vars", extra, "ansible/measure.yml"]
            subprocess.run(words, env=os.environ | variables, check=False)
            # of several failures of a host the last one counts
            lines = reading.required(beside["reasons"]).splitlines()
            reasons = dict(line.split("\t", 1) for line in lines if "\t" in line)
        for path in beside.values():
            files.remove(path)
        return reasons


def inventory(config: Config) -> Path:
    """Return the inventory of a configuration: its own file, or the one that `find` writes for its list of hosts."""
    own = configuration.is_host_list(config.inventory)
    return configuration.campaign_folder(config) / "launch/hosts.yml" if own else Path(config.inventory)


def find(config: Config) -> list[Node]:
    """Return the sheet of the group `nodes` of an inventory, or of a list of hosts, which becomes an inventory.

    Raises NodeprintError if the group has no host or Ansible is missing; nothing is written then.
    """
    program = _program()
    if not configuration.is_host_list(config.inventory):
        own = Path(config.inventory)
        return sheet(_list(program, own), own)
    names = node_lists.expand(config.inventory, "inventory")
    listed: dict[str, Any] = {GROUP: {"hosts": {name: {} for name in names}}}
    nodes = sheet(listed, config.inventory)
    files.write(inventory(config), json.dumps(listed, indent=1) + "\n")
    return nodes


def sheet(listed: Mapping[str, Any], where: Path | str) -> list[Node]:
    """The sheet's rows, from the inventory as JSON. The host is the name itself, or its variable `nodeprint_host`."""
    variables = listed.get("_meta", {}).get("hostvars", {})
    nodes = []
    for name in _members(listed, GROUP):
        host = str(variables.get(name, {}).get("nodeprint_host", short(name)))
        nodes.append(Node(node=checked_name(name, where), host=checked_name(host, where), state="inventory"))
    if not nodes:
        advice = "write the hosts to measure below `nodes:`, as in ansible/inventory.example.yml"
        raise NodeprintError(f"it has no host in a group `{GROUP}`", where=where, advice=advice)
    return nodes


def _members(listed: Mapping[str, Any], group: str) -> list[str]:
    """The hosts of a group and of its children, each once, in the inventory's order."""
    hosts: dict[str, None] = {}
    todo = [group]
    seen = set()
    while todo:
        name = todo.pop(0)
        if name not in seen:
            seen.add(name)
            hosts |= dict.fromkeys(listed.get(name, {}).get("hosts", []))
            todo += listed.get(name, {}).get("children", [])
    return list(hosts)


def _program() -> str:
    """Return the path of ansible-inventory. Raises NodeprintError if Ansible is not installed."""
    # the environment that this Python belongs to comes first, also where it was not activated
    program = shutil.which("ansible-inventory", path=f"{Path(sys.executable).parent}:{os.environ.get('PATH', '')}")
    if program is None:
        problem = "Ansible is not installed (ansible-inventory is not on PATH), and nothing was written"
        advice = f"install it with `{shlex.quote(sys.executable)} -m pip install ansible-core`, then call this again"
        raise NodeprintError(problem, key="launch", advice=advice)
    return program


def _list(program: str, own: Path) -> dict[str, Any]:
    command = [program, "--inventory", str(own), "--list"]
    try:
        done = subprocess.run(command, capture_output=True, timeout=_SECONDS, check=False, stdin=subprocess.DEVNULL)
    except subprocess.TimeoutExpired as error:
        advice = f"call `{' '.join(command)}` by hand to see more"
        raise NodeprintError(f"no answer in {_SECONDS:.0f} s", where=own, advice=advice) from error
    try:
        listed = json.loads(done.stdout) if done.returncode == 0 else None
    except ValueError:
        listed = None
    if not isinstance(listed, dict):
        lines = [line for line in done.stderr.decode(errors="replace").splitlines() if line.strip()]
        problem = printable(lines[-1].strip()) if lines else "it is no inventory"
        raise NodeprintError(problem, where=own, advice=f"`{' '.join(command)}` shows more")
    return listed
