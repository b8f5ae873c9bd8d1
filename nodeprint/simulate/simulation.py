"""A simulated campaign: as a folder of records in the kernels' own format, or as packed arrays from the same draws."""

from __future__ import annotations

import gzip
import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from nodeprint import config, discover, files, layout
from nodeprint.errors import NodeprintError
from nodeprint.fleet import job_parts
from nodeprint.fleet.homes import FAR, NEAR
from nodeprint.fleet.job_parts import JobPart, NodePlaces
from nodeprint.fleet.quantity import models
from nodeprint.layout import Layout
from nodeprint.packed import PackedFleet, PackedNode
from nodeprint.simulate import cells as drawn
from nodeprint.simulate import defects as planted
from nodeprint.simulate import lines, silicon
from nodeprint.simulate.lines import Modes
from nodeprint.simulate.silicon import Spread
from nodeprint.simulate.survey import FINGERPRINT, survey
from nodeprint.topology.model import Cpu, NumaNode, Topology

_EPOCH = datetime(2026, 1, 1, tzinfo=UTC)
_MEASUREMENT = "coherence-cas"
_LINKTEST, _MESSAGE_BYTES = "linktest-node", 1 << 20


@dataclass(frozen=True)
class Plan:
    """What is simulated. `homes` are NUMA nodes of the line, (NEAR,) for the home policy `first`, or (NEAR, FAR) for
    `sockets`.

    `cells`: memory, caches, bandwidth, clock and jitter beside the pairs; `linktest`: messages between cores.
    `modes`: where lines live, by default in the quadrants of a socket that has them; `detail`: the value of each line
    in the records of pairs. `pair_runs`: runs of coherence between cores, where they are more than `runs`.
    """

    topology: Topology
    nodes: int = 8
    jobs: int = 1
    runs: int = 2
    passes: int = 3
    seed: int = 1
    spread: Spread = field(default_factory=Spread)
    defects: tuple[str, ...] = ()
    homes: tuple[int, ...] = (NEAR,)
    cells: bool = False
    linktest: bool = False
    modes: Modes | None = None
    detail: bool = False
    pair_runs: int = 0

    @property
    def runs_of_pairs(self) -> int:
        """Runs of a job that measure coherence between cores."""
        return max(self.runs, self.pair_runs)

    @property
    def names(self) -> list[str]:
        """Node names, node000 on."""
        return [f"node{i:03d}" for i in range(self.nodes)]


@dataclass(frozen=True)
class _NodePlan:
    name: str
    topology: Topology
    layout: Layout
    cpus: list[int]
    cores: tuple[int, ...]
    truth: list[silicon.Floats]
    path: silicon.Paths
    chip: silicon.Chip
    state: planted.NodeDefects


def fleet(plan: Plan, jobs_of: Mapping[str, int] | None = None) -> PackedFleet:
    """The plan's fleet as packed arrays, from the same draws as `write`.

    `jobs_of` has nodes with other numbers of jobs.
    """
    nodes: list[PackedNode] = []
    parts: list[JobPart] = []
    for number, node in enumerate(_nodes(plan)):
        missing = node.state.missing
        machine = job_parts.machine(node.topology)
        nodes.append(
            PackedNode(
                node.name,
                node.name,
                state="not measured" if missing else "measured",
                reason="simulated: missing" if missing else "",
                cpus=tuple(node.cpus),
                cores=node.cores,
                fingerprint={**FINGERPRINT, **node.state.fingerprint},
                numbers={"cpu": machine.cpus, "core": machine.cores, "node": machine.nodes},
            )
        )
        if missing:
            continue
        runs = range(1, plan.runs + 1)
        for job in range(1, (jobs_of or {}).get(node.name, plan.jobs) + 1):
            hops = [_draw(plan, number, node, job, run) for run in range(1, plan.runs_of_pairs + 1)]
            parts.append(_of_pairs(_MEASUREMENT, plan.homes, number, job, node.layout, hops))
            if plan.linktest:
                between = replace(node.layout, pairs=node.layout.pairs[~node.path.in_core])
                drawn_messages = [_draw_messages(plan, number, node, job, run) for run in runs]
                parts.append(_of_pairs(_LINKTEST, (-1,), number, job, between, drawn_messages))
            for run in runs:
                parts += [_part(number, job, run, machine, one) for one in _draw_cells(plan, number, node, job, run)]
    return PackedFleet("simulated", True, tuple(nodes), job_parts.assemble(parts))


