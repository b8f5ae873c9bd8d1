"""Quantities that are not pairs of CPUs, judged like pairs: sets of cells instead of contrasts, by each one's model.

A set is all cells that have one value in all labels of a term (docs/method.md, other quantities). Runs are the
evidence, peers the template, thresholds follow from the number of tests, and one job gives at most a suspicion.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial

import numpy as np
import numpy.typing as npt
from scipy.special import stdtrit

from nodeprint.cells import Cells, Key, Model, models, sockets
from nodeprint.layout import CCD, CCX, QUADRANT, SOCKET, Ints
from nodeprint.verdict import evaluate, thresholds
from nodeprint.verdict.acceptance import Acceptance, CellBound
from nodeprint.verdict.attribution import RUN_SHARE, shown_by_runs
from nodeprint.verdict.matrices import over_passes, sittings
from nodeprint.verdict.terms import FAMILIES
from nodeprint.verdict.thresholds import Statistics

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

#: A term's sets share a scale of `thresholds`, under the number of a coarse family of pairs: the tails of single cores
#: that are feared there are those of means over hundreds of pairs; here every run has to show it, and its second job.
_POOLS = tuple(
    2 * FAMILIES.index(name) + half for name in ("class", "quadrant", "link", "ccd", "block") for half in (0, 1)
)
#: More causes than this make another node altogether; what is left inside a cause must be half as large as it.
_MOST_CAUSES, _INSIDE_SHARE = 6, 0.5
#: A CPU's lost time stands out at so many scales.
_SHARE_SCALES = 6.0
_LEVELS = {"socket": SOCKET, "quadrant": QUADRANT, "ccd": CCD, "ccx": CCX}


@dataclass(frozen=True)
class Sets:
    """The sets of one measurement: their labels, what these are there, the cells (set x place), the scale's pool."""

    labels: tuple[tuple[str, ...], ...]
    where: tuple[tuple[Key, ...], ...]
    member: Bools
    pool: Ints

    @property
    def size(self) -> Ints:
        """Cells of each set."""
        return np.asarray(self.member.sum(axis=1), dtype=np.int64)


@dataclass(frozen=True)
class Coarse:
    """What populations may differ in: `means` (node, set) of sets wider than a CCX, the bound of their differences, the
    standard deviation (set) that healthy nodes have at least, and the labels of each set with their values."""

    measurement: str
    means: Floats
    bound: float
    floor: Floats
    labels: tuple[tuple[str, ...], ...]
    where: tuple[tuple[Key, ...], ...]


@dataclass(frozen=True)
class OfJobs:
    """Jobs of each node: cells as residuals (node, run, place) and as sets (node, run, set), NaN where missing.

    `runs` are the names of each node's runs, `deviation` (node, set) is from its peers.
    """

    nodes: Ints
    runs: tuple[tuple[str, ...], ...]
    residual: Floats
    values: Floats
    deviation: Floats

    @cached_property
    def row(self) -> dict[int, int]:
        """The row of each fleet node."""
        return {node: row for row, node in enumerate(self.nodes.tolist())}

    @cached_property
    def centre(self) -> Floats:
        """What each node's peers show (node, set)."""
        return np.asarray(np.nanmean(evaluate.filled(self.values), axis=1) - self.deviation)

    def of(self, node: int) -> Observed | None:
        """What is observed of a fleet node; None where it has no such job."""
        row = self.row.get(node)
        if row is None:
            return None
        return Observed(self.runs[row], self.residual[row], self.values[row], self.centre[row], self.deviation[row])


@dataclass(frozen=True)
class Observed:
    """One node in some of its jobs: cells (run, place), sets (run, set), its peers' centre and the deviation by set."""

    runs: tuple[str, ...]
    residual: Floats
    values: Floats
    centre: Floats
    deviation: Floats


@dataclass(frozen=True)
class Cause:
    """A set that deviates in a node: the effect on the model's scale, and what a second job made of it."""

    number: int
    effect: float
    interval: tuple[float, float]
    runs: tuple[str, ...]
    state: str


@dataclass
class NodeCells:
    """What one measurement says of one node; `unstable` is the set in which runs differ most.

    `reach` is how far the 90 % interval of a set reaches, on the model's scale, `widest` the set that reaches furthest.
    """

    causes: list[Cause] = field(default_factory=list)
    unstable: int | None = None
    unstable_jobs: set[int] = field(default_factory=set)
    jobs: int = 1
    too_soon: bool = False
    runs: int = 0
    reach: float = 0.0
    widest: int = 0


