"""The evaluation of one kind of nodes: the statistics of every matrix, the causes in each node, and later jobs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Protocol

import numpy as np
import numpy.typing as npt
from scipy.special import stdtrit

from nodeprint.layout import Ints
from nodeprint.verdict import thresholds
from nodeprint.verdict.acceptance import Acceptance
from nodeprint.verdict.attribution import RUN_SHARE, Cause, causes, scoped, shown_by_runs
from nodeprint.verdict.matrices import Matrix, Reduced, mean_of_runs, of_jobs
from nodeprint.verdict.terms import FAMILIES, TERM_OF_FAMILY, Term, Terms
from nodeprint.verdict.thresholds import Spread, Statistics

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

#: A second job confirms a term that shows at least this share of its effect with the same sign.
CONFIRM_SHARE = 0.5
#: And this share of its threshold: the first job was selected for its deviation, the second was not.
CONFIRM_REACH = 0.7
#: A deviation shared by at least this share of the nodes, and three, is a population and no finding of single nodes.
CROWD = 0.2
#: Up to this many nodes a finding is reported only where all others agree.
FEW_NODES = 4


class OfJobs(Protocol):
    """Values (node, run, term) of one job of each node; `nodes` are numbers in the fleet."""

    @property
    def nodes(self) -> Ints: ...

    @property
    def values(self) -> Floats: ...


@dataclass(frozen=True)
class Evidence:
    """One matrix of a kind: its first job with statistics, the `later` jobs of the nodes that have them, and the
    spread over passes (`wobble`)."""

    matrix: Matrix
    stats: Statistics
    later: tuple[Later, ...]
    level_ns: Floats
    wobble: Statistics | None
    runs_differ: Bools


@dataclass(frozen=True)
class Again:
    """Runs of later jobs, the deviation from what the peers show and whether runs differ (node, term), nodes' rows."""

    matrix: Matrix
    deviation: Floats
    differ: Bools
    row: Mapping[int, int]

    def of(self, node: int) -> Observed:
        """What is observed of a fleet node."""
        row = self.row[node]
        centre = np.nanmean(filled(self.matrix.values)[row], axis=0) - self.deviation[row]
        return Observed(self.matrix, row, centre, self.deviation[row], self.differ[row])


@dataclass(frozen=True)
class Later:
    """Of the nodes that have it: one job after the first, and all jobs from it on."""

    one: Again
    rest: Again


@dataclass(frozen=True)
class Observed:
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


@dataclass(frozen=True)
class Shown:
    """A cause seen in a node: by which matrix, in how many jobs, effects with intervals, and which runs show it."""

    cause: Cause
    matrix: Matrix
    effect: float
    effect_ns: float
    interval: tuple[float, float]
    runs: tuple[str, ...]
    confirmed: bool
    refuted: bool


@dataclass(frozen=True)
class Place:
    """A term's place in the numbers of its layout, to be said in those of a node."""

    matrix: Matrix
    term: str
    where: Mapping[str, int]


@dataclass(frozen=True)
class Margin:
    """How alike one node is in one family of terms: the smallest bound at which it would be the same.

    `reach` is the far end of the 90 % interval of the term that comes nearest to its bound, relative and in ns, at
    `place`; `bound` is that term's, relative. `runs` in one job would bring `reach` within the bound, 0 where it is
    there already, None where no number up to MOST_RUNS would.
    """

    place: Place
    reach: float
    reach_ns: float
    bound: float
    bound_ns: float
    runs: int | None

    @property
    def share(self) -> float:
        """The reach as a share of the bound: the node is the same in this family up to 1."""
        return self.reach / self.bound


