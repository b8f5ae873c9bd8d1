"""Whatever the files of one node contain, it costs that node alone."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nodeprint.campaign import run_files
from nodeprint.cli.shared import judge_and_write as judge
from nodeprint.data.format import records
from nodeprint.data.job import jobs
from nodeprint.data.store import packed_node, packing, store
from nodeprint.judge.outcome import Outcome
from nodeprint.machine.topology.presets import preset
from nodeprint.settings.config import read_plan, steps
from nodeprint.simulate.survey import survey

Make = Callable[..., Path]


def altered(job: Path, **changes: object) -> None:
    """Change keys of the first run in a status.json."""
    path = job / "status.json"
    status = json.loads(path.read_text())
    status["measurements"][0] |= changes
    path.write_text(json.dumps(status))


@pytest.mark.parametrize("changes", [{"run": 10**23}, {"run": 10**9}, {"seconds": 1e300}])
def test_an_absurd_number_of_an_outcome_makes_its_node_invalid_and_no_other(
    campaign: Make, changes: dict[str, object]
) -> None:
    folder = campaign("n1", "n2", "n3")
    altered(folder / "nodes/n2/job1", **changes)
    verdict = judge(folder)
    (reason,) = verdict.nodes["n2"].reasons
    assert verdict.nodes["n2"].outcome is Outcome.INVALID
    assert "job1/status.json" in reason.detail and f"$.measurements[0].{next(iter(changes))}" in reason.detail
    assert Outcome.INVALID not in (verdict.nodes["n1"].outcome, verdict.nodes["n3"].outcome)


@pytest.mark.parametrize("name", ["job" + "9" * 25, "job1000000000", "job٣"])
def test_a_folder_whose_number_no_job_has_is_none(campaign: Make, name: str) -> None:
    folder = campaign("n1", "n2", "n3")
    (folder / "nodes/n2" / name / "run1").mkdir(parents=True)
    assert [path.name for path in jobs.folders(folder / "nodes/n2")] == ["job1"]
    assert packing.pack(folder).nodes[1].unusable == ()


def test_runs_that_no_job_makes_are_not_read(tmp_path: Path) -> None:
    (tmp_path / "outcomes.tsv").write_text(f"{'9' * 5000}\ta\tdone\n1000000000\ta\tdone\n2\ta\tdone\n")
    assert run_files.lost(tmp_path) == [(2, "a")]
    assert len(steps(read_plan(f"a\tk\t-x\t{10**8}\nb\tk\t-x\t{'9' * 5000}\n", 2))) == 1002


ERRORS = [OverflowError("too large"), KeyError("cpu"), MemoryError(), RecursionError()]


@pytest.mark.parametrize("error", ERRORS)
def test_a_record_that_its_reader_does_not_expect_costs_one_run(
    campaign: Make, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    folder = campaign("n1", "n2", "n3")
    real = records.read

    def fails(path: Path, *more: Any) -> records.Records:
        if path.match("n2/job1/run1/*"):
            raise error
        return real(path, *more)

    monkeypatch.setattr(records, "read", fails)
    fleet = packing.pack(folder)
    assert fleet.nodes[1].quality[0].startswith("coherence-cas, job1/run1: has content that nodeprint does not")
    assert [fleet.pairs[0].node.tolist().count(number) for number in range(3)] == [2, 1, 2]
    assert (fleet.nodes[0].quality, fleet.nodes[2].quality) == ((), ())


@pytest.mark.parametrize("error", ERRORS)
def test_a_survey_that_its_readers_do_not_expect_costs_one_node(
    campaign: Make, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    folder = campaign("n1", "n2", "n3")
    for name in ("n1", "n2", "n3"):
        (folder / f"nodes/{name}/job1/survey.tar.gz").write_bytes(survey(preset("rome-2x64"), name, {}))
    real = store.tree

    def fails(node_dir: Path, problems: list[str]) -> Any:
        if node_dir.name == "n2":
            raise error
        return real(node_dir, problems)

    monkeypatch.setattr(store, "tree", fails)
    fleet = packing.pack(folder)
    assert fleet.nodes[1].unusable[0].startswith("survey.tar.gz of job1 has content that nodeprint does not expect (")
    assert (fleet.nodes[0].unusable, fleet.nodes[2].unusable) == ((), ())


def test_an_error_beyond_the_readers_costs_one_node(campaign: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = campaign("n1", "n2", "n3")
    real = packed_node.from_jobs

    def fails(path: Path, number: int, made_of: str, row: Any, *more: Any) -> Any:
        if row.node == "n2":
            raise ZeroDivisionError("division by zero")
        return real(path, number, made_of, row, *more)

    monkeypatch.setattr(packed_node, "from_jobs", fails)
    verdict = judge(folder)
    assert verdict.nodes["n2"].outcome is Outcome.INVALID
    assert verdict.nodes["n2"].reasons[0].detail.startswith("nodes/n2 has content that nodeprint does not expect (Zero")
    assert Outcome.INVALID not in (verdict.nodes["n1"].outcome, verdict.nodes["n3"].outcome)
