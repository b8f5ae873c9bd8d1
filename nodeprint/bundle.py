"""One node's bundle: the records of all its jobs as arrays, its survey, and what is wrong with them.

A bundle is read tolerantly: a file that cannot be used is left out and named in `problems`, what is good stays.
"""

from __future__ import annotations

import contextlib
import json
import re
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import xarray as xr

from nodeprint import files, records, topology
from nodeprint.errors import NodeprintError
from nodeprint.records import Records
from nodeprint.topology.model import Topology
from nodeprint.tree import Tree, open_tree

_JOB = re.compile(r"job([1-9]\d*)")
_RUN = re.compile(r"run([1-9]\d*)")
#: Header keys that belong to one run; the others describe the measurement.
_PER_RUN = ("record", "segment", "run", "seed", "start_time", "boot_id", "sensors")


@dataclass(frozen=True)
class Job:
    """One submission of a node: its outcome (status.json, empty while it runs) and a dataset a measurement.

    `measurements` are of pairs of CPUs, with dimensions (run, pass, home, a, b); `cells` are all others, with
    dimensions (run, pass) and their own; see docs/formats.md, node.nc. `not_applicable` says why a measurement has
    nothing to measure on this node.
    """

    number: int
    status: Mapping[str, Any]
    measurements: Mapping[str, xr.Dataset]
    cells: Mapping[str, xr.Dataset] = field(default_factory=dict)
    not_applicable: Mapping[str, str] = field(default_factory=dict)

    @property
    def names(self) -> tuple[str, ...]:
        """Everything that was measured, pairs first."""
        return (*self.measurements, *self.cells)

    def header(self, measurement: str) -> dict[str, Any]:
        """The header keys that hold for all runs of a measurement."""
        data = self.measurements[measurement] if measurement in self.measurements else self.cells[measurement]
        return {str(key): json.loads(value) for key, value in data.attrs.items()}


@dataclass(frozen=True)
class Bundle:
    """All jobs of a node, by number. `problems` are sentences about files that were left out.

    `labels` is the topology as node.nc has it (JSON), None where there is none or it was labelled by other rules.
    """

    node: str
    path: Path
    jobs: tuple[Job, ...]
    problems: tuple[str, ...]
    labels: str | None = None

    @property
    def hosts(self) -> tuple[str, ...]:
        """Every host name that the records and outcomes carry; one, unless bundles were mixed up."""
        names = {str(job.header(name)["host"]) for job in self.jobs for name in job.names}
        names |= {str(job.status["host"]) for job in self.jobs if "host" in job.status}
        return tuple(sorted(names))

    @property
    def host(self) -> str:
        """The host name of the records, or the node's name when there are none."""
        return self.hosts[0] if self.hosts else self.node

    @cached_property
    def survey(self) -> Tree | None:
        """The newest job's survey, None where there is none that can be read."""
        for path in sorted(self.path.glob("job*/survey.tar.gz"), key=_job_number, reverse=True):
            try:
                return open_tree(path)
            except NodeprintError:
                continue
        return None

    @cached_property
    def topology(self) -> Topology | None:
        """Labels of the node's CPUs: as packed, from a topology.json beside imported records, or from the survey."""
        if self.labels is not None:
            return topology.from_text(self.labels)
        for path in sorted(self.path.glob("job*/topology.json"), key=_job_number, reverse=True):
            return topology.from_json(path)
        return topology.read(self.survey) if self.survey else None


def load(node_dir: Path) -> Bundle:
    """Read a node's folder: from node.nc where it is newer than every record, else from the records themselves.

    Raises NodeprintError when the folder is not there.
    """
    if not node_dir.is_dir():
        raise NodeprintError(
            "no such node folder", where=node_dir, advice="name a folder below results/<campaign>/nodes"
        )
    packed = node_dir / "node.nc"
    if packed.exists() and packed.stat().st_mtime_ns >= _newest(node_dir):
        return _load_packed(node_dir, packed)
    return _load_records(node_dir)