@dataclass
class NodeEvidence:
    """What is known of one node within its kind. `unstable` are places and what is said of each, with a {} for it;
    `margins` by family of terms of hops, else by measurement and family; `untested` where a term has too few pairs."""

    shown: list[Shown] = field(default_factory=list)
    unstable: list[tuple[Place, str]] = field(default_factory=list)
    unstable_jobs: set[int] = field(default_factory=set)
    jobs: int = 1
    too_soon: bool = False
    runs: int = 0
    margins: dict[str, Margin] = field(default_factory=dict)
    differs: list[Shown] = field(default_factory=list)
    untested: bool = False


@dataclass(frozen=True)
class KindResult:
    """A kind's evidence by node, and what it could have found."""

    nodes: Ints
    evidence: list[Evidence]
    by_node: dict[int, NodeEvidence]
    smallest: dict[str, float]
    bounds: dict[str, float]
    spreads: dict[str, Spread]
    tests: int
    wide: dict[str, float]
    shared: list[tuple[int, int, Ints]]


def tests_of(reduced: Sequence[Reduced], nodes: int) -> int:
    """How many tests a kind of `nodes` takes: terms, and the spread of every core."""
    each = 0
    for r in reduced:
        passes = r.stack.values.shape[1] > 1
        each += len(r.stack.homes) * (len(r.terms.terms) + (int(r.cores.max(initial=0)) + 1 if passes else 0))
    return nodes * each


def families_of(reduced: Sequence[Reduced]) -> int:
    """Families of terms over all matrices, the spread over passes counted as one."""
    return sum(len(r.stack.homes) * (len(np.unique(r.terms.pool)) + (r.stack.values.shape[1] > 1)) for r in reduced)


def evaluate(
    reduced: Sequence[Reduced], screened: Sequence[Matrix], nodes: Ints, acceptance: Acceptance, alpha: float
) -> KindResult:
    """Judge the nodes of one kind, two or more, with false rate `alpha` a node and family of a matrix.

    `screened` from `screen`.
    """
    by_stack = {id(r.stack): r for r in reduced}
    evidence = [_evidence(by_stack[id(matrix.stack)], matrix, acceptance, alpha) for matrix in screened]
    by_node = {int(node): NodeEvidence() for node in nodes}
    for one in evidence:
        _shown(one, by_node, by_stack[id(one.matrix.stack)].sittings)
    smallest, bounds = _detection_limits(evidence)
    for one in evidence:
        _equivalence(one, by_node)
    spreads, wide = _wide(evidence)
    shared = [
        (number, int(term), one.matrix.nodes[beyond[:, term]])
        for number, one in enumerate(evidence)
        if len(one.matrix.nodes) > FEW_NODES
        for beyond in [np.abs(one.stats.deviation) > one.stats.threshold]
        for term in np.flatnonzero(beyond.sum(axis=0) >= max(3, int(np.ceil(CROWD * len(one.matrix.nodes)))))
    ]
    return KindResult(
        nodes,
        evidence,
        by_node,
        smallest,
        bounds,
        spreads,
        tests_of(reduced, len(nodes)),
        wide,
        shared,
    )


def bounds_of(terms: Terms, level_ns: Floats, acceptance: Acceptance, tick_ns: float = 0.0) -> Floats:
    """Relative bound of each term: the largest of percent, nanoseconds and clock ticks of `tick_ns`, at its level."""
    families = [term.family for term in terms.terms]
    percent = np.array([acceptance.bounds[TERM_OF_FAMILY[family]] for family in families])
    least = np.array([acceptance.least_ns[family] for family in families])
    least = np.maximum(least, acceptance.clock_ticks * tick_ns)
    return np.asarray(np.maximum(percent, least / level_ns), dtype=np.float64)


def levels(matrix: Matrix) -> Floats:
    """The template's mean over each term's pairs, in the measurement's unit."""
    template = np.nan_to_num(matrix.template.astype(np.float64), nan=float(np.nanmedian(matrix.template)))
    return np.array([template[term.covers].mean() for term in matrix.terms.terms])


