"""A command that gets a verdict."""

from __future__ import annotations

from pathlib import Path

import pytest

from nodeprint.errors import NodeprintError
from nodeprint.report import verdict_files


def test_the_command_reads_the_verdict(tmp_path: Path) -> None:
    out = tmp_path / "a file.json"
    verdict_files.notify(f"tee '{out}'", '{"campaign": "main"}')
    assert out.read_text() == '{"campaign": "main"}'


@pytest.mark.parametrize(
    ("command", "what"), [("false", "ended with 1"), ("/nowhere", "cannot be started"), ("'", "cannot be started")]
)
def test_a_command_that_fails_is_said(command: str, what: str) -> None:
    with pytest.raises(NodeprintError, match=what):
        verdict_files.notify(command, "{}")


def test_a_command_that_reads_nothing_is_none_that_failed() -> None:
    verdict_files.notify("true", "x" * 1_000_000)
