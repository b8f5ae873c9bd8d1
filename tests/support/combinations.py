"""Products of parameters of which a part is enough in each run of the suite."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import pytest


def in_turn(rows: Iterable[object], columns: Sequence[object], of_each: int = 1) -> list[Any]:
    """Every pair (row, column) as a parameter: each row has the next `of_each` columns in turn, the rest are long.

    Where a fault shows in some column of a row, it nearly always shows in some row of that column, too: the diagonal
    finds it in seconds and the whole product is for who has minutes (make test-all).
    """
    parameters = []
    for number, row in enumerate(rows):
        usual = {(number * of_each + step) % len(columns) for step in range(of_each)}
        for place, column in enumerate(columns):
            marks = () if place in usual else (pytest.mark.long,)
            parameters.append(pytest.param(row, column, marks=marks))
    return parameters


def one_of(items: Sequence[Any], each: int) -> list[Any]:
    """Parameters of a test of which the first of `each` are tried by `make test`, the others by `make test-all`."""
    return [
        pytest.param(
            *item if isinstance(item, tuple) else (item,), marks=() if place % each == 0 else (pytest.mark.long,)
        )
        for place, item in enumerate(items)
    ]
