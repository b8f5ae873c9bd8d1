"""The fleet as arrays: every node's matrices in canonical order, one memory-mapped float32 file a kind of matrix.

A stack holds what can be compared place by place: one measurement over the nodes of one layout. Its rows are runs, the
unit of evidence. Other measurements than of pairs are in cells (nodeprint.cells). docs/formats.md, packed, has the
files.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from nodeprint import cells as quantities
from nodeprint import files, fingerprint, preflight, senses
from nodeprint.cells import Cells
from nodeprint.errors import NodeprintError
from nodeprint.layout import Ints, Layout, is_harvested, pairs_of, slots_of
from nodeprint.topology import labelled_by
from nodeprint.topology.model import Cpu, Machine, Topology

if TYPE_CHECKING:
    import xarray as xr

    from nodeprint.bundle import Bundle, Job

SCHEMA = 1
FOLDER = "packed"

Values = npt.NDArray[np.float32]
#: Node number, job, layout, header with its measurement's name, arrays.
Part = tuple[int, int, Layout, Mapping[str, Any], Mapping[str, Any]]


@dataclass(frozen=True)
class PackedNode:
    """What is known of a node apart from its matrices. `cpus` and `cores` are OS and core numbers by slot.

    `numbers` are those of the whole machine, which cells are on: OS numbers of CPUs (`cpu`) and cores (`core`) by slot,
    of NUMA nodes (`node`) by their order. `seen` is what the kernels saw beside, a mapping a run that has any.
    `senses` as of `nodeprint.senses`: what its clocks, thermometers and memory controllers said.
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


@dataclass(frozen=True)
class Stack:
    """One measurement over the nodes of one layout: `values` (row, pass, home, pair) in `unit`, NaN where not measured.

    Row r is run `run[r]` of job `job[r]` of node number `node[r]` in the fleet's nodes. `tick_ns` is what one clock
    tick is in a hop. `disturbed` is the share of a row's pairs that the kernel flagged.
    """

    measurement: str
    operation: str
    quantity: str
    unit: str
    homes: tuple[int, ...]
    layout: Layout
    node: Ints
    job: Ints
    run: Ints
    values: Values
    tick_ns: float = 0.0
    model: str = "pairs"
    disturbed: npt.NDArray[np.float64] = field(default_factory=lambda: np.zeros(0))
    started: tuple[str, ...] = ()


@dataclass(frozen=True)
class PackedFleet:
    """A campaign's nodes by name, its stacks of pairs, and its cells."""

    campaign: str
    simulated: bool
    nodes: tuple[PackedNode, ...]
    stacks: tuple[Stack, ...]
    versions: Mapping[str, str] = field(default_factory=dict)
    cells: tuple[Cells, ...] = ()


def write(fleet: PackedFleet, campaign: Path) -> Path:
    """Write `fleet` into `campaign`/packed; returns the index's path. Raises NodeprintError where that fails."""
    folder = campaign / FOLDER
    with files.replacing_folder(folder) as partial:
        stacks = []
        for number, stack in enumerate(fleet.stacks):
            name = f"{stack.measurement}-{number}.npy"
            np.save(partial / name, np.asarray(stack.values, dtype=np.float32))
            stacks.append(_stack_entry(stack, name))
        cells = []
        for number, one in enumerate(fleet.cells):
            name = f"cells-{one.measurement}-{number}.npy"
            np.save(partial / name, np.asarray(one.values, dtype=np.float32))
            cells.append(quantities.entry(one, name))
        index = {
            "schema": SCHEMA,
            "campaign": fleet.campaign,
            "simulated": fleet.simulated,
            "versions": dict(fleet.versions),
            "nodes": [asdict(node) for node in fleet.nodes],
            "stacks": stacks,
            "cells": cells,
        }
        (partial / "labelled_by").write_text(labelled_by() + "\n")
        (partial / "index.json").write_text(json.dumps(index, separators=(",", ":")) + "\n")
    return folder / "index.json"


def read(campaign: Path) -> PackedFleet:
    """The packed fleet of a campaign, its values memory-mapped. Raises NodeprintError where it is absent or garbled."""
    path = campaign / FOLDER / "index.json"
    try:
        index = json.loads(path.read_text())
        if index["schema"] != SCHEMA:
            raise NodeprintError(f"schema version {index['schema']}, this nodeprint reads {SCHEMA}", where=path)
        nodes = tuple(_node(entry) for entry in index["nodes"])
        twice = [name for name, count in Counter(node.name for node in nodes).items() if count > 1]
        if twice:
            raise ValueError(f"node {twice[0]} is there twice")
        stacks = tuple(_stack(path.parent, entry) for entry in index["stacks"])
        cells = tuple(
            quantities.from_entry(entry, np.load(path.parent / str(entry["file"]), mmap_mode="r"))
            for entry in index.get("cells", ())
        )
        for name, rows in (*((s.measurement, s.node) for s in stacks), *((c.measurement, c.node) for c in cells)):
            if len(rows) and not 0 <= int(rows.min()) <= int(rows.max()) < len(nodes):
                raise ValueError(f"{name}: a row's node is not in the index")
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
    return PackedFleet(str(index["campaign"]), bool(index["simulated"]), nodes, stacks, versions, cells)


