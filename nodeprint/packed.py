"""The fleet as arrays: what is known of every node, and its quantities, each one memory-mapped float32 file.

docs/formats.md, packed, has the files.
"""

from __future__ import annotations

import functools
import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from nodeprint import discover, files, senses, topology
from nodeprint.errors import NodeprintError
from nodeprint.fleet import homes, job_parts, nodes, store
from nodeprint.fleet.job_parts import JobPart, NodePlaces
from nodeprint.fleet.jobs import Job, Measured
from nodeprint.fleet.quantity import NodeLayout, Quantity, Values, models
from nodeprint.fleet.store import Survey
from nodeprint.layout import layout_of, slots_of
from nodeprint.record_lines import FLAGS
from nodeprint.topology import processors
from nodeprint.topology.model import Cpu, Machine, Topology

SCHEMA = 2
FOLDER = "packed"


@dataclass(frozen=True)
class PackedNode:
    """What is known of a node apart from its quantities. `cpus` and `cores` are OS and core numbers by the slots that
    pairs are on.

    `numbers` are those of the whole machine, which all else is on: OS numbers of CPUs (`cpu`) and cores (`core`) by
    slot, of NUMA nodes (`node`) by their order. `seen` is what the kernels saw beside, a mapping a run that has any.
    `senses` as of `nodeprint.senses`: what its clocks, thermometers and memory controllers said. `run_minutes` is how
    long a run of each measurement took.
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
    warnings: tuple[Mapping[str, str], ...] = ()
    rack: str = ""
    switch: str = ""
    boots: tuple[str, ...] = ()
    numbers: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    senses: Mapping[str, Any] = field(default_factory=dict)
    seen: tuple[Mapping[str, Any], ...] = ()
    run_minutes: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class PackedFleet:
    """A campaign's nodes by name, and its quantities, those of pairs of CPUs first."""

    campaign: str
    simulated: bool
    nodes: tuple[PackedNode, ...]
    quantities: tuple[Quantity, ...]
    versions: Mapping[str, str] = field(default_factory=dict)

    @property
    def pairs(self) -> tuple[Quantity, ...]:
        """The quantities of pairs of CPUs."""
        return tuple(one for one in self.quantities if one.of_pairs)

    @property
    def others(self) -> tuple[Quantity, ...]:
        """All other quantities."""
        return tuple(one for one in self.quantities if not one.of_pairs)


def write(fleet: PackedFleet, campaign: Path) -> Path:
    """Write `fleet` into `campaign`/packed; returns the index's path. Raises NodeprintError where that fails."""
    with files.replacing_folder(campaign / FOLDER) as partial:
        for number, one in enumerate(fleet.quantities):
            np.save(job_parts.file_of(partial, one.measurement, number), np.asarray(one.values, dtype=np.float32))
        _write_index(fleet, partial, "")
    return campaign / FOLDER / "index.json"


def _write_index(fleet: PackedFleet, partial: Path, stamp: str) -> None:
    """Write all but the values."""
    entries = []
    for number, one in enumerate(fleet.quantities):
        file = job_parts.file_of(partial, one.measurement, number)
        np.save(_places_of(file), np.stack([one.places[dim] for dim in one.dims]))
        entries.append(_entry(one, file.name))
    index = {
        "schema": SCHEMA,
        "stamp": stamp,
        "campaign": fleet.campaign,
        "simulated": fleet.simulated,
        "versions": dict(fleet.versions),
        "nodes": [vars(node) for node in fleet.nodes],
        "quantities": entries,
    }
    (partial / "index.json").write_text(json.dumps(index, separators=(",", ":")) + "\n")


def _places_of(file: Path) -> Path:
    return file.with_suffix(".places.npy")


def _entry(one: Quantity, file: str) -> dict[str, Any]:
    layout = one.layout
    return {
        "file": file, "measurement": one.measurement, "operation": one.operation, "quantity": one.quantity,
        "unit": one.unit, "tick_ns": one.tick_ns, "slots": layout.slots.tolist(), "numa": layout.numa.tolist(),
        "numa_nodes": layout.numa_nodes, "harvested": layout.harvested, "ordered": layout.ordered,
        "dims": list(one.dims), "names": {dim: list(words) for dim, words in one.names.items()},
        "node": one.node.tolist(), "job": one.job.tolist(), "run": one.run.tolist(), "started": list(one.started),
        "disturbed": one.disturbed.tolist(),
    }  # fmt: skip


def read(campaign: Path) -> PackedFleet:
    """The packed fleet of a campaign, its values memory-mapped. Raises NodeprintError where it is absent or garbled."""
    return _read(campaign)


