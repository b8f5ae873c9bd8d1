"""What all tests share: their set-up, fixtures, and that the machine stays as it is."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
from collections.abc import Callable, Generator, Iterator
from pathlib import Path

# Before numpy is loaded, here and in whatever the tests start: with two processes on two cores, threads of a linear
# algebra library only wait for each other.
os.environ["OPENBLAS_NUM_THREADS"] = "1"

import pytest
from hypothesis import HealthCheck, settings

from tests.support import own_processes
from tests.support.made_records import TRAILER, header, lines, pair
from tests.support.real_parts import ROOT, copy_programs, need
from tests.support.untouched import WATCHED, condition

# No test depends on how fast or quiet the machine is, nor on the day: examples are the same in every run but those of
# `make fuzz`.
_any_machine = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("fuzz", _any_machine)
settings.register_profile("repeatable", _any_machine, derandomize=True)
settings.load_profile("repeatable")

# What nohup and a shell's background start ignores these and hands that down; tests send them to what they start.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)

# Handed down to all processes that the tests start; signals go to these alone.
os.environ.update(own_processes.MARK)
os.kill, os.killpg = own_processes.guarded(os.kill), own_processes.guarded(os.killpg)


@pytest.fixture(autouse=True)
def _machine_untouched() -> Iterator[None]:
    """No test changes anything of the machine outside its own folders. (Some 30 calls of lstat.)"""
    before = condition(WATCHED)
    yield
    after = condition(WATCHED)
    assert [str(path) for path in before if after[path] != before[path]] == [], "this test changed the machine"


@pytest.fixture
def two_cpus() -> None:
    """For tests that measure a pair."""
    need(cpus=2)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """A test that fails with a virtual cluster shows the end of what its daemons logged."""
    report = yield
    if report.failed:
        folders = {path for path in getattr(item, "funcargs", {}).values() if isinstance(path, Path)}
        for log in sorted(log for folder in folders for log in (folder / "log").glob("*.log")):
            if last := log.read_text(errors="replace").splitlines()[-12:]:
                report.sections.append((log.name, "\n".join(last)))
    return report


@pytest.fixture(scope="session")
def house(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A working copy of the project with the environment and the kernels of this one, so that results stay apart."""
    copy = tmp_path_factory.mktemp("house")
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout.splitlines()
    for name in listed:
        (copy / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, copy / name)
    copy_programs(copy / "kernels/build")
    (copy / ".venv").symlink_to(ROOT / ".venv")
    return copy


@pytest.fixture
def data() -> Path:
    """Published matrices and captured machines; tests that use them run where NODEPRINT_DATA names them."""
    folder = os.environ.get("NODEPRINT_DATA")
    if not folder:
        pytest.skip(
            "this compares with published matrices and captured machines, which are not part of the project; where you "
            "have them, NODEPRINT_DATA names their folder: nothing is wrong without them"
        )
    return Path(folder)


@pytest.fixture
def campaign(tmp_path: Path) -> Callable[..., Path]:
    """`campaign(nodes...)` makes a campaign of two-CPU nodes, two runs of two passes each; returns its folder."""

    def make(*nodes: str) -> Path:
        folder = tmp_path / "results" / "main"
        rows = ["node\thost\tjob\tpartition\tcpus\track\tswitch\tstate\treason\tmeasure"]
        for node in nodes:
            rows.append(f"{node}\t{node}\t1\t\t2\t\t\there\t\tyes")
            job = folder / "nodes" / node / "job1"
            for run in (1, 2):
                (job / f"run{run}").mkdir(parents=True)
                passes = (pair(0, 1, number, 50.0 + run + number / 10) for number in (0, 1))
                text = lines(header(host=node, run=run), *passes, TRAILER)
                (job / f"run{run}" / "coherence-cas.jsonl").write_text(text)
            done = [
                {
                    "name": "coherence-cas",
                    "run": run,
                    "outcome": "done",
                    "exit_code": 0,
                    "seconds": 0.1,
                    "pinned_by": "native",
                    "message": "",
                }
                for run in (1, 2)
            ]
            status = {
                "schema": 1,
                "node": node,
                "host": node,
                "job": 1,
                "started": "2026-01-01T00:00:00Z",
                "ended": "2026-01-01T00:00:10Z",
                "runs": 2,
                "outcome": "complete",
                "cpus_allowed": 2,
                "cpus_expected": 2,
                "simulated": False,
                "measurements": done,
            }
            (job / "status.json").write_text(json.dumps(status))
        (folder / "nodes.tsv").write_text("\n".join(rows) + "\n")
        (folder / "plan.tsv").write_text("coherence-cas\tcoherence\t--op cas\n")
        return folder

    return make
