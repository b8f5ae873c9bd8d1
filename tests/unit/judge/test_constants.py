"""What docs/method/constants.md says of the numbers that decide is what the judge does."""

from __future__ import annotations

import pytest

from tests.support.method import constants, in_code


@pytest.mark.parametrize(("module", "name", "value"), list(constants("judge")))
def test_the_page_of_constants_has_those_of_the_code(module: str, name: str, value: float) -> None:
    assert in_code(module, name) == value
