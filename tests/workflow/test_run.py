"""The main job: its options, its steps from the campaign's folder, how it ends and what it says then."""

import fcntl
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.support.real_parts import ROOT

sys.path.insert(0, str(ROOT / "workflow"))

import call_options
import run
from signals import Interrupted

from nodeprint.campaign import node_sheet, node_status, preparation, progress, recheck
from nodeprint.errors import NodeprintError
from nodeprint.judge.outcome import Kind
from nodeprint.machine import other_load


def job(campaign: Path, node: str, log: str = "", outcomes: str = "", finished: bool = False) -> Path:
    folder = campaign / "nodes" / node / "job1"
    folder.mkdir(parents=True)
    (folder / "node-run.log").write_text(log)
    (folder / "outcomes.tsv").write_text(outcomes)
    if finished:
        (folder / "status.json").write_text("{}")
    return folder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A campaign of three measurements in two runs."""
    (tmp_path / "plan.tsv").write_text("".join(f"{name}\tkernel\t--op x\n" for name in ("a", "b", "c")))
    return tmp_path


PLANNED = {"a": 10.0, "b": 20.0, "c": 30.0}
STEPS = [(run, name) for run in (1, 2) for name in PLANNED]


def test_steps_are_seen_by_the_files_they_write(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    jobs = {"n": job(folder, "n")}
    (folder / "nodes.tsv").write_text("node\nn\n")
    (folder / "store").mkdir()
    (folder / "store/fleet.json").write_text("of a former call")
    steps = run.Steps(folder, progress.CampaignProgress(folder, jobs, STEPS, PLANNED))
    monkeypatch.setattr(progress, "span", lambda seconds: "3 s")
    assert steps.ended() == [] and steps.present()[0] == "measure"
    for number, name in STEPS:
        (jobs["n"] / f"run{number}").mkdir(exist_ok=True)
        (jobs["n"] / f"run{number}/{name}.jsonl.gz").touch()
    (jobs["n"] / "status.json").write_text("{}")
    assert steps.ended() == ["measure: 6 of 6 measurements; 3 s"]
    assert steps.present()[0] == "judge and report"
    (folder / "store/fleet.json").unlink()
    assert steps.ended() == []
    for name in ("store/fleet.json", "verdict.json"):
        (folder / name).write_text("new")
    assert steps.ended() == ["gather: 3 s", "judge: 3 s"]
    (folder / "store/fleet.json").write_text("written by the judge, too")
    assert steps.ended() == []


def test_a_recheck_is_a_step_of_its_own(tmp_path: Path) -> None:
    """What was counted before it stays counted."""
    nodes = [node_sheet.Node(name, name) for name in ("a", "b", "c")]
    node_sheet.write_sheet(tmp_path / "nodes.tsv", nodes)
    (tmp_path / "config.yaml").write_text("launch: ansible\n")
    (tmp_path / "plan.tsv").write_text("x\tcoherence\t--op cas\t2\n")
    jobs = {node.node: job(tmp_path, node.node, finished=True) for node in nodes}
    steps = run.Steps(tmp_path, progress.CampaignProgress(tmp_path, jobs, [(1, "x"), (2, "x")], {}))
    assert steps.present()[0] == "judge and report"
    (tmp_path / "launch").mkdir()
    recheck.begin(tmp_path, 1, ["a", "c"])
    (tmp_path / "nodes/a/job2").mkdir()  # Snakemake has begun with it before this looks
    (tmp_path / "nodes/a/job2/node-run.log").write_text("2026-11-27T00:47:23Z node-run: run 1 of 2: x\n")
    assert steps.ended() == []
    assert steps.present() == ("measure again", "0 of 2 nodes, 0 of 4 measurements, a x, run 1/2", 0.0)
    for name in ("a", "c"):
        (tmp_path / f"nodes/{name}/job2").mkdir(exist_ok=True)
        (tmp_path / f"nodes/{name}/job2/status.json").write_text("{}")
    assert steps.ended()[0].startswith("measure again: 2 of 2 nodes, 0 of 4 measurements, 4 not taken; ")


def test_a_wrong_call_does_not_wait_for_another(tmp_path: Path) -> None:
    """Another call, which may take hours, holds the campaign's lock."""
    (tmp_path / "config.yaml").write_text("campaign: c\nacceptance: limits.yaml\nmeasure: [coherence-cas]\n")
    (tmp_path / "limits.yaml").touch()
    sheet = tmp_path / "results/c/nodes.tsv"
    sheet.parent.mkdir(parents=True)
    node_sheet.write_sheet(sheet, [node_sheet.Node("here", "here", cpus=2)])
    lock = tmp_path / ".snakemake/nodeprint/results%2Fc.lock"
    lock.parent.mkdir(parents=True)
    with lock.open("w") as holder:
        fcntl.flock(holder, fcntl.LOCK_EX)
        words = [sys.executable, str(ROOT / "workflow/run.py"), "--config", "config.yaml", "--again", "there"]
        done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, timeout=100, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "nodeprint: NODES: no node there in this campaign; did you mean here? its nodes are here\n"


