"""What disturbed a measurement: values under background load are marked, and a busy fleet says so before all else."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
from msgspec.structs import replace as changed

from nodeprint.data.store.packed import PackedFleet
from nodeprint.judge.judge import judge
from nodeprint.judge.verdict import LOST, Verdict
from nodeprint.report import text
from nodeprint.report.pages import tables
from tests.support import printed
from tests.support.fleets import made

PAIRS = "coherence-cas"


def beside_load(nodes: int, lost: float, noise: float = 0.0) -> PackedFleet:
    """A fleet of which every run of the pairs lost so much of its time, and differs by noise for it."""
    fleet, generator = made(nodes=nodes, cells=True), np.random.default_rng(3)
    seen = tuple({"job": 1, "run": run, "measurement": PAIRS, "lost_share": lost} for run in range(1, 7))
    quantities = []
    for quantity in fleet.quantities:
        factors = np.exp(generator.normal(0, noise, (len(quantity.values), 1, quantity.size)))
        factors *= np.exp(generator.normal(0, noise / 4, (len(quantity.values), 1, 1)))
        values = quantity.values * (factors if quantity.measurement == PAIRS else 1.0)
        quantities.append(quantity.assign(values=values.astype(np.float32)))
    of_fleet = [replace(node, seen=seen) for node in fleet.nodes]
    return replace(fleet, nodes=type(fleet.nodes)(of_fleet), quantities=tuple(quantities))


def judged(nodes: int, lost: float, noise: float = 0.0) -> Verdict:
    """Its verdict."""
    return judge(beside_load(nodes, lost, noise)).verdict


@pytest.mark.parametrize(("lost", "marked"), [(0.87, True), (LOST, True), (0.01, False)])
def test_figures_are_marked_by_the_background_load_of_their_measurement(lost: float, marked: bool) -> None:
    node = judged(1, lost).nodes["node000"]
    assert {figure.measurement for figure in node.classes if figure.is_marked} == ({PAIRS} if marked else set())
    assert not any(cell.is_marked for cell in node.cells)
    lines = printed.medians({"node000": node})
    hops = [line for line in lines if "same core" in line or "same CCX" in line]
    assert hops and all(bool(re.search(r" ns \*", line)) == marked for line in hops)
    assert any("CPU time was lost" in line for line in lines) == marked
    table = tables.class_table(node.classes)
    medians = next(column for column, head in enumerate(table.header) if head.startswith("median"))
    assert all(str(row[medians]).endswith(" *") == marked for row in table.rows)
    assert ("CPU time was lost" in str(table)) == marked


def test_a_busy_fleet_says_so_first_and_the_rest_in_plain_words() -> None:
    verdict = judged(4, 0.87, 0.4)
    first = text.first_line(verdict)
    assert "The nodes were busy: up to 87.0% of the CPU time was taken; one job detects differences only" in first
    assert first.index("busy") < first.index("of 4 nodes")
    lines = printed.summary(verdict).splitlines()[1:]
    assert max(map(len, lines)) < 330
    assert not any("raise" in line or "with 90% power" in line or "runs are needed" in line for line in lines)
    assert any("background load limits the precision" in line and "on an idle system" in line for line in lines)
    assert {str(node.outcome) for node in verdict.nodes.values()} == {"INCONCLUSIVE"}


def test_a_lone_busy_machine_says_so_first() -> None:
    assert "NOT COMPARED (NO PEERS): Node node000 was busy: up to 87.0% of" in text.first_line(judged(1, 0.87))
    assert "busy" not in text.first_line(judged(1, 0.01))
    assert "busy" not in text.first_line(judged(8, 0.87))  # who is the same all the same


def test_the_tolerance_is_no_remedy_for_what_is_not_resolved() -> None:
    """Neither for a difference beyond it, nor where the interval is wider than the tolerance."""
    verdict = judged(4, 0.0, 0.4)
    unresolved = [agreement for node in verdict.nodes.values() for agreement in node.agreements if agreement.remedy]
    assert unresolved
    for agreement in unresolved:
        if (
            abs(agreement.effect) > agreement.tolerance
            or agreement.within - abs(agreement.effect) > agreement.tolerance
        ):
            assert agreement.remedy != "tolerance"
        if abs(agreement.effect) > agreement.tolerance:
            assert agreement.remedy in ("quiet", "job") and "measure it again" in text.agreement_remedy(agreement)


def test_flags_of_cells_mark_their_figures() -> None:
    fleet = made(nodes=1, cells=True)
    quantities = tuple(
        q.assign(disturbed=np.full(len(q.node), 0.5)) if q.measurement == "bandwidth-nodes" else q
        for q in fleet.quantities
    )
    node = judge(replace(fleet, quantities=quantities)).verdict.nodes["node000"]
    assert {cell.measurement for cell in node.cells if cell.is_marked} == {"bandwidth-nodes"}
    assert changed(node.cells[0], disturbed=LOST).is_marked
