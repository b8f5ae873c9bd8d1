"""From jobs of nodes to quantities: each job's measurement at canonical points, then one array for all of them.

A point's coordinates are a CPU's slot and a NUMA node's order, never OS numbers, so that nodes are compared point by
point. The measurement's model defines the coordinates.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
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
from nodeprint.data.places.measured import Ints, Key, Measured, Values, models
from nodeprint.machine.topology.model import Topology
from nodeprint.settings.measurements import Model
from nodeprint.stats.distinct import distinct


class NodePlaces(msgspec.Struct, frozen=True):
    """The canonical places of a node with their OS numbers: CPUs and cores by slot, NUMA nodes by order."""

    layout: Layout
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


#: The column of canonical points.
VALUE = "value"


def quantity_key(measured: JobMeasurement) -> tuple[bool, str, str, str, tuple[str, ...], bytes]:
    """Equal for measurements, at canonical points, of one quantity; pairs first."""
    assert measured.layout is not None
    name, header = measured.name, measured.header
    cells = model_of(measured).places != "pairs"
    return cells, name, header["operation"], header["quantity"], tuple(measured.places), measured.layout.key


def model_of(measured: JobMeasurement) -> Model:
    """The model of a measurement; a metric of a site's own command has its own."""
    return measured.model or models()[measured.name]


def values_file(folder: Path, measured: JobMeasurement) -> Path:
    """Return the file in which a process leaves a job's values at canonical points for the assembling process."""
    return derived.values_file(folder, f"{measured.node}-{measured.name}", measured.job)


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
    layout = Layout(
        slots, levels=levels_of(topology), kinds=kinds_of(topology, order), numa=numa, numa_nodes=len(nodes)
    )
    return NodePlaces(layout, tuple(order), numbers, tuple(nodes))


def pair_layout(layout: Layout) -> Layout:
    """The places of pairs: slots of the CPUs that they were measured of."""
    unknown = np.full(len(layout.slots), -1, dtype=np.int64)
    return replace(layout, pairs=layout.pairs[:0], numa=unknown, numa_nodes=0)


def pair_places(homes: Sequence[int], pairs: Ints) -> dict[str, Ints]:
    """Places of `pairs` (slots, the first the smaller) at each of `homes`."""
    a, b = pairs.T
    return {
        "home": np.repeat(np.array(homes, dtype=np.int64), len(a)),
        "a": np.tile(a, len(homes)),
        "b": np.tile(b, len(homes)),
    }


def of_pairs(
    node: int, job: int, measured: JobMeasurement, topology: Topology, node_places: NodePlaces
) -> JobMeasurement:
    """A job's latencies of pairs at canonical points; `node_places` has the CPUs that pairs were measured of."""
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
    values = np.full(shape, np.nan, dtype=np.float32)
    values[..., at[placed]] = measured.columns["latency_ns"][..., placed]
    clock, header = measured.header.get("clock"), measured.header
    step_ns = float(clock.get("step_ns") or 0.0) if isinstance(clock, dict) else 0.0
    round_trips = float(header.get("round_trips") or 0)
    tick_ns = step_ns / (2 * round_trips) if round_trips else 0.0
    described = {**{key: str(header[key]) for key in ("operation", "quantity", "unit")}, "tick_ns": tick_ns}
    runs = runs_of(measured.numbers, [str(run["start_time"]) for run in measured.runs], disturbed.tolist())
    return at_points(node, job, measured.name, described, runs, node_places.layout, places, {}, values)


def runs_of(
    numbers: Sequence[int], started: Sequence[str], disturbed: Sequence[float] | None = None
) -> tuple[Mapping[str, Any], ...]:
    """The runs of a job, at canonical points."""
    shares = disturbed if disturbed is not None else [0.0] * len(numbers)
    of_runs = zip(numbers, started, shares, strict=True)
    return tuple({"run": number, "start_time": time, "disturbed": share} for number, time, share in of_runs)


def at_points(
    node: int,
    job: int,
    name: str,
    header: Mapping[str, Any],
    runs: tuple[Mapping[str, Any], ...],
    layout: Layout,
    places: Mapping[str, Ints],
    names: Mapping[str, tuple[str, ...]],
    values: Values,
) -> JobMeasurement:
    """A job's `values` (run, pass, point) at the canonical points `places` of a `layout`, in any order, each once."""
    passes = tuple(range(values.shape[1]))
    return JobMeasurement(name, header, runs, passes, places, names, {VALUE: values}, node, job, layout)


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


