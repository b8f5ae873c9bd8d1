"""The same place has the same slot under any numbering, and harvested parts are told."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path
from typing import get_args

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nodeprint.data.places import layout
from nodeprint.data.store import packed
from nodeprint.judge.acceptance_file import PairClass
from nodeprint.judge.judge import judge
from nodeprint.judge.verdict import Verdict
from nodeprint.machine.topology.level_names import level_name
from nodeprint.machine.topology.model import Cpu, Machine, Topology
from nodeprint.machine.topology.presets import from_part
from nodeprint.simulate import Plan, Variation, fleet
from nodeprint.simulate.machines import measured_places
from tests.support import machines
from tests.support.labels import read
from tests.support.machines import Fake, arm, epyc, xeon

MACHINES = {
    **{f"{name}-nps{nps}": epyc(recipe, nps=nps) for name, recipe in machines.WHOLE.items() for nps in (1, 4)},
    "snc": xeon(snc=2, interleaved=True),
    "flat": arm(32),
    "clusters": arm(32, cluster=4),
    "no-l3": arm(8).with_rows(lambda row: replace(row, ccx=None)),
}


@pytest.mark.parametrize("name", MACHINES)
def test_slots_are_unique_and_sorted(name: str) -> None:
    labels = read(MACHINES[name])
    slots, cpus = layout.slots_of(labels, [cpu.cpu for cpu in labels.cpus])
    rows = [tuple(row) for row in slots.tolist()]
    assert rows == sorted(set(rows)) and len(rows) == len(labels.cpus)
    assert sorted(cpus) == [cpu.cpu for cpu in labels.cpus]


@settings(max_examples=6)
@given(seed=st.integers(0, 2**32), name=st.sampled_from(["rome-nps1", "genoa-nps4", "naples-nps4", "snc"]))
def test_slots_do_not_depend_on_numbers(seed: int, name: str) -> None:
    fake = MACHINES[name]
    numbers = list(range(len(fake.rows)))
    random.Random(seed).shuffle(numbers)
    a = read(fake)
    b = read(fake.renumbered(numbers.__getitem__))
    slots_a, cpus_a = layout.slots_of(a, range(len(numbers)))
    slots_b, cpus_b = layout.slots_of(b, range(len(numbers)))
    np.testing.assert_array_equal(slots_a, slots_b)
    assert cpus_b == [numbers[cpu] for cpu in cpus_a]


@pytest.mark.parametrize("part, harvested", [("EPYC 7402", True), ("EPYC 7502", False), ("EPYC 7742", False)])
def test_cores_fused_off_are_told(part: str, harvested: bool) -> None:
    """Of 3, 4 and 4 cores in each CCX; that the 7502 has half the CCDs says nothing of ranks."""
    labels = from_part(part, 2)
    slots, _ = layout.slots_of(labels, [cpu.cpu for cpu in labels.cpus])
    assert layout.layout_of(labels, slots, np.zeros((0, 2), dtype=np.int64)).harvested is harvested


def test_cores_without_an_l3_are_in_no_ccx_of_the_others() -> None:
    """The low-power cores of a hybrid part share an L2 alone; its number is no number of an L3."""
    cpus = [Cpu(c, socket=0, ccx=3, cluster=c, core=c, thread=0) for c in range(2)]
    cpus += [Cpu(c, socket=0, cluster=c - 2, core=c, thread=0) for c in (2, 3)]
    slots, _ = layout.slots_of(Topology(Machine(), tuple(cpus)), range(4))
    pairs = np.stack(np.triu_indices(4, 1), axis=1)
    same = {
        tuple(pair) for pair, kind in zip(pairs.tolist(), layout.pair_classes(slots, pairs), strict=True) if kind == 1
    }
    assert same == {(0, 1)}
    assert slots[:, layout.CCX].tolist() == [3, 3, 4, 5]


def test_a_slow_core_of_a_harvested_part_is_named_by_its_cpu() -> None:
    """Other cores are fused off on each chip: cores of a CCX are compared as sorted profiles."""
    spread = Variation(core=0.002)
    made = fleet(Plan(from_part("EPYC 7402", 2), nodes=16, jobs=2, spread=spread, defects=("node003: core 7 +6%",)))
    assert made.pairs[0].layout.harvested
    nodes = judge(made).verdict.nodes
    assert {name for name, node in nodes.items() if node.findings} == {"node003"}
    assert [(finding.component.term, finding.component.where["cpu"]) for finding in nodes["node003"].findings] == [
        ("core", 7)
    ]


# --- what the columns hold ---

#: An EPYC that the table of parts does not know: nothing but its NUMA nodes shows quadrants or halves.
NEW_EPYC = epyc(machines.GENOA, sockets=1, threads=1, nps=4).but(model=0x5F, name="AMD EPYC of tomorrow")
CLUSTERS = arm(32, cluster=4).with_rows(lambda row: replace(row, ccx=None))


def verdict_of(fake: Fake, *defects: str, nodes: int = 6) -> Verdict:
    return judge(fleet(Plan(read(fake), nodes=nodes, runs=6, defects=defects))).verdict


@pytest.mark.parametrize(
    ("fake", "levels", "classes"),
    [
        (epyc(machines.GENOA, nps=2), ("socket", "quadrant", "ccd", "ccx"), ["same CCX", "same quadrant"]),
        (NEW_EPYC, ("socket", "numa", "ccd", "ccx"), ["same CCX", "same NUMA node"]),
        (xeon(snc=2), ("socket", "numa", "ccd", "ccx"), ["same NUMA node"]),
        (CLUSTERS, ("socket", "quadrant", "ccd", "cluster"), ["same cluster"]),
        (arm(32, cluster=4), ("socket", "quadrant", "ccd", "ccx"), []),
    ],
    ids=["nps2", "unknown-epyc", "snc", "clusters", "clusters-in-an-l3"],
)
def test_columns_are_called_by_what_they_hold(fake: Fake, levels: tuple[str, ...], classes: list[str]) -> None:
    """Quadrants and CCXs where they are known; else NUMA nodes and clusters, which are never called those."""
    labels = read(fake)
    assert layout.levels_of(labels) == levels
    made = fleet(Plan(labels, nodes=1, runs=1, passes=1)).pairs[0].pair_layout
    assert made.levels == levels
    assert {made.class_names[number] for number in made.classes} - {"same core", "same socket", "other socket"} == set(
        classes
    )


def test_an_l3_over_several_numa_nodes_is_no_part_of_them() -> None:
    """Linux lists all CPUs of a socket as sharers where it is split into NUMA nodes; second threads share a core."""
    labels = read(xeon(snc=2, threads=2))
    made = fleet(Plan(labels, nodes=1, runs=1, passes=1)).pairs[0].pair_layout
    assert made.slots[:, layout.CCX].max() == -1
    assert (made.classes == 0).sum() == 32


@pytest.mark.parametrize(
    ("fake", "defect", "where"),
    [
        (NEW_EPYC, "link q0-q2 +10%", {"numa": 0, "to_numa": 2}),
        (NEW_EPYC, "ccd 3 to-others +10%", {"ccx": 3, "across": 0}),
        (xeon(snc=4, threads=1), "link q0-q2 +10%", {"numa": 0, "to_numa": 2}),
        (CLUSTERS, "ccd 3 to-others +10%", {"cluster": 3, "across": 0}),
    ],
)
def test_a_slow_part_is_called_what_it_is(fake: Fake, defect: str, where: dict[str, int]) -> None:
    nodes = verdict_of(fake, f"node003: {defect}").nodes
    assert [finding.component.where for finding in nodes["node003"].findings] == [where]
    assert {name for name, node in nodes.items() if node.findings} == {"node003"}
    assert not {"quadrant", "ccd"} & {
        key.removeprefix("to_")
        for finding in nodes["node003"].findings
        for part in finding.finer
        for key in part.component.where
    }


def test_a_core_inside_its_cluster_is_said_to_be() -> None:
    (finding,) = verdict_of(arm(32), "node003: core 5 +12%").nodes["node003"].findings
    assert finding.component.where == {"core": 5, "cpu": 5, "inside": "ccx"}
    (finding,) = verdict_of(CLUSTERS, "node003: core 5 +15%").nodes["node003"].findings
    insides = {part.component.where.get("inside") for part in finding.finer if part.component.term == "core"}
    assert insides <= {None, "cluster"}


def test_the_packed_fleet_keeps_what_its_columns_hold(tmp_path: Path) -> None:
    packed.write(fleet(Plan(read(NEW_EPYC), nodes=2, runs=1, passes=1)), tmp_path)
    assert packed.read(tmp_path).pairs[0].layout.levels == ("socket", "numa", "ccd", "ccx")


# --- kinds of cores ---

PERFORMANCE, EFFICIENCY = 8, 8


def alder_lake() -> Topology:
    """As Linux shows a 12900K: eight cores with two threads, each with an L2 of its own, and two clusters of four."""
    cpus = [
        Cpu(n, socket=0, ccx=0, cluster=n // 2, core=n // 2, thread=n % 2, kind="performance")
        for n in range(2 * PERFORMANCE)
    ]
    cpus += [
        Cpu(16 + n, socket=0, ccx=0, cluster=8 + n // 4, core=8 + n, thread=0, kind="efficiency")
        for n in range(EFFICIENCY)
    ]
    return Topology(Machine(), tuple(cpus))


def test_kinds_of_cores_are_classes_of_their_own() -> None:
    at, _ = measured_places(alder_lake())
    count = {at.class_names[number]: int((at.classes == number).sum()) for number in np.unique(at.classes)}
    assert count == {
        "same core": 8,
        "same cluster": 12,
        "same socket, performance cores": 28,
        "same socket, efficiency cores": 16,
        "same socket, performance and efficiency cores": 64,
    }


def test_the_judge_has_a_median_of_each_kind_and_names_a_slow_core_of_each() -> None:
    plan = Plan(alder_lake(), nodes=8, jobs=2, runs=3, defects=("node002: core 3 +9%", "node005: core 12 +9%"))
    nodes = judge(fleet(plan)).verdict.nodes
    assert "same socket, performance and efficiency cores" in {figure.name for figure in nodes["node000"].classes}
    assert not nodes["node000"].findings
    found = {
        name: {finding.component.where.get("core") for finding in nodes[name].counted}
        for name in ("node002", "node005")
    }
    assert found == {"node002": {3}, "node005": {12}}


def test_a_packed_fleet_keeps_kinds(tmp_path: Path) -> None:
    packed.write(fleet(Plan(alder_lake(), nodes=2)), tmp_path)
    (quantity, *_) = packed.read(tmp_path).pairs
    assert "same socket, efficiency cores" in quantity.pair_layout.class_names


def test_a_contract_names_the_classes_that_pairs_can_have() -> None:
    named = {f"same {level_name(level)}" for level in ("cluster", "numa")} | {*layout.CLASSES[: layout.ALL_PAIRS]}
    assert set(get_args(PairClass)) == named


def test_the_finest_level_labels_every_cpu() -> None:
    """Columns are socket, quadrant, CCD, CCX, rank and thread; a layout says what they hold."""
    labeled = [[0, 0, core // 2, core // 2, core, 0] for core in range(4)]
    of_clusters = layout.Layout(np.array(labeled), levels=("socket", "quadrant", "ccd", "cluster"))
    assert of_clusters.finest == "cluster"
    labeled[3][3] = -1
    assert layout.Layout(np.array(labeled)).finest == "quadrant"
    assert layout.Layout(np.full((4, 6), -1)).finest == ""
