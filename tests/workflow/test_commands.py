"""Commands of Slurm, with a shell in their place."""

import sys
from importlib import import_module
from typing import Any

import pytest

from nodeprint.errors import NodeprintError
from tests.support.real_parts import ROOT

sys.path.insert(0, str(ROOT / "workflow"))
commands: Any = import_module("snakemake_executor_plugin_nodeprint.commands")


def test_the_last_six_lines_of_a_command_that_fails_are_its_reason() -> None:
    """A site's job_submit plugin writes its own before Slurm's."""
    with pytest.raises(commands.NoAnswerError, match=r"^4\n5\n6\n7\n8\n9$"):
        commands.ask("sh", "-c", "seq 9 >&2; exit 1")
    with pytest.raises(commands.NoAnswerError, match=r"^sh ended with 3$"):
        commands.ask("sh", "-c", "exit 3")
    with pytest.raises(commands.NoAnswerError, match=r"^lost$"):
        commands.ask("sh", "-c", "echo lost >&2; exit 1")
    assert commands.ask("sh", "-c", "echo kept; echo lost >&2") == "kept\n"


def test_a_command_that_is_not_there_or_does_not_answer_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(NodeprintError, match="launch: no-such-squeue is not on PATH; run it on a login node"):
        commands.ask("no-such-squeue")
    monkeypatch.setattr(commands, "ANSWER_S", 0.2)
    with pytest.raises(commands.NoAnswerError, match=r"^sleep: no answer in 0 s$"):
        commands.ask("sleep", "60")


def test_what_changes_the_output_of_a_command_is_not_handed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SLURM_CONF", "SBATCH_QOS", "SBATCH_EXCLUSIVE", "SQUEUE_FORMAT", "SLURM_JOB_ID"):
        monkeypatch.setenv(name, "x")
    handed = commands.environment()
    assert {name for name in handed if name.startswith(("SLURM_", "SBATCH_", "SQUEUE_"))} == {
        "SLURM_CONF",
        "SBATCH_QOS",
    }
    assert handed["LC_ALL"] == "C" and "PATH" in handed


def test_names_and_states_of_squeues_lines() -> None:
    text = "np-1|cn-n|7|FAILED|NonZeroExitCode\nnp-1|cn-n|9|PENDING|x|y\nnp-1|cn-n|8|COMPLETED|None\n\nerror: |\n"
    assert commands.parse_queue(text) == {("np-1", "cn-n"): commands.Listed("9", "PENDING", "x|y")}


@pytest.mark.parametrize(
    ("printed", "number"), [("17\n", "17"), ("17;cluster\n", "17")], ids=["one cluster", "several clusters"]
)
def test_a_job_has_the_number_that_sbatch_prints(monkeypatch: pytest.MonkeyPatch, printed: str, number: str) -> None:
    asked = list[object]()

    def ask(*words: str, lock: int) -> str:
        asked.extend([words, lock])
        return printed

    monkeypatch.setattr(commands, "ask", ask)
    assert commands.submit(["--time=1", "x"], 7) == number
    assert asked == [("sbatch", "--parsable", "--time=1", "x"), 7]


@pytest.mark.parametrize(
    ("said", "refusal"),
    [
        ("sbatch: error: Batch job submission failed: Invalid qos.", "Invalid qos"),
        ("ours: no\nsbatch: error: Batch job submission failed: Bad.", "no; Bad"),
        ("sbatch: unrecognized option '--x'", "unrecognized option '--x'"),
        ("sbatch: error: Batch job submission failed: Socket timed out on send/recv operation", None),
        ("sbatch: error: Unable to contact slurm controller", None),
    ],
)
def test_what_sbatch_refuses_for_good_is_no_missing_answer(
    monkeypatch: pytest.MonkeyPatch, said: str, refusal: str | None
) -> None:
    def ask(*words: str, lock: int) -> str:
        raise commands.NoAnswerError(said)

    monkeypatch.setattr(commands, "ask", ask)
    with pytest.raises(commands.NoAnswerError if refusal is None else commands.RefusedError) as raised:
        commands.submit([], 7)
    assert str(raised.value) == (said if refusal is None else refusal)


def answers(monkeypatch: pytest.MonkeyPatch, of_commands: dict[str, str]) -> list[str]:
    """Slurm answers so, by the command's first words; to anything else it does not. What it is asked."""
    asked = list[str]()

    def ask(*words: str, lock: int | None = None) -> str:
        asked.append(" ".join(words))
        for begin, answer in of_commands.items():
            if asked[-1].startswith(begin):
                return answer
        raise commands.NoAnswerError("none")

    monkeypatch.setattr(commands, "ask", ask)
    return asked


def test_the_queue_has_what_has_ended_where_that_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = answers(monkeypatch, {"squeue": "n|a|7|RUNNING|None\n"})
    assert commands.queue(["n", "m"]) == commands.queue(["n", "m"], ended=True)
    assert [("--states=all" in words, "--name=n,m" in words) for words in asked] == [(False, True), (True, True)]


def test_of_two_jobs_of_a_node_that_in_the_queue_counts_then_the_newest() -> None:
    text = "n|a|9|COMPLETED|None\nn|a|8|RUNNING|None\nn|b|7|FAILED|x\nn|b|10|TIMEOUT|y\n"
    text += "n|c|?|RUNNING|None\nn|d|1|RUNNING\n"
    listed = {node: job.id for (_, node), job in commands.parse_queue(text).items()}
    assert listed == {"a": "8", "b": "10"}


@pytest.mark.parametrize(
    ("of_commands", "ended"),
    [
        ({"scontrol -o show job": "JobState=FAILED ExitCode=1:0 Reason=NonZeroExitCode"}, "FAILED"),
        ({"scontrol show config": "x = slurmdbd", "sacct": "TIMEOUT|0:15\n"}, "TIMEOUT"),
        ({"scontrol show config": "x = accounting_storage/none", "sacct": "TIMEOUT|0:15\n"}, ""),
        ({"sacct": "TIMEOUT|0:15\n"}, ""),
    ],
)
def test_how_a_job_ended_is_asked_of_the_controller_then_of_the_accounting(
    monkeypatch: pytest.MonkeyPatch, of_commands: dict[str, str], ended: str
) -> None:
    answers(monkeypatch, of_commands)
    state, code, reason = commands.how_it_ended("7")
    assert state == ended and bool(code) == bool(ended) and bool(reason) == (ended == "FAILED")


@pytest.mark.parametrize(
    ("printed", "has"), [("7\n", False), ("7\n8\n", True), ("8\n", True), ("", False), (None, True)]
)
def test_a_user_has_jobs_beside_the_one_that_this_is_in(
    monkeypatch: pytest.MonkeyPatch, printed: str | None, has: bool
) -> None:
    """Without an answer nothing is known, and it may be so."""
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    answers(monkeypatch, {} if printed is None else {"squeue": printed})
    assert commands.user_has_jobs() is has
