"""Submitting and following the jobs of a campaign, with a Slurm that answers as the test wants (fake_slurm.sh)."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from nodeprint import campaign as campaigns
from nodeprint import config, discover
from nodeprint.discover import Node
from nodeprint.errors import NodeprintError

from . import fake_slurm
from .conftest import ROOT

sys.path.insert(0, str(ROOT / "workflow"))
launch: Any = import_module("launch.slurm")


@pytest.fixture(autouse=True)
def _signals() -> Iterator[None]:
    former = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})
    yield
    signal.pthread_sigmask(signal.SIG_SETMASK, former)


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
    """`begin(count, slurm keys...)`: a call over `count` nodes, a new one for the same campaign each time."""

    held: list[int] = []

    def make(count: int = 3, **slurm: object) -> Any:
        for lock in held:
            os.close(lock)  # as at the end of a process
        held.clear()
        path = tmp_path / "config.yaml"
        path.write_text(f"results: {tmp_path}\npreset: test\nmeasure: [coherence-cas]\nlaunch: slurm\n")
        settings = config.load(path)
        settings["slurm"] |= {"minutes": 5, "deadline_hours": 1} | slurm
        folder = campaigns.prepare(
            settings, lambda: [Node(f"cn{i:02}", f"cn{i:02}") for i in range(1, count + 1)], [], {}
        )
        held.append(launch.locked(folder / "launch/lock"))
        return launch.Launch(settings, folder / "launch/pending.tsv", held[0])

    return make


def queue(fake: Path) -> list[list[str]]:
    path = fake / "queue"
    return [line.split("|") for line in path.read_text().splitlines()] if path.exists() else []


def becomes(fake: Path, node: str, state: str, reason: str = "None") -> None:
    """The job of a node gets a state; an empty one is forgotten."""
    rows = [[*row[:3], state, reason] if row[1] == node else row for row in queue(fake)]
    (fake / "queue").write_text("".join("|".join(row) + "\n" for row in rows if row[3]))


def measured(call: Any, number: int) -> None:
    (call.jobs[number].folder / "status.json").write_text('{"outcome": "complete"}')


def test_at_most_so_many_jobs_are_in_the_queue(begin: Callable[..., Any], fake: Path) -> None:
    call = begin(5, jobs_at_a_time=2)
    call.poll(0.0)
    call.fill()
    assert [row[1] for row in queue(fake)] == ["cn01", "cn02"]
    measured(call, 1)
    call.look()
    call.fill()
    call.fill()
    assert [row[1] for row in queue(fake)] == ["cn01", "cn02", "cn03"]
    call.note()
    rows = [line.split("\t") for line in (call.home / "jobs.tsv").read_text().splitlines()]
    assert [row[:4] for row in rows[:4]] == [
        ["cn01", "1", "1", "PENDING"], ["cn02", "1", "2", "complete"], ["cn03", "1", "3", "PENDING"],
        ["cn04", "1", "", ""],
    ]  # fmt: skip


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
    assert [job.id for job in second.jobs] == ["1", "", "3"]
    second.fill()
    assert [row[1:3] for row in queue(fake)[3:]] == [["cn02", "4"]]


def test_a_submission_whose_answer_was_lost_is_found_by_its_name(begin: Callable[..., Any], fake: Path) -> None:
    call = begin(2)
    call.poll(0.0)
    (fake / "lost").touch()
    call.fill()
    assert len(queue(fake)) == 1
    assert not call.known
    (fake / "lost").unlink()
    call.poll(1.0)
    assert [job.id for job in call.jobs] == ["1", ""]
    call.fill()
    assert [row[1] for row in queue(fake)] == ["cn01", "cn02"]


def test_what_sbatch_refuses_is_the_nodes_reason_and_a_limit_of_the_user_is_waited_for(
    begin: Callable[..., Any], fake: Path
) -> None:
    call = begin(2)
    call.poll(0.0)
    (fake / "refusal").write_text("Invalid license specification")
    call.fill()
    assert [job.outcome for job in call.jobs] == ["absent", "absent"]
    assert call.jobs[0].why == "sbatch refused it: Invalid license specification"
    assert (call.jobs[0].folder / "submission.txt").read_text() == call.jobs[0].why + "\n"
    assert call.outcomes().splitlines()[1] == f"cn02\t1\tabsent\t{call.jobs[1].why}"

    (fake / "refusal").unlink()
    limited = begin(2, jobs_at_a_time=1)
    limited.poll(0.0)
    limited.fill()
    limited.most = 2
    (fake / "refusal").write_text(
        "Job violates accounting/QOS policy (job submit limit, user's size and/or time limits)"
    )
    limited.fill()
    assert limited.most == 1
    assert limited.jobs[1].outcome == ""

    (fake / "queue").unlink()
    alone = begin(1)
    alone.poll(0.0)
    alone.fill()
    assert alone.jobs[0].outcome == "absent", "with no other job it is no limit on their number"


def test_no_answer_is_never_an_end(begin: Callable[..., Any], fake: Path, capsys: pytest.CaptureFixture[str]) -> None:
    call = begin(1)
    call.poll(0.0)
    call.fill()
    (fake / "down").touch()
    for now in range(1, 3600, 100):
        call.poll(float(now))
    assert call.jobs[0].outcome == ""
    assert capsys.readouterr().err.count("no answer from Slurm") == 1
    with pytest.raises(NodeprintError, match="no answer from Slurm for 1 h; its jobs were left as they are"):
        call.poll(3700.0)
    (fake / "down").unlink()
    measured(call, 0)
    call.poll(3701.0)
    call.look()
    assert call.jobs[0].outcome == "complete"


@pytest.mark.parametrize("late", [True, False])
def test_a_job_that_slurm_has_forgotten_has_time_to_show_its_outcome(
    begin: Callable[..., Any], fake: Path, late: bool
) -> None:
    call = begin(1, late_seconds=60)
    call.poll(0.0)
    call.fill()
    becomes(fake, "cn01", "")
    call.poll(10.0)
    call.poll(69.0)
    assert call.jobs[0].outcome == ""
    if late:
        measured(call, 0)
    else:
        (call.jobs[0].folder / "launch.log").write_text("node-run: run 1 of 2: coherence-cas\ncas: 3 of 9\r")
    call.poll(70.0)
    assert call.jobs[0].outcome == ("complete" if late else "absent")
    said = "does not know any more how (MinJobAge is short, no accounting); the node is drained: DIMM 7 is bad; node"
    assert late or said in call.jobs[0].why


@pytest.mark.parametrize(
    ("state", "said"),
    [
        ("NODE_FAIL", "NODE_FAIL, the node was lost"),
        ("TIMEOUT", "TIMEOUT, it took longer than its time limit; see slurm.minutes"),
        ("CANCELLED", "CANCELLED, it was cancelled"),
        ("OUT_OF_MEMORY", "it had too little memory"),
        ("DEADLINE", "see slurm.deadline_hours"),
        ("FAILED", "FAILED, exit code 1"),
    ],
)
def test_slurms_reason_and_node_runs_are_both_said(
    begin: Callable[..., Any], fake: Path, state: str, said: str
) -> None:
    call = begin(1)
    call.poll(0.0)
    call.fill()
    log = "node-run: run 1 of 2: a\nnode-run: SIGTERM: stopping the kernel\nslurmstepd: error: *** JOB 1 ENDED ***\n"
    (call.jobs[0].folder / "launch.log").write_text(log)
    (fake / "ended").write_text(f"JobId=1 JobState={state} Reason=x ExitCode=1:0")
    becomes(fake, "cn01", state)
    call.poll(10.0)
    assert call.jobs[0].outcome == "", "what was just written on the node may come"
    call.poll(20.0)
    assert said in call.jobs[0].why and call.jobs[0].why.endswith("; node-run: run 1 of 2: a")


def test_an_outcome_is_true_whatever_slurm_says(begin: Callable[..., Any], fake: Path) -> None:
    call = begin(1)
    call.poll(0.0)
    call.fill()
    becomes(fake, "cn01", "NODE_FAIL")
    measured(call, 0)
    call.poll(10.0)
    assert call.jobs[0].outcome == "complete"
    assert call.outcomes() == "cn01\t1\tcomplete\t\n"


def test_a_node_that_wrote_nothing_gets_a_question(begin: Callable[..., Any], fake: Path) -> None:
    call = begin(1, late_seconds=0)
    call.poll(0.0)
    call.fill()
    becomes(fake, "cn01", "FAILED")
    call.poll(10.0)
    assert f"does the node see {call.jobs[0].folder}" in call.jobs[0].why


def test_a_node_that_is_drained_while_its_job_waits_costs_itself_alone(begin: Callable[..., Any], fake: Path) -> None:
    call = begin(2, unavailable_minutes=10)
    call.poll(0.0)
    call.fill()
    waits = "ReqNodeNotAvail, UnavailableNodes:cn01"
    becomes(fake, "cn01", "PENDING", waits)
    becomes(fake, "cn02", "PENDING", "Priority")
    call.poll(1000.0)
    call.poll(1590.0)
    assert not (fake / "cancelled").exists()
    call.poll(1601.0)
    assert (fake / "cancelled").read_text() == "1\n"
    assert [job.outcome for job in call.jobs] == ["absent", ""]
    assert "waited 10 minutes for the node, which is drained: DIMM 7 is bad; it was cancelled" in call.jobs[0].why
    call.poll(9999.0)
    assert call.jobs[1].outcome == ""


def test_a_job_that_asks_for_more_than_it_may_have_does_not_wait_for_a_day(
    begin: Callable[..., Any], fake: Path
) -> None:
    call = begin(1, unavailable_minutes=1)
    call.poll(0.0)
    call.fill()
    becomes(fake, "cn01", "PENDING", "PartitionTimeLimit")
    call.poll(10.0)
    call.poll(71.0)
    assert call.jobs[0].why == "Slurm job 1 waited 1 minutes (PartitionTimeLimit); it was cancelled"


def test_many_nodes_of_the_same_reason_are_counted(
    begin: Callable[..., Any], fake: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (fake / "refusal").write_text("Invalid account or account/partition combination specified")
    call = begin(20)
    call.run()
    said = capsys.readouterr().err.splitlines()
    assert len(said) == 4
    assert said[-1].startswith("slurm: 17 more nodes for the same reason (sbatch refused it: Invalid account")


def test_an_impossible_deadline_is_said_before_anything_is_submitted(begin: Callable[..., Any], fake: Path) -> None:
    call = begin(2, minutes=90)
    with pytest.raises(NodeprintError, match=r"slurm\.deadline_hours"):
        call.run()
    assert queue(fake) == []


def test_all_of_a_call_to_its_list(begin: Callable[..., Any], fake: Path) -> None:
    (fake / "instant").touch()
    call = begin(40, jobs_at_a_time=7)
    call.run()
    assert len(queue(fake)) == 40
    assert [line.split("\t")[2] for line in call.outcomes().splitlines()] == ["complete"] * 40


def test_names_and_states_of_squeues_lines() -> None:
    text = "np-1|cn-n|7|FAILED|NonZeroExitCode\nnp-1|cn-n|9|PENDING|x|y\nnp-1|cn-n|8|COMPLETED|None\n\nerror: |\n"
    assert launch.parse_queue(text) == {("np-1", "cn-n"): launch.Listed("9", "PENDING", "x|y")}


def test_a_sheet_with_odd_names_is_launched_with_quoted_words(begin: Callable[..., Any]) -> None:
    call = begin(1)
    call.config["site"]["setup"] = "/opt/site setup"
    assert "--setup '/opt/site setup'" in call.script(call.jobs[0].node)
    assert call.script(call.jobs[0].node).startswith("exec /")
    call.slurm["cpu_freq"] = "performance"
    words = (
        "exec srun --ntasks=1 --cpus-per-task=$SLURM_CPUS_ON_NODE --mpi=none --cpu-bind=none --cpu-freq=performance /"
    )
    assert call.script(call.jobs[0].node).startswith(words)
    assert discover.checked_name("rack-J01", "x") == "rack-J01"


def test_a_stop_that_outlasts_the_wait_is_no_interruption() -> None:
    code = "import signals; signals.block(); print('waits', flush=True); signals.pause(0.5)"
    command = [sys.executable, "-c", code]
    with subprocess.Popen(command, cwd=ROOT / "workflow", stdout=subprocess.PIPE) as process:
        assert process.stdout and process.stdout.readline() == b"waits\n"
        time.sleep(0.1)
        process.send_signal(signal.SIGSTOP)  # Ctrl-Z
        time.sleep(0.6)
        process.send_signal(signal.SIGCONT)
    assert process.returncode == 0
