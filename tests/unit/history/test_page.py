"""The page of a history, as HTML and PDF."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import xarray as xr
from typer.testing import CliRunner

from nodeprint.cli import app
from nodeprint.errors import NodeprintError
from nodeprint.machine.topology.presets import preset
from nodeprint.simulate import Plan
from tests.support.campaigns import judged_weeks
from tests.support.command_line import call

PLAN = Plan(preset("naples-2x32"), nodes=4, runs=2, passes=1, pair_runs=4)


@pytest.fixture(scope="module")
def weeks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four weeks: a core of node002 is slow from the third on, with a BIOS whose name is markup."""
    folder = tmp_path_factory.mktemp("results")
    defects = ["node002: core 17 +6%", "node002: fingerprint bios=<b>2.1</b>"]
    judged_weeks(folder, PLAN, range(4), {2: defects})
    return folder


def test_html_has_the_changes_in_sentences_and_a_figure_of_each_node(weeks: Path, tmp_path: Path) -> None:
    to = tmp_path / "history.html"
    done = CliRunner().invoke(app, ["history", str(weeks), "--page", str(to)], catch_exceptions=False)
    assert done.stdout.splitlines()[-1] == f"page: {to}"
    page = to.read_text()
    assert page.count("<svg") == 4 and ">SIMULATED<" in page
    assert "<li>Core 17 to the cores of the other socket changed by +6" in page
    assert "since 2026-01-15 (unchanged 2026-01-08), with BIOS 1.2.3 to &lt;b&gt;2.1&lt;/b&gt;" in page
    assert "No component changed permanently by more than its tolerance" in page
    assert "4 campaigns; no component changed" in page
    links = set(re.findall(r'href="#([^"]+)"', page))
    assert "nodes-node-node002" in links and all(f'id="{link}"' in page for link in links)
    again = tmp_path / "again.html"
    CliRunner().invoke(app, ["history", str(weeks), "--page", str(again)], catch_exceptions=False)
    assert again.read_bytes() == to.read_bytes()


def test_pdf_is_written_where_the_name_says_so(weeks: Path, tmp_path: Path) -> None:
    assert call("history", weeks, "--page", tmp_path / "history.pdf") == 0
    assert (tmp_path / "history.pdf").read_bytes().startswith(b"%PDF")


def test_another_kind_of_file_is_refused(weeks: Path, tmp_path: Path) -> None:
    with pytest.raises(NodeprintError, match=r"--page: is neither HTML nor PDF by its name; name a file"):
        CliRunner().invoke(app, ["history", str(weeks), "--page", str(tmp_path / "a.svg")], catch_exceptions=False)


def test_a_hostile_name_prints_harmlessly(tmp_path: Path) -> None:
    folder = tmp_path / "results"
    judged_weeks(folder, PLAN, range(2))
    name = "\x1b[31m$x$<b>"
    for path in folder.glob("*/verdict.json"):
        path.write_text(path.read_text().replace("node001", json.dumps(name)[1:-1]))
        with xr.open_dataset(path.with_name("deviations.nc"), engine="h5netcdf") as file:
            table = file.load()
        nodes = [name if node == "node001" else node for node in table["node"].values]
        table.assign_coords(node=("sample", nodes)).to_netcdf(path.with_name("deviations.nc"), engine="h5netcdf")
    for ending in ("html", "pdf"):
        assert call("history", folder, "--page", tmp_path / f"history.{ending}") == 0
    page = (tmp_path / "history.html").read_text()
    assert "\x1b" not in page and "?[31m$x$&lt;b&gt;" in page
