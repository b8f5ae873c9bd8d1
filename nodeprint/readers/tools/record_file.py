"""A record file of nodeprint's own kernels: the matrix of its pairs, with what its header says of them."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from nodeprint.data.job import jobs
from nodeprint.data.job.jobs import Measured
from nodeprint.errors import NodeprintError
from nodeprint.readers.text_lines import missing
from nodeprint.readers.tool_output import CoreMatrix, Matrix, ToolOutput
from nodeprint.settings.texts import say
from nodeprint.stats.disagreement import of_runs
from nodeprint.stats.robust import median_of_passes

NAME = "nodeprint"
#: What else a header says of how it was measured.
_FACTS = ("message_bytes", "batches", "parallel", "transport", "timed_by", "arguments", "lines")


def matches(lines: list[str]) -> bool:
    """Whether it begins as records do."""
    return lines[0].startswith('{"record"')


def read(path: Path, lines: list[str]) -> ToolOutput:
    """Read the file. Raises NodeprintError with the line of the first fault, or where it has no pairs."""
    measured = jobs.of_file(path)
    if measured is None:
        raise NodeprintError("no pair of CPUs", where=path, advice="give the records of a core-to-core kernel")
    header = measured.header
    values = matrix(measured)
    cores = CoreMatrix(
        tuple(measured.cpus),
        values,
        str(header.get("operation", "unknown")),
        str(header.get("quantity", "hop")),
        home=header.get("home"),
        kernel=str(header["kernel"]),
        facts={k: header[k] for k in _FACTS if k in header},
    )
    return ToolOutput(path, NAME, cores, unknown=("topology",), notes=missing(values), differing=differing(measured))


def differing(measured: Measured) -> str:
    """What differs between the runs of a record file or the passes of a run, in words; empty where they agree."""
    latency = measured.columns["latency_ns"]
    repeated = of_runs(latency)
    if repeated is None:
        return ""
    disagreement = repeated.disagreement
    if repeated.run is None:
        names = [f"run {number}" for number in measured.numbers]
        values = np.nanmedian(latency, axis=1)
    else:
        of_run = f" of run {measured.numbers[repeated.run]}" if len(measured.numbers) > 1 else ""
        names = [f"pass {number + 1}{of_run}" for number in range(latency.shape[1])]
        values = latency[repeated.run]
    who = " and ".join(names[number] for number in disagreement.odd)
    first = (
        f"{who} {'differs' if len(disagreement.odd) == 1 else 'differ'} from the others"
        if disagreement.odd
        else (f"{'runs' if repeated.run is None else 'passes'} differ")
    )
    a, b = (measured.places[dim][disagreement.place] for dim in "ab")
    low, high = (
        f"{values[at, disagreement.place]:.3g} ns in {names[at]}" for at in (disagreement.lowest, disagreement.highest)
    )
    factor = f"{disagreement.factor:.1f}"
    return say("read", "repetitions", repetitions=first, factor=factor, a=a, b=b, low=low, high=high)


def matrix(measured: Measured) -> Matrix:
    """The median over runs and passes, each pair at the home that is nearest to it, (n, n) for its CPUs."""
    latency = measured.columns["latency_ns"].astype(np.float64)
    return _square(measured, np.nanmedian(latency.reshape(-1, latency.shape[2]), axis=0))


def matrices(measured: Measured) -> Matrix:
    """The same run by run, (run, n, n)."""
    middles = median_of_passes(measured.columns["latency_ns"].astype(np.float64))
    return np.stack([_square(measured, middle) for middle in middles])


def _square(measured: Measured, middle: Matrix) -> Matrix:
    """Values of places as a matrix, each pair at the home that is nearest to it."""
    cpus = measured.cpus
    a, b = (np.searchsorted(cpus, measured.places[dim]) for dim in "ab")
    out = np.full((len(cpus), len(cpus)), np.inf)
    np.fmin.at(out, (a, b), middle)
    if not measured.header.get("directed"):
        np.fmin.at(out, (b, a), middle)
    out[np.isinf(out)] = np.nan
    return out
