"""Write a table as a netCDF file, a block of rows at a time, and survive a full disk."""

from __future__ import annotations

import io
import os
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any

import h5netcdf
import h5py
import numpy as np
import numpy.typing as npt
import xarray as xr

from nodeprint import files, reading
from nodeprint.errors import UNEXPECTED_CONTENT, NodeprintError


class _Holding(io.FileIO):
    """A file that keeps the first error of writing in `error` and does not raise it. On a full disk, HDF5 would print
    its own messages or end the process. Later writes stay in memory, so HDF5 can read them until it closes the file."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, "r+")
        self.error: OSError | None = None
        self._kept: list[tuple[int, bytes]] = []

    def write(self, data: Any) -> int:
        """Write all of `data`."""
        unwritten = memoryview(data).cast("B")
        size = unwritten.nbytes
        try:
            while unwritten.nbytes and self.error is None:
                unwritten = unwritten[super().write(unwritten) :]
        except OSError as error:
            self.error = error
        if unwritten.nbytes:
            self._kept.append((self.tell(), bytes(unwritten)))
            self.seek(unwritten.nbytes, io.SEEK_CUR)
        return size

    def readinto(self, buffer: Any) -> int:
        """Fill `buffer` with the written bytes, and gaps with 0."""
        view, begin = memoryview(buffer).cast("B"), self.tell()
        count = super().readinto(view) or 0
        view[count:] = bytes(view.nbytes - count)
        for offset, kept in self._kept:
            low, high = max(offset, begin), min(offset + len(kept), begin + view.nbytes)
            if low < high:
                view[low - begin : high - begin] = kept[low - offset : high - offset]
        self.seek(begin + view.nbytes)
        return view.nbytes

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Seek as in any file; the end is the last written byte."""
        if whence != io.SEEK_END:
            return super().seek(offset, whence)
        end = max((begin + len(kept) for begin, kept in self._kept), default=0)
        return super().seek(max(end, super().seek(0, io.SEEK_END)) + offset)

    def truncate(self, size: int | None = None) -> int:
        """As of any file."""
        try:
            return super().truncate(size)
        except OSError as error:
            self.error = self.error or error
            return size or 0

    def check(self) -> None:
        """Raise what went wrong so far."""
        if self.error is not None:
            raise self.error


def write(
    path: Path,
    labels: xr.Dataset,
    dims: tuple[str, str],
    variables: Mapping[str, str],
    blocks: Iterable[Mapping[str, npt.NDArray[np.float32]]],
) -> Path:
    """Write a table as netCDF whose values are never in memory at once; returns its path.

    `labels` are its coordinates over `dims` (rows and columns) and its attributes. `variables` have names and meanings.
    Each of the `blocks` has the next rows of all variables, NaN for missing values. Raises CannotWriteError.
    """
    with files.replacing(path) as partial, _Holding(partial) as target:
        with h5netcdf.File(target, "w") as file:
            _begin_table(file, labels, dims, variables)
            begin = 0
            for block in blocks:
                end = begin + len(next(iter(block.values())))
                for name, values in block.items():
                    file.variables[name][begin:end] = values
                begin = end
                target.check()
        target.check()
        os.fsync(target.fileno())  # a full disk may say so only now
    return path


def read(path: Path, advice: str, *, unread: Collection[str] = ()) -> xr.Dataset:
    """A table that `write` wrote, without the variables that stay `unread`. Raises NodeprintError with `advice` where
    it cannot be read: numpy, h5py and xarray raise whatever a damaged file leads to."""
    try:
        with xr.open_dataset(reading.regular(path), engine="h5netcdf", drop_variables=set(unread)) as file:
            return file.load()
    except (*UNEXPECTED_CONTENT, OSError, RuntimeError) as error:
        what = "cannot be read as a table of deviations"
        raise NodeprintError(f"{what} ({type(error).__name__})", where=path, advice=advice) from error


def _begin_table(file: h5netcdf.File, labels: xr.Dataset, dims: tuple[str, str], variables: Mapping[str, str]) -> None:
    """All of a table but the values of its variables, as xarray's own to_netcdf writes it."""
    file.dimensions = {dim: labels.sizes[dim] for dim in dims}
    file.attrs.update(labels.attrs)
    coordinates = " ".join(sorted(map(str, labels.coords)))
    for name, meaning in variables.items():
        made = file.create_variable(name, dims, np.float32, fillvalue=np.float32(np.nan))
        made.attrs.update({"_FillValue": np.float32(np.nan), "long_name": meaning, "coordinates": coordinates})
    for coordinate, labeled in labels.coords.items():
        values = labeled.to_numpy()
        texts = values.dtype.kind in "OU"
        file.create_variable(
            str(coordinate),
            labeled.dims,
            h5py.string_dtype() if texts else values.dtype,
            data=values.astype(object) if texts else values,
        )
