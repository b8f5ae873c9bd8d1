"""Scales of effects: what is compared, and what a reader gets of it."""

from __future__ import annotations

import numpy as np
import pytest

from nodeprint.judge import pairs
from nodeprint.judge.reduction import EffectScale, term_values
from tests.support.fleets import made

LINEAR, LOG, SHARE = EffectScale("linear"), EffectScale("log"), EffectScale("share", 0.005)


@pytest.mark.parametrize("scale", [LINEAR, LOG])
@pytest.mark.parametrize("ratio", [0.5, 0.99, 1.0, 1.3])
def test_an_effect_is_the_share_that_a_value_is_off_its_template(scale: EffectScale, ratio: float) -> None:
    residual = scale.residual(np.array([80.0 * ratio]), np.array([80.0]))
    assert scale.relative(float(residual[0])) == pytest.approx(ratio - 1)


def test_no_value_is_no_residual_and_no_error() -> None:
    for scale in (LINEAR, LOG):
        assert np.isnan(scale.residual(np.array([np.nan]), np.array([80.0]))).all()
    assert np.isnan(LOG.residual(np.array([0.0]), np.array([80.0]))).all()


def test_a_share_of_the_time_is_counted_in_the_share_that_matters() -> None:
    none, floor, much = SHARE.residual(np.array([-0.01, 0.005, 0.5]), np.zeros(3))
    assert none == 0 and floor == pytest.approx(np.log(2)) and much == pytest.approx(np.log(101))
    assert SHARE.relative(float(floor)) == pytest.approx(0.005)
    assert SHARE.relative(float(np.log(2)), peers=0.01) == pytest.approx(0.015)


def test_a_rate_has_another_bound_below_than_above() -> None:
    bound = float(np.log(1.1))
    assert LOG.allowed(bound, 1.0) == pytest.approx(0.1) and LOG.allowed(bound, -1.0) == pytest.approx(1 - 1 / 1.1)
    assert LINEAR.allowed(0.02, 1.0) == LINEAR.allowed(0.02, -1.0) == 0.02


def test_a_burst_in_one_pair_counts_as_twice_the_usual_latency() -> None:
    layout = made(nodes=1).pairs[0].pair_layout
    template = np.full(len(layout.pairs), 100.0)
    bursts = np.tile(template, (4, 1))
    bursts[:, 7] *= [1.9, 2.0, 6.0, 0.001]
    values = term_values(bursts.reshape(2, 2, -1), template, pairs.of(layout), LINEAR).reshape(4, -1)
    assert np.array_equal(values[1], values[2]) and np.abs(values[0] - values[1]).max() > 0
    assert values[3] == pytest.approx(-values[1], rel=0.01)
