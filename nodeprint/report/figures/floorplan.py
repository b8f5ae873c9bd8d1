"""The floor plan of a machine: sockets, quadrants, CCDs, CCXs and cores as boxes, in the colors of a value."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial

import msgspec
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.collections import PatchCollection
from matplotlib.colors import Normalize
from matplotlib.patches import Rectangle

from nodeprint.data.places.layout import NAMES, QUADRANT, RANK, SOCKET, THREAD
from nodeprint.report.figures.matrix import drawn_slots, home_of, square_of
from nodeprint.report.figures.node_levels import NodeLevels
from nodeprint.report.figures.part_levels import FittedText, size_pt
from nodeprint.report.figures.pixels import ColorScale, draw_scale, is_dark, value_limits
from nodeprint.report.figures.render import Frame
from nodeprint.report.figures.style import Style
from nodeprint.settings.texts import say

#: Sizes in units of a core's side: the room around what is inside of a box, above it for its name, between boxes.
_PAD, _HEAD, _GAP = 0.12, 0.75, 0.12
#: In mm: the most that a core's side takes, and the most that a machine is high.
_MOST_CORE, _MOST_HIGH = 14.0, 220.0


class Core(msgspec.Struct, frozen=True):
    """A core: the number of its CPU, its value (NaN: not measured), and its parts by level (socket, ...)."""

    cpu: str
    value: float
    components: Mapping[str, int]


class Box(msgspec.Struct, frozen=True):
    """A box of a size with what is in it, each at its place from the lower left corner; a `core` at the bottom."""

    width: float
    height: float
    name: str = ""
    level: str = ""
    core: Core | None = None
    inside: tuple[tuple[float, float, Box], ...] = ()


class FloorplanData(msgspec.Struct, frozen=True):
    """The machine as nested boxes, and the colors of its cores."""

    machine: Box
    cores: tuple[Core, ...]
    scale: ColorScale
    marked: tuple[str, ...] = ()

    def frame(self, width: float) -> Frame:
        """As high as the boxes need at their width."""
        aspect = self.machine.height / self.machine.width
        return Frame(width, aspect=aspect, most=min(_MOST_CORE * self.machine.width, _MOST_HIGH / aspect))

    def table(self) -> pd.DataFrame:
        """A row for each core."""
        components = {name: [core.components.get(name, -1) for core in self.cores] for name in self.cores[0].components}
        return pd.DataFrame(
            {
                "CPU": [core.cpu for core in self.cores],
                **components,
                self.scale.title: [core.value for core in self.cores],
            }
        )


def of_pairs(
    levels: NodeLevels,
    node: str,
    home: int | None = None,
    *,
    marked: Sequence[int] = (),
) -> FloorplanData:
    """Each core in the color of the median of its pairs with the others of its socket: over all sockets it would be
    that of no pair."""
    quantity = levels.quantity
    slots = drawn_slots(quantity)
    square = square_of(quantity, levels.of(node), home_of(quantity, home), slots) / levels.unit.size
    socket = quantity.layout.slots[slots, SOCKET]
    square[socket[:, None] != socket[None, :]] = np.nan
    medians = [float(np.median(row[np.isfinite(row)])) if np.isfinite(row).any() else math.nan for row in square]
    numbers = levels.nodes[levels.rows[node]].cpus or range(len(quantity.layout.slots))
    values = dict(zip(slots.tolist(), medians, strict=True))
    return _plan(levels, values, numbers, say("axes", "floor_plan", name=levels.unit.name), marked)


def of_cells(levels: NodeLevels, node: str) -> FloorplanData:
    """Each core in the color of the median of its cells."""
    quantity, of_node = levels.quantity, levels.of(node) / levels.unit.size
    cpus = quantity.places["cpu"]
    values = {int(slot): float(np.nanmedian(of_node[cpus == slot])) for slot in np.unique(cpus)}
    title = f"{quantity.measurement}, {levels.title}"
    return _plan(levels, values, levels.nodes[levels.rows[node]].numbers["cpu"], title, ())


def _plan(
    levels: NodeLevels,
    values: Mapping[int, float],
    numbers: Sequence[int],
    title: str,
    marked: Sequence[int],
) -> FloorplanData:
    slots = levels.quantity.layout.slots
    first: dict[tuple[int, ...], int] = {}  # the first thread of each core stands for it, or the one that has a value
    for slot in range(len(slots)):
        key = tuple(slots[slot, :THREAD].tolist())
        if key not in first or (first[key] not in values and slot in values):
            first[key] = slot
    labeled = [level for level in range(len(NAMES)) if slots[:, level].min(initial=0) >= 0]
    cores = {
        slot: Core(str(numbers[slot]), values.get(slot, math.nan), {NAMES[at]: int(slots[slot, at]) for at in labeled})
        for slot in first.values()
    }
    low, high = value_limits(np.array([core.value for core in cores.values()]))
    places = {slot: tuple(slots[slot].tolist()) for slot in cores}
    drawn = [level for level in labeled if _says_something(level, labeled, places)]
    machine = _boxes(list(cores), drawn, places, cores)
    names = tuple(str(cpu) for cpu in marked)
    return FloorplanData(machine, tuple(cores.values()), ColorScale(title, low, high), names)


def _says_something(level: int, labeled: Sequence[int], places: Mapping[int, tuple[int, ...]]) -> bool:
    """Whether a level has several parts, and others than the next finer one."""
    components = {place[: level + 1] for place in places.values()}
    finer = next((finer_level for finer_level in labeled if finer_level > level), RANK)
    return len(components) > 1 and len(components) < len({place[: finer + 1] for place in places.values()})


def _boxes(
    slots: Sequence[int], levels: Sequence[int], places: Mapping[int, tuple[int, ...]], cores: Mapping[int, Core]
) -> Box:
    """The boxes of some cores, level by level."""
    if not levels:
        boxes = [Box(1.0, 1.0, core=cores[slot]) for slot in slots]
        return _arranged(boxes, _columns(len(boxes), 1.0, 1.0), 0.06)
    level = levels[0]
    groups: dict[int, list[int]] = {}
    for slot in slots:
        groups.setdefault(places[slot][level], []).append(slot)
    boxes = []
    for number, members in sorted(groups.items()):
        inner = _boxes(members, levels[1:], places, cores)
        boxes.append(
            Box(
                inner.width + 2 * _PAD,
                inner.height + 2 * _PAD + _HEAD,
                f"{NAMES[level]} {number}",
                NAMES[level],
                inside=((_PAD, _PAD, inner),),
            )
        )
    columns = 2 if level == QUADRANT and len(boxes) == 4 else _columns(len(boxes), boxes[0].width, boxes[0].height)
    return _arranged(boxes, columns, _GAP)


def _columns(count: int, width: float, height: float) -> int:
    """Columns that make a grid about 1.6 times as wide as high, with few places empty."""

    def ugliness(columns: int) -> float:
        rows = -(-count // columns)
        return abs(math.log(columns * width / (rows * height) / 1.6)) + 3 * (rows * columns - count) / count

    return min(range(1, count + 1), key=ugliness)


def _arranged(boxes: Sequence[Box], columns: int, gap: float) -> Box:
    """Boxes row by row from the upper left corner."""
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


def floorplan(ax: Axes, data: FloorplanData, style: Style) -> None:
    """Draw the boxes, with the number of each core where there is room, and the scale."""
    ax.set_axis_off()
    ax.set_xlim(-0.05, data.machine.width + 0.05)
    ax.set_ylim(-0.05, data.machine.height + 0.05)
    ax.set_aspect("equal", anchor="NW")
    frames: list[tuple[float, float, Box]] = []
    cells: list[tuple[float, float, Core]] = []
    _flat(data.machine, 0.0, 0.0, frames, cells)
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
            shown = partial(_has_room, ax, data.machine, max(needs), max(longer))
            at = (x + _PAD, y + box.height - room_above / 2)
            ax.add_artist(FittedText(*at, label, shown=shown, fontsize=letter, va="center_baseline"))
            longer = needs
    colors = style.map(data.scale.map)(Normalize(data.scale.low, data.scale.high)([core.value for _, _, core in cells]))
    patches = [Rectangle((x, y), 1.0, 1.0) for x, y, _ in cells]
    ax.add_collection(PatchCollection(patches, facecolors=colors, edgecolors="none"))
    widest = max(len(core.cpu) for _, _, core in cells)
    shown = partial(_has_room, ax, data.machine, max(widest * 0.62, 1.2) * letter)
    for (x, y, core), color in zip(cells, colors, strict=True):
        if core.cpu in data.marked:
            alarm = style.color("alarm")
            ax.add_patch(Rectangle((x, y), 1.0, 1.0, fill=False, edgecolor=alarm, linewidth=1.4))
        ink = style.colors["paper" if is_dark(color) else "ink"]
        at = (x + 0.5, y + 0.5)
        number = FittedText(*at, core.cpu, shown=shown, ha="center", va="center", fontsize=letter, color=ink)
        ax.add_artist(number)
    draw_scale(ax, data.scale, style)


def _has_room(ax: Axes, machine: Box, points: float, until: float = 0.0) -> bool:
    """Whether a core's side has so many points, and fewer than those from which on something longer is written."""
    unit = min(np.array(size_pt(ax)) / (machine.width, machine.height))
    return unit > points and not 0 < until < unit


def _flat(
    box: Box, x: float, y: float, frames: list[tuple[float, float, Box]], cells: list[tuple[float, float, Core]]
) -> None:
    """All boxes with names, and all cores, at their places on the page."""
    if box.core is not None:
        cells.append((x, y, box.core))
    if box.name:
        frames.append((x, y, box))
    for dx, dy, inner in box.inside:
        _flat(inner, x + dx, y + dy, frames, cells)
