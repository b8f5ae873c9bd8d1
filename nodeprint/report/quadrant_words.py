"""Quadrant by quadrant in words: what the I/O die does to hops and messages, said only where intervals allow it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np

from nodeprint.data.places.layout import QUADRANT
from nodeprint.machine.topology.level_names import level_name
from nodeprint.report import names, text
from nodeprint.report.figures.node_levels import NodeLevels
from nodeprint.settings.texts import say
from nodeprint.stats.robust import median_of_passes
from nodeprint.structure import quadrants
from nodeprint.structure.quadrants import LevelDifference, QuadrantBlocks, SocketDie


def blocks(levels: NodeLevels, node: str) -> QuadrantBlocks | None:
    """The blocks of a node at the first home of the measurement; None without two known quadrants."""
    quantity = levels.quantity
    number = list(quantity.newest_rows)[levels.rows[node]]
    rows = [row for of_job in quantity.rows[number].values() for row in of_job]
    values = median_of_passes(np.stack([np.asarray(quantity.values[row]) for row in rows]))
    at_first_home = np.asarray(values[:, : len(quantity.pairs)], dtype=np.float64)
    return quadrants.of_pairs(at_first_home, quantity.layout.slots, quantity.pairs)


def of_node(levels: NodeLevels, node: str) -> list[str]:
    """What is said of a node; nothing without two known quadrants."""
    crossing = blocks(levels, node)
    return sentences(crossing, level_name(levels.quantity.layout.levels[QUADRANT])) if crossing is not None else []


def sentences(blocks: QuadrantBlocks, component: str = "quadrant") -> list[str]:
    """Of each socket its own `component`, partner and others, the slowest way to other sockets, and whether these
    differ."""
    out = []
    for die in quadrants.dies(blocks):
        levels = ", ".join(
            f"{_levels_of(die, name, component)} {names.duration(level)}" for name, level in _levels(die).items()
        )
        if levels:
            sentences_of_die = " ".join((*_inside(die, component), *_paths(die, blocks)))
            out.append(f"{say('quadrants', 'levels', socket=die.socket, levels=levels)} {sentences_of_die}".strip())
        if die.outside is not None and die.across is not None:
            ends = (say("quadrants", "briefly", key, component=component) for key in ("others", "sockets"))
            out.append(" ".join((_outside(die, die.outside, component), *_compared(die.across, *ends))))
    if out and len(blocks.values) < 2:
        out.append(say("quadrants", "one_run"))
    return out


def _levels(die: SocketDie) -> dict[str, float]:
    """The levels of own, partner and others, as far as they are there."""
    ends = [(difference.first, difference.first_ns) for difference in die.inside]
    return dict([*ends, *((difference.second, difference.second_ns) for difference in die.inside)])


def _levels_of(die: SocketDie, name: str, component: str) -> str:
    pairs = ", ".join(f"{a} and {b}" for a, b in die.partners)
    key = "own" if name == "own" else "partner" if name == "partner" else "others" if die.partners else "all_others"
    return say("quadrants", "sets", key, component=component, pairs=pairs)


def _inside(die: SocketDie, component: str) -> Iterator[str]:
    for difference in die.inside:
        first, second = (
            say("quadrants", "briefly", name if die.partners or name == "own" else "all_others", component=component)
            for name in (difference.first, difference.second)
        )
        yield from _compared(difference, first, second)
    if die.faster_than_own and not die.partners:
        of = "every" if die.faster_than_own == die.quadrants else names.listed(map(str, die.faster_than_own))
        key = "faster_every" if of == "every" else "faster_some"
        yield say("quadrants", key, component=component, of=of, change=text.change(-1.0, ""))


def _compared(difference: LevelDifference, first: str, second: str) -> Iterator[str]:
    if math.isnan(difference.half_ns):
        return
    if not difference.is_apart:
        most = names.duration(difference.most_ns)
        yield text.sentence(say("quadrants", "alike", first=first, second=second, most=most))
        return
    words = say(
        "quadrants",
        "more" if difference.ns > 0 else "less",
        first=first,
        second=second,
        by=names.duration(abs(difference.ns)),
        interval=_interval(difference),
    )
    yield text.sentence(words)


def _paths(die: SocketDie, blocks: QuadrantBlocks) -> Iterator[str]:
    """The fastest and slowest paths where no partners say it."""
    for key, paths in (("least", die.fastest), ("most", die.slowest)):
        if paths and not die.partners:
            level = float(np.mean([blocks.medians[blocks.ends.index(path)] for path in paths]))
            ends = names.listed(f"{a} to {b}" for a, b in paths)
            yield say("quadrants", "paths", word=say("change", "time", key), ends=ends, level=names.duration(level))


def _outside(die: SocketDie, difference: LevelDifference, component: str) -> str:
    """The quadrants of a socket by their way to others."""
    near, far = (names.listed(map(str, of)) for of in (die.near, die.far))
    near_level, far_level = (names.duration(level) for level in (difference.first_ns, difference.second_ns))
    if difference.is_apart:
        several = len(die.far) > 1
        return say(
            "quadrants",
            "outside",
            socket=die.socket,
            near=near,
            far=far,
            near_level=near_level,
            far_level=far_level,
            by=names.duration(difference.ns),
            interval=_interval(difference),
            component=f"{component}s" if several else component,
            **text.changed(several=several),
        )
    level = _mean((difference.first_ns, len(die.near)), (difference.second_ns, len(die.far)))
    sentence = say("quadrants", "outside_level", socket=die.socket, level=names.duration(level))
    if math.isnan(difference.half_ns):
        return sentence
    return (
        f"{sentence} {say('quadrants', 'outside_alike', component=component, most=names.duration(difference.most_ns))}"
    )


def _mean(*levels: tuple[float, int]) -> float:
    return sum(level * count for level, count in levels) / sum(count for _, count in levels)


def _interval(difference: LevelDifference) -> str:
    """The interval of a difference's size, both ends in the unit of the larger."""
    low, high = abs(difference.ns) - difference.half_ns, difference.most_ns
    size, unit = names.shown_unit(high, "ns")
    return f"{low / size:.1f} to {high / size:.1f} {unit}"


@dataclass(frozen=True)
class QuadrantDifference:
    """A difference between levels of a socket, for other programs: `difference_ns` with its simultaneous interval (None
    where one run was measured), and which quadrants are partners, near or far."""

    socket: int
    where: Literal["inside", "outside"]
    first: str
    second: str
    first_ns: float
    second_ns: float
    difference_ns: float
    low_ns: float | None
    high_ns: float | None
    apart: bool
    partners: tuple[tuple[int, int], ...]
    near: tuple[int, ...]
    far: tuple[int, ...]


def table(blocks: QuadrantBlocks) -> list[QuadrantDifference]:
    """A row for each difference of a node's sockets."""
    rows: list[QuadrantDifference] = []
    for die in quadrants.dies(blocks):
        outside = [difference for difference in (die.across, die.outside) if difference is not None]
        rows += [_row(die, "inside", difference) for difference in die.inside]
        rows += [_row(die, "outside", difference) for difference in outside]
    return rows


def _row(die: SocketDie, where: Literal["inside", "outside"], difference: LevelDifference) -> QuadrantDifference:
    low, high = difference.ns - difference.half_ns, difference.ns + difference.half_ns
    return QuadrantDifference(
        die.socket,
        where,
        difference.first,
        difference.second,
        difference.first_ns,
        difference.second_ns,
        difference.ns,
        None if math.isnan(low) else low,
        None if math.isnan(high) else high,
        difference.is_apart,
        die.partners,
        die.near,
        die.far,
    )