def _of_pairs(
    name: str, homes: tuple[int, ...], number: int, job: int, of: Layout, drawn_runs: list[npt.NDArray[np.float32]]
) -> JobPart:
    """The runs of a job, each (pass, home, pair)."""
    what = ("cas", "hop") if name == _MEASUREMENT else ("semidirectional", "message")
    values = np.stack(drawn_runs).reshape(len(drawn_runs), len(drawn_runs[0]), -1)
    return JobPart(
        number, job, name, *what, "ns", job_parts.pair_layout(of), _places_of(of.pairs.tobytes(), homes), {},
        tuple(range(1, len(drawn_runs) + 1)), values.shape[1],
        tuple(_started(job, run) for run in range(1, len(drawn_runs) + 1)), lambda: values,
    )  # fmt: skip


@lru_cache(maxsize=8)
def _places_of(pairs: bytes, homes: tuple[int, ...]) -> dict[str, layout.Ints]:
    return job_parts.pair_places(homes, np.frombuffer(pairs, dtype=np.int64).reshape(-1, 2))


def _part(number: int, job: int, run: int, machine: NodePlaces, one: drawn.DrawnRun) -> JobPart:
    _, values = one.values[models()[one.measurement].value]
    header = {"operation": one.operation, "quantity": one.quantity, "cells": _declared(one)}
    places = zip(*itertools.product(*one.coordinates.values()), strict=True)
    return job_parts.part(
        number, job, one.measurement, header, machine, dict(zip(one.coordinates, places, strict=True)),
        values.reshape(1, len(values), -1), [run], [_started(job, run)],
    )  # fmt: skip


def _declared(one: drawn.DrawnRun) -> dict[str, Any]:
    return {"dims": list(one.coordinates), "values": {key: unit for key, (unit, _) in one.values.items()}}


def _draw_cells(plan: Plan, number: int, node: _NodePlan, job: int, run: int) -> list[drawn.DrawnRun]:
    if not plan.cells:
        return []
    seeds = (plan.seed, number, job, run)
    return drawn.draw(node.topology, node.cpus, node.path, node.chip, node.state, seeds=seeds, passes=plan.passes)


def write(plan: Plan, campaign: Path) -> Path:
    """The plan's fleet as a campaign folder, every file marked as simulated; the same plan gives the same bytes.

    Returns the folder.
    Raises NodeprintError when the folder exists and holds something, or cannot be written.
    """
    if campaign.exists() and not (campaign.is_dir() and not any(campaign.iterdir())):
        raise NodeprintError(
            "is not an empty folder", where=campaign, advice="name a new folder for a simulated campaign"
        )
    for _ in _nodes(plan):  # a defect that cannot be is named before anything is written
        pass
    sheet = []
    for number, node in enumerate(_nodes(plan)):
        sheet.append(
            discover.Node(
                node.name, node.name, job=plan.jobs, group="simulated", cpus=len(node.topology.cpus), state="simulated"
            )
        )
        if not node.state.missing:
            _write_node(plan, number, node, campaign / "nodes" / node.name)
    known = config.measurements()
    measured = [_MEASUREMENT, *([_LINKTEST] if plan.linktest else []), *(drawn.MEASUREMENTS if plan.cells else ())]
    runs = dict.fromkeys(measured, plan.runs) | {_MEASUREMENT: plan.runs_of_pairs}
    rows = [f"{name}\t{known[name]['kernel']}\t{known[name]['arguments']}\t{runs[name]}\n" for name in measured]
    files.write(campaign / "plan.tsv", "# simulated\n" + "".join(rows))
    discover.write_sheet(campaign / "nodes.tsv", sheet)
    return campaign


