"""The rounds of a recheck: which jobs they are, when they may begin, and what a call that was killed leaves."""

import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from nodeprint.campaign import followed, node_sheet, recheck
from nodeprint.campaign.node_sheet import Node
from nodeprint.settings.config_file import Config
from tests.support import made_status


@pytest.fixture
def campaign(tmp_path: Path) -> Path:
    """A campaign of three nodes, of which one was measured again before."""
    node_sheet.write_sheet(tmp_path / "nodes.tsv", [Node("a", "a"), Node("b", "b", job=2), Node("c", "c")])
    return tmp_path


def sheet(campaign: Path) -> dict[str, int]:
    return {node.node: node.job for node in node_sheet.read_sheet(campaign / "nodes.tsv")}


def test_rounds_are_of_several_nodes_that_are_measured(campaign: Path) -> None:
    nodes = node_sheet.read_sheet(campaign / "nodes.tsv")
    assert list(recheck.rounds(Config(), nodes)) == [1, 2]
    assert list(recheck.rounds(Config(recheck=False), nodes)) == []
    assert list(recheck.rounds(Config(), nodes[:1])) == []
    assert list(recheck.rounds(Config(), [nodes[0], Node("d", "d", measure=False)])) == []


def test_a_round_gives_new_jobs_and_the_first_ones_are_known(campaign: Path) -> None:
    recheck.begin(campaign, 1, ["a", "b"])
    recheck.begin(campaign, 2, ["a"])
    assert sheet(campaign) == {"a": 3, "b": 3, "c": 1}
    assert recheck.jobs(campaign, 1) == {"a": 2, "b": 3} and recheck.jobs(campaign, 2) == {"a": 3}
    first = recheck.first_jobs(campaign, node_sheet.read_sheet(campaign / "nodes.tsv"))
    assert {node.node: node.job for node in first} == {"a": 1, "b": 2, "c": 1}
    recheck.forget(campaign)
    assert recheck.first_jobs(campaign, node_sheet.read_sheet(campaign / "nodes.tsv"))[0].job == 3


def test_a_call_that_was_killed_before_the_list_was_there_measures_the_new_jobs(campaign: Path) -> None:
    recheck.begin(campaign, 1, ["a"])
    recheck.path(campaign, 1).unlink()
    first = recheck.first_jobs(campaign, node_sheet.read_sheet(campaign / "nodes.tsv"))
    assert {node.node: node.job for node in first} == {"a": 2, "b": 2, "c": 1}


def test_nobody_is_suspected(campaign: Path) -> None:
    recheck.begin(campaign, 1, [])
    assert recheck.path(campaign, 1).read_text() == "" and sheet(campaign) == {"a": 1, "b": 2, "c": 1}


@pytest.mark.parametrize(("ago_s", "wait_s"), [(0, 60), (45, 15), (600, 0), (-3600, 60), (None, 0)])
def test_a_round_waits_for_the_last_job(campaign: Path, ago_s: float | None, wait_s: float) -> None:
    job = campaign / "nodes/a/job1"
    job.mkdir(parents=True)
    ended = None if ago_s is None else time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() - ago_s))
    made_status.put(job, ended=ended)
    assert recheck.wait_s(campaign, ["a"], 1.0) == pytest.approx(wait_s, abs=2)


def test_the_login_nodes_clock_counts_where_it_is_known(campaign: Path) -> None:
    job = campaign / "nodes/a/job1"
    job.mkdir(parents=True)
    made_status.put(job, ended="1970-01-02T00:00:00Z")  # the node's clock was never set
    now = datetime.now(UTC)
    followed.note(job, submitted=now - timedelta(minutes=5))
    followed.note(job, ended=now - timedelta(seconds=20))
    assert recheck.wait_s(campaign, ["a"], 1.0) == pytest.approx(40, abs=2)
