"""node.nc: all jobs of a node for other programs, with dimensions, coordinates and units (docs/formats.md)."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import xarray as xr

from nodeprint import files
from nodeprint.campaign import job_status
from nodeprint.data.job.jobs import Job, JobMeasurement
from nodeprint.data.store import packing, store
from nodeprint.errors import NodeprintError
from nodeprint.processes import mapped
from nodeprint.waiting import counted

NAME = "node.nc"


def export(campaign: Path) -> list[Path]:
    """Write node.nc of every node of a campaign that has records, where it is older than they are; returns their paths.

    Raises NodeprintError where there is no campaign, CannotWriteError where one cannot be written.
    """
    measured = [campaign / "nodes" / node.name for node in packing.pack(campaign).nodes if node.state == "measured"]
    old = [place for place in measured if _written(place / NAME) < _newest(place)]
    for _ in counted(mapped(write, old, len(os.sched_getaffinity(0))), len(old), "nodes exported"):
        pass
    return [place / NAME for place in measured]


def fresh(node_dir: Path) -> Path:
    """node.nc of a node, written first where it is older than its records; where the campaign cannot be written, beside
    what is read of it (`store.folder`). Raises CannotWriteError."""
    if _written(node_dir / NAME) >= _newest(node_dir):
        return node_dir / NAME
    campaign = node_dir.parent.parent
    return write(node_dir, node_dir if store.base(campaign) == campaign else store.folder(node_dir))


def _written(path: Path) -> int:
    """When a file was written, in ns; -1 where it is not there."""
    return path.stat().st_mtime_ns if path.is_file() else -1


def _newest(node_dir: Path) -> int:
    """When the newest of a node's files was written; 0 without any."""
    return max(map(_written, store.sources(node_dir)), default=0)


def write(node_dir: Path, to: Path | None = None) -> Path:
    """Write node.nc of a node into its folder or another, from its jobs as they are kept; returns its path. Raises
    CannotWriteError."""
    path = (to or node_dir) / NAME
    jobs = store.jobs_of(node_dir)
    problems = [problem.text for job in jobs for problem in job.problems]
    tree = {"/": xr.Dataset(attrs={"node": node_dir.name, "problems": json.dumps(problems)})}
    # a variable: an HDF5 attribute holds 64 KiB
    if labels := store.survey(node_dir).topology:
        tree["/"]["topology"] = ((), labels)
    for job in jobs:
        outcome = job_status.plain(job.status) if job.status is not None else {}
        facts = {"status": outcome, "not_applicable": dict(job.not_applicable)}
        attributes = {key: json.dumps(value, sort_keys=True) for key, value in facts.items()}
        tree[f"/job{job.number}"] = xr.Dataset(attrs=attributes)
        tree |= {f"/job{job.number}/{name}": dataset(measured) for name, measured in job.measured.items()}
    # HDF5 prints its own error messages on a full disk: written elsewhere, then copied
    with files.replacing(path) as partial, tempfile.TemporaryDirectory(prefix="nodeprint-") as folder:
        made = Path(folder, NAME)
        with h5py.File(made, "w", track_order=True) as file:
            for group, data in tree.items():
                _write_group(file if group == "/" else file.create_group(group, track_order=True), data)
        shutil.copyfile(made, partial)
    return path


def _write_group(group: h5py.Group, data: xr.Dataset) -> None:
    """A dataset as netCDF-4 has it, by h5py.

    xarray's own to_netcdf writes as small a file, but for a node of 2 x 64 cores (19 groups, 333 variables, 37 MB) it
    takes 4.7 s of CPU where this takes 0.8: h5netcdf looks every variable and dimension up again and again. At the end
    of a run over 64 nodes these are two minutes on two cores. The table of deviations, one group, is written by it.
    """
    group.attrs.update(data.attrs)
    scales = {}
    for dim in data.dims:
        scales[dim] = _write_variable(group, data[dim])
        scales[dim].make_scale(str(dim))
    for name in data.data_vars:
        made = _write_variable(group, data[name])
        for axis, dim in enumerate(data[name].dims):
            h5py.h5ds.attach_scale(made.id, scales[dim].id, axis)


def _write_variable(group: h5py.Group, data: xr.DataArray) -> h5py.Dataset:
    values, kind = data.to_numpy(), {}
    if values.dtype.kind in "OU":
        values, kind = values.astype(object), {"dtype": h5py.string_dtype()}
    elif values.dtype.kind == "b":  # netCDF has none; xarray reads it back by the attribute
        values = values.astype(np.int8)
    packed = {"chunks": (1, *values.shape[1:]), "compression": 1, "shuffle": True} if values.ndim > 1 else {}
    made = group.create_dataset(data.name, data=values, **kind, **packed)
    made.attrs.update(data.attrs | ({"dtype": "bool"} if data.dtype.kind == "b" else {}))
    if values.dtype.kind == "f":
        made.attrs["_FillValue"] = values.dtype.type(np.nan)
    return made


