"""Columns without results: by their cells they count runs, number lines, or hold dates.

A seed, a counter or a date differs so little, relative to its size, that every node would match in it.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from nodeprint.readers import table_numbers

Floats = npt.NDArray[np.floating[Any]]

_ISO = re.compile(r"\d{4}-\d{2}-\d{2}(?:[T ].*)?")
#: Seconds since 1970 of the years 2001 to 2033, and the same in milliseconds.
_SECONDS = (1e9, 2e9)
#: A calendar day as a number, as 20261127.
_DAYS = (20_000_101, 20_991_231)
#: Fewer lines than these are numbered by chance.
_FEWEST_LINES = 3


def problem(cells: pd.Series[str], node: pd.Series[str]) -> tuple[str, str] | None:
    """Return the meaning of the cells of a column with lines of these nodes, and the column's proper name. None if they
    may be values or parts."""
    filled = cells[~cells.str.lower().isin(table_numbers.MISSING)]
    if len(filled) and filled.str.fullmatch(_ISO).all():
        return "has dates", "time"
    if len(filled) < len(cells) or not cells.str.fullmatch(r"\d{1,15}").all():
        return None
    values = cells.astype(np.float64).to_numpy()
    if len(values) > 1 and _are_moments(values):
        return "has dates", "time"
    if _number(values):
        return f"numbers the lines from {values.min():.0f} on", ""
    most = counted(values, node)
    return (f"counts to {most} on each node", "run") if most else None


def counted(values: Floats, node: pd.Series[str]) -> int:
    """The number up to which whole numbers of a column count on each node, from 0 or 1; 0 if they do not count.

    Each number has to occur equally often. Nodes may lack some, as for failed runs, if half of those with several lines
    have all.
    """
    first, most = int(values.min()), int(values.max())
    if first not in (0, 1) or most == first or most > len(values):
        return 0
    of_nodes = [own.to_numpy() for _, own in pd.Series(values).groupby(node.to_numpy())]
    several = [own for own in of_nodes if len(own) > 1]
    counting = [own for own in several if _counts_from(own, first)]
    is_usual = 2 * len(counting) >= max(1, len(several))
    return most if is_usual and max((own.max() for own in counting), default=0) == most else 0


def _counts_from(own: Floats, first: int) -> bool:
    unique, times = np.unique(own, return_counts=True)
    consecutive = bool((unique == first + np.arange(len(unique))).all())
    return len(unique) > 1 and consecutive and bool((times == times[0]).all())


def _number(values: Floats) -> bool:
    """Whether each line has a number of its own, without gaps from 0 or 1 on."""
    ordered = np.sort(values)
    numbered = np.arange(len(ordered)) + ordered[0]
    return len(ordered) >= _FEWEST_LINES and ordered[0] in (0, 1) and bool((ordered == numbered).all())


def _are_moments(values: Floats) -> bool:
    first, last = values.min(), values.max()
    if any(_SECONDS[0] * unit <= first and last <= _SECONDS[1] * unit for unit in (1, 1000)):
        return True
    if first < _DAYS[0] or last > _DAYS[1]:
        return False
    days = pd.Series(values.astype(np.int64).astype(str))
    return bool(pd.to_datetime(days, format="%Y%m%d", errors="coerce").notna().all())
