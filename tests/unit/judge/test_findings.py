"""What a finding is consistent with: what the clock probe says of it."""

from __future__ import annotations

import pytest

from nodeprint.judge import findings


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
