"""What a report says of a node's jobs beside their values, kept with the packed fleet: store/fleet/jobs/<node>.json.

Pages of a node then need none of its record files, which are a hundred, and may be gone.
"""

from __future__ import annotations

import hashlib
import math
import re
import statistics
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from nodeprint import reading
from nodeprint.data.job.jobs import Job, JobMeasurement
from nodeprint.data.places.measured import models
from nodeprint.errors import NodeprintError
from nodeprint.machine.topology.model import Machine
from nodeprint.stats.robust import median_of_passes

FOLDER = "jobs"
#: Another name of a node is no file's: it may be too long with its ending, or, of a verdict alone, anything.
_STEM = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,199}")

#: By kernel and operation the columns of cells that sentences are made of, which are kept as they were measured.
CURVES: Mapping[tuple[str, str], tuple[str, ...]] = {
    ("bandwidth", "groups"): ("rate_bytes_per_s",),
    ("bandwidth", "machine"): ("rate_bytes_per_s", "best_bytes_per_s"),
    ("coherence", "state"): ("latency_ns", "single_ns"),
    ("chase", "curve"): ("latency_ns",),
    ("coherence", "loaded"): ("latency_ns",),
    **{("linktest", mode): ("latency_ns",) for mode in ("semidirectional", "bidirectional", "unidirectional")},
    ("loaded", "latency"): ("latency_ns", "rate_bytes_per_s"),
    ("remap", "pairs"): ("rate_bytes_per_s",),
    ("remap", "ring"): ("writer_s", "reader_s", "writer_staggered_s", "reader_staggered_s"),
    ("coherence", "contend-pairs"): ("rate_per_s", "success_share", "fairness"),
    ("touch", "ratio"): ("ratio", "a_own_ns", "a_other_ns", "b_own_ns", "b_other_ns"),
}


class RunMeasured(msgspec.Struct, frozen=True):
    """A run of a measurement: its number, when it began, the median over places in the measurement's unit (None where
    nothing was measured), of the kernel load its records of each second, and of LinkTest the pairs that it measured
    again (`JobMeasurement`)."""

    number: int
    started: str
    median: float | None
    load_seconds: tuple[Mapping[str, Any], ...] = ()
    slowest_again: tuple[Mapping[str, Any], ...] = ()


class _Curve(msgspec.Struct, frozen=True):
    """Places and columns of cells as `JobMeasurement` has them."""

    places: Mapping[str, tuple[int, ...]]
    names: Mapping[str, tuple[str, ...]]
    columns: Mapping[str, tuple[tuple[tuple[float | None, ...], ...], ...]]


class JobMeasured(msgspec.Struct, frozen=True):
    """A measurement of a job: what all of its runs share (`header`, without the list of CPUs), how many passes a run
    has, the unit of medians, by how much runs differ (a standard deviation as a share, None of one run), the share of
    flagged values, and what sentences on its curve are made of."""

    header: Mapping[str, Any]
    runs: tuple[RunMeasured, ...]
    passes: int
    unit: str
    between_runs: float | None
    flagged: float
    of_pairs: bool
    kept_curve: _Curve | None = None

    def curve(self, name: str) -> JobMeasurement | None:
        """The cells that sentences are made of; None where there are none."""
        if self.kept_curve is None:
            return None
        kept = self.kept_curve
        return JobMeasurement(
            name,
            self.header,
            tuple({"run": run.number} for run in self.runs),
            tuple(range(self.passes)),
            {dim: np.array(places, dtype=np.int64) for dim, places in kept.places.items()},
            kept.names,
            {key: np.array(values, dtype=np.float64) for key, values in kept.columns.items()},
        )


class PackedJob(msgspec.Struct, frozen=True):
    """A job of a node: its measurements by name, and what was left out of them."""

    number: int
    measured: Mapping[str, JobMeasured]
    problems: tuple[str, ...] = ()

    @property
    def curves(self) -> list[JobMeasurement]:
        """The cells that sentences are made of, by name of their measurement."""
        curves = (measured.curve(name) for name, measured in sorted(self.measured.items()))
        return [curve for curve in curves if curve is not None]


