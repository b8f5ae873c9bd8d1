"""Matrices of several machines, nodes or campaigns side by side on one scale, with all they have or in small."""

from __future__ import annotations

import textwrap
from collections.abc import Collection, Sequence

import numpy as np
import xarray as xr
from matplotlib.axes import Axes

from nodeprint.report.figures.figure_data import marks, named
from nodeprint.report.figures.matrix import drawn_slots, home_of, of_differences, pairs, square_of
from nodeprint.report.figures.node_levels import Floats, NodeLevels
from nodeprint.report.figures.part_levels import BRACKET_PT, letters, part_levels, size_pt, subplots
from nodeprint.report.figures.pixels import draw_cells, draw_scale, scale_of, value_limits
from nodeprint.report.figures.render import Frame, primitive
from nodeprint.report.figures.style import Style
from nodeprint.report.names import shortened

#: How many are in a row, the least side of a matrix in mm, and the most lines of a name.
_MOST_COLUMNS, _LEAST_SIDE, _MOST_LINES = 3, 12.0, 2
#: Maps in small: how many in a row, and their side and the room above each in shares of it.
_MAPS_A_ROW, _HEAD, _BETWEEN = 8, 0.2, 0.1
MOST_MAPS = 64


def on_one_scale(
    names: Sequence[str],
    matrices: Sequence[xr.Dataset],
    title: str,
    below: Sequence[Sequence[str]] = (),
    *,
    among: Sequence[xr.Dataset] = (),
) -> tuple[xr.Dataset, ...]:
    """Matrices of the same quantity on one scale over all of them, or over those `among` which they are on other pages.

    `title` is that of their values, with the unit, and `below` has sentences for each matrix.
    """
    low, high = value_limits(*(data.value.to_numpy() for data in among or matrices))
    words = below or [()] * len(names)
    return tuple(
        data.assign(value=data.value.assign_attrs(named((), 0, title).attrs, low=low, high=high))
        .assign_coords(matrix=name)
        .assign_attrs(below=tuple(sentences))
        for name, data, sentences in zip(names, matrices, words, strict=True)
    )