def _read(campaign: Path, stamp: str | None = None) -> PackedFleet:
    """With a `stamp` only what was packed with it."""
    path = campaign / FOLDER / "index.json"
    try:
        index = msgspec.json.decode(path.read_bytes())
        if stamp is not None and index.get("stamp") != stamp:
            raise NodeprintError("was made of other records", where=path, advice="it is made again")
        if index["schema"] != SCHEMA:
            raise NodeprintError(f"schema version {index['schema']}, this nodeprint reads {SCHEMA}", where=path)
        nodes = tuple(_node(entry) for entry in index["nodes"])
        twice = [name for name, count in Counter(node.name for node in nodes).items() if count > 1]
        if twice:
            raise ValueError(f"node {twice[0]} is there twice")
        quantities = tuple(_quantity(path.parent, entry) for entry in index["quantities"])
        for one in quantities:
            if len(one.node) and not 0 <= int(one.node.min()) <= int(one.node.max()) < len(nodes):
                raise ValueError(f"{one.measurement}: a row's node is not in the index")
    except NodeprintError:
        raise
    except OSError as error:
        raise NodeprintError(
            f"cannot be read ({error.strerror})", where=path, advice="gather the campaign again"
        ) from error
    except (ValueError, KeyError, TypeError, AttributeError, EOFError, RecursionError) as error:
        raise NodeprintError(
            f"not a packed fleet ({type(error).__name__}: {error})",
            where=path,
            advice="remove the folder; it is made again",
        ) from error
    versions = dict(index.get("versions", {}))
    return PackedFleet(str(index["campaign"]), bool(index["simulated"]), nodes, quantities, versions)


def pack(campaign: Path) -> PackedFleet:
    """The campaign's nodes as arrays: as packed, where its records are the same, else packed anew from the store.

    Raises NodeprintError when there is no campaign.
    """
    sheet = campaign / "nodes.tsv"
    if not sheet.exists():
        if (campaign / FOLDER / "index.json").exists():
            return read(campaign)
        raise NodeprintError("no campaign is there", where=campaign, advice="name a folder that holds nodes.tsv")
    stamp, place = _stamp(campaign), store.base(campaign)
    for folder in dict.fromkeys((campaign, place)):
        with suppress(NodeprintError):
            return _read(folder, stamp)
    _pack(campaign, stamp, place)
    return read(place)


def _stamp(campaign: Path) -> str:
    """Of what a campaign is packed from: every file's name, size and time."""
    sheet = (campaign / "nodes.tsv").read_bytes()
    digest = hashlib.sha256(f"{SCHEMA} {store.SCHEMA} {processors.digest()} {campaign.name}\n".encode() + sheet)
    for node in discover.read_sheet(campaign / "nodes.tsv"):
        place = campaign / "nodes" / node.node
        digest.update(msgspec.json.encode(store.sources(place) if place.is_dir() else None))
    return digest.hexdigest()[:16]


def _pack(campaign: Path, stamp: str, target: Path) -> None:
    known: list[PackedNode] = []
    states: list[nodes.NodeState] = []
    found_parts: list[JobPart] = []
    simulated = False
    versions: dict[str, str] = {}
    for number, (row, state, found) in enumerate(nodes.each(campaign)):
        states.append(state)
        node = PackedNode(
            state.node, state.host, state.state, state.reason, state.log_tail, quality=state.problems, rack=row.rack,
            switch=row.switch,
        )  # fmt: skip
        place = campaign / "nodes" / state.node
        survey = store.survey(place) if place.is_dir() else Survey()
        if state.state == "measured":
            node, of_node = _of_node(node, number, place, found, survey)
            found_parts += of_node
            headers = [one.header for job in found for one in job.measured.values()]
            simulated |= any(bool(of.get("simulated")) for of in (*headers, *(job.status for job in found)))
            versions |= {f"kernel {header.get('kernel')}": str(header.get("kernel_hash", "")) for header in headers}
        else:
            node = replace(node, fingerprint=survey.fingerprint)
        known.append(node)
    nodes.write(campaign, states)
    with files.replacing_folder(target / FOLDER) as partial:
        quantities = job_parts.assemble(found_parts, partial)
        _write_index(PackedFleet(campaign.name, simulated, tuple(known), quantities, versions), partial, stamp)


