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
