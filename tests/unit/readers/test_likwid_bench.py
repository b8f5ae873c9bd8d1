"""The output of likwid-bench."""

from __future__ import annotations

from pathlib import Path

import pytest

from nodeprint.errors import NodeprintError
from tests.support.tool_output import of_text, values

_TEST = "LIKWID MICRO BENCHMARK\nTest: {test}\nSize (Byte): {size}\nMFlops/s: {flops}\nMByte/s: {rate}\n"


def test_working_sets_are_points_where_there_are_several(tmp_path: Path) -> None:
    text = "".join(_TEST.format(test="triad", size=size, flops=9, rate=rate) for size, rate in ((4096, 8.5), (8192, 7)))
    figures = values(of_text(tmp_path, text))
    assert figures["likwid-bench-triad", "4096"] == 8.5 and figures["likwid-bench-triad", "8192"] == 7
    assert figures["likwid-flops-triad", "4096"] == 9


def test_a_test_that_was_stopped_is_rejected(tmp_path: Path) -> None:
    whole = _TEST.format(test="triad", size=4096, flops=9, rate=8)
    with pytest.raises(NodeprintError, match="line 7: a test without its bandwidth"):
        of_text(tmp_path, f"{whole}LIKWID MICRO BENCHMARK\nTest: load\nSize (Byte): 4096\n")
