"""A record file of nodeprint's own kernels: the matrix of its pairs, with the facts of its header."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from nodeprint.data.job import jobs
from nodeprint.data.job.jobs import JobMeasurement
from nodeprint.errors import NodeprintError
from nodeprint.machine.topology.model import Topology
from nodeprint.readers.parsing import missing
from nodeprint.readers.tool_output import CoreMatrix, Matrix, ToolEvidence, ToolOutput
from nodeprint.settings.texts import say
from nodeprint.stats.disagreement import of_runs
from nodeprint.stats.robust import median_of_passes

NAME = "nodeprint"
KINDS = ("matrix",)
#: What else a header says of how it was measured.
_FACTS = ("message_bytes", "batches", "parallel", "transport", "timed_by", "arguments", "lines")


def evidence(lines: list[str]) -> ToolEvidence:
    """Whether it begins as records do."""
    return ToolEvidence.NAME if lines[0].startswith('{"record"') else ToolEvidence.NONE


def read_output(path: Path, lines: list[str]) -> ToolOutput:
    """Read the file. Raises NodeprintError with the line of the first fault, or where it has no pairs."""
    cores = record_matrix(path)
    return ToolOutput(path, NAME, cores, unknown=("topology",), notes=missing(cores.ns))


def record_matrix(path: Path) -> CoreMatrix:
    """The matrix of a record file or of a run's archive. Raises NodeprintError where it has no pairs."""
    measured = jobs.of_file(path)
    if measured is None:
        raise NodeprintError("no pair of CPUs", where=path, advice="give the records of a core-to-core kernel")
    return measured_matrix(measured)


def measured_matrix(measured: JobMeasurement, topology: Topology | None = None) -> CoreMatrix:
    """The median over runs and passes, each pair at the home that is nearest to it."""
    header = measured.header
    latency = measured.columns["latency_ns"].astype(np.float64)
    return CoreMatrix(
        tuple(measured.cpus),
        _square(measured, np.nanmedian(latency.reshape(-1, latency.shape[2]), axis=0)),
        str(header.get("operation", "unknown")),
        str(header.get("quantity", "hop")),
        home=header.get("home"),
        kernel=str(header["kernel"]),
        facts={k: header[k] for k in _FACTS if k in header},
        of_runs=np.stack([_square(measured, middle) for middle in median_of_passes(latency)]),
        differing=_differing(measured),
        simulated=header.get("simulated") is True,
        topology=topology,
    )


def _differing(measured: JobMeasurement) -> str:
    """A sentence on the runs of a record file, or the passes of a run, that disagree; empty if they agree."""
    latency = measured.columns["latency_ns"]
    disagreement = of_runs(latency)
    if disagreement is None:
        return ""
    if disagreement.run is None:
        names = [f"run {number}" for number in measured.numbers]
        values = np.nanmedian(latency, axis=1)
    else:
        of_run = f" of run {measured.numbers[disagreement.run]}" if len(measured.numbers) > 1 else ""
        names = [f"pass {number + 1}{of_run}" for number in range(latency.shape[1])]
        values = latency[disagreement.run]
    who = " and ".join(names[number] for number in disagreement.odd)
    first = (
        f"{who} {'differs' if len(disagreement.odd) == 1 else 'differ'} from the others"
        if disagreement.odd
        else (f"{'runs' if disagreement.run is None else 'passes'} differ")
    )
    a, b = (measured.places[dim][disagreement.place] for dim in "ab")
    low, high = (
        f"{values[at, disagreement.place]:.3g} ns in {names[at]}" for at in (disagreement.lowest, disagreement.highest)
    )
    factor = f"{disagreement.factor:.1f}"
    return say("read", "repetitions", repetitions=first, factor=factor, a=a, b=b, low=low, high=high)


def _square(measured: JobMeasurement, middle: Matrix) -> Matrix:
    """Values of places as a matrix, each pair at the home that is nearest to it."""
    cpus = measured.cpus
    a, b = (np.searchsorted(cpus, measured.places[dim]) for dim in "ab")
    out = np.full((len(cpus), len(cpus)), np.inf)
    np.fmin.at(out, (a, b), middle)
    if not measured.header.get("directed"):
        np.fmin.at(out, (b, a), middle)
    out[np.isinf(out)] = np.nan
    return out
