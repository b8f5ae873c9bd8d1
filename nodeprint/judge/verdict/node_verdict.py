"""The verdict on a node: its outcome with reasons, findings, agreement with its peers, and disturbances."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from nodeprint.judge.outcome import Outcome, OutcomeClass, ReasonDetail
from nodeprint.judge.verdict.component import Component
from nodeprint.judge.verdict.finding import Finding
from nodeprint.judge.verdict.node_figures import CellFigure, ClassFigure


class Agreement(msgspec.Struct, frozen=True):
    """The agreement of a node with its peers in one judged metric, for the component that is nearest to its tolerance.

    `within` is the smallest tolerance at which the node would be SAME (the far end of the 90% interval), infinite with
    one run. `share` is `within` divided by the tolerance: up to 1, the node is SAME. If the metric is undecided,
    `remedy` says how to resolve it: `runs`, `jobs`, `nodes`, `quiet`, `job`, `settings`, `tolerance`, `time` or
    `none`. `quiet`: the node's runs differ, `run` most. `job`: the 90% interval is outside the tolerance, the
    simultaneous one is not. `settings`: fewer than two thirds of the nodes agree. `tolerance`: the difference itself is
    close to the tolerance. `time`: the metric has a trend with the order of measuring. `needed` is the number that the
    remedy requires, in all jobs together.
    """

    metric: str
    criterion: bool
    measurement: str
    component: Component
    within: float
    tolerance: float
    unit: str
    within_unit: float
    tolerance_unit: float
    share: float
    effect: float
    runs: int
    remedy: str = ""
    needed: int = 0
    run: str = ""


class Reason(msgspec.Struct, frozen=True):
    """The reason for a node's outcome, for some outcomes with `why`. `of` has its subjects: measurements, component
    types or fields. `detail` is text of another program (Slurm's reason, an unreadable value), which is displayed but
    never interpreted. If the node is configured differently, `values` has, by field, its value and that of most
    nodes."""

    outcome: Outcome
    why: ReasonDetail | None = None
    of: tuple[str, ...] = ()
    share: float = 0.0
    detail: str = ""
    values: Mapping[str, tuple[str, str]] = {}

    @property
    def key(self) -> str:
        """The key of its sentence in reports/texts.yaml."""
        return str(self.why or self.outcome)


class Disturbance(msgspec.Struct, frozen=True):
    """A disturbance of a measurement, or another observation on the node. `kind` is disturbed, missing, odd-run,
    stolen, loud-cpus, busy, hot, throttled, memory-errors, clock-fell, record, runs-differ, passes-differ, jobs-differ,
    cpus-moved or unpinned. `share` or `value` give the amount, `cpus` the CPUs. An odd run's `value` is its ratio to
    the other runs of its job in the points that differ. Its `share` is the distance of this ratio from 1.

    If repetitions differ, `value` is the factor. `odd` are those that differ from the majority (empty without one;
    job1, job1/run2, job1/run2/pass1). A typical measurement point has `low` and `high` (in `unit`) in the repetitions
    `low_in` and `high_in`. The kind cpus-moved: on a virtual machine, they differ so much that its CPUs must have been
    others. The kind unpinned is the same on bare metal.
    """

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


class Epoch(msgspec.Struct, frozen=True):
    """Jobs of a node that no longer count, because the node changed since: by a repair or in `fields` of its
    fingerprint. `repair` is the date, `what` the work done."""

    jobs: tuple[str, ...]
    repair: str = ""
    what: str = ""
    fields: tuple[str, ...] = ()


class NodeVerdict(msgspec.Struct, frozen=True):
    """A node's outcome and its `class`, the `reasons` for it with the decisive one first, its findings by severity, and
    its results.

    `group` is the letter of its group in a split fleet. `warnings` include fields of the fingerprint in which it
    differs from the majority without being another configuration. `measured` is the start of its newest run (ISO 8601),
    empty if unknown. `untaken` has the measurements that its newest job did not take, and the node's reason. `jobs` are
    the jobs that it is judged by, `former` the epochs of excluded jobs.
    """

    outcome: Outcome
    reasons: tuple[Reason, ...]
    findings: tuple[Finding, ...] = ()
    agreements: tuple[Agreement, ...] = ()
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
    former: tuple[Epoch, ...] = ()
    outcome_class: OutcomeClass = msgspec.field(name="class", default=OutcomeClass.UNDETERMINED)

    def __post_init__(self) -> None:
        """Derive the class from the outcome, ignoring the file."""
        msgspec.structs.force_setattr(self, "outcome_class", self.outcome.outcome_class)

    @property
    def is_alone(self) -> bool:
        """Whether the node has no peer among the measured nodes."""
        return self.outcome is Outcome.NO_PEERS or any(
            r.why is ReasonDetail.ALONE_IN_COMPONENT for r in self.reasons[:1]
        )

    @property
    def counted(self) -> tuple[Finding, ...]:
        """The findings that are part of the outcome."""
        return tuple(finding for finding in self.findings if finding.counts)

    @property
    def accepted(self) -> tuple[Finding, ...]:
        """The findings that would count without a waiver."""
        return tuple(finding for finding in self.findings if finding.accepted)
