"""What `nodeprint structure --json` prints, and its schema."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from nodeprint.report.quadrant_words import QuadrantDifference
from nodeprint.settings.keys import schema_of
from nodeprint.structure import Structure


@dataclass(frozen=True, slots=True)
class PrintedStructure(Structure):
    """What `nodeprint structure --json` prints."""

    simulated: bool
    quadrants: tuple[QuadrantDifference, ...]


def schema() -> dict[str, Any]:
    """The JSON schema of `nodeprint structure --json`."""
    return schema_of(PrintedStructure, "nodeprint structure --json", whole=True)
