"""Several campaigns as one, to compare a node with its own past.

The rows of the matrices are the jobs of all campaigns. Terms, spreads and causes are the same as between nodes.
"""

from __future__ import annotations

import warnings
from collections.abc import Collection, Sequence
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
from nodeprint.judge.deviations import Spreads, of_each_node, priors, run_means
from nodeprint.judge.population import Population
from nodeprint.judge.reduction import (
    JobAt,
    Matrix,
    Reals,
    homes,
    mean_of_runs,
    moment,
    padded,
    points,
    term_values,
)
from nodeprint.judge.terms import Cause, Terms
from nodeprint.stats import intervals
from nodeprint.stats.rounds import FEWEST, Rounds, rounds
from nodeprint.stats.runs import PooledVariance, job_spread, run_spread

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

#: A round is a day of a campaign; a day has fewer digits than this.
_DAY_S, _MOST_DAYS = 86400.0, 1e6
#: Jobs of a node that are needed to estimate how long a difference between jobs lasts.
_SEVERAL = 4
#: The correlation of a job with the next one is at most this.
_MOST_ALIKE = 0.95


def join(
    fleets: Sequence[PackedFleet],
    rules: Acceptance,
    nodes: Sequence[Collection[str]] | None = None,
    *,
    distinct: bool = True,
) -> tuple[list[Matrix], frozenset[int]]:
    """Join the jobs of campaigns, which are in order of time. `nodes` (campaign) limits them to these nodes; `distinct`
    drops copies of jobs. Disturbed jobs are left out.

    Returns a matrix for each home of each measurement, and the numbers of campaigns that only repeat jobs of others in
    some measurement. Measurement points are those of the newest campaign. Levels are relative to those of the oldest
    campaign that has the point.
    """
    newest: dict[tuple[object, ...], tuple[Measured, Terms]] = {}
    template: dict[tuple[object, ...], Reals] = {}
    parts: dict[tuple[object, ...], list[list[Matrix]]] = {}
    for number in (len(fleets) - 1, *range(len(fleets))):
        fleet = fleets[number] if nodes is None else _of_nodes(fleets[number], nodes[number])
        population = Population.of(fleet, rules, ())
        is_known = bool(newest)
        for measured, terms in zip(population.reduced, population.terms, strict=True):
            kind = _kind(measured)
            first, terms_of_first = newest.setdefault(kind, (measured, terms))
            if is_known and terms_of_first.terms:
                level = _at_places(first, measured)
                template[kind] = _with_usual(template.get(kind), level)
                of_campaign = _of_campaign(population, measured, number, first, terms_of_first, level, template[kind])
                parts.setdefault(kind, []).append(of_campaign)
    names = sorted({job.node for of_kind in parts.values() for of_campaign in of_kind for job in of_campaign[0].at})
    matrices: list[Matrix] = []
    copies = set[int]()
    for kind, of_kind in parts.items():
        every = [job for of_campaign in of_kind for job in of_campaign[0].at]
        order = sorted(range(len(every)), key=lambda row: (every[row].node, every[row]))
        kept = _distinct(every, order, of_kind, fleets) if distinct else order
        copies |= {every[row].campaign for row in order} - {every[row].campaign for row in kept}
        for of_home in zip(*of_kind, strict=True):
            whole = _concatenated(of_home, kept, names, template[kind])
            if np.isfinite(whole.values).any():
                matrices.append(whole)
    return matrices, frozenset(copies)


def _of_nodes(fleet: PackedFleet, names: Collection[str]) -> PackedFleet:
    """A fleet without the runs of other nodes."""
    wanted = np.array([number for number, node in enumerate(fleet.nodes) if node.name in names], dtype=np.int64)
    if len(wanted) == len(fleet.nodes):
        return fleet
    kept = ((quantity, np.flatnonzero(np.isin(quantity.node, wanted))) for quantity in fleet.quantities)
    return replace(fleet, quantities=tuple(quantity.of_rows(rows) for quantity, rows in kept if len(rows)))


def _kind(quantity: Measured) -> tuple[object, ...]:
    """A key that is equal for quantities that can be compared across campaigns."""
    names = (getattr(quantity, key) for key in ("measurement", "operation", "quantity", "unit", "dims"))
    return (*names, quantity.layout.key)


