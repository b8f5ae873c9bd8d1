"""How far long work is, on stderr."""

import time

import pytest

from nodeprint import waiting


def test_long_work_is_counted(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    now = iter([0.0, 1.0, 30.0, 60.0, 90.0, 120.0])
    monkeypatch.setattr(time, "monotonic", lambda: next(now))
    assert list(waiting.counted("abcde", 5, "nodes read")) == list("abcde")
    assert capsys.readouterr().err == (
        "nodeprint: 2 of 5 nodes read, about 45 s left\nnodeprint: 3 of 5 nodes read, about 40 s left\n"
        "nodeprint: 4 of 5 nodes read, about 22 s left\nnodeprint: 5 of 5 nodes read\n"
    )
    now = iter([0.0, 0.5, 1.0])
    assert list(waiting.counted("ab", 2, "nodes read")) == ["a", "b"]
    assert capsys.readouterr().err == ""
