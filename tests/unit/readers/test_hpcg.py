"""The output of HPCG."""

from __future__ import annotations

from pathlib import Path

import pytest

from nodeprint.errors import NodeprintError
from tests.support.tool_output import of_text, values


#: https://github.com/hpcg-benchmark/hpcg, src/ReportResults.cpp: the keys of version 3.1 and the sentence of 3.0
@pytest.mark.parametrize(
    "line",
    [
        "Final Summary::HPCG result is VALID with a GFLOP/s rating of=51.7859",
        "  HPCG result is VALID with a GFLOP/s rating of: 51.7859",
    ],
)
def test_hpcg(tmp_path: Path, line: str) -> None:
    text = f"HPCG-Benchmark\nversion=3.1\nMachine Summary::Distributed Processes=96\n{line}\n"
    assert values(of_text(tmp_path, text)) == {("hpcg",): 51.7859}
    with pytest.raises(NodeprintError, match="HPCG's result is invalid"):
        of_text(tmp_path, text.replace("VALID", "INVALID"))
    with pytest.raises(NodeprintError, match="no HPCG result"):
        of_text(tmp_path, text.rpartition(line)[0])
