"""Derived files: what is not as it was written is regenerated, and never used."""

import os
import random
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from nodeprint.cli.shared import judge_and_write as judge
from nodeprint.data import seal
from nodeprint.data.store import packed, packing
from nodeprint.errors import NodeprintError
from nodeprint.interface import export
from nodeprint.judge.campaign import DEVIATIONS

Make = Callable[..., Path]


def flip(path: Path, bit: int) -> None:
    """Change one bit of a file, which keeps its size and times."""
    raw = bytearray(path.read_bytes())
    raw[bit // 8 % len(raw)] ^= 1 << bit % 8
    status = path.stat()
    path.write_bytes(raw)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


def test_one_bit_of_any_file_or_of_the_seal_is_noticed(tmp_path: Path) -> None:
    (tmp_path / "of").mkdir()
    for name, content in (("a", b"x" * 99), ("of/b", b"\0" * 999), ("empty", b"")):
        (tmp_path / name).write_bytes(content)
    seal.write_folder(tmp_path)
    seal.check(tmp_path, tmp_path / seal.NAME)
    for name in ("a", "of/b"):
        for bit in range(0, 8 * 99, 7):
            flip(tmp_path / name, bit)
            with pytest.raises(ValueError, match=f"{name} is not as it was written"):
                seal.check(tmp_path, tmp_path / seal.NAME)
            flip(tmp_path / name, bit)
    (tmp_path / "empty").write_bytes(b"\0")
    with pytest.raises(ValueError, match="empty is not"):
        seal.check(tmp_path, tmp_path / seal.NAME)
    (tmp_path / "empty").unlink()
    with pytest.raises(FileNotFoundError):
        seal.check(tmp_path, tmp_path / seal.NAME)


@pytest.mark.parametrize("bit", range(0, 8 * 12, 5))
def test_one_bit_of_a_sealed_content_is_noticed(bit: int) -> None:
    raw = bytearray(seal.sealed(b"12345678"))
    assert seal.unsealed(bytes(raw)) == b"12345678"
    raw[bit // 8] ^= 1 << bit % 8
    for garbled in (bytes(raw), bytes(raw[:-1]), b""):
        with pytest.raises(ValueError, match="not as it was written"):
            seal.unsealed(garbled)


def test_a_flipped_bit_anywhere_in_a_store_changes_no_table_and_is_regenerated(campaign: Make, tmp_path: Path) -> None:
    folder = campaign("n1", "n2", "n3")
    judge(folder)
    whole = packing.pack(folder).quantities
    rows = export.deviation_rows(export.deviations(folder))
    files = sorted(path for path in (folder / "store").rglob("*") if path.is_file() and path.name != "fleet.json")
    assert {path.suffix for path in files} == {".json", ".npy", ".zst"}
    draw = random.Random(1)
    for path in [*files, folder / DEVIATIONS]:
        for _ in range(3):
            flip(path, draw.randrange(8 * path.stat().st_size))
            for quantity, anew in zip(whole, packing.pack(folder).quantities, strict=True):
                np.testing.assert_array_equal(quantity.values, anew.values)
                assert all(np.array_equal(quantity.places[dim], anew.places[dim]) for dim in quantity.dims)
            assert export.deviation_rows(export.deviations(folder)).equals(rows), path
    seal.check(folder / packed.FOLDER, folder / packed.FOLDER / seal.NAME)


@pytest.mark.parametrize("content", [b"", b"\x89HDF\r\n\x1a\n", b"x" * 5000])
def test_a_table_that_cannot_be_read_is_one_sentence_where_no_records_are(
    campaign: Make, tmp_path: Path, content: bytes
) -> None:
    folder = campaign("n1", "n2", "n3")
    judge(folder)
    shutil.copytree(folder, tmp_path / "alone", ignore=shutil.ignore_patterns("store", "nodes", "nodes.tsv"))
    (tmp_path / "alone" / DEVIATIONS).write_bytes(content)
    with pytest.raises(
        NodeprintError, match=r"deviations.nc: cannot be read as a table of deviations \(\w+\); run `node"
    ):
        export.deviations(tmp_path / "alone")
