"""The one table that everything is decided by: for every node, job, measurement and part its difference from the peers,
the error of that, two intervals, and the bound.

A *block* is the table's part for one measurement at one home: nodes of one group in their first, second, ...
independent job. docs/method/verdict.md has the formula of each column.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import msgspec
import numpy as np
import numpy.typing as npt

from nodeprint.data.places.layout import Ints
from nodeprint.judge import bounds
from nodeprint.judge.acceptance_file import Acceptance
from nodeprint.judge.reduction import Matrix, Reduced, of_jobs
from nodeprint.judge.terms import Terms
from nodeprint.stats import intervals
from nodeprint.stats.peers import FEWEST, MAJORITY, TEMPLATE_ERROR, Peers, centred, peers, reach
from nodeprint.stats.runs import MOST_DEGREES, RunSpread, job_variance, run_spread

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

#: The variance of a median, times that of a mean.
_OF_MEDIAN = np.pi / 2


class Levels(msgspec.Struct, frozen=True):
    """How often a campaign may be wrong: `suspect` that in a family of parts any of the `nodes` that are within their
    bounds is suspected; `confirm` that anything that is suspected and within its bound is confirmed."""

    suspect: float
    confirm: float
    nodes: int

    def tail(self, terms: Terms) -> Floats:
        """The probability at each end of a part's simultaneous interval (part): shared by all parts of its family
        and all nodes."""
        size = np.bincount(terms.family, minlength=len(terms.families))[terms.family]
        return np.asarray(self.suspect / (2.0 * max(self.nodes, 1) * size))


#: Some or all rows of a block.
Rows = Ints | Sequence[int] | int | slice
ALL = slice(None)


class Template(msgspec.Struct, frozen=True):
    """The peers' centre by kind of node (kind, part): the variance of a healthy node about it (`between`), the variance
    of a peer by its runs (`of_runs`), the centre's variance as a `share` of what a peer has by its runs and jobs, and
    what the peers being as they are by `nature` adds to it, with its `degrees` of freedom. `kind` (node) is each
    node's: of a large fleet all nodes have the same peers, but those that are no peers themselves."""

    kind: Ints
    between: Floats
    of_runs: Floats
    share: Floats
    nature: Floats
    degrees: Floats


