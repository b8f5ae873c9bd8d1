"""hyperfine's JSON."""

from __future__ import annotations

from pathlib import Path

import pytest

from nodeprint.errors import NodeprintError
from tests.support.tool_output import of_text, values


def test_a_file_without_calls_has_the_median(tmp_path: Path) -> None:
    text = '{"results": [{"command": "sort", "mean": 2.0, "stddev": 0.1, "median": 1.9}]}'
    assert values(of_text(tmp_path, text)) == {("sort",): 1.9}


def test_a_command_that_failed_is_rejected(tmp_path: Path) -> None:
    text = '{"results": [{"command": "sort x", "stddev": 0.1, "times": [1.0, 0.1], "exit_codes": [0, 2]}]}'
    with pytest.raises(NodeprintError, match="sort x failed"):
        of_text(tmp_path, text)
