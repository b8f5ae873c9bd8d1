"""A campaign's folder, judged: records like the same draws packed, and the same verdict again."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from nodeprint.judge.campaign import judge
from nodeprint.judge.outcome import Kind, Outcome
from nodeprint.machine.topology.presets import preset
from nodeprint.report import files
from nodeprint.simulate import Plan, write

SMALL = preset("naples-2x32")


@pytest.fixture(scope="module")
def campaign(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A simulated campaign of records."""
    folder = tmp_path_factory.mktemp("verdict") / "sim"
    defects = ("node001: core 5 +20%", "node002: missing", "node004: renumbered")
    write(Plan(SMALL, nodes=6, jobs=2, passes=2, defects=defects), folder)
    return folder


def test_records_are_judged_like_the_same_draws_packed(campaign: Path) -> None:
    verdict = judge(campaign).verdict
    assert verdict.simulated
    assert verdict.nodes["node001"].outcome is Outcome.DEVIATES
    assert verdict.nodes["node001"].findings[0].part.where["core"] == 5
    assert verdict.nodes["node002"].outcome is Outcome.NOT_MEASURED
    assert verdict.nodes["node004"].outcome in (Outcome.SAME, Outcome.INCONCLUSIVE)
    assert verdict.fails([Kind.FOUND])


def test_a_campaign_is_judged_the_same_again_from_records_or_packed(campaign: Path) -> None:
    first = files.as_json(judge(campaign).verdict)
    assert files.as_json(judge(campaign).verdict) == first
    shutil.rmtree(campaign / "packed")
    assert files.as_json(judge(campaign).verdict) == first


def test_clocks_of_the_records_come_to_the_verdict(tmp_path: Path) -> None:
    write(Plan(SMALL, nodes=4, jobs=2, passes=1, defects=("node001: core-clock 5 -60%",)), tmp_path)
    finding = judge(tmp_path).verdict.nodes["node001"].findings[0]
    assert finding.part.where["core"] == 5
    assert finding.consistent_with == ("core-clock",)
    clock = next(seen for seen in finding.evidence if seen.kind == "clock")
    assert clock.seen
    assert clock.value == pytest.approx(0.4, abs=0.01)