def pack(campaign: Path) -> PackedFleet:
    """Pack a campaign from its gathered nodes and write it; where nothing is newer and labels are today's, read it.

    What was packed and cannot be read is packed again. Raises NodeprintError when there is no campaign.
    """
    index, sheet_there = campaign / FOLDER / "index.json", (campaign / "nodes.tsv").exists()
    labels_hold = not sheet_there or _labelled_by(campaign) == labelled_by()
    if index.exists() and labels_hold and index.stat().st_mtime_ns >= _newest(campaign):
        try:
            return read(campaign)
        except NodeprintError:
            if not sheet_there:
                raise
    if not sheet_there:
        raise NodeprintError("no campaign is there", where=campaign, advice="name a folder that holds nodes.tsv")
    # xarray and pandas take a second to import, and a packed fleet needs neither
    from nodeprint import discover  # noqa: PLC0415
    from nodeprint.bundle import load  # noqa: PLC0415
    from nodeprint.fleet import gather  # noqa: PLC0415

    gathered = gather(campaign)
    sheet = {node.node: node for node in discover.read_sheet(campaign / "nodes.tsv")}
    nodes: list[PackedNode] = []
    parts: list[Part] = []
    cells: list[quantities.Part] = []
    simulated = False
    versions: dict[str, str] = {}
    for number, state in enumerate(gathered.nodes):
        row = sheet[state.node]
        known = PackedNode(
            state.node,
            state.host,
            state.state,
            state.reason,
            state.log_tail,
            quality=state.problems,
            rack=row.rack,
            switch=row.switch,
        )
        if state.state == "measured":
            bundle = load(campaign / "nodes" / state.node)
            known, of_node, of_cells = _from_bundle(known, number, bundle)
            parts += of_node
            cells += of_cells
            simulated |= any(bool(job.status.get("simulated")) for job in bundle.jobs) or any(
                bool(job.header(name).get("simulated")) for job in bundle.jobs for name in job.names
            )
            versions |= {
                f"kernel {job.header(name).get('kernel')}": str(job.header(name).get("kernel_hash", ""))
                for job in bundle.jobs
                for name in job.names
            }
        elif (folder := campaign / "nodes" / state.node).is_dir() and (survey := load(folder).survey):
            known = replace(known, fingerprint=dict(fingerprint.read(survey)))
        nodes.append(known)
    fleet = PackedFleet(campaign.name, simulated, tuple(nodes), assemble(parts), versions, quantities.assemble(cells))
    write(fleet, campaign)
    return fleet


def _labelled_by(campaign: Path) -> str:
    """By which rules the CPUs of a packed fleet were labelled; empty where that is not known."""
    try:
        return (campaign / FOLDER / "labelled_by").read_text().strip()
    except (OSError, ValueError):
        return ""


def _newest(campaign: Path) -> int:
    """When anything of a campaign was last written, in ns; 0 where there is only a packed fleet."""
    files = [
        campaign / "nodes.tsv",
        # folders too: a bundle that was copied into the campaign may hold old files only
        campaign / "nodes",
        *campaign.glob("nodes/*/job*"),
        *campaign.glob("nodes/*/job*/submission.txt"),
        *campaign.glob("nodes/*/job*/status.json"),
        *campaign.glob("nodes/*/job*/run*/*.jsonl*"),
    ]
    return max((file.stat().st_mtime_ns for file in files if file.exists()), default=0)


