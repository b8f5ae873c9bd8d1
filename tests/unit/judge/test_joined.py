"""Several campaigns as one matrix: rounds, what all nodes move by, and how alike successive jobs are."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from nodeprint.judge import acceptance, joined
from tests.support.fleets import made
from tests.support.noisy_year import CALM, Shift, fleets

RULES = acceptance.load()


def test_rows_are_jobs_in_the_order_of_time_and_copies_count_once() -> None:
    year = fleets(1, CALM, nodes=3, weeks=4)
    (pairs,), copies = joined.join([*year, replace(year[1], campaign="copy")], RULES)
    names = ("node000", "node001", "node002")
    assert copies == {4}
    assert [(job.node, job.campaign) for job in pairs.at] == [(name, week) for name in names for week in range(4)]
    assert np.array_equal(pairs.owner, np.repeat(range(3), 4))
    assert len(joined.join([year[0], year[0]], RULES, distinct=False)[0][0].at) == 6


def test_what_all_nodes_move_by_is_taken_off_each() -> None:
    past = joined.past(joined.join(fleets(2, CALM, weeks=6, shifts=[Shift(3, 1.05)]), RULES)[0][0], RULES)
    after = np.array([job.campaign >= 3 for job in past.matrix.at])
    classes = past.matrix.terms.indices("class")
    assert (joined.means_with_rounds(past, after) - joined.means_with_rounds(past, ~after))[
        :, classes
    ].mean() == pytest.approx(0.05, abs=0.003)
    assert (past.means[after] - past.means[~after])[:, classes].mean() == pytest.approx(0.0, abs=0.001)


def test_a_round_of_too_few_nodes_moves_as_the_one_before() -> None:
    """Two nodes that are measured once more did not fall back to their first level."""
    year = fleets(2, CALM, weeks=6, shifts=[Shift(2, 1.05)])
    year[4] = joined._of_nodes(year[4], {"node001", "node002"})
    past = joined.past(joined.join(year, RULES)[0][0], RULES)
    classes = past.matrix.terms.indices("class")
    again = [row for row, job in enumerate(past.matrix.at) if job.campaign == 4]
    assert len(again) == 2 and np.abs(past.means[again][:, classes] - past.means[0][classes]).max() < 0.02


def test_two_nodes_move_by_themselves() -> None:
    past = joined.past(joined.join(fleets(2, CALM, nodes=2, weeks=4), RULES)[0][0], RULES)
    assert not joined.moved(past).any() and not past.rounds.error.any()


@pytest.mark.parametrize("alike", [0.0, 0.8])
def test_jobs_that_are_alike_are_found_so(alike: float) -> None:
    rng, rest = np.random.default_rng(1), np.zeros((400, 60))
    for row in range(1, 400):
        rest[row] = alike * rest[row - 1] + np.sqrt(1 - alike**2) * rng.standard_normal(60)
    owner = np.repeat(range(8), 50)
    assert joined.correlation(rest, owner) == pytest.approx(alike, abs=0.05)
    assert joined.correlation(rest[:6], np.repeat([0, 1], 3)) == 0.0, "of so few jobs nothing is known"


def test_a_mean_of_alike_jobs_varies_as_the_process_does() -> None:
    assert joined.not_averaged(10, 0.0) == 1.0 and joined.not_averaged(1, 0.9) == 1.0
    assert joined.not_averaged(5000, 0.5) == pytest.approx(3.0, abs=0.01)  # (1 + r) / (1 - r)
    assert joined.not_averaged(4, 1.0) == pytest.approx(4.0)


def test_a_place_that_only_newer_campaigns_have_is_a_gap_before() -> None:
    """Cells of a campaign are matched by their places; another unit is another quantity."""
    fleet = made(nodes=3, cells=True)
    clocks = next(quantity for quantity in fleet.others if quantity.measurement == "clock-together")
    fewer = clocks.assign(
        places={dim: column[1:] for dim, column in clocks.places.items()},
        values=np.asarray(clocks.values)[..., 1:],
    )
    old, new = (replace(fleet, campaign=name, quantities=(of,)) for name, of in (("a", fewer), ("b", clocks)))
    (matrix,), _ = joined.join([old, new], RULES, distinct=False)
    first = [row for row, job in enumerate(matrix.at) if job.campaign == 0]
    assert np.isnan(matrix.level[first][:, 0]).all() and np.isfinite(matrix.level[first][:, 1:]).all()
    other = replace(fleet, campaign="c", quantities=(clocks.assign(unit="ns"),))
    assert len(joined.join([other, new], RULES)[0]) == 2