def screen(reduced: Sequence[Reduced], nodes: Ints) -> list[Matrix]:
    """The first-judged jobs of `nodes`, a matrix a measurement and home that two of them have."""
    found = []
    for one in reduced:
        for home in range(len(one.stack.homes)):
            matrix = of_jobs(one, home, nodes, first_of) if len(one.terms.terms) else None
            if matrix is not None and len(matrix.nodes) > 1 and np.isfinite(matrix.values).any():
                found.append(_ordered(matrix))
    return found


def _evidence(reduced: Reduced, matrix: Matrix, acceptance: Acceptance, alpha: float) -> Evidence:
    terms, home = matrix.terms, matrix.home
    level_ns = levels(matrix)
    bound = bounds_of(terms, level_ns, acceptance, matrix.stack.tick_ns)
    prior = acceptance.prior_of_family()
    trusted: Bools = np.all(np.any(np.isfinite(matrix.values), axis=1), axis=1)
    if trusted.sum() < 2:
        trusted = np.ones(len(matrix.nodes), dtype=np.bool_)
    values = np.where(np.isfinite(matrix.values), matrix.values, np.nan)
    values = filled(values)
    stats = thresholds.statistics(values, terms.pool, bound, prior=prior, alpha=alpha, trusted=trusted)
    outliers: Bools = np.asarray((np.abs(stats.deviation) > stats.threshold).any(axis=1), dtype=np.bool_)
    if outliers.any() and (trusted & ~outliers).sum() >= max(2, 0.6 * trusted.sum()):  # repeat once without them
        stats = thresholds.statistics(values, terms.pool, bound, prior=prior, alpha=alpha, trusted=trusted & ~outliers)
    return Evidence(
        matrix,
        stats,
        _later(reduced, home, matrix, stats, outliers, alpha),
        level_ns,
        _wobble(matrix, acceptance, alpha, trusted & ~outliers),
        runs_differ(matrix.values, terms.pool, stats, alpha),
    )


def _later(
    reduced: Reduced, home: int, matrix: Matrix, stats: Statistics, outliers: Bools, alpha: float
) -> tuple[Later, ...]:
    """What came after the first job, one entry a further job."""

    def again(choose: Callable[[list[list[int]]], list[int]]) -> Again | None:
        found = of_jobs(reduced, home, matrix.nodes, choose, matrix.template)
        if found is None:
            return None
        found = _ordered(found)
        row = {int(node): i for i, node in enumerate(found.nodes)}
        differ = runs_differ(found.values, found.terms.pool, stats, alpha)
        return Again(found, deviation_again(matrix, stats, found, outliers), differ, row)

    most = max((len(reduced.sittings[node]) for node in matrix.nodes.tolist()), default=1)
    out = []
    for number in range(1, most):
        one, rest = again(partial(one_of, number)), again(partial(from_on, number))
        if one is not None and rest is not None:
            out.append(Later(one, rest))
    return tuple(out)


def first_of(sittings: list[list[int]]) -> list[int]:
    """The first job; of jobs that follow each other too soon the last, as it was measured again for a reason."""
    return sittings[0][-1:]


def one_of(number: int, sittings: list[list[int]]) -> list[int]:
    return sittings[number][-1:] if len(sittings) > number else []


def from_on(number: int, sittings: list[list[int]]) -> list[int]:
    return [job for sitting in sittings[number:] for job in sitting]


def filled(values: Floats) -> Floats:
    """Replace terms that no run of a node has by the fleet's median.

    They carry no evidence; the node's quality says that they are missing.
    """
    empty: Bools = np.asarray(~np.isfinite(values).any(axis=1), dtype=np.bool_)
    if empty.any():
        values = values.copy()
        for term in np.flatnonzero(empty.any(axis=0)):
            known = values[:, :, term][np.isfinite(values[:, :, term])]
            values[empty[:, term], :, term] = np.median(known) if len(known) else 0.0
    return values


