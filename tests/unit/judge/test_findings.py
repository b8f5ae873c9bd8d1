"""What a finding is consistent with: what the clock probe says of it."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from nodeprint.judge import findings
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
