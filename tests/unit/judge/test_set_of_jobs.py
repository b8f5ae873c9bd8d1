"""The outcome of a node is a function of the set of jobs and runs of all nodes: never of their order, of which came
first, or of who asked for them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from random import Random

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.job_sets import Job, fleet, outcomes

#: What one job shows of core 0, whose tolerance is 4%: nothing, less, more, and much more.
_SLOWER = (0.0, 0.0, 0.03, 0.07, 0.2)
_FOUND = {"DEVIATES", "INTERMITTENT", "SUSPECT", "MISMATCH"}
_FEW, _MORE = settings(max_examples=12, derandomize=True), settings(max_examples=20, derandomize=True)


@st.composite
def _jobs(draw: st.DrawFn, least: int = 3) -> list[Job]:
    """One to three jobs of some nodes, of which up to two show something in some jobs or runs."""
    nodes = [f"n{number}" for number in range(draw(st.integers(least, 6)))]
    out = []
    for number, node in enumerate(nodes):
        for day in range(1, 1 + draw(st.integers(1, 3))):
            slower = draw(st.sampled_from(_SLOWER)) if number < 2 else 0.0
            runs = draw(st.sampled_from([(), (), (0, 1), (1, 2, 3)])) if slower else ()
            out.append(Job(node, day, slower, runs, draw(st.sampled_from([0.0, 0.0, 0.004]))))
    return out


@_MORE
@given(_jobs(), st.randoms(use_true_random=False))
def test_the_order_of_jobs_changes_nothing(jobs: list[Job], random: Random) -> None:
    """As where campaigns are merged in another order: jobs keep their times and have other numbers."""
    shuffled = list(jobs)
    random.shuffle(shuffled)
    nodes = sorted({job.node for job in jobs})
    assert outcomes(fleet(jobs, nodes)) == outcomes(fleet(shuffled, nodes))


@_MORE
@given(_jobs(), st.permutations([1, 2, 3]))
def test_which_job_came_first_changes_nothing(jobs: list[Job], dates: list[int]) -> None:
    """The jobs of a day get another date, all of them alike, and numbers by it."""
    nodes = sorted({job.node for job in jobs})
    measured = fleet(jobs, nodes)
    (quantity,) = measured.quantities
    date = dict(zip((1, 2, 3), dates, strict=True))
    day = [int(text[8:10]) for text in quantity.started]
    job = np.array([date[of_row] for of_row in day])
    started = [f"{text[:8]}{date[of_row]:02d}{text[10:]}" for text, of_row in zip(quantity.started, day, strict=True)]
    rows = np.lexsort((quantity.run, job, quantity.node))
    moved = quantity.assign(
        values=quantity.values[rows],
        job=job[rows],
        run=quantity.run[rows],
        started=tuple(started[row] for row in rows),
    )
    assert outcomes(measured) == outcomes(replace(measured, quantities=(moved,)))


@_FEW
@given(_jobs(), st.data())
def test_the_order_of_nodes_changes_nothing(jobs: list[Job], data: st.DataObject) -> None:
    nodes = sorted({job.node for job in jobs})
    assert outcomes(fleet(jobs, nodes)) == outcomes(fleet(jobs, data.draw(st.permutations(nodes))))


@_FEW
@given(_jobs(), st.permutations(range(4)))
def test_the_order_of_runs_changes_nothing(jobs: list[Job], runs: Sequence[int]) -> None:
    assert outcomes(fleet(jobs)) == outcomes(fleet(jobs, runs=dict.fromkeys(jobs, runs)))


@_FEW
@given(_jobs())
def test_a_fleet_judged_twice_has_the_same_outcomes(jobs: list[Job]) -> None:
    measured = fleet(jobs)
    values = measured.quantities[0].values.copy()
    assert outcomes(measured) == outcomes(measured)
    assert np.array_equal(values, measured.quantities[0].values)


@_FEW
@given(st.sampled_from([0.0, 0.2]), st.permutations(range(6)), st.sampled_from([-0.012, 0.0, 0.006, 0.012]))
def test_three_nodes_measured_again_do_not_change_the_others(slower: float, order: list[int], moved: float) -> None:
    """Between SAME and a finding, whatever the second jobs of the three show."""
    first = [Job(f"n{node}", 1, slower if node == 0 else 0.0) for node in range(6)]
    again = [
        Job(f"n{node}", 2, slower if node == 0 else 0.0, moved=moved * sign)
        for node, sign in zip(order[:3], (1, -1, 1), strict=True)
    ]
    before, after = outcomes(fleet(first)), outcomes(fleet([*first, *again]))
    for node in order[3:]:
        pair = {before[f"n{node}"][0], after[f"n{node}"][0]}
        assert not ("SAME" in pair and pair & _FOUND), (node, pair)


@_FEW
@given(_jobs(least=5), st.integers(1, 3))
def test_a_healthy_node_more_does_not_change_the_others(jobs: list[Job], count: int) -> None:
    """Between SAME and a finding: another peer may resolve what was undecided."""
    before = outcomes(fleet(jobs))
    after = outcomes(fleet([*jobs, *(Job("n9", day) for day in range(1, count + 1))]))
    for node, (outcome, *_) in before.items():
        pair = {outcome, after[node][0]}
        assert not ("SAME" in pair and pair & _FOUND), (node, pair)
