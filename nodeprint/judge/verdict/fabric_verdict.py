"""What a verdict says of the messages between the nodes of a partition."""

from __future__ import annotations

import msgspec

from nodeprint.judge.outcome import OUTCOME_OF, Certainty, FleetOutcome
from nodeprint.judge.verdict.finding import Finding
from nodeprint.judge.verdict.fleet_verdict import Limit
from nodeprint.judge.verdict.node_figures import LOST


class SizeFigure(msgspec.Struct, frozen=True):
    """Messages of a size over the links `within` a switch or rack, or over those between them: median, lowest and
    highest of the links' medians over runs."""

    message_bytes: int
    within: bool
    median_ns: float
    low_ns: float
    high_ns: float


class FabricVerdict(msgspec.Struct, frozen=True):
    """Messages between the nodes of a partition: medians (from, to) in ns, slow nodes and links as findings, whose
    component has where = {"node": name} or {"node": from, "to": to} and `sends`/`receives` as 1; the smallest effects
    that are found and the tolerances by component type (fabric-node, fabric-link). `inconclusive` says why nothing can
    be concluded: too-few-nodes, one-run, beyond-tolerance (a detection limit is beyond 2.5 tolerances) or empty. Of
    several message sizes the largest decides and all else is of it; `by_size` has every size, `smallest_ns` the medians
    of the smallest.

    Background load took up to `disturbed` of a run's CPU time, or that share of its values is flagged. From LOST on,
    values have an asterisk.
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

    @property
    def is_marked(self) -> bool:
        """Whether values have an asterisk."""
        return self.disturbed >= LOST

    @property
    def outcome(self) -> FleetOutcome:
        """What the messages of a partition amount to, in the words of a fleet: its most certain finding."""
        states = [finding.state for finding in self.findings if finding.counts]
        if states:
            return OUTCOME_OF[min(states, key=list(Certainty).index)].entry.fleet
        return FleetOutcome.INCONCLUSIVE if self.inconclusive else FleetOutcome.UNIFORM
