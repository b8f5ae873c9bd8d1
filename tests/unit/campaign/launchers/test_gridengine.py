"""Grid Engine's XML and text, recorded from a real qmaster (tests/system/cluster, 8.1.9), and what follows from it.

There cn01 lost its power while job 2 ran on it, which was then deleted. The queue of cn03 is disabled, and job 6 waits
for it. In the second qstat, jobs 9 and 10 could not be started.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from nodeprint.campaign.launchers import gridengine
from nodeprint.campaign.launchers.gridengine import GridEngineLauncher, Host, Queue
from nodeprint.campaign.launchers.launcher import UNKNOWN_END, JobState, NoAnswerError, RefusedError, Submission
from nodeprint.campaign.node_sheet import Node
from nodeprint.errors import NodeprintError, NoServiceError
from nodeprint.settings.config_file import Config, Jobs

RECORDED = Path(__file__).parent / "gridengine"
ENTRIES = {
    name: (RECORDED / name).read_text() for name in ("qhost.xml", "qstat.xml", "qstat-error.xml", "qstat-exclusive.xml")
}
SILENT = "error: commlib error: got select error (Connection refused)\nerror: unable to send message to qmaster"
COMPLEXES = (
    "#name shortcut type relop requestable consumable default urgency\nexclusive excl BOOL EXCL YES YES 0 1000\n"
)


def answers(monkeypatch: pytest.MonkeyPatch, of_commands: dict[str, str | NoAnswerError]) -> list[str]:
    """Grid Engine answers so, by the command's first words; to anything else it does not. What it is asked."""
    asked = list[str]()

    def ask(*words: str, stdin: str | None = None, lock: int | None = None) -> str:
        asked.append(" ".join(words))
        for begin, answer in of_commands.items():
            if asked[-1].startswith(begin):
                if isinstance(answer, NoAnswerError):
                    raise answer
                return answer
        raise NoAnswerError(SILENT)

    monkeypatch.setattr(gridengine, "ask", ask)
    return asked


def test_each_host_is_a_node_with_its_cpus_and_why_it_is_left_out() -> None:
    nodes = gridengine.sheet(gridengine.parse_hosts(ENTRIES["qhost.xml"]), Jobs())
    assert [(node.node, node.partition, node.cpus, node.threads) for node in nodes] == [
        (name, "main.q", 2, 1) for name in ("cn01", "cn02", "cn03")
    ]
    assert [(node.state, node.reason, node.measure) for node in nodes] == [
        ("u", "unreachable", False),
        ("idle", "", True),
        ("d", "disabled in queue main.q", False),
    ]


@pytest.mark.parametrize(
    ("keys", "selected"),
    [
        (Jobs(nodes="cn[1-2].x"), {"cn1.x": "a", "cn2.x": "b"}),
        (Jobs(partition="b"), {"cn2.x": "b", "cn3": "b"}),
        (Jobs(partition="c,b", nodes="cn3"), {"cn3": "c"}),
    ],
)
def test_a_node_is_measured_in_the_first_of_its_queues_that_starts_jobs(keys: Jobs, selected: dict[str, str]) -> None:
    hosts = [
        Host("cn1.x", 8, 2, (Queue("a", "a", 8, 0),)),  # a load alarm goes by itself
        Host("cn2.x", 8, 2, (Queue("a", "d", 8, 0), Queue("b", "", 8, 0))),
        Host("cn3", 8, 2, (Queue("b", "E", 8, 0), Queue("c", "aS", 8, 0))),
        Host("oss", 8, 2, ()),
    ]
    nodes = {node.node: node for node in gridengine.sheet(hosts, keys)}
    assert {name: node.partition for name, node in nodes.items()} == (
        selected if "c," not in keys.partition else {"cn3": "b"}
    )
    assert all(node.host == node.node.partition(".")[0] for node in nodes.values())
    if "cn3" in nodes:
        assert "in an error state in queue b" in nodes["cn3"].reason and not nodes["cn3"].measure


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        (Jobs(partition="z"), "scheduler.partition: Grid Engine has no queue z"),
        (Jobs(nodes="cn9"), "scheduler.nodes: Grid Engine has no host cn9"),
        (Jobs(nodes="cn2", partition="a"), "scheduler: no host of this cluster is selected"),
    ],
)
def test_what_is_not_there_is_named(keys: Jobs, said: str) -> None:
    hosts = [Host("cn1", 8, 2, (Queue("a", "", 8, 0),)), Host("cn2", 8, 2, (Queue("b", "", 8, 0),))]
    with pytest.raises(NodeprintError, match=said):
        gridengine.sheet(hosts, keys)


