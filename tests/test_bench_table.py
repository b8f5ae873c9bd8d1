"""The table of the benchmarks: what is marked, kept, and compared with the last time."""

import json
from pathlib import Path

import pytest

from bench import table


def test_medians_spreads_limits_and_the_last_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(table, "KEPT", tmp_path / "results")
    table.keep("first", [table.row("ratio", [1, 2, 3, 4, 10], 2.5), table.row("one", 7.0, 8)], 0.1, raw=[1])
    printed = capsys.readouterr().out
    ratio, one = (next(line for line in printed.splitlines() if line.startswith(name)) for name in ("ratio", "one"))
    assert ratio.split() == ["ratio", "3", "66.7%", "2.5", "MISSED"]
    assert one.split() == ["one", "7", "8", "holds"]
    assert "not quiet" not in printed and "nothing to compare with" in printed
    (kept,) = (tmp_path / "results").glob("first-*.json")
    assert json.loads(kept.read_text())["rows"][0]["values"] == [1, 2, 3, 4, 10]

    (tmp_path / "results/first-9999.json").write_text("{")
    table.keep("first", [table.row("ratio", 2.0, 2.5), table.row("fresh", 1.0)], 3.0)
    printed = capsys.readouterr().out
    line = next(line for line in printed.splitlines() if line.startswith("ratio"))
    assert line.split()[1:] == ["2", "2.5", "3", "-33.3%", "holds"]
    assert "not quiet" in printed and "nothing to compare with" not in printed
    assert "first-9999.json: no measurement" in printed and "not measured then: fresh" in printed
    assert table.last_time("other") is None


def test_another_host_is_not_compared_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table, "KEPT", tmp_path)
    table.keep("first", [table.row("ratio", 1.0)], 0.0)
    monkeypatch.setattr(table.platform, "node", lambda: "elsewhere")
    assert table.last_time("first") is None
