"""A record that was cut off or is a copy of another is no run, and is named."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from nodeprint.data.job import jobs
from nodeprint.data.job.jobs import Job
from nodeprint.data.job.whole_runs import whole_runs
from tests.support.made_records import TRAILER, header, lines, pair

NAME = "coherence-cas"
PAIRS = [(a, b) for b in range(10) for a in range(b)]


def _write(node: Path, job: int, run: int, *, seed: int, start: str, ns: float = 50.0, end: bool = True) -> Path:
    path = node / f"job{job}/run{run}/{NAME}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    head = header(job=job, run=run, seed=seed, start_time=start, cpus=list(range(10)), passes=1)
    measured = [pair(a, b, latency_ns=ns + 0.01 * number) for number, (a, b) in enumerate(PAIRS)]
    path.write_text(lines(head, *measured, *([TRAILER] if end else [])))
    return path


def _node(folder: Path, job_count: int = 1) -> Path:
    for job in range(1, job_count + 1):
        for run in range(1, 4):
            start = f"2026-01-0{job}T00:0{run}:00Z"
            _write(folder, job, run, seed=10 * job + run, start=start, ns=50 + 0.1 * run + job)
    return folder


def _whole(node: Path) -> tuple[list[Job], list[str]]:
    of_jobs = whole_runs([jobs.read(job) for job in jobs.folders(node)])
    return of_jobs, [problem.text for job in of_jobs for problem in job.problems]


def test_whole_runs_stay_as_they_are(tmp_path: Path) -> None:
    of_jobs, problems = _whole(_node(tmp_path, 2))
    assert [job.measured[NAME].numbers for job in of_jobs] == [[1, 2, 3], [1, 2, 3]]
    assert problems == []


def test_a_record_without_its_end_is_no_run(tmp_path: Path) -> None:
    """All of its pairs are there: nothing else would say so."""
    node = _node(tmp_path)
    _write(node, 1, 2, seed=12, start="2026-01-01T00:02:00Z", ns=50.7, end=False)
    (job,), problems = _whole(node)
    assert job.measured[NAME].numbers == [1, 3]
    assert job.measured[NAME].columns["latency_ns"].shape[0] == 2
    assert problems == [f"{NAME}, job1/run2: its record has no end, as it was cut off; it counts as no run"]


@pytest.mark.parametrize(("job", "run"), [(1, 2), (2, 3)])
def test_a_file_copied_over_another_is_no_run(tmp_path: Path, job: int, run: int) -> None:
    node = _node(tmp_path, 2)
    shutil.copy(node / f"job1/run1/{NAME}.jsonl", node / f"job{job}/run{run}/{NAME}.jsonl")
    of_jobs, problems = _whole(node)
    assert [len(of.measured[NAME].runs) for of in of_jobs] == [3 - (job == 1), 3 - (job == 2)]
    assert problems == [f"{NAME}, job{job}/run{run}, line 1: key 'run' is 1, not {run}; it was written elsewhere"]


@pytest.mark.parametrize("same", ["seed and start", "values"])
def test_a_copy_is_seen_by_what_no_two_runs_have_in_common(tmp_path: Path, same: str) -> None:
    node = _node(tmp_path)
    if same == "values":
        _write(node, 1, 3, seed=99, start="2026-01-01T09:00:00Z", ns=50.1 + 1)
    else:
        _write(node, 1, 3, seed=11, start="2026-01-01T00:01:00Z", ns=77.0)
    _, problems = _whole(node)
    assert problems == [f"{NAME}, job1/run3: it is a copy of job1/run1; it counts as no run"]


def test_a_job_of_copies_has_one_run_and_of_cut_runs_no_measurement(tmp_path: Path) -> None:
    copies, cut = _node(tmp_path / "copies"), _node(tmp_path / "cut")
    for run in (2, 3):
        shutil.copy(copies / f"job1/run1/{NAME}.jsonl", copies / f"job1/run{run}/{NAME}.jsonl")
    for run in (1, 2, 3):
        _write(cut, 1, run, seed=run, start=f"2026-01-01T00:0{run}:00Z", ns=50 + run, end=False)
    assert [len(job.measured[NAME].runs) for job in _whole(copies)[0]] == [1]
    assert [dict(job.measured) for job in _whole(cut)[0]] == [{}]


@pytest.mark.parametrize(("figures", "copies"), [(32, 0), (33, 1)])
def test_few_equal_figures_may_be_chance(tmp_path: Path, figures: int, copies: int) -> None:
    """A coarse clock makes a handful of equal times; all seven columns of a pair count where they have figures."""
    for run in (1, 2):
        path = tmp_path / f"job1/run{run}/{NAME}.jsonl"
        path.parent.mkdir(parents=True)
        of_cells = {"cells": {"dims": ["cpu"], "values": {"latency_ns": "ns"}}, "kernel": "chase"}
        values = [{"record": "cell", "cpu": cpu, "pass": 0, "latency_ns": 5.0, "flags": []} for cpu in range(figures)]
        path.write_text(lines(header(run=run, seed=run, cpus=list(range(figures))) | of_cells, *values, TRAILER))
    assert len(_whole(tmp_path)[1]) == copies


def test_runs_without_a_seed_are_no_copies_by_it(tmp_path: Path) -> None:
    """Imported runs have none, and begin in one second."""
    for run in (1, 2):
        _write(tmp_path, 1, run, seed=0, start="2026-01-01T00:00:00Z", ns=50.0 + run)
    assert _whole(tmp_path)[1] == []
