"""A component outside tolerance: its jobs and runs, its effect and the associated evidence."""

from __future__ import annotations

import math
from collections.abc import Mapping

import msgspec

from nodeprint.judge.outcome import Certainty
from nodeprint.judge.verdict.component import Component, Interval


class JobEffect(msgspec.Struct, frozen=True):
    """A finding's effect in one independent job. The interval is simultaneous over all jobs and the components of its
    component type. `runs` has the effect in each run by name (job1/run1). `shows`: the job as a whole is outside the
    tolerance. `showing` are its runs that show the finding."""

    job: str
    effect: float
    interval: Interval
    runs: Mapping[str, float]
    shows: bool = False
    showing: tuple[str, ...] = ()


class Finer(msgspec.Struct, frozen=True):
    """A finer component that deviates with the finding and is explained by it."""

    measurement: str
    component: Component
    effect: float
    interval: Interval
    tolerance: float


class Expected(msgspec.Struct, frozen=True):
    """The values for remeasuring a finding. `value` is the key of the compared value in a record. `dims` are the keys
    of its measurement point, and `at` their values at each point. For pairs, `home` has the NUMA nodes that may hold
    the line, or `any`.

    `usual` has the peers' values by measurement point, `weights` the weight of each point in the difference. A
    `statistic` of `mean` is the weighted mean of value / usual - 1; `log` is that of log(value / usual). Both subtract
    the peers' `center`. `median` is the median of the values themselves. Each point counts with its median over the
    passes of a run.
    """

    value: str
    statistic: str
    dims: tuple[str, ...]
    at: tuple[tuple[int | str, ...], ...]
    usual: tuple[float, ...]
    weights: tuple[float, ...]
    center: float


class Evidence(msgspec.Struct, frozen=True):
    """Evidence for a finding from the node's instruments. `seen` is None if unknown. `kind` is clock, temperature,
    throttling, memory-errors, lost-time or configuration. `value` and `peers` are in `unit`; `field` is a field of the
    fingerprint."""

    kind: str
    seen: bool | None
    value: float = float("nan")
    peers: float = float("nan")
    unit: str = ""
    field: str = ""


class Finding(msgspec.Struct, frozen=True):
    """A component of a node that is outside its tolerance.

    `id` names its kind, as waivers do (core-slow). `effect` is the mean over the jobs, or single runs, that show it.
    `interval` is that of this mean, simultaneous over all jobs and the components of its component type. It leaves
    `tail` at each end. `half_95` is half of the 95% interval. `tolerance` is the deciding one, in the direction of the
    effect. For a rate with a tolerance of 10%, it is 10% higher or 9.1% lower. `times_tolerance` is the effect in
    tolerances.

    `value` and `peers` are the measured values in those jobs or runs, in `unit`. `peer` names the peer if the node has
    only one; the effect of a latency is relative to the middle of both then. `pairs` has the pairs of CPUs of this
    effect by their first CPU, `cells` its cells for other measurements. `places` is their number, `places_beyond` that
    of those beyond the tolerance by themselves. `worse`: on the bad side. `consistent_with` and `evidence` are keys
    with their values, never sentences. `shared_by` are other nodes with the same difference. `error` (relative),
    `degrees` of freedom and `tail` determine the interval; they are 0 if no interval decided. `baseline` names the
    campaigns of a baseline if the node is compared with its own past; `peers` is that past then. If several components
    are one finding, `figures_of` is the component with the largest effect, which `value`, `peers` and `effect_unit`
    describe. `expected` has the values for remeasuring it, None if one node is not enough. `check` is the command for
    it, in the campaign's directory.
    """

    id: str
    state: Certainty
    measurement: str
    home: int
    component: Component
    effect: float
    effect_unit: float
    interval: Interval
    half_95: float
    tolerance: float
    tolerance_unit: float
    times_tolerance: float
    value: float
    peers: float
    unit: str
    worse: bool
    by_job: tuple[JobEffect, ...]
    finer: tuple[Finer, ...] = ()
    pairs: Mapping[int, tuple[int, ...]] = {}
    cells: tuple[Mapping[str, int | str], ...] = ()
    places: int = 0
    places_beyond: int = 0
    consistent_with: tuple[str, ...] = ()
    evidence: tuple[Evidence, ...] = ()
    remedy: str = ""
    shared_by: tuple[str, ...] = ()
    waived: str = ""
    error: float = 0.0
    degrees: float = 0.0
    tail: float = 0.0
    baseline: str = ""
    peer: str = ""
    figures_of: Component | None = None
    expected: Expected | None = None
    check: str = ""

    @property
    def of_limit(self) -> bool:
        """Whether it is beyond a limit of the contract instead of a tolerance; `peers` has the limit then."""
        return self.id == "limit"

    @property
    def of_effect(self) -> str:
        """The measurement whose scale the effect has; empty for a limit, as that effect is relative to the limit."""
        return "" if self.of_limit else self.measurement

    @property
    def fails_at(self) -> float:
        """The value at which the finding starts, in `unit`: the limit, or the peers' value shifted by the tolerance."""
        if self.of_limit:
            return self.peers
        return self.peers + math.copysign(self.tolerance_unit, self.effect)

    @property
    def runs(self) -> tuple[str, ...]:
        """The runs that measured it, over all jobs."""
        return tuple(name for job in self.by_job for name in job.runs)

    @property
    def jobs_showing(self) -> tuple[str, ...]:
        """The jobs that show it, as a whole."""
        return tuple(job.job for job in self.by_job if job.shows)

    @property
    def runs_of_effect(self) -> tuple[tuple[str, ...], ...]:
        """The runs of the effect by job: all runs of the jobs that show it, or else the single runs that show it."""
        whole = tuple(tuple(job.runs) for job in self.by_job if job.shows)
        single = tuple(job.showing for job in self.by_job if job.showing)
        return whole or single or tuple(tuple(job.runs) for job in self.by_job)

    @property
    def deciding(self) -> int:
        """The index in `by_job` of the job that shows it most clearly."""
        jobs = range(len(self.by_job))
        return max(jobs, key=lambda n: (self.by_job[n].shows, math.copysign(1, self.effect) * self.by_job[n].effect))

    @property
    def counts(self) -> bool:
        """Whether it is part of the outcome."""
        return not self.waived

    @property
    def accepted(self) -> bool:
        """Whether it would count without a waiver."""
        return bool(self.waived)

    @property
    def is_outside(self) -> bool:
        """Whether the node is outside its tolerance: an intermittent finding is so only in some jobs."""
        return self.state is not Certainty.INTERMITTENT
