"""Judging by other rules: the former verdict stays, and what changed is named."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from nodeprint.cli.shared import judge_and_write as judge
from nodeprint.judge import campaign as method
from nodeprint.report import verdict_files

Make = Callable[..., Path]


def former(folder: Path) -> list[Path]:
    return sorted(folder.glob("verdict-*.json"))


def test_a_verdict_states_its_method_and_all_of_its_rules(campaign: Make) -> None:
    folder = campaign("n1", "n2", "n3")
    judge(folder)
    content = json.loads((folder / "verdict.json").read_text())
    assert content["method"] == method.METHOD > 0
    assert {"tolerances", "false_alarm_percent", "criteria", "quality"} <= set(content["rules"])
    assert verdict_files.read(folder).rules == content["rules"]


def test_the_same_rules_keep_and_print_nothing(campaign: Make, capsys: pytest.CaptureFixture[str]) -> None:
    folder = campaign("n1", "n2", "n3")
    first = judge(folder)
    assert judge(folder) == first
    assert (former(folder), capsys.readouterr().err) == ([], "")


def test_other_rules_keep_the_former_verdict_and_name_each_outcome_that_changed(
    campaign: Make, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = campaign("n1", "n2", "n3")
    judge(folder)
    before = (folder / "verdict.json").read_bytes()
    altered = json.loads(before)
    altered["nodes"]["n2"]["outcome"] = altered["nodes"]["n3"]["outcome"] = "SAME"
    (folder / "verdict.json").write_text(json.dumps(altered))
    (tmp_path / "ours.yaml").write_text("false_alarm_percent: 2\n")
    now = judge(folder, acceptance=tmp_path / "ours.yaml")
    assert [json.loads(path.read_text()) for path in former(folder)] == [altered]
    words = capsys.readouterr().err
    assert "(false_alarm_percent " in words and " -> 2" in words and f"{folder}/verdict-1.json" in words
    assert f"  n[2-3]: SAME -> {now.nodes['n2'].outcome}\n" in words and "n1" not in words


def test_another_method_or_none_is_named_also_where_no_outcome_changed(
    campaign: Make, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = campaign("n1", "n2", "n3")
    judge(folder)
    stated = json.loads((folder / "verdict.json").read_text())
    (folder / "verdict.json").write_text(json.dumps({k: v for k, v in stated.items() if k not in ("method", "rules")}))
    judge(folder)
    assert f"(version of the method 0 -> {method.METHOD}); the former verdict is " in capsys.readouterr().err
    now = method.METHOD
    monkeypatch.setattr(method, "METHOD", now + 1)
    judge(folder)
    words = capsys.readouterr().err
    assert (
        f"(version of the method {now} -> {now + 1}); the former verdict is " in words
        and "  no outcome changed\n" in words
    )
    assert [path.name for path in former(folder)] == ["verdict-1.json", "verdict-2.json"]


@pytest.mark.parametrize("content", [b"", b"{}", b"[]", b'{"nodes": 7}', b'{"\xfc": 1}'])
def test_what_was_no_verdict_is_replaced(campaign: Make, content: bytes, capsys: pytest.CaptureFixture[str]) -> None:
    folder = campaign("n1", "n2", "n3")
    (folder / "verdict.json").write_bytes(content)
    judge(folder)
    assert (former(folder), capsys.readouterr().err) == ([], "") and verdict_files.read(folder).nodes
