"""One measurement over the nodes of one layout as one xarray Dataset: rows (runs) x passes x measurement points.

A point is a pair of CPUs, a CPU and a memory node, a cache level, or a NUMA node. The judge, every page and the Python
interface read the same dataset.
"""

from __future__ import annotations

import mmap
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import xarray as xr

from nodeprint.data.places.homes import FAR
from nodeprint.data.places.layout import RANK, THREAD, Layout, codes
from nodeprint.settings.measurements import Model, imported, known, measurements
from nodeprint.stats.disagreement import differing

Key = int | str
Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Values = npt.NDArray[np.float32]

#: Hops between cores of another tool whose operation is none of ours, or not known.
IMPORTED_HOPS = "coherence-imported"
#: The fact that an imported file lacks if it may be of the same machine as another one.
UNKNOWN_NODE = "node"


@cache
def models() -> dict[str, Model]:
    """The models of all measurements that state one, by the measurement's name, and of imported ones."""
    return {name: of.model for name, of in {**imported(), **measurements()}.items() if of.model is not None}


def is_metric(name: str) -> bool:
    """Whether a measurement is no kernel's: a metric of a table that other programs measured (`nodeprint.readers`)."""
    return bool(name) and known(name) is None


def cell_models() -> dict[str, Model]:
    """Those of measurements that are not of pairs."""
    return {name: model for name, model in models().items() if model.places == "cells"}


#: The coordinates of rows.
_ROW = ("node", "job", "run", "started", "disturbed", "former")
#: Every other name that a dimension of points cannot have.
_TAKEN = ("row", "pass", "point", "value", "of_passes", "restless", "replicate", "class", "slurm_job")
#: What a slot's last two columns are called: cores are numbered over the machine.
_CORE, _THREAD = "core", "thread"


