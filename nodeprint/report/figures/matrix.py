"""Matrices with labeled axes: pairs of CPUs or nodes with outlined components, tables, matrices side by side."""

from __future__ import annotations

import textwrap
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.colors import Normalize

from nodeprint.data.places import homes
from nodeprint.data.places.layout import Ints
from nodeprint.errors import NodeprintError
from nodeprint.report.figures import drawing, figure_data
from nodeprint.report.figures.figure_data import marks, named, title_of
from nodeprint.report.figures.node_levels import Floats, NodeLevels
from nodeprint.report.figures.part_levels import in_groups, part_coordinates, part_levels, structure_at
from nodeprint.report.figures.render import Frame, primitive
from nodeprint.report.figures.style import Style
from nodeprint.report.names import shortened, without_domain
from nodeprint.settings.texts import say

#: Matrices of up to this many CPUs have numbers in their cells if there is room.
MOST_NUMBERS = 32
#: The smallest extent of a scale of differences, in percent, so that noise looks like noise.
LEAST_REACH = 3.0
#: The most numbers along an axis of a larger matrix.
_TICKS = 16
#: In mm: the largest cell and the smallest side of a matrix. Longer names are cut in the middle.
_MOST_CELL, _LEAST_SIDE, _MOST_LETTERS = 14.0, 30.0, 24
#: Pairs inside a socket, or of a finding, get their own scale below this share of the full scale.
_NEAR = 0.4
#: In mm: a row of a table with a number, and the smallest row.
_ROW, _LEAST_ROW = 4.4, 0.15
#: Bars of the histogram of a matrix.
BARS = 16
#: In a table with more rows, only rows of findings have names.
MOST_NAMED_ROWS = 72


def square(
    values: Floats,
    labels: Sequence[object],
    title: str,
    parts: Mapping[str, xr.Variable] | None = None,
    *,
    axis: str = "CPU",
    marked: Collection[int] = (),
    directed: bool = False,
) -> xr.Dataset:
    """Return a matrix of pairs (a, b) of labeled places, NaN if not measured.

    `axis` names the kind of labels, and `parts` are coordinates of the places (dimension `place`). `marked` are
    positions of a finding. If `directed`, values go from the row to the column, and the matrix is asymmetric.
    """
    what, coordinates = axis.partition(",")[0], {}
    for end in "ab":
        coordinates[end] = named(end, np.array(list(map(str, labels)), dtype=object), f"{what} {end}")
        for name, of in (parts or {}).items():
            attributes = of.attrs | {"long_name": f"{of.attrs.get('long_name', name)} of {end}"}
            coordinates[f"{name}_{end}"] = xr.Variable(end, of.to_numpy(), attributes)
    if len(marked):
        coordinates["marked"] = xr.Variable("b", np.isin(np.arange(len(labels)), list(marked)))
    low, high = drawing.value_limits(values)
    value = named(("a", "b"), values, title)
    value.attrs |= {"low": low, "high": high}
    return xr.Dataset({"value": value}, coordinates, {"axis": axis, "symmetric": not directed})


def of_node(levels: NodeLevels, node: str, home: int | None = None) -> xr.Dataset:
    """Return the pairs of a node at a `home`, the first by default; CPUs without labels are in the groups found."""
    values, title = levels.square(levels.of(node), home) / levels.unit.size, _at_home(levels, home, levels.title)
    structure = structure_at(levels, node)
    if structure is None or not structure.levels:
        return _of_slots(levels, node, levels.slots, values, title)
    cpus = levels.cpus(node, levels.slots)
    order, parts = in_groups(structure, cpus)
    ordered = [cpus[place] for place in order]
    return square(values[np.ix_(order, order)], ordered, title, parts, axis=say("axes", "found"))


def scaled(data: xr.Dataset, low: float, high: float) -> xr.Dataset:
    """Return the data on a scale from `low` to `high`; values beyond have the colors of its ends."""
    return data.assign(value=data.value.assign_attrs(low=low, high=high))


def inside_sockets(data: xr.Dataset) -> xr.Dataset | None:
    """Return a node's matrix on the scale of its pairs inside a socket, except those in its finest components.

    Other pairs have the colors of the ends. None without such pairs or levels, or if these pairs already use enough
    colors of the full scale.
    """
    levels, size = part_levels(data, "b"), data.sizes["b"]
    socket = next((level for level in levels if level.outline == "socket"), None)
    if socket is None or len(levels) < 2 or size <= MOST_NUMBERS:
        return None
    starts = ([start for start, _, _ in level.groups] for level in (socket, levels[0]))
    # the number of each place's component
    component, finest = (np.searchsorted(of, np.arange(size), side="right") for of in starts)
    values = data.value.to_numpy()
    chosen = (component[:, None] == component) & (finest[:, None] != finest) & np.isfinite(values)
    limits = near_limits([data], chosen)
    return None if limits is None else scaled(data, *limits)