def _nodes(plan: Plan) -> Iterator[_NodePlan]:
    defects = [planted.parse(text) for text in plan.defects]
    unknown = [defect.node for defect in defects if defect.node not in plan.names]
    if unknown:
        raise NodeprintError(f"a defect names {unknown[0]}", advice=f"nodes are {plan.names[0]} to {plan.names[-1]}")
    shared: dict[int, tuple[Topology, Layout, list[int], silicon.Paths]] = {}
    for number, name in enumerate(plan.names):
        harvest = max(
            (int(d.text.split()[1]) for d in defects if d.node == name and d.text.startswith("harvest")), default=0
        )
        if harvest not in shared:
            topology = _harvested(plan.topology, harvest)
            places, cpus = _places(topology)
            shared[harvest] = topology, places, cpus, silicon.paths(places, plan.modes)
        topology, places, cpus, path = shared[harvest]
        rng = np.random.default_rng([plan.seed, number, 0])
        positions = _positions(plan.topology) if harvest else 0
        chip, state = planted.apply(defects, name, path, silicon.chip(path, plan.spread, rng, positions))
        _check(name, state, topology, plan.runs_of_pairs)
        if chip.nps1:
            topology = _one_node_a_socket(topology)
        if state.renumbered:
            topology, cpus = _renumbered(topology, cpus, rng)
        truth = [silicon.latency(path, chip, home) for home in _homes(plan, topology, path)]
        by_cpu = {cpu.cpu: cpu.core for cpu in topology.cpus}
        cores = tuple(core if (core := by_cpu.get(cpu)) is not None else cpu for cpu in cpus)
        yield _NodePlan(name, topology, places, cpus, cores, truth, path, chip, state)


def _check(name: str, state: planted.NodeDefects, topology: Topology, runs: int) -> None:
    """That defects which are no part of a chip have a place here."""
    late = max((d.run for d in state.disturbances), default=0)
    if late > runs:
        raise NodeprintError(f"a defect of {name} names run {late}", advice=f"runs are 1 to {runs}")
    known = [node.node for node in topology.numa_nodes]
    absent = sorted(set(state.memory_channel) - set(known))
    if absent:
        advice = f"NUMA nodes here are {', '.join(map(str, known)) or 'not known'}"
        raise NodeprintError(f"a defect of {name} names memory of node {absent[0]}", advice=advice)


def _draw(plan: Plan, number: int, node: _NodePlan, job: int, run: int) -> npt.NDArray[np.float32]:
    rng = np.random.default_rng([plan.seed, number, job, run])
    disturbances = [d for d in node.state.disturbances if d.run == 0 or job == 1]
    return silicon.draw_run(
        node.path, node.truth, plan.spread, rng, passes=plan.passes, run=run, disturbances=disturbances,
        pools=_pools(plan, number, node, job, run), homes=_homes(plan, node.topology, node.path),
    )  # fmt: skip


def _pools(plan: Plan, number: int, node: _NodePlan, job: int, run: int) -> list[lines.Pool]:
    """The lines of each socket in a run."""
    rng = np.random.default_rng([plan.seed, number, job, run, 33])
    own = plan.spread.line * np.sqrt(0.5)
    modes = plan.modes or lines.modes_of(node.topology)
    return [lines.pool(modes, own, plan.spread.lines, plan.passes, rng) for _ in range(node.path.n_sockets)]


def _homes(plan: Plan, of: Topology, path: silicon.Paths) -> list[npt.NDArray[np.int64]]:
    """For each home of the plan the socket of each pair's lines."""
    sockets = {numa.node: _socket(of, numa.cpus) for numa in of.numa_nodes}
    far = np.where(path.cross, path.socket_b, (path.socket_a + 1) % path.n_sockets)
    known = {NEAR: path.socket_a, FAR: far}
    return [known.get(home, np.full(len(far), sockets.get(home, 0))) for home in plan.homes]


