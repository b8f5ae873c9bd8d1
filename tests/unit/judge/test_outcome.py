"""One table of outcomes: every outcome crossed with every output that speaks of it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import junitparser
import msgspec
import pytest
import yaml
from msgspec.structs import replace

from nodeprint.errors import NodeprintError
from nodeprint.judge.outcome import (
    Accepted,
    Certainty,
    Drain,
    FleetOutcome,
    Kind,
    Outcome,
    ReasonDetail,
    kinds,
)
from nodeprint.judge.verdict import NodeVerdict, Verdict
from nodeprint.report import protocol, text, verdict_files
from nodeprint.report.protocol import Decision
from tests.support import verdicts

ROOT = Path(__file__).resolve().parents[3]
#: What the names say, written out once more: a change of the table has to be meant.
FOUND = {"WRONG RESULT", "OUT OF SPEC", "DEVIATES", "INTERMITTENT", "SUSPECT", "MISMATCH", "SPLIT"}
FOUND_IN_FLEETS = {"SPLIT", "DEVIATIONS", "NON-UNIFORM", "INTERMITTENT", "SUSPECTS"}
ERRORS = {"NOT MEASURED", "INVALID", "INCONCLUSIVE"}
CLASSES = {
    "FAIL": {"WRONG RESULT", "OUT OF SPEC", "DEVIATES", "DEVIATIONS"},
    "WARN": {"INTERMITTENT", "SUSPECT", "MISMATCH", "SPLIT", "DIFFERENT CONFIGURATION", "SUSPECTS", "NON-UNIFORM"},
    "UNDETERMINED": ERRORS,
    "NOT COMPARED": {"NO PEERS"},
    "PASS": {"SAME", "UNIFORM"},
}


def _verdict(outcome: Outcome, why: ReasonDetail | None) -> Verdict:
    """A campaign of two nodes, of which one has an outcome; the fleet's is the mildest that goes with it."""
    state = next((state for state in Certainty if state.value == str(outcome).lower()), Certainty.CONFIRMED)
    findings = (verdicts.finding(state=state),) if outcome.entry.found else ()
    nodes = {"cn001": verdicts.node(), "cn002": verdicts.node(outcome, why, findings=findings)}
    made = verdicts.verdict(nodes)
    of_fleet = FleetOutcome.UNIFORM if outcome is Outcome.SAME else FleetOutcome.INCONCLUSIVE
    return replace(made, fleet=replace(made.fleet, outcome=of_fleet))


def _kinds(verdict: Verdict) -> set[Kind]:
    return {kind for kind in Kind if verdict.fails([kind])}


def _cases(verdict: Verdict) -> dict[str, list[str]]:
    """By test case of verdict.xml its results."""
    suites = junitparser.JUnitXml.fromstring(verdict_files.junit(verdict).encode())
    return {
        str(case.name): [type(result).__name__.lower() for result in case.result] for suite in suites for case in suite
    }


@pytest.mark.parametrize(("outcome", "why"), verdicts.REASONS)
def test_every_output_of_a_node_says_one_thing(outcome: Outcome, why: ReasonDetail | None) -> None:
    verdict, is_found = _verdict(outcome, why), outcome in FOUND
    kinds = _kinds(verdict)
    assert (Kind.FOUND in kinds, Kind.NOT_SAME in kinds) == (is_found, outcome != "SAME")
    assert (Kind.CONFIGURATION in kinds) == (outcome == "DIFFERENT CONFIGURATION")
    assert (Kind.INVALID in kinds, Kind.NOT_MEASURED in kinds) == (outcome == "INVALID", outcome == "NOT MEASURED")
    assert Kind.NOTHING not in kinds

    expected = {"SAME": [], "NO PEERS": ["skipped"]} | {error: ["error"] for error in ERRORS}
    assert _cases(verdict)["node cn002"] == expected.get(outcome, ["failure"])

    result = protocol.result([outcome])
    assert result == ("deviation" if is_found else "accepted" if outcome == "SAME" else "open")

    line = text.first_line(verdict)
    assert (f"{outcome.with_class}: cn002" in line) == (outcome != "SAME")
    assert (
        f'node_verdict{{node="cn002",class="{outcome.outcome_class}",verdict="{outcome}"}} 1'
        in verdict_files.prometheus(verdict)
    )

    drain = verdict_files.drain(verdict, {})
    assert ("\nscontrol update NodeName='cn002'" in drain) == (outcome in {"DEVIATES", "WRONG RESULT"})
    assert ("# cn002: INTERMITTENT, left alone" in drain) == (outcome == "INTERMITTENT")


@pytest.mark.parametrize("outcome", FleetOutcome)
def test_every_output_of_a_fleet_says_one_thing(outcome: FleetOutcome) -> None:
    made = verdicts.verdict({"cn001": verdicts.node(), "cn002": verdicts.node()})
    verdict = replace(made, fleet=replace(made.fleet, outcome=outcome))
    kinds, is_found = _kinds(verdict), outcome in FOUND_IN_FLEETS
    assert (Kind.FOUND in kinds, Kind.NOT_SAME in kinds) == (is_found, outcome != "UNIFORM")
    expected = {"UNIFORM": [], "NO PEERS": ["skipped"]} | {error: ["error"] for error in ERRORS}
    assert _cases(verdict)["fleet"] == expected.get(outcome, ["failure"])
    assert text.first_line(verdict).startswith(f"{outcome.with_class}: ")
    suggested = protocol.decision([Accepted.ACCEPTED] * 2, [verdict])
    assert suggested == (
        Decision.ACCEPTED
        if outcome == "UNIFORM"
        else Decision.REJECTED
        if outcome in {"SPLIT", "NON-UNIFORM"}
        else Decision.RESERVATIONS
    )


