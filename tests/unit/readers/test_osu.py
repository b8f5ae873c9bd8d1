"""OSU micro-benchmarks."""

from __future__ import annotations

from pathlib import Path

import pytest

from nodeprint.errors import NodeprintError
from tests.support.tool_output import of_text, values


def test_of_several_times_the_average_is_read(tmp_path: Path) -> None:
    head = "# OSU MPI Allreduce Latency Test v5.8\n# Size       Avg Latency(us)   Min Latency(us)   Max Latency(us)\n"
    figures = values(of_text(tmp_path, f"{head}4         1.60              1.10              2.90\n"))
    assert figures == {("osu-mpi-allreduce-latency", "4"): 1.6}


def test_a_table_that_was_cut_is_rejected(tmp_path: Path) -> None:
    first = "# OSU MPI Latency Test v5.8\n# Size   Latency (us)\n1   0.5\n"
    with pytest.raises(NodeprintError, match="line 5: a table without a line"):
        of_text(tmp_path, f"{first}# OSU MPI Bandwidth Test v5.8\n# Size   Bandwidth (MB/s)\n")
