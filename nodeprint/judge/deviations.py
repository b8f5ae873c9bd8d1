"""The table of deviations, on which all decisions are based.

For every node, measurement and component it contains the difference from the peers, its error, two intervals and the
tolerance. Each is by job and over all jobs together.

The value of a run is reference + round + node + job + run. A *round* is the common shift of all nodes from one day to
another; the rest varies by node, by job and by run. Each is estimated once from all jobs of all nodes, so their order
does not matter.

docs/method/verdict.md has the formula of each column.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import msgspec
import numpy as np
import numpy.typing as npt

from nodeprint.data.places.layout import Ints
from nodeprint.judge import tolerances
from nodeprint.judge.acceptance_file import Acceptance
from nodeprint.judge.reduction import Matrix, mean_of_groups
from nodeprint.judge.terms import Terms
from nodeprint.stats import intervals
from nodeprint.stats.peers import FEWEST, MAJORITY, REMAINDER, Peers, agreeing, peers
from nodeprint.stats.rounds import Rounds, rounds
from nodeprint.stats.runs import PooledVariance, job_spread, run_spread

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

#: With fewer nodes, those outside a tolerance are excluded from the reference one after another.
_FEW = 64
#: The number of estimates that are computed at once, as all may not fit into memory.
AT_ONCE = 256
#: A component does not count as missing if less than this share of the nodes has it.
USUAL = 0.5
#: The chance that in a component type any job of nodes within their tolerances shows a difference. It costs a second
#: job, and only two that show it make a node DEVIATE.
SUSPECT = 0.05
#: With fewer nodes, none lies between others.
_FEWEST_WITH_MIDDLE = 3
#: Single runs beyond this many tolerances are far from the peers.
_FAR = 2.0


def job_tail(terms: Terms, level: float, jobs: int) -> Floats:
    """The probability at each end of an interval of one job (component). All components of a component type and all
    `jobs` share the `level`."""
    size = np.bincount(terms.component_type, minlength=len(terms.component_types))[terms.component_type]
    return np.asarray(level / (2.0 * max(jobs, 1) * size))


def campaign_tail(level: float, tests: int) -> float:
    """The probability at each end of an interval of all jobs together. All `tests` share the `level`."""
    return level / (2.0 * max(tests, 1))


class Deviations(msgspec.Struct, frozen=True, dict=True):
    """The table of one measurement at one home over the nodes of one group.

    A row is the mean over some independent jobs of one node, with equal weights. The whole table has a row for each job
    (a row of the matrix), and `pooled` has a row for each node. `rows` lists the jobs, grouped by row of the table, and
    `first` is the start of each group. `of_job` and `runs_of_job` replace the means of jobs and the number of their
    runs (both job, component) if only some of the runs count.

    Columns (row, component) are computed for the requested rows only: for ten thousand nodes each column has 200 MB.

    `spreads` describe how the jobs vary, and `reference` is the peer reference. A component is `referenced` (component)
    if enough nodes agree to establish the right value. In others no node matches its peers, and a node differs only if
    it is beyond the spread of all others. `tail` (component) is the level of intervals of one job, `campaign_tail` that
    of all jobs.
    """

    spreads: Spreads
    reference: Peers
    referenced: Bools
    tail: Floats
    campaign_tail: float
    rows: Ints
    first: Ints
    of_job: Floats | None = None
    runs_of_job: Floats | None = None
    of_table: Deviations | None = None

    def __len__(self) -> int:
        return len(self.first)

    def __getitem__(self, numbers: Sequence[int] | Ints | slice) -> Deviations:
        """Some of the rows."""
        chosen = np.arange(len(self.first))[numbers]
        ends = np.append(self.first[1:], len(self.rows))
        spans = [self.rows[self.first[number] : ends[number]] for number in chosen.tolist()]
        sizes = np.array([len(span) for span in spans], dtype=np.int64)
        return self._with_rows(np.concatenate([self.rows[:0], *spans]), np.cumsum(sizes) - sizes)

    def _with_rows(
        self, rows: Ints, first: Ints, of_job: Floats | None = None, runs_of_job: Floats | None = None
    ) -> Deviations:
        return msgspec.structs.replace(
            self, rows=rows, first=first, of_job=of_job, runs_of_job=runs_of_job, of_table=self.whole
        )

    @property
    def whole(self) -> Deviations:
        """The table with a row for each job, which has the columns of components and nodes."""
        return self if self.of_table is None else self.of_table

    @cached_property
    def pooled(self) -> Deviations:
        """Every node by all of its jobs, in the order of the matrix's nodes."""
        return self._with_rows(np.arange(len(self.spreads.means)), self.matrix.first_row[:-1])

    def pooled_node(self, position: int) -> tuple[Deviations, int]:
        """The rows of `pooled` that contain a node, and its number among them. Consecutive nodes are computed AT_ONCE
        together."""
        chunk, number = divmod(position, AT_ONCE)
        if chunk not in self._chunks:
            self._chunks.clear()
            self._chunks[chunk] = self.pooled[chunk * AT_ONCE : (chunk + 1) * AT_ONCE]
        return self._chunks[chunk], number

    @cached_property
    def _chunks(self) -> dict[int, Deviations]:
        return {}

    def mean_of(self, rows: Sequence[int] | Ints, runs: Bools | None = None) -> Deviations:
        """One row: a node by some of its jobs (rows of the matrix), or by some of their `runs` (job, run)."""
        chosen, first = np.array(rows, dtype=np.int64), np.zeros(1, dtype=np.int64)
        if runs is None:
            return self._with_rows(chosen, first)
        shift = self.spreads.rounds.shift[self.spreads.rounds.number[chosen]]
        values = np.where(runs[:, :, None], self.matrix.values[chosen], np.nan)
        return self._with_rows(chosen, first, run_means(values) - shift, np.isfinite(values).sum(axis=1))

    # --- columns of components, nodes and jobs ---

    @property
    def matrix(self) -> Matrix:
        """The values of runs."""
        return self.spreads.matrix

    @property
    def tolerance(self) -> Floats:
        """The tolerance (component), on the model's scale."""
        return self.spreads.tolerance

    @property
    def terms(self) -> Terms:
        """The components."""
        return self.matrix.terms

    @cached_property
    def usual(self) -> Bools:
        """The components that most nodes have (component)."""
        return np.asarray(np.isfinite(self.spreads.of_nodes).mean(axis=0) >= USUAL)

    @cached_property
    def outside(self) -> Bools:
        """Whether the complete interval of a job is outside the tolerance (row, component)."""
        return _outside(self, self.tail)

    @cached_property
    def outside_pooled(self) -> Bools:
        """Whether the complete interval from several jobs of a node is outside the tolerance (node, component)."""
        several = np.flatnonzero(np.diff(self.matrix.first_row) > 1)
        out = np.zeros((len(self.matrix.nodes), len(self.tolerance)), dtype=np.bool_)
        if len(several):
            out[several] = _outside(self.pooled[several], self.campaign_tail)
        return out

    def nodes_outside(self, side: int) -> Bools:
        """Whether a node is outside the tolerance on one `side` (1 above, -1 below) in a job, or in all together (node,
        component)."""
        first = self.matrix.first_row[:-1]
        of_jobs = np.logical_or.reduceat(self.outside & (side * self.difference > 0), first)
        return np.asarray(of_jobs | (self.outside_pooled & (side * self.pooled.difference > 0)))

    @cached_property
    def scatter(self) -> Floats:
        """The variance of each component over the other nodes (node, component). It is 0 if the right value is known,
        or if fewer than two others have a value."""
        values = np.where(self.referenced, 0.0, self.spreads.of_nodes - np.nanmedian(self.spreads.of_nodes, axis=0))
        present = np.isfinite(values)
        values = np.nan_to_num(values)
        count = present.sum(axis=0) - present
        total, squares = values.sum(axis=0) - values, (values**2).sum(axis=0) - values**2
        return np.where(count > 1, (squares - total**2 / np.maximum(count, 1)) / np.maximum(count - 1, 1), 0.0)

    @cached_property
    def scattered(self) -> Bools:
        """Components without a majority that agrees, or of three or four nodes without two, if runs do not explain the
        disagreement (component)."""
        few = _FEWEST_WITH_MIDDLE <= len(self.matrix.nodes) < FEWEST
        if self.referenced.all() and not few:
            return np.asarray(~self.referenced)
        means = self.pooled.means
        slack = np.sqrt(2) * np.nanmedian(self.pooled.half(intervals.EQUIVALENCE, of="error"), axis=0)
        alike = agreeing(means, self.tolerance, slack, _FEWEST_WITH_MIDDLE)
        none_alike = few & (np.round(alike * np.isfinite(means).sum(axis=0)) < 2)
        return np.asarray((~self.referenced & (alike < MAJORITY)) | none_alike)

    def far_runs(self, position: int) -> Bools:
        """Single runs of a node far beyond the tolerance (job, run, component). They count if other runs of the job are
        within it, and if there are at least two."""
        rows = self.matrix.jobs(position)
        values = (
            self.matrix.values[rows.start : rows.stop]
            - self.spreads.rounds.shift[self.spreads.rounds.number[rows]][:, None]
        )
        difference = values - self.reference.center[position]
        variance, most = self.spreads.run.pooled + self.spreads.job.variance, values.shape[1]
        error, degrees = np.sqrt(variance), self.spreads.run.degrees
        beyond = self.tolerance + intervals.half_width(error, degrees, self.tail / most)
        limit = np.maximum(beyond, _FAR * self.tolerance)
        with np.errstate(invalid="ignore"):
            above, below = difference > limit, difference < -limit
            others = (np.abs(difference) <= self.tolerance).any(axis=1)
        several = np.maximum(above.sum(axis=1), below.sum(axis=1)) > 1
        contradicted = several & others
        side = np.where((above.sum(axis=1) >= below.sum(axis=1))[:, None], above, below)
        return np.asarray(side & contradicted[:, None])

    @cached_property
    def restless(self) -> Bools:
        """Jobs with a range of runs above the tolerance, so that several runs may be far from the peers and others not
        (row)."""
        values = self.matrix.values
        if values.shape[1] < 3:  # two runs have no majority
            return np.zeros(len(values), dtype=np.bool_)
        low, high = np.fmin.reduce(values, axis=1), np.fmax.reduce(values, axis=1)
        with np.errstate(invalid="ignore"):
            return np.asarray((high - low > self.tolerance).any(axis=1))

    # --- columns of one node, in a table with its row alone: evidence from its jobs in any order ---

    @property
    def position(self) -> int:
        """The position of the node in the matrix."""
        return int(self.owner[0])

    @cached_property
    def each_job(self) -> Deviations:
        """The rows of the node's jobs."""
        return self.whole[self.rows]

    @cached_property
    def shows(self) -> Bools:
        """The jobs outside the tolerance, on the side with most of them (job, component)."""
        outside, difference = self.whole.outside[self.rows], self.each_job.difference
        with np.errstate(invalid="ignore"):
            above, below = outside & (difference > 0), outside & (difference < 0)
        return np.where(above.sum(axis=0) >= below.sum(axis=0), above, below)

    @cached_property
    def confirmed(self) -> Bools:
        """Whether two jobs are outside the tolerance on one side (component). If two jobs are merely beyond it, the
        interval from all jobs decides."""
        difference = self.each_job.difference
        with np.errstate(invalid="ignore"):
            above, below = (difference > self.tolerance).sum(axis=0), (difference < -self.tolerance).sum(axis=0)
        several = self.whole.outside_pooled[self.position] & (np.maximum(above, below) > 1)
        return np.asarray((self.shows.sum(axis=0) > 1) | several)

    @cached_property
    def runs_far(self) -> Bools:
        """The runs far beyond the tolerance if others of their job are not (job, run, component); without jobs if no
        job is restless."""
        if self.whole.restless[self.rows].any():
            return self.far_runs(self.position)
        return np.zeros((0, self.matrix.values.shape[1], len(self.tolerance)), dtype=np.bool_)

    @cached_property
    def intermittent(self) -> Bools:
        """Whether one job is outside and another inside, or several runs of a job are far beyond and others within
        (component)."""
        several = len(self.rows) > 1
        contradicted = self.whole.inside[self.rows].any(axis=0) if several else np.zeros_like(self.confirmed)
        in_runs = self.runs_far.any(axis=(0, 1))
        # a component that single runs contradict is intermittent if other jobs could have confirmed it
        return np.asarray(
            ~self.confirmed & np.where(self.shows.any(axis=0), contradicted | (in_runs & several), in_runs)
        )

    @cached_property
    def suspected(self) -> Bools:
        """Whether one job is outside, without another that decides (component)."""
        return np.asarray(~self.confirmed & ~self.intermittent & self.shows.any(axis=0))

    # --- columns of rows ---

    @cached_property
    def owner(self) -> Ints:
        """The node of each row, by its position in the matrix."""
        return self.matrix.owner[self.rows[self.first]]

    @property
    def _group(self) -> Ints:
        sizes = np.diff(np.append(self.first, len(self.rows)))
        return np.repeat(np.arange(len(self.first)), sizes)

    @cached_property
    def means(self) -> Floats:
        """The mean over jobs (row, component), on the model's scale."""
        of_job = self.spreads.means[self.rows] if self.of_job is None else self.of_job
        same = len(self.rows) == len(self.first)
        return of_job if same else np.asarray(mean_of_groups(of_job, self._group), dtype=np.float64)

    @cached_property
    def difference(self) -> Floats:
        """The difference from the center of the peers (row, component)."""
        difference = self.means - self.reference.center[self.owner]
        # losing less time than the peers is not a fault
        return np.maximum(difference, 0.0) if self.terms.share else difference

    @cached_property
    def runs(self) -> Ints:
        """The number of runs of each estimate (row, component)."""
        return np.asarray(np.add.reduceat(self._runs, self.first, axis=0), dtype=np.int64)

    @property
    def _runs(self) -> npt.NDArray[np.number]:
        return self.spreads.runs[self.rows] if self.runs_of_job is None else self.runs_of_job

    @cached_property
    def jobs(self) -> Ints:
        """The number of jobs of each estimate (row, component), at least 1."""
        return np.maximum(np.add.reduceat(self._runs > 0, self.first, axis=0, dtype=np.int64), 1)

    @cached_property
    def of_runs(self) -> Floats:
        """The variance from runs (row, component)."""
        spread, runs = self.spreads.run, self._runs
        share = np.add.reduceat(np.where(runs > 0, 1 / np.maximum(runs, 1), 0.0), self.first, axis=0)
        share = np.where(share > 0, share, 1.0) / self.jobs**2
        return np.asarray(spread.pooled * spread.ratio[self.owner] * share)

    @property
    def _of_movement(self) -> Floats:
        """The additional variance of a node that varies more between jobs than others (row, component). It applies if
        the row has all jobs of the node; a single job is judged like any other."""
        matrix, spreads = self.matrix, self.spreads
        used, made = np.diff(np.append(self.first, len(self.rows))), np.diff(matrix.first_row)[self.owner]
        if not ((used == made) & (used > 1)).any():
            return np.zeros((len(self.first), 1))
        more = np.where((used == made)[:, None], spreads.job.ratio[self.owner] - 1, 0.0)
        return np.asarray(more * spreads.of_usual_job / self.jobs)

    @property
    def of_jobs(self) -> Floats:
        """The variance from jobs beyond their runs, and from rounds (row, component)."""
        return np.asarray(self.spreads.job.variance / self.jobs + self._of_movement + self._of_rounds)

    @property
    def _of_rounds(self) -> Floats:
        """The variance from the shifts of rounds that the peers do not share (row, component)."""
        factor = self.spreads.rounds.factor(self.rows, self.first)
        if not factor.any():
            return np.zeros((len(self.first), 1))
        return np.asarray(factor[:, None] * self.spreads.of_usual_job)

    @property
    def of_reference(self) -> Floats:
        """The variance of the peers' center (row, component)."""
        return np.asarray(self._share * self._of_peer)

    @property
    def _share(self) -> Floats:
        """The center's variance as a share of those of its peers (row, 1)."""
        return self.reference.share[self.owner][:, None]

    @property
    def _of_peer(self) -> Floats:
        """The variance of a peer from its runs and jobs (row, component)."""
        reference, owner = self.reference, self.owner
        of_jobs = reference.of_jobs[owner] * self.spreads.job.variance + reference.of_movement[owner]
        return np.asarray(reference.of_runs[owner] + of_jobs)

    @property
    def _variances(self) -> list[tuple[Floats, Floats]]:
        """The variances that make up the error, each with its degrees of freedom. They are runs, the assumed variance
        between jobs (taken as known), and the observed variance between jobs beyond it."""
        reference, owner, share, jobs = self.reference, self.owner, self._share, self.spreads.job
        of_jobs = 1 / self.jobs + share * reference.of_jobs[owner]
        more = self._of_movement + self._of_rounds + share * reference.of_movement[owner]
        return [
            (self.of_runs + share * reference.of_runs[owner], self.spreads.run.degrees),
            (jobs.assumed * of_jobs, np.full(len(jobs.assumed), np.inf)),
            (jobs.pooled * of_jobs + more, jobs.degrees),
        ]

    @cached_property
    def error(self) -> Floats:
        """The standard error of the difference (row, component)."""
        return intervals.combined(self._variances)[0]

    @cached_property
    def degrees(self) -> Floats:
        """The degrees of freedom of the error (row, component)."""
        return intervals.combined(self._variances)[1]

    @cached_property
    def different(self) -> tuple[Floats, Floats]:
        """The standard error of the difference and its degrees of freedom (row, component), for testing if a node
        deviates.

        The peers count as a sample of healthy nodes, so their natural variance adds to that of the center. For example,
        if the tolerance of harvested components is two standard deviations, the center of a few is a quarter of the
        tolerance off. If nodes do not agree, the variance over all others enters instead.
        """
        reference, referenced, scatter = self.reference, self.referenced, self.whole.scatter[self.owner]
        nature = np.where(referenced, self._share * self.nature, scatter)
        degrees = np.where(referenced, reference.degrees[self.owner], max(len(reference.count) - 2.0, 1.0))
        return intervals.combined([*self._variances, (nature, degrees)])

    @property
    def nature(self) -> Floats:
        """The natural variance of healthy nodes, beyond that from runs and jobs (row, component)."""
        return np.maximum(self.between - self._of_peer, 0.0)

    @property
    def between(self) -> Floats:
        """The variance of a healthy node about the center (row, component)."""
        return self.reference.between[self.owner]

    @cached_property
    def half_90(self) -> Floats:
        """Half of the 90% interval (row, component). It is infinite with a single run, which does not show the spread
        of runs, or if the right value is unknown. The middle one of three nodes that all differ matches none."""
        unknown = (self.runs < 2) | ~self.referenced | self.whole.scattered
        return np.where(unknown, np.inf, self.half(intervals.EQUIVALENCE, of="error"))

    @cached_property
    def inside(self) -> Bools:
        """Whether the 90% interval is inside the tolerance, so the node matches its peers (row, component)."""
        return intervals.inside(self.difference, self.half_90, self.tolerance)

    def half(self, tail: Floats | float, of: str = "different") -> Floats:
        """Half of the interval that leaves `tail` at each end (row, component)."""
        error, degrees = self.different if of == "different" else (self.error, self.degrees)
        return intervals.half_width(error, degrees, tail)

    @property
    def half_of_job(self) -> Floats:
        """Half of the interval that decides in one job (row, component), simultaneous over the component type and all
        jobs of all nodes."""
        return self.half(self.tail)

    @property
    def in_unit(self) -> tuple[Floats, Floats]:
        """The values of the node and of its peers (row, component), in the measurement's unit.

        Their difference is the same for two nodes that are each other's only peer.
        """
        terms, levels, difference = self.terms, self.matrix.levels, self.difference
        if terms.share:
            peers_have = np.broadcast_to(levels, difference.shape)
            return peers_have + np.expm1(difference) * (terms.floor + peers_have), peers_have
        relative = np.expm1 if terms.scale == "log" else np.asarray
        value, peers = (levels * (1 + relative(of)) for of in (self.means, self.means - difference))
        return value, np.asarray(peers)


