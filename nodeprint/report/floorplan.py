"""The floor plan of a machine: each socket's dies and cores where they are known to be, coloured by a value.

A schematic: a CCD stands beside its quadrant of the I/O die, not where it sits on the package, and what has no known
place is drawn dashed and said to have none.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Literal

from nodeprint.report import scale as scales
from nodeprint.report.drawing import Drawing, Pixels
from nodeprint.report.scale import LEVELS, MISSING, Scale
from nodeprint.topology import processors
from nodeprint.topology.facts import list_text
from nodeprint.topology.model import Cpu, Level, Topology
from nodeprint.topology.processors import Generation

_INK, _QUIET, _HAIR, _WASH = "#1c2329", "#5b6570", "#9aa4ad", "#f3f5f7"
_CELL = (25.0, 16.0)
_GAP, _PAD, _LINE = 2.0, 5.0, 11.0
_LABEL, _SMALL, _NUMBER = 8.0, 7.0, 7.5
_PART = (52.0, 26.0)
_DIE_WIDTH, _LEGEND_WIDTH = 92.0, 320.0
#: A page is so wide where a unit is a point; what is wider is shrunk, and its text with it.
_PAGE = 510.0
_AMD = ("AuthenticAMD", "HygonGenuine")
#: A unit of the plan in mm: a point.
_UNIT = 0.353


@dataclass(frozen=True, slots=True)
class _Sheet:
    """A drawing, and how many mm of it a unit of the plan takes."""

    drawing: Drawing
    by: float


#: A mark that is still to be placed: what draws it at x and y, and where it is now.
_Mark = tuple[Callable[[_Sheet, float, float], None], float, float]


@dataclass(frozen=True, slots=True)
class _Block:
    """A drawing of a size, from its top left corner."""

    width: float
    height: float
    marks: tuple[_Mark, ...] = ()

    def at(self, dx: float, dy: float) -> tuple[_Mark, ...]:
        """The drawing's elements, moved."""
        return tuple((draw, x + dx, y + dy) for draw, x, y in self.marks)


def floorplan(
    topology: Topology,
    values: Mapping[int, float] | None = None,
    *,
    unit: str = "",
    quantity: str = "",
    level: Literal["core", "ccd"] = "core",
    scale: Scale | None = None,
    socket: int | None = None,
    room: tuple[float, float] = (180.0, 205.0),
) -> Drawing:
    """The floor plan of all sockets, or of `socket`, no larger than `room` (width and height in mm).

    `values` are by OS CPU number, in `unit`; a core (or CCD, by `level`) takes the median of its CPUs' values, and one
    without any is drawn grey. `scale` is a report's own; without it the values' ends are taken. `quantity` names what
    is shown under the colours.
    """
    cells = _Cells(topology, values, level, scale)
    sockets: dict[int | None, list[Cpu]] = {}
    for cpu in topology.cpus:
        if socket is None or cpu.socket == socket:
            sockets.setdefault(cpu.socket, []).append(cpu)
    plans = [
        _framed(_socket(topology, cpus, cells), f"socket {number}" if number is not None else "socket unknown")
        for number, cpus in sorted(sockets.items(), key=lambda item: (item[0] is None, item[0]))
    ]
    body = _grid(plans, 2 if 2 * max((plan.width for plan in plans), default=0) <= _PAGE else 1, 8)
    wide = max(body.width, _LEGEND_WIDTH)
    below = [_text(line, _SMALL, _QUIET) for note in _notes(topology) for line in _wrapped(note, wide, _SMALL)]
    legend = cells.legend(unit, quantity)
    page = _framed(_column([body, *([legend] if legend else []), *below], 3), "", pad=4, stroke="none", fill="none")
    width, height = math.ceil(page.width), math.ceil(page.height)
    by = min(_UNIT, room[0] / width, room[1] / height)
    sheet = _Sheet(Drawing(width * by, height * by), by)
    for draw, x, y in page.marks:
        draw(sheet, x, y)
    return sheet.drawing


