"""The matrix of pairs of CPUs: a node's values or their differences from the peers', with the outlines of its parts."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import msgspec
import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from nodeprint.data.places import homes
from nodeprint.data.places.layout import Ints
from nodeprint.data.places.measured import Measured
from nodeprint.errors import NodeprintError
from nodeprint.report.figures.found_parts import found, in_groups, structure_of
from nodeprint.report.figures.node_levels import Floats, NodeLevels
from nodeprint.report.figures.part_levels import (
    PartLevel,
    draw_brackets,
    draw_outlines,
    name_places,
    part_levels,
)
from nodeprint.report.figures.pixels import ColorScale, draw_cells, draw_scale, value_limits, write_numbers
from nodeprint.report.figures.render import Frame
from nodeprint.report.figures.style import Style
from nodeprint.report.names import shortened, without_domain
from nodeprint.settings.texts import say
from nodeprint.structure.found import Structure

#: Matrices of so many CPUs have numbers in their cells where there is room.
MOST_NUMBERS = 32
#: Differences are drawn to at least this, in percent: noise looks like noise.
LEAST_REACH = 3.0
#: Numbers along an axis of a larger one, at most.
_TICKS = 16
#: In mm: the most that a cell takes, and the least side of a matrix; longer names are cut in the middle.
_MOST_CELL, _LEAST_SIDE, _MOST_LETTERS = 14.0, 30.0, 24
#: Pairs inside a socket that span less of a scale have one of their own.
_NEAR = 0.4


class MatrixData(msgspec.Struct, frozen=True):
    """`values` (n, n) of pairs of the places that `labels` name, NaN where nothing was measured, and their colors.

    `axis` says what the labels are, `levels` are the parts of the machine, `marked` the places of a finding.
    `directed`: from the row to the column, and not the same in both ways.
    """

    values: Floats
    labels: tuple[str, ...]
    scale: ColorScale
    axis: str = "CPU"
    levels: tuple[PartLevel, ...] = ()
    marked: tuple[int, ...] = ()
    directed: bool = False

    def frame(self, width: float) -> Frame:
        """A square."""
        return Frame(width, aspect=1.0, least=_LEAST_SIDE, most=max(_MOST_CELL * len(self.labels), 42.0))

    def table(self) -> pd.DataFrame:
        """A row for each pair that was measured."""
        measured = np.isfinite(self.values)
        if not self.directed:
            measured &= np.triu(np.ones_like(measured, dtype=np.bool_), 1)
        a, b = np.nonzero(measured)
        names = np.array(self.labels)
        components = {
            f"{level.name} of {end}": part_of(level, len(self.labels))[places]
            for level in self.levels
            for end, places in (("a", a), ("b", b))
        }
        what = self.axis.partition(",")[0]
        ends = {f"{what} a": names[a], f"{what} b": names[b]}
        return pd.DataFrame({**ends, **components, self.scale.title: self.values[a, b].astype(np.float64)})


def part_of(level: PartLevel, size: int) -> np.ndarray[tuple[int], np.dtype[np.str_]]:
    """The label of the part of each place."""
    out = np.full(size, "", dtype=object)
    for group in level.groups:
        out[group.start : group.stop] = group.label
    return out.astype(np.str_)


def of_node(levels: NodeLevels, node: str, home: int | None = None) -> MatrixData:
    """The pairs of a node at a `home` of the quantity (the first where none is named). CPUs without labels are in the
    groups that are found in the matrix."""
    at_home = home_of(levels.quantity, home)
    slots = drawn_slots(levels.quantity)
    components, axis = _components(levels, slots), _axis(_cpus(levels, node, slots))
    structure = structure_at(levels, node)
    if structure is not None and structure.levels:
        order, components = in_groups(structure, tuple(map(int, _cpus(levels, node, slots))))
        slots, axis = slots[order], say("axes", "found")
    square = square_of(levels.quantity, levels.of(node), at_home, slots) / levels.unit.size
    place = homes.named(at_home)
    scale = ColorScale(f"{f'{place}: ' if place else ''}{levels.title}", *value_limits(square))
    return MatrixData(square, _cpus(levels, node, slots), scale, axis, components)


def inside_sockets(data: MatrixData) -> MatrixData | None:
    """A node's matrix on the scale of its pairs inside a socket beyond their finest parts, where all others would leave
    these few of the colors: other pairs have those of the ends. None where there are no such pairs or levels."""
    socket = next((level for level in data.levels if level.outline == "socket"), None)
    if socket is None or len(data.levels) < 2 or len(data.labels) <= MOST_NUMBERS:
        return None
    component, finest = (_numbers_of(level, len(data.labels)) for level in (socket, data.levels[0]))
    chosen = (component[:, None] == component) & (finest[:, None] != finest) & np.isfinite(data.values)
    if not chosen.any():
        return None
    low, high = value_limits(data.values[chosen])
    if high - low > _NEAR * (data.scale.high - data.scale.low):
        return None
    scale = msgspec.structs.replace(data.scale, low=low, high=high)
    return msgspec.structs.replace(data, scale=scale)


def _numbers_of(level: PartLevel, size: int) -> Ints:
    """By place the number of its part in the order of the parts."""
    starts = [group.start for group in level.groups]
    return np.searchsorted(starts, np.arange(size), side="right").astype(np.int64)


def of_cells(levels: NodeLevels, node: str, dim: str, place: int, name: str) -> MatrixData | None:
    """The values of a measurement of cells with CPUs `a` and `b` at a `place` of its dimension `dim` (a number, or that
    of a word), as contended atomics have by their kind, with its `name`; over its other dimensions the median. None of
    fewer than three CPUs."""
    quantity = levels.quantity
    chosen = quantity.places[dim] == place
    a, b = (quantity.places[end][chosen] for end in "ab")
    slots, at = np.unique(np.concatenate([a, b]), return_inverse=True)
    if len(slots) < 3:
        return None
    values = pd.Series(levels.of(node)[chosen] / levels.unit.size)
    each = values.groupby([at[: len(a)], at[len(a) :]]).median()
    rows, columns = (each.index.get_level_values(level).to_numpy() for level in (0, 1))
    square = np.full((len(slots), len(slots)), np.nan)
    square[rows, columns] = square[columns, rows] = each.to_numpy()
    numbers = levels.nodes[levels.rows[node]].numbers["cpu"]
    cpus = tuple(str(numbers[slot]) for slot in slots.tolist())
    scale = ColorScale(f"{name}: {levels.title}", *value_limits(square))
    return MatrixData(square, cpus, scale, _axis(cpus), _components(levels, slots))


def structure_at(levels: NodeLevels, node: str) -> Structure | None:
    """The groups that are found in a node's matrix at the first home; None where its CPUs have labels or are few."""
    return structure_of(levels, node, *_at_first_home(levels, node))


