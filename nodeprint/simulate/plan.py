"""The plan of a simulated fleet, its nodes with their chips, and the random draws of each run."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

import numpy as np
import numpy.typing as npt

from nodeprint.data.places import layout
from nodeprint.data.places.homes import FAR, NEAR
from nodeprint.data.places.layout import Layout
from nodeprint.errors import NodeprintError
from nodeprint.machine.topology.model import Topology
from nodeprint.simulate import cells as drawn
from nodeprint.simulate import defects as planted
from nodeprint.simulate import lines, silicon
from nodeprint.simulate.drawn_run import DrawnRun
from nodeprint.simulate.lines import Modes
from nodeprint.simulate.machines import (
    cores_of_a_die,
    harvested,
    measured_places,
    one_node_a_socket,
    renumbered,
    socket_index,
)
from nodeprint.simulate.silicon import Variation
from nodeprint.simulate.simulated_node import NodePlan, NodeRun

EPOCH = datetime(2026, 1, 1, tzinfo=UTC)
#: Coherence between cores, and LinkTest's messages between them.
PAIRS, MESSAGES = "coherence-cas", "linktest-node"
MESSAGE_BYTES = 1 << 20


@dataclass(frozen=True)
class Plan:
    """A simulated fleet. `homes` are NUMA nodes of the line: (NEAR,) for the home policy `first`, (NEAR, FAR) for
    `sockets`.

    `cells`: memory, caches, bandwidth, clock and jitter besides the pairs; `linktest`: messages between cores. `modes`:
    the sites of lines, by default a socket's quadrants, if any. `detail`: the value of each line in the records of
    pairs. `pair_runs`: runs of coherence between cores, if more than `runs`. Jobs are numbered from `first_job`, and
    begin so many hours after EPOCH: the same fleet in a later campaign.
    """

    topology: Topology
    nodes: int = 8
    jobs: int = 1
    runs: int = 2
    passes: int = 3
    seed: int = 1
    spread: Variation = field(default_factory=Variation)
    defects: tuple[str, ...] = ()
    homes: tuple[int, ...] = (NEAR,)
    cells: bool = False
    linktest: bool = False
    modes: Modes | None = None
    detail: bool = False
    pair_runs: int = 0
    first_job: int = 1

    @property
    def job_numbers(self) -> range:
        """The numbers of the jobs of each node."""
        return range(self.first_job, self.first_job + self.jobs)

    @property
    def runs_of_pairs(self) -> int:
        """Runs of a job that measure coherence between cores."""
        return max(self.runs, self.pair_runs)

    @property
    def names(self) -> list[str]:
        """Node names, node000 on."""
        return [f"node{i:03d}" for i in range(self.nodes)]


def planned_nodes(plan: Plan) -> Iterator[NodePlan]:
    """The nodes of a plan in order. Raises NodeprintError for a defect that cannot be."""
    defects = [planted.parse(text) for text in plan.defects]
    unknown = [defect.node for defect in defects if defect.node not in plan.names]
    if unknown:
        advice = f"a defect is of one node, {plan.names[0]} to {plan.names[-1]}; repeat --defect for others"
        raise NodeprintError(f"a defect names {unknown[0]}", advice=advice)
    shared: dict[int, tuple[Topology, Layout, list[int], silicon.Paths]] = {}
    for number, name in enumerate(plan.names):
        harvest = max(
            (int(d.text.split()[1]) for d in defects if d.node == name and d.text.startswith("harvest")), default=0
        )
        if harvest not in shared:
            topology = harvested(plan.topology, harvest)
            places, cpus = measured_places(topology)
            shared[harvest] = topology, places, cpus, silicon.paths(places, plan.modes)
        topology, places, cpus, path = shared[harvest]
        rng = np.random.default_rng([plan.seed, number, 0])
        positions = cores_of_a_die(plan.topology) if places.harvested else 0
        chip, state = planted.apply(defects, name, path, silicon.chip(path, plan.spread, rng, positions))
        _check(name, state, topology, plan.runs_of_pairs)
        if chip.nps1:
            topology = one_node_a_socket(topology)
        if state.renumbered:
            topology, cpus = renumbered(topology, cpus, rng)
        truth = [silicon.latency(path, chip, home) for home in homes_of(plan, topology, path)]
        by_cpu = {cpu.cpu: cpu.core for cpu in topology.cpus}
        cores = tuple(core if (core := by_cpu.get(cpu)) is not None else cpu for cpu in cpus)
        yield NodePlan(name, topology, places, cpus, cores, truth, path, chip, state)


def _check(name: str, state: planted.NodeDefects, topology: Topology, runs: int) -> None:
    """Check that defects outside the chip name existing runs and components."""
    late = max((d.run for d in state.disturbances), default=0)
    if late > runs:
        raise NodeprintError(f"a defect of {name} names run {late}", advice=f"runs are 1 to {runs}")
    numbers = [node.node for node in topology.numa_nodes]
    named = {*state.memory_channel, *state.fragmented, *(memory for _, _, memory in state.memory_path)}
    named |= {number for level, number, _ in state.memory_path if level == "node"}
    absent = sorted(named - set(numbers))
    if absent:
        advice = f"NUMA nodes here are {', '.join(map(str, numbers)) or 'not known'}"
        raise NodeprintError(f"a defect of {name} names NUMA node {absent[0]}", advice=advice)
    dies = set(topology.groups("ccd"))
    absent = sorted({number for level, number, _ in state.memory_path if level == "ccd"} - dies)
    if absent:
        advice = f"CCDs here are {min(dies)} to {max(dies)}" if dies else "CCDs here are not known"
        raise NodeprintError(f"a defect of {name} names CCD {absent[0]}", advice=advice)
    sockets = sorted({cpu.socket for cpu in topology.cpus if cpu.socket is not None})
    without = sorted({*state.power_limit, *state.cooling} - set(sockets))
    if without:
        raise NodeprintError(
            f"a defect of {name} names socket {without[0]}", advice=f"sockets here are {', '.join(map(str, sockets))}"
        )


def draw_pairs(plan: Plan, number: int, node: NodePlan, job: int, run: int) -> npt.NDArray[np.float32]:
    """A run of coherence between cores: (pass, home, pair) in ns."""
    rng = np.random.default_rng([plan.seed, number, job, run])
    disturbances = [d for d in node.state.disturbances if d.run == 0 or job == plan.first_job]
    return silicon.draw_run(
        node.path,
        node.truth,
        plan.spread,
        rng,
        passes=plan.passes,
        run=run,
        disturbances=disturbances,
        pools=pools_of(plan, number, node, job, run),
        homes=homes_of(plan, node.topology, node.path),
    )


def pools_of(plan: Plan, number: int, node: NodePlan, job: int, run: int) -> list[lines.LinePool]:
    """The lines of each socket in a run."""
    rng = np.random.default_rng([plan.seed, number, job, run, 33])
    own = plan.spread.line * np.sqrt(0.5)
    modes = plan.modes or lines.modes_of(node.topology)
    return [lines.pool(modes, own, plan.spread.lines, plan.passes, rng) for _ in range(node.path.n_sockets)]


def homes_of(plan: Plan, topology: Topology, path: silicon.Paths) -> list[npt.NDArray[np.int64]]:
    """For each home of the plan the socket of each pair's lines."""
    sockets = {numa.node: socket_index(topology, numa.cpus) for numa in topology.numa_nodes}
    far = np.where(path.cross, path.socket_b, (path.socket_a + 1) % path.n_sockets)
    by_policy = {NEAR: path.socket_a, FAR: far}
    return [by_policy.get(home, np.full(len(far), sockets.get(home, 0))) for home in plan.homes]


