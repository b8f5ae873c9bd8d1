"""The evidence of one matrix over the nodes of a kind: the statistics of the first jobs, and what later jobs show."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from itertools import chain

import msgspec
import numpy as np
import numpy.typing as npt
from msgspec.structs import replace

from nodeprint.distributions import stdtrit
from nodeprint.judge import profiles, tails, thresholds
from nodeprint.judge.acceptance import Acceptance
from nodeprint.judge.reduction import Matrix, Reduced, filled, mean_of_runs, of_jobs
from nodeprint.judge.terms import FAMILIES, Terms
from nodeprint.judge.thresholds import LEAVE_OUT_BELOW, RUN_PRIOR, TEMPLATE_ERROR, Statistics
from nodeprint.layout import Ints

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

#: A deviation shared by at least this share of the nodes, and three, is a population and no finding of single nodes.
CROWD = 0.2
#: Up to this many nodes a finding is reported only where all others agree.
FEW_NODES = 4
#: A CPU's lost time stands out at so many scales: it has no tail to fit, and every run has to lose it on the same CPU.
_SHARE_SCALES = 6.0


class Observed(msgspec.Struct, frozen=True):
    """One node in one matrix: its row, the centre of its peers, its deviation and whether its runs differ, by term."""

    matrix: Matrix
    row: int
    centre: Floats
    deviation: Floats
    differ: Bools

    @property
    def values(self) -> Floats:
        """By run and term."""
        return np.asarray(self.matrix.values[self.row], dtype=np.float64)

    @property
    def runs(self) -> tuple[str, ...]:
        """The names of the runs."""
        return self.matrix.runs[self.row]

    @property
    def level(self) -> npt.NDArray[np.floating]:
        """By run and place, in the measurement's unit."""
        return np.asarray(self.matrix.level[self.row])


class Again(msgspec.Struct, frozen=True, dict=True):
    """Runs of some jobs of the nodes that have them: the deviation from what the peers show and whether runs differ
    (node, term)."""

    matrix: Matrix
    deviation: Floats
    differ: Bools

    @cached_property
    def centre(self) -> Floats:
        """What each node's deviation is measured from (node, term)."""
        return np.asarray(np.nanmean(filled(self.matrix.values), axis=1) - self.deviation)

    def of(self, node: int) -> Observed:
        """What is observed of a fleet node."""
        row = self.matrix.row[node]
        return Observed(self.matrix, row, self.centre[row], self.deviation[row], self.differ[row])


class Later(msgspec.Struct, frozen=True):
    """Of the nodes that have it: one job after the first, and all jobs from it on."""

    one: Again
    rest: Again


class Evidence(msgspec.Struct, frozen=True, dict=True):
    """One matrix of a kind: its first job with statistics, the `later` jobs of the nodes that have them, and the spread
    over passes (`wobble`)."""

    matrix: Matrix
    stats: Statistics
    first: Again
    later: tuple[Later, ...]
    wobble: Statistics | None

    def jobs(self, node: int) -> list[Observed]:
        """A node's jobs in order, the first as the statistics have it."""
        return [self.first.of(node), *(step.one.of(node) for step in self.later if node in step.one.matrix.row)]

    def newest(self, node: int) -> Observed | None:
        """All jobs of a node after the first where there are any, as that may have been chosen for its noise."""
        if self.later and node in self.later[0].rest.matrix.row:
            return self.later[0].rest.of(node)
        return self.first.of(node) if node in self.matrix.row else None

    def is_of_many(self, terms: Ints, side: float) -> bool:
        """Whether in most of some terms too many nodes deviate to this side for any of them to be reported."""
        nodes = len(self.matrix.nodes)
        beyond = self.stats.deviation[:, terms] * side > self.stats.threshold[:, terms]
        many = beyond.sum(axis=0) >= max(3, int(np.ceil(CROWD * nodes)))
        return nodes > FEW_NODES and bool(many.mean() > 0.5)

    @cached_property
    def degrees(self) -> float:
        """Degrees of freedom of the run-to-run scale: pooled over the nodes."""
        runs = np.isfinite(self.matrix.values).any(axis=2).sum(axis=1)
        return max(2.0, float((runs - 1).clip(min=0).sum()))

    def half(self, quantile: float, runs: int | Ints, row: int) -> Floats:
        """Half the interval of a node's deviation by term, which ends at a `quantile` of Student's t: run to run over
        its `runs`, and the template's error."""
        share = self.template_error(row)
        template = self.stats.scale[row] ** 2 * share / (1 + share)  # the scale has the template's error already
        run = self.stats.noise[row] * self.stats.run_scale
        return np.asarray(self.t(quantile) * np.sqrt(run**2 / np.maximum(runs, 1) + template))

    def template_error(self, row: int) -> float:
        """The variance of what a node is compared with, relative to that of a node."""
        return float(TEMPLATE_ERROR / max(self.stats.peers[row], 1.0))

    def t(self, quantile: float) -> float:
        """Student's t with the degrees of freedom of the run-to-run scale."""
        return float(stdtrit(self.degrees, quantile))


