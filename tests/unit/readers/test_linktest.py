"""The output of LinkTest."""

from __future__ import annotations

from pathlib import Path

import pytest

from nodeprint.errors import NodeprintError
from tests.support.tool_output import LINKTEST, read_text


def test_linktest_of_juelich_prints_pairs_in_a_serial_run(tmp_path: Path) -> None:
    imported = read_text(tmp_path, LINKTEST)
    cores = imported.core_matrix()
    assert (imported.tool, cores.kernel, cores.quantity) == ("linktest", "linktest", "message")
    assert cores.facts == {"message_bytes": 1 << 20}
    assert [cores.ns[0, 1], cores.ns[1, 0], cores.ns[3, 2]] == [78000, 78200, 74000]
    summaries = "".join(line for line in LINKTEST.splitlines(True) if "->" not in line)
    with pytest.raises(NodeprintError, match=r"a parallel run prints summaries alone .*; run LinkTest serially"):
        read_text(tmp_path, summaries)
