"""The fleet as arrays: the facts of every node, and its quantities, each one memory-mapped float32 file.

docs/formats.md, store, has the files.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import numpy as np

from nodeprint import files, reading
from nodeprint.campaign import derived
from nodeprint.campaign.derived import State
from nodeprint.campaign.followed import Followed
from nodeprint.data import seal
from nodeprint.data.job.fabric_times import Fabric, FabricFacts
from nodeprint.data.places.layout import Layout
from nodeprint.data.places.measured import Key, Measured, is_metric, models
from nodeprint.data.store.identity import Identity
from nodeprint.errors import NodeprintError
from nodeprint.settings.measurements import Model

FOLDER = derived.FLEET

Value = TypeVar("Value")


@dataclass(frozen=True)
class PackedNode:
    """All facts of a node except its quantities. `cpus` and `cores` are OS and core numbers by the slots of pairs.

    `numbers` are those of the whole machine, by which everything else is indexed. They are the OS numbers of CPUs
    (`cpu`) and cores (`core`) by slot, of NUMA nodes (`node`) by their order. `seen` has a mapping for each run
    with disturbances. `sensors` are the readings of `nodeprint.data.job.sensors`.

    `reason` states why it is not measured, or which part of its newest job cannot be used. `quality` lists faults
    of its records, `unusable` the faults that prevent any comparison; both are texts of readers, which are shown.
    `not_applicable` are measurements without an object or a program on it. `untaken` gives the reason for each
    measurement that its newest job lacks, these and failed ones. `lacking` are measurements with a missing run in
    this job, because the node refused it or its kernel failed. `rebooted` are jobs with runs of several boots,
    which one survey cannot describe. `followed` has by job when it was submitted and ended, by the login node's
    clock.
    `slurm_jobs` has by job its number in Slurm.
    `former` has by job the fields of its survey in which that differs from the newest one.
    `imported`: its records are another tool's; `identified`: its machine is known. `anonymous`: it may be the
    same machine as another imported one.

    `made_of` is a digest of its row of the sheet and its files, empty without a campaign. `problems` are faults of its
    records. `simulated` states whether a simulator wrote them. `versions` has the kernels that measured it.
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
    anonymous: bool = False
    warnings: tuple[Mapping[str, str], ...] = ()
    rack: str = ""
    switch: str = ""
    boots: tuple[str, ...] = ()
    slurm_jobs: Mapping[int, str] = field(default_factory=dict)
    numbers: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    sensors: Mapping[str, Any] = field(default_factory=dict)
    seen: tuple[Mapping[str, Any], ...] = ()
    made_of: str = ""
    problems: tuple[str, ...] = ()
    simulated: bool = False
    versions: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class PackedFleet:
    """A campaign's nodes by name, and its quantities, those of pairs of CPUs first.

    `notes` is what was left out of the table that it was read from, and `identity` says whose its values are. `folder`
    has the store that it was read from, with the nodes' jobs. `fabrics` are the pairs of nodes of a table; a campaign's
    own are read from its records.
    """

    campaign: str
    simulated: bool
    nodes: tuple[PackedNode, ...]
    quantities: tuple[Measured, ...]
    versions: Mapping[str, str] = field(default_factory=dict)
    folder: Path | None = None
    notes: tuple[str, ...] = ()
    identity: Identity | None = None
    fabrics: tuple[Fabric, ...] = ()

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


def write(fleet: PackedFleet, campaign: Path) -> Path:
    """Write `fleet` into `campaign`/store/fleet; returns the index's path. Raises NodeprintError where that fails."""
    with files.replacing_folder(campaign / FOLDER) as partial:
        for number, quantity in enumerate(fleet.quantities):
            values = np.asarray(quantity.values, dtype=np.float32)
            np.save(derived.values_file(partial, quantity.measurement, number), values)
        for number, fabric in enumerate(fleet.fabrics):
            np.save(_fabric_file(partial, number), np.stack([fabric.values, *fabric.by_size.values()]))
        write_index(fleet, partial)
    return campaign / FOLDER / "index.json"


