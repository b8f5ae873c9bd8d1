"""The results of a node for its report: medians by class of pairs and by kind of cell."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping

import msgspec

from nodeprint.data.places.layout import ALL_PAIRS, CLASSES

#: The share of a measurement's CPU time, or of its values, from which on its figures are not those of a quiet machine:
#: what others take below it, medians do not show (nodeprint.machine.other_load has the same). On a quiet virtual
#: machine kernels lost 0 to 1.4%, and up to 6.4% where its hypervisor stole time (docs/validation.md).
LOST = 0.05
_OF_SOCKET = re.compile(r"(, )?socket \d+$")


class _OverRuns:
    """The common properties of figures over runs."""

    __slots__ = ()
    runs: int
    left_out: int
    disturbed: float

    @property
    def runs_disagree(self) -> bool:
        """Whether there are two runs that disagree: their median is the value of neither."""
        return self.runs == self.left_out == 2

    @property
    def is_marked(self) -> bool:
        """Whether the value has an asterisk."""
        return self.disturbed >= LOST


class ClassFigure(_OverRuns, msgspec.Struct, frozen=True):
    """A class of pairs on one node: the median in ns over `runs` with its 95% interval and standard deviation (NaN for
    one run). Both describe the majority of runs that agrees, without the `left_out` runs. Without a majority, all runs
    count as left out, and the interval is from the lowest to the highest run. If the overall median is that of a
    mixture, `groups` has the medians by socket, by found level or by half. In a mixture, few pairs of a run are within
    10% of the median. `disturbed` is the largest share, over the runs of its measurement, of CPU time that others took
    or of values that the benchmark kernel flagged. From LOST on, the value has an asterisk."""

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
        """The median, under its name in `CellFigure`; the ends of the interval likewise."""
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
    def medians(self) -> Mapping[str, float]:
        """The meaningful medians by name. A mixture has those of its groups (`same socket, socket 1`), from near to
        far, a group's sockets together, unless its runs disagree."""
        if not self.groups or self.runs_disagree:
            return {self.name: self.median_ns}
        nearest: dict[str, float] = {}
        for group, ns in self.groups.items():
            level = _OF_SOCKET.sub("", group)
            nearest[level] = min(ns, nearest.get(level, math.inf))
        ordered = sorted(self.groups, key=lambda group: (nearest[_OF_SOCKET.sub("", group)], group))
        prefix = f"{self.name}, " if self.name != CLASSES[ALL_PAIRS] else ""
        return {f"{prefix}{group}": self.groups[group] for group in ordered}


class CellFigure(_OverRuns, msgspec.Struct, frozen=True):
    """Cells of one kind on one node, all in `unit`: the median over `runs` with its 95% interval and standard
    deviation. The latter two exclude the `left_out` runs. `disturbed` is as in `ClassFigure`. `group` is the median
    over the node's group (NaN without one), `worst` the worst cell, and `peak` the theoretical peak (0 if unknown)."""

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
    def achieved(self) -> float:
        """The median as a share of the theoretical peak; NaN if that is unknown."""
        return self.median / self.peak if self.peak else float("nan")