def found_at(levels: NodeLevels, node: str) -> Structure | None:
    """The same whatever the labels of its CPUs: what the latencies alone say."""
    return found(levels, node, *_at_first_home(levels, node))


def _at_first_home(levels: NodeLevels, node: str) -> tuple[Floats, Ints]:
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
    reach: float | None = None,
) -> MatrixData:
    """By pair the difference from the median of the peers in percent, to `reach` percent; `tolerance` is relative (0.02
    is 2 %), `marked` are OS numbers of CPUs."""
    at_home = home_of(levels.quantity, home)
    slots = drawn_slots(levels.quantity)
    values, peer_values = levels.of(node), levels.of_peers(node, peers)
    if not len(peer_values):
        raise NodeprintError(f"{node} has no peer to differ from", advice="draw its values instead")
    square = square_of(levels.quantity, 100 * (values / np.nanmedian(peer_values, axis=0) - 1), at_home, slots)
    percent = 100 * tolerance if tolerance is not None else None
    reach = reach or difference_reach(square, percent)
    count = len(peer_values)
    place = homes.named(at_home)
    title = (
        f"{f'{place}: ' if place else ''}difference from the "
        f"{f'median of {count} peers' if count > 1 else 'one peer'}, %"
    )
    cpus = _cpus(levels, node, slots)
    wanted = set(map(str, marked))
    text = f"tolerance\n±{percent:.3g} %" if percent is not None else ""
    scale = ColorScale(title, -reach, reach, "differences", percent, text)
    return MatrixData(
        square,
        cpus,
        scale,
        _axis(cpus),
        _components(levels, slots),
        marked=tuple(place for place, cpu in enumerate(cpus) if cpu in wanted),
    )