def of_cells(node: int, job: int, measured: JobMeasurement, node_places: NodePlaces) -> JobMeasurement:
    """A job's values of a measurement that is not of pairs, at canonical points."""
    disturbed = ((measured.columns["flags"] & FLAGS["disturbed"]) != 0).reshape(len(measured.runs), -1).mean(axis=1)
    return cells_at_points(
        node,
        job,
        measured.name,
        measured.header,
        node_places,
        {dim: measured.keys(dim) for dim in measured.places},
        measured.columns[model_of(measured).value],
        runs_of(measured.numbers, [str(run["start_time"]) for run in measured.runs], disturbed.tolist()),
        measured.model,
    )


def cells_at_points(
    node: int,
    job: int,
    measurement: str,
    header: Mapping[str, Any],
    node_places: NodePlaces,
    coordinates: Mapping[str, Sequence[Key]],
    values: npt.NDArray[Any],
    runs: tuple[Mapping[str, Any], ...],
    own: Model | None = None,
) -> JobMeasurement:
    """A job's values (run, pass, place) that are not of pairs, at canonical points; `coordinates` are as measured.

    If places become one point, as two CPUs of one NUMA node do, their median counts. A place without values is none.
    `own` is the model of a measurement that is none of nodeprint's.
    """
    model = own or models()[measurement]
    keys = tuple(map(tuple, coordinates.values()))
    places, names, place, first, joined = _canonical(tuple(model.labels.items()), node_places, tuple(coordinates), keys)
    out = np.asarray(values[..., first], dtype=np.float32)
    with warnings.catch_warnings(action="ignore", category=RuntimeWarning):  # a pass without a value stays NaN
        for several in joined:
            out[..., several] = np.nanmedian(values[..., place == several], axis=-1)
    valued = np.isfinite(out).any(axis=(0, 1))
    if not valued.all():
        places, out = {dim: column[valued] for dim, column in places.items()}, out[..., valued]
    unit = str(header.get("cells", {}).get("values", {}).get(model.value, header.get("unit", "")))
    described = {**{key: str(header.get(key, "")) for key in ("operation", "quantity")}, "unit": unit, "tick_ns": 0.0}
    return msgspec.structs.replace(
        at_points(node, job, measurement, described, runs, node_places.layout, places, names, out), model=own
    )


@lru_cache(maxsize=256)
def _canonical(
    labels: tuple[tuple[str, str], ...],
    node_places: NodePlaces,
    dims: tuple[str, ...],
    coordinates: tuple[tuple[Key, ...], ...],
) -> tuple[dict[str, Ints], dict[str, tuple[str, ...]], Ints, Ints, Ints]:
    """Return the sorted canonical places, the words of their dimensions, and the number of each measured place among
    them. Also return the first measured place of each, and the numbers of places that were measured several times."""
    columns, names = [], {}
    for dim, keys in zip(dims, coordinates, strict=True):
        measured = sorted(set(keys), key=lambda key: (isinstance(key, str), key))
        canonical = dict(zip(measured, _of_dimension(dict(labels).get(dim), measured, node_places), strict=True))
        if any(isinstance(key, str) for key in canonical.values()):
            names[dim] = words = tuple(sorted({str(key) for key in canonical.values()}))
            columns.append([words.index(str(canonical[key])) for key in keys])
        else:
            columns.append([int(canonical[key]) for key in keys])
    rows = np.array(columns, dtype=np.int64).T
    first, place = distinct(rows)
    joined = np.flatnonzero(np.bincount(place) > 1)
    return dict(zip(dims, rows[first].T.copy(), strict=True)), names, place, first, joined


def _of_dimension(label: str | None, keys: Sequence[Key], node_places: NodePlaces) -> list[Key]:
    """The canonical value of each coordinate of a dimension with this label, itself without one."""
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


def assemble(
    jobs: Sequence[JobMeasurement], folder: Path | None = None, left: Path | None = None
) -> tuple[Measured, ...]:
    """Quantities from jobs: those of one measurement and layout share one, in memory, or memory-mapped in `folder`. The
    points of a quantity are the union of its jobs', NaN if a job has none. The values of a job without its column were
    `left` in a file there (`values_file`).
    """
    groups: dict[tuple[Any, ...], list[JobMeasurement]] = {}
    for measured in jobs:
        groups.setdefault(quantity_key(measured), []).append(measured)
    return tuple(
        _merge(groups[key], derived.values_file(folder, key[1], number) if folder is not None else None, left)
        for number, key in enumerate(sorted(groups))
    )


def _values(measured: JobMeasurement, left: Path | None) -> Values:
    values: Values
    if VALUE in measured.columns or left is None:
        values = measured.columns[VALUE]
    else:
        values = np.load(values_file(left, measured))
    return values