class NodeJobs(msgspec.Struct, frozen=True):
    """The jobs of a node, the oldest first, and its processor, None where that is not known."""

    jobs: tuple[PackedJob, ...] = ()
    machine: Machine | None = None


def packed_job(job: Job) -> PackedJob:
    """What is kept of a job."""
    texts = tuple(problem.text for problem in job.problems)
    return PackedJob(job.number, {name: _measured(of) for name, of in job.measured.items()}, texts)


def _measured(measured: JobMeasurement) -> JobMeasured:
    model = models().get(measured.name)
    values: npt.NDArray[np.floating] = np.zeros((len(measured.runs), 0))
    unit = ""
    if model is not None and model.value in measured.columns:
        values = median_of_passes(measured.columns[model.value])
        unit = "share" if model.scale == "share" else measured.units[model.value]
    runs = tuple(
        RunMeasured(
            int(run["run"]),
            str(run["start_time"]),
            _median(of_run),
            tuple(run.get("load_seconds", ())),
            tuple(run.get("slowest_again", ())),
        )
        for run, of_run in zip(measured.runs, values, strict=True)
    )
    header = {key: value for key, value in measured.header.items() if key != "cpus"}
    flagged = float((measured.columns["flags"] != 0).mean())
    passes = len(measured.passes)
    return JobMeasured(header, runs, passes, unit, _between_runs(values), flagged, measured.pairs, _curve(measured))


def _median(values: npt.NDArray[np.floating]) -> float | None:
    finite = values[np.isfinite(values)]
    return float(np.median(finite)) if finite.size else None


def _between_runs(values: npt.NDArray[np.floating]) -> float | None:
    """The standard deviation over runs of how far a run is from the median of all, by the median over places (run,
    place), as a share; None of one run."""
    measured = values[np.isfinite(values).any(axis=1)]
    if len(measured) < 2:
        return None
    with np.errstate(divide="ignore", invalid="ignore"), warnings.catch_warnings(action="ignore"):
        levels = measured / np.nanmedian(measured, axis=0)
    of_runs = [median for run in levels if (median := _median(run)) is not None]
    return statistics.stdev(of_runs) if len(of_runs) > 1 else None


def _curve(measured: JobMeasurement) -> _Curve | None:
    if measured.pairs:
        return None
    kernel = str(measured.header.get("kernel")), str(measured.header.get("operation"))
    columns = {key: measured.columns[key] for key in CURVES.get(kernel, ()) if key in measured.columns}
    if not columns:
        return None
    return _Curve(
        {dim: tuple(places.tolist()) for dim, places in measured.places.items()},
        measured.names,
        {key: _as_written(column) for key, column in columns.items()},
    )


def _as_written(column: npt.NDArray[np.floating]) -> tuple[tuple[tuple[float | None, ...], ...], ...]:
    """A column (run, pass, place) as numbers of at most seven digits, None where nothing was measured."""
    return tuple(
        tuple(tuple(float(f"{v:.7g}") if math.isfinite(v) else None for v in of_pass) for of_pass in of_run)
        for of_run in column.tolist()
    )


def write(folder: Path, node: str, jobs: NodeJobs) -> None:
    """Write the jobs of a node into a packed fleet's `folder`."""
    file_of(folder, node).write_bytes(msgspec.json.encode(jobs) + b"\n")


def file_of(folder: Path, node: str) -> Path:
    """The file of a node in a packed fleet's folder."""
    stem = node if _STEM.fullmatch(node) else hashlib.sha256(node.encode("utf-8", "surrogatepass")).hexdigest()
    return folder / FOLDER / f"{stem}.json"


_DECODER = msgspec.json.Decoder(NodeJobs)


def read(folder: Path, node: str) -> NodeJobs:
    """The jobs of a node; none where the fleet was packed without them, as simulated and older ones are.

    Raises NodeprintError where its file cannot be used.
    """
    path = file_of(folder, node)
    try:
        return _DECODER.decode(reading.content(path, reading.RECORD_BYTES))
    except FileNotFoundError:
        return NodeJobs()
    except (OSError, ValueError, msgspec.MsgspecError, RecursionError) as error:
        advice = "remove the folder `store`; it is made again of the records"
        raise NodeprintError(f"not a node's jobs ({error})", where=path, advice=advice) from error
