"""acceptance.yaml as types: every key with its meaning, default and range, of which its schema and the tables of
config/README.md are made (docs/hooks.py).

A site writes what differs into config/acceptance.yaml. Percent are of the peers' value.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Annotated, Literal

import msgspec
from msgspec import UNSET, UnsetType

from nodeprint.judge.terms import COMPONENT_TYPES
from nodeprint.machine import fingerprint
from nodeprint.settings.keys import choice, key
from nodeprint.settings.measurements import measurements, terms

_TERMS = sorted({"other", *terms()})


def finding_ids() -> list[str]:
    """Every kind of finding that there can be, as waivers name it."""
    components = {"node", "socket", *(component_type.term for component_type in COMPONENT_TYPES.values()), *_TERMS}
    sides = {f"{component}-{side}" for component in components for side in ("slow", "fast")}
    return sorted(
        sides
        | {f"{name}-{term.finding}" for name, term in terms().items() if term.finding}
        | {
            "fabric-node-slow",
            "changed",
            "limit",
            "throttled",
            "memory-errors",
            "wrong-result",
        }
    )


# What is misspelt would silently count for nothing: names are those that there are.
Percent = Annotated[float, msgspec.Meta(gt=0, le=100)]
NotNegative = Annotated[float, msgspec.Meta(ge=0)]
Term = Annotated[str, choice(_TERMS)]
Criterion = Annotated[str, choice(["core-to-core", "messages", *_TERMS])]
Measurement = Annotated[str, choice(measurements())]
Field = Annotated[str, choice(field.name for field in fingerprint.FIELDS)]
FindingId = Annotated[str, choice(["*", *finding_ids()])]


class TolerancePercents(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Tolerances of pairs by term, in percent."""

    class_: Annotated[Percent, key("one class of pairs on one socket; also a whole node and a whole socket")] = (
        msgspec.field(name="class", default=2.0)
    )
    quadrant: Annotated[Percent, key("a quadrant to all others")] = 3.0
    link: Annotated[Percent, key("between two quadrants")] = 3.0
    ccd: Annotated[Percent, key("a CCD (a CCX where dies are unknown) to all others")] = 3.0
    block: Annotated[Percent, key("between two CCDs, between the CCXs of one, or inside a CCX")] = 3.0
    core: Annotated[Percent, key("a core to its CCX, to its socket, or across")] = 4.0


