"""The verdict on the messages between the nodes of a partition."""

from __future__ import annotations

import msgspec

from nodeprint.judge.outcome import OUTCOME_OF, Certainty, FleetOutcome
from nodeprint.judge.verdict.finding import Finding
from nodeprint.judge.verdict.fleet_verdict import Limit
from nodeprint.judge.verdict.node_figures import LOST


class SizeFigure(msgspec.Struct, frozen=True):
    """Messages of one size over the links `within` a switch or rack, or over those between them. The median, low and
    high values summarize the links' medians over runs."""

    message_bytes: int
    within: bool
    median_ns: float
    low_ns: float
    high_ns: float


class FabricValues(msgspec.Struct, frozen=True):
    """Values of a table of pairs in another `unit` than ns: medians over runs (from, to), and their extremes. `better`
    is the side of the better values, `higher` or `lower`."""

    unit: str
    better: str
    median: tuple[tuple[float, ...], ...]
    minimum: float
    mean: float
    maximum: float


class FabricVerdict(msgspec.Struct, frozen=True):
    """Messages between the nodes of a partition: medians (from, to) in ns. Slow nodes and links are findings. Their
    component has where = {"node": name} or {"node": from, "to": to} and `sends`/`receives` as 1. `limits` has the
    detection limits and tolerances by component type (fabric-node, fabric-link). `inconclusive` gives the reason if
    nothing can be concluded: too-few-nodes, one-run, beyond-tolerance (a detection limit is beyond 2.5 tolerances) or
    empty. The largest message size decides, and all other fields describe it; `by_size` has every size, `smallest_ns`
    the medians of the smallest.

    Background load took up to `disturbed` of a run's CPU time, or that share of its values is flagged. From LOST on,
    values have an asterisk.

    A table of pairs may have `values` in another unit. `median_ns` is empty then, and its extremes are NaN.
    `unconfirmed` are links outside the tolerance in a single run: other traffic may slow them, so they are no findings.
    """

    measurement: str
    partition: str
    operation: str
    nodes: tuple[str, ...]
    places: tuple[str, ...]
    message_bytes: int
    at_once: int
    directed: bool
    median_ns: tuple[tuple[float, ...], ...]
    minimum_ns: float
    mean_ns: float
    maximum_ns: float
    findings: tuple[Finding, ...]
    limits: tuple[Limit, ...]
    alone: tuple[str, ...] = ()
    inconclusive: str = ""
    by_size: tuple[SizeFigure, ...] = ()
    smallest_ns: tuple[tuple[float, ...], ...] = ()
    disturbed: float = 0.0
    values: FabricValues | msgspec.UnsetType = msgspec.UNSET
    unconfirmed: tuple[Finding, ...] = ()

    @property
    def shown(self) -> FabricValues:
        """The medians with their unit."""
        if isinstance(self.values, FabricValues):
            return self.values
        return FabricValues("ns", "lower", self.median_ns, self.minimum_ns, self.mean_ns, self.maximum_ns)

    @property
    def is_marked(self) -> bool:
        """Whether values have an asterisk."""
        return self.disturbed >= LOST

    @property
    def outcome(self) -> FleetOutcome:
        """The outcome of the partition's messages as a fleet outcome: that of the most certain finding."""
        states = [finding.state for finding in self.findings if finding.counts]
        if states:
            return OUTCOME_OF[min(states, key=list(Certainty).index)].entry.fleet
        return FleetOutcome.INCONCLUSIVE if self.inconclusive else FleetOutcome.UNIFORM
