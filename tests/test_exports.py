"""Figures as files, reports without names, and what a site adds."""

from __future__ import annotations

import csv
import re
import subprocess
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
import yaml
from PIL import Image

from nodeprint.errors import NodeprintError
from nodeprint.report import documents as report
from nodeprint.report import pseudonyms, site_branding
from nodeprint.report.shown import Shown

from .conftest import need
from .made_up import FINDING, MACHINES, Campaign
from .test_report import text


def made(folder: Path) -> Path:
    fleet = Campaign(folder)
    for number in range(4):
        fleet.add(f"cn{number}", MACHINES[64], seed=number, rack="aisle-7")
    serials = {"serials": "product ABC123", "bios": "1.0"}
    said = f"cn10 is slow, cn1 is not; {FINDING['text']}"
    fleet.add("cn10", MACHINES[64], factor=1.1, verdict="DEVIATES", text=said, findings=[FINDING], fingerprint=serials)
    return fleet.install()


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Path]]:
    campaign = made(tmp_path_factory.mktemp("exports") / "main")
    return campaign, report.write(campaign, nodes=[], figures=True)


def test_each_figure_is_svg_and_pdf_at_a_columns_width(written: tuple[Path, list[Path]]) -> None:
    need("pdfinfo")
    figures = [path for path in written[1] if path.suffix == ".svg"]
    assert {"coherence-cas", "quadrants-coherence-cas", "finding-1", "terms"} - {p.stem for p in figures} == {"terms"}
    for path in figures:
        root = ElementTree.parse(path).getroot()
        assert root.attrib["width"] in ("88.00mm", "180.00mm")
        assert not re.search(r'href="(?!data:)', path.read_text())
        out = subprocess.run(["pdfinfo", path.with_suffix(".pdf")], check=True, capture_output=True, text=True).stdout
        points = float(re.search(r"Page size:\s+([\d.]+)", out)[1])  # type: ignore[index]
        assert points == pytest.approx(float(root.attrib["width"].removesuffix("mm")) / 25.4 * 72, abs=0.02)
        assert re.search(r"Pages:\s+1\b", out)


def test_the_numbers_of_a_matrix_are_those_that_were_measured(written: tuple[Path, list[Path]]) -> None:
    campaign, paths = written
    (path,) = [p for p in paths if p.name == "coherence-cas.csv"]
    (one,) = Shown.of(campaign / "nodes/cn10").matrices
    at = {cpu: i for i, cpu in enumerate(one.cpus)}
    found = np.full(one.values.shape, np.nan)
    for row in csv.DictReader(path.open()):
        found[at[int(row["a"])], at[int(row["b"])]] = float(row["value"])
    np.testing.assert_allclose(found, one.values, rtol=1e-6)


def test_figures_are_the_same_bytes_twice(written: tuple[Path, list[Path]], tmp_path: Path) -> None:
    campaign, paths = written
    again = report.write(campaign, tmp_path, nodes=[], figures=True)
    assert [path.read_bytes() for path in again] == [path.read_bytes() for path in paths]


def test_a_published_report_has_no_name(tmp_path: Path) -> None:
    campaign = made(tmp_path / "main")
    paths = report.write(campaign, figures=True, pseudonyms=True)
    assert all(path.is_relative_to(campaign / "published") for path in paths)
    for path in paths:
        content = text(path) if path.suffix == ".pdf" else path.read_text()
        assert not re.search(r"\bcn1?\d\b|aisle-7|ABC123", f"{path} {content}".removeprefix(str(campaign)))
    assert "N005 is slow, N002 is not" in text(paths[0]) and "R01" in text(paths[0])
    assert (campaign / "pseudonyms.tsv").read_text().endswith("N005\tcn10\n")
    assert (campaign / "published/N005.pdf").exists()


def test_names_are_replaced_whole() -> None:
    called = pseudonyms.Pseudonyms.of({"nodes": {"n1": {}, "n10": {}, "a.b": {"rack": "n"}}})
    assert called.text("n1, n10; n100 (n1) a.b n") == "N002, N003; n100 (N002) N001 R01"
    assert called.text("xn1 n1-x aXb") == "xn1 n1-x aXb"


def test_a_site_adds_its_logo_contact_and_contract(tmp_path: Path) -> None:
    campaign = made(tmp_path / "main")
    logo = tmp_path / "logo.png"
    Image.new("RGB", (20, 10), "red").save(logo)
    site = {"logo": str(logo), "contact": "ops@example.org", "contract": "order 4711"}
    (campaign / "config.yaml").write_text(yaml.safe_dump({"site": site}))
    paths = report.write(campaign, nodes=["cn10"])
    seen = text(paths[-1])
    assert "ops@example.org" in seen and "order 4711" in seen
    assert 'class="logo"' in paths[1].read_text()
    logo.write_text("no picture")
    with pytest.raises(NodeprintError, match=r"neither PNG nor SVG.*site\.logo"):
        site_branding.of(campaign)
    logo.unlink()
    with pytest.raises(NodeprintError, match=r"logo\.png"):
        report.write(campaign)
