"""A campaign's folder, judged: records like the same draws packed, and the same verdict again."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from nodeprint.data.store import packed
from nodeprint.judge.campaign import judge
from nodeprint.judge.outcome import Kind, Outcome
from nodeprint.machine.topology.presets import preset
from nodeprint.report import verdict_files
from nodeprint.simulate import Plan, write
from tests.support.command_line import call
from tests.support.fleets import made

SMALL = preset("naples-2x32")


@pytest.fixture(scope="module")
def campaign(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A simulated campaign of records."""
    folder = tmp_path_factory.mktemp("verdict") / "sim"
    defects = ("node001: core 5 +20%", "node002: missing", "node004: renumbered")
    write(Plan(SMALL, nodes=6, jobs=2, passes=2, defects=defects), folder)
    return folder


@pytest.mark.slow
def test_records_are_judged_like_the_same_draws_packed(campaign: Path) -> None:
    verdict = judge(campaign).verdict
    assert verdict.simulated
    assert verdict.nodes["node001"].outcome is Outcome.DEVIATES
    assert verdict.nodes["node001"].findings[0].component.where["core"] == 5
    assert verdict.nodes["node002"].outcome is Outcome.NOT_MEASURED
    assert verdict.nodes["node004"].outcome in (Outcome.SAME, Outcome.INCONCLUSIVE)
    assert verdict.fails([Kind.FOUND])


def test_a_campaign_is_judged_the_same_again_from_records_or_packed(campaign: Path) -> None:
    first = verdict_files.as_json(judge(campaign).verdict)
    assert verdict_files.as_json(judge(campaign).verdict) == first
    shutil.rmtree(campaign / "store/fleet")
    assert verdict_files.as_json(judge(campaign).verdict) == first


def test_an_acceptance_file_is_kept_with_the_campaign_and_judges_it_again(tmp_path: Path) -> None:
    folder, rules = tmp_path / "campaign", tmp_path / "site.yaml"
    packed.write(made(nodes=2), folder)
    assert judge(folder).population.rules.false_alarm == 0.01
    rules.write_text("false_alarm_percent: 0.5\n")
    by_file, by_copy = judge(folder, acceptance=rules), judge(folder)
    assert by_file.population.rules == by_copy.population.rules and by_copy.population.rules.false_alarm == 0.005
    assert by_file.verdict.versions["acceptance"] == by_copy.verdict.versions["acceptance"]


def test_clocks_of_the_records_come_to_the_verdict(tmp_path: Path) -> None:
    write(Plan(SMALL, nodes=4, jobs=2, passes=1, defects=("node001: core-clock 5 -60%",)), tmp_path)
    finding = judge(tmp_path).verdict.nodes["node001"].findings[0]
    assert finding.component.where["core"] == 5
    assert finding.consistent_with == ("core-clock",)
    clock = next(seen for seen in finding.evidence if seen.kind == "clock")
    assert clock.seen
    assert clock.value == pytest.approx(0.4, abs=0.01)


def test_one_node_is_printed_as_it_is_among_all_and_nothing_is_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    packed.write(made("node003: core 17 +12%", nodes=8), tmp_path)
    among_all = judge(tmp_path).verdict.nodes["node003"]
    before = {path.name: path.stat().st_mtime_ns for path in tmp_path.iterdir()}
    assert call("judge", tmp_path, "--node", "node003", "--fail-on", "found") == 3
    origin, line = capsys.readouterr().out.splitlines()
    assert origin == "SIMULATED, not a measurement" and line.startswith("node003: WARN (SUSPECT). Core 17")
    assert call("judge", tmp_path, "--node", "node003", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["findings"][0]["effect"] == pytest.approx(among_all.findings[0].effect, rel=1e-4)
    assert call("judge", tmp_path, "--node", "node004", "--fail-on", "found") == 0
    assert {path.name: path.stat().st_mtime_ns for path in tmp_path.iterdir()} == before


_WHOLE = ("--baseline b", "--acceptance a.yaml", "--recheck r", "--reference published", "--notify cat")


@pytest.mark.parametrize(
    ("words", "error"),
    [
        ("--node node9", "no node node9 in this campaign"),
        ("--node ../x", "no node ../x in this campaign"),
        *((f"--node node001 {words}", "judges a whole campaign, and --node node001 one") for words in _WHOLE),
    ],
)
def test_what_one_node_cannot_be_asked_is_one_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: str, error: str
) -> None:
    packed.write(made(nodes=2), tmp_path)
    assert call("judge", tmp_path, *words.split()) == 2
    assert error in capsys.readouterr().err