def _from_bundle(node: PackedNode, number: int, bundle: Bundle) -> tuple[PackedNode, list[Part], list[quantities.Part]]:
    from nodeprint.records import FLAGS  # noqa: PLC0415

    topology = bundle.topology
    measured = [
        (job, name, data)
        for job in bundle.jobs
        for name, data in sorted(job.measurements.items())
        if {"a", "b"} <= set(data.dims)
    ]
    cells = [(job, name, data) for job in bundle.jobs for name, data in sorted(job.cells.items())]
    cpus = sorted({int(cpu) for _, _, data in measured for cpu in data["a"].values})
    everywhere = sorted({int(cpu) for job, name, _ in (*measured, *cells) for cpu in job.header(name)["cpus"]})
    warnings: list[Mapping[str, str]] = []
    if topology is None:
        topology = Topology(Machine(), tuple(Cpu(cpu=cpu) for cpu in everywhere))
        warnings.append({
            "id": "no-topology", "text": f"{node.name} has no survey: its CPUs are compared by OS number",
            "advice": "measure it again with node-run",
        })  # fmt: skip
    found = (*topology.warnings, *(preflight.check(bundle.survey) if bundle.survey else ()))
    # the same fact may be seen by both; said once
    warnings += [{"id": w.id, "text": w.text, "advice": w.advice} for w in {w.id: w for w in found}.values()]
    slots, order = slots_of(topology, cpus)
    harvested = is_harvested(topology)
    parts: list[Part] = []
    for job, name, data in measured:
        header = {**job.header(name), "measurement": name}
        at = np.searchsorted(data["a"].values, [cpu for cpu in order if cpu in set(data["a"].values.tolist())])
        present_slots = [i for i, cpu in enumerate(order) if cpu in set(data["a"].values.tolist())]
        block = data["latency_ns"].values[:, :, :, at][:, :, :, :, at]
        pairs = pairs_of(len(at), np.isfinite(block).any(axis=(0, 1, 2)))
        values = block[..., pairs[:, 0], pairs[:, 1]]
        flagged = data["flags"].values[:, :, :, at][:, :, :, :, at][..., pairs[:, 0], pairs[:, 1]]
        index = np.array(present_slots, dtype=np.int64)
        arrays: dict[str, Any] = {
            "values": values,
            "runs": data["run"].values,
            "homes": [int(home) for home in data["home"].values],
            "disturbed": ((flagged & FLAGS["disturbed"]) != 0).mean(axis=(1, 2, 3)),
            "started": [str(s) for s in data["start_time"].values],
        }
        parts.append((number, job.number, Layout(slots, index[pairs], harvested), header, arrays))
    whole = quantities.machine(topology, everywhere)
    boots = sorted({str(boot) for _, _, data in (*measured, *cells) for boot in data["boot_id"].values})
    cores = {cpu.cpu: cpu.core for cpu in topology.cpus}
    numbers = tuple(cpu if (core := cores.get(cpu)) is None else core for cpu in order)
    known = replace(
        node,
        cpus=tuple(order),
        cores=numbers,
        fingerprint=_fingerprint(bundle),
        warnings=tuple(warnings),
        boots=tuple(boots),
        numbers={"cpu": whole.cpus, "core": whole.cores, "node": whole.nodes},
        senses=senses.of(bundle, order),
        seen=tuple(run for job, name, data in (*measured, *cells) for run in _seen(job, name, data)),
    )
    return known, parts, [_cell_part(number, job, name, data, whole) for job, name, data in cells if _has_model(name)]


def _seen(job: Job, name: str, data: xr.Dataset) -> Iterator[dict[str, Any]]:
    """By run what was seen beside a measurement: the share of time stolen, sensors, how far clocks fell."""
    cpus = max(len(job.header(name)["cpus"]), 1)
    for r, run in enumerate(data["run"].values.tolist()):
        time = float(data["elapsed_s"].values[r]) * cpus
        steal = float(data["steal_s"].values[r]) - _TICK_S * cpus
        found: dict[str, Any] = {"steal_share": steal / time if time > 0 and steal > 0 else 0.0}
        before, after = (json.loads(str(data[key].values[r])) if key in data else None for key in _SENSORS)
        found |= _sensors(before or {}, (after or {}).get("sensors") or {})
        if "start_hz" in data and "end_hz" in data:
            fell = 1 - np.asarray(data["end_hz"].values[r]) / np.asarray(data["start_hz"].values[r])
            found["clock_fell"] = float(np.median(fell[np.isfinite(fell)])) if np.isfinite(fell).any() else 0.0
        if any(found.values()):
            yield {"job": job.number, "run": int(run), "measurement": name, **found}


#: What each CPU's counter of stolen time advances by at once (USER_HZ): a tick of it may have been lost before the run.
_TICK_S = 0.01
_SENSORS = ("sensors_before", "trailer")


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


def _has_model(measurement: str) -> bool:
    return measurement in quantities.models()


def _cell_part(number: int, job: Job, name: str, data: xr.Dataset, whole: quantities.Machine) -> quantities.Part:
    values = data[quantities.models()[name].value]
    dims = [str(dim) for dim in values.dims if dim not in ("run", "pass")]
    return quantities.part(
        number, job.number, name, job.header(name), whole, {dim: data[dim].values.tolist() for dim in dims},
        values.transpose("run", "pass", *dims).values, data["run"].values.tolist(),
        [str(start) for start in data["start_time"].values],
    )  # fmt: skip


def _fingerprint(bundle: Bundle) -> dict[str, Any]:
    """The survey's fields, and what the newest records say of the kernel that wrote them."""
    fields: dict[str, Any] = dict(fingerprint.read(bundle.survey)) if bundle.survey else {}
    headers = [job.header(name) for job in bundle.jobs for name in sorted(job.measurements)]
    if headers:
        fields |= {key: headers[-1][key] for key in ("kernel_hash", "compiler") if headers[-1].get(key)}
    return fields