def _ordered(matrix: Matrix) -> Matrix:
    """Where ranks are no places, each CCX's cores in order of their own value: only sorted profiles are compared."""
    layout = matrix.terms.layout
    if not layout.harvested:
        return matrix
    values = matrix.values.copy()
    inside = matrix.terms.indices("core-in")
    slots = np.unique(layout.slots[:, :5], axis=0)
    ccx = np.array([hash(tuple(slots[matrix.terms.terms[i].where["core"], :4].tolist())) for i in inside])
    means = np.nanmean(matrix.values, axis=1)
    for part in np.unique(ccx):
        mine = inside[ccx == part]
        order = np.argsort(means[:, mine], axis=1, kind="stable")
        for node in range(len(values)):
            values[node][:, mine] = matrix.values[node][:, mine[order[node]]]
    return replace(matrix, values=values)


def deviation_again(matrix: OfJobs, stats: Statistics, last: OfJobs, outliers: Bools) -> Floats:
    """Deviations in the latest jobs, from the peers' latest jobs if half of them have one (of few nodes all).

    Otherwise they are taken from the first jobs' centre, moved by as much as the unsuspected nodes measured beside it
    moved.
    """
    mean: Floats = np.nanmean(filled(last.values), axis=1)
    at = {int(node): i for i, node in enumerate(matrix.nodes)}
    rows = np.array([at[int(node)] for node in last.nodes])
    few = len(rows) == len(matrix.nodes) <= FEW_NODES  # then none is known to be calm
    calm = ~outliers[rows] | few
    if few or calm.sum() >= max(3, len(matrix.nodes) / 2):
        out = np.empty_like(mean)
        for i in range(len(mean)):
            peers = calm.copy()
            peers[i] = False
            out[i] = mean[i] - np.median(mean[peers], axis=0)
        return out
    centre = stats.centre[rows]
    if calm.sum() >= 2:
        first = np.nanmean(filled(matrix.values), axis=1)[rows]
        moved = (mean - first)[calm]
        shift = np.median(moved, axis=0)
        noise = stats.run_scale * np.sqrt(2 / max(last.values.shape[1], 1) / calm.sum())
        centre = centre + np.where(np.abs(shift) > 2 * noise, shift, 0.0)
    return np.asarray(mean - centre, dtype=np.float64)


def runs_differ(values: Floats, pool: Ints, stats: Statistics, alpha: float) -> Bools:
    """Per node and term, whether the node's own runs are further apart than runs are, and than twice the bound."""
    if values.shape[1] < 2:
        return np.zeros((len(values), values.shape[2]), dtype=np.bool_)
    apart = np.nanmax(filled(values), axis=1) - np.nanmin(filled(values), axis=1)
    scale = stats.run_scale * np.sqrt(2)
    pooled = apart / scale
    tail = np.ones(values.shape[2])
    for number in np.unique(pool):
        mine = pool == number
        tail[mine] = thresholds.run_quantile(pooled[:, mine], alpha / mine.sum())
    return np.asarray(apart > np.maximum(2 * stats.bound, tail * scale))


def _wobble(matrix: Matrix, acceptance: Acceptance, alpha: float, trusted: Bools) -> Statistics | None:
    values = matrix.wobble
    if not np.isfinite(values).any() or np.nanmin(np.where(np.isfinite(values), values, 1)) <= 0:
        return None
    logs = filled(np.log(values))
    family = np.full(logs.shape[2], 2 * FAMILIES.index("core-near"), dtype=np.int64)
    bound = np.full(logs.shape[2], np.log(acceptance.spread_factor))
    prior = dict.fromkeys(FAMILIES, acceptance.priors["spread"])
    keep = trusted if trusted.sum() >= 2 else np.ones(len(trusted), dtype=np.bool_)
    return thresholds.statistics(logs, family, bound, prior=prior, alpha=alpha, trusted=keep, run_prior=0.1)


