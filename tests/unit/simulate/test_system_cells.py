"""Pages, faults, wake-ups and barriers of a simulated fleet: none is accused but nodes with planted defects."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from nodeprint.data.store.packed import PackedFleet
from nodeprint.errors import NodeprintError
from nodeprint.judge.judge import judge
from nodeprint.machine.topology.presets import from_part
from nodeprint.report import text
from nodeprint.report.pages import pictures
from nodeprint.report.pages.judged_campaign import Campaign
from nodeprint.simulate import Plan, fleet, system_cells

ROME = from_part("EPYC 7742", 2, smt=False)


@cache
def simulated(*defects: str) -> PackedFleet:
    return fleet(Plan(ROME, nodes=6, jobs=1, passes=1, runs=3, cells=True, defects=defects))


def test_every_measurement_is_there() -> None:
    names = {quantity.measurement for quantity in simulated().quantities}
    assert set(system_cells.MEASUREMENTS) <= names


def test_barriers_are_of_every_ccx_socket_and_the_machine() -> None:
    (barriers,) = (q for q in simulated().quantities if q.measurement == "barrier-all")
    measured = np.isfinite(barriers.values).any(axis=(0, 1))
    scopes = [barriers.names["scope"][at] for at in barriers.places["scope"][measured].tolist()]
    assert {scope: scopes.count(scope) for scope in set(scopes)} == {"ccx": 2 * 32, "socket": 2 * 2, "machine": 2}


def test_held_lines_are_of_one_pair_for_each_closeness() -> None:
    """A 7742 has two CCXs on a die; its L3 is the nearest place, and the other socket the farthest."""
    (held,) = (q for q in simulated().quantities if q.measurement == "coherence-place")
    measured = np.isfinite(held.values).any(axis=(0, 1))
    found = {name: held.places[name][measured] for name in ("b", "closeness", "state", "place")}
    words = [held.names["closeness"][at] for at in found["closeness"].tolist()]
    assert {word: words.count(word) for word in set(words)} == dict.fromkeys(
        ("same_l3", "same_die", "same_socket", "other_socket"), 4 * 3
    )
    assert len(set(zip(found["b"].tolist(), words, strict=True))) == 4
    level = dict(zip(words, np.nanmean(held.values, axis=(0, 1))[measured].tolist(), strict=True))
    assert level["same_l3"] < level["same_die"] < level["other_socket"]


def test_healthy_nodes_have_no_finding_of_them() -> None:
    made = simulated()
    for node in judge(replace(made, quantities=made.others)).verdict.nodes.values():
        assert not [f for f in node.findings if f.measurement in system_cells.MEASUREMENTS]


@pytest.mark.parametrize(
    ("defect", "measurement", "finding_id", "where"),
    [
        ("fragmented node 1 40%", "fault-huge", "huge-missing", {"memory_node": 1}),
        ("idle-state +200%", "wake-futex", "wake-slow", None),
        ("held-l3 +30%", "coherence-place", "held-latency-slow", {"place": "l3"}),
        ("held-block-l3 -20%", "coherence-stream", "held-bandwidth-slow", {"place": "l3"}),
    ],
)
def test_a_planted_defect_is_named(
    defect: str, measurement: str, finding_id: str, where: dict[str, int | str] | None
) -> None:
    made = simulated(f"node003: {defect}")
    verdict = judge(replace(made, quantities=made.others)).verdict
    found = {name: [f for f in node.findings if f.measurement == measurement] for name, node in verdict.nodes.items()}
    assert {name for name, findings in found.items() if findings} == {"node003"}
    assert {finding.id for finding in found["node003"]} == {finding_id}
    sentences = " ".join(map(text.finding_sentence, found["node003"]))
    missing = "Memory of NUMA node 1: huge pages are missing for 40% of it, 40.0 percentage points more than on its"
    assert (missing in sentences) == (finding_id == "huge-missing"), sentences
    assert "of its time" not in sentences
    if where is not None:
        assert found["node003"][0].component.where == where


def test_a_node_that_is_not_there_has_no_fragments() -> None:
    with pytest.raises(NodeprintError, match="names NUMA node 7"):
        simulated("node003: fragmented node 7 40%")


def test_their_pages_have_a_strip_for_each_word() -> None:
    """And huge pages by memory node alone no grid of CPUs x memory."""
    made = simulated("node003: idle-state +200%")
    campaign = Campaign(judge(replace(made, quantities=made.others)).verdict, made)
    shown = list(pictures.cells(campaign, "node003"))
    strips = " ".join(re.sub("<[^>]+>", " ", picture.svg) for picture in shown if picture.name.startswith("by-cpu"))
    strips = " ".join(strips.split())
    for words in (
        "rate of page faults, small pages",
        "rate of page faults, transparent huge pages",
        "wake-up time, deep sleep",
        "time of a barrier, CCX, tree",
    ):
        assert words in strips
    assert not [picture.name for picture in shown if picture.name.startswith("fault-huge")]