def home_nodes(plan: Plan, home: int, topology: Topology, first: layout.Ints, socket: layout.Ints) -> layout.Ints:
    """The NUMA node of each pair's lines (p).

    For `sockets` it is the node of `socket` (p) at the same index as the `first` CPU's node (p) in its own socket.
    """
    of_cpu = {cpu.cpu: cpu.numa or 0 for cpu in topology.cpus}
    numa = np.array([of_cpu[cpu] for cpu in first.tolist()])
    if FAR not in plan.homes:
        return numa if home == NEAR else np.full_like(numa, home)
    nodes: dict[int, list[int]] = {}
    for node in topology.numa_nodes:
        nodes.setdefault(socket_index(topology, node.cpus), []).append(node.node)
    without = sorted(set(socket.tolist()) - set(nodes))
    if without:
        raise NodeprintError(
            f"socket {without[0]} has no NUMA node of its own", advice="simulate the home policy first"
        )
    rank = {number: place for members in nodes.values() for place, number in enumerate(members)}
    return np.array([nodes[s][rank[own]] for s, own in zip(socket.tolist(), numa.tolist(), strict=True)])


def draw_messages(plan: Plan, number: int, node: NodePlan, job: int, run: int) -> npt.NDArray[np.float32]:
    """LinkTest's run, (pass, 1, pair): of pairs of cores, from the same chip. Its buffers are many lines."""
    rng = np.random.default_rng([plan.seed, number, job, run, 15])
    between = ~node.path.in_core
    truth = silicon.message_ns(node.path, node.chip, MESSAGE_BYTES)
    spread = replace(plan.spread, line=plan.spread.line / 4)
    disturbances = [d for d in node.state.disturbances if d.run == 0 or job == plan.first_job]
    return silicon.draw_run(node.path, [truth], spread, rng, passes=plan.passes, run=run, disturbances=disturbances)[
        :, :, between
    ]


def draw_cells(plan: Plan, number: int, node: NodePlan, job: int, run: int) -> list[DrawnRun]:
    """A run of every measurement that is not of pairs; none where the plan has none."""
    if not plan.cells:
        return []
    return drawn.draw(run_of(plan, number, node, job, run))


def run_of(plan: Plan, number: int, node: NodePlan, job: int, run: int) -> NodeRun:
    """A run of a node, of which cells are drawn and the clocks of pairs."""
    return NodeRun(node, (plan.seed, number, job, run), plan.passes)


def started(job: int, run: int) -> str:
    """When a run begins: jobs are an hour apart."""
    return time_text(EPOCH + timedelta(hours=job, minutes=run))


def time_text(moment: datetime) -> str:
    """A time as records have it."""
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")
