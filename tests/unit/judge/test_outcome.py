"""One table of outcomes: every outcome crossed with every output that speaks of it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path

import junitparser
import pytest
import yaml
from msgspec.structs import replace

from nodeprint.errors import NodeprintError
from nodeprint.judge.outcome import (
    FLEET_MEANING,
    MEANING,
    OUTCOME_OF,
    Accepted,
    Drain,
    FleetOutcome,
    Kind,
    Outcome,
    State,
    Why,
    kinds,
)
from nodeprint.judge.verdict import Verdict
from nodeprint.report import files, protocol, text
from nodeprint.report.protocol import Decision
from tests.support import verdicts

ROOT = Path(__file__).resolve().parents[3]
#: What the names say, written out once more: a change of the table has to be meant.
FOUND = {"WRONG RESULT", "OUTSIDE LIMIT", "DEVIATES", "INTERMITTENT", "SUSPECT", "DIFFERS", "SPLIT"}
FOUND_IN_FLEETS = {"SPLIT", "DEVIATIONS", "NOT UNIFORM", "INTERMITTENT", "SUSPECTS"}
ERRORS = {"NOT MEASURED", "INVALID", "INCONCLUSIVE"}
OF_NODE = [(outcome, why) for why, outcome in OUTCOME_OF.items()]


def _verdict(outcome: Outcome, why: Why) -> Verdict:
    """A campaign of two nodes, of which one has an outcome; the fleet's is the mildest that goes with it."""
    state = next((state for state in State if state.value == str(outcome).lower()), State.CONFIRMED)
    findings = (verdicts.finding(state=state),) if MEANING[outcome].found else ()
    nodes = {"cn001": verdicts.node(), "cn002": verdicts.node(outcome, why, findings=findings)}
    made = verdicts.verdict(nodes)
    of_fleet = FleetOutcome.UNIFORM if outcome is Outcome.SAME else FleetOutcome.INCONCLUSIVE
    return replace(made, fleet=replace(made.fleet, outcome=of_fleet))


def _kinds(verdict: Verdict) -> set[Kind]:
    return {kind for kind in Kind if verdict.fails([kind])}


def _cases(verdict: Verdict) -> dict[str, list[str]]:
    """By test case of verdict.xml its results."""
    suites = junitparser.JUnitXml.fromstring(files.junit(verdict).encode())
    return {
        str(case.name): [type(result).__name__.lower() for result in case.result] for suite in suites for case in suite
    }


@pytest.mark.parametrize(("outcome", "why"), OF_NODE)
def test_every_output_of_a_node_says_one_thing(outcome: Outcome, why: Why) -> None:
    verdict, is_found = _verdict(outcome, why), outcome in FOUND
    kinds = _kinds(verdict)
    assert (Kind.FOUND in kinds, Kind.NOT_SAME in kinds) == (is_found, outcome != "SAME")
    assert (Kind.CONFIGURATION in kinds) == (outcome == "DIFFERENT CONFIGURATION")
    assert (Kind.INVALID in kinds, Kind.NOT_MEASURED in kinds) == (outcome == "INVALID", outcome == "NOT MEASURED")
    assert Kind.NOTHING not in kinds

    expected = {"SAME": [], "NO PEER": ["skipped"]} | {error: ["error"] for error in ERRORS}
    assert _cases(verdict)["node cn002"] == expected.get(outcome, ["failure"])

    result = protocol.result([outcome])
    assert result == ("deviation" if is_found else "accepted" if outcome == "SAME" else "open")

    line = text.first_line(verdict)
    assert (f"{outcome}: cn002" in line) == (outcome != "SAME")
    assert f'node_verdict{{node="cn002",verdict="{outcome}"}} 1' in files.prometheus(verdict)

    drain = files.drain(verdict, {})
    assert ("\nscontrol update NodeName='cn002'" in drain) == (outcome in {"DEVIATES", "WRONG RESULT"})
    assert ("# cn002: INTERMITTENT, left alone" in drain) == (outcome == "INTERMITTENT")


