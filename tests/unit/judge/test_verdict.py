"""The types of a verdict: what is not known of something is nothing, and never a number."""

from __future__ import annotations

import msgspec
import pytest

from nodeprint.judge import verdict
from nodeprint.judge.outcome import Certainty
from tests.support.fleets import judged

TYPES = [of for of in vars(verdict).values() if isinstance(of, type) and issubclass(of, msgspec.Struct)]


@pytest.mark.parametrize("of", TYPES, ids=lambda of: of.__name__)
def test_what_is_left_out_is_nothing(of: type[msgspec.Struct]) -> None:
    for field in msgspec.structs.fields(of):
        if isinstance(field.default, int | float) and field.name not in ("schema", "measured"):
            assert not field.default or field.default != field.default, field.name  # 0, False or NaN
        if isinstance(field.default, verdict.Interval):
            assert field.default == verdict.Interval(0.0, 0.0)


@pytest.mark.parametrize(
    ("state", "counts", "is_outside"),
    [
        (Certainty.CONFIRMED, True, True),
        (Certainty.SUSPECTED, True, True),
        (Certainty.MISMATCH, True, True),
        (Certainty.INTERMITTENT, True, False),
    ],
)
def test_what_came_and_went_counts_and_is_not_outside_now(state: Certainty, counts: bool, is_outside: bool) -> None:
    shown = judged("node003: core 17 +10%").verdict.nodes["node003"].findings[0]
    finding = msgspec.structs.replace(shown, state=state)
    assert (finding.counts, finding.accepted, finding.is_outside) == (counts, False, is_outside)
    waived = msgspec.structs.replace(finding, waived="ticket 42")
    assert (waived.counts, waived.accepted) == (False, counts)


def test_a_finding_is_there_from_the_peers_value_and_the_tolerance_on() -> None:
    slower = judged("node003: core 17 +10%").verdict.nodes["node003"].findings[0]
    assert slower.fails_at == slower.peers + slower.tolerance_unit > slower.peers
    faster = msgspec.structs.replace(slower, effect=-slower.effect)
    assert faster.fails_at == slower.peers - slower.tolerance_unit
    assert msgspec.structs.replace(slower, id="limit").fails_at == slower.peers


def test_the_schema_allows_no_other_key_and_null_for_a_number_that_is_not_finite() -> None:
    made = verdict.schema()
    objects = [of for of in made["$defs"].values() if "properties" in of]
    assert len(objects) > 20 and all(of["additionalProperties"] is False for of in objects)
    finding = made["$defs"]["Finding"]["properties"]
    assert finding["effect"]["type"] == ["number", "null"] and finding["home"]["type"] == "integer"
    assert made["$defs"]["Agreement"]["properties"]["runs"]["type"] == "integer"
