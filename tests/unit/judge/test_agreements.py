"""Remedies and detection limits keep what they promise, on tables that are drawn with a known truth."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from nodeprint.judge import agreements, naming
from nodeprint.judge.deviations import Deviations
from tests.support.drawn import RULES, matrix, of_values, tolerance
from tests.support.fleets import judged

NODES = 8


def _drawn(seed: int, runs: int, spread: float, off: float = 0.0) -> tuple[Deviations, int]:
    """Nodes whose runs differ by `spread` tolerances, of which the first is off by so many in one component, and that
    component."""
    rng, component = np.random.default_rng([seed, runs, int(100 * spread)]), int(matrix().terms.indices("ccd")[3])
    values = spread * tolerance() * rng.standard_normal((NODES, runs, len(tolerance())))
    values[0, :, component] += off * tolerance()[component]
    return of_values(values), component


def _inside(runs: int, spread: float) -> float:
    """In which share of 30 fleets the component is inside."""
    found = [_drawn(seed, runs, spread) for seed in range(30)]
    return float(np.mean([series.inside[0, component] for series, component in found]))


def _remedy(seed: int, runs: int, spread: float, off: float = 0.0) -> tuple[str, int]:
    series, component = _drawn(seed, runs, spread, off)
    return agreements.remedy_of(*series.pooled_node(0), component)


def test_so_many_runs_show_in_nine_of_ten_cases_that_a_part_is_the_same() -> None:
    asked = [needed for seed in range(12) for kind, needed in [_remedy(seed, 3, 0.9)] if kind == "runs"]
    assert len(asked) >= 8
    needed = int(np.median(asked))
    assert 0.75 <= _inside(needed, 0.9) <= 1.0
    assert _inside(needed // 2, 0.9) < _inside(needed, 0.9)  # and they are not twice too many


def test_what_more_measurements_cannot_resolve_asks_for_none() -> None:
    kinds = {_remedy(seed, 3, 8.0) for seed in range(10)}
    assert kinds <= {("none", 0), ("quiet", 0)} and kinds
    assert _remedy(1, 3, 1.0, off=3.0) == ("quiet", 0)  # beyond its tolerance and not resolved


@pytest.mark.parametrize(("runs", "spread"), [(4, 0.3), (2, 0.2)])
def test_nine_of_ten_nodes_show_what_is_as_large_as_the_detection_limit(runs: int, spread: float) -> None:
    series, component = _drawn(0, runs, spread)
    limit = next(of for of in agreements.limits([series]) if of.component_type == "ccd")
    times = limit.effect / float(np.median(series.tolerance[series.matrix.terms.indices("ccd")]))
    found = [_drawn(seed, runs, spread, times)[0].outside[0, component] for seed in range(1, 31)]
    assert 0.7 <= np.mean(found) < 1.0
    assert limit.tolerance == pytest.approx(0.03, rel=0.1) and (limit.remedy == "") == (times <= agreements.FAR)


@pytest.mark.parametrize(("off", "remedy", "outside"), [(1.12, "job", False), (1.5, "", True)])
def test_another_job_is_asked_for_where_the_difference_is_beyond_and_not_found(
    off: float, remedy: str, outside: bool
) -> None:
    series, component = _drawn(1, 6, 0.1, off)
    (agreement,) = agreements.agreements([(series, 0)], judged().population.fleet.nodes[0], RULES)
    assert (agreement.remedy, bool(series.outside[0, component])) == (remedy, outside)
    assert agreement.share > 1 and series.difference[0, component] > series.tolerance[component]


@pytest.mark.parametrize("run", [0, 2, 5])
def test_a_quieter_node_is_asked_for_with_the_run_that_is_off(run: int) -> None:
    series, component = _drawn(3, 6, 0.05)
    values = series.matrix.values.copy()
    values[0, run, component] += 4 * series.tolerance[component]
    node, table = judged().population.fleet.nodes[0], of_values(values)
    (agreement,) = agreements.agreements([(table, 0)], node, RULES)
    assert agreement.component == naming.component(table.matrix, component, node)
    assert (agreement.remedy, agreement.run) == ("quiet", f"job1/run{run + 1}")


@pytest.mark.parametrize(
    ("differences", "shares"),
    [([0.5, 0.1], [0.3, 0.1]), ([0.1, -0.5], [0.1, 0.3]), ([np.nan, 0.0], [-1, 0.05]), ([], [])],
)
def test_a_component_takes_of_its_tolerance_what_its_interval_reaches(
    differences: list[float], shares: list[float]
) -> None:
    each = np.ones(len(differences))
    pooled = SimpleNamespace(difference=np.array([differences]), half_90=0.1 * each[None], tolerance=2 * each)
    table: Any = SimpleNamespace(tolerance=2 * each, pooled_node=lambda _: (pooled, 0))
    np.testing.assert_allclose(agreements._share_of_tolerance(table, 0), shares)


def test_a_node_without_a_value_has_no_agreement() -> None:
    series, _ = _drawn(1, 2, 0.05)
    table = of_values(np.where(np.arange(NODES)[:, None, None] == 0, np.nan, series.matrix.values))
    assert agreements.agreements([(table, 0)], judged().population.fleet.nodes[0], RULES) == ()


def test_what_decides_comes_first_in_the_order_of_the_rules() -> None:
    names = [*RULES.criteria, "jitter"]
    assert [agreements._order(name, RULES) for name in names] == list(range(len(names)))


def test_the_agreement_of_a_metric_is_that_of_the_part_that_takes_most_of_its_tolerance() -> None:
    series, component = _drawn(1, 6, 0.05, off=0.8)
    other, _ = _drawn(2, 6, 0.05)
    shares = [agreements._share_of_tolerance(each, 0) for each in (series, other)]
    assert shares[0].argmax() == component and 0.75 < shares[0].max() < 1.0 and shares[1].max() < 0.4
    node = judged().population.fleet.nodes[0]
    for order in ([(series, 0), (other, 0)], [(other, 0), (series, 0)]):
        (agreement,) = agreements.agreements(order, node, RULES)
        assert (agreement.metric, agreement.criterion, agreement.remedy) == ("core-to-core", True, "")
        assert agreement.share == shares[0].max() and agreement.tolerance == pytest.approx(0.03, rel=0.2)
        assert agreement.effect == pytest.approx(0.8 * agreement.tolerance, rel=0.1)
