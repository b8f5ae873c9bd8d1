"""The recheck loop of the main job: real workflow, real node-run, and a kernel that replays a simulated fleet."""

import json
import runpy
import socket
import subprocess
import zipfile
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from nodeprint.campaign import node_sheet
from nodeprint.cli.shared import judge_and_write
from nodeprint.settings import config
from tests.support.real_parts import ROOT, environment
from tests.support.replayed_fleet import NODES, SUSPECT, fleet, replaying  # noqa: F401 (fixtures)

SCRIPT = SimpleNamespace(**runpy.run_path(str(ROOT / "workflow/scripts/recheck.py")))
MINUTES = 0.05


def campaign(house: Path, name: str, code: int = 0) -> tuple[Path, subprocess.CompletedProcess[str]]:
    """A call of the main job on a sheet of NODES nodes, which all are this host; the campaign's folder."""
    folder = house / "results" / name
    host = node_sheet.short(socket.gethostname())
    node_sheet.write_sheet(folder / "nodes.tsv", [node_sheet.Node(f"node{i:03}", host) for i in range(NODES)])
    (house / f"{name}.yaml").write_text(
        f"campaign: {name}\npreset: test\nmeasure: [coherence-cas]\nrecheck_minutes: {MINUTES}\n"
    )
    done = subprocess.run(
        [house / "workflow/run", "--config", f"{name}.yaml"],
        cwd=house,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )
    assert done.returncode == code, done.stdout + done.stderr
    return folder, done


def jobs(folder: Path) -> dict[str, list[dict[str, Any]]]:
    """What came of every job of every node, in the jobs' order."""
    return {
        node.name: [json.loads(path.read_text()) for path in sorted(node.glob("job*/status.json"))]
        for node in sorted((folder / "nodes").iterdir())
    }


def moment(text: str) -> datetime:
    return datetime.strptime(text, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)


@pytest.mark.machine
@pytest.mark.usefixtures("replaying")
def test_a_suspicion_is_confirmed_by_a_second_job_with_control_nodes(house: Path) -> None:
    folder, done = campaign(house, "recheck-hours", code=3)
    found = jobs(folder)
    again = {name for name, of_node in found.items() if len(of_node) == 2}
    assert {name for name, of_node in found.items() if len(of_node) == 1} == set(found) - again
    assert SUSPECT in again
    assert len(again) == 7, "the suspect and six control nodes"
    assert "nodeprint: recheck 1 of at most 2, " in done.stderr and "node[" in done.stderr
    assert "recheck 2 of" not in done.stderr
    first = max(moment(of_node[0]["ended"]) for of_node in found.values())
    second = min(moment(found[name][1]["started"]) for name in again)
    assert (second - first).total_seconds() >= MINUTES * 60 - 1, "the stamps are of whole seconds"
    verdict = json.loads((folder / "verdict.json").read_text())
    assert verdict["nodes"][SUSPECT]["outcome"] == "DEVIATES"
    assert all(node["outcome"] != "DEVIATES" for name, node in verdict["nodes"].items() if name != SUSPECT)
    assert "DEVIATES" in done.stdout
    assert_snakemake_reports(house, f"{folder.name}.yaml", folder / f"report/{SUSPECT}.pdf")
    assert judge_and_write(folder).recheck == ()


def assert_snakemake_reports(house: Path, config_name: str, node_report: Path) -> None:
    """A further call has nothing to do, and `snakemake --report` has all pages and the node's report, by its name."""
    printed = ""
    for option in (["--report", "report.zip"], []):
        words = ["snakemake", "--configfile", config_name, *option]
        done = subprocess.run(words, cwd=house, env=environment(), capture_output=True, text=True, check=False)
        printed = done.stdout + done.stderr
        assert done.returncode == 0, printed
    assert "Nothing to be done" in printed
    with zipfile.ZipFile(house / "report.zip") as packed:
        pages = {Path(name).name: packed.read(name) for name in packed.namelist() if "/data/raw/" in name}
        index = packed.read("report/report.html").decode()
    assert set(pages) == {"verdict.xml", "cluster.pdf", "cluster.html", node_report.name}
    assert pages[node_report.name] == node_report.read_bytes()
    path = node_report.relative_to(house)
    assert f'"Node reports": {{"Other": ["{path}"]}}' in index
    assert f'"{path}": {{"name": "{path.name}", "filename": "{path.name}", "labels": {{"node": "{path.stem}"}}' in index


@pytest.mark.machine
@pytest.mark.usefixtures("replaying")
@pytest.mark.long
def test_what_stays_suspect_is_measured_twice_more_and_no_more(house: Path) -> None:
    folder, done = campaign(house, "recheck-soon", code=3)
    assert "recheck 2 of at most 2" in done.stderr
    found = jobs(folder)
    assert len(found[SUSPECT]) == 3
    assert max(map(len, found.values())) == 3
    assert sum(len(of_node) > 1 for of_node in found.values()) >= 3
    assert json.loads((folder / "verdict.json").read_text())["nodes"][SUSPECT]["outcome"] == "SUSPECT"


def test_ten_minutes_lie_between_by_default(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text("campaign: main\n")
    settings = config.load(tmp_path / "config.yaml")
    assert settings.recheck_minutes == 10
    assert settings.recheck is True


@pytest.mark.parametrize(
    ("names", "wait_s", "slept", "says"),
    [
        (["a", "b"], 90.0, [90.0], "nodeprint: recheck 2 of at most 2, in 1 min 30 s: a,b\n"),
        (["a"], 1.0, [1.0], "nodeprint: recheck 2 of at most 2, in 1 s: a\n"),
        (["a"], 0.0, [0.0], "nodeprint: recheck 2 of at most 2, now: a\n"),
        ([], 90.0, [], ""),
    ],
)
def test_a_round_waits_for_its_time_and_says_so(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    names: list[str],
    wait_s: float,
    slept: list[float],
    says: str,
) -> None:
    """Where no node is suspected it is over at once."""
    waited, begun = list[float](), list[tuple[int, list[str]]]()
    of_script = SCRIPT.main.__globals__
    monkeypatch.setitem(of_script, "time", SimpleNamespace(sleep=waited.append))
    monkeypatch.setattr(of_script["recheck"], "wait_s", lambda *asked: wait_s)
    monkeypatch.setattr(
        of_script["recheck"], "begin", lambda folder, number, of_round: begun.append((number, of_round))
    )
    SCRIPT.main(tmp_path, 2, 10.0, names)
    assert (waited, begun) == (slept, [(2, names)])
    assert capfd.readouterr().err == says