def near_limits(matrices: Sequence[xr.Dataset], chosen: npt.NDArray[np.bool_]) -> tuple[float, float] | None:
    """Return the scale of the `chosen` pairs (a, b) of matrices; None if they use enough colors of the full scale."""
    values = [data.value.to_numpy()[chosen] for data in matrices]
    if not any(np.isfinite(of).any() for of in values):
        return None
    low, high = drawing.value_limits(*values)
    scale = matrices[0].value.attrs
    return None if high - low > _NEAR * (scale["high"] - scale["low"]) else (low, high)


def of_cells(levels: NodeLevels, node: str, dim: str, place: int, name: str) -> xr.Dataset | None:
    """Return the values of a cell measurement with CPUs `a` and `b` as a matrix; None for fewer than three CPUs.

    An example is the kinds of contended atomics. The values belong to `place`, a coordinate of dimension `dim` with the
    name `name`. Other dimensions are reduced to their median.
    """
    quantity = levels.quantity
    chosen = quantity.places[dim] == place
    a, b = (quantity.places[end][chosen] for end in "ab")
    slots, at = np.unique(np.concatenate([a, b]), return_inverse=True)
    if len(slots) < 3:
        return None
    values = pd.Series(levels.of(node)[chosen] / levels.unit.size)
    each = values.groupby([at[: len(a)], at[len(a) :]]).median()
    rows, columns = (each.index.get_level_values(level).to_numpy() for level in (0, 1))
    of_pairs = np.full((len(slots), len(slots)), np.nan)
    of_pairs[rows, columns] = of_pairs[columns, rows] = each.to_numpy()
    return _of_slots(levels, node, slots, of_pairs, f"{name}: {levels.title}")


def difference(
    levels: NodeLevels,
    node: str,
    home: int | None = None,
    *,
    peers: Sequence[str] = (),
    tolerance: float | None = None,
    marked: Collection[int] = (),
) -> xr.Dataset:
    """Return the difference of pairs from the peers' median, %; `tolerance` 0.02 is 2%, `marked` are OS numbers."""
    values, peer_values = levels.of(node), levels.of_peers(node, peers)
    if not len(peer_values):
        raise NodeprintError(f"{node} has no peer to differ from", advice="draw its values instead")
    percent = levels.square(100 * (values / np.nanmedian(peer_values, axis=0) - 1), home)
    count = len(peer_values)
    reference = f"median of {count} peers" if count > 1 else "one peer"
    title = _at_home(levels, home, f"difference from the {reference}, %")
    data = _of_slots(levels, node, levels.slots, percent, title, marked)
    return of_differences(data, tolerance)


def of_differences(data: xr.Dataset, tolerance: float | None) -> xr.Dataset:
    """Return the data on a symmetric scale of differences, with a tolerance (0.02 is 2%), if any."""
    finite = np.abs(data.value.to_numpy()[np.isfinite(data.value)])
    far = float(np.quantile(finite, 0.998)) if finite.size else 0.0
    percent = 100 * (tolerance or 0.0)
    reach = max(LEAST_REACH, far, 1.5 * percent)
    out = scaled(data, -reach, reach)
    out.value.attrs["map"] = "differences"
    return out if tolerance is None else out.assign_coords(figure_data.tolerance_coordinates(percent, percent))


def _at_home(levels: NodeLevels, home: int | None, title: str) -> str:
    return f"{homes.named(levels.home(home))}: {title}".removeprefix(": ")


def _of_slots(
    levels: NodeLevels, node: str, slots: Ints, values: Floats, title: str, marked: Collection[int] = ()
) -> xr.Dataset:
    cpus, parts = levels.cpus(node, slots), part_coordinates("place", levels.quantity.layout.slots[slots])
    axis = "CPU" if list(cpus) == sorted(cpus) else say("axes", "components")
    places = [place for place, cpu in enumerate(cpus) if cpu in marked]
    return square(values, cpus, title, parts, axis=axis, marked=places)


# --- drawing ---


def _frame(data: xr.Dataset, width: float) -> Frame:
    rows, columns = data.value.shape
    if is_square(data):
        return Frame(width, aspect=1.0, least=_LEAST_SIDE, most=max(_MOST_CELL * columns, 42.0))
    row = max(3.2, min(_ROW, 200.0 / rows)) if rows <= MOST_NAMED_ROWS else max(_LEAST_ROW, 200.0 / rows)
    return Frame(width, max(row * rows, 26.0))


def is_square(data: xr.Dataset) -> bool:
    """Tell whether rows and columns are the same places."""
    return "symmetric" in data.attrs


