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

from nodeprint.data.layout import Ints
from nodeprint.judge import bounds
from nodeprint.judge.acceptance_file import Acceptance
from nodeprint.judge.reduction import Matrix, Reduced, of_jobs
from nodeprint.judge.terms import FAMILIES, Terms
from nodeprint.stats import intervals
from nodeprint.stats.peers import MAJORITY, TEMPLATE_ERROR, Peers, centred, peers
from nodeprint.stats.runs import RunSpread, run_spread

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

#: Weight of the assumed variance between nodes, in nodes.
_PRIOR_NODES = 8.0
#: Weight of the family's variance between nodes against a part's own, in degrees of freedom.
_FAMILY_DEGREES = 20.0
#: A family of many parts counts as so many independent ones, as the same lines are in all of them.
_INDEPENDENT = 10.0
#: From so many parts on it does.
_MANY_PARTS = 32
#: Degrees of freedom of the assumed variance between jobs.
_JOB_DEGREES = 50.0
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
    """What the peers' centre adds to the error of a node, by kind of node (kind, part): the variance of a healthy node
    about it (`between`), that of the `centre` (`variance`) and its `degrees` of freedom. `kind` (node) is each node's:
    of a large fleet all nodes have the same peers, but those that are no peers themselves."""

    kind: Ints
    centre: Floats
    between: Floats
    variance: Floats
    degrees: Floats


class Block(msgspec.Struct, frozen=True, dict=True):
    """One measurement at one home: the rows of the table for `matrix.nodes` in their `job` (0 for the first independent
    one), columns by part.

    `difference` from the peers (node, part) on the model's scale, `of_job` (part) the variance between jobs, `bound`
    (part), by node the number of `peers`, `spread` the spread over runs, `template` what the centre adds, and `tail`
    (part) the level of the simultaneous intervals. `nodes` are as many as were compared. A part that is not `centred`
    (part) has no majority within its bound of any centre: its intervals are infinite, and it is undecided for all.

    What follows from these by node and part is a method of the `rows` that it is wanted of: of ten thousand nodes each
    such array has 200 MB, and they are kept only where they take long to make.
    """

    matrix: Matrix
    job: int
    difference: Floats
    of_job: Floats
    bound: Floats
    peers: Floats
    spread: RunSpread
    template: Template
    tail: Floats
    nodes: int
    centred: Bools

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
        return np.asarray(self.template.variance[self.template.kind[rows]])

    def between(self, rows: Rows = ALL) -> Floats:
        """The variance of a healthy node about the centre."""
        return np.asarray(self.template.between[self.template.kind[rows]])

    def error(self, rows: Rows = ALL) -> Floats:
        """The standard error of the difference."""
        return np.asarray(np.sqrt(self.of_runs(rows) + self.of_job + self.of_template(rows)))

    def degrees(self, rows: Rows = ALL) -> Floats:
        """The degrees of freedom of the error."""
        of_template = self.template.degrees[self.template.kind[rows]]
        return intervals.combined([
            (self.of_runs(rows), self.spread.degrees), (self.of_job, _JOB_DEGREES),
            (self.of_template(rows), of_template),
        ])[1]  # fmt: skip

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
        """Half of the interval that holds for all parts of a family and all nodes together."""
        return self.half(self.tail)

    def half(self, tail: Floats | float, rows: Rows = ALL) -> Floats:
        """Half of the interval with this probability at each end, of some `rows`."""
        half = intervals.half_width(self.error(rows), self.degrees(rows), tail)
        return np.asarray(np.where(self.centred, half, np.inf))

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
        return np.asarray(np.abs(self.difference) + self.half_90() <= self.bound)

    @cached_property
    def outside(self) -> Bools:
        """Where the simultaneous interval is outside the bound: the node is different in this part."""
        return np.asarray(np.abs(self.difference) - self.half_simultaneous > self.bound)


