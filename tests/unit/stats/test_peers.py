"""The peers' center and spread: precise where all are alike, and hardly moved by those that are not."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeprint.stats.peers import FEWEST, LEAVE_OUT_BELOW, TEMPLATE_ERROR, Peers, agreeing, peers

COMPONENTS = 400
FAMILY = np.zeros(COMPONENTS, dtype=np.int64)


def _normal(nodes: int, seed: int = 1) -> np.ndarray:
    return np.random.default_rng(seed).normal(0.0, 1.0, (nodes, COMPONENTS))


def _peers(means: np.ndarray, family: np.ndarray, trusted: np.ndarray) -> Peers:
    """The peers of nodes whose runs vary alike, and whose jobs by their number."""
    number = np.broadcast_to(np.arange(len(means), dtype=np.float64)[:, None], means.shape)
    return peers(means, family, trusted, np.ones_like(means), number, np.zeros_like(means))


def _all(nodes: int) -> np.ndarray:
    return np.ones(nodes, dtype=np.bool_)


@pytest.mark.parametrize("nodes", [3, 8, LEAVE_OUT_BELOW - 1, LEAVE_OUT_BELOW, 64])
def test_center_varies_no_more_than_the_template_error_says(nodes: int) -> None:
    compared = _peers(_normal(nodes), FAMILY, _all(nodes))
    variance = float(np.var(compared.center[0]))
    assert variance <= 1.25 * TEMPLATE_ERROR / compared.count[0]
    assert compared.count[0] == nodes - 1


@pytest.mark.parametrize("nodes", [3, 4, 6, 8, 32])
def test_spread_of_normal_nodes_is_theirs(nodes: int) -> None:
    compared = _peers(_normal(nodes), FAMILY, _all(nodes))
    assert np.median(compared.between) == pytest.approx(1.0, rel=0.35)


@given(st.integers(3, LEAVE_OUT_BELOW - 1), st.floats(-1e3, 1e3))
def test_a_node_of_a_small_fleet_has_no_share_in_its_own_center(nodes: int, off: float) -> None:
    means = _normal(nodes)[:, :8]
    moved = means.copy()
    moved[0] += off
    family, trusted = FAMILY[:8], _all(nodes)
    np.testing.assert_array_equal(_peers(means, family, trusted).center[0], _peers(moved, family, trusted).center[0])


@pytest.mark.parametrize("nodes", [LEAVE_OUT_BELOW, 40])
def test_center_of_many_is_that_of_the_others_too(nodes: int) -> None:
    means, trusted = _normal(nodes), _all(nodes)
    trusted[3] = False
    compared = _peers(means, FAMILY, trusted)
    for node in (0, 3):
        others = trusted.copy()
        others[node] = False
        of_others = _peers(np.vstack([means[node], means[others]]), FAMILY, np.arange(others.sum() + 1) > 0)
        apart = compared.center[node] - of_others.center[0]
        assert np.sqrt(np.mean(apart**2)) < 0.35 / nodes  # a share of one node would be 1 / nodes
    assert compared.count.tolist() == [nodes - 2.0] * 3 + [nodes - 1.0] + [nodes - 2.0] * (nodes - 4)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("size", [5.0, 1e6])
def test_two_outliers_of_seven_move_the_center_by_about_one_deviation(size: float, seed: int) -> None:
    means = _normal(8, seed)
    moved = means.copy()
    moved[1:3] += size
    trusted = _all(8)
    apart = _peers(moved, FAMILY, trusted).center[0] - _peers(means, FAMILY, trusted).center[0]
    assert np.median(np.abs(apart)) < 1.25


@pytest.mark.parametrize("nodes", [LEAVE_OUT_BELOW - 1, LEAVE_OUT_BELOW])
def test_peers_vary_as_those_of_each_node_and_from_sixteen_on_as_all(nodes: int) -> None:
    trusted = np.arange(nodes) > 0
    compared = _peers(_normal(nodes), FAMILY, trusted)
    of_all = np.arange(1, nodes).mean()
    own = np.array([np.delete(np.arange(1, nodes), max(node - 1, 0) if node else []).mean() for node in range(nodes)])
    expected = own if nodes < LEAVE_OUT_BELOW else np.full(nodes, of_all)
    np.testing.assert_allclose(compared.of_jobs[:, 0], expected)
    assert (compared.of_runs == 1).all() and not compared.of_movement.any()
    np.testing.assert_allclose(compared.share, TEMPLATE_ERROR / compared.count)


def test_nodes_that_are_not_trusted_are_no_peers() -> None:
    means = _normal(8)
    means[7] += 100
    trusted = _all(8)
    trusted[7] = False
    compared = _peers(means, FAMILY, trusted)
    assert np.abs(compared.center[:7]).max() < 5
    assert compared.count.tolist() == [6.0] * 7 + [7.0]


@pytest.mark.parametrize(
    ("values", "share"),
    [
        ([0.0, 0.0, 0.0, 0.0, 0.0], 1.0),
        ([0.0, 1.0, 1.0, 2.0, 3.1], 0.8),  # those at the tolerance on either side count
        ([0.0, 0.0, 0.0, 5.0, 5.0, 5.0], 0.5),
        ([0.0, 0.0, 0.0, 0.0, 5.0, 5.0], 2 / 3),
        ([0.0, 2.0, 4.0, 6.0, 8.0], 0.2),
        ([0.0, 0.9, 1.8, 2.7, 3.6], 0.6),  # a chain: within the tolerance of one of them, and not of the next
    ],
)
def test_the_largest_share_that_is_within_the_tolerance_of_one_node(values: list[float], share: float) -> None:
    of_component = np.array(values)[:, None]
    for order in (of_component, of_component[::-1], -of_component):
        assert agreeing(order, np.ones(1)).tolist() == pytest.approx([share])
    gaps = np.vstack([of_component, np.full((3, 1), np.nan)])
    assert agreeing(gaps, np.ones(1)).tolist() == pytest.approx([share])


def test_each_part_has_its_own_tolerance_and_slack() -> None:
    values = np.tile(np.array([[0.0], [0.0], [3.0], [3.0], [3.0]]), 3)
    assert agreeing(values, np.array([1.0, 3.0, 1.0])).tolist() == pytest.approx([0.6, 1.0, 0.6])
    assert agreeing(values, np.ones(3), np.array([0.0, 1.9, 2.0])).tolist() == pytest.approx([0.6, 0.6, 1.0])


def test_of_fewer_nodes_nobody_can_tell_who_agrees() -> None:
    values = np.array([0.0, 0.0, 5.0, 5.0, np.nan])[:, None]
    assert FEWEST == 5
    assert agreeing(values, np.ones(1)).tolist() == [1.0]
    assert agreeing(values, np.ones(1), fewest=4).tolist() == [0.5]
    assert agreeing(values, np.ones(1), fewest=5).tolist() == [1.0]
    assert agreeing(np.append(values, [[0.0]], axis=0), np.ones(1)).tolist() == [0.6]


def test_two_nodes_are_each_others_peers_of_unknown_spread() -> None:
    compared = _peers(np.array([[1.0], [2.0]]), FAMILY[:1], _all(2))
    assert compared.center.tolist() == [[2.0], [1.0]]
    assert not compared.between.any()
