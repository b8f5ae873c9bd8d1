"""The component that a finding names: the coarsest one that explains the rest."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pytest

from nodeprint.data.places.measured import Measured
from nodeprint.data.store.packed import PackedFleet
from nodeprint.judge import sets
from nodeprint.judge.judge import judge
from nodeprint.judge.pairs import build
from nodeprint.machine.topology.presets import preset
from nodeprint.simulate.machines import measured_places
from tests.support.fleets import judged, made, times

ROME = "rome-2x64"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("machine", "text", "term", "where"),
    [
        ("naples-2x32", "core 17 +10%", "core", {"core": 17}),
        ("naples-2x32", "core-clock 17 -40%", "core", {"core": 17}),
        ("naples-2x32", "ccd 3 +7%", "ccd", {"ccd": 3}),
        ("naples-2x32", "ccd 3 to-others +7%", "ccd", {"ccd": 3}),
        ("naples-2x32", "socket 1 +6%", "socket", {"socket": 1}),
        ("naples-2x32", "socket-link +6%", "class", {"to_socket": 1}),
        ("naples-2x32", "fabric +6%", "class", {"beyond_class": 1}),
        ("naples-2x32", "global +6%", "node", {}),
        (ROME, "link q0-q2 +7%", "link", {"quadrant": 0, "to_quadrant": 2}),
    ],
)
def test_a_planted_part_is_the_only_finding(machine: str, text: str, term: str, where: dict[str, int]) -> None:
    findings = judged(f"node001: {text}", machine=machine, jobs=1).verdict.nodes["node001"].findings
    assert [finding.component.term for finding in findings] == [term]
    assert where.items() <= dict(findings[0].component.where).items()


def test_finer_parts_are_listed_under_the_finding() -> None:
    (finding,) = judged("node001: global +6%").verdict.nodes["node001"].findings
    assert finding.finer
    assert all(finer.effect > 0 for finer in finding.finer)


def test_two_causes_are_two_findings() -> None:
    findings = judged("node001: core 17 +10%", "node001: ccd 6 +8%").verdict.nodes["node001"].findings
    assert {finding.component.term for finding in findings} == {"core", "ccd"}


def test_faster_is_found_and_no_fault() -> None:
    (finding,) = judged("node001: core 17 -10%").verdict.nodes["node001"].findings
    assert (finding.id, finding.worse) == ("core-fast", False)


@pytest.mark.slow
@pytest.mark.parametrize(("machine", "jobs"), [("naples-2x32", 2), (ROME, 1)])
def test_a_memory_channel_is_one_finding(machine: str, jobs: int) -> None:
    campaign = judged("node001: memory-channel node 1 -12%", cells=True, machine=machine, jobs=jobs)
    (finding,) = campaign.verdict.nodes["node001"].findings
    assert (finding.component.term, finding.component.where["memory_node"]) == ("bandwidth", 1)
    assert finding.consistent_with == ("memory-channel", "memory-speed")
    assert finding.effect == pytest.approx(-0.12, abs=0.02)


def test_memory_that_is_slow_everywhere_is_one_finding_of_no_memory_node() -> None:
    slow = [f"node001: memory-channel node {number} -12%" for number in range(2)]
    (finding,) = judged(*slow, cells=True).verdict.nodes["node001"].findings
    assert finding.component.term == "bandwidth"
    assert "memory_node" not in finding.component.where


def test_a_cell_of_memory_is_found_at_its_place() -> None:
    campaign = made(cells=True)
    chase = next(q for q in campaign.quantities if q.measurement == "chase-latency")
    ccd = chase.layout.slots[chase.places["cpu"], 2]
    cell = (ccd == 2) & (chase.places["memory_node"] == 1)
    slow = times(campaign, "chase-latency", lambda node, job: 1 + 0.2 * cell * (node == 1))
    (finding,) = judge(slow).verdict.nodes["node001"].findings
    assert (finding.component.term, dict(finding.component.where)) == ("numa", {"ccd": 2, "memory_node": 1})
    assert finding.effect == pytest.approx(0.2, abs=0.02)


def shifted(quantity: Measured, component: str) -> npt.NDArray[np.bool_]:
    """The cells of a part of the machine: all of it, or the first that has the label."""
    values = sets.labels(quantity).get(component, [None] * quantity.size)
    first = min((value for value in values if value is not None), key=str, default=None)
    return np.array([component == "whole" or (value is not None and value == first) for value in values])


def lowered(fleet: PackedFleet, quantity: Measured, share: npt.NDArray[np.floating]) -> PackedFleet:
    """The fleet with this quantity alone, which is so much lower in each cell of node002."""
    alone = replace(fleet, quantities=(quantity,))
    return times(alone, quantity.measurement, lambda node, job: 1 - share * (node == 2))


#: By measurement the tolerance of its cells, and the components whose shift is planted.
_SHIFTS = {
    "clock-together": (0.02, ("whole", "socket", "ccd", "cpu")),
    "bandwidth-ccx": (0.05, ("whole", "socket", "ccd")),
    "bandwidth-nodes": (0.05, ("whole", "socket")),
    "load-together": (0.10, ("whole", "socket", "ccd")),
    "chase-latency": (-0.05, ("whole", "socket", "ccd", "cpu")),
}


@pytest.mark.slow
@pytest.mark.parametrize("times_tolerance", [1.3, 2.5])
@pytest.mark.parametrize("measurement", _SHIFTS)
def test_the_coarsest_part_that_explains_is_named_though_a_finer_one_crossed_first(
    measurement: str, times_tolerance: float
) -> None:
    """One finding, of the component that was shifted; at 1.3 times the tolerance often of components inside it alone
    are outside."""
    tolerance, components = _SHIFTS[measurement]
    named = 0
    for seed in (1, 2, 3):
        fleet = made(cells=True, runs=3, seed=seed)
        (quantity,) = (quantity for quantity in fleet.quantities if quantity.measurement == measurement)
        for component in components:
            cells = shifted(quantity, component)
            findings = (
                judge(lowered(fleet, quantity, tolerance * times_tolerance * cells)).verdict.nodes["node002"].findings
            )
            named += len(findings)
            for finding in findings:
                expected = {"whole": set(), "cpu": {"core", "cpu"}, "socket": {"socket"}, "ccd": {"ccd"}}[component]
                where = {"socket" if label == "cpu_node" else label for label in finding.component.where}
                assert where == expected, (component, finding.component)
                assert 0 < len(finding.cells) <= cells.sum(), "those of the stated effect"
            assert len(findings) == 1 or (times_tolerance < 2 and not findings)
    assert named >= (3 if times_tolerance < 2 else 3 * len(components))


def test_a_wider_part_is_not_named_for_one_inside_it() -> None:
    """Three of the four CCDs of a socket, and one core far off."""
    fleet = made(cells=True, runs=3)
    (quantity,) = (quantity for quantity in fleet.quantities if quantity.measurement == "clock-together")
    labels = sets.labels(quantity)
    for cells, expected in (
        (np.isin(np.array(labels["ccd"]), (0, 1, 2)), [{"ccd": 0}, {"ccd": 1}, {"ccd": 2}]),
        (6.0 * np.isin(np.array(labels["cpu"]), (0,)), [{"core": 0, "cpu": 0}]),
    ):
        findings = judge(lowered(fleet, quantity, 0.05 * cells)).verdict.nodes["node002"].findings
        assert sorted((dict(finding.component.where) for finding in findings), key=str) == expected


@pytest.mark.parametrize("name", ["naples-2x32", ROME, "icelake-2x40", "graviton3-64"])
def test_no_two_terms_are_of_the_same_pairs_and_a_contrast_ignores_a_common_shift(name: str) -> None:
    layout, _ = measured_places(preset(name))
    terms = build(layout)
    assert len({term.covers.tobytes() for term in terms.terms}) == len(terms.terms)
    for term, row in zip(terms.terms, terms.contrast, strict=True):
        assert row.sum() == pytest.approx(0.0 if len(term.against) else 1.0, abs=1e-3)
        assert row[term.covers].sum() == pytest.approx(1.0, abs=1e-3)
