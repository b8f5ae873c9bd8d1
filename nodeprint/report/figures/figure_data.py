"""The data of figures: xarray Datasets, whose variables and coordinates say in their attributes what they are.

`long_name` and `units` of a variable make the title of its axis. Coordinates name what lies along a dimension, and a
coordinate without a dimension is the same for all, as a tolerance is. Attributes of the Dataset choose how it is drawn.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import xarray as xr


def named(dims: str | Sequence[str], values: npt.ArrayLike, title: str) -> xr.Variable:
    """A variable with a title, whose unit is behind its last comma."""
    name, comma, unit = title.rpartition(", ")
    return xr.Variable(dims, np.asarray(values), {"long_name": name, "units": unit} if comma else {"long_name": title})


def title_of(variable: xr.DataArray) -> str:
    """The title of a variable with its unit; its name if it has no title."""
    name = str(variable.attrs.get("long_name", variable.name))
    return f"{name}, {unit}" if (unit := variable.attrs.get("units")) else name


def table(data: xr.Dataset | Sequence[xr.Dataset]) -> pd.DataFrame:
    """A row for each point with a value, with its coordinates; a symmetric matrix has each pair once."""
    if not isinstance(data, xr.Dataset):
        return pd.concat([table(each) for each in data], ignore_index=True)
    if data.attrs.get("symmetric"):
        data = data.where(xr.DataArray(np.triu(np.ones(2 * [data.sizes["a"]], dtype=np.bool_), 1), dims=("a", "b")))
    frame = data.to_dataframe().reset_index().dropna(how="all", subset=[str(name) for name in data.data_vars])
    along = [name for name in data.dims if name in data.coords]
    order = [*along, *(name for name in data.coords if name not in along), *data.data_vars]
    titles: dict[Any, str] = {name: title_of(data[name]) for name in order}
    return frame[order].rename(columns=titles).reset_index(drop=True)


def marks(data: xr.Dataset) -> npt.NDArray[np.int64]:
    """The positions that are those of findings, along the dimension that has such."""
    return np.flatnonzero(data["marked"].to_numpy()) if "marked" in data.coords else np.zeros(0, dtype=np.int64)
