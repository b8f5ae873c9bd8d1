"""What the main job shows on the terminal: its progress from the campaign's folder, and what of Snakemake's output."""

import calendar
import os
import pty
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.support.real_parts import ROOT, environment
from tests.support.terminal import read_to_end

sys.path.insert(0, str(ROOT / "workflow"))

import run
import terminal

from nodeprint.campaign import progress
from nodeprint.judge.outcome import Kind

START = "2026-11-20T10:00:00Z"
NOW = calendar.timegm(time.strptime(START, "%Y-%m-%dT%H:%M:%SZ"))
LOG = f"""\
{START} node-run: node cn01, job 1 on cn01: 2 runs of 3 measurements, 64 CPUs allowed
{START} node-run: run 1 of 2: coherence-cas
cas: 12 of 300 (4 %), 70 s left
2026-11-20T10:01:00Z node-run: run 1 of 2: chase-levels
"""


def test_what_a_node_is_at_is_the_end_of_its_log() -> None:
    assert progress.at_work(LOG, NOW + 75) == progress.Current(1, "chase-levels", 15.0)
    told = progress.at_work(f"{LOG}levels: 1 of 8 (12 %), 40 s left\rlevels: 3 of 8 (37 %), 31 s left   ", NOW + 75)
    assert told == progress.Current(1, "chase-levels", 15.0, 31.0)
    assert progress.at_work(LOG.splitlines()[0], NOW) is None


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


def test_progress_of_a_campaign(folder: Path) -> None:
    jobs = {
        "cn01": job(folder, "cn01", finished=True, outcomes="1\ta\tdone\t0\t12.00\tnative\t\n"),
        "cn02": job(folder, "cn02", log=f"{START} node-run: run 2 of 2: c\n"),  # of a former attempt
        "cn03": job(folder, "cn03"),
    }
    (jobs["cn02"] / "run1").mkdir()
    for name in ("a", "b"):
        (jobs["cn02"] / f"run1/{name}.jsonl.gz").touch()
    campaign = progress.CampaignProgress(folder, jobs, STEPS, PLANNED)
    assert campaign.measured_before() == 2
    assert campaign.unfinished() == ["cn02", "cn03"]
    before = campaign.look()
    assert [len(node.done) for node in before.nodes] == [6, 2, 0]
    assert before.left_s() is None, "nobody knows when the waiting nodes begin"
    assert progress.progress(before) == "1 of 3 nodes, 8 of 18 measurements, 2 nodes not begun"

    moment = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    with (jobs["cn02"] / "node-run.log").open("a") as log:
        log.write(f"{moment} node-run: run 1 of 2: c\nx: 1 of 4 (25 %), 7 s left\n")
    now = campaign.look()
    # a took 12 s where it was measured; b and c are as planned. cn02: 7 + 12 + 20 + 30, cn03 after it: 2 x 62
    assert now.left_s() == pytest.approx(69 + 124)
    assert progress.progress(now) == "1 of 3 nodes, 8 of 18 measurements, 3 min 13 s left, cn02 c, run 1/2"
    assert progress.share(now) == pytest.approx(8 / 18)


def test_a_continued_node_counts_what_is_behind_it_and_what_is_ahead_and_there(folder: Path) -> None:
    alone = job(folder, "n")
    (alone / "run2").mkdir()
    (alone / "run2/a.jsonl.gz").touch()
    campaign = progress.CampaignProgress(folder, {"n": alone}, STEPS, PLANNED)
    (alone / "node-run.log").write_text(f"{START} node-run: run 1 of 2: b\n")
    (node,) = campaign.look().nodes
    assert node.done == {0, 3}
    # b has long taken what was planned, c of this run, b and c of the next
    assert campaign.look().left_s() == pytest.approx(30 + 20 + 30)
    assert progress.progress(campaign.look()) == "2 of 6 measurements, 1 min 20 s left, b, run 1/2"


def test_without_a_plan_no_time_is_foretold(folder: Path) -> None:
    alone = job(folder, "n")
    campaign = progress.CampaignProgress(folder, {"n": alone}, STEPS, {"a": 10.0})
    (alone / "node-run.log").write_text(f"{START} node-run: run 1 of 2: b\n")
    assert progress.progress(campaign.look()) == "1 of 6 measurements, b, run 1/2"


def test_what_was_there_is_said_once() -> None:
    assert terminal.already(0, 1, 6, 1) == ""
    assert terminal.already(3, 1, 6, 1) == "3 of 6 measurements of this node were there already and are kept"
    assert terminal.already(18, 3, 6, 0).startswith("all measurements of these 3 nodes were there already")


@pytest.mark.parametrize(
    "seconds, text", [(3.4, "3 s"), (59.6, "1 min 0 s"), (185, "3 min 5 s"), (1500, "25 min"), (7500, "2 h 5 min")]
)
def test_times_in_words(seconds: float, text: str) -> None:
    assert progress.span(seconds) == text


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
    (folder / "fleet.json").write_text("of a former call")
    steps = run.Steps(folder, progress.CampaignProgress(folder, jobs, STEPS, PLANNED))
    monkeypatch.setattr(progress, "span", lambda seconds: "3 s")
    assert steps.ended() == [] and steps.present()[0] == "measure"
    (jobs["n"] / "status.json").write_text("{}")
    assert steps.ended() == ["measure: 6 of 6 measurements; 3 s"]
    assert steps.present()[0] == "judge and report"
    (folder / "fleet.json").unlink()
    assert steps.ended() == []
    for name in ("fleet.json", "verdict.json"):
        (folder / name).write_text("new")
    assert steps.ended() == ["gather: 3 s", "judge: 3 s"]
    (folder / "fleet.json").write_text("written by the judge, too")
    assert steps.ended() == []


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
    assert sentence.startswith("nodeprint: ") and words[0] in sentence and sentence.endswith("see workflow/run --help")


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
        [sys.executable, "-c", script, ROOT / "workflow"], stderr=slave, check=True,
        env=os.environ | {"TERM": "xterm", "COLUMNS": "80"},
    )  # fmt: skip
    os.close(slave)
    seen = read_to_end(master)
    assert "3 of 3 measurements" in seen and "nodeprint: said" in seen
    assert seen.endswith(("\x1b[2K", "\x1b[?25h")) or "\x1b[2K" in seen.rsplit("judge", 1)[1], "nothing of it stays"


def test_only_what_was_measured_says_how_long_it_takes() -> None:
    cut = "1\ta\tfailed\t3\t2.00\tnative\t\n2\ta\tdone\t0\t3.50\tnative\t\n1\tb\tdone\t0"
    assert progress.seconds_of(cut) == {"a": 3.5}


def test_outcomes_that_a_script_asked_to_fail_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    judged = SimpleNamespace(fails=lambda kinds: kinds == [Kind.FOUND])
    monkeypatch.setattr(run, "read_verdict", lambda campaign: judged)
    assert run.failing_kinds(tmp_path, [Kind.NOT_MEASURED, Kind.FOUND]) == [Kind.FOUND]
    assert run.failing_kinds(tmp_path, []) == []
    assert run.parser().parse_args([]).fail_on == [Kind.FOUND], "what was found is an exit status by default"
