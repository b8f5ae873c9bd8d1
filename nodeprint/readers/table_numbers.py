"""Numbers as people and programs write them: with decimal commas, separators of thousands, or a unit behind.

A table has one number format. A cell that other cells do not make unambiguous is rejected: `3,792` is 3.792 in one
country and 3792 in another.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pandas as pd

from nodeprint.errors import printable
from nodeprint.readers.parsing import NUMBER

Floats = npt.NDArray[np.float64]

#: What stands where nothing was measured.
MISSING = frozenset({"", "-", "--", "nan", "n/a", "na", "none", "null", "nil"})
_PLAIN = re.compile(NUMBER)
#: By style how its numbers look, in which it differs from plain ones.
_POINT_GROUPED = re.compile(r"[+-]?\d{1,3}(?:[, '\u2019]\d{3})+(?:\.\d+)?")
_COMMA = re.compile(r"[+-]?\d+,\d*(?:[eE][+-]?\d+)?")
_COMMA_GROUPED = re.compile(r"[+-]?\d{1,3}(?:[. '\u2019]\d{3})+(?:,\d+)?")
_ONE_GROUP = re.compile(r"[+-]?[1-9]\d{0,2},\d{3}")
_WITH_UNIT = re.compile(r"([+-]?[\d.,'\u2019 ]*\d[.]?(?:[eE][+-]?\d+)?)\s*([A-Za-z%\u00b5\u03bc][^\d\s,;]{0,15})")


class NotANumber(ValueError):  # noqa: N818 (it says what a cell is)
    """A cell (its number in the column) that cannot be read, and why."""

    def __init__(self, cell: int, problem: str, advice: str) -> None:
        self.cell, self.problem, self.advice = cell, problem, advice
        super().__init__(problem)


def has_any(cells: Sequence[str]) -> bool:
    """Whether any cell of a column is a number, in whatever style: of words, dates, addresses or releases none is."""
    styles = (_PLAIN, _COMMA, _POINT_GROUPED, _COMMA_GROUPED, _WITH_UNIT)
    return any(style.fullmatch(cell) for cell in map(str.strip, cells) for style in styles)


def read_numbers(cells: Sequence[str]) -> tuple[Floats, npt.NDArray[np.object_]]:
    """Read a column: the values of its cells, NaN if nothing was measured, and the units that follow them.

    Raises NotANumber naming the first cell that is not a number or is ambiguous.
    """
    column = pd.Series(cells, dtype=object)
    units = np.full(len(column), "", dtype=object)
    values = np.full(len(column), np.nan)
    texts = column.astype(str).str.strip()
    plain = texts.str.fullmatch(_PLAIN).to_numpy(dtype=bool)
    values[plain] = texts[plain].astype(np.float64)
    others = np.flatnonzero(~plain & ~texts.str.lower().isin(MISSING).to_numpy())
    if len(others):
        _read_others(texts, others, plain, values, units)
    infinite = np.flatnonzero(np.isinf(values))
    if len(infinite):
        raise NotANumber(int(infinite[0]), f"{_shown(texts[infinite[0]])} is too large", "leave the row out")
    return values, units


def _read_others(
    texts: pd.Series[str],
    others: npt.NDArray[np.intp],
    plain: npt.NDArray[np.bool_],
    values: Floats,
    units: npt.NDArray[np.object_],
) -> None:
    """Read the cells that are no plain numbers, in the style that all of them have."""
    bare = {}
    for cell in others.tolist():
        number = texts[cell]
        if not (_COMMA.fullmatch(number) or _POINT_GROUPED.fullmatch(number) or _COMMA_GROUPED.fullmatch(number)):
            with_unit = _WITH_UNIT.fullmatch(number)
            if with_unit is None:
                raise NotANumber(
                    cell,
                    f"{_shown(number)} is no number",
                    "correct it, or leave the cell empty if nothing was measured",
                )
            number, units[cell] = with_unit[1].strip(), with_unit[2]
        bare[cell] = number
    pointed = plain & texts.str.contains(".", regex=False).to_numpy(dtype=bool)
    comma = _decimal_comma(bare, pointed=bool(pointed.any()))
    for cell, number in bare.items():
        values[cell] = _value(cell, number, comma=comma)
    # in a column with decimal commas a point separates thousands where another cell has both, else it is a mistake
    both = any("," in number and "." in number for number in bare.values())
    for cell in np.flatnonzero(pointed).tolist() if comma else ():
        if not both:
            raise _other_sign(cell, texts[cell])
        values[cell] = _value(cell, texts[cell], comma=True)


def _decimal_comma(bare: dict[int, str], *, pointed: bool) -> bool:
    """Whether commas are decimal ones; `pointed`: other cells have a decimal point. Raises NotANumber where no cell
    says so and one could be read in two ways."""
    decided: dict[bool, int] = {}
    ambiguous = None
    for cell, number in bare.items():
        if _ONE_GROUP.fullmatch(number):
            ambiguous = cell if ambiguous is None else ambiguous
        elif _COMMA.fullmatch(number) or ("," in number and _COMMA_GROUPED.fullmatch(number)):
            decided.setdefault(True, cell)
        elif "," in number and _POINT_GROUPED.fullmatch(number):
            decided.setdefault(False, cell)
    if len(decided) > 1:
        raise _other_sign(max(decided.values()), bare[max(decided.values())])
    if not decided and ambiguous is not None and not pointed:
        whole, _, rest = bare[ambiguous].partition(",")
        raise NotANumber(
            ambiguous,
            f"{_shown(bare[ambiguous])} may be {whole}.{rest} or {whole}{rest}",
            "write numbers with a decimal point and without separators of thousands",
        )
    return True in decided


def _value(cell: int, number: str, *, comma: bool) -> float:
    grouped, separator = (_COMMA_GROUPED, ".") if comma else (_POINT_GROUPED, ",")
    if comma and _COMMA.fullmatch(number):
        return float(number.replace(",", "."))
    if grouped.fullmatch(number):
        return float(number.translate(str.maketrans("", "", f" '\u2019{separator}")).replace(",", "."))
    if _PLAIN.fullmatch(number) and not (comma and "." in number):
        return float(number)
    raise _other_sign(cell, number)


def _other_sign(cell: int, number: str) -> NotANumber:
    advice = "write all numbers with a decimal point and without separators of thousands"
    return NotANumber(cell, f"{_shown(number)} has another decimal sign than the others", advice)


def _shown(text: str) -> str:
    return printable(repr(str(text)), 40)
