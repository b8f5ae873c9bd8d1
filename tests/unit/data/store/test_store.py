"""What is kept of a node: read once, read again where it changed, tolerant of what is wrong with single files."""

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nodeprint.campaign import derived, node_sheet
from nodeprint.cli.shared import judge_and_write as judge
from nodeprint.data.format import records
from nodeprint.data.job import jobs
from nodeprint.data.job.jobs import Job, JobMeasurement
from nodeprint.data.store import packed, packing, store
from nodeprint.errors import NodeprintError
from nodeprint.machine.topology import captured
from nodeprint.machine.topology.presets import from_part, preset
from nodeprint.simulate import Plan, Variation, write
from nodeprint.simulate.survey import survey
from tests.support.made_records import TRAILER, cell, cell_header, header, lines, pair

Make = Callable[..., Path]


def same(one: Job, other: Job) -> bool:
    """Whether two jobs hold the same to the last bit."""
    return (one.status, one.problems, one.not_applicable, list(one.measured)) == (
        other.status,
        other.problems,
        other.not_applicable,
        list(other.measured),
    ) and all(_columns(a) == _columns(b) for a, b in zip(one.measured.values(), other.measured.values(), strict=True))


def _columns(measured: JobMeasurement) -> dict[str, list[Any]]:
    return {
        key: [str(column.dtype), column.tobytes()] for key, column in {**measured.columns, **measured.places}.items()
    }


