"""Submitting and following the jobs of nodes, with a Slurm that answers as the test wants (fake_slurm.sh)."""

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from nodeprint.campaign import followed, lost_jobs
from nodeprint.campaign import preparation as campaigns
from nodeprint.campaign.launchers import slurm
from nodeprint.campaign.launchers.launcher import JobState
from nodeprint.campaign.node_sheet import Node
from nodeprint.errors import NodeprintError
from nodeprint.settings import config
from tests.support import fake_slurm, made_status
from tests.support.real_parts import ROOT
from tests.support.schemas import valid

sys.path.insert(0, str(ROOT / "workflow"))
jobs: Any = import_module("snakemake_executor_plugin_nodeprint.jobs")


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder that the false Slurm looks into."""
    folder = tmp_path / "slurm"
    folder.mkdir()
    for key, value in fake_slurm.environment(folder).items():
        monkeypatch.setenv(key, value)
    monkeypatch.chdir(ROOT)
    return folder


@pytest.fixture
def begin(fake: Path, tmp_path: Path) -> Callable[..., Any]:
    """`begin(count, seconds...)`: a call over `count` nodes, a new one for the same campaign each time."""

    held: list[Any] = []

    def make(count: int = 3, **seconds: float) -> Any:
        for former in held:
            os.close(former.lock)  # as at the end of a process
        held.clear()
        path = tmp_path / "config.yaml"
        path.write_text(f"results: {tmp_path}\npreset: test\nmeasure: [coherence-cas]\nlaunch: slurm\n")
        settings = config.load(path)
        nodes = [Node(f"cn{i:02}", f"cn{i:02}") for i in range(1, count + 1)]
        folder = campaigns.prepare(settings, lambda: nodes, [], {})
        launch = jobs.Launch(folder)
        times: dict[str, float] = {"unavailable_s": 1800, "late_s": 120, "silence_s": 3600, "at_a_time": 500}
        times |= {"per_second": 1000, "poll_s": 2} | seconds
        for node in nodes:
            words = " ".join(slurm.sbatch_words(node, settings.slurm, 5))
            resources = {"submit_options": words, "job_name": "nodeprint-x-1"} | times
            launch.take(jobs.job_of(campaigns.job_folder(folder, node), f"node-run --node {node.node}", resources))
        assert launch.has_lock()
        held.append(launch)
        return launch

    return make


def of(call: Any, number: int) -> Any:
    """A job of a call, by its place."""
    return list(call.jobs.values())[number]


def all_of(call: Any) -> list[Any]:
    return list(call.jobs.values())


def queue(fake: Path) -> list[list[str]]:
    path = fake / "queue"
    return [line.split("|") for line in path.read_text().splitlines()] if path.exists() else []


def becomes(fake: Path, node: str, state: str, reason: str = "None") -> None:
    """The job of a node gets a state; an empty one is forgotten."""
    rows = [[*row[:3], state, reason] if row[1] == node else row for row in queue(fake)]
    (fake / "queue").write_text("".join("|".join(row) + "\n" for row in rows if row[3]))


def measured(call: Any, number: int) -> None:
    made_status.put(of(call, number).folder)


def test_the_state_of_each_job_is_noted(begin: Callable[..., Any], fake: Path) -> None:
    call = begin(3)
    call.poll(0.0)
    call.fill()
    number = {row[1]: row[2] for row in queue(fake)}
    assert sorted(number) == ["cn01", "cn02", "cn03"]
    measured(call, 1)
    call.look()
    call.note()
    rows = [line.split("\t") for line in (call.home / "jobs.tsv").read_text().splitlines()]
    assert [row[:4] for row in rows] == [
        ["cn01", "1", number["cn01"], "PENDING"],
        ["cn02", "1", number["cn02"], "complete"],
        ["cn03", "1", number["cn03"], "PENDING"],
    ]
    assert f"pid {os.getpid()} on " in (call.home / "lock").read_text()


def test_a_call_after_a_killed_one_submits_nothing_twice(begin: Callable[..., Any], fake: Path) -> None:
    first = begin()
    first.poll(0.0)
    first.fill()
    before = queue(fake)
    assert len(before) == 3
    becomes(fake, "cn02", "FAILED")  # it ended while nobody looked: tried again
    second = begin()
    (fake / "down").touch()
    second.poll(0.0)
    assert not second.known, "without an answer nothing is known, and nothing is submitted"
    (fake / "down").unlink()
    second.poll(1.0)
    number = {row[1]: row[2] for row in before}
    assert [job.id for job in all_of(second)] == [number["cn01"], "", number["cn03"]]
    second.fill()
    assert [row[1:3] for row in queue(fake)[3:]] == [["cn02", "4"]]


def test_a_job_that_comes_after_the_queue_was_read_is_looked_for_first(begin: Callable[..., Any], fake: Path) -> None:
    """Snakemake hands many jobs over in several turns, and a call that was killed may have submitted any of them."""
    first = begin(2)
    first.poll(0.0)
    first.fill()
    second = begin(2)
    late = second.jobs.pop(of(second, 1).folder)
    second.poll(0.0)
    second.take(late)
    second.fill()
    assert sorted(row[1] for row in queue(fake)) == ["cn01", "cn02"], "none was submitted twice"
    second.poll(1.0)
    assert {job.node: job.id for job in all_of(second)} == {row[1]: row[2] for row in queue(fake)}


def test_the_jobs_of_a_recheck_are_submitted_however_long_after_the_first_ones(
    begin: Callable[..., Any], fake: Path
) -> None:
    call = begin(2)
    call.step()
    for number in range(2):
        measured(call, number)
    call.look()
    assert not call.open()
    call.polled -= 600  # the recheck begins ten minutes after the first jobs, and nothing was asked meanwhile
    first = of(call, 0)
    again = replace(first, folder=first.folder.with_name("job2"), name="nodeprint-x-2", id="", outcome="")
    again.looked_for = False
    call.take(again)
    call.step()
    assert [row[0] for row in queue(fake)].count("nodeprint-x-2") == 1


def test_a_submission_whose_answer_was_lost_is_found_by_its_name(begin: Callable[..., Any], fake: Path) -> None:
    call = begin(2)
    call.poll(0.0)
    (fake / "lost").touch()
    call.fill()
    submitted = len(queue(fake))
    assert submitted
    assert not call.known
    (fake / "lost").unlink()
    call.poll(1.0)
    assert sum(bool(job.id) for job in all_of(call)) == submitted
    call.fill()
    assert sorted(row[1] for row in queue(fake)) == ["cn01", "cn02"]


def test_what_sbatch_refuses_is_the_nodes_reason_and_a_limit_of_the_user_is_waited_for(
    begin: Callable[..., Any], fake: Path
) -> None:
    call = begin(2)
    call.poll(0.0)
    (fake / "refusal").write_text("Invalid license specification")
    call.fill()
    assert [job.outcome for job in all_of(call)] == ["absent", "absent"]
    assert of(call, 0).why == "sbatch refused it: Invalid license specification"

    (fake / "refusal").unlink()
    limited = begin(2)
    limited.poll(0.0)
    limited.most = 1
    limited.fill()
    limited.most = 2
    (fake / "refusal").write_text(
        "Job violates accounting/QOS policy (job submit limit, user's size and/or time limits)"
    )
    limited.fill()
    assert limited.most == 1
    assert of(limited, 1).outcome == ""

    (fake / "queue").unlink()
    alone = begin(1)
    alone.poll(0.0)
    alone.fill()
    assert of(alone, 0).outcome == "absent", "with no other job it is no limit on their number"


POLICY = "Job violates accounting/QOS policy (job submit limit, user's size and/or time limits)"


@pytest.mark.parametrize(
    ("refusal", "waits_s"),
    [
        # a limit that Slurm does not name is tried for as long as a job waits for its node
        (POLICY, 600),
        (f"QOSMaxSubmitJobPerUserLimit\n{POLICY}", None),
        (f"AssocMaxSubmitJobLimit\n{POLICY}", None),
        (f"QOSMaxWallDurationPerJobLimit\n{POLICY}", 0),
        (f"AssocMaxNodePerJobLimit\n{POLICY}", 0),
        ("Your project has no hours left\nUnspecified error", 0),
        ("Invalid account or account/partition combination specified", 0),
    ],
)
def test_what_never_fits_does_not_wait_for_other_jobs_of_the_user(
    begin: Callable[..., Any], fake: Path, monkeypatch: pytest.MonkeyPatch, refusal: str, waits_s: float | None
) -> None:
    """Another job of the user is in the queue all the time."""
    moment = [1000.0]
    call = begin(1, unavailable_s=600)
    monkeypatch.setattr(jobs.time, "monotonic", lambda: moment[0])
    monkeypatch.setattr(call.launcher, "user_has_jobs", lambda: True)
    (fake / "refusal").write_text(refusal)
    of(call, 0).looked_for = True
    for later in (0.0, 590.0, 601.0, 90000.0):
        moment[0] = 1000.0 + later
        call.known = True
        call.fill()
        assert bool(of(call, 0).outcome) == (waits_s is not None and later >= waits_s), later
    if waits_s is not None:
        assert all(line in of(call, 0).why for line in refusal.splitlines()), "a plugin's own words are kept"


def test_a_call_inside_a_job_does_not_wait_for_that_job(
    begin: Callable[..., Any], fake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    call = begin(1)
    call.known = of(call, 0).looked_for = True
    (fake / "refusal").write_text(POLICY)
    (fake / "queue").write_text("7\n")  # as `squeue --format=%A`
    call.fill()
    assert of(call, 0).outcome == ""
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    call.known = True
    call.fill()
    assert of(call, 0).why == f"sbatch refused it: {POLICY}"


def asked(fake: Path, command: str) -> list[float]:
    """When a command of Slurm was called."""
    rows = [line.split(" ", 2) for line in (fake / "asked").read_text().splitlines()]
    return [float(row[0]) for row in rows if row[1] == command]


def test_jobs_are_submitted_at_the_rate_that_the_site_allows(begin: Callable[..., Any], fake: Path) -> None:
    call = begin(10, per_second=5)
    call.poll(0.0)
    while any(not job.id for job in all_of(call)):
        call.fill()
    moments = asked(fake, "sbatch")
    # one turn that was missed may be taken at once
    assert len(moments) == 10 and moments[-1] - moments[0] > 0.9 * 8 / 5


def test_squeue_is_asked_once_in_its_interval_whatever_happens(
    begin: Callable[..., Any], fake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ten minutes of 60 nodes, of which one ends every ten seconds; asked are the user's jobs in the queue alone."""
    moment = [1000.0]
    monkeypatch.setattr(jobs.time, "monotonic", lambda: moment[0])
    call = begin(60, poll_s=20)
    rows = [f"nodeprint-x-1|{job.node}|{at + 1}|RUNNING|None\n" for at, job in enumerate(all_of(call))]
    (fake / "queue").write_text("".join(rows))
    for job in all_of(call):
        job.folder.mkdir(parents=True)
    for second in range(600):
        moment[0] = 1000.0 + second
        if second % 10 == 9:
            measured(call, second // 10)
        call.step()
    assert [job.outcome for job in all_of(call)] == ["complete"] * 60
    assert {line.split(" ")[1] for line in (fake / "asked").read_text().splitlines()} == {"squeue"}
    assert 600 / 22 < len(asked(fake, "squeue")) <= 600 / 20
    assert " squeue --me --name=nodeprint-x-1 --noheader" in (fake / "asked").read_text()


def test_squeue_is_asked_a_second_later_for_each_hundred_jobs_in_the_queue(begin: Callable[..., Any]) -> None:
    call = begin(2, poll_s=20)
    call.polled, call.known = 0.0, True
    for number, job in enumerate(all_of(call)):
        job.id, job.looked_for = str(number + 1), True
    assert [call.is_time_to_ask(now) for now in (20.0199, 20.0201)] == [False, True]


def test_many_nodes_that_are_lost_at_once_cost_few_questions(begin: Callable[..., Any], fake: Path) -> None:
    call = begin(60)
    call.poll(0.0)
    call.fill()
    (fake / "asked").unlink()
    (fake / "queue").write_text((fake / "queue").read_text().replace("PENDING", "NODE_FAIL"))
    for second in range(0, 60, 10):
        call.poll(float(second))
    assert [job.outcome for job in all_of(call)] == ["absent"] * 60
    assert all("NODE_FAIL, the node was lost" in job.why for job in all_of(call))
    assert len(asked(fake, "squeue")) <= 10 and not asked(fake, "scontrol")


@pytest.mark.parametrize("planted", ["link to a file", "link to a folder", "pipe", "nothing"])
def test_what_a_job_says_goes_through_no_link_and_waits_for_no_pipe(tmp_path: Path, planted: str) -> None:
    folder, theirs = tmp_path / "nodes/it's/job1", tmp_path / "theirs"
    folder.mkdir(parents=True)
    log = folder / "launch.log"
    if planted == "link to a file":
        theirs.write_text("keep this")
        log.symlink_to(theirs)
    elif planted == "link to a folder":
        theirs.mkdir()
        log.symlink_to(theirs)
    elif planted == "pipe":
        os.mkfifo(log)
    words = ["sh", "-c", jobs.script(folder, "echo it begins")]
    subprocess.run(words, check=True, timeout=10, stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
    assert not theirs.is_file() or theirs.read_text() == "keep this"
    assert not theirs.is_dir() or not list(theirs.iterdir())
    written = [path for path in folder.iterdir() if path.is_file() and not path.is_symlink()]
    assert [path.read_text() for path in written] == ["it begins\n"]
    assert planted == "link to a folder" or written == [log]


@pytest.mark.parametrize("planted", ["job folder", "node folder", "log"])
def test_a_node_whose_folder_is_a_link_is_not_submitted(begin: Callable[..., Any], fake: Path, planted: str) -> None:
    call = begin(2)
    folder, theirs = of(call, 0).folder, fake / "theirs"
    theirs.mkdir()
    path = {"job folder": folder, "node folder": folder.parent, "log": folder / "launch.log"}[planted]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.symlink_to(theirs)
    call.poll(0.0)
    call.fill()
    assert of(call, 0).outcome == "absent" and f"{path}: is a symbolic link" in of(call, 0).why
    assert of(call, 0).why.endswith(("; remove it, then run again", "; remove the link"))
    assert [row[1] for row in queue(fake)] == ["cn02"] and not list(theirs.iterdir())
    if planted != "log":
        with pytest.raises(NodeprintError, match="symbolic link"):
            lost_jobs.settle(folder, "it was lost")
        assert not list(theirs.iterdir())


def at_once(fake: Path) -> int:
    """How many calls of sbatch there were at a time, at most."""
    running = most = 0
    for line in (fake / "calls").read_text().splitlines():
        running += 1 if line == "+" else -1
        most = max(most, running)
    return most


def test_several_jobs_are_submitted_at_once_but_no_more_than_the_controller_bears(
    begin: Callable[..., Any], fake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jobs, "FILL_S", 60.0)
    (fake / "slow").write_text("0.3")
    call = begin(3 * jobs.AT_ONCE)
    call.poll(0.0)
    call.fill()
    assert at_once(fake) == jobs.AT_ONCE == 8
    assert {job.id for job in all_of(call)} == {row[2] for row in queue(fake)}
    assert {job.node: job.id for job in all_of(call)} == {row[1]: row[2] for row in queue(fake)}


def test_submission_stops_after_its_time_and_leaves_no_call_behind(
    begin: Callable[..., Any], fake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jobs, "FILL_S", 0.1)
    (fake / "slow").write_text("0.5")
    call = begin(3 * jobs.AT_ONCE)
    call.poll(0.0)
    call.fill()
    assert sum(bool(job.id) for job in all_of(call)) == len(queue(fake)) <= jobs.AT_ONCE
    assert (fake / "calls").read_text().count("+") == (fake / "calls").read_text().count("-")


def test_no_more_jobs_are_in_the_queue_than_the_configuration_says(begin: Callable[..., Any], fake: Path) -> None:
    call = begin(5, at_a_time=2)
    call.step()
    assert len(queue(fake)) == 2
    measured(call, 0)
    time.sleep(jobs.LOOK_S)
    call.step()
    assert len(queue(fake)) == 3


def test_of_jobs_that_are_submitted_at_once_some_may_be_more_than_allowed(
    begin: Callable[..., Any], fake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jobs, "FILL_S", 60.0)
    (fake / "most").write_text("5")
    call = begin(3 * jobs.AT_ONCE)
    call.poll(0.0)
    call.fill()
    assert len(queue(fake)) == 5
    assert (call.most, call.known) == (5, False)
    assert [job.outcome for job in all_of(call)] == [""] * len(call.jobs)
    call.poll(1.0)
    call.fill()
    assert len(queue(fake)) == 5, "with as many as allowed no other is tried"


def test_where_no_answer_comes_in_the_middle_nothing_is_submitted_twice(
    begin: Callable[..., Any], fake: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (fake / "lost").touch()
    call = begin(3 * jobs.AT_ONCE)
    call.poll(0.0)
    call.fill()
    assert not call.known
    assert 1 <= len(queue(fake)) <= 2 * jobs.AT_ONCE
    assert capsys.readouterr().err.count("no answer from Slurm") == 1
    (fake / "lost").unlink()
    call.poll(1.0)
    call.fill()
    names = [row[1] for row in queue(fake)]
    assert len(names) == len(set(names)) == 3 * jobs.AT_ONCE


def test_no_answer_is_never_an_end(begin: Callable[..., Any], fake: Path, capsys: pytest.CaptureFixture[str]) -> None:
    call = begin(1)
    call.poll(0.0)
    call.fill()
    (fake / "down").touch()
    for now in range(1, 3600, 100):
        call.poll(float(now))
    assert of(call, 0).outcome == ""
    assert capsys.readouterr().err.count("no answer from Slurm") == 1
    with pytest.raises(NodeprintError, match="no answer from Slurm for 1 h; its jobs were left as they are"):
        call.poll(3700.0)
    (fake / "down").unlink()
    measured(call, 0)
    call.poll(3701.0)
    call.look()
    assert of(call, 0).outcome == "complete"


@pytest.mark.parametrize("late", [True, False])
def test_a_job_that_slurm_has_forgotten_has_time_to_show_its_outcome(
    begin: Callable[..., Any], fake: Path, late: bool
) -> None:
    call = begin(1, late_s=60)
    call.poll(0.0)
    call.fill()
    becomes(fake, "cn01", "")
    call.poll(10.0)
    call.poll(69.0)
    assert of(call, 0).outcome == ""
    if late:
        measured(call, 0)
    else:
        (of(call, 0).folder / "launch.log").write_text("node-run: run 1 of 2: coherence-cas\ncas: 3 of 9\r")
    call.poll(70.0)
    assert of(call, 0).outcome == ("complete" if late else "absent")
    expected = (
        "does not know any more how (MinJobAge is short, no accounting); the node is drained: DIMM 7 is bad; node"
    )
    assert late or expected in of(call, 0).why


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        ("NODE_FAIL", "NODE_FAIL, the node was lost"),
        ("TIMEOUT", "TIMEOUT, it took longer than its time limit; see slurm.minutes"),
        ("CANCELLED", "CANCELLED, it was canceled"),
        ("OUT_OF_MEMORY", "it had too little memory"),
        ("DEADLINE", "see slurm.deadline_hours"),
        ("FAILED", "FAILED, exit code 1"),
    ],
)
def test_slurms_reason_and_node_runs_are_both_said(
    begin: Callable[..., Any], fake: Path, state: str, expected: str
) -> None:
    call = begin(1)
    call.poll(0.0)
    call.fill()
    log = "node-run: run 1 of 2: a\nnode-run: SIGTERM: stopping the kernel\nslurmstepd: error: *** JOB 1 ENDED ***\n"
    (of(call, 0).folder / "launch.log").write_text(log)
    (fake / "ended").write_text(f"JobId=1 JobState={state} Reason=x ExitCode=1:0")
    becomes(fake, "cn01", state)
    call.poll(10.0)
    assert of(call, 0).outcome == "", "what was just written on the node may come"
    call.poll(20.0)
    assert expected in of(call, 0).why and of(call, 0).why.endswith("; node-run: run 1 of 2: a")


def test_an_outcome_is_true_whatever_slurm_says(begin: Callable[..., Any], fake: Path) -> None:
    call = begin(1)
    call.poll(0.0)
    call.fill()
    becomes(fake, "cn01", "NODE_FAIL")
    measured(call, 0)
    call.poll(10.0)
    assert of(call, 0).outcome == "complete"


def test_a_node_that_wrote_nothing_gets_a_question(begin: Callable[..., Any], fake: Path) -> None:
    call = begin(1, late_s=0)
    call.poll(0.0)
    call.fill()
    becomes(fake, "cn01", "FAILED")
    call.poll(10.0)
    assert f"does the node see {of(call, 0).folder}" in of(call, 0).why


def test_a_node_that_is_drained_while_its_job_waits_costs_itself_alone(begin: Callable[..., Any], fake: Path) -> None:
    call = begin(2, unavailable_s=600)
    call.poll(0.0)
    call.fill()
    waits = "ReqNodeNotAvail, UnavailableNodes:cn01"
    becomes(fake, "cn01", "PENDING", waits)
    becomes(fake, "cn02", "PENDING", "Priority")
    call.poll(1000.0)
    call.poll(1590.0)
    assert not (fake / "canceled").exists()
    call.poll(1601.0)
    assert (fake / "canceled").read_text() == f"{of(call, 0).id}\n"
    assert [job.outcome for job in all_of(call)] == ["absent", ""]
    assert "waited 10 minutes for the node, which is drained: DIMM 7 is bad; it was canceled" in of(call, 0).why
    call.poll(9999.0)
    assert of(call, 1).outcome == ""


@pytest.mark.parametrize(
    "reason",
    [
        "PartitionTimeLimit",
        "Job's account not permitted to use this partition (denied denies own including own)",
        "Job's QOS not permitted to use this partition (main allows high not normal)",
    ],
)
def test_a_job_that_asks_for_more_than_it_may_have_does_not_wait_for_a_day(
    begin: Callable[..., Any], fake: Path, reason: str
) -> None:
    call = begin(1, unavailable_s=60)
    call.poll(0.0)
    call.fill()
    becomes(fake, "cn01", "PENDING", reason)
    call.poll(10.0)
    call.poll(71.0)
    assert of(call, 0).why == f"Slurm job 1 waited 1 minutes ({reason}); it was canceled"


def test_a_scheduler_without_deadlines_gets_its_late_jobs_ended(
    begin: Callable[..., Any], fake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    call = begin(2, silence_s=7200)
    call.poll(0.0)
    call.fill()
    followed.note(of(call, 1).folder, submitted=datetime.now(UTC))
    path = of(call, 0).folder / followed.NAME
    early = datetime.now(UTC) - timedelta(hours=3)
    path.write_text(json.dumps({"submitted": early.isoformat(), "ended": ""}))
    call.poll(10.0)
    assert of(call, 0).outcome == "", "Slurm has deadlines of its own"
    monkeypatch.setattr(call.launcher, "has_deadlines", False, raising=False)
    call.poll(20.0)
    assert [job.outcome for job in all_of(call)] == ["absent", ""]
    assert of(call, 0).why == f"Slurm job {of(call, 0).id} did not start within 2 hours; it was canceled"
    assert (fake / "canceled").read_text() == f"{of(call, 0).id}\n"


def test_a_job_that_runs_on_a_silent_node_is_given_up_as_one_that_waits_for_it(begin: Callable[..., Any]) -> None:
    call = begin(1, unavailable_s=60)
    call.poll(0.0)
    call.fill()
    silent = JobState(of(call, 0).id, "RUNNING", "unreachable", stuck="node")
    for now in (10.0, 69.0, 71.0):
        assert of(call, 0).outcome == ""
        call.wait_or_run(of(call, 0), silent, now)
    says = "was followed for 1 minutes for the node, which is drained: DIMM 7 is bad; it was canceled"
    assert of(call, 0).why == f"Slurm job {of(call, 0).id} {says}"


def test_many_nodes_of_the_same_reason_are_counted(
    begin: Callable[..., Any], fake: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (fake / "refusal").write_text("Invalid account or account/partition combination specified")
    call = begin(20)
    while call.open():
        call.polled = call.looked = -1e9
        call.step()
    call.end()
    messages = capsys.readouterr().err.splitlines()
    assert len(messages) == 5
    assert re.match(r"slurm: cn\[[0-9,-]+\]: for the same reason \(sbatch refused it: Invalid account", messages[-2])
    assert messages[-1].startswith("slurm: 0 of 20 nodes came back in ")


def test_the_page_on_slurm_has_the_numbers_of_the_code() -> None:
    page = " ".join((ROOT / "docs/how-to/slurm.md").read_text().split())
    assert f"`scontrol show job` | 1 and {jobs.ASKED_EACH} a turn" in page


def test_a_job_that_was_lost_has_a_status_that_says_why(begin: Callable[..., Any]) -> None:
    call = begin(1)
    folder = of(call, 0).folder
    (folder / "run1").mkdir(parents=True)
    (folder / "run1/coherence-cas.jsonl.gz").touch()
    (folder / "plan.tsv").write_text("coherence-cas\tcoherence\t--op cas\t2\n")
    lost_jobs.settle(folder, "Slurm job 7: NODE_FAIL, the node was lost; \u2026")
    status = json.loads((folder / "status.json").read_text())
    valid(status, "status")
    assert (status["outcome"], status["node"], status["job"], status["runs"]) == ("partial", "cn01", 1, 2)
    done, missing = status["measurements"]
    assert (done["outcome"], missing["outcome"], missing["exit_code"]) == ("done", "failed", -1)
    assert missing["message"] == "Slurm job 7: NODE_FAIL, the node was lost; ?"


def test_one_call_submits_and_what_it_started_may_outlive_it(
    begin: Callable[..., Any], capsys: pytest.CaptureFixture[str]
) -> None:
    first = begin(1)
    second = jobs.Launch(first.home.parent)
    second.take(of(first, 0))
    for _ in range(2):
        second.step()
    assert capsys.readouterr().err.count("waiting: another call submits the jobs of this campaign (pid") == 1
    os.close(first.lock)
    assert second.has_lock()
    os.close(second.lock)
    first.lock = os.dup(0)


def test_a_canceled_call_ends_what_is_in_the_queue(
    begin: Callable[..., Any], fake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    call = begin(2)
    call.poll(0.0)
    call.fill()
    monkeypatch.setattr(jobs, "STOP_S", 1.0)
    call.cancel()
    assert (fake / "canceled").read_text() == "1 2\n"
    measured(call, 0)
    call.step()
    assert of(call, 0).outcome == "", "nothing is looked at any more"
    assert [row.split("\t")[3] for row in (call.home / "jobs.tsv").read_text().splitlines()] == ["CANCELLED"] * 2


def test_nothing_is_known_of_a_job_that_a_rule_asks_for(begin: Callable[..., Any]) -> None:
    """A job that squeue was not asked for is looked for before it is submitted."""
    job = of(begin(1), 0)
    assert (job.id, job.state, job.outcome, job.since, job.ended_s, job.looked_for) == ("", "", "", None, None, False)
    assert (job.node, job.number, job.at_a_time, job.per_second) == ("cn01", "1", 500, 1000)


def test_jobs_are_submitted_while_the_queue_is_known_and_has_room(begin: Callable[..., Any], fake: Path) -> None:
    call = begin(3, at_a_time=2)
    assert not call.is_submitting, "nothing is known of the queue"
    call.poll(0.0)
    assert call.is_submitting
    call.fill()
    assert not call.is_submitting, "it has as many as it may have"


@pytest.mark.parametrize("patience", ["STOP_S", "FILL_S"])
def test_what_takes_too_long_is_left_after_its_time(
    begin: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], patience: str
) -> None:
    """A minute after an interruption, of which the kernels need 20 s, and some seconds of submissions."""
    moment = [1000.0]
    call = begin(2)
    call.poll(0.0)
    if patience == "STOP_S":
        call.fill()
        listed = call.launcher.follow(call.names())
        monkeypatch.setattr(call.launcher, "follow", lambda names: listed)

    def sleep(seconds: float) -> None:
        moment[0] += max(seconds, 1e-3)

    monkeypatch.setattr(jobs, "time", SimpleNamespace(monotonic=lambda: moment[0], sleep=sleep))
    call.next_submission = 1099.0
    (call.cancel if patience == "STOP_S" else call.fill)()
    assert 0 <= moment[0] - 1000 - getattr(jobs, patience) < 1
    assert 20 < jobs.STOP_S <= 60 and 1 < jobs.FILL_S <= 5
    assert ("jobs are still ending; `squeue --me` lists them" in capsys.readouterr().err) == (patience == "STOP_S")


def test_the_end_counts_who_came_back_unless_it_was_canceled(
    begin: Callable[..., Any], capsys: pytest.CaptureFixture[str]
) -> None:
    call = begin(3)
    measured(call, 1)
    call.look()
    call.absent(of(call, 2), "it was lost")
    call.end()
    assert "slurm: 1 of 3 nodes came back in " in capsys.readouterr().err
    call.canceled = True
    call.end()
    assert "came back" not in capsys.readouterr().err
    jobs.Launch(call.home.parent).end()
    assert capsys.readouterr().err == "", "a call without jobs says nothing"
