"""The fleet as arrays: what is known of every node, and its quantities, each one memory-mapped float32 file.

docs/formats.md, store, has the files.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from nodeprint import files, reading
from nodeprint.campaign import derived
from nodeprint.campaign.derived import State
from nodeprint.campaign.followed import Followed
from nodeprint.data import seal
from nodeprint.data.places.measured import Key, Measured, NodeLayout, is_metric, models
from nodeprint.errors import NodeprintError
from nodeprint.settings.measurements import Model

FOLDER = derived.FLEET


@dataclass(frozen=True)
class PackedNode:
    """What is known of a node apart from its quantities. `cpus` and `cores` are OS and core numbers by the slots that
    pairs are on.

    `numbers` are those of the whole machine, which all else is on: OS numbers of CPUs (`cpu`) and cores (`core`) by
    slot, of NUMA nodes (`node`) by their order. `seen` is what the kernels saw beside, a mapping a run that has any.
    `sensors` as of `nodeprint.data.job.sensors`: what its clocks, thermometers and memory controllers said.

    `reason`: why it is not measured, or what of its newest job cannot be used. `quality` is what is wrong with its
    records, `unusable` what keeps all of them from being compared; both are texts of readers, which are shown.
    `not_applicable` are measurements that have nothing to measure on it, or no program for it; `untaken` has why each
    measurement of its newest job was not taken, these and what failed; `lacking` are those of which that job lacks a
    run, as the node refused it or its kernel failed; `rebooted` jobs that runs of several boots are in: one survey
    cannot be of all of them. `followed` has by job when it was submitted and ended, by the login node's clock.
    `slurm_jobs` has by job its number in Slurm.
    `former` has by job the fields of its survey in which that differs from the newest one.
    `imported`: its records are another tool's; `identified`: it is known what machine it is.
    """

    name: str
    host: str = ""
    state: State = "measured"
    reason: str = ""
    log_tail: tuple[str, ...] = ()
    cpus: tuple[int, ...] = ()
    cores: tuple[int, ...] = ()
    fingerprint: Mapping[str, Any] = field(default_factory=dict)
    quality: tuple[str, ...] = ()
    unusable: tuple[str, ...] = ()
    not_applicable: tuple[str, ...] = ()
    untaken: Mapping[str, str] = field(default_factory=dict)
    lacking: tuple[str, ...] = ()
    rebooted: tuple[str, ...] = ()
    followed: Mapping[int, Followed] = field(default_factory=dict)
    former: Mapping[int, Mapping[str, Any]] = field(default_factory=dict)
    imported: bool = False
    identified: bool = True
    warnings: tuple[Mapping[str, str], ...] = ()
    rack: str = ""
    switch: str = ""
    boots: tuple[str, ...] = ()
    slurm_jobs: Mapping[int, str] = field(default_factory=dict)
    numbers: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    sensors: Mapping[str, Any] = field(default_factory=dict)
    seen: tuple[Mapping[str, Any], ...] = ()


class PackedFrom(msgspec.Struct, frozen=True):
    """What a node was packed from, as a stamp of its row of the sheet and its files; what of its records could not be
    used, whether it was simulated, and the versions of the kernels that measured it."""

    made_of: str
    problems: tuple[str, ...] = ()
    simulated: bool = False
    versions: Mapping[str, str] = {}


@dataclass(frozen=True)
class PackedFleet:
    """A campaign's nodes by name, and its quantities, those of pairs of CPUs first.

    `packed_from` says of each node, where it was packed from a campaign, of what; `notes` what was left out of the
    table that it was read from. `folder` is where it was read from, which has the nodes' jobs, too
    (nodeprint.data.store.packed_jobs).
    """

    campaign: str
    simulated: bool
    nodes: tuple[PackedNode, ...]
    quantities: tuple[Measured, ...]
    versions: Mapping[str, str] = field(default_factory=dict)
    packed_from: tuple[PackedFrom, ...] = ()
    folder: Path | None = None
    notes: tuple[str, ...] = ()

    @property
    def pairs(self) -> tuple[Measured, ...]:
        """The quantities of pairs of CPUs."""
        return tuple(quantity for quantity in self.quantities if quantity.of_pairs)

    @property
    def others(self) -> tuple[Measured, ...]:
        """All other quantities."""
        return tuple(quantity for quantity in self.quantities if not quantity.of_pairs)


def os_places(quantity: Measured, node: PackedNode) -> list[dict[str, Key]]:
    """The coordinates of every place of a quantity by the numbers of a node's operating system."""
    out = []
    for number in range(quantity.size):
        place = quantity.place(number)
        for dim, value in place.items():
            label = quantity.model.labels.get(dim, "")
            numbers = node.numbers.get("cpu" if label == "cpu" else "node", ()) if label else ()
            if isinstance(value, int) and 0 <= value < len(numbers):
                place[dim] = numbers[value]
        out.append(place)
    return out


