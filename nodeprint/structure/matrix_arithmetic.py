"""Arithmetic on latency matrices: symmetry, block medians, additive fit and partition similarity.

Matrices are square float64 arrays with NaN for missing values; labels are int arrays that number groups from 0.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

Matrix = npt.NDArray[np.float64]
Labels = npt.NDArray[np.int64]

#: Shortest plausible latency in ns: light travels 0.3 mm in this time.
_LEAST_NS = 1e-3


def positive(ns: npt.NDArray[Any]) -> Matrix:
    """Replace the diagonal and invalid latencies (infinite or below 0.001 ns) by NaN."""
    values = np.array(ns, dtype=np.float64)
    values[~np.isfinite(values) | (values < _LEAST_NS)] = np.nan
    np.fill_diagonal(values, np.nan)
    return values


def averaged(values: Matrix) -> Matrix:
    """Mean of both directions of an (n, n) matrix, or the one measured; NaN if none is a valid latency (`positive`)."""
    both = values + values.T
    both /= 2
    one_way = np.isnan(both)
    if one_way.any():
        both[one_way] = np.fmax(values, values.T)[one_way]
    return both


def row_quantile(matrix: Matrix, q: float) -> npt.NDArray[np.float64]:
    """Quantile of each row's measured cells, NaN without any."""
    ordered = np.sort(matrix, axis=1)
    count = (~np.isnan(ordered)).sum(1)
    out: npt.NDArray[np.float64] = ordered[np.arange(len(ordered)), (q * np.maximum(count - 1, 0)).astype(np.int64)]
    return out


def numbered(labels: npt.NDArray[Any]) -> Labels:
    """Renumber the groups 0, 1, ... in order of their first member."""
    _, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
    rank = np.empty(len(first), dtype=np.int64)
    rank[np.argsort(first)] = np.arange(len(first))
    out: Labels = rank[inverse]
    return out


def sizes(labels: Labels) -> npt.NDArray[np.int64]:
    """Number of members of each group."""
    return np.bincount(labels)


@dataclass(frozen=True)
class SortedCells:
    """Measured cells of the upper triangle of a symmetric (n, n) matrix, sorted once so that medians only need
    counting.
    """

    count: int
    rows: npt.NDArray[np.int64]
    columns: npt.NDArray[np.int64]
    values: npt.NDArray[np.float64]
    _by_labels: dict[bytes, Matrix] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def of(cls, matrix: Matrix) -> SortedCells:
        """Cells of a symmetric matrix with NaN for missing values."""
        place = np.flatnonzero(np.triu(~np.isnan(matrix), 1)).astype(np.int64)
        values = matrix.ravel()[place]
        order = np.argsort(values)
        rows, columns = np.divmod(place[order], len(matrix))
        return cls(len(matrix), rows, columns, values[order])

    def only(self, chosen: npt.NDArray[np.bool_]) -> SortedCells:
        """The `chosen` cells, mask of shape (cells,)."""
        return SortedCells(self.count, self.rows[chosen], self.columns[chosen], self.values[chosen])

    def block_medians(self, labels: Labels) -> Matrix:
        """(g, g) lower medians of the cells between groups, with those inside groups on the diagonal; NaN without any.

        Lower medians, because disturbances only add latency. Cached by labels, because every step of a search needs
        them; the array is read-only.
        """
        key = labels.tobytes()
        if key not in self._by_labels:
            self._by_labels[key] = self._block_medians(labels)
            self._by_labels[key].flags.writeable = False
        return self._by_labels[key]

    def _block_medians(self, labels: Labels) -> Matrix:
        groups = int(labels.max()) + 1
        first, second = labels[self.rows], labels[self.columns]
        out = _medians(np.minimum(first, second) * groups + np.maximum(first, second), self.values, groups * groups)
        out = out.reshape(groups, groups)
        return np.where(np.isnan(out), out.T, out)

    def row_medians(self, labels: Labels) -> Matrix:
        """(n, g) lower medians of each row's cells to each group."""
        groups = int(labels.max()) + 1
        by_row, by_column = self.rows * groups + labels[self.columns], self.columns * groups + labels[self.rows]
        cell = np.stack([by_row, by_column], axis=1).ravel()
        return _medians(cell, np.repeat(self.values, 2), self.count * groups).reshape(self.count, groups)


def _medians(cell: npt.NDArray[np.int64], values: npt.NDArray[np.float64], cells: int) -> npt.NDArray[np.float64]:
    """Lower median of the ascending `values` of each cell, shape (cells,)."""
    values = values[np.argsort(cell.astype(np.min_scalar_type(cells)), kind="stable")]
    count = np.bincount(cell, minlength=cells)
    out = np.full(cells, np.nan)
    some = count > 0
    out[some] = values[(np.cumsum(count) - count + (count - 1) // 2)[some]]
    return out


def additive_residual(blocks: Matrix) -> tuple[Matrix, npt.NDArray[np.float64]]:
    """Residuals (g, g) of a least-squares fit of `offset[i] + offset[j]`, and the offsets (g,); g at least 3.

    This is the double centering of a matrix without a diagonal; missing cells and the diagonal have residual 0.
    """
    g = len(blocks)
    measured = ~np.isnan(blocks) & ~np.eye(g, dtype=bool)
    system = measured.astype(np.float64) + np.diag(measured.sum(1))
    offsets = np.linalg.lstsq(system, np.where(measured, blocks, 0.0).sum(1), rcond=None)[0]
    return np.where(measured, blocks - offsets[:, None] - offsets[None, :], 0.0), offsets


def profile_distances(blocks: Matrix, rows: npt.NDArray[np.int64]) -> Matrix:
    """(r, r) root mean square differences between rows of blocks, without the columns of the two rows."""
    table = blocks[rows]
    out = np.zeros((len(rows), len(rows)))
    columns = np.arange(len(blocks))
    for i in range(len(rows)):
        squares = (table - table[i]) ** 2
        squares[:, rows[i]] = np.nan
        squares[columns[None, :] == rows[:, None]] = np.nan
        count = np.maximum((~np.isnan(squares)).sum(1), 1)
        out[i] = np.sqrt(np.nansum(squares, axis=1) / count)
    return out


def rand_index(a: Labels, b: Labels) -> float:
    """Adjusted Rand index of two partitions of the same members: 1 is equal, 0 unrelated (Hubert and Arabie 1985)."""
    table = np.zeros((int(a.max()) + 1, int(b.max()) + 1))
    np.add.at(table, (a, b), 1)

    def pairs(counts: npt.NDArray[Any]) -> float:
        return float((counts * (counts - 1) / 2).sum())

    together, first, second = pairs(table), pairs(table.sum(1)), pairs(table.sum(0))
    total = len(a) * (len(a) - 1) / 2
    expected = first * second / total if total else 0.0
    largest = (first + second) / 2
    return 1.0 if largest == expected else (together - expected) / (largest - expected)
