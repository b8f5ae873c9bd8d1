"""What is read off the nodes of a fleet: what they share, and what is missing."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

from nodeprint.data.store.packed import PackedNode
from nodeprint.judge import agreements, fleet
from nodeprint.judge.acceptance_file import Acceptance, Metric
from nodeprint.judge.judge import judge
from nodeprint.judge.outcome import Outcome
from nodeprint.judge.verdict import Component, Finding, Limit, Shared
from nodeprint.report import text
from tests.support import verdicts
from tests.support.fleets import judged, made


def test_what_one_job_cannot_show_is_named_and_no_more_where_jobs_show_it() -> None:
    once, twice = (judged(jobs=jobs, cells=True).verdict for jobs in (1, 2))
    assert once.fleet.assumed_jobs["core-to-core"] == pytest.approx(0.001)
    assert once.fleet.assumed_jobs["bandwidth"] == pytest.approx(0.005, rel=0.01)
    assert twice.fleet.assumed_jobs.keys() <= once.fleet.assumed_jobs.keys()
    assert any("between jobs: 0.1% (core-to-core latency)" in line for line in text.based_on(once))


@pytest.mark.parametrize("simulated", [True, False])
def test_a_verdict_says_whether_its_fleet_was_simulated(simulated: bool) -> None:
    assert judge(dataclasses.replace(made(nodes=3), simulated=simulated)).verdict.simulated is simulated


def test_a_limit_has_the_tolerances_of_all_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    """The group with the larger limit has the narrower range."""
    first = Limit("core-to-core", "coherence-cas", "ccx", "block", 0.4, 0.1, "", 0, 0.09, 0.11)
    second = replace(first, effect=0.2, tolerance_low=0.08, tolerance_high=0.12)
    reading: Any = SimpleNamespace(tables=())
    for limits in ((first, second), (second, first)):
        monkeypatch.setattr(agreements, "limits", lambda _, limits=limits: limits)
        assert fleet._limits(reading) == (replace(first, tolerance_low=0.08, tolerance_high=0.12),)


def test_groups_have_letters_and_from_the_27th_on_numbers() -> None:
    assert [fleet.letter(number) for number in (0, 1, 25, 26, 27)] == ["A", "B", "Z", "Z26", "Z27"]


def _population(hours: Sequence[float] = (), fields: Sequence[dict[str, str]] = (), **changes: Any) -> Any:
    nodes = [PackedNode(f"n{i}", fingerprint=of) for i, of in enumerate(fields)]
    return SimpleNamespace(
        fleet=SimpleNamespace(nodes=nodes, folder=None), rules=Acceptance(), hours=hours.__getitem__, **changes
    )


@pytest.mark.parametrize(
    ("hours", "later"),
    [((1, 2, 5, 9), 5.5), ((5, 9, 1, 2), -5.5), ((1, 5, 5, 9), 0.0), ((1, 9, 4, 5), 0.0), ((2, 2, 2, 2), 0.0)],
)
def test_a_group_was_measured_later_where_all_of_it_was(hours: tuple[float, ...], later: float) -> None:
    assert fleet._later_h(_population(hours), [2, 3], [0, 1]) == later


def test_a_field_goes_with_nodes_that_all_have_one_value_that_no_other_has() -> None:
    new, old = {"bios": "2", "os": "x", "thp": "always"}, {"bios": "1", "os": "x", "thp": "always"}
    reading: Any = SimpleNamespace(population=_population(fields=[new, {**new, "thp": "never"}, old, old]))
    assert fleet._fields(reading, [0, 1], range(4)) == {"bios": "2"}
    assert fleet._fields(reading, [0, 2], range(4)) == {}
    assert fleet._fields(reading, [0, 1], [0, 1]) == {}  # without others nothing goes with it
    assert fleet._fields(reading, [], range(4)) == {}
    reading.population.fleet.nodes[3] = PackedNode("n3", state="not measured", fingerprint=new)
    assert fleet._fields(reading, [0, 1], range(4)) == {"bios": "2"}
    reading.population.fleet.nodes[2] = PackedNode("n2", fingerprint={"os": "x"})  # unknown is no other value
    assert fleet._fields(reading, [0, 1], range(3)) == {}


def _shared(*findings: tuple[str, Finding]) -> list[Shared]:
    names = ["n0", "n1", "n2"]
    nodes: Any = {name: SimpleNamespace(findings=[finding for of, finding in findings if of == name]) for name in names}
    population = _population(
        fields=[{}] * 3, groups=[SimpleNamespace(nodes=np.arange(3))], group_of=dict.fromkeys(range(3), 0)
    )
    return fleet._shared(SimpleNamespace(population=population), nodes)  # type: ignore[arg-type]


def test_a_shared_difference_is_said_once_by_the_node_that_shows_most_of_it() -> None:
    first = verdicts.finding(-0.05, shared_by=("n1",))
    second = replace(
        first, effect=-0.08, shared_by=("n0",), component=Component("core", "core-near", {"core": 37, "cpu": 99})
    )
    (shared,) = _shared(("n0", first), ("n1", second))
    assert (shared.nodes, shared.effect) == (("n0", "n1"), -0.08)
    swapped = replace(second, shared_by=("n1",)), replace(first, shared_by=("n0",))
    assert [of.effect for of in _shared(("n0", swapped[0]), ("n1", swapped[1]))] == [-0.08]
    faster = replace(second, effect=0.08)
    assert [of.effect for of in _shared(("n0", first), ("n1", faster))] == [0.08, -0.05]  # two, the larger first
    three = replace(first, effect=-0.01, shared_by=("n1", "n2"))
    both = _shared(("n0", three), ("n1", second))
    assert [(len(of.nodes), of.effect) for of in both] == [(3, -0.01), (2, -0.08)]  # of more nodes it is first
    assert _shared(("n0", replace(first, shared_by=()))) == []


def test_the_agreements_of_a_fleet_are_the_worst_of_its_nodes_that_are_the_same() -> None:
    near, far = verdicts.agreement(within=0.02), verdicts.agreement(within=0.03)
    beside = verdicts.agreement("memory", within=0.01, criterion=False)
    nodes = {"n0": verdicts.node(agreements=(beside, near)), "n1": verdicts.node(agreements=(far, near))}
    assert fleet._worst(nodes) == (far, beside)
    nodes["n1"] = verdicts.node(Outcome.SUSPECT, agreements=(far,))
    assert fleet._worst(nodes) == (near, beside)


def test_what_was_planned_is_missing_where_no_node_has_it_or_needs_it() -> None:
    planned = ("clock-together", "bandwidth-nodes", "no-such")
    population = _population(fields=[{}] * 2, planned=planned, measured=lambda i: {"clock-together"} if i else set())
    nodes: Any = {"n0": None, "n1": None}
    reading: Any = SimpleNamespace(population=population)
    assert fleet._missing(reading, nodes) == ("bandwidth-nodes", "no-such")
    population.fleet.nodes[0] = PackedNode("n0", not_applicable=("bandwidth-nodes",))
    assert fleet._missing(reading, nodes) == ("no-such",)
    population.measured, population.fleet.nodes[0] = lambda _i: set(), PackedNode("n0")
    assert fleet._missing(reading, nodes) == ()  # nothing was measured at all, which its outcome says


def test_of_several_homes_the_largest_detection_limit_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    of = [Limit("memory", "chase-latency", "numa", "numa", effect, 0.02) for effect in (0.05, 0.09, 0.07)]
    other = replace(of[0], component_type="socket")
    monkeypatch.setattr(agreements, "limits", lambda _series: (*of, other))
    assert fleet._limits(SimpleNamespace(tables=())) == (of[1], other)  # type: ignore[arg-type]


@pytest.mark.parametrize(("measured", "unknown"), [((), []), (("triad", "copy"), ["tirad"])])
def test_tolerances_of_metrics_that_a_table_has_not_are_said_of_tables_alone(
    measured: tuple[str, ...], unknown: list[str]
) -> None:
    population = _population(fields=[])
    population.fleet.quantities = [SimpleNamespace(measurement=f"metric:{name}", operation=name) for name in measured]
    population.rules = replace(Acceptance(), metrics={"triad": Metric(), "tirad": Metric()})
    assert [note.name for note in fleet._unknown_metrics(population)] == unknown
