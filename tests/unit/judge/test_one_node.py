"""A node that is judged alone against what is kept of its peers has the verdict that it has among all."""

from __future__ import annotations

import json
import math
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest

from nodeprint.data import packed
from nodeprint.errors import NodeprintError
from nodeprint.judge import campaign as judging
from nodeprint.judge import one_node, peers_file
from nodeprint.machine.topology.presets import preset
from nodeprint.simulate import Plan, write
from tests.support.command_line import call
from tests.support.fleets import made

DEFECTS = (
    "node003: core 17 +12%", "node007: core 17 +12%", "node005: fingerprint microcode=0x1234",
    "node006: fingerprint boost=off", "node009: missing", "node011: memory-channel node 1 -12%",
    "node013: socket-link +6%",
)  # fmt: skip


def apart(one: Any, other: Any, path: str = "") -> list[str]:
    """Where two verdicts differ by more than rounding."""
    if isinstance(one, float) and isinstance(other, float):
        same = math.isclose(one, other, rel_tol=1e-6, abs_tol=1e-9) or (math.isnan(one) and math.isnan(other))
        return [] if same else [f"{path}: {one} {other}"]
    if isinstance(one, dict) and isinstance(other, dict) and one.keys() == other.keys():
        return [text for key in one for text in apart(one[key], other[key], f"{path}.{key}")]
    if isinstance(one, list | tuple) and isinstance(other, list | tuple) and len(one) == len(other):
        return [text for at, item in enumerate(one) for text in apart(item, other[at], f"{path}[{at}]")]
    return [] if one == other else [f"{path}: {one} {other}"]


@pytest.mark.parametrize(("jobs", "nodes"), [(1, 20), (2, 20), (1, 70)])
def test_a_node_alone_has_the_verdict_that_it_has_among_all(tmp_path: Path, jobs: int, nodes: int) -> None:
    fleet = made(*DEFECTS, nodes=nodes, jobs=jobs, cells=True)
    packed.write(fleet, tmp_path)
    verdict = judging.judge(tmp_path).verdict
    seen = set()
    for name in [f"node{number:03d}" for number in range(15)]:
        alone = one_node.judge(tmp_path, name)
        assert alone.simulated
        assert alone.peers == (0 if name in {"node006", "node009"} else nodes - 2), name
        found, expected = (msgspec.to_builtins(of, str_keys=True) for of in (alone.verdict, verdict.nodes[name]))
        assert apart(found, expected) == []
        seen.add(alone.verdict.outcome.value)
    assert verdict.nodes["node005"].warnings
    assert {"NOT MEASURED", "DIFFERENT CONFIGURATION", "DEVIATES" if jobs == 2 else "SUSPECT"} <= seen


def test_a_further_job_of_a_node_is_judged_against_the_first_of_its_peers(tmp_path: Path) -> None:
    first, both = (made("node003: core 17 +12%", nodes=20, jobs=jobs) for jobs in (1, 2))
    packed.write(first, tmp_path)
    judging.judge(tmp_path)
    packed.write(both, tmp_path)
    assert one_node.judge(tmp_path, "node003").verdict.outcome == "DEVIATES"
    assert one_node.judge(tmp_path, "node004").verdict.outcome == "SAME"


def test_a_node_that_was_not_among_the_peers_is_judged_against_them(tmp_path: Path) -> None:
    fleet = made("node019: core 17 +12%", nodes=20)
    fewer = replace(fleet, nodes=fleet.nodes[:18], quantities=tuple(
        replace(
            of, values=of.values[of.node < 18], job=of.job[of.node < 18], run=of.run[of.node < 18],
            started=of.started[: int((of.node < 18).sum())], disturbed=of.disturbed[of.node < 18],
            node=of.node[of.node < 18],
        )
        for of in fleet.quantities
    ))  # fmt: skip
    packed.write(fewer, tmp_path)
    judging.judge(tmp_path)
    packed.write(fleet, tmp_path)
    assert [one_node.judge(tmp_path, name).verdict.outcome for name in ("node018", "node019")] == ["SAME", "SUSPECT"]
    assert one_node.judge(tmp_path, "node019").peers == 18


