"""Which nodes to measure next."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from nodeprint.campaign import node_sheet
from nodeprint.cli import app
from nodeprint.errors import NodeprintError
from nodeprint.history.judged import JudgedNode, PastCampaign
from nodeprint.history.next_nodes import Why, choose
from nodeprint.judge.outcome import Outcome


def node(outcome: Outcome = Outcome.SAME, day: int = 1, bios: str = "1") -> JudgedNode:
    return JudgedNode(outcome, f"2026-03-{day:02d}T00:00:00Z", {"bios": bios})


def night(day: int, nodes: dict[str, JudgedNode]) -> PastCampaign:
    return PastCampaign(f"night{day}", False, nodes, f"2026-03-{day:02d}T00:00:00Z", Path(f"night{day}"))


FLEET = [f"cn{i:02d}" for i in range(1, 11)]
#: Ten nodes: cn01 was never measured, cn02 has another BIOS, cn03 is suspicious, and cn04 was measured longest ago.
PAST = [
    night(1, {name: node(day=1) for name in FLEET[1:]}),
    night(2, {name: node(day=2) for name in FLEET[4:]}),
    night(3, {"cn02": node(day=3, bios="2"), "cn03": node(Outcome.SUSPECT, day=3)}),
]


def chosen(hours: float, past: list[PastCampaign] = PAST) -> dict[str, Why]:
    table = choose(dict.fromkeys(FLEET, 600.0), past, [], 3600 * hours)
    return dict(zip(table["node"], table["why"], strict=True))


def test_urgent_nodes_come_first_with_controls_beside() -> None:
    assert chosen(1) == {
        "cn01": Why.NEVER,
        "cn02": Why.CHANGED,
        "cn03": Why.SUSPICIOUS,
        "cn04": Why.LONGEST,
        "cn05": Why.CONTROL,
        "cn06": Why.CONTROL,
    }


def test_the_time_is_kept() -> None:
    assert [len(chosen(hours)) for hours in (0.1, 0.17, 0.5, 1, 1.6, 9)] == [0, 1, 3, 6, 9, 10]


def test_a_configuration_that_was_measured_twice_is_known() -> None:
    past = [*PAST, night(4, {"cn02": node(day=4, bios="2")})]
    assert Why.CHANGED not in chosen(9, past).values()


def test_every_node_is_measured_in_turn() -> None:
    past, seen = [night(1, {name: node(day=1) for name in FLEET})], set()
    for day in range(2, 8):
        tonight = set(chosen(0.5, past))
        seen |= tonight
        past.append(night(day, {name: node(day=day) for name in tonight}))
    assert seen == set(FLEET)


def test_the_command_prints_a_node_list_alone_on_its_output(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    config = tmp_path / "config.yaml"
    config.write_text("launch: ansible\ninventory: hosts.yml\nslurm: {minutes: 24}\n")
    campaign = tmp_path / "results/main"
    node_sheet.write_sheet(campaign / "nodes.tsv", [node_sheet.Node(name, name, cpus=8) for name in FLEET])
    words = ["next", "--config", str(config)]
    done = CliRunner().invoke(app, [*words, "--hours", "0.6"], catch_exceptions=False)
    assert done.stdout == "cn[01-03]\n"
    assert done.stderr == "never measured: cn[01-03]\n3 nodes, 0.6 node hours\n"
    with pytest.raises(NodeprintError, match=r"a node takes 0\.20 hours"):
        CliRunner().invoke(app, [*words, "--hours", "0.1"], catch_exceptions=False)
    facts = json.loads(CliRunner().invoke(app, [*words, "--hours", "1", "--json"], catch_exceptions=False).stdout)
    assert [entry["node"] for entry in facts["nodes"]] == FLEET[:5]
