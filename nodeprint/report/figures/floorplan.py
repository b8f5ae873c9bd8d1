"""The floor plan of a machine: sockets, quadrants, CCDs, CCXs and cores as boxes, in the colors of a value."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import msgspec
import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.collections import PatchCollection
from matplotlib.colors import Normalize
from matplotlib.patches import Rectangle

from nodeprint.data.places.layout import NAMES, QUADRANT, SOCKET, THREAD
from nodeprint.report.figures.drawing import FittedText, draw_scale, is_dark, scale_of, size_pt, value_limits
from nodeprint.report.figures.figure_data import named
from nodeprint.report.figures.node_levels import NodeLevels
from nodeprint.report.figures.render import Frame, primitive
from nodeprint.report.figures.style import Style
from nodeprint.settings.texts import say

#: Sizes in units of a core's side: padding inside a box, header for its name, gap between boxes.
_PAD, _HEAD, _GAP = 0.12, 0.75, 0.12
#: In mm: the largest side of a core, and the largest height of a machine.
_MOST_CORE, _MOST_HIGH = 14.0, 220.0


class Box(msgspec.Struct, frozen=True):
    """An arrangement of a size: named frames (x, y, width, height, name, level), and cores (x, y, number).

    Positions are those of lower left corners.
    """

    width: float
    height: float
    frames: tuple[tuple[float, float, float, float, str, str], ...] = ()
    cores: tuple[tuple[float, float, int], ...] = ()

    def at(self, dx: float, dy: float) -> tuple[Any, Any]:
        """Return frames and cores, moved."""
        frames = tuple((x + dx, y + dy, *of) for x, y, *of in self.frames)
        return frames, tuple((x + dx, y + dy, core) for x, y, core in self.cores)


def of_pairs(levels: NodeLevels, node: str, home: int | None = None) -> xr.Dataset:
    """Color each core by the median of its pairs within its socket; that over all sockets would match no pair."""
    square = levels.square(levels.of(node), home) / levels.unit.size
    socket = levels.quantity.layout.slots[levels.slots, SOCKET]
    square[socket[:, None] != socket[None, :]] = np.nan
    medians = [float(np.median(row[np.isfinite(row)])) if np.isfinite(row).any() else math.nan for row in square]
    values = dict(zip(levels.slots.tolist(), medians, strict=True))
    return _plan(levels, node, values, say("axes", "floor_plan", name=levels.unit.name))


def of_cells(levels: NodeLevels, node: str) -> xr.Dataset:
    """Color each core by the median of its cells."""
    quantity, of_node = levels.quantity, levels.of(node) / levels.unit.size
    cpus = quantity.places["cpu"]
    values = {int(slot): float(np.nanmedian(of_node[cpus == slot])) for slot in np.unique(cpus)}
    title = f"{quantity.measurement}, {levels.title}"
    return _plan(levels, node, values, title)


def _plan(levels: NodeLevels, node: str, values: Mapping[int, float], title: str) -> xr.Dataset:
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
    }
    return xr.Dataset({"value": value}, coordinates)


def _machine(data: xr.Dataset) -> Box:
    known = [level for level in range(len(NAMES)) if NAMES[level].lower() in data.coords]
    columns = [data[NAMES[level].lower()].to_numpy().tolist() for level in known]
    places = [dict(zip(known, place, strict=True)) for place in zip(*columns, strict=True)]
    # a level is drawn that has several components, which are not those of the next finer level (or cores)
    counts = [len({tuple(place[of] for of in known[: last + 1]) for place in places}) for last in range(len(known))]
    finer = [*counts[1:], len(places)]
    drawn = [level for level, own, next_finer in zip(known, counts, finer, strict=True) if 1 < own < next_finer]
    return _boxes(range(len(places)), drawn, places)


def _boxes(cores: Sequence[int], levels: Sequence[int], places: Sequence[Mapping[int, int]]) -> Box:
    if not levels:
        boxes = [Box(1.0, 1.0, cores=((0.0, 0.0, core),)) for core in cores]
        return _arranged(boxes, _columns(len(boxes), 1.0, 1.0), 0.06)
    level, boxes = levels[0], []
    for number in sorted({places[core][level] for core in cores}):
        inner = _boxes([core for core in cores if places[core][level] == number], levels[1:], places)
        size, (frames, of_inner) = (inner.width + 2 * _PAD, inner.height + 2 * _PAD + _HEAD), inner.at(_PAD, _PAD)
        boxes.append(Box(*size, ((0.0, 0.0, *size, f"{NAMES[level]} {number}", NAMES[level]), *frames), of_inner))
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
    heights = [max(box.height for box in row) for row in rows]
    top = height = sum(heights) + gap * (len(rows) - 1)
    width, frames, cores = 0.0, list[Any](), list[Any]()
    for row, row_height in zip(rows, heights, strict=True):
        x = 0.0
        for box in row:
            of_box = box.at(x, top - box.height)
            frames += of_box[0]
            cores += of_box[1]
            x += box.width + gap
        width = max(width, x - gap)
        top -= row_height + gap
    return Box(width, height, tuple(frames), tuple(cores))


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
    names, values = data.cpu.to_numpy(), data.value.to_numpy()
    ax.set_axis_off()
    ax.set_xlim(-0.05, machine.width + 0.05)
    ax.set_ylim(-0.05, machine.height + 0.05)
    ax.set_aspect("equal", anchor="NW")
    letter, room_above = style.smallest_letters_pt, _HEAD + _PAD  # up to the boxes inside
    pen: dict[str, Any] = {"fill": False, "edgecolor": style.colors["quiet"]}
    for x, y, width, height, name, level in machine.frames:
        ax.add_patch(Rectangle((x, y), width, height, linewidth=style.outlines[level].points, **pen))
        longer = (0.0, 0.0)
        for label in dict.fromkeys((name, name.rpartition(" ")[2])):
            needs = (len(label) * letter * 0.62 / width, 1.15 * letter / room_above)
            shown = partial(_has_room, ax, machine, max(needs), max(longer))
            at = (x + _PAD, y + height - room_above / 2)
            ax.add_artist(FittedText(*at, label, shown=shown, fontsize=letter, va="center_baseline"))
            longer = needs
    colors = style.map(scale.map)(Normalize(scale.low, scale.high)([values[core] for _, _, core in machine.cores]))
    patches = [Rectangle((x, y), 1.0, 1.0) for x, y, _ in machine.cores]
    ax.add_collection(PatchCollection(patches, facecolors=colors, edgecolors="none"))
    widest = max(map(len, names))
    shown = partial(_has_room, ax, machine, max(widest * 0.62, 1.2) * letter)
    for (x, y, core), color in zip(machine.cores, colors, strict=True):
        pen = {"fontsize": letter, "color": style.colors["paper" if is_dark(color) else "ink"]}
        ax.add_artist(FittedText(x + 0.5, y + 0.5, names[core], shown=shown, ha="center", va="center", **pen))
    draw_scale(ax, scale, style)


def _has_room(ax: Axes, machine: Box, points: float, until: float = 0.0) -> bool:
    """Tell whether a core's side has at least `points` points, but less than `until`, which fits a longer text."""
    unit = min(np.array(size_pt(ax)) / (machine.width, machine.height))
    return unit > points and not 0 < until < unit
