"""One job of a node as arrays: its record files read once, tolerantly.

`problems` name the files that cannot be used; the others are read.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from nodeprint.campaign import job_status, run_files
from nodeprint.campaign.job_status import JobStatus, RunOutcome
from nodeprint.campaign.run_files import Problem
from nodeprint.data.format import records
from nodeprint.data.format.records import PAIR_CLOCKS, PAIR_VALUES, Records
from nodeprint.data.places.layout import Layout
from nodeprint.errors import UNEXPECTED_CONTENT, NodeprintError, printable, unexpected
from nodeprint.settings.config_file import COMMAND
from nodeprint.settings.measurements import Model
from nodeprint.stats.distinct import distinct

JOB = re.compile(r"job([1-9][0-9]{0,8})")
#: Header keys that belong to one run; the others describe the measurement.
PER_RUN = ("record", "segment", "run", "seed", "start_time", "boot_id", "sensors")

Array = npt.NDArray[Any]


class JobMeasurement(msgspec.Struct, frozen=True, dict=True):
    """One measurement of one job of one node: runs x passes x measurement points.

    It comes from the records as measured, and `nodeprint.data.job.job_points` brings it to canonical points.

    **As measured**, `places` has the int64 coordinates (place) of each dimension, by OS number. Coordinates of a
    dimension of words are numbers of `names`. Places are sorted, each once. Pairs of CPUs have the dimensions home, a
    and b. In measurements that are not directed, a < b. If the home follows from the policy, it is -1. `columns` are
    (run, pass, place): float32 in ns, float64 in other units, NaN if not measured. `flags` are uint8 bits. Pairs also
    have `pair_home`, the NUMA node of the lines (int16, -1 unknown). `header` holds the keys that all runs share.
    `runs` has for each run its number, directory, seed, start_time, boot_id, segments, complete, sensors and trailer.
    Pairs add clock_ghz, the median clock of each CPU just before its pairs (None unknown). The kernel load adds
    load_seconds, LinkTest slowest_again (`_slowest_again`).

    **At canonical points** it has a `layout`, the numbers of its `node` in the fleet and of its `job`, and coordinates
    as in `Measured`. Its only column is `value`. `header` has operation, quantity, unit and tick_ns, a run its run,
    start_time and share disturbed. The properties below are those of a measurement as measured.

    **A metric of a site's own command** has a `model`, and `source` names the command's measurement.
    """

    name: str
    header: Mapping[str, Any]
    runs: tuple[Mapping[str, Any], ...]
    passes: tuple[int, ...]
    places: Mapping[str, Array]
    names: Mapping[str, tuple[str, ...]]
    columns: Mapping[str, Array]
    node: int = -1
    job: int = 0
    layout: Layout | None = None
    model: Model | None = None
    source: str = ""

    @property
    def of_measurement(self) -> str:
        """The measurement of the plan that it is of."""
        return self.source or self.name

    @property
    def pairs(self) -> bool:
        """Whether its places are pairs of CPUs."""
        return "cells" not in self.header

    @property
    def units(self) -> dict[str, str]:
        """The unit of each column but flags."""
        return dict.fromkeys(PAIR_VALUES, "ns") if self.pairs else dict(self.header.get("cells", {})["values"])

    @property
    def numbers(self) -> list[int]:
        """The numbers of its runs."""
        return [int(run["run"]) for run in self.runs]

    def keys(self, dim: str) -> list[int] | list[str]:
        """The coordinate of each place, a word where the dimension is of words."""
        coordinates: list[int] = self.places[dim].tolist()
        return [self.names[dim][word] for word in coordinates] if dim in self.names else coordinates

    def axis(self, dim: str) -> Array:
        """The sorted coordinates of a dimension: int64, or words."""
        coordinates = np.unique(self.places[dim])
        return np.array(self.names[dim])[coordinates] if dim in self.names else coordinates

    def grid(self, key: str) -> Array:
        """A column of cells by run, pass and each dimension of `places`; NaN without a measured value."""
        place, shape = [], []
        for coordinates in self.places.values():
            axis, on_axis = np.unique(coordinates, return_inverse=True)
            place.append(on_axis)
            shape.append(len(axis))
        column = self.columns[key]
        out = np.full((*column.shape[:2], *shape), np.nan)
        index: Any = (slice(None), slice(None), *place)
        out[index] = column
        return out

    @cached_property
    def cpus(self) -> list[int]:
        """The measured CPUs of pairs; empty for cells."""
        if not self.pairs:
            return []
        ends = np.concatenate([self.places["a"], self.places["b"]])
        cpus: list[int] = ends[distinct(ends[:, None])[0]].tolist()
        return cpus


class CommandOutput(msgspec.Struct, frozen=True):
    """The output of a site's command in a run: the lines, and the exit `status` (None if it did not end)."""

    header: Mapping[str, Any]
    run: Mapping[str, Any]
    lines: tuple[str, ...]
    status: int | None


