"""What pages say of a node's jobs is kept with the packed fleet, and is the same without the records."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from nodeprint.campaign import derived, node_sheet
from nodeprint.campaign.run_files import Problem
from nodeprint.data.format import records
from nodeprint.data.job import jobs
from nodeprint.data.job.jobs import Job, JobMeasurement
from nodeprint.data.store import packed_jobs, packing
from nodeprint.errors import NodeprintError
from nodeprint.machine.topology.presets import preset
from nodeprint.report import readings
from nodeprint.simulate import Plan, write


def made(places: list[int], values: list[list[list[float]]], **header: object) -> JobMeasurement:
    told = {"kernel": "chase", "operation": "curve", "cells": {"values": {"latency_ns": "ns"}}, "cpus": [0], **header}
    runs = tuple({"run": n, "start_time": f"2026-01-0{n}T00:00:00Z"} for n in range(1, len(values) + 1))
    columns = {"latency_ns": np.array(values), "flags": np.zeros(np.shape(values), dtype=np.uint8)}
    columns["flags"][0, 0, 0] = 1
    return JobMeasurement("chase-levels", told, runs, (0, 1), {"size_bytes": np.array(places)}, {}, columns)


@pytest.fixture(scope="module")
def campaign(tmp_path_factory: pytest.TempPathFactory) -> Path:
    plan = Plan(preset("naples-2x32"), nodes=2, jobs=2, runs=2, passes=2, cells=True)
    folder = write(plan, tmp_path_factory.mktemp("packed-jobs") / "main")
    packing.pack(folder)
    return folder


def test_job_has_medians_of_runs_and_what_was_flagged() -> None:
    runs = [[[10.0, 30.0], [10.0, np.nan]], [[11.0, 33.0], [11.0, 33.0]]]
    kept = packed_jobs.packed_job(Job(2, None, {"chase-levels": made([4, 8], runs)}, problems=(Problem("lost"),)))
    measured = kept.measured["chase-levels"]
    assert [(run.number, run.median) for run in measured.runs] == [(1, 20.0), (2, 22.0)]
    assert measured.passes == 2 and measured.unit == "ns" and measured.flagged == 1 / 8
    assert measured.between_runs == pytest.approx(2**0.5 * 0.0476, rel=1e-2)  # a run is 10 % above the other
    assert (kept.number, kept.problems, "cpus" in measured.header) == (2, ("lost",), False)


def test_curves_come_back_as_they_were_measured(tmp_path: Path) -> None:
    measured = made([4, 8], [[[1.5, np.nan], [2.5, 3.5]]])
    (tmp_path / packed_jobs.FOLDER).mkdir()
    packed_jobs.write(tmp_path, "n1", packed_jobs.NodeJobs((packed_jobs.packed_job(Job(1, None, {"c": measured})),)))
    (back,) = packed_jobs.read(tmp_path, "n1").jobs[0].curves
    np.testing.assert_array_equal(back.columns["latency_ns"], measured.columns["latency_ns"])
    np.testing.assert_array_equal(back.grid("latency_ns"), measured.grid("latency_ns"))


def test_every_curve_with_a_sentence_is_kept() -> None:
    assert set(packed_jobs.CURVES) == readings.KERNELS


def test_packed_fleet_has_the_jobs_of_its_records(campaign: Path) -> None:
    for name in ("node000", "node001"):
        kept = packed_jobs.read(campaign / "store/fleet", name)
        read = tuple(packed_jobs.packed_job(jobs.read(path)) for path in jobs.folders(campaign / "nodes" / name))
        assert [job.number for job in kept.jobs] == [1, 2] and kept.machine is not None
        for job, of_records in zip(kept.jobs, read, strict=True):
            assert job.measured.keys() == of_records.measured.keys()
            assert job.measured["coherence-cas"] == of_records.measured["coherence-cas"]


def test_jobs_of_nodes_that_are_the_same_are_taken_along(campaign: Path, tmp_path: Path) -> None:
    folder = tmp_path / "main"
    shutil.copytree(campaign, folder)
    sheet = node_sheet.read_sheet(folder / "nodes.tsv")
    shutil.copytree(folder / "nodes/node000", folder / "nodes/more")
    node_sheet.write_sheet(folder / "nodes.tsv", [*sheet, replace(sheet[0], node="more")])
    packing.pack(folder)
    assert [len(packed_jobs.read(folder / "store/fleet", name).jobs) for name in ("more", "node000", "node001")] == [
        2,
        2,
        2,
    ]


def test_a_fleet_that_was_packed_without_jobs_is_packed_again(
    campaign: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "main"
    shutil.copytree(campaign, folder)
    with monkeypatch.context() as patch:
        patch.setattr(records, "read", lambda *_: pytest.fail("read again"))
        packing.pack(folder)
    shutil.rmtree(folder / "store/fleet/jobs")
    with monkeypatch.context() as patch:
        patch.setattr(derived, "SCHEMA", derived.SCHEMA + 1)
        packing.pack(folder)
    assert len(packed_jobs.read(folder / "store/fleet", "node001").jobs) == 2


@pytest.mark.parametrize("name", ["n" * 253, "../../etc/passwd", "\ud800", "a\0b"])
def test_any_name_has_a_file_of_its_own(name: str, tmp_path: Path) -> None:
    path = packed_jobs.file_of(tmp_path, name)
    assert path.parent == tmp_path / packed_jobs.FOLDER and len(path.name) < 256
    assert packed_jobs.read(tmp_path, name) == packed_jobs.NodeJobs()


def test_damaged_jobs_are_named(tmp_path: Path) -> None:
    (tmp_path / packed_jobs.FOLDER).mkdir()
    packed_jobs.file_of(tmp_path, "n1").write_text("{")
    with pytest.raises(NodeprintError, match=r"n1\.json: not a node's jobs"):
        packed_jobs.read(tmp_path, "n1")
