"""Matrices with labeled axes: pairs of CPUs or nodes with outlined components, and tables."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import xarray as xr
from matplotlib.axes import Axes

from nodeprint.data.places import homes
from nodeprint.data.places.layout import SOCKET, Ints
from nodeprint.data.places.measured import Measured
from nodeprint.errors import NodeprintError
from nodeprint.machine.topology.level_names import level_name
from nodeprint.machine.topology.model import Level
from nodeprint.report.figures import tolerance_band
from nodeprint.report.figures.figure_data import marks, named, title_of
from nodeprint.report.figures.node_levels import Floats, NodeLevels
from nodeprint.report.figures.part_levels import (
    draw_brackets,
    draw_outlines,
    letters,
    name_places,
    outlined,
    part_coordinates,
    part_levels,
)
from nodeprint.report.figures.pixels import draw_cells, draw_scale, scale_of, value_limits, write_numbers
from nodeprint.report.figures.render import Frame, primitive
from nodeprint.report.figures.style import Style
from nodeprint.report.names import shortened, without_domain
from nodeprint.settings.texts import say
from nodeprint.structure.found import LevelName, Structure

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
    low, high = value_limits(values)
    value = named(("a", "b"), values, title)
    value.attrs |= {"low": low, "high": high}
    return xr.Dataset({"value": value}, coordinates, {"axis": axis, "symmetric": not directed})


def of_node(levels: NodeLevels, node: str, home: int | None = None) -> xr.Dataset:
    """Return the pairs of a node at a `home`, the first by default; CPUs without labels are in the groups found."""
    at_home = home_of(levels.quantity, home)
    slots = drawn_slots(levels.quantity)
    cpus, parts = levels.cpus(node, slots), part_coordinates("place", levels.quantity.layout.slots[slots])
    structure, axis = structure_at(levels, node), _axis(cpus)
    if structure is not None and structure.levels:
        order, parts = in_groups(structure, cpus)
        slots, axis = slots[order], say("axes", "found")
    values = square_of(levels.quantity, levels.of(node), at_home, slots) / levels.unit.size
    title = f"{homes.named(at_home)}: {levels.title}".removeprefix(": ")
    return square(values, levels.cpus(node, slots), title, parts, axis=axis)


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
    low, high = value_limits(*values)
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
    cpus, parts = levels.cpus(node, slots), part_coordinates("place", quantity.layout.slots[slots])
    return square(of_pairs, cpus, f"{name}: {levels.title}", parts, axis=_axis(cpus))


def at_first_home(levels: NodeLevels, node: str) -> tuple[Floats, Ints]:
    """Return a node's matrix at the first home, in the quantity's unit, and its slots."""
    slots = drawn_slots(levels.quantity)
    return square_of(levels.quantity, levels.of(node), levels.quantity.homes[0], slots), slots


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
    at_home = home_of(levels.quantity, home)
    slots = drawn_slots(levels.quantity)
    values, peer_values = levels.of(node), levels.of_peers(node, peers)
    if not len(peer_values):
        raise NodeprintError(f"{node} has no peer to differ from", advice="draw its values instead")
    percent = square_of(levels.quantity, 100 * (values / np.nanmedian(peer_values, axis=0) - 1), at_home, slots)
    count = len(peer_values)
    reference = f"median of {count} peers" if count > 1 else "one peer"
    title = f"{homes.named(at_home)}: difference from the {reference}, %".removeprefix(": ")
    cpus, parts = levels.cpus(node, slots), part_coordinates("place", levels.quantity.layout.slots[slots])
    places = [place for place, cpu in enumerate(cpus) if cpu in marked]
    data = square(percent, cpus, title, parts, axis=_axis(cpus), marked=places)
    return of_differences(data, 100 * tolerance if tolerance is not None else None)


def of_differences(data: xr.Dataset, tolerance: float | None, least: float = LEAST_REACH) -> xr.Dataset:
    """Return the data on a symmetric scale of differences, to `least` percent or more, with a tolerance (percent)."""
    finite = np.abs(data.value.to_numpy()[np.isfinite(data.value)])
    far = float(np.quantile(finite, 0.998)) if finite.size else 0.0
    reach = max(least, far, 1.5 * (tolerance or 0.0))
    out = scaled(data, -reach, reach)
    out.value.attrs["map"] = "differences"
    return out if tolerance is None else out.assign_coords(tolerance_band.coordinates(tolerance, tolerance))


def drawn_slots(quantity: Measured) -> Ints:
    """Return the slots with more than one pair, which a second thread measured only with the first has not."""
    count = np.bincount(quantity.pairs.ravel(), minlength=len(quantity.layout.slots))
    return np.flatnonzero(count > (1 if count.max(initial=0) > 1 else 0))


def square_of(quantity: Measured, places: Floats, home: int, slots: Ints) -> Floats:
    """Return values by place as a symmetric matrix of `slots` at a home."""
    pairs = quantity.pairs
    start = quantity.homes.index(home) * len(pairs)
    size = len(quantity.layout.slots)
    out = np.full((size, size), np.nan, dtype=np.float64)
    out[pairs[:, 0], pairs[:, 1]] = out[pairs[:, 1], pairs[:, 0]] = places[start : start + len(pairs)]
    return np.asarray(out[np.ix_(slots, slots)])


def home_of(quantity: Measured, home: int | None) -> int:
    """Return a home of a quantity of pairs, the first by default. Raises NodeprintError for an unknown home."""
    if not quantity.of_pairs:
        advice = "name a measurement of pairs, such as coherence-cas"
        raise NodeprintError(f"{quantity.measurement} does not measure pairs of CPUs", advice=advice)
    if home is not None and home not in quantity.homes:
        advice = f"choose from {', '.join(map(str, quantity.homes))}"
        raise NodeprintError(f"{quantity.measurement} was not measured at home {home}", advice=advice)
    return quantity.homes[0] if home is None else home


def _axis(cpus: Sequence[int]) -> str:
    return "CPU" if list(cpus) == sorted(cpus) else say("axes", "components")


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
    draw_scale(ax, scale_of(data), style)


def pairs(ax: Axes, data: xr.Dataset, style: Style) -> None:
    """Draw a matrix of pairs with the names of its components, without its scale."""
    size, scale, values = data.sizes["b"], scale_of(data), data.value.to_numpy()
    symmetric = data.attrs["symmetric"]
    ax.set_box_aspect(1)
    draw_cells(ax, values, scale, style, blank=np.eye(size, dtype=np.bool_) if symmetric else None)
    levels = part_levels(data, "b")
    draw_outlines(ax, levels, size, style, "ink" if scale.map == "differences" else "paper")
    if size <= MOST_NUMBERS:
        write_numbers(ax, values, values, scale, style, 3 if scale.map == "values" else 2)
    labels = [shortened(label, _MOST_LETTERS) for label in without_domain(data.b.to_numpy().tolist())]
    turned = max(map(len, labels), default=0) > 3
    for axis in (ax.xaxis, ax.yaxis):
        name_places(axis, labels, style, turned=turned, most=size if size <= MOST_NUMBERS else _TICKS)
    ax.set_xlabel(data.attrs["axis"])
    ax.set_ylabel(data.attrs["axis"], labelpad=2)
    if levels:
        draw_brackets(ax, levels, style)
    if len(places := marks(data)):
        pen: dict[str, Any] = {"linestyle": "", "color": style.color("alarm"), "clip_on": False, "markersize": 3.2}
        ax.plot([-0.012] * len(places), places, marker=">", transform=ax.get_yaxis_transform(), **pen)
        ax.plot(places, [-0.012] * len(places), marker="^", transform=ax.get_xaxis_transform(), **pen)


def _table(ax: Axes, data: xr.Dataset, style: Style) -> None:
    """Draw cells with the names of their rows and columns; with many rows, only those of findings have names."""
    row_dim, column_dim = map(str, data.value.dims)
    values, scale = data.value.to_numpy(), scale_of(data)
    ax.set_aspect("auto")
    draw_cells(ax, values, scale, style)
    marked = marks(data).tolist()
    rows, columns = without_domain(data[row_dim].to_numpy().tolist()), data[column_dim].to_numpy().tolist()
    labeled = len(rows) <= MOST_NAMED_ROWS
    shown = list(range(len(rows))) if labeled else marked
    most = min(_MOST_LETTERS, letters(ax, 0.6, style))
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
    write_numbers(ax, numbers, values, scale, style, data.attrs.get("digits", 3))


# --- groups that are found where labels are missing ---


#: The outline of each detected level; threads of a core have none.
_OUTLINED_AS: dict[LevelName, Level] = {
    "ccx": "ccx",
    "group": "ccx",
    "quadrant": "quadrant",
    "half": "ccd",
    "socket": "socket",
}
#: A matrix of fewer CPUs has no groups.
_FEWEST = 4


def structure_at(levels: NodeLevels, node: str) -> Structure | None:
    """Return the groups detected in a node's matrix at the first home; None if its CPUs have labels or are few."""
    return None if levels.quantity.layout.slots[:, SOCKET].max(initial=-1) > -1 else found_at(levels, node)


