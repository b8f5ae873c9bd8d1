"""The main job on this machine, interrupted by its user, or left by whoever read its output."""

import fcntl
import os
import pty
import select
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from nodeprint.data.format import records
from tests.support.made_records import one_record_file
from tests.support.paced_kernel import PACED, paced  # noqa: F401 (a fixture)
from tests.support.real_parts import environment

pytestmark = [pytest.mark.machine, pytest.mark.usefixtures("paced")]

PASSES = 24


def configured(house: Path, campaign: str, passes: int = PASSES) -> Path:
    """The configuration of a campaign that measures `passes` passes."""
    path = house / f"{campaign}.yaml"
    path.write_text(
        f"campaign: {campaign}\npreset: test\nruns: 1\nmeasure: [coherence-cas]\n"
        f"arguments: {{coherence-cas: --passes {passes} {PACED}}}\n"
    )
    return path


def call(house: Path, campaign: str, passes: int = PASSES) -> subprocess.Popen[str]:
    """A call that measures `passes` passes."""
    path = configured(house, campaign, passes)
    return subprocess.Popen(
        [house / "workflow/run", "--config", path.name],
        cwd=house,
        env=environment(),
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )


def at_work(campaign: Path) -> list[str]:
    """Command lines of processes that name the campaign's folder or work in it."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            words = (entry / "cmdline").read_bytes().decode(errors="replace").replace("\0", " ")
            cwd = (entry / "cwd").readlink()
        except OSError:
            continue
        if not cwd.is_relative_to(campaign.parent.parent):  # another copy's, beside these tests
            continue
        if cwd.is_relative_to(campaign) or f"results/{campaign.name} " in words or f"{campaign.name}.yaml" in words:
            found.append(words)
    return found


@pytest.fixture
def begun(house: Path) -> Iterator[tuple[subprocess.Popen[str], Path]]:
    """A call in the middle of its measurement, and its record file."""
    process = call(house, "interrupted")
    deadline = time.monotonic() + 600
    while not (
        found := [p for p in house.glob("results/interrupted/nodes/*/job1/run1/*.jsonl") if '"pair"' in p.read_text()]
    ):
        assert time.monotonic() < deadline, "nothing was measured in ten minutes"
        assert process.poll() is None, process.communicate()[0]
        time.sleep(0.05)
    yield process, found[0]
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
    process.communicate()


def test_an_interrupted_call_says_what_is_kept_and_is_continued(
    house: Path, begun: tuple[subprocess.Popen[str], Path]
) -> None:
    process, cut = begun
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does
    said = process.communicate(timeout=600)[0]
    assert process.returncode == 130, said
    campaign = house / "results/interrupted"
    sentence = said.splitlines()[-1]
    assert sentence.startswith("nodeprint: interrupted: what was measured is kept in results/interrupted")
    assert "(0 measurements complete, 1 begun); `make run CONFIG=interrupted.yaml` continues it" in sentence
    assert "Traceback" not in said
    assert "Terminating processes" not in said
    assert "Error in rule" not in said
    assert at_work(campaign) == []
    assert not (campaign / "verdict.json").exists(), "nothing is judged that is half measured"
    kept = records.read(cut)
    assert not kept.complete
    measured = list(kept.pairs["latency_ns"])
    assert 0 < len(measured) < PASSES

    assert (again := call(house, "interrupted")).communicate(timeout=300)[0]
    assert again.returncode == 0
    file = one_record_file(cut.parent.parent)
    assert file.complete
    assert len(file.headers) == 2, "the same file, continued once"
    assert list(file.pairs["latency_ns"][: len(measured)]) == measured


@pytest.mark.parametrize("leader", ["make", "shell"])
def test_a_closed_terminal_ends_the_measurement(house: Path, leader: str) -> None:
    """Linux tells the leader of the session alone, and `make` waits for what it called."""
    campaign = house / "results" / leader
    line = f"workflow/run --config {configured(house, leader).name}"
    (house / f"{leader}.mk").write_text(f"run:\n\t@{line}\n")
    words = ["make", "-f", f"{leader}.mk", "run"] if leader == "make" else ["sh", "-c", f"{line}; exit"]
    process, terminal = pty.fork()
    if process == 0:
        os.chdir(house)
        os.execvpe(words[0], words, {**environment(), "TERM": "xterm"})
    reader = threading.Thread(target=drain, args=(terminal, stop := threading.Event()))
    reader.start()
    deadline = time.monotonic() + 600
    while not (found := [p for p in campaign.glob("nodes/*/job1/run1/*.jsonl") if '"pair"' in p.read_text()]):
        assert time.monotonic() < deadline, "nothing was measured in ten minutes"
        time.sleep(0.05)
    stop.set()
    reader.join()
    os.close(terminal)
    while at_work(campaign):
        assert time.monotonic() < deadline, "it goes on measuring"
        time.sleep(0.1)
    os.waitpid(process, 0)
    assert not records.read(found[0]).complete, "it went on to the end"
    assert not (campaign / "verdict.json").exists()
    assert "stopped by SIG" in next(campaign.glob("nodes/*/job1/node-run.log")).read_text()


def drain(terminal: int, stop: threading.Event) -> None:
    """Read what is written to a terminal, which would wait for its reader otherwise."""
    while not stop.is_set():
        if select.select([terminal], [], [], 0.1)[0]:
            os.read(terminal, 1 << 16)


def test_an_interruption_before_measuring_leaves_nothing(house: Path) -> None:
    lock = house / ".snakemake/nodeprint/results%2Fearly.lock"
    lock.parent.mkdir(exist_ok=True, parents=True)
    with lock.open("a") as holder:
        fcntl.flock(holder, fcntl.LOCK_EX)
        process = call(house, "early")
        assert process.stdout is not None
        assert "another call is at work" in process.stdout.readline()
        os.killpg(process.pid, signal.SIGINT)
        said = process.communicate(timeout=300)[0]
    assert process.returncode == 130, said
    assert said.split("\n")[-2:] == ["nodeprint: interrupted before anything was measured", ""]
    assert not (house / "results/early").exists()


def test_a_reader_that_leaves_stops_nothing(house: Path) -> None:
    process = call(house, "unread", passes=3)
    assert process.stdout is not None
    assert process.stdout.readline()
    process.stdout.close()
    assert process.wait(timeout=300) == 0
    campaign = house / "results/unread"
    assert (campaign / "report/cluster.pdf").read_bytes().startswith(b"%PDF")
    assert (campaign / "verdict.json").exists()
