"""Where a matrix comes from: another tool's file, a record file of nodeprint, or a packed node."""

from __future__ import annotations

import zlib
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt

from nodeprint.campaign import run_files
from nodeprint.data.job import jobs
from nodeprint.data.job.jobs import Job, Measured
from nodeprint.data.store import store
from nodeprint.errors import NodeprintError
from nodeprint.machine import topology
from nodeprint.machine.topology.model import Topology
from nodeprint.readers import matrix_file
from nodeprint.readers.tools import record_file

_RECORD = b'{"record"'


@dataclass(frozen=True)
class MatrixSource:
    """What `find` takes: the (n, n) matrix in ns with its CPUs, labels where they came with it, and whether the
    home policy treats all pairs alike (None: unknown). `simulated`: it was not measured. `differing`: in words
    what differs between its runs or passes, of which the matrix is the median; empty where they agree. `of_runs` are
    the matrices of its runs (run, n, n).
    """

    latency_ns: npt.NDArray[np.float64]
    cpus: tuple[int, ...]
    topology: Topology | None
    home_controlled: bool | None
    simulated: bool = False
    differing: str = ""
    of_runs: npt.NDArray[np.float64] = field(default_factory=lambda: np.empty((0, 0, 0)))


def read_source(path: Path, format: str | None = None) -> MatrixSource:
    """The core-to-core matrix in a file: node.nc or a node's folder, a record file, the archive of a run, or what
    importers read.

    `format` is an importer's, None to find it. Raises NodeprintError where there is no such matrix in it.
    """
    if (path / "nodes.tsv").exists():
        raise NodeprintError("is a campaign of nodes", where=path, advice="name one of them: a folder below nodes/")
    if format is None and (path.is_dir() or path.name == "node.nc"):
        return _of_node(path)
    if format is None and (path.name.endswith(run_files.ARCHIVE) or _is_record(path)):
        file = jobs.of_file(path)
        if file is None:
            raise NodeprintError("no pair of CPUs", where=path, advice="give the records of a core-to-core kernel")
        return _of_measured(file, None)
    cores = matrix_file.read_output(path, format).core_matrix()
    return MatrixSource(
        cores.latency_ns, cores.cpus, None, _controlled(cores.home), of_runs=np.asarray(cores.latency_ns)[None]
    )


def _is_record(path: Path) -> bool:
    """Whether it is a record file, by its first bytes; a cut one may have no more than them."""
    try:
        with path.open("rb") as plain:
            first = plain.read(1 << 12)
        if first.startswith(b"\x1f\x8b"):
            first = zlib.decompressobj(wbits=31).decompress(first, len(_RECORD))
    except (OSError, zlib.error):
        first = b""
    return first.startswith(_RECORD) or path.name.endswith((".jsonl", ".jsonl.gz"))


def _of_node(path: Path) -> MatrixSource:
    """The newest job's matrix of a node, of compare-exchange where it has that. Raises NodeprintError where it has
    none.
    """
    node_jobs, labels = _of_netcdf(path) if path.name == "node.nc" else _of_folder(path)
    for job in reversed(node_jobs):
        for measured in sorted(job.pairs, key=lambda measured: (measured.name != "coherence-cas", measured.name)):
            return _of_measured(measured, topology.from_text(labels) if labels else None)
    raise NodeprintError("no core-to-core latencies", where=path, advice="measure or import them first")


def _of_netcdf(path: Path) -> tuple[list[Job], str]:
    from nodeprint.data.export import netcdf  # noqa: PLC0415 (xarray and pandas take a second to import)

    return netcdf.read(path)


def _of_folder(path: Path) -> tuple[list[Job], str]:
    return [jobs.read(job) for job in jobs.folders(path)], store.survey(path, write=False).topology


def _of_measured(measured: Measured, labels: Topology | None) -> MatrixSource:
    """The median over runs and passes, each pair at the home that is nearest to it."""
    matrix = record_file.matrix(measured)
    home = _controlled(measured.header.get("home"))
    simulated = measured.header.get("simulated") is True
    return MatrixSource(
        matrix,
        tuple(measured.cpus),
        labels,
        home,
        simulated,
        record_file.differing(measured),
        record_file.matrices(measured),
    )


def _controlled(home: object) -> bool | None:
    """Whether a home policy treats all pairs alike: a single node for all does not, and None is not known."""
    return None if home is None else home in ("each", "first", "second", "sockets")