def dataset(measured: JobMeasurement) -> xr.Dataset:
    """A measurement over (run, pass) and its own dimensions.

    Matrices of pairs are (run, pass, home, a, b), filled on both sides unless the operation is directed. `home` has the
    NUMA nodes where they are a dimension of the result, and -1 alone when each pair's home follows from the policy.
    """
    axes: dict[str, Any] = {dim: measured.axis(dim) for dim in measured.places}
    if measured.pairs:
        axes["a"] = axes["b"] = np.array(measured.cpus)
    on_axes = [np.searchsorted(axes[dim], np.array(measured.keys(dim))) for dim in measured.places]
    shape = (len(measured.runs), len(measured.passes), *(len(axis) for axis in axes.values()))
    dims, units = ("run", "pass", *axes), measured.units
    variables = {}
    for key, column in measured.columns.items():
        absent = {"u": 0, "i": -1, "f": np.nan}[column.dtype.kind]
        out = np.full(shape, absent, column.dtype)
        index: Any = (slice(None), slice(None), *on_axes)
        out[index] = column
        if measured.pairs and not measured.header.get("directed"):
            home, a, b = on_axes
            out[:, :, home, b, a] = column
        variables[key] = (dims, out, {"units": units[key]} if key in units else {})
    if measured.pairs:
        clocks = np.array([run["clock_ghz"] for run in measured.runs], dtype=np.float32)
        variables["clock_ghz"] = (("run", "a"), clocks, {"units": "GHz"})
    coordinates = {"run": measured.numbers, "pass": list(measured.passes)} | {
        dim: axis.astype(object) if axis.dtype.kind == "U" else axis for dim, axis in axes.items()
    }
    result = xr.Dataset(variables | _per_run(measured), coords=coordinates)
    result.attrs = {key: json.dumps(value) for key, value in measured.header.items()}
    return result


def _per_run(measured: JobMeasurement) -> dict[str, Any]:
    def texts(key: str) -> Any:
        return np.array([run[key] for run in measured.runs], dtype=object)

    def objects(key: str) -> Any:
        return np.array([json.dumps(run[key]) for run in measured.runs], dtype=object)

    def figures(key: str) -> Any:
        return np.array([float(run["trailer"].get(key, np.nan)) for run in measured.runs])

    return {
        "seed": ("run", np.array([run["seed"] for run in measured.runs], dtype=np.uint64)),
        "start_time": ("run", texts("start_time")),
        "boot_id": ("run", texts("boot_id")),
        "segments": ("run", np.array([run["segments"] for run in measured.runs])),
        "complete": ("run", np.array([run["complete"] for run in measured.runs])),
        "elapsed_s": ("run", figures("elapsed_s"), {"units": "s"}),
        "steal_s": ("run", figures("steal_s"), {"units": "s"}),
        "involuntary_switches": ("run", figures("involuntary_switches")),
        "trailer": ("run", objects("trailer")),
        "sensors_before": ("run", objects("sensors")),
    }


def read(path: Path) -> tuple[list[Job], str]:
    """The latencies of pairs in a node.nc, job by job, and the node's topology as text (empty without).

    Raises NodeprintError where it is none.
    """
    try:
        tree = xr.open_datatree(path, engine="h5netcdf").load()
        labels = str(tree["topology"].item()) if "topology" in tree else ""
        jobs = []
        for group, child in sorted(tree.children.items(), key=lambda item: int(item[0].removeprefix("job"))):
            measured = {name: _pairs(name, sub.to_dataset()) for name, sub in child.children.items() if "a" in sub.dims}
            jobs.append(Job(int(group.removeprefix("job")), None, measured))
        tree.close()
    except (OSError, ValueError, KeyError) as error:
        raise NodeprintError(
            "is no node.nc of nodeprint", where=path, advice="write it again with `nodeprint export`"
        ) from error
    return jobs, labels


def _pairs(name: str, data: xr.Dataset) -> JobMeasurement:
    header: Mapping[str, Any] = {str(key): json.loads(value) for key, value in data.attrs.items()}
    latency = data["latency_ns"].transpose("run", "pass", "home", "a", "b").to_numpy()
    home, a, b = np.nonzero(np.isfinite(latency).any(axis=(0, 1)))
    keep = slice(None) if header.get("directed") else a < b
    home, a, b = home[keep], a[keep], b[keep]
    cpus = data["a"].to_numpy()
    places = {"home": data["home"].to_numpy()[home], "a": cpus[a], "b": cpus[b]}
    runs = tuple({"run": int(run)} for run in data["run"].to_numpy())
    return JobMeasurement(
        name,
        header,
        runs,
        tuple(data["pass"].to_numpy().tolist()),
        places,
        {},
        {"latency_ns": latency[:, :, home, a, b]},
    )
