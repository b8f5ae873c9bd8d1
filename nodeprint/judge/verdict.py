"""The verdict of a campaign as types: complete, so that every sentence, file and figure is made from it alone.

Numbers of CPUs, cores and NUMA nodes are those of the node's operating system. Effects, intervals and bounds are
relative to the peers' centre (0.02 is 2 %; of a share of the time they are that share); `*_unit` is the same in the
measurement's unit. Nothing here is a sentence: `nodeprint.report.text` makes those.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping
from typing import Any

import msgspec

from nodeprint.data.places.layout import ALL_PAIRS, CLASSES
from nodeprint.judge.outcome import (
    FLEET_MEANING,
    FLEET_OF_STATE,
    MEANING,
    FleetOutcome,
    Kind,
    Meaning,
    Outcome,
    State,
    Why,
    counts,
)
from nodeprint.machine.possible import Memory

SCHEMA = 2
#: The share of a measurement's CPU time, or of its values, from which on its figures are not those of a quiet machine:
#: what others take below it, medians do not show (nodeprint.machine.other_load has the same). On a quiet virtual
#: machine kernels lost 0 to 1.4 %, and up to 6.4 % where its hypervisor stole time (docs/validation.md).
LOST = 0.05
_OF_SOCKET = re.compile(r"(, )?socket \d+$")


class Part(msgspec.Struct, frozen=True):
    """What is compared. `term` is its kind (node, socket, class, quadrant, link, ccd, ccx, block, core; of other
    measurements their term in measurements.yaml: numa, cache, bandwidth, clock, ...), `family` the kind of contrast
    that decided (core-near, core-far, ...), `where` its place, e.g. {"core": 37, "cpu": 37}. Parts are called by
    what they are on the machine: of the terms quadrant and link `numa` where it shows NUMA nodes and no quadrants, of
    ccd, block and ccx `ccx`, or `cluster` where it shows clusters and no L3; a `class` has its name."""

    term: str
    family: str
    where: Mapping[str, int | str] = {}


class Interval(msgspec.Struct, frozen=True):
    """Ends of an interval, relative."""

    low: float
    high: float


class JobEffect(msgspec.Struct, frozen=True):
    """A finding's effect in one independent job: the interval that is simultaneous over all nodes and the parts of its
    family in one job, and the effect in each run by its name (job1/run1)."""

    job: str
    effect: float
    interval: Interval
    runs: Mapping[str, float]


class Finer(msgspec.Struct, frozen=True):
    """A finer part that deviates with the finding and is explained by it."""

    measurement: str
    part: Part
    effect: float
    interval: Interval
    bound: float


class Expected(msgspec.Struct, frozen=True):
    """What a finding is measured again by. `value` is the key of a record that is compared, `dims` those that say its
    place, `at` their values by place (of pairs `home` has the NUMA nodes that the line may be on, or `any`).

    `usual` is what the peers have by place, `weights` what a place counts in the difference: a `statistic` of `mean` is
    the weighted mean of value / usual - 1, of `log` that of log(value / usual), less the peers' `centre`; of `median`
    the median of the values themselves. At each place the median over the passes of a run counts.
    """

    value: str
    statistic: str
    dims: tuple[str, ...]
    at: tuple[tuple[int | str, ...], ...]
    usual: tuple[float, ...]
    weights: tuple[float, ...]
    centre: float


class Finding(msgspec.Struct, frozen=True):
    """A part of a node that is outside its bound.

    `id` names its kind, as suppressions do (core-slow). `effect` is from the job that decides (the confirming
    one), `interval` the one that decided, simultaneous over all that one job or an earlier job showed (it leaves
    `tail` at each end), `half_95` half of its 95 % interval. `bound` is the one that decided, in the direction of
    the effect (of a rate with a bound of 10 %, 10 % higher or 9.1 % lower), and `times_bound` how many times it
    the effect is. `value` and `peers` are what was measured in that job, in `unit`. `pairs` has the pairs of CPUs
    that it is of, by their first CPU; `cells` its cells for measurements that are no pairs. `worse`: on the bad
    side. `consistent_with` and `evidence` are keys with their figures, never sentences; `shared_by` are other
    nodes with the same difference. `error` (relative), `degrees` of freedom and the `tail` that is left at each
    end are what the interval is made of; 0 of a finding that no interval decided. `baseline` names the campaigns
    of a baseline where the node is compared with its own past: `peers` is that past then. `figures_of` is the part
    that `value`, `peers` and `effect_unit` are of where several parts are one finding: that in which it is
    largest. `expected` is what it
    is measured again by, None where one node alone cannot be, and `check` the command for it, in the folder of the
    report.
    """

    id: str
    state: State
    measurement: str
    home: int
    part: Part
    effect: float
    effect_unit: float
    interval: Interval
    half_95: float
    bound: float
    bound_unit: float
    times_bound: float
    value: float
    peers: float
    unit: str
    worse: bool
    by_job: tuple[JobEffect, ...]
    finer: tuple[Finer, ...] = ()
    pairs: Mapping[int, tuple[int, ...]] = {}
    cells: tuple[Mapping[str, int | str], ...] = ()
    consistent_with: tuple[str, ...] = ()
    evidence: tuple[Evidence, ...] = ()
    remedy: str = ""
    shared_by: tuple[str, ...] = ()
    suppressed: str = ""
    error: float = 0.0
    degrees: float = 0.0
    tail: float = 0.0
    baseline: str = ""
    figures_of: Part | None = None
    expected: Expected | None = None
    check: str = ""

    @property
    def of_limit(self) -> bool:
        """Whether it is beyond a limit of the contract, which is in `peers` then, and not beyond a bound."""
        return self.id == "limit"

    @property
    def fails_at(self) -> float:
        """From which value on the finding is there, in `unit`: the peers' with the bound, or the limit itself."""
        if self.of_limit:
            return self.peers
        return self.peers + math.copysign(self.bound_unit, self.effect)

    @property
    def runs(self) -> tuple[str, ...]:
        """The runs that were made of it, over all jobs."""
        return tuple(name for job in self.by_job for name in job.runs)

    @property
    def deciding(self) -> int:
        """The number in `by_job` of the job that its figures are of: the newest, or of what that does not show the one
        that showed it."""
        if self.state is not State.INTERMITTENT:
            return len(self.by_job) - 1
        return min(range(len(self.by_job)), key=lambda number: abs(self.by_job[number].effect - self.effect))

    @property
    def counts(self) -> bool:
        """Whether it is part of the outcome."""
        return not self.suppressed and self.state is not State.REFUTED

    @property
    def accepted(self) -> bool:
        """Whether it would count, and the site accepts it."""
        return bool(self.suppressed) and self.state is not State.REFUTED

    @property
    def is_outside(self) -> bool:
        """Whether the newest job shows it: what came and went, as before a repair, is not outside its bound now."""
        return self.state not in (State.REFUTED, State.INTERMITTENT)