def _with_usual(known: Reals | None, level: Reals) -> Reals:
    """The level of each place in the oldest campaign that has it, with one more campaign (row, place)."""
    with warnings.catch_warnings(action="ignore", category=RuntimeWarning):  # what no run has stays NaN
        usual = np.nanmedian(level, axis=0)
    return usual if known is None else np.where(np.isnan(known), usual, known)


def _of_campaign(
    population: Population,
    measured: Measured,
    campaign: int,
    newest: Measured,
    terms: Terms,
    level: Reals,
    template: Reals,
) -> list[Matrix]:
    """A campaign's independent jobs in a measurement, as one matrix for each home of `newest`. A row is the mean
    `level` of a job's runs at the measurement points of `newest`."""
    nodes = population.fleet.nodes
    jobs = [
        (i, together)
        for i, of_node in measured.independent_jobs.items()
        for together in (of_node if not nodes[i].unusable else ())
    ]
    rows = [[row for job in together for row in measured.rows[i][job]] for i, together in jobs]
    at = tuple(
        JobAt(_started(population, i, together), campaign, f"job{together[-1]}", nodes[i].name) for i, together in jobs
    )
    moments = [moment(job.started) for job in at]
    numbers, owner = np.unique([i for i, _ in jobs], return_inverse=True)
    means = np.stack([mean_of_runs(level[of_job][None])[0] for of_job in rows]) if rows else level[:0]
    out = []
    for home in homes(newest):
        places = points(newest, home)
        values = term_values(level[:, places], template[places], terms)
        out.append(
            Matrix(
                newest,
                home,
                terms,
                numbers,
                owner,
                tuple(tuple(f"job{measured.job[row]}/run{measured.run[row]}" for row in of_job) for of_job in rows),
                np.array([float("nan") if of is None else of.timestamp() for of in moments]),
                tuple([row] for row in range(len(rows))),
                means[:, places],
                template[places],
                np.asarray(padded(values, rows), dtype=np.float64) if rows else values[:0, None],
                at,
            )
        )
    return out


def _started(population: Population, i: int, jobs: Sequence[int]) -> str:
    """When the first of some jobs of a node began, by any of its measurements."""
    starts = (q.started[row] for q in population.reduced for job in jobs for row in q.rows.get(i, {}).get(job, ()))
    return min(filter(None, starts), default="")


def _at_places(first: Measured, later: Measured) -> Reals:
    """The levels (row, place) of a campaign at the places of another, NaN if it has none."""
    if first.names == later.names and all(np.array_equal(first.places[dim], later.places[dim]) for dim in first.dims):
        return later.level
    at = {tuple(later.place(number).values()): number for number in range(later.size)}
    column = np.array([at.get(tuple(first.place(number).values()), -1) for number in range(first.size)])
    return np.asarray(np.where(column < 0, np.nan, later.level[:, column]), dtype=later.level.dtype)


def _distinct(
    jobs: Sequence[JobAt], order: Sequence[int], parts: Sequence[Sequence[Matrix]], fleets: Sequence[PackedFleet]
) -> list[int]:
    """The rows of jobs, in their `order`, without copies: jobs of one node that began in the same second.

    Simulated campaigns may all begin at one time; their copies must also have the same levels (`parts`: campaign,
    home).
    """
    levels = [np.concatenate([part.level for part in of_home]) for of_home in zip(*parts, strict=True)]
    former: dict[tuple[str, str], list[int]] = {}
    out = []
    for row in order:
        job = jobs[row]
        others = former.setdefault((job.node, job.started), [])
        alike = (
            not fleets[job.campaign].simulated
            or all(np.array_equal(level[row], level[other], equal_nan=True) for level in levels)
            for other in others
        )
        if not (job.started and any(alike)):
            out.append(row)
        others.append(row)
    return out