def test_outcomes_that_a_script_asked_to_fail_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    judged = SimpleNamespace(fails=lambda kinds: kinds == [Kind.FOUND])
    monkeypatch.setattr(run, "read_verdict", lambda campaign: judged)
    assert run.failing_kinds(tmp_path, [Kind.NOT_MEASURED, Kind.FOUND]) == [Kind.FOUND]
    assert run.failing_kinds(tmp_path, []) == []
    assert call_options.parser().parse_args([]).fail_on == [Kind.FOUND], "what was found is an exit status by default"


Make = Callable[..., run.Call]


@pytest.fixture
def call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Make:
    """`call("launch: slurm", ...)`: a call of the campaign results/c with these lines of the configuration."""
    monkeypatch.chdir(tmp_path)

    def make(*lines: str) -> run.Call:
        text = "campaign: c\nmeasure: [coherence-cas]\n" + "".join(f"{line}\n" for line in lines)
        Path("config.yaml").write_text(text)
        return run.Call(call_options.parser().parse_args(["--config", "config.yaml"]))

    return make


@pytest.mark.parametrize(("value", "verbose"), [(None, False), ("", False), ("0", False), ("1", True)])
def test_a_verbose_call_is_asked_for(
    call: Make, monkeypatch: pytest.MonkeyPatch, value: str | None, verbose: bool
) -> None:
    monkeypatch.delenv("VERBOSE", raising=False)
    if value is not None:
        monkeypatch.setenv("VERBOSE", value)
    assert call().screen.verbose is verbose


SAID = {
    "fault": "nodeprint: it was cut. Not finished: n; `make run CONFIG=config.yaml` tries it again\n",
    "found": "nodeprint: exit status 3: there are outcomes that --fail-on names (found)\n",
    "unfinished": "nodeprint: exit status 1. Not finished: n; `make run CONFIG=config.yaml` tries it again\n",
}


@pytest.mark.parametrize(
    ("failure", "shows", "kinds", "unfinished", "code", "says"),
    [
        ("", "exit 0", [], "", 0, ""),
        ("", "exit 4", [], "", 1, ""),
        ("it was cut", "exit 0", [Kind.FOUND], "n", 1, SAID["fault"]),
        ("", "exit 0", [Kind.FOUND], "n", 3, SAID["found"]),
        ("", "exit 0", [], "n", 1, SAID["unfinished"]),
    ],
)
def test_a_call_ends_with_what_it_shows(
    call: Make,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    failure: str,
    shows: str,
    kinds: list[Kind],
    unfinished: str,
    code: int,
    says: str,
) -> None:
    """What failed counts more than what was found, and that more than what is not finished."""
    made = call()
    show = lambda words, **how: subprocess.Popen(["sh", "-c", f"echo shown; {shows}"], **how)  # noqa: E731
    monkeypatch.setattr(run, "start", show)
    monkeypatch.setattr(run, "failing_kinds", lambda campaign, asked: kinds)
    standing = SimpleNamespace(unfinished=lambda: unfinished)
    monkeypatch.setattr(node_status, "read", lambda campaign: standing)
    assert made.result(failure) == code
    assert capfd.readouterr() == ("shown\n", says)


@pytest.mark.parametrize(
    ("failures", "rebooted", "writes", "code", "discovered"),
    [
        ([""], [], False, "result()", [""]),
        (["it was cut"], [], True, "result(it was cut)", [""]),
        (["it was cut"], [], False, 1, [""]),
        (["it was cut", ""], ["a"], False, "result()", ["", ""]),
    ],
)
def test_a_fault_leaves_no_former_verdict_as_if_it_were_new(
    call: Make,
    monkeypatch: pytest.MonkeyPatch,
    failures: list[str],
    rebooted: list[str],
    writes: bool,
    code: int | str,
    discovered: list[str],
) -> None:
    """Without a new report nothing is shown. What was booted again meanwhile is measured in a new job, at once."""
    made, asked, left = call(), list[str](), list(failures)
    pdf = made.campaign / "report/cluster.pdf"
    pdf.parent.mkdir(parents=True)
    pdf.touch()
    os.utime(pdf, (1, 1))

    def measure() -> str:
        if writes:
            pdf.touch()
        return left.pop(0)

    monkeypatch.setattr(made, "take_lock", lambda: None)

    def discover(again: str) -> int:
        asked.append(again)
        return 0

    monkeypatch.setattr(made, "discover", discover)
    monkeypatch.setattr(made, "measure", measure)
    monkeypatch.setattr(preparation, "rebooted", lambda campaign: rebooted)
    monkeypatch.setattr(made, "result", lambda failure: f"result({failure})")
    assert made.run() == code
    assert asked == discovered and not left
    monkeypatch.setattr(made, "discover", lambda again: 2)
    assert made.run() == 2, "what discover refuses is not measured"


