"""The types of acceptance.yaml: every key with its meaning, default and range.

docs/hooks.py makes the schema and the tables of config/README.md from them. A site writes only the differences from the
defaults into config/acceptance.yaml. Percentages are relative to the peers' value.
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
    """The IDs of all kinds of findings, as waivers use them."""
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


# A misspelled name would have no effect, so only known names are valid.
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
    """Tolerances of pairs: the largest of percent, nanoseconds and clock ticks."""

    percent: TolerancePercents = TolerancePercents()
    least_ns: Annotated[NotNegative, key("minimum tolerance in nanoseconds")] = 0.5
    # In published EPYC matrices the core-to-core latency inside a CCX is 20 ns. CCXs are up to 0.9 ns from their
    # median, and cores up to 0.5 ns from others at the same position (1.1 ns if cores are fused off).
    ccx_ns: Annotated[NotNegative, key("minimum tolerance in nanoseconds for the mean inside a CCX")] = 1.0
    core_in_ccx_ns: Annotated[NotNegative, key("minimum tolerance in nanoseconds for a single core inside its CCX")] = (
        2.0
    )
    harvested_ccx_ns: Annotated[
        NotNegative,
        key("as `ccx_ns`, for processors with fused-off cores, whose positions differ from chip to chip"),
    ] = 2.5
    clock_ticks: Annotated[float, key("minimum tolerance in ticks of the clock", ge=0)] = 2.0


class PriorPercents(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Assumed standard deviations of pairs, in percent."""

    run: Annotated[
        Percent,
        key("standard deviation between runs, used if no node has two runs"),
    ] = 0.63
    job: Annotated[Percent, key("assumed standard deviation between jobs, and its minimum")] = 0.1