@dataclass(frozen=True, eq=False)
class Measured:
    """One measurement over all nodes of one layout.

    `dataset` has `value` (row, pass, point), float32 in its `unit`, NaN if a row lacks the point or pass. The values
    of a stored fleet are a view of a memory-mapped file. Attributes name the `measurement`, `operation`, `quantity`,
    `unit` and `home` policy: nodeprint never compares different ones. The judge works on the columns below, which are
    numpy arrays: xarray labels values, and loops over it are slow.

    **Rows** are runs, the independent replicates. Row r is run `run[r]` of job `job[r]` of node number `node[r]`, the
    node's index in the fleet. `started[r]` is its start time (ISO 8601, empty if unknown), `disturbed[r]` the share of
    its points that the kernel flagged as disturbed. Rows are sorted by node, job and run. Jobs differ in their number
    of runs, so a third job of three nodes pads nobody. `former` rows are of another epoch of the node, as before a
    repair, and do not count.

    **Points**: `places` has the coordinate of every point by dimension, int64 (point), in order of the record's keys
    (`dims`). Points are sorted lexicographically by it, each once. The model's labels make coordinates canonical: a CPU
    is its slot, a NUMA node its order. Plain numbers (bytes, counts, a delay) are themselves. The coordinate c of a
    dimension of words is `names[dim][c]`, words in alphabetical order; the dataset has the words. It also has socket,
    quadrant, CCD, CCX, core and thread of each CPU, for both ends of pairs (`ccx_a`, `ccx_b`); -1 is unknown.

    **Pairs** (`model.places == "pairs"`) have the dimensions home, a, b with a < b as slots. `home` is the NUMA node of
    the lines, -1 if it follows from the policy of the kernel. Their points are the full product of `homes` and `pairs`,
    so `by_home` is a view of `values`. A row is NaN at a home that it lacks.
    """

    dataset: xr.Dataset
    layout: Layout
    model: Model

    @classmethod
    def from_arrays(
        cls,
        measurement: str,
        operation: str,
        quantity: str,
        unit: str,
        model: Model,
        layout: Layout,
        places: Mapping[str, Ints],
        values: Values,
        node: Ints,
        job: Ints,
        run: Ints,
        started: tuple[str, ...],
        disturbed: Floats,
        names: Mapping[str, tuple[str, ...]] | None = None,
        tick_ns: float = 0.0,
        former: npt.NDArray[np.bool_] | None = None,
    ) -> Measured:
        """The dataset of these arrays, which copies none of the values."""
        words = names or {}
        points = {
            dim: np.array(words[dim])[column] if dim in words else np.asarray(column, dtype=np.int64)
            for dim, column in places.items()
        }
        rows = {
            "node": node,
            "job": job,
            "run": run,
            "started": np.array(started, dtype=np.str_),
            "disturbed": disturbed,
            "former": np.zeros(len(node), dtype=np.bool_) if former is None else former,
        }
        coordinates: dict[str, Any] = {name: ("row", column) for name, column in rows.items()}
        coordinates |= {coordinate(dim): ("point", column) for dim, column in points.items()}
        cpus = {dim: places[dim] for dim in places if model.labels.get(dim) == "cpu" and len(layout.slots)}
        for dim, slots in cpus.items():
            end = f"_{dim}" if len(cpus) > 1 else ""
            for name, column in _levels(layout).items():
                coordinates.setdefault(f"{name}{end}", ("point", column[slots]))
        attributes = {
            "measurement": measurement,
            "operation": operation,
            "quantity": quantity,
            "unit": unit,
            "home": _policy(places.get("home")),
            "tick_ns": tick_ns,
            "dims": tuple(places),
        }
        value = (("row", "pass", "point"), values, {"units": unit})
        return cls(xr.Dataset({"value": value}, coordinates, attributes), layout, model)

    def assign(self, **arrays: Any) -> Measured:
        """The same with other arrays, by their names in `from_arrays`; of other rows none is a former one."""
        own = ("measurement", "operation", "quantity", "unit", "model", "layout", "places", "values", "tick_ns")
        every = {name: getattr(self, name) for name in (*own, "names", *_ROW)}
        if "node" in arrays:
            every["former"] = None
        return Measured.from_arrays(**{**every, **arrays})

    def of_rows(self, rows: Ints) -> Measured:
        """The same with some of its rows."""
        return Measured(self.dataset.isel(row=rows), self.layout, self.model)

    @cached_property
    def measurement(self) -> str:
        """Its name, which names its record files."""
        return str(self.dataset.attrs["measurement"])

    @cached_property
    def operation(self) -> str:
        """The operation of the kernel."""
        return str(self.dataset.attrs["operation"])

    @cached_property
    def quantity(self) -> str:
        """The physical quantity of its values (docs/formats.md)."""
        return str(self.dataset.attrs["quantity"])

    @cached_property
    def unit(self) -> str:
        """The unit of its values."""
        return str(self.dataset.attrs["unit"])

    @cached_property
    def tick_ns(self) -> float:
        """The size of one clock tick in a value, 0 unknown."""
        return float(self.dataset.attrs["tick_ns"])

    @cached_property
    def values(self) -> Values:
        """The values (row, pass, point)."""
        return self.dataset["value"].values

    @cached_property
    def node(self) -> Ints:
        """The number of each row's node in the fleet."""
        return self.dataset["node"].values

    @cached_property
    def job(self) -> Ints:
        """The number of each row's job."""
        return self.dataset["job"].values

    @cached_property
    def run(self) -> Ints:
        """The number of each row's run in its job."""
        return self.dataset["run"].values

    @cached_property
    def started(self) -> tuple[str, ...]:
        """When each row's run began (ISO 8601), empty where it is unknown."""
        return tuple(self.dataset["started"].values.tolist())

    @cached_property
    def disturbed(self) -> Floats:
        """The share of each row's points that the kernel flagged as disturbed."""
        return self.dataset["disturbed"].values

    @cached_property
    def former(self) -> npt.NDArray[np.bool_]:
        """The rows that are of another epoch of their node."""
        return self.dataset["former"].values

    @cached_property
    def level(self) -> npt.NDArray[np.floating]:
        """The median over passes (row, point), once it was reduced; float32 of pairs."""
        return self.dataset["of_passes"].values

    @cached_property
    def restless(self) -> npt.NDArray[np.bool_]:
        """The rows whose passes may differ, once it was reduced."""
        return self.dataset["restless"].values

    @cached_property
    def missing(self) -> Floats:
        """The share of points that a row lacks (row, home), 1 at a home that it was not measured with."""
        by_home = self.level.reshape(len(self.node), len(self.homes) if self.of_pairs else 1, -1)
        return np.asarray(np.count_nonzero(np.isnan(by_home), axis=2) / by_home.shape[2])

    @cached_property
    def independent_jobs(self) -> dict[int, list[list[int]]]:
        """By node its valid jobs, those together that are no independent ones, in the order of time (`replicate`)."""
        out: dict[int, list[list[int]]] = {}
        replicate = self.dataset["replicate"].values.tolist()
        for node, jobs in self.rows.items():
            together: dict[int, list[int]] = {}
            for job, rows in sorted(jobs.items()):
                together.setdefault(replicate[rows[0]], []).append(job)
            out[node] = [together[number] for number in sorted(together) if number >= 0]
        return out

    def valid(self, disturbed: Sequence[Container[int]]) -> Measured:
        """The same without the jobs that are `disturbed`, by node: they are no replicates."""
        jobs = zip(self.node.tolist(), self.job.tolist(), strict=True)
        invalid = np.array([job in disturbed[node] for node, job in jobs], dtype=np.bool_)
        replicate = np.where(invalid, -1, self.dataset["replicate"].values)
        return Measured(self.dataset.assign_coords(replicate=("row", replicate)), self.layout, self.model)

    @cached_property
    def rows_used(self) -> dict[int, list[int]]:
        """By node the rows of its valid jobs; of a node without any those of its newest job."""
        out = {}
        for node, jobs in self.rows.items():
            valid = [job for together in self.independent_jobs[node] for job in together]
            out[node] = [row for job in sorted(valid or [max(jobs)]) for row in jobs[job]]
        return out

    @cached_property
    def differing(self) -> frozenset[tuple[int, int]]:
        """The jobs (node, job) whose runs may differ (`stats.disagreement.differs`)."""
        begins = np.flatnonzero(np.diff(self.node, prepend=-1) | np.diff(self.job, prepend=-1))
        may_differ = begins[differing(self.level, begins)] if len(begins) else begins
        return frozenset(zip(self.node[may_differ].tolist(), self.job[may_differ].tolist(), strict=True))

    @cached_property
    def dims(self) -> tuple[str, ...]:
        """Names of the dimensions of a point."""
        return tuple(self.dataset.attrs["dims"])

    @cached_property
    def places(self) -> dict[str, Ints]:
        """By dimension the coordinate of every point, of words their numbers in `names`."""
        return {dim: self._numbered[dim][1] for dim in self.dims}

    @cached_property
    def names(self) -> dict[str, tuple[str, ...]]:
        """The words of the dimensions that have words."""
        return {dim: words for dim, (words, _) in self._numbered.items() if words}

    @cached_property
    def _numbered(self) -> dict[str, tuple[tuple[str, ...], Ints]]:
        out: dict[str, tuple[tuple[str, ...], Ints]] = {}
        for dim in self.dims:
            column = self.dataset[coordinate(dim)].values
            if column.dtype.kind == "U":
                words, numbers = np.unique(column, return_inverse=True)
                out[dim] = tuple(words.tolist()), numbers.astype(np.int64)
            else:
                out[dim] = (), column
        return out

    @property
    def size(self) -> int:
        """The number of points."""
        return int(self.values.shape[2])

    def release(self) -> None:
        """Give the memory of values that are mapped from a file back; they are read again where they are needed."""
        owner: object = self.values
        while isinstance(owner, np.ndarray):
            owner = owner.base
        if isinstance(owner, mmap.mmap):
            owner.madvise(mmap.MADV_DONTNEED)

    def named(self, dim: str, coordinate: int) -> Key:
        """A coordinate as findings have it: a word where the dimension is of words."""
        return self.names[dim][coordinate] if dim in self.names else int(coordinate)

    def place(self, number: int) -> dict[str, Key]:
        """The coordinates of a place by the names of its dimensions."""
        return {dim: self.named(dim, int(column[number])) for dim, column in self.places.items()}

    @cached_property
    def of_pairs(self) -> bool:
        """Whether its points are pairs of CPUs."""
        return self.model.places == "pairs"

    @property
    def core_to_core(self) -> bool:
        """Whether it is of pairs of CPUs, and of no messages between them."""
        return self.of_pairs and self.quantity == "hop"

    @cached_property
    def rows(self) -> dict[int, dict[int, list[int]]]:
        """By node and job the numbers of their rows, without former ones."""
        out: dict[int, dict[int, list[int]]] = {}
        for row, (node, job) in enumerate(zip(self.node.tolist(), self.job.tolist(), strict=True)):
            if not self.former[row]:
                out.setdefault(node, {}).setdefault(job, []).append(row)
        return out

    @cached_property
    def newest_rows(self) -> dict[int, list[int]]:
        """By node the rows of its newest job."""
        return {node: jobs[max(jobs)] for node, jobs in self.rows.items()}

    @cached_property
    def pair_layout(self) -> Layout:
        """The slots and pairs of a measurement of pairs, with their classes."""
        return replace(self.layout, pairs=self.pairs)

    @cached_property
    def homes(self) -> tuple[int, ...]:
        """The homes of pairs in order, (-1,) if they follow from the policy."""
        return tuple(np.unique(self.places["home"]).tolist())

    @cached_property
    def pairs(self) -> Ints:
        """The slots (pair, 2) of each pair, a < b, in the order of points within a home."""
        each = self.size // max(len(self.homes), 1)
        return np.stack([self.places["a"][:each], self.places["b"][:each]], axis=1)

    @property
    def by_home(self) -> Values:
        """A view of the values of pairs as (row, pass, home, pair)."""
        rows, passes, _ = self.values.shape
        return self.values.reshape(rows, passes, len(self.homes), -1)


def coordinate(dim: str) -> str:
    """The name of a dimension of points in the dataset. Rows have names of their own: `node` is theirs, and a point's
    is a NUMA node."""
    return "numa_node" if dim == "node" else f"point_{dim}" if dim in (*_ROW, *_TAKEN) else dim


def _levels(layout: Layout) -> dict[str, Ints]:
    """By level the number of each slot in it; cores over the whole machine."""
    columns = dict(zip(layout.levels, layout.slots.T, strict=False))
    cores = {_CORE: codes(layout.slots[:, : RANK + 1]), _THREAD: layout.slots[:, THREAD]}
    # where parts of a machine are its NUMA nodes, the slots have the level themselves; of pairs only they have it
    return {"numa": layout.numa, **columns, **cores} if (layout.numa >= 0).any() else {**columns, **cores}


def _policy(homes: Ints | None) -> str:
    """The policy of homes: `each` NUMA node in turn, near and far `sockets`, or the `pair`'s own by the kernel's
    policy. It is empty if no line has a home."""
    if homes is None or not len(homes):
        return ""
    return "sockets" if homes.max() >= FAR else "each" if homes.min() >= 0 else "pair"