class Block(msgspec.Struct, frozen=True, dict=True):
    """One measurement at one home: the rows of the table for `matrix.nodes` in their `job` (0 for the first independent
    one), columns by part.

    `difference` from the peers (node, part) on the model's scale, `of_job` (part) the variance between jobs with its
    `job_degrees`, that which jobs show where nodes have several, else the `assumed_job` one; `bound` (part), by node
    the number of `peers`, `spread` the spread over runs, `template` what the centre adds, and `tail` (part) the level
    of the simultaneous intervals. `nodes` are as many as were compared. A part that is not `centred` (part) has no
    majority within its bound of any centre: no node is shown to be the same in it, and different only one that is
    beyond all of the majority, which `reach`es so far (part; 0 of a part with a centre). A job of few nodes is compared
    with the centre of the first jobs, `shifted` by what they have moved together.

    What follows from these by node and part is a method of the `rows` that it is wanted of: of ten thousand nodes each
    such array has 200 MB, and they are kept only where they take long to make.
    """

    matrix: Matrix
    job: int
    difference: Floats
    of_job: Floats
    job_degrees: Floats
    assumed_job: Floats
    bound: Floats
    peers: Floats
    spread: RunSpread
    template: Template
    tail: Floats
    nodes: int
    centred: Bools
    reach: Floats
    shifted: bool = False

    @property
    def terms(self) -> Terms:
        """The parts."""
        return self.matrix.terms

    @cached_property
    def row(self) -> dict[int, int]:
        """The row of each fleet node."""
        return self.matrix.row

    @cached_property
    def runs(self) -> npt.NDArray[np.int16]:
        """How many runs each node has of each part."""
        return np.asarray(np.isfinite(self.matrix.values).sum(axis=1, dtype=np.int16))

    def of_runs(self, rows: Rows = ALL) -> Floats:
        """The variance of the mean over runs."""
        return self.spread.variance(rows) / np.maximum(self.runs[rows], 1)

    def of_template(self, rows: Rows = ALL) -> Floats:
        """The variance of the peers' centre."""
        kind = self.template.kind[rows]
        return np.asarray(self.template.share[kind] * (self.template.of_runs[kind] + self.of_job))

    def between(self, rows: Rows = ALL) -> Floats:
        """The variance of a healthy node about the centre."""
        return np.asarray(self.template.between[self.template.kind[rows]])

    def error(self, rows: Rows = ALL) -> Floats:
        """The standard error of the difference."""
        return np.asarray(np.sqrt(self.of_runs(rows) + self.of_job + self.of_template(rows)))

    def degrees(self, rows: Rows = ALL) -> Floats:
        """The degrees of freedom of the error: it is made of two variances, that between runs and that between jobs, of
        which the centre has its share."""
        return intervals.combined(self._variances(rows))[1]

    def _variances(self, rows: Rows) -> list[tuple[Floats, Floats]]:
        """What the error is made of, from run to run and from job to job, each with its degrees of freedom."""
        kind = self.template.kind[rows]
        peers = self.template.share[kind]
        of_runs = self.of_runs(rows) + peers * self.template.of_runs[kind]
        return [(of_runs, self.spread.degrees), (self.of_job * (1 + peers), self.job_degrees)]

    def different(self, rows: Rows = ALL) -> tuple[Floats, Floats]:
        """The standard error of the difference and its degrees of freedom where it has to be shown that the node is
        another one: not only than the peers that are there, which a node is the same as, but than what they are drawn
        from. A few harvested parts whose bound is two of their standard deviations have a centre that is a quarter of
        the bound off that of others."""
        kind = self.template.kind[rows]
        nature = self.template.nature[kind], self.template.degrees[kind]
        return intervals.combined([*self._variances(rows), nature])

    @cached_property
    def by_itself(self) -> Block:
        """The block as one job shows it: with the assumed variance between jobs, taken for granted."""
        if self.of_job is self.assumed_job:
            return self
        degrees = np.full(len(self.assumed_job), MOST_DEGREES)
        return msgspec.structs.replace(self, of_job=self.assumed_job, job_degrees=degrees)

    def half_90(self, rows: Rows = ALL) -> Floats:
        """Half of the 90 % interval; infinite where one run says nothing of how far runs differ."""
        unknown = (self.runs[rows] < 2) | ~self.centred
        return np.asarray(np.where(unknown, np.inf, self.quantile_90[rows] * self.error(rows)))

    @cached_property
    def quantile_90(self) -> Floats:
        """Half of the 90 % interval in standard errors."""
        return intervals.quantile(self.degrees(), intervals.EQUIVALENCE)

    @cached_property
    def half_simultaneous(self) -> Floats:
        """Half of the interval that holds for all parts of a family and all nodes together, of this job by itself."""
        return self.by_itself.half(self.tail)

    def half(self, tail: Floats | float, rows: Rows = ALL) -> Floats:
        """Half of the interval with this probability at each end, of some `rows`: about the centre, or about all of
        the majority where that has none."""
        half = intervals.half_width(*self.different(rows), tail)
        return np.asarray(half + self.reach)

    @cached_property
    def scattered(self) -> Bools:
        """Where a part has no centre and runs do not explain it (part): too few nodes may be within the bound at all,
        by their 90 % intervals."""
        if self.centred.all():
            return ~self.centred
        within = np.maximum(np.abs(self.difference) - self.quantile_90 * self.error(), 0.0)
        return np.asarray(~self.centred & ~centred(np.where(np.isnan(self.difference), np.nan, within), self.bound))

    @cached_property
    def inside(self) -> Bools:
        """Where the 90 % interval is inside the bound: the node is the same in this part."""
        return intervals.inside(self.difference, self.half_90(), self.bound)

    @cached_property
    def outside(self) -> Bools:
        """Where the simultaneous interval is outside the bound: the node is different in this part."""
        return intervals.outside(self.difference, self.half_simultaneous, self.bound)


def first_jobs(matrix: Matrix, rules: Acceptance, levels: Levels) -> Block:
    """The block of the first jobs. Nodes that are outside a bound are no peers of others: of few nodes the farthest is
    left out first, as others may differ only because it is among their peers."""
    return _with_majority(_trimmed(matrix, rules, levels))


def _with_majority(block: Block) -> Block:
    """The block, whose parts have a centre where a majority of its nodes is within the bound of it."""
    has_centre = centred(block.difference, block.bound)
    beyond = np.zeros(len(has_centre))
    if not has_centre.all():
        beyond[~has_centre] = reach(block.difference[:, ~has_centre])
    return msgspec.structs.replace(block, centred=has_centre, reach=beyond)


def _trimmed(matrix: Matrix, rules: Acceptance, levels: Levels) -> Block:
    usable = np.isfinite(matrix.values).any(axis=1)
    complete = np.asarray(usable.mean(axis=1) > 0.5)
    trusted = complete if complete.sum() > 1 else np.ones_like(complete)
    enough = max(2, int(np.ceil(MAJORITY * trusted.sum())))
    spread = run_spread(matrix.values, matrix.terms.pool, priors(matrix, rules).run)
    block = _compared(matrix, 0, rules, levels, spread, trusted)
    while True:
        share = np.where(block.outside, np.abs(block.difference) / block.bound, 0.0).max(axis=1, initial=0.0)
        share = np.where(trusted, share, 0.0)
        if not share.any():
            return block
        few = len(matrix.nodes) < _FEW
        kept = trusted & ((share < share.max()) if few else (share == 0))
        if kept.sum() < enough:
            return block
        trusted = kept
        block = _compared(matrix, 0, rules, levels, spread, trusted)


