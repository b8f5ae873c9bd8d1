"""The types that `nodeprint structure --json` prints."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

from nodeprint.settings.keys import schema_of
from nodeprint.structure import quadrants
from nodeprint.structure.found import Structure
from nodeprint.structure.quadrants import LevelDifference, QuadrantBlocks, SocketDie


@dataclass(frozen=True)
class QuadrantDifference:
    """A difference between levels of a socket, for other programs.

    `difference_ns` has a simultaneous interval (None for a single run). Quadrants are partners, near or far.
    """

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


def quadrant_table(blocks: QuadrantBlocks) -> list[QuadrantDifference]:
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


@dataclass(frozen=True, slots=True)
class PrintedStructure(Structure):
    """The output of `nodeprint structure --json`."""

    simulated: bool
    quadrants: tuple[QuadrantDifference, ...]


def schema() -> dict[str, Any]:
    """The JSON schema of `nodeprint structure --json`."""
    return schema_of(PrintedStructure, "nodeprint structure --json", whole=True)
