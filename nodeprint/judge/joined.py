"""Several campaigns as one: matrices whose rows are the jobs of all of them, so that a node is compared with its own
past by the terms, spreads and causes that it is compared with other nodes by."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace

import msgspec
import numpy as np
import numpy.typing as npt

from nodeprint.data.places.layout import Ints
from nodeprint.data.places.measured import Measured
from nodeprint.data.store.packed import PackedFleet
from nodeprint.judge import tolerances
from nodeprint.judge.acceptance_file import Acceptance
from nodeprint.judge.causes import causes
from nodeprint.judge.deviations import priors, run_means
from nodeprint.judge.population import Population
from nodeprint.judge.reduction import (
    Matrix,
    PlaceSet,
    Reals,
    mean_of_runs,
    moment,
    padded,
    term_values,
)
from nodeprint.judge.terms import Cause
from nodeprint.stats import intervals
from nodeprint.stats.rounds import FEWEST, Rounds, rounds
from nodeprint.stats.runs import JobSpread, RunSpread, job_spread, run_spread

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

#: A round is a day of a campaign; a day has fewer digits than this.
_DAY_S, _MOST_DAYS = 86400.0, 1e6
#: A pair of campaigns says nothing of how long what jobs differ by lasts; so many jobs of a node do.
_SEVERAL = 4
#: The correlation of a job with the next one is at most this.
_MOST_ALIKE = 0.95


class JobAt(msgspec.Struct, frozen=True, order=True):
    """An independent job of a node: when it began (ISO 8601; empty if unknown), in which campaign (its number), and the
    name of its job there."""

    started: str
    campaign: int
    job: str
    node: str


class JoinedMatrix(msgspec.Struct, frozen=True):
    """A part of a quantity over several campaigns: a `matrix` whose nodes are numbers in `Joined.names`, with the job
    that each row is. The rows of a node are in the order of time."""

    matrix: Matrix
    jobs: tuple[JobAt, ...]


class Joined(msgspec.Struct, frozen=True):
    """Campaigns as one: the `names` of all nodes, their jobs in every part of every quantity, and the numbers of the
    campaigns (`copies`) of which some jobs are in another one, too, and count once."""

    names: tuple[str, ...]
    matrices: tuple[JoinedMatrix, ...]
    copies: frozenset[int]


class _JobMeasured(msgspec.Struct, frozen=True):
    """A job of a node in a quantity: its level (place), and by component the values of its runs (run, term)."""

    at: JobAt
    began: float
    runs: tuple[str, ...]
    level: Reals
    values: tuple[Floats, ...]


class _Kind:
    """A measurement over campaigns: its points and sets of them in the newest, its level (point) in the oldest, and
    its `jobs`."""

    def __init__(self, newest: Measured, components: Sequence[PlaceSet]) -> None:
        self.newest = newest
        self.components = [
            component for component in components if component.measured is newest and component.terms.terms
        ]
        self.template: Reals | None = None
        self.jobs: list[_JobMeasured] = []

    def values(self, level: Reals) -> tuple[Floats, ...]:
        """By component the values (row, term) of the rows of the next campaign."""
        with warnings.catch_warnings(action="ignore", category=RuntimeWarning):  # what no run has stays NaN
            usual = np.nanmedian(level, axis=0)
        known = self.template
        self.template = usual if known is None else np.where(np.isnan(known), usual, known)
        return tuple(
            term_values(level[:, component.places], self.template[component.places], component.terms, component.scale)
            for component in self.components
        )


def join(
    fleets: Sequence[PackedFleet],
    rules: Acceptance,
    nodes: Sequence[Collection[str]] | None = None,
    *,
    distinct: bool = True,
) -> Joined:
    """The jobs of some campaigns, which are in the order of time; with `nodes` (campaign) of these alone, and each once
    if they are `distinct`. Jobs that were disturbed are in none.

    Places are those of the newest campaign, levels relative to those of the oldest that has the place.
    """
    kinds: dict[tuple[object, ...], _Kind] = {}
    for number in (len(fleets) - 1, *range(len(fleets))):
        fleet = fleets[number] if nodes is None else _of_nodes(fleets[number], nodes[number])
        population = Population.of(fleet, rules, ())
        first = not kinds
        for reduced in population.reduced:
            kind = kinds.setdefault(_kind(reduced), _Kind(reduced, population.components))
            if not first:
                kind.jobs.extend(_jobs(population, reduced, kind, number))
    names = sorted({of_job.at.node for kind in kinds.values() for of_job in kind.jobs})
    matrices: list[JoinedMatrix] = []
    copies = set[int]()
    for kind in kinds.values():
        ordered = sorted(kind.jobs, key=lambda of_job: (of_job.at.node, of_job.at))
        kept = _distinct(ordered, fleets) if distinct else ordered
        copies |= {of_job.at.campaign for of_job in ordered} - {of_job.at.campaign for of_job in kept}
        matrices += _matrices(kind, kept, names) if kept else []
    return Joined(tuple(names), tuple(matrices), frozenset(copies))


def _of_nodes(fleet: PackedFleet, names: Collection[str]) -> PackedFleet:
    """A fleet without the runs of other nodes."""
    wanted = np.array([number for number, node in enumerate(fleet.nodes) if node.name in names], dtype=np.int64)
    if len(wanted) == len(fleet.nodes):
        return fleet
    kept = ((quantity, np.flatnonzero(np.isin(quantity.node, wanted))) for quantity in fleet.quantities)
    return replace(fleet, quantities=tuple(quantity.of_rows(rows) for quantity, rows in kept if len(rows)))


def _kind(quantity: Measured) -> tuple[object, ...]:
    """Equal for what can be compared over campaigns."""
    names = (getattr(quantity, key) for key in ("measurement", "operation", "quantity", "unit", "dims"))
    return (*names, quantity.layout.key)


def _jobs(population: Population, reduced: Measured, kind: _Kind, campaign: int) -> Iterator[_JobMeasured]:
    """The independent jobs of a campaign in a quantity."""
    nodes = population.fleet.nodes
    level = _at_places(kind.newest, reduced)
    of_components = kind.values(level)
    for i, jobs in reduced.independent_jobs.items():
        for together in jobs if not nodes[i].unusable else ():
            rows = [row for job in together for row in reduced.rows[i][job]]
            started = _started(population, i, together)
            at = moment(started)
            yield _JobMeasured(
                JobAt(started, campaign, f"job{together[-1]}", nodes[i].name),
                float("nan") if at is None else at.timestamp(),
                tuple(f"job{reduced.job[row]}/run{reduced.run[row]}" for row in rows),
                mean_of_runs(level[rows][None])[0],
                tuple(np.asarray(values[rows], dtype=np.float64) for values in of_components),
            )


def _started(population: Population, i: int, jobs: Sequence[int]) -> str:
    """When the first of some jobs of a node began, by any of its measurements."""
    starts = (q.started[row] for q in population.reduced for job in jobs for row in q.rows.get(i, {}).get(job, ()))
    return min(filter(None, starts), default="")


def _at_places(first: Measured, later: Measured) -> Reals:
    """The levels (row, place) of a campaign at the places of another, NaN where it has none."""
    if first.names == later.names and all(np.array_equal(first.places[dim], later.places[dim]) for dim in first.dims):
        return later.level
    at = {tuple(later.place(number).values()): number for number in range(later.size)}
    column = np.array([at.get(tuple(first.place(number).values()), -1) for number in range(first.size)])
    return np.asarray(np.where(column < 0, np.nan, later.level[:, column]), dtype=later.level.dtype)


def _distinct(measured: Sequence[_JobMeasured], fleets: Sequence[PackedFleet]) -> list[_JobMeasured]:
    """Jobs that are not in another campaign as well: of one node, begun in the same second. Simulated campaigns may all
    begin at one time; of these the values are the same, too."""
    first: dict[tuple[str, str], list[_JobMeasured]] = {}
    out = []
    for of_job in measured:
        former = first.setdefault((of_job.at.node, of_job.at.started), [])
        alike = (
            not fleets[of_job.at.campaign].simulated or np.array_equal(of_job.level, other.level, equal_nan=True)
            for other in former
        )
        if not (of_job.at.started and any(alike)):
            out.append(of_job)
        former.append(of_job)
    return out


def _matrices(kind: _Kind, measured: Sequence[_JobMeasured], names: Sequence[str]) -> Iterator[JoinedMatrix]:
    """A matrix for each part of a quantity, from its jobs in the order of nodes and time."""
    position = {name: number for number, name in enumerate(names)}
    nodes, owner = np.unique([position[of_job.at.node] for of_job in measured], return_inverse=True)
    counts = np.cumsum([0, *(len(of_job.runs) for of_job in measured)]).tolist()
    rows = [range(begin, end) for begin, end in itertools.pairwise(counts)]
    template = kind.template if kind.template is not None else np.zeros(0)
    for number, component in enumerate(kind.components):
        values = np.concatenate([of_job.values[number] for of_job in measured])
        if not np.isfinite(values).any():
            continue
        matrix = Matrix(
            component,
            nodes,
            owner,
            tuple(of_job.runs for of_job in measured),
            np.array([of_job.began for of_job in measured]),
            tuple([row] for row in range(len(measured))),
            np.stack([of_job.level[component.places] for of_job in measured]),
            template[component.places],
            np.asarray(padded(values, rows), dtype=np.float64),
        )
        yield JoinedMatrix(matrix, tuple(of_job.at for of_job in measured))


class Past(msgspec.Struct, frozen=True, dict=True):
    """What the jobs of a matrix show of its nodes over time: their `means` over runs (row, component) on the model's
    scale, of so many `runs` (row, component), and what all nodes `moved` by in the round of each (row, component), 0 if
    fewer than three nodes say so. `run` is the spread between runs, whose ratio is of each job; `tolerance` (component)
    what is accepted, and `assumed` (component) the variance between jobs that is."""

    of: JoinedMatrix
    means: Floats
    runs: Floats
    moved: Floats
    run: RunSpread
    rounds: Rounds
    tolerance: Floats
    assumed: Floats

    @property
    def matrix(self) -> Matrix:
        """The matrix of all jobs."""
        return self.of.matrix

    @property
    def own(self) -> Floats:
        """The means of jobs without what all nodes moved by (row, component)."""
        return self.means - self.moved

    @property
    def of_runs(self) -> Floats:
        """The variance of each mean by runs (row, component)."""
        return np.asarray(self.run.pooled * self.run.ratio / np.maximum(self.runs, 1))

    @property
    def of_usual_runs(self) -> Floats:
        """The same of a usual job (component)."""
        return np.asarray(self.run.pooled / np.maximum(np.median(self.runs, axis=0), 1))

    def between_jobs(self, levels: Floats, fitted: Floats | Ints) -> JobSpread:
        """The spread between jobs about the `levels` that nodes had then (row, component), so many of them in each part
        of a node (`fitted`, node x component), which take as many degrees of freedom."""
        count = np.bincount(self.matrix.owner)[:, None]
        spare = np.maximum(count - 1, 1) / np.maximum(count - fitted, 1)
        rest = (self.own - levels) * np.sqrt(spare)[self.matrix.owner]
        return job_spread(rest, self.matrix.owner, self.of_usual_runs, self.matrix.terms.pool, self.assumed)

    def difference(self, position: int, after: Ints, before: Ints, job: JobSpread, alike: float = 0.0) -> Difference:
        """How a node is in some of its jobs, without what all nodes moved by, from how it was in others (rows)."""
        sides = [self._mean(position, rows, job, alike) for rows in (after, before)]
        error, degrees = intervals.combined([variance for side in sides for variance in side[1]])
        return Difference(sides[0][0] - sides[1][0], error, degrees)

    def _mean(
        self, position: int, rows: Ints, job: JobSpread, alike: float
    ) -> tuple[Floats, list[tuple[Floats, Floats | float]]]:
        """The mean of some jobs (component), and its variances with their degrees of freedom: runs, what is assumed
        between jobs, what they show beyond it, and what all nodes moved by."""
        own = self.own[rows]
        present = np.isfinite(own)
        count = np.maximum(present.sum(axis=0), 1)
        mean = np.where(present.any(axis=0), np.where(present, own, 0.0).sum(axis=0) / count, np.nan)
        of_runs = np.where(present, self.of_runs[rows], 0.0).sum(axis=0) / count**2
        of_jobs = job.ratio[position] * not_averaged(len(rows), alike) / len(rows)
        of_rounds = float(self.rounds.error[self.rounds.number[rows]].mean()) / len(rows)
        shown = job.excess * of_jobs + of_rounds * (self.of_usual_runs + job.variance)
        return mean, [(of_runs, self.run.degrees), (job.assumed * of_jobs, np.inf), (shown, job.degrees)]

    def causes_of(self, change: Difference, half: Floats, residual: Floats) -> list[Cause]:
        """What changed: of components whose interval, `half` of which is given, is outside the tolerance with all of
        it, the coarsest that explain the others. `residual` is what places changed by."""
        found = intervals.outside(np.nan_to_num(change.effect), half, self.tolerance)
        if not found.any():
            return []
        none = np.zeros(len(half))
        return causes(
            self.matrix,
            np.nan_to_num(change.effect),
            error=change.error,
            natural=none,
            half=half,
            tolerance=self.tolerance,
            found=found,
            confirmed=none > 0,
            residual=residual,
        )

    def together(self, sides: Sequence[tuple[Ints, Ints]], job: JobSpread) -> Difference | None:
        """What all nodes moved by from some of their jobs to others (`sides`: by node the rows after and before); None
        if it is not known."""
        if not self.rounds.error.any() or not sides:
            return None
        moved = [self.moved[after].mean(axis=0) - self.moved[before].mean(axis=0) for after, before in sides]
        counts = [np.median([len(of[number]) for of in sides]) for number in (0, 1)]
        share = float(self.rounds.error.max()) * sum(1 / count for count in counts)
        error, degrees = intervals.combined(
            [
                (share * self.of_usual_runs, self.run.degrees),
                (share * job.assumed, np.inf),
                (share * job.excess, job.degrees),
            ]
        )
        return Difference(np.median(moved, axis=0), error, degrees)

    def residual(self, after: Ints, before: Ints) -> Floats:
        """How each place is in some jobs from how it was in others (place), with what all nodes moved by."""
        level, scale = self.matrix.level_of, self.matrix.scale
        return np.nan_to_num(scale.residual(level(after.tolist()), level(before.tolist()))).astype(np.float64)


class Difference(msgspec.Struct, frozen=True):
    """How far a node is from what it was (component), with the standard error and its degrees of freedom."""

    effect: Floats
    error: Floats
    degrees: Floats


def past(of: JoinedMatrix, rules: Acceptance) -> Past:
    """What the jobs of a matrix show over time."""
    matrix, (between_jobs, between_runs) = of.matrix, priors(of.matrix, rules)
    means, runs = run_means(matrix.values), np.isfinite(matrix.values).sum(axis=1).astype(np.float64)
    # a campaign is at least a round of its own, also where two are of one day or no time is known
    day = np.floor(np.nan_to_num(matrix.began) / _DAY_S)
    campaign = np.array([job.campaign for job in of.jobs])
    label = (campaign * _MOST_DAYS + day) * _DAY_S
    # of two nodes nobody knows which one moved, so that each is compared with its whole past
    days = rounds(means, matrix.owner, label if len(matrix.nodes) >= FEWEST else np.zeros_like(label))
    run = run_spread(matrix.values, matrix.terms.pool, between_runs)
    moved = _of_known(days)[days.number]
    return Past(of, means, runs, moved, run, days, tolerances.of_matrix(matrix, rules), between_jobs**2)


def _of_known(days: Rounds) -> Floats:
    """What all nodes moved by in each round (round, component); where too few nodes say so, as in the known round
    before it, or in the first known one."""
    known = np.flatnonzero(days.error > 0)
    if not len(known):
        return np.zeros_like(days.shift)
    nearest = np.maximum(np.searchsorted(known, np.arange(len(days.error)), side="right") - 1, 0)
    return np.asarray(days.shift[known[nearest]])


def not_averaged(count: int, alike: float) -> float:
    """How many times the variance of a mean over so many jobs is that of independent ones, if each is correlated with
    the next one (`alike`) and less with those after it (a first-order autoregressive process)."""
    lag = np.arange(1, count)
    return float(1 + 2 * np.sum((1 - lag / count) * alike**lag))


def correlation(rest: Floats, owner: Ints) -> float:
    """How alike a job and the next one of a node are, from what jobs differ from their node's level by (row,
    component): pooled over nodes and components; 0 of fewer than a few jobs each."""
    count = np.bincount(owner)
    usual = count[owner] >= _SEVERAL
    follows = (owner[1:] == owner[:-1]) & usual[1:]
    if not follows.any():
        return 0.0
    scale = np.sqrt(np.nanmean(rest[usual] ** 2, axis=0))
    scaled = np.nan_to_num(rest / np.where(scale > 0, scale, np.inf))
    squares = float(np.sum(scaled[usual] ** 2))
    shared = float(np.sum((scaled[1:] * scaled[:-1])[follows]))
    # residuals from a mean are negatively correlated by chance
    by_chance = 1 / float(np.mean(count[count >= _SEVERAL]))
    return min(max(shared / squares + by_chance, 0.0), _MOST_ALIKE) if squares else 0.0
