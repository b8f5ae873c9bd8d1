"""What is kept comes back as it was where its stamp is the same, and else is none."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec
import numpy as np
import pytest

from nodeprint.campaign import derived
from nodeprint.data.store import kept


class Columns(msgspec.Struct):
    name: str
    values: np.ndarray


def test_a_value_comes_back_with_its_stamp_alone(tmp_path: Path) -> None:
    path = tmp_path / "columns.msgpack.zst"
    kept.write(path, Columns("a", np.arange(6, dtype=np.float32).reshape(2, 3)), "now")
    back = kept.read(path, Columns, "now")
    assert back is not None and back.name == "a"
    assert back.values.dtype == np.float32
    np.testing.assert_array_equal(back.values, [[0, 1, 2], [3, 4, 5]])
    assert kept.read(path, Columns, "then") is None
    assert kept.read(path, int, "now") is None
    assert kept.read(tmp_path / "none", Columns, "now") is None


@pytest.mark.parametrize("length", [0, 1, 20, -1])
def test_a_damaged_file_is_none(tmp_path: Path, length: int) -> None:
    path = tmp_path / "columns.msgpack.zst"
    kept.write(path, Columns("a", np.zeros(100)), "now")
    path.write_bytes(path.read_bytes()[:length])
    assert kept.read(path, Columns, "now") is None


def test_a_stamp_is_of_files_by_name_size_and_time_and_of_rules(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a", "b"):
        (tmp_path / name).write_text("x")
        os.utime(tmp_path / name, ns=(1, 1))
    a, b = tmp_path / "a", tmp_path / "b"
    stamps = [kept.stamp([a]), kept.stamp([b]), kept.stamp([a, b]), kept.stamp([a], 1), kept.stamp([])]
    assert kept.stamp([tmp_path / "none"]) == stamps[-1] and kept.stamp([a]) == stamps[0]
    os.utime(a, ns=(1, 2))
    stamps.append(kept.stamp([a]))
    a.write_text("xy")
    os.utime(a, ns=(1, 2))
    stamps.append(kept.stamp([a]))
    monkeypatch.setattr(derived, "SCHEMA", derived.SCHEMA + 1)
    stamps.append(kept.stamp([a]))
    assert len(set(stamps)) == len(stamps)