def _shown(one: Evidence, by_node: dict[int, NodeEvidence], sittings: Mapping[int, list[list[int]]]) -> None:
    matrix, stats = one.matrix, one.stats
    n = len(matrix.nodes)
    blamed: list[Shown] = []
    differs: dict[int, list[Shown]] = {}
    for i, number in enumerate(matrix.nodes.tolist()):
        node = by_node[number]
        node.runs = max(node.runs, int(np.isfinite(matrix.values[i]).any(axis=1).sum()))
        later = [step for step in one.later if number in step.one.row]
        node.jobs = max(node.jobs, 1 + len(later))
        node.too_soon |= not later and len(sittings[number][0]) > 1
        jobs = [
            Observed(matrix, i, stats.centre[i], stats.deviation[i], one.runs_differ[i]),
            *(step.one.of(number) for step in later),
        ]
        _instability(one, i, jobs, node)
        found: list[Shown] = []
        for k, job in enumerate(jobs):
            if not (np.abs(job.deviation) > stats.threshold[i]).any():
                continue
            for cause in _causes(one, job, i):
                like = [s for s in found if set(s.cause.members.tolist()) & set(cause.members.tolist())]
                if any(not s.refuted for s in like):
                    continue
                if k == len(later):
                    found.append(_alone(one, cause, job, i))
                    continue
                shown = _confirm(one, cause, i, job, later[k].rest.of(number), jobs[-1])
                if shown.confirmed:
                    found = [s for s in found if s not in like]
                if shown.confirmed or not like:
                    found.append(shown)
        if n <= FEW_NODES:
            told = [s.refuted or _others_agree(one, s.cause, i) for s in found]
            differs[number] = [s for s, alone in zip(found, told, strict=True) if not alone]
            found = [s for s, alone in zip(found, told, strict=True) if alone]
        node.shown += found
        blamed += [s for s in found if not s.refuted]
    for number, shown_apart in differs.items():
        by_node[number].differs += [s for s in shown_apart if not _mirrored(s, blamed)]


def _mirrored(seen: Shown, blamed: Sequence[Shown]) -> bool:
    """Whether a difference is the other side of another node's finding, which is part of this node's template."""
    return any(
        seen.effect * other.effect < 0 and np.isin(seen.cause.members, other.cause.members).any() for other in blamed
    )


def _instability(one: Evidence, i: int, jobs: Sequence[Observed], node: NodeEvidence) -> None:
    """Runs that differ in the first and in the newest job, and cores that spread over passes."""
    newest = jobs[-1]
    for job, seen in enumerate((jobs[0], newest)[: len(jobs)], start=1):
        if seen.differ.any():
            node.unstable_jobs.add(job)
            if seen is newest:
                worst = next(k for k in np.argsort(-np.abs(one.stats.deviation[i])) if seen.differ[k])
                node.unstable.append((_place(one.matrix, one.matrix.terms.terms[worst]), "runs differ in {}"))
    if one.wobble is not None:
        high = one.wobble.deviation[i] > one.wobble.threshold[i]
        least = RUN_SHARE * one.wobble.deviation[i]
        runs = shown_by_runs(np.log(one.matrix.wobble[i]), one.wobble.centre[i], least)
        cores = np.flatnonzero(high & runs)
        if len(cores):
            node.unstable_jobs.add(1)
            again = len(jobs) == 1
            if not again:
                wobble = np.log(np.nanmean(newest.matrix.wobble[newest.row], axis=0)) - one.wobble.centre[i]
                if (wobble[cores] >= CONFIRM_SHARE * one.wobble.deviation[i][cores]).any():
                    node.unstable_jobs.add(2)
                    again = True
            if again:
                worst = int(cores[np.argmax(one.wobble.deviation[i][cores])])
                factor = float(np.exp(one.wobble.deviation[i][worst]))
                told = f"{{}} varies {factor:.1f} times as much between passes as on the peers"
                node.unstable.append((Place(one.matrix, "core", {"core": worst}), told))


