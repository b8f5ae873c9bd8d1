"""Intel MPI Benchmarks."""

from __future__ import annotations

from pathlib import Path

import pytest

from nodeprint.errors import NodeprintError
from tests.support.tool_output import of_text, values

_HEAD = "       #bytes #repetitions      t[usec]   Mbytes/sec\n"


def test_a_table_has_a_time_and_a_rate_of_each_size(tmp_path: Path) -> None:
    text = f"# Benchmarking PingPong\n# #processes = 2\n{_HEAD}  0  1000  0.20  0.00\n  4  1000  0.25  16.0\n"
    figures = values(of_text(tmp_path, text))
    assert figures == {("imb-pingpong", "0"): 0.2, ("imb-pingpong", "4"): 0.25, ("imb-pingpong-rate", "4"): 16.0}


def test_a_benchmark_that_was_stopped_is_rejected(tmp_path: Path) -> None:
    text = f"# Benchmarking PingPong\n# #processes = 2\n{_HEAD}  4  1000  0.25  16.0\n# Benchmarking Bcast\n"
    with pytest.raises(NodeprintError, match="line 5: a benchmark without a table"):
        of_text(tmp_path, text)
