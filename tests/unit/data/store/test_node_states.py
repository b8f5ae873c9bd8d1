"""A node whose only job was cut off is not measured; one that did what it could is."""

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from nodeprint.campaign import followed, lost_jobs, node_sheet
from nodeprint.campaign.gathered import NodeState
from nodeprint.campaign.run_files import Problem
from nodeprint.data.store import node_states
from nodeprint.report import verdict_files
from tests.support import made_status, printed
from tests.support.command_line import call


@pytest.fixture
def partial(campaign: Callable[..., Path]) -> tuple[Path, Path, dict[str, Any]]:
    """A campaign of one node whose second run failed: its folder, the job's, and its status.json."""
    folder = campaign("a")
    job = folder / "nodes/a/job1"
    status = json.loads((job / "status.json").read_text())
    status["measurements"][1] |= {"outcome": "failed", "exit_code": -1, "message": "no kernel coherence"}
    return folder, job, status | {"outcome": "partial"}


def state(folder: Path) -> NodeState:
    (row,) = node_sheet.read_sheet(folder / "nodes.tsv")
    node, _ = node_states.read(folder, row)
    return node


def test_a_kernel_that_is_missing_costs_its_measurement_alone(partial: tuple[Path, Path, dict[str, Any]]) -> None:
    folder, job, status = partial
    (job / "status.json").write_text(json.dumps(status))
    assert state(folder).state == "measured"


def test_a_job_that_was_lost_is_not_measured_and_says_why(partial: tuple[Path, Path, dict[str, Any]]) -> None:
    folder, job, _ = partial
    lost_jobs.settle(job, "Slurm job 7: CANCELLED, it was canceled")
    node = state(folder)
    assert node.state == "not measured" and "Slurm job 7: CANCELLED" in node.reason


def test_a_job_without_an_outcome_is_not_measured(partial: tuple[Path, Path, dict[str, Any]]) -> None:
    folder, job, _ = partial
    (job / "status.json").unlink()
    assert state(folder).state == "not measured"


def test_a_job_that_completed_no_measurement_is_not_measured(partial: tuple[Path, Path, dict[str, Any]]) -> None:
    """A kernel that was killed leaves the begin of its records."""
    folder, job, status = partial
    (job / "status.json").write_text(json.dumps(status | {"outcome": "failed"}))
    node = state(folder)
    assert node.state == "not measured" and "no kernel coherence" in node.reason


def test_a_run_that_is_lost_in_a_cut_archive_is_so_by_the_archive(campaign: Callable[..., Path]) -> None:
    folder = campaign("a")
    job = folder / "nodes/a/job1"
    shutil.rmtree(job / "run2")
    (job / "run2.tar.gz").write_bytes(b"cut")
    node = state(folder)
    assert node.state == "measured"
    assert node.reason.startswith("1 of 2 records of job1 cannot be used (run2.tar.gz of job1: the archive is cut")


@pytest.mark.parametrize(
    ("problem", "expected"),
    [
        (Problem("", 2, ("a",)), [("a", 2)]),
        (Problem("", 2), [("a", 2), ("b", 2)]),
        (Problem("", names=("a",)), [("a", 1), ("a", 2)]),
        (Problem("its outcome is unknown"), []),
    ],
)
def test_a_problem_is_of_runs_and_measurements(problem: Problem, expected: list[tuple[str, int]]) -> None:
    assert [(name, run) for name in "ab" for run in (1, 2) if problem.is_of(name, run)] == expected


def clock_warnings(folder: Path) -> list[str]:
    """What is said of the clock of node a beside its outcome."""
    assert call("judge", folder) == 0
    return [warning["text"] for warning in verdict_files.read(folder).nodes["a"].warnings if warning["id"] == "clock"]


