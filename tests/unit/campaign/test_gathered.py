"""A node is measured or it is not: what cannot be used says so at every door, and the next call measures it again."""

import gzip
import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from nodeprint.campaign import gathered, node_sheet, node_status, preparation
from nodeprint.cli.shared import judge_and_write
from nodeprint.judge.outcome import Outcome
from nodeprint.settings import checked_yaml
from nodeprint.settings import config as configuration
from nodeprint.settings.config_file import Config
from tests.support.command_line import call


def records(job: Path) -> Path:
    """The record of a measurement's second run."""
    return sorted(job.glob("run2/*.jsonl.gz"))[0]


def garble(job: Path) -> None:
    records(job).write_bytes(gzip.compress(b"this is no record\n"))


def cut(job: Path) -> None:
    """As of a kernel that was killed: no trailer."""
    lines = gzip.decompress(records(job).read_bytes()).splitlines(keepends=True)
    records(job).write_bytes(gzip.compress(b"".join(lines[:-1])))


def copy(job: Path) -> None:
    shutil.copy(job / "run1" / records(job).name, records(job))


def of_another_host(job: Path) -> None:
    for path in job.glob("run*/*.jsonl.gz"):
        text = re.sub(rb'"host": ?"b"', b'"host":"c"', gzip.decompress(path.read_bytes()))
        path.write_bytes(gzip.compress(text))


@pytest.mark.parametrize("harm", [garble, cut, copy, of_another_host], ids=lambda harm: harm.__name__)
def test_every_door_says_that_a_node_is_to_be_measured_again(
    campaign: Callable[..., Path], tmp_path: Path, harm: Callable[[Path], None], capsys: pytest.CaptureFixture[str]
) -> None:
    folder = campaign("a", "b", "c", "d")
    settings = Config(
        results=str(folder.parent), campaign=folder.name, launch="slurm", runs=2, measure=("coherence-cas",)
    )
    (folder / "config.yaml").write_text(checked_yaml.text(settings))
    (folder / "plan.tsv").write_text(configuration.plan(settings))
    for job in folder.glob("nodes/*/job1"):
        shutil.copy(folder / "plan.tsv", job)
        for path in job.glob("run*/*.jsonl"):
            path.with_suffix(".jsonl.gz").write_bytes(gzip.compress(path.read_bytes()))
            path.unlink()
    judge_and_write(folder)
    assert gathered.unusable(folder) == {}
    assert call("status", folder) == 0
    # the gate before a node is given back
    outcome_b = judge_and_write(folder).nodes["b"].outcome
    assert call("status", folder, "--node", "b", "--fail-on", "not-same") == (0 if outcome_b is Outcome.SAME else 3)
    assert call("status", folder, "--node", "b", "--fail-on", "not-measured") == 0
    assert f"b: measured; {outcome_b}" in capsys.readouterr().out
    assert call("status", folder, "--node", "nobody") == call("status", folder, "--fail-on", "found") == 2
    harm(folder / "nodes/b/job1")
    verdict = judge_and_write(folder)
    # fleet.json, status and its exit status, the sentence of `make run`, the next call
    assert set(gathered.unusable(folder)) == {"b"}
    assert {node.node for node in node_status.read(folder).nodes if node.standing == "failed"} == {"b"}
    assert "b failed (" in node_status.read(folder).unfinished()
    assert call("status", folder) == 1
    assert call("status", folder, "--node", "b", "--fail-on", "not-measured") == 3
    assert call("status", folder, "--node", "a", "--fail-on", "not-measured") == 0
    sheet = [node_sheet.Node(name, name) for name in "abcd"]
    preparation.prepare(settings, lambda: sheet, [], {})
    assert [node.job for node in node_sheet.read_sheet(folder / "nodes.tsv")] == [1, 2, 1, 1]
    assert "b is measured in a new job" in capsys.readouterr().err
    assert call("status", folder, "--node", "b", "--fail-on", "not-same") == 3, "its newest job was not judged"
    # the verdict, its file and JUnit
    outcome = verdict.nodes["b"].outcome
    assert outcome is not Outcome.SAME
    assert json.loads((folder / "verdict.json").read_text())["nodes"]["b"]["outcome"] == outcome.value
    assert outcome.value in (folder / "verdict.xml").read_text()


def test_a_campaign_that_was_not_measured_here_says_so_too(campaign: Callable[..., Path]) -> None:
    folder = campaign("a", "b")
    node_sheet.write_sheet(folder / "nodes.tsv", [node_sheet.Node(name, name, state="imported") for name in "ab"])
    record = folder / "nodes/b/job1/run1/coherence-cas.jsonl"
    record.write_text(record.read_text().replace('"host": "b"', '"host": "c"').replace('"host":"b"', '"host":"c"'))
    assert judge_and_write(folder).nodes["b"].outcome is Outcome.NOT_MEASURED
    assert [node.standing for node in node_status.read(folder).nodes] == ["imported", "failed"]
    assert call("status", folder) == 1
