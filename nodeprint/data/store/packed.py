"""The fleet as arrays: what is known of every node, and its quantities, each one memory-mapped float32 file.

docs/formats.md, store, has the files.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from nodeprint import files, reading
from nodeprint.campaign import derived
from nodeprint.campaign.followed import Followed
from nodeprint.data.places import job_parts
from nodeprint.data.places.quantity import Key, NodeLayout, Quantity, is_metric, models
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
    `imported`: its records are another tool's; `identified`: it is known what machine it is.
    """

    name: str
    host: str = ""
    state: str = "measured"
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
    imported: bool = False
    identified: bool = True
    warnings: tuple[Mapping[str, str], ...] = ()
    rack: str = ""
    switch: str = ""
    boots: tuple[str, ...] = ()
    numbers: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    sensors: Mapping[str, Any] = field(default_factory=dict)
    seen: tuple[Mapping[str, Any], ...] = ()


@dataclass(frozen=True)
class PackedFleet:
    """A campaign's nodes by name, and its quantities, those of pairs of CPUs first.

    `gathered` says of each node, where it was packed from a campaign, what it was packed from
    (nodeprint.data.store.packing); `notes` what was left out of the table that it was read from.
    `folder` is where it was read from, which has the nodes' jobs (nodeprint.data.store.packed_jobs), too.
    """

    campaign: str
    simulated: bool
    nodes: tuple[PackedNode, ...]
    quantities: tuple[Quantity, ...]
    versions: Mapping[str, str] = field(default_factory=dict)
    gathered: tuple[Mapping[str, Any], ...] = ()
    folder: Path | None = None
    notes: tuple[str, ...] = ()

    @property
    def pairs(self) -> tuple[Quantity, ...]:
        """The quantities of pairs of CPUs."""
        return tuple(one for one in self.quantities if one.of_pairs)

    @property
    def others(self) -> tuple[Quantity, ...]:
        """All other quantities."""
        return tuple(one for one in self.quantities if not one.of_pairs)


def os_places(quantity: Quantity, node: PackedNode) -> list[dict[str, Key]]:
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
        for number, one in enumerate(fleet.quantities):
            np.save(job_parts.file_of(partial, one.measurement, number), np.asarray(one.values, dtype=np.float32))
        write_index(fleet, partial, "")
    return campaign / FOLDER / "index.json"


def write_index(fleet: PackedFleet, partial: Path, stamp: str, gathered: Sequence[Mapping[str, Any]] = ()) -> None:
    """Write all but the values; `stamp` is of all that was packed, and `gathered` says of each node how it was."""
    entries = []
    for number, one in enumerate(fleet.quantities):
        file = job_parts.file_of(partial, one.measurement, number)
        np.save(_places_of(file), np.stack([one.places[dim] for dim in one.dims]))
        entries.append(_entry(one, file.name))
    index = {
        "schema": derived.SCHEMA,
        "stamp": stamp,
        "campaign": fleet.campaign,
        "simulated": fleet.simulated,
        "versions": dict(fleet.versions),
        "nodes": [vars(node) for node in fleet.nodes],
        "quantities": entries,
        "gathered": list(gathered),
        "notes": list(fleet.notes),
    }
    (partial / "index.json").write_bytes(msgspec.json.encode(index) + b"\n")


def _places_of(file: Path) -> Path:
    return file.with_suffix(".places.npy")


def _entry(one: Quantity, file: str) -> dict[str, Any]:
    layout = one.layout
    return {
        "file": file,
        "measurement": one.measurement,
        "operation": one.operation,
        "quantity": one.quantity,
        "unit": one.unit,
        "tick_ns": one.tick_ns,
        "slots": layout.slots.tolist(),
        "numa": layout.numa.tolist(),
        "numa_nodes": layout.numa_nodes,
        "harvested": layout.harvested,
        "ordered": layout.ordered,
        "levels": list(layout.levels),
        "kinds": list(layout.kinds),
        "dims": list(one.dims),
        "names": {dim: list(words) for dim, words in one.names.items()},
        "node": one.node.tolist(),
        "job": one.job.tolist(),
        "run": one.run.tolist(),
        "started": list(one.started),
        "disturbed": one.disturbed.tolist(),
        **({"model": vars(one.model)} if is_metric(one.measurement) else {}),
    }