def first_jobs(matrix: Matrix, rules: Acceptance, levels: Levels) -> Block:
    """The block of the first jobs. Nodes that are outside a bound are no peers of others: of few nodes the farthest is
    left out first, as others may differ only because it is among their peers."""
    return _with_majority(_trimmed(matrix, rules, levels))


def _with_majority(block: Block) -> Block:
    """The block, whose parts have a centre where a majority of its nodes is within the bound of it."""
    return msgspec.structs.replace(block, centred=centred(block.difference, block.bound))


def _trimmed(matrix: Matrix, rules: Acceptance, levels: Levels) -> Block:
    usable = np.isfinite(matrix.values).any(axis=1)
    complete = np.asarray(usable.mean(axis=1) > 0.5)
    trusted = complete if complete.sum() > 1 else np.ones_like(complete)
    enough = max(2, int(np.ceil(MAJORITY * trusted.sum())))
    block = _block(matrix, rules, levels, trusted)
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
        block = _block(matrix, rules, levels, trusted)


#: Below this many nodes those that are outside are left out one after another.
_FEW = 64


def _block(matrix: Matrix, rules: Acceptance, levels: Levels, trusted: Bools) -> Block:
    means = run_means(matrix)
    prior = priors(matrix, rules)
    spread = run_spread(matrix.values, matrix.terms.pool, prior.run)
    compared = peers(filled(means), matrix.terms.pool, trusted)
    template = _template(compared, matrix, _expected(matrix, prior, spread))
    return _built(matrix, 0, rules, levels, spread, template, compared.count, means - compared.centre, prior)


def _built(
    matrix: Matrix, job: int, rules: Acceptance, levels: Levels, spread: RunSpread, template: Template,
    peers: Floats, difference: Floats, prior: Priors,
) -> Block:  # fmt: skip
    """The block of a `difference` from so many `peers`."""
    if matrix.terms.share:
        np.maximum(difference, 0.0, out=difference)  # losing less of its time than the peers is no fault
    return Block(
        matrix, job, difference, prior.job**2, bounds.of_matrix(matrix, rules), peers, spread, template,
        levels.tail(matrix.terms), len(matrix.nodes), np.ones(len(matrix.terms.terms), dtype=np.bool_),
    )  # fmt: skip


def _expected(matrix: Matrix, prior: Priors, spread: RunSpread) -> Floats:
    """The variance between healthy nodes that is assumed (part)."""
    typical = float(np.median(np.maximum(np.isfinite(matrix.values).sum(axis=1, dtype=np.int16), 1)))
    return np.asarray(prior.node**2 + prior.job**2 + spread.pooled / max(typical, 1.0))


def _template(compared: Peers, matrix: Matrix, expected: Floats) -> Template:
    """The template of each kind of node: of few nodes each has its own, of many those with as many peers have one."""
    if compared.shared:
        _, first, kind = np.unique(compared.count, return_index=True, return_inverse=True)
    else:
        first = kind = np.arange(len(compared.count))
    of_kind = Peers(
        compared.centre[first], compared.of_part[first], compared.of_family[first], compared.count[first],
    )  # fmt: skip
    between, degrees = _between(of_kind, matrix.terms, expected)
    count = np.maximum(of_kind.count, 1.0)[:, None]
    variance = TEMPLATE_ERROR * between / count
    return Template(kind, of_kind.centre, between, variance, degrees * np.ones_like(between))


