"""Which campaigns and nodes a history is made of."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from msgspec import structs
from typer.testing import CliRunner

from nodeprint.cli import app
from nodeprint.history import change_sentences, selection
from nodeprint.history.changes import Change, Course, Histories, NodeHistory
from nodeprint.history.judged import JudgedNode, PastCampaign
from nodeprint.judge.outcome import Outcome
from nodeprint.judge.verdict import Component, Interval
from nodeprint.machine.topology.presets import preset
from nodeprint.simulate import Plan
from tests.support import printed as printed_text
from tests.support.campaigns import judged_weeks

PLAN = Plan(preset("naples-2x32"), nodes=3, runs=2, passes=1, pair_runs=4)
COMPONENT = Component("core", "core-near", {"core": 17})


@pytest.fixture(scope="module")
def weeks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three weeks: a core of node002 is slow in the last."""
    folder = tmp_path_factory.mktemp("results")
    judged_weeks(folder, PLAN, range(3), {2: ["node002: core 17 +6%"]})
    return folder


def printed(*words: str | Path) -> str:
    return CliRunner().invoke(app, ["history", *map(str, words)], catch_exceptions=False).stdout


def changed(name: str, effect: float = 0.06) -> NodeHistory:
    times = ("2026-01-01T00:00:00+00:00", "2026-01-08T00:00:00+00:00")
    interval = Interval(effect - 0.01, effect + 0.01)
    change = Change(
        name,
        "coherence-cas",
        -1,
        "core-to-core",
        COMPONENT,
        "ns",
        100.0,
        106.0,
        effect,
        interval,
        0.04,
        times[0],
        times[1],
        times[1],
        False,
        (1, 1),
        True,
    )
    course = Course("coherence-cas", -1, "core-to-core", COMPONENT, 0.04, times, ("a", "b"), (0.0, 1.5), (0.2, 0.2))
    return NodeHistory(name, times, ("a", "b"), (change,), (course,))


def campaign(nodes: list[str], outcome: Outcome = Outcome.SAME) -> PastCampaign:
    return PastCampaign("a", False, dict.fromkeys(nodes, JudgedNode(outcome)), "2026-01-01T00:00:00Z", Path("a"))


def shown(histories: list[NodeHistory], selected: Histories) -> str:
    return printed_text.of_blocks(change_sentences.page(structs.replace(selected, nodes=tuple(histories))))


def test_beside_measured_campaigns_simulated_ones_are_left_out_and_named(weeks: Path, tmp_path: Path) -> None:
    folder = tmp_path / "results"
    shutil.copytree(weeks, folder)
    for week in ("week00", "week01"):
        path = folder / week / "verdict.json"
        path.write_text(path.read_text().replace('"simulated": true', '"simulated": false'))
    selected = selection.campaigns([folder])
    assert [campaign.name for campaign in selected.judged] == ["week00", "week01"] and selected.left_out == ("week02",)
    lines = printed(folder).splitlines()
    assert not lines[0].startswith("SIMULATED")
    assert lines[-1] == "left out because they were not measured: 1 simulated campaign (week02)"


def test_a_copied_campaign_confirms_nothing(weeks: Path, tmp_path: Path) -> None:
    folder = tmp_path / "results"
    shutil.copytree(weeks, folder)
    shutil.copytree(folder / "week02", folder / "week02-copy")
    before, after = printed(weeks).splitlines(), printed(folder).splitlines()
    assert "in one measurement: measure again" in before[1] and after[1] == before[1]
    assert after[-1] == "the same measurements lie in another campaign and count once: week02-copy"


def test_campaigns_of_one_name_are_told_apart_by_their_folders(weeks: Path, tmp_path: Path) -> None:
    folders = [tmp_path / month / "main" for month in ("january", "february")]
    for number, folder in enumerate(folders):
        shutil.copytree(weeks / f"week0{number}", folder)
        verdict = (folder / "verdict.json").read_text().replace(f'"campaign": "week0{number}"', '"campaign": "main"')
        (folder / "verdict.json").write_text(verdict)
    assert [of.name for of in selection.campaigns(folders).judged] == ["january/main", "february/main"]
    assert [of.name for of in selection.campaigns(folders[:1]).judged] == ["main"]


