"""What the main job shows on the terminal: its progress from the campaign's folder, and what of Snakemake's output."""

import fcntl
import os
import pty
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.support.real_parts import ROOT, environment
from tests.support.terminal import read_to_end

sys.path.insert(0, str(ROOT / "workflow"))

import run
import terminal

from nodeprint.campaign import node_sheet, progress, recheck
from nodeprint.judge.outcome import Kind
from nodeprint.settings import config as configuration


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


def test_what_was_there_is_said_once() -> None:
    assert terminal.already(0, 1, 6, 1, "make run") == ""
    assert (
        terminal.already(3, 1, 6, 1, "make run") == "3 of 6 measurements of this node were there already and are kept"
    )
    assert terminal.already(18, 3, 6, 0, "make run CONFIG=q.yaml") == (
        "all measurements of these 3 nodes were there already; `make run CONFIG=q.yaml NODES=a,b` measures nodes again"
    )


@pytest.mark.parametrize(
    "line, shown",
    [
        ("node-run: run 1 of 2: coherence-cas", False),
        ("node-run: node vm, job 1 on vm: 2 runs of 7 measurements, 2 CPUs allowed", False),
        ("node-run: complete: /x/nodes/vm/job1/status.json", False),
        ("Select jobs to execute...", False),
        ("    log: results/t2/logs/gather.log", False),
        ("cas: 12 of 300 (4 %), 70 s left", False),
        ("node-run: chase-latency refused with exit code 3: chase: no memory on node 1", True),
        ("node-run: waiting: another node-run measures vm", True),
        ("slurm: 3 of 3 nodes came back in 7 s", True),
        ("nodeprint: x.yaml: presets: unknown key", True),
    ],
)
def test_lines_that_are_shown(line: str, shown: bool) -> None:
    assert terminal.is_shown(line) is shown


def test_a_log_is_read_while_another_writes_it(tmp_path: Path) -> None:
    log = terminal.Log(tmp_path / "logs/run.log")
    os.write(log.descriptor, b"nodeprint: one\nslurm: t")
    assert log.new_lines() == ["nodeprint: one"]
    os.write(log.descriptor, b"wo\n\x1b[2J\xff\n")
    assert log.new_lines() == ["slurm: two", "?[2J\ufffd"]
    assert log.new_lines() == []
    assert terminal.Log(tmp_path / "logs/run.log").new_lines() == [], "a new call has a new log"


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


def test_a_preset_of_the_call_stands_in_place_of_the_configurations(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All else of the site's file stays; a preset that there is not is refused before anything is done."""
    monkeypatch.chdir(tmp_path)
    Path("my site.yaml").write_text("campaign: c\npreset: thorough\nruns: 3\nmeasure: [coherence-cas]\n")
    call = run.Call(run.parser().parse_args(["--config", "my site.yaml", "--preset", "test"]))
    assert (call.config.preset, call.config.runs, call.config.campaign) == ("test", 3, "c")
    assert configuration.load(call.config_file) == call.config, "what discover and Snakemake read"
    with pytest.raises(SystemExit) as ended:
        run.parser().parse_args(["--preset", "fast"])
    assert ended.value.code == 2


@pytest.mark.parametrize(
    ("words", "call"),
    [
        ([], "make run"),
        (["--config", "./config/config.yaml"], "make run"),
        (["--config", "q.yaml", "--again", "cn01"], "make run CONFIG=q.yaml"),
        (["--preset", "quick"], "make run PRESET=quick"),
        (
            ["--config", "my site.yaml", "--fail-on", "not-same,invalid"],
            "make run CONFIG='my site.yaml' FAIL_ON=not-same,invalid",
        ),
    ],
)
def test_a_call_is_continued_by_its_own_words(words: list[str], call: str) -> None:
    """Without NODES, which would begin another job."""
    assert run.call_words(run.parser().parse_args(words)) == call


@pytest.mark.parametrize(
    "words",
    [
        ("--config",),
        ("--nonsense",),
        ("--again",),
        ("--conf", "x.yaml"),
        ("--fail-on", "weather"),
        ("--fail-on", ""),
        ("--again", " "),
    ],
)
def test_bad_options_get_one_sentence(words: tuple[str, ...]) -> None:
    done = subprocess.run(
        [ROOT / "workflow/run", *words], env=environment(), capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 2
    assert done.stdout == ""
    (sentence,) = done.stderr.splitlines()
    assert sentence.startswith("nodeprint: ") and sentence.endswith("see workflow/run --help")
    assert sentence.count(words[0]) == 1


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
    assert done.stderr == "nodeprint: NODES: no node there in this campaign; did you mean here?\n"


def test_progress_lines_are_few_where_there_is_no_terminal(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    moment = [0.0]
    monkeypatch.setattr(terminal, "time", SimpleNamespace(monotonic=lambda: moment[0]))
    screen = terminal.Screen(verbose=False)
    for second in range(8 * 3600):
        moment[0] = 1000.0 + second
        screen.show("measure", f"{second} of 28800", second / 28800)
        screen.show("gather", f"{second} s")
    lines = capfd.readouterr().err.splitlines()
    assert 20 < len(lines) < 150
    assert lines[0] == "nodeprint: measure: 10 of 28800"
    assert all("gather" not in line for line in lines)


def test_on_a_terminal_one_line_is_redrawn() -> None:
    script = """
import sys; sys.path.insert(0, sys.argv[1])
import terminal
screen = terminal.Screen(verbose=False)
for part in range(4):
    screen.show("measure", f"{part} of 3 measurements", part / 3)
screen.say("nodeprint: said")
screen.show("judge", "1 s")
screen.clear()
"""
    master, slave = pty.openpty()
    subprocess.run(
        [sys.executable, "-c", script, ROOT / "workflow"],
        stderr=slave,
        check=True,
        env=os.environ | {"TERM": "xterm", "COLUMNS": "80"},
    )
    os.close(slave)
    seen = read_to_end(master)
    assert "3 of 3 measurements" in seen and "nodeprint: said" in seen
    assert seen.endswith(("\x1b[2K", "\x1b[?25h")) or "\x1b[2K" in seen.rsplit("judge", 1)[1], "nothing of it stays"


def test_outcomes_that_a_script_asked_to_fail_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    judged = SimpleNamespace(fails=lambda kinds: kinds == [Kind.FOUND])
    monkeypatch.setattr(run, "read_verdict", lambda campaign: judged)
    assert run.failing_kinds(tmp_path, [Kind.NOT_MEASURED, Kind.FOUND]) == [Kind.FOUND]
    assert run.failing_kinds(tmp_path, []) == []
    assert run.parser().parse_args([]).fail_on == [Kind.FOUND], "what was found is an exit status by default"
