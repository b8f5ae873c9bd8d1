"""From the jobs of nodes to quantities: each job's measurement at canonical places, then one array for all of them.

A place's coordinates are a CPU's slot and a NUMA node's order, never OS numbers, so that nodes are compared place by
place; what a coordinate is, the measurement's model says.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from nodeprint.campaign import derived
from nodeprint.data.format.record_format import FLAGS
from nodeprint.data.job.jobs import JobMeasurement
from nodeprint.data.places import homes
from nodeprint.data.places.layout import RANK, Layout, codes, kinds_of, levels_of, slots_of
from nodeprint.data.places.measured import Floats, Ints, Key, Measured, NodeLayout, Values, models
from nodeprint.machine.topology.model import Topology
from nodeprint.stats.distinct import distinct


class NodePlaces(msgspec.Struct, frozen=True):
    """The canonical places of a node and what they are called there: by slot the OS numbers of CPUs and cores, by order
    the OS numbers of NUMA nodes."""

    layout: NodeLayout
    cpus: tuple[int, ...]
    cores: tuple[int, ...]
    nodes: tuple[int, ...]

    def __hash__(self) -> int:
        return hash((self.layout.key, self.cpus, self.nodes))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, NodePlaces) and (self.layout.key, self.cpus, self.cores, self.nodes) == (
            other.layout.key,
            other.cpus,
            other.cores,
            other.nodes,
        )


class JobPart(msgspec.Struct, frozen=True):
    """A measurement in one job of one node. `values` gives (run, pass, place) when it is needed; `places` and the rest
    are as of `Measured`, in any order, each once."""

    node: int
    job: int
    measurement: str
    operation: str
    quantity: str
    unit: str
    layout: NodeLayout
    places: Mapping[str, Ints]
    names: Mapping[str, tuple[str, ...]]
    runs: tuple[int, ...]
    passes: int
    started: tuple[str, ...]
    values: Callable[[], Values]
    disturbed: Floats | None = None
    tick_ns: float = 0.0

    @property
    def key(self) -> tuple[bool, str, str, str, tuple[str, ...], bytes]:
        """Equal for parts of one quantity; pairs first."""
        cells = models()[self.measurement].places != "pairs"
        return cells, self.measurement, self.operation, self.quantity, tuple(self.places), self.layout.key


def machine(topology: Topology, measured: Sequence[int] = ()) -> NodePlaces:
    """The canonical machine of `topology`; CPUs that were `measured` and that it does not know have places too.

    NUMA nodes are in the order of their first CPU, those without CPUs after them.
    """
    slots, order = slots_of(topology, sorted({cpu.cpu for cpu in topology.cpus} | set(measured)))
    slot_of = {cpu: slot for slot, cpu in enumerate(order)}
    cores = {cpu.cpu: cpu.core for cpu in topology.cpus}
    first = {
        n.node: min((slot_of[cpu] for cpu in n.cpus if cpu in slot_of), default=len(order)) for n in topology.numa_nodes
    }
    nodes = sorted(first, key=lambda node: (first[node], node))
    numa = np.full(len(order), -1, dtype=np.int64)
    for n in topology.numa_nodes:
        for cpu in n.cpus:
            if cpu in slot_of:
                numa[slot_of[cpu]] = nodes.index(n.node)
    numbers = tuple(cpu if (core := cores.get(cpu)) is None else core for cpu in order)
    layout = NodeLayout(slots, numa, len(nodes), levels=levels_of(topology), kinds=kinds_of(topology, order))
    return NodePlaces(layout, tuple(order), numbers, tuple(nodes))


def pair_layout(layout: Layout) -> NodeLayout:
    """The places of pairs: slots of the CPUs that they were measured of."""
    unknown = np.full(len(layout.slots), -1, dtype=np.int64)
    return NodeLayout(layout.slots, unknown, 0, layout.harvested, layout.ordered, layout.levels, layout.kinds)


def pair_places(homes: Sequence[int], pairs: Ints) -> dict[str, Ints]:
    """Places of `pairs` (slots, the first the smaller) at each of `homes`."""
    a, b = pairs.T
    return {
        "home": np.repeat(np.array(homes, dtype=np.int64), len(a)),
        "a": np.tile(a, len(homes)),
        "b": np.tile(b, len(homes)),
    }


def of_pairs(node: int, job: int, measured: JobMeasurement, topology: Topology, node_places: NodePlaces) -> JobPart:
    """A job's latencies of pairs; `node_places` has the CPUs that pairs were measured of."""
    coordinates = (
        homes.of_pairs(measured.places, str(measured.header.get("home")), topology),
        measured.places["a"],
        measured.places["b"],
    )
    raw = [np.ascontiguousarray(each).tobytes() for each in coordinates]
    places, at = _measured_pairs(node_places.cpus, bool(measured.header.get("directed")), *raw)
    placed, shape = at >= 0, (len(measured.runs), len(measured.passes), len(places["home"]))
    disturbed = np.zeros(shape[0])
    if measured.columns["flags"].any():
        flags = np.zeros(shape, dtype=np.uint8)
        flags[..., at[placed]] = measured.columns["flags"][..., placed]
        disturbed = ((flags & FLAGS["disturbed"]) != 0).mean(axis=(1, 2))

    def values() -> Values:
        out = np.full(shape, np.nan, dtype=np.float32)
        out[..., at[placed]] = measured.columns["latency_ns"][..., placed]
        return out

    clock, header = measured.header.get("clock"), measured.header
    step_ns = float(clock.get("step_ns") or 0.0) if isinstance(clock, dict) else 0.0
    round_trips = float(header.get("round_trips") or 0)
    return JobPart(
        node,
        job,
        measured.name,
        str(header["operation"]),
        str(header["quantity"]),
        str(header["unit"]),
        node_places.layout,
        places,
        {},
        tuple(measured.numbers),
        len(measured.passes),
        tuple(str(run["start_time"]) for run in measured.runs),
        values,
        disturbed,
        step_ns / (2 * round_trips) if round_trips else 0.0,
    )