def test_what_only_one_measurement_came_before_cannot_be_measured_again(weeks: Path, tmp_path: Path) -> None:
    folder = tmp_path / "results"
    judged_weeks(folder, PLAN, range(3), {1: ["node002: core 17 +6%"]})
    line = printed(folder).splitlines()[1]
    assert line.startswith("node002: core 17") and line.endswith(", after a single measurement")


def test_nodes_beyond_the_rows_of_a_terminal_are_named() -> None:
    names = [f"cn{number:02d}" for number in range(1, 21)]
    lines = shown([changed(name) for name in names], Histories((campaign(names),))).splitlines()
    assert sum("tolerances" in line for line in lines) == selection.ALL_NODES
    assert lines[-2] == "4 more nodes with a change (--page draws each): cn[17-20]"


def test_a_node_is_not_compared_with_another_machine_of_its_name(weeks: Path, tmp_path: Path) -> None:
    """In the first week all nodes had other processors, in the second one of them."""
    folder = tmp_path / "results"
    shutil.copytree(weeks, folder)
    before: dict[str, set[str]] = {"week00": {"node000", "node001", "node002"}, "week01": {"node001"}, "week02": set()}
    for week, replaced in before.items():
        path = folder / week / "verdict.json"
        verdict = json.loads(path.read_text())
        for name, node in verdict["nodes"].items():
            node["fingerprint"]["cpu"] = "AMD EPYC 7601" if name in replaced else "AMD EPYC 7742"
        path.write_text(json.dumps(verdict))
    lines = printed(folder).splitlines()
    assert lines[-2].startswith("2 campaigns; ")
    assert lines[-1].startswith("left out as another machine of the same name: node[000-002] in week00 and week01 (")
    assert lines[-1].endswith("AMD EPYC 7601 before, AMD EPYC 7742 now)")
    facts = json.loads(printed(folder, "--json"))
    assert {node["node"]: len(node["measured"]) for node in facts["nodes"]} == {
        "node000": 2,
        "node001": 1,
        "node002": 2,
    }
    assert len(facts["other_machines"]) == 4
    beside = selection.beside(folder / "week02")
    assert [set(campaign.nodes) for campaign in beside.judged] == [
        {"node000", "node002"},
        {"node000", "node001", "node002"},
    ]


def test_a_node_beyond_its_tolerance_without_a_shown_change_is_to_be_measured_again() -> None:
    histories = [structs.replace(changed(name), changes=()) for name in ("cn01", "cn02")]
    near = structs.replace(histories[1].courses[0], distance=(0.0, 0.9))
    histories[1] = structs.replace(histories[1], courses=(near,))
    last = shown(histories, Histories((campaign(["cn01", "cn02"]),))).splitlines()[-1]
    assert last == (
        "1 campaign; no component changed by more than its tolerance on 1 of 2 nodes; "
        "no change is shown yet on cn01, where a component is beyond its tolerance: measure again"
    )
    assert change_sentences.unchanged(histories[0]).startswith(
        "No change is shown yet: the newest value of core 17 to the other cores of its socket is 1.5 tolerances above "
    )
    pairs = structs.replace(near, distance=(0.0, -1.84), component=Component("class", "class", {"class": 2}))
    assert change_sentences.unchanged(structs.replace(histories[0], courses=(pairs,))).startswith(
        "No change is shown yet: the newest value of pairs of the same CCD is 1.8 tolerances below its first level."
    )
    assert change_sentences.unchanged(histories[1]).startswith("No component changed permanently by more than its")


def test_a_page_of_many_nodes_draws_those_that_changed_most() -> None:
    histories = [changed(f"cn{number:03d}", 0.05 + number / 1000) for number in range(100)]
    drawn = [history.node for history in selection.pictured(histories)]
    assert drawn == [f"cn{number:03d}" for number in range(36, 100)]


def test_nodes_without_a_measurement_that_can_be_compared_are_named() -> None:
    selected = Histories((campaign(["cn01", "cn02"]), campaign(["cn03"], Outcome.NOT_MEASURED)))
    assert "without any measurement that can be compared: cn02" in shown([changed("cn01")], selected)
