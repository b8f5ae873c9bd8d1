"""What a finding is consistent with: what the clock probe says of it."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from nodeprint.data.packed import PackedNode
from nodeprint.judge import findings
from nodeprint.judge.verdict import Evidence
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


def test_instruments_say_what_they_saw_beside_what_is_usual() -> None:
    node = PackedNode("n1", senses={"temperature_c": 75.0, "throttled": 0.0, "memory_errors": 2.0})
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