class Evidence(msgspec.Struct, frozen=True):
    """What the node's instruments say about a finding. `seen` is None where it is not known; `kind` is clock,
    temperature, throttling, memory-errors, lost-time or configuration; `value` and `peers` in `unit`, `field` the
    fingerprint's."""

    kind: str
    seen: bool | None
    value: float = float("nan")
    peers: float = float("nan")
    unit: str = ""
    field: str = ""


class Margin(msgspec.Struct, frozen=True):
    """How alike a node is to its peers in one subject that is judged: the part that comes nearest to its bound.

    `within` is the smallest bound at which the node would be the same there (the far end of the 90 % interval),
    infinite with one run; `share` how much of the bound that is: up to 1 the node is the same. `remedy` is what
    resolves it where that is undecided: `runs`, `nodes`, `quiet` (the node's runs differ, `run` most), `bound` (the
    difference itself is close to the bound), `time` (the subject goes with the order of measuring) or `none`, with the
    number that is `needed`.
    """

    subject: str
    decides: bool
    measurement: str
    part: Part
    within: float
    bound: float
    unit: str
    within_unit: float
    bound_unit: float
    share: float
    effect: float
    runs: int
    remedy: str = ""
    needed: int = 0
    run: str = ""


class Reason(msgspec.Struct, frozen=True):
    """Why a node has its outcome: the kind, what it is of (measurements, families or fields), and in `detail` the text
    of another program (Slurm's reason, what cannot be read), which is shown and never interpreted. Of a node that is
    configured differently `values` has by field its value and that of most nodes."""

    why: Why
    of: tuple[str, ...] = ()
    share: float = 0.0
    detail: str = ""
    values: Mapping[str, tuple[str, str]] = {}