class CellRules(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Tolerance and priors of a measurement other than pairs. For jitter, all are percentages of the time, and
    `percent` is the additional time that a CPU may lose compared with its peers."""

    percent: Annotated[Percent, key("the tolerance")]
    run: Annotated[Percent, key("standard deviation between runs, used if no node has two")]
    job: Annotated[
        NotNegative | UnsetType,
        key("assumed standard deviation between jobs, and its minimum; if omitted, a third of `run`"),
    ] = UNSET
    percent_without_boost: Annotated[
        Percent | UnsetType,
        key("the tolerance if boost is off on all nodes; if omitted, `percent`"),
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


#: The rules of a kernel without a term of its own, and their source.
OTHER = CellRules(10.0, 2.0, 0.67), "assumed; a kernel without a term of its own"


def cells() -> dict[str, CellRules]:
    """The tolerances and priors of every term, from kernels/*/measurements.yaml."""
    of_terms = {
        name: CellRules(term.tolerance, term.run, _given(term.job), _given(term.tolerance_without_boost))
        for name, term in terms().items()
    }
    return of_terms | {"other": OTHER[0]}


def _given(value: float | None) -> float | UnsetType:
    return UNSET if value is None else value


class MetricPrior(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Assumed standard deviations of a metric of a table, in percent (from STREAM, `docs/validation.md`)."""

    run: Annotated[Percent, key("standard deviation between runs, used if no node has two")] = 1.0
    job: Annotated[NotNegative, key("assumed standard deviation between jobs, and its minimum")] = 0.5


class Metric(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Tolerance and priors of a metric in a table from another program (`nodeprint judge TABLE`)."""

    tolerance: Annotated[
        Percent,
        key("tolerance in percent; if omitted, a metric in Hz uses that of `cells.clock`"),
    ] = 5.0
    better: Annotated[
        Literal["higher", "lower"] | UnsetType,
        key("the better direction; if omitted, `lower` for a time, else `higher`"),
    ] = UNSET
    criterion: Annotated[bool, key("whether the metric is a deciding metric")] = True
    prior: MetricPrior = MetricPrior()

    @property
    def cell(self) -> CellRules:
        """The rules in the form that other measurements have."""
        return CellRules(self.tolerance, self.prior.run, self.prior.job)


class FabricTolerances(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Tolerances of messages between nodes (linktest-fabric), in percent of their time."""

    node_percent: Annotated[Percent, key("tolerance for a node with all others")] = 5.0
    link_percent: Annotated[
        Percent,
        key("tolerance for the link between two nodes, or one direction of it, beyond the share of its nodes"),
    ] = 10.0


class Quality(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Limits of the quality of a job: the first two make a node INVALID, and the last three cause warnings."""

    missing_pairs_percent: Annotated[Percent, key("percent of the pairs that were asked for")] = 10.0
    disturbed_pairs_percent: Annotated[Percent, key("percent of the pairs that were measured")] = 25.0
    steal_percent: Annotated[Percent, key("steal time of a run in percent of the CPU time")] = 1.0
    clock_fell_percent: Annotated[
        Percent,
        key("fall of the clock in percent, from the first to the last tenth of a run, median over cores"),
    ] = 5.0
    hottest_c: Annotated[float, key("degrees Celsius of any sensor, after the clock kernel")] = 95.0


class FingerprintFields(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The compared fields of a node's fingerprint."""

    hard: Annotated[tuple[Field, ...], key("fields whose difference makes another configuration")] = (
        "cpu", "cpu_family", "cpu_model", "cpu_stepping", "sockets", "cores", "cpus", "cores_per_l3", "smt",
        "numa_nodes", "numa_nodes_per_socket", "numa_distances", "memory_per_node_gib", "cmdline", "governor", "boost",
        "virtual", "kernel_hash", "compiler", "homes",
    )  # fmt: skip
    soft: Annotated[tuple[Field, ...], key("fields whose difference is a warning, and evidence for findings")] = (
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
            "keys of the kernel command line that differ by node, in addition to BOOTIF, ip, root and other known ones"
        ),
    ] = ()


#: The closest level of the topology that the two CPUs of a pair share.
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
    """An absolute limit on the median of a class of pairs (ns) or of a row (ns, bytes or cycles per second)."""

    measurement: Annotated[Measurement, key("its name, such as `bandwidth-nodes`")]
    class_: Annotated[PairClass | UnsetType, key("the class of pairs; a limit has either this or `row`")] = (
        msgspec.field(name="class", default=UNSET)
    )
    row: Annotated[str | UnsetType, key("the row's name in the report's table and in verdict.json")] = UNSET
    at_most: Annotated[float | UnsetType, key("a limit has this, `at_least`, or both")] = UNSET
    at_least: Annotated[float | UnsetType, key("as `at_most`")] = UNSET
    at_least_percent: Annotated[
        Percent | UnsetType,
        key("the limit of a row of bandwidth or load in percent of theoretical peak, instead of `at_least`"),
    ] = UNSET
    reason: Annotated[str, key("the reason that the report states, such as the contract's number")]

    def least(self, peak: float) -> float:
        """The lower limit, from the theoretical `peak` (0 if unknown); 0 without a lower limit."""
        if self.at_least_percent is not UNSET:
            return self.at_least_percent / 100 * peak
        return 0.0 if self.at_least is UNSET else self.at_least

    @property
    def figure(self) -> str:
        """The name of the class or row."""
        return str(self.row if self.class_ is UNSET else self.class_)


class Waiver(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A finding that is accepted until a date: it is reported, but does not count. A waiver of a link between nodes
    (fabric-link) applies at either end."""

    node: Annotated[str, key("its name")]
    finding: Annotated[FindingId, key("its id in verdict.json; `*` for any")]
    reason: Annotated[str, key("the reason that the report states", min_length=1)]
    until: Annotated[datetime.date, key("the last day of the waiver, such as 2026-12-31")]


#: A date with an optional time; UTC without a time zone.
Moment = Annotated[str, msgspec.Meta(pattern=r"^\d{4}-\d{2}-\d{2}([T ]\d{2}:\d{2}(:\d{2})?(Z|[+-]\d{2}:\d{2})?)?$")]


class Repair(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A repair of a node: jobs that began before it do not count."""

    node: Annotated[str, key("its name")]
    at: Annotated[Moment, key("time of the repair, such as 2026-11-28 or 2026-11-28T14:30 (UTC if no zone is given)")]
    what: Annotated[str, key("the repair, as the report states it", min_length=1)]

    @property
    def moment(self) -> datetime.datetime:
        """The time of the repair, with a time zone; the earliest possible time if the date does not exist."""
        try:
            parsed = datetime.datetime.fromisoformat(self.at)
        except ValueError:
            parsed = datetime.datetime.min
        return parsed if parsed.tzinfo else parsed.replace(tzinfo=datetime.UTC)


class Acceptance(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The acceptance rules of a site, with every default."""

    false_alarm_percent: Annotated[
        float,
        key(
            "the chance, in percent, of any DEVIATES in a campaign with all nodes within their tolerances",
            gt=0,
            le=50,
        ),
    ] = 1.0
    criteria: Annotated[
        tuple[Criterion, ...],
        key(
            "the deciding metrics: `core-to-core`, `messages`, or terms of measurements under `cells`",
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
        key("tolerances and priors of the metrics of a table, by name; other metrics have the defaults"),
    ] = {}
    fabric: FabricTolerances = FabricTolerances()
    required: Annotated[
        tuple[Measurement, ...],
        key("measurements without which a node is INCONCLUSIVE, in addition to the planned ones"),
    ] = ()
    quality: Quality = Quality()
    fingerprint: FingerprintFields = FingerprintFields()
    limits: Annotated[tuple[ContractLimit, ...], key("absolute limits of a contract")] = ()
    waivers: Annotated[tuple[Waiver, ...], key("known findings that do not count")] = ()
    repairs: Annotated[
        tuple[Repair, ...], key("repairs of nodes; only jobs that began after a node's last repair count")
    ] = ()

    @property
    def false_alarm(self) -> float:
        """The chance of any false alarm in a campaign, as a share."""
        return self.false_alarm_percent / 100

    def tolerance(self, term: str) -> float:
        """The relative tolerance of a term of pairs."""
        return float(getattr(self.tolerances.percent, "class_" if term == "class" else term)) / 100

    def least_ns(self, component_type: str) -> float:
        """The minimum tolerance of a component type of pairs, in ns."""
        return float(getattr(self.tolerances, COMPONENT_TYPES[component_type].tolerance_ns))

    def prior(self, level: Literal["run", "job"]) -> float:
        """The assumed relative standard deviation of pairs between runs or jobs."""
        return float(getattr(self.priors, level)) / 100

    def cell(self, term: str) -> CellRules:
        """The rules of a metric or of a kernel's term; those of `other` if it has no rules of its own."""
        if term in self.metrics:
            return self.metrics[term].cell
        return self.cells.get(term) or self.cells["other"]

    def waived(self, node: str, finding: str, day: str) -> str:
        """The last day and reason of a waiver that applies to a finding (its ID) on `day` (YYYY-MM-DD); empty without
        one."""
        for rule in self.waivers:
            if rule.node == node and rule.finding in ("*", finding) and rule.until.isoformat() >= day:
                return f"until {rule.until}: {rule.reason}"
        return ""
