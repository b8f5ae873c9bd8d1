"""Parts of nodes over campaigns: what changed, since when, and with what."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from nodeprint.cli import app
from nodeprint.cli.shared import judge_and_write
from nodeprint.errors import NodeprintError
from nodeprint.history import changes, selection, series, text
from nodeprint.history.changes import NodeHistory
from nodeprint.machine.topology.presets import preset
from nodeprint.simulate import Plan, write
from tests.support.campaigns import at, judged_weeks
from tests.support.simulated_year import Year, counted

PLAN = Plan(preset("naples-2x32"), nodes=5, runs=2, passes=1, pair_runs=4)
SLOW, BIOS = "node002: core 17 +6%", "node002: fingerprint bios=2.1"


@pytest.fixture(scope="module")
def weeks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Seven weeks: a core of node002 is slow from the third on, and all nodes from the fifth."""
    folder = tmp_path_factory.mktemp("results")
    kernel = [f"node{i:03d}: {defect}" for i in range(5) for defect in ("fabric +5%", "fingerprint kernel=6.12")]
    judged_weeks(folder, PLAN, range(7), {3: [SLOW, BIOS], 5: kernel})
    return folder


def of(folder: Path) -> dict[str, NodeHistory]:
    judged = selection.campaigns([folder]).judged
    return {history.node: history for history in changes.histories(series.series(judged), judged)}


def test_every_part_of_every_node_is_a_series(weeks: Path) -> None:
    whole = series.series(selection.campaigns([weeks]).judged)
    assert dict(whole.sizes)["sample"] == 7 * 5 and set(whole["node"].values) == {f"node{i:03d}" for i in range(5)}
    assert sorted(whole["started"].values) == list(whole["started"].values)
    assert {"core=17", "class=1,socket=0"} <= set(whole["place"].values)
    assert whole.to_dataframe().groupby("node").size().nunique() == 1


def test_a_slow_core_is_named_with_its_date_and_what_changed_then(weeks: Path) -> None:
    found = [change for change in of(weeks)["node002"].changes if change.part.where.get("core") == 17]
    (change,) = found
    assert change.effect == pytest.approx(0.06, abs=0.015) and change.worse and change.confirmed
    assert change.interval.low < 0.06 < change.interval.high
    assert change.unchanged[:10] == "2026-01-15" and change.since[:10] == change.by[:10] == "2026-01-22"
    assert change.fields == {"bios": ("1.2.3", "2.1")}
    assert change.after / change.before - 1 == pytest.approx(0.06, abs=0.02)


def test_what_all_nodes_have_is_said_once(weeks: Path) -> None:
    histories = list(of(weeks).values())
    together = {
        (change.since[:10], len(nodes), tuple(change.fields)) for change, nodes in text.shared(histories)
    }  # the peers moved, too: no node differs from them
    assert ("2026-02-05", 5, ("kernel",)) in together
    assert all(change.since[:10] in ("2026-01-22", "2026-02-05") for h in histories for change in h.changes)


def test_one_measurement_alone_is_to_be_measured_again(weeks: Path, tmp_path: Path) -> None:
    for week in range(4):
        (tmp_path / f"week{week:02d}").symlink_to(weeks / f"week{week:02d}")
    (change,) = of(tmp_path)["node002"].changes
    assert not change.confirmed and "measure again" in text.sentence(change, ["node002"])
    assert not any(history.changes for name, history in of(tmp_path).items() if name != "node002")


def test_the_command_prints_lines_and_courses(weeks: Path) -> None:
    done = CliRunner().invoke(app, ["since", str(weeks)], catch_exceptions=False)
    first, *lines = done.stdout.splitlines()
    assert first == "SIMULATED, not a measurement"
    line = next(line for line in lines if line.startswith("node002: core 17"))
    assert "since 2026-01-22 (unchanged 2026-01-15), with BIOS 1.2.3 to 2.1" in line
    assert any(line.startswith("node[000-004]: ") and "Linux kernel" in line for line in lines)
    assert sum(line.startswith(f"node00{i}  ") for i in range(5) for line in lines) == 5
    facts = json.loads(CliRunner().invoke(app, ["since", str(weeks), "--json"], catch_exceptions=False).stdout)
    assert facts["simulated"] and len(facts["campaigns"]) == 7 and len(facts["nodes"]) == 5


