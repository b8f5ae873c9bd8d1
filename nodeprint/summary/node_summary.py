"""A node in a few numbers: its processor, medians, latency matrix and settings, without names of hosts or sites."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cached_property

import msgspec
import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

#: Matrices are kept in tenths of a nanosecond.
TENTH_NS = 0.1
#: Levels of places, from coarse to fine, as `CpuLabels` has them.
LEVELS = ("socket", "numa", "quadrant", "ccd", "ccx", "core")


class ProcessorFacts(msgspec.Struct, frozen=True):
    """What machine it is: the processor's name and generation, how many of everything; 0 or empty is unknown."""

    name: str
    generation: str = ""
    sockets: int = 0
    cores: int = 0
    cpus: int = 0
    numa_nodes: int = 0
    virtual: bool | None = None


class CpuLabels(msgspec.Struct, frozen=True):
    """The CPUs of a matrix in the order of its rows, and for each level the number of each CPU's component.

    A number is -1 if it is unknown. `provenance` has the source of a level's labels.
    """

    cpus: tuple[int, ...]
    parts: Mapping[str, tuple[int, ...]] = {}
    provenance: Mapping[str, str] = {}


class MedianValue(msgspec.Struct, frozen=True):
    """A median in `unit` with its 95% interval over `runs`, None if there are too few of them.

    `name` is the class of pairs, or the row of a measurement's table. `groups` are medians by socket if the median of
    all is a mixture. The interval is without the runs `left_out`, as of `nodeprint.judge.verdict.ClassFigure`.
    """

    measurement: str
    name: str
    unit: str
    median: float
    low: float | None = None
    high: float | None = None
    runs: int = 1
    home: int = -1
    groups: Mapping[str, float] = {}
    #: Absent where it is 0: a card of an earlier version keeps its hash.
    left_out: int | msgspec.UnsetType = msgspec.UNSET
    #: The share that was lost, as of `nodeprint.judge.verdict.ClassFigure`; absent where it is less than is marked.
    disturbed: float | msgspec.UnsetType = msgspec.UNSET


class PairMatrix(msgspec.Struct, frozen=True, dict=True):
    """A `quantity` between CPUs: the upper triangle row by row in tenths of a nanosecond, -1 where none was measured.

    `home` is the policy of the line's home, empty where it is unknown.
    """

    measurement: str
    operation: str
    quantity: str
    home: str
    places: CpuLabels
    tenths_ns: tuple[int, ...]

    @cached_property
    def ns(self) -> Floats:
        """(n, n) in ns, both triangles, NaN on the diagonal and where nothing was measured."""
        n = len(self.places.cpus)
        out = np.full((n, n), np.nan)
        values = np.array(self.tenths_ns, dtype=np.float64) * TENTH_NS
        out[np.triu_indices(n, 1)] = np.where(values < 0, np.nan, values)
        return np.where(np.isnan(out), out.T, out)


class SummaryOrigin(msgspec.Struct, frozen=True):
    """Its origin: the day of measuring (ISO 8601, empty if unknown) and the program with its versions.

    For another tool's matrix also its file and the facts missing from it.
    """

    program: str
    measured: str = ""
    versions: Mapping[str, str] = {}
    file: str = ""
    unknown: tuple[str, ...] = ()
    simulated: bool = False


class NodeSummary(msgspec.Struct, frozen=True):
    """A node without its records. `disturbed` are kinds of disturbances that its records show, `settings` fields of
    its configuration that change results."""

    processor: ProcessorFacts
    origin: SummaryOrigin
    figures: tuple[MedianValue, ...] = ()
    matrix: PairMatrix | None = None
    settings: Mapping[str, str | int | float | bool | None] = {}
    disturbed: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


def processor_key(name: str) -> str:
    """A processor's name without the additions of people and kernels: `amd epyc 7742`."""
    words = re.sub(r"\((r|tm)\)|,.*|@.*|\b\d+-core\b|\bdual\b|\b\w+-core processor\b", " ", name.lower())
    return " ".join(word for word in words.split() if word not in ("cpu", "processor"))


def pairs_csv(matrix: PairMatrix) -> str:
    """The pairs of a matrix as a table that every program reads, and `nodeprint structure` again; its first line names
    the columns with their unit."""
    cpus, ns = matrix.places.cpus, matrix.ns
    rows = [
        f"{cpus[a]},{cpus[b]},{ns[a, b]:.1f}"
        for a, b in zip(*np.triu_indices(len(cpus), 1), strict=True)
        if np.isfinite(ns[a, b])
    ]
    return "\n".join(["cpu_a,cpu_b,latency_ns", *rows]) + "\n"


def tenths(ns: Floats) -> tuple[int, ...]:
    """The upper triangle of an (n, n) matrix in ns as `PairMatrix` has it."""
    upper = ns[np.triu_indices(len(ns), 1)]
    return tuple(np.where(np.isnan(upper), -1, np.rint(np.nan_to_num(upper) / TENTH_NS)).astype(int).tolist())


def rounded(value: float) -> float:
    """To five figures: more than any measurement has."""
    return float(f"{value:.5g}")


def finite(value: float) -> float | None:
    """A figure for JSON, None where it is not known."""
    return rounded(value) if np.isfinite(value) else None
