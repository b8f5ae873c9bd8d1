"""A table that is written a part at a time is what xarray would write, and a full disk leaves the old one."""

from __future__ import annotations

import resource
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

from nodeprint.data.export import netcdf_table
from nodeprint.errors import CannotWriteError

VARIABLES = {"difference": "how far", "error": "how sure"}
DIMS = ("sample", "part")


def labels(samples: int, parts: int) -> xr.Dataset:
    coordinates = {
        "place": ("part", [f"part {number}" for number in range(parts)]),
        "home": ("part", np.arange(parts)),
        "node": ("sample", [f"nœud{number}" for number in range(samples)]),
    }
    return xr.Dataset(coords=coordinates, attrs={"campaign": "main", "simulated": 1})


def blocks(samples: int, parts: int, at_once: int) -> Iterator[dict[str, np.ndarray]]:
    every = np.arange(samples * parts, dtype=np.float32).reshape(samples, parts)
    every[::3, ::2] = np.nan
    for begin in range(0, samples, at_once):
        yield {"difference": every[begin : begin + at_once], "error": -every[begin : begin + at_once]}


@pytest.mark.parametrize(("samples", "parts", "at_once"), [(7, 5, 3), (1, 1, 1), (6, 4, 100), (0, 0, 1)])
def test_a_table_by_parts_is_the_table_as_a_whole(tmp_path: Path, samples: int, parts: int, at_once: int) -> None:
    none = np.zeros((0, parts), dtype=np.float32)
    whole = labels(samples, parts).assign(
        {
            name: (
                DIMS,
                np.concatenate([none, *(part[name] for part in blocks(samples, parts, samples + 1))]),
                {"long_name": meaning},
            )
            for name, meaning in VARIABLES.items()
        }
    )
    path = netcdf_table.write(
        tmp_path / "t.nc", labels(samples, parts), DIMS, VARIABLES, blocks(samples, parts, at_once)
    )
    whole.to_netcdf(tmp_path / "whole.nc", engine="h5netcdf")
    with xr.open_dataset(path, engine="h5netcdf") as found, xr.open_dataset(tmp_path / "whole.nc") as expected:
        assert found.load().identical(expected.load())


def test_a_full_disk_is_one_sentence_and_the_old_table_stays(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = netcdf_table.write(tmp_path / "t.nc", labels(4, 4), DIMS, VARIABLES, blocks(4, 4, 4))
    before, limits = path.read_bytes(), resource.getrlimit(resource.RLIMIT_FSIZE)
    for room in (0, 100, 20_000, 300_000):
        resource.setrlimit(resource.RLIMIT_FSIZE, (room, limits[1]))
        try:
            with pytest.raises(CannotWriteError, match="cannot be written"):
                netcdf_table.write(path, labels(400, 200), DIMS, VARIABLES, blocks(400, 200, 50))
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        assert path.read_bytes() == before
    assert [entry.name for entry in tmp_path.iterdir()] == ["t.nc"]
    assert capfd.readouterr().err == ""


def test_a_table_whose_values_cannot_be_made_leaves_the_old_one(tmp_path: Path) -> None:
    path = netcdf_table.write(tmp_path / "t.nc", labels(4, 4), DIMS, VARIABLES, blocks(4, 4, 4))
    before = path.read_bytes()

    def broken() -> Iterator[dict[str, np.ndarray]]:
        yield from blocks(2, 4, 2)
        raise ArithmeticError

    with pytest.raises(ArithmeticError):
        netcdf_table.write(path, labels(4, 4), DIMS, VARIABLES, broken())
    assert path.read_bytes() == before
    assert [entry.name for entry in tmp_path.iterdir()] == ["t.nc"]