@pytest.mark.parametrize(
    ("state", "outcome"), [("confirmed", "DEVIATIONS"), ("intermittent", "INTERMITTENT"), ("suspected", "SUSPECTS")]
)
def test_a_slow_link_is_found_in_every_output(state: str, outcome: str) -> None:
    (link,) = verdicts.fabric().findings
    slow = verdicts.fabric(findings=(replace(link, state=Certainty(state)),))
    verdict = verdicts.verdict({"cn001": verdicts.node(), "cn002": verdicts.node()}, fabric=(slow,))
    assert _kinds(verdict) == {Kind.FOUND, Kind.NOT_SAME}
    line, found = text.first_line(verdict), next(of for of in FleetOutcome if of == outcome)
    assert line.startswith(f"{found.outcome_class} (messages between nodes): ")
    assert f"{found.with_class}: messages of partition compute" in line
    assert _cases(verdict)["fabric linktest-fabric, partition compute"] == ["failure"]
    assert protocol.decision([Accepted.ACCEPTED] * 2, [verdict]) is Decision.RESERVATIONS


def test_a_node_that_fails_makes_a_split_fleet_fail() -> None:
    """Its groups are a warning, as nobody knows which is right, and would hide it."""
    made = verdicts.verdict({"cn001": verdicts.node(), "cn002": verdicts.node(Outcome.DEVIATES)})
    verdict = replace(made, fleet=replace(made.fleet, outcome=FleetOutcome.SPLIT))
    assert verdict.fleet.outcome_class == verdict.outcome_class == "FAIL"
    assert text.first_line(verdict).startswith("FAIL (SPLIT): ")
    assert text.campaign_outcome(verdict) == "FAIL (SPLIT)" and verdict.entry.color == "alarm"
    assert 'nodeprint_fleet_verdict{class="FAIL",verdict="SPLIT"} 1' in verdict_files.prometheus(verdict)
    verdict = replace(made, fleet=replace(made.fleet, outcome=FleetOutcome.SPLIT, counts={Outcome.SPLIT: 2}))
    assert verdict.outcome_class == "WARN"


def test_each_outcome_has_its_class_rank_and_entry() -> None:
    every = (*Outcome, *FleetOutcome)
    assert {of: {str(outcome) for outcome in every if outcome.outcome_class == of} for of in CLASSES} == CLASSES
    assert [outcome.rank for outcome in Outcome] == list(range(len(Outcome)))
    assert {of for of in Outcome if of.entry.drain is Drain.SUGGESTED} == {Outcome.WRONG_RESULT, Outcome.DEVIATES}
    assert {outcome for outcome in Outcome if outcome.entry.again} == {
        Outcome.INTERMITTENT,
        Outcome.SUSPECT,
        Outcome.SPLIT,
        Outcome.INVALID,
    }
    # a fleet is never milder than the worst of its nodes
    assert all(of.entry.fleet.entry.found for of in Outcome if of.entry.found)


def test_the_class_is_in_verdict_json_and_follows_from_the_outcome() -> None:
    verdict = _verdict(Outcome.DEVIATES, None)
    plain = json.loads(verdict_files.as_json(verdict))
    assert (plain["nodes"]["cn002"]["class"], plain["nodes"]["cn001"]["class"]) == ("FAIL", "PASS")
    assert plain["fleet"]["class"] == "FAIL"
    plain["nodes"]["cn002"]["class"] = "PASS"
    plain["nodes"]["cn002"]["findings"] = []
    assert msgspec.convert(plain["nodes"]["cn002"], NodeVerdict, str_keys=True).outcome_class == "FAIL"


def test_alert_rules_and_the_dashboard_name_what_is_found() -> None:
    rules = yaml.safe_load((ROOT / "packaging/grafana/alerts.yaml").read_text())["groups"][0]["rules"]
    panels = json.loads((ROOT / "packaging/grafana/nodeprint.json").read_text())["panels"]
    queries = [rule["expr"] for rule in rules] + [t["expr"] for panel in panels for t in panel.get("targets", ())]
    named = [match for query in queries if (match := re.search(r'class=~"([^"]*)",verdict!="([^"]*)"', query))]
    assert len(named) == 2
    found = {outcome for outcome in Outcome if outcome.entry.found}
    assert all({of for of in Outcome if of.outcome_class in m[1].split("|") and of != m[2]} == found for m in named)


def test_kinds_of_a_list_are_known_ones() -> None:
    assert kinds("found, not-same,") == (Kind.FOUND, Kind.NOT_SAME)
    assert kinds("nothing,nothing") == (Kind.NOTHING, Kind.NOTHING)
    wrong = {" ,": "names no kind", "found,fuond": "'fuond' is no kind", "nothing,found": "others are named"}
    for words, says in wrong.items():
        with pytest.raises(NodeprintError, match=f"--fail-on: .*{says}"):
            kinds(words)
