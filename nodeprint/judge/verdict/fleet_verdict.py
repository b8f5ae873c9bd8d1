"""What a verdict says of all nodes together: groups, what several share, what goes with the time, spreads, and from
which effect on something is found."""

from __future__ import annotations

import math
from collections.abc import Mapping

import msgspec

from nodeprint.judge.outcome import FleetOutcome, Outcome, OutcomeClass
from nodeprint.judge.verdict.component import Component, Interval
from nodeprint.judge.verdict.node_verdict import Agreement
from nodeprint.machine.peak import Memory

#: If this share of comparable nodes have a difference it is named, and so is that these may be the right ones. Above a
#: third the fleet is split.
CONTESTED = 0.2


class Group(msgspec.Struct, frozen=True):
    """Nodes that are compared with each other, where there are several such groups. In a split fleet they are alike,
    and differ from the group `than` in the component that separates them; `fields` of the fingerprint go with it. They
    were measured `later_h` hours after all nodes of that group (negative: before; 0 where times overlap). `differences`
    are by node of both groups how far it is from the middle of the group `than` in that component."""

    name: str
    nodes: tuple[str, ...]
    measurement: str = ""
    component: Component | None = None
    than: str = ""
    effect: float = 0.0
    effect_unit: float = 0.0
    interval: Interval = Interval(0.0, 0.0)
    tolerance: float = 0.0
    unit: str = ""
    fields: Mapping[str, str] = {}
    later_h: float = 0.0
    differences: Mapping[str, float] = {}


class TimeEffect(msgspec.Struct, frozen=True):
    """A component type of a measurement that goes with the order in which so many nodes were measured, from the
    `first` to the `last` (ISO 8601): a trend over all of it, or a step `since` (else empty). `effect` is of the last
    beside the first, of a step after it beside before, with its 95 % interval and the tolerance; `p` the chance of one
    as clear where the order does not matter."""

    metric: str
    measurement: str
    home: int
    component_type: str
    effect: float
    interval: Interval
    tolerance: float
    nodes: int
    first: str
    last: str
    since: str
    p: float


class Shared(msgspec.Struct, frozen=True):
    """A difference that several nodes have: look for a batch or a setting. `fields` go with it; `share` of the nodes
    that are compared with them have it."""

    nodes: tuple[str, ...]
    measurement: str
    component: Component
    effect: float
    interval: Interval
    fields: Mapping[str, str] = {}
    share: float = 0.0

    @property
    def may_be_right(self) -> bool:
        """Whether so many share it that these nodes may be the right ones."""
        return self.share >= CONTESTED


class Spread(msgspec.Struct, frozen=True):
    """The spread of one component type of a metric: standard deviations between chips and between runs, the
    typical tolerance, and the `smallest` tolerance at which 95 % of the nodes would be the same. `wide`: many nodes are
    beyond the tolerance in different places."""

    metric: str
    measurement: str
    component_type: str
    term: str
    chips: float
    runs: float
    tolerance: float
    smallest_tolerance: float
    nodes_beyond: int
    wide: bool


class Limit(msgspec.Struct, frozen=True):
    """The effect from which on a component is found in nine of ten nodes, by component type.

    `tolerance` is the median over the components, between `tolerance_low` and `tolerance_high`. An effect beyond 2.5
    tolerances says that the data cannot be relied on there.
    """

    metric: str
    measurement: str
    component_type: str
    term: str
    effect: float
    tolerance: float
    remedy: str = ""
    needed: int = 0
    tolerance_low: float = math.nan
    tolerance_high: float = math.nan


class NodesAt(msgspec.Struct, frozen=True):
    """Nodes, and by how much their median is from that of all, a share."""

    nodes: tuple[str, ...]
    effect: float


class SingleRuns(msgspec.Struct, frozen=True):
    """A measurement of which no node has two runs: nobody knows how far runs differ, and no node is SAME.

    So many `nodes` have a `median` in `unit`, and are from `low` to `high` of it, shares, with a robust standard
    deviation `sd`; one is the `farthest`. `apart` are nodes beyond a gap on either side, `groups` both of two groups,
    where there are any.
    """

    measurement: str
    nodes: int
    median: float
    unit: str
    low: float
    high: float
    sd: float
    farthest: NodesAt
    apart: tuple[NodesAt, ...] = ()
    groups: tuple[NodesAt, ...] = ()


class MemoryAchieved(msgspec.Struct, frozen=True):
    """Nodes with the same memory, and what the best of their streams over the whole machine reaches, as a share of what
    its channels can move at their clock, and of what all channels of the processors can at the modules' own."""

    nodes: tuple[str, ...]
    memory: Memory
    of_configured: float
    of_most: float


class Note(msgspec.Struct, frozen=True):
    """Something else to be said of a campaign: its kind, a name that it is about, figures or words for it, and what
    nodes share."""

    kind: str
    name: str = ""
    detail: str = ""
    value: float = 0.0
    shared: Shared | None = None


class FleetVerdict(msgspec.Struct, frozen=True):
    """The fleet's outcome and its `class`. `agreements` are the worst over the nodes that are SAME, by metric, those
    that decide first; `based_on` the metrics that were measured and decide, `missing` measurements that were planned
    and no node has. `gaps` has nodes that are within every tolerance and apart from the others all the same,
    `over_time` what goes with the order of measuring, `single_runs` what can be said of measurements of one run a node,
    `memory` nodes whose memory could be more than it is. `assumed_jobs` are, by metric that decides, the standard
    deviations between jobs that were assumed, as no two nodes have two jobs."""

    outcome: FleetOutcome
    nodes: int
    measured: int
    counts: Mapping[str, int]
    agreements: tuple[Agreement, ...] = ()
    based_on: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    groups: tuple[Group, ...] = ()
    shared: tuple[Shared, ...] = ()
    spreads: tuple[Spread, ...] = ()
    limits: tuple[Limit, ...] = ()
    tests: int = 0
    false_alarm: float = 0.0
    notes: tuple[Note, ...] = ()
    gaps: tuple[Group, ...] = ()
    over_time: tuple[TimeEffect, ...] = ()
    assumed_jobs: Mapping[str, float] = {}
    single_runs: tuple[SingleRuns, ...] = ()
    memory: tuple[MemoryAchieved, ...] = ()
    outcome_class: OutcomeClass = msgspec.field(name="class", default=OutcomeClass.UNDETERMINED)

    def __post_init__(self) -> None:
        """Derive the class from the outcome, whatever a file says. A node that fails makes its fleet fail, also one
        that is split."""
        failing = {outcome for outcome in Outcome if outcome.outcome_class is OutcomeClass.FAIL}
        of_fleet = self.outcome.outcome_class if failing.isdisjoint(self.counts) else OutcomeClass.FAIL
        msgspec.structs.force_setattr(self, "outcome_class", of_fleet)