def found_at(levels: NodeLevels, node: str) -> Structure | None:
    """Return the groups detected in the latencies alone, whatever the labels, cached; None for too few CPUs."""
    matrix_at_home, slots = at_first_home(levels, node)
    if len(slots) < _FEWEST:
        return None
    if node not in levels.found:
        from nodeprint import structure  # noqa: PLC0415 (imports for half a second; only for matrices without labels)

        levels.found[node] = structure.find(matrix_at_home, list(levels.cpus(node, slots)))
    return levels.found[node]


def in_groups(structure: Structure, cpus: tuple[int, ...]) -> tuple[Ints, dict[str, xr.Variable]]:
    """Return a drawing order of CPUs that keeps each group contiguous, and the groups as coordinates.

    CPUs are OS numbers. Coordinates follow this order, the finest level first. A group of a single core has a negative
    number.
    """
    number = {cpu: at for at, cpu in enumerate(cpus)}
    of_cpu = np.zeros((len(structure.levels), len(cpus)), dtype=np.int64)
    for row, level in enumerate(structure.levels):
        for group in level.groups:  # by its lowest CPU, as group numbers have no order
            of_cpu[row, [number[cpu] for cpu in group]] = min(number[cpu] for cpu in group)
    smt = structure.level("smt")
    cores = np.arange(len(cpus))
    for group in smt.groups if smt else ():
        cores[[number[cpu] for cpu in group]] = min(number[cpu] for cpu in group)
    order = np.lexsort((np.arange(len(cpus)), *of_cpu))
    out: dict[str, xr.Variable] = {}
    for row, level in enumerate(structure.levels):
        if level.name not in _OUTLINED_AS or len(level.groups) < 2:
            continue
        keys = of_cpu[row:, order]  # a group of a level that is not nested may be in several pieces
        changes = (np.flatnonzero((keys[:, 1:] != keys[:, :-1]).any(axis=0)) + 1).tolist()
        counted, single = itertools.count(), itertools.count(-1, -1)
        numbers = np.empty(len(cpus), dtype=np.int64)
        for start, stop in pairwise([0, *changes, len(cpus)]):
            numbers[start:stop] = next(counted if len(set(cores[order[start:stop]])) > 1 else single)
        name = f"{level_name(level.name)}?"
        out[f"found_{level.name}"] = outlined(numbers, name, level_name(_OUTLINED_AS[level.name]))
    # the kinds of cores in a hybrid processor, by their number of threads, if each kind is contiguous
    _, core, threads = np.unique(cores[order], return_inverse=True, return_counts=True)
    kinds = threads[core.ravel()]
    if 0 < np.count_nonzero(np.diff(kinds)) == len(set(threads.tolist())) - 1:
        out["found_kind"] = outlined(kinds, say("axes", "threads"), level_name("ccd"))
    return order, out
