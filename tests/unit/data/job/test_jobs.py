"""A job of a node as arrays: what counts of its record files, and what is said of the others."""

from __future__ import annotations

import gzip
import io
import tarfile
from pathlib import Path

import numpy as np
import pytest

from nodeprint.campaign import job_status
from nodeprint.data.job import jobs
from nodeprint.data.job.jobs import Job, JobMeasurement
from nodeprint.errors import NodeprintError
from tests.support import made_status
from tests.support.made_records import TRAILER, cell, cell_header, header, lines, pair
from tests.support.made_status import run_outcome

CAS = "coherence-cas"


def put(folder: Path, run: int, name: str, *content: dict[str, object]) -> None:
    """Write a record file of a run."""
    path = folder / f"run{run}/{name}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(lines(*content, TRAILER))


@pytest.fixture
def job(tmp_path: Path) -> Path:
    """The folder of a node's second job, which is empty."""
    folder = tmp_path / "job2"
    folder.mkdir()
    return folder


def test_jobs_are_folders_with_a_number_in_the_order_of_numbers(tmp_path: Path) -> None:
    for name in ("job10", "job2", "job0", "job02", "jobs", "2"):
        (tmp_path / name).mkdir()
    (tmp_path / "job3").touch()
    (tmp_path / "job4").symlink_to("job2")
    assert jobs.folders(tmp_path) == [tmp_path / "job2", tmp_path / "job10"]
    assert [jobs.number_of(tmp_path / name) for name in ("job10", "job0", "jobs")] == [10, 0, 0]


@pytest.mark.parametrize(
    ("policy", "directed", "places"),
    [
        ("first", False, [(-1, 0, 1), (-1, 0, 2)]),
        ("second", True, [(-1, 0, 2), (-1, 1, 0)]),
        ("each", False, [(0, 0, 1), (1, 0, 2)]),
    ],
)
def test_a_pair_is_there_once_with_the_home_that_was_asked_for(
    job: Path, policy: str, directed: bool, places: list[tuple[int, int, int]]
) -> None:
    """Where the home follows from the policy it is no place of its own; a direction is one where it was measured."""
    changes = {"home": policy, "cpus": [0, 1, 2]} | ({"directed": True} if directed else {})
    put(job, 1, CAS, header(**changes), pair(1, 0, 0, 40.0), pair(1, 0, 1, 41.0), pair(0, 2, 0, 50.0, home=1))
    measured = jobs.read(job).measured[CAS]
    assert list(zip(*(measured.places[dim].tolist() for dim in ("home", "a", "b")), strict=True)) == places
    near = next(number for number, (_, a, b) in enumerate(places) if {a, b} == {0, 1})
    assert measured.columns["latency_ns"][0, :, near].tolist() == [40.0, 41.0]
    assert np.isnan(measured.columns["latency_ns"][0, 1, 1 - near]), "of the second pass one pair is missing"
    assert measured.columns["pair_home"][0, 0].tolist() == [int({a, b} != {0, 1}) for _, a, b in places]
    assert measured.columns["pair_home"][0, 1, 1 - near] == -1
    assert (measured.pairs, measured.cpus, measured.passes) == (True, [0, 1, 2], (0, 1))


def test_runs_are_rows_in_their_order_also_with_other_pairs_and_passes(job: Path) -> None:
    head = {"cpus": [0, 1, 2], "passes": 6}
    put(job, 1, CAS, header(**head), pair(0, 1, 5, 44.0, flags=["moved"]))
    put(job, 2, CAS, header(run=2, **head), pair(1, 2, 0, 60.0))
    measured = jobs.read(job).measured[CAS]
    assert measured.passes == (0, 5) and measured.numbers == [1, 2]
    assert measured.columns["latency_ns"].tolist()[0][1][0] == 44.0
    assert measured.columns["latency_ns"].tolist()[1][0][1] == 60.0
    assert np.isfinite(measured.columns["latency_ns"]).sum() == 2
    assert measured.columns["flags"].astype(bool).sum() == 1


def test_the_clock_of_a_cpu_is_the_median_before_its_pairs(job: Path) -> None:
    """Of both ends; of an even number the mean of the middle two; what was not seen is not known."""
    clocks = [(0, 1, 3.0, 2.0), (0, 2, 3.4, None), (1, 2, 2.5, None), (3, 0, 0.0, 3.1)]
    measured = [
        pair(a, b) | {"clock_a_ghz": of_a} | ({} if of_b is None else {"clock_b_ghz": of_b})
        for a, b, of_a, of_b in clocks
    ]
    put(job, 1, CAS, header(cpus=[0, 1, 2, 3]), *measured)
    (run,) = jobs.read(job).measured[CAS].runs
    assert run["clock_ghz"] == [pytest.approx(3.1), pytest.approx(2.25), None, None]