@primitive(_frame)
def matrix(ax: Axes, data: xr.Dataset, style: Style) -> None:
    """Draw a matrix with labeled axes, components and scale: of pairs, or a table of rows and columns.

    Numbers are written if they fit: those of the variable `number`, or else the values. Triangles mark the places of a
    finding, or the names of its rows.
    """
    if is_square(data):
        pairs(ax, data, style)
    else:
        _table(ax, data, style)
    drawing.draw_scale(ax, drawing.scale_of(data), style)


def pairs(ax: Axes, data: xr.Dataset, style: Style) -> None:
    """Draw a matrix of pairs with the names of its components, without its scale."""
    size, scale, values = data.sizes["b"], drawing.scale_of(data), data.value.to_numpy()
    symmetric = data.attrs["symmetric"]
    ax.set_box_aspect(1)
    drawing.draw_cells(ax, values, scale, style, blank=np.eye(size, dtype=np.bool_) if symmetric else None)
    levels = part_levels(data, "b")
    drawing.draw_outlines(ax, levels, size, style, "ink" if scale.map == "differences" else "paper")
    if size <= MOST_NUMBERS:
        drawing.write_numbers(ax, values, values, scale, style, 3 if scale.map == "values" else 2)
    labels = [shortened(label, _MOST_LETTERS) for label in without_domain(data.b.to_numpy().tolist())]
    turned = max(map(len, labels), default=0) > 3
    for axis in (ax.xaxis, ax.yaxis):
        drawing.name_places(axis, labels, style, turned=turned, most=size if size <= MOST_NUMBERS else _TICKS)
    ax.set_xlabel(data.attrs["axis"])
    ax.set_ylabel(data.attrs["axis"], labelpad=2)
    if levels:
        drawing.draw_brackets(ax, levels, style)
    if len(places := marks(data)):
        pen: dict[str, Any] = {"linestyle": "", "color": style.color("alarm"), "clip_on": False, "markersize": 3.2}
        ax.plot([-0.012] * len(places), places, marker=">", transform=ax.get_yaxis_transform(), **pen)
        ax.plot(places, [-0.012] * len(places), marker="^", transform=ax.get_xaxis_transform(), **pen)


def counted_alike(matrices: Sequence[xr.Dataset]) -> list[xr.Dataset]:
    """Return matrices whose histograms have one scale of counts."""
    most = max(int(_counts(data).max()) for data in matrices)
    return [data.assign_attrs(most=most) for data in matrices]


def _counts(data: xr.Dataset) -> Ints:
    """Count the pairs of a matrix by the bars of its scale; the outermost bars include the values beyond."""
    scale, values = drawing.scale_of(data), data.value.to_numpy()
    start, end = np.indices(values.shape)
    counted = values[np.isfinite(values) & ((start < end) if data.attrs["symmetric"] else (start != end))]
    return np.histogram(np.clip(counted, scale.low, scale.high), BARS, (scale.low, scale.high))[0]


@primitive(lambda _, width: Frame(width, 26.0))
def histogram(ax: Axes, data: xr.Dataset, style: Style) -> None:
    """Draw the histogram of a matrix, each pair once, in its colors; the outermost bars include the values beyond."""
    scale, counts = drawing.scale_of(data), _counts(data)
    edges = np.linspace(scale.low, scale.high, BARS + 1)
    middles = (edges[1:] + edges[:-1]) / 2
    colors = style.map(scale.map)(Normalize(scale.low, scale.high)(middles))
    ax.bar(middles, counts, width=np.diff(edges), color=colors, edgecolor=style.colors["ink"], linewidth=0.3)
    ax.set_xlim(scale.low, scale.high)
    ax.set_ylim(0, 1.05 * data.attrs.get("most", counts.max()))
    ax.set_xlabel(scale.title)
    ax.set_ylabel("pairs")
    if "matrix" in data.coords:
        ax.set_title(shortened(str(data.matrix.item()), drawing.letters(ax, 1.2, style)), fontsize=style.letters_pt)


def _table(ax: Axes, data: xr.Dataset, style: Style) -> None:
    """Draw cells with the names of their rows and columns; with many rows, only those of findings have names."""
    row_dim, column_dim = map(str, data.value.dims)
    values, scale = data.value.to_numpy(), drawing.scale_of(data)
    ax.set_aspect("auto")
    drawing.draw_cells(ax, values, scale, style)
    marked = marks(data).tolist()
    rows, columns = without_domain(data[row_dim].to_numpy().tolist()), data[column_dim].to_numpy().tolist()
    labeled = len(rows) <= MOST_NAMED_ROWS
    shown = list(range(len(rows))) if labeled else marked
    most = min(_MOST_LETTERS, drawing.letters(ax, 0.6, style))
    ax.set_yticks(shown, [shortened(rows[row], most) for row in shown])
    for label, row in zip(ax.get_yticklabels(), shown, strict=True):
        if row in marked:
            label.set_color(style.color("alarm"))
            label.set_fontweight("bold")
    longest = max(map(len, columns))
    turned = longest > 6 or (longest > 2 and len(columns) > 10)
    ax.set_xticks(range(len(columns)), columns, rotation=90 if turned else 0)
    ax.tick_params(length=0)
    ax.set_xlabel(title_of(data[column_dim]))
    title = title_of(data[row_dim])
    ax.set_ylabel(title if labeled else f"{title} ({len(rows)})")
    numbers = data["number" if "number" in data else "value"].to_numpy()
    drawing.write_numbers(ax, numbers, values, scale, style, data.attrs.get("digits", 3))


