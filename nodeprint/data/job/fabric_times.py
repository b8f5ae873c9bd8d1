"""Times or rates of messages between nodes as a matrix over (run, from, to)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from nodeprint.campaign.followed import Followed

Floats = npt.NDArray[np.float64]

#: A node's term is a median over its links. With fewer of them, a slow link cannot be distinguished from a slow node.
FEWEST_LINKS = 3
FEWEST_NODES = FEWEST_LINKS + 1


@dataclass(frozen=True, kw_only=True)
class FabricFacts:
    """All facts of a measurement over the nodes of a partition, without its values.

    Nodes are in the order of their `places` (switch or rack, empty where unknown). `runs` are named job1/run1,
    `started` when they began. `disturbed` is, for each run, the share of CPU time that background load took or of
    values flagged, whichever is larger.

    Values of a table of pairs may have another `unit`, and higher ones may be `better`. `metric` is what the table
    calls them.
    """

    measurement: str
    partition: str
    nodes: tuple[str, ...]
    places: tuple[str, ...]
    runs: tuple[str, ...]
    started: tuple[str, ...]
    disturbed: tuple[float, ...]
    header: Mapping[str, Any]
    unit: str = "ns"
    better: Literal["higher", "lower"] = "lower"
    metric: str = ""


@dataclass(frozen=True, kw_only=True)
class Fabric(FabricFacts):
    """A measurement over the nodes of a partition: `values` (run, from, to) in ns a message, NaN where not measured.

    A value is the median over pairs of ranks and passes. For several message sizes, `values` are those of the largest.
    `by_size` has (run, from, to) by bytes, ascending, in ns even if a table has another unit; it is empty for one
    size. `followed` has by job when it was submitted and ended, by the login node's clock.
    """

    values: Floats
    followed: Mapping[int, Followed] = field(default_factory=dict)
    by_size: Mapping[int, Floats] = field(default_factory=dict)

    @property
    def message_bytes(self) -> int:
        """The size of the messages of `values`; 0 where it is not recorded."""
        return max(self.by_size, default=int(self.header.get("message_bytes") or 0))

    @property
    def logs(self) -> Floats:
        """The logarithms of the values, which are larger for a slower message."""
        return slowness(self.values, self.better)


def slowness(values: Floats, better: str) -> Floats:
    """The logarithms of times, or of rates with the other sign: larger is slower."""
    return np.asarray(np.log(values) if better == "lower" else -np.log(values))


def relative(slower: float, better: str) -> float:
    """The relative difference from the usual value, if a message is slower by this in logarithms."""
    return float(np.expm1(slower if better == "lower" else -slower))
