"""What the site writes counts: config/acceptance.yaml decides the verdict and the report of the main job."""

import hashlib
import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from nodeprint.errors import NodeprintError
from nodeprint.judge import acceptance
from nodeprint.judge.acceptance_file import Acceptance
from nodeprint.judge.campaign import judge
from nodeprint.settings import checked_yaml
from tests.support.main_job import config, run
from tests.support.real_parts import ROOT, environment, need

LIMIT = """\
limits:
- {{measurement: coherence-cas, class: {name}, at_most: 1, reason: contract 4711}}
"""


def test_the_sites_file_changes_nothing_as_it_is_shipped() -> None:
    assert acceptance.load(ROOT / "config/acceptance.yaml") == acceptance.load()


def test_the_defaults_are_as_their_types_ask() -> None:
    """msgspec checks what is read, and no default."""
    defaults = Acceptance()
    assert checked_yaml.typed(checked_yaml.plain(defaults), Acceptance, "defaults") == defaults


def test_every_default_is_there_once() -> None:
    """The site's file has nothing that the defaults have, but what is empty in both."""
    site = yaml.safe_load((ROOT / "config/acceptance.yaml").read_text())
    assert site == {"required": [], "limits": [], "waivers": []}


def test_a_campaign_keeps_what_it_is_judged_by(tmp_path: Path) -> None:
    site, campaign = tmp_path / "site.yaml", tmp_path / "campaign"
    site.write_text(
        "tolerances: {percent: {core: 8}}\nwaivers: [{node: a, finding: core-slow, reason: c, until: 2026-12-31}]\n"
    )
    assert acceptance.kept(campaign) is None
    kept = acceptance.keep(site, campaign)
    assert acceptance.kept(campaign) == kept
    assert acceptance.load(kept) == acceptance.load(site) != acceptance.load()
    assert hashlib.sha256(kept.read_bytes()).hexdigest() in acceptance.name(kept)
    before = kept.stat()
    site.write_text("# the same\n" + site.read_text())
    assert acceptance.keep(site, campaign).stat().st_mtime_ns == before.st_mtime_ns, "nothing is judged again"
    site.write_text("tolerances: {percent: {core: 9}}\n")
    assert acceptance.load(acceptance.keep(site, campaign)).tolerance("core") == 0.09
    site.write_text("tolerances: 9\n")
    with pytest.raises(NodeprintError, match="tolerances: must be keys with values"):
        acceptance.keep(site, campaign)
    assert acceptance.load(kept).tolerance("core") == 0.09


@pytest.fixture
def sites_file(house: Path) -> Iterator[Path]:
    """config/acceptance.yaml of the house, as it was shipped, and so again afterwards."""
    path = house / "config/acceptance.yaml"
    shipped = path.read_bytes()
    yield path
    path.write_bytes(shipped)


def text_of(pdf: Path) -> str:
    said = subprocess.run(["pdftotext", pdf, "-"], capture_output=True, text=True, check=True).stdout
    return re.sub(r"[\s\u200b]", "", said)


@pytest.mark.machine
def test_the_main_job_judges_by_the_sites_file_and_again_when_it_changes(house: Path, sites_file: Path) -> None:
    need("pdftotext")
    settings = config(house, "limited", "runs: 1\n")
    first = run(house, settings)
    assert first.returncode == 0, first.stderr
    campaign = house / "results/limited"
    verdict_file, pdf = campaign / "verdict.json", campaign / "report/cluster.pdf"
    ((name, node),) = json.loads(verdict_file.read_text())["nodes"].items()
    assert node["outcome"] == "NO PEERS"
    measured = {path: path.stat().st_mtime_ns for path in campaign.glob("nodes/*/job1/**/*") if path.is_file()}

    sites_file.write_text(LIMIT.format(name=node["classes"][0]["name"]))
    second = run(house, settings)
    assert second.returncode == 3, "a limit that is not met is found"
    judged = json.loads(verdict_file.read_text())
    assert judged["nodes"][name]["outcome"] == "OUT OF SPEC", judged
    assert {path: path.stat().st_mtime_ns for path in measured} == measured, "nothing is measured for it"
    digest = hashlib.sha256((campaign / "acceptance.yaml").read_bytes()).hexdigest()
    assert judged["versions"]["acceptance"] == f"acceptance.yaml of the campaign, SHA-256 {digest}"
    assert "OUTOFSPEC" in text_of(pdf) and "contract4711" in text_of(pdf)
    assert "OUT OF SPEC" in second.stdout

    # What is called by hand goes by the campaign's copy; the next call by the site's file again.
    alone = shutil.copytree(campaign, house / "alone")
    assert judge(alone).verdict.nodes[name].outcome == "OUT OF SPEC"
    sites_file.write_text("limits: []\n")
    again = subprocess.run(
        [house / "workflow/run", "--config", settings.name, "--report-only"],
        cwd=house,
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert again.returncode == 0, again.stderr
    assert json.loads(verdict_file.read_text())["nodes"][name]["outcome"] == "NO PEERS"


@pytest.mark.parametrize("text", ["limits: [{measurement: a}]", "tolerances: 3", "- a"])
def test_what_is_wrong_in_the_sites_file_ends_before_anything_is_measured(
    house: Path, sites_file: Path, text: str
) -> None:
    sites_file.write_text(text)
    result = run(house, config(house, "misjudged"))
    assert result.returncode == 2
    assert "config/acceptance.yaml: " in result.stderr and result.stderr.count("\n") == 1, result.stderr
    assert not (house / "results/misjudged").exists()
