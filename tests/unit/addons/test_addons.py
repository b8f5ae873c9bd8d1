"""Add-ons are found by their entry points; without these nodeprint works and shows nothing of them."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from importlib import metadata
from pathlib import Path

import pytest

from nodeprint import addons

#: What hides all add-ons: no entry point is found, and importing one fails.
_HIDE = """
import sys
from importlib import metadata
every = metadata.entry_points
metadata.entry_points = lambda **of: () if of.get("group", "").startswith("nodeprint.") else every(**of)
sys.modules["nodeprint_addons"] = None
"""
#: An installed add-on that is broken.
_BREAK = """
from importlib import metadata
every = metadata.entry_points
broken = metadata.EntryPoint("gone", "nodeprint_gone:commands", "nodeprint.commands")
metadata.entry_points = lambda **of: (broken, *every(**of)) if of.get("group") == "nodeprint.commands" else every(**of)
"""
_PRESENT = "from nodeprint.cli import main; main()"
_HIDDEN = _HIDE + _PRESENT
_BROKEN = _BREAK + _PRESENT
#: The text of `nodeprint here` for a measured campaign.
_HERE = """
import sys
from pathlib import Path
from nodeprint.here import result, view
from nodeprint.cli.shared import show_sections
show_sections(view.sections(result.read(Path(sys.argv[1]))))
"""


def call(program: str, *words: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", program, *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)


def help_of(program: str) -> str:
    done = call(program, "--help")
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_commands_come_and_go_with_the_addons() -> None:
    row = "Research  atlas, iodie, publish, verify-card\n"
    assert row in help_of(_PRESENT)
    assert help_of(_HIDDEN) == help_of(_PRESENT).replace(row, "")
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


@pytest.mark.slow
def test_rows_of_a_single_machine_come_and_go_with_the_addons(campaign: Callable[..., Path]) -> None:
    folder = campaign("a")
    (folder / "plan.tsv").write_text("coherence-cas\tcoherence\t--op cas\t2\n")
    present, hidden = call(_HERE, folder), call(_HIDE + _HERE, folder)
    assert present.returncode == hidden.returncode == 0, present.stderr + hidden.stderr
    row = "Not compared with published machines:"
    assert row in present.stdout and row not in hidden.stdout
    assert "core-to-core latency  every pair  51.5 ns" in hidden.stdout
    present, hidden = (call(program, "judge", folder, "--reference", "published") for program in (_PRESENT, _HIDDEN))
    assert present.returncode == 0 and f"a: {row}" in present.stdout
    assert hidden.returncode == 2 and "published: cannot be read" in hidden.stderr


def test_a_broken_addon_is_named_and_left_out() -> None:
    done = call(_BROKEN, "--help")
    assert done.returncode == 0 and "iodie" in done.stdout
    expected = (
        "nodeprint: add-on gone (nodeprint_gone:commands) fails to load: No module named 'nodeprint_gone'; install"
    )
    assert done.stderr.startswith(expected)


def test_an_addon_whose_code_is_wrong_costs_itself_alone(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "wrong_addon.py").write_text("commands = (")
    monkeypatch.syspath_prepend(tmp_path)
    broken = metadata.EntryPoint("wrong", "wrong_addon:commands", "nodeprint.commands")
    monkeypatch.setattr(metadata, "entry_points", lambda **_: (broken,))
    assert addons.load(addons.COMMANDS) == {}
    assert capsys.readouterr().err.startswith("nodeprint: add-on wrong (wrong_addon:commands) fails to load: ")
