"""The result of every reader: the values of one output with their axes, and a list of facts that it lacks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from nodeprint.errors import NodeprintError
from nodeprint.machine.topology.model import Topology

Matrix = npt.NDArray[np.float64]
#: One axis of a value: by name what it is at (`{"gpu": 3}`), empty where the value is of the whole node.
Axis = Mapping[str, int | str]


class ToolEvidence(IntEnum):
    """The evidence that a text is a tool's output, the surest last.

    NUMBERS may be of any tool, LAYOUT is that of this tool, and NAME is a line that no other tool prints.
    """

    NONE = 0
    NUMBERS = 1
    LAYOUT = 2
    NAME = 3


class ToolValue(msgspec.Struct, frozen=True, kw_only=True):
    """One `value` of a `metric`, in `unit` (empty where the text has none), with its axes.

    A reader fills in nothing: an axis that the text does not state is empty. The file's name or an option then states
    the `node`, or the file is rejected. `job` and `run` keep the names of the text. Values of one node, metric and
    place without a run are runs in the order of the text. Repetitions inside a process are no runs: their reader gives
    their median.

    `copy` is one of a node's equal components or processes (`{"gpu": 3}`). `link` has the two ends of a path
    (`{"gpu": 1, "peer gpu": 0}`). `point` has parameters of the tool that vary (`{"message bytes": 8}`), and
    `arguments` those that are constant in its output and may differ in another (`{"N": 20000}`).

    `time` is in ISO 8601, and UTC where it names no zone. `quantity` is that of a record (load, rate, transfer), empty
    if nodeprint has no such record. `settings` are arguments of the tool (`{"threads": "64"}`), which nothing judges.
    `line` counts from 1, for messages.
    """

    metric: str
    value: float
    unit: str = ""
    quantity: str = ""
    node: str = ""
    job: str = ""
    run: str = ""
    copy: Axis = {}
    link: Axis = {}
    point: Axis = {}
    arguments: Axis = {}
    time: str = ""
    line: int = 0
    settings: Mapping[str, str] = {}

    @property
    def place(self) -> dict[str, int | str]:
        """All axes that distinguish values of a metric within a run."""
        return {**self.copy, **self.link, **self.point}


@dataclass(frozen=True)
class CoreMatrix:
    """Times between CPUs (`cpus`) in `ns` (n, n), of a `quantity`: rows and columns are the link axis.

    Both triangles are filled; NaN is on the diagonal and where nothing was measured. `home` is the policy of the
    contended line's NUMA home as in a record's header, None where it was not controlled or is not known. `kernel` is
    the benchmark kernel that measures the same. `facts` are further members of its record's header, such as the size
    of a message. `of_runs` are the matrices of its runs (run, n, n); the matrix is their median. `differing` is a
    sentence on runs or passes that disagree, empty if they agree. `topology` are labels that came with the matrix.
    """

    cpus: tuple[int, ...]
    ns: Matrix
    operation: str
    quantity: str = "hop"
    home: str | None = None
    kernel: str = "coherence"
    facts: Mapping[str, Any] = field(default_factory=dict)
    of_runs: Matrix = field(default_factory=lambda: np.empty((0, 0, 0)))
    differing: str = ""
    simulated: bool = False
    topology: Topology | None = None

    @property
    def runs(self) -> Matrix:
        """The matrices of its runs (run, n, n): itself if it has none."""
        return self.of_runs if len(self.of_runs) else self.ns[None]

    @property
    def home_controlled(self) -> bool | None:
        """Whether the home policy treats all pairs alike: a single node for all does not, and None is not known."""
        return None if self.home is None else self.home in ("each", "first", "second", "sockets")


@dataclass(frozen=True)
class ToolOutput:
    """The output of a `tool` in one file: a matrix of `cores`, or `values`.

    `unknown` names the facts that the format lacks, `notes` the content that was left out, with the reason.
    """

    source: Path
    tool: str
    cores: CoreMatrix | None = None
    values: Sequence[ToolValue] = ()
    unknown: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def core_matrix(self) -> CoreMatrix:
        """The core-to-core matrix. Raises NodeprintError where the file holds tables of nodes only."""
        if self.cores is None:
            raise NodeprintError(
                "tables of NUMA nodes, no latencies between cores",
                where=self.source,
                advice="give the output of a core-to-core tool",
            )
        return self.cores
