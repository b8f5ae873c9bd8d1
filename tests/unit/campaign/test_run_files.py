"""Records in the archive of a run, in files of their own, or in both: what is read of them is the same."""

from __future__ import annotations

import gzip
import lzma
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeprint import reading
from nodeprint.campaign import run_files
from nodeprint.cli.shared import judge_and_write as judge
from nodeprint.data.job import jobs
from nodeprint.errors import NodeprintError
from nodeprint.readers import matrix_file
from tests.support.made_records import cell, cell_header, header, lines, pair, record_texts
from tests.support.run_archives import COMPRESS, RECORDS, tar_of

REMEDY = "; restore the file, or call `make run`, which measures what is lost of a node's newest job"


def pack(job: Path, ending: str = ".tar.zst") -> None:
    """Put the record files of a job into archives."""
    for folder in sorted(job.glob("run*/")):
        texts = {
            name.partition("/")[2]: text.decode()
            for name, text in record_texts(job).items()
            if name.startswith(f"{folder.name}/")
        }
        (job / f"{folder.name}{ending}").write_bytes(COMPRESS[ending](tar_of(texts, int(folder.name[3:]))))
        shutil.rmtree(folder)


@pytest.mark.parametrize("ending", run_files.ARCHIVE)
def test_a_campaign_is_the_same_packed_and_unpacked(campaign: Callable[..., Path], ending: str) -> None:
    folder = campaign("n1", "n2", "n3")
    loose = judge(folder)
    before = jobs.read(folder / "nodes/n1/job1")
    for node in ("n1", "n2"):
        pack(folder / "nodes" / node / "job1", ending)
    assert not [*folder.glob("nodes/n1/job1/run*/")]
    packed = judge(folder)
    assert {name: node.outcome for name, node in packed.nodes.items()} == {
        name: node.outcome for name, node in loose.nodes.items()
    }
    after = jobs.read(folder / "nodes/n1/job1")
    assert after.problems == before.problems == () and after.measured.keys() == before.measured.keys()
    for name, one in after.measured.items():
        assert one.numbers == before.measured[name].numbers
        assert all((one.columns[key] == before.measured[name].columns[key]).all() for key in one.columns)


def test_an_archive_counts_more_than_a_file_of_the_same_name(tmp_path: Path) -> None:
    """What was fetched from a node before its run was complete may lie beside the whole."""
    (tmp_path / "run1").mkdir()
    (tmp_path / "run1/coherence-cas.jsonl").write_text(lines(header(), pair(0, 1)))
    (tmp_path / "run1/jitter.jsonl").write_text(lines(cell_header(kernel="jitter"), cell(0, "l1")))
    (tmp_path / "run1.tar.gz").write_bytes(gzip.compress(tar_of(RECORDS)))
    texts = record_texts(tmp_path)
    assert sorted(texts) == ["run1/chase-levels", "run1/coherence-cas", "run1/jitter"]
    assert texts["run1/coherence-cas"].decode() == RECORDS["coherence-cas"]


def test_what_vanishes_while_it_is_read_is_in_the_archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """node-run packs a run between two looks at the folder."""
    folder = tmp_path / "run1"
    folder.mkdir()
    for name, text in RECORDS.items():
        (folder / f"{name}.jsonl.gz").write_bytes(gzip.compress(text.encode()))
    listed = os.listdir

    def packs(path: str | Path) -> list[str]:
        names = listed(path)
        if Path(path) == folder:
            (tmp_path / "run1.tar.xz").write_bytes(lzma.compress(tar_of(RECORDS)))
            for name in names:
                (folder / name).unlink()
        return names

    monkeypatch.setattr(os, "listdir", packs)
    found = jobs.read(tmp_path)
    assert sorted(found.measured) == sorted(RECORDS) and not found.problems


