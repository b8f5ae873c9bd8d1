"""Other programs beside a measurement: who takes how much of which CPU, before, in the last lines, at the figures."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from nodeprint.errors import NodeprintError
from nodeprint.machine import other_load
from nodeprint.machine.other_load import OtherLoad, Process
from nodeprint.report import text, verdict_files
from tests.support import printed, verdicts

TICKS_A_S = os.sysconf("SC_CLK_TCK")


def thread(
    proc: Path, pid: int, *, tid: int = 0, name: str = "stress", ticks: int = 0, cpu: int = 0, parent: int = 1
) -> None:
    """A thread as /proc shows it."""
    folder = proc / f"{pid}/task/{tid or pid}"
    folder.mkdir(parents=True, exist_ok=True)
    fields = ["R", str(parent), *["0"] * 9, str(ticks), "0", *["0"] * 23, str(cpu), "0"]
    (folder / "stat").write_text(f"{tid or pid} ({name}) {' '.join(fields)}\n")


def process(proc: Path, pid: int, *, ticks: int = 0, children: int = 0, parent: int = 1) -> None:
    """A process of one thread as /proc shows it; `children` is the time of its children that ended."""
    thread(proc, pid, ticks=ticks, parent=parent)
    fields = ["R", str(parent), *["0"] * 9, str(ticks), "0", str(children), "0", *["0"] * 21, "0", "0"]
    (proc / f"{pid}/stat").write_text(f"{pid} (a) b) {' '.join(fields)}\n")


@pytest.fixture
def proc(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine of our process (17) and others, and a clock that goes 2 s between two readings."""
    monkeypatch.setattr("os.getpid", lambda: 17)
    times = iter(range(0, 100, 2))
    monkeypatch.setattr("time.monotonic", lambda: float(next(times)))
    folder = tmp_path / "proc"
    for pid, parent in ((17, 1), (18, 17), (19, 18)):
        thread(folder, pid, parent=parent, name="ours")
    for pid, name in ((30, "a) b"), (31, "two threads"), (32, "quiet")):
        thread(folder, pid, name=name)
    thread(folder, 31, tid=41, name="worker", cpu=3)
    return folder