class Spreads(msgspec.Struct, frozen=True, dict=True):
    """How the jobs of a `matrix` vary, with its `tolerance` (component).

    `means` over runs exclude the shifts of rounds (row, component), and `runs` counts the runs (row, component).
    `of_nodes` are the means over the jobs of each node (node, component). `run` and `job` are the spreads between runs
    and between jobs.
    """

    matrix: Matrix
    tolerance: Floats
    means: Floats
    runs: npt.NDArray[np.int16]
    of_nodes: Floats
    run: PooledVariance
    job: PooledVariance
    rounds: Rounds

    @property
    def of_usual_runs(self) -> Floats:
        """The variance of the mean of a usual job from its runs (component)."""
        return np.asarray(self.run.pooled / np.maximum(np.median(self.runs, axis=0), 1))

    @property
    def of_usual_job(self) -> Floats:
        """The variance of the mean of a usual job (component)."""
        return self.of_usual_runs + self.job.variance

    @cached_property
    def of_usual_node(self) -> Floats:
        """The variance of the mean of a usual node (component)."""
        jobs = len(self.means) / max(len(self.of_nodes), 1)
        return np.asarray((self.run.pooled / np.maximum(self.runs.mean(axis=0), 1) + self.job.variance) / jobs)


def spreads(matrix: Matrix, rules: Acceptance) -> Spreads:
    """Estimate how the jobs of a measurement vary."""
    (assumed_job, assumed_run), pool = priors(matrix, rules), matrix.terms.pool
    run = run_spread(matrix.values, pool, assumed_run, matrix.owner)
    raw, runs = run_means(matrix.values), np.isfinite(matrix.values).sum(axis=1, dtype=np.int16)
    days = rounds(raw, matrix.owner, matrix.began)
    means = raw - days.shift[days.number]
    of_runs = run.pooled / np.maximum(np.median(runs, axis=0), 1)
    job = job_spread(means, matrix.owner, of_runs, pool, assumed_job**2)
    tolerance = tolerances.of_matrix(matrix, rules)
    return Spreads(matrix, tolerance, means, runs, of_each_node(matrix, means), run, job, days)