def _of_node(
    node: PackedNode, number: int, place: Path, found: Sequence[Job], survey: Survey
) -> tuple[PackedNode, list[JobPart]]:
    everywhere = tuple(
        sorted({int(cpu) for job in found for one in job.measured.values() for cpu in one.header["cpus"]})
    )
    paired = tuple(sorted({cpu for job in found for one in job.pairs for cpu in one.cpus}))
    kind = _kind_of_node(survey.topology, everywhere, paired)
    warnings: list[Mapping[str, str]] = []
    if not survey.topology:
        warnings.append({
            "id": "no-topology", "text": "no survey of the node: its CPUs are compared by OS number",
            "advice": "measure it again with node-run; a matrix of another tool: import it with --part or --xml",
        })  # fmt: skip
    # the same fact may be seen by both; said once
    warnings += {w["id"]: w for w in (*kind.warnings, *survey.warnings)}.values()
    of_node = []
    for job in found:
        of_node += [_pairs(number, place, job.number, one, kind) for one in job.pairs]
        of_node += [_cells(number, job.number, one, kind.whole) for one in job.cells if one.name in models()]
    boots = {str(run["boot_id"]) for job in found for one in job.measured.values() for run in one.runs}
    took: dict[str, list[float]] = {}
    for one in (one for job in found for one in job.measured.values()):
        times = [float(run["trailer"].get("elapsed_s") or 0.0) for run in one.runs]
        took.setdefault(one.name, []).extend(seconds / 60 for seconds in times if seconds > 0)
    known = replace(
        node,
        run_minutes={name: round(float(np.median(times)), 3) for name, times in sorted(took.items()) if times},
        quality=(*node.quality, *survey.problems),
        cpus=kind.cpus,
        cores=kind.cores,
        fingerprint=_fingerprint(found, survey),
        warnings=tuple(warnings),
        boots=tuple(sorted(boots)),
        numbers={"cpu": kind.whole.cpus, "core": kind.whole.cores, "node": kind.whole.nodes},
        senses=senses.of(found, kind.cpus) | survey.senses,
        seen=tuple(
            run for job in found for one in (*job.pairs, *job.cells) for run in _seen(job.number, one)
        ),
    )  # fmt: skip
    return known, of_node


@dataclass(frozen=True)
class _NodeKind:
    """What nodes of one topology and one set of measured CPUs have in common; `layout`, `cpus` and `cores` are
    of those that pairs were measured of, `whole` has all."""

    layout: NodeLayout
    cpus: tuple[int, ...]
    cores: tuple[int, ...]
    whole: NodePlaces
    machine: Topology
    warnings: tuple[Mapping[str, str], ...]


@functools.lru_cache(maxsize=256)
def _kind_of_node(labels: str, everywhere: tuple[int, ...], paired: tuple[int, ...]) -> _NodeKind:
    machine = topology.from_text(labels) if labels else Topology(Machine(), tuple(Cpu(cpu=cpu) for cpu in everywhere))
    slots, order = slots_of(machine, paired)
    core_of = {cpu.cpu: cpu.core for cpu in machine.cpus}
    cores = tuple(cpu if (core := core_of.get(cpu)) is None else core for cpu in order)
    warnings = tuple({"id": w.id, "text": w.text, "advice": w.advice} for w in machine.warnings)
    whole = job_parts.machine(machine, everywhere)
    layout = job_parts.pair_layout(layout_of(machine, slots, np.zeros((0, 2), dtype=np.int64)))
    return _NodeKind(layout, tuple(order), cores, whole, machine, warnings)


def _pairs(number: int, place: Path, job: int, one: Measured, kind: _NodeKind) -> JobPart:
    coordinates = (homes.of_pairs(one, kind.machine), one.places["a"], one.places["b"])
    raw = [np.ascontiguousarray(each).tobytes() for each in coordinates]
    places, at = job_parts.measured_pairs(kind.cpus, bool(one.header.get("directed")), *raw)
    there, shape = at >= 0, (len(one.runs), len(one.passes), len(places["home"]))
    disturbed = np.zeros(shape[0])
    if one.columns["flags"].any():
        flags = np.zeros(shape, dtype=np.uint8)
        flags[..., at[there]] = one.columns["flags"][..., there]
        disturbed = ((flags & FLAGS["disturbed"]) != 0).mean(axis=(1, 2))
    name = one.name

    def values() -> Values:  # holds nothing of the job, which is a file that is open
        latency = store.column(place / f"job{job}", name, "latency_ns")
        out = np.full(shape, np.nan, dtype=np.float32)
        out[..., at[there]] = latency[..., there]
        return out

    clock, header = one.header.get("clock"), one.header
    step = float(clock.get("step_ns") or 0.0) if isinstance(clock, dict) else 0.0
    round_trips = float(header.get("round_trips") or 0)
    return JobPart(
        number, job, one.name, str(header["operation"]), str(header["quantity"]), str(header["unit"]), kind.layout,
        places, {}, tuple(one.numbers), len(one.passes), tuple(str(run["start_time"]) for run in one.runs), values,
        disturbed, step / (2 * round_trips) if round_trips else 0.0,
    )  # fmt: skip


def _cells(number: int, job: int, one: Measured, whole: NodePlaces) -> JobPart:
    return job_parts.part(
        number, job, one.name, one.header, whole, {dim: one.keys(dim) for dim in one.places},
        one.columns[models()[one.name].value], one.numbers, [str(run["start_time"]) for run in one.runs],
    )  # fmt: skip


