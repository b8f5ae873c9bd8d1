"""From records to one number a run and component: independent jobs, medians over passes, scales of effects, terms."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pytest
from msgspec import structs

from nodeprint.data.store.packed import PackedFleet
from nodeprint.judge import acceptance, pairs
from nodeprint.judge.reduction import (
    _without_nonsense,
    homes,
    independent,
    matrix,
    mean_of_groups,
    mean_of_runs,
    moment,
    over_passes,
    padded,
    points,
    reduce,
    term_values,
    terms_of,
)
from nodeprint.judge.terms import Terms
from tests.support.fleets import made

LINEAR = pairs.of(made(nodes=1).pairs[0].pair_layout)
LOG, SHARE = structs.replace(LINEAR, scale="log"), structs.replace(LINEAR, scale="share", floor=0.005)


@pytest.mark.parametrize("scale", [LINEAR, LOG])
@pytest.mark.parametrize("ratio", [0.5, 0.99, 1.0, 1.3])
def test_an_effect_is_the_share_that_a_value_is_off_its_template(scale: Terms, ratio: float) -> None:
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


def test_a_rate_has_another_tolerance_below_than_above() -> None:
    tolerance = float(np.log(1.1))
    assert LOG.allowed(tolerance, 1.0) == pytest.approx(0.1) and LOG.allowed(tolerance, -1.0) == pytest.approx(
        1 - 1 / 1.1
    )
    assert LINEAR.allowed(0.02, 1.0) == LINEAR.allowed(0.02, -1.0) == 0.02


def test_a_burst_in_one_pair_counts_as_twice_the_usual_latency() -> None:
    layout = made(nodes=1).pairs[0].pair_layout
    template = np.full(len(layout.pairs), 100.0)
    bursts = np.tile(template, (4, 1))
    bursts[:, 7] *= [1.9, 2.0, 6.0, 0.001]
    values = term_values(bursts.reshape(2, 2, -1), template, pairs.of(layout)).reshape(4, -1)
    assert np.array_equal(values[1], values[2]) and np.abs(values[0] - values[1]).max() > 0
    assert values[3] == pytest.approx(-values[1], rel=0.01)


@pytest.mark.parametrize(
    ("second", "together"), [("2026-01-01T10:09:59Z", True), ("2026-01-01T10:10:00Z", False), ("", False)]
)
def test_jobs_ten_minutes_apart_are_independent_of_each_other(second: str, together: bool) -> None:
    begun = {
        1: ["2026-01-01T09:59:00Z", "2026-01-01T10:00:00Z"],
        2: [second, "2026-01-01T12:00:00Z"] if second else [""],
    }
    assert sorted(independent(begun, {})) == ([[1, 2]] if together else [[1], [2]])


def test_a_job_too_soon_after_one_is_apart_from_none_of_them() -> None:
    begun = {number: [f"2026-01-01T10:{minute:02d}:00Z"] for number, minute in ((1, 0), (2, 8), (3, 16), (5, 40))}
    assert independent(begun, {}) == [[1, 2, 3], [5]]


def test_jobs_follow_each_other_in_time_and_not_by_their_numbers() -> None:
    """A campaign that was put together from two, or measured again as an earlier job."""
    begun = {1: ["2026-01-01T12:00:00Z"], 2: ["2026-01-01T10:00:00Z"], 3: ["2026-01-01T12:05:00Z"], 4: [""]}
    assert independent(begun, {}) == [[4], [2], [1, 3]]
    assert independent(dict(reversed(begun.items())), {}) == [[4], [2], [1, 3]]


def _two_jobs(minutes: int, seed: int = 1) -> PackedFleet:
    """Three nodes of two jobs of two runs, so many minutes apart."""
    fleet = made(nodes=3, jobs=2, pair_runs=2, seed=seed)
    (quantity,) = fleet.pairs
    rows = zip(quantity.job.tolist(), quantity.run.tolist(), strict=True)
    started = tuple(f"2026-01-01T10:{minutes * (job - 1) + run - 1:02d}:00Z" for job, run in rows)
    return replace(fleet, quantities=(quantity.assign(started=started),))


@pytest.mark.parametrize(("minutes", "owner", "runs"), [(5, [0, 1, 2], 4), (20, [0, 0, 1, 1, 2, 2], 2)])
def test_a_row_is_an_independent_job_and_jobs_that_follow_too_soon_are_one(
    minutes: int, owner: list[int], runs: int
) -> None:
    (quantity,) = _two_jobs(minutes).pairs
    reduced = reduce(quantity)
    made_of = matrix(reduced, homes(reduced)[0], terms_of(reduced, acceptance.load()), np.arange(3))
    assert made_of is not None
    assert made_of.owner.tolist() == owner and made_of.values.shape[:2] == (len(owner), runs)
    every = [f"job{job}/run{run}" for job in (1, 2) for run in (1, 2)]
    assert [name for row in made_of.jobs(1) for name in made_of.runs[row]] == every
    assert [made_of.job(row) for row in made_of.jobs(1)] == (["job2"] if runs == 4 else ["job1", "job2"])
    began = [moment(f"2026-01-01T10:{minute:02d}:00Z") for minute in (0, minutes)]
    assert made_of.began[list(made_of.jobs(1))].tolist() == [at and at.timestamp() for at in began[: len(owner) // 3]]
    assert [made_of.jobs(node) for node in range(3)] == [
        range(made_of.first_row[node], made_of.first_row[node + 1]) for node in range(3)
    ]


def test_the_template_and_the_level_of_a_node_are_over_its_jobs_which_count_alike() -> None:
    """One job has two runs, the other a single one."""
    (quantity,) = _two_jobs(20).pairs
    quantity = quantity.of_rows(np.flatnonzero((quantity.job == 1) | (quantity.run == 1)))
    reduced, rows = reduce(quantity), quantity.rows
    made_of = matrix(reduced, homes(reduced)[0], terms_of(reduced, acceptance.load()), np.arange(3))
    assert made_of is not None
    level = reduced.level[:, points(reduced, made_of.home)]
    of_nodes = [(level[rows[node][1]].mean(axis=0) + level[rows[node][2][0]]) / 2 for node in range(3)]
    np.testing.assert_allclose(made_of.template, np.median(of_nodes, axis=0), rtol=1e-6)
    np.testing.assert_allclose(made_of.level_of(list(made_of.jobs(1))), of_nodes[1], rtol=1e-6)
    np.testing.assert_allclose(made_of.level_of([made_of.jobs(1)[1]]), level[rows[1][2][0]], rtol=1e-6)


def test_means_of_groups_are_of_what_was_measured() -> None:
    values = np.array([[1.0, np.nan], [3.0, np.nan], [5.0, 2.0], [np.nan, 4.0], [7.0, 6.0]])
    group = np.array([0, 0, 1, 1, 1])
    np.testing.assert_array_equal(mean_of_groups(values, group), [[2.0, np.nan], [6.0, 4.0]])


def test_a_time_without_a_zone_is_utc_and_what_is_none_is_unknown() -> None:
    assert moment("2026-01-01T10:00:00") == moment("2026-01-01T10:00:00+00:00") == moment("2026-01-01T11:00:00+01:00")
    assert moment("") is None and moment("yesterday") is None


@pytest.mark.parametrize("passes", [1, 2, 3, 4])
@pytest.mark.parametrize("gaps", [False, True])
def test_passes_are_reduced_to_the_median_of_those_that_measured(passes: int, gaps: bool) -> None:
    values = np.random.default_rng(passes).random((3, passes, 20))
    values[0, 0, :4] = values[1, :, 7] = np.nan if gaps else 0.5
    with warnings.catch_warnings(action="ignore", category=RuntimeWarning):  # what no pass has
        np.testing.assert_array_equal(over_passes(values), np.nanmedian(values, axis=1))


def test_nodes_with_fewer_runs_have_gaps_and_the_mean_is_of_the_others() -> None:
    values = np.arange(8.0).reshape(4, 2)
    assert np.array_equal(padded(values, [[0, 1], [2, 3]]), values.reshape(2, 2, 2))
    level = padded(values, [[3], [0, 2]])
    np.testing.assert_array_equal(level, [[[6, 7], [np.nan, np.nan]], [[0, 1], [4, 5]]])
    np.testing.assert_array_equal(mean_of_runs(level), [[6, 7], [2, 3]])
    np.testing.assert_array_equal(mean_of_runs(level[:, :1]), [[6, 7], [0, 1]])


def test_what_is_no_latency_is_no_value() -> None:
    block = np.array([[1.0, 0.0, -1.0, np.inf, np.nan, 5.0]], dtype=np.float32)
    np.testing.assert_array_equal(_without_nonsense(block), [[1.0, np.nan, np.nan, np.nan, np.nan, 5.0]])
    assert np.array_equal(_without_nonsense(block[:, ::5]), [[1.0, 5.0]])


@pytest.mark.parametrize(("missing", "known"), [(0.4, True), (0.6, False)])
@pytest.mark.parametrize("of_others", [False, True])
def test_a_term_of_which_more_than_half_is_missing_has_no_value(missing: float, of_others: bool, known: bool) -> None:
    """Or of what it is compared with; the rest is a mean over what is there."""
    layout = made(nodes=1).pairs[0].pair_layout
    terms = pairs.of(layout)
    number = int(terms.indices("ccd")[0])
    term = terms.terms[number]
    template = np.full(len(layout.pairs), 100.0)
    level = template.copy()
    level[term.covers] = 110.0
    holes = np.flatnonzero(terms.contrast[number] < 0) if of_others else term.covers
    level[holes[: round(missing * len(holes))]] = np.nan
    value = term_values(level[None], template, terms)[0, number]
    assert value == pytest.approx(0.1, rel=1e-5) if known else np.isnan(value)
