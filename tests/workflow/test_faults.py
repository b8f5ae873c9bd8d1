"""The whole main job where the disk is full or read-only, and with names that nobody should give a machine."""

import gc
import gzip
import io
import json
import os
import shutil
import subprocess
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from nodeprint import simulate
from nodeprint.cli.shared import judge_and_write as judge
from nodeprint.data.store.packing import pack
from nodeprint.machine import preflight
from nodeprint.machine.node_configuration import read_fingerprint
from nodeprint.machine.topology.presets import from_part
from nodeprint.machine.tree import open_tree
from nodeprint.report import documents as report
from tests.support import statuses
from tests.support.command_line import call
from tests.support.made_records import record_texts
from tests.support.real_parts import environment, need, small_file_system
from tests.support.schemas import valid_campaign


def run(house: Path, config: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [house / "workflow/run", "--config", config.name],
        cwd=house,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )


@pytest.fixture
def small(house: Path, request: pytest.FixtureRequest) -> Iterator[tuple[Path, Path]]:
    """A tmpfs of 64 KiB in the house, and a configuration whose results are there."""
    name = f"small-{request.node.name}"
    folder = house / name
    config = house / f"{name}.yaml"
    config.write_text(f"results: {name}\npreset: test\nruns: 1\nmeasure: [coherence-cas]\n")
    with small_file_system(folder, "64k"):
        yield folder, config


@pytest.mark.long
@pytest.mark.machine
def test_a_full_disk_is_told_and_then_gone_on_from(house: Path, small: tuple[Path, Path]) -> None:
    """Room ends with the survey and the records."""
    folder, config = small
    first = run(house, config)
    said = first.stdout + first.stderr
    assert "Traceback" not in said
    assert first.returncode != 0
    assert "cannot be written" in said or "No space left" in said
    (job,) = folder.glob("main/nodes/*/job1")
    before = {name: text for name, text in record_texts(job).items() if b'"trailer"' in text}
    subprocess.run(["mount", "-o", "remount,size=64m", folder], check=True)
    second = run(house, config)
    assert second.returncode == 0, second.stdout + second.stderr
    statuses.agree(folder / "main", 0, second.stdout + second.stderr)
    assert before.items() <= record_texts(job).items(), "what was measured is not measured again"
    assert valid_campaign(folder / "main") == ["fleet.json", "records", "status.json", "verdict.json"]
    assert (folder / "main/report/cluster.pdf").read_bytes().startswith(b"%PDF")


def used_bytes(disk: Path) -> int:
    room = os.statvfs(disk)
    return (room.f_blocks - room.f_bfree) * room.f_frsize


