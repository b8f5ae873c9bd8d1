"""Acceptance files: what is wrong in one is named by its key."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from nodeprint.data.store import packed
from nodeprint.data.store.packed import PackedNode
from nodeprint.errors import NodeprintError
from nodeprint.judge import acceptance
from nodeprint.judge.campaign import judge
from tests.support.fleets import made


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("tolerances: {percent: {core: -1}}", "tolerances.percent.core"),
        ("tolerances: {percnt: 1}", "tolerances"),
        ("limits: [{measurement: coherence-cas, class: other socket, reason: x}]", "limits[0]"),
        ("priors: {job: {percent: 1}}", "priors.job: must be a number, not {'percent': 1}"),
        ("cells: {numa: {percent: 5}}", "cells.numa: run is missing"),
        ("cells: {numa: {percent: 5, run: 1, source: x}}", "cells.numa.source: unknown key"),
        ("required: coherence-cas", "required: must be a list"),
        ("required: [coherence-cass]", "required[0]: 'coherence-cass' is not allowed; did you mean coherence-cas?"),
        (
            "limits: [{measurement: bandwidth-nods, row: x, at_least: 300e9, reason: x}]",
            "limits[0].measurement: 'bandwidth-nods' is not allowed; did you mean bandwidth-nodes?",
        ),
        ("false_alarm_percent: often", "false_alarm_percent: must be a number"),
        ("fingerprint: {hard: [cpu, color]}", "fingerprint.hard[1]: 'color' is not allowed"),
        (
            "cells: {bandwith: {percent: 5, run: 1}}",  # codespell:ignore
            "cells: 'bandwith' is not allowed; did you mean bandwidth? choose from bandwidth, ",
        ),
        (
            "limits: [{measurement: coherence-cas, class: same CCX, row: x, at_most: 1, reason: x}]",
            "limits[0]: class and row are both given",
        ),
        ("waivers: [{node: a, finding: b, until: 2026-12-31}]", "waivers[0]: reason is missing"),
        ("waivers: [{node: a, finding: core-slow, reason: '', until: 2026-12-31}]", "waivers[0].reason"),
        (
            "waivers: [{node: a, finding: core-slow, reason: c, until: soon}]",
            "waivers[0].until: 'soon' is not a date",
        ),
    ],
)
def test_wrong_keys_are_named(tmp_path: Path, text: str, key: str) -> None:
    path = tmp_path / "acceptance.yaml"
    path.write_text(text)
    with pytest.raises(NodeprintError, match=re.escape(key)):
        acceptance.load(path)


def test_a_site_changes_the_tolerance_of_one_term_alone(tmp_path: Path) -> None:
    path = tmp_path / "acceptance.yaml"
    path.write_text("tolerances: {percent: {core: 8}}\ncells: {numa: {percent: 3, run: 0.6}}\n")
    rules, defaults = acceptance.load(path), acceptance.load()
    assert (rules.tolerance("core"), rules.tolerance("class")) == (0.08, defaults.tolerance("class"))
    assert rules.cell("numa").tolerance == 0.03 and rules.cell("numa").job_sd == pytest.approx(0.002)
    assert rules.cell("clock") == defaults.cell("clock") and rules.cell("unheard-of") == defaults.cell("other")


PLANNED = ("coherence-cas", "chase-latency", "bandwidth-nodes", "clock-together")


@pytest.mark.parametrize(
    ("limit", "problem"),
    [
        ("measurement: coherence-cas, class: same socket", ""),
        ("measurement: coherence-cas, row: same socket", ""),
        (
            "measurement: coherence-cas, row: same sockt",
            "coherence-cas has no figure 'same sockt'; its classes are same",
        ),
        (
            "measurement: bandwidth-scaling, row: 'socket, triad'",
            "bandwidth-scaling is not measured; add it to `measure`",
        ),
        ("measurement: linktest-fabric, row: x", "linktest-fabric is measured between nodes"),
        ("measurement: bandwidth-nodes, row: 'copy, own node'", ""),
        ("measurement: bandwidth-nodes, row: 'copy, own node, 0'", "bandwidth-nodes has no figure 'copy, own"),
    ],
)
def test_a_limit_of_what_no_node_can_have_is_named(tmp_path: Path, limit: str, problem: str) -> None:
    path = tmp_path / "a.yaml"
    path.write_text(f"limits: [{{{limit}, at_most: 1, reason: contract}}]")
    if not problem:
        acceptance.check_limits(path, PLANNED)
        return
    with pytest.raises(NodeprintError, match=re.escape(f"{path}: limits[0]: {problem}")):
        acceptance.check_limits(path, PLANNED)


@pytest.mark.parametrize(
    ("boost", "percent"),
    [((False, False), 2.0), ((False, True), 10.0), ((False, None), 10.0), ((), 10.0)],
)
def test_load_has_the_tolerance_of_nodes_without_boost_where_no_survey_says_otherwise(
    boost: tuple[bool | None, ...], percent: float
) -> None:
    nodes = [PackedNode(name=f"n{i}", fingerprint={"boost": value}) for i, value in enumerate(boost)]
    absent = PackedNode(name="absent", state="not measured")
    rules = acceptance.of_surveys(acceptance.load(), replace(made(nodes=2), nodes=(*nodes, absent)))
    assert rules.cell("load").percent == percent
    assert rules.cell("clock") == acceptance.load().cell("clock")


def test_a_sites_own_tolerance_of_load_holds_with_and_without_boost(tmp_path: Path) -> None:
    path = tmp_path / "acceptance.yaml"
    path.write_text("cells: {load: {percent: 5, run: 1}}\n")
    off = PackedNode(name="n0", fingerprint={"boost": False})
    rules = acceptance.of_surveys(acceptance.load(path), replace(made(nodes=2), nodes=(off,)))
    assert rules.cell("load").percent == 5


def test_a_campaign_without_boost_is_judged_by_its_tolerance(tmp_path: Path) -> None:
    fleet = made("node001: power-limit socket 0 -8%", nodes=8, cells=True)
    for name, boost in {"on": True, "off": False}.items():
        nodes = tuple(replace(node, fingerprint={**node.fingerprint, "boost": boost}) for node in fleet.nodes)
        packed.write(replace(fleet, nodes=nodes), tmp_path / name)
    terms = {
        name: {f.component.term for f in judge(tmp_path / name).verdict.nodes["node001"].findings}
        for name in ("on", "off")
    }
    assert "load" in terms["off"] - terms["on"], terms