def test_jobs_of_one_campaign_are_a_history(tmp_path: Path) -> None:
    """Records, not arrays: each job is a point, and its own survey says what changed."""
    for number, (job, defects) in enumerate(((1, ()), (169, ()), (337, (SLOW, BIOS)), (505, (SLOW, BIOS)))):
        week = write(at(PLAN, number, {0: defects}), tmp_path / f"week{number}")
        for node in ("nodes/node002", "nodes/node001", "nodes/node003") if number else ():
            (week / node / f"job{job}").rename(tmp_path / "week0" / node / f"job{job}")
    campaign = tmp_path / "week0"
    sheet = (campaign / "nodes.tsv").read_text()
    for node in ("node001", "node002", "node003"):
        sheet = sheet.replace(f"{node}\t{node}\t1\t", f"{node}\t{node}\t505\t")
    (campaign / "nodes.tsv").write_text(sheet)
    judge_and_write(campaign)
    histories = of(campaign)
    assert len(histories["node002"].measured) == 4 and len(histories["node000"].measured) == 1
    (change,) = histories["node002"].changes
    assert change.part.where == {"core": 17} and change.fields == {"bios": ("1.2.3", "2.1")}
    assert change.since[:10] == "2026-01-15" and change.confirmed
    assert not histories["node001"].changes and not histories["node003"].changes


def test_planted_changes_are_found_and_unchanged_nodes_are_not_named(weeks: Path) -> None:
    """A small year of bench/history.py, whose full size `python -m bench history` has."""
    judged = [campaign for campaign in selection.campaigns([weeks]).judged if campaign.folder.name < "week03"]
    found, false = counted(series.series(judged), judged[-1], nodes=40, weeks=52, seed=3)
    assert np.mean(found) >= 0.95 and np.mean(false) == 0


def test_a_change_below_the_bound_is_none(weeks: Path) -> None:
    judged = [campaign for campaign in selection.campaigns([weeks]).judged if campaign.folder.name < "week03"]
    year = Year(series.series(judged), 5)
    whole = year.node("node000", 20)
    part = int(year.plantable[0])
    whole["value"].values[10:, part] *= 1 + 0.4 * float(whole["bound"].values[0, part])
    (history,) = changes.histories(whole, judged[-1:])
    assert not history.changes


@pytest.mark.parametrize(
    ("course", "line"), [((), ""), ((0, 0, 0), "▅▅▅"), ((0, -5, 5), "▅▁█"), ([0] * 26 + [2] * 26, "▅" * 13 + "█" * 13)]
)
def test_sparkline(course: list[float], line: str) -> None:
    assert text.sparkline(course) == line


def test_bad_input_ends_with_one_sentence(weeks: Path, tmp_path: Path) -> None:
    with pytest.raises(NodeprintError, match="holds no judged campaign"):
        selection.campaigns([tmp_path])
    week = tmp_path / "week"
    week.mkdir()
    (week / "verdict.json").write_bytes((weeks / "week00/verdict.json").read_bytes())
    with pytest.raises(NodeprintError, match="no table of deviations"):
        series.series(selection.campaigns([week]).judged)


def test_two_campaigns_are_compared_by_parts_and_drawn(tmp_path: Path) -> None:
    before, after = judged_weeks(tmp_path, PLAN, range(2), {1: [SLOW, BIOS]})
    for folder in (before, after):
        (folder / "plan.tsv").write_text(f"coherence-cas\tcoherence\t--op {folder.name}\n")
    words = ["since", str(before), str(after), "--figures", str(tmp_path / "figures")]
    lines = CliRunner().invoke(app, words, catch_exceptions=False).stdout.splitlines()
    assert lines[1].startswith("node002: core 17") and "with BIOS 1.2.3 to 2.1, in one measurement" in lines[1]
    assert any("no part moved by more than its bound on 4 of 5 nodes" in line for line in lines)
    assert "coherence-cas was measured with other arguments: --op week00 before, --op week01 after" in lines
    assert lines[-1].startswith(str(tmp_path / "figures")) and (tmp_path / "figures").is_dir()
    facts = json.loads(CliRunner().invoke(app, [*words[:3], "--json"], catch_exceptions=False).stdout)
    assert facts["arguments_differ"] == {"coherence-cas": ["--op week00", "--op week01"]}
    (change,) = (change for node in facts["nodes"] for change in node["changes"])
    assert change["bound"] == pytest.approx(0.04) and change["interval"]["low"] < 0.06 < change["interval"]["high"]


def test_matrices_of_more_than_two_campaigns_are_not_drawn(weeks: Path) -> None:
    with pytest.raises(NodeprintError, match="--figures: draws two campaigns; name two"):
        CliRunner().invoke(app, ["since", str(weeks), "--figures", "x"], catch_exceptions=False)
