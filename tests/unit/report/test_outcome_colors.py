"""A color is said in one place, which terminal, PDF, HTML on light and dark screens, and figures read."""

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from nodeprint.errors import NodeprintError
from nodeprint.report import html, outcome_colors, pdf, terminal
from nodeprint.report.figures import style
from nodeprint.report.pages.blocks import Document, Page, Section
from nodeprint.settings import sources
from tests.support.real_parts import PACKAGES, ROOT

ALARM = 'alarm: {light: "#b3261e", dark: "#ff8a80", terminal: red}'


@pytest.fixture
def reports(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder of templates and styles of a checkout, to be changed."""
    shutil.copytree(ROOT / "reports", tmp_path / "reports", ignore=shutil.ignore_patterns("pictures"))
    monkeypatch.setattr(sources, "folder", lambda: tmp_path)
    for cached in (outcome_colors.outcome_colors, style.load):
        cached.cache_clear()
    yield tmp_path / "reports"
    for cached in (outcome_colors.outcome_colors, style.load):
        cached.cache_clear()


def change(reports: Path, text: str) -> None:
    path = reports / "style.yaml"
    assert ALARM in path.read_text()
    path.write_text(path.read_text().replace(ALARM, text))


def test_one_line_changes_a_color_everywhere(reports: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    change(reports, 'alarm: {light: "#010203", dark: "#a1a2a3", terminal: bright_cyan}')
    (span,) = terminal.painted([Section("DEVIATES", ())], 80).spans
    assert span.style == "bold bright_cyan"
    assert style.load().color("alarm") == "#010203"
    page = html.page(Document("title", "campaign", "", (Page("n", "n", "n", None, (), ()),)))
    assert re.findall(r"--alarm: (#\w+);", page) == ["#010203", "#a1a2a3"]
    read: dict[str, str] = {}

    class Compiler:
        def compile(self, **_: Any) -> bytes:
            read.update(json.loads(Path(printer._folder.name, "data.json").read_text())["colors"])
            return b"%PDF"

    with pdf.Printer() as printer:
        monkeypatch.setattr(printer, "_compiler", Compiler())
        printer.data({})
    assert read["alarm"] == "#010203"


def test_no_other_file_names_a_color_of_an_outcome() -> None:
    named = {value for color in style.load().outcomes.values() for value in (color.light, color.dark)}
    named -= set(style.load().colors.values()) | set(style.load().dark.values())
    kinds = (".py", ".css", ".html", ".typ", ".yaml")  # a chosen pair of explorer.js is drawn on white on any screen
    paths = [path for room in (*PACKAGES, "reports") for path in (ROOT / room).rglob("*.*") if path.suffix in kinds]
    naming = {path.name for path in paths if any(color in path.read_text().lower() for color in named)}
    assert naming == {"style.yaml"}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("alarm: {light: red, dark: '#ff8a80', terminal: red}", "style.yaml: outcomes: Expected `str` matching regex"),
        ("alarm: {light: '#b3261e', dark: '#ff8a80', terminal: rot}", "outcomes.alarm.terminal: 'rot' is not a valid"),
        ("alarm: '#b3261e'", "style.yaml: outcomes: Expected `object`, got `str`"),
    ],
)
def test_a_color_that_is_none_is_refused(reports: Path, text: str, says: str) -> None:
    change(reports, text)
    with pytest.raises(NodeprintError) as refused:
        terminal.painted([Section("DEVIATES", ())], 80)
    assert says in str(refused.value) and "; " in str(refused.value)
