"""What stands between Snakemake and the jobs of nodes: without a scheduler, with jobs and launches that are given."""

import asyncio
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from nodeprint.errors import NodeprintError
from tests.support.real_parts import ROOT

sys.path.insert(0, str(ROOT / "workflow"))
plugin: Any = import_module("snakemake_executor_plugin_nodeprint")
jobs: Any = import_module("snakemake_executor_plugin_nodeprint.jobs")


@pytest.fixture
def executor() -> Any:
    """An executor that keeps what it tells Snakemake in `said`, and checks nothing by itself."""
    of = plugin.Executor.__new__(plugin.Executor)
    of.jobs, of.launches, of.said = jobs, {}, []
    of.report_job_submission = lambda info: of.said.append(("submitted", info))
    of.report_job_success = lambda info: of.said.append(("success", info))
    of.report_job_error = lambda info, msg: of.said.append((msg, info))
    return of


def of_snakemake(**changes: Any) -> SimpleNamespace:
    """A job as Snakemake hands it over."""
    fields = {"output": ["c/nodes/cn01/job1/status.json", "c/other"], "shellcmd": "node-run", "resources": {}}
    return SimpleNamespace(**fields | {"is_group": lambda: False, "attempt": 1, "restart_times": 0} | changes)


def followed(outcome: str, **changes: Any) -> SimpleNamespace:
    """A job that is followed, and what came of its node."""
    node_job = SimpleNamespace(outcome=outcome, why="the node was lost", folder=Path("c/nodes/cn01/job1"))
    return SimpleNamespace(job=of_snakemake(**changes), aux={"job": node_job})


def test_the_job_of_a_node_is_in_the_folder_of_its_first_output(executor: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs, "job_of", lambda *words: words)
    executor.run_job(of_snakemake())
    ((said, info),) = executor.said
    assert said == "submitted" and info.aux["job"] == (Path("c/nodes/cn01/job1"), "node-run", {})
    with pytest.raises(plugin.WorkflowError, match="without --groups"):
        executor.run_job(of_snakemake(is_group=lambda: True))


@pytest.mark.parametrize(
    ("outcome", "attempt", "restarts", "says"),
    [
        ("", 1, 0, None),
        ("complete", 1, 0, "success"),
        ("failed", 1, 3, "success"),
        ("absent", 1, 1, "the node was lost. "),
        ("absent", 2, 1, "success"),
        ("absent", 1, 0, "success"),
    ],
)
def test_a_lost_job_is_an_error_while_snakemake_may_try_it_again(
    executor: Any, monkeypatch: pytest.MonkeyPatch, outcome: str, attempt: int, restarts: int, says: str | None
) -> None:
    settled: list[Path] = []
    monkeypatch.setattr(plugin.lost_jobs, "settle", lambda folder, why: settled.append(folder))
    info = followed(outcome, attempt=attempt, restart_times=restarts)
    assert executor.has_ended(info) is (says is not None)
    assert [said for said, _ in executor.said] == ([] if says is None else [says])
    assert bool(settled) == (outcome == "absent" and says == "success"), "a job that is given up says why"


@pytest.mark.parametrize(
    ("submitting", "cost_s", "pause_s"),
    [(True, 1.0, jobs.LOOK_S), (False, 0.0, jobs.LOOK_S), (False, 0.03, 3.0), (False, 100.0, jobs.LONGEST_LOOK_S)],
)
def test_to_look_takes_a_hundredth_of_the_time(executor: Any, submitting: bool, cost_s: float, pause_s: float) -> None:
    steps: list[str] = []
    launch = SimpleNamespace(
        is_submitting=submitting, cost_s=cost_s, take=steps.append, step=lambda: steps.append("step")
    )
    executor.launches = {Path("c"): launch}
    waiting, ended = followed(""), followed("complete")
    for info in (waiting, ended):
        info.aux["job"].campaign = Path("c")

    async def active() -> list[Any]:
        return [info async for info in executor.check_active_jobs([waiting, ended])]

    assert asyncio.run(active()) == [waiting]
    assert steps == [waiting.aux["job"], ended.aux["job"], "step"]
    assert executor.next_seconds_between_status_checks == pytest.approx(pause_s)


def test_bad_input_ends_the_workflow_with_its_sentence(executor: Any) -> None:
    def refuse() -> None:
        raise NodeprintError("is wrong", where="config.yaml")

    executor.launches = {Path("c"): SimpleNamespace(step=refuse)}

    async def active() -> list[Any]:
        return [info async for info in executor.check_active_jobs([])]

    with pytest.raises(plugin.WorkflowError, match=r"^config.yaml: is wrong$"):
        asyncio.run(active())


def test_a_campaign_has_one_launch_which_is_canceled(executor: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[str] = []
    make: Callable[[Path], SimpleNamespace] = lambda folder: SimpleNamespace(cancel=lambda: done.append(str(folder)))  # noqa: E731
    monkeypatch.setattr(jobs, "Launch", make)
    assert executor.launch(Path("c")) is executor.launch(Path("c")) is not executor.launch(Path("d"))
    executor.cancel_jobs([])
    assert done == ["c", "d"]
