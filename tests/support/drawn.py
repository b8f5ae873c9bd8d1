"""Tables with values that a test gives or draws, over the components of a simulated fleet."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import msgspec
import numpy as np
import numpy.typing as npt

from nodeprint.judge import acceptance, tolerances
from nodeprint.judge.deviations import Deviations, deviations
from nodeprint.judge.reduction import Matrix
from tests.support.fleets import judged

RULES = acceptance.load()
#: The moment at which the first job begins, at noon of a day; further jobs of a node follow 15 minutes later.
NOON_S, LATER_S = 20_000.5 * 86400.0, 900.0


@lru_cache
def matrix() -> Matrix:
    """Core-to-core latency of eight nodes, of which the components are taken."""
    return next(table.matrix for table in judged().tables if table.matrix.name == "coherence-cas")


@lru_cache
def tolerance() -> npt.NDArray[np.float64]:
    """The tolerance of each of its components."""
    return tolerances.of_matrix(matrix(), RULES)


def of_values(values: npt.NDArray[np.float64], jobs: Sequence[int] = (), began: Sequence[float] = ()) -> Deviations:
    """The table of `values` (row, run, part), relative to their template. A node has one job each, or so many `jobs`;
    each `began` at some moment."""
    counts = np.array(jobs or [1] * len(values))
    owner, first = np.repeat(np.arange(len(counts)), counts), np.cumsum(counts) - counts
    number = np.arange(len(owner)) - first[owner]
    names = tuple(tuple(f"job{n + 1}/run{run + 1}" for run in range(values.shape[1])) for n in number.tolist())
    made = msgspec.structs.replace(
        matrix(),
        values=values,
        nodes=np.arange(len(counts)),
        owner=owner,
        runs=names,
        began=np.array(began or NOON_S + LATER_S * number),
        rows=([0],) * len(owner),
    )
    tests = len(counts) * values.shape[2]
    return deviations(made, RULES, len(owner), tests)