def _concatenated(parts: Sequence[Matrix], rows: Sequence[int], names: Sequence[str], template: Reals) -> Matrix:
    """Some rows of the matrices of several campaigns as one, whose nodes are numbers in `names`."""
    first = parts[0]
    every = [(job, runs) for part in parts for job, runs in zip(part.at, part.runs, strict=True)]
    position = {name: number for number, name in enumerate(names)}
    nodes, owner = np.unique([position[every[row][0].node] for row in rows], return_inverse=True)
    widest = max((len(every[row][1]) for row in rows), default=1)
    values = np.full((len(every), max(part.values.shape[1] for part in parts), len(first.terms.terms)), np.nan)
    begin = 0
    for part in parts:
        values[begin : begin + len(part.values), : part.values.shape[1]] = part.values
        begin += len(part.values)
    return Matrix(
        first.measured,
        first.home,
        first.terms,
        nodes,
        owner,
        tuple(every[row][1] for row in rows),
        np.concatenate([part.began for part in parts])[rows],
        tuple([row] for row in range(len(rows))),
        np.concatenate([part.level for part in parts])[rows],
        template[points(first.measured, first.home)],
        values[rows, :widest],
        tuple(every[row][0] for row in rows),
    )


class Difference(msgspec.Struct, frozen=True):
    """Difference of a node from its past (component), with its standard error and degrees of freedom."""

    effect: Floats
    error: Floats
    degrees: Floats


def past(matrix: Matrix, rules: Acceptance) -> Spreads:
    """How the jobs of a matrix vary over time. Each job counts as a node in the spread between runs, so that their
    ratio is by job. The spread between jobs is the assumed one (see `about`)."""
    between_jobs, between_runs = priors(matrix, rules)
    raw, runs = run_means(matrix.values), np.isfinite(matrix.values).sum(axis=1, dtype=np.int16)
    # a campaign is at least one round, even if two are of one day or no time is known
    day = np.floor(np.nan_to_num(matrix.began) / _DAY_S)
    campaign = np.array([job.campaign for job in matrix.at])
    label = (campaign * _MOST_DAYS + day) * _DAY_S
    # with two nodes it is unknown which one moved, so each is compared with its whole past
    days = _known(rounds(raw, matrix.owner, label if len(matrix.nodes) >= FEWEST else np.zeros_like(label)))
    run = run_spread(matrix.values, matrix.terms.pool, between_runs)
    equal = np.ones((len(matrix.nodes), 1))
    job = PooledVariance(np.zeros_like(between_jobs), np.ones_like(between_jobs), equal, between_jobs**2)
    means = raw - days.shift[days.number]
    return Spreads(
        matrix, tolerances.of_matrix(matrix, rules), means, runs, of_each_node(matrix, means), run, job, days
    )


def _known(days: Rounds) -> Rounds:
    """The shift of all nodes in each round (round, component), 0 if no round is known. A round with too few nodes takes
    the shift of the last known round before it, or of the first known one."""
    known = np.flatnonzero(days.error > 0)
    if not len(known):
        return msgspec.structs.replace(days, shift=np.zeros_like(days.shift))
    nearest = np.maximum(np.searchsorted(known, np.arange(len(days.error)), side="right") - 1, 0)
    return msgspec.structs.replace(days, shift=np.asarray(days.shift[known[nearest]]))


def node_of(past: Spreads, position: int) -> str:
    """The name of a node."""
    return past.matrix.at[int(past.matrix.first_row[position])].node


def moved(past: Spreads, rows: Ints | slice = slice(None)) -> Floats:
    """The shift of all nodes in the rounds of some jobs (row, component); 0 with fewer than three nodes."""
    return np.asarray(past.rounds.shift[past.rounds.number[rows]])


def means_with_rounds(past: Spreads, rows: Ints) -> Floats:
    """The means of some jobs, including the shift of all nodes (row, component)."""
    return past.means[rows] + moved(past, rows)


def of_runs(past: Spreads, rows: Ints | slice = slice(None)) -> Floats:
    """The variance of the mean of some jobs by their runs (row, component)."""
    return np.asarray(past.run.pooled * past.run.ratio[rows] / np.maximum(past.runs[rows], 1))


def about(past: Spreads, levels: Floats, fitted: Floats | Ints) -> Spreads:
    """`past` with the spread between jobs about the `levels` of nodes at the time (row, component). `fitted` (node,
    component) is the number of these levels, which reduces the degrees of freedom."""
    count = np.bincount(past.matrix.owner)[:, None]
    spare = np.maximum(count - 1, 1) / np.maximum(count - fitted, 1)
    rest = (past.means - levels) * np.sqrt(spare)[past.matrix.owner]
    job = job_spread(rest, past.matrix.owner, past.of_usual_runs, past.matrix.terms.pool, past.job.assumed)
    return msgspec.structs.replace(past, job=job)


