"""What was measured on a node, as its page shows it: medians by class of pairs and by kind of cell."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping

import msgspec

from nodeprint.data.places.layout import ALL_PAIRS, CLASSES

#: The share of a measurement's CPU time, or of its values, from which on its figures are not those of a quiet machine:
#: what others take below it, medians do not show (nodeprint.machine.other_load has the same). On a quiet virtual
#: machine kernels lost 0 to 1.4 %, and up to 6.4 % where its hypervisor stole time (docs/validation.md).
LOST = 0.05
_OF_SOCKET = re.compile(r"(, )?socket \d+$")


class ClassFigure(msgspec.Struct, frozen=True):
    """A class of pairs on one node: the median in ns over `runs` with their 95 % interval and standard deviation (NaN
    of one). Both are of the majority of runs that agrees, without those `left_out`; where there is none all of them
    are, and the interval is from the lowest to the highest run. `groups` are the medians by socket, by found level or
    by half where the median of all is that of a mixture: few pairs of a run are within 10 %.
    `disturbed` is the largest share, in a run of its measurement, of CPU time that others took or of values that the
    kernel flagged: from LOST on it is marked wherever it is shown."""

    name: str
    measurement: str
    home: int
    median_ns: float
    ci_low_ns: float
    ci_high_ns: float
    pairs: int
    runs: int
    run_sd_ns: float
    groups: Mapping[str, float] = {}
    left_out: int = 0
    disturbed: float = 0.0

    @property
    def unit(self) -> str:
        """The unit of the median."""
        return "ns"

    @property
    def median(self) -> float:
        """The median under the name that it has in `CellFigure`, as are its ends."""
        return self.median_ns

    @property
    def ci_low(self) -> float:
        """The lower end of the interval."""
        return self.ci_low_ns

    @property
    def ci_high(self) -> float:
        """The upper end of the interval."""
        return self.ci_high_ns

    @property
    def runs_disagree(self) -> bool:
        """Whether there are two runs, which disagree: their median is the value of neither."""
        return self.runs == self.left_out == 2

    @property
    def is_marked(self) -> bool:
        """Whether it is shown with an asterisk."""
        return self.disturbed >= LOST

    @property
    def medians(self) -> Mapping[str, float]:
        """The medians that say something, by name: of a mixture those of its groups (`same socket, socket 1`), from
        near to far, a group's sockets together."""
        nearest: dict[str, float] = {}
        for group, ns in self.groups.items():
            level = _OF_SOCKET.sub("", group)
            nearest[level] = min(ns, nearest.get(level, math.inf))
        ordered = sorted(self.groups, key=lambda group: (nearest[_OF_SOCKET.sub("", group)], group))
        prefix = f"{self.name}, " if self.name != CLASSES[ALL_PAIRS] else ""
        return {f"{prefix}{group}": self.groups[group] for group in ordered} or {self.name: self.median_ns}


class CellFigure(msgspec.Struct, frozen=True):
    """Cells of one kind on one node: the median over `runs` with their 95 % interval and standard deviation, both
    without the runs `left_out`, and `disturbed` as of `ClassFigure`, the median over the node's group (NaN without
    one), the worst cell, and the theoretical peak (0 unknown), all in `unit`."""

    measurement: str
    name: str
    unit: str
    median: float
    ci_low: float
    ci_high: float
    group: float
    worst: Mapping[str, int | str]
    worst_value: float
    cells: int
    runs: int
    run_sd: float
    left_out: int = 0
    disturbed: float = 0.0
    peak: float = 0.0

    @property
    def runs_disagree(self) -> bool:
        """Whether there are two runs, which disagree: their median is the value of neither."""
        return self.runs == self.left_out == 2

    @property
    def is_marked(self) -> bool:
        """Whether it is shown with an asterisk."""
        return self.disturbed >= LOST

    @property
    def achieved(self) -> float:
        """The median as a share of the theoretical peak; NaN where that is unknown."""
        return self.median / self.peak if self.peak else float("nan")