def test_a_garbled_line_in_an_archive_is_named_by_its_measurement_and_line(tmp_path: Path) -> None:
    records = {
        name: text.replace('"job": 1', '"job": 3').replace('"run": 1', '"run": 2') for name, text in RECORDS.items()
    }
    bad = records["coherence-cas"].replace('{"record": "trailer"', "{garbled}\n" + '{"record": "trailer"')
    job = tmp_path / "job3"
    job.mkdir()
    (job / "run2.tar.xz").write_bytes(lzma.compress(tar_of(records | {"coherence-cas": bad}, run=2)))
    found = jobs.read(job)
    assert list(found.measured) == ["chase-levels"]
    (problem,) = found.problems
    assert problem.text.startswith("coherence-cas, job3/run2, line 4: not a JSON record")
    assert (problem.run, problem.names) == (2, ("coherence-cas",))
    with pytest.raises(NodeprintError, match=r"run2/coherence-cas.jsonl, line 4: not a JSON record"):
        jobs.of_file(job / "run2.tar.xz")


@pytest.mark.parametrize("ending", run_files.ARCHIVE)
@given(cut=st.floats(0, 0.999))
def test_of_a_cut_archive_what_precedes_the_cut_is_read(
    tmp_path_factory: pytest.TempPathFactory, ending: str, cut: float
) -> None:
    job = tmp_path_factory.mktemp("cut")
    whole = COMPRESS[ending](tar_of(RECORDS))
    (job / f"run1{ending}").write_bytes(whole[: int(len(whole) * cut)])
    problems: list[run_files.Problem] = []
    for path, text in run_files.contents(job, problems):
        assert text is not None and RECORDS[path.name.split(".")[0]].startswith(text.decode())
    (problem,) = problems
    assert problem.run == 1 and f"run1{ending} of {job.name}: the archive is cut or garbled" in problem.text


@given(junk=st.binary(max_size=3000), at=st.integers(0, 4000))
def test_junk_in_an_archive_is_a_problem_or_harmless(
    tmp_path_factory: pytest.TempPathFactory, junk: bytes, at: int
) -> None:
    job = tmp_path_factory.mktemp("junk")
    tar = tar_of(RECORDS)
    (job / "run1.tar.gz").write_bytes(gzip.compress(tar[:at] + junk + tar[at + len(junk) :]))
    found = jobs.read(job)
    known = {name for name, one in found.measured.items() if one.numbers}
    assert known == set(RECORDS) or found.problems


@pytest.mark.parametrize("ending", run_files.ARCHIVE)
def test_what_follows_the_end_of_an_archive_is_a_problem(tmp_path: Path, ending: str) -> None:
    whole = COMPRESS[ending](tar_of(RECORDS))
    (tmp_path / f"run1{ending}").write_bytes(whole + b"junk")
    problems: list[run_files.Problem] = []
    assert len(list(run_files.contents(tmp_path, problems))) == len(RECORDS)
    assert len(problems) == 1


@pytest.mark.parametrize("ending", run_files.ARCHIVE)
def test_an_archive_that_unpacks_without_end_is_a_problem(
    tmp_path: Path, ending: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "FREE_BYTES", 1 << 20)
    (tmp_path / f"run1{ending}").write_bytes(COMPRESS[ending](tar_of(RECORDS | {"zeros": 64 * "\0" * (1 << 20)})))
    problems: list[run_files.Problem] = []
    found = {path.name.split(".")[0]: text for path, text in run_files.contents(tmp_path, problems)}
    what = "the archive unpacks to more than 200 times its size; what is beyond does not count"
    assert problems == [run_files.Problem(f"run1{ending} of {tmp_path.name}: {what}{REMEDY}", run=1)]
    assert {name: text.decode() for name, text in found.items() if text and name in RECORDS} == RECORDS


