"""Bundles: packed, read back, and tolerant of what is wrong with single files."""

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

from nodeprint import bundle, fleet, packed, topology
from nodeprint.errors import NodeprintError
from nodeprint.simulate.survey import survey
from nodeprint.topology.presets import preset

from .conftest import TRAILER, cell, cell_header, header, lines, pair

Make = Callable[..., Path]


def test_dimensions_units_and_both_sides(campaign: Make) -> None:
    node = campaign("n1") / "nodes" / "n1"
    data = bundle.load(node).jobs[0].measurements["coherence-cas"]
    assert dict(data.sizes) == {"run": 2, "pass": 2, "home": 1, "a": 2, "b": 2}
    latency = data["latency_ns"]
    assert latency.attrs["units"] == "ns"
    np.testing.assert_allclose(latency.sel({"run": 2, "pass": 1, "a": 0, "b": 1}), 52.1, rtol=1e-6)
    np.testing.assert_array_equal(latency, latency.transpose("run", "pass", "home", "b", "a"))
    assert np.isnan(latency.sel(a=0, b=0)).all()


def test_packed_reads_as_the_records(campaign: Make) -> None:
    node = campaign("n1") / "nodes" / "n1"
    before = bundle.load(node)
    bundle.pack(node)
    after = bundle.load(node)
    xr.testing.assert_identical(
        before.jobs[0].measurements["coherence-cas"], after.jobs[0].measurements["coherence-cas"]
    )
    assert after.jobs[0].status == before.jobs[0].status
    assert after.jobs[0].header("coherence-cas")["operation"] == "cas"
    assert after.host == "n1"