def _causes(one: Evidence, job: Observed, i: int) -> list[Cause]:
    template = job.matrix.template
    mean = mean_of_runs(job.matrix.latency[job.row][None])[0]
    # where runs disagree, each must exceed the threshold by itself; what disturbs one class of a run disturbs others
    classes = job.matrix.terms.indices("class")
    differ = job.differ.copy()
    differ[classes] = differ[classes].any()
    least = np.maximum(RUN_SHARE * np.abs(job.deviation), np.where(differ, one.stats.threshold[i], 0.0))
    return causes(
        np.nan_to_num(mean / template - 1),
        job.matrix.terms,
        centre=_unordered(job.matrix, job.row, job.centre),
        threshold=one.stats.threshold[i],
        scale=one.stats.scale[i],
        level_ns=one.level_ns,
        template=template,
        accepted=shown_by_runs(job.values, job.centre, np.sign(job.deviation) * least),
    )


def _unordered(matrix: Matrix, row: int, centre: Floats) -> Floats:
    """Centres of sorted profiles put back to the cores of this node."""
    layout = matrix.terms.layout
    if not layout.harvested:
        return centre
    out = centre.copy()
    inside = matrix.terms.indices("core-in")
    residual = np.nan_to_num(mean_of_runs(matrix.latency[row][None])[0] / matrix.template - 1)
    raw = matrix.terms.contrast[inside] @ residual
    slots = np.unique(layout.slots[:, :5], axis=0)
    ccx = np.array([hash(tuple(slots[matrix.terms.terms[i].where["core"], :4].tolist())) for i in inside])
    for part in np.unique(ccx):
        mine = np.flatnonzero(ccx == part)
        order = mine[np.argsort(raw[mine], kind="stable")]
        out[inside[order]] = centre[inside[mine]]
    return out


def _interval(one: Evidence, cause: Cause, effect: float, runs: int, i: int) -> tuple[float, float]:
    """95 % bounds of an effect: run-to-run scale over the runs, and the template's error."""
    others = max(len(one.matrix.nodes) - 1, 1)
    variance = one.stats.run_scale**2 / max(runs, 1) + 1.57 * one.stats.scale[i] ** 2 / others
    half = float(stdtrit(max(4.0, 2.0 * others), 0.975) * np.abs(cause.weights) @ np.sqrt(variance[cause.members]))
    return effect - half, effect + half


def _showing(job: Observed, cause: Cause) -> tuple[str, ...]:
    """The runs that show a cause."""
    names = job.matrix.runs[job.row]
    each = cause.effect_of(job.values - job.centre)[: len(names)]
    size = min(abs(cause.effect), float(np.nanmax(np.abs(each)))) if np.isfinite(each).any() else 0.0
    return tuple(
        name
        for name, value in zip(names, each.tolist(), strict=True)
        if np.isfinite(value) and value * np.sign(cause.effect) >= RUN_HALF * size
    )


#: A run is named as showing an effect from this share of it on.
RUN_HALF = 0.5


def _alone(one: Evidence, cause: Cause, job: Observed, i: int) -> Shown:
    """A cause that the newest job shows, with no later job to confirm it."""
    interval = _interval(one, cause, cause.effect, len(job.matrix.runs[job.row]), i)
    runs = _showing(job, cause)
    return Shown(cause, job.matrix, cause.effect, cause.effect_ns, interval, runs, confirmed=False, refuted=False)