def pack(node_dir: Path) -> Bundle:
    """Write all jobs of a node into node.nc, atomically; returns them.

    Raises CannotWriteError, and NodeprintError on records that cannot be read.
    """
    bundle = _load_records(node_dir)
    packed = node_dir / "node.nc"
    # HDF5 prints its own error messages on a full disk: written elsewhere, then copied
    with files.replacing(packed) as partial, tempfile.TemporaryDirectory(prefix="nodeprint-") as folder:
        shutil.copyfile(_write(bundle, Path(folder, "node.nc")), partial)
    return bundle


def _write(bundle: Bundle, path: Path) -> Path:
    root = xr.Dataset(attrs={"node": bundle.node, "problems": json.dumps(bundle.problems)})
    # Unpacking a survey and labelling take longer than all else that a report reads of a node.
    with contextlib.suppress(NodeprintError):  # who needs the labels meets the error again
        if bundle.topology is not None:
            # a variable: an HDF5 attribute holds 64 KiB
            root["topology"] = ((), json.dumps(topology.as_json(bundle.topology)))
            root["topology"].attrs["labelled_by"] = topology.labelled_by()
    root.to_netcdf(path, mode="w", engine="h5netcdf")
    for job in bundle.jobs:
        status = xr.Dataset(
            attrs={
                "status": json.dumps(dict(job.status), sort_keys=True),
                "not_applicable": json.dumps(dict(job.not_applicable), sort_keys=True),
            }
        )
        status.to_netcdf(path, mode="a", group=f"job{job.number}", engine="h5netcdf")
        for name, dataset in (*job.measurements.items(), *job.cells.items()):
            dataset.to_netcdf(
                path,
                mode="a",
                group=f"job{job.number}/{name}",
                engine="h5netcdf",
                encoding={v: {"zlib": True, "complevel": 1} for v in dataset.data_vars if dataset[v].ndim > 1},
            )
    return path


def _job_number(path: Path) -> int:
    match = _JOB.fullmatch(path.name if path.is_dir() else path.parent.name)
    return int(match[1]) if match else 0


def _newest(node_dir: Path) -> int:
    patterns = ("run*/*.jsonl*", "status.json", "survey.tar.gz", "topology.json")
    files = (file for pattern in patterns for file in node_dir.glob(f"job*/{pattern}"))
    return max((file.stat().st_mtime_ns for file in files), default=0)


def _load_packed(node_dir: Path, packed: Path) -> Bundle:
    try:
        tree = xr.open_datatree(packed, engine="h5netcdf").load()
    except (OSError, ValueError, KeyError) as error:
        raise NodeprintError(
            "not a packed node", where=packed, advice="remove it; it is made again from the records"
        ) from error
    jobs = []
    for group, child in sorted(tree.children.items(), key=lambda item: int(item[0].removeprefix("job"))):
        found = {name: sub.to_dataset() for name, sub in sorted(child.children.items())}
        jobs.append(
            Job(
                int(group.removeprefix("job")),
                json.loads(child.attrs["status"]),
                {name: data for name, data in found.items() if "cells" not in data.attrs},
                {name: data for name, data in found.items() if "cells" in data.attrs},
                json.loads(child.attrs.get("not_applicable", "{}")),
            )
        )
    tree.close()
    kept = tree.get("topology")
    labels = str(kept.item()) if kept is not None and kept.attrs["labelled_by"] == topology.labelled_by() else None
    return Bundle(node_dir.name, node_dir, tuple(jobs), tuple(json.loads(tree.attrs["problems"])), labels)