@dataclass(frozen=True)
class Judged:
    """One measurement over the nodes of a kind."""

    cells: Cells
    model: Model
    sets: Sets
    template: Floats
    stats: Statistics
    first: OfJobs
    later: tuple[tuple[OfJobs, OfJobs], ...]
    by_node: dict[int, NodeCells]
    crowd: frozenset[int]
    floor: float
    smallest: float

    @cached_property
    def degrees(self) -> float:
        """Degrees of freedom of the run-to-run scale: pooled over the nodes."""
        runs = np.isfinite(self.first.values).any(axis=2).sum(axis=1)
        return max(2.0, float((runs - 1).clip(min=0).sum()))

    def newest(self, node: int) -> Observed | None:
        """A node's newest jobs: all after the first where there are any, as that may have been chosen for its noise."""
        rest = self.later[0][1].of(node) if self.later else None
        return rest or self.first.of(node)

    def relative(self, effect: float) -> float:
        """An effect as a share of the peers' value; of shares of the time, the share."""
        return relative(effect, self.model, self.floor)

    def of_runs(self, node: int, number: int) -> list[float]:
        """A node's values of a set in the runs of its newest jobs, in the measurement's unit."""
        seen = self.newest(node)
        values = seen.values[:, number] if seen is not None else np.zeros(0)
        effects = [self.relative(float(value)) for value in values if np.isfinite(value)]
        return effects if self.model.scale == "share" else [self.level(number) * (1 + effect) for effect in effects]

    def level(self, number: int) -> float:
        """The peers' value of a set, in the measurement's unit."""
        return float(np.median(self.template[self.sets.member[number]]))


def relative(effect: float, model: Model, floor: float) -> float:
    """An effect on the model's scale as a share of the value; of shares of the time, the share."""
    if model.scale == "share":
        return float(np.expm1(effect)) * floor
    return float(np.expm1(effect)) if model.scale == "log" else effect


def labels_of(cells: Cells, model: Model) -> dict[str, list[Key | None]]:
    """By label its value at every place, None where it is unknown; CPUs are slots, NUMA nodes by their order."""
    out: dict[str, list[Key | None]] = {dim: [place[d] for place in cells.places] for d, dim in enumerate(cells.dims)}
    numa: list[int] | None = None
    for dim in cells.dims:
        kind = model.labels.get(dim)
        if kind == "cpu":
            slots = cells.slots[[int(key) for key in out[dim] if key is not None]]
            for name, column in _LEVELS.items():
                out.setdefault(name, [int(value) if value >= 0 else None for value in slots[:, column]])
            if numa is None:
                numa = [int(cells.numa[int(key)]) for key in out[dim] if key is not None]
    if "cpu_node" in out:
        numa = [int(key) for key in out["cpu_node"] if key is not None]
    if "memory_node" in out and numa is not None:
        memory = [int(key) for key in out["memory_node"] if key is not None]
        of_socket = sockets(cells.slots, cells.numa, max((*memory, *numa), default=-1) + 1)
        out["distance"] = [_distance(cpu, node, of_socket) for cpu, node in zip(numa, memory, strict=True)]
    return out


def _distance(cpu: int, memory: int, of_socket: Ints) -> str | None:
    if cpu < 0:
        return None
    if cpu == memory:
        return "own node"
    return "same socket" if of_socket[cpu] == of_socket[memory] >= 0 else "other socket"


def sets_of(cells: Cells, model: Model) -> Sets:
    """All of it, then each term's sets from coarse to fine; of sets with the same cells the first."""
    known = labels_of(cells, model)
    labels: list[tuple[str, ...]] = []
    where: list[tuple[Key, ...]] = []
    members: list[Bools] = []
    pools: list[int] = []
    seen: set[bytes] = set()
    numbers = iter(_POOLS)
    for term in ((), *model.terms):
        if not set(term) <= set(known):
            continue
        pool = next(numbers)
        places: dict[tuple[Key, ...], list[int]] = {}
        for place in range(len(cells.places)):
            keys = [known[label][place] for label in term]
            value = tuple(key for key in keys if key is not None)
            if len(value) == len(term):
                places.setdefault(value, []).append(place)
        for value, mine in places.items():
            member = np.zeros(len(cells.places), dtype=np.bool_)
            member[mine] = True
            if member.tobytes() in seen:
                continue
            seen.add(member.tobytes())
            labels.append(term)
            where.append(value)
            members.append(member)
            pools.append(pool)
    return Sets(tuple(labels), tuple(where), np.array(members), np.array(pools, dtype=np.int64))