def write_index(fleet: PackedFleet, partial: Path, stamp: str = "") -> None:
    """Write everything except the values, and the seal of the directory; `stamp` covers all packed files."""
    entries = []
    for number, quantity in enumerate(fleet.quantities):
        file = derived.values_file(partial, quantity.measurement, number)
        np.save(_places_of(file), np.stack([quantity.places[dim] for dim in quantity.dims]))
        entries.append(_entry(quantity, file.name))
    index = {
        "schema": derived.SCHEMA,
        "stamp": stamp,
        "campaign": fleet.campaign,
        "simulated": fleet.simulated,
        "versions": fleet.versions,
        "notes": fleet.notes,
        "identity": fleet.identity,
        **({"fabrics": [_fabric_entry(fabric) for fabric in fleet.fabrics]} if fleet.fabrics else {}),
        "nodes": fleet.nodes,
        "quantities": entries,
    }
    (partial / "index.json").write_bytes(msgspec.json.encode(index, enc_hook=np.ndarray.tolist) + b"\n")
    seal.write_folder(partial)


def _fabric_file(folder: Path, number: int) -> Path:
    return folder / f"fabric-{number}.npy"


def _fabric_entry(fabric: Fabric) -> dict[str, Any]:
    """A fabric in the index, without its values."""
    return {**{fact.name: getattr(fabric, fact.name) for fact in fields(FabricFacts)}, "sizes": tuple(fabric.by_size)}


def _places_of(file: Path) -> Path:
    return file.with_suffix(".places.npy")


#: A layout in the index: its pairs are points of the quantity.
_LAYOUT = ("slots", "numa", "numa_nodes", "harvested", "ordered", "levels", "kinds")


def _entry(quantity: Measured, file: str) -> dict[str, Any]:
    """A quantity in the index, without its values and places, which are in `file` and a second file."""
    return {
        "file": file,
        "measurement": quantity.measurement,
        "operation": quantity.operation,
        "quantity": quantity.quantity,
        "unit": quantity.unit,
        "tick_ns": quantity.tick_ns,
        "layout": {key: value for key, value in vars(quantity.layout).items() if key in _LAYOUT},
        "dims": quantity.dims,
        "names": quantity.names,
        "node": quantity.node,
        "job": quantity.job,
        "run": quantity.run,
        "started": quantity.started,
        "disturbed": quantity.disturbed,
        # measurements.yaml has the models of measurements, and none of a table's metrics
        "model": quantity.model if is_metric(quantity.measurement) else None,
    }


def read(campaign: Path, stamp: str | None = None) -> PackedFleet:
    """The packed fleet of a campaign, its values memory-mapped; with a `stamp` only what was packed with it.

    Raises NodeprintError where it is absent, or any of its files is not as it was written.
    """
    path = campaign / FOLDER / "index.json"
    try:
        index = msgspec.json.decode(reading.content(path, reading.RECORD_BYTES), type=dict[str, msgspec.Raw])
        if stamp is not None and _decoded(index["stamp"], str) != stamp:
            raise NodeprintError("was made of other records", where=path, advice="it is regenerated")
        if (schema := _decoded(index["schema"], int)) != derived.SCHEMA:
            raise NodeprintError(f"schema version {schema}, this nodeprint reads {derived.SCHEMA}", where=path)
        seal.check(path.parent, path.parent / seal.NAME)
        nodes = _decoded(index["nodes"], tuple[PackedNode, ...])
        twice = [name for name, count in Counter(node.name for node in nodes).items() if count > 1]
        if twice:
            raise ValueError(f"node {twice[0]} appears twice")
        entries = _decoded(index["quantities"], list[dict[str, Any]])
        quantities = tuple(_quantity(path.parent, **entry) for entry in entries)
        for quantity in quantities:
            if len(quantity.node) and not 0 <= quantity.node.min() <= quantity.node.max() < len(nodes):
                raise ValueError(f"{quantity.measurement}: a row's node is not in the index")
        return PackedFleet(
            _decoded(index["campaign"], str),
            _decoded(index["simulated"], bool),
            tuple(_sharing_numbers(nodes)),
            quantities,
            _decoded(index["versions"], dict[str, str]),
            campaign,
            _decoded(index["notes"], tuple[str, ...]),
            _identity(index["identity"]),
            tuple(_fabrics(path.parent, index.get("fabrics"))),
        )
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
            advice="remove the directory; it is regenerated",
        ) from error


