"""Tables with a row for each pair."""

from __future__ import annotations

from pathlib import Path

from tests.support.tool_output import read_text


def test_the_median_over_addresses(tmp_path: Path) -> None:
    text = "cpu1,cpu2,addr,latency_ns\n" + "".join(f"0,1,{n},{ns}\n" for n, ns in enumerate((20, 30, 900)))
    imported = read_text(tmp_path, text)
    assert imported.core_matrix().ns[0, 1] == 30
    assert "median of up to 3" in imported.notes[0]