def difference(past: Spreads, position: int, after: Ints, before: Ints, alike: float = 0.0) -> Difference:
    """Difference of a node between two sets of its jobs (rows), without the shift of all nodes."""
    sides = [_mean(past, position, rows, alike) for rows in (after, before)]
    error, degrees = intervals.combined([variance for side in sides for variance in side[1]])
    return Difference(sides[0][0] - sides[1][0], error, degrees)


def _mean(past: Spreads, position: int, rows: Ints, alike: float) -> tuple[Floats, list[tuple[Floats, Floats | float]]]:
    """The mean of some jobs (component), and three variances with their degrees of freedom. They are the variance of
    runs, the assumed one between jobs, and the observed one of jobs and rounds."""
    own, job = past.means[rows], past.job
    present = np.isfinite(own)
    count = np.maximum(present.sum(axis=0), 1)
    mean = np.where(present.any(axis=0), np.where(present, own, 0.0).sum(axis=0) / count, np.nan)
    by_runs = np.where(present, of_runs(past, rows), 0.0).sum(axis=0) / count**2
    of_jobs = job.ratio[position] * not_averaged(len(rows), alike) / len(rows)
    of_rounds = float(past.rounds.error[past.rounds.number[rows]].mean()) / len(rows)
    shown = job.pooled * of_jobs + of_rounds * (past.of_usual_runs + job.variance)
    return mean, [(by_runs, past.run.degrees), (job.assumed * of_jobs, np.inf), (shown, job.degrees)]


def causes_of(past: Spreads, change: Difference, half: Floats, residual: Floats) -> list[Cause]:
    """The causes of a change: the coarsest components that explain the others. A component counts if its interval, with
    half width `half`, is entirely outside the tolerance. `residual` is the change of each measurement point."""
    found = intervals.outside(np.nan_to_num(change.effect), half, past.tolerance)
    if not found.any():
        return []
    none = np.zeros(len(half))
    return causes(
        past.matrix,
        np.nan_to_num(change.effect),
        error=change.error,
        natural=none,
        half=half,
        tolerance=past.tolerance,
        found=found,
        confirmed=none > 0,
        residual=residual,
    )


def together(past: Spreads, sides: Sequence[tuple[Ints, Ints]]) -> Difference | None:
    """The shift of all nodes between two sets of their jobs (`sides`: by node the rows after and before). None if
    unknown."""
    if not past.rounds.error.any() or not sides:
        return None
    of_all = moved(past)
    changes = [of_all[after].mean(axis=0) - of_all[before].mean(axis=0) for after, before in sides]
    counts = [np.median([len(of[number]) for of in sides]) for number in (0, 1)]
    share = float(past.rounds.error.max()) * sum(1 / count for count in counts)
    error, degrees = intervals.combined(
        [
            (share * past.of_usual_runs, past.run.degrees),
            (share * past.job.assumed, np.inf),
            (share * past.job.pooled, past.job.degrees),
        ]
    )
    return Difference(np.median(changes, axis=0), error, degrees)


def residual(past: Spreads, after: Ints, before: Ints) -> Floats:
    """The change of each measurement point (place) between two sets of jobs, including the shift of all nodes."""
    level, scale = past.matrix.level_of, past.matrix.terms
    return np.nan_to_num(scale.residual(level(after.tolist()), level(before.tolist()))).astype(np.float64)


def not_averaged(count: int, alike: float) -> float:
    """Variance of a mean over `count` jobs as a multiple of that of independent jobs. The jobs follow a first-order
    autoregressive process, in which `alike` is the correlation of a job with the next one."""
    lag = np.arange(1, count)
    return float(1 + 2 * np.sum((1 - lag / count) * alike**lag))


def correlation(rest: Floats, owner: Ints) -> float:
    """The correlation of a job with the next one of its node, pooled over nodes and components. `rest` (row, component)
    is the difference of jobs from their node's level. 0 if no node has enough jobs."""
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
