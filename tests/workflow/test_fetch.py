"""What Ansible fetches from a node is not trusted: ansible/roles/nodeprint/files/unpack."""

import io
import shutil
import subprocess
import tarfile
import time
from pathlib import Path

import pytest

from tests.support.real_parts import ROOT, built

UNPACK = ROOT / "ansible/roles/nodeprint/files/unpack"


def member(name: str, kind: bytes = tarfile.REGTYPE, to: str = "") -> tarfile.TarInfo:
    found = tarfile.TarInfo(name)
    found.type, found.linkname, found.mode = kind, to, 0o755
    return found


def unpack(folder: Path, *members: tarfile.TarInfo, text: bytes = b"x\n") -> subprocess.CompletedProcess[str]:
    """Unpack an archive of these members, each file with `text`, into `folder`."""
    archive = folder / "job1.tar"
    with tarfile.open(archive, "w") as packed:
        for one in members:
            one.size = len(text) if one.isfile() else 0
            packed.addfile(one, io.BytesIO(text))
    done = subprocess.run([UNPACK, archive, folder, "job1"], capture_output=True, text=True, check=False)
    assert not archive.exists()
    return done


def test_a_job_is_unpacked_over_what_was_fetched_before(tmp_path: Path) -> None:
    names = ("job1/run1/a.jsonl.gz", "job1/status.json", "job1/with a blank")
    for text in (b"first\n", b"second\n"):
        done = unpack(tmp_path, member("job1", tarfile.DIRTYPE), *map(member, names), text=text)
        assert done.returncode == 0, done.stderr
        files = {str(path.relative_to(tmp_path)): path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
        assert files == dict.fromkeys(names, text)
    # packed nodes are made again where records are newer, by this machine's clock and not by the node's
    assert all(time.time() - path.stat().st_mtime < 600 for path in tmp_path.rglob("*") if path.is_file())


@pytest.mark.parametrize("planted", ["link", "hard link"])
def test_no_link_is_followed_where_a_job_is_unpacked(tmp_path: Path, planted: str) -> None:
    theirs = tmp_path / "theirs"
    theirs.write_text("mine")
    (tmp_path / "job1").mkdir()
    for name in ("a", "status.json", "status.json.tmp"):
        path = tmp_path / "job1" / name
        path.symlink_to(theirs) if planted == "link" else path.hardlink_to(theirs)
    done = unpack(tmp_path, member("job1", tarfile.DIRTYPE), member("job1/a"), member("job1/status.json"))
    assert done.returncode == 0, done.stderr
    assert theirs.read_text() == "mine"
    assert {path.name: path.read_text() for path in (tmp_path / "job1").iterdir()} == {"a": "x\n", "status.json": "x\n"}


@pytest.mark.parametrize(
    "bad",
    [
        member("job1/status.json", tarfile.SYMTYPE, "/etc/passwd"),
        member("job1/hard", tarfile.LNKTYPE, "job1/a"),
        member("job1/device", tarfile.CHRTYPE),
        member("job1/pipe", tarfile.FIFOTYPE),
        member("job2/status.json"),
        member("verdict.json"),
        member("/tmp/outside"),
        member("job1/../../outside"),
    ],
    ids=lambda one: one.name,
)
def test_anything_else_is_refused(tmp_path: Path, bad: tarfile.TarInfo) -> None:
    folder = tmp_path / "nodes/cn01"
    folder.mkdir(parents=True)
    done = unpack(folder, member("job1/a"), bad)
    assert done.returncode != 0 and bad.name.strip("/") in done.stderr
    assert not any(path.is_symlink() or "outside" in path.name for path in tmp_path.rglob("*"))
    assert not (folder / "job1/status.json").exists()


def test_a_cut_archive_is_refused(tmp_path: Path) -> None:
    (tmp_path / "job1.tar").write_bytes(b"no archive" * 100)
    done = subprocess.run([UNPACK, tmp_path / "job1.tar", tmp_path, "job1"], capture_output=True, check=False)
    assert done.returncode != 0 and done.stderr


def test_the_kernels_are_packed_once_for_all_hosts_that_ask(house: Path, tmp_path: Path) -> None:
    """Ansible asks for the archive once for each host, for many at the same time."""
    kernels = shutil.copytree(house / "kernels", tmp_path / "kernels")
    shutil.copytree(built("static"), kernels / "build/static", dirs_exist_ok=True)
    (kernels / "node-run").write_text((kernels / "node-run").read_text() + "# changed\n")
    asked = [subprocess.Popen([kernels / "archive"], stdout=subprocess.PIPE, stderr=subprocess.PIPE) for _ in range(4)]
    said = [process.communicate() for process in asked]
    assert [process.returncode for process in asked] == [0] * 4, said
    (name,) = {out.decode().split()[-1] for out, _ in said}
    assert [str(path) for path in (kernels / "build").glob("nodeprint-*.tar.gz")] == [name]
    assert not list((kernels / "build").glob("archive.*"))
    with tarfile.open(name) as packed:
        script = next(member for member in packed if member.name.endswith("/node-run"))
        file = packed.extractfile(script)
        assert file is not None and file.read().endswith(b"# changed\n")
        parts = {Path(member.name).name for member in packed if "/node/" in member.name}
        assert parts == {path.name for path in (kernels / "node").iterdir()}
