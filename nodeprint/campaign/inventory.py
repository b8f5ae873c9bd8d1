"""An Ansible inventory: the sample sheet from what `ansible-inventory --list` prints, of the hosts in group `nodes`."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from nodeprint import files
from nodeprint.campaign import node_lists
from nodeprint.campaign.node_sheet import Node, checked_name, short
from nodeprint.errors import NodeprintError, printable
from nodeprint.settings import config as configuration
from nodeprint.settings.config_file import Config

#: The group whose hosts are measured.
GROUP = "nodes"
_SECONDS = 120.0


def path(config: Config) -> Path:
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
    files.write(path(config), json.dumps(listed, indent=1) + "\n")
    return nodes


def sheet(listed: Mapping[str, Any], inventory: Path | str) -> list[Node]:
    """The sheet's rows, from the inventory as JSON. The host is the name itself, or its variable `nodeprint_host`."""
    variables = listed.get("_meta", {}).get("hostvars", {})
    nodes = []
    for name in _members(listed, GROUP):
        host = str(variables.get(name, {}).get("nodeprint_host", short(name)))
        nodes.append(Node(node=checked_name(name, inventory), host=checked_name(host, inventory), state="inventory"))
    if not nodes:
        advice = "write the hosts to measure below `nodes:`, as in ansible/inventory.example.yml"
        raise NodeprintError(f"it has no host in a group `{GROUP}`", where=inventory, advice=advice)
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


def _list(program: str, inventory: Path) -> dict[str, Any]:
    command = [program, "--inventory", str(inventory), "--list"]
    try:
        done = subprocess.run(command, capture_output=True, timeout=_SECONDS, check=False, stdin=subprocess.DEVNULL)
    except subprocess.TimeoutExpired as error:
        advice = f"call `{' '.join(command)}` by hand to see more"
        raise NodeprintError(f"no answer in {_SECONDS:.0f} s", where=inventory, advice=advice) from error
    try:
        listed = json.loads(done.stdout) if done.returncode == 0 else None
    except ValueError:
        listed = None
    if not isinstance(listed, dict):
        lines = [line for line in done.stderr.decode(errors="replace").splitlines() if line.strip()]
        problem = printable(lines[-1].strip()) if lines else "it is no inventory"
        raise NodeprintError(problem, where=inventory, advice=f"`{' '.join(command)}` shows more")
    return listed