class Disturbance(msgspec.Struct, frozen=True):
    """Something that disturbed a measurement or concerns the node: `kind` is disturbed, missing, odd-run, stolen,
    loud-cpus, busy, hot, throttled, memory-errors, clock-fell, record, runs-differ, passes-differ, jobs-differ or
    cpus-moved; `share` or `value` say how much of it, `cpus` where.

    Of repetitions that differ `value` is the factor, `odd` are those that differ from the majority (empty without one;
    job1, job1/run2, job1/run2/pass1), and a typical place has `low` and `high` (in `unit`) in the repetitions `low_in`
    and `high_in`. cpus-moved: they differ so far, on a virtual machine, that its CPUs must have been others."""

    kind: str
    invalid: bool
    measurement: str = ""
    run: str = ""
    share: float = 0.0
    value: float = 0.0
    cpus: tuple[int, ...] = ()
    detail: str = ""
    odd: tuple[str, ...] = ()
    low: float = 0.0
    high: float = 0.0
    unit: str = ""
    low_in: str = ""
    high_in: str = ""


class ClassFigure(msgspec.Struct, frozen=True):
    """A class of pairs on one node: the median in ns over `runs` with their 95 % interval and standard deviation (NaN
    of one). Both are of the majority of runs that agrees, without those `left_out`; where there is none all of them
    are, and the interval is from the lowest to the highest run. `groups` are the medians by socket, by found level or
    by half where the median of all is that of a mixture: few pairs of a run are within 10 %. A tick of the clock is
    `tick_ns` of a median (0 unknown); `harvested` is a class inside CCXs of which cores are fused off. Both are what
    its bound follows from. `disturbed` is the largest share, in a run of its measurement, of CPU time that others took
    or of values that the kernel flagged: from LOST on it is marked wherever it is shown."""

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
    tick_ns: float = 0.0
    harvested: bool = False
    left_out: int = 0
    disturbed: float = 0.0

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
    one), the worst cell, and what is possible (0 unknown), all in `unit`."""

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
    possible: float = 0.0

    @property
    def is_marked(self) -> bool:
        """Whether it is shown with an asterisk."""
        return self.disturbed >= LOST

    @property
    def reached(self) -> float:
        """The median as a share of what is possible; NaN where that is unknown."""
        return self.median / self.possible if self.possible else float("nan")


class NodeVerdict(msgspec.Struct, frozen=True):
    """A node's outcome: the `reasons` for it, the decisive one first, its findings by severity, and its figures.

    `group` is the letter of its group in a split fleet. `notes` are fields of the fingerprint in which it differs from
    the majority without being another configuration. `measured` is when its newest run began (ISO 8601), empty where
    that is unknown. `untaken` has the measurements of its newest job that were not taken, and the node's reason.
    """

    outcome: Outcome
    reasons: tuple[Reason, ...]
    findings: tuple[Finding, ...] = ()
    margins: tuple[Margin, ...] = ()
    disturbances: tuple[Disturbance, ...] = ()
    warnings: tuple[Mapping[str, str], ...] = ()
    fingerprint: Mapping[str, Any] = {}
    classes: tuple[ClassFigure, ...] = ()
    cells: tuple[CellFigure, ...] = ()
    jobs: tuple[str, ...] = ()
    group: str = ""
    rack: str = ""
    log_tail: tuple[str, ...] = ()
    measured: str = ""
    untaken: Mapping[str, str] = {}

    @property
    def counted(self) -> tuple[Finding, ...]:
        """The findings that are part of the outcome."""
        return tuple(finding for finding in self.findings if finding.counts)

    @property
    def accepted(self) -> tuple[Finding, ...]:
        """The findings that would count, and the site accepts them."""
        return tuple(finding for finding in self.findings if finding.accepted)


class Group(msgspec.Struct, frozen=True):
    """Nodes that are compared with each other, where there are several such groups. In a split fleet they are alike,
    and differ from the group `than` in the part that separates them; `fields` of the fingerprint go with it. They were
    measured `later_h` hours after all nodes of that group (negative: before; 0 where times overlap). `differences` are
    by node of both groups how far it is from the middle of the group `than` in that part."""

    name: str
    nodes: tuple[str, ...]
    measurement: str = ""
    part: Part | None = None
    than: str = ""
    effect: float = 0.0
    effect_unit: float = 0.0
    interval: Interval = Interval(0.0, 0.0)
    bound: float = 0.0
    unit: str = ""
    fields: Mapping[str, str] = {}
    later_h: float = 0.0
    differences: Mapping[str, float] = {}


class TimeEffect(msgspec.Struct, frozen=True):
    """A family of parts of a measurement that goes with the order in which so many nodes were measured, from the
    `first` to the `last` (ISO 8601): a trend over all of it, or a step `since` (else empty). `effect` is of the last
    beside the first, of a step after it beside before, with its 95 % interval and the bound; `p` the chance of one as
    clear where the order does not matter."""

    subject: str
    measurement: str
    home: int
    family: str
    effect: float
    interval: Interval
    bound: float
    nodes: int
    first: str
    last: str
    since: str
    p: float


class Shared(msgspec.Struct, frozen=True):
    """A difference that several nodes have: look for a batch or a setting. `fields` go with it."""

    nodes: tuple[str, ...]
    measurement: str
    part: Part
    effect: float
    interval: Interval
    fields: Mapping[str, str] = {}


class Spread(msgspec.Struct, frozen=True):
    """The spread of one family of parts of a subject: standard deviations between chips and between runs, the
    typical bound, and the `smallest` bound at which 95 % of the nodes would be the same. `wide`: many nodes are
    beyond the bound in different places."""

    subject: str
    measurement: str
    family: str
    term: str
    chips: float
    runs: float
    bound: float
    smallest_bound: float
    nodes_beyond: int
    wide: bool


class Limit(msgspec.Struct, frozen=True):
    """The effect from which on a part is found in nine of ten nodes, by family, with the bound (the median over its
    parts); beyond 2.5 bounds the data cannot be relied on there."""

    subject: str
    measurement: str
    family: str
    term: str
    effect: float
    bound: float
    remedy: str = ""
    needed: int = 0


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


class FleetVerdict(msgspec.Struct, frozen=True):
    """The fleet's outcome. `margins` are the worst over the nodes that are SAME, by subject, those that decide first;
    `rests_on` the subjects that were measured and decide, `missing` measurements that were planned and no node has.
    `gaps` has nodes that are within every bound and apart from the others all the same, `over_time` what goes with the
    order of measuring, `single_runs` what can be said of measurements of one run a node, `memory` nodes whose memory
    could be more than it is. `assumed_jobs` are, by subject that decides, the standard deviations between jobs that
    were assumed, as no two nodes have two jobs."""

    outcome: FleetOutcome
    nodes: int
    measured: int
    counts: Mapping[str, int]
    margins: tuple[Margin, ...] = ()
    rests_on: tuple[str, ...] = ()
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
    memory: tuple[MemoryReached, ...] = ()


class MemoryReached(msgspec.Struct, frozen=True):
    """Nodes with the same memory, and what the best of their streams over the whole machine reaches, as a share of what
    its channels can move at their clock, and of what all channels of the processors can at the modules' own."""

    nodes: tuple[str, ...]
    memory: Memory
    of_configured: float
    of_most: float


