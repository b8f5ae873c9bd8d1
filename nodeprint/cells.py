"""Quantities that are not pairs of CPUs (memory, caches, bandwidth, clock, jitter, ...) in canonical places.

A place is a cell's coordinates with each CPU as its slot and each NUMA node by its order, never by OS number, so that
nodes are compared place by place. What is compared, and how, is the measurement's `model` in measurements.yaml.
"""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from nodeprint import config
from nodeprint.layout import RANK, SOCKET, Ints, slots_of
from nodeprint.topology.model import Topology

Values = npt.NDArray[np.float32]
Key = int | str

#: What a coordinate of this name is, unless the model's `labels` say otherwise.
_LABELS: Mapping[str, str] = {"cpu": "cpu", "a": "cpu", "b": "cpu", "memory_node": "node", "cpu_node": "node"}


@dataclass(frozen=True)
class Model:
    """How a measurement is compared (docs/method.md, other quantities).

    `term` is what its findings are called and whose bound holds, `terms` the labels whose values together name a set of
    cells that may deviate as one, `rows` those that name a row of the report's table, taken where `at` says.
    """

    value: str
    scale: str
    term: str
    better: str
    terms: tuple[tuple[str, ...], ...]
    labels: Mapping[str, str]
    rows: tuple[str, ...]
    at: Mapping[str, Key]


@cache
def models() -> dict[str, Model]:
    """The models of all measurements that state one, by name."""
    out = {}
    for name, what in config.measurements().items():
        told = what.get("model")
        if told:
            out[name] = Model(
                told["value"],
                told["scale"],
                told.get("term", "other"),
                told.get("better", "lower"),
                tuple(tuple(part.strip() for part in term.split(" x ")) for term in told["terms"]),
                {**_LABELS, **told.get("labels", {})},
                tuple(told.get("rows", ())),
                dict(told.get("at", {})),
            )
    return out


@dataclass(frozen=True)
class Machine:
    """What a node's CPUs and NUMA nodes are called where: by slot the OS numbers of CPUs and cores, by order the OS
    numbers of NUMA nodes; `slots` as layout has them, `numa` the NUMA node (by order) of each slot, -1 unknown."""

    slots: Ints
    cpus: tuple[int, ...]
    cores: tuple[int, ...]
    numa: Ints
    nodes: tuple[int, ...]

    @property
    def key(self) -> bytes:
        """Equal for machines whose cells can be compared place by place."""
        return self.slots.astype(np.int32).tobytes() + self.numa.astype(np.int32).tobytes() + bytes([len(self.nodes)])


@dataclass(frozen=True)
class Cells:
    """One measurement over the nodes of one kind of machine: `values` (row, pass, place), NaN where not measured.

    Row r is run `run[r]` of job `job[r]` of node number `node[r]` in the fleet's nodes; `places` are the coordinates in
    the order of `dims`, sorted.
    """

    measurement: str
    operation: str
    quantity: str
    unit: str
    slots: Ints
    numa: Ints
    dims: tuple[str, ...]
    places: tuple[tuple[Key, ...], ...]
    node: Ints
    job: Ints
    run: Ints
    values: Values
    started: tuple[str, ...] = ()


@dataclass(frozen=True)
class Part:
    """One job of one node, before the fleet is put together: `values` (run, pass, place)."""

    node: int
    job: int
    measurement: str
    operation: str
    quantity: str
    unit: str
    machine: Machine
    dims: tuple[str, ...]
    places: tuple[tuple[Key, ...], ...]
    runs: tuple[int, ...]
    values: Values
    started: tuple[str, ...] = ()


def machine(topology: Topology, measured: Sequence[int] = ()) -> Machine:
    """The canonical machine of `topology`; CPUs that were `measured` and that it does not know have places too.

    NUMA nodes are in the order of their first CPU, those without CPUs after them.
    """
    known = sorted({cpu.cpu for cpu in topology.cpus} | set(measured))
    slots, order = slots_of(topology, known)
    at = {cpu: slot for slot, cpu in enumerate(order)}
    cores = {cpu.cpu: cpu.core for cpu in topology.cpus}
    first = {n.node: min((at[cpu] for cpu in n.cpus if cpu in at), default=len(order)) for n in topology.numa_nodes}
    nodes = sorted(first, key=lambda node: (first[node], node))
    numa = np.full(len(order), -1, dtype=np.int64)
    for n in topology.numa_nodes:
        for cpu in n.cpus:
            if cpu in at:
                numa[at[cpu]] = nodes.index(n.node)
    numbers = tuple(cpu if (core := cores.get(cpu)) is None else core for cpu in order)
    return Machine(slots, tuple(order), numbers, numa, tuple(nodes))


def part(
    node: int, job: int, measurement: str, header: Mapping[str, Any], of: Machine,
    coordinates: Mapping[str, Sequence[Key]], values: npt.NDArray[Any], runs: Sequence[int],
    started: Sequence[str] = (),
) -> Part:  # fmt: skip
    """A job's cells in canonical places: `values` (run, pass, a dimension a coordinate), `coordinates` as measured.

    Where coordinates become one place, as two CPUs of one NUMA node do, their median counts.
    """
    model = models()[measurement]
    canonical = [_canonical(dim, keys, model, of) for dim, keys in coordinates.items()]
    flat = values.reshape(*values.shape[:2], -1)
    finite = np.any(np.isfinite(flat).reshape(-1, flat.shape[2]), axis=0)
    columns: dict[tuple[Key, ...], list[int]] = {}
    for column, place in enumerate(itertools.product(*canonical)):
        if finite[column]:
            columns.setdefault(place, []).append(column)
    places = tuple(sorted(columns, key=_sorted))
    out = np.full((*flat.shape[:2], len(places)), np.nan, dtype=np.float32)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # a pass without a value stays NaN
        for number, place in enumerate(places):
            mine = columns[place]
            out[..., number] = flat[..., mine[0]] if len(mine) == 1 else np.nanmedian(flat[..., mine], axis=-1)
    unit = str(header.get("cells", {}).get("values", {}).get(model.value, header.get("unit", "")))
    operation, quantity = (str(header.get(key, "")) for key in ("operation", "quantity"))
    return Part(
        node, job, measurement, operation, quantity, unit, of, tuple(coordinates), places, tuple(runs), out,
        tuple(started),
    )  # fmt: skip


