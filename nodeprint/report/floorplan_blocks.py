"""Blocks of a floor plan: boxes of a size with what is drawn in them, beside and inside of each other.

Blocks are those of a machine; what a node's values decide is asked for when a block is drawn.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Literal

import msgspec

from nodeprint.report import scale as scales
from nodeprint.report.drawing import Drawing, Pixels
from nodeprint.report.scale import MISSING, Scale
from nodeprint.topology.model import Cpu, Level, Topology

INK, QUIET, HAIR, WASH = "#1c2329", "#5b6570", "#9aa4ad", "#f3f5f7"
PAD, LINE, LABEL = 5.0, 11.0, 8.0


class Values:
    """Values of a machine's cores or CCDs (`level`), and their colours. `values` are by OS CPU number; None: plain."""

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

    def of(self, cpu: Cpu) -> float | None:
        """The value of the part that a CPU is in."""
        return self.by_part.get(getattr(cpu, self.level))

    def fill(self, cpu: Cpu) -> tuple[str, str]:
        """The colours of a core and of the text on it."""
        if not self.shown:
            return WASH, INK
        part = getattr(cpu, self.level)
        entry = self.entries.get(part, MISSING)
        if part is None and cpu.cpu in self.values:
            entry = int(self.scale.index([self.values[cpu.cpu]])[0])
        return colours(self.scale.map, entry)


@cache
def colours(palette: scales.Map, entry: int) -> tuple[str, str]:
    """The colours of a palette entry and of the text on it."""
    rgb = scales.palette(palette)[entry]
    return "#{:02x}{:02x}{:02x}".format(*rgb), _ink_on(rgb)


def _ink_on(rgb: tuple[int, int, int]) -> str:
    """White or dark text, whichever has more contrast by WCAG 2.1 (relative luminance)."""
    linear = [c / 3294.6 if c <= 10 else ((c / 255 + 0.055) / 1.055) ** 2.4 for c in rgb]
    luminance = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
    return "#ffffff" if 1.05 / (luminance + 0.05) > (luminance + 0.05) / 0.067 else INK


class Sheet(msgspec.Struct, frozen=True):
    """A drawing, how many mm of it a unit of the plan takes, and the values that it shows."""

    drawing: Drawing
    by: float
    values: Values

    def rect(
        self, x: float, y: float, width: float, height: float, fill: str, stroke: str, line: float,
        dashed: bool = False, tip: str = "",
    ) -> None:  # fmt: skip
        """A rectangle from its top left corner."""
        by = self.by
        dash = f"{3 * by:.2g} {2 * by:.2g}" if dashed else ""
        self.drawing.rect(
            x * by, y * by, width * by, height * by, fill=fill, stroke=stroke, line=line * by, dash=dash, tip=tip
        )

    def text(self, x: float, y: float, text: str, size: float, fill: str, anchor: str) -> None:
        """A line of text below y."""
        by = self.by
        self.drawing.text(x * by, (y + 0.64 * size) * by, text, size=size * by, anchor=anchor, fill=fill)


#: A mark that is still to be placed: what draws it at x and y, and where it is now.
Mark = tuple[Callable[[Sheet, float, float], None], float, float]


class Block(msgspec.Struct, frozen=True):
    """A drawing of a size, from its top left corner."""

    width: float
    height: float
    marks: tuple[Mark, ...] = ()

    def at(self, dx: float, dy: float) -> tuple[Mark, ...]:
        """The drawing's elements, moved."""
        return tuple([(draw, x + dx, y + dy) for draw, x, y in self.marks])


def rect(width: float, height: float, fill: str, stroke: str, line: float = 0.0, dashed: bool = False) -> Block:
    """A rectangle."""

    def draw(sheet: Sheet, x: float, y: float) -> None:
        sheet.rect(x, y, width, height, fill, stroke, line, dashed)

    return Block(width, height, ((draw, 0.0, 0.0),))


def image(pixels: Pixels, width: float, height: float) -> Block:
    """Pixels."""

    def draw(sheet: Sheet, x: float, y: float) -> None:
        by = sheet.by
        sheet.drawing.image(pixels, x * by, y * by, width * by, height * by)

    return Block(width, height, ((draw, 0.0, 0.0),))


def words(text: str, size: float, fill: str, anchor: str = "start") -> Block:
    """A line of text; its width is an estimate for DejaVu Sans, 0.62 of the size a letter."""

    def draw(sheet: Sheet, x: float, y: float) -> None:
        sheet.text(x, y, text, size, fill, anchor)

    return Block(0.62 * size * len(text), size * 1.2, ((draw, 0.0, 0.0),))


def framed(
    block: Block, label: str, pad: float = PAD, stroke: str = INK, fill: str = "#ffffff", dashed: bool = False
) -> Block:
    """A block in a box, with a label above it inside."""
    head = LINE if label else 0.0
    title = words(label, LABEL, INK) if label else Block(0, 0)
    width = max(block.width, title.width) + 2 * pad
    height = block.height + 2 * pad + head
    box = rect(width, height, fill, stroke, 0.8, dashed).marks if stroke != "none" else ()
    return Block(width, height, (*box, *title.at(pad, pad - 2), *block.at((width - block.width) / 2, pad + head)))


def stacked(blocks: Sequence[Block], gap: float) -> Block:
    """Blocks below each other."""
    return grid(blocks, 1, gap)


def grid(blocks: Sequence[Block], columns: int, gap: float) -> Block:
    """Blocks row by row, each column as wide and each row as high as its largest."""
    if not blocks:
        return Block(0, 0)
    rows = [blocks[i : i + columns] for i in range(0, len(blocks), columns)]
    widths = [max(row[c].width for row in rows if c < len(row)) for c in range(len(rows[0]))]
    marks: list[Mark] = []
    y = 0.0
    for row in rows:
        x = 0.0
        for block, width in zip(row, widths, strict=False):
            marks += block.at(x, y)
            x += width + gap
        y += max(block.height for block in row) + gap
    return Block(sum(widths) + gap * (len(widths) - 1), y - gap, tuple(marks))


def wrapped(text: str, width: float, size: float) -> list[str]:
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
