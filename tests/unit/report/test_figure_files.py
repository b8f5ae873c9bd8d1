"""`nodeprint report --figures` writes every figure of every node, with its numbers and where they are from."""

from __future__ import annotations

import re
from pathlib import Path

import pandas as pd
import pytest
from typer.testing import CliRunner

from nodeprint.cli import app
from nodeprint.cli.shared import judge_and_write
from nodeprint.errors import NodeprintError
from nodeprint.machine.topology.presets import preset
from nodeprint.report.figures import render
from nodeprint.simulate import Plan, write


@pytest.fixture(scope="module")
def campaign(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = write(Plan(preset("graviton3-64"), nodes=3, runs=2, passes=1), tmp_path_factory.mktemp("files") / "sim")
    judge_and_write(folder)
    return folder


def test_every_figure_is_a_file_with_its_numbers_and_origin(campaign: Path, tmp_path: Path) -> None:
    style = tmp_path / "larger.mplstyle"
    style.write_text("font.size: 8\n")
    out = tmp_path / "report"
    command = ["report", str(campaign), "--figures", "--to", str(out), "--width", "100", "--style", str(style)]
    done = CliRunner().invoke(app, command)
    assert done.exit_code == 0, done.output
    for node in ("node000", "node001", "node002"):  # healthy ones, too
        csv = out / f"figures/{node}/coherence-cas.csv"
        assert csv.read_text().startswith(f"# campaign sim, node {node}, nodeprint ")
        assert "SIMULATED" in csv.read_text().splitlines()[0]
        assert "CPU a" in pd.read_csv(csv, comment="#").columns
        svg = csv.with_suffix(".svg").read_text()
        assert float(re.search(r'width="([\d.]+)pt"', svg)[1]) == pytest.approx(100 / 25.4 * 72, abs=1)  # type: ignore[index]
        assert csv.with_suffix(".pdf").read_bytes().startswith(b"%PDF")
    assert (out / "figures/cluster/tolerances.csv").read_text().startswith("# campaign sim, all nodes, ")


@pytest.mark.parametrize("words", [("--width", width) for width in ("3", "39.9", "-1", "1001", "nan", "inf")])
def test_a_width_that_leaves_no_room_is_refused_before_anything_is_drawn(
    campaign: Path, tmp_path: Path, words: tuple[str, ...]
) -> None:
    done = CliRunner().invoke(app, ["report", str(campaign), "--figures", "--to", str(tmp_path), *words])
    assert done.exit_code != 0 and isinstance(done.exception, NodeprintError)
    assert "is not a width of figures in mm; specify 40 to 1000, or 0 for a column" in str(done.exception)
    assert not list(tmp_path.iterdir())


def test_the_least_width_is_drawn(campaign: Path, tmp_path: Path) -> None:
    words = ["report", str(campaign), "--figures", "--to", str(tmp_path), "--width", str(render.LEAST_MM)]
    assert CliRunner().invoke(app, words).exit_code == 0
    assert (tmp_path / "figures/cluster/tolerances.svg").exists()


def test_a_width_without_figures_is_refused(campaign: Path, tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["report", str(campaign), "--to", str(tmp_path), "--width", "90"])
    assert done.exit_code != 0 and "--width: is for figures as files; add --figures" in str(done.exception)


def test_style_that_is_absent_is_named(campaign: Path, tmp_path: Path) -> None:
    command = ["report", str(campaign), "--figures", "--to", str(tmp_path), "--style", str(tmp_path / "no.mplstyle")]
    done = CliRunner().invoke(app, command)
    assert done.exit_code != 0
    assert "no.mplstyle: is not there" in str(done.exception)