def of_kind(cells: Sequence[Cells], nodes: Ints) -> list[Cells]:
    """The measurements with a model that at least two of `nodes` have."""
    return [
        one for one in cells if one.measurement in models() and len(np.unique(one.node[np.isin(one.node, nodes)])) > 1
    ]


def families_of(cells: Sequence[Cells]) -> int:
    """Families of sets over all measurements, each of which has its share of the false alarms."""
    return sum(len(np.unique(sets_of(one, models()[one.measurement]).pool)) for one in cells)


def tests_of(cells: Sequence[Cells]) -> int:
    """Sets over all measurements."""
    return sum(len(sets_of(one, models()[one.measurement]).labels) for one in cells)


def coarse(cells: Sequence[Cells], nodes: Ints, rules: Acceptance) -> list[Coarse]:
    """The coarse sets of every measurement that all of `nodes` have, in their first jobs, jitter apart."""
    out = []
    for one in of_kind(cells, nodes):
        model = models()[one.measurement]
        limit, sets, level = rules.cell(model.term), sets_of(one, model), _level(one)
        wide = [k for k, labels in enumerate(sets.labels) if not {"cpu", "ccx"} & set(labels)]
        rows = _rows(one, nodes, sittings(one), evaluate.first_of)
        if model.scale == "share" or len(rows) < len(nodes):
            continue
        values = _of_jobs(one, level, rows, _template(level, rows), sets, model, limit.bound).values[:, :, wide]
        if not np.isfinite(values).any(axis=1).all():
            continue
        run = thresholds.run_scales(values, sets.pool[wide], limit.prior)
        floor = np.sqrt(run**2 / values.shape[1] + limit.prior**2)
        labels, where = tuple(sets.labels[k] for k in wide), tuple(sets.where[k] for k in wide)
        out.append(Coarse(one.measurement, np.nanmean(values, axis=1), limit.bound, floor, labels, where))
    return out


def evaluate_kind(cells: Sequence[Cells], nodes: Ints, rules: Acceptance, alpha: float) -> list[Judged]:
    """Judge the nodes of one kind, with false rate `alpha` a node and family of a measurement."""
    return [_judged(one, nodes, rules, alpha) for one in of_kind(cells, nodes)]


