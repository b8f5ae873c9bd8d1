"""Memory by the cells of the machine: the way of one NUMA node, or of one CCD, to the memory of another."""

from __future__ import annotations

from dataclasses import replace

import pytest

from nodeprint.errors import NodeprintError
from nodeprint.judge.judge import judge
from nodeprint.judge.outcome import Certainty, Outcome
from nodeprint.judge.verdict import Verdict
from nodeprint.machine.topology.presets import from_part
from nodeprint.simulate import Plan, fleet

#: Eight NUMA nodes: each quadrant has memory of its own.
NPS4 = from_part("EPYC 7742", 2, smt=False, nps=4)


def judged(*defects: str, jobs: int = 1) -> Verdict:
    """The verdict of six nodes by everything but pairs."""
    made = fleet(Plan(NPS4, nodes=6, jobs=jobs, passes=1, runs=3, cells=True, defects=defects))
    return judge(replace(made, quantities=made.others)).verdict


@pytest.mark.slow
@pytest.mark.parametrize(
    ("defect", "where", "effect"),
    [
        ("memory node1-to-node3 +20%", {"cpu_node": 1, "memory_node": 3}, 0.20),
        ("memory node1-to-node3 +30%", {"cpu_node": 1, "memory_node": 3}, 0.30),
        ("memory ccd2-to-node6 +20%", {"ccd": 2, "memory_node": 6}, 0.20),
    ],
)
def test_a_slow_way_to_one_memory_is_found_and_named(defect: str, where: dict[str, int], effect: float) -> None:
    nodes = judged(f"node003: {defect}").nodes
    (finding,) = nodes["node003"].findings
    assert (finding.id, finding.measurement, finding.component.where) == ("numa-slow", "chase-latency", where)
    assert finding.effect == pytest.approx(effect, abs=0.03)
    assert nodes["node003"].outcome is Outcome.SUSPECT
    assert {node.outcome for name, node in nodes.items() if name != "node003"} == {Outcome.SAME}


def test_a_slow_way_is_confirmed_by_a_second_job() -> None:
    node = judged("node003: memory node1-to-node3 +20%", jobs=2).nodes["node003"]
    assert node.outcome is Outcome.DEVIATES
    assert [finding.state for finding in node.findings] == [Certainty.CONFIRMED]


def test_ways_of_two_nodes_to_one_memory_are_two_findings() -> None:
    node = judged("node003: memory node1-to-node3 +20%", "node003: memory node6-to-node3 +20%").nodes["node003"]
    assert sorted(finding.component.where["cpu_node"] for finding in node.findings) == [1, 6]


def test_a_slow_way_below_its_tolerance_is_never_the_same() -> None:
    assert judged("node003: memory node1-to-node3 +6%").nodes["node003"].outcome is not Outcome.SAME


@pytest.mark.parametrize(
    "defect", ["memory node1-to-node9 +20%", "memory node9-to-node1 +20%", "memory ccd99-to-node1 +2%"]
)
def test_a_way_that_is_not_there_is_refused(defect: str) -> None:
    with pytest.raises(NodeprintError, match=r"a defect of node003 names (NUMA node 9|CCD 99)"):
        judged(f"node003: {defect}")
