"""One bad run is named in fleets of every size, and the other nodes keep their outcome."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

from nodeprint.data.store.packed import PackedFleet
from nodeprint.judge import reduction
from nodeprint.judge.judge import judge
from nodeprint.judge.odd_runs import odd_runs
from nodeprint.judge.outcome import Outcome, ReasonDetail
from nodeprint.report import text
from tests.support.fleets import made, with_outcomes

HOPS = "coherence-cas"


def _run_times(fleet: PackedFleet, factor: float, run: int, node: int = 1) -> PackedFleet:
    """The fleet with all pairs of one run of a node slower."""
    (quantity,) = (of for of in fleet.quantities if of.measurement == HOPS)
    rows = (quantity.node == node) & (quantity.run == run)
    values = (quantity.values * np.where(rows, factor, 1.0)[:, None, None]).astype(np.float32)
    others = tuple(of for of in fleet.quantities if of.measurement != HOPS)
    return replace(fleet, quantities=(quantity.assign(values=values), *others))


@pytest.mark.parametrize(("nodes", "pair_runs"), [(2, 6), (3, 6), (4, 2), (4, 6), (8, 3), (16, 2)])
@pytest.mark.parametrize("factor", [1.5, 0.7])
def test_one_bad_run_is_named_and_the_others_keep_their_outcome(nodes: int, pair_runs: int, factor: float) -> None:
    healthy = made(nodes=nodes, pair_runs=pair_runs)
    verdict = judge(_run_times(healthy, factor, 2)).verdict
    bad = verdict.nodes["node001"]
    assert (bad.outcome, bad.reasons[0].why) == (Outcome.INVALID, ReasonDetail.ODD_RUN)
    change = "higher" if factor > 1 else "lower"
    words = rf"Run 2 of job1 has a ([0-9.]+)% {change} core-to-core latency than its other runs"
    (off,) = re.findall(words, text.node_sentence(bad))
    assert float(off) == pytest.approx(100 * abs(factor - 1), abs=3)
    assert "node001" in verdict.recheck
    others = {name: of for name, of in with_outcomes(judge(healthy)).items() if name != "node001"}
    after = {name: of for name, of in with_outcomes(judge(_run_times(healthy, factor, 2))).items() if name in others}
    if nodes > 4 and pair_runs > 2:
        assert after == others
    else:  # with few peers, or one run less of two, what is near its tolerance may be undecided
        assert set(after.values()) <= {"SAME", "INCONCLUSIVE", "NO PEERS"}


def test_a_node_all_runs_of_which_are_slow_is_not_disturbed() -> None:
    fleet = made(nodes=8)
    for run in range(1, 7):
        fleet = _run_times(fleet, 1.5, run)
    assert with_outcomes(judge(fleet))["node001"] == Outcome.SUSPECT


@pytest.mark.parametrize(("sd", "found"), [(0.0, 1), (0.05, 1), (0.15, 0)])
def test_what_runs_of_the_fleet_usually_differ_by_makes_none_odd(sd: float, found: int) -> None:
    fleet = _run_times(made(nodes=6), 1.5, 2)
    rng = np.random.default_rng(3)
    (quantity,) = fleet.quantities
    scattered = quantity.values * (1 + sd * rng.standard_normal(len(quantity.values)))[:, None, None]
    noisy = quantity.assign(values=scattered.astype(np.float32))
    assert len(odd_runs(reduction.reduce(noisy))) == found


def test_of_two_runs_the_one_that_is_off_the_fleet_is_odd() -> None:
    for run in (1, 2):
        (quantity,) = _run_times(made(nodes=5, pair_runs=2), 1.3, run).quantities
        odd = odd_runs(reduction.reduce(quantity))
        (row,) = odd
        assert (quantity.node[row], quantity.run[row]) == (1, run)
        assert odd[row] == pytest.approx(0.3, abs=0.03)