def _canonical(dim: str, keys: Sequence[Key], model: Model, of: Machine) -> list[Key]:
    """The canonical value of each coordinate of a dimension, itself where it is no CPU and no NUMA node."""
    label = model.labels.get(dim)
    if label is None:
        return [key if isinstance(key, str) else int(key) for key in keys]
    if label == "node":
        return [of.nodes.index(int(key)) if int(key) in of.nodes else int(key) for key in keys]
    slots = [of.cpus.index(int(key)) for key in keys]
    if label == "node_of_cpu":
        return [int(of.numa[slot]) for slot in slots]
    # which thread of a core was measured alone goes by OS number: it is the core that was
    cores = [tuple(of.slots[slot, : RANK + 1].tolist()) for slot in slots]
    alone = [cores.count(core) == 1 for core in cores]
    first: dict[tuple[int, ...], int] = {}
    for slot, row in enumerate(of.slots[:, : RANK + 1].tolist()):
        first.setdefault(tuple(row), slot)
    return [first[core] if one else slot for slot, core, one in zip(slots, cores, alone, strict=True)]


def _sorted(place: tuple[Key, ...]) -> tuple[tuple[bool, Key], ...]:
    return tuple((isinstance(key, str), key) for key in place)


def assemble(parts: Sequence[Part]) -> tuple[Cells, ...]:
    """The fleet's cells: parts of one measurement on one kind of machine share one, NaN where a part has none."""
    groups: dict[tuple[str, str, str, tuple[str, ...], bytes], list[Part]] = {}
    for one in parts:
        key = (one.measurement, one.operation, one.quantity, one.dims, one.machine.key)
        groups.setdefault(key, []).append(one)
    return tuple(_merge(groups[key]) for key in sorted(groups))


def _merge(parts: Sequence[Part]) -> Cells:
    first = parts[0]
    places = tuple(sorted({place for one in parts for place in one.places}, key=_sorted))
    at = {place: number for number, place in enumerate(places)}
    rows = sum(len(one.runs) for one in parts)
    values = np.full((rows, max(one.values.shape[1] for one in parts), len(places)), np.nan, dtype=np.float32)
    node, job, run = (np.zeros(rows, dtype=np.int64) for _ in range(3))
    started: list[str] = []
    row = 0
    for one in parts:
        span = slice(row, row + len(one.runs))
        target = values[span, : one.values.shape[1]]
        target[..., [at[place] for place in one.places]] = one.values
        node[span], job[span], run[span] = one.node, one.job, one.runs
        started += one.started
        row += len(one.runs)
    return Cells(
        first.measurement, first.operation, first.quantity, first.unit, first.machine.slots, first.machine.numa,
        first.dims, places, node, job, run, values, tuple(started),
    )  # fmt: skip


def entry(cells: Cells, file: str) -> dict[str, Any]:
    """What the packed fleet's index says of `cells`, whose values are in `file`."""
    return {
        "file": file, "measurement": cells.measurement, "operation": cells.operation, "quantity": cells.quantity,
        "unit": cells.unit, "slots": cells.slots.tolist(), "numa": cells.numa.tolist(), "dims": list(cells.dims),
        "places": [list(place) for place in cells.places], "node": cells.node.tolist(), "job": cells.job.tolist(),
        "run": cells.run.tolist(), "started": list(cells.started),
    }  # fmt: skip


def from_entry(told: Mapping[str, Any], values: Values) -> Cells:
    """The reverse of `entry`. Raises ValueError where index and values do not fit, KeyError where a key is missing."""
    node, job, run = (np.array(told[key], dtype=np.int64) for key in ("node", "job", "run"))
    places = tuple(tuple(place) for place in told["places"])
    if values.ndim != 3 or (values.shape[0], values.shape[2]) != (len(node), len(places)):
        raise ValueError(f"{told['file']} has shape {values.shape}, its index says {len(node)}, passes, {len(places)}")
    slots = np.array(told["slots"], dtype=np.int64).reshape(-1, 6)
    measurement, operation, quantity, unit = (
        str(told[key]) for key in ("measurement", "operation", "quantity", "unit")
    )
    return Cells(
        measurement, operation, quantity, unit, slots, np.array(told["numa"], dtype=np.int64), tuple(told["dims"]),
        places, node, job, run, values, tuple(told.get("started", ())),
    )  # fmt: skip


def sockets(slots: Ints, numa: Ints, nodes: int) -> Ints:
    """The socket of each NUMA node (by order), -1 where it is unknown or has no CPU."""
    out = np.full(nodes, -1, dtype=np.int64)
    for node in range(nodes):
        mine = np.unique(slots[numa == node, SOCKET])
        if len(mine) == 1:
            out[node] = mine[0]
    return out
