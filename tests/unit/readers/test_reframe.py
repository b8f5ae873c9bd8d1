"""ReFrame's logs of performance."""

from __future__ import annotations

from pathlib import Path

import pytest

from nodeprint.errors import NodeprintError
from tests.support.tool_output import of_text, values

_HEAD = "job_completion_time|name|jobid|job_nodelist|triad_value|triad_unit\n"


def test_a_job_on_one_node_has_its_figure(tmp_path: Path) -> None:
    log = of_text(tmp_path, f"{_HEAD}2026-11-26T14:33|stream|7|['cn1']|4345.5|MB/s\n")
    assert values(log) == {("stream triad",): 4345.5}
    assert log.frame[["node", "job", "time"]].iloc[0].tolist() == ["cn1", "7", "2026-11-26T14:33:00Z"]


def test_a_job_on_two_nodes_and_a_short_line_are_rejected(tmp_path: Path) -> None:
    with pytest.raises(NodeprintError, match="line 2: a job on cn1,cn2"):
        of_text(tmp_path, f"{_HEAD}x|stream|7|cn1,cn2|1|MB/s\n")
    with pytest.raises(NodeprintError, match="line 2: 3 cells where the names are 6"):
        of_text(tmp_path, f"{_HEAD}x|stream|7\n")
