"""The manifest of a campaign: what changed since it was judged has its name."""

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from nodeprint.cli.app import app
from nodeprint.cli.shared import judge_and_write as judge
from nodeprint.data.store import manifest
from nodeprint.errors import NodeprintError
from nodeprint.report import protocol

Make = Callable[..., Path]
RECORD, STATUS = "nodes/n1/job1/run1/coherence-cas.jsonl", "nodes/n2/job1/status.json"


@pytest.fixture
def judged(campaign: Make) -> Path:
    folder = campaign("n1", "n2", "n3")
    judge(folder)
    return folder


def flip(path: Path) -> None:
    """Change a byte of a file, which keeps its size and times."""
    status = path.stat()
    path.write_bytes(path.read_bytes()[:-2] + b" \n")
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (lambda folder: flip(folder / RECORD), {"changed": [RECORD]}),
        (lambda folder: flip(folder / "verdict.json"), {"changed": ["verdict.json"]}),
        (lambda folder: (folder / "nodes.tsv").write_text("node\nn1\n"), {"changed": ["nodes.tsv"]}),
        (lambda folder: (folder / STATUS).unlink(), {"missing": [STATUS]}),
        (lambda folder: (folder / "acceptance.yaml").write_text("{}\n"), {"new": ["acceptance.yaml"]}),
        (
            lambda folder: shutil.copytree(folder / "nodes/n1/job1", folder / "nodes/n1/job2"),
            {"new": [f"nodes/n1/job2/run{run}/coherence-cas.jsonl" for run in (1, 2)] + ["nodes/n1/job2/status.json"]},
        ),
        (lambda folder: shutil.rmtree(folder / "store"), {}),
    ],
)
def test_verify_names_each_file_that_is_not_as_it_was_judged(
    judged: Path, change: Callable[[Path], object], named: dict[str, list[str]]
) -> None:
    same = CliRunner().invoke(app, ["verify", str(judged)])
    assert (same.exit_code, same.stdout.count("\n")) == (0, 1) and "files unchanged" in same.stdout
    change(judged)
    done = CliRunner().invoke(app, ["verify", str(judged), "--json"])
    facts = json.loads(done.stdout)[str(judged)]
    assert done.exit_code == (3 if named else 0)
    assert {kind: facts[kind] for kind in ("missing", "changed", "new") if facts[kind]} == named
    shown = CliRunner().invoke(app, ["verify", str(judged)]).stdout
    assert all(f"{judged / name}: {kind}\n" in shown for kind, names in named.items() for name in names)


def test_judging_twice_keeps_the_digest_of_a_file_whose_size_and_time_are_the_same(judged: Path) -> None:
    flip(judged / RECORD)
    judge(judged)
    assert manifest.changes(judged, manifest.read(judged))["changed"] == [RECORD]


def test_links_are_none_of_a_campaign(judged: Path) -> None:
    (judged / "acceptance.yaml").symlink_to("/etc/hostname")
    (judged / "nodes/n4").symlink_to(judged / "nodes/n1")
    assert not any(manifest.changes(judged, manifest.read(judged)).values())


@pytest.mark.parametrize(
    "content", [None, b"", b"{}", b'{"schema": 1, "files": {"a": 7}}', b'{"\xfc": 1}', b"[" * 9999]
)
def test_without_a_manifest_it_is_bad_input(judged: Path, content: bytes | None) -> None:
    (judged / manifest.NAME).unlink()
    if content is not None:
        (judged / manifest.NAME).write_bytes(content)
    with pytest.raises(NodeprintError, match=r"manifest.json: no manifest of a campaign can be read; run `node"):
        manifest.read(judged)


def test_the_acceptance_report_lists_the_digests_of_the_manifest_and_rejects_what_changed(judged: Path) -> None:
    listed = protocol._evidence(
        judged, protocol._sealed(judged), judged
    )  # the file that it writes takes a PDF of seconds
    entries = manifest.read(judged).files
    assert listed == "".join(f"{entry.sha256}  {name}\n" for name, entry in entries.items())
    assert {RECORD, STATUS, "nodes.tsv", "verdict.json"} <= set(entries)
    flip(judged / RECORD)
    with pytest.raises(NodeprintError, match=f"{RECORD}: is not as it was when main was judged; `nodeprint verify"):
        protocol._sealed(judged)
