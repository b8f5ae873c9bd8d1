"""Damaged campaigns: each command does its work or refuses in one sentence (`make fuzz` tries ten thousand)."""

from pathlib import Path

import pytest
from _pytest.monkeypatch import MonkeyPatch

from nodeprint.judge import campaign as judging
from tests.support import mutated_campaigns


@pytest.mark.slow
def test_a_damaged_campaign_ends_no_command_in_a_traceback(tmp_path: Path) -> None:
    base = mutated_campaigns.base(tmp_path)
    assert [words for seed in range(4) if (words := mutated_campaigns.tried(base, seed))] == []


def test_a_command_that_ends_in_a_traceback_is_named(tmp_path: Path, monkeypatch: MonkeyPatch) -> None:
    base = mutated_campaigns.base(tmp_path)
    monkeypatch.setattr(mutated_campaigns, "_COMMANDS", (("judge", "BASE"),))
    monkeypatch.setattr(mutated_campaigns, "_ONE_OF_PAGES", 10**9)
    monkeypatch.setattr(judging, "judge", lambda *_, **__: 1 / 0)
    words = mutated_campaigns.tried(base, 1)
    assert words.startswith("seed 1: ") and "judge BASE: Traceback" in words and "ZeroDivisionError" in words