#: Below this many nodes those that are outside are left out one after another.
_FEW = 64


def _compared(matrix: Matrix, job: int, rules: Acceptance, levels: Levels, spread: RunSpread, trusted: Bools) -> Block:
    """The block of nodes that are compared with those of them that are `trusted`."""
    means = run_means(matrix)
    compared = peers(filled(means), matrix.terms.pool, trusted)
    template = _template(compared, matrix, spread, trusted, priors(matrix, rules).job ** 2)
    return built(matrix, job, rules, levels, spread, template, compared.count, means - compared.centre)


def built(
    matrix: Matrix,
    job: int,
    rules: Acceptance,
    levels: Levels,
    spread: RunSpread,
    template: Template,
    peers: Floats,
    difference: Floats,
) -> Block:
    """The block of a `difference` from so many `peers`."""
    if matrix.terms.share:
        np.maximum(difference, 0.0, out=difference)  # losing less of its time than the peers is no fault
    assumed, parts = priors(matrix, rules).job ** 2, len(matrix.terms.terms)
    return Block(
        matrix,
        job,
        difference,
        assumed,
        np.full(parts, MOST_DEGREES),
        assumed,
        bounds.of_matrix(matrix, rules),
        peers,
        spread,
        template,
        levels.tail(matrix.terms),
        len(matrix.nodes),
        np.ones(parts, dtype=np.bool_),
        np.zeros(parts),
    )


def _template(compared: Peers, matrix: Matrix, spread: RunSpread, trusted: Bools, of_job: Floats) -> Template:
    """The template of each kind of node: of few nodes each has its own, of many those with as many peers have one."""
    runs = np.maximum(np.isfinite(matrix.values).sum(axis=1, dtype=np.int16), 1)
    if compared.shared:
        _, first, kind = np.unique(compared.count, return_index=True, return_inverse=True)
        ratio = np.mean(spread.ratio[trusted] / runs[trusted], axis=0)
        of_peers = np.broadcast_to(ratio, (len(first), len(ratio)))
    else:
        first = kind = np.arange(len(compared.count))
        each = spread.ratio / runs
        others = trusted & ~np.eye(len(trusted), dtype=np.bool_)
        others[~others.any(axis=1)] = True
        of_peers = (others @ each) / others.sum(axis=1)[:, None]
    of_runs, between = spread.pooled * of_peers, compared.between[first]
    share = TEMPLATE_ERROR / np.maximum(compared.count[first], 1.0)[:, None] * np.ones_like(of_peers)
    nature = share * np.maximum(between - of_runs - of_job, 0.0)
    return Template(kind, between, of_runs, share, nature, compared.degrees[first])


def later_jobs(block: Block, reduced: Reduced, number: int, rules: Acceptance, levels: Levels) -> list[Block]:
    """The blocks of the second, third, ... independent jobs of the nodes that have them, from the `block` of the first.

    Where most nodes have one, they are compared among themselves. Else with the centre of the first jobs, moved by as
    much as the nodes that are inside their bounds and were measured again have moved; that takes out what all of them
    share, as another draw of cache lines, and its error is part of theirs.
    """
    first = block.matrix
    sittings = {node: reduced.sittings[node] for node in first.nodes.tolist() if node in reduced.sittings}
    blocks = []
    for job in range(1, max(map(len, sittings.values()), default=1)):
        wanted = {node: jobs[job][-1:] for node, jobs in sittings.items() if len(jobs) > job}
        matrix = of_jobs(reduced, number, first.nodes, wanted, first.template)
        if matrix is not None and np.isfinite(matrix.values).any():
            blocks.append(later_job(block, matrix, job, rules, levels))
    return blocks


def later_job(block: Block, matrix: Matrix, job: int, rules: Acceptance, levels: Levels) -> Block:
    """The block of a later job of some nodes, from the `block` of the first jobs."""
    first, means = block.matrix, run_means(matrix)
    rows = np.array([block.row[node] for node in matrix.nodes.tolist()])
    own = run_spread(matrix.values, matrix.terms.pool, np.sqrt(block.spread.pooled))
    spread = msgspec.structs.replace(block.spread, ratio=own.ratio)
    calm = ~block.outside[rows].any(axis=1)
    everyone = len(rows) == len(first.nodes)
    if (everyone and len(rows) < FEWEST - 1) or calm.sum() >= max(3, len(first.nodes) / 2):
        trusted = calm if calm.sum() > 1 else np.ones_like(calm)
        return _with_majority(_compared(matrix, job, rules, levels, spread, trusted))
    shift, of_shift = _shift((means - run_means(first)[rows])[calm])
    of_first, kind = block.template, block.template.kind[rows]
    template = Template(
        np.arange(len(rows)),
        of_first.between[kind],
        of_first.of_runs[kind],
        of_first.share[kind] + of_shift,
        of_first.nature[kind],
        of_first.degrees[kind],
    )
    centre = (run_means(first) - block.difference)[rows] + shift
    later = built(matrix, job, rules, levels, spread, template, block.peers[rows], means - centre)
    return msgspec.structs.replace(later, centred=block.centred, reach=block.reach, shifted=True)


