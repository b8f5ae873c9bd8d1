"""Fleets that are split: no majority of nodes is alike, so that there is no centre that a node could differ from."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np
import numpy.typing as npt

from nodeprint.data.layout import Ints
from nodeprint.judge.acceptance import Acceptance
from nodeprint.judge.deviations import bounds, priors
from nodeprint.judge.reduction import Matrix
from nodeprint.stats.runs import run_spread

Floats = npt.NDArray[np.float64]

#: A fleet whose largest group is at least this share of it is not split: the others differ from it.
MAJORITY = 0.6
#: Fewer nodes cannot be split; each is named.
FEWEST = 5
#: The smaller side of a cut has at least so many nodes, and this share of them.
_LEAST_NODES, _LEAST_SHARE = 2, 0.15
#: The difference of two groups is beyond the bound by so many standard errors: they are chosen among many cuts.
_BEYOND = 5.0
#: Between two groups, without the tenth of each that is nearest to the other, at least this share of their
#: difference is empty. Of a normal or uniform distribution cut anywhere it is less than a fifth.
_EMPTY, _TRIMMED = 0.5, 0.1


class Cut(msgspec.Struct, frozen=True):
    """The part (`term` of `matrix`) that separates a group from the first one, by how much and with which standard
    error, relative."""

    matrix: Matrix
    term: int
    effect: float
    error: float
    bound: float


class PeerGroup(msgspec.Struct, frozen=True):
    """Nodes (numbers in the fleet) that are compared with each other; `cut` says what separates them from the others of
    their configuration, None where all of it is one group."""

    nodes: Ints
    cut: Cut | None = None


def split(nodes: Ints, matrices: Sequence[Matrix], rules: Acceptance) -> list[PeerGroup]:
    """The groups of nodes of one configuration, the largest first: one, unless no majority is alike.

    `matrices` are those of the first jobs.
    """
    if len(nodes) < FEWEST:
        return [PeerGroup(nodes)]
    candidates = [prepared for matrix in matrices if (prepared := _prepared(matrix, nodes, rules)) is not None]
    parted = _parted(nodes, np.arange(len(nodes)), candidates)
    if max(len(rows) for rows, _ in parted) >= MAJORITY * len(nodes):
        return [PeerGroup(nodes)]
    ordered = sorted(parted, key=lambda entry: (-len(entry[0]), int(entry[0][0])))
    first = ordered[0][0]
    return [
        PeerGroup(nodes[rows], None if cut is None or rows is first else _against(first, rows, cut))
        for rows, cut in ordered
    ]


class _Prepared(msgspec.Struct, frozen=True):
    """The means over runs (node, part) of a matrix, the parts that are looked at, their bounds and run variances."""

    matrix: Matrix
    means: Floats
    columns: Ints
    bound: Floats
    variance: Floats


def _prepared(matrix: Matrix, nodes: Ints, rules: Acceptance) -> _Prepared | None:
    """None where a node has no value, or values are shares of the time, which differ for reasons outside of a node."""
    terms = matrix.terms
    if len(matrix.nodes) < len(nodes) or terms.share or not np.isfinite(matrix.values).any(axis=1).all():
        return None
    # which cores are active differs between harvested parts: their numbers are no places
    named = [k for k, t in enumerate(terms.terms) if not (terms.layout.harvested and {"core", "cpu"} & set(t.where))]
    columns = np.array(named, dtype=np.int64)
    spread = run_spread(matrix.values, terms.pool, priors(matrix, rules).run)
    runs = np.isfinite(matrix.values).sum(axis=1).mean(axis=0)
    variance = spread.pooled / runs + priors(matrix, rules).job ** 2
    means = np.nanmean(matrix.values, axis=1)
    return _Prepared(matrix, means[:, columns], columns, bounds(matrix, rules)[columns], variance[columns])


def _parted(
    nodes: Ints, rows: Ints, candidates: Sequence[_Prepared]
) -> list[tuple[Ints, tuple[_Prepared, int] | None]]:
    """Groups of `rows`, each with the column that separates it."""
    best: tuple[float, _Prepared, int, Ints, Ints] | None = None
    for candidate in candidates if len(rows) >= 2 * _LEAST_NODES else ():
        share, column, low, high = _best_cut(candidate, rows)
        if share > (best[0] if best else 0.0):
            best = share, candidate, column, low, high
    if best is None:
        return [(rows, None)]
    _, prepared, column, low, high = best
    return [(part, cut or (prepared, column)) for side in (low, high) for part, cut in _parted(nodes, side, candidates)]


def _best_cut(candidate: _Prepared, rows: Ints) -> tuple[float, int, Ints, Ints]:
    """The cut with the largest difference in bounds, 0 where none holds: that, its column, and the rows of both
    sides."""
    count = len(rows)
    least = max(_LEAST_NODES, int(np.ceil(_LEAST_SHARE * count)))
    sizes = np.arange(least, count - least + 1)
    if not len(sizes) or not len(candidate.columns):
        return 0.0, -1, rows, rows
    order = np.argsort(candidate.means[rows], axis=0, kind="stable")
    ordered = np.take_along_axis(candidate.means[rows], order, axis=0)
    total, squares = np.cumsum(ordered, axis=0), np.cumsum(ordered**2, axis=0)
    k = sizes[:, None].astype(np.float64)
    low_sum, low_squares = total[sizes - 1], squares[sizes - 1]
    high_sum, high_squares = total[-1] - low_sum, squares[-1] - low_squares
    difference = high_sum / (count - k) - low_sum / k
    within = (low_squares - low_sum**2 / k + high_squares - high_sum**2 / (count - k)) / max(count - 2, 1)
    error = np.sqrt(np.maximum(np.maximum(within, 0.0), candidate.variance) * (1 / k + 1 / (count - k)))
    below = ordered[(sizes - 1) - (_TRIMMED * (sizes - 1)).astype(int)]
    above = ordered[sizes + (_TRIMMED * (count - sizes - 1)).astype(int)]
    holds = (difference - _BEYOND * error > candidate.bound) & (above - below >= _EMPTY * difference)
    share = np.where(holds, difference / candidate.bound, 0.0)
    cut, column = np.unravel_index(int(np.argmax(share)), share.shape)
    at = int(sizes[cut])
    return float(share[cut, column]), int(column), rows[order[:at, column]], rows[order[at:, column]]


def _against(first: Ints, rows: Ints, cut: tuple[_Prepared, int]) -> Cut:
    """How a group differs from the first in the part that separates it."""
    prepared, column = cut
    sides = [prepared.means[part, column] for part in (rows, first)]
    effect = float(np.mean(sides[0]) - np.mean(sides[1]))
    error = float(np.sqrt(sum(max(float(np.var(side)), prepared.variance[column]) / len(side) for side in sides)))
    return Cut(prepared.matrix, int(prepared.columns[column]), effect, error, float(prepared.bound[column]))