@lru_cache(maxsize=64)
def _measured_pairs(
    cpus: tuple[int, ...], directed: bool, home: bytes, a: bytes, b: bytes
) -> tuple[dict[str, Ints], Ints]:
    """Places of pairs that were measured with OS numbers, and where each measured one is among them, -1 for none.

    Of a directed measurement the direction from the lower slot counts.
    """
    order = np.array(cpus, dtype=np.int64)
    by_number = np.argsort(order)
    home_of, first, second = (np.frombuffer(raw, dtype=np.int64) for raw in (home, a, b))
    ends = [by_number[np.searchsorted(order, end, sorter=by_number)] for end in (first, second)]
    low, high = np.minimum(*ends), np.maximum(*ends)
    used = (ends[0] <= ends[1]) if directed else np.ones(len(low), dtype=np.bool_)
    homes, which = np.unique(home_of, return_inverse=True)
    numbers, pair = np.unique(low * len(order) + high, return_inverse=True)
    place_of = np.where(used, which * len(numbers) + pair, -1)
    return pair_places(homes.tolist(), np.stack(np.divmod(numbers, len(order)), axis=1)), place_of


def of_cells(node: int, job: int, measured: JobMeasurement, node_places: NodePlaces) -> JobPart:
    """A job's values of a measurement that is not of pairs."""
    job_part = part(
        node,
        job,
        measured.name,
        measured.header,
        node_places,
        {dim: measured.keys(dim) for dim in measured.places},
        measured.columns[models()[measured.name].value],
        measured.numbers,
        [str(run["start_time"]) for run in measured.runs],
    )
    disturbed = (measured.columns["flags"] & FLAGS["disturbed"]) != 0
    return msgspec.structs.replace(job_part, disturbed=disturbed.reshape(len(measured.runs), -1).mean(axis=1))