@dataclass(frozen=True, kw_only=True)
class _FabricEntry(FabricFacts):
    """An entry of the index: a fabric without its values, of so many message `sizes`."""

    sizes: tuple[int, ...]


def _fabrics(folder: Path, raw: msgspec.Raw | None) -> Iterable[Fabric]:
    """The pairs of nodes of a table. Raises ValueError if index and values do not fit."""
    entries = [] if raw is None else _decoded(raw, list[_FabricEntry])
    for number, entry in enumerate(entries):
        facts = dict(vars(entry))
        sizes = facts.pop("sizes")
        path = _fabric_file(folder, number)
        arrays = np.load(reading.regular(path))
        if arrays.shape != (1 + len(sizes), len(entry.runs), len(entry.nodes), len(entry.nodes)):
            raise ValueError(f"{path.name} has shape {arrays.shape}, which is not that of the index")
        yield Fabric(**facts, values=arrays[0], by_size=dict(zip(sizes, arrays[1:], strict=True)))


def _identity(raw: msgspec.Raw) -> Identity | None:
    return None if bytes(raw) == b"null" else _decoded(raw, Identity)


def _decoded(raw: msgspec.Raw, kind: type[Value]) -> Value:
    return msgspec.json.decode(raw, type=kind)


def _sharing_numbers(nodes: Iterable[PackedNode]) -> Iterable[PackedNode]:
    """Nodes whose numbers of CPUs are those of the first node that has the same: a fleet has them by the thousand."""
    first: dict[tuple[int, ...], tuple[int, ...]] = {}

    def shared(numbers: tuple[int, ...]) -> tuple[int, ...]:
        return first.setdefault(numbers, numbers)

    for node in nodes:
        numbers = {key: shared(value) for key, value in node.numbers.items()}
        yield replace(node, cpus=shared(node.cpus), cores=shared(node.cores), numbers=numbers)


def _quantity(
    folder: Path,
    *,
    file: str,
    layout: dict[str, Any],
    model: Any,
    dims: list[str],
    node: Any,
    started: Any,
    **others: Any,
) -> Measured:
    """A quantity of the index, whose entry the arguments are. Raises ValueError or TypeError if index and values do not
    fit, OSError if a file is no regular one."""
    path = folder / file
    # a plain view, as each slice of a np.memmap takes several times as long
    values = np.load(reading.regular(path), mmap_mode="r").view(np.ndarray)
    places = np.load(reading.regular(_places_of(path)))
    rows, count = len(node), places.shape[-1]
    if places.shape[0] != len(dims) or values.ndim != 3 or (values.shape[0], values.shape[2]) != (rows, count):
        raise ValueError(f"{path.name} has shape {values.shape}, its index says {rows}, passes, {count}")
    whole: dict[str, Any] = {name: np.array(others.pop(name), dtype=np.int64) for name in ("job", "run")}
    return Measured.from_arrays(
        model=msgspec.convert(model, Model) if model is not None else models()[others["measurement"]],
        layout=_layout(**layout),
        places=dict(zip(dims, places, strict=True)),
        values=values,
        node=np.array(node, dtype=np.int64),
        started=tuple(started),
        disturbed=np.array(others.pop("disturbed"), dtype=np.float64),
        names={dim: tuple(words) for dim, words in others.pop("names").items()},
        **whole,
        **others,
    )


def _layout(slots: Any, numa: Any, levels: Any, kinds: Any, **others: Any) -> Layout:
    return Layout(
        np.array(slots, dtype=np.int64).reshape(-1, 6),
        numa=np.array(numa, dtype=np.int64),
        levels=tuple(levels),
        kinds=tuple(kinds),
        **others,
    )