def deviations(matrix: Matrix, rules: Acceptance, jobs: int, tests: int) -> Deviations:
    """The table of a measurement at one home. All `jobs` and `tests` of the campaign share the level of the intervals.

    Nodes outside a tolerance are not peers of others. With few nodes the farthest is excluded first, as others may
    differ only because of it.
    """
    of_it = spreads(matrix, rules)
    usable = np.asarray(np.isfinite(of_it.of_nodes).mean(axis=1) > 0.5)
    trusted = usable if usable.sum() > 1 else np.ones_like(usable)
    enough = max(2, int(np.ceil(REMAINDER * trusted.sum())))
    made = table(
        of_it,
        _reference(of_it, trusted),
        agreeing(of_it.of_nodes, of_it.tolerance) >= MAJORITY,
        job_tail(matrix.terms, SUSPECT, jobs),
        campaign_tail(rules.false_alarm, tests),
    )
    while True:
        share = np.where(trusted, _times_tolerance_outside(made), 0.0)
        if not share.any():
            return made
        few = len(matrix.nodes) < _FEW
        kept = trusted & ((share < share.max()) if few else (share == 0))
        if kept.sum() < enough:
            return made
        trusted = kept
        made = msgspec.structs.replace(made, reference=_reference(of_it, trusted))


