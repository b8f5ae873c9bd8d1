"""Bandwidth by read:write ratio of a simulated fleet: the cells of the kernel, and a CCD's port that is named."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from nodeprint.data.places.measured import Measured
from nodeprint.judge.judge import judge
from nodeprint.judge.verdict import Finding
from nodeprint.machine.topology.presets import from_part
from nodeprint.report import names, text
from nodeprint.simulate import Plan, fleet

#: By NUMA nodes per socket the cells that the kernel has of a ratio: a core and all of each of 16 CCDs, NUMA nodes, and
#: the machine (tests/kernels/test_bandwidth.py).
RUNGS = {1: 2 * 16 + 2 + 1, 4: 2 * 16 + 8 + 1}


def ladder(part: str, nps: int, *defects: str) -> tuple[Measured, dict[str, list[Finding]]]:
    """The ladder alone of six nodes, and its findings by node."""
    topology = from_part(part, 2, smt=False, nps=nps)
    made = fleet(Plan(topology, nodes=6, jobs=1, passes=1, runs=3, cells=True, defects=defects))
    (quantity,) = (quantity for quantity in made.quantities if quantity.measurement == "bandwidth-ladder")
    nodes = judge(replace(made, quantities=(quantity,))).verdict.nodes
    return quantity, {name: list(node.findings) for name, node in nodes.items() if node.findings}


@pytest.mark.parametrize("part", ["EPYC 7742", "EPYC 7763"])
@pytest.mark.parametrize("nps", RUNGS)
def test_a_healthy_ladder_has_the_cells_of_the_kernel_and_no_finding(part: str, nps: int) -> None:
    quantity, findings = ladder(part, nps)
    assert int(np.isfinite(quantity.values).all(axis=(0, 1)).sum()) == 5 * RUNGS[nps]
    assert not findings


@pytest.mark.parametrize("part", ["EPYC 7742", "EPYC 7763"])
def test_a_narrow_port_of_a_ccd_is_named(part: str) -> None:
    """One core does not fill it, so that all of the CCD's cores are lower and their CCD is the cause."""
    _, findings = ladder(part, 1, "node003: ccd-port 3 -12%")
    ((name, (finding,)),) = findings.items()
    assert (name, finding.id, finding.remedy) == ("node003", "bandwidth-slow", "ccd")
    assert finding.component.where == {"ccd": 3, "scope": "ccd"}
    assert finding.consistent_with[0] == "ccd-port"
    assert finding.effect == pytest.approx(-0.12, abs=0.01)
    assert "read:write ratio of CCD 3 is" in text.finding_sentence(finding)


def test_a_slow_channel_is_that_of_its_numa_node() -> None:
    _, findings = ladder("EPYC 7763", 4, "node003: memory-channel node 1 -25%")
    ((name, (finding,)),) = findings.items()
    assert (name, finding.component.where) == ("node003", {"cpu_node": 1, "scope": "numa"})


def test_rows_name_their_ratio() -> None:
    assert names.row("numa, read3_write1") == "NUMA node, 3:1 reads:writes"
