"""The guard around Snakemake's Slurm executor: its own class, with a squeue that does not answer or has forgotten."""

import asyncio
import os
import sys
import time
from collections.abc import AsyncIterator
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import snakemake_executor_plugin_slurm as plugin

from .conftest import ROOT

sys.path.insert(0, str(ROOT / "workflow/launch"))
guard: Any = import_module("executor")


class Reports:
    """What an executor needs here, with a check that finds `found` (job to success) and drops the rest if asked to."""

    def __init__(self, found: dict[str, bool], drops: bool) -> None:
        self.found, self.drops = found, drops
        self.reported: list[tuple[str, str]] = []

    def report_job_success(self, job: Any) -> None:
        self.reported.append((job.name, "success"))

    def report_job_error(self, job: Any, msg: str = "") -> None:
        self.reported.append((job.name, f"error {msg}"))

    async def check_active_jobs(self, active_jobs: list[Any]) -> AsyncIterator[Any]:
        for job in active_jobs:
            if job.name in self.found:
                self.report_job_success(job) if self.found[job.name] else self.report_job_error(job, msg="TIMEOUT")
            elif not self.drops:
                yield job


def jobs(folder: Path, *names: str) -> list[Any]:
    return [SimpleNamespace(name=name, job=SimpleNamespace(output=[folder / name])) for name in names]


def left(executor: Any, active: list[Any]) -> list[str]:
    async def all_of() -> list[str]:
        return [job.name async for job in executor.check_active_jobs(active)]

    return asyncio.run(all_of())


@pytest.mark.parametrize("drops", [True, False])
def test_no_job_is_lost_and_what_is_long_done_is_ended(tmp_path: Path, drops: bool) -> None:
    class Guarded(Reports):
        pass

    guard.guard(Guarded)
    guard.guard(Guarded)
    executor = Guarded({"good": True, "bad": False}, drops)
    (tmp_path / "old").touch()
    os.utime(tmp_path / "old", (time.time() - 400, time.time() - 400))
    (tmp_path / "new").touch()
    assert left(executor, jobs(tmp_path, "good", "bad", "waits", "old", "new")) == ["waits", "new"]
    assert executor.reported == [("good", "success"), ("bad", "error TIMEOUT"), ("old", "success")]
    assert "report_job_success" not in vars(executor)


@pytest.mark.parametrize("guarded", [True, False])
def test_the_plugin_itself_loses_its_jobs_where_squeue_does_not_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, guarded: bool
) -> None:
    """Where a newer plugin keeps them, the guard can go."""
    for name in ("squeue", "scontrol"):
        (tmp_path / name).write_text(
            "#!/bin/sh\necho 'slurm_load_jobs error: Unable to contact slurm controller' >&2; exit 1\n"
        )
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")

    class Limiter:
        async def __aenter__(self) -> None: ...
        async def __aexit__(self, *_: object) -> None: ...

    class Executor:
        status_rate_limiter = Limiter()
        run_uuid = "x"
        _status_query_failures = _status_query_calls = 0
        logger = SimpleNamespace(**dict.fromkeys(("debug", "info", "warning"), lambda *_: None))
        workflow = SimpleNamespace(
            executor_settings=SimpleNamespace(init_seconds_before_status_checks=1, status_attempts=1)
        )
        report_job_success = report_job_error = None
        check_active_jobs = plugin.Executor.check_active_jobs

        def __init__(self) -> None:
            self._status_query_cycle_rows: list[object] = []

        def get_status_command(self) -> str:
            return "squeue"

    Executor.report_job_success = Executor.report_job_error = lambda self, job: None  # type: ignore[assignment]
    if guarded:
        guard.guard(Executor)
    found = [SimpleNamespace(name="a", external_jobid="7", aux={}, job=SimpleNamespace(output=[tmp_path / "a"]))]
    assert left(Executor(), found) == (["a"] if guarded else [])
