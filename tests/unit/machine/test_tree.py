"""A machine's files: the same from a folder and from an archive, and nothing from outside of either."""

from __future__ import annotations

import io
import random
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from nodeprint.errors import NodeprintError
from nodeprint.machine.tree import Tree, open_tree

ONLINE = "sys/devices/system/cpu/online"


def _root(top: Path) -> Path:
    cpu = top / "sys/devices/system/cpu"
    (cpu / "cpu0").mkdir(parents=True)
    (cpu / "online").write_text("0-1\n")
    (cpu / "odd").write_bytes(b"a\xffb")
    node = top / "sys/devices/system/node/node0"
    node.mkdir(parents=True)
    (node / "cpu0").symlink_to("../../cpu/cpu0")
    (node / "relative").symlink_to("../../cpu/online")
    (node / "absolute").symlink_to("/" + ONLINE)
    (node / "loop").symlink_to("loop")
    (node / "climbs").symlink_to("../" * 40 + "etc/passwd")
    (cpu / "cpu0/id").write_text("0")
    (top / "proc").mkdir()
    (top / "proc/cpuinfo").write_text("processor : 0\n")
    return top


def _packed(mode: str) -> Callable[[Path], Path]:
    def pack(root: Path) -> Path:
        archive = root.parent / f"some.tar{mode.replace(':', '.')}"
        with tarfile.open(archive, f"w{mode}") as tar:  # type: ignore[call-overload]
            tar.add(root, "a/b")
        return archive

    return pack


@pytest.fixture(params=[lambda root: root, lambda root: root.parent, *map(_packed, ("", ":gz", ":bz2", ":xz"))])
def tree(request: pytest.FixtureRequest, tmp_path: Path) -> Tree:
    return open_tree(request.param(_root(tmp_path / "root")))


def test_reads_files_and_follows_links_inside(tree: Tree) -> None:
    assert tree.read_text(ONLINE) == "0-1\n"
    node = "sys/devices/system/node/node0"
    assert tree.read_text(f"{node}/relative") == "0-1\n"
    assert tree.read_text(f"{node}/absolute") == "0-1\n"
    assert tree.read_text(f"{node}/cpu0/id") == "0"
    assert tree.names(f"{node}/cpu0") == ["id"]
    assert tree.names("sys/devices/system/cpu/") == tree.names("sys/devices/system/cpu")


def test_absent_unreadable_and_outside_are_none(tree: Tree) -> None:
    node = "sys/devices/system/node/node0"
    for path in (
        f"{node}/loop",
        f"{node}/climbs",
        "nowhere",
        "sys",
        "../../etc/passwd",
        f"{ONLINE}/below",
        "a\0b",
    ):
        assert tree.read_bytes(path) is None, path
    assert tree.names("nowhere") == []
    assert tree.read_text("sys/devices/system/cpu/odd") == "a\ufffdb"


def test_the_live_system_is_a_tree() -> None:
    assert open_tree(Path("/")).read_text("proc/cpuinfo")


def test_hostile_members_do_no_harm(tmp_path: Path) -> None:
    archive = tmp_path / "hostile.tar.gz"
    with tarfile.open(archive, "w:gz") as tar:

        def add(name: str, data: bytes = b"x", **fields: object) -> None:
            member = tarfile.TarInfo(name)
            member.size = len(data)
            for key, value in fields.items():
                setattr(member, key, value)
            tar.addfile(member, io.BytesIO(data) if member.isreg() else None)

        add("../escaped")
        add("/etc/absolute")
        add("top/proc/cpuinfo", b"processor : 0\n")
        add("top/dev", size=0, type=tarfile.CHRTYPE)
        add("top/fifo", size=0, type=tarfile.FIFOTYPE)
        add("top/hard", size=0, type=tarfile.LNKTYPE, linkname="top/proc/cpuinfo")
        add("top/hard-out", size=0, type=tarfile.LNKTYPE, linkname="../../etc/passwd")
        add("top/big", random.Random(1).randbytes(1 << 20) + bytes(64 << 20))  # too large for a file, yet no bomb
        add("top/proc/cpuinfo/below", b"a file is also a folder")
    tree = open_tree(archive)
    assert tree.read_text("proc/cpuinfo") == tree.read_text("hard") == "processor : 0\n"
    for path in ("dev", "fifo", "big", "hard-out", "../escaped", "etc/absolute"):
        assert tree.read_bytes(path) is None, path
    assert not (tmp_path.parent / "escaped").exists()


def test_an_archive_that_unpacks_without_end_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nodeprint.reading.FREE_BYTES", 1 << 20)
    archive = tmp_path / "bomb.tar.gz"
    with tarfile.open(archive, "w:gz") as tar:
        member = tarfile.TarInfo("zeros")
        member.size = 2 << 20
        tar.addfile(member, io.BytesIO(b"\0" * member.size))
    with pytest.raises(NodeprintError, match=r"bomb\.tar\.gz.*unpacks"):
        open_tree(archive)


@pytest.mark.parametrize("keep", [0, 1, 5, 100, 0.5, 0.99])
def test_a_garbled_archive_is_named(tmp_path: Path, keep: float) -> None:
    whole = _packed(":gz")(_root(tmp_path / "root")).read_bytes()
    cut = tmp_path / "cut.tar.gz"
    cut.write_bytes(whole[: int(keep * len(whole)) if isinstance(keep, float) else keep])
    with pytest.raises(NodeprintError, match=r"cut\.tar\.gz"):
        open_tree(cut)


def test_what_is_no_machine_is_named(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "absent"):
        with pytest.raises(NodeprintError, match=tmp_path.name):
            open_tree(path)
    with tarfile.open(tmp_path / "other.tar", "w") as tar:
        tar.addfile(tarfile.TarInfo("file"))
    with pytest.raises(NodeprintError, match=r"other\.tar.*holds no"):
        open_tree(tmp_path / "other.tar")