def screen(reduced: Sequence[Reduced], nodes: Ints) -> list[tuple[Reduced, int, Matrix]]:
    """A matrix of the first jobs of `nodes` for each part of a quantity that two or more of them have."""
    found = []
    for one in reduced:
        jobs = {node: first_of(sittings) for node, sittings in one.sittings.items()}
        for number, part in enumerate(one.parts):
            matrix = of_jobs(one, number, nodes, jobs) if len(part.terms.terms) else None
            if matrix is not None and len(matrix.nodes) > 1 and np.isfinite(matrix.values).any():
                found.append((one, number, matrix))
    return found


def bounds_of(matrix: Matrix, rules: Acceptance) -> Floats:
    """The bound of each term on the model's scale: of pairs the largest of percent, nanoseconds and clock ticks."""
    terms, quantity = matrix.terms, matrix.quantity
    if not quantity.of_pairs:
        return np.full(len(terms.terms), np.log(2) if terms.share else rules.cell(quantity.model.term).bound)
    return pair_bounds(terms, matrix.levels, rules, quantity.tick_ns)


def pair_bounds(terms: Terms, levels: Floats, rules: Acceptance, tick_ns: float = 0.0) -> Floats:
    """Relative bounds of terms of pairs at their `levels` in ns; a hop has steps of `tick_ns`."""
    percent = np.array([rules.bounds[term.name] for term in terms.terms])
    least = np.array([rules.least_ns[term.family] for term in terms.terms])
    least = np.maximum(least, rules.clock_ticks * tick_ns)
    return np.asarray(np.maximum(percent, least / levels), dtype=np.float64)


def priors_of(matrix: Matrix, rules: Acceptance) -> tuple[Floats, float]:
    """The standard deviation that is assumed between healthy nodes (term), and between runs of one."""
    if not matrix.quantity.of_pairs:
        prior = rules.cell(matrix.quantity.model.term).prior
        return np.full(len(matrix.terms.terms), prior), prior
    return np.array([rules.priors[FAMILIES[term.family].term] for term in matrix.terms.terms]), RUN_PRIOR


def gather(reduced: Reduced, number: int, matrix: Matrix, rules: Acceptance, alpha: float) -> Evidence:
    """Judge part `number` with false rate `alpha` a node and family; `matrix` from `screen`."""
    trusted = _two_or_all(np.all(np.any(np.isfinite(matrix.values), axis=1), axis=1))
    stats = _undisturbed(matrix, rules, alpha, trusted)
    outliers = np.asarray((np.abs(stats.deviation) > stats.threshold).any(axis=1), dtype=np.bool_)
    return Evidence(
        matrix, stats, Again(matrix, stats.deviation, runs_differ(matrix, stats, alpha)),
        _later(reduced, number, matrix, stats, outliers, alpha), _wobble(matrix, rules, alpha, trusted & ~outliers),
    )  # fmt: skip


def _undisturbed(matrix: Matrix, rules: Acceptance, alpha: float, trusted: Bools) -> Statistics:
    """Statistics that nodes which deviate have no part in, as long as six of ten are left.

    Of few nodes the farthest is left out first: the others may deviate only because it is among their peers.
    """
    left = trusted
    stats = _statistics(matrix, rules, alpha, left)
    few = len(matrix.nodes) < LEAVE_OUT_BELOW
    for _ in range(len(matrix.nodes) if few else 1):
        reach = np.where(left, (np.abs(stats.deviation) / stats.threshold).max(axis=1), 0.0)
        calm = left & (reach < reach.max() if few else reach <= 1)
        if reach.max() <= 1 or calm.sum() < max(2, 0.6 * trusted.sum()):
            break
        left = calm
        stats = _statistics(matrix, rules, alpha, left)
    return stats


def _two_or_all(nodes: Bools) -> Bools:
    """The chosen nodes where they are two or more, else all."""
    return nodes if nodes.sum() > 1 else np.ones_like(nodes)


def _statistics(matrix: Matrix, rules: Acceptance, alpha: float, trusted: Bools) -> Statistics:
    terms = matrix.terms
    prior, run_prior = priors_of(matrix, rules)
    order = profiles.order_of(matrix)
    stats = thresholds.statistics(
        profiles.of(filled(matrix.values), order), terms.pool, bounds_of(matrix, rules), prior=prior, pools=terms.pools,
        alpha=alpha, trusted=trusted, run_prior=run_prior,
    )  # fmt: skip
    by_core = ("deviation", "scale", "threshold", "centre", "z")
    stats = replace(stats, **{name: profiles.to_cores(getattr(stats, name), order) for name in by_core})
    if terms.share:
        z = np.minimum(stats.z, _SHARE_SCALES)
        stats = replace(stats, z=z, threshold=np.maximum(stats.bound, z * stats.scale))
    return stats