@pytest.mark.parametrize(("hours", "word"), [(1, "60 minutes ahead of"), (-1, "55 minutes behind"), (0, "")])
def test_a_clock_that_is_off_by_an_hour_is_said(campaign: Callable[..., Path], hours: int, word: str) -> None:
    """Submitted at 12:00 and seen at 12:10 by the login node's clock; measured from 12:05 on, for five minutes."""
    folder = campaign("a")
    job = folder / "nodes/a/job1"
    noon = datetime(2026, 1, 1, 12, tzinfo=UTC)
    followed.note(job, submitted=noon)
    followed.note(job, ended=noon + timedelta(minutes=10))
    status = json.loads((job / "status.json").read_text())
    for key, minutes in (("started", 5), ("ended", 10)):
        status[key] = f"{noon + timedelta(hours=hours, minutes=minutes):%Y-%m-%dT%H:%M:%SZ}"
    (job / "status.json").write_text(json.dumps(status))
    assert (state(folder).state, state(folder).problems) == ("measured", ()), "its records are used"
    clocks = clock_warnings(folder)
    assert len(clocks) == bool(word) and all(word in text for text in clocks)
    said = printed.campaign(folder)
    assert ("its clock is at least" in said) is bool(word) and "cannot be used" not in said


def test_an_outcome_that_is_seen_by_a_later_call_says_nothing_of_the_clock(campaign: Callable[..., Path]) -> None:
    folder = campaign("a")
    job = folder / "nodes/a/job1"
    followed.note(job, submitted=datetime(2025, 12, 31, 22, tzinfo=UTC))
    followed.note(job, ended=datetime(2026, 1, 2, tzinfo=UTC))
    assert clock_warnings(folder) == []


@pytest.mark.parametrize(
    ("measure", "written", "reason"),
    [
        (True, {}, "its job never began to measure"),
        (False, {}, "left out by the sheet"),
        (False, {"state": "drained"}, "drained"),
        (False, {"state": "drained", "reason": "DIMM 7"}, "drained: DIMM 7"),
        (False, {"reason": "spare"}, "left out by the sheet: spare"),
    ],
)
def test_a_node_without_a_folder_says_why(tmp_path: Path, measure: bool, written: dict[str, Any], reason: str) -> None:
    row = replace(node_sheet.Node("a", "a", measure=measure), **written)
    state, of_jobs = node_states.read(tmp_path, row)
    assert (state.state, state.reason, of_jobs) == ("not measured", reason, [])


def test_a_node_that_is_left_out_says_so_although_it_has_a_folder(tmp_path: Path) -> None:
    (tmp_path / "nodes/a").mkdir(parents=True)
    state, _ = node_states.read(tmp_path, node_sheet.Node("a", "a", measure=False, state="down"))
    assert (state.state, state.reason) == ("not measured", "down")


@pytest.mark.parametrize("name", ["node-run.log", "launch.log"])
def test_the_end_of_a_log_is_shown_however_long_it_is(tmp_path: Path, name: str) -> None:
    """A screen has room for some lines, of which the last says what went wrong; nothing waits for a whole log."""
    job = tmp_path / "nodes/a/job1"
    job.mkdir(parents=True)
    (job / name).write_text("".join(f"line {number}\n" for number in range(20_000)))
    state, _ = node_states.read(tmp_path, node_sheet.Node("a", "a"))
    assert state.log_tail == tuple(f"line {number}" for number in range(19_992, 20_000))
    if name == "node-run.log":
        (job / "launch.log").write_text("not this\n")
        assert node_states.read(tmp_path, node_sheet.Node("a", "a"))[0].log_tail == state.log_tail


@pytest.mark.parametrize(
    ("started", "ended", "says"),
    [
        (-299, 0, ""),
        (-300, 0, "at least 5 minutes behind"),
        (0, 599, "at least 5 minutes ahead of"),
        (0, 600, "at least 10 minutes ahead of"),
        (-900, 300, "at least 5 minutes ahead of"),
    ],
)
def test_a_clock_is_off_where_five_minutes_are_certain(tmp_path: Path, started: int, ended: int, says: str) -> None:
    """The call submitted at noon and saw the outcome at one o'clock; seconds by the node's own clock from these."""
    noon = datetime(2026, 1, 1, 12, tzinfo=UTC)
    tmp_path.joinpath("nodes/a/job1").mkdir(parents=True)
    job = tmp_path / "nodes/a/job1"
    followed.note(job, submitted=noon)
    followed.note(job, ended=noon + timedelta(hours=1))
    times = (noon + timedelta(seconds=started), noon + timedelta(hours=1, seconds=ended))
    begin, end = (f"{moment:%Y-%m-%dT%H:%M:%SZ}" for moment in times)
    said = node_states.clock_is_off(job, made_status.job_outcome(started=begin, ended=end))
    assert (says in said) if says else said == ""