class Note(msgspec.Struct, frozen=True):
    """Something else to be said of a campaign: its kind, a name that it is about, and figures or words for it."""

    kind: str
    name: str = ""
    detail: str = ""
    value: float = 0.0


class SizeFigure(msgspec.Struct, frozen=True):
    """Messages of a size over the links `within` a switch or rack, or over those between them: median, lowest and
    highest of the links' medians over runs."""

    message_bytes: int
    within: bool
    median_ns: float
    low_ns: float
    high_ns: float


class FabricVerdict(msgspec.Struct, frozen=True):
    """Messages between the nodes of a partition: medians (from, to) in ns, slow nodes and links as findings, whose part
    has where = {"node": name} or {"node": from, "to": to} and `sends`/`receives` as 1; the smallest effects that are
    found and the bounds by family (fabric-node, fabric-link). `inconclusive` says why nothing can be concluded:
    too-few-nodes, one-run, beyond-bound (a detection limit is beyond 2.5 bounds) or empty. Of several message sizes the
    largest decides and all else is of it; `by_size` has every size, `smallest_ns` the medians of the smallest."""

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

    @property
    def outcome(self) -> FleetOutcome:
        """What the messages of a partition amount to, in the words of a fleet: its most certain finding."""
        states = [finding.state for finding in self.findings if finding.counts]
        if states:
            return FLEET_OF_STATE[min(states, key=list(State).index)]
        return FleetOutcome.INCONCLUSIVE if self.inconclusive else FleetOutcome.UNIFORM