def test_labels_are_packed_and_made_anew_by_other_rules(campaign: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    node = campaign("n1") / "nodes" / "n1"
    (node / "job1/survey.tar.gz").write_bytes(survey(preset("rome-2x64"), "n1", {}))
    labels = bundle.load(node).topology
    assert labels is not None and len(labels.groups("ccx")) == 32
    bundle.pack(node)
    with monkeypatch.context() as patch:
        patch.setattr(bundle, "open_tree", lambda _: pytest.fail("the survey was read"))
        assert bundle.load(node).topology == labels
    monkeypatch.setattr(topology, "labelled_by", lambda: "other rules")
    assert bundle.load(node).labels is None
    assert bundle.load(node).topology == labels


def test_a_fleet_is_packed_anew_by_other_rules(campaign: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = campaign("n1")
    (folder / "nodes/n1/job1/survey.tar.gz").write_bytes(survey(preset("rome-2x64"), "n1", {}))

    def written() -> int:
        packed.pack(folder)
        return (folder / "packed/index.json").stat().st_mtime_ns

    first = written()
    assert written() == first
    with monkeypatch.context() as patch:
        patch.setattr(packed, "labelled_by", lambda: "other rules")
        second = written()
        assert second > first
        assert written() == second
    assert written() > second


def test_newer_records_win_over_the_packed_file(campaign: Make) -> None:
    node = campaign("n1") / "nodes" / "n1"
    bundle.pack(node)
    packed = node / "node.nc"
    record = node / "job1/run2/coherence-cas.jsonl"
    record.write_text(lines(header(run=2), pair(0, 1, latency_ns=99.0)))
    os.utime(record, ns=(packed.stat().st_mtime_ns + 10**9,) * 2)
    assert (
        float(bundle.load(node).jobs[0].measurements["coherence-cas"]["latency_ns"].sel(run=2, a=0, b=1)[0, 0]) == 99.0
    )


def test_one_garbled_file_costs_only_itself(campaign: Make) -> None:
    node = campaign("n1") / "nodes" / "n1"
    (node / "job1/run1/coherence-cas.jsonl").write_text("hello\n")
    found = bundle.load(node)
    assert list(found.jobs[0].measurements["coherence-cas"]["run"]) == [2]
    assert any("run1" in problem and "line 1" in problem for problem in found.problems)


def test_a_node_whose_records_are_all_garbled_has_none_and_says_so(campaign: Make) -> None:
    folder = campaign("n1", "n2")
    for run in (1, 2):
        (folder / f"nodes/n1/job1/run{run}/coherence-cas.jsonl").write_text("x\n")
    n1, n2 = fleet.gather(folder).nodes
    assert (n1.state, n2.state) == ("not measured", "measured")
    assert n1.reason.startswith("coherence-cas, job1/run1, line 1: ")


def test_home_is_a_dimension_where_the_policy_makes_it_one(campaign: Make) -> None:
    node = campaign("n1") / "nodes" / "n1"
    text = lines(header(home="each"), pair(0, 1, home=0), pair(0, 1, home=1, latency_ns=80.0))
    for run in (1, 2):
        (node / f"job1/run{run}/coherence-cas.jsonl").write_text(text.replace('"run": 1', f'"run": {run}'))
    data = bundle.load(node).jobs[0].measurements["coherence-cas"]
    assert list(data["home"]) == [0, 1]
    assert float(data["latency_ns"].sel(run=1, home=1, a=0, b=1)[0]) == 80.0


def test_cells_have_their_own_dimensions_packed_or_not(campaign: Make) -> None:
    node = campaign("n1") / "nodes" / "n1"
    for run in (1, 2):
        measured = (cell(cpu, level, 0, cpu + 5.0 + run, core_hz=3e9 + 1) for cpu in (0, 2) for level in ("l2", "l1"))
        (node / f"job1/run{run}/chase-levels.jsonl").write_text(lines(cell_header(run=run), *measured, TRAILER))
        absent = cell_header(run=run, kernel="touch", applicable=False, reason="one NUMA node")
        (node / f"job1/run{run}/touch.jsonl").write_text(lines(absent, TRAILER | {"cells": 0}))
    before = bundle.load(node)
    bundle.pack(node)
    for found in (before, bundle.load(node)):
        job = found.jobs[0]
        assert list(job.measurements) == ["coherence-cas"]
        assert job.not_applicable == {"touch": "one NUMA node"}
        assert found.problems == ()
        data = job.cells["chase-levels"]
        assert dict(data.sizes) == {"run": 2, "pass": 1, "cpu": 2, "level": 2}
        assert data["latency_ns"].attrs["units"] == "ns"
        assert float(data["latency_ns"].sel({"run": 2, "pass": 0, "cpu": 2, "level": "l2"})) == 9.0
        assert float(data["core_hz"].max()) == 3e9 + 1
        assert job.header("chase-levels")["operation"] == "levels"


def test_a_run_without_a_cell_is_there_as_nan(campaign: Make) -> None:
    node = campaign("n1") / "nodes" / "n1"
    (node / "job1/run1/chase-levels.jsonl").write_text(lines(cell_header(run=1)))
    (node / "job1/run2/chase-levels.jsonl").write_text(lines(cell_header(run=2), cell(0, "l1"), TRAILER))
    data = bundle.load(node).jobs[0].cells["chase-levels"]
    assert np.isnan(data["latency_ns"].sel(run=1)).all()
    assert list(data["complete"].values) == [False, True]


def test_gather_refuses_another_hosts_records(campaign: Make) -> None:
    folder = campaign("n1", "n2")
    for path in (folder / "nodes/n2/job1").glob("run*/*.jsonl"):
        path.write_text(path.read_text().replace('"host": "n2"', '"host": "n9"'))
    n1, n2 = fleet.gather(folder).nodes
    assert (n1.state, n2.state) == ("measured", "refused")
    assert "n9" in n2.reason
    assert [found.node for found in fleet.gather(folder).measured()] == ["n1"]


def test_gather_says_why_a_node_is_missing(campaign: Make) -> None:
    folder = campaign("n1")
    sheet = folder / "nodes.tsv"
    sheet.write_text(
        sheet.read_text() + "n2\tn2\t1\t\t\t2\t\t\tdrained\tbad DIMM\tno\nn3\tn3\t1\t\t\t2\t\t\tidle\t\tyes\n"
    )
    job = folder / "nodes/n3/job1"
    job.mkdir(parents=True)
    (job / "node-run.log").write_text("first\nlast words \x1b[31m\n")
    states = {node.node: node for node in fleet.gather(folder).nodes}
    assert "bad DIMM" in states["n2"].reason
    assert states["n3"].state == "not measured"
    assert states["n3"].log_tail[-1] == "last words ?[31m"


def test_an_unreadable_packed_file_is_named(campaign: Make) -> None:
    node = campaign("n1") / "nodes" / "n1"
    (node / "node.nc").write_bytes(b"\0" * 100)
    with pytest.raises(NodeprintError, match=r"node\.nc"):
        bundle.load(node)
    bundle.pack(node)
    assert bundle.load(node).jobs