def test_pairs_that_linktest_measured_again_have_both_times(job: Path) -> None:
    """Those alone that were the slowest, by their lowest time over passes."""
    again = [
        pair(0, 1, latency_ns=55.0) | {"record": "again", "reason": reason} for reason in ("slowest", "passes_differ")
    ]
    again += [pair(1, 0, latency_ns=9.0) | {"record": "again", "reason": "slowest"}]
    put(
        job,
        1,
        CAS,
        header(cpus=[0, 1, 2]),
        pair(0, 1, 0, 70.0),
        pair(0, 1, 1, 66.0),
        pair(0, 2, 1, 20.0),
        pair(2, 1, 1, 20.0),
        *again,
    )
    (run,) = jobs.read(job).measured[CAS].runs
    assert run["slowest_again"] == [{"a": 0, "b": 1, "first_ns": 66.0, "again_ns": 55.0}]


def test_cells_keep_their_words_and_gaps(job: Path) -> None:
    put(job, 1, "chase-levels", cell_header(cpus=[0, 4]), cell(0, "l2", 0, 4.0), cell(4, "l1", 1, 1.5))
    measured = jobs.read(job).measured["chase-levels"]
    assert (measured.pairs, measured.cpus) == (False, [])
    assert (measured.keys("cpu"), measured.keys("level")) == ([0, 4], ["l2", "l1"])
    assert (measured.axis("cpu").tolist(), measured.axis("level").tolist()) == ([0, 4], ["l1", "l2"])
    grid = measured.grid("latency_ns")
    assert grid.shape == (1, 2, 2, 2) and np.isfinite(grid).sum() == 2
    assert (grid[0, 0, 0, 1], grid[0, 1, 1, 0]) == (4.0, 1.5)
    assert measured.columns["latency_ns"].dtype == np.float32, "of ns"
    assert measured.columns["core_hz"].dtype == np.float64, "which has more digits"


def test_a_run_of_another_kind_is_left_out_and_named(job: Path) -> None:
    put(job, 1, CAS, header(), pair(0, 1))
    put(job, 2, CAS, header(run=2, arguments=["--op", "cas", "--lines", "9"]), pair(0, 1))
    put(job, 3, CAS, header(run=3), pair(0, 1))
    of_job = jobs.read(job)
    assert of_job.measured[CAS].numbers == [1, 3]
    (problem,) = of_job.problems
    assert problem.text == (f"{CAS}, job2/run2: other host, operation or arguments than {CAS}, job2/run1; left out")
    assert (problem.run, problem.names) == (2, (CAS,))


def test_most_of_the_runs_say_what_was_measured(job: Path) -> None:
    put(job, 1, CAS, header(arguments=["--op", "flag1"]), pair(0, 1))
    for run in (2, 3):
        put(job, run, CAS, header(run=run), pair(0, 1))
    of_job = jobs.read(job)
    assert of_job.measured[CAS].numbers == [2, 3]
    assert [problem.run for problem in of_job.problems] == [1]


@pytest.mark.parametrize(
    ("changes", "why"),
    [({"run": 3}, "'run' is 3, not 2"), ({"job": 7}, "'job' is 7, not 1"), ({"host": "x"}, "'host' is x")],
)
def test_a_record_that_was_written_elsewhere_is_no_run(job: Path, changes: dict[str, object], why: str) -> None:
    """As where files of two nodes, jobs or runs were exchanged."""
    put(job, 1, CAS, header(), pair(0, 1))
    put(job, 2, CAS, header(**({"run": 2} | changes)), pair(0, 1))
    put(job, 3, CAS, header(run=3), pair(0, 1))
    of_job = jobs.read(job)
    assert of_job.measured[CAS].numbers == [1, 3]
    (problem,) = of_job.problems
    assert problem.text.startswith(f"{CAS}, job2/run2, line 1: key {why}")
    assert (problem.run, problem.names) == (2, (CAS,))


def test_a_counter_of_another_rate_is_named_and_its_run_counts(job: Path) -> None:
    """More than calibration explains; of two records nobody knows which is right."""
    for run, hz in ((1, 2.3e9), (2, 2.3001e9), (3, 2.5e9)):
        put(job, run, CAS, header(run=run, clock={"source": "tsc", "hz": hz, "step_ns": 0.4}), pair(0, 1))
    of_job = jobs.read(job)
    assert of_job.measured[CAS].numbers == [1, 2, 3]
    (problem,) = of_job.problems
    assert problem.text == f"{CAS}, job2/run3: the counter ran at 2.5 GHz, where most records of the job have 2.3001"
    (job / f"run2/{CAS}.jsonl").unlink()
    assert jobs.read(job).problems == ()


