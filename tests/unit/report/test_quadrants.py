"""Quadrant by quadrant: what is planted is said, and where the intervals do not allow it nothing is."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from nodeprint.cli.app import app
from nodeprint.data.places.layout import CCX
from nodeprint.data.store.packed import PackedFleet
from nodeprint.judge import judge
from nodeprint.machine.topology.presets import preset
from nodeprint.report.figures.node_levels import levels
from nodeprint.report.pages import node as node_pages
from nodeprint.report.pages.blocks import Bullets
from nodeprint.report.pages.judged_campaign import Campaign
from nodeprint.report.text.structure_sentences import quadrant_blocks
from nodeprint.report.text.structure_sentences import quadrant_sentences as sentences
from nodeprint.report.text.structure_sentences import quadrants_of_node as of_node
from nodeprint.simulate import Plan, Variation, fleet
from nodeprint.structure.printed_structure import quadrant_table as table
from nodeprint.structure.quadrants import QuadrantBlocks, dies, of_pairs

PAIRS = tuple((a, b) for a in range(8) for b in range(a, 8))
#: The picture that LinkTest of Forschungszentrum Juelich has of two Rome, us: own quadrant, partner, others, and what
#: two quadrants take longer towards the other socket.
OWN, PARTNER, OTHERS, FURTHER = 78e3, 74e3, 84e3, 10e3


def blocks(values: dict[tuple[int, int], float], runs: int = 6, noise: float = 0.3, seed: int = 1) -> QuadrantBlocks:
    """Two sockets of four quadrants with runs of their own level."""
    rng = np.random.default_rng(seed)
    row = np.array([values[pair] for pair in PAIRS])
    noisy = row + rng.normal(0, 2.0, (runs, 1)) + rng.normal(0, noise, (runs, len(PAIRS)))
    return QuadrantBlocks(PAIRS, tuple((a // 4, b // 4) for a, b in PAIRS), noisy)


def hops(slow: float = 0.0) -> dict[tuple[int, int], float]:
    """Own quadrants 110 ns, others 112, sockets 90 apart; path 0 to 1 is `slow` ns slower."""
    values = {(a, b): 110.0 if a == b else 112.0 + 90.0 * (a // 4 != b // 4) for a, b in PAIRS}
    return values | {(0, 1): values[0, 1] + slow}


def messages() -> dict[tuple[int, int], float]:
    """As published; quadrants 2 and 3 of each socket are further from the other one."""
    inside = {(a, b): OWN if a == b else PARTNER if a // 2 == b // 2 else OTHERS for a, b in PAIRS}
    far = {(a, b): 140e3 + FURTHER * ((a % 4 > 1) + (b % 4 > 1)) for a, b in PAIRS if a // 4 != b // 4}
    return inside | far


def test_partner_others_and_far_quadrants_are_named() -> None:
    measured = blocks(messages(), runs=2, noise=100.0)
    words = " ".join(sentences(measured))
    assert "to its partner (0 and 1, 2 and 3) 74 µs" in words
    assert "Socket 0 towards other sockets: quadrants 2 and 3 are" in words
    assert "Socket 1 towards other sockets: quadrants 6 and 7 are" in words
    (die, _) = dies(measured)
    assert [round(d.ns / 1e3) for d in die.inside] == [-4, 6, 10]
    assert die.outside is not None
    assert abs(die.outside.ns - FURTHER) < die.outside.half_ns < 1e3


def test_where_nothing_differs_it_is_said_how_much_may() -> None:
    values = {pair: 78e3 if pair[0] // 4 == pair[1] // 4 else 140e3 for pair in PAIRS}
    words = " ".join(sentences(blocks(values, runs=2, noise=100.0)))
    assert "partner" not in words
    assert "Inside a quadrant and to other quadrants: no difference beyond" in words
    assert "Between its quadrants no difference beyond" in words


def test_slow_path_is_named_and_is_no_partner() -> None:
    words = sentences(blocks(hops(slow=8.0)))
    assert "The slowest of its paths: 0 to 1 (120 ns)." in words[0]
    assert "partner" not in " ".join(words)
    assert "paths" not in words[2]


@pytest.mark.parametrize("seed", range(5))
def test_healthy_twins_name_no_path(seed: int) -> None:
    words = " ".join(sentences(blocks(hops(), seed=seed)))
    assert "of its paths" not in words
    assert "partner" not in words
    assert re.search(r"latency is (89\.9|90|90\.1) ns higher", words)


def test_intervals_hold_at_once() -> None:
    """In 95 of 100 nodes or more every interval has the truth; own, partner and others are 0 ns apart."""
    flat = dict.fromkeys(PAIRS, 100.0)
    missed = [any(row.apart for row in table(blocks(flat, runs=3, noise=1.0, seed=seed))) for seed in range(200)]
    assert sum(missed) <= 10 + 2 * 3


def test_steps_without_a_gap_name_nothing() -> None:
    steps = {(0, 1): 0.0, (1, 2): 0.3, (2, 3): 0.6, (0, 3): 0.9, (0, 2): 1.2, (1, 3): 1.5}
    exact = blocks({pair: ns + steps.get(pair, 0.0) for pair, ns in hops().items()}, noise=0.0)
    of_runs = np.tile(np.repeat([-0.3, 0.3], 3)[:, None], (1, len(PAIRS)))  # whose mean is 0
    noise = np.random.default_rng(1).permuted(of_runs, axis=0)
    (die, _) = dies(QuadrantBlocks(exact.ends, exact.sockets, exact.values + noise))
    assert die.fastest == die.slowest == die.partners == ()


def test_one_run_says_figures_and_no_difference() -> None:
    words = sentences(blocks(hops(slow=50.0), runs=1))
    assert words[-1] == "With one run it is unknown whether these differ."
    assert "higher than" not in " ".join(words)
    assert all(row.low_ns is None for row in table(blocks(hops(), runs=1)))


def test_pairs_of_one_ccx_do_not_count() -> None:
    """They do not cross the I/O die: were they counted, quadrant 0 would be far faster inside."""
    slots = np.array([[0, q, q, 2 * q + x, core, 0] for q in range(2) for x in range(2) for core in range(2)])
    pairs = np.array([(a, b) for a in range(8) for b in range(a + 1, 8)])
    same_ccx = slots[pairs[:, 0], CCX] == slots[pairs[:, 1], CCX]
    values = np.where(same_ccx, 20.0, 100.0)[None].repeat(2, axis=0)
    found = of_pairs(values, slots, pairs)
    assert found is not None
    assert found.medians.tolist() == [100.0, 100.0, 100.0]


# --- simulated: from the draw to the page ---


def rome(linktest: bool = True, seed: int = 1, nodes: int = 1) -> PackedFleet:
    return fleet(Plan(preset("rome-2x64"), nodes, 1, 2, 3, seed, Variation(), (), cells=False, linktest=linktest))


def test_published_picture_is_drawn_and_read_back_on_the_page() -> None:
    simulated = rome()
    campaign = Campaign(judge.judge(simulated).verdict, simulated)
    bullets = [
        item
        for section in node_pages.page(campaign, "node000").sections
        for block in section.blocks
        if isinstance(block, Bullets)
        for item in block.items
    ]
    words = " ".join(str(item) for item in bullets)
    assert "to its partner (0 and 1, 2 and 3) 7" in words
    assert "Socket 0 towards other sockets: quadrants 2 and 3 are" in words
    assert "Socket 1 towards other sockets: quadrants 6 and 7 are" in words


def test_simulated_levels_are_the_published_ones() -> None:
    simulated = rome()
    measured = quadrant_blocks(levels(simulated, "linktest-node", "node000"), "node000")
    assert measured is not None
    (die, _) = dies(measured)
    level = {d.second: d.second_ns for d in die.inside} | {d.first: d.first_ns for d in die.inside}
    for name, published in (("own", OWN), ("partner", PARTNER), ("others", OTHERS)):
        assert level[name] == pytest.approx(published, rel=0.01)
    assert die.outside is not None
    assert die.outside.ns == pytest.approx(FURTHER, rel=0.1)


@pytest.mark.parametrize("seed", range(1, 4))
def test_simulated_twins_name_no_different_quadrants(seed: int) -> None:
    twins = rome(seed=seed, nodes=3)
    for measurement, far in (("linktest-node", {(2, 3), (6, 7)}), ("coherence-cas", None)):
        measured = [quadrant_blocks(levels(twins, measurement, node.name), node.name) for node in twins.nodes]
        of_nodes = [dies(of_node) for of_node in measured if of_node is not None]
        assert len({tuple(die.partners for die in of_sockets) for of_sockets in of_nodes}) == 1
        assert far is None or {die.far for of_sockets in of_nodes for die in of_sockets} == far


def test_structure_says_it_of_a_simulated_node(tmp_path: Path) -> None:
    run = CliRunner()
    campaign = tmp_path / "rome"
    plan = ["simulate", "rome-2x64", "--nodes", "1", "--passes", "1", "--out", str(campaign)]
    assert run.invoke(app, plan).exit_code == 0
    node = str(campaign / "nodes" / "node000")
    assert "Socket 1: inside a quadrant 11" in run.invoke(app, ["structure", node]).stdout
    rows = json.loads(run.invoke(app, ["structure", node, "--json"]).stdout)["quadrants"]
    assert {row["socket"] for row in rows} == {0, 1}
    assert all(row["low_ns"] <= row["difference_ns"] <= row["high_ns"] for row in rows)


def test_machine_without_quadrants_says_nothing() -> None:
    simulated = fleet(Plan(preset("icelake-2x40"), 1, 1, 2, 1, 1, Variation(), (), cells=False))
    assert of_node(levels(simulated, "coherence-cas", "node000"), "node000") == []
