"""Absolute limits are of medians that pairs have."""

from __future__ import annotations

from msgspec import UNSET
from msgspec.structs import replace

from nodeprint.judge import limits
from nodeprint.judge.acceptance_file import Acceptance, ContractLimit
from tests.support import verdicts


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
    assert finding.part.where["figure"] == "same socket, socket 1" and finding.value == 267.0
    assert len(list(limits.outside([mixture], (), rules(100.0), "job1"))) == 2
    assert not list(limits.outside([mixture], (), rules(270.0), "job1")), "191 ns is of no pair"
    (low,) = limits.outside([mixture], (), rules(at_least=150.0), "job1")
    assert low.part.where["figure"] == "same socket, socket 0"