class _Head(msgspec.Struct):
    schema: int
    stamp: str = ""


class _Entry(msgspec.Struct, omit_defaults=True):
    """A quantity in the index: all but its values and places, which are in `file` and beside it."""

    file: str
    measurement: str
    operation: str
    quantity: str
    unit: str
    tick_ns: float
    slots: list[list[int]]
    numa: list[int]
    numa_nodes: int
    harvested: bool
    ordered: bool
    levels: tuple[str, ...]
    dims: tuple[str, ...]
    names: dict[str, tuple[str, ...]]
    node: list[int]
    job: list[int]
    run: list[int]
    started: tuple[str, ...]
    disturbed: list[float]
    kinds: tuple[str, ...] = ()
    #: Of a metric of a table alone: those of measurements are in measurements.yaml.
    model: Model | None = None


class _Index(_Head, kw_only=True):
    """index.json. `stamp` is of all that was packed, empty where that was no campaign."""

    campaign: str
    simulated: bool
    nodes: tuple[PackedNode, ...]
    quantities: tuple[_Entry, ...]
    versions: Mapping[str, str] = {}
    packed_from: tuple[PackedFrom, ...] = ()
    notes: tuple[str, ...] = ()


def write(fleet: PackedFleet, campaign: Path) -> Path:
    """Write `fleet` into `campaign`/store/fleet; returns the index's path. Raises NodeprintError where that fails."""
    with files.replacing_folder(campaign / FOLDER) as partial:
        for number, quantity in enumerate(fleet.quantities):
            values = np.asarray(quantity.values, dtype=np.float32)
            np.save(derived.values_file(partial, quantity.measurement, number), values)
        write_index(fleet, partial)
    return campaign / FOLDER / "index.json"


def write_index(fleet: PackedFleet, partial: Path, stamp: str = "") -> None:
    """Write all but the values, and the seal of the folder; `stamp` is of all that was packed."""
    entries = []
    for number, quantity in enumerate(fleet.quantities):
        file = derived.values_file(partial, quantity.measurement, number)
        np.save(_places_of(file), np.stack([quantity.places[dim] for dim in quantity.dims]))
        entries.append(_entry(quantity, file.name))
    index = _Index(
        derived.SCHEMA,
        stamp,
        campaign=fleet.campaign,
        simulated=fleet.simulated,
        versions=fleet.versions,
        nodes=fleet.nodes,
        quantities=tuple(entries),
        packed_from=fleet.packed_from,
        notes=fleet.notes,
    )
    (partial / "index.json").write_bytes(msgspec.json.encode(index) + b"\n")
    seal.write_folder(partial)


def _places_of(file: Path) -> Path:
    return file.with_suffix(".places.npy")


def _entry(quantity: Measured, file: str) -> _Entry:
    layout = quantity.layout
    return _Entry(
        file=file,
        measurement=quantity.measurement,
        operation=quantity.operation,
        quantity=quantity.quantity,
        unit=quantity.unit,
        tick_ns=quantity.tick_ns,
        slots=layout.slots.tolist(),
        numa=layout.numa.tolist(),
        numa_nodes=layout.numa_nodes,
        harvested=layout.harvested,
        ordered=layout.ordered,
        levels=layout.levels,
        kinds=layout.kinds,
        dims=quantity.dims,
        names=dict(quantity.names),
        node=quantity.node.tolist(),
        job=quantity.job.tolist(),
        run=quantity.run.tolist(),
        started=quantity.started,
        disturbed=quantity.disturbed.tolist(),
        model=quantity.model if is_metric(quantity.measurement) else None,
    )


