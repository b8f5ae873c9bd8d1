"""Matrices of several machines, nodes or campaigns beside each other on one scale."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from msgspec.structs import replace

from nodeprint.report.figures.matrix import MatrixData
from nodeprint.report.figures.part_levels import size_pt
from nodeprint.report.figures.pixels import ColourScale, draw_cells, draw_scale, scale_room, value_limits
from nodeprint.report.figures.render import Frame
from nodeprint.report.figures.style import Style
from nodeprint.report.names import shortened

#: In shares of a matrix's side: its name above, and what is between matrices.
_HEAD, _BETWEEN = 0.1, 0.12
_MOST_COLUMNS = 3


class SideBySideData(msgspec.Struct, frozen=True):
    """Matrices with the name of each, all on `scale`."""

    names: tuple[str, ...]
    matrices: tuple[MatrixData, ...]
    scale: ColourScale

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
        right = scale_room(width - 3.0, lines=2)
        side = (width - 3.0 - right) / (self.columns + (self.columns - 1) * _BETWEEN)
        return Frame(width, side * (1 + _HEAD + _BETWEEN) * self.rows + 4.0, 3.0, right, 2.0, 2.0)

    def table(self) -> pd.DataFrame:
        """A row for each pair of each matrix."""
        tables = [
            data.table().rename(columns={data.scale.title: self.scale.title}).assign(matrix=name)
            for name, data in zip(self.names, self.matrices, strict=True)
        ]
        return pd.concat(tables, ignore_index=True)


def on_one_scale(names: Sequence[str], matrices: Sequence[MatrixData], title: str) -> SideBySideData:
    """Matrices of the same quantity, from the lowest to the highest of all; `title` says what they are, with unit."""
    low, high = value_limits(*(data.values for data in matrices))
    scale = replace(matrices[0].scale, title=title, low=low, high=high)
    return SideBySideData(tuple(names), tuple(matrices), scale)


def side_by_side(ax: Axes, data: SideBySideData, style: Style) -> None:
    """Draw the matrices with the outlines of their parts, their names above, and the scale of all."""
    ax.set_axis_off()
    step, down = 1 + _BETWEEN, 1 + _HEAD + _BETWEEN
    letters = int(size_pt(ax)[0] / (data.columns * step) / (0.6 * style.letters_pt))
    for number, (name, matrix) in enumerate(zip(data.names, data.matrices, strict=True)):
        x, y = number % data.columns * step, number // data.columns * down + _HEAD
        size = len(matrix.labels)
        blank = None if matrix.directed else np.eye(size, dtype=np.bool_)
        draw_cells(ax, matrix.values, data.scale, style, blank=blank, extent=(x, x + 1, y + 1, y), pixels=384)
        ink = style.colours["ink" if data.scale.map == "differences" else "paper"]
        for level in matrix.levels:
            pen = style.outlines[level.outline]
            squares = [
                [(x + a / size, y + b / size) for a, b in _corners(group.start, group.stop)] for group in level.groups
            ]
            lines = LineCollection(squares, linewidths=pen.points / 2, linestyles=[pen.linestyle], colors=ink)
            ax.add_collection(lines, autolim=False)
        frame = [(x + a, y + b) for a, b in _corners(0, 1)]
        ax.add_collection(LineCollection([frame], linewidths=0.5, colors=style.colours["quiet"]), autolim=False)
        ax.text(x, y - 0.02, shortened(name, letters), va="bottom")
        ax.text(
            x, y + 1.015, f"{size} CPUs", va="top", fontsize=style.smallest_letters_pt, color=style.colours["quiet"]
        )
    ax.set_xlim(0, data.columns * step - _BETWEEN)
    ax.set_ylim(data.rows * down, 0)
    ax.set_aspect("auto")
    draw_scale(ax, data.scale, style, length=min(1.0, 170 / size_pt(ax)[1]))


def _corners(low: float, high: float) -> list[tuple[float, float]]:
    return [(low, low), (high, low), (high, high), (low, high), (low, low)]
