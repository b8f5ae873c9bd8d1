"""Parts of nodes over campaigns: what changed, since when, and with what."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from nodeprint.cli import app
from nodeprint.cli.shared import judge_and_write
from nodeprint.errors import NodeprintError
from nodeprint.history import change_sentences, changes, selection
from nodeprint.history.changes import NodeHistory
from nodeprint.judge import joined
from nodeprint.machine.topology.presets import preset
from nodeprint.simulate import Plan, write
from tests.support.campaigns import at, judged_weeks
from tests.support.noisy_year import CALM, ROUGH, Noise, Shift, counted, fleets, histories

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
    return {history.node: history for history in changes.histories(selection.campaigns([folder])).nodes}


def test_a_slow_core_is_named_with_its_date_and_what_changed_then(weeks: Path) -> None:
    found = [change for change in of(weeks)["node002"].changes if change.component.where.get("core") == 17]
    (change,) = found
    assert change.effect == pytest.approx(0.06, abs=0.015) and change.worse and change.confirmed
    assert change.interval.low < 0.06 < change.interval.high
    assert change.unchanged[:10] == "2026-01-15" and change.since[:10] == change.by[:10] == "2026-01-22"
    assert change.fields == {"bios": ("1.2.3", "2.1")}
    assert change.after / change.before - 1 == pytest.approx(0.06, abs=0.02)


def test_what_all_nodes_have_is_said_once(weeks: Path) -> None:
    of_all = changes.histories(selection.campaigns([weeks]))
    assert of_all.common is not None
    (change,) = of_all.common.changes
    assert change.nodes == tuple(f"node{i:03d}" for i in range(5)) and change.confirmed
    assert change.since[:10] == "2026-02-05" and change.fields == {"kernel": ("6.1.0-sim", "6.12")}
    assert change.effect == pytest.approx(0.05, abs=0.01) and change.component.where.get("beyond_class") == 1
    assert {h.node for h in of_all.nodes if h.changes} == {"node002"}


def test_one_measurement_alone_is_to_be_measured_again(weeks: Path, tmp_path: Path) -> None:
    for week in range(4):
        (tmp_path / f"week{week:02d}").symlink_to(weeks / f"week{week:02d}")
    (change,) = of(tmp_path)["node002"].changes
    assert not change.confirmed and "measure again" in change_sentences.sentence(change, ["node002"])
    assert not any(history.changes for name, history in of(tmp_path).items() if name != "node002")


def test_the_command_prints_lines_and_courses(weeks: Path) -> None:
    done = CliRunner().invoke(app, ["history", str(weeks)], catch_exceptions=False)
    first, *lines = done.stdout.splitlines()
    assert first == "SIMULATED, not a measurement"
    line = next(line for line in lines if line.startswith("node002: core 17"))
    assert " changed by +" in line and " changed by +" in lines[0]
    assert "since 2026-01-22 (unchanged 2026-01-15), with BIOS 1.2.3 to 2.1" in line
    assert lines[0].startswith("all 5 nodes: ") and "with Linux kernel 6.1.0-sim to 6.12" in lines[0]
    assert sum(line.split()[:2] == ["all", "nodes"] and "tolerances" in line for line in lines) == 1
    assert sum(line.strip().startswith(f"node00{i}  ") for i in range(5) for line in lines) == 5
    facts = json.loads(CliRunner().invoke(app, ["history", str(weeks), "--json"], catch_exceptions=False).stdout)
    assert facts["simulated"] and len(facts["campaigns"]) == 7 and len(facts["nodes"]) == 5
    assert [len(change["nodes"]) for change in facts["common"]] == [5]


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
    assert change.component.where == {"core": 17} and change.fields == {"bios": ("1.2.3", "2.1")}
    assert change.since[:10] == "2026-01-15" and change.confirmed
    assert not histories["node001"].changes and not histories["node003"].changes


def lines(of: changes.Histories) -> tuple[list[str], list[str]]:
    """What is said of all nodes together, and of single ones."""
    return change_sentences.common(of), [
        change_sentences.sentence(change, nodes) for change, nodes in change_sentences.shared(of.nodes)
    ]


def test_planted_changes_are_found_and_unchanged_nodes_are_not_named() -> None:
    """A small part of bench/history.py, whose full size `python -m bench history` has."""
    caught, false = counted(groups=2, weeks=26, seed=3)
    assert all(caught) and not any(false)


@pytest.mark.parametrize("seed", [1, 2])
def test_a_season_of_all_nodes_is_said_once_and_blames_no_node(seed: int) -> None:
    """Weeks that are correlated, bursts and heavy tails beside: 14 changes were of single cores."""
    of_all, of_nodes = lines(histories(fleets(seed, ROUGH)))
    assert not of_nodes
    (line,) = of_all
    assert line.startswith("all 8 nodes: the whole node moved between -") and "in no single step" in line


def test_a_core_is_named_beside_a_season(weeks: Path) -> None:
    of_all, of_nodes = lines(histories(fleets(4, ROUGH, shifts=[Shift(30, 1.10, (2,), 5)])))
    assert len(of_all) == 1
    (line,) = of_nodes
    assert line.startswith("node002: core 5 ") and "since 2026-07-30" in line


def test_a_change_of_all_nodes_is_one_with_its_interval() -> None:
    of = histories(fleets(1, CALM, weeks=12, shifts=[Shift(6, 1.03)]), {6: {"fans": "low"}})
    assert of.common is not None
    (change,) = of.common.changes
    assert change.component.term == "node" and change.further > 0 and len(change.nodes) == 8
    assert change.interval.low < 0.0305 and change.interval.high > 0.0295 and change.effect > change.tolerance
    assert (change.unchanged[:10], change.since[:10]) == ("2026-02-05", "2026-02-12")
    assert change.fields == {"fans": ("", "low")} or not change.fields
    assert not any(history.changes for history in of.nodes)


def test_nodes_that_stayed_as_they_were_did_not_change() -> None:
    """Six of eight moved: the two others are no faster for it."""
    of = histories(fleets(1, CALM, weeks=12, shifts=[Shift(6, 1.04, range(6))]))
    of_all, of_nodes = lines(of)
    assert not of_nodes and len(of_all) == 1 and of_all[0].startswith("6 of 8 nodes (node[000-005]): ")


@pytest.mark.parametrize("nodes", [1, 2])
def test_of_one_or_two_nodes_the_whole_node_is_named(nodes: int) -> None:
    of_all, of_nodes = lines(histories(fleets(1, CALM, nodes=nodes, weeks=8, shifts=[Shift(4, 1.04)])))
    assert not of_all
    (line,) = of_nodes
    assert ": the whole node changed by +" in line and "too few nodes were measured" in line


def test_a_change_of_an_only_node_is_seen_between_two_campaigns() -> None:
    """It was taken for scatter, of which one difference says nothing."""
    of = histories(fleets(1, CALM, nodes=1, weeks=2, shifts=[Shift(1, 1.08)]))
    (change,) = of.nodes[0].changes
    assert change.component.term == "node" and not change.confirmed and change.effect == pytest.approx(0.08, abs=0.01)


def test_weeks_that_are_alike_are_no_independent_evidence() -> None:
    """A node that wanders by its tolerance is not blamed in any core."""
    noise = Noise(job=0.006, core=0.004, alike=0.9, bursts=0.05)
    of_nodes = [change for h in histories(fleets(5, noise)).nodes for change in h.changes]
    assert not [change for change in of_nodes if "core" in change.component.where]


def test_the_order_of_campaigns_is_that_of_time() -> None:
    """Nodes in another order in their campaigns, and another node in some, change nothing."""
    year = fleets(1, CALM, weeks=10, shifts=[Shift(6, 1.10, (2,), 5)])
    facts = [(h.node, c.since, c.effect) for h in histories(year).nodes for c in h.changes]
    kept = [
        joined._of_nodes(week, {n.name for n in week.nodes} - ({"node007"} if at % 3 else set()))
        for at, week in enumerate(year)
    ]
    fewer = [(h.node, c.since, c.effect) for h in histories(kept).nodes for c in h.changes]
    assert [fact[:2] for fact in facts] == [fact[:2] for fact in fewer] == [("node002", facts[0][1])]


def test_a_change_below_the_tolerance_is_none() -> None:
    of = histories(fleets(5, CALM, weeks=20, shifts=[Shift(10, 1.016, (3,), 7)]))
    assert not any(history.changes for history in of.nodes)


@pytest.mark.parametrize(
    ("course", "line"), [((), ""), ((0, 0, 0), "▅▅▅"), ((0, -5, 5), "▅▁█"), ([0] * 26 + [2] * 26, "▅" * 13 + "█" * 13)]
)
def test_sparkline(course: list[float], line: str) -> None:
    assert change_sentences.sparkline(course) == line


def test_bad_input_ends_with_one_sentence(weeks: Path, tmp_path: Path) -> None:
    with pytest.raises(NodeprintError, match="holds no judged campaign"):
        selection.campaigns([tmp_path])
    week = tmp_path / "week"
    week.mkdir()
    (week / "verdict.json").write_bytes((weeks / "week00/verdict.json").read_bytes())
    with pytest.raises(NodeprintError, match="not a campaign directory"):
        changes.histories(selection.campaigns([week]))


def test_two_campaigns_are_compared_by_parts_and_drawn(tmp_path: Path) -> None:
    before, after = judged_weeks(tmp_path, PLAN, range(2), {1: [SLOW, BIOS]})
    for folder in (before, after):
        (folder / "plan.tsv").write_text(f"coherence-cas\tcoherence\t--op {folder.name}\n")
    words = ["diff", str(before), str(after), "--figures", str(tmp_path / "figures")]
    lines = CliRunner().invoke(app, words, catch_exceptions=False).stdout.splitlines()
    assert lines[1].startswith("node002: core 17") and "with BIOS 1.2.3 to 2.1, in one measurement" in lines[1]
    assert any("no component changed by more than its tolerance on 4 of 5 nodes" in line for line in lines)
    assert "coherence-cas was measured with other arguments: --op week00 before, --op week01 after" in lines
    assert lines[-1].startswith(str(tmp_path / "figures")) and (tmp_path / "figures").is_dir()
    facts = json.loads(CliRunner().invoke(app, [*words[:3], "--json"], catch_exceptions=False).stdout)
    assert facts["arguments_differ"] == {"coherence-cas": ["--op week00", "--op week01"]}
    (change,) = (change for node in facts["nodes"] for change in node["changes"])
    assert not facts["common"]
    assert change["tolerance"] == pytest.approx(0.04) and change["interval"]["low"] < 0.06 < change["interval"]["high"]


ALONE = Plan(preset("naples-2x32"), nodes=1, runs=2, passes=1, pair_runs=4, cells=True)


def of_only(folder: Path) -> NodeHistory:
    (of_node,) = of(folder).values()
    return of_node


def test_a_change_of_an_only_node_is_found(tmp_path: Path) -> None:
    judged_weeks(tmp_path, ALONE, range(4), {2: ["node000: fabric +8%", "node000: fingerprint bios=2.1"]})
    of_node = of_only(tmp_path)
    assert len(of_node.measured) == 4
    (change,) = [change for change in of_node.changes if change.measurement == "coherence-cas"]
    assert change.component.term == "class" and change.component.where == {"beyond_class": 1} and change.further > 2
    assert change.effect == pytest.approx(0.08, abs=0.02) and change.confirmed and change.since[:10] == "2026-01-15"
    assert change.interval.low < 0.08 < change.interval.high and change.tolerance == pytest.approx(0.02)
    assert change.fields == {"bios": ("1.2.3", "2.1")} and not change.compared
    printed = CliRunner().invoke(app, ["history", str(tmp_path)], catch_exceptions=False).stdout
    assert "node000: " in printed and "on 0 of 1 node" in printed


def test_an_unchanged_only_node_has_none(tmp_path: Path) -> None:
    judged_weeks(tmp_path, ALONE, range(6))
    of_node = of_only(tmp_path)
    assert not of_node.changes and len(of_node.courses[0].distance) == 6


def test_a_core_of_an_only_node_is_a_part_of_it(tmp_path: Path) -> None:
    """The medians of classes alone do not show it."""
    judged_weeks(tmp_path, ALONE, range(4), {2: ["node000: core 17 +9%"]})
    changes_of_pairs = [change for change in of_only(tmp_path).changes if change.metric == "core-to-core"]
    assert {change.component.where.get("core") for change in changes_of_pairs} == {17}
