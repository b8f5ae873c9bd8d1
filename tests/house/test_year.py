"""docs/year.md shows what its simulated year gives."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest

from tests.support.real_parts import ROOT


def test_the_year_on_the_page_is_what_the_commands_print(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    printed = list(runpy.run_path(str(ROOT / "docs/year.py"))["blocks"](tmp_path))
    page = re.findall(r"```\n\$ nodeprint history results\n(.*?)\n```", (ROOT / "docs/year.md").read_text(), re.DOTALL)
    assert len(page) == len(printed) == 2
    for on_page, output in zip(page, printed, strict=True):
        assert on_page.splitlines() == [line.rstrip() for line in output.splitlines()]
