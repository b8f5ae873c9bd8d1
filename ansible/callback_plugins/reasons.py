"""What `make run` shows of the hosts: why they failed, and which of them measure.

A line per failure, `host<TAB>reason`, is appended to the file that NODEPRINT_REASONS names; and to that of
NODEPRINT_JOBS (launch/jobs.tsv, docs/formats.md) the row of a host that begins to measure. The last line of a host
counts. nodeprint/campaign/launchers/ansible.py enables it.
"""

from __future__ import annotations

import os
import re
import time
from pathlib import Path
from typing import Any

from ansible.plugins.callback import CallbackBase

DOCUMENTATION = """
name: reasons
type: notification
short_description: writes why hosts failed, and which of them measure, into files
requirements: [the environment variables NODEPRINT_REASONS and NODEPRINT_JOBS]
options: {}
description: [Lines with the host's name and more, separated by tabs.]
"""


#: Who logs in, and where: `root@10.0.0.7`, of which a reason keeps neither.
USER = re.compile(r"[\w.+-]+@(?=[\w\[])")
ADDRESS = re.compile(r"\b\d{1,3}(?:\.\d{1,3}){3}\b")


#: What a host says that asks for a password, and what to do, as nothing is asked here.
ADVICE = {
    "Permission denied (": "it may ask for a password: give ssh a key for it, or set ansible_password in the inventory",
    "Missing sudo password": "set ansible_become_password in the inventory, or let sudo ask for none",
    "a password is required": "set ansible_become_password in the inventory, or let sudo ask for none",
}
_BY_SSH = "Failed to connect to the host via ssh: "


def _of_ssh(text: str) -> str:
    """What ssh itself says: its last line. Those before it are a banner of the host, of any length."""
    before, by_ssh, said = text.partition(_BY_SSH)
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    return (lines[-1] if lines else before) if by_ssh else text


class CallbackModule(CallbackBase):  # type: ignore[misc] # Ansible has no types
    """Ansible's events that make a node NOT MEASURED."""

    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "notification"
    CALLBACK_NAME = "reasons"
    CALLBACK_NEEDS_ENABLED = True

    def v2_runner_on_start(self, host: Any, task: Any) -> None:
        if task.get_name().rpartition(" : ")[2] == "Measure":
            jobs = Path(os.environ["NODEPRINT_JOBS"])
            name = host.get_name()
            rows = (line.split("\t") for line in jobs.read_text().splitlines())
            job = next((row[1] for row in rows if row[0] == name), "")
            with jobs.open("a") as file:
                file.write(f"{name}\t{job}\t\tRUNNING\t{time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime())}\n")

    def v2_runner_on_unreachable(self, result: Any) -> None:
        self._note(result, "unreachable: ")

    def v2_runner_on_failed(self, result: Any, ignore_errors: bool = False) -> None:
        if not ignore_errors:
            self._note(result, "")

    def _note(self, result: Any, kind: str) -> None:
        said = result._result
        text = str(said.get("msg") or said.get("stderr") or said.get("stdout") or result._task.get_name())
        # what the node's shell or Python wrote where a module did not even begin
        stderr = str(said.get("module_stderr") or "").strip().splitlines()
        text = ": ".join([text.rstrip("."), *stderr[-1:]])
        text = _of_ssh(text).removeprefix("Task failed: ").rstrip(".")
        advice = next((advice for what, advice in ADVICE.items() if what in text), "")
        host = result._host.get_name()
        text = ADDRESS.sub(host, USER.sub("", text))
        words = " ".join("".join(c if c.isprintable() else " " for c in text).split())[:300]
        with Path(os.environ["NODEPRINT_REASONS"]).open("a") as file:
            file.write(f"{host}\t{kind}{words}{'; ' if advice else ''}{advice}\n")