def _merge(jobs: Sequence[JobMeasurement], path: Path | None, left: Path | None) -> Measured:
    first, model = jobs[0], model_of(jobs[0])
    assert first.layout is not None
    names = {
        dim: tuple(sorted({word for measured in jobs for word in measured.names.get(dim, ())}))
        for dim in first.places
        if any(dim in measured.names for measured in jobs)
    }

    @cache
    def rows_of(number: int) -> Ints:
        measured = jobs[number]
        return np.stack([_in_words(measured, dim, names) for dim in first.places], axis=1)

    #: Jobs share their points by the hundred: each kind is looked up once.
    same: dict[tuple[Any, ...], int] = {}
    kind = [
        same.setdefault((*map(id, measured.places.values()), *measured.names.items()), n)
        for n, measured in enumerate(jobs)
    ]
    places = _union([rows_of(number) for number in dict.fromkeys(kind)], pairs=model.places == "pairs")
    place_of = {
        number: codes(np.concatenate([places, rows_of(number)]))[len(places) :] for number in dict.fromkeys(kind)
    }
    runs = [len(measured.runs) for measured in jobs]
    shape = (sum(runs), max(len(measured.passes) for measured in jobs), len(places))
    values: Values = (
        np.lib.format.open_memmap(path, "w+", np.float32, shape) if path is not None else np.empty(shape, np.float32)
    )
    row = 0
    for measured, number in zip(jobs, kind, strict=True):
        span = values[row : row + len(measured.runs)]
        if (len(measured.passes), len(place_of[number])) == shape[1:] and np.array_equal(
            place_of[number], np.arange(len(places))
        ):
            span[...] = _values(measured, left)
        else:
            span[...] = np.nan
            span[:, : len(measured.passes)][..., place_of[number]] = _values(measured, left)
        row += len(measured.runs)
    return Measured.from_arrays(
        first.name,
        first.header["operation"],
        first.header["quantity"],
        first.header["unit"],
        model,
        first.layout,
        dict(zip(first.places, places.T.copy(), strict=True)),
        values,
        np.repeat([measured.node for measured in jobs], runs),
        np.repeat([measured.job for measured in jobs], runs),
        np.concatenate([np.array(measured.numbers, dtype=np.int64) for measured in jobs]),
        tuple(str(run["start_time"]) for measured in jobs for run in measured.runs),
        np.concatenate([np.array([run["disturbed"] for run in measured.runs], dtype=np.float64) for measured in jobs]),
        names,
        first.header["tick_ns"],
    )


def has_places_of(earlier: JobMeasurement, jobs: Sequence[JobMeasurement]) -> bool:
    """Whether `jobs` have between them every pass and point of the quantity at which the `earlier` one has values."""
    alike = [measured for measured in jobs if quantity_key(measured) == quantity_key(earlier)]
    valued = np.isfinite(earlier.columns[VALUE])
    passes = np.flatnonzero(valued.any(axis=(0, 2)))
    now = {place for measured in alike for place in _named_places(measured)}
    then = np.flatnonzero(valued.any(axis=(0, 1))).tolist()
    named = _named_places(earlier)
    return max((len(measured.passes) for measured in alike), default=0) > passes.max(initial=-1) and all(
        named[place] in now for place in then
    )


def _named_places(measured: JobMeasurement) -> list[tuple[Key, ...]]:
    """The coordinates of each point, words in a dimension of words."""
    listed = {dim: column.tolist() for dim, column in measured.places.items()}
    columns = (
        [measured.names[dim][number] for number in c] if dim in measured.names else c for dim, c in listed.items()
    )
    return list(zip(*columns, strict=True))


def _in_words(measured: JobMeasurement, dim: str, names: Mapping[str, tuple[str, ...]]) -> Ints:
    """The coordinates of a job as numbers of the quantity's words."""
    if dim not in names:
        return measured.places[dim]
    return np.array([names[dim].index(word) for word in measured.names[dim]], dtype=np.int64)[measured.places[dim]]


def _union(of_jobs: Sequence[Ints], *, pairs: bool) -> Ints:
    """All points (point, dimension), sorted; with pairs every pair at every home."""
    rows = np.concatenate(of_jobs)
    if not pairs:
        return rows[distinct(rows)[0]]
    homes, each = np.unique(rows[:, 0]), rows[distinct(rows[:, 1:])[0], 1:]
    return np.concatenate([np.repeat(homes, len(each))[:, None], np.tile(each, (len(homes), 1))], axis=1)
