"""Sites of all kinds, on dies of the generator that was written apart from nodeprint's: with CCDs and memory, with
memory alone, with CCDs alone."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from nodeprint.machine.topology.presets import from_part
from nodeprint_addons.iodie import analysis, listing, sentences
from nodeprint_addons.iodie.die import Die
from tests.support import routed_dies as apart

GENOA = from_part("EPYC 9654", 1, smt=False)
ROME = from_part("EPYC 7742", 1, smt=False)
EVERY = (0, 1, 2, 3, 4, 5)


def mapped(
    kind: str, ccds_at: Sequence[int], shares: Sequence[float] = (), *, seed: int = 0, runs: int = 2, passes: int = 3
) -> tuple[analysis.NodeDies, apart.Made]:
    """A node whose CCDs are at the sites `ccds_at` of a die, its lines at each by `shares`, with steps of 2 ns."""
    rng = np.random.default_rng([seed, 5])
    made = apart.make(GENOA, kind, 2.0, rng, runs=runs, passes=passes, ccds_at=ccds_at, shares=shares)
    node = analysis.NodeDies("node", "coherence-cas", GENOA, (), True)
    return analysis.analyze(node, made.passes, ()), made


def held(die: Die, made: apart.Made) -> list[bool]:
    """Whether the interval of each way to lines holds its true cost."""
    assert die.sites is not None and die.to_lines is not None
    lines = np.concatenate([made.site_of_line[pass_.attrs["run"], pass_.attrs["pass"]] for pass_ in made.passes])
    ends = [int(made.site_of_ccd[die.sites.of_end == site][0]) for site in range(die.sites.count)]
    memory = {
        int(site): int(np.bincount(lines[die.clusters.label == cluster]).argmax())
        for cluster, site in enumerate(die.sites.of_cluster)
    }
    ways = die.to_lines.between
    between = [made.apart_ns[ends[p], ends[q]] for p, q in ways.ends]
    inside: list[bool] = (np.abs(ways.ns - between) <= ways.half).tolist()
    for site in range(die.sites.count, die.sites.with_memory):
        further, measured = made.apart_ns[ends, memory[site]], die.to_lines.to_site(site)
        inside += (np.abs(measured.ns - (further - further.mean())) <= measured.half).tolist()
    return inside


def test_a_cluster_of_lines_without_a_ccd_is_a_site_of_its_own() -> None:
    """One of six sites has memory alone: the die is the mesh that was planted, and no way is shorter than it is."""
    found, _ = mapped("2x3", (0, 1, 2, 3, 4))
    (die,) = found.dies
    assert die.sites is not None and (die.sites.count, die.sites.with_memory) == (5, 6)
    assert die.geometry is not None and (die.geometry.kind, die.geometry.sites) == ("mesh", 6)
    assert die.geometry.hop_ns == pytest.approx(2, abs=0.3) and die.geometry.pair_hop_ns == pytest.approx(2, abs=0.3)
    text = listing.as_text(found)
    assert "[no CCD (1), " in text and "are at a site of their own without a CCD" in text
    assert "no CPU" not in text


def test_memory_alone_at_two_sites_of_a_ring() -> None:
    found, _ = mapped("ring6", (0, 1, 2, 3))
    (die,) = found.dies
    assert die.sites is not None and (die.sites.count, die.sites.with_memory) == (4, 6)
    assert die.geometry is not None and (die.geometry.kind, die.geometry.sites) == ("ring", 6)


def test_four_corners_of_six_sites_are_no_mesh_of_four() -> None:
    """Where memory between the corners is merged into theirs, steps to lines come out shorter than those from CPU to
    CPU; a ring of six and a mesh of 2 x 3 are equal for the corners, so that none is named."""
    (die,) = mapped("2x3", (0, 1, 4, 5))[0].dies
    assert die.sites is not None and (die.sites.count, die.sites.with_memory) == (4, 6)
    assert die.geometry is None


@pytest.mark.parametrize(
    ("ccds_at", "shares", "reason"),
    [
        (EVERY, (0.25, 0.25, 0, 0, 0.25, 0.25), "not every group of CPUs has one that is nearest to it"),
        ((0, 1, 2, 4, 5), (0.2, 0.2, 0.2, 0.2, 0.2, 0), "ways there and back differ"),
    ],
    ids=["four memories for six", "memory and CCDs at other sites"],
)
def test_ccds_without_memory_are_said_to_have_none(
    ccds_at: Sequence[int], shares: Sequence[float], reason: str
) -> None:
    found, _ = mapped("2x3", ccds_at, shares)
    (die,) = found.dies
    assert die.sites is None and reason in die.no_map
    assert f"NO MAP: {sentences.no_map_sentence(die)}" in listing.as_text(found)


def test_intervals_hold_what_was_planted_at_sites_without_ccds_too() -> None:
    """93 to 97%, with the standard error of these few dies; 95.3% of 1,225 ways of 100 dies when it was written."""
    kinds = [("2x3", (0, 1, 4, 5)), ("2x3", (0, 1, 2, 3, 4)), ("ring6", (0, 1, 2, 3)), ("2x2", (0, 1, 2))]
    inside = [np.mean(held(*_first(mapped(kind, at, seed=seed)))) for kind, at in kinds for seed in range(4)]
    mean, error = float(np.mean(inside)), float(np.std(inside) / np.sqrt(len(inside)))
    assert 0.93 - 2 * error <= mean <= 0.97 + 2 * error


def _first(node: tuple[analysis.NodeDies, apart.Made]) -> tuple[Die, apart.Made]:
    return node[0].dies[0], node[1]


def test_too_few_lines_are_said_with_how_many_would_do() -> None:
    found, _ = mapped("2x3", EVERY, runs=1, passes=1)
    (die,) = found.dies
    assert len(die.clusters.label) == 32 and die.geometry is None
    text = listing.as_text(found)
    assert "With 32 lines, a place with less than 16% of them is not seen. More runs, with 125 lines" in text
    enough, _ = mapped("2x3", EVERY)
    assert "is not seen" not in listing.as_text(enough)


def test_a_hidden_share_is_named_and_the_lines_that_would_show_it_do() -> None:
    """A site with few of the lines: with too few there it is said to be hidden, and no geometry is named."""
    small = (0.19, 0.19, 0.19, 0.19, 0.2, 0.04)
    hidden = [mapped("2x3", EVERY, small, seed=seed, runs=1, passes=3)[0] for seed in range(6)]
    named = [node for node in hidden if node.dies[0].clusters.hidden]
    assert named
    for node in named:
        assert node.dies[0].geometry is None
        assert "too few lines for a cluster and are left out. More runs, with" in listing.as_text(node)
    (die,) = mapped("2x3", EVERY, small, runs=3)[0].dies
    assert die.clusters.hidden == () and die.sites is not None and die.sites.count == 6