def test_a_report_alone_measures_nothing(call: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    made, called = call(), list[str]()
    made.report_only = True
    monkeypatch.setattr(made, "take_lock", lambda: None)

    def nodeprint(name: str, *rest: object) -> int:
        called.append(name)
        return int(name == "report")

    monkeypatch.setattr(run, "nodeprint", nodeprint)
    with pytest.raises(NodeprintError, match="could not be judged or the report not written"):
        made.run()
    assert called == ["discover", "judge", "report"]
    monkeypatch.setattr(run, "nodeprint", lambda name, *rest: 0)
    results = list[str]()
    monkeypatch.setattr(made, "result", results.append)
    made.run()
    assert results == [""]


def test_another_call_is_waited_for_and_said_once(
    call: Make, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    made, waited = call(), list[float]()
    path = Path(".snakemake/nodeprint/results%2Fc.lock")
    path.parent.mkdir(parents=True)
    path.write_text("pid 7 on login since then\n" * 9)
    with path.open() as holder:
        fcntl.flock(holder, fcntl.LOCK_EX)

        def pause(seconds: float) -> None:
            waited.append(seconds)
            if len(waited) == 3:
                fcntl.flock(holder, fcntl.LOCK_UN)

        monkeypatch.setattr(run, "pause", pause)
        made.take_lock()
    (said,) = [line for line in capfd.readouterr().err.splitlines() if "another call" in line]
    assert said.startswith("nodeprint: another call is at work on results/c (pid 7 on login since then")
    (holder_line,) = path.read_text().splitlines()
    assert holder_line.startswith(f"pid {os.getpid()} on "), "whoever held it before is gone"


@pytest.mark.parametrize(
    ("end", "lines", "failure", "words"),
    [
        ("exit 0", ["launch: ansible", "inventory: hosts"], "", "profiles/default"),
        ("exit 1", ["launch: slurm"], "not everything could be done", "profiles/slurm --jobs 500"),
        ("kill -9 $$", ["launch: slurm"], "Snakemake was killed (signal 9)", "profiles/slurm --jobs 500"),
    ],
)
def test_snakemake_does_what_is_missing(
    call: Make, monkeypatch: pytest.MonkeyPatch, end: str, lines: list[str], failure: str, words: str
) -> None:
    Path("hosts").touch()
    made = call(*lines)
    program = Path("bin/snakemake")
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\necho "$*" >words\necho "$PYTHONPATH" >path\necho "slurm: said"\n{end}\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent.absolute()}:{os.environ['PATH']}")
    monkeypatch.setenv("PYTHONPATH", "/of/the/site")
    node_sheet.write_sheet(made.campaign / "nodes.tsv", [node_sheet.Node("a", "a", cpus=2)])
    (made.campaign / "plan.tsv").write_text("x\tcoherence\t--op cas\t2\n")
    (made.campaign / "config.yaml").write_text(Path("config.yaml").read_text())
    said = made.measure()
    log = made.campaign / "logs/run.log"
    assert said == (f"{failure}; all that was written meanwhile is in {log}" if failure else "")
    assert log.read_text() == "slurm: said\n" and made.snakemake is None
    assert (
        Path("words").read_text().endswith(f"--workflow-profile {ROOT / 'profiles'}{words.removeprefix('profiles')}\n")
    )
    assert Path("path").read_text() == f"{ROOT / 'workflow'}:/of/the/site\n"


def test_lines_and_steps_of_a_log_are_shown(call: Make, capfd: pytest.CaptureFixture[str]) -> None:
    """All lines of a verbose call; what else was at work is kept when nothing is measured any more."""
    made, kept = call(), list[object]()
    log: Any = SimpleNamespace(new_lines=lambda: ["slurm: said", "rule gather:"])
    steps: Any = SimpleNamespace(
        ended=lambda: ["measure: done"], measuring=True, watched="progress", present=lambda: ("judge", "1 s", None)
    )
    made.keep_other_load = kept.append  # type: ignore[method-assign,assignment]
    made.watch(log, steps)
    assert capfd.readouterr().err == "slurm: said\nnodeprint: measure: done\n"
    assert kept == []
    made.screen.verbose, steps.measuring = True, False
    made.watch(log, steps)
    assert capfd.readouterr().err == "slurm: said\nrule gather:\nnodeprint: measure: done\n"
    assert kept == ["progress"]


@pytest.mark.parametrize("busy", [True, False])
def test_a_busy_machine_is_said_before_it_is_measured(
    call: Make, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], busy: bool
) -> None:
    made, kept = call(), list[object]()
    load = SimpleNamespace(is_busy=busy, taken=1.5, text=lambda verb: f"x {verb} all")
    monkeypatch.setattr(other_load, "now", lambda: load)
    read = iter(("before", "after"))
    monkeypatch.setattr(other_load, "readings", lambda: next(read))
    monkeypatch.setattr(other_load, "between", lambda before, after: f"{before} to {after}")
    monkeypatch.setattr(other_load, "keep", lambda load, job: kept.append((load, job)))
    expected = list[float]()
    made.look_around(SimpleNamespace(assume_load=lambda busy_cpus, cpus: expected.append(busy_cpus)))  # type: ignore[arg-type]
    assert expected == [1.5]
    said = "nodeprint: this machine is busy: x takes all; end it or wait, as busy CPUs measure slower; "
    assert capfd.readouterr().err == (f"{said}the figures will be marked\n" if busy else "")
    for _ in range(2):
        made.keep_other_load(SimpleNamespace(jobs={"a": Path("job1")}))  # type: ignore[arg-type]
    assert kept == [("before to after", Path("job1"))], "once"