class _Cells:
    """The cores, and the colours of their values."""

    def __init__(
        self,
        topology: Topology,
        values: Mapping[int, float] | None,
        level: Literal["core", "ccd"],
        scale: Scale | None,
    ) -> None:
        self.values = {cpu: value for cpu, value in (values or {}).items() if math.isfinite(value)}
        self.shown = values is not None
        self.level: Level = level
        self.by_part = {
            part: statistics.median(found)
            for part, cpus in topology.groups(self.level).items()
            if (found := [self.values[cpu] for cpu in cpus if cpu in self.values])
        }
        ends = scales.ends(list(self.by_part.values()))
        self.scale = scale or scales.of_nodes([ends] if ends else [])
        self.missing = self.shown and len(self.by_part) < len(topology.groups(self.level))
        entries = self.scale.index(list(self.by_part.values())).tolist()
        self.entries = dict(zip(self.by_part, entries, strict=True))

    def fill(self, cpu: Cpu) -> tuple[str, str]:
        """The colours of a core and of the text on it."""
        if not self.shown:
            return _WASH, _INK
        part = getattr(cpu, self.level)
        entry = self.entries.get(part, MISSING)
        if part is None and cpu.cpu in self.values:
            entry = int(self.scale.index([self.values[cpu.cpu]])[0])
        return _colours(self.scale.map, entry)

    def cell(self, cpus: Sequence[Cpu], dashed: bool = False) -> _Block:
        """A core: the number of its first thread; all of them, and its value, as a tooltip."""
        fill, ink = self.fill(cpus[0])
        threads = list_text(cpu.cpu for cpu in cpus)
        value = self.by_part.get(getattr(cpus[0], self.level))
        tip = f"CPU {threads}" + (f": {value:.4g}" if self.shown and value is not None else "")
        width, height = _CELL
        box = _rect(width, height, fill, _HAIR, 0.6, dashed, tip)
        number = min(cpu.cpu for cpu in cpus)
        label = _text(str(number), _NUMBER, ink, "middle")
        return _Block(width, height, (*box.marks, *label.at(width / 2, (height - label.height) / 2)))

    def part(self, cpus: Sequence[Cpu]) -> _Block:
        """A part as one cell with its value."""
        fill, ink = self.fill(cpus[0])
        value = self.by_part.get(getattr(cpus[0], self.level))
        width, height = _PART
        label = _text("" if value is None else f"{value:.3g}", _LABEL, ink, "middle")
        box = _rect(width, height, fill, _HAIR, 0.6, tip=f"CPU {list_text(cpu.cpu for cpu in cpus)}")
        return _Block(width, height, (*box.marks, *label.at(width / 2, (height - label.height) / 2)))

    def legend(self, unit: str, quantity: str) -> _Block | None:
        """The colours from low to high with round values."""
        if not self.by_part:
            return None
        width, height = 220.0, 9.0
        colours = Pixels(LEVELS, 1, bytes(range(LEVELS)), self.scale.map)
        bar = [*_image(colours, width, height).at(0, _LINE), *_rect(width, height, "none", _HAIR, 0.4).at(0, _LINE)]
        ticks: list[_Mark] = []
        for place, text in self.scale.ticks(5):
            x = min(max(place, 0.0), 1.0) * width
            ticks += _text(text, _SMALL, _INK, "middle").at(x, _LINE + height + 1)
        title = _text(" ".join(word for word in (quantity, f"({unit})" if unit else "") if word), _SMALL, _INK)
        marks = [*title.marks, *bar, *ticks]
        if self.missing:
            marks += _rect(height, height, _colours(self.scale.map, MISSING)[0], _HAIR, 0.6).at(width + 20, _LINE)
            marks += _text("not measured", _SMALL, _INK).at(width + 33, _LINE - 1)
        return _framed(_Block(_LEGEND_WIDTH, 2 * _LINE + height, tuple(marks)), "", pad=4, stroke="none", fill="none")


@cache
def _colours(palette: scales.Map, entry: int) -> tuple[str, str]:
    """The colours of a palette entry and of the text on it."""
    rgb = scales.palette(palette)[entry]
    return "#{:02x}{:02x}{:02x}".format(*rgb), _ink_on(rgb)


def _ink_on(rgb: tuple[int, int, int]) -> str:
    """White or dark text, whichever has more contrast by WCAG 2.1 (relative luminance)."""
    linear = [c / 3294.6 if c <= 10 else ((c / 255 + 0.055) / 1.055) ** 2.4 for c in rgb]
    luminance = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
    return "#ffffff" if 1.05 / (luminance + 0.05) > (luminance + 0.05) / 0.067 else _INK