def _between(compared: Peers, terms: Terms, expected: Floats) -> tuple[Floats, Floats]:
    """The variance of a healthy node about the centre (node, part), and its degrees of freedom: what is `expected`
    (part), what the family shows, and what the part shows, by their weights (Welch and Satterthwaite)."""
    own = np.maximum(compared.count - 1.0, 0.0)[:, None]
    size = np.bincount(terms.pool)[terms.pool]
    family = own * np.where(size >= _MANY_PARTS, _INDEPENDENT, 1.0)
    of_family = (family * compared.of_family + _PRIOR_NODES * expected) / (family + _PRIOR_NODES)
    variance = (_FAMILY_DEGREES * of_family + own * compared.of_part) / (_FAMILY_DEGREES + own)
    of_prior = _PRIOR_NODES / (family + _PRIOR_NODES)
    of_part = own / (_FAMILY_DEGREES + own)
    shared = 1 - of_part
    with np.errstate(invalid="ignore", divide="ignore"):
        inverse = np.where(own > 0, (shared * (1 - of_prior)) ** 2 / family + of_part**2 / own, 0.0)
    return variance, np.asarray(1 / (inverse + (shared * of_prior) ** 2 / _PRIOR_NODES))


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
            blocks.append(_later(block, matrix, job, rules, levels))
    return blocks


def _later(block: Block, matrix: Matrix, job: int, rules: Acceptance, levels: Levels) -> Block:
    first, means, prior = block.matrix, run_means(matrix), priors(matrix, rules)
    rows = np.array([block.row[node] for node in matrix.nodes.tolist()])
    own = run_spread(matrix.values, matrix.terms.pool, np.sqrt(block.spread.pooled))
    spread = RunSpread(block.spread.pooled, block.spread.degrees, own.ratio, own.pooled)
    calm = ~block.outside[rows].any(axis=1)
    everyone = len(rows) == len(first.nodes)
    if (everyone and len(rows) < 4) or calm.sum() >= max(3, len(first.nodes) / 2):
        trusted = calm if calm.sum() > 1 else np.ones_like(calm)
        compared = peers(filled(means), matrix.terms.pool, trusted)
        template = _template(compared, matrix, _expected(matrix, prior, spread))
        return _with_majority(
            _built(matrix, job, rules, levels, spread, template, compared.count, means - compared.centre, prior)
        )
    runs = np.maximum(np.isfinite(matrix.values).sum(axis=1, dtype=np.int16), 1)
    shift, of_shift = _shift((means - run_means(first)[rows])[calm], spread.pooled / runs.min() + prior.job**2)
    centre = (run_means(first) - block.difference)[rows] + shift
    template = Template(
        np.arange(len(rows)), centre, block.between(rows), block.of_template(rows) + of_shift, block.degrees(rows)
    )
    later = _built(matrix, job, rules, levels, spread, template, block.peers[rows], means - centre, prior)
    return msgspec.structs.replace(later, centred=block.centred)


def _shift(moved: Floats, variance: Floats) -> tuple[Floats, Floats]:
    """By how much nodes `moved` (node, part) from one job to the next, their median, and its variance (part), where
    that of one job of a node is `variance`."""
    finite = np.isfinite(moved)
    count = finite.sum(axis=0)
    # of what no node has both jobs of, nothing is known but that jobs differ
    middle = np.zeros(moved.shape[1])
    usable = count > 0
    if usable.any():
        middle[usable] = np.nanmedian(moved[:, usable], axis=0)
    of_one = 2 * variance
    return middle, np.where(usable, of_one * np.where(count > 2, _OF_MEDIAN, 1.0) / np.maximum(count, 1), of_one)


class Priors(msgspec.Struct, frozen=True):
    """Standard deviations assumed of healthy nodes (part): between nodes, between jobs of a node, between its runs."""

    node: Floats
    job: Floats
    run: Floats


def priors(matrix: Matrix, rules: Acceptance) -> Priors:
    """What acceptance.yaml assumes of each part."""
    ones = np.ones(len(matrix.terms.terms))
    if not matrix.quantity.of_pairs:
        cell = rules.cell(matrix.quantity.model.term)
        return Priors(cell.node_sd * ones, cell.job_sd * ones, cell.node_sd * ones)
    node = np.array([rules.prior(FAMILIES[term.family].term) for term in matrix.terms.terms])
    return Priors(node, rules.prior("job") * ones, rules.prior("run") * ones)


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
