"""The floor plan of a machine: sockets, quadrants, CCDs, CCXs and cores as boxes, in the colors of a value."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial

import msgspec
import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.collections import PatchCollection
from matplotlib.colors import Normalize
from matplotlib.patches import Rectangle

from nodeprint.data.places.layout import NAMES, QUADRANT, SOCKET, THREAD
from nodeprint.report.figures.figure_data import named
from nodeprint.report.figures.matrix import drawn_slots, home_of, square_of
from nodeprint.report.figures.node_levels import NodeLevels
from nodeprint.report.figures.part_levels import FittedText, size_pt
from nodeprint.report.figures.pixels import draw_scale, is_dark, scale_of, value_limits
from nodeprint.report.figures.render import Frame, primitive
from nodeprint.report.figures.style import Style
from nodeprint.settings.texts import say

#: Sizes in units of a core's side: padding inside a box, header for its name, gap between boxes.
_PAD, _HEAD, _GAP = 0.12, 0.75, 0.12
#: In mm: the largest side of a core, and the largest height of a machine.
_MOST_CORE, _MOST_HIGH = 14.0, 220.0


class Box(msgspec.Struct, frozen=True):
    """A box of a size: inner boxes with positions from the lower left corner, or the number of a core."""

    width: float
    height: float
    name: str = ""
    level: str = ""
    core: int | None = None
    inside: tuple[tuple[float, float, Box], ...] = ()


def of_pairs(levels: NodeLevels, node: str, home: int | None = None, *, marked: Sequence[int] = ()) -> xr.Dataset:
    """Color each core by the median of its pairs within its socket.

    The median over all sockets would match no pair.
    """
    quantity = levels.quantity
    slots = drawn_slots(quantity)
    square = square_of(quantity, levels.of(node), home_of(quantity, home), slots) / levels.unit.size
    socket = quantity.layout.slots[slots, SOCKET]
    square[socket[:, None] != socket[None, :]] = np.nan
    medians = [float(np.median(row[np.isfinite(row)])) if np.isfinite(row).any() else math.nan for row in square]
    values = dict(zip(slots.tolist(), medians, strict=True))
    return _plan(levels, node, values, say("axes", "floor_plan", name=levels.unit.name), marked)


def of_cells(levels: NodeLevels, node: str) -> xr.Dataset:
    """Color each core by the median of its cells."""
    quantity, of_node = levels.quantity, levels.of(node) / levels.unit.size
    cpus = quantity.places["cpu"]
    values = {int(slot): float(np.nanmedian(of_node[cpus == slot])) for slot in np.unique(cpus)}
    title = f"{quantity.measurement}, {levels.title}"
    return _plan(levels, node, values, title)


def _plan(
    levels: NodeLevels, node: str, values: Mapping[int, float], title: str, marked: Sequence[int] = ()
) -> xr.Dataset:
    slots = levels.quantity.layout.slots
    first: dict[tuple[int, ...], int] = {}  # each core's first thread, or its thread with a value
    for slot in range(len(slots)):
        key = tuple(slots[slot, :THREAD].tolist())
        if key not in first or (first[key] not in values and slot in values):
            first[key] = slot
    cores = list(first.values())
    known = [level for level in range(len(NAMES)) if slots[:, level].min(initial=0) >= 0]
    levels_of_cores = {NAMES[level].lower(): xr.Variable("place", slots[cores, level]) for level in known}
    names = list(map(str, levels.cpus(node, cores)))
    value = named("place", [values.get(slot, math.nan) for slot in cores], title)
    low, high = value_limits(value.to_numpy())
    value.attrs |= {"low": low, "high": high}
    coordinates = {
        "cpu": named("place", np.array(names, dtype=object), "CPU"),
        **levels_of_cores,
        "marked": xr.Variable("place", np.isin(names, list(map(str, marked)))),
    }
    return xr.Dataset({"value": value}, coordinates)


def _machine(data: xr.Dataset) -> Box:
    known = [level for level in range(len(NAMES)) if NAMES[level].lower() in data.coords]
    columns = [data[NAMES[level].lower()].to_numpy().tolist() for level in known]
    places = {core: dict(zip(known, place, strict=True)) for core, place in enumerate(zip(*columns, strict=True))}
    drawn = [level for level in known if _says_something(level, known, places)]
    return _boxes(list(places), drawn, places)


def _says_something(level: int, known: Sequence[int], places: Mapping[int, Mapping[int, int]]) -> bool:
    """Tell whether a level has several components that differ from those of the next finer level (or of cores)."""

    def parts(last: int) -> int:
        return len({tuple(place[of] for of in known if of <= last) for place in places.values()})

    finer = next((finer_level for finer_level in known if finer_level > level), None)
    return 1 < parts(level) < (len(places) if finer is None else parts(finer))


def _boxes(cores: Sequence[int], levels: Sequence[int], places: Mapping[int, Mapping[int, int]]) -> Box:
    if not levels:
        boxes = [Box(1.0, 1.0, core=core) for core in cores]
        return _arranged(boxes, _columns(len(boxes), 1.0, 1.0), 0.06)
    level = levels[0]
    groups: dict[int, list[int]] = {}
    for core in cores:
        groups.setdefault(places[core][level], []).append(core)
    boxes = []
    for number, members in sorted(groups.items()):
        inner = _boxes(members, levels[1:], places)
        size = inner.width + 2 * _PAD, inner.height + 2 * _PAD + _HEAD
        boxes.append(Box(*size, f"{NAMES[level]} {number}", NAMES[level], inside=((_PAD, _PAD, inner),)))
    columns = 2 if level == QUADRANT and len(boxes) == 4 else _columns(len(boxes), boxes[0].width, boxes[0].height)
    return _arranged(boxes, columns, _GAP)


def _columns(count: int, width: float, height: float) -> int:
    """Return the number of columns for a grid about 1.6 times as wide as high, with few empty positions."""

    def ugliness(columns: int) -> float:
        rows = -(-count // columns)
        return abs(math.log(columns * width / (rows * height) / 1.6)) + 3 * (rows * columns - count) / count

    return min(range(1, count + 1), key=ugliness)


def _arranged(boxes: Sequence[Box], columns: int, gap: float) -> Box:
    """Arrange boxes row by row from the upper left corner."""
    rows = [boxes[start : start + columns] for start in range(0, len(boxes), columns)]
    width = max(sum(box.width for box in row) + gap * (len(row) - 1) for row in rows)
    heights = [max(box.height for box in row) for row in rows]
    height = sum(heights) + gap * (len(rows) - 1)
    inside = []
    top = height
    for row, row_height in zip(rows, heights, strict=True):
        x = 0.0
        for box in row:
            inside.append((x, top - box.height, box))
            x += box.width + gap
        top -= row_height + gap
    return Box(width, height, inside=tuple(inside))


# --- drawing ---


def _frame(data: xr.Dataset, width: float) -> Frame:
    """Return a frame as high as the boxes need at their width."""
    machine = _machine(data)
    aspect = machine.height / machine.width
    return Frame(width, aspect=aspect, most=min(_MOST_CORE * machine.width, _MOST_HIGH / aspect))


@primitive(_frame)
def floorplan(ax: Axes, data: xr.Dataset, style: Style) -> None:
    """Draw the boxes, the number of each core if it fits, and the scale."""
    machine, scale = _machine(data), scale_of(data)
    names, values, marked = data.cpu.to_numpy(), data.value.to_numpy(), data.marked.to_numpy()
    ax.set_axis_off()
    ax.set_xlim(-0.05, machine.width + 0.05)
    ax.set_ylim(-0.05, machine.height + 0.05)
    ax.set_aspect("equal", anchor="NW")
    frames: list[tuple[float, float, Box]] = []
    cells: list[tuple[float, float, int]] = []
    _flat(machine, 0.0, 0.0, frames, cells)
    letter = style.smallest_letters_pt
    for x, y, box in frames:
        pen = style.outlines[box.level]
        ax.add_patch(
            Rectangle((x, y), box.width, box.height, fill=False, linewidth=pen.points, edgecolor=style.colors["quiet"])
        )
        room_above = _HEAD + _PAD  # up to the boxes inside
        longer = (0.0, 0.0)
        for label in dict.fromkeys((box.name, box.name.rpartition(" ")[2])):
            needs = (len(label) * letter * 0.62 / box.width, 1.15 * letter / room_above)
            shown = partial(_has_room, ax, machine, max(needs), max(longer))
            at = (x + _PAD, y + box.height - room_above / 2)
            ax.add_artist(FittedText(*at, label, shown=shown, fontsize=letter, va="center_baseline"))
            longer = needs
    colors = style.map(scale.map)(Normalize(scale.low, scale.high)([values[core] for _, _, core in cells]))
    patches = [Rectangle((x, y), 1.0, 1.0) for x, y, _ in cells]
    ax.add_collection(PatchCollection(patches, facecolors=colors, edgecolors="none"))
    widest = max(map(len, names))
    shown = partial(_has_room, ax, machine, max(widest * 0.62, 1.2) * letter)
    for (x, y, core), color in zip(cells, colors, strict=True):
        if marked[core]:
            alarm = style.color("alarm")
            ax.add_patch(Rectangle((x, y), 1.0, 1.0, fill=False, edgecolor=alarm, linewidth=1.4))
        ink = style.colors["paper" if is_dark(color) else "ink"]
        at = (x + 0.5, y + 0.5)
        number = FittedText(*at, names[core], shown=shown, ha="center", va="center", fontsize=letter, color=ink)
        ax.add_artist(number)
    draw_scale(ax, scale, style)


def _has_room(ax: Axes, machine: Box, points: float, until: float = 0.0) -> bool:
    """Tell whether a core's side has at least `points` points, but less than `until`, which fits a longer text."""
    unit = min(np.array(size_pt(ax)) / (machine.width, machine.height))
    return unit > points and not 0 < until < unit


def _flat(
    box: Box, x: float, y: float, frames: list[tuple[float, float, Box]], cells: list[tuple[float, float, int]]
) -> None:
    if box.core is not None:
        cells.append((x, y, box.core))
    if box.name:
        frames.append((x, y, box))
    for dx, dy, inner in box.inside:
        _flat(inner, x + dx, y + dy, frames, cells)