def _later(
    reduced: Reduced, number: int, matrix: Matrix, stats: Statistics, outliers: Bools, alpha: float
) -> tuple[Later, ...]:
    """What came after the first job, one entry a further job."""

    def again(jobs: Mapping[int, Sequence[int]]) -> Again | None:
        found = of_jobs(reduced, number, matrix.nodes, jobs, matrix.template)
        if found is None:
            return None
        return Again(found, _deviation_again(matrix, stats, found, outliers), runs_differ(found, stats, alpha))

    sittings = {node: reduced.sittings[node] for node in matrix.nodes.tolist()}
    out = []
    for k in range(1, max(map(len, sittings.values()))):
        last = {node: jobs[k][-1:] for node, jobs in sittings.items() if len(jobs) > k}
        every = {node: list(chain(*jobs[k:])) for node, jobs in sittings.items() if len(jobs) > k}
        rest = again(every)
        one = rest if last == every else again(last)
        if one is not None and rest is not None:
            out.append(Later(one, rest))
    return tuple(out)


def first_of(sittings: list[list[int]]) -> list[int]:
    """The first job; of jobs that follow each other too soon the last, as it was measured again for a reason."""
    return sittings[0][-1:]


def residual_of(matrix: Matrix, row: int) -> npt.NDArray[np.floating]:
    """A node's mean over runs (place) on the model's scale, 0 where it is missing."""
    return np.nan_to_num(matrix.scale.residual(mean_of_runs(matrix.level[row][None])[0], matrix.template))


def _deviation_again(matrix: Matrix, stats: Statistics, last: Matrix, outliers: Bools) -> Floats:
    """Deviations in later jobs, from the peers' later jobs if half of them have one (of few nodes all).

    Otherwise they are taken from the first jobs' centre, moved by as much as the unsuspected nodes measured beside it
    moved.
    """
    order = profiles.order_of(last)
    mean: Floats = np.nanmean(profiles.of(filled(last.values), order), axis=1)
    rows = np.array([matrix.row[node] for node in last.nodes.tolist()])
    few = len(rows) == len(matrix.nodes) <= FEW_NODES
    calm = _two_or_all(~outliers[rows]) if few else ~outliers[rows]
    if few or calm.sum() >= max(3, len(matrix.nodes) / 2):
        return profiles.to_cores(mean - thresholds.centres(mean, matrix.terms.pool, calm), order)
    former = profiles.order_of(matrix)
    centre = profiles.of(stats.centre, former)[rows]
    if calm.sum() >= 2:
        first = np.nanmean(profiles.of(filled(matrix.values), former), axis=1)[rows]
        shift = np.median((mean - first)[calm], axis=0)
        noise = stats.run_scale * np.sqrt(2 / max(last.values.shape[1], 1) / calm.sum())
        centre = centre + np.where(np.abs(shift) > 2 * noise, shift, 0.0)
    return profiles.to_cores(np.asarray(mean - centre, dtype=np.float64), order)


def runs_differ(matrix: Matrix, stats: Statistics, alpha: float) -> Bools:
    """Per node and term, whether the node's own runs are further apart than runs are, and than twice the bound."""
    values, pool = matrix.values, matrix.terms.pool
    if values.shape[1] < 2:
        return np.zeros((len(values), values.shape[2]), dtype=np.bool_)
    apart = np.nanmax(filled(values), axis=1) - np.nanmin(filled(values), axis=1)
    scale = stats.run_scale * np.sqrt(2)
    tail = np.ones(values.shape[2])
    for number in np.unique(pool):
        mine = pool == number
        tail[mine] = tails.quantile(alpha / mine.sum(), tails.tail_of(apart[:, mine] / scale[mine]))
    return np.asarray(apart > np.maximum(2 * stats.bound, tail * scale))


def _wobble(matrix: Matrix, rules: Acceptance, alpha: float, trusted: Bools) -> Statistics | None:
    """Of pairs, the spread over passes of every core, as logarithms."""
    values = matrix.wobble
    if not np.isfinite(values).any():
        return None
    cores = values.shape[2]
    stats = thresholds.statistics(
        filled(np.log(values)), np.zeros(cores, dtype=np.int64), np.full(cores, np.log(rules.spread_factor)),
        prior=np.full(cores, rules.priors["spread"]), pools={0: "core-near"}, alpha=alpha,
        trusted=_two_or_all(trusted), run_prior=0.1,
    )  # fmt: skip
    # a spread within what cores may differ by is of no matter, however many times the peers' it is
    matters = np.log(rules.bounds["core"]) - stats.centre
    return replace(stats, threshold=np.maximum(stats.threshold, matters))
