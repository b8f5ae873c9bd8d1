"""Add-ons are found by their entry points; without these nodeprint works and shows nothing of them."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

#: The command line where no add-on is installed: none is named, and importing one fails.
_HIDDEN = """
import sys
from importlib import metadata
every = metadata.entry_points
metadata.entry_points = lambda **of: () if of.get("group", "").startswith("nodeprint.") else every(**of)
sys.modules["nodeprint_addons"] = None
from nodeprint.cli import main
main()
"""
#: One where an installed add-on is broken.
_BROKEN = """
from importlib import metadata
every = metadata.entry_points
broken = metadata.EntryPoint("gone", "nodeprint_gone:commands", "nodeprint.commands")
metadata.entry_points = lambda **of: (broken, *every(**of)) if of.get("group") == "nodeprint.commands" else every(**of)
from nodeprint.cli import main
main()
"""
_PRESENT = "from nodeprint.cli import main; main()"


def call(program: str, *words: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", program, *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)


def commands(program: str) -> set[str]:
    done = call(program, "--help")
    assert done.returncode == 0, done.stderr
    return {words[0] for line in done.stdout.splitlines() if line.startswith("  ") and (words := line.split())}


def test_commands_come_and_go_with_the_addons() -> None:
    assert commands(_PRESENT) - commands(_HIDDEN) == {"iodie"}
    done = call(_HIDDEN, "iodie", "results/main")
    assert done.returncode == 2 and "No such command 'iodie'" in done.stderr


@pytest.mark.slow
def test_a_campaign_is_judged_and_reported_without_addons(campaign: Callable[..., Path]) -> None:
    folder = campaign("a", "b", "c")
    judged = []
    for program in (_PRESENT, _HIDDEN):
        done = call(program, "judge", folder)
        assert done.returncode == 0, done.stderr
        judged.append((folder / "verdict.json").read_bytes())
    assert judged[0] == judged[1] and json.loads(judged[0])["nodes"].keys() == {"a", "b", "c"}
    done = call(_HIDDEN, "report", folder)
    assert done.returncode == 0, done.stderr
    assert "3 nodes" in (folder / "report/cluster.html").read_text()


def test_a_broken_addon_is_named_and_left_out() -> None:
    done = call(_BROKEN, "--help")
    assert done.returncode == 0 and "  iodie " in done.stdout
    expected = (
        "nodeprint: add-on gone (nodeprint_gone:commands) fails to load: No module named 'nodeprint_gone'; install"
    )
    assert done.stderr.startswith(expected)