def _judged(cells: Cells, nodes: Ints, rules: Acceptance, alpha: float) -> Judged:
    model = models()[cells.measurement]
    sets = sets_of(cells, model)
    level = _level(cells)
    limit = rules.cell(model.term)
    jobs = sittings(cells)
    rows = _rows(cells, nodes, jobs, evaluate.first_of)
    template = _template(level, rows)
    first = _of_jobs(cells, level, rows, template, sets, model, limit.bound)
    values = evaluate.filled(first.values)
    trusted: Bools = np.all(np.any(np.isfinite(first.values), axis=1), axis=1)
    if trusted.sum() < 2:
        trusted = np.ones(len(rows), dtype=np.bool_)
    stats = _statistics(values, sets, model, limit, alpha, trusted)
    outliers: Bools = np.asarray((np.abs(stats.deviation) > stats.threshold).any(axis=1), dtype=np.bool_)
    if outliers.any() and (trusted & ~outliers).sum() >= max(2, 0.6 * trusted.sum()):  # once more without them
        stats = _statistics(values, sets, model, limit, alpha, trusted & ~outliers)
    first = replace(first, deviation=stats.deviation)

    def again(choose: Callable[[list[list[int]]], list[int]]) -> OfJobs:
        mine = _rows(cells, first.nodes, jobs, choose)
        found = _of_jobs(cells, level, mine, template, sets, model, limit.bound)
        return replace(found, deviation=evaluate.deviation_again(first, stats, found, outliers))

    most = max(len(jobs[node]) for node in first.nodes.tolist())
    later = tuple(
        (again(partial(evaluate.one_of, number)), again(partial(evaluate.from_on, number))) for number in range(1, most)
    )
    n = len(first.nodes)
    beyond = np.abs(stats.deviation) > stats.threshold
    many = max(3, int(np.ceil(evaluate.CROWD * n))) if n > evaluate.FEW_NODES else n + 1
    crowd = frozenset(int(k) for k in np.flatnonzero(beyond.sum(axis=0) >= many))
    pools = np.unique(sets.pool)
    need = np.concatenate([stats.threshold - stats.deviation, stats.threshold + stats.deviation])
    smallest = max(float(np.quantile(need[:, sets.pool == p], 0.9)) for p in pools)
    out = Judged(cells, model, sets, template, stats, first, later, {}, crowd, limit.bound, smallest)
    differ = evaluate.runs_differ(values, sets.pool, stats, alpha)
    differ_later = [evaluate.runs_differ(one.values, sets.pool, stats, alpha) for one, _ in later]
    for i, node in enumerate(first.nodes.tolist()):
        newest = [(one, flags) for (one, _), flags in zip(later, differ_later, strict=True) if node in one.nodes]
        known = NodeCells(jobs=1 + len(newest), too_soon=not newest and len(jobs[node][0]) > 1)
        seen = out.newest(node)
        assert seen is not None
        known.runs = int(np.isfinite(seen.values).any(axis=1).sum())
        reach = np.abs(seen.deviation) + _half(out, i, seen, 0.95)
        known.widest = int(np.argmax(reach))
        known.reach = float(reach[known.widest])
        if model.scale != "share":  # what takes a CPU away comes and goes; it invalidates nothing
            last = newest[-1][1][np.flatnonzero(newest[-1][0].nodes == node)[0]] if newest else None
            _unstable(out, known, i, differ[i], last)
        _causes_of(out, known, i, node)
        out.by_node[node] = known
    _without_mirrored(out.by_node.values())
    return out


def _without_mirrored(nodes: Collection[NodeCells]) -> None:
    """Of few nodes, a difference that is the other side of another node's finding is part of the template."""
    blamed = {(c.number, c.effect > 0) for known in nodes for c in known.causes if c.state in ("confirmed", "fresh")}
    for known in nodes:
        known.causes = [c for c in known.causes if c.state != "differs" or (c.number, c.effect <= 0) not in blamed]


def _level(cells: Cells) -> Floats:
    """Median over passes of each row's cells."""
    return over_passes(cells.values)[0].astype(np.float64)


def _rows(
    cells: Cells, nodes: Ints, jobs: Mapping[int, list[list[int]]], choose: Callable[[list[list[int]]], list[int]]
) -> dict[int, list[int]]:
    """By node the rows of the jobs that `choose` takes from its sittings; nodes without any are left out."""
    out: dict[int, list[int]] = {}
    for node in nodes.tolist():
        chosen = choose(jobs[node]) if node in jobs else []
        if chosen:
            mine = cells.node == node
            out[node] = [int(row) for job in chosen for row in np.flatnonzero(mine & (cells.job == job))]
    return out


def _template(level: Floats, rows: Mapping[int, Sequence[int]]) -> Floats:
    """Per place the median over nodes of the mean over runs."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        return np.asarray(np.nanmedian([np.nanmean(level[list(mine)], axis=0) for mine in rows.values()], axis=0))


def _of_jobs(
    cells: Cells, level: Floats, rows: Mapping[int, Sequence[int]], template: Floats, sets: Sets, model: Model,
    floor: float,
) -> OfJobs:  # fmt: skip
    """The jobs of each node, without their deviations yet."""
    values = np.full((len(rows), max(len(mine) for mine in rows.values()), level.shape[1]), np.nan)
    for i, mine in enumerate(rows.values()):
        values[i, : len(mine)] = level[list(mine)]
    residual = _residual(values, template, model, floor)
    names = tuple(tuple(f"job{cells.job[row]}/run{cells.run[row]}" for row in mine) for mine in rows.values())
    nodes = np.array(list(rows), dtype=np.int64)
    of_sets = _of_sets(residual, sets, model)
    return OfJobs(nodes, names, residual, of_sets, np.zeros((len(rows), len(sets.labels))))


def _residual(values: Floats, template: Floats, model: Model, floor: float) -> Floats:
    """Values (..., place) on the model's scale, from the template; NaN where they have none."""
    with np.errstate(divide="ignore", invalid="ignore"):
        if model.scale == "share":  # nearly linear below the bound, where nothing matters; far above it a logarithm
            residual = np.log1p(np.maximum(values, 0) / floor)
        elif model.scale == "log":
            residual = np.log(values / template)
        else:
            residual = values / template - 1
    return np.where(np.isfinite(residual), residual, np.nan)