class Job(msgspec.Struct, frozen=True):
    """One submission of a node: its outcome (None while it has none) and its measurements by name.

    `not_applicable` says why a measurement has nothing to measure on this node, or no program that it needs;
    `problems` what was left out. `outputs` are those of the site's commands, by measurement. `unread` has the reason
    for each without values. `wrong` is the sentence of a command that found its own result wrong.
    """

    number: int
    status: JobStatus | None
    measured: Mapping[str, JobMeasurement]
    not_applicable: Mapping[str, str] = {}
    problems: tuple[Problem, ...] = ()
    outputs: Mapping[str, tuple[CommandOutput, ...]] = {}
    unread: Mapping[str, str] = {}
    wrong: str = ""

    @property
    def rows(self) -> Sequence[RunOutcome]:
        """The outcome of every run of every measurement."""
        return self.status.measurements if self.status is not None else ()

    @property
    def untaken(self) -> Mapping[str, str]:
        """The reason by name for each measurement of the job without a run."""
        rows = [run for run in self.rows if run.outcome != "done"]
        tried = {printable(run.name, 80): run.message or run.outcome for run in reversed(rows)}
        tried |= {**self.not_applicable, **self.unread}
        measured = {of.of_measurement for of in self.measured.values()}
        return {name: printable(why, 300) for name, why in tried.items() if name not in measured}

    @property
    def pairs(self) -> list[JobMeasurement]:
        """Its measurements of pairs of CPUs, by name."""
        return [measured for _, measured in sorted(self.measured.items()) if measured.pairs]

    @property
    def cells(self) -> list[JobMeasurement]:
        """Its other measurements, by name."""
        return [measured for _, measured in sorted(self.measured.items()) if not measured.pairs]

    @property
    def hosts(self) -> set[str]:
        """Every host name that its records and outcome carry."""
        of_records = {str(measured.header["host"]) for measured in self.measured.values()}
        return of_records | ({self.status.host} if self.status is not None else set())


def number_of(job_dir: Path) -> int:
    """The number of a job by its directory, 0 if it is none."""
    match = JOB.fullmatch(job_dir.name)
    return int(match[1]) if match else 0


def folders(node_dir: Path) -> list[Path]:
    """The directories of a node's jobs, in order, without links."""
    jobs = (path for path in node_dir.iterdir() if number_of(path) and path.is_dir() and not path.is_symlink())
    return sorted(jobs, key=number_of)


