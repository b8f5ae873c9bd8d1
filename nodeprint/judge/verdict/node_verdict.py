"""What a verdict says of a node: its outcome with the reasons, what was found, how near it is to its tolerances, and
what disturbed its measurements."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from nodeprint.judge.outcome import Outcome, OutcomeClass, ReasonDetail
from nodeprint.judge.verdict.component import Component
from nodeprint.judge.verdict.finding import Finding
from nodeprint.judge.verdict.node_figures import CellFigure, ClassFigure


class Agreement(msgspec.Struct, frozen=True):
    """How alike a node is to its peers in one metric that is judged: the component that comes nearest to its tolerance.

    `within` is the smallest tolerance at which the node would be the same there (the far end of the 90 % interval),
    infinite with one run; `share` how much of the tolerance that is: up to 1 the node is the same. `remedy` is what
    resolves it where that is undecided: `runs`, `nodes`, `quiet` (the node's runs differ, `run` most), `tolerance` (the
    difference itself is close to the tolerance), `time` (the metric goes with the order of measuring) or `none`, with
    the number that is `needed`.
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
    """Why a node has its outcome: the outcome, for some also `why`, what the reason is of (measurements, component
    types or fields), and in `detail` the text of another program (Slurm's reason, what cannot be read), which is shown
    and never interpreted. Of a node that is configured differently `values` has by field its value and that of most
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
    """Something that disturbed a measurement or concerns the node: `kind` is disturbed, missing, odd-run, stolen,
    loud-cpus, busy, hot, throttled, memory-errors, clock-fell, record, runs-differ, passes-differ, jobs-differ,
    cpus-moved or unpinned; `share` or `value` say how much of it, `cpus` where.

    Of repetitions that differ `value` is the factor, `odd` are those that differ from the majority (empty without one;
    job1, job1/run2, job1/run2/pass1), and a typical place has `low` and `high` (in `unit`) in the repetitions `low_in`
    and `high_in`. cpus-moved: they differ so far, on a virtual machine, that its CPUs must have been others; unpinned:
    the same on bare metal."""

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
    """Jobs of a node that do not count, as it is another machine now: since a `repair` (its date) and what was done, or
    since `fields` of its fingerprint changed."""

    jobs: tuple[str, ...]
    repair: str = ""
    what: str = ""
    fields: tuple[str, ...] = ()


class NodeVerdict(msgspec.Struct, frozen=True):
    """A node's outcome and its `class`, the `reasons` for it, the decisive one first, its findings by severity, and its
    figures.

    `group` is the letter of its group in a split fleet. `notes` are fields of the fingerprint in which it differs from
    the majority without being another configuration. `measured` is when its newest run began (ISO 8601), empty where
    that is unknown. `untaken` has the measurements of its newest job that were not taken, and the node's reason. `jobs`
    are those that it is judged by, `former` the epochs whose jobs are not.
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
        """The class follows from the outcome, whatever a file says."""
        msgspec.structs.force_setattr(self, "outcome_class", self.outcome.outcome_class)

    @property
    def is_alone(self) -> bool:
        """Whether no other measured node is of its kind."""
        return self.outcome is Outcome.NO_PEERS or any(
            r.why is ReasonDetail.ALONE_IN_COMPONENT for r in self.reasons[:1]
        )

    @property
    def counted(self) -> tuple[Finding, ...]:
        """The findings that are part of the outcome."""
        return tuple(finding for finding in self.findings if finding.counts)

    @property
    def accepted(self) -> tuple[Finding, ...]:
        """The findings that would count, and the site accepts them."""
        return tuple(finding for finding in self.findings if finding.accepted)