def _stack_entry(stack: Stack, file: str) -> dict[str, Any]:
    layout = stack.layout
    return {
        "file": file, "measurement": stack.measurement, "operation": stack.operation, "quantity": stack.quantity,
        "unit": stack.unit, "model": stack.model, "tick_ns": stack.tick_ns, "homes": list(stack.homes),
        "slots": layout.slots.tolist(), "pairs": layout.pairs.tolist(), "harvested": layout.harvested,
        "node": stack.node.tolist(), "job": stack.job.tolist(), "run": stack.run.tolist(),
        "disturbed": stack.disturbed.tolist(), "started": list(stack.started),
    }  # fmt: skip


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
        **(lists | texts),
    )


def _stack(folder: Path, entry: Mapping[str, Any]) -> Stack:
    layout = Layout(
        np.array(entry["slots"], dtype=np.int64).reshape(-1, 6),
        np.array(entry["pairs"], dtype=np.int64).reshape(-1, 2),
        bool(entry.get("harvested", False)),
    )
    values = np.load(folder / str(entry["file"]), mmap_mode="r")
    node, job, run = (np.array(entry[key], dtype=np.int64) for key in ("node", "job", "run"))
    expected = (len(node), len(entry["homes"]), len(layout.pairs))
    if values.ndim != 4 or (values.shape[0], *values.shape[2:]) != expected:
        raise ValueError(
            f"{entry['file']} has shape {values.shape}, its index says {expected[0]}, passes, {expected[1:]}"
        )
    disturbed = np.array(entry.get("disturbed") or np.zeros(len(node)), dtype=np.float64)
    return Stack(
        str(entry["measurement"]), str(entry["operation"]), str(entry["quantity"]), str(entry["unit"]),
        tuple(int(home) for home in entry["homes"]), layout, node, job, run, values, float(entry.get("tick_ns", 0.0)),
        str(entry.get("model", "pairs")), disturbed, tuple(entry.get("started", ())),
    )  # fmt: skip


def assemble(parts: Sequence[Part]) -> tuple[Stack, ...]:
    """Stacks from parts (node number, job, layout, header, arrays): parts of one measurement and layout share one.

    Arrays: `values` (run, pass, home, pair), `runs`, `homes`, `disturbed` (run), `started`. The pairs of a stack are
    the union of its parts' pairs, NaN where a part has none.
    """
    groups: dict[tuple[str, str, str, bytes], list[int]] = {}
    for number, (_, _, layout, header, _) in enumerate(parts):
        key = (str(header["measurement"]), str(header["operation"]), str(header["quantity"]), layout.key)
        groups.setdefault(key, []).append(number)
    return tuple(_merge([parts[i] for i in groups[key]]) for key in sorted(groups))


def _merge(parts: Sequence[Part]) -> Stack:
    first = parts[0][2]
    header = parts[0][3]
    n = len(first.slots)
    pairs = np.unique(np.concatenate([layout.pairs for _, _, layout, _, _ in parts]), axis=0)
    homes = tuple(sorted({int(home) for part in parts for home in part[4]["homes"]}))
    passes = max(part[4]["values"].shape[1] for part in parts)
    rows = sum(part[4]["values"].shape[0] for part in parts)
    values = np.full((rows, passes, len(homes), len(pairs)), np.nan, dtype=np.float32)
    columns = pairs[:, 0] * n + pairs[:, 1]
    node, job, run = (np.zeros(rows, dtype=np.int64) for _ in range(3))
    disturbed = np.zeros(rows)
    started: list[str] = []
    row = 0
    for number, job_number, layout, _, arrays in parts:
        block = arrays["values"]
        at = np.searchsorted(columns, layout.pairs[:, 0] * n + layout.pairs[:, 1])
        for h, home in enumerate(arrays["homes"]):
            target = values[row : row + block.shape[0], : block.shape[1], homes.index(int(home))]
            target[:, :, at] = block[:, :, h]
        span = slice(row, row + block.shape[0])
        node[span], job[span], run[span], disturbed[span] = number, job_number, arrays["runs"], arrays["disturbed"]
        started += list(arrays["started"])
        row += block.shape[0]
    clock = header.get("clock")
    step = float(clock.get("step_ns") or 0.0) if isinstance(clock, dict) else 0.0
    round_trips = float(header.get("round_trips") or 0)
    return Stack(
        str(header["measurement"]), str(header["operation"]), str(header["quantity"]), str(header["unit"]), homes,
        Layout(first.slots, pairs, first.harvested), node, job, run, values,
        step / (2 * round_trips) if round_trips else 0.0, "pairs", disturbed, tuple(started),
    )  # fmt: skip
