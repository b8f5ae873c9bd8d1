"""The verdict as files."""

from __future__ import annotations

import json
import math
from pathlib import Path

import junitparser
import pytest
from msgspec.structs import replace

from nodeprint.errors import NodeprintError
from nodeprint.judge.outcome import Certainty, Outcome, ReasonDetail
from nodeprint.judge.verdict import Reason, rounded
from nodeprint.report import verdict_files
from tests.support import verdicts
from tests.support.fleets import judged


def test_verdict_is_read_back_as_types(tmp_path: Path) -> None:
    made = verdicts.verdict(fabric=(verdicts.fabric(),))
    verdict_files.write(made, tmp_path)
    back = verdict_files.read(tmp_path)
    assert verdict_files.as_json(back) == verdict_files.as_json(made)
    assert back.nodes["cn003"].counted[0].pairs == made.nodes["cn003"].findings[0].pairs
    assert back.nodes["cn003"].outcome is Outcome.DEVIATES


def test_a_judged_verdict_has_the_six_digits_of_its_file() -> None:
    nodes = rounded(judged("node001: core 17 +9%", cells=True).verdict).nodes.values()
    findings = [value for node in nodes for of in node.findings for value in (of.effect, of.interval.low, of.half_95)]
    medians = [of.median for node in nodes for of in node.cells]
    assert findings and [float(f"{value:.6g}") for value in (*findings, *medians)] == [*findings, *medians]


def test_numbers_that_are_not_finite_are_null_and_come_back(tmp_path: Path) -> None:
    made = verdicts.verdict(
        {"cn1": verdicts.node(agreements=(verdicts.agreement(within=math.inf, within_unit=math.nan),))}
    )
    verdict_files.write(made, tmp_path)
    assert json.loads((tmp_path / "verdict.json").read_text())["nodes"]["cn1"]["agreements"][0]["within"] is None
    assert verdict_files.read(tmp_path).nodes["cn1"].agreements[0].share == math.inf


@pytest.mark.parametrize("content", ["", "[]", "{", '{"nodes": {}}', '{"schema": 1, "nodes": {}}', "null", "[" * 9000])
def test_what_is_no_verdict_is_named_in_a_sentence(tmp_path: Path, content: str) -> None:
    (tmp_path / "verdict.json").write_text(content)
    with pytest.raises(NodeprintError, match="nodeprint judge"):
        verdict_files.read(tmp_path)


def test_junit_has_a_case_for_nodes_fleet_and_fabric() -> None:
    made = verdicts.verdict(fabric=(verdicts.fabric(),))
    suite = next(iter(junitparser.JUnitXml.fromstring(verdict_files.junit(made).encode())))
    cases = {case.name: case for case in suite}
    assert len(cases) == len(made.nodes) + 2
    elements = {name: type(case.result[0]).__name__.lower() if case.result else "" for name, case in cases.items()}
    assert elements["fleet"] == made.fleet.outcome.entry.junit
    assert elements["fabric linktest-fabric, partition compute"] == "failure"
    assert all(elements[f"node {name}"] == node.outcome.entry.junit for name, node in made.nodes.items())


def test_drain_is_for_confirmed_faults_of_a_node_alone() -> None:
    def lines(**changes: object) -> list[str]:
        made = verdicts.verdict()
        node = replace(made.nodes["cn003"], **changes)
        text = verdict_files.drain(replace(made, nodes={**made.nodes, "cn003": node}), {})
        return [line for line in text.splitlines() if not line.startswith("#")]

    assert len(lines()) == 1 and "NodeName='cn003'" in lines()[0]
    assert not lines(findings=(verdicts.finding(shared_by=("cn004",)),))
    assert not lines(outcome=Outcome.SUSPECT, findings=(verdicts.finding(state=Certainty.SUSPECTED),))
    (own,) = lines(
        outcome=Outcome.WRONG_RESULT, reasons=(Reason(Outcome.WRONG_RESULT, ReasonDetail.FAILED_CHECK),), findings=()
    )
    assert "A benchmark on it failed its own check of the result" in own
    assert not lines(findings=(verdicts.finding(-0.06, worse=False),))
    disturbed = {
        "outcome": Outcome.INVALID,
        "reasons": (Reason(Outcome.INVALID, ReasonDetail.DISTURBED),),
        "disturbances": (verdicts.disturbed(),),
    }
    assert not lines(**disturbed)


