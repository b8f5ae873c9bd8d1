"""What a node's page shows of earlier campaigns that lie beside the reported one."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from nodeprint.data.store import packed
from nodeprint.history import courses, selection
from nodeprint.machine.topology.presets import preset
from nodeprint.report import documents
from nodeprint.simulate import Plan
from tests.support.campaigns import judged_weeks
from tests.support.command_line import call

PLAN = Plan(preset("naples-2x32"), nodes=3, runs=2, passes=1, pair_runs=4)
SLOW = ("node002: core 17 +6%", "node002: fingerprint bios=2.1")


@pytest.fixture(scope="module")
def weeks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four weeks, of which a core of node002 is slow in the last two."""
    folder = tmp_path_factory.mktemp("results")
    judged_weeks(folder, PLAN, range(4), {2: SLOW})
    return folder


def test_the_page_says_what_changed_since_earlier_campaigns(weeks: Path, tmp_path: Path) -> None:
    assert call("report", weeks / "week03", "--to", tmp_path, "--figures") == 0
    page = (tmp_path / "cluster.html").read_text()
    assert 'id="node-node002-over-time"' in page and "since 2026-01-15 (unchanged 2026-01-08)" in page
    earlier = "Measured in 3 earlier campaigns (week00, week01 and week02)"
    assert f"{earlier} of the same node besides this one, since 2026-01-01." in page
    table = (tmp_path / "figures/node002/over-time.csv").read_text()
    assert "SIMULATED" in table and sum("core 17" in line for line in table.splitlines()) == 4


def test_the_first_campaign_has_no_earlier_one(weeks: Path, tmp_path: Path) -> None:
    assert call("report", weeks / "week00", "--to", tmp_path) == 0
    page = (tmp_path / "cluster.html").read_text()
    assert "Over time" not in page and "earlier campaign" not in page


def test_published_pages_say_nothing_of_other_campaigns(weeks: Path, tmp_path: Path) -> None:
    assert call("report", weeks / "week03", "--to", tmp_path / "published", "--pseudonyms") == 0
    assert "Over time" not in (tmp_path / "published/cluster.html").read_text()


def test_damaged_campaigns_and_those_of_others_are_no_part_of_a_report(weeks: Path, tmp_path: Path) -> None:
    folder = tmp_path / "results"
    shutil.copytree(weeks, folder)
    (folder / "broken").mkdir()
    (folder / "broken/verdict.json").write_text("{")
    (folder / "week00" / packed.FOLDER / "index.json").write_text("{")
    of_node = courses.beside(folder / "week03")(["node002"])["node002"]
    assert of_node.course is not None and of_node.course.campaign.values.tolist() == [["week01", "week02", "week03"]]
    assert "since 2026-01-15 (unchanged 2026-01-08), with BIOS 1.2.3 to 2.1" in of_node.sentences[0]
    assert " changed by +" in of_node.sentences[0]
    written = documents.write(folder / "week03", tmp_path / "out", over_time=courses.beside(folder / "week03"))
    assert "Measured in 2 earlier campaigns (" in written[1].read_text()


def test_of_many_campaigns_the_first_the_newest_and_some_between_are_taken(weeks: Path, tmp_path: Path) -> None:
    verdict = (weeks / "week00/verdict.json").read_text()
    for night in range(40):
        folder = tmp_path / f"night{night:02d}"
        folder.mkdir()
        moved = verdict.replace("2026-01-01T", f"2026-{1 + night // 20:02d}-{1 + night % 20:02d}T")
        (folder / "verdict.json").write_text(moved.replace("week00", folder.name))
    selected = selection.beside(tmp_path / "night39")
    taken = [int(campaign.name.removeprefix("night")) for campaign in selected.judged]
    assert len(taken) == selection.MOST_EACH + 1 and taken[0] == 0 and taken[-9:] == list(range(31, 40))
    assert selected.beside == 39 - selection.MOST_EACH
    older = selection.beside(tmp_path / "night03")
    assert [campaign.name for campaign in older.judged] == ["night00", "night01", "night02", "night03"]