def test_others_are_named_with_their_share_and_cpus(proc: Path) -> None:
    before = other_load.readings(proc)
    thread(proc, 19, parent=18, name="ours", ticks=2 * TICKS_A_S, cpu=1)
    thread(proc, 30, name="a) b", ticks=TICKS_A_S)
    thread(proc, 31, name="two threads", ticks=2 * TICKS_A_S, cpu=2)
    thread(proc, 31, tid=41, name="worker", ticks=2 * TICKS_A_S, cpu=3)
    thread(proc, 32, name="quiet", ticks=TICKS_A_S // 20)
    thread(proc, 33, name="new", ticks=TICKS_A_S // 2, cpu=5)
    load = other_load.between(before, other_load.readings(proc))
    assert load == OtherLoad(
        2.0,
        (
            Process("two threads", 31, 2.0, (0, 2, 3)),
            Process("a) b", 30, 0.5, (0,)),
            Process("new", 33, 0.25, (5,)),
        ),
    )
    assert load.text("takes") == (
        "two threads (pid 31) takes 67% of CPU 0,2-3, a) b (pid 30) takes 50% of CPU 0, new (pid 33) takes 25% of CPU 5"
    )


def test_programs_that_ended_meanwhile_are_counted_together(proc: Path) -> None:
    """A make whose compilers come and go, one process that ended after an hour, and our own kernels."""
    process(proc, 1, children=5000)
    process(proc, 17, children=100)
    process(proc, 18, ticks=50, parent=17)
    process(proc, 50, children=300)
    process(proc, 51, ticks=3600 * TICKS_A_S, children=70)
    before = other_load.readings(proc)
    for pid in (18, 51):
        shutil.rmtree(proc / str(pid))
    process(proc, 17, children=100 + 50 + 2 * TICKS_A_S)  # 18 and its kernels
    process(proc, 50, children=300 + TICKS_A_S)
    process(proc, 1, children=5000 + 70 + 3601 * TICKS_A_S)
    load = other_load.between(before, other_load.readings(proc))
    assert load == OtherLoad(2.0, (), 1.0)
    assert load.is_busy
    assert load.text("took") == "100% of a CPU went to programs that ended during the measurement"
    assert OtherLoad(2.0, (Process("make", 50, 0.1, (1,)),), 2.5).text("takes") == (
        "make (pid 50) takes 10% of CPU 1, 250% of a CPU went to programs that ended during the measurement"
    )
    assert not OtherLoad(2.0, (), 0.049).is_busy


def test_processes_that_nobody_waits_for_are_no_load(proc: Path) -> None:
    process(proc, 51, ticks=3600 * TICKS_A_S)
    before = other_load.readings(proc)
    shutil.rmtree(proc / "51")
    assert other_load.between(before, other_load.readings(proc)) == OtherLoad(2.0, ())


def test_many_short_programs_of_this_machine_are_seen() -> None:
    """A shell of another family that starts programs, none of which lives for long."""
    command = (
        "import os\nif os.fork(): os._exit(0)\nprint(os.getpid(), flush=True)\nwhile True: os.system('date >/dev/null')"
    )
    with subprocess.Popen([sys.executable, "-c", command], stdout=subprocess.PIPE, start_new_session=True) as started:
        assert started.stdout is not None
        pid = int(started.stdout.readline())
        started.wait()
        load = other_load.now(2)
        os.kill(pid, 9)
    assert load.ended > other_load.LEAST_SHARE


def test_many_are_counted() -> None:
    load = OtherLoad(1.0, tuple(Process("p", pid, 0.5, (pid, 9)) for pid in range(5)))
    assert load.text("took").endswith("p (pid 2) took 50% of a CPU, on CPU 2,9, and 2 more")


@pytest.fixture
def spinning() -> Iterator[int]:
    """The pid of a process of another family that takes a CPU."""
    command = "import os\nif os.fork(): os._exit(0)\nprint(os.getpid(), flush=True)\nwhile True: pass"
    with subprocess.Popen([sys.executable, "-c", command], stdout=subprocess.PIPE, start_new_session=True) as process:
        assert process.stdout is not None
        pid = int(process.stdout.readline())
        process.wait()
        yield pid
        os.kill(pid, 9)


def test_a_busy_process_of_this_machine_is_seen(spinning: int) -> None:
    (process,) = [process for process in other_load.now(0.5).processes if process.pid == spinning]
    assert process.share > 0.1 and process.cpus


def test_what_is_kept_is_of_the_newest_job(tmp_path: Path) -> None:
    load = OtherLoad(30.0, (Process("stress", 4711, 0.98, (1,)),))
    assert other_load.kept(tmp_path) is None
    other_load.keep(load, tmp_path / "job2")
    assert other_load.kept(tmp_path) == load
    other_load.keep(OtherLoad(30.0, ()), tmp_path / "job10")
    assert other_load.kept(tmp_path) == OtherLoad(30.0, ())
    (tmp_path / "job10/other_load.json").write_text("{")
    with pytest.raises(NodeprintError, match=r"job10/other_load\.json: "):
        other_load.kept(tmp_path)


def test_the_last_lines_say_it(tmp_path: Path) -> None:
    judged = verdicts.verdict({"vm": verdicts.node(classes=verdicts.classes())})
    verdict_files.write(judged, tmp_path)
    assert "Other programs" not in printed.campaign(tmp_path)
    other_load.keep(OtherLoad(30.0, (Process("stress", 4711, 0.98, (1,)),)), tmp_path / "nodes/vm/job1")
    expected = "other programs ran while vm was measured: stress (pid 4711) took 98% of CPU 1"
    assert f"{text.sentence(expected)}; `make run NODES=vm`" in printed.campaign(tmp_path)
    assert expected in text.other_programs(tmp_path, "vm")


def test_many_slurm_jobs_are_counted() -> None:
    load = other_load.OtherLoad(1.0, (), jobs=tuple(map(str, range(60))), others=2.0)
    assert load.text("took").startswith("Slurm jobs 0, 1, 2, 3, 4 and 55 more ran on the node, ")