def _seen(job: int, one: Measured) -> Iterator[dict[str, Any]]:
    """By run what was seen beside a measurement: the share of time stolen, sensors, how far clocks fell."""
    cpus = max(len(one.header["cpus"]), 1)
    for r, run in enumerate(one.runs):
        trailer = run["trailer"]
        time = float(trailer.get("elapsed_s", np.nan)) * cpus
        steal = float(trailer.get("steal_s", np.nan)) - _TICK_S * cpus
        found: dict[str, Any] = {"steal_share": steal / time if time > 0 and steal > 0 else 0.0}
        found |= _sensors(run["sensors"] or {}, trailer.get("sensors") or {})
        if {"start_hz", "end_hz"} <= set(one.columns):
            fell = 1 - one.columns["end_hz"][r] / one.columns["start_hz"][r]
            found["clock_fell"] = float(np.median(fell[np.isfinite(fell)])) if np.isfinite(fell).any() else 0.0
        if any(found.values()):
            yield {"job": job, "run": int(run["run"]), "measurement": one.name, **found}


#: What each CPU's counter of stolen time advances by at once (USER_HZ): a tick of it may have been lost before the run.
_TICK_S = 0.01


def _sensors(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    """What counters rose by, and the hottest sensor; nothing where it is unknown."""

    def rose(key: str, *within: str) -> int:
        old, new = before.get(key) or {}, after.get(key) or {}
        for name in within:
            old, new = ({k: v.get(name, 0) for k, v in of.items()} for of in (old, new))
        return sum(max(0, int(count) - int(old.get(part, 0))) for part, count in new.items())

    heat = after.get("temperatures_c") or {}
    hottest = max(heat, key=lambda name: heat[name], default="")
    return {
        "throttled": rose("throttle_core") + rose("throttle_package"),
        "corrected": rose("edac", "ce"),
        "uncorrected": rose("edac", "ue"),
        "hottest_c": float(heat[hottest]) if hottest else 0.0,
        "hottest": hottest,
    }


def _fingerprint(found: Sequence[Job], survey: Survey) -> dict[str, Any]:
    """The survey's fields, and what the newest records say of the kernel that wrote them."""
    fields = dict(survey.fingerprint)
    headers = [one.header for job in found for one in job.pairs]
    if headers:
        fields |= {key: headers[-1][key] for key in ("kernel_hash", "compiler") if headers[-1].get(key)}
    return fields


def _node(entry: Mapping[str, Any]) -> PackedNode:
    lists: dict[str, Any] = {
        key: tuple(entry.get(key, ())) for key in ("log_tail", "cpus", "cores", "quality", "warnings", "boots", "seen")
    }
    texts = {key: str(entry.get(key, "")) for key in ("host", "reason", "rack", "switch")}
    return PackedNode(
        str(entry["name"]),
        state=str(entry.get("state", "measured")),
        fingerprint=dict(entry.get("fingerprint", {})),
        numbers={key: tuple(numbers) for key, numbers in entry.get("numbers", {}).items()},
        senses=dict(entry.get("senses", {})),
        run_minutes=dict(entry.get("run_minutes", {})),
        **(lists | texts),
    )


def _quantity(folder: Path, entry: Mapping[str, Any]) -> Quantity:
    """Raises ValueError where index and values do not fit, KeyError where a key is missing."""
    file, dims = folder / str(entry["file"]), tuple(entry["dims"])
    values, places = np.load(file, mmap_mode="r"), np.load(_places_of(file))
    node, job, run = (np.array(entry[key], dtype=np.int64) for key in ("node", "job", "run"))
    expected = (len(node), places.shape[-1])
    if places.shape[0] != len(dims) or values.ndim != 3 or (values.shape[0], values.shape[2]) != expected:
        raise ValueError(f"{file.name} has shape {values.shape}, its index says {expected[0]}, passes, {expected[1]}")
    slots, numa = np.array(entry["slots"], dtype=np.int64).reshape(-1, 6), np.array(entry["numa"], dtype=np.int64)
    layout = NodeLayout(slots, numa, int(entry["numa_nodes"]), bool(entry["harvested"]), bool(entry["ordered"]))
    measurement, operation, quantity, unit = (
        str(entry[key]) for key in ("measurement", "operation", "quantity", "unit")
    )
    return Quantity(
        measurement, operation, quantity, unit, models()[measurement], layout, dict(zip(dims, places, strict=True)),
        values, node, job, run, tuple(entry["started"]), np.array(entry["disturbed"], dtype=np.float64),
        {dim: tuple(words) for dim, words in entry["names"].items()}, float(entry["tick_ns"]),
    )  # fmt: skip
