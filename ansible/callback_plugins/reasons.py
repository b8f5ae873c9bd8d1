"""Why hosts failed: a line per failure, `host<TAB>reason`, appended to the file that NODEPRINT_REASONS names.

`make run` enables it (workflow/launch/ansible); the last line of a host counts.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from ansible.plugins.callback import CallbackBase

DOCUMENTATION = """
name: reasons
type: notification
short_description: writes why hosts failed into a file
requirements: [the environment variable NODEPRINT_REASONS]
options: {}
description: [A line per failure with the host's name and the reason, separated by a tab.]
"""


class CallbackModule(CallbackBase):
    """Ansible's events that make a node NOT MEASURED."""

    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "notification"
    CALLBACK_NAME = "reasons"
    CALLBACK_NEEDS_ENABLED = True

    def v2_runner_on_unreachable(self, result: Any) -> None:
        self._note(result, "unreachable: ")

    def v2_runner_on_failed(self, result: Any, ignore_errors: bool = False) -> None:
        if not ignore_errors:
            self._note(result, "")

    def _note(self, result: Any, kind: str) -> None:
        said = result._result
        text = str(said.get("msg") or said.get("stderr") or said.get("stdout") or result._task.get_name())
        text = text.removeprefix("Task failed: ").removeprefix("Failed to connect to the host via ssh: ")
        words = " ".join("".join(c if c.isprintable() else " " for c in text).split())
        with Path(os.environ["NODEPRINT_REASONS"]).open("a") as file:
            file.write(f"{result._host.get_name()}\t{kind}{words[:400]}\n")
