"""Measurements for other programs: datasets with names of nodes, and the same as tables and netCDF files."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import xarray as xr

from nodeprint import files
from nodeprint.data.places.measured import Measured, coordinate, is_metric
from nodeprint.data.store.packed import PackedFleet
from nodeprint.errors import NodeprintError

#: Values that are a table at once: rows of a large fleet have a hundred million.
_VALUES_AT_ONCE = 1 << 18


def dataset(fleet: PackedFleet, measured: Measured) -> xr.Dataset:
    """A measurement as other programs need it, with a view of the same values.

    Each row has its node's name, its start time (UTC) and its job's number in Slurm (empty outside Slurm). CPUs and
    NUMA nodes have the numbers of the operating system. They are over points, or over rows and points if nodes of one
    layout number them differently. Pairs have their `class`: the part that both CPUs share.
    """
    nodes, numbers = fleet.nodes, measured.node.tolist()
    jobs = zip(numbers, measured.job.tolist(), strict=True)
    rows = {
        "node": np.array([nodes[number].name for number in numbers], dtype=np.str_),
        "slurm_job": np.array([nodes[number].slurm_jobs.get(job, "") for number, job in jobs], dtype=np.str_),
        "started": _times(measured.started),
    }
    coordinates = {name: ("row", column) for name, column in rows.items()}
    points = {}
    for dim, column in measured.places.items():
        label = measured.model.labels.get(dim, "")
        if label and dim not in measured.names and any(node.numbers for node in nodes):
            points[coordinate(dim)] = _numbered(fleet, measured, column, "cpu" if label == "cpu" else "node")
    if measured.of_pairs:
        layout = measured.pair_layout
        of_pairs = np.array(layout.class_names)[layout.classes]
        points["class"] = ("point",), np.tile(of_pairs, len(measured.homes))
    attributes = {"campaign": fleet.campaign, "simulated": str(fleet.simulated).lower()}
    # a metric of a table that is of no part of a node has a point all the same
    none = ["numa_node"] if is_metric(measured.measurement) and measured.dims == ("node",) else []
    made = measured.dataset.drop_vars(["former", *none]).assign_coords(coordinates | points)
    return made.assign_attrs({**attributes, "dims": " ".join(map(coordinate, measured.dims))})


def _times(started: tuple[str, ...]) -> np.ndarray:
    """Moments (ISO 8601) as times in UTC, NaT where nothing is known."""
    times = pd.to_datetime(pd.Series(started, dtype=object), errors="coerce", utc=True, format="ISO8601")
    return times.dt.tz_localize(None).to_numpy(dtype="datetime64[ns]")


def _numbered(
    fleet: PackedFleet, measured: Measured, column: np.ndarray, kind: str
) -> tuple[tuple[str, ...], np.ndarray]:
    """The coordinates of points, slots or orders, as numbers of the operating system; others stay as they are."""
    kinds = [fleet.nodes[number].numbers.get(kind, ()) for number in measured.node.tolist()]
    if measured.of_pairs and kind == "cpu":
        kinds = [fleet.nodes[number].cpus for number in measured.node.tolist()]
    tables = {numbers: _of_table(column, np.array(numbers, dtype=np.int64)) for numbers in dict.fromkeys(kinds)}
    if len(tables) == 1:
        return ("point",), next(iter(tables.values()))
    return ("row", "point"), np.stack([tables[numbers] for numbers in kinds])


def _of_table(column: np.ndarray, numbers: np.ndarray) -> np.ndarray:
    numbered = (column >= 0) & (column < len(numbers))
    return np.where(numbered, numbers[np.where(numbered, column, 0)], column) if len(numbers) else column


def frames(of: xr.Dataset) -> Iterator[pd.DataFrame]:
    """The values that were measured, a row each with all that the dataset says of it; some rows at a time."""
    at_once = max(1, _VALUES_AT_ONCE // max(1, of.sizes["pass"] * of.sizes["point"]))
    columns = [name for name in ("measurement", "operation", "quantity", "unit") if name in of.attrs]
    for start in range(0, of.sizes["row"], at_once):
        some = of.isel(row=slice(start, start + at_once))
        frame = some.to_dataframe().reset_index().dropna(subset=["value"]).drop(columns=["row", "point"])
        of_all = {name: of.attrs[name] for name in columns}
        yield frame.assign(**of_all, simulated=of.attrs["simulated"] == "true")


def write_netcdf(of: xr.Dataset, path: Path) -> Path:
    """Write a dataset as netCDF; returns its path. Raises CannotWriteError."""
    # HDF5 prints its own error messages on a full disk: written elsewhere, then copied
    with files.replacing(path) as partial, tempfile.TemporaryDirectory(prefix="nodeprint-") as folder:
        made = Path(folder, path.name)
        packed = {"value": {"zlib": True, "complevel": 1, "shuffle": True, "dtype": "float32"}}
        of.to_netcdf(made, engine="h5netcdf", encoding=packed)
        shutil.copyfile(made, partial)
    return path


def chosen(fleet: PackedFleet, measurement: str, node: str | None = None) -> Measured:
    """A measurement of the nodes of one layout, that of `node` where several have it. Raises NodeprintError."""
    names = {of_node.name: number for number, of_node in enumerate(fleet.nodes)}
    if node is not None and node not in names:
        raise NodeprintError(f"campaign {fleet.campaign} has no node {node}", advice="choose one of .nodes")
    candidates = [measured for measured in fleet.quantities if measured.measurement == measurement]
    if node is not None:
        candidates = [measured for measured in candidates if names[node] in measured.rows]
    if not candidates:
        what = f"{fleet.campaign if node is None else node} has no values of {measurement}"
        measurements = dict.fromkeys(measured.measurement for measured in fleet.quantities)
        raise NodeprintError(what, advice=f"choose from {', '.join(measurements)}" if measurements else "measure first")
    if len(candidates) > 1:
        first = [fleet.nodes[min(measured.rows)].name for measured in candidates]
        problem = f"{measurement} was measured on {len(candidates)} kinds of machines, and a dataset is of one"
        raise NodeprintError(problem, advice=f"name a node of the kind, as {' or '.join(first[:8])}")
    return candidates[0]
