"""Where a matrix comes from: another tool's file, a record file of nodeprint, or a packed node."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import xarray as xr

from nodeprint import bundle, importers, records
from nodeprint.bundle import Bundle
from nodeprint.errors import NodeprintError
from nodeprint.topology.model import Topology


@dataclass(frozen=True)
class Source:
    """What `find` takes: the (n, n) matrix in ns with its CPUs, labels where they came with it, and who knows of the
    home. `simulated`: it was not measured.
    """

    latency_ns: npt.NDArray[np.float64]
    cpus: tuple[int, ...]
    topology: Topology | None
    home_controlled: bool | None
    simulated: bool = False


def read(path: Path, format: str | None = None) -> Source:
    """The core-to-core matrix in a file: node.nc or a node's folder, a record file (plain or compressed), or what
    importers read.

    `format` is an importer's, None to find it. Raises NodeprintError where there is no such matrix in it.
    """
    if (path / "nodes.tsv").exists():
        raise NodeprintError("is a campaign of nodes", where=path, advice="name one of them: a folder below nodes/")
    if format is None and (path.is_dir() or path.name == "node.nc"):
        return of_bundle(bundle.load(path if path.is_dir() else path.parent))
    if format is None and path.name.endswith((".jsonl", ".jsonl.gz")):
        file = records.read(path)
        if not len(file.pairs["a"]):
            raise NodeprintError("no pair of CPUs", where=path, advice="give the records of a core-to-core kernel")
        return _of_dataset(bundle.dataset([file]), file.header, None)
    cores = importers.read(path, format).core_matrix()
    return Source(cores.latency_ns, cores.cpus, None, _controlled(cores.home))


def of_bundle(node: Bundle) -> Source:
    """The newest job's matrix of a node, of compare-exchange where it has that. Raises NodeprintError where it has
    none.
    """
    for job in reversed(node.jobs):
        names = sorted(job.measurements, key=lambda name: (name != "coherence-cas", name))
        if names:
            return _of_dataset(job.measurements[names[0]], job.header(names[0]), node.topology)
    raise NodeprintError("no core-to-core latencies", where=node.path, advice="measure or import them first")


def _of_dataset(data: xr.Dataset, header: dict[str, Any], labels: Topology | None) -> Source:
    """The median over runs and passes, each pair at the home that is nearest to it."""
    values = data["latency_ns"].median(("run", "pass"), skipna=True).min("home", skipna=True)
    matrix = values.transpose("a", "b").to_numpy().astype(np.float64)
    cpus = tuple(int(cpu) for cpu in data["a"].values)
    return Source(matrix, cpus, labels, _controlled(header.get("home")), header.get("simulated") is True)


def _controlled(home: object) -> bool | None:
    """Whether a home policy treats all pairs alike: a single node for all does not, and None is not known."""
    return None if home is None else home in ("each", "first", "second")
