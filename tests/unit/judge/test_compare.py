"""Two judged campaigns side by side, and fields of fingerprints that drift."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import msgspec
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


def with_groups(verdict: Verdict, groups: dict[str, float], median: float = 191.0) -> Verdict:
    """The same verdict with `same socket` of node001 as a mixture of groups."""
    node = verdict.nodes["node001"]
    classes = tuple(
        msgspec.structs.replace(f, groups=groups, median_ns=median) if f.name == "same socket" else f
        for f in node.classes
    )
    nodes = {**verdict.nodes, "node001": msgspec.structs.replace(node, classes=classes)}
    return msgspec.structs.replace(verdict, nodes=nodes)


def test_groups_of_a_mixture_are_compared_and_not_the_median_of_all() -> None:
    before = with_groups(verdict(), {"socket 0": 132.0, "socket 1": 267.0})
    after = with_groups(verdict(), {"socket 0": 132.0, "socket 1": 300.0}, median=191.5)
    changes = [change for change in compare(before, after, acceptance.load()) if change.node == "node001"]
    assert "same socket" not in {change.name for change in changes}
    (changed,) = [change for change in changes if change.changed]
    assert (changed.name, changed.before, changed.after) == ("same socket, socket 1", 267.0, 300.0)
    same = with_groups(verdict(), {"socket 0": 132.0, "socket 1": 267.0}, median=250.0)
    assert not any(change.changed for change in compare(before, same, acceptance.load()))


def test_a_class_that_became_a_mixture_is_said_to_be_one() -> None:
    mixture = with_groups(verdict(), {"socket 0": 132.0, "socket 1": 267.0})
    for pair, name in (
        ((verdict(), mixture), "same socket, a mixture now"),
        ((mixture, verdict()), "same socket, a mixture before"),
        (
            (mixture, with_groups(verdict(), {"faster half": 132.0, "slower half": 267.0}, 230.0)),
            "same socket, a mixture of other groups",
        ),
    ):
        changed = [change.name for change in compare(*pair, acceptance.load()) if change.changed]
        assert changed == [name]
