"""Two judged campaigns side by side, and fields of fingerprints that drift."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from nodeprint.cli import app
from nodeprint.data import packed
from nodeprint.judge import acceptance
from nodeprint.judge.compare import OtherMachine, compare, drift, machines_apart
from nodeprint.judge.judge import judge
from nodeprint.judge.verdict import Verdict
from tests.support.fleets import judged, made


def verdict(*defects: str, **changes: int | bool | str) -> Verdict:
    return judged(*defects, nodes=5, runs=3, pair_runs=3, **changes).verdict


def test_classes_that_changed_are_named_by_node() -> None:
    changes = compare(verdict(), verdict("node001: fabric +10%", seed=1), acceptance.load())
    changed = [change for change in changes if change.changed]
    assert {(change.node, change.measurement) for change in changed} == {("node001", "coherence-cas")}
    assert "same CCX" not in {change.name for change in changed}
    assert all(
        change.change == pytest.approx(0.10, abs=0.02) and change.change > change.threshold for change in changed
    )
    assert all(abs(change.change) <= change.threshold for change in changes if not change.changed)


def test_rows_of_cells_that_changed_are_named() -> None:
    before, after = verdict(cells=True), verdict("node002: memory-channel node 1 -30%", cells=True)
    changes = compare(before, after, acceptance.load())
    changed = {(change.node, change.measurement) for change in changes if change.changed}
    assert changed == {("node002", "bandwidth-nodes"), ("node002", "bandwidth-machine")}
    assert {change.measurement for change in changes} >= {"clock-together", "jitter-detours", "chase-latency"}


def test_nothing_changed_between_a_campaign_and_itself() -> None:
    same = compare(verdict(cells=True), verdict(cells=True), acceptance.load())
    assert same and not any(change.changed or change.change for change in same)


def test_nodes_of_one_campaign_alone_are_compared_with_nothing() -> None:
    before, after = verdict(), judged(nodes=3, runs=3, pair_runs=3).verdict
    assert {change.node for change in compare(before, after, acceptance.load())} == {"node000", "node001", "node002"}


@pytest.mark.parametrize("fingerprints", [True, False])
def test_another_machine_under_the_same_name_is_said(fingerprints: bool) -> None:
    """By the processor, or, without a fingerprint, by how many pairs each class has."""
    both = []
    for machine, processor in (("rome-2x64", "AMD EPYC 7742"), ("milan-2x64", "AMD EPYC 7763")):
        campaign = made(nodes=2, runs=1, pair_runs=1, machine=machine)
        fields = {"cpu": processor} if fingerprints else {}
        both.append(
            judge(replace(campaign, nodes=tuple(replace(n, fingerprint=fields) for n in campaign.nodes))).verdict
        )
    (other,) = machines_apart(*both)
    facts = ("CPU", "AMD EPYC 7742", "AMD EPYC 7763") if fingerprints else ("pairs of same CCX", "192", "448")
    assert other == OtherMachine(("node000", "node001"), *facts)
    assert not machines_apart(both[0], both[0])


def test_a_field_that_drifts_is_named() -> None:
    differences = drift(made("node002: fingerprint microcode=0x99", nodes=5).nodes, acceptance.load())
    assert {name: [field.key for field in fields] for name, fields in differences.items()} == {"node002": ["microcode"]}


def test_the_command_prints_what_changed_and_counts_the_rest(tmp_path: Path) -> None:
    for name, defects in (("before", ()), ("after", ("node001: fabric +10%",))):
        packed.write(made(*defects, nodes=4, runs=2, pair_runs=2), tmp_path / name)
        op = "cas" if name == "before" else "faa"
        (tmp_path / name / "plan.tsv").write_text(f"coherence-cas\tcoherence\t--op {op}\n")
        assert CliRunner().invoke(app, ["judge", str(tmp_path / name)], catch_exceptions=False).exit_code == 0
    words = ["compare", str(tmp_path / "before"), str(tmp_path / "after")]
    origin, arguments, *lines, counts, scope, rule = (
        CliRunner().invoke(app, words, catch_exceptions=False).stdout.splitlines()
    )
    assert origin == "SIMULATED, not a measurement"
    assert arguments == "coherence-cas was measured with other arguments: --op cas before, --op faa after"
    assert lines and all(line.startswith("node001: coherence-cas, ") and "(threshold" in line for line in lines)
    assert counts.startswith(f"{len(lines)} of ") and "none on 3 of 4 nodes" in counts
    assert scope.startswith("compared were medians, of classes of pairs") and "single cores" in scope
    assert "acceptance.yaml" in rule and "1 %" in rule
    facts = json.loads(CliRunner().invoke(app, [*words, "--json"], catch_exceptions=False).stdout)
    assert {change["node"] for change in facts["changes"] if change["changed"]} == {"node001"}
    assert facts["simulated"] is True and facts["machines_differ"] == []