def _shift(moved: Floats) -> tuple[Floats, Floats]:
    """By how much nodes `moved` (node, part) from one job to the next, their median, and how many times the variance of
    one job of a node its own is (part)."""
    finite = np.isfinite(moved)
    count = finite.sum(axis=0)
    # of what no node has both jobs of, nothing is known but that jobs differ
    middle = np.zeros(moved.shape[1])
    usable = count > 0
    if usable.any():
        middle[usable] = np.nanmedian(moved[:, usable], axis=0)
    return middle, np.where(usable, 2 * np.where(count > 2, _OF_MEDIAN, 1.0) / np.maximum(count, 1), 2.0)


def with_jobs(blocks: Sequence[Block]) -> tuple[Block, ...]:
    """The blocks of a measurement with the variance between jobs that they show.

    Nodes in which something was outside were measured again for that, and what they moved by is no chance: they are
    left out where a majority of those that have several jobs remains.
    """
    first = blocks[0]
    if len(blocks) < 2:
        return (first,)
    loud = {node for block in blocks for node in block.matrix.nodes[block.outside.any(axis=1)].tolist()}
    again = [node for node in first.matrix.nodes.tolist() if any(node in block.row for block in blocks[1:])]
    calm = [node for node in again if node not in loud]
    used = calm if len(calm) > 1 and len(calm) >= MAJORITY * len(again) else again
    means = [run_means(block.matrix) for block in blocks]
    moved = []
    for number, block in enumerate(blocks[1:], 1):
        both = [node for node in used if node in block.row and node in blocks[number - 1].row]
        later, earlier = (of.row for of in (block, blocks[number - 1]))
        step = means[number][[later[n] for n in both]] - means[number - 1][[earlier[n] for n in both]]
        moved.append(np.where(block.centred & blocks[number - 1].centred, step, np.nan))
    of_runs = np.mean([block.of_runs().mean(axis=0) for block in blocks], axis=0)
    variance, degrees = job_variance(moved, of_runs, first.terms.pool, first.assumed_job)
    return tuple(msgspec.structs.replace(block, of_job=variance, job_degrees=degrees) for block in blocks)


class Priors(msgspec.Struct, frozen=True):
    """Standard deviations assumed of healthy nodes (part): between jobs of a node, and between its runs."""

    job: Floats
    run: Floats


def priors(matrix: Matrix, rules: Acceptance) -> Priors:
    """What acceptance.yaml assumes of each part."""
    ones = np.ones(len(matrix.terms.terms))
    if not matrix.quantity.of_pairs:
        cell = rules.cell(matrix.quantity.model.term)
        return Priors(cell.job_sd * ones, cell.run_sd * ones)
    return Priors(rules.prior("job") * ones, rules.prior("run") * ones)


def in_unit(block: Block, rows: Ints | slice = ALL) -> tuple[Floats, Floats]:
    """What nodes have in their job and what their peers have (node, part), in the measurement's unit; of later jobs
    the peers are those of that job."""
    scale, difference = block.matrix.scale, block.difference[rows]
    if block.terms.share:
        peers = np.broadcast_to(block.matrix.levels, difference.shape)
        return peers + np.expm1(difference) * (scale.floor + peers), peers
    relative = np.expm1 if scale.kind == "log" else np.asarray
    value = block.matrix.levels * (1 + relative(run_means(block.matrix, rows)))
    return value, np.asarray(value / (1 + relative(difference)))


def run_means(matrix: Matrix, rows: Ints | slice = ALL) -> Floats:
    """The mean over runs (node, part), NaN where a node has none."""
    present = np.isfinite(matrix.values[rows])
    count = present.sum(axis=1)
    total = np.where(present, matrix.values[rows], 0.0).sum(axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(np.where(count > 0, total / np.maximum(count, 1), np.nan))


def filled(means: Floats) -> Floats:
    """`means` (node, part) with the others' median where a node has none: it takes no part in the centre then."""
    gaps = ~np.isfinite(means)
    if not gaps.any():
        return means
    finite = np.where(np.isfinite(means).any(axis=0), means, 0.0)
    return np.where(gaps, np.nanmedian(finite, axis=0), means)
