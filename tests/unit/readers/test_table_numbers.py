"""Numbers of every country are read right, or refused where they can be read in two ways."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodeprint.readers import table_numbers


@pytest.mark.parametrize(
    ("cells", "values"),
    [
        (["3034.6", "1e3", " 7 "], [3034.6, 1000.0, 7.0]),
        (["3792,1", "1.234,5", "980"], [3792.1, 1234.5, 980.0]),
        (["12,345.6", "1,234"], [12345.6, 1234.0]),
        (["987.5", "1,234"], [987.5, 1234.0]),
        (["1'234.5", "12 345.6"], [1234.5, 12345.6]),
        (["0,985", "1,2"], [0.985, 1.2]),
    ],
)
def test_numbers_as_countries_write_them(cells: list[str], values: list[float]) -> None:
    assert table_numbers.read_numbers(cells)[0].tolist() == values


def test_what_stands_for_nothing_is_nothing() -> None:
    assert all(math.isnan(value) for value in table_numbers.read_numbers(["", "NaN", "n/a", "-", "None"])[0])


def test_a_unit_behind_the_number_is_its_unit() -> None:
    values, units = table_numbers.read_numbers(["3792.1 MB/s", "12GB/s", "5"])
    assert (values.tolist(), units.tolist()) == ([3792.1, 12.0, 5.0], ["MB/s", "GB/s", ""])


@pytest.mark.parametrize(
    ("cells", "cell", "problem"),
    [
        (["3,792", "3,801"], 0, "'3,792' may be 3.792 or 3792"),
        (["3,79", "3.79"], 1, "'3.79' has another decimal sign"),
        (["1,5", "2.345"], 1, "'2.345' has another decimal sign"),
        (["1", "fast"], 1, "'fast' is no number"),
        (["1_000"], 0, "'1_000' is no number"),
        (["1", "inf"], 1, "'inf' is no number"),
        (["1e400"], 0, "'1e400' is too large"),
    ],
)
def test_what_can_be_read_in_two_ways_is_refused(cells: list[str], cell: int, problem: str) -> None:
    with pytest.raises(table_numbers.NotANumber) as refused:
        table_numbers.read_numbers(cells)
    assert refused.value.cell == cell
    assert refused.value.problem.startswith(problem)


@given(st.lists(st.floats(1e-3, 1e9), min_size=1, max_size=20))
def test_what_programs_print_is_read_as_it_was(values: list[float]) -> None:
    assert table_numbers.read_numbers([f"{value:.3f}" for value in values])[0].tolist() == [
        float(f"{v:.3f}") for v in values
    ]
    german = [f"{value:,.2f}".translate(str.maketrans(",.", ".,")) for value in values]
    assert table_numbers.read_numbers(german)[0].tolist() == [float(f"{value:.2f}") for value in values]