def part(
    node: int,
    job: int,
    measurement: str,
    header: Mapping[str, Any],
    node_places: NodePlaces,
    coordinates: Mapping[str, Sequence[Key]],
    values: npt.NDArray[Any],
    runs: Sequence[int],
    started: Sequence[str],
) -> JobPart:
    """A job's values (run, pass, place) that are not of pairs, `coordinates` of each place as measured.

    Where places become one, as two CPUs of one NUMA node do, their median counts. A place without a value is none.
    """
    keys = tuple(map(tuple, coordinates.values()))
    places, names, place, first, joined = _canonical(measurement, node_places, tuple(coordinates), keys)
    out = np.asarray(values[..., first], dtype=np.float32)
    with warnings.catch_warnings(action="ignore", category=RuntimeWarning):  # a pass without a value stays NaN
        for several in joined:
            out[..., several] = np.nanmedian(values[..., place == several], axis=-1)
    valued = np.isfinite(out).any(axis=(0, 1))
    if not valued.all():
        places, out = {dim: column[valued] for dim, column in places.items()}, out[..., valued]
    unit = str(header.get("cells", {}).get("values", {}).get(models()[measurement].value, header.get("unit", "")))
    operation, quantity = (str(header.get(key, "")) for key in ("operation", "quantity"))
    return JobPart(
        node,
        job,
        measurement,
        operation,
        quantity,
        unit,
        node_places.layout,
        places,
        names,
        tuple(runs),
        out.shape[1],
        tuple(started),
        lambda: out,
    )


@lru_cache(maxsize=256)
def _canonical(
    measurement: str, node_places: NodePlaces, dims: tuple[str, ...], coordinates: tuple[tuple[Key, ...], ...]
) -> tuple[dict[str, Ints], dict[str, tuple[str, ...]], Ints, Ints, Ints]:
    """The canonical places, sorted, the words of their dimensions, and the number among them of each measured place;
    the first measured place of each, and the numbers of those that several measured places are."""
    columns, names = [], {}
    for dim, keys in zip(dims, coordinates, strict=True):
        measured = sorted(set(keys), key=lambda key: (isinstance(key, str), key))
        canonical = dict(zip(measured, _of_dimension(measurement, dim, measured, node_places), strict=True))
        if any(isinstance(key, str) for key in canonical.values()):
            names[dim] = words = tuple(sorted({str(key) for key in canonical.values()}))
            columns.append([words.index(str(canonical[key])) for key in keys])
        else:
            columns.append([int(canonical[key]) for key in keys])
    rows = np.array(columns, dtype=np.int64).T
    first, place = distinct(rows)
    joined = np.flatnonzero(np.bincount(place) > 1)
    return dict(zip(dims, rows[first].T.copy(), strict=True)), names, place, first, joined


def _of_dimension(measurement: str, dim: str, keys: Sequence[Key], node_places: NodePlaces) -> list[Key]:
    """The canonical value of each coordinate of a dimension, itself where it is no CPU and no NUMA node."""
    label = models()[measurement].labels.get(dim)
    if label is None:
        return list(keys)
    if label == "node":
        return [node_places.nodes.index(int(key)) if int(key) in node_places.nodes else int(key) for key in keys]
    slots = [node_places.cpus.index(int(key)) for key in keys]
    if label == "node_of_cpu":
        return [int(node_places.layout.numa[slot]) for slot in slots]
    # which thread of a core was measured alone goes by OS number: it is the core that was
    core_of = list(map(tuple, node_places.layout.slots[:, : RANK + 1].tolist()))
    cores = [core_of[slot] for slot in slots]
    alone = Counter(cores)
    return [core_of.index(core) if alone[core] == 1 else slot for slot, core in zip(slots, cores, strict=True)]


def assemble(parts: Sequence[JobPart], folder: Path | None = None) -> tuple[Measured, ...]:
    """Quantities from parts: those of one measurement and layout share one, in memory, or memory-mapped in `folder`.

    The places of a quantity are the union of its parts', NaN where a part has none.
    """
    groups: dict[tuple[Any, ...], list[JobPart]] = {}
    for job_part in parts:
        groups.setdefault(job_part.key, []).append(job_part)
    return tuple(
        _merge(groups[key], derived.values_file(folder, key[1], number) if folder is not None else None)
        for number, key in enumerate(sorted(groups))
    )


