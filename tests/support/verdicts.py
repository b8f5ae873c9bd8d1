"""Hand-built verdicts: a realistic one of eight nodes, and changes of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from msgspec.structs import replace

from nodeprint.data.store import packed
from nodeprint.judge.outcome import Certainty, FleetOutcome, Outcome, ReasonDetail
from nodeprint.judge.verdict import (
    Agreement,
    CellFigure,
    ClassFigure,
    Component,
    Disturbance,
    Evidence,
    FabricVerdict,
    Finding,
    FleetVerdict,
    Interval,
    JobEffect,
    Limit,
    NodeVerdict,
    Reason,
    Spread,
    Verdict,
)
from nodeprint.machine.topology.presets import preset
from nodeprint.report import verdict_files
from nodeprint.simulate import Plan
from nodeprint.simulate import fleet as simulate_fleet

CRITERIA = ("core-to-core", "memory", "bandwidth", "clock")
CORE = Component("core", "core-near", {"core": 37, "cpu": 37})
MEMORY = Component("numa", "numa", {"cpu_node": 1, "memory_node": 3})


def agreement(
    metric: str = "core-to-core", within: float = 0.014, tolerance: float = 0.04, **changes: Any
) -> Agreement:
    """How alike a node is; within its tolerance unless `changes` say otherwise."""
    defaults = {
        "core-to-core": ("coherence-cas", Component("core", "core-near", {"core": 12, "cpu": 12}), "ns", 112.0),
        "memory": ("chase-latency", MEMORY, "ns", 120.0),
        "bandwidth": (
            "bandwidth-nodes",
            Component("bandwidth", "bandwidth", {"memory_node": 0, "stream": "load"}),
            "B/s",
            1.6e11,
        ),
        "clock": ("clock-together", Component("clock", "clock", {"core": 5, "cpu": 5}), "Hz", 3.2e9),
    }
    measurement, component, unit, level = defaults[metric]
    sizes = within, tolerance, unit, within * level, tolerance * level, within / tolerance, within / 3, 18
    made = Agreement(metric, True, measurement, component, *sizes)
    return replace(made, **changes)


def finding(effect: float = 0.059, state: Certainty = Certainty.CONFIRMED, **changes: Any) -> Finding:
    """Core 37, slower to its socket, in two jobs of nine runs."""
    jobs = ("job1", "job2") if state is Certainty.CONFIRMED else ("job1",)
    by_job = tuple(
        JobEffect(
            job, effect, Interval(effect - 0.004, effect + 0.003), {f"{job}/run{n}": effect for n in range(1, 10)}
        )
        for job in jobs
    )
    made = Finding(
        "core-slow",
        state,
        "coherence-cas",
        -1,
        CORE,
        effect,
        effect * 117,
        Interval(effect - 0.004, effect + 0.003),
        0.002,
        0.04,
        4.68,
        abs(effect) / 0.04,
        117 * (1 + effect),
        117.0,
        "ns",
        effect > 0,
        by_job,
        pairs={37: tuple(range(32, 37)) + tuple(range(38, 64))},
        consistent_with=("core-clock", "core", "daemon"),
        evidence=(Evidence("clock", False, 3.2e9, 3.2e9, "Hz"), Evidence("throttling", None)),
        remedy="core",
    )
    return replace(made, **changes)


def memory_finding(**changes: Any) -> Finding:
    """Memory of one NUMA node, a fifth slower from another."""
    base = finding(
        0.2,
        id="numa-slow",
        measurement="chase-latency",
        component=MEMORY,
        tolerance=0.05,
        times_tolerance=4.0,
        remedy="numa",
        value=142.0,
        peers=118.3,
        pairs={},
        cells=({"cpu": 8, "memory_node": 3},),
        consistent_with=("memory-channel",),
    )
    return replace(base, **changes)


def classes() -> tuple[ClassFigure, ...]:
    """The classes of a node of two sockets."""
    medians = {"same CCX": 24.0, "same socket": 112.0, "other socket": 205.0}
    return tuple(
        ClassFigure(name, "coherence-cas", -1, ns, ns * 0.997, ns * 1.003, 400, 9, ns * 0.002)
        for name, ns in medians.items()
    )


def cells() -> tuple[CellFigure, ...]:
    """Memory latency by distance."""
    return (
        CellFigure("chase-latency", "own", "ns", 105.2, 104.8, 105.6, 105.0, {"core": 3, "cpu": 3}, 107.0, 64, 9, 0.3),
        CellFigure(
            "bandwidth-nodes",
            "load, own",
            "B/s",
            1.61e11,
            1.6e11,
            1.62e11,
            1.6e11,
            {"memory_node": 1},
            1.58e11,
            2,
            9,
            1e8,
        ),
    )


_DETAILS = list(ReasonDetail)
_DETAILS = list(ReasonDetail)
#: Every outcome of a node with its reasons.
REASONS: list[tuple[Outcome, ReasonDetail | None]] = [
    *((Outcome.WRONG_RESULT, why) for why in _DETAILS[:2]),
    *((Outcome.INVALID, why) for why in _DETAILS[2:6]),
    *((Outcome.INCONCLUSIVE, why) for why in _DETAILS[6:]),
    *((of, None) for of in Outcome if of not in (Outcome.WRONG_RESULT, Outcome.INVALID, Outcome.INCONCLUSIVE)),
]


def node(outcome: Outcome = Outcome.SAME, why: ReasonDetail | None = None, **changes: Any) -> NodeVerdict:
    """A node, the same as its peers by default."""
    fingerprint = {
        "cpu": "AMD EPYC 7713 64-Core Processor",
        "sockets": 2,
        "cores": 128,
        "bios": "2.4.8",
        "memory_gib": 512,
    }
    agreements = tuple(agreement(metric) for metric in CRITERIA)
    made = NodeVerdict(
        outcome,
        (Reason(outcome, why),),
        agreements=agreements,
        fingerprint=fingerprint,
        classes=classes(),
        cells=cells(),
        jobs=("job1",),
        rack="r1",
    )
    return replace(made, **changes)


def verdict(nodes: dict[str, NodeVerdict] | None = None, **changes: Any) -> Verdict:
    """Eight nodes, of which one has a slow core; with `nodes` these."""
    if nodes is None:
        nodes = {f"cn{n:03}": node() for n in range(1, 9)}
        nodes["cn003"] = node(Outcome.DEVIATES, findings=(finding(),), jobs=("job1", "job2"))
    outcomes = [member.outcome for member in nodes.values()]
    counts = {str(outcome): outcomes.count(outcome) for outcome in Outcome if outcome in outcomes}
    fleet_outcome = FleetOutcome.DEVIATIONS if Outcome.DEVIATES in outcomes else FleetOutcome.UNIFORM
    fleet = FleetVerdict(
        fleet_outcome,
        len(nodes),
        len(nodes) - outcomes.count(Outcome.NOT_MEASURED),
        counts,
        tuple(agreement(s) for s in CRITERIA),
        CRITERIA,
        spreads=(
            Spread("core-to-core", "coherence-cas", "core-near", "core", 0.004, 0.002, 0.04, 0.02, 0, wide=False),
        ),
        limits=(Limit("core-to-core", "coherence-cas", "core-near", "core", 0.045, 0.04),),
        tests=2400,
        false_alarm=0.01,
    )
    versions = {"nodeprint": "0.1.0", "acceptance": "the defaults"}
    return replace(Verdict("main", False, False, versions, CRITERIA, fleet, nodes), **changes)


def fabric(**changes: Any) -> FabricVerdict:
    """Messages between three nodes, the link between two of them slow."""
    link = finding(
        0.3,
        id="fabric-link",
        measurement="linktest-fabric",
        component=Component("fabric-link", "fabric-link", {"node": "cn001", "to": "cn002", "sends": 1, "receives": 1}),
        tolerance=0.1,
        times_tolerance=3.0,
    )
    made = FabricVerdict(
        "linktest-fabric",
        "compute",
        "unidirectional",
        ("cn001", "cn002", "cn003"),
        ("CPU 0",) * 3,
        1 << 20,
        1,
        True,
        ((float("nan"), 1.3e5, 1e5), (1.3e5, float("nan"), 1e5), (1e5, 1e5, float("nan"))),
        1e5,
        1.1e5,
        1.3e5,
        (link,),
        (Limit("messages", "linktest-fabric", "fabric-link", "fabric-link", 0.08, 0.1),),
    )
    return replace(made, **changes)


def disturbed(**changes: Any) -> Disturbance:
    """Other load on two CPUs."""
    return replace(Disturbance("disturbed", True, "coherence-cas", "job1/run1", 0.31, cpus=(3, 4)), **changes)


def campaign(folder: Path, topology: str = "milan-2x64", nodes: int = 8, **changes: Any) -> Verdict:
    """A judged campaign in `folder`: a simulated fleet whose second node has a slow core, and its verdict."""
    labels = preset(topology)
    plan = Plan(labels, nodes=nodes, defects=("node001: core 37 +6%",) if nodes > 1 else (), cells=True, runs=3)
    fleet = simulate_fleet(plan)
    packed.write(fleet, folder)
    pairs = fleet.pairs[0]
    members = {packed_node.name: node() for packed_node in fleet.nodes}
    if nodes > 1:
        slot = fleet.nodes[1].cpus.index(37)
        near = [s for s in range(len(pairs.layout.slots)) if pairs.layout.slots[s, 0] == pairs.layout.slots[slot, 0]]
        own = {37: tuple(fleet.nodes[1].cpus[s] for s in near if s != slot)}
        finding_of_pairs = finding(pairs=own, measurement=pairs.measurement)
        members["node001"] = node(Outcome.DEVIATES, findings=(finding_of_pairs,), jobs=("job1", "job2"))
    made = verdict(members, campaign=folder.name, simulated=True, **changes)
    verdict_files.write(made, folder)
    return made