def table(of_it: Spreads, reference: Peers, referenced: Bools, tail: Floats, campaign_tail: float) -> Deviations:
    """The table with a row for each job, from the estimates over all jobs together."""
    rows = np.arange(len(of_it.means))
    return Deviations(of_it, reference, referenced, tail, campaign_tail, rows, rows)


def _times_tolerance_outside(made: Deviations) -> Floats:
    """The largest difference of each node that is outside its tolerance in a job, or in all together, in tolerances
    (node). It is 0 without one."""
    first = made.matrix.first_row[:-1]
    of_jobs = np.where(made.outside, np.abs(made.difference) / made.tolerance, 0.0).max(axis=1, initial=0.0)
    out = np.maximum.reduceat(of_jobs, first)
    several = np.flatnonzero(made.outside_pooled.any(axis=1))
    if len(several):
        of_all = np.where(made.outside_pooled[several], np.abs(made.pooled[several].difference) / made.tolerance, 0.0)
        out[several] = np.maximum(out[several], of_all.max(axis=1))
    return np.asarray(out)


def _outside(table: Deviations, tail: Floats | float) -> Bools:
    """Whether complete intervals are outside the tolerance (row, component), AT_ONCE rows at a time."""
    out = np.zeros((len(table), len(table.tolerance)), dtype=np.bool_)
    for start in range(0, len(table), AT_ONCE):
        some = table[start : start + AT_ONCE]
        out[start : start + len(some)] = intervals.outside(some.difference, some.half(tail), table.tolerance)
    return out


