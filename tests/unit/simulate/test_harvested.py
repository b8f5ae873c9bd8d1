"""Parts with cores fused off: simulated as wide as published ones, the same where healthy, and a slow core found."""

from __future__ import annotations

import numpy as np
import pytest

from nodeprint.judge.judge import judge
from nodeprint.judge.outcome import Outcome
from nodeprint.judge.verdict import Verdict
from nodeprint.machine.topology.presets import from_part
from nodeprint.simulate import Plan, fleet
from nodeprint.simulate.plan import planned_nodes

#: Of published machines, the standard deviation of the means inside their CCXs, ns.
PUBLISHED = {"EPYC 9454": 0.43, "EPYC 74F3": 0.78}


def judged(part: str, *defects: str, sockets: int = 1, seed: int = 1) -> Verdict:
    """The verdict of eight nodes by their pairs."""
    plan = Plan(from_part(part, sockets, smt=False), nodes=8, runs=6, seed=seed, defects=defects)
    return judge(fleet(plan)).verdict


@pytest.mark.parametrize("part", PUBLISHED)
def test_ccxs_differ_as_much_as_on_published_parts(part: str) -> None:
    means = []
    for node in planned_nodes(Plan(from_part(part, 2, smt=False), nodes=24)):
        inside = node.path.in_ccx & ~node.path.in_core
        of_ccx = [node.truth[0][inside & (node.path.ccx == ccx)].mean() for ccx in range(node.path.n_ccx)]
        means.append(np.array(of_ccx) - np.mean(of_ccx))
    assert np.std(means) == pytest.approx(PUBLISHED[part], rel=0.1)
    assert np.median(np.abs(means).max(axis=1)) < 1.45  # of one machine, published: at most 1.26


@pytest.mark.parametrize("part", PUBLISHED)
def test_healthy_nodes_are_the_same(part: str) -> None:
    """At least four of five, and nobody is accused."""
    nodes = [node for seed in (1, 2, 3) for node in judged(part, seed=seed).nodes.values()]
    assert sum(node.outcome is Outcome.SAME for node in nodes) >= 0.8 * len(nodes)
    assert not any(node.findings for node in nodes)


@pytest.mark.parametrize("part", PUBLISHED)
def test_a_slow_core_is_found_in_its_pairs_to_its_socket_and_across(part: str) -> None:
    nodes = judged(part, "node003: core 11 +8%", sockets=2).nodes
    (finding,) = nodes["node003"].findings
    families = {finding.component.component_type, *(finer.component.component_type for finer in finding.finer)}
    assert (finding.component.term, finding.component.where["core"]) == ("core", 11)
    assert families == {"core-near", "core-far"}
    assert finding.effect == pytest.approx(0.08, abs=0.01)
    assert not any(node.findings for name, node in nodes.items() if name != "node003")


def test_a_rank_inside_a_harvested_ccx_is_no_place() -> None:
    """Which cores are left differs from chip to chip: a core inside its CCX has no peer."""
    terms = judge(fleet(Plan(from_part("EPYC 9454", 1, smt=False), nodes=2, runs=2))).tables[0].matrix.terms
    assert terms.layout.harvested
    assert not len(terms.indices("core-in")) and len(terms.indices("ccx")) == 8