@pytest.mark.parametrize(
    ("lines", "number", "sent", "says"),
    [
        ([], signal.SIGINT, "SIGINT", ""),
        (["launch: slurm"], signal.SIGINT, "SIGINT", " Its Slurm jobs were canceled: "),
        (["launch: slurm"], signal.SIGHUP, "SIGKILL", " Its Slurm jobs go on, and the next call follows them."),
        ([], signal.SIGHUP, "SIGINT", ""),
        (["launch: ansible", "inventory: hosts"], signal.SIGINT, "SIGINT", " The rest stays on the nodes: "),
    ],
)
def test_an_interrupted_call_says_what_goes_on(
    call: Make, monkeypatch: pytest.MonkeyPatch, lines: list[str], number: int, sent: str, says: str
) -> None:
    """Slurm's jobs outlive a terminal that is closed; a Ctrl-C ends them."""
    Path("hosts").touch()
    made, killed = call(*lines), list[tuple[int, int]]()
    assert made.interrupted(number) == "interrupted before anything was measured"
    made.snakemake = SimpleNamespace(pid=7, wait=lambda: 0)  # type: ignore[assignment]
    monkeypatch.setattr(os, "killpg", lambda group, with_signal: killed.append((group, with_signal)))
    run1 = made.campaign / "nodes/a/job1/run1"
    run1.mkdir(parents=True)
    (run1 / "x.jsonl.gz").touch()
    (run1 / "y.jsonl").touch()
    text = made.interrupted(number)
    assert killed == [(7, signal.Signals[sent])]
    kept = "what was measured is kept in results/c (1 measurements complete, 1 begun)"
    assert text.startswith(f"interrupted: {kept}; `make run CONFIG=config.yaml` continues it.{says}")
    assert bool(says) or text.endswith("continues it.")


@pytest.mark.parametrize(
    ("fault", "code", "says"),
    [
        (None, 0, ""),
        (Interrupted(signal.SIGTERM), 143, "nodeprint: interrupted before anything was measured\n"),
        (NodeprintError("is wrong", where="x"), 1, "nodeprint: x: is wrong\n"),
        (OSError(28, "No space left", "y"), 1, "nodeprint: y: No space left; check the path, its file system and free"),
        (OSError("lost"), 1, "nodeprint: input or output: "),
    ],
)
def test_every_fault_is_a_sentence_and_an_exit_status(
    call: Make,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    fault: BaseException | None,
    code: int,
    says: str,
) -> None:
    call()

    def go(of_call: run.Call) -> int:
        if fault is not None:
            raise fault
        return 0

    monkeypatch.setattr(run, "block", lambda: None)
    monkeypatch.setattr(run.Call, "run", go)
    monkeypatch.setattr(run.Call, "check", lambda of_call: None)
    monkeypatch.setattr(sys, "argv", ["run", "--config", "config.yaml"])
    assert run.main() == code
    assert capfd.readouterr().err.startswith(says)
    monkeypatch.setattr(sys, "argv", ["run", "--config", "absent.yaml"])
    assert run.main() == 2


def test_a_step_takes_the_time_since_the_last(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    moment = [100.0]
    monkeypatch.setattr(run, "time", SimpleNamespace(monotonic=lambda: moment[0]))
    steps = run.Steps(folder, progress.CampaignProgress(folder, {}, STEPS, PLANNED))
    moment[0] = 107.0
    assert steps.present() == ("judge and report", "7 s", None)
    assert (steps.span(), steps.span()) == ("7 s", "0 s")
