"""What a finding is consistent with: what the clock probe says of it."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats

from nodeprint.data.store.packed import PackedNode
from nodeprint.judge import findings
from nodeprint.judge.causes import Cause
from nodeprint.judge.verdict import Evidence
from nodeprint.settings.measurements import terms
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
        ("block", {"ccd": 1}, 0.1, True, ("part-link",)),
        ("no-such", {}, 0.1, True, ()),
    ],
)
def test_what_a_finding_is_consistent_with_follows_from_its_part_and_side(
    term: str, where: dict[str, int], effect: float, worse: bool, expected: tuple[str, ...]
) -> None:
    nothing = np.zeros(0, dtype=np.int64)
    assert findings._consistent(Cause(term, where, 0, nothing, nothing, nothing), effect, worse) == expected


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
    matrix = next(series.matrix for series in judged().series if series.matrix.quantity.of_pairs)
    shown = SimpleNamespace(series=SimpleNamespace(matrix=matrix), cause=SimpleNamespace(where=where))
    assert findings._slots(shown) == list(slots)  # type: ignore[arg-type]


def test_findings_of_pairs_are_the_same_in_two_matrices_of_one_layout_by_place_or_part() -> None:
    terms_of = object(), object()
    first, second, other, cells = (
        SimpleNamespace(quantity=SimpleNamespace(of_pairs=pairs), terms=terms_of[number])
        for pairs, number in ((True, 0), (True, 0), (True, 1), (False, 0))
    )

    def same(a: object, b: object, keys: tuple[str, str], members: tuple[int, int]) -> bool:
        one, two = (
            SimpleNamespace(
                series=SimpleNamespace(matrix=matrix), key=key, cause=SimpleNamespace(members=np.array([member]))
            )
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


def test_a_part_without_labels_or_inside_a_ccx_has_a_remedy_of_its_own() -> None:
    assert findings._remedy("class", {"class": 6}) == "unlabelled"
    assert findings._remedy("block", {"ccx": 1}) == "ccx"
    assert findings._remedy("block", {"ccd": 1}) == "block" and findings._remedy("core", {"ccx": 1}) == "core"


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
