"""An outcome is one entry: added to a copy of the package with its rule and its sentence, every output has it."""

from __future__ import annotations

import json
import math
import os
import shutil
import subprocess
import sys
from pathlib import Path

import junitparser
import pytest

from nodeprint.judge.outcome import Outcome
from nodeprint.settings import sources

ROOT = Path(__file__).resolve().parents[3]
#: What a developer adds, each in front of a line that is there.
ADDED = {
    "nodeprint/judge/outcome.py": (
        "    WRONG_RESULT = (\n",
        '    THROTTLED = (\n        "THROTTLED",\n        NodeEntry('
        '_FAIL, Kind.FOUND, "▾", "alarm", fleet=FleetOutcome.DEVIATIONS, drain=Drain.SUGGESTED),\n    )\n',
    ),
    "nodeprint/judge/outcome_rules.py": (
        "@rule()\ndef found(",
        '@rule()\ndef throttled(of: NodeEvidence) -> Iterator[Reason]:\n    """Its clock is low."""\n'
        '    if any(finding.counts and finding.id == "clock (table)-slow" for finding in of.findings):\n'
        "        yield Reason(Outcome.THROTTLED)\n\n\n",
    ),
    "reports/texts.yaml": (
        "  OUT OF SPEC: ",
        '  THROTTLED: "Its cores are throttled: {finding} Service the cooling."\n',
    ),
}


@pytest.fixture(scope="module")
def campaign(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Figures of six nodes, of which one has a low clock, judged and reported by a copy that has the outcome."""
    place = tmp_path_factory.mktemp("copy")
    for room in ("nodeprint", *sources.ROOMS):
        if room in ("nodeprint", "reports"):
            shutil.copytree(ROOT / room, place / room, ignore=shutil.ignore_patterns("__pycache__", "pictures"))
        else:
            (place / room).symlink_to(ROOT / room)
    for name, (before, words) in ADDED.items():
        text = (place / name).read_text()
        assert text.count(before) == 1, f"{name}: {before!r}"
        (place / name).write_text(text.replace(before, words + before))
    rows = [
        f"cn{node:02},{run},{metric},{value * (1 + 0.002 * math.sin(node * 7.1 + run * 3.3 + value)):.6g}"
        for node in range(1, 7)
        for run in (1, 2, 3)
        for metric, value in (("clock", 2.4 if node == 2 else 3.2), ("triad", 350.0))
    ]
    table = place / "figures.csv"
    table.write_text("\n".join(["node,run,metric,value", *rows, ""]))
    judged = _nodeprint(place, "judge", table, "--to", place / "campaign", "--fail-on", "found")
    assert judged.returncode == 3, judged.stdout + judged.stderr
    (place / "terminal.txt").write_text(judged.stdout)
    done = _nodeprint(place, "report", place / "campaign")
    assert done.returncode == 0, done.stdout + done.stderr
    return place / "campaign"


def _nodeprint(place: Path, *words: str | Path) -> subprocess.CompletedProcess[str]:
    return _python(place, "-m", "nodeprint", *map(str, words))


def _python(place: Path, *words: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "PYTHONPATH": str(place), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, *words]
    return subprocess.run(command, cwd=place, env=env, capture_output=True, text=True, timeout=300, check=False)


def test_the_outcome_is_new() -> None:
    assert "THROTTLED" not in list(Outcome)


def test_verdict_has_it_with_its_class_and_the_fleet_follows(campaign: Path) -> None:
    verdict = json.loads((campaign / "verdict.json").read_text())
    node = verdict["nodes"]["cn02"]
    assert (node["outcome"], node["class"], node["reasons"][0]["outcome"]) == ("THROTTLED", "FAIL", "THROTTLED")
    assert (verdict["fleet"]["outcome"], verdict["fleet"]["class"]) == ("DEVIATIONS", "FAIL")
    assert verdict["fleet"]["counts"] == {"THROTTLED": 1, "SAME": 5}


def test_terminal_and_pages_say_its_sentence(campaign: Path) -> None:
    terminal = " ".join((campaign.parent / "terminal.txt").read_text().split())
    assert "FAIL (DEVIATIONS): " in terminal and "FAIL (THROTTLED): cn02" in terminal
    assert "cn02: FAIL (THROTTLED). Its cores are throttled: clock (table) is " in terminal
    page = (campaign / "report/cluster.html").read_text()
    assert "THROTTLED" in page and "▾" in page
    assert (campaign / "report/cn02.pdf").read_bytes().startswith(b"%PDF")


def test_files_for_other_tools_have_it(campaign: Path) -> None:
    (suite,) = junitparser.JUnitXml.fromfile(str(campaign / "verdict.xml"))
    (case,) = (case for case in suite if case.name == "node cn02")
    assert [(type(result).__name__, result.type) for result in case.result] == [("Failure", "THROTTLED")]
    metrics = (campaign / "verdict.prom").read_text()
    assert 'nodeprint_node_verdict{node="cn02",class="FAIL",verdict="THROTTLED"} 1' in metrics
    assert 'nodeprint_nodes{class="FAIL",verdict="THROTTLED"} 1' in metrics
    (line,) = [line for line in (campaign / "drain.sh").read_text().splitlines() if "cn02" in line]
    assert line.startswith("# scontrol update NodeName='cn02' State=DRAIN") and "THROTTLED: Its cores" in line


def test_the_acceptance_report_calls_it_a_deviation(campaign: Path) -> None:
    """Asked of the copy, as Typst's pages have no text that Python reads."""
    script = (
        "import pathlib\n"
        "from nodeprint.report import protocol\n"
        "content = protocol.content([protocol.judged(pathlib.Path('campaign'))], '', protocol.SiteTexts())\n"
        "(page,) = content.pages\n"
        "(nodes,) = (section.blocks[0] for section in page.sections if section.title == 'All nodes')\n"
        "(row,) = (row for row in nodes.rows if row[0] == 'cn02')\n"
        "print(*(str(cell.word) for cell in (*row[-2:], page.mark)), sep='; ')\n"
    )
    done = _python(campaign.parent, "-c", script)
    assert done.stdout == "FAIL (THROTTLED); deviation; accepted with reservations\n", done.stderr