# --- side by side ---


#: How many are in a row, the least side of a matrix in mm, and the most lines of a name.
_MOST_COLUMNS, _LEAST_OF_SEVERAL, _MOST_LINES = 3, 12.0, 2
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
    low, high = drawing.value_limits(*(data.value.to_numpy() for data in among or matrices))
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


def _grid_frame(data: Sequence[xr.Dataset], width: float) -> Frame:
    rows, columns = _grid(data)
    return Frame(width, aspect=1.0, least=_LEAST_OF_SEVERAL, rows=rows, columns=columns)


@primitive(_grid_frame)
def side_by_side(ax: Axes, data: Sequence[xr.Dataset], style: Style) -> None:
    """Draw the matrices with the names of their parts and CPUs, sentences below each, and the scale of all."""
    rows, columns = _grid(data)
    every = drawing.subplots(ax, rows, columns)
    above = max(len(part_levels(matrix, "b")) for matrix in data) * drawing.BRACKET_PT + 6.0
    for of_matrix, matrix in zip(every, data, strict=False):
        pairs(of_matrix, matrix, style)
        most = drawing.letters(of_matrix, 1.2, style)
        lines = textwrap.wrap(shortened(str(matrix.matrix.item()), most * _MOST_LINES), most)
        of_matrix.set_title("\n".join(lines), fontsize=style.letters_pt, fontweight="bold", pad=above)
        of_matrix.set_ylabel("")
        most, words = drawing.letters(of_matrix, 1.3, style), matrix.attrs["below"]
        lines = [line for sentence in words for line in textwrap.wrap(sentence, most, subsequent_indent="   ")]
        of_matrix.set_xlabel("\n".join([of_matrix.get_xlabel(), *lines]), labelpad=1)
    for unused in every[len(data) :]:
        unused.remove()
    drawing.draw_scale(every[min(columns, len(data)) - 1], drawing.scale_of(data[0]), style)


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
    reference = [levels.rows[name] for name in peers if name in levels.rows] or list(range(len(levels.nodes)))
    middle = np.nanmedian(levels.values[reference], axis=0)
    squares = (levels.square(100 * (levels.of(name) / middle - 1)) for name in shown)
    maps = np.stack([_smaller(square, len(shown)) for square in squares])
    value = named(("node", "a", "b"), maps, "difference from the median, %")
    coordinates = {"node": shown, "marked": ("node", np.isin(shown, list(marked)))}
    data = xr.Dataset({"value": value}, coordinates, {"symmetric": 1})
    return of_differences(data, tolerance)


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
    scale, marked = drawing.scale_of(data), marks(data)
    ax.set_axis_off()
    step, down = 1 + _BETWEEN, 1 + _HEAD
    ax.set_xlim(0, columns * step - _BETWEEN)
    ax.set_ylim(rows * down, 0)
    for number, (name, values) in enumerate(zip(data.node.to_numpy().tolist(), data.value.to_numpy(), strict=True)):
        x, y = number % columns * step, number // columns * down + _HEAD
        diagonal = np.eye(len(values), dtype=np.bool_)
        drawing.draw_cells(ax, values, scale, style, blank=diagonal, extent=(x, x + 1, y + 1, y), pixels=192, shades=40)
        alarm = number in marked
        pen = {"color": style.color("alarm" if alarm else "hair"), "linewidth": 1.3 if alarm else 0.4}
        ax.plot([x, x + 1, x + 1, x, x], [y, y, y + 1, y + 1, y], clip_on=False, **pen)  # type: ignore[arg-type]
        room = int(drawing.size_pt(ax)[0] / (columns * step) / (0.62 * style.smallest_letters_pt))
        label = shortened(f"\N{BLACK UP-POINTING TRIANGLE} {name}" if alarm else name, room)
        ink = style.color("alarm" if alarm else "ink")
        ax.text(x, y - 0.03, label, fontsize=style.smallest_letters_pt, color=ink, va="bottom")
    ax.set_xlim(0, columns * step - _BETWEEN)
    ax.set_ylim(rows * down, 0)
    ax.set_aspect("auto")
    ax.set_box_aspect(aspect)
    drawing.draw_scale(ax, scale, style, length=min(1.0, 120 / drawing.size_pt(ax)[1]))