class Verdict(msgspec.Struct, frozen=True):
    """The verdict of a campaign. `recheck` are the nodes to measure as a further job: suspects, invalid nodes and two
    companions for each; `decides` the subjects that an outcome rests on."""

    campaign: str
    simulated: bool
    imported: bool
    versions: Mapping[str, str]
    decides: tuple[str, ...]
    fleet: FleetVerdict
    nodes: Mapping[str, NodeVerdict]
    fabric: tuple[FabricVerdict, ...] = ()
    recheck: tuple[str, ...] = ()
    schema: int = SCHEMA

    @property
    def meanings(self) -> list[Meaning]:
        """What the outcomes of the fleet, of its nodes and of the messages between them mean."""
        of_all = [self.fleet.outcome, *(fabric.outcome for fabric in self.fabric)]
        return [*(FLEET_MEANING[of] for of in of_all), *(MEANING[node.outcome] for node in self.nodes.values())]

    def fails(self, kinds: Collection[Kind]) -> bool:
        """Whether --fail-on counts an outcome of a node, of the fleet or of the fabric."""
        return counts(kinds, self.meanings)


def schema() -> dict[str, Any]:
    """The JSON schema of verdict.json, made from these types: as it is written, a number that is not finite is null,
    and no other key is there."""
    made = msgspec.json.schema(Verdict, schema_hook=lambda _: {})
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "verdict.json of nodeprint",
        **_as_written(made),
    }


def _as_written(node: Any) -> Any:
    if isinstance(node, list):
        return [_as_written(item) for item in node]
    if not isinstance(node, dict):
        return node
    out = {key: _as_written(value) for key, value in node.items()}
    if out.get("type") == "number":
        out["type"] = ["number", "null"]
    if "properties" in out:
        out["additionalProperties"] = False
    return out