def test_room_that_ends_when_records_are_packed_judged_or_reported(
    campaign: Callable[..., Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    measured, disk = campaign("a", "b"), tmp_path / "disk"
    with small_file_system(disk, "64m"):
        folder = shutil.copytree(measured, disk / "c")
        records = {path: path.read_bytes() for path in folder.rglob("*.jsonl")}
        before = used_bytes(disk)
        assert call("judge", folder) == 0
        judged = used_bytes(disk)
        for room, fails in ((before, "judge"), ((before + judged) // 2, "judge"), (judged + 8192, "report")):
            shutil.rmtree(folder)
            gc.collect()  # what was judged last may still map a file, which then keeps its room
            shutil.copytree(measured, folder)
            subprocess.run(["mount", "-o", f"remount,size={room}", disk], check=True)
            assert next((word for word in ("judge", "report") if call(word, folder) != 0), "") == fails
            said = capsys.readouterr().err
            assert "cannot be written" in said or "No space left" in said
            assert "Traceback" not in said
            subprocess.run(["mount", "-o", "remount,size=64m", disk], check=True)
            assert {path: path.read_bytes() for path in records} == records
            assert call("judge", folder) == call("report", folder) == 0
            assert (folder / "report/cluster.pdf").read_bytes().startswith(b"%PDF")


@pytest.mark.machine
def test_a_results_folder_that_became_read_only(house: Path, small: tuple[Path, Path]) -> None:
    folder, config = small
    subprocess.run(["mount", "-o", "remount,ro", folder], check=True)
    first = run(house, config)
    said = first.stdout + first.stderr
    assert first.returncode == 2
    assert "cannot be written" in said
    assert folder.name in said
    assert "Traceback" not in said
    subprocess.run(["mount", "-o", "remount,rw", folder], check=True)
    again = ["nodeprint", "discover", "--config", config.name]
    subprocess.run(again, cwd=house, env=environment(), check=True, capture_output=True, timeout=600)


HOSTILE = (
    '"; rm -rf / #',
    "$(touch owned)",
    "<script>alert(1)</script>",
    '#eval("1+1") *bold* _it_ @label',
    "[red]markup[/red]",
    "{{ 7 * 7 }} {% raw %}",
    "\x1b[2J\x1b]0;title\x07\r\n\t\x00end",
    "\u202eright to left\u2066",
    "a" * 5000,
)


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_firmware_through_survey_fingerprint_and_report(text: str, tmp_path: Path) -> None:
    """Strings of a BIOS, of the kernel's command line and of tools end up printable on a page, and nowhere else."""
    need("pdfinfo")
    folder = simulated(tmp_path / "campaign", text)
    survey = next(folder.glob("nodes/*/job1/survey.tar.gz"))
    said = read_fingerprint(open_tree(survey))
    assert all(value.isprintable() for value in said.values() if isinstance(value, str))
    assert all(w.text.isprintable() and w.advice.isprintable() for w in preflight.check(open_tree(survey)))
    pack(folder)
    judge(folder)
    paths = report.write(folder)
    assert "verdict.json" in valid_campaign(folder)
    for path in paths:
        if path.suffix == ".html":
            assert not ("<" in text and text in path.read_text()), "markup of a node's firmware is in the page"
        elif path.suffix == ".pdf":
            assert subprocess.run(["pdfinfo", path], check=True, capture_output=True).stdout
    assert not list(tmp_path.rglob("owned"))


def simulated(folder: Path, text: str) -> Path:
    """A campaign of two small nodes, whose survey has `text` wherever firmware, kernel and tools speak."""
    plan = simulate.Plan(from_part("EPYC 7251", 1), nodes=2, runs=1, passes=1)
    simulate.write(plan, folder)
    wherever = [
        "sys/class/dmi/id/bios_version",
        "sys/class/dmi/id/product_name",
        "sys/class/dmi/id/bios_vendor",
        "proc/cmdline",
        "proc/version",
        "nodeprint/dmidecode.txt",
        "nodeprint/versions.txt",
        "nodeprint/likwid-pin.txt",
        "nodeprint/hostname",
        "etc/os-release",
    ]
    for survey in folder.glob("nodes/*/job1/survey.tar.gz"):
        with tarfile.open(survey) as archive:
            members = [(m, archive.extractfile(m).read()) for m in archive.getmembers() if m.isfile()]  # type: ignore[union-attr]
        out = io.BytesIO()
        with tarfile.open(fileobj=out, mode="w") as archive:
            for member, content in members:
                if member.name not in wherever:
                    archive.addfile(member, io.BytesIO(content))
            for name in wherever:
                content = f"linux\t{text}\nPRETTY_NAME={text}\n".encode(errors="surrogateescape")
                member = tarfile.TarInfo(name)
                member.size = len(content)
                archive.addfile(member, io.BytesIO(content))
        survey.write_bytes(gzip.compress(out.getvalue(), mtime=0))
    status = next(folder.glob("nodes/*/job1/status.json"))
    content = json.loads(status.read_text())
    content["measurements"][0] |= {"message": "".join(c if " " <= c <= "~" else "?" for c in text)}
    status.write_text(json.dumps(content))
    return folder
