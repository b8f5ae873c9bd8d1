"""One measurement over the nodes of a fleet as one array, whatever it is of: pairs of CPUs, a CPU and a memory node, a
cache level, a NUMA node. The judge and every page read this array.
"""

from __future__ import annotations

import mmap
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property

import numpy as np
import numpy.typing as npt

from nodeprint.data.places.layout import LEVELS, Layout
from nodeprint.settings.measurements import Model, imported, known, measurements

Key = int | str
Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Values = npt.NDArray[np.float32]

#: Hops between cores of another tool whose operation is none of ours, or not known.
IMPORTED_HOPS = "coherence-imported"


@cache
def models() -> dict[str, Model]:
    """The models of all measurements that state one, by the measurement's name, and of what is imported alone."""
    return {name: of.model for name, of in {**imported(), **measurements()}.items() if of.model is not None}


def is_metric(name: str) -> bool:
    """Whether a measurement is no kernel's: a metric of a table that other programs measured (`nodeprint.readers`)."""
    return bool(name) and known(name) is None


def cell_models() -> dict[str, Model]:
    """Those of measurements that are not of pairs."""
    return {name: model for name, model in models().items() if model.places == "cells"}


@dataclass(frozen=True)
class NodeLayout:
    """The places of a kind of node, by canonical order and never by OS number.

    `slots` (n, 6) has the CPUs, a row (socket, quadrant, CCD, CCX, rank, thread) each, sorted, -1 where a level is
    unknown; columns as in `nodeprint.data.places.layout`. All CPUs of the node have a slot, whether they were measured
    or not; of pairs those that pairs were measured of.
    `numa` (n) is the NUMA node of each slot by its order, -1 unknown; NUMA nodes are in the order of their first slot,
    those without CPUs after them, `numa_nodes` in all. `harvested`: fewer cores of a CCX are active than the die has,
    so that a rank says nothing of the place on the die; `ordered`: parts are numbered as they are on the chip, not by
    OS CPU numbers. `levels` are what the first four columns of a slot hold, `kinds` is the kind of each slot's core,
    empty where all are alike. What the OS calls a slot or a NUMA node of
    one node is in `PackedNode.numbers`.
    """

    slots: Ints
    numa: Ints
    numa_nodes: int
    harvested: bool = False
    ordered: bool = True
    levels: tuple[str, ...] = LEVELS
    kinds: tuple[str, ...] = ()

    @cached_property
    def key(self) -> bytes:
        """Equal for nodes that can be compared place by place."""
        shape = np.array([len(self.slots), self.numa_nodes, self.harvested, self.ordered], dtype=np.int32)
        held = " ".join((*self.levels, *self.kinds)).encode()
        return shape.tobytes() + self.slots.astype(np.int32).tobytes() + self.numa.astype(np.int32).tobytes() + held


@dataclass(frozen=True)
class Quantity:
    """One measurement over all nodes of one layout: `values` (row, pass, place), float32 in `unit`, NaN where a row
    does not have the place or the pass.

    **Rows** are runs, the unit of evidence: row r is run `run[r]` of job `job[r]` of node number `node[r]` (its index
    in the fleet's nodes), begun at `started[r]` (ISO 8601, empty where unknown); `disturbed[r]` is the share of its
    places that the kernel flagged as disturbed. Rows are sorted by node, job and run. A job may have any number of
    runs, another one of each measurement, and none of this one.

    **Places**: `places` maps the name of each dimension to the coordinate of every place, int64 (place). The order of
    the names is that of the record's keys (`dims`), and places are sorted lexicographically by it, each once.
    Coordinates are canonical, by the model's labels: a CPU is its slot, a NUMA node its order; plain numbers (bytes,
    counts, a delay) are themselves; of a dimension of words the coordinate c is `names[dim][c]`, words in alphabetical
    order.

    **Pairs** (`model.places == "pairs"`) have the dimensions home, a, b with a < b as slots; `home` is the NUMA node
    that the lines are on, -1 where each pair's follows from the policy. Their places are the full product of `homes`
    and `pairs`, so that `by_home` is a view of `values`; `home` may be an absent one of a row, which is NaN then.

    `former` are jobs (node, job) of which no rows are used: they are of another epoch of the node, as before a repair.

    `tick_ns` is what one clock tick is in a value (0 unknown). Quantities are of one operation and quantity each, and
    are never compared with others.
    """

    measurement: str
    operation: str
    quantity: str
    unit: str
    model: Model
    layout: NodeLayout
    places: Mapping[str, Ints]
    values: Values
    node: Ints
    job: Ints
    run: Ints
    started: tuple[str, ...]
    disturbed: Floats
    names: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    tick_ns: float = 0.0
    former: frozenset[tuple[int, int]] = frozenset()

    @property
    def dims(self) -> tuple[str, ...]:
        """Names of the dimensions of a place."""
        return tuple(self.places)

    @property
    def size(self) -> int:
        """The number of places."""
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

    @property
    def of_pairs(self) -> bool:
        """Whether its places are pairs of CPUs."""
        return self.model.places == "pairs"

    @cached_property
    def rows(self) -> dict[int, dict[int, list[int]]]:
        """By node and job the numbers of their rows."""
        out: dict[int, dict[int, list[int]]] = {}
        for row, (node, job) in enumerate(zip(self.node.tolist(), self.job.tolist(), strict=True)):
            if (node, job) not in self.former:
                out.setdefault(node, {}).setdefault(job, []).append(row)
        return out

    @cached_property
    def newest_rows(self) -> dict[int, list[int]]:
        """By node the rows of its newest job."""
        return {node: jobs[max(jobs)] for node, jobs in self.rows.items()}

    @cached_property
    def pair_layout(self) -> Layout:
        """Of pairs: slots and pairs, with their classes."""
        layout = self.layout
        return Layout(layout.slots, self.pairs, layout.harvested, layout.ordered, layout.levels, layout.kinds)

    @cached_property
    def homes(self) -> tuple[int, ...]:
        """Of pairs: the homes in order, (-1,) where each pair's follows from the policy."""
        return tuple(np.unique(self.places["home"]).tolist())

    @cached_property
    def pairs(self) -> Ints:
        """Of pairs: the slots (pair, 2) of each, a < b, in the order of places within a home."""
        each = self.size // max(len(self.homes), 1)
        return np.stack([self.places["a"][:each], self.places["b"][:each]], axis=1)

    @property
    def by_home(self) -> Values:
        """Of pairs: a view of the values as (row, pass, home, pair)."""
        rows, passes, _ = self.values.shape
        return self.values.reshape(rows, passes, len(self.homes), -1)
