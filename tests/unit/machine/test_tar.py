"""The members of a tar file: as tarfile has them, whatever wrote or damaged it."""

from __future__ import annotations

import io
import random
import subprocess
import tarfile
from collections.abc import Iterable
from pathlib import Path

import pytest

from nodeprint.machine import tar


def facts(members: Iterable[tarfile.TarInfo]) -> list[tuple[object, ...]]:
    """All that is read of members."""
    return [
        (one.name, one.linkname, one.isdir(), one.issym(), one.islnk())
        + ((one.offset_data, one.size) if one.isreg() and not one.issparse() else ())
        for one in members
    ]


def expected(content: bytes) -> list[tuple[object, ...]]:
    """By tarfile."""
    with tarfile.open(fileobj=io.BytesIO(content), mode="r:") as archive:
        return facts(archive)


def root(top: Path) -> Path:
    """Files, folders and links, with short and long names."""
    deep = top / "/".join(["sys", *["a folder with a long name"] * 6])
    deep.mkdir(parents=True)
    (top / "empty").mkdir()
    (top / "sys/nothing").touch()
    (top / "sys/möglich").write_text("x" * 513)
    (deep / "file").write_text("1\n")
    (deep / "link").symlink_to("../file")
    (top / "to deep").symlink_to(deep.relative_to(top) / "file")
    (top / "hard").hardlink_to(deep / "file")
    return top


@pytest.fixture(params=[tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
def content(request: pytest.FixtureRequest, tmp_path: Path) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=request.param) as archive:
        for path in sorted(root(tmp_path).rglob("*")):
            if request.param != tarfile.USTAR_FORMAT or path.name not in ("to deep", "hard"):  # which it cannot hold
                archive.add(path, path.relative_to(tmp_path), recursive=False)
    return out.getvalue()


def test_the_members_of_each_format(content: bytes) -> None:
    found = list(tar.members(content))
    assert facts(found) == expected(content)
    assert all(
        any(of(one) for one in found) for of in (tarfile.TarInfo.isreg, tarfile.TarInfo.isdir, tarfile.TarInfo.issym)
    )
    assert max(len(one.name) for one in found) > 150


def test_what_the_tool_packs_needs_no_second_pass(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    packed = subprocess.run(["tar", "-C", root(tmp_path), "-c", "."], check=True, capture_output=True).stdout
    wanted = expected(packed)
    monkeypatch.setattr(tarfile, "open", None)
    assert facts(tar.members(packed)) == wanted


def test_damage_is_seen_as_tarfile_sees_it(content: bytes) -> None:
    chance = random.Random(1)
    for _ in range(300):
        damaged = bytearray(content)
        for _ in range(chance.choice((1, 2))):
            damaged[chance.randrange(len(content))] = chance.choice((0, 32, 48, 55, 76, 255))
        cut = bytes(damaged[: chance.choice((len(content), chance.randrange(len(content))))])
        try:
            wanted = expected(cut)
        except (tarfile.TarError, ValueError) as error:
            with pytest.raises(type(error)):
                list(tar.members(cut))
        else:
            assert facts(tar.members(cut)) == wanted