def read(campaign: Path, stamp: str | None = None) -> PackedFleet:
    """The packed fleet of a campaign, its values memory-mapped; with a `stamp` only what was packed with it.

    Raises NodeprintError where it is absent or garbled.
    """
    path = campaign / FOLDER / "index.json"
    try:
        index = msgspec.json.decode(reading.content(path, reading.RECORD_BYTES))
        if stamp is not None and index.get("stamp") != stamp:
            raise NodeprintError("was made of other records", where=path, advice="it is made again")
        if index["schema"] != derived.SCHEMA:
            raise NodeprintError(f"schema version {index['schema']}, this nodeprint reads {derived.SCHEMA}", where=path)
        same: dict[tuple[Any, ...], tuple[Any, ...]] = {}
        nodes = tuple(_node(entry, same) for entry in index["nodes"])
        twice = [name for name, count in Counter(node.name for node in nodes).items() if count > 1]
        if twice:
            raise ValueError(f"node {twice[0]} is there twice")
        quantities = tuple(_quantity(path.parent, entry) for entry in index["quantities"])
        versions, gathered = dict(index.get("versions", {})), tuple(index.get("gathered", ()))
        for one in quantities:
            if len(one.node) and not 0 <= int(one.node.min()) <= int(one.node.max()) < len(nodes):
                raise ValueError(f"{one.measurement}: a row's node is not in the index")
    except NodeprintError:
        raise
    except OSError as error:
        raise NodeprintError(
            f"cannot be read ({error.strerror})", where=path, advice="run `nodeprint judge` on the campaign again"
        ) from error
    except (ValueError, KeyError, TypeError, AttributeError, EOFError, RecursionError) as error:
        raise NodeprintError(
            f"not a packed fleet ({type(error).__name__}: {error})",
            where=path,
            advice="remove the folder; it is made again",
        ) from error
    return PackedFleet(
        str(index["campaign"]),
        bool(index["simulated"]),
        nodes,
        quantities,
        versions,
        gathered,
        path.parent,
        tuple(index.get("notes", ())),
    )


def _node(entry: Mapping[str, Any], same: dict[tuple[Any, ...], tuple[Any, ...]]) -> PackedNode:
    """A node of the index; its numbers of CPUs are those of the node before that has the `same`."""

    def shared(numbers: Sequence[Any]) -> tuple[Any, ...]:
        return same.setdefault(tuple(numbers), tuple(numbers))

    lists: dict[str, Any] = {
        key: tuple(entry.get(key, ()))
        for key in (
            "log_tail",
            "quality",
            "unusable",
            "not_applicable",
            "lacking",
            "rebooted",
            "warnings",
            "boots",
            "seen",
        )
    }
    texts = {key: str(entry.get(key, "")) for key in ("host", "reason", "rack", "switch")}
    return PackedNode(
        str(entry["name"]),
        state=str(entry.get("state", "measured")),
        untaken=dict(entry.get("untaken", {})),
        fingerprint=dict(entry.get("fingerprint", {})),
        numbers={key: shared(numbers) for key, numbers in entry.get("numbers", {}).items()},
        sensors=dict(entry.get("sensors", {})),
        followed=msgspec.convert(entry.get("followed", {}), dict[int, Followed], strict=False),
        imported=bool(entry.get("imported", False)),
        identified=bool(entry.get("identified", True)),
        cpus=shared(entry.get("cpus", ())),
        cores=shared(entry.get("cores", ())),
        **(lists | texts),
    )


def _quantity(folder: Path, entry: Mapping[str, Any]) -> Quantity:
    """Raises ValueError where index and values do not fit, KeyError where a key is missing, OSError where a file is no
    regular one."""
    file, dims = folder / str(entry["file"]), tuple(entry["dims"])
    # a plain view, as each slice of a np.memmap takes several times as long
    values = np.load(reading.regular(file), mmap_mode="r").view(np.ndarray)
    places = np.load(reading.regular(_places_of(file)))
    node, job, run = (np.array(entry[key], dtype=np.int64) for key in ("node", "job", "run"))
    expected = (len(node), places.shape[-1])
    if places.shape[0] != len(dims) or values.ndim != 3 or (values.shape[0], values.shape[2]) != expected:
        raise ValueError(f"{file.name} has shape {values.shape}, its index says {expected[0]}, passes, {expected[1]}")
    slots, numa = np.array(entry["slots"], dtype=np.int64).reshape(-1, 6), np.array(entry["numa"], dtype=np.int64)
    layout = NodeLayout(
        slots,
        numa,
        int(entry["numa_nodes"]),
        bool(entry["harvested"]),
        bool(entry["ordered"]),
        tuple(entry["levels"]),
        tuple(entry.get("kinds", ())),
    )
    measurement, operation, quantity, unit = (
        str(entry[key]) for key in ("measurement", "operation", "quantity", "unit")
    )
    model = msgspec.convert(entry["model"], Model) if "model" in entry else models()[measurement]
    return Quantity(
        measurement,
        operation,
        quantity,
        unit,
        model,
        layout,
        dict(zip(dims, places, strict=True)),
        values,
        node,
        job,
        run,
        tuple(entry["started"]),
        np.array(entry["disturbed"], dtype=np.float64),
        {dim: tuple(words) for dim, words in entry["names"].items()},
        float(entry["tick_ns"]),
    )