def _merge(parts: Sequence[JobPart], path: Path | None) -> Measured:
    first, model = parts[0], models()[parts[0].measurement]
    names = {
        dim: tuple(sorted({word for job_part in parts for word in job_part.names.get(dim, ())}))
        for dim in first.places
        if any(dim in job_part.names for job_part in parts)
    }

    @cache
    def rows_of(number: int) -> Ints:
        job_part = parts[number]
        return np.stack([_in_words(job_part, dim, names) for dim in first.places], axis=1)

    #: Parts share their places by the hundred: each kind is looked up once.
    same: dict[tuple[Any, ...], int] = {}
    kind = [
        same.setdefault((*map(id, job_part.places.values()), *job_part.names.items()), n)
        for n, job_part in enumerate(parts)
    ]
    places = _union([rows_of(number) for number in dict.fromkeys(kind)], pairs=model.places == "pairs")
    place_of = {
        number: codes(np.concatenate([places, rows_of(number)]))[len(places) :] for number in dict.fromkeys(kind)
    }
    runs = [len(job_part.runs) for job_part in parts]
    shape = (sum(runs), max(job_part.passes for job_part in parts), len(places))
    values: Values = (
        np.lib.format.open_memmap(path, "w+", np.float32, shape) if path is not None else np.empty(shape, np.float32)
    )
    row = 0
    for job_part, number in zip(parts, kind, strict=True):
        span = values[row : row + len(job_part.runs)]
        if (job_part.passes, len(place_of[number])) == shape[1:] and np.array_equal(
            place_of[number], np.arange(len(places))
        ):
            span[...] = job_part.values()
        else:
            span[...] = np.nan
            span[:, : job_part.passes][..., place_of[number]] = job_part.values()
        row += len(job_part.runs)
    return Measured.from_arrays(
        first.measurement,
        first.operation,
        first.quantity,
        first.unit,
        model,
        first.layout,
        dict(zip(first.places, places.T.copy(), strict=True)),
        values,
        np.repeat([job_part.node for job_part in parts], runs),
        np.repeat([job_part.job for job_part in parts], runs),
        np.concatenate([np.array(job_part.runs, dtype=np.int64) for job_part in parts]),
        tuple(time for job_part in parts for time in job_part.started),
        np.concatenate(
            [np.zeros(len(job_part.runs)) if job_part.disturbed is None else job_part.disturbed for job_part in parts]
        ),
        names,
        first.tick_ns,
    )


def has_places_of(earlier: JobPart, parts: Sequence[JobPart]) -> bool:
    """Whether `parts` have between them every pass and place of the quantity in which the part `earlier` has values."""
    alike = [job_part for job_part in parts if job_part.key == earlier.key]
    valued = np.isfinite(earlier.values())
    passes = np.flatnonzero(valued.any(axis=(0, 2)))
    now = {place for job_part in alike for place in _named_places(job_part)}
    then = np.flatnonzero(valued.any(axis=(0, 1))).tolist()
    named = _named_places(earlier)
    return max((job_part.passes for job_part in alike), default=0) > passes.max(initial=-1) and all(
        named[place] in now for place in then
    )


def _named_places(job_part: JobPart) -> list[tuple[Key, ...]]:
    """The coordinates of each place, words where a dimension is of words."""
    listed = {dim: column.tolist() for dim, column in job_part.places.items()}
    columns = (
        [job_part.names[dim][number] for number in c] if dim in job_part.names else c for dim, c in listed.items()
    )
    return list(zip(*columns, strict=True))


def _in_words(job_part: JobPart, dim: str, names: Mapping[str, tuple[str, ...]]) -> Ints:
    """The coordinates of a part as numbers of the quantity's words."""
    if dim not in names:
        return job_part.places[dim]
    return np.array([names[dim].index(word) for word in job_part.names[dim]], dtype=np.int64)[job_part.places[dim]]


def _union(of_parts: Sequence[Ints], *, pairs: bool) -> Ints:
    """All places (place, dimension), sorted; of pairs of_parts pair at of_parts home."""
    rows = np.concatenate(of_parts)
    if not pairs:
        return rows[distinct(rows)[0]]
    homes, each = np.unique(rows[:, 0]), rows[distinct(rows[:, 1:])[0], 1:]
    return np.concatenate([np.repeat(homes, len(each))[:, None], np.tile(each, (len(homes), 1))], axis=1)