def read(job_dir: Path) -> Job:  # noqa: PLR0912 (a kind of content each)
    """A job from its records and status.json."""
    problems: list[Problem] = []
    files: list[Records] = []
    with_file = set[tuple[int, str]]()
    for path, content in run_files.contents(job_dir, problems):
        with_file.add(_run_and_name(path))
        try:
            files.append(records.read(path, _called(path), content))
        except NodeprintError as error:
            problems.append(_problem(path, printable(error.problem, 500)))  # the node's action has the advice
        except UNEXPECTED_CONTENT as error:
            problems.append(_problem(path, f"{_called(path)}: {unexpected(error)}"))
    status = _status(job_dir, problems)
    by_name: dict[str, list[Records]] = {}
    for file, why in zip(files, _misplaced(files, status), strict=True):
        if why:
            problems.append(_problem(file.path, f"{_called(file.path)}, line 1: {why}; it was written elsewhere"))
        else:
            by_name.setdefault(_run_and_name(file.path)[1], []).append(file)
    problems += [_problem(file.path, f"{_called(file.path)}: {why}") for file, why in _of_other_clocks(files)]
    measured, not_applicable, outputs = {}, {}, {}
    for name, of_name in sorted(by_name.items()):
        kinds = Counter(map(_comparable, of_name))
        first = max(of_name, key=lambda file: kinds[_comparable(file)])
        alike = [file for file in of_name if _comparable(file) == _comparable(first)]
        why = f"other host, operation or arguments than {_called(first.path)}; left out"
        problems += [
            _problem(file.path, f"{_called(file.path)}: {why}")
            for file in of_name
            if _comparable(file) != _comparable(first)
        ]
        problems += [_problem(file.path, note) for file in alike for note in file.notes]
        if first.header["kernel"] == COMMAND:
            outputs[name] = tuple(map(_output, alike))
            continue
        if any(len(file.pairs["a"]) for file in alike):
            measured[name] = _pairs(name, alike)
        elif any(len(file.cells["pass"]) for file in alike if file.dims):
            measured[name] = _cells(name, alike)
        elif alike[0].not_applicable is not None:
            not_applicable[name] = alike[0].not_applicable
        else:
            problems.append(Problem(f"{name}, {job_dir.name}: nothing was measured", names=(name,)))
    done = {(run.run, run.name) for run in (status.measurements if status else ()) if run.outcome == "done"}
    for run, gone in groupby(sorted({*run_files.lost(job_dir), *(done - with_file)}), key=itemgetter(0)):
        names = tuple(name for _, name in gone)
        listed = printable(", ".join(names), 300)
        problems.append(
            Problem(f"{job_dir.name}/run{run}: records of {listed} are gone, though they were made", run, names)
        )
    not_applicable |= {
        printable(run.name, 80): run.message
        for run in (status.measurements if status is not None else ())
        if run.outcome == "unavailable" and run.name not in measured
    }
    return Job(number_of(job_dir), status, measured, not_applicable, tuple(problems), outputs)


def of_file(path: Path) -> JobMeasurement | None:
    """The pairs in a record file or in a run's archive, there of compare-exchange where it has them; None without any.

    Raises NodeprintError naming file and line.
    """
    problems: list[str] = []
    contents: list[tuple[Path, bytes | None]] = [(path, None)]
    if path.name.endswith(run_files.ARCHIVE):
        members = run_files.members(path, problems)
        contents = sorted(members, key=lambda member: (member[0].name != "coherence-cas.jsonl", member[0]))
    for record_file, content in contents:
        file = records.read(record_file, raw=content)
        if len(file.pairs["a"]):
            return _pairs(record_file.name.split(".")[0], [file])
    if problems:
        raise NodeprintError(problems[0], where=path, advice="measure the node again")
    return None


def _called(path: Path) -> str:
    """A record file of a node in the words of the verdict: measurement, job and run."""
    return f"{path.name.split('.')[0]}, {path.parent.parent.name}/{path.parent.name}"


def _run_and_name(path: Path) -> tuple[int, str]:
    return int(path.parent.name.removeprefix("run")), path.name.split(".")[0]


def _problem(path: Path, text: str) -> Problem:
    """What of a record file cannot be used."""
    run, name = _run_and_name(path)
    return Problem(text, run, (name,))


def _comparable(file: Records) -> tuple[str, ...]:
    keys = ("host", "kernel", "operation", "quantity", "unit", "home", "arguments")
    return tuple(json.dumps(file.header.get(key)) for key in keys)


def _misplaced(files: Sequence[Records], status: JobStatus | None) -> list[str]:
    """Of each record file of a job why it cannot be from there; empty where it can.

    The header states the run. A merged campaign may have renumbered the job: then its outcome has the measured number.
    Without an outcome, the number of most of its records applies. The same holds for the host.
    """
    jobs = Counter(file.header["job"] for file in files)
    hosts = Counter(str(file.header["host"]) for file in files)
    job = status.job if status is not None else max(jobs, key=lambda number: jobs[number], default=0)
    own = status.host if status is not None else ""
    host = max(hosts, key=lambda name: (hosts[name], name == own), default="")
    out = []
    for file in files:
        expected = {"run": _run_and_name(file.path)[0], "job": job, "host": host}
        wrong = [key for key, value in expected.items() if file.header[key] != value]
        out.append(
            f"key '{wrong[0]}' is {printable(str(file.header[wrong[0]]), 80)}, not {expected[wrong[0]]}"
            if wrong
            else ""
        )
    return out


#: A counter is calibrated over 20 ms to some parts in a million; beside load on a virtual machine less well.
_MOST_CLOCK_SHARE, _FEWEST_CLOCKS = 5e-3, 3