def _load_records(node_dir: Path) -> Bundle:
    problems: list[str] = []
    jobs = []
    for job_dir in sorted((p for p in node_dir.iterdir() if p.is_dir() and _JOB.fullmatch(p.name)), key=_job_number):
        by_name: dict[str, list[Records]] = {}
        for path in _record_files(job_dir):
            try:
                file = records.read(path, _called(path))
            except NodeprintError as error:
                problems.append(str(error))
            else:
                by_name.setdefault(path.name.split(".")[0], []).append(file)
        measurements, cells, not_applicable = {}, {}, {}
        for name, found in sorted(by_name.items()):
            alike = [file for file in found if _comparable(file) == _comparable(found[0])]
            problems += [
                f"{_called(f.path)}: other host, operation or arguments than {_called(found[0].path)}; left out"
                for f in found
                if f not in alike
            ]
            problems += [note for file in alike for note in file.notes]
            if any(len(file.pairs["a"]) for file in alike):
                measurements[name] = dataset(alike)
            elif any(len(file.cells["pass"]) for file in alike if file.dims):
                cells[name] = dataset(alike)
            elif alike[0].not_applicable is not None:
                not_applicable[name] = alike[0].not_applicable
            else:
                problems.append(f"{name}, {job_dir.name}: nothing was measured")
        status = _status(job_dir / "status.json", problems)
        jobs.append(Job(_job_number(job_dir), status, measurements, cells, not_applicable))
    return Bundle(node_dir.name, node_dir, tuple(jobs), tuple(problems))


def _record_files(job_dir: Path) -> list[Path]:
    """Record files in order of their runs; of a plain and a compressed file of one name, the compressed one."""
    found: dict[tuple[int, str], Path] = {}
    for path in sorted(job_dir.glob("run*/*.jsonl*")):
        run = _RUN.fullmatch(path.parent.name)
        if run and path.name.endswith((".jsonl", ".jsonl.gz")):
            found[int(run[1]), path.name.split(".")[0]] = path
    return [found[key] for key in sorted(found)]


def _called(path: Path) -> str:
    """A record file of a node in the words of the verdict: measurement, job and run."""
    return f"{path.name.split('.')[0]}, {path.parent.parent.name}/{path.parent.name}"


def _comparable(file: Records) -> tuple[str, ...]:
    keys = ("host", "kernel", "operation", "quantity", "unit", "home", "arguments")
    return tuple(json.dumps(file.header.get(key)) for key in keys)


def _status(path: Path, problems: list[str]) -> dict[str, Any]:
    try:
        status = json.loads(path.read_text())
        if not isinstance(status, dict):
            raise ValueError("not an object")
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, RecursionError):
        problems.append(f"status.json of {path.parent.name}: not readable as JSON; its outcome is unknown")
        return {}
    return status


def dataset(runs: Sequence[Records]) -> xr.Dataset:
    """The runs of one measurement as arrays, float32, NaN where nothing was measured.

    Cells are over (run, pass) and the dimensions that their header names, words in alphabetical order; values in bytes
    or Hz are float64. Pairs are over (run, pass, home, a, b):

    Matrices are filled on both sides unless the operation is directed. `home` has the NUMA nodes when they are a
    dimension of the result (policy `each`, or a node), and -1 alone when each pair's home follows from the policy.
    """
    header = runs[0].header
    if runs[0].dims:
        return _cells(runs)
    by_node = header.get("home") not in ("first", "second", None)
    cpus = np.array(sorted({cpu for run in runs for key in "ab" for cpu in run.pairs[key]}))
    passes = np.array(sorted({value for run in runs for value in run.pairs["pass"]}))
    homes = np.array(sorted({value for run in runs for value in run.pairs["home"]})) if by_node else np.array([-1])
    numbers = np.array([run.header["run"] for run in runs])
    shape = (len(runs), len(passes), len(homes), len(cpus), len(cpus))
    arrays = {key: np.full(shape, np.nan, np.float32) for key in records.PAIR_VALUES}
    flags, pair_home = np.zeros(shape, np.uint8), np.full(shape, -1, np.int16)
    for r, run in enumerate(runs):
        a, b = np.searchsorted(cpus, run.pairs["a"]), np.searchsorted(cpus, run.pairs["b"])
        p = np.searchsorted(passes, run.pairs["pass"])
        h = np.searchsorted(homes, run.pairs["home"]) if by_node else np.zeros_like(p)
        for i, j in ((a, b),) if header.get("directed") else ((a, b), (b, a)):
            for key, array in arrays.items():
                array[r, p, h, i, j] = run.pairs[key]
            flags[r, p, h, i, j] = run.pairs["flags"]
            pair_home[r, p, h, i, j] = run.pairs["home"]
    dims = ("run", "pass", "home", "a", "b")
    result = xr.Dataset(
        {key: (dims, array, {"units": "ns"}) for key, array in arrays.items()}
        | {"flags": (dims, flags), "pair_home": (dims, pair_home)}
        | {"clock_ghz": (("run", "a"), np.stack([_clocks(run, cpus) for run in runs]), {"units": "GHz"})}
        | _per_run(runs),
        coords={"run": numbers, "pass": passes, "home": homes, "a": cpus, "b": cpus},
    )
    result.attrs = _attributes(header)
    return result


