"""The floor plan of a machine: each socket's dies and cores where they are known to be, coloured by a value.

A schematic: a CCD stands beside its quadrant of the I/O die, not where it sits on the package, and what has no known
place is drawn dashed and said to have none.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Literal

from nodeprint.report.drawing import Drawing, Pixels
from nodeprint.report.floorplan_blocks import (
    HAIR,
    INK,
    LINE,
    QUIET,
    Block,
    Mark,
    Sheet,
    Values,
    colours,
    framed,
    image,
    rect,
    stacked,
    words,
    wrapped,
)
from nodeprint.report.floorplan_sockets import AMD, sockets
from nodeprint.report.scale import LEVELS, MISSING, Scale
from nodeprint.topology.model import Topology

_SMALL, _LEGEND_WIDTH = 7.0, 320.0
#: A unit of the plan in mm: a point.
_UNIT = 0.353


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
    shown = Values(topology, values, level, scale)
    body = sockets(topology, level, socket)
    wide = max(body.width, _LEGEND_WIDTH)
    below = [words(line, _SMALL, QUIET) for note in _notes(topology) for line in wrapped(note, wide, _SMALL)]
    legend = _legend(shown, unit, quantity)
    page = framed(stacked([body, *([legend] if legend else []), *below], 3), "", pad=4, stroke="none", fill="none")
    width, height = math.ceil(page.width), math.ceil(page.height)
    by = min(_UNIT, room[0] / width, room[1] / height)
    sheet = Sheet(Drawing(width * by, height * by), by, shown)
    for draw, x, y in page.marks:
        draw(sheet, x, y)
    return sheet.drawing


def _legend(values: Values, unit: str, quantity: str) -> Block | None:
    """The colours from low to high with round values."""
    if not values.by_part:
        return None
    width, height = 220.0, 9.0
    every = Pixels(LEVELS, 1, bytes(range(LEVELS)), values.scale.map)
    bar = [*image(every, width, height).at(0, LINE), *rect(width, height, "none", HAIR, 0.4).at(0, LINE)]
    ticks: list[Mark] = []
    for place, number in values.scale.ticks(5):
        x = min(max(place, 0.0), 1.0) * width
        ticks += words(number, _SMALL, INK, "middle").at(x, LINE + height + 1)
    title = words(" ".join(word for word in (quantity, f"({unit})" if unit else "") if word), _SMALL, INK)
    marks = [*title.marks, *bar, *ticks]
    if values.missing:
        marks += rect(height, height, colours(values.scale.map, MISSING)[0], HAIR, 0.6).at(width + 20, LINE)
        marks += words("not measured", _SMALL, INK).at(width + 33, LINE - 1)
    return framed(Block(_LEGEND_WIDTH, 2 * LINE + height, tuple(marks)), "", pad=4, stroke="none", fill="none")


def _notes(topology: Topology) -> list[str]:
    """What the plan does not know."""
    told = {
        "cores-fused-off": "{}; dashed cells stand for the others",
        "ccds-fused-off": "{}",
        "quadrant-unknown": "{}",
        "unknown-part": "{}",
    }
    notes = [told[w.id].format(w.text) for w in topology.warnings if w.id in told]
    if (topology.machine.vendor or "") not in AMD:
        notes.append("cores are in order of their numbers on the chip; their places on it are unknown")
    return notes