def test_a_reason_of_drain_is_cut_off_behind_whole_words() -> None:
    """Of a number that is cut off, a reader does not know how long it was."""
    words = f"{'word ' * 15}is 20.45% lower (interval 18.25 to 22.75%; tolerance 5%)"
    assert verdict_files._in_short(words) == f"{'word ' * 15}is 20.45% lower (interval 18.25 to 22.75%..."


def test_drain_leaves_other_reasons_alone_and_comments_what_is_simulated() -> None:
    made = verdicts.verdict()
    assert "left alone as it is drained: bad fan" in verdict_files.drain(made, {"cn003": ("drained", "bad fan")})
    simulated = verdict_files.drain(replace(made, simulated=True), {}).splitlines()
    assert all(line.startswith("#") for line in simulated)


def test_prometheus_has_no_campaign_in_the_series_of_nodes() -> None:
    text = verdict_files.prometheus(verdicts.verdict())
    assert 'nodeprint_node_verdict{node="cn003",class="FAIL",verdict="DEVIATES"} 1' in text
    assert (
        'nodeprint_bandwidth_bytes_per_second{node="cn001",measurement="bandwidth-nodes",name="load, own"} 1.61e+11'
        in text
    )
    assert text.count('campaign="main"') == 1


def test_prometheus_has_the_time_of_each_node_and_a_series_for_each_finding() -> None:
    nodes = {"cn1": verdicts.node(Outcome.DEVIATES, findings=(verdicts.finding(),), measured="2026-03-03T04:05:06Z")}
    text = verdict_files.prometheus(verdicts.verdict(nodes))
    assert 'nodeprint_measured_timestamp_seconds{node="cn1"} 1772510706' in text
    of = 'id="core-slow",measurement="coherence-cas",home="-1",part="core-near: core=37,cpu=37"'
    assert f'nodeprint_finding_effect_ratio{{node="cn1",{of}}} 0.059' in text


def test_prometheus_has_a_series_for_each_group_of_a_mixture() -> None:
    made = verdicts.node()
    mixture = replace(made.classes[1], groups={"socket 0": 132.0, "socket 1": 267.0}, median_ns=191.0)
    text = verdict_files.prometheus(verdicts.verdict({"cn1": replace(made, classes=(made.classes[0], mixture))}))
    of = 'nodeprint_class_latency_seconds{node="cn1",class="same socket",measurement="coherence-cas",home="-1"'
    assert f'{of},group="socket 0"}} 1.32e-07' in text and f'{of},group="socket 1"}} 2.67e-07' in text
    assert f"{of}}}" not in text
    assert 'class="same CCX",measurement="coherence-cas",home="-1"} 2.4e-08' in text


def test_prometheus_has_each_series_once() -> None:
    lines = verdict_files.prometheus(judged("node001: core 17 +9%", cells=True).verdict).splitlines()
    names = [line.rpartition(" ")[0] for line in lines if not line.startswith("#")]
    assert len(names) == len(set(names))
    metrics = {name.partition("{")[0] for name in names}
    assert {f"nodeprint_{name}" for name in ("latency_seconds", "clock_hertz", "operations_per_second")} <= metrics
    assert "nodeprint_value" not in metrics


def test_recheck_lists_names() -> None:
    assert verdict_files.recheck(verdicts.verdict(recheck=("cn003", "cn001", "cn002"))) == "cn003\ncn001\ncn002\n"