def _clocks(run: Records, cpus: npt.NDArray[Any]) -> npt.NDArray[np.float32]:
    """The median clock of each CPU just before its pairs, GHz; NaN where no pair has it."""
    cpu = np.concatenate([run.pairs["a"], run.pairs["b"]])
    clock = np.concatenate([run.pairs[key] for key in records.PAIR_CLOCKS])
    out = np.full(len(cpus), np.nan, np.float32)
    for i, one in enumerate(cpus):
        mine = clock[(cpu == one) & (clock > 0)]
        if len(mine):
            out[i] = np.median(mine)
    return out


def _cells(runs: Sequence[Records]) -> xr.Dataset:
    dims = ("pass", *runs[0].dims)
    measured = [run for run in runs if len(run.cells["pass"])]
    coords = {key: np.unique(np.concatenate([run.cells[key] for run in measured])) for key in dims}
    shape = (len(runs), *(len(coords[key]) for key in dims))
    units = runs[0].units
    arrays = {key: np.full(shape, np.nan, np.float32 if unit == "ns" else np.float64) for key, unit in units.items()}
    flags = np.zeros(shape, np.uint8)
    for r, run in enumerate(runs):
        if not len(run.cells["pass"]):
            continue
        at: Any = (r, *(np.searchsorted(coords[key], run.cells[key]) for key in dims))
        for key, array in arrays.items():
            array[at] = run.cells[key]
        flags[at] = run.cells["flags"]
    result = xr.Dataset(
        {key: (("run", *dims), array, {"units": units[key]}) for key, array in arrays.items()}
        | {"flags": (("run", *dims), flags)}
        | _per_run(runs),
        coords={"run": np.array([run.header["run"] for run in runs])}
        | {key: values.astype(object) if values.dtype.kind == "U" else values for key, values in coords.items()},
    )
    result.attrs = _attributes(runs[0].header)
    return result


def _attributes(header: Mapping[str, Any]) -> dict[str, str]:
    return {key: json.dumps(value) for key, value in header.items() if key not in _PER_RUN}


def _per_run(runs: Sequence[Records]) -> dict[str, Any]:
    return {
        "seed": ("run", np.array([run.header.get("seed", 0) for run in runs], dtype=np.uint64)),
        "start_time": (
            "run",
            np.array([str(run.header.get("start_time", "")) for run in runs], dtype=object),
        ),
        "boot_id": ("run", np.array([str(run.header.get("boot_id", "")) for run in runs], dtype=object)),
        "segments": ("run", np.array([len(run.headers) for run in runs])),
        "complete": ("run", np.array([run.complete for run in runs])),
        "elapsed_s": ("run", _from_trailer(runs, "elapsed_s"), {"units": "s"}),
        "steal_s": ("run", _from_trailer(runs, "steal_s"), {"units": "s"}),
        "involuntary_switches": ("run", _from_trailer(runs, "involuntary_switches")),
        "trailer": ("run", np.array([json.dumps(run.trailer or {}) for run in runs], dtype=object)),
        "sensors_before": ("run", np.array([json.dumps(run.header.get("sensors")) for run in runs], dtype=object)),
    }


def _from_trailer(runs: Sequence[Records], key: str) -> np.ndarray[Any, np.dtype[np.float64]]:
    return np.array([float((run.trailer or {}).get(key, np.nan)) for run in runs])