def kind_of(cells: Cells) -> tuple[object, ...]:
    """Equal for cells that can be compared place by place, whenever they were measured."""
    machine = cells.slots.tobytes(), cells.numa.tobytes()
    return cells.measurement, cells.operation, cells.quantity, cells.unit, cells.dims, *machine


def over_time(campaigns: Sequence[Cells], sets: Sets, model: Model, floor: float) -> tuple[list[Floats], Floats]:
    """Every set's value (row, set) in each campaign, from one template: the median over the rows of the first.

    `sets` are the first's; the others' cells are taken at its places, NaN where they have none.
    """
    first = campaigns[0]
    levels = []
    for one in campaigns:
        at = {place: number for number, place in enumerate(one.places)}
        column = np.array([at.get(place, -1) for place in first.places])
        levels.append(np.where(column < 0, np.nan, _level(one)[:, column]))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        template = np.nanmedian(levels[0], axis=0)
    return [_of_sets(_residual(level, template, model, floor), sets, model) for level in levels], template


def _of_sets(residual: Floats, sets: Sets, model: Model) -> Floats:
    """Every set's value (..., set): the mean of its cells, of shares the median; NaN where half of them are missing."""
    if model.scale == "share":
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            parts = [np.flatnonzero(member) for member in sets.member]
            medians = [
                residual[..., part[0]] if len(part) == 1 else np.nanmedian(residual[..., part], axis=-1)
                for part in parts
            ]
        return np.stack(medians, axis=-1)
    there = np.isfinite(residual)
    member = sets.member.astype(np.float64)
    count = there @ member.T
    with np.errstate(invalid="ignore", divide="ignore"):
        means = np.where(there, residual, 0.0) @ member.T / count
    return np.asarray(np.where(count >= sets.size / 2, means, np.nan))


def _statistics(values: Floats, sets: Sets, model: Model, limit: CellBound, alpha: float, trusted: Bools) -> Statistics:
    share = model.scale == "share"
    bound = np.full(len(sets.labels), np.log(2) if share else limit.bound)
    priors = dict.fromkeys(FAMILIES, limit.prior)
    stats = thresholds.statistics(
        values, sets.pool, bound, prior=priors, alpha=alpha, trusted=trusted, run_prior=limit.prior, own_tail=False
    )
    if share:  # lost time has no tail to fit; what counts is that every run loses it on the same CPU
        z = np.minimum(stats.z, _SHARE_SCALES)
        stats = replace(stats, z=z, threshold=np.maximum(bound, z * stats.scale))
    return stats


def _half(one: Judged, i: int, seen: Observed, quantile: float) -> Floats:
    """Half the interval of every set: run-to-run scale over the runs, and the template's error."""
    runs = max(1, int(np.isfinite(seen.values).any(axis=1).sum()))
    others = max(len(one.first.nodes) - 1, 1)
    variance = one.stats.run_scale**2 / runs + 1.57 * one.stats.scale[i] ** 2 / others
    return np.asarray(float(stdtrit(one.degrees, quantile)) * np.sqrt(variance))


def _unstable(one: Judged, known: NodeCells, i: int, differ: Bools, last_differ: Bools | None) -> None:
    """Runs that differ in more than single CPUs, which a run may well find busy."""
    several = np.array(["cpu" not in labels for labels in one.sets.labels])
    for job, flags in ((1, differ & several), (2, None if last_differ is None else last_differ & several)):
        if flags is not None and flags.any():
            known.unstable_jobs.add(job)
            if job == min(known.jobs, 2):
                known.unstable = int(np.flatnonzero(flags)[np.argmax(np.abs(one.stats.deviation[i][flags]))])


