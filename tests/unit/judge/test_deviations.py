"""The columns of the table: what an error is made of, and how bounds follow from percent, ns and ticks."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest

from nodeprint.judge import acceptance, bounds
from nodeprint.judge.deviations import Block, Levels, first_jobs
from nodeprint.judge.judge import judge
from tests.support.fleets import judged, made

HOPS = "coherence-cas"


def _block(*defects: str, **changes: int | str) -> Block:
    return next(s.first for s in judged(*defects, **changes).series if s.matrix.name == HOPS)


@pytest.mark.parametrize("nodes", [3, 8])
def test_an_error_and_its_degrees_of_freedom_are_of_the_same_variances(nodes: int) -> None:
    """Of few nodes the share of the centre is a third of it."""
    block = _block(nodes=nodes)
    assert block.of_job.min() > 0
    parts = sum(variance for variance, _ in block._variances(slice(None)))
    np.testing.assert_allclose(parts, block.error() ** 2)


@pytest.mark.slow
def test_error_falls_with_runs_and_with_nodes() -> None:
    assert np.median(_block(pair_runs=8).error()) < np.median(_block(pair_runs=2).error())
    few, many = (_block(nodes=nodes) for nodes in (4, 16))
    assert np.median(many.of_template()) < np.median(few.of_template())


def test_one_run_shows_no_equivalence_and_still_finds() -> None:
    block = _block("node001: core 17 +20%", runs=1, pair_runs=1, passes=3)
    assert np.isinf(block.half_90()).all()
    assert not block.inside.any()
    assert block.outside[1].any()
    assert not np.delete(block.outside, 1, axis=0).any()


def test_simultaneous_intervals_share_the_level_over_a_familys_parts_and_all_nodes() -> None:
    block = _block()
    tail = Levels(0.05, 0.01, 8).tail(block.terms)
    for _, columns in block.terms.by_family:
        assert 2 * 8 * tail[columns].sum() == pytest.approx(0.05)
    assert np.all(block.half_simultaneous > block.half_90())


def test_nodes_outside_a_bound_are_no_peers() -> None:
    healthy, slow = _block(), _block("node001: global +20%", "node002: global +20%")
    others = [0, 3, 4, 5, 6, 7]
    np.testing.assert_allclose(slow.difference[others], healthy.difference[others], atol=0.01)
    assert slow.peers[0] == 5


@pytest.mark.parametrize(("nodes", "nature"), [(5, 0.4), (8, 0.4), (20, 0.4), (8, 0.1)])
def test_peers_that_differ_by_nature_accuse_nobody(nodes: int, nature: float) -> None:
    """Nodes are drawn, in bounds, about what their peers are drawn from: those truly within their bound of that are
    not outside of the few that are there, though runs differ by nothing to speak of."""
    matrix, rules, levels = _block().matrix, acceptance.load(), Levels(0.05, 0.01, nodes)
    columns = matrix.terms.indices("ccd")
    bound, rng = bounds.of_matrix(matrix, rules), np.random.default_rng([nodes, int(10 * nature)])
    accused = []
    for _ in range(40):
        truth = nature * bound * rng.standard_normal((nodes, len(bound)))
        values = truth[:, None] + 1e-3 * bound * rng.standard_normal((nodes, 6, len(bound)))
        named = msgspec.structs.replace(
            matrix, values=values, nodes=np.arange(nodes), runs=(("job1/run1",) * 6,) * nodes
        )
        block = first_jobs(named, rules, levels)
        accused.append((block.outside & (np.abs(truth) <= bound))[:, columns].any())
    assert np.mean(accused) <= 0.05
    assert bool(block.outside.any()) or nature < 0.4 or nodes < 20  # it is no general pardon


def test_difference_is_that_which_was_planted() -> None:
    block = _block("node001: global +5%")
    classes = block.terms.indices("class")
    np.testing.assert_allclose(block.difference[1, classes], 0.05, atol=0.015)


def test_a_fleet_is_judged_the_same_again() -> None:
    campaign = made("node001: core 17 +10%")
    first, again = (msgspec.json.encode(judge(campaign).verdict) for _ in range(2))
    assert first == again
