"""What a finding is: consistent with what, of which place, and one with which others."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace
from scipy import stats

from nodeprint.data.store.packed import PackedNode
from nodeprint.judge import findings, peer_sensors
from nodeprint.judge.outcome import Certainty
from nodeprint.judge.terms import Cause
from nodeprint.judge.verdict import Component, Evidence
from nodeprint.report import text
from nodeprint.settings.measurements import terms
from tests.support import verdicts
from tests.support.fleets import judged


@pytest.mark.parametrize(
    ("consistent", "ratio", "effect", "expected"),
    [
        (("core-clock", "daemon"), None, 0.1, ("core-clock", "daemon")),
        (("core-clock", "daemon"), 0.8, 0.0, ("daemon",)),
        (("core-clock", "daemon"), 1.01, 0.1, ("daemon",)),
        (("core-clock", "daemon"), 0.9, 0.1, ("core-clock",)),
        (("core-clock", "daemon"), 0.97, 0.3, ("core-clock", "daemon")),  # it explains a tenth
        (("core-clock", "daemon"), 1.1, 0.1, ("daemon",)),  # a faster clock slows nothing
        (("fabric-clock", "nps"), 0.9, 0.1, ("fabric-clock", "nps")),
    ],
)
def test_the_core_clock_is_named_as_far_as_its_probe_explains_the_effect(
    consistent: tuple[str, ...], ratio: float | None, effect: float, expected: tuple[str, ...]
) -> None:
    assert findings._by_clock(consistent, ratio, effect) == expected


def test_two_nodes_that_differ_have_one_difference() -> None:
    """Of a difference of 3.3 ns one node had 2.95 ns more and the other 3.19 ns less."""
    defects = "node001: core 17 +12%", "node001: memory-channel node 1 -20%"
    verdict = judged(*defects, cells=True, nodes=2, jobs=2).verdict
    first, second = (verdict.nodes[name].findings for name in ("node000", "node001"))
    for measurement in ("coherence-cas", "bandwidth-nodes"):
        a, b = (next(of for of in findings if of.measurement == measurement) for findings in (first, second))
        assert (a.peer, b.peer) == ("node001", "node000")
        assert a.effect_unit == pytest.approx(-b.effect_unit, rel=1e-4)
        assert (a.value, a.peers) == pytest.approx((b.peers, b.value), rel=1e-4)
        assert abs(a.tolerance_unit / a.tolerance * a.effect) == pytest.approx(abs(a.effect_unit), rel=1e-4)
        words = [text.finding_sentence(of) for of in (a, b)]
        is_latency = measurement == "coherence-cas"
        assert [("relative to the middle of both" in of) for of in words] == [is_latency, is_latency]
        assert "on node001" in words[0] + text.node_sentence(verdict.nodes["node000"]) and "peers" not in "".join(words)
        if is_latency:
            sizes = [re.findall(r"([\d.]+) ns (?:more|less)", of) for of in words]
            assert sizes == 2 * [[f"{abs(a.effect_unit):.3g}"]]


@pytest.mark.slow
@pytest.mark.parametrize("jobs", [1, 2])
def test_the_interval_of_a_finding_follows_from_its_error_degrees_and_tail(jobs: int) -> None:
    campaign = judged("node001: core 17 +12%", "node002: memory-channel node 1 -20%", cells=True, jobs=jobs)
    for name, on_scale in (("node001", float), ("node002", np.log1p)):
        finding = campaign.verdict.nodes[name].findings[0]
        half = stats.t.isf(finding.tail, finding.degrees) * finding.error
        ends = [on_scale(finding.interval.low), on_scale(finding.interval.high)]
        assert ends == pytest.approx([on_scale(finding.effect) - half, on_scale(finding.effect) + half])


@pytest.mark.parametrize(
    ("term", "where", "effect", "worse", "expected"),
    [
        ("core", {"core": 1}, 0.1, True, ("core-clock", "core", "daemon")),
        ("core", {"core": 1}, -0.1, False, ("higher-clock", "core-clock")),
        ("core", {"core": 1}, 0.1, False, ("settings",)),
        ("class", {"class": 5, "to_socket": 1}, 0.1, True, ("socket-link",)),
        ("class", {"class": 0}, 0.1, True, ("core-clock", "l3-clock")),
        ("class", {"class": 1}, 0.1, True, ("core-clock", "l3-clock")),
        ("class", {"class": 2}, 0.1, True, ("fabric-clock", "nps")),
        ("class", {"class": 6}, 0.1, True, ("core-and-fabric-clock", "power-limit", "firmware")),
        ("ccd", {"ccd": 1, "inside": 1}, 0.1, True, ("core-clock", "l3-clock")),
        ("ccd", {"ccd": 1}, 0.1, True, ("ccd-port", "core-clock")),
        ("block", {"ccx": 1}, 0.1, True, ("core-clock", "l3-clock")),
        ("block", {"ccd": 1}, 0.1, True, ("component-link",)),
        ("no-such", {}, 0.1, True, ()),
    ],
)
def test_what_a_finding_is_consistent_with_follows_from_its_part_and_side(
    term: str, where: dict[str, int], effect: float, worse: bool, expected: tuple[str, ...]
) -> None:
    nothing = np.zeros(0, dtype=np.int64)
    assert findings._consistent(Cause(term, where, nothing, nothing, 0), effect, worse) == expected


@pytest.mark.parametrize(
    ("where", "slots"),
    [
        ({"core": 17}, range(34, 36)),
        ({"across": 1, "ccd": 2}, range(32, 48)),
        ({"socket": 1}, range(64, 128)),
        ({"class": 2}, range(128)),
    ],
)
def test_slots_of_a_finding_are_those_of_its_part(where: dict[str, int], slots: range) -> None:
    """Of 64 cores of two threads, eight on a CCD."""
    matrix = next(series.matrix for series in judged().tables if series.matrix.measured.of_pairs)
    shown = SimpleNamespace(matrix=matrix, cause=SimpleNamespace(where=where))
    assert findings._slots(shown) == list(slots)  # type: ignore[arg-type]


def test_findings_of_pairs_are_the_same_in_two_matrices_of_one_layout_by_place_or_part() -> None:
    terms_of = object(), object()
    first, second, other, cells = (
        SimpleNamespace(measured=SimpleNamespace(of_pairs=pairs), terms=terms_of[number])
        for pairs, number in ((True, 0), (True, 0), (True, 1), (False, 0))
    )

    def same(a: object, b: object, keys: tuple[str, str], members: tuple[int, int]) -> bool:
        one, two = (
            SimpleNamespace(matrix=matrix, key=key, cause=SimpleNamespace(members=np.array([member])))
            for matrix, key, member in zip((a, b), keys, members, strict=True)
        )
        return findings._same(one, two)  # type: ignore[arg-type]

    place, places = ("near core=1", "far core=1"), ("near core=1", "far core=2")
    assert same(first, second, place, (1, 2)) and same(first, second, places, (1, 1))
    assert not same(first, second, places, (1, 2)) and not same(first, first, place, (1, 1))
    assert not same(first, other, place, (1, 1)) and not same(cells, second, place, (1, 1))


def test_causes_of_cells_are_those_of_their_measurements() -> None:
    assert findings._causes_of("clock") == terms()["clock"].causes != ()


@pytest.mark.parametrize(
    ("effect", "better", "called"), [(0.1, "lower", "slow"), (-0.1, "lower", "fast"), (-0.1, "higher", "slow")]
)
def test_a_finding_is_slow_on_the_bad_side(effect: float, better: str, called: str) -> None:
    assert findings._identity("core", effect, better, "linear") == f"core-{called}"
    assert findings._identity("no-such", effect, better, "share") == f"no-such-{called}"


@pytest.mark.parametrize(
    ("term", "where", "key"),
    [
        ("class", {"class": 6}, "unlabeled"),
        ("block", {"ccx": 1}, "ccx"),
        ("block", {"ccd": 1}, "block"),
        ("core", {"ccx": 1}, "core"),
        ("bandwidth", {"ccd": 1}, "ccd"),
        ("bandwidth", {"memory_node": 1}, "bandwidth"),
        ("bandwidth", {"cpu_node": 1, "memory_node": 1}, "bandwidth"),
        ("bandwidth", {"cpu_node": 0, "memory_node": 1}, "memory-path"),
        ("numa", {"socket": 0, "memory_node": 1}, "memory-path"),
        ("numa", {"cpu": 4}, "core"),
        ("numa", {"distance": "own node"}, "numa"),
        ("cache", {"core": 4, "cpu": 4}, "cache"),
    ],
)
def test_the_remedy_is_that_of_the_part_and_only_for_the_bad_side(term: str, where: dict[str, Any], key: str) -> None:
    assert findings._remedy(term, where, worse=True) == key
    assert findings._remedy(term, where, worse=False) == ("unlabeled" if key == "unlabeled" else "better")


def test_instruments_say_what_they_saw_beside_what_is_usual() -> None:
    node = PackedNode("n1", sensors={"temperature_c": 75.0, "throttled": 0.0, "memory_errors": 2.0})
    clock, temperature, *counted = findings._instruments(node, 60.0, 0.9, pairs=True)
    assert clock == Evidence("clock", True, 0.9, 1.0, "1")
    assert temperature == Evidence("temperature", True, 75.0, 60.0, "°C")
    assert [(of.kind, of.seen, of.value) for of in counted[:2]] == [
        ("throttling", False, 0.0),
        ("memory-errors", True, 2.0),
    ]
    unknown = list(findings._instruments(PackedNode("n1"), 60.0, None, pairs=True))
    assert len(unknown) >= 4 and all(of.seen is None for of in unknown)
    assert next(of.kind for of in findings._instruments(node, 70.0, 0.9, pairs=False)) == "temperature"


# --- findings of cells: one a place ---

_SLOTS = np.array([[0, 0], [0, 0], [0, 1], [0, 1], [1, 2], [1, 2], [1, 3], [1, 3]])


def _cells(
    term: str,
    where: Mapping[str, int | str],
    effect: float = -0.1,
    state: Certainty = Certainty.CONFIRMED,
    **changes: Any,
) -> Any:
    """A finding of cells of a machine of eight CPUs: two sockets, four CCXs, a NUMA node a socket."""
    layout = SimpleNamespace(slots=_SLOTS, levels=("socket", "ccx"), numa=_SLOTS[:, 0])
    labels = {"memory_node": "node", "cpu_node": "node_of_cpu"}
    measured = SimpleNamespace(of_pairs=False, layout=layout, model=SimpleNamespace(labels=labels))
    of = verdicts.finding(effect, state, component=Component(term, term, where), worse=effect < 0, **changes)
    row: Any = SimpleNamespace(matrix=SimpleNamespace(measured=measured))
    cause: Any = SimpleNamespace(where=where)
    return findings.TableFinding(
        row, cause, replace(of, times_tolerance=abs(effect) / of.tolerance, finer=()), f"m {term}"
    )


@pytest.mark.parametrize(
    ("where", "cpus"),
    [
        ({}, range(8)),
        ({"socket": 1}, range(4, 8)),
        ({"ccx": 1}, range(2, 4)),
        ({"cpu": 5}, [5]),
        ({"memory_node": 1}, range(4, 8)),
        ({"cpu_node": 0, "memory_node": 1}, range(4, 8)),
        ({"cpu_node": 0}, range(4)),
        ({"stream": "load", "ccx": 0}, range(2)),
    ],
)
def test_the_cpus_of_a_place_of_cells(where: dict[str, int | str], cpus: Sequence[int]) -> None:
    assert findings._cpus(_cells("bandwidth", where)).tolist() == list(cpus)


def test_a_place_is_narrower_with_fewer_cpus_and_then_by_what_it_names() -> None:
    places: list[dict[str, int | str]] = [
        {"cpu": 1},
        {"ccx": 0},
        {"memory_node": 0, "stream": "load"},
        {"socket": 0},
        {},
    ]
    assert sorted(places, key=lambda where: findings._width(_cells("numa", where))) == places


@pytest.mark.parametrize(
    ("first", "second", "one"),
    [
        ({"core": 3}, {"core": 3, "ccx": 0}, True),
        ({"core": 3}, {"core": 4}, False),
        ({"core": 3, "ccx": 0}, {"core": 3, "ccx": 1}, False),
        ({"memory_node": 1, "cpu_node": 0}, {"memory_node": 1, "cpu_node": 1}, False),
        ({"socket": 0}, {"ccx": 0, "socket": 0}, False),
        ({}, {}, True),
        ({"stream": "load"}, {"stream": "store"}, False),
    ],
)
def test_findings_of_one_place_are_one(first: dict[str, int | str], second: dict[str, int | str], one: bool) -> None:
    both = _cells("numa", first).finding, _cells("bandwidth", second).finding
    assert findings._in_one_place(*both) == one
    assert not findings._in_one_place(both[0], replace(both[1], worse=False))


def test_of_one_place_the_coarsest_measurement_is_the_finding_and_the_largest_of_each() -> None:
    ranks = {name: term.rank for name, term in terms().items()}
    first, second = sorted(("clock", "bandwidth"), key=ranks.__getitem__)
    shown = [_cells(second, {"core": 1}, -0.5), _cells(first, {"core": 1}, -0.1), _cells(first, {"core": 1}, -0.2)]
    (of,) = findings._by_place(shown)
    assert of.finding.component.term == first and of.finding.effect == -0.2
    assert [(finer.component.term, finer.effect) for finer in of.finding.finer] == [(first, -0.1), (second, -0.5)]
    assert len(findings._by_place([*shown, _cells(first, {"core": 2})])) == 2
    unranked = findings._by_place([_cells("no-such", {"core": 1}, -0.9), _cells(second, {"core": 1})])
    assert unranked[0].finding.component.term == second


def _nested(*shown: Any) -> list[tuple[dict[str, int | str], int]]:
    """The places of what is left, each with how many are under it."""
    return [(dict(of.finding.component.where), len(of.finding.finer)) for of in findings._nested(list(shown))]


def test_a_narrow_place_explains_the_wider_ones_and_several_are_the_wide_one() -> None:
    wide, inner, beside = {"socket": 0}, {"ccx": 0}, {"ccx": 1}
    assert _nested(_cells("bandwidth", wide, -0.05), _cells("bandwidth", inner, -0.1)) == [(inner, 1)]
    both = _cells("bandwidth", inner, -0.1), _cells("bandwidth", beside, -0.09)
    assert _nested(_cells("bandwidth", wide, -0.08), *both) == [(wide, 2)]
    # what the wider place shows is less than either shows by itself: the larger explains it
    assert _nested(_cells("bandwidth", wide, -0.05), *both) == [(beside, 0), (inner, 1)]
    # more than a third above what is inside is no effect of that alone
    assert len(_nested(_cells("bandwidth", wide, -0.14), _cells("bandwidth", inner, -0.1))) == 2
    assert len(_nested(_cells("bandwidth", wide, 0.05), _cells("bandwidth", inner, -0.1))) == 2
    assert len(_nested(_cells("clock", wide, -0.05), _cells("bandwidth", inner, -0.1))) == 2
    assert len(_nested(_cells("bandwidth", {"socket": 1}, -0.05), _cells("bandwidth", inner, -0.1))) == 2


def test_a_wider_place_that_alone_is_confirmed_is_the_finding() -> None:
    wide, inner = {"socket": 0}, {"ccx": 0}
    suspected = _cells("bandwidth", inner, -0.1, Certainty.SUSPECTED)
    assert _nested(_cells("bandwidth", wide, -0.05), suspected) == [(wide, 1)]
    assert _nested(_cells("bandwidth", wide, -0.05, Certainty.SUSPECTED), suspected) == [(inner, 1)]


def test_what_is_merged_is_ordered_by_state_side_and_size() -> None:
    shown = [
        _cells("bandwidth", {"ccx": 0}, 0.4),
        _cells("bandwidth", {"ccx": 1}, -0.1),
        _cells("bandwidth", {"ccx": 2}, -0.2),
        _cells("bandwidth", {"ccx": 3}, -0.9, Certainty.SUSPECTED),
    ]
    assert [of.finding.component.where["ccx"] for of in findings.merged(shown)] == [2, 1, 0, 3]


def test_the_peers_share_of_the_time_is_what_an_effect_adds_to() -> None:
    matrix: Any = SimpleNamespace(levels=np.array([0.02, 0.05]), terms=SimpleNamespace(share=True))
    assert [findings._usual(matrix, component) for component in (0, 1)] == [0.02, 0.05]
    matrix.terms.share = False
    assert findings._usual(matrix, 1) == 0  # of a latency an effect is relative to it


@pytest.mark.parametrize(
    ("nodes", "others", "contradicted"),
    [
        (5, [1.0, 9.0], False),
        (4, [1.0, 1.15, 1.0], False),
        (4, [1.0, 1.17, 1.0], True),
        (4, [1.0, np.nan, np.nan], True),
        (3, [1.0, 1.0, np.nan], False),
    ],
)
def test_of_few_nodes_the_others_agree_within_the_tolerance_or_nobody_is_named(
    nodes: int, others: list[float], contradicted: bool
) -> None:
    """A tolerance of 0.1 and three standard errors of 0.02."""

    class Pooled:
        means = np.array([*others[:2], 7.0, *others[2:]])[:, None]

        def __getitem__(self, positions: list[int]) -> Any:
            assert positions == [2]
            return SimpleNamespace(error=np.array([[0.02]]))

    series: Any = SimpleNamespace(
        matrix=SimpleNamespace(nodes=range(nodes)), tolerance=np.array([0.1]), pooled=Pooled()
    )
    assert findings._contradicted(series, 0, 2) == contradicted


@pytest.mark.parametrize(("ratio", "seen"), [(1.019, False), (0.981, False), (1.021, True), (0.979, True)])
def test_a_clock_is_seen_two_percent_off_and_heat_eight_degrees_above_the_peers(ratio: float, seen: bool) -> None:
    node = PackedNode("n1", sensors={"temperature_c": 68.0})
    clock, heat, *_ = findings._instruments(node, 60.0 - 0.1 * seen, ratio, pairs=True)
    assert (clock.seen, heat.seen) == (seen, seen)


def test_a_finding_has_what_its_instruments_say_and_the_fields_that_differ() -> None:
    found = judged("node001: core 17 +9%", nodes=5, pair_runs=2)
    ((shown,), node) = found.findings[1], found.population.fleet.nodes[1]
    of = findings.explained(shown, 1, node, peer_sensors.table({1: node.sensors}), ["bios"])
    assert of.evidence[0].kind == "clock" and of.evidence[-1] == Evidence("configuration", True, field="bios")