def _causes_of(one: Judged, known: NodeCells, i: int, node: int) -> None:
    """What any job of a node shows, confirmed or refuted by the jobs after it; without a later job it is fresh."""
    later = [(seen, rest.of(node)) for job, rest in one.later if (seen := job.of(node)) is not None]
    jobs = [one.first.of(node), *(seen for seen, _ in later)]
    found: list[Cause] = []
    for k, job in enumerate(jobs):
        assert job is not None
        if not (np.abs(job.deviation) > one.stats.threshold[i]).any():
            continue
        for number, effect in _explained(one, job, i):
            mine = one.sets.member[number]
            like = [cause for cause in found if (one.sets.member[cause.number] & mine).any()]
            if any(cause.state != "refuted" for cause in like):
                continue
            rest, newest = later[k][1] if k < len(later) else None, jobs[-1]
            if rest is None or newest is None:
                interval = _interval(one, i, job, number, effect)
                found.append(Cause(number, effect, interval, _showing(job, number), "fresh"))
                continue
            cause = _confirm(one, i, job, rest, newest, number, effect)
            if cause.state == "confirmed":
                found = [other for other in found if other not in like]
            if cause.state == "confirmed" or not like:
                found.append(cause)
    n = len(one.first.nodes)
    known.causes += [
        replace(cause, state="differs")
        if n <= evaluate.FEW_NODES and cause.state != "refuted" and not (n > 2 and _others_agree(one, i, cause.number))
        else cause
        for cause in found
    ]


def _explained(one: Judged, job: Observed, i: int) -> list[tuple[int, float]]:
    """The sets that explain most of a node's deviations in a job, the largest first, each without those before."""
    left, centre = job.residual[: len(job.runs)].copy(), job.centre
    limit = one.stats.threshold[i].copy()
    found: list[tuple[int, float]] = []
    while len(found) < _MOST_CAUSES:
        each = _of_sets(left, one.sets, one.model)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            deviation = np.nanmean(each, axis=0) - centre
        beyond = (deviation > limit) if one.model.scale == "share" else (np.abs(deviation) > limit)
        beyond &= np.isfinite(deviation) & shown_by_runs(each, centre, RUN_SHARE * np.nan_to_num(deviation))
        beyond[[number for number, _ in found]] = False
        if not beyond.any():
            break
        best = int(np.argmax(np.where(beyond, one.sets.size * deviation**2, -1.0)))
        effect = float(deviation[best])
        found.append((best, effect))
        member = one.sets.member[best]
        left[:, member] -= effect
        inside = ~(one.sets.member & ~member).any(axis=1)
        limit[inside] = np.maximum(limit[inside], _INSIDE_SHARE * abs(effect))
    return found


def _confirm(one: Judged, i: int, job: Observed, rest: Observed, newest: Observed, number: int, effect: float) -> Cause:
    """What all jobs after `job` say of a set, as for pairs: half the effect, and what noise could hardly reach.

    Size and interval are theirs.
    """
    first, later, last = (float(seen.deviation[number]) for seen in (job, rest, newest))
    ratio = later / first if first * effect > 0 else 0.0
    reach = evaluate.CONFIRM_REACH * float(one.stats.z[i, number] * one.stats.scale[i, number])
    confirmed = ratio >= evaluate.CONFIRM_SHARE and last / first >= RUN_SHARE and abs(later) >= reach
    size = effect * ratio
    runs = _showing(job, number) + _showing(rest, number)
    return Cause(number, size, _interval(one, i, rest, number, size), runs, "confirmed" if confirmed else "refuted")


def _interval(one: Judged, i: int, seen: Observed, number: int, effect: float) -> tuple[float, float]:
    half = float(_half(one, i, seen, 0.975)[number])
    return effect - half, effect + half


def _showing(seen: Observed, number: int) -> tuple[str, ...]:
    """The runs that show a set's deviation."""
    size = float(seen.deviation[number])
    each = (seen.values[: len(seen.runs), number] - seen.centre[number]) * np.sign(size)
    named = zip(seen.runs, each.tolist(), strict=True)
    return tuple(name for name, value in named if value >= evaluate.RUN_HALF * abs(size))


def _others_agree(one: Judged, i: int, number: int) -> bool:
    """Whether all other nodes agree among themselves in a set, so that one of three or four can be named."""
    others = np.arange(len(one.first.nodes)) != i
    mean = np.nanmean(evaluate.filled(one.first.values), axis=1)[others, number]
    return bool(mean.max() - mean.min() <= one.stats.threshold[i, number])