@pytest.mark.parametrize("outcome", FleetOutcome)
def test_every_output_of_a_fleet_says_one_thing(outcome: FleetOutcome) -> None:
    made = verdicts.verdict({"cn001": verdicts.node(), "cn002": verdicts.node()})
    verdict = replace(made, fleet=replace(made.fleet, outcome=outcome))
    kinds, is_found = _kinds(verdict), outcome in FOUND_IN_FLEETS
    assert (Kind.FOUND in kinds, Kind.NOT_SAME in kinds) == (is_found, outcome != "UNIFORM")
    expected = {"UNIFORM": [], "NO PEER": ["skipped"]} | {error: ["error"] for error in ERRORS}
    assert _cases(verdict)["fleet"] == expected.get(outcome, ["failure"])
    assert text.first_line(verdict).startswith(f"{outcome}: ")
    suggested = protocol.decision([Accepted.ACCEPTED] * 2, [verdict])
    assert suggested == (
        Decision.ACCEPTED
        if outcome == "UNIFORM"
        else Decision.REJECTED
        if outcome in {"SPLIT", "NOT UNIFORM"}
        else Decision.RESERVATIONS
    )


@pytest.mark.parametrize(
    ("state", "outcome"), [("confirmed", "DEVIATIONS"), ("intermittent", "INTERMITTENT"), ("suspected", "SUSPECTS")]
)
def test_a_slow_link_is_found_in_every_output(state: str, outcome: str) -> None:
    (link,) = verdicts.fabric().findings
    slow = verdicts.fabric(findings=(replace(link, state=State(state)),))
    verdict = verdicts.verdict({"cn001": verdicts.node(), "cn002": verdicts.node()}, fabric=(slow,))
    assert _kinds(verdict) == {Kind.FOUND, Kind.NOT_SAME}
    assert f"{outcome}: messages of partition compute" in text.first_line(verdict)
    assert _cases(verdict)["fabric linktest-fabric, partition compute"] == ["failure"]
    assert protocol.decision([Accepted.ACCEPTED] * 2, [verdict]) is Decision.RESERVATIONS


@pytest.mark.parametrize("meanings", [MEANING, FLEET_MEANING])
def test_tables_are_complete_and_their_ranks_are_an_order(meanings: dict[str, object]) -> None:
    every: Iterable[str] = Outcome if meanings is MEANING else FleetOutcome
    table = MEANING if meanings is MEANING else FLEET_MEANING
    assert set(table) == set(every)
    ranks = [meaning.rank for meaning in table.values()]
    assert all(low < high for low, high in pairwise(ranks)), "each outcome has a place of its own"
    assert {outcome for outcome, meaning in MEANING.items() if meaning.drain is Drain.SUGGESTED} == {
        Outcome.WRONG_RESULT,
        Outcome.DEVIATES,
    }
    assert {outcome for outcome, meaning in MEANING.items() if meaning.again} == {
        Outcome.INTERMITTENT,
        Outcome.SUSPECT,
        Outcome.SPLIT,
        Outcome.INVALID,
    }


def test_alert_rules_and_the_dashboard_name_what_is_found() -> None:
    rules = yaml.safe_load((ROOT / "packaging/grafana/alerts.yaml").read_text())["groups"][0]["rules"]
    panels = json.loads((ROOT / "packaging/grafana/nodeprint.json").read_text())["panels"]
    queries = [rule["expr"] for rule in rules] + [t["expr"] for panel in panels for t in panel.get("targets", ())]
    named = [set(words[0].split("|")) for query in queries if (words := re.findall(r'verdict=~"([^"]*)"', query))]
    assert len(named) == 2
    assert all(of_query == {outcome for outcome in MEANING if MEANING[outcome].found} for of_query in named)


def test_what_the_documents_say_of_found_is_what_it_counts() -> None:
    page = " ".join((ROOT / "docs/how-to/outcomes.md").read_text().split())
    counted = page.partition("`--fail-on found` counts ")[2].partition(" and a slow link")[0]
    assert set(re.findall(r"`([A-Z ]+)`", counted)) == {
        *(outcome for outcome in MEANING if MEANING[outcome].found),
        FleetOutcome.NOT_UNIFORM,
    }


def test_kinds_of_a_list_are_known_ones() -> None:
    assert kinds("found, not-same,") == (Kind.FOUND, Kind.NOT_SAME)
    assert kinds("nothing,nothing") == (Kind.NOTHING, Kind.NOTHING)
    wrong = {" ,": "names no kind", "found,fuond": "'fuond' is no kind", "nothing,found": "others are named"}
    for words, says in wrong.items():
        with pytest.raises(NodeprintError, match=f"--fail-on: .*{says}"):
            kinds(words)
