"""Commands of Slurm, with a shell in their place, and the options of its jobs."""

import pytest

from nodeprint.campaign.launchers import scheduler_commands, slurm
from nodeprint.campaign.launchers.launcher import JobState, NoAnswerError, RefusedError, Submission
from nodeprint.campaign.node_sheet import Node
from nodeprint.errors import NodeprintError
from nodeprint.settings.config_file import Slurm

LAUNCHER = slurm.SlurmLauncher()


def test_the_last_six_lines_of_a_command_that_fails_are_its_reason() -> None:
    """A site's job_submit plugin writes its own before Slurm's."""
    with pytest.raises(NoAnswerError, match=r"^4\n5\n6\n7\n8\n9$"):
        slurm.ask("sh", "-c", "seq 9 >&2; exit 1")
    with pytest.raises(NoAnswerError, match=r"^sh ended with 3$"):
        slurm.ask("sh", "-c", "exit 3")
    with pytest.raises(NoAnswerError, match=r"^lost$"):
        slurm.ask("sh", "-c", "echo lost >&2; exit 1")
    assert slurm.ask("sh", "-c", "echo kept; echo lost >&2") == "kept\n"


def test_a_command_that_is_not_there_or_does_not_answer_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(NodeprintError, match="launch: no-such-squeue is not on PATH; run it on a login node"):
        slurm.ask("no-such-squeue")
    monkeypatch.setattr(scheduler_commands, "ANSWER_S", 0.2)
    with pytest.raises(NoAnswerError, match=r"^sleep: no answer in 0 s$"):
        slurm.ask("sleep", "60")


def test_what_changes_the_output_of_a_command_is_not_handed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SLURM_CONF", "SBATCH_QOS", "SBATCH_EXCLUSIVE", "SQUEUE_FORMAT", "SLURM_JOB_ID"):
        monkeypatch.setenv(name, "x")
    handed = slurm.environment()
    assert {name for name in handed if name.startswith(("SLURM_", "SBATCH_", "SQUEUE_"))} == {
        "SLURM_CONF",
        "SBATCH_QOS",
    }
    assert handed["LC_ALL"] == "C" and "PATH" in handed


def test_names_and_states_of_squeues_lines() -> None:
    text = "np-1|cn-n|7|FAILED|NonZeroExitCode\nnp-1|cn-n|9|PENDING|x|y\nnp-1|cn-n|8|COMPLETED|None\n\nerror: |\n"
    assert slurm.parse_queue(text) == {("np-1", "cn-n"): JobState("9", "PENDING", "x|y")}


@pytest.mark.parametrize(
    ("printed", "number"), [("17\n", "17"), ("17;cluster\n", "17")], ids=["one cluster", "several clusters"]
)
def test_a_job_has_the_number_that_sbatch_prints(monkeypatch: pytest.MonkeyPatch, printed: str, number: str) -> None:
    asked = list[object]()

    def ask(*words: str, lock: int) -> str:
        asked.extend([words, lock])
        return printed

    monkeypatch.setattr(slurm, "ask", ask)
    assert LAUNCHER.submit(Submission("n", "cn1", ["--time=1", "x"], "run", 7)) == number
    words = ("sbatch", "--parsable", "--job-name=n", "--output=/dev/null", "--time=1", "x", "--wrap=run")
    assert asked == [words, 7]


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
        raise NoAnswerError(said)

    monkeypatch.setattr(slurm, "ask", ask)
    with pytest.raises(NoAnswerError if refusal is None else RefusedError) as raised:
        LAUNCHER.submit(Submission("n", "cn1", [], "run", 7))
    assert str(raised.value) == (said if refusal is None else refusal)


def answers(monkeypatch: pytest.MonkeyPatch, of_commands: dict[str, str]) -> list[str]:
    """Slurm answers so, by the command's first words; to anything else it does not. What it is asked."""
    asked = list[str]()

    def ask(*words: str, lock: int | None = None) -> str:
        asked.append(" ".join(words))
        for begin, answer in of_commands.items():
            if asked[-1].startswith(begin):
                return answer
        raise NoAnswerError("none")

    monkeypatch.setattr(slurm, "ask", ask)
    return asked


def test_the_queue_has_what_has_ended_where_that_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = answers(monkeypatch, {"squeue": "n|a|7|RUNNING|None\n"})
    assert slurm.queue(["n", "m"]) == slurm.queue(["n", "m"], ended=True)
    assert [("--states=all" in words, "--name=n,m" in words) for words in asked] == [(False, True), (True, True)]


def test_of_two_jobs_of_a_node_that_in_the_queue_counts_then_the_newest() -> None:
    text = "n|a|9|COMPLETED|None\nn|a|8|RUNNING|None\nn|b|7|FAILED|x\nn|b|10|TIMEOUT|y\n"
    text += "n|c|?|RUNNING|None\nn|d|1|RUNNING\n"
    listed = {node: job.id for (_, node), job in slurm.parse_queue(text).items()}
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
    state, code, reason = slurm.how_it_ended("7")
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
    assert LAUNCHER.user_has_jobs() is has


def test_a_job_of_our_own_has_the_whole_node() -> None:
    node = Node("cn-n", "cn-n", partition="main")
    words = slurm.sbatch_words(node, Slurm(account="a", extra="--licenses=x --nice"), minutes=10)
    assert words == [
        "--nodes=1",
        "--ntasks=1",
        "--exclusive",
        "--mem=0",
        "--no-requeue",
        "--partition=main",
        "--account=a",
        "--time=10",
        "--deadline=now+86400seconds",
        "--licenses=x",
        "--nice",
        "--nodelist=cn-n",
    ]


def test_how_a_job_ended_in_a_sentence() -> None:
    assert slurm.ended("7", "NODE_FAIL") == "Slurm job 7: NODE_FAIL, the node was lost"
    assert slurm.ended("7", "FAILED", "2:0") == "Slurm job 7: FAILED, exit code 2"
    assert slurm.ended("7", "FAILED", "0:9") == "Slurm job 7: FAILED, killed by signal 9"
    assert "does not know any more" in slurm.ended("7", "")
    assert slurm.ended("7", "FAILED", "1:0", "NonZeroExitCode") == "Slurm job 7: FAILED, exit code 1"
    # nothing else explains a job that never began on its node
    of_slurm = slurm.ended("7", "FAILED", "0:53", "RaisedSignal:53(Real-time_signal_19)")
    assert of_slurm.endswith("killed by signal 53 (Slurm's reason: RaisedSignal:53(Real-time_signal_19))")
    job = slurm.parse_job("JobId=1 JobState=TIMEOUT Reason=TimeLimit ExitCode=0:15 RunTime=1")
    assert job == ("TIMEOUT", "0:15", "TimeLimit")
    assert slurm.parse_accounting("CANCELLED by 1000|0:0\n") == ("CANCELLED", "0:0")
    assert slurm.parse_accounting("") == ("", "")


def test_a_deadline_before_the_end_is_refused() -> None:
    with pytest.raises(NodeprintError, match=r"slurm\.deadline_hours"):
        slurm.sbatch_words(Node("n", "n"), Slurm(deadline_hours=0.1), minutes=6)
