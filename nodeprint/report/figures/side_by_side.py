"""Matrices of several machines, nodes or campaigns beside each other on one scale."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

import msgspec
import pandas as pd
from matplotlib.axes import Axes
from msgspec.structs import replace

from nodeprint.report.figures.matrix import MatrixData, pairs
from nodeprint.report.figures.part_levels import BRACKET_PT, letters, subplots
from nodeprint.report.figures.pixels import ColorScale, draw_scale, value_limits
from nodeprint.report.figures.render import Frame
from nodeprint.report.figures.style import Style
from nodeprint.report.names import shortened

#: How many are in a row, the least side of a matrix in mm, and the most lines of a name.
_MOST_COLUMNS, _LEAST_SIDE, _MOST_LINES = 3, 12.0, 2


class SideBySideData(msgspec.Struct, frozen=True):
    """Matrices with the name of each and what is said `below` it, all on `scale`."""

    names: tuple[str, ...]
    matrices: tuple[MatrixData, ...]
    scale: ColorScale
    below: tuple[tuple[str, ...], ...] = ()

    @property
    def columns(self) -> int:
        """How many are in a row."""
        return min(_MOST_COLUMNS, max(len(self.names), 2))

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return -(-len(self.names) // self.columns)

    def frame(self, width: float) -> Frame:
        """Squares side by side."""
        return Frame(width, aspect=1.0, least=_LEAST_SIDE, rows=self.rows, columns=self.columns)

    def table(self) -> pd.DataFrame:
        """A row for each pair of each matrix."""
        tables = [
            data.table().rename(columns={data.scale.title: self.scale.title}).assign(matrix=name)
            for name, data in zip(self.names, self.matrices, strict=True)
        ]
        return pd.concat(tables, ignore_index=True)


def on_one_scale(
    names: Sequence[str],
    matrices: Sequence[MatrixData],
    title: str,
    below: Sequence[Sequence[str]] = (),
    *,
    among: Sequence[MatrixData] = (),
) -> SideBySideData:
    """Matrices of the same quantity, from the lowest to the highest of all (of those `among` which they are, on other
    pages, too); `title` says what they are, with unit, and `below` what is to be said of each."""
    low, high = value_limits(*(data.values for data in among or matrices))
    scale = replace(matrices[0].scale, title=title, low=low, high=high)
    return SideBySideData(tuple(names), tuple(matrices), scale, tuple(map(tuple, below)))


def side_by_side(ax: Axes, data: SideBySideData, style: Style) -> None:
    """Draw the matrices with the names of their parts and CPUs, what is said of each below it, and the scale of all."""
    every = subplots(ax, data.rows, data.columns)
    above = max(len(matrix.levels) for matrix in data.matrices) * BRACKET_PT + 6.0
    for of_matrix, name, matrix in zip(every, data.names, data.matrices, strict=False):
        pairs(of_matrix, matrix, data.scale, style)
        most = letters(of_matrix, 1.2, style)
        lines = textwrap.wrap(shortened(name, most * _MOST_LINES), most)
        of_matrix.set_title("\n".join(lines), fontsize=style.letters_pt, fontweight="bold", pad=above)
        of_matrix.set_ylabel("")
    for of_matrix, words in zip(every, data.below, strict=False):
        most = letters(of_matrix, 1.3, style)
        lines = [line for sentence in words for line in textwrap.wrap(sentence, most, subsequent_indent="   ")]
        of_matrix.set_xlabel("\n".join([of_matrix.get_xlabel(), *lines]), labelpad=1)
    for unused in every[len(data.names) :]:
        unused.remove()
    draw_scale(every[data.columns - 1], data.scale, style)
