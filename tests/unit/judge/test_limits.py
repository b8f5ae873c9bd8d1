"""Absolute limits are of medians that pairs have."""

from __future__ import annotations

import pytest
from msgspec import UNSET
from msgspec.structs import replace

from nodeprint.judge import limits
from nodeprint.judge.acceptance_file import Acceptance, ContractLimit
from nodeprint.judge.outcome import Certainty
from nodeprint.judge.verdict import CellFigure
from tests.support import verdicts

MEMORY = CellFigure("bandwidth-nodes", "load, own node", "B/s", 180.0, 178.0, 183.0, 190.0, {}, 170.0, 2, 6, 1.0)


def rules(at_most: float | None = None, at_least: float | None = None) -> Acceptance:
    limit = ContractLimit(
        measurement="coherence-cas",
        class_="same socket",
        at_most=UNSET if at_most is None else at_most,
        at_least=UNSET if at_least is None else at_least,
        reason="contract",
    )
    return Acceptance(limits=(limit,))


def test_each_group_of_a_mixture_has_to_keep_its_limit() -> None:
    figure = next(figure for figure in verdicts.classes() if figure.name == "same socket")
    mixture = replace(figure, median_ns=191.0, groups={"socket 0": 132.0, "socket 1": 267.0})
    assert not list(limits.outside([figure], (), rules(150.0), "job1"))
    (finding,) = limits.outside([mixture], (), rules(150.0), "job1")
    assert finding.component.where["figure"] == "same socket, socket 1" and finding.value == 267.0
    assert len(list(limits.outside([mixture], (), rules(100.0), "job1"))) == 2
    assert not list(limits.outside([mixture], (), rules(270.0), "job1")), "191 ns is of no pair"
    (low,) = limits.outside([mixture], (), rules(at_least=150.0), "job1")
    assert low.component.where["figure"] == "same socket, socket 0"


def of_row(**ends: float) -> Acceptance:
    """A limit of the own node's bandwidth."""
    limit = ContractLimit(measurement="bandwidth-nodes", row="load, own node", reason="contract")
    return Acceptance(limits=(replace(limit, **ends),))


def test_a_finding_has_how_far_the_median_is_from_its_limit() -> None:
    (finding,) = limits.outside((), [MEMORY], of_row(at_least=200.0), "job2")
    assert (finding.id, finding.state, finding.home, finding.worse) == ("limit", Certainty.CONFIRMED, -1, True)
    assert finding.component.where == {"figure": "load, own node", "reason": "contract"}
    assert finding.effect == pytest.approx(-0.1) and finding.effect_unit == pytest.approx(-20.0)
    assert finding.half_95 == pytest.approx(3 / 200)
    assert (finding.interval.low, finding.interval.high) == pytest.approx((-0.115, -0.085))
    assert (finding.tolerance, finding.tolerance_unit, finding.peers, finding.value) == (0.0, 200.0, 200.0, 180.0)
    assert finding.times_tolerance == pytest.approx(0.9) and finding.unit == "B/s"
    (job,) = finding.by_job
    assert (job.job, job.effect, job.interval) == ("job2", finding.effect, finding.interval)


def test_half_of_the_interval_of_a_class_is_that_of_its_median() -> None:
    figure = next(figure for figure in verdicts.classes() if figure.name == "same socket")
    figure = replace(figure, median_ns=100.0, ci_high_ns=104.0, home=3)
    (finding,) = limits.outside([figure], (), rules(80.0), "job1")
    assert (finding.home, finding.unit, finding.value) == (3, "ns", 100.0)
    assert finding.effect == pytest.approx(0.25) and finding.half_95 == pytest.approx(0.05)
    assert (finding.interval.low, finding.interval.high) == pytest.approx((0.2, 0.3))


@pytest.mark.parametrize(
    ("limit", "outside"),
    [
        ({"at_most": 180.0}, False),
        ({"at_most": 179.9}, True),
        ({"at_least": 180.0}, False),
        ({"at_least": 180.1}, True),
        ({"at_least": 100.0, "at_most": 150.0}, True),
        ({"at_least": 200.0, "at_most": 250.0}, True),
        ({"at_least": 100.0, "at_most": 250.0}, False),
        ({"at_least_percent": 90.0}, False),
        ({"at_least_percent": 90.1}, True),
    ],
)
def test_a_median_at_its_limit_keeps_it(limit: dict[str, float], outside: bool) -> None:
    row = replace(MEMORY, peak=200.0)
    assert bool(list(limits.outside((), [row], of_row(**limit), "job1"))) is outside
    other = replace(row, name="load, other socket")
    assert not list(limits.outside((), [other, replace(row, measurement="bandwidth-ccx")], of_row(**limit), "job1"))


def test_a_share_of_what_is_peak_limits_nothing_where_that_is_unknown() -> None:
    assert not list(limits.outside((), [MEMORY], of_row(at_least_percent=90.0), "job1"))


def test_limits_are_of_figures_that_nodes_have() -> None:
    rows, known = [[MEMORY], []], [[], [replace(MEMORY, peak=200.0)]]
    classes = [verdicts.classes()[:1], []]
    of_class = (classes[0][0].measurement, classes[0][0].name)
    assert limits.applied(classes, rows) == {of_class, ("bandwidth-nodes", "load, own node")}
    assert limits.applied(classes, rows, share=True) == set()
    assert limits.applied(classes, known, share=True) == {("bandwidth-nodes", "load, own node")}