def _home_nodes(plan: Plan, home: int, of: Topology, first: layout.Ints, socket: layout.Ints) -> layout.Ints:
    """The NUMA node of each pair's lines: of `sockets` that of `socket` (p) which is at the place of the `first` CPU's
    (p) among its own."""
    of_cpu = {cpu.cpu: cpu.numa or 0 for cpu in of.cpus}
    numa = np.array([of_cpu[cpu] for cpu in first.tolist()])
    if FAR not in plan.homes:
        return numa if home == NEAR else np.full_like(numa, home)
    nodes: dict[int, list[int]] = {}
    for node in of.numa_nodes:
        nodes.setdefault(_socket(of, node.cpus), []).append(node.node)
    rank = {number: place for mine in nodes.values() for place, number in enumerate(mine)}
    return np.array([nodes[s][rank[own]] for s, own in zip(socket.tolist(), numa.tolist(), strict=True)])


def _draw_messages(plan: Plan, number: int, node: _NodePlan, job: int, run: int) -> npt.NDArray[np.float32]:
    """LinkTest's run, (pass, 1, pair): of pairs of cores, from the same chip. Its buffers are many lines."""
    rng = np.random.default_rng([plan.seed, number, job, run, 15])
    between = ~node.path.in_core
    truth = silicon.message_ns(silicon.latency(node.path, node.chip), _MESSAGE_BYTES)
    spread = replace(plan.spread, line=plan.spread.line / 4)
    disturbances = [d for d in node.state.disturbances if d.run == 0 or job == 1]
    return silicon.draw_run(node.path, [truth], spread, rng, passes=plan.passes, run=run, disturbances=disturbances)[
        :, :, between
    ]


def _places(topology: Topology) -> tuple[Layout, list[int]]:
    """What the default measures: one thread of each core, and each core's own siblings."""
    slots, cpus = layout.slots_of(topology, [cpu.cpu for cpu in topology.cpus])
    first = slots[:, layout.THREAD] == 0
    a, b = np.triu_indices(len(slots), 1)
    keep = (first[a] & first[b]) | np.all(slots[a, : layout.RANK + 1] == slots[b, : layout.RANK + 1], axis=1)
    return layout.layout_of(topology, slots, np.stack([a[keep], b[keep]], axis=1)), cpus


def _harvested(topology: Topology, count: int) -> Topology:
    """`topology` with `count` cores fewer in each CCX."""
    if not count:
        return topology
    kept = [cpu for cpu in topology.cpus if (cpu.rank or 0) < _positions(topology) - count]
    if len({cpu.core for cpu in kept}) < 2:
        raise NodeprintError(f"harvest {count} leaves no two cores", advice="use a smaller number")
    new = {cpu.cpu: number for number, cpu in enumerate(kept)}
    machine = replace(topology.machine, core_positions=False)
    return _with_numbers(replace(topology, cpus=tuple(kept), machine=machine), new)


def _positions(topology: Topology) -> int:
    """How many cores a CCX of `topology` has."""
    return 1 + max((cpu.rank or 0 for cpu in topology.cpus), default=0)


def _renumbered(topology: Topology, cpus: list[int], rng: np.random.Generator) -> tuple[Topology, list[int]]:
    """`topology` under a random permutation of its OS numbers."""
    numbers = sorted(cpu.cpu for cpu in topology.cpus)
    new = dict(zip(numbers, rng.permutation(numbers).tolist(), strict=True))
    return _with_numbers(topology, new), [new[cpu] for cpu in cpus]