class Tolerances(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How far a node may be from its peers before it matters: the largest of percent, nanoseconds and clock ticks."""

    percent: TolerancePercents = TolerancePercents()
    least_ns: Annotated[
        NotNegative, key("nanoseconds; a tolerance is at least this, as a hop inside a core takes 8 ns")
    ] = 0.5
    # Inside a CCX, where a hop takes 20 ns: CCXs of published EPYC matrices are up to 0.9 ns from their median, and
    # cores up to 0.5 ns from others at their place (1.1 ns where cores are fused off).
    ccx_ns: Annotated[NotNegative, key("nanoseconds; the mean inside a CCX: at least this")] = 1.0
    core_in_ccx_ns: Annotated[NotNegative, key("nanoseconds; a single core inside its CCX: at least this")] = 2.0
    harvested_ccx_ns: Annotated[
        NotNegative,
        key(
            "nanoseconds; where cores are fused off, the mean inside a CCX and the class of pairs inside CCXs: at "
            "least this. Which cores those are differs from chip to chip: means inside CCXs of one machine have a "
            "standard deviation of 0.43 ns (EPYC 9454) and 0.78 ns (EPYC 74F3), and are up to 1.26 ns from their mean"
        ),
    ] = 2.5
    clock_ticks: Annotated[float, key("steps of the clock; a tolerance is at least so many of them in a hop", ge=0)] = (
        2.0
    )


class PriorPercents(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Standard deviations in percent that are assumed of pairs: between runs of a node where no node has two, and
    between jobs where none has two, of which it is one degree of freedom where they have."""

    run: Annotated[
        Percent,
        key("60 runs of one pair differ by 0.63 % (`docs/validation.md`); it counts where no node has two runs"),
    ] = 0.63
    job: Annotated[
        Percent, key("assumed: no node was booted again and again yet. Where nodes have two jobs these count instead")
    ] = 0.1


class CellRules(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is accepted of a measurement that is no pairs, and assumed of it; of jitter `percent` is of the time that a
    CPU may lose more than its peers, and `run` and `job` of that."""

    percent: Annotated[Percent, key("the tolerance")]
    run: Annotated[Percent, key("the standard deviation between runs, which counts where no node has two")]
    job: Annotated[
        NotNegative | UnsetType,
        key(
            "the standard deviation between jobs of a node, which counts where no node has two; a third of `run` if "
            "left out"
        ),
    ] = UNSET
    percent_without_boost: Annotated[
        Percent | UnsetType,
        key("the tolerance where the surveys of all nodes say that boost is off; `percent` if left out"),
    ] = UNSET

    @property
    def tolerance(self) -> float:
        """The tolerance as a share."""
        return self.percent / 100

    @property
    def run_sd(self) -> float:
        """The standard deviation between runs as a share."""
        return self.run / 100

    @property
    def job_sd(self) -> float:
        """The standard deviation between jobs of a node as a share."""
        return (self.run / 3 if self.job is UNSET else self.job) / 100


#: Of a kernel that names no term of its own, and the reason.
OTHER = CellRules(10.0, 2.0, 0.67), "assumed; a kernel that names no term of its own"


def cells() -> dict[str, CellRules]:
    """The tolerances and priors of every term, as the kernels have them (kernels/*/measurements.yaml)."""
    of_terms = {
        name: CellRules(term.tolerance, term.run, _given(term.job), _given(term.tolerance_without_boost))
        for name, term in terms().items()
    }
    return of_terms | {"other": OTHER[0]}


def _given(value: float | None) -> float | UnsetType:
    return UNSET if value is None else value


class MetricPrior(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is assumed of a metric of a table, in percent: runs of STREAM in one session differ by 0.7 to 1.4 %, and
    sessions beyond their runs by 0.4 to 0.6 % (`docs/validation.md`)."""

    run: Annotated[Percent, key("the standard deviation between runs, which counts where no node has two")] = 1.0
    job: Annotated[NotNegative, key("the standard deviation between jobs, which counts where no node has two")] = 0.5


class Metric(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is accepted of a metric of a table that other programs measured (`nodeprint judge TABLE`)."""

    tolerance: Annotated[
        Percent,
        key(
            "percent that a node may be from its peers: 4 to 11 standard deviations of nodes in published fleets. What "
            "is given in Hz has that of `cells.clock` unless it has its own"
        ),
    ] = 5.0
    better: Annotated[
        Literal["higher", "lower"] | UnsetType,
        key("which side is better; by the unit if left out: lower of a time, else higher"),
    ] = UNSET
    criterion: Annotated[bool, key("whether a node's outcome rests on it")] = True
    prior: MetricPrior = MetricPrior()

    @property
    def cell(self) -> CellRules:
        """The same as of other measurements."""
        return CellRules(self.tolerance, self.prior.run, self.prior.job)


class FabricTolerances(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Tolerances of messages between nodes (linktest-fabric), in percent of their time."""

    node_percent: Annotated[Percent, key("how much slower a node may be with all others")] = 5.0
    link_percent: Annotated[
        Percent,
        key("how much slower the link between two nodes, or one direction of it, beyond what its nodes are"),
    ] = 10.0


class Quality(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What makes a node INVALID (measured again with `recheck: true`). Thermal throttling and uncorrected memory errors
    do, too. The last three keys cause warnings only: what they do to a measurement is in its pairs."""

    missing_pairs_percent: Annotated[Percent, key("percent of the pairs that were asked for")] = 10.0
    disturbed_pairs_percent: Annotated[Percent, key("percent of the pairs that were measured")] = 25.0
    steal_percent: Annotated[Percent, key("percent of the CPUs' time, taken by a hypervisor in a run")] = 1.0
    clock_fell_percent: Annotated[
        Percent,
        key("percent, from the first to the last tenth of a run of the clock kernel, median over cores"),
    ] = 5.0
    hottest_c: Annotated[float, key("degrees Celsius of any sensor, after the clock kernel")] = 95.0


class FingerprintFields(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The fields of a node's fingerprint that are compared."""

    hard: Annotated[tuple[Field, ...], key("a difference is another configuration")] = (
        "cpu", "cpu_family", "cpu_model", "cpu_stepping", "sockets", "cores", "cpus", "cores_per_l3", "smt",
        "numa_nodes", "numa_nodes_per_socket", "numa_distances", "memory_per_node_gib", "cmdline", "governor", "boost",
        "virtual", "kernel_hash", "compiler", "homes",
    )  # fmt: skip
    soft: Annotated[tuple[Field, ...], key("a difference is a warning, and evidence beside findings")] = (
        "microcode",
        "bios",
        "product",
        "kernel",
        "os",
        "dimms",
        "dimm_speed",
        "dimm_rated_speed",
        "memory_channels",
        "memory_channels_per_socket",
        "frequency_driver",
        "frequency_max_mhz",
        "idle_driver",
        "idle_states_off",
        "clocksource",
        "thp",
        "numa_balancing",
        "nmi_watchdog",
        "mitigations",
        "cpus_isolated",
    )
    cmdline_ignored: Annotated[
        tuple[str, ...],
        key(
            "keys of the kernel command line that differ by node, in addition to BOOTIF, ip, root and others that "
            "nodeprint knows"
        ),
    ] = ()


#: What a pair of CPUs has in common.
PairClass = Literal[
    "same core",
    "same CCX",
    "same cluster",
    "same CCD",
    "same quadrant",
    "same NUMA node",
    "same socket",
    "other socket",
]


class ContractLimit(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """An absolute limit of a contract on the median of a class of pairs, in ns, or of a row of another measurement, in
    its unit (ns, bytes or cycles per second)."""

    measurement: Annotated[Measurement, key("its name, as `bandwidth-nodes`")]
    class_: Annotated[PairClass | UnsetType, key("the class of pairs; a limit has either this or `row`")] = (
        msgspec.field(name="class", default=UNSET)
    )
    row: Annotated[str | UnsetType, key("the row's name in the report's table and in verdict.json")] = UNSET
    at_most: Annotated[float | UnsetType, key("a limit has this, `at_least`, or both")] = UNSET
    at_least: Annotated[float | UnsetType, key("as `at_most`")] = UNSET
    at_least_percent: Annotated[
        Percent | UnsetType,
        key(
            "of a row of bandwidth or load: percent of the theoretical peak (all memory channels times the speed that "
            "their modules are made for; operations a cycle times the clock under load), in place of `at_least`"
        ),
    ] = UNSET
    reason: Annotated[str, key("what the report says of it, such as the contract's number")]

    def least(self, peak: float) -> float:
        """What a figure has to be at least, of which so much is possible (0 unknown); 0 where nothing is asked for."""
        if self.at_least_percent is not UNSET:
            return self.at_least_percent / 100 * peak
        return 0.0 if self.at_least is UNSET else self.at_least

    @property
    def figure(self) -> str:
        """The name of the class or row."""
        return str(self.row if self.class_ is UNSET else self.class_)


class Waiver(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A finding that is known and accepted until a day: it is shown, and counts no more. One of a link between nodes
    (fabric-link) counts no more where it is waived at either end."""

    node: Annotated[str, key("its name")]
    finding: Annotated[FindingId, key("its id in verdict.json; `*` for any")]
    reason: Annotated[str, key("what the report says of it", min_length=1)]
    until: Annotated[datetime.date, key("the last day on which it is accepted, as 2026-12-31")]


#: A day, or a moment of it, as people write them; without a zone it is UTC.
Moment = Annotated[str, msgspec.Meta(pattern=r"^\d{4}-\d{2}-\d{2}([T ]\d{2}:\d{2}(:\d{2})?(Z|[+-]\d{2}:\d{2})?)?$")]


class Repair(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A repair of a node: jobs that began before it are no evidence of what the node is now."""

    node: Annotated[str, key("its name")]
    at: Annotated[Moment, key("when it was repaired, as 2026-11-28 or 2026-11-28T14:30 (UTC if no zone is given)")]
    what: Annotated[str, key("what was done; the report states it", min_length=1)]

    @property
    def moment(self) -> datetime.datetime:
        """When it was, with a time zone; the earliest moment there is if the calendar has no such day."""
        try:
            parsed = datetime.datetime.fromisoformat(self.at)
        except ValueError:
            parsed = datetime.datetime.min
        return parsed if parsed.tzinfo else parsed.replace(tzinfo=datetime.UTC)


class Acceptance(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a site accepts, with every default."""

    false_alarm_percent: Annotated[
        float,
        key(
            "the chance, in percent, that a campaign whose nodes are all within their tolerances has any node that "
            "DEVIATES; as much again for messages between nodes. Simultaneous intervals follow from it and from the "
            "number of components and nodes",
            gt=0,
            le=50,
        ),
    ] = 1.0
    criteria: Annotated[
        tuple[Criterion, ...],
        key(
            "what an outcome rests on: `core-to-core` (hops between cores), `messages`, or the terms of measurements "
            "under `cells`. A node is SAME where each of these was measured and is within its tolerances, and "
            "INCONCLUSIVE where one was planned and not measured. Everything else that is measured is reported, and "
            "what is beyond its tolerance there is a finding, too",
            min_length=1,
        ),
    ] = ("core-to-core", *(name for name, term in terms().items() if term.criterion))
    tolerances: Tolerances = Tolerances()
    priors: PriorPercents = PriorPercents()
    cells: Annotated[
        Mapping[Term, CellRules],
        key("tolerances and priors of the other measurements, by their term in `kernels/*/measurements.yaml`"),
    ] = msgspec.field(default_factory=cells)
    metrics: Annotated[
        Mapping[str, Metric],
        key("tolerances and priors of the metrics of a table, by their names there; a metric without has the defaults"),
    ] = {}
    fabric: FabricTolerances = FabricTolerances()
    required: Annotated[
        tuple[Measurement, ...],
        key("measurements that a node must have; a node without one is INVALID. Empty: whatever was planned"),
    ] = ()
    quality: Quality = Quality()
    fingerprint: FingerprintFields = FingerprintFields()
    limits: Annotated[tuple[ContractLimit, ...], key("absolute limits of a contract")] = ()
    waivers: Annotated[tuple[Waiver, ...], key("known findings that are not to count")] = ()
    repairs: Annotated[
        tuple[Repair, ...], key("repairs of nodes: a node is judged by the jobs that began after its last one")
    ] = ()

    @property
    def false_alarm(self) -> float:
        """The chance of any false alarm in a campaign, as a share."""
        return self.false_alarm_percent / 100

    def tolerance(self, term: str) -> float:
        """The relative tolerance of a term of pairs."""
        return float(getattr(self.tolerances.percent, "class_" if term == "class" else term)) / 100

    def least_ns(self, component_type: str) -> float:
        """What the tolerance of a component type of terms of pairs is at least, in ns."""
        return float(getattr(self.tolerances, COMPONENT_TYPES[component_type].tolerance_ns))

    def prior(self, level: Literal["run", "job"]) -> float:
        """The relative standard deviation that is assumed of pairs between runs or jobs."""
        return float(getattr(self.priors, level)) / 100

    def cell(self, term: str) -> CellRules:
        """Of a metric, or of a term of a kernel, `other` where it has none of its own."""
        if term in self.metrics:
            return self.metrics[term].cell
        return self.cells.get(term) or self.cells["other"]

    def waived(self, node: str, finding: str, day: str) -> str:
        """Until when a finding (its id) of a node is accepted on `day` (YYYY-MM-DD), and why; empty where it is not."""
        for rule in self.waivers:
            if rule.node == node and rule.finding in ("*", finding) and rule.until.isoformat() >= day:
                return f"until {rule.until}: {rule.reason}"
        return ""
