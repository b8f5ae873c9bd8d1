"""The verdict on all nodes together: groups, shared differences, trends over time, spreads and detection limits."""

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
    """Nodes that are compared with each other, if there are several such groups. In a split fleet, nodes of a group
    match. They differ from the group `than` in the component that separates the groups; `fields` of the fingerprint are
    associated with it. They were measured `later_h` hours after all nodes of that group (negative: before; 0 if times
    overlap). `differences` has, for each node of both groups, its distance from the middle of the group `than` in that
    component."""

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
    """A component type of a measurement with a trend or step in the order in which its `nodes` were measured. The order
    runs from `first` to `last` (ISO 8601); a step is at `since`, which is empty for a trend. `effect` compares the last
    with the first, or the values after a step with those before, with its 95% interval and the tolerance. `p` is the
    probability of an effect as clear if the order does not matter."""

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
    """A difference that several nodes share: look for a batch or a setting. `fields` are associated with it. `share` is
    the share of the compared nodes that have it."""

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
    """The spread of one component type of a metric: standard deviations between chips and between runs, and the typical
    tolerance. `smallest_tolerance` is the smallest at which 95% of the nodes would be SAME. `wide`: many nodes are
    beyond the tolerance, in different components."""

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
    """The detection limit of a component type: the smallest effect that is found with 90% power.

    `tolerance` is the median over the components, between `tolerance_low` and `tolerance_high`. If the effect exceeds
    2.5 tolerances, the data are not reliable there.
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
    """Nodes, and the relative difference of their median from that of all nodes."""

    nodes: tuple[str, ...]
    effect: float


class SingleRuns(msgspec.Struct, frozen=True):
    """A measurement with one run per node: the spread of runs is unknown, so no node is SAME.

    The `nodes` have a `median` in `unit`. They range from `low` to `high` relative to it, with a robust standard
    deviation `sd`. `farthest` is the most distant node. `apart` are nodes beyond a gap on either side, `groups` the two
    groups, if any.
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
    """Nodes with the same memory, and the best bandwidth of their streams over the whole machine. `of_configured` is
    its share of the peak of the memory's channels at their clock. `of_most` is its share of the peak of all channels at
    the modules' rated clock."""

    nodes: tuple[str, ...]
    memory: Memory
    of_configured: float
    of_most: float


class Note(msgspec.Struct, frozen=True):
    """A further note on a campaign: its kind, the name of its subject, values or words, and a difference that nodes
    share."""

    kind: str
    name: str = ""
    detail: str = ""
    value: float = 0.0
    shared: Shared | None = None


class FleetVerdict(msgspec.Struct, frozen=True):
    """The fleet's outcome and its `class`. `agreements` are the worst over the SAME nodes, by metric, deciding metrics
    first. `based_on` has the measured deciding metrics, `missing` the planned measurements that no node has. `gaps` has
    nodes that are within every tolerance but separated from the others. `over_time` has trends with the order of
    measuring, `single_runs` the measurements with one run per node. `memory` has nodes whose memory bandwidth could be
    higher. `assumed_jobs` has, by deciding metric, the assumed standard deviations between jobs, as no two nodes have
    two jobs."""

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
        """Derive the class from the outcome, ignoring the file. A failing node fails its fleet, even a split one."""
        failing = {outcome for outcome in Outcome if outcome.outcome_class is OutcomeClass.FAIL}
        of_fleet = self.outcome.outcome_class if failing.isdisjoint(self.counts) else OutcomeClass.FAIL
        msgspec.structs.force_setattr(self, "outcome_class", of_fleet)

    @property
    def split_groups(self) -> tuple[Group, ...]:
        """The groups of a split fleet without those that are compared with no other group."""
        compared = {group.than for group in self.groups} if self.outcome is FleetOutcome.SPLIT else set()
        return tuple(of for of in self.groups if compared and (of.component is not None or of.name in compared))

    @property
    def wide_spreads(self) -> dict[str, list[Spread]]:
        """By measurement the wide spreads, the widest in tolerances first."""
        out: dict[str, list[Spread]] = {}
        for spread in sorted(self.spreads, key=lambda spread: -spread.chips / spread.tolerance):
            if spread.wide:
                out.setdefault(spread.measurement, []).append(spread)
        return out
