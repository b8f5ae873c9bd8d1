"""Matrices of several machines, nodes or campaigns beside each other on one scale."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

import msgspec
import pandas as pd
from matplotlib.axes import Axes
from msgspec.structs import replace

from nodeprint.report.figures.matrix import MatrixData, pairs
from nodeprint.report.figures.part_levels import BRACKET_PT, names_room, size_pt
from nodeprint.report.figures.pixels import ColourScale, draw_scale, scale_room, value_limits
from nodeprint.report.figures.render import Frame
from nodeprint.report.figures.style import Style
from nodeprint.report.names import shortened

#: In mm: a line of a name, the room of axes, a line below a matrix, what is between matrices, and the scale's height.
_NAME, _AXIS, _LINE, _BETWEEN, _SCALE = 3.4, 9.0, 2.9, 3.0, 70.0
_MOST_COLUMNS, _LEAST_SIDE = 3, 12.0
#: Letters of a line where so many are side by side, of names and of what is below, and the most lines of a name.
_LETTERS, _LETTERS_BELOW, _MOST_LINES = {2: 54, 3: 34}, {2: 60, 3: 38}, 2
_MM_A_POINT = 25.4 / 72


class SideBySideData(msgspec.Struct, frozen=True):
    """Matrices with the name of each and what is said `below` it, all on `scale`."""

    names: tuple[str, ...]
    matrices: tuple[MatrixData, ...]
    scale: ColourScale
    below: tuple[tuple[str, ...], ...] = ()

    @property
    def columns(self) -> int:
        """How many are in a row."""
        return min(_MOST_COLUMNS, max(len(self.names), 2))

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return -(-len(self.names) // self.columns)

    @property
    def name_lines(self) -> int:
        """Lines of the longest name."""
        longest = max(map(len, self.names), default=1)
        return min(-(-longest // _LETTERS[self.columns]), _MOST_LINES)

    @property
    def lines_below(self) -> list[list[str]]:
        """What is said below each, in lines that have room there."""
        letters = _LETTERS_BELOW[self.columns]
        return [
            [line for words in said for line in textwrap.wrap(words, letters, subsequent_indent="   ")]
            for said in self.below
        ]

    @property
    def margins(self) -> tuple[float, float, float]:
        """The room in mm on the left of a matrix, above it, and below it."""
        left = max(_AXIS + 1.0, *(names_room(data.levels) for data in self.matrices))
        above = (
            1.6
            + _NAME * self.name_lines
            + max(len(data.levels) for data in self.matrices) * BRACKET_PT * _MM_A_POINT
            + 1.0
        )
        lines = max(map(len, self.lines_below), default=0)
        return left, above, _AXIS + _LINE * lines

    def side(self, width: float) -> float:
        """The side of a matrix in `width` mm without the scale, never less than _LEAST_SIDE."""
        side = (width - self.columns * self.margins[0] - (self.columns - 1) * _BETWEEN) / self.columns
        return max(side, _LEAST_SIDE)

    def frame(self, width: float) -> Frame:
        """Squares side by side."""
        right = scale_room(width - 2.0, lines=2)
        left, above, below = self.margins
        side = self.side(width - 1.0 - right)
        height = (side + above + below) * self.rows
        matrices = self.columns * (left + side) + (self.columns - 1) * _BETWEEN
        return Frame(1.0 + matrices + right, height + 2.0, 1.0, right, 1.0, 1.0)

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
    ax.set_axis_off()
    width, height = (points * _MM_A_POINT for points in size_pt(ax))
    left, above, below = data.margins
    side, said = data.side(width), data.lines_below
    for number, (name, matrix) in enumerate(zip(data.names, data.matrices, strict=True)):
        column, row = number % data.columns, number // data.columns
        x = column * (left + side + _BETWEEN) + left
        y = height - row * (side + above + below) - above - side
        square = ax.inset_axes((x / width, y / height, side / width, side / height))
        square.set_position(_within(ax, x / width, y / height, side / width, side / height))  # known while it is drawn
        pairs(square, matrix, data.scale, style)
        square.set_ylabel("")
        square.set_xlabel(matrix.axis, labelpad=1)
        letters = int((side + left - 2.0) / (0.66 * style.letters_pt * _MM_A_POINT))
        ax.text(
            (x - left + 2.0) / width,
            (y + side + above - 0.6) / height,
            "\n".join(textwrap.wrap(shortened(name, letters * data.name_lines), letters)),
            transform=ax.transAxes,
            va="top",
            fontweight="bold",
        )
        letters = int((side + left - 2.0) / (0.54 * style.smallest_letters_pt * _MM_A_POINT))
        for at, words in enumerate(said[number] if said else ()):
            ax.text(
                (x - left + 2.0) / width,
                (y - _AXIS - at * _LINE) / height,
                shortened(words, letters),
                transform=ax.transAxes,
                va="top",
                fontsize=style.smallest_letters_pt,
            )
    draw_scale(ax, data.scale, style, length=min(1.0, _SCALE / height))


def _within(ax: Axes, x: float, y: float, width: float, height: float) -> tuple[float, float, float, float]:
    """A part of axes, in shares of the figure."""
    at = ax.get_position()
    return at.x0 + x * at.width, at.y0 + y * at.height, width * at.width, height * at.height