def _reference(of_it: Spreads, trusted: Bools) -> Peers:
    """The reference of each node, from the `trusted` ones."""
    runs, run, first_row = of_it.runs, of_it.run, of_it.matrix.first_row[:-1]
    of_job = np.where(runs > 0, 1.0 / np.maximum(runs, 1), 0.0)
    count = np.maximum(np.add.reduceat(runs > 0, first_row, axis=0, dtype=np.int64), 1)
    share_runs = np.add.reduceat(of_job, first_row, axis=0)
    by_runs = run.pooled * run.ratio * np.where(share_runs > 0, share_runs, 1.0) / count**2
    by_jobs = np.broadcast_to(1 / count, by_runs.shape)
    by_movement = (of_it.job.ratio - 1) * of_it.of_usual_job / count
    return peers(filled(of_it.of_nodes), of_it.matrix.terms.pool, trusted, by_runs, by_jobs, by_movement)


def priors(matrix: Matrix, rules: Acceptance) -> tuple[Floats, Floats]:
    """The standard deviations of healthy nodes that acceptance.yaml assumes (component): between the jobs of a node,
    and between its runs."""
    ones = np.ones(len(matrix.terms.terms))
    if not matrix.measured.of_pairs:
        cell = rules.cell(matrix.measured.model.term)
        return cell.job_sd * ones, cell.run_sd * ones
    return rules.prior("job") * ones, rules.prior("run") * ones


def run_means(values: Floats) -> Floats:
    """The mean over runs (row, component) of `values` (row, run, component), NaN without runs."""
    present = np.isfinite(values)
    count = present.sum(axis=1)
    total = np.where(present, values, 0.0).sum(axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(np.where(count > 0, total / np.maximum(count, 1), np.nan))


def of_each_node(matrix: Matrix, means: Floats) -> Floats:
    """The mean of each node (node, component) over the `means` of its jobs (row, component)."""
    same = len(means) == len(matrix.nodes)
    return means if same else np.asarray(mean_of_groups(means, matrix.owner), dtype=np.float64)


def filled(means: Floats) -> Floats:
    """Replace missing `means` (node, component) by the median of the others, with no effect on the center."""
    gaps = ~np.isfinite(means)
    if not gaps.any():
        return means
    finite = np.where(np.isfinite(means).any(axis=0), means, 0.0)
    return np.where(gaps, np.nanmedian(finite, axis=0), means)
