"""What is shown of a node: its jobs in the store as matrices in topology order, and the classes of its verdict."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from nodeprint import topology
from nodeprint.errors import NodeprintError
from nodeprint.fleet import homes, jobs, store
from nodeprint.fleet.jobs import Job, Measured
from nodeprint.judge.reduction import mean_of_runs, over_passes
from nodeprint.layout import Ints, slots_of
from nodeprint.report import formatting, scale
from nodeprint.report.old_figures import Floats
from nodeprint.report.scale import Ends
from nodeprint.topology.model import Topology

#: A class of pairs of a measurement: (measurement, home, class); home -1 where it follows from the policy.
ClassKey = tuple[str, int, str]


class DrawnMatrix(msgspec.Struct, frozen=True):
    """A matrix as it is drawn: of one measurement and home (as of nodeprint.fleet.homes), in topology order, in ns."""

    measurement: str
    home: int
    cpus: tuple[int, ...]
    values: Floats


class Shown(msgspec.Struct, frozen=True):
    """What a node's folder holds for its page; nothing by default. `problems` are sentences on what cannot be used."""

    host: str = ""
    jobs: tuple[Job, ...] = ()
    topology: Topology | None = None
    matrices: tuple[DrawnMatrix, ...] = ()
    problems: tuple[str, ...] = ()

    @classmethod
    def of(cls, folder: Path) -> Shown:
        """What the store has of a node's folder.

        What cannot be read is a problem of this node, not of the report.
        """
        try:
            survey = store.survey(folder)
            labels = _labels(survey.topology)
            found = tuple(homes.seen_from_pairs(store.job(job), labels) for job in jobs.folders(folder))
        except NodeprintError as error:
            return cls(problems=(str(error),))
        hosts = sorted({host for job in found for host in job.hosts}) or [folder.name]
        problems = (*(text for job in found for text in job.problems), *survey.problems)
        return cls(hosts[0], found, labels, tuple(drawn(_latest(found), labels)), problems)

    @property
    def job(self) -> Job | None:
        """The newest job that measured something, else the newest."""
        return _latest(self.jobs)


@lru_cache(maxsize=16)
def _labels(text: str) -> Topology | None:
    """Nodes of one kind share their labels."""
    return topology.from_text(text) if text else None


def _latest(found: Sequence[Job]) -> Job | None:
    measured = [job for job in found if job.pairs]
    return next(reversed(measured or found), None)


def drawn(job: Job | None, topology: Topology | None) -> list[DrawnMatrix]:
    """The matrices of a job, as the verdict has them: the median over passes of each pair's latency, and the mean of
    that over runs, in the order of the verdict's places.

    A CPU that was measured with its own sibling alone is no row of them.
    """
    out = []
    for one in pairwise(job):
        middle = mean_of_runs(over_passes(one.columns["latency_ns"])[0][None])[0].astype(np.float64)
        at_home, a, b = (one.places[dim] for dim in ("home", "a", "b"))
        cpus = np.array(_ordered(topology, tuple(one.cpus)))
        by_number = np.argsort(cpus)
        row, column = (by_number[np.searchsorted(cpus, ends, sorter=by_number)] for ends in (a, b))
        for home in np.unique(at_home).tolist():
            matrix = np.full((len(cpus), len(cpus)), np.nan)
            mine = at_home == home
            matrix[row[mine], column[mine]] = middle[mine]
            if not one.header.get("directed"):
                matrix[column[mine], row[mine]] = middle[mine]
            partners = np.isfinite(matrix).sum(axis=1) - np.isfinite(np.diagonal(matrix))
            rows = np.flatnonzero(partners > 1) if (partners > 1).any() else np.arange(len(cpus))
            out.append(DrawnMatrix(one.name, home, tuple(cpus[rows].tolist()), matrix[np.ix_(rows, rows)]))
    return out


@lru_cache(maxsize=16)
def _ordered(topology: Topology | None, cpus: tuple[int, ...]) -> tuple[int, ...]:
    """CPUs in the order of the verdict's places; by number without labels."""
    return tuple(slots_of(topology, cpus)[1]) if topology is not None else cpus


def scale_ends(shown: Shown, names: Collection[str] | None = None) -> dict[str, Ends]:
    """Per measurement (all, or `names`) the ends of what its matrices show, for the report's colour scale."""
    out, matrices = {}, shown.matrices
    for name in {one.measurement for one in matrices} if names is None else names:
        ends = scale.ends(np.concatenate([one.values.ravel() for one in matrices if one.measurement == name]))
        if ends is not None:
            out[name] = ends
    return out


def class_medians(said: Mapping[str, Any]) -> dict[ClassKey, float]:
    """The class medians of a node's verdict, in ns."""
    found = {class_key(c): formatting.number(c.get("median_ns")) for c in said.get("classes", ())}
    return {key: median for key, median in found.items() if median is not None}


def largest_shift(by_node: Mapping[str, float], nodes: Collection[str]) -> float:
    """The largest difference of one of `nodes` from the median of all, relative; 0 without any of them."""
    middle = float(np.median(list(by_node.values())))
    return max((abs(value / middle - 1) for node, value in by_node.items() if node in nodes), default=0.0)


def class_key(c: Mapping[str, Any]) -> ClassKey:
    return str(c.get("measurement", "")), int(c.get("home", -1)), str(c.get("name", ""))


def pairwise(job: Job | None) -> list[Measured]:
    """The measurements of a job that have a latency for pairs of CPUs, core-to-core ones first."""
    found = job.pairs if job is not None else []
    return sorted(found, key=lambda one: (not one.name.startswith("coherence"), one.name))


def medians_by_run(data: Measured, one: DrawnMatrix) -> tuple[Ints, Ints, Floats]:
    """Rows and columns in the matrix `one` of every pair that was measured, and run by run (run x pair) the median over
    passes of each, in ns."""
    mine = np.flatnonzero(data.places["home"] == one.home)
    at = np.full(max(int(data.places[end].max(initial=0)) for end in "ab") + 1, -1)
    known = [cpu for cpu in one.cpus if cpu < len(at)]
    at[known] = [one.cpus.index(cpu) for cpu in known]
    rows, columns = at[data.places["a"][mine]], at[data.places["b"][mine]]
    inside = (rows >= 0) & (columns >= 0)
    middle = over_passes(data.columns["latency_ns"][:, :, mine[inside]])[0].astype(np.float64)
    return rows[inside], columns[inside], middle


def over_runs(values: npt.NDArray[Any]) -> Floats:
    """Medians of (run, pass, ...) over passes, then over runs: each run counts once, however many passes it has."""
    out = np.asarray(values, dtype=np.float64)
    for _ in range(2):
        axis = 1 if out.ndim == np.ndim(values) else 0
        if out.shape[axis] == 1:
            out = np.take(out, 0, axis=axis)
        elif np.isnan(np.sum(out)):
            with warnings.catch_warnings(action="ignore", category=RuntimeWarning):  # what no pass measured stays NaN
                out = np.asarray(np.nanmedian(out, axis=axis))
        else:
            out = np.asarray(np.median(out, axis=axis))
    return out
