"""What an importer hands over: one tool's output with everything that it says, and a list of what it does not say."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from nodeprint.errors import NodeprintError

Matrix = npt.NDArray[np.float64]


@dataclass(frozen=True)
class CoreMatrix:
    """Core-to-core latencies in ns, (n, n) for the CPUs `cpus`; both triangles filled, NaN on the diagonal and where
    nothing was measured.

    `home` is the policy of the contended line's NUMA home as in a record's header, None where it was not controlled or
    is not known. `kernel` is what measured it, or what of ours measures the same; `facts` are further members of its
    record's header, such as the size of a message.
    """

    cpus: tuple[int, ...]
    latency_ns: Matrix
    operation: str
    quantity: str = "hop"
    home: str | None = None
    kernel: str = "coherence"
    facts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class ImportedTable:
    """What is not a latency between cores: one value in `unit` for each cell, whose coordinates are in order of `dims`.

    `name` is the operation of the records that are made of it, `value` the name of the value there.
    """

    name: str
    quantity: str
    unit: str
    value: str
    dims: tuple[str, ...]
    cells: tuple[tuple[tuple[int | str, ...], float], ...]


@dataclass(frozen=True)
class ToolOutput:
    """One file. `unknown` names what the format does not contain, `notes` what was left out of the file and why;
    `differing` says in words what differs between repetitions of which the values are medians, empty where they agree.
    """

    source: Path
    format: str
    cores: CoreMatrix | None = None
    tables: tuple[ImportedTable, ...] = ()
    unknown: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    differing: str = ""

    def core_matrix(self) -> CoreMatrix:
        """The core-to-core matrix. Raises NodeprintError where the file holds tables of nodes only."""
        if self.cores is None:
            raise NodeprintError(
                "tables of NUMA nodes, no latencies between cores",
                where=self.source,
                advice="give the output of a core-to-core tool",
            )
        return self.cores
