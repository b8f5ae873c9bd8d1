"""Who is compared with whom: groups, configurations and jobs of nodes, read off hand-made fleets."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import msgspec
import numpy as np
import pytest

from nodeprint.judge import acceptance, disagreements, groups, population
from nodeprint.judge.groups import PeerGroup
from nodeprint.judge.population import Population
from tests.support.fleets import made, times

RULES = acceptance.load()
HOPS = "coherence-cas"


def of_fleet(**changes: Any) -> Population:
    return Population.of(made(**{"pair_runs": 2, **changes}), RULES, (HOPS,))


def test_all_nodes_of_one_configuration_are_compared() -> None:
    of = of_fleet(nodes=4)
    assert (of.compared, of.lone, of.split_nodes) == (4, False, frozenset())
    assert set(of.group_of.values()) == {0}
    assert [of.configuration_of[i].tolist() for i in range(4)] == [[0, 1, 2, 3]] * 4
    assert of.split() is of and of.gap is None
    alone = of_fleet(nodes=1)
    assert alone.lone and alone.groups == () and alone.compared == 0


def test_a_fleet_of_which_one_node_was_measured_is_a_lone_machine() -> None:
    one, *others = made(nodes=3, pair_runs=2).nodes
    missing = tuple(replace(node, state="not measured") for node in others)
    assert Population.of(replace(made(nodes=3, pair_runs=2), nodes=(one, *missing)), RULES, ()).lone


def test_jobs_and_runs_of_a_node_are_of_all_its_measurements() -> None:
    of = of_fleet(nodes=2, jobs=2, runs=2, pair_runs=5, cells=True)
    assert of.jobs(1) == [1, 2] and of.runs(1) == 5
    assert HOPS in of.measured(1) and "chase-latency" in of.measured(1) and of.jobs(7) == []
    assert of.runs(7) == 0 and of.newest(7) == "" and np.isnan(of.hours(7))


def test_a_node_was_measured_when_its_newest_job_began() -> None:
    hours = {1: ("2026-01-01T10:00:00Z", "2026-01-01T11:00:00Z"), 2: ("2026-01-02T05:00:00Z", "2026-01-02T06:00:00Z")}
    fleet = made(nodes=2, jobs=2, pair_runs=2)
    (quantity,) = fleet.quantities
    started = tuple(hours[job][run - 1] for job, run in zip(quantity.job.tolist(), quantity.run.tolist(), strict=True))
    of = Population.of(replace(fleet, quantities=(quantity.assign(started=started),)), RULES, ())
    assert of.began == of.newest(0) == "2026-01-02T06:00:00Z"
    assert of.hours(0) == pytest.approx(np.datetime64("2026-01-02T05", "h").astype(int))


@pytest.mark.parametrize(
    ("first", "second", "together"), [(3, 2, True), (2, 2, True), (4, 2, False), (6, 4, True), (7, 3, False)]
)
def test_configurations_of_one_machine_are_looked_at_together_without_a_majority(
    first: int, second: int, *, together: bool
) -> None:
    """Two thirds are one: a split between configurations is no news there."""
    of = of_fleet(nodes=first + second)
    numbers = np.arange(first + second)
    both = (PeerGroup(numbers[:first]), PeerGroup(numbers[first:]))
    machines = msgspec.structs.replace(of, groups=both)._machines()
    sizes = [[len(configuration) for configuration in of_it] for of_it in machines]
    assert sizes == ([[first, second]] if together else [[first], [second]])


def test_the_gap_is_that_which_is_most_tolerances_wide_on_either_side(monkeypatch: pytest.MonkeyPatch) -> None:
    of = of_fleet(nodes=6)
    numbers = np.arange(6)
    of = msgspec.structs.replace(of, groups=tuple(PeerGroup(numbers[i : i + 2]) for i in (0, 2, 4)))
    cuts = {0: (0.01, 0.02), 2: (-0.03, 0.04), 4: None}  # of a smaller tolerance a smaller gap may be wider
    found: dict[int, Any] = {
        first: None if cut is None else SimpleNamespace(cut=SimpleNamespace(effect=cut[0], tolerance=cut[1]))
        for first, cut in cuts.items()
    }
    monkeypatch.setattr(groups, "gap", lambda nodes, *_: found[int(nodes[0])])
    assert of.gap is found[2]


def test_two_nodes_are_compared_and_one_is_not() -> None:
    of = of_fleet(nodes=3)
    assert of.matrices(np.array([1])) == []
    made_once = of.matrices(np.array([0, 2]))
    assert {tuple(matrix.nodes.tolist()) for matrix in made_once} == {(0, 2)}
    assert of.matrices(np.array([0, 2])) is made_once
    nothing = times(made(nodes=3, pair_runs=2), HOPS, lambda _node, _job: np.nan)
    assert Population.of(nothing, RULES, ()).matrices(np.arange(3)) == []


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_matrix_has_all_jobs_of_its_nodes(jobs: int) -> None:
    (matrix,) = of_fleet(nodes=3, jobs=jobs).matrices(np.arange(3))
    assert matrix.owner.tolist() == [node for node in range(3) for _ in range(jobs)]
    assert [matrix.job(row) for row in matrix.jobs(2)] == [f"job{job + 1}" for job in range(jobs)]


def test_invalid_jobs_show_nothing_and_a_node_with_no_other_is_no_peer() -> None:
    of = of_fleet(nodes=2, jobs=2)
    measured = of.reduced[0]
    assert measured.valid([{2: ()}, {}]).independent_jobs == {0: [[1]], 1: [[1], [2]]}
    none = measured.valid([{1: ()}, {1: (), 2: ()}])
    assert none.independent_jobs == {0: [[2]], 1: []}
    assert none.rows_used == {node: measured.rows[node][2] for node in (0, 1)}, "the newest job where none is valid"

    def usable(*invalid: int, unusable: tuple[str, ...] = ()) -> bool:
        fleet = replace(of.fleet, nodes=(replace(of.fleet.nodes[0], unusable=unusable), of.fleet.nodes[1]))
        return population._usable(0, fleet, of.reduced, [dict.fromkeys(invalid), {}])

    assert usable() and usable(1) and not usable(1, 2) and not usable(unusable=("cut",))


def test_virtual_machines_beside_one_that_was_moved_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a host moves CPUs, a difference between two of its machines is no fault; of real ones it is."""
    of = of_fleet(nodes=4, jobs=2)
    nodes = [replace(node, fingerprint={"virtual": "kvm"} if i < 3 else {}) for i, node in enumerate(of.fleet.nodes)]
    moved, differs = SimpleNamespace(kind="cpus-moved"), SimpleNamespace(kind="cpus-moved")
    asked: list[list[int]] = []

    def between(_nodes: object, still: list[int], *_: object) -> dict[int, object]:
        asked.append(still)
        return dict.fromkeys(still[:1], differs)

    monkeypatch.setattr(disagreements, "between_nodes", between)
    alike = [np.arange(4)]

    def with_moved(*disturbed: dict[int, list[object]]) -> tuple[Any, ...]:
        return population._moved(nodes, alike, of.reduced, RULES, disturbed)  # type: ignore[arg-type]

    assert with_moved({}, {1: [moved]}, {}, {}) == ({1: [differs], 2: [differs]}, {1: [moved]}, {}, {})
    assert asked == [[0, 2]]
    other = SimpleNamespace(kind="missing")
    assert with_moved({}, {1: [other]}, {}, {}) == ({}, {1: [other]}, {}, {}) and len(asked) == 1
    assert with_moved({}, {}, {}, {1: [moved]})[0] == {} and len(asked) == 1