def test_a_job_whose_number_was_changed_keeps_its_records(job: Path) -> None:
    """Where campaigns were merged its folder has another number, and its outcome the one that it was measured with."""
    put(job, 1, CAS, header(), pair(0, 1))
    put(job, 2, CAS, header(run=2), pair(0, 1))
    assert jobs.read(job).measured[CAS].numbers == [1, 2], "without an outcome"
    job_status.write(job, made_status.job_outcome("complete", run_outcome(CAS, 1), run_outcome(CAS, 2), job=1))
    assert jobs.read(job).measured[CAS].numbers == [1, 2]
    job_status.write(job, made_status.job_outcome("complete", run_outcome(CAS, 1), run_outcome(CAS, 2), job=2))
    assert jobs.read(job).measured == {}


def test_records_that_are_gone_are_named_by_run(job: Path) -> None:
    """By the outcome, or by node-run's own list where there is no outcome yet."""
    rows = [run_outcome(name, run) for run in (1, 2) for name in ("b", "a")]
    made_status.put(job, "complete", *rows, run_outcome("c", 2, outcome="failed", exit_code=1, message="broke"))
    put(job, 1, "a", header(), pair(0, 1))
    of_job = jobs.read(job)
    assert [(problem.run, problem.names) for problem in of_job.problems] == [(1, ("b",)), (2, ("a", "b"))]
    assert of_job.problems[1].text == "job2/run2: records of a, b are gone, though they were made"
    assert of_job.untaken == {"c": "broke"}


def test_what_was_not_taken_has_its_reason(job: Path) -> None:
    rows = [
        run_outcome("a", 1, outcome="failed", message="first"),
        run_outcome("a", 2, outcome="failed", message="second"),
        run_outcome("b", 1, outcome="refused", message=""),
        run_outcome("c", 1, outcome="unavailable", message="no mpirun"),
        run_outcome(CAS, 1, outcome="failed", message="once"),
    ]
    made_status.put(job, "partial", *rows)
    put(job, 2, CAS, header(run=2), pair(0, 1))
    put(job, 1, "chase-levels", cell_header(applicable=False, reason="has no NUMA"))
    of_job = jobs.read(job)
    assert of_job.not_applicable == {"c": "no mpirun", "chase-levels": "has no NUMA"}
    assert of_job.untaken == {"a": "first", "b": "refused", "c": "no mpirun", "chase-levels": "has no NUMA"}
    assert of_job.hosts == {"n1", "a"}


def test_a_job_without_values_or_outcome_says_so(job: Path) -> None:
    put(job, 1, CAS, header())
    (job / "status.json").write_text("{")
    of_job = jobs.read(job)
    assert (of_job.number, of_job.status, of_job.measured) == (2, None, {})
    texts = [problem.text for problem in of_job.problems]
    assert texts == [
        "job2/status.json: no outcome of a job can be read in it (Input data was truncated)",
        f"{CAS}, job2: nothing was measured",
    ]
    assert Job(2, None, {}).untaken == {}


def archive(path: Path, *names: str) -> Path:
    """A run's archive with a record file of each name; the file number n measured n ns."""
    with tarfile.open(path, "w:gz") as tar:
        for number, name in enumerate(names, 1):
            text = lines(header(), pair(0, 1, latency_ns=float(number)), TRAILER).encode()
            member = tarfile.TarInfo(f"{name}.jsonl")
            member.size = len(text)
            tar.addfile(member, io.BytesIO(text))
    return path


def latency(measured: JobMeasurement | None) -> float | None:
    """The time of the only pair."""
    return None if measured is None else float(measured.columns["latency_ns"].item())


def test_a_file_has_its_pairs_and_an_archive_those_of_compare_exchange(tmp_path: Path) -> None:
    assert latency(jobs.of_file(archive(tmp_path / "run1.tar.gz", "coherence-a", CAS, "x"))) == 2.0
    first = jobs.of_file(archive(tmp_path / "run2.tar.gz", "coherence-z", "coherence-a"))
    assert (latency(first), first.name if first else "") == (2.0, "coherence-a")
    assert latency(jobs.of_file(archive(tmp_path / "run3.tar.gz"))) is None
    text = lines(header(), pair(0, 1, latency_ns=7.0), TRAILER).encode()
    (tmp_path / "c.jsonl.gz").write_bytes(gzip.compress(text))
    assert latency(jobs.of_file(tmp_path / "c.jsonl.gz")) == 7.0
    (tmp_path / "run4.tar.gz").write_bytes(b"cut")
    with pytest.raises(NodeprintError, match="measure the node again"):
        jobs.of_file(tmp_path / "run4.tar.gz")