def _notes(topology: Topology) -> list[str]:
    """What the plan does not know."""
    told = {
        "cores-fused-off": "{}; dashed cells stand for the others",
        "ccds-fused-off": "{}",
        "quadrant-unknown": "{}",
        "unknown-part": "{}",
    }
    notes = [told[w.id].format(w.text) for w in topology.warnings if w.id in told]
    if (topology.machine.vendor or "") not in _AMD:
        notes.append("cores are in order of their numbers on the chip; their places on it are unknown")
    return notes


def _socket(topology: Topology, cpus: list[Cpu], cells: _Cells) -> _Block:
    generation = processors.generation_of(topology.machine)
    known = generation is not None and all(cpu.ccd is not None for cpu in cpus)
    if known and generation is not None and generation.has_io_die:
        return _around_io_die(topology, cpus, cells, generation)
    if known and generation is not None and generation.quadrant == "ccd":
        dies = [
            _ccd(topology, members, cells, generation, generation.channels // 4 if generation.channels else 0)
            for _, members in _by(cpus, "ccd")
        ]
        return _grid(dies, 2, 8)
    return _grouped(topology, cpus, cells)


def _around_io_die(topology: Topology, cpus: list[Cpu], cells: _Cells, generation: Generation) -> _Block:
    """Quadrants of the I/O die in the middle, two on each side, with their CCDs beside them."""
    placed = all(cpu.quadrant is not None for cpu in cpus)
    if placed:
        groups = [(number, members) for number, members in _by(cpus, "quadrant")]
        order = generation.quadrant_order
        groups.sort(key=lambda g: (g[1][0].half or 0, order.index(g[0] % 4)))
        quadrants = [[c for _, c in _by(members, "ccd")] for _, members in groups]
    else:
        ccds = [members for _, members in _by(cpus, "ccd")]
        per_side = math.ceil(len(ccds) / 4)
        groups, quadrants = [], [ccds[i * per_side : (i + 1) * per_side] for i in range(4)]
    drawn = [
        _grid([_ccd(topology, c, cells, generation, 0, dashed=not placed) for c in ccds], 1 if len(ccds) < 4 else 2, 4)
        for ccds in quadrants
    ]
    drawn += [_Block(0, 0)] * (4 - len(drawn))
    heights = [max(drawn[row].height, drawn[row + 2].height, 60.0) for row in (0, 1)]
    left, right = (max(drawn[a].width, drawn[b].width) for a, b in ((0, 1), (2, 3)))
    channels = (generation.channels or 0) // 4
    marks: list[_Mark] = []
    top = 0.0
    for row in (0, 1):
        for column in (0, 1):
            at = column * 2 + row
            block = drawn[at]
            x = left - block.width if column == 0 else left + _DIE_WIDTH * 2 + 2 * _PAD
            marks += block.at(x, top + (heights[row] - block.height) / 2)
            if at < len(groups):
                cell = _quadrant(topology, groups[at][0], groups[at][1], heights[row], channels, row)
                marks += cell.at(left + _PAD + column * _DIE_WIDTH, top)
        top += heights[row] + 4
    if not groups:
        marks += _unplaced_die(sum(heights) + 4, generation).at(left + _PAD, 0)
    return _Block(left + right + 2 * _DIE_WIDTH + 2 * _PAD, top - 4, tuple(marks))


def _quadrant(topology: Topology, number: int, cpus: list[Cpu], height: float, channels: int, row: int) -> _Block:
    """A quarter of the I/O die with its memory channels at the outer edge."""
    lines = [f"quadrant {number}", "of the I/O die"]
    nodes = {cpu.numa for cpu in cpus}
    if len(nodes) == 1 and None not in nodes and topology.machine.nps not in (0, 1):
        lines.append(f"NUMA node {nodes.pop()}")
    if cpus[0].half is not None:
        lines.append(f"half {cpus[0].half}")
    marks = list(_rect(_DIE_WIDTH, height, "#e9edf1", _INK, 0.8).marks)
    start = (height - _LINE * len(lines)) / 2
    for i, line in enumerate(lines):
        marks += _text(line, _LABEL, _QUIET if i == 1 else _INK, "middle").at(_DIE_WIDTH / 2, start + i * _LINE)
    if channels:
        strip = _channels(channels, _DIE_WIDTH)
        marks += strip.at(0, 4 if row == 0 else height - strip.height - 4)
    return _Block(_DIE_WIDTH, height, tuple(marks))


def _channels(count: int, width: float) -> _Block:
    """Memory channels of a quadrant or die: a bar each, and how many, in the middle of `width`."""
    marks: list[_Mark] = []
    for i in range(count):
        marks += _rect(16, 4, "#b9c3cc", _INK, 0.4).at((width - count * 19 + 3) / 2 + i * 19, 0)
    marks += _text(f"{count} memory channels", 6.5, _QUIET, "middle").at(width / 2, 5)
    return _Block(width, 14, tuple(marks))


def _unplaced_die(height: float, generation: Generation) -> _Block:
    width = 2 * _DIE_WIDTH
    lines = ["I/O die", "quadrants unknown", "places of CCDs unknown"]
    if generation.channels:
        lines.append(f"{generation.channels} memory channels")
    marks = list(_rect(width, height, "#e9edf1", _INK, 0.8).marks)
    for i, line in enumerate(lines):
        marks += _text(line, _LABEL, _INK, "middle").at(width / 2, height / 2 - _LINE * len(lines) / 2 + i * _LINE)
    return _Block(width, height, tuple(marks))


def _ccd(
    topology: Topology, cpus: list[Cpu], cells: _Cells, generation: Generation, channels: int, dashed: bool = False
) -> _Block:
    """A CCD with its CCXs and cores; cells for cores that are fused off, whose places are unknown."""
    if cells.level == "ccd":
        return _framed(cells.part(cpus), f"CCD {cpus[0].ccd}", dashed=dashed)
    full = generation.cores_per_ccx or 0
    fused = topology.machine.core_positions is False
    blocks = []
    for _, members in _by(cpus, "ccx"):
        cores = [cells.cell(core) for _, core in _by(members, "core")]
        cores += [_fused_cell()] * (full - len(cores) if fused else 0)
        blocks.append((members[0].ccx, _grid(cores, 2 if full <= 4 else 4, _GAP)))
    number = cpus[0].ccd
    if len(blocks) == 1 and (generation.ccx_per_ccd or 1) == 1:
        inner = blocks[0][1]
    else:
        inner = _grid([_framed(b, f"CCX {n}", pad=3, stroke=_HAIR) for n, b in blocks], 2 if full <= 4 else 1, 3)
    label = f"CCD {number}"
    if channels:
        label = f"die {number}"
        if cpus[0].quadrant is not None:
            label += f" = quadrant {cpus[0].quadrant}"
        inner = _column([inner, _channels(channels, inner.width)], 4)
    return _framed(inner, label, dashed=dashed)


def _fused_cell() -> _Block:
    width, height = _CELL
    label = _text("?", _NUMBER, _HAIR, "middle")
    return _Block(
        width,
        height,
        (*_rect(width, height, "none", _HAIR, 0.6, True).marks, *label.at(width / 2, (height - label.height) / 2)),
    )


def _grouped(topology: Topology, cpus: list[Cpu], cells: _Cells) -> _Block:
    """A plain plan: the groups that the socket has, nested, and cores in rows."""
    levels: list[Level] = ["numa", "ccd", "ccx", "cluster"]
    names: dict[Level, str] = {"numa": "NUMA node", "ccd": "CCD", "ccx": "CCX", "cluster": "cluster"}
    if (topology.machine.vendor or "") not in _AMD:
        names |= {"ccx": "L3", "ccd": "die"}
    useful = [
        level for level in levels if len(_by(cpus, level)) > 1 and all(getattr(c, level) is not None for c in cpus)
    ]
    useful.sort(key=lambda level: len(_by(cpus, level)))
    distinct: list[Level] = []
    seen: dict[frozenset[frozenset[int]], list[Level]] = {}
    for level in useful:
        groups = frozenset(frozenset(c.cpu for c in members) for _, members in _by(cpus, level))
        if groups not in seen:
            distinct.append(level)
        seen.setdefault(groups, []).append(level)

    def nested(members: list[Cpu], rest: list[Level]) -> _Block:
        if not rest:
            cores = [cells.cell(core) for _, core in _by(members, "core")]
            return _grid(cores, _columns(len(cores), *_CELL), _GAP)
        same = next(levels for levels in seen.values() if rest[0] in levels)
        blocks = []
        for _, group in _by(members, rest[0]):
            label = " = ".join(f"{names[level]} {getattr(group[0], level)}" for level in same)
            blocks.append(_framed(nested(group, rest[1:]), label, pad=4, stroke=_HAIR))
        return _grid(blocks, _columns(len(blocks), blocks[0].width, blocks[0].height), 5)

    return nested(cpus, distinct)


def _columns(count: int, width: float, height: float) -> int:
    """Columns that make a grid about 1.6 times as wide as high, with few places left empty."""

    def ugliness(columns: int) -> float:
        rows = math.ceil(count / columns)
        return abs(math.log(columns * width / (rows * height) / 1.6)) + 3 * (rows * columns - count) / count

    return min(range(1, count + 1), key=ugliness)


def _by(cpus: Iterable[Cpu], level: Level) -> list[tuple[int, list[Cpu]]]:
    """CPUs by their part of a level; those whose part is unknown each stand alone among cores, and together else."""
    groups: dict[int, list[Cpu]] = {}
    for cpu in cpus:
        part = getattr(cpu, level)
        if part is None:
            part = -1 - cpu.cpu if level == "core" else -1
        groups.setdefault(part, []).append(cpu)
    return sorted(groups.items())


def _rect(
    width: float, height: float, fill: str, stroke: str, line: float = 0.0, dashed: bool = False, tip: str = ""
) -> _Block:
    def draw(sheet: _Sheet, x: float, y: float) -> None:
        by = sheet.by
        dash = f"{3 * by:.2g} {2 * by:.2g}" if dashed else ""
        sheet.drawing.rect(
            x * by, y * by, width * by, height * by, fill=fill, stroke=stroke, line=line * by, dash=dash, tip=tip
        )  # fmt: skip

    return _Block(width, height, ((draw, 0.0, 0.0),))


def _image(pixels: Pixels, width: float, height: float) -> _Block:
    def draw(sheet: _Sheet, x: float, y: float) -> None:
        by = sheet.by
        sheet.drawing.image(pixels, x * by, y * by, width * by, height * by)

    return _Block(width, height, ((draw, 0.0, 0.0),))


def _text(text: str, size: float, fill: str, anchor: str = "start") -> _Block:
    """A line of text; its width is an estimate for DejaVu Sans, 0.62 of the size a letter."""

    def draw(sheet: _Sheet, x: float, y: float) -> None:
        by = sheet.by
        sheet.drawing.text(x * by, (y + 0.64 * size) * by, text, size=size * by, anchor=anchor, fill=fill)

    return _Block(0.62 * size * len(text), size * 1.2, ((draw, 0.0, 0.0),))


def _framed(
    block: _Block, label: str, pad: float = _PAD, stroke: str = _INK, fill: str = "#ffffff", dashed: bool = False
) -> _Block:
    """A block in a box, with a label above it inside."""
    head = _LINE if label else 0.0
    title = _text(label, _LABEL, _INK) if label else _Block(0, 0)
    width = max(block.width, title.width) + 2 * pad
    height = block.height + 2 * pad + head
    box = _rect(width, height, fill, stroke, 0.8, dashed).marks if stroke != "none" else ()
    return _Block(width, height, (*box, *title.at(pad, pad - 2), *block.at((width - block.width) / 2, pad + head)))


def _column(blocks: Sequence[_Block], gap: float) -> _Block:
    return _grid(blocks, 1, gap)


def _grid(blocks: Sequence[_Block], columns: int, gap: float) -> _Block:
    """Blocks row by row, each column as wide and each row as high as its largest."""
    if not blocks:
        return _Block(0, 0)
    rows = [blocks[i : i + columns] for i in range(0, len(blocks), columns)]
    widths = [max(row[c].width for row in rows if c < len(row)) for c in range(len(rows[0]))]
    marks: list[_Mark] = []
    y = 0.0
    for row in rows:
        x = 0.0
        for block, width in zip(row, widths, strict=False):
            marks += block.at(x, y)
            x += width + gap
        y += max(block.height for block in row) + gap
    return _Block(sum(widths) + gap * (len(widths) - 1), y - gap, tuple(marks))


def _wrapped(text: str, width: float, size: float) -> list[str]:
    """`text` in lines that fit `width`."""
    limit = max(20, int(width / (0.62 * size)))
    lines, line = [], ""
    for word in text.split():
        if line and len(line) + 1 + len(word) > limit:
            lines.append(line)
            line = word
        else:
            line = f"{line} {word}".strip()
    return [*lines, line] if line else lines