def _grid(data: Sequence[xr.Dataset]) -> tuple[int, int]:
    columns = min(_MOST_COLUMNS, max(len(data), 2))
    return -(-len(data) // columns), columns


@primitive(lambda data, width: Frame(width, aspect=1.0, least=_LEAST_SIDE, rows=_grid(data)[0], columns=_grid(data)[1]))
def side_by_side(ax: Axes, data: Sequence[xr.Dataset], style: Style) -> None:
    """Draw the matrices with the names of their parts and CPUs, sentences below each, and the scale of all."""
    rows, columns = _grid(data)
    every = subplots(ax, rows, columns)
    above = max(len(part_levels(matrix, "b")) for matrix in data) * BRACKET_PT + 6.0
    for of_matrix, matrix in zip(every, data, strict=False):
        pairs(of_matrix, matrix, style)
        most = letters(of_matrix, 1.2, style)
        lines = textwrap.wrap(shortened(str(matrix.matrix.item()), most * _MOST_LINES), most)
        of_matrix.set_title("\n".join(lines), fontsize=style.letters_pt, fontweight="bold", pad=above)
        of_matrix.set_ylabel("")
        most, words = letters(of_matrix, 1.3, style), matrix.attrs["below"]
        lines = [line for sentence in words for line in textwrap.wrap(sentence, most, subsequent_indent="   ")]
        of_matrix.set_xlabel("\n".join([of_matrix.get_xlabel(), *lines]), labelpad=1)
    for unused in every[len(data) :]:
        unused.remove()
    draw_scale(every[min(columns, len(data)) - 1], scale_of(data[0]), style)


# --- difference maps ---


def difference_maps(
    levels: NodeLevels,
    nodes: Sequence[str],
    *,
    peers: Collection[str] = (),
    marked: Collection[str] = (),
    tolerance: float | None = None,
) -> xr.Dataset:
    """The difference of each pair from the median of the peers (all nodes if none are named), for at most 64 nodes.

    Maps of large machines have the means of neighboring pairs. `tolerance` is relative.
    """
    shown = list(nodes)[:MOST_MAPS]
    slots, at_home = drawn_slots(levels.quantity), home_of(levels.quantity, None)
    reference = [levels.rows[name] for name in peers if name in levels.rows] or list(range(len(levels.nodes)))
    middle = np.nanmedian(levels.values[reference], axis=0)
    percent = (100 * (levels.of(name) / middle - 1) for name in shown)
    squares = (square_of(levels.quantity, of_node, at_home, slots) for of_node in percent)
    maps = np.stack([_smaller(square, len(shown)) for square in squares])
    value = named(("node", "a", "b"), maps, "difference from the median, %")
    coordinates = {"node": shown, "marked": ("node", np.isin(shown, list(marked)))}
    data = xr.Dataset({"value": value}, coordinates, {"symmetric": 1})
    return of_differences(data, 100 * tolerance if tolerance is not None else None)


def _smaller(square: Floats, maps: int) -> Floats:
    """A map of at most so many cells that all `maps` have room, as the means of neighboring cells."""
    most = 64 if maps > 8 else 128
    step = -(-len(square) // most)
    if step == 1:
        return square
    size = -(-len(square) // step)
    padded = np.full((size * step, size * step), np.nan)
    padded[: len(square), : len(square)] = square
    blocks = padded.reshape(size, step, size, step)
    finite = np.isfinite(blocks)
    with np.errstate(invalid="ignore"):
        return np.asarray(np.where(finite, blocks, 0).sum(axis=(1, 3)) / finite.sum(axis=(1, 3)))


def _maps_grid(data: xr.Dataset) -> tuple[int, int, float]:
    columns = min(_MAPS_A_ROW, max(data.sizes["node"], 3))
    rows = -(-data.sizes["node"] // columns)
    return rows, columns, rows * (1 + _HEAD) / (columns * (1 + _BETWEEN) - _BETWEEN)


@primitive(lambda data, width: Frame(width, aspect=_maps_grid(data)[2]))
def maps(ax: Axes, data: xr.Dataset, style: Style) -> None:
    """Draw the maps with the names of their nodes; those of findings are framed and marked."""
    rows, columns, aspect = _maps_grid(data)
    scale, marked = scale_of(data), marks(data)
    ax.set_axis_off()
    step, down = 1 + _BETWEEN, 1 + _HEAD
    ax.set_xlim(0, columns * step - _BETWEEN)
    ax.set_ylim(rows * down, 0)
    for number, (name, values) in enumerate(zip(data.node.to_numpy().tolist(), data.value.to_numpy(), strict=True)):
        x, y = number % columns * step, number // columns * down + _HEAD
        diagonal = np.eye(len(values), dtype=np.bool_)
        draw_cells(ax, values, scale, style, blank=diagonal, extent=(x, x + 1, y + 1, y), pixels=192, shades=40)
        alarm = number in marked
        pen = {"color": style.color("alarm" if alarm else "hair"), "linewidth": 1.3 if alarm else 0.4}
        ax.plot([x, x + 1, x + 1, x, x], [y, y, y + 1, y + 1, y], clip_on=False, **pen)  # type: ignore[arg-type]
        room = int(size_pt(ax)[0] / (columns * step) / (0.62 * style.smallest_letters_pt))
        label = shortened(f"\N{BLACK UP-POINTING TRIANGLE} {name}" if alarm else name, room)
        ink = style.color("alarm" if alarm else "ink")
        ax.text(x, y - 0.03, label, fontsize=style.smallest_letters_pt, color=ink, va="bottom")
    ax.set_xlim(0, columns * step - _BETWEEN)
    ax.set_ylim(rows * down, 0)
    ax.set_aspect("auto")
    ax.set_box_aspect(aspect)
    draw_scale(ax, scale, style, length=min(1.0, 120 / size_pt(ax)[1]))
