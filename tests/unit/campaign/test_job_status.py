"""The outcome of a job: what is written is read again, and what is no outcome has one answer everywhere."""

from collections.abc import Callable
from pathlib import Path

import pytest
from snakemake_executor_plugin_nodeprint import jobs as slurm_jobs

from nodeprint.campaign import job_status, node_sheet, node_status, preparation
from nodeprint.data.store import packing
from nodeprint.errors import NodeprintError
from nodeprint.settings.config_file import Config
from tests.support import made_status
from tests.support.made_status import job_outcome, run_outcome
from tests.support.schemas import valid_campaign


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    between_nodes = run_outcome("linktest-fabric", 2, outcome="refused", exit_code=3, partition="main", message="no")
    status = job_outcome("partial", run_outcome(), between_nodes, ended="2026-01-01T00:00:00Z", lost=True)
    job_status.write(tmp_path, status)
    assert job_status.read(tmp_path) == status and valid_campaign(tmp_path) == ["status.json"]
    text = (tmp_path / "status.json").read_text()
    assert '"lost"' in text and '"rebooted"' not in text and text.count('"partition"') == 1
    assert job_status.read(tmp_path / "elsewhere") is None


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('{"schema": 1, "node": "a", "outcome": "complete"', "truncated"),
        ("{}", "missing required field `schema`"),
        ("[]", "Expected `object`"),
        ("\x00\x00", "malformed"),
        ("", "truncated"),
    ],
)
def test_what_is_no_outcome_has_one_answer_everywhere(campaign: Callable[..., Path], text: str, why: str) -> None:
    """Of a file that was cut `status`, the verdict, the executor and the next call each had another one."""
    folder = campaign("a", "b")
    (folder / "config.yaml").write_text("launch: slurm\nruns: 2\n")
    job = folder / "nodes/a/job1"
    (job / "status.json").write_text(text)
    with pytest.raises(NodeprintError, match=why):
        job_status.read(job)
    assert job_status.known(job) is None and slurm_jobs.outcome(job) == ""
    node_a, node_b = node_status.read(folder).nodes
    assert (node_a.standing, node_b.standing) == ("failed", "measured") and why in node_a.reason
    of_a, of_b = packing.pack(folder).nodes
    assert why in of_a.reason and (of_b.state, of_b.reason) == ("measured", "")
    settings = Config(results=str(folder.parent), campaign=folder.name, launch="slurm", runs=2)
    preparation.prepare(settings, lambda: node_sheet.read_sheet(folder / "nodes.tsv"), [], {})
    assert not (job / "status.json").exists(), "the next call goes on with the job"


def test_a_partition_of_one_node_does_not_keep_the_job_between_nodes_from_being_complete() -> None:
    runs = [run_outcome(), run_outcome(outcome="unavailable")]
    assert job_status.outcome_of(runs) == "complete"
    assert job_status.outcome_of([*runs, run_outcome(outcome="failed")]) == "partial"
    assert job_status.outcome_of(runs[1:]) == job_status.outcome_of([]) == "failed"
    assert made_status.job_outcome("complete", *runs).reason == ""