def test_one_qstat_has_all_jobs_and_the_states_of_their_nodes() -> None:
    assert gridengine.parse_queue(ENTRIES["qstat.xml"]) == {
        ("np-1", "cn01"): JobState("2", "COMPLETING", "unreachable", stuck="node"),
        ("np-2", "cn03"): JobState("6", "PENDING", "disabled in queue main.q", stuck="node"),
    }
    errors = gridengine.parse_queue(ENTRIES["qstat-error.xml"])
    assert errors["err", "cn02"] == JobState("9", "PENDING", stuck="job")


@pytest.mark.parametrize(
    ("letters", "state"),
    [("qw", "PENDING"), ("hqw", "PENDING"), ("t", "RUNNING"), ("r", "RUNNING"), ("Rr", "RUNNING"), ("s", "SUSPENDED"),
     ("T", "SUSPENDED"), ("dr", "COMPLETING"), ("dRr", "COMPLETING"), ("Eqw", "PENDING")],
)  # fmt: skip
def test_states_of_jobs(letters: str, state: str) -> None:
    text = (
        ENTRIES["qstat.xml"].replace("<state>dr</state>", f"<state>{letters}</state>").replace("<state>u</state>", "")
    )
    job = gridengine.parse_queue(text)["np-1", "cn01"]
    assert (job.state, job.stuck) == (state, "job" if "E" in letters else "")


def test_a_job_that_could_not_be_started_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    error = 'error: can\'t open output file "/nowhere/x": No such file or directory'
    text = f"job_number:                 9\nerror reason          1:      11/29/2026 12:58:41 [0:148]: {error}\n"
    asked = answers(monkeypatch, {"qstat -f": ENTRIES["qstat-error.xml"], "qstat -j 9": text})
    jobs = GridEngineLauncher().follow(["err"])
    assert jobs == {("err", "cn02"): JobState("9", "PENDING", error.removeprefix("error: "), stuck="job")}
    assert len(asked) == 2 and " -u " in asked[0]


@pytest.mark.parametrize(
    ("failed", "code", "end"),
    [
        ("0    ", "0", ("COMPLETED", "", "exit code 0")),
        ("0    ", "3", ("FAILED", "", "exit code 3")),
        ("100 : assumedly after job", "137  (Killed)", ("FAILED", "killed by signal 9", "killed by signal 9")),
        ("37  : qmaster enforced h_rt, h_cpu, or h_vmem limit", "137  (Killed)",
         ("TIMEOUT", "", "it took longer than its time limit; see scheduler.minutes")),
        ("26  : opening input/output file", "0", ("FAILED", "opening input/output file", "opening input/output file")),
    ],
)  # fmt: skip
def test_how_a_job_ended(monkeypatch: pytest.MonkeyPatch, failed: str, code: str, end: tuple[str, str, str]) -> None:
    text = (RECORDED / "qacct-killed.txt").read_text().replace("100 : assumedly after job", failed)
    answers(monkeypatch, {"qacct -j 7": text.replace("137                  (Killed)", code)})
    launcher = GridEngineLauncher()
    assert launcher.how_ended({"8": ("n", "b")}) == {}, "qmaster has not accounted it yet"
    job = launcher.how_ended({"7": ("n", "a")})["7"]
    assert (job.state, job.reason) == end[:2]
    sentence = f"Grid Engine job 7: {end[0]}, {end[2]}"
    assert launcher.reason("a", job) == launcher.reason("a", JobState("7", UNKNOWN_END)) == sentence


def test_a_job_that_nobody_knows_has_the_state_of_its_node_as_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    answers(monkeypatch, {"qhost -xml -q -h cn03": ENTRIES["qhost.xml"]})
    said = GridEngineLauncher().reason("cn03", JobState("7", UNKNOWN_END))
    assert said == "Grid Engine job 7 ended, and `qacct -j 7` does not say how; the node is disabled in queue main.q"


