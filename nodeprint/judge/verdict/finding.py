"""A part of a node that is outside its tolerance: in which jobs and runs, by how much, and what goes with it."""

from __future__ import annotations

import math
from collections.abc import Mapping

import msgspec

from nodeprint.judge.outcome import Certainty
from nodeprint.judge.verdict.component import Component, Interval


class JobEffect(msgspec.Struct, frozen=True):
    """A finding's effect in one independent job: the interval that is simultaneous over all jobs and the components of
    its component type, and the effect in each run by its name (job1/run1). `shows`: the job as a whole is outside the
    tolerance; `showing` are its runs that the finding is of."""

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
    """What a finding is measured again by. `value` is the key of a record that is compared, `dims` those that say its
    place, `at` their values by place (of pairs `home` has the NUMA nodes that the line may be on, or `any`).

    `usual` is what the peers have by place, `weights` what a place counts in the difference: a `statistic` of `mean` is
    the weighted mean of value / usual - 1, of `log` that of log(value / usual), less the peers' `center`; of `median`
    the median of the values themselves. At each place the median over the passes of a run counts.
    """

    value: str
    statistic: str
    dims: tuple[str, ...]
    at: tuple[tuple[int | str, ...], ...]
    usual: tuple[float, ...]
    weights: tuple[float, ...]
    center: float


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


class Finding(msgspec.Struct, frozen=True):
    """A part of a node that is outside its tolerance.

    `id` names its kind, as waivers do (core-slow). `effect` is the mean over the jobs, or single runs, that show
    it, `interval` that of this mean, simultaneous over all jobs and the components of its component type (it leaves
    `tail` at each end), `half_95` half of its 95 % interval. `tolerance` is the one that decided, in the direction of
    the effect (of a rate with a tolerance of 10 %, 10 % higher or 9.1 % lower), and `times_tolerance` how many times it
    the effect is. `value` and `peers` are what was measured in these, in `unit`. `pairs` has the pairs of CPUs that it
    is of, by their first CPU; `cells` its cells for measurements that are no pairs. `worse`: on the bad side.
    `consistent_with` and `evidence` are keys with their figures, never sentences; `shared_by` are other nodes with the
    same difference. `error` (relative), `degrees` of freedom and the `tail` that is left at each end are what the
    interval is made of; 0 of a finding that no interval decided. `baseline` names the campaigns of a baseline where the
    node is compared with its own past: `peers` is that past then. `figures_of` is the component that `value`, `peers`
    and `effect_unit` are of where several components are one finding: that in which it is largest. `expected` is what
    it is measured again by, None where one node alone cannot be, and `check` the command for it, in the folder of the
    report.
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
    consistent_with: tuple[str, ...] = ()
    evidence: tuple[Evidence, ...] = ()
    remedy: str = ""
    shared_by: tuple[str, ...] = ()
    waived: str = ""
    error: float = 0.0
    degrees: float = 0.0
    tail: float = 0.0
    baseline: str = ""
    figures_of: Component | None = None
    expected: Expected | None = None
    check: str = ""

    @property
    def of_limit(self) -> bool:
        """Whether it is beyond a limit of the contract, which is in `peers` then, and not beyond a tolerance."""
        return self.id == "limit"

    @property
    def fails_at(self) -> float:
        """From which value on the finding is there, in `unit`: the peers' with the tolerance, or the limit itself."""
        if self.of_limit:
            return self.peers
        return self.peers + math.copysign(self.tolerance_unit, self.effect)

    @property
    def runs(self) -> tuple[str, ...]:
        """The runs that were made of it, over all jobs."""
        return tuple(name for job in self.by_job for name in job.runs)

    @property
    def jobs_showing(self) -> tuple[str, ...]:
        """The jobs that show it, as a whole."""
        return tuple(job.job for job in self.by_job if job.shows)

    @property
    def deciding(self) -> int:
        """The number in `by_job` of the job that shows it most."""
        jobs = range(len(self.by_job))
        return max(jobs, key=lambda n: (self.by_job[n].shows, math.copysign(1, self.effect) * self.by_job[n].effect))

    @property
    def counts(self) -> bool:
        """Whether it is part of the outcome."""
        return not self.waived

    @property
    def accepted(self) -> bool:
        """Whether it would count, and the site accepts it."""
        return bool(self.waived)

    @property
    def is_outside(self) -> bool:
        """Whether the node is outside its tolerance: what comes and goes is so in some jobs alone."""
        return self.state is not Certainty.INTERMITTENT