def _confirm(one: Evidence, cause: Cause, i: int, job: Observed, rest: Observed, newest: Observed) -> Shown:
    """What all jobs after `job` say of a cause that it shows; size and interval are theirs.

    Half the effect with the same sign confirms it, unless the newest job has nothing of it.
    """
    # both jobs' deviations count pairs up to the same limit, the cause's own size has none: the ratio is what compares
    first, later, last = (float(cause.effect_of(seen.deviation)) for seen in (job, rest, newest))
    ratio = later / first if first * cause.effect > 0 else 0.0
    confirmed = ratio >= CONFIRM_SHARE and last / first >= RUN_SHARE
    if confirmed and len(cause.beyond):
        # what was beyond its threshold must be there again, not only what a wider cause has beside it
        before = job.deviation[cause.beyond]
        size = float(np.linalg.norm(before))
        again = float(before @ rest.deviation[cause.beyond]) / size
        reach = float(np.abs(before) @ one.stats.threshold[i, cause.beyond]) / size
        confirmed = again >= max(CONFIRM_SHARE * size, CONFIRM_REACH * reach)
    runs = _showing(job, cause) + _showing(rest, cause)
    effect = cause.effect * ratio
    interval = _interval(one, cause, effect, len(rest.matrix.runs[rest.row]), i)
    return Shown(
        cause, job.matrix, effect, cause.effect_ns * ratio, interval, runs, confirmed=confirmed, refuted=not confirmed
    )


def _others_agree(one: Evidence, cause: Cause, i: int) -> bool:
    """Whether all other nodes agree among themselves in a cause's terms, so that one of three or four can be named."""
    if len(one.matrix.nodes) < 3:
        return False
    others = np.arange(len(one.matrix.nodes)) != i
    mean = np.nanmean(filled(one.matrix.values), axis=1)[others]
    apart = mean.max(axis=0) - mean.min(axis=0)
    return bool(np.all(apart[cause.members] <= one.stats.threshold[i][cause.members]))


def _equivalence(one: Evidence, by_node: dict[int, NodeEvidence]) -> None:
    """How far the 90 % interval of every term reaches, in the later jobs where there are any; see `Margin`.

    Two one-sided tests at 5 % each: a node is the same where all intervals lie within their bounds.
    """
    stats, matrix = one.stats, one.matrix
    deviation = stats.deviation.copy()
    others = max(len(matrix.nodes) - 1, 1)
    runs = np.maximum(np.isfinite(matrix.values).any(axis=2).sum(axis=1), 1)[:, None]
    for i, number in enumerate(matrix.nodes.tolist() if one.later else ()):
        rest = one.later[0].rest
        if number in rest.row:  # the first job may have been chosen for its noise
            deviation[i] = rest.deviation[rest.row[number]]
            runs[i] = len(rest.matrix.runs[rest.row[number]])
    quantile = float(stdtrit(max(2.0, float((runs - 1).sum())), 0.95))
    template = 1.57 * stats.scale**2 / others
    reach = np.abs(deviation) + quantile * np.sqrt(stats.run_scale**2 / runs + template)
    for i, number in enumerate(matrix.nodes.tolist()):
        node = by_node[number]
        node.untested |= not bool(np.isfinite(matrix.values[i]).any(axis=0).all())
        for family in np.unique(matrix.terms.family):
            mine = np.flatnonzero(matrix.terms.family == family)
            w = int(mine[np.argmax(reach[i, mine] / stats.bound[mine])])
            bound, level = float(stats.bound[w]), float(one.level_ns[w])
            needed: int | None = 0
            if reach[i, w] > bound:
                spare = bound - abs(float(deviation[i, w]))
                needed = _runs_within(spare, quantile, float(template[i, w]), float(stats.run_scale[w]))
            place = _place(matrix, matrix.terms.terms[w])
            name = (
                FAMILIES[family] if matrix.stack.quantity == HOP else f"{matrix.stack.measurement}: {FAMILIES[family]}"
            )
            known = node.margins.get(name)
            margin = Margin(place, float(reach[i, w]), float(reach[i, w]) * level, bound, bound * level, needed)
            if known is None or margin.share > known.share:
                node.margins[name] = margin