def _of_other_clocks(files: Sequence[Records]) -> Iterator[tuple[Records, str]]:
    """Return the records of a job in which the CPUs' counter ran at another rate than in most. Their times are wrong by
    this factor, but they count."""
    rates = [(file, _counter_hz(file)) for file in files]
    known = [hz for _, hz in rates if hz]
    usual = float(np.median(known)) if len(known) >= _FEWEST_CLOCKS else 0.0
    for file, hz in rates:
        if hz and usual and abs(hz / usual - 1) > _MOST_CLOCK_SHARE:
            yield file, f"the counter ran at {hz / 1e9:.5g} GHz, where most records of the job have {usual / 1e9:.5g}"


def _counter_hz(file: Records) -> float:
    """The rate of the CPUs' own counter; 0 where it is not what timed."""
    clock = file.header.get("clock") or {}
    return float(clock["hz"]) if clock.get("source") in ("tsc", "cntvct") else 0.0


def _status(job_dir: Path, problems: list[Problem]) -> JobStatus | None:
    try:
        return job_status.read(job_dir)
    except NodeprintError as error:
        why = error.problem.removeprefix(f"{job_dir / job_status.NAME}: ")
        problems.append(Problem(printable(f"{job_dir.name}/{job_status.NAME}: {why}", 300), names=(job_status.NAME,)))
        return None


def _shared(header: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in header.items() if key not in PER_RUN}


def _run(file: Records) -> dict[str, Any]:
    header = file.header
    return {
        "run": header["run"],
        "folder": file.path.parent.name,
        "seed": header.get("seed", 0),
        "start_time": str(header.get("start_time", "")),
        "boot_id": str(header.get("boot_id", "")),
        "segments": len(file.headers),
        "complete": file.complete,
        "sensors": header.get("sensors"),
        "trailer": file.trailer or {},
    }


def _output(file: Records) -> CommandOutput:
    # a byte is a character of a record: what the command printed is UTF-8, or of an unknown encoding
    printed = [
        record["text"].encode("latin-1", "replace") for record in file.companions if record["record"] == "output"
    ]
    lines = tuple(text.decode("utf-8", "replace") for text in printed)
    status = file.trailer.get("status") if file.trailer else None
    return CommandOutput(_shared(file.header), _run(file), lines, status if isinstance(status, int) else None)


def _load_seconds(file: Records) -> dict[str, Any]:
    """Of the kernel `load` what sockets did second by second; nothing of others."""
    seconds = [record for record in file.companions if record["record"] == "load_second"]
    return {"load_seconds": seconds} if seconds else {}


def _slowest_again(file: Records) -> dict[str, Any]:
    """Return LinkTest's slowest pairs, slowest first: `a`, `b`, `first_ns` (the lowest time over passes, by which it
    chose them) and `again_ns` (alone). Other kernels repeat pairs for other reasons, so they have none."""
    pairs = file.pairs
    slowest = []
    for record in file.companions:
        if record["record"] != "again" or record.get("reason") != "slowest":
            continue
        first = pairs["latency_ns"][(pairs["a"] == record["a"]) & (pairs["b"] == record["b"])]
        first = first[np.isfinite(first)]
        if first.size:
            ends = {"a": int(record["a"]), "b": int(record["b"])}
            slowest.append({**ends, "first_ns": float(first.min()), "again_ns": float(record["latency_ns"])})
    return {"slowest_again": slowest} if slowest else {}


def _pairs(name: str, files: Sequence[Records]) -> JobMeasurement:
    header = files[0].header
    ends_of_all = np.concatenate([file.pairs[key] for file in files for key in "ab"])
    cpus = ends_of_all[distinct(ends_of_all[:, None])[0]]
    by_node = header.get("home") not in ("first", "second", None)
    coordinates = []
    for file in files:
        a, b = file.pairs["a"], file.pairs["b"]
        if not header.get("directed"):
            a, b = np.minimum(a, b), np.maximum(a, b)
        home = file.pairs["home"] if by_node else np.full_like(a, -1)
        coordinates.append(np.stack([home, a, b], axis=1))
    values = {key: [file.pairs[key] for file in files] for key in (*PAIR_VALUES, "flags")}
    values["pair_home"] = [file.pairs["home"] for file in files]
    arrays: dict[str, np.dtype[Any]] = dict.fromkeys(PAIR_VALUES, np.dtype(np.float32))
    arrays |= {"flags": np.dtype(np.uint8), "pair_home": np.dtype(np.int16)}
    passes, places, columns = gridded([file.pairs["pass"] for file in files], coordinates, values, arrays)
    runs = tuple({**_run(file), **_slowest_again(file), "clock_ghz": _clocks(file, cpus)} for file in files)
    return JobMeasurement(
        name, _shared(header), runs, passes, dict(zip(("home", "a", "b"), places.T.copy(), strict=True)), {}, columns
    )