def test_a_garbled_header_of_a_member_is_no_end_of_the_archive(tmp_path: Path) -> None:
    tar = tar_of(RECORDS)
    at = tar.index(b"run1/coherence-cas")
    (tmp_path / "run1.tar.gz").write_bytes(gzip.compress(tar[:at] + b"\0" * 512 + tar[at + 512 :]))
    problems: list[run_files.Problem] = []
    assert run_files.is_damaged(tmp_path)
    assert [path.name for path, _ in run_files.contents(tmp_path, problems)] == ["chase-levels.jsonl"]
    why = f"run1.tar.gz of {tmp_path.name}: the archive is cut or garbled; what precedes the damage counts{REMEDY}"
    assert problems == [run_files.Problem(why, run=1)]


def test_the_matrix_of_an_archive(tmp_path: Path) -> None:
    archive = tmp_path / "run1.tar.xz"
    archive.write_bytes(lzma.compress(tar_of(RECORDS)))
    assert matrix_file.read_matrix(archive).ns[0, 1] == 50
    archive.write_bytes(b"nothing of the kind")
    with pytest.raises(NodeprintError, match=r"run1.tar.xz: .*the archive is cut or garbled"):
        matrix_file.read_matrix(archive)


def test_records_that_are_gone_are_named(tmp_path: Path) -> None:
    rows = [(1, "a"), (1, "b"), (2, "a"), (2, "b"), (3, "a")]
    (tmp_path / "outcomes.tsv").write_text("".join(f"{run}\t{name}\tdone\t0\n" for run, name in rows) + "x\ty\tdone\n")
    (tmp_path / "run1.tar.zst").symlink_to("nowhere")
    (tmp_path / "run2").mkdir()
    (tmp_path / "run2/b.jsonl").touch()
    (tmp_path / "run3.tar.gz").touch()
    assert run_files.lost(tmp_path) == [(1, "a"), (1, "b"), (2, "a")]
    gone = f"{tmp_path.name}/run1: records of a, b are gone, though they were made"
    assert run_files.Problem(gone, 1, ("a", "b")) in jobs.read(tmp_path).problems
    (tmp_path / "run1.tar.zst").unlink()
    (tmp_path / "run1.tar.zst").touch()
    (tmp_path / "run2/a.jsonl.gz").touch()
    assert run_files.lost(tmp_path) == []


@pytest.mark.parametrize(("damaged", "whole"), [(".tar.zst", ".tar.gz"), (".tar.gz", ".tar.zst"), (".tar.gz", "")])
def test_a_damaged_archive_does_not_replace_what_is_whole(tmp_path: Path, damaged: str, whole: str) -> None:
    packed = COMPRESS[damaged](tar_of(RECORDS))
    (tmp_path / f"run1{damaged}").write_bytes(packed[: len(packed) * 3 // 4])
    if whole:
        (tmp_path / f"run1{whole}").write_bytes(COMPRESS[whole](tar_of(RECORDS)))
    else:
        (tmp_path / "run1").mkdir()
        for name, text in RECORDS.items():
            (tmp_path / f"run1/{name}.jsonl").write_text(text)
    problems: list[run_files.Problem] = []
    found = {path.name.split(".")[0]: text.decode() for path, text in run_files.contents(tmp_path, problems) if text}
    assert found == RECORDS
    assert len(problems) == 1


def test_what_is_complete_is_known_without_unpacking(tmp_path: Path) -> None:
    (tmp_path / "run2").mkdir()
    (tmp_path / "run2/a.jsonl.gz").touch()
    (tmp_path / "run2/b.jsonl").touch()
    (tmp_path / "run1.tar.xz").touch()
    rows = [(1, "a", "failed"), (1, "a", "done"), (1, "b", "done"), (2, "c", "done"), (3, "a", "failed")]
    (tmp_path / "outcomes.tsv").write_text(
        "".join(f"{run}\t{name}\t{how}\t0\t1.0\tnative\t\n" for run, name, how in rows)
    )
    assert run_files.complete(tmp_path) == {(1, "a"), (1, "b"), (2, "a")}
    assert run_files.complete(tmp_path / "none") == set()