def _runs_within(spare: float, quantile: float, fixed: float, run_scale: float) -> int | None:
    """How many runs bring an interval to the half width `spare`; `fixed` is the template's variance."""
    left = (spare / quantile) ** 2 - fixed
    needed = int(np.ceil(run_scale**2 / left)) if spare > 0 and left > 0 else MOST_RUNS + 1
    return needed if needed <= MOST_RUNS else None


#: The quantity whose margins go by their families' names alone: what else pairs have is no hop, and named apart.
HOP = "hop"
#: Nobody is advised to measure more runs than this.
MOST_RUNS = 20


def _place(matrix: Matrix, term: Term) -> Place:
    return Place(matrix, TERM_OF_FAMILY[term.family], scoped(term.family, term.where))


#: An effect counts as found where nine of ten nodes show it, in standard deviations.
_NINE_OF_TEN = 1.2816


def _found_in_most(stats: Statistics) -> Floats:
    """What takes a term beyond its threshold in nine of ten nodes (node, term), whatever a node's own is.

    By the scale: the deviations of few nodes have no such quantile.
    """
    return stats.threshold + _NINE_OF_TEN * stats.scale


def _of_classes(one: Evidence) -> dict[str, float]:
    """The smallest effect of each kind of cause over classes, at its middle place.

    A cause adds the same to every class that it covers: the first to pass its threshold shows it.
    """
    needs, terms = _found_in_most(one.stats), one.matrix.terms
    classes = terms.indices("class").tolist()
    kinds = [
        ("fabric" if "beyond_class" in cause.where else cause.term, cause.members)
        for cause in terms.composites
        if np.isin(cause.members, classes).all()
    ]
    in_both = [number for kind, members in kinds if kind == "class" for number in members]
    for number in classes:
        if "to_socket" in terms.terms[number].where:
            kinds.append(("socket_link", np.array([number])))
        elif number not in in_both:
            kinds.append(("class", np.array([number])))
    found: dict[str, list[float]] = {}
    for kind, members in kinds:
        found.setdefault(kind, []).append(float(np.median(needs[:, members].min(axis=1))))
    return {kind: float(np.median(sizes)) for kind, sizes in found.items()}


def _detection_limits(evidence: list[Evidence]) -> tuple[dict[str, float], dict[str, float]]:
    """By family the detection limit and the bound, at the middle node and place of the matrix where each is largest.

    The detection limit is the smallest effect that nine of ten such nodes would show; causes over classes each have
    their own.
    """
    smallest: dict[str, float] = {}
    bounds: dict[str, float] = {}
    for one in evidence:
        stats = one.stats
        for name, least in _of_classes(one).items():
            smallest[name] = max(smallest.get(name, 0.0), least)
        for number in np.unique(one.matrix.terms.family):
            mine = one.matrix.terms.family == number
            name = FAMILIES[number]
            if name != "class":
                middle = float(np.median(_found_in_most(stats)[:, mine]))
                smallest[name] = max(smallest.get(name, 0.0), middle)
            bounds[name] = max(bounds.get(name, 0.0), float(np.median(stats.bound[mine])))
    return smallest, bounds


def _wide(evidence: list[Evidence]) -> tuple[dict[str, Spread], dict[str, float]]:
    """Spread by family, and the families whose chips alone spread so that one node in twenty is beyond the bound."""
    spreads: dict[str, Spread] = {}
    wide: dict[str, float] = {}
    for one in evidence:
        if len(one.matrix.nodes) < 5:
            continue
        runs = one.matrix.values.shape[1]
        for name, spread in one.stats.families.items():
            mine = one.matrix.terms.family == FAMILIES.index(name)
            bound = float(np.median(one.stats.bound[mine]))
            if name not in spreads or spread.total > spreads[name].total:
                spreads[name] = spread
            # both larger than half of the bound and clear of what runs alone would give
            if spread.chip > bound / 2 and spread.total**2 > 2 * spread.run**2 / runs:
                wide[name] = max(wide.get(name, 0.0), spread.chip)
    return spreads, wide