def _clocks(file: Records, cpus: Array) -> list[float | None]:
    """The median clock of each CPU just before its pairs, GHz."""
    cpu = np.concatenate([file.pairs["a"], file.pairs["b"]])
    clock = np.concatenate([file.pairs[key] for key in PAIR_CLOCKS]).astype(np.float32)
    measured = clock > 0
    cpu = cpu[measured]
    one_of_cpu, which = distinct(cpu[:, None])
    number = np.searchsorted(cpus, cpu[one_of_cpu])[which]
    # sorted by CPU and then by clock: positive floats are in the order of their bits
    order = np.sort(number << 32 | clock[measured].view(np.int32))
    ordered = np.append(order.astype(np.int32).view(np.float32), np.float32(np.nan)).astype(np.float64)
    count = np.bincount(number, minlength=len(cpus))
    last = np.cumsum(count) - 1
    low, high = last - count + 1 + (count - 1) // 2, last - count + 1 + count // 2
    middle = np.where(count > 0, (ordered[np.where(count, low, -1)] + ordered[np.where(count, high, -1)]) / 2, np.nan)
    return [float(clock_ghz) if np.isfinite(clock_ghz) else None for clock_ghz in middle.astype(np.float32)]


def _cells(name: str, files: Sequence[Records]) -> JobMeasurement:
    header = files[0].header
    measured = [file for file in files if len(file.cells["pass"])]
    names: dict[str, tuple[str, ...]] = {}
    by_dim: dict[str, list[Array]] = {}
    for dim in files[0].dims:
        of_dim = [file.cells[dim] for file in measured]
        if any(column.dtype.kind == "U" for column in of_dim):
            words = np.unique(np.concatenate([column.astype(str) for column in of_dim]))
            names[dim] = tuple(words.tolist())
            of_dim = [np.searchsorted(words, column.astype(str)) for column in of_dim]
        by_dim[dim] = of_dim
    empty = np.zeros((0, len(by_dim)), dtype=np.int64)
    of_measured = iter(zip(*by_dim.values(), strict=True))
    coordinates = [np.stack(next(of_measured), axis=1) if len(file.cells["pass"]) else empty for file in files]
    units = files[0].units
    arrays = {key: np.dtype(np.float32 if unit == "ns" else np.float64) for key, unit in units.items()}
    values = {key: [file.cells[key] for file in files] for key in (*units, "flags")}
    passes, places, columns = gridded(
        [file.cells["pass"] for file in files], coordinates, values, {**arrays, "flags": np.dtype(np.uint8)}
    )
    runs = tuple({**_run(file), **_load_seconds(file)} for file in files)
    return JobMeasurement(
        name, _shared(header), runs, passes, dict(zip(by_dim, places.T.copy(), strict=True)), names, columns
    )


def gridded(
    passes: Sequence[Array],
    coordinates: Sequence[Array],
    values: Mapping[str, Sequence[Array]],
    kinds: Mapping[str, np.dtype[Any]],
) -> tuple[tuple[int, ...], Array, dict[str, Array]]:
    """Columns of each run as (run, pass, place); the passes and the places, sorted.

    By run: the pass of each record, its coordinates (record, dimension) and values. Of records of one pass and place
    the last counts.
    """
    pass_numbers = np.unique(np.concatenate(list(passes)))
    of_records = np.concatenate(list(coordinates))
    one_of_place, place = distinct(of_records)
    shape = (len(passes), len(pass_numbers), len(one_of_place))
    absent = {"u": 0, "i": -1, "f": np.nan}
    columns = {key: np.full(shape, absent[kind.kind], dtype=kind) for key, kind in kinds.items()}
    start = 0
    for run, numbers in enumerate(passes):
        cell = np.searchsorted(pass_numbers, numbers) * len(one_of_place) + place[start : start + len(numbers)]
        for key, column in columns.items():
            column[run].reshape(-1)[cell] = values[key][run]
        start += len(numbers)
    return tuple(pass_numbers.tolist()), of_records[one_of_place], columns
