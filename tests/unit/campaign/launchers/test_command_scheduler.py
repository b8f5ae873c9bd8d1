"""A scheduler that is known by its four commands alone; the commands are scripts that answer, reject or are silent."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from nodeprint.campaign.launchers import scheduler_commands
from nodeprint.campaign.launchers.command_scheduler import CommandScheduler
from nodeprint.campaign.launchers.launcher import JobState, NoAnswerError, RefusedError, Submission
from nodeprint.errors import NodeprintError, NoServiceError
from nodeprint.settings import config
from nodeprint.settings.config_file import Config


class Batch(CommandScheduler):
    """Commands that print as those of LSF do."""

    name, title = "batch", "Batch"
    nodes_command, usable_states = "bhosts -o 'status host_name'", ("ok", "closed_Full")
    submit_command = "bsub -J $name -m $node -W $minutes -l $seconds $extra sh -c $script"
    job_number = r"<(\d+)>"
    list_command, job_states, no_jobs = "bjobs -o 'a b'", {"RUN": "RUNNING", "DONE": "COMPLETED"}, "No unfinished job"
    cancel_command = "bkill -s TERM $jobs"


@pytest.fixture
def commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory of commands on PATH; `answer` writes one that prints a text."""
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:/usr/bin:/bin")
    answer(tmp_path, "bhosts", "ok cn[1-2]\nclosed_Adm cn3.site\nclosed_Full cn4")
    answer(tmp_path, "bjobs", "7 RUN run-1.cn1\n8 WAIT run-1.cn3.site\n9 RUN of another\n6 DONE run-1.cn2\n5 RUN")
    answer(tmp_path, "bsub", "Job <12> is submitted to queue <normal>.")
    return tmp_path


def answer(folder: Path, command: str, text: str, code: int = 0, more: str = "") -> None:
    path = folder / "bin" / command
    asked = f"echo {command} >>{folder}/asked; printf '%s\\n' \"$@\" >>{folder}/asked"
    path.write_text(f"#!/bin/sh\n{asked}\n{more}\necho {shlex.quote(text)}\nexit {code}\n")
    path.chmod(0o755)


def settings(**keys: object) -> Config:
    return config.checked({"launch": "gridengine", "scheduler": keys}, "config.yaml")


SUBMISSION = Submission("run-1", "cn9", ["bsub", "-J", "$name", "-q", "$x", "sh", "-c", "$script"], "echo $name $$", 1)


def test_nodes_are_those_of_the_sheet_with_the_reason_of_each_that_is_left_out(commands: Path) -> None:
    nodes = Batch().nodes(settings())
    assert [(node.node, node.host, node.state, node.reason, node.measure) for node in nodes] == [
        ("cn1", "cn1", "ok", "", True),
        ("cn2", "cn2", "ok", "", True),
        ("cn3.site", "cn3", "closed_Adm", "closed_Adm", False),
        ("cn4", "cn4", "closed_Full", "", True),
    ]
    assert [node.node for node in Batch().nodes(settings(nodes="cn[2,4]"))] == ["cn2", "cn4"]


def test_nodes_that_are_not_there_are_one_sentence(commands: Path) -> None:
    said = "scheduler.nodes: Batch has no node cn7; `bhosts -o 'status host_name'` lists the nodes"
    with pytest.raises(NodeprintError, match=re.escape(said)):
        Batch().nodes(settings(nodes="cn[1,7]"))
    answer(commands, "bhosts", "")
    with pytest.raises(NodeprintError, match="no node is listed; see whether Batch has nodes"):
        Batch().nodes(settings())
    answer(commands, "bhosts", "Failed in LSF library call", code=1)
    with pytest.raises(NoServiceError, match=r"bhosts: no answer \(Failed in LSF library call\)"):
        Batch().nodes(settings())
    (commands / "bin/bhosts").unlink()
    with pytest.raises(NodeprintError, match="bhosts is not on PATH"):
        Batch().nodes(settings())


def test_a_submission_fills_the_words_of_its_command(commands: Path) -> None:
    (node, *_) = Batch().nodes(settings())
    options = Batch().options(settings(extra="-q batch -P x"), node, 7)
    words = [
        "bsub",
        "-J",
        "$name",
        "-m",
        "cn1",
        "-W",
        "7",
        "-l",
        "420",
        "-q",
        "batch",
        "-P",
        "x",
        "sh",
        "-c",
        "$script",
    ]
    assert options == words
    (commands / "asked").unlink()
    script = "echo $node $name '$$' ${x}"
    assert Batch().submit(Submission("run-1", "cn1", options, script, 1)) == "12"
    words[2], words[-1] = "run-1.cn1", script
    assert (commands / "asked").read_text().splitlines() == words


def test_jobs_are_found_by_name_and_node(commands: Path) -> None:
    listed = Batch().follow(["run-1"])
    assert listed == {("run-1", "cn1"): JobState("7", "RUNNING"), ("run-1", "cn3.site"): JobState("8", "PENDING")}


def test_an_empty_queue_is_an_answer_and_anything_else_is_none(commands: Path) -> None:
    answer(commands, "bjobs", "")
    assert Batch().follow(["run-1"]) == {}
    answer(commands, "bjobs", "No unfinished job found", code=255)
    assert Batch().follow(["run-1"]) == {}
    for text, code in (("LSF is down. Please wait ...", 255), ("banner", 0)):
        answer(commands, "bjobs", text, code)
        with pytest.raises(NoAnswerError, match=text[:6]):
            Batch().follow(["run-1"])


def test_a_failed_submission_is_rejected_only_if_the_scheduler_answers_and_does_not_list_it(commands: Path) -> None:
    answer(commands, "bsub", "no such queue", code=255)
    with pytest.raises(RefusedError, match="no such queue") as refused:
        Batch().submit(SUBMISSION)
    assert refused.value.limit == "unknown"
    answer(commands, "bjobs", "12 PEND run-1.cn9")
    assert Batch().submit(SUBMISSION) == "12", "it is in the queue, whatever bsub says"
    answer(commands, "bjobs", "LSF is down", code=255)
    with pytest.raises(NoAnswerError, match="LSF is down"):
        Batch().submit(SUBMISSION)
    answer(commands, "bsub", "Request queued")
    with pytest.raises(NoAnswerError, match="bsub printed 'Request queued"):
        Batch().submit(SUBMISSION)


def test_a_submission_without_an_answer_may_come_later(commands: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scheduler_commands, "ANSWER_S", 0.2)
    answer(commands, "bjobs", "")
    answer(commands, "bsub", "", more="exec sleep 20")
    with pytest.raises(NoAnswerError, match="bsub: no answer in 0 s"):
        Batch().submit(SUBMISSION)


def test_jobs_are_canceled_by_their_numbers(commands: Path) -> None:
    answer(commands, "bkill", "")
    Batch().cancel(["7", "8"])
    assert (commands / "asked").read_text().split() == ["bkill", "-s", "TERM", "7", "8"]
    assert Batch().reason("cn1", JobState("7", "ENDED")) == "Batch job 7 ended without an outcome"