PES = {
    "qconf -spl": "mpi smp\n",
    "qconf -sp mpi": "allocation_rule $fill_up\n",
    "qconf -sp smp": "allocation_rule $pe_slots\n",
}


@pytest.mark.parametrize(
    ("of_commands", "extra", "whole"),
    [
        ({"qconf -sc": COMPLEXES, "qstat -f -F exclusive": ENTRIES["qstat-exclusive.xml"]}, "", "-l exclusive=true"),
        ({"qconf -sc": "", **PES, "qselect -pe smp": "main.q@cn02\n"}, "", "-pe smp 2"),
        ({"qconf -sc": "", **PES, "qselect -pe smp": "main.q@cn02\n"}, "-pe own 7 -P x", "-pe own 7 -P x"),
    ],
)
def test_a_job_has_all_of_its_node(
    monkeypatch: pytest.MonkeyPatch, of_commands: dict[str, str | NoAnswerError], extra: str, whole: str
) -> None:
    none = NoAnswerError("no parallel environment defined")
    answers(monkeypatch, {"qhost": ENTRIES["qhost.xml"], **of_commands, "qconf": none})
    config = Config(launch="gridengine", scheduler=Jobs(extra=extra))
    words = GridEngineLauncher().options(config, Node("cn02", "cn02", partition="main.q"), 10)
    assert " ".join(words) == (f"-cwd -V -r n -S /bin/sh -o /dev/null -j y -q main.q -l hostname=cn02,h_rt=600 {whole}")


def test_a_node_whose_exclusive_resource_is_taken_offers_it_all_the_same() -> None:
    offers = gridengine.parse_offers(ENTRIES["qstat-exclusive.xml"], "exclusive")
    assert offers == [f"main.q@cn0{number}" for number in range(1, 7)], "another job has cn06"
    assert gridengine.parse_offers(ENTRIES["qstat-exclusive.xml"], "other") == []


def test_a_node_that_no_job_gets_whole_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    none = NoAnswerError("no parallel environment defined")
    answers(monkeypatch, {"qhost": ENTRIES["qhost.xml"], "qconf -sc": "", "qconf -spl": none})
    with pytest.raises(NodeprintError, match=r"scheduler\.extra: no job gets a whole node of main\.q@cn02: it has"):
        GridEngineLauncher().options(Config(), Node("cn02", "cn02", partition="main.q"), 10)


@pytest.mark.parametrize(
    ("said", "limit"),
    [
        ('Unable to run job: unknown resource "x"\nExiting.', ""),
        ("Unable to run job: job rejected: only 1 jobs are allowed per user (current job count: 3)\nExiting.", "full"),
        (f"{SILENT}\nUnable to run job: unable to send message to qmaster\nExiting.", None),
    ],
)
def test_what_qsub_refuses_is_no_missing_answer(monkeypatch: pytest.MonkeyPatch, said: str, limit: str | None) -> None:
    answers(monkeypatch, {"qsub -terse -N n -cwd": NoAnswerError(said)})
    job = Submission("n", "cn1", ["-cwd"], "run", 7)
    with pytest.raises(NoAnswerError if limit is None else RefusedError) as raised:
        GridEngineLauncher().submit(job)
    if isinstance(raised.value, RefusedError):
        assert raised.value.limit == limit and "Exiting" not in str(raised.value)
    answers(monkeypatch, {"qsub": "12\n"})
    assert GridEngineLauncher().submit(job) == "12"
    answers(monkeypatch, {"qsub": "what\n"})
    with pytest.raises(NoAnswerError):
        GridEngineLauncher().submit(job)


def test_no_answer_is_no_empty_queue(monkeypatch: pytest.MonkeyPatch) -> None:
    launcher = GridEngineLauncher()
    for answer in ({"qstat": ""}, {"qstat": "<job_info><queue_info>"}, {}):
        answers(monkeypatch, dict(answer))
        with pytest.raises(NoAnswerError):
            launcher.follow(["n"])
    with pytest.raises(NoServiceError, match="qhost: no answer"):
        launcher.nodes(Config())
    with pytest.raises(NoAnswerError):
        launcher.cancel(["7"])
    answers(monkeypatch, {"qdel 7 8": NoAnswerError('root has deleted job 7\ndenied: job "8" does not exist')})
    launcher.cancel(["7", "8"])