def _one_node_a_socket(topology: Topology) -> Topology:
    """`topology` with the NUMA nodes of each socket made one."""
    of_cpu = {cpu.cpu: cpu.socket for cpu in topology.cpus}
    parts: dict[int | None, list[int]] = {}
    for i, node in enumerate(topology.numa_nodes):
        parts.setdefault(of_cpu[node.cpus[0]] if node.cpus else None, []).append(i)
    kept = [mine[0] for mine in parts.values()]
    nodes = []
    for number, mine in enumerate(parts.values()):
        merged = [topology.numa_nodes[i] for i in mine]
        sizes = [node.memory_bytes for node in merged]
        distances = merged[0].distances
        nodes.append(
            NumaNode(
                number,
                tuple(sorted(cpu for node in merged for cpu in node.cpus)),
                None if None in sizes else sum(size or 0 for size in sizes),
                tuple(distances[i] for i in kept) if distances else (),
            )
        )
    numa = {cpu: node.node for node in nodes for cpu in node.cpus}
    cpus = tuple(replace(cpu, numa=numa.get(cpu.cpu)) for cpu in topology.cpus)
    return replace(topology, cpus=cpus, numa_nodes=tuple(nodes), machine=replace(topology.machine, nps=1))


def _with_numbers(topology: Topology, new: dict[int, int]) -> Topology:
    cpus: list[Cpu] = sorted((replace(cpu, cpu=new[cpu.cpu]) for cpu in topology.cpus), key=lambda cpu: cpu.cpu)
    nodes = tuple(replace(n, cpus=tuple(sorted(new[c] for c in n.cpus if c in new))) for n in topology.numa_nodes)
    return replace(topology, cpus=tuple(cpus), numa_nodes=nodes)


def _socket(topology: Topology, cpus: Sequence[int]) -> int:
    mine = set(cpus)
    members = {cpu.socket for cpu in topology.cpus if cpu.cpu in mine} - {None}
    sockets = sorted({cpu.socket for cpu in topology.cpus} - {None}, key=lambda s: s or 0)
    return sockets.index(min(members, key=lambda s: s or 0)) if members else 0


def _write_node(plan: Plan, number: int, node: _NodePlan, folder: Path) -> None:
    captured = survey(node.topology, node.name, node.state.fingerprint)
    for job in range(1, plan.jobs + 1):
        job_dir = folder / f"job{job}"
        began = _EPOCH + timedelta(hours=job)
        measurements = []
        for run in range(1, plan.runs_of_pairs + 1):
            values = _draw(plan, number, node, job, run)
            cut = node.state.cut and run == plan.runs_of_pairs
            text = _records(plan, number, node, values, job=job, run=run, cut=cut)
            path = job_dir / f"run{run}" / f"{_MEASUREMENT}.jsonl{'' if cut else '.gz'}"
            files.write(path, text.encode() if cut else gzip.compress(text.encode(), compresslevel=1, mtime=0))
            measurements.append(_outcome(_MEASUREMENT, run, cut))
            if run > plan.runs:
                continue
            if plan.linktest:
                text = _message_records(plan, number, node, job=job, run=run)
                path = job_dir / f"run{run}" / f"{_LINKTEST}.jsonl.gz"
                files.write(path, gzip.compress(text.encode(), compresslevel=1, mtime=0))
                measurements.append(_outcome(_LINKTEST, run, cut=False))
            for one in _draw_cells(plan, number, node, job, run):
                text = _cell_records(plan, number, node, one, job=job, run=run)
                path = job_dir / f"run{run}" / f"{one.measurement}.jsonl.gz"
                files.write(path, gzip.compress(text.encode(), compresslevel=1, mtime=0))
                measurements.append(_outcome(one.measurement, run, cut=False))
        files.write(job_dir / "survey.tar.gz", captured)
        status = {
            "schema": 1,
            "node": node.name,
            "host": node.name,
            "job": job,
            "started": _time(began),
            "ended": _time(began + timedelta(minutes=5)),
            "runs": plan.runs,
            "outcome": "partial" if node.state.cut else "complete",
            "cpus_allowed": len(node.topology.cpus),
            "cpus_expected": len(node.topology.cpus),
            "simulated": True,
            "measurements": measurements,
        }
        files.write(job_dir / "status.json", json.dumps(status, indent=1) + "\n")


def _started(job: int, run: int) -> str:
    """When a run begins: jobs are an hour apart."""
    return _time(_EPOCH + timedelta(hours=job, minutes=run))