def test_a_fleet_is_packed_anew_by_other_rules(campaign: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = campaign("n1")
    (folder / "nodes/n1/job1/survey.tar.gz").write_bytes(survey(preset("rome-2x64"), "n1", {}))

    def written() -> int:
        packing.pack(folder)
        return (folder / "store/fleet/index.json").stat().st_mtime_ns

    first = written()
    assert written() == first
    with monkeypatch.context() as patch:
        patch.setattr(derived, "SCHEMA", derived.SCHEMA + 1)
        second = written()
        assert second > first
        assert written() == second
    assert written() > second


def test_a_job_is_read_from_its_records_once(campaign: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = campaign("n1", "n2")
    for name in ("n1", "n2"):
        (folder / f"nodes/{name}/job1/survey.tar.gz").write_bytes(survey(preset("graviton3-64"), name, {}))
    packing.pack(folder)
    with monkeypatch.context() as patch:
        for module, name in ((records, "read"), (store, "open_tree"), (captured, "read")):
            patch.setattr(module, name, lambda *_: pytest.fail("read again"))
        first = packing.pack(folder)
    # one more run is read, and the other node is not
    new = folder / "nodes/n2/job1/run3/coherence-cas.jsonl"
    new.parent.mkdir()
    new.write_text(lines(header(run=3, host="n2"), pair(0, 1, latency_ns=99.0), TRAILER))
    read: list[str] = []
    real = records.read

    def watched(path: Path, *more: Any) -> records.Records:
        read.append(path.parts[-4])
        return real(path, *more)

    monkeypatch.setattr(records, "read", watched)
    second = packing.pack(folder)
    assert read == ["n2"] * 3
    assert [len(one.pairs[0].node) for one in (first, second)] == [4, 5]
    assert second.pairs[0].values[-1, 0, 0] == 99.0


def test_kept_jobs_are_those_of_the_records_and_made_again_where_they_are_damaged(campaign: Make) -> None:
    node = campaign("n1") / "nodes/n1"
    read = store.jobs_of(node)
    kept = store.folder(node) / "jobs.msgpack.zst"
    (whole,) = read
    for content in (b"", b"{}", kept.read_bytes()[:-9]):
        kept.write_bytes(content)
        assert same(store.jobs_of(node)[0], whole)
    assert [job.number for job in store.jobs_of(node)] == [job.number for job in read] == [1]
    assert read[0].measured["coherence-cas"].runs == store.jobs_of(node)[0].measured["coherence-cas"].runs


def test_jobs_outlive_their_records_and_are_of_no_removed_node(campaign: Make) -> None:
    folder = campaign("n1", "n2")
    whole = store.jobs_of(folder / "nodes/n1")
    shutil.rmtree(folder / "nodes/n1")
    assert store.jobs_of(folder / "nodes/n1") == ()  # the campaign has records, and none of this node
    shutil.rmtree(folder / "nodes")
    (kept,) = store.jobs_of(folder / "nodes/n1")
    assert same(kept, whole[0])
    for name in ("../../etc/passwd", "\ud800", "a\0b", "n" * 300):
        assert store.jobs_of(folder / "nodes" / name) == ()


def test_a_survey_is_labeled_once_and_again_where_it_changed(campaign: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    node = campaign("n1") / "nodes/n1"
    path = node / "job1/survey.tar.gz"
    path.write_bytes(survey(preset("graviton3-64"), "n1", {}))
    first = store.survey(node)
    with monkeypatch.context() as patch:
        patch.setattr(store, "_surveyed", lambda *_: pytest.fail("read again"))
        assert store.survey(node) == first
    path.write_bytes(survey(preset("naples-2x32"), "n1", {}))
    assert store.survey(node) != first


def test_a_node_whose_survey_is_garbled_is_invalid_and_of_no_other_configuration(campaign: Make) -> None:
    folder = campaign("n1", "n2", "n3")
    for name in ("n1", "n2", "n3"):
        (folder / f"nodes/{name}/job1/survey.tar.gz").write_bytes(survey(preset("graviton3-64"), name, {}))
    (folder / "nodes/n2/job1/survey.tar.gz").write_bytes(b"x")
    verdict = judge(folder)
    assert verdict.nodes["n2"].outcome == "INVALID"
    assert verdict.nodes["n2"].reasons[0].detail == "job1/survey.tar.gz cannot be read as an archive"
    assert verdict.fleet.groups == ()
    assert {verdict.nodes[name].outcome for name in ("n1", "n3")} <= {"SAME", "INCONCLUSIVE"}


def test_one_more_node_is_packed_alone_and_as_if_all_were_packed_anew(
    campaign: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = campaign("n0", "n1", "n2")
    rows = node_sheet.read_sheet(folder / "nodes.tsv")
    for name, level in (("n0", "l1"), ("n1", "l3"), ("n2", "l2")):
        records_of = lines(cell_header(run=1, host=name), cell(0, level), TRAILER)
        (folder / f"nodes/{name}/job1/run1/chase-levels.jsonl").write_text(records_of)

    def files_of(nodes: list[node_sheet.Node]) -> dict[str, bytes]:
        node_sheet.write_sheet(folder / "nodes.tsv", nodes)
        packing.pack(folder)
        packed = folder / "store/fleet"
        return {path.name: path.read_bytes() for path in packed.rglob("*") if path.is_file()}

    def anew(nodes: list[node_sheet.Node]) -> dict[str, bytes]:
        shutil.rmtree(folder / "store/fleet")
        return files_of(nodes)

    real = jobs.read
    some = files_of(rows[1:])
    with monkeypatch.context() as patch:
        patch.setattr(
            jobs, "read", lambda path, *more: real(path, *more) if "n0" in path.parts else pytest.fail("packed again")
        )
        every = files_of(rows)
    assert every == anew(rows) and every != some
    assert [one.names for one in packing.pack(folder).others] == [{"level": ("l1", "l2", "l3")}]
    # without a node there are fewer places, and a node with other records is another one
    assert files_of(rows[1:]) == some == anew(rows[1:])
    text = lines(cell_header(run=1, host="n1"), cell(0, "l2", latency_ns=7.0), TRAILER)
    (folder / "nodes/n1/job1/run1/chase-levels.jsonl").write_text(text)
    assert files_of(rows) == anew(rows) != every


def test_one_more_job_is_packed_with_its_node_alone_and_as_if_all_were_packed_anew(
    campaign: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = campaign("n0", "n1", "n2")
    packed = folder / "store/fleet"

    def records_of(name: str, job: int, *cells: dict[str, object]) -> None:
        path = folder / f"nodes/{name}/job{job}/run1/chase-levels.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(lines(cell_header(run=1, job=job, host=name), *cells, TRAILER))

    def files_of() -> dict[str, bytes]:
        packing.pack(folder)
        return {path.name: path.read_bytes() for path in packed.rglob("*") if path.is_file()}

    def anew() -> dict[str, bytes]:
        shutil.rmtree(packed)
        return files_of()

    for name in ("n0", "n1", "n2"):
        records_of(name, 1, cell(0, "l1"), cell(0, "l2"))
    before = files_of()
    records_of("n1", 2, cell(0, "l1"), cell(1, "l0", latency_ns=9.0), cell(0, "l1", **{"pass": 1}))
    real = jobs.read
    with monkeypatch.context() as patch:
        patch.setattr(
            jobs, "read", lambda path, *more: real(path, *more) if "n1" in path.parts else pytest.fail("packed again")
        )
        after = files_of()
    assert after == anew() != before
    (cells,) = packing.pack(folder).others
    assert cells.values.shape[1:] == (2, 3) and cells.job.tolist() == [1, 1, 2, 1]
    # without what only this job has, and where a node has its job from another host
    records_of("n1", 2, cell(0, "l1"), cell(1, "l0", latency_ns=9.0))
    assert files_of() == anew() != after
    records_of("n1", 2, cell(0, "l1"), cell(1, "l1"), cell(0, "l1", **{"pass": 1}))
    assert files_of() == anew()
    shutil.rmtree(folder / "nodes/n1/job2")
    assert files_of() == before == anew()
    records_of("n2", 1, cell(0, "l1"), cell(0, "l2"), cell(0, "l3"))
    assert files_of() == anew()
    (folder / "nodes/n2/job2/run1").mkdir(parents=True)
    (folder / "nodes/n2/job2/run1/coherence-cas.jsonl").write_text(lines(header(host="x"), pair(0, 1), TRAILER))
    assert files_of() == anew()
    assert packing.pack(folder).nodes[2].state == "refused"


@pytest.mark.parametrize("message", ["\ud800", "\x1b[2J", "a\tb", 7])
def test_an_outcome_that_is_no_outcome_makes_its_node_invalid(campaign: Make, message: object) -> None:
    folder = campaign("n0")
    path = folder / "nodes/n0/job1/status.json"
    status = json.loads(path.read_text())
    status["measurements"][0] |= {"message": message}
    path.write_text(json.dumps(status))
    (node,) = packing.pack(folder).nodes
    assert node.state == "measured" and node.reason.startswith(
        "job1/status.json: no outcome of a job can be read in it"
    )


def test_a_campaign_that_cannot_be_written_is_read_and_left_as_it_is(
    campaign: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = campaign("n1", "n2", "n3")
    before = sorted(folder.rglob("*"))
    monkeypatch.setattr(os, "access", lambda path, _: Path(path) != folder)
    found = packing.pack(folder)
    assert len(found.pairs[0].node) == 6 and packing.pack(folder).quantities[0].measurement == "coherence-cas"
    rules = tmp_path / "ours.yaml"
    rules.write_text("tolerances: {percent: {class: 3}}\n")
    assert set(judge(folder).nodes) == set(judge(folder, acceptance=rules).nodes) == {"n1", "n2", "n3"}
    assert sorted(folder.rglob("*")) == before
    assert capsys.readouterr().err.count("cannot be written: results are kept in") == 1


def test_the_order_of_arrival_does_not_matter(tmp_path: Path) -> None:
    """Records that arrive node by node and job by job give the same bytes as all of them at once."""
    plan = Plan(
        from_part("EPYC 7302", 1, False),
        nodes=4,
        jobs=2,
        passes=1,
        spread=Variation(core=0.002),
        cells=True,
        defects=("node002: core 3 +9%",),
    )
    whole, parted = write(plan, tmp_path / "whole/c"), tmp_path / "parted/c"
    outputs = ("verdict.json", "verdict.xml", "verdict.prom", "drain.sh", "store/fleet.json")
    shutil.copytree(whole, parted)
    judge(whole)
    later = [parted / "nodes/node000", *parted.glob("nodes/node00[12]/job2"), parted / "nodes/node003/job1/run1"]
    aside = [path.rename(tmp_path / f"{number}") for number, path in enumerate(later)]
    for path, kept in reversed([*zip(later, aside, strict=True)]):
        judge(parted)
        assert (parted / "verdict.json").read_bytes() != (whole / "verdict.json").read_bytes()
        kept.rename(path)
    judge(parted)
    assert [name for name in outputs if (parted / name).read_bytes() != (whole / name).read_bytes()] == []


def test_one_garbled_file_costs_only_itself(campaign: Make) -> None:
    node = campaign("n1") / "nodes" / "n1"
    (node / "job1/run1/coherence-cas.jsonl").write_text("hello\n")
    found = jobs.read(node / "job1")
    assert found.measured["coherence-cas"].numbers == [2]
    assert any("run1" in problem.text and "line 1" in problem.text for problem in found.problems)


def test_a_node_whose_records_are_all_garbled_has_none_and_says_so(campaign: Make) -> None:
    folder = campaign("n1", "n2")
    for run in (1, 2):
        (folder / f"nodes/n1/job1/run{run}/coherence-cas.jsonl").write_text("x\n")
    n1, n2 = packing.pack(folder).nodes
    assert (n1.state, n2.state) == ("not measured", "measured")
    assert n1.reason.startswith("coherence-cas, job1/run1, line 1: ")


def test_home_is_a_dimension_where_the_policy_makes_it_one(campaign: Make) -> None:
    node = campaign("n1") / "nodes" / "n1"
    text = lines(header(home="each"), pair(0, 1, home=0), pair(0, 1, home=1, latency_ns=80.0))
    for run in (1, 2):
        (node / f"job1/run{run}/coherence-cas.jsonl").write_text(text.replace('"run": 1', f'"run": {run}'))
    measured = jobs.read(node / "job1").measured["coherence-cas"]
    assert measured.places["home"].tolist() == [0, 1]
    assert measured.columns["latency_ns"][0, 0, 1] == 80.0


def test_cells_have_their_own_dimensions_kept_or_not(campaign: Make) -> None:
    node = campaign("n1") / "nodes" / "n1"
    for run in (1, 2):
        measured = (cell(cpu, level, 0, cpu + 5.0 + run, core_hz=3e9 + 1) for cpu in (0, 2) for level in ("l2", "l1"))
        (node / f"job1/run{run}/chase-levels.jsonl").write_text(
            lines(cell_header(run=run, cpus=[0, 2]), *measured, TRAILER)
        )
        absent = cell_header(run=run, kernel="touch", applicable=False, reason="one NUMA node")
        (node / f"job1/run{run}/touch.jsonl").write_text(lines(absent, TRAILER | {"cells": 0}))
    for _ in range(2):
        job = jobs.read(node / "job1")
        assert [one.name for one in job.pairs] == ["coherence-cas"]
        assert job.not_applicable == {"touch": "one NUMA node"}
        assert job.problems == ()
        levels = job.measured["chase-levels"]
        assert levels.columns["latency_ns"].shape == (2, 1, 4) and levels.units["latency_ns"] == "ns"
        at = list(zip(levels.keys("cpu"), levels.keys("level"), strict=True)).index((2, "l2"))
        assert levels.columns["latency_ns"][1, 0, at] == 9.0
        assert levels.columns["core_hz"].max() == 3e9 + 1
        assert job.measured["chase-levels"].header["operation"] == "levels"


def test_a_run_without_a_cell_is_there_as_nan(campaign: Make) -> None:
    node = campaign("n1") / "nodes" / "n1"
    (node / "job1/run1/chase-levels.jsonl").write_text(lines(cell_header(run=1)))
    (node / "job1/run2/chase-levels.jsonl").write_text(lines(cell_header(run=2), cell(0, "l1"), TRAILER))
    measured = jobs.read(node / "job1").measured["chase-levels"]
    assert np.isnan(measured.columns["latency_ns"][0]).all()
    assert [run["complete"] for run in measured.runs] == [False, True]


def test_gather_refuses_another_hosts_records(campaign: Make) -> None:
    folder = campaign("n1", "n2")
    for path in (folder / "nodes/n2/job1").glob("run*/*.jsonl"):
        path.write_text(path.read_text().replace('"host": "n2"', '"host": "n9"'))
    n1, n2 = packing.pack(folder).nodes
    assert (n1.state, n2.state) == ("measured", "refused")
    assert "n9" in n2.reason


def test_records_without_their_sheet_or_with_an_empty_one_are_refused(campaign: Make) -> None:
    folder = campaign("n1")
    packing.pack(folder)
    sheet = folder / "nodes.tsv"
    sheet.write_text(sheet.read_text().splitlines()[0] + "\n")
    with pytest.raises(NodeprintError, match=r"nodes.tsv: lists no node"):
        packing.pack(folder)
    sheet.unlink()
    missing = r"nodes.tsv: is missing, but its directory has nodes"
    with pytest.raises(NodeprintError, match=missing):
        packing.pack(folder)
    shutil.rmtree(folder / "nodes")  # a fleet that is kept packed, without records, is whole
    assert [node.name for node in packing.pack(folder).nodes] == ["n1"]


def test_gather_says_why_a_node_is_missing(campaign: Make) -> None:
    folder = campaign("n1")
    sheet = folder / "nodes.tsv"
    sheet.write_text(sheet.read_text() + "n2\tn2\t1\t\t2\t\t\tdrained\tbad DIMM\tno\nn3\tn3\t1\t\t2\t\t\tidle\t\tyes\n")
    job = folder / "nodes/n3/job1"
    job.mkdir(parents=True)
    (job / "node-run.log").write_text("first\nlast words \x1b[31m\n")
    states = {node.name: node for node in packing.pack(folder).nodes}
    assert "bad DIMM" in states["n2"].reason
    assert states["n3"].state == "not measured"
    assert states["n3"].log_tail[-1] == "last words ?[31m"


def test_what_a_former_version_derived_is_removed_and_nothing_else(campaign: Make, tmp_path: Path) -> None:
    """Links are left, with what is behind them, and so is a folder of that name which is somebody's."""
    folder, theirs = campaign("a", "b"), tmp_path / "theirs"
    former = ("packed/index.json", "packed/jobs/a.json", "store/a/survey.json", "store/b/survey.json")
    for path in (*former, "store/nodes/a/survey.json", "store/nodes/a/dies.msgpack"):
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text("{}")
    (folder / "fleet.json").write_text("{}")
    (folder / "store/b/notes.txt").write_text("mine")
    (theirs / "jobs").mkdir(parents=True)
    (theirs / "survey.json").write_text("{}")
    (folder / "packed/linked").symlink_to(theirs)
    (folder / "store/c").symlink_to(theirs)
    measured = {path: path.read_bytes() for path in folder.glob("nodes/**/*") if path.is_file()}
    packing.pack(folder)
    assert (
        not (folder / "packed").exists() and not (folder / "fleet.json").exists() and not (folder / "store/a").exists()
    )
    assert [path.name for path in (folder / "store/b").iterdir()] == ["notes.txt"]
    of_node = sorted(path.name for path in (folder / "store/nodes/a").iterdir())
    assert of_node == ["jobs.msgpack.zst", "survey.msgpack.zst"]
    assert (theirs / "survey.json").exists() and (theirs / "jobs").is_dir()
    assert {path: path.read_bytes() for path in measured} == measured
    (folder / "packed").symlink_to(theirs)
    shutil.rmtree(folder / "store/fleet")
    packing.pack(folder)
    assert (folder / "packed").is_symlink() and (theirs / "survey.json").exists()


def test_nothing_is_kept_behind_a_link(tmp_path: Path) -> None:
    (tmp_path / "theirs").mkdir()
    (tmp_path / "store").symlink_to(tmp_path / "theirs")
    with pytest.raises(NodeprintError, match="store: is a symbolic link"):
        store.folder(tmp_path / "nodes/n1")


def test_a_pipe_in_the_place_of_the_index_is_not_waited_for(tmp_path: Path) -> None:
    (tmp_path / packed.FOLDER).mkdir(parents=True)
    os.mkfifo(tmp_path / packed.FOLDER / "index.json")
    with pytest.raises(NodeprintError, match="no regular file"):
        packed.read(tmp_path)
