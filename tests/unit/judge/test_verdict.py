"""The types of a verdict: what is not known of something is nothing, and never a number."""

from __future__ import annotations

import msgspec
import pytest

from nodeprint.judge import verdict

TYPES = [of for of in vars(verdict).values() if isinstance(of, type) and issubclass(of, msgspec.Struct)]


@pytest.mark.parametrize("of", TYPES, ids=lambda of: of.__name__)
def test_what_is_left_out_is_nothing(of: type[msgspec.Struct]) -> None:
    for field in msgspec.structs.fields(of):
        if isinstance(field.default, int | float) and field.name not in ("schema", "measured"):
            assert not field.default or field.default != field.default, field.name  # 0, False or NaN
        if isinstance(field.default, verdict.Interval):
            assert field.default == verdict.Interval(0.0, 0.0)