def _outcome(name: str, run: int, cut: bool) -> dict[str, Any]:
    return {
        "name": name, "run": run, "outcome": "failed" if cut else "done", "exit_code": 137 if cut else 0,
        "seconds": 8.0, "pinned_by": "native", "message": "simulated: killed" if cut else "",
    }  # fmt: skip


def _time(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def _header(plan: Plan, number: int, node: _NodePlan, *, job: int, run: int) -> dict[str, Any]:
    """What the records of a run have in common."""
    return {
        "record": "header",
        "schema": 1,
        "segment": 0,
        "host": node.name,
        "boot_id": f"00000000-0000-4000-8000-{plan.seed % 16**6:06x}{number:06x}",
        "job": job,
        "run": run,
        "seed": plan.seed * 1_000_003 + number * 1009 + job * 101 + run,
        "start_time": _started(job, run),
        "kernel_hash": "0000000000000000",
        "compiler": "simulated",
        "clock": {"source": "tsc", "hz": 2.0e9, "step_ns": 10.0},
        "passes": plan.passes,
        "pinned_by": "native",
        "placement": {},
        "simulated": True,
    }


def _trailer(counted: str, count: int) -> str:
    trailer = {
        "record": "trailer",
        "elapsed_s": 8.0,
        counted: count,
        "voluntary_switches": 0,
        "involuntary_switches": 0,
        "steal_s": 0.0,
        "complete": True,
    }
    return json.dumps(trailer) + "\n"


def _cell_records(plan: Plan, number: int, node: _NodePlan, one: drawn.DrawnRun, *, job: int, run: int) -> str:
    keys = list(one.coordinates)
    cpus = one.coordinates.get("cpu") or sorted(node.cpus)
    header = _header(plan, number, node, job=job, run=run) | {
        "kernel": one.kernel,
        "operation": one.operation,
        "quantity": one.quantity,
        "unit": one.unit,
        "arguments": ["--op", one.operation, "--cpus", "cores"],
        "cpus": sorted(int(cpu) for cpu in cpus),
        "cells": _declared(one),
    }
    text = [json.dumps(header)]
    shape = next(iter(one.values.values()))[1].shape
    for at in np.ndindex(*shape):
        place = {key: one.coordinates[key][i] for key, i in zip(keys, at[1:], strict=True)}
        values = {key: float(f"{array[at]:.6g}") for key, (_, array) in one.values.items()}
        if not all(np.isfinite(value) for value in values.values()):
            continue  # there is no such cell
        text.append(json.dumps({"record": "cell", **place, "pass": at[0], **values, "flags": []}))
    return "\n".join(text) + "\n" + _trailer("cells", len(text) - 1)


_MESSAGE = (
    '{"record":"pair","a":%d,"b":%d,"home":-1,"pass":%d,"latency_ns":%.1f,"ci_low_ns":%.1f,"ci_high_ns":%.1f,'
    '"min_ns":%.1f,"median_ns":%.1f,"p99_ns":%.1f,"flags":[]}\n'
)


def _message_records(plan: Plan, number: int, node: _NodePlan, *, job: int, run: int) -> str:
    values = _draw_messages(plan, number, node, job, run)
    header = _header(plan, number, node, job=job, run=run) | {
        "kernel": "linktest",
        "operation": "semidirectional",
        "quantity": "message",
        "unit": "ns",
        "arguments": ["--mode", "semidirectional", "--schedule", "serial", "--sizes", str(_MESSAGE_BYTES)],
        "cpus": sorted(node.cpus),
        "home": None,
        "message_bytes": _MESSAGE_BYTES,
        "batches": 16,
        "directed": False,
        "clock": {"source": "clock_gettime", "hz": 1e9, "step_ns": 1.0},
    }
    ends = np.array(node.cpus)[node.layout.pairs[~node.path.in_core]]
    a, b = np.sort(ends, axis=1).T
    text = [json.dumps(header)]
    for p in range(values.shape[0]):
        ns = values[p, 0].astype(np.float64)
        shares = (1.0, 0.995, 1.005, 0.99, 1.005, 1.05)
        columns = [a, b, np.full(len(a), p), *(ns * share for share in shares)]
        rows = zip(*(column.tolist() for column in columns), strict=True)
        text += (_MESSAGE * len(a) % tuple(itertools.chain.from_iterable(rows))).splitlines()
    return "\n".join(text) + "\n" + _trailer("pairs", int(values.size))


def _records(
    plan: Plan, number: int, node: _NodePlan, values: npt.NDArray[np.float32], *, job: int, run: int, cut: bool
) -> str:
    header = _header(plan, number, node, job=job, run=run) | {
        "kernel": "coherence",
        "operation": "cas",
        "quantity": "hop",
        "unit": "ns",
        "arguments": ["--op", "cas", "--cpus", "cores", "--siblings", *(["--detail"] if plan.detail else [])],
        "cpus": sorted(node.cpus),
        "home": "sockets" if FAR in plan.homes else "first" if plan.homes == (NEAR,) else "each",
        "lines": plan.spread.lines,
        "batches": 2,
        "round_trips": 40,
    }
    rng = np.random.default_rng([plan.seed, number, job, run, 99])
    cpus, pairs = np.array(node.cpus), node.layout.pairs
    order = np.argsort(cpus[pairs], axis=1)
    a, b = np.take_along_axis(cpus[pairs], order, axis=1).T
    cores = np.take_along_axis(np.stack([node.path.core_a, node.path.core_b], axis=1), order, axis=1)
    clocks = drawn.probed_ghz(
        node.chip, np.tile(cores, (values.shape[0], values.shape[1], 1, 1)), (plan.seed, number, job, run)
    )
    pools, sockets = _pools(plan, number, node, job, run), _homes(plan, node.topology, node.path)
    nodes = [n.node for n in node.topology.numa_nodes if n.cpus] or [0]
    socket_of = {n.node: _socket(node.topology, n.cpus) for n in node.topology.numa_nodes}
    at_home = [_home_nodes(plan, home, node.topology, a, of) for home, of in zip(plan.homes, sockets, strict=True)]
    homes = nodes if NEAR in plan.homes else list(plan.homes)
    text = [json.dumps(header)]
    for home in homes:
        socket = socket_of.get(home, 0)
        text += lines.records(pools[socket], home, socket, node.layout, node.cpus, rng)
    sd = plan.spread.line
    for p in range(values.shape[0]):
        for home in homes:
            of = pools[socket_of.get(home, 0)]
            text.append(
                json.dumps({"record": "pass", "pass": p, "home": home, "line_set": of.lines[of.drawn[p]].tolist()})
            )
        for h in range(len(plan.homes)):
            each = None
            if plan.detail:
                each_ns = _line_values(plan, node, pools, sockets[h], values[p, h], p, rng)
                each = _line_texts(pools, sockets[h], each_ns, p)
            text += _pair_lines(
                values[p, h], clocks[p, h], (a, b, at_home[h]), p, sd, each, rng.permutation(len(pairs))
            )
    if cut:
        return "\n".join(text[: len(text) * 2 // 3]) + '\n{"record":"pair","a":'
    return "\n".join(text) + "\n" + _trailer("pairs", int(values.size))


_PAIR = (
    '{"record":"pair","a":%d,"b":%d,"home":%d,"pass":%d,"latency_ns":%.4f,"ci_low_ns":%.4f,"ci_high_ns":%.4f,'
    '"min_ns":%.4f,"median_ns":%.4f,"p99_ns":%.4f,"line_sd_ns":%.4f,"clock_a_ghz":%.4f,"clock_b_ghz":%.4f%s,"flags":[]}\n'
)


def _pair_lines(
    values: npt.NDArray[np.float32], clocks: silicon.Floats, ends: tuple[layout.Ints, layout.Ints, layout.Ints],
    run_pass: int, sd: float, each: Sequence[str] | None, order: layout.Ints,
) -> list[str]:  # fmt: skip
    """The records of a pass's pairs in their `order`: of `values` (p), `clocks` (p, 2), `ends` (each (p): both CPUs and
    the NUMA node of the lines), and with the text that is added to `each`."""
    ns = values[order].astype(np.float64)
    shares = (1.0, 1 - 0.6 * sd, 1 + 0.6 * sd, 1 - 2 * sd, 1.01, 1 + 4 * sd, sd)
    a, b, home = (one[order] for one in ends)
    columns = [a, b, home, np.full(len(a), run_pass)]
    columns += [ns * share for share in shares] + list(clocks[order].T)
    added = [""] * len(a) if each is None else [each[i] for i in order.tolist()]
    rows = zip(*(column.tolist() for column in columns), added, strict=True)
    return (_PAIR * len(a) % tuple(itertools.chain.from_iterable(rows))).splitlines()


def _line_values(
    plan: Plan, node: _NodePlan, pools: Sequence[lines.Pool], home: npt.NDArray[np.int64],
    values: npt.NDArray[np.float32], run_pass: int, rng: np.random.Generator,
) -> silicon.Floats:  # fmt: skip
    """The hop of each pair on each line of a pass (pair, line); the pair's value is that of its lines' clusters."""
    out = np.empty((len(values), plan.spread.lines))
    over = np.asarray(values, dtype=np.float64)
    if not node.path.in_ccx.all():  # hops inside a CCX are no part of the mean of a way over the die
        over = np.where(node.path.in_ccx, over[~node.path.in_ccx].mean(), over)
    for socket, of in enumerate(pools):
        on = lines.ways(node.layout, over, of.modes, socket)
        mine = np.flatnonzero(home == socket)
        added = lines.line_ns(of, on, run_pass)[on.of_pair[mine]]
        added[node.path.in_ccx[mine]] = 0
        own = plan.spread.line * np.sqrt(0.5) * values[mine, None] * rng.standard_normal(added.shape)
        each = values[mine, None] + added + own
        out[mine] = each + (values[mine] - lines.figure(of, run_pass, each))[:, None]
    return out


def _line_texts(
    pools: Sequence[lines.Pool], home: npt.NDArray[np.int64], each: silicon.Floats, run_pass: int
) -> list[str]:
    """What `--detail` adds to the record of each pair."""
    out = [""] * len(each)
    for socket, of in enumerate(pools):
        mine = np.flatnonzero(home == socket)
        clusters = lines.medians(of, run_pass, each[mine])
        for i, of_lines, of_clusters in zip(mine.tolist(), each[mine].tolist(), clusters.tolist(), strict=True):
            out[i] = (
                f',"line_ns":[{",".join(f"{ns:.2f}" for ns in of_lines)}]'
                f',"cluster_ns":[{",".join(f"{ns:.3f}" for ns in of_clusters)}]'
            )
    return out


@dataclass(frozen=True)
class Detailed:
    """One run of a node with the value of each line, as `write` would have it in the records of `--detail`.

    `a` and `b` are the OS numbers of each pair (p) and `socket` that of its lines (p), `ns` its hops (pass, p, line);
    `pools` has the lines of each socket, and where they live.
    """

    node: str
    topology: Topology
    a: npt.NDArray[np.int64]
    b: npt.NDArray[np.int64]
    socket: npt.NDArray[np.int64]
    ns: silicon.Floats
    pools: Sequence[lines.Pool]
    layout: Layout
    cpus: Sequence[int]


def detailed(plan: Plan) -> Iterator[Detailed]:
    """The runs of the plan's nodes in order, from the same draws as `write`, for the first of its homes."""
    for number, node in enumerate(_nodes(plan)):
        home = _homes(plan, node.topology, node.path)[0]
        a, b = np.array(node.cpus)[node.layout.pairs].T
        for run in range(1, plan.runs_of_pairs + 1):
            rng = np.random.default_rng([plan.seed, number, 1, run, 98])
            values = _draw(plan, number, node, 1, run)[:, 0]
            pools = _pools(plan, number, node, 1, run)
            ns = [_line_values(plan, node, pools, home, values[p], p, rng) for p in range(plan.passes)]
            yield Detailed(node.name, node.topology, a, b, home, np.stack(ns), pools, node.layout, node.cpus)
