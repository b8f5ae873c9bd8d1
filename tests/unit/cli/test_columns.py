"""What commands print for a reader is as wide as COLUMNS says, and 100 columns in a pipe; nothing of it is cut."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest

from nodeprint.machine.topology import presets
from nodeprint.simulate import Plan
from nodeprint.simulate import write as simulate
from tests.support.campaigns import judged_weeks
from tests.support.command_line import call
from tests.support.real_parts import ROOT

#: What may be wider: a path.
_PATHS = re.compile(r"\S*/\S*")


@pytest.fixture(scope="module")
def campaigns(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A fleet with findings of several kinds and a node without records, a single machine, and four weeks."""
    folder = tmp_path_factory.mktemp("c")
    slow = ("node004: core 3 +6ns", "node007: core 1 +9ns", "node001: fingerprint memory_mts=2133")
    simulate(Plan(presets.preset("naples-2x32"), 9, cells=True, runs=2, defects=slow), folder / "fleet")
    shutil.rmtree(folder / "fleet/nodes/node008")
    simulate(Plan(presets.preset("naples-2x32"), 1, cells=True), folder / "one")
    judged_weeks(
        folder / "weeks", Plan(presets.preset("naples-2x32"), 3, runs=2), range(4), {2: ("node001: core 3 +6ns",)}
    )
    for name in ("fleet", "one"):
        assert call("judge", folder / name) == 0
    return folder


def printed(
    words: Sequence[str], columns: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> list[str]:
    monkeypatch.setenv("COLUMNS", str(columns))
    assert call(*words) in (0, 1, 3)
    return capsys.readouterr().out.splitlines()


def tokens(lines: Sequence[str]) -> list[str]:
    """The numbers and names of nodes, sorted: the words of a folded table have another order."""
    return sorted(re.findall(r"\bnode\d+|\d+(?:[.,]\d+)*", " ".join(line.strip() for line in lines)))


_COMMANDS = {
    "show": ["show", "fleet"],
    "show one": ["show", "one"],
    "judge": ["judge", "fleet"],
    "judge node": ["judge", "fleet", "--node", "node004"],
    "status": ["status", "fleet"],
    "drift": ["drift", "fleet"],
    "topology": ["topology", "--root", "one/nodes/node000/job1/survey.tar.gz"],
    "structure": ["structure", "one/nodes/node000"],
    "history": ["history", "weeks"],
    "doctor": ["doctor"],
}


def too_wide(lines: Sequence[str], columns: int) -> list[str]:
    return [line for line in lines if len(_PATHS.sub("", line)) > columns]


@pytest.mark.parametrize("name", _COMMANDS)
def test_no_line_is_wider_than_the_terminal_and_nothing_is_cut(
    name: str, campaigns: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(campaigns)
    whole = printed(_COMMANDS[name], 2000, monkeypatch, capsys)
    assert whole, "there is something to be wrapped"
    for columns in (60, 100):
        lines = printed(_COMMANDS[name], columns, monkeypatch, capsys)
        assert not too_wide(lines, columns)
        # a matrix has tens where there is no room for more, and the processes of this machine change
        if name not in ("show one", "doctor"):
            table, text = _medians(whole) if name == "show" else ([], whole)
            narrow_table, narrow_text = _medians(lines) if name == "show" else ([], lines)
            assert tokens(narrow_text) == tokens(text), f"at {columns} columns"
            assert not Counter(tokens(narrow_table)) - Counter(tokens(table)), "only numbers and names of nodes go"
            values = [re.findall(r"[\d.]+ (?:ns|GB/s|GHz)", " ".join(of)) for of in (narrow_table, table)]
            assert values[0] == values[1], f"at {columns} columns"


def _medians(lines: Sequence[str]) -> tuple[Sequence[str], Sequence[str]]:
    """The table of medians, which omits the nodes of its values where it is narrow, and all other lines."""
    end = list(lines).index("")
    return lines[:end], lines[end:]


def test_a_pipe_has_a_hundred_columns(campaigns: Path) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "COLUMNS"} | {"PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "nodeprint", "show", "fleet"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=campaigns, env=environment)
    lines = done.stdout.splitlines()
    assert not too_wide(lines, 100) and max(map(len, lines)) > 90, done.stderr
