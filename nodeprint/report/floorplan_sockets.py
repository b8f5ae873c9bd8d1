"""Where the dies and cores of a machine's sockets are on its floor plan, as far as that is known."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import lru_cache

from nodeprint.report.floorplan_blocks import (
    HAIR,
    INK,
    LABEL,
    LINE,
    PAD,
    QUIET,
    Block,
    Mark,
    Sheet,
    framed,
    grid,
    rect,
    stacked,
    words,
)
from nodeprint.topology import processors
from nodeprint.topology.facts import list_text
from nodeprint.topology.model import Cpu, Level, Topology
from nodeprint.topology.processors import Generation

_CELL, _PART = (25.0, 16.0), (52.0, 26.0)
_GAP, _NUMBER, _DIE_WIDTH = 2.0, 7.5, 92.0
#: A page is so wide where a unit is a point; what is wider is shrunk, and its text with it.
_PAGE = 510.0
AMD = ("AuthenticAMD", "HygonGenuine")


@lru_cache(maxsize=16)
def sockets(topology: Topology, level: Level, socket: int | None) -> Block:
    """All sockets, or `socket`, with a cell for each part of `level` (core or ccd)."""
    by_socket: dict[int | None, list[Cpu]] = {}
    for cpu in topology.cpus:
        if socket is None or cpu.socket == socket:
            by_socket.setdefault(cpu.socket, []).append(cpu)
    plans = [
        framed(_socket(topology, cpus, level), f"socket {number}" if number is not None else "socket unknown")
        for number, cpus in sorted(by_socket.items(), key=lambda item: (item[0] is None, item[0]))
    ]
    return grid(plans, 2 if 2 * max((plan.width for plan in plans), default=0) <= _PAGE else 1, 8)


def _core(cpus: Sequence[Cpu]) -> Block:
    """A core: the number of its first thread; all of them, and its value, as a tooltip."""
    tip, number = f"CPU {list_text(cpu.cpu for cpu in cpus)}", str(min(cpu.cpu for cpu in cpus))
    width, height = _CELL

    def draw(sheet: Sheet, x: float, y: float) -> None:
        fill, ink = sheet.values.fill(cpus[0])
        value = sheet.values.of(cpus[0])
        told = f"{tip}: {value:.4g}" if value is not None else tip
        sheet.rect(x, y, width, height, fill, HAIR, 0.6, tip=told)
        sheet.text(x + width / 2, y + height / 2 - 0.6 * _NUMBER, number, _NUMBER, ink, "middle")

    return Block(width, height, ((draw, 0.0, 0.0),))


def _part(cpus: Sequence[Cpu]) -> Block:
    """A part as one cell with its value."""
    tip = f"CPU {list_text(cpu.cpu for cpu in cpus)}"
    width, height = _PART

    def draw(sheet: Sheet, x: float, y: float) -> None:
        fill, ink = sheet.values.fill(cpus[0])
        value = sheet.values.of(cpus[0])
        sheet.rect(x, y, width, height, fill, HAIR, 0.6, tip=tip)
        written = "" if value is None else f"{value:.3g}"
        sheet.text(x + width / 2, y + height / 2 - 0.6 * LABEL, written, LABEL, ink, "middle")

    return Block(width, height, ((draw, 0.0, 0.0),))


def _socket(topology: Topology, cpus: list[Cpu], level: Level) -> Block:
    generation = processors.generation_of(topology.machine)
    known = generation is not None and all(cpu.ccd is not None for cpu in cpus)
    if known and generation is not None and generation.has_io_die:
        return _around_io_die(topology, cpus, level, generation)
    if known and generation is not None and generation.quadrant == "ccd":
        dies = [
            _ccd(topology, members, level, generation, generation.channels // 4 if generation.channels else 0)
            for _, members in _by(cpus, "ccd")
        ]
        return grid(dies, 2, 8)
    return _grouped(topology, cpus)


def _around_io_die(topology: Topology, cpus: list[Cpu], level: Level, generation: Generation) -> Block:
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
        grid([_ccd(topology, c, level, generation, 0, dashed=not placed) for c in ccds], 1 if len(ccds) < 4 else 2, 4)
        for ccds in quadrants
    ]
    drawn += [Block(0, 0)] * (4 - len(drawn))
    heights = [max(drawn[row].height, drawn[row + 2].height, 60.0) for row in (0, 1)]
    left, right = (max(drawn[a].width, drawn[b].width) for a, b in ((0, 1), (2, 3)))
    channels = (generation.channels or 0) // 4
    marks: list[Mark] = []
    top = 0.0
    for row in (0, 1):
        for column in (0, 1):
            at = column * 2 + row
            block = drawn[at]
            x = left - block.width if column == 0 else left + _DIE_WIDTH * 2 + 2 * PAD
            marks += block.at(x, top + (heights[row] - block.height) / 2)
            if at < len(groups):
                cell = _quadrant(topology, groups[at][0], groups[at][1], heights[row], channels, row)
                marks += cell.at(left + PAD + column * _DIE_WIDTH, top)
        top += heights[row] + 4
    if not groups:
        marks += _unplaced_die(sum(heights) + 4, generation).at(left + PAD, 0)
    return Block(left + right + 2 * _DIE_WIDTH + 2 * PAD, top - 4, tuple(marks))


def _quadrant(topology: Topology, number: int, cpus: list[Cpu], height: float, channels: int, row: int) -> Block:
    """A quarter of the I/O die with its memory channels at the outer edge."""
    lines = [f"quadrant {number}", "of the I/O die"]
    nodes = {cpu.numa for cpu in cpus}
    if len(nodes) == 1 and None not in nodes and topology.machine.nps not in (0, 1):
        lines.append(f"NUMA node {nodes.pop()}")
    if cpus[0].half is not None:
        lines.append(f"half {cpus[0].half}")
    marks = list(rect(_DIE_WIDTH, height, "#e9edf1", INK, 0.8).marks)
    start = (height - LINE * len(lines)) / 2
    for i, line in enumerate(lines):
        marks += words(line, LABEL, QUIET if i == 1 else INK, "middle").at(_DIE_WIDTH / 2, start + i * LINE)
    if channels:
        strip = _channels(channels, _DIE_WIDTH)
        marks += strip.at(0, 4 if row == 0 else height - strip.height - 4)
    return Block(_DIE_WIDTH, height, tuple(marks))


def _channels(count: int, width: float) -> Block:
    """Memory channels of a quadrant or die: a bar each, and how many, in the middle of `width`."""
    marks: list[Mark] = []
    for i in range(count):
        marks += rect(16, 4, "#b9c3cc", INK, 0.4).at((width - count * 19 + 3) / 2 + i * 19, 0)
    marks += words(f"{count} memory channels", 6.5, QUIET, "middle").at(width / 2, 5)
    return Block(width, 14, tuple(marks))


def _unplaced_die(height: float, generation: Generation) -> Block:
    width = 2 * _DIE_WIDTH
    lines = ["I/O die", "quadrants unknown", "places of CCDs unknown"]
    if generation.channels:
        lines.append(f"{generation.channels} memory channels")
    marks = list(rect(width, height, "#e9edf1", INK, 0.8).marks)
    for i, line in enumerate(lines):
        marks += words(line, LABEL, INK, "middle").at(width / 2, height / 2 - LINE * len(lines) / 2 + i * LINE)
    return Block(width, height, tuple(marks))


def _ccd(
    topology: Topology, cpus: list[Cpu], level: Level, generation: Generation, channels: int, dashed: bool = False
) -> Block:
    """A CCD with its CCXs and cores; cells for cores that are fused off, whose places are unknown."""
    if level == "ccd":
        return framed(_part(cpus), f"CCD {cpus[0].ccd}", dashed=dashed)
    full = generation.cores_per_ccx or 0
    fused = topology.machine.core_positions is False
    blocks = []
    for _, members in _by(cpus, "ccx"):
        cores = [_core(core) for _, core in _by(members, "core")]
        cores += [_fused_cell()] * (full - len(cores) if fused else 0)
        blocks.append((members[0].ccx, grid(cores, 2 if full <= 4 else 4, _GAP)))
    number = cpus[0].ccd
    if len(blocks) == 1 and (generation.ccx_per_ccd or 1) == 1:
        inner = blocks[0][1]
    else:
        inner = grid([framed(b, f"CCX {n}", pad=3, stroke=HAIR) for n, b in blocks], 2 if full <= 4 else 1, 3)
    label = f"CCD {number}"
    if channels:
        label = f"die {number}"
        if cpus[0].quadrant is not None:
            label += f" = quadrant {cpus[0].quadrant}"
        inner = stacked([inner, _channels(channels, inner.width)], 4)
    return framed(inner, label, dashed=dashed)


def _fused_cell() -> Block:
    width, height = _CELL
    label = words("?", _NUMBER, HAIR, "middle")
    return Block(
        width,
        height,
        (*rect(width, height, "none", HAIR, 0.6, True).marks, *label.at(width / 2, (height - label.height) / 2)),
    )


def _grouped(topology: Topology, cpus: list[Cpu]) -> Block:
    """A plain plan: the groups that the socket has, nested, and cores in rows."""
    levels: list[Level] = ["numa", "ccd", "ccx", "cluster"]
    names: dict[Level, str] = {"numa": "NUMA node", "ccd": "CCD", "ccx": "CCX", "cluster": "cluster"}
    if (topology.machine.vendor or "") not in AMD:
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

    def nested(members: list[Cpu], rest: list[Level]) -> Block:
        if not rest:
            cores = [_core(core) for _, core in _by(members, "core")]
            return grid(cores, _columns(len(cores), *_CELL), _GAP)
        same = next(levels for levels in seen.values() if rest[0] in levels)
        blocks = []
        for _, group in _by(members, rest[0]):
            label = " = ".join(f"{names[level]} {getattr(group[0], level)}" for level in same)
            blocks.append(framed(nested(group, rest[1:]), label, pad=4, stroke=HAIR))
        return grid(blocks, _columns(len(blocks), blocks[0].width, blocks[0].height), 5)

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
