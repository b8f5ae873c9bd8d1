"""Six nodes that failed for six reasons: each has its own on the terminal, on the pages, in every file and in the
status."""

from __future__ import annotations

import gzip
import json
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from nodeprint.campaign import lost_jobs
from tests.support.command_line import call
from tests.support.made_records import TRAILER, header, lines, pair
from tests.support.real_parts import need
from tests.support.run_archives import tar_of

#: By node what its reason has, and no other's.
REASONS = {
    "cut": "run1.tar.gz of job1: the archive is cut",
    "lost": "NODE_FAIL, the node was lost",
    "refusing": "CPU 7 is not allowed",
    "slow": "TIMEOUT, its time limit of 10 minutes",
    "small": "OUT_OF_MEMORY, its processes were killed",
    "swapped": "written on host elsewhere, not on swapped",
}


@pytest.fixture
def folder(campaign: Callable[..., Path]) -> Path:
    """A campaign of two measured nodes and one of each failure, judged and reported."""
    folder = campaign("a", "b", *REASONS)
    (folder / "config.yaml").write_text("launch: slurm\nruns: 2\n")
    jobs = {node: folder / "nodes" / node / "job1" for node in REASONS}
    for node in ("cut", "lost", "refusing", "slow", "small"):
        for path in jobs[node].glob("run*"):
            shutil.rmtree(path)
    for node in ("lost", "slow", "small"):
        lost_jobs.settle(jobs[node], f"Slurm job 9: {REASONS[node]}")
    status = json.loads((jobs["refusing"] / "status.json").read_text())
    for measurement in status["measurements"]:
        measurement |= {"outcome": "refused", "exit_code": 3, "message": REASONS["refusing"]}
    (jobs["refusing"] / "status.json").write_text(json.dumps(status | {"outcome": "failed"}))
    for run in (1, 2):
        other_host = lines(header(host="elsewhere", run=run), pair(0, 1), pair(0, 1, 1), TRAILER)
        (jobs["swapped"] / f"run{run}/coherence-cas.jsonl").write_text(other_host)
        text = lines(header(host="cut", run=run), pair(0, 1), TRAILER)
        archive = gzip.compress(tar_of({"coherence-cas": text}, run))
        (jobs["cut"] / f"run{run}.tar.gz").write_bytes(archive[: len(archive) // 4])
    for command in (("judge", folder), ("report", folder), ("protocol", folder, "--to", folder / "signed")):
        assert call(*command) == 0
    return folder


def test_every_output_has_the_reason_of_every_node(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    need("pdftotext")
    capsys.readouterr()
    call("show", folder)
    terminal = capsys.readouterr().out
    assert call("status", folder) == 1
    status = capsys.readouterr().out
    outputs = {
        "terminal": terminal,
        "status": status,
        "cluster.pdf": pdf(folder / "report/cluster.pdf"),
        "cluster.html": (folder / "report/cluster.html").read_text(),
        "JUnit": (folder / "verdict.xml").read_text(),
        "verdict.json": (folder / "verdict.json").read_text(),
        "protocol": pdf(folder / "signed/protocol.pdf"),
    }
    for output, text in outputs.items():
        flat = re.sub(r"\s+", " ", text)
        lacking = [node for node, reason in REASONS.items() if reason not in flat]
        assert not lacking, f"{output}: {lacking}"
    for node, reason in REASONS.items():
        # a row of the table, with the lines that it is wrapped into
        (row,) = re.findall(rf"^    {node} {{2,}}(.*(?:\n    (?!\w+ {{2,}}).*)*)", terminal, re.MULTILINE)
        assert reason in " ".join(row.split()), "a row of the table each"
    assert status.splitlines()[0] == "main: 8 nodes: 6 failed, 2 measured"
    verdict = json.loads(outputs["verdict.json"])
    assert {node for node, found in verdict["nodes"].items() if found["outcome"] == "NOT MEASURED"} == set(REASONS)


def pdf(path: Path) -> str:
    return subprocess.run(["pdftotext", "-raw", path, "-"], capture_output=True, text=True, check=True).stdout