def difference_reach(percent: Floats, tolerance: float | None, least: float = LEAST_REACH) -> float:
    """How far a scale of differences (percent) reaches to both sides, at `least`."""
    finite = np.abs(percent[np.isfinite(percent)])
    far = float(np.quantile(finite, 0.998)) if finite.size else 0.0
    return max(least, far, 1.5 * (tolerance or 0.0))


def drawn_slots(quantity: Measured) -> Ints:
    """The slots that a matrix has: all that have more than one pair, so that a core's second thread, of which the pair
    with the first alone is measured, takes no row. Of a machine with one pair both."""
    count = np.bincount(quantity.pairs.ravel(), minlength=len(quantity.layout.slots))
    return np.flatnonzero(count > (1 if count.max(initial=0) > 1 else 0))


def square_of(quantity: Measured, places: Floats, home: int, slots: Ints) -> Floats:
    """Values by place as a matrix of `slots` at a home, filled on both sides."""
    pairs = quantity.pairs
    start = quantity.homes.index(home) * len(pairs)
    size = len(quantity.layout.slots)
    out = np.full((size, size), np.nan, dtype=np.float64)
    out[pairs[:, 0], pairs[:, 1]] = out[pairs[:, 1], pairs[:, 0]] = places[start : start + len(pairs)]
    return np.asarray(out[np.ix_(slots, slots)])


def home_of(quantity: Measured, home: int | None) -> int:
    """A home of a quantity of pairs, the first where none is named. Raises NodeprintError where it has none such."""
    if not quantity.of_pairs:
        advice = "name a measurement of pairs, such as coherence-cas"
        raise NodeprintError(f"{quantity.measurement} does not measure pairs of CPUs", advice=advice)
    if home is not None and home not in quantity.homes:
        advice = f"choose from {', '.join(map(str, quantity.homes))}"
        raise NodeprintError(f"{quantity.measurement} was not measured at home {home}", advice=advice)
    return quantity.homes[0] if home is None else home


def _cpus(levels: NodeLevels, node: str, slots: Ints) -> tuple[str, ...]:
    numbers = levels.nodes[levels.rows[node]].cpus or range(len(levels.quantity.layout.slots))
    return tuple(str(numbers[slot]) for slot in slots.tolist())


def _axis(cpus: Sequence[str]) -> str:
    """What the rows are: CPUs, and that they stand in another order than that of their numbers."""
    numbers = list(map(int, cpus))
    return "CPU" if numbers == sorted(numbers) else say("axes", "components")


def _components(levels: NodeLevels, slots: Ints) -> tuple[PartLevel, ...]:
    return part_levels(levels.quantity.layout.slots[slots])


# --- drawing ---


def matrix(ax: Axes, data: MatrixData, style: Style) -> None:
    """Draw a matrix with its parts and its scale; triangles mark the places of a finding."""
    pairs(ax, data, data.scale, style)
    draw_scale(ax, data.scale, style)


def pairs(ax: Axes, data: MatrixData, scale: ColorScale, style: Style) -> None:
    """Draw a matrix on a `scale` with the names of its parts, and its numbers where they have room."""
    size = len(data.labels)
    ax.set_box_aspect(1)
    draw_cells(ax, data.values, scale, style, blank=None if data.directed else np.eye(size, dtype=np.bool_))
    draw_outlines(ax, data.levels, size, style, "ink" if scale.map == "differences" else "paper")
    if size <= MOST_NUMBERS:
        write_numbers(ax, data.values, data.values, scale, style, 3 if scale.map == "values" else 2)
    labels = [shortened(label, _MOST_LETTERS) for label in without_domain(data.labels)]
    turned = max(map(len, labels), default=0) > 3
    for axis in (ax.xaxis, ax.yaxis):
        name_places(axis, labels, style, turned=turned, most=size if size <= MOST_NUMBERS else _TICKS)
    ax.set_xlabel(data.axis)
    ax.set_ylabel(data.axis, labelpad=2)
    if data.levels:
        draw_brackets(ax, data.levels, style)
    if data.marked:
        _mark(ax, data.marked, style)


def _mark(ax: Axes, places: Sequence[int], style: Style) -> None:
    pen: dict[str, Any] = {"linestyle": "", "color": style.color("alarm"), "clip_on": False, "markersize": 3.2}
    ax.plot([-0.012] * len(places), places, marker=">", transform=ax.get_yaxis_transform(), **pen)
    ax.plot(places, [-0.012] * len(places), marker="^", transform=ax.get_xaxis_transform(), **pen)