def read(campaign: Path, stamp: str | None = None) -> PackedFleet:
    """The packed fleet of a campaign, its values memory-mapped; with a `stamp` only what was packed with it.

    Raises NodeprintError where it is absent, or any of its files is not as it was written.
    """
    path = campaign / FOLDER / "index.json"
    try:
        content = reading.content(path, reading.RECORD_BYTES)
        head = msgspec.json.decode(content, type=_Head)
        if stamp is not None and head.stamp != stamp:
            raise NodeprintError("was made of other records", where=path, advice="it is made again")
        if head.schema != derived.SCHEMA:
            raise NodeprintError(f"schema version {head.schema}, this nodeprint reads {derived.SCHEMA}", where=path)
        seal.check(path.parent, path.parent / seal.NAME)
        index = msgspec.json.decode(content, type=_Index)
        twice = [name for name, count in Counter(node.name for node in index.nodes).items() if count > 1]
        if twice:
            raise ValueError(f"node {twice[0]} is there twice")
        quantities = tuple(_quantity(path.parent, entry) for entry in index.quantities)
        for quantity in quantities:
            if len(quantity.node) and not 0 <= quantity.node.min() <= quantity.node.max() < len(index.nodes):
                raise ValueError(f"{quantity.measurement}: a row's node is not in the index")
    except OSError as error:
        raise NodeprintError(
            f"cannot be read ({error.strerror})",
            where=error.filename or path,
            advice="run `nodeprint judge` on the campaign again",
        ) from error
    except (ValueError, KeyError, TypeError, AttributeError, EOFError, RecursionError, msgspec.MsgspecError) as error:
        raise NodeprintError(
            f"not a packed fleet ({type(error).__name__}: {error})",
            where=path,
            advice="remove the folder; it is made again",
        ) from error
    return PackedFleet(
        index.campaign,
        index.simulated,
        tuple(_sharing_numbers(index.nodes)),
        quantities,
        index.versions,
        index.packed_from,
        path.parent,
        index.notes,
    )


def _sharing_numbers(nodes: Iterable[PackedNode]) -> Iterable[PackedNode]:
    """Nodes whose numbers of CPUs are those of the first node that has the same: a fleet has them by the thousand."""
    first: dict[tuple[int, ...], tuple[int, ...]] = {}

    def shared(numbers: tuple[int, ...]) -> tuple[int, ...]:
        return first.setdefault(numbers, numbers)

    for node in nodes:
        numbers = {key: shared(value) for key, value in node.numbers.items()}
        yield replace(node, cpus=shared(node.cpus), cores=shared(node.cores), numbers=numbers)


def _quantity(folder: Path, entry: _Entry) -> Measured:
    """Raises ValueError where index and values do not fit, OSError where a file is no regular one."""
    file = folder / entry.file
    # a plain view, as each slice of a np.memmap takes several times as long
    values = np.load(reading.regular(file), mmap_mode="r").view(np.ndarray)
    places = np.load(reading.regular(_places_of(file)))
    rows, count = len(entry.node), places.shape[-1]
    if places.shape[0] != len(entry.dims) or values.ndim != 3 or (values.shape[0], values.shape[2]) != (rows, count):
        raise ValueError(f"{file.name} has shape {values.shape}, its index says {rows}, passes, {count}")
    layout = NodeLayout(
        np.array(entry.slots, dtype=np.int64).reshape(-1, 6),
        np.array(entry.numa, dtype=np.int64),
        entry.numa_nodes,
        entry.harvested,
        entry.ordered,
        entry.levels,
        entry.kinds,
    )
    node, job, run = (np.array(numbers, dtype=np.int64) for numbers in (entry.node, entry.job, entry.run))
    return Measured.from_arrays(
        entry.measurement,
        entry.operation,
        entry.quantity,
        entry.unit,
        entry.model or models()[entry.measurement],
        layout,
        dict(zip(entry.dims, places, strict=True)),
        values,
        node,
        job,
        run,
        entry.started,
        np.array(entry.disturbed, dtype=np.float64),
        entry.names,
        entry.tick_ns,
    )