def test_without_usable_peers_the_whole_campaign_is_judged(tmp_path: Path) -> None:
    packed.write(made(nodes=20), tmp_path)
    assert one_node.judge(tmp_path, "node004").peers == 0
    assert one_node.judge(tmp_path, "node004").peers == 20
    for broken in (b"", b"\x81\xa6schema\x01", (tmp_path / peers_file.FILE).read_bytes()[:-9]):
        (tmp_path / peers_file.FILE).write_bytes(broken)
        assert one_node.judge(tmp_path, "node004").peers == 0
    bounds = tmp_path / "own.yaml"
    bounds.write_text("bounds: {percent: {core: 30}}\n")
    judging.judge(tmp_path, acceptance=bounds)
    assert one_node.judge(tmp_path, "node004").peers == 20
    (tmp_path / "acceptance.yaml").unlink()
    assert one_node.judge(tmp_path, "node004").peers == 0


@pytest.mark.parametrize("name", ["", "node099", "../x"])
def test_a_node_that_is_not_there_is_one_sentence(tmp_path: Path, name: str) -> None:
    packed.write(made(nodes=2), tmp_path)
    with pytest.raises(NodeprintError, match="there is no node"):
        one_node.judge(tmp_path, name)


def test_the_command_prints_one_node_and_writes_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    packed.write(made("node003: core 17 +12%", nodes=20), tmp_path)
    judging.judge(tmp_path)
    before = {path.name: path.stat().st_mtime_ns for path in tmp_path.iterdir()}
    assert call("judge", tmp_path, "--node", "node003", "--fail-on", "found") == 3
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "SIMULATED, not a measurement"
    assert lines[1].startswith("node003: SUSPECT. Core 17")
    assert lines[-1] == (
        "Judged alone against the fleet of the newest verdict, in which 20 nodes were compared; nothing was written."
    )
    assert call("judge", tmp_path, "--node", "node004", "--fail-on", "found", "--json") == 0
    assert json.loads(capsys.readouterr().out)["outcome"] == "SAME"
    assert {path.name: path.stat().st_mtime_ns for path in tmp_path.iterdir()} == before


@pytest.mark.parametrize(
    "words",
    [("--baseline", "b"), ("--acceptance", "a.yaml"), ("--recheck", "r"), ("--reference",), ("--notify", "cat")],
)
def test_what_is_of_a_whole_campaign_is_refused_for_one_node(
    tmp_path: Path, words: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    packed.write(made(nodes=2), tmp_path)
    assert call("judge", tmp_path, "--node", "node001", *words) == 2
    message = capsys.readouterr().err
    assert message == f"nodeprint: {words[0]}: judges a whole campaign, and --node node001 one; leave it out\n"


def test_a_node_alone_is_read_from_its_records(tmp_path: Path) -> None:
    plan = Plan(preset("naples-2x32"), nodes=17, passes=1, cells=True, defects=("node003: core 17 +12%",))
    campaign = write(plan, tmp_path / "fleet")
    verdict = judging.judge(campaign).verdict
    shutil.rmtree(campaign / packed.FOLDER)
    for name in ("node000", "node003"):
        alone = one_node.judge(campaign, name)
        assert alone.peers == 17
        found, expected = (msgspec.to_builtins(of, str_keys=True) for of in (alone.verdict, verdict.nodes[name]))
        # of the instruments the peers' median has the node itself in it
        assert [where for where in apart(found, expected) if ".evidence[" not in where] == []
    assert not (campaign / packed.FOLDER).exists(), "no other node is read"
    with pytest.raises(NodeprintError, match=r"there is no node 'node99'.*did you mean"):
        one_node.judge(campaign, "node99")
