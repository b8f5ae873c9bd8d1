"""Fleets that are split: no majority of nodes is alike, so that there is no centre that a node could differ from."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np
import numpy.typing as npt

from nodeprint.data.places.layout import Ints
from nodeprint.judge import bounds, naming
from nodeprint.judge.acceptance_file import Acceptance
from nodeprint.judge.causes import Deviation, causes
from nodeprint.judge.deviations import priors, run_means
from nodeprint.judge.reduction import Matrix
from nodeprint.judge.verdict import Part
from nodeprint.stats import intervals, strata
from nodeprint.stats.peers import FEWEST, MAJORITY, centred
from nodeprint.stats.runs import run_spread

Floats = npt.NDArray[np.float64]

#: Groups of nodes within their bound are reported where this share of the bound is surely between them.
GAP = 0.5


class Cut(msgspec.Struct, frozen=True):
    """The `part` that separates a group from the `first` one (numbers of its nodes in the fleet), and by how much and
    with which standard error, relative, its `term` of a `matrix` differs."""

    first: Ints
    matrix: Matrix
    term: int
    part: Part
    effect: float
    error: float
    bound: float

    @property
    def apart(self) -> bool:
        """Whether the difference is beyond the bound."""
        return abs(self.effect) - strata.BEYOND * self.error > self.bound


class PeerGroup(msgspec.Struct, frozen=True):
    """Nodes (numbers in the fleet) that are compared with each other; `cut` says what separates them from the first
    group of a split fleet, None of that one and of a fleet that is not split. `whole` are all nodes of the split fleet
    that the group is of, None where it is not split."""

    nodes: Ints
    cut: Cut | None = None
    whole: Ints | None = None


def split(configurations: Sequence[Ints], matrices: Sequence[Matrix], rules: Acceptance) -> list[PeerGroup]:
    """The groups of nodes of one machine, of each configuration the largest first: one for each configuration, unless
    no majority is alike.

    A configuration is split where its nodes are apart in a part without a centre; the nodes of several are split where
    the configurations differ and no majority has such as do not. `matrices` are those of all these nodes.
    """
    nodes = np.concatenate(configurations)
    if len(nodes) < FEWEST:
        return [PeerGroup(configuration) for configuration in configurations]
    usable = [prepared for matrix in matrices if (prepared := _prepared(matrix, nodes, rules)) is not None]
    rows = np.split(np.arange(len(nodes)), np.cumsum([len(configuration) for configuration in configurations])[:-1])
    parted = [_of_configuration(of_it, usable) for of_it in rows]
    first = parted[0][0]
    between = [_cut(nodes, first, alike[0], usable) for alike in parted[1:]]
    of_one_kind = [len(of_it) for of_it, cut in zip(rows[1:], between, strict=True) if cut is None or not cut.apart]
    is_split = len(rows[0]) + sum(of_one_kind) < MAJORITY * len(nodes)
    out = []
    for of_it, alike, cut in zip(rows, parted, [None, *between], strict=True):
        whole = nodes if is_split else nodes[of_it] if len(alike) > 1 else None
        out.append(PeerGroup(nodes[alike[0]], cut if cut is not None and cut.apart and is_split else None, whole))
        out += [PeerGroup(nodes[group], _cut(nodes, alike[0], group, usable), whole) for group in alike[1:]]
    return out


class _Prepared(msgspec.Struct, frozen=True):
    """The means over runs (node, part) of a matrix, the bounds of its parts and the variances of a mean."""

    matrix: Matrix
    means: Floats
    bound: Floats
    variance: Floats


def _prepared(matrix: Matrix, nodes: Ints, rules: Acceptance) -> _Prepared | None:
    """None where a node has no value, or values are shares of the time, which differ for reasons outside of a node."""
    terms = matrix.terms
    if len(matrix.nodes) < len(nodes) or terms.share or not np.isfinite(matrix.values).any(axis=1).all():
        return None
    spread = run_spread(matrix.values, terms.pool, priors(matrix, rules).run)
    runs = np.isfinite(matrix.values).sum(axis=1).mean(axis=0)
    variance = spread.pooled / runs + priors(matrix, rules).job ** 2
    return _Prepared(matrix, np.nanmean(matrix.values, axis=1), bounds.of_matrix(matrix, rules), variance)


def has_centres(matrix: Matrix, rules: Acceptance) -> bool:
    """Whether a majority of the nodes of a matrix is alike in every part."""
    return bool(_centred(run_means(matrix), bounds.of_matrix(matrix, rules)).all())


def from_majority(matrix: Matrix, rules: Acceptance) -> Floats:
    """By how much nodes differ from the median of all (node, part), 0 in a part in which no majority is alike."""
    means = run_means(matrix)
    difference = means - np.mean(_middle(means), axis=0)
    return np.where(_centred(means, bounds.of_matrix(matrix, rules)), difference, 0.0)


def _centred(means: Floats, bound: Floats) -> npt.NDArray[np.bool_]:
    """Whether a majority is within the bound of a node in the middle (part). Between two halves that are two bounds
    apart all are within it of the median, which is where no node is."""
    low, high = (centred(means - middle, bound) for middle in _middle(means))
    return low | high


def _middle(means: Floats) -> Floats:
    """The values (2, part) of the two nodes (of an odd number the one) in the middle; NaN where no node has a value."""
    ordered, count = np.sort(means, axis=0), np.isfinite(means).sum(axis=0)
    return np.take_along_axis(ordered, np.stack([(count - 1) // 2, count // 2]), axis=0)


def _of_configuration(rows: Ints, candidates: Sequence[_Prepared]) -> list[Ints]:
    """The groups of `rows`, the largest first; all of them where a majority is alike."""
    groups = _parted(rows, candidates)
    if max(map(len, groups)) >= MAJORITY * len(rows):
        return [rows]
    return sorted(groups, key=lambda group: (-len(group), int(group[0])))


def _parted(rows: Ints, candidates: Sequence[_Prepared]) -> list[Ints]:
    """Groups of `rows`: those that are farthest apart in any part without a centre, and the groups of each of these."""
    best: tuple[float, Sequence[Ints]] = 0.0, ()
    for candidate in candidates:
        means = candidate.means[rows]
        open_parts = ~_centred(means, candidate.bound)
        if open_parts.any():
            columns = [of[..., open_parts] for of in (means, candidate.bound, candidate.variance)]
            best = max(best, strata.farthest(*columns), key=lambda split: split[0])
    return [group for of_it in best[1] for group in _parted(rows[of_it], candidates)] or [rows]


def gap(nodes: Ints, matrices: Sequence[Matrix], rules: Acceptance) -> PeerGroup | None:
    """The smaller of two groups of `nodes` that are all within the bound of one part and yet surely more than GAP of it
    apart, in the part where that is most; None where there is no such gap."""
    best: tuple[float, PeerGroup | None] = 0.0, None
    for prepared in (_prepared(matrix, nodes, rules) for matrix in matrices if len(nodes) >= FEWEST):
        if prepared is None:
            continue
        extent = np.ptp(prepared.means, axis=0)
        within = np.flatnonzero((extent <= 2 * prepared.bound) & (extent > GAP * prepared.bound))
        columns = [of[..., within] for of in (prepared.means, GAP * prepared.bound, prepared.variance)]
        apart, groups = strata.farthest(*columns)
        if len(groups) == 2 and apart > best[0]:
            small, large = sorted(groups, key=len)
            best = apart, PeerGroup(nodes[small], _cut(nodes, large, small, [prepared], GAP, within))
    return best[1]


def _cut(
    nodes: Ints,
    first: Ints,
    group: Ints,
    candidates: Sequence[_Prepared],
    share: float = 1.0,
    among: Ints | None = None,
) -> Cut | None:
    """How the rows of a `group` differ from those of the `first` in the part in which they are surest and farthest
    apart, by its bound; None where no part was measured on all. Parts (of these `among`, if it is given) are apart by a
    `share` of their bound."""
    cuts = [
        cut for prepared in candidates if (cut := _of_matrix(nodes, first, group, prepared, share, among)) is not None
    ]
    return max(cuts, key=lambda cut: (cut.apart, abs(cut.effect) / cut.bound), default=None)


def _of_matrix(
    nodes: Ints, first: Ints, group: Ints, prepared: _Prepared, share: float, among: Ints | None
) -> Cut | None:
    """How two groups differ in a matrix: in the coarsest part that explains where they are farthest apart."""
    matrix, bound = prepared.matrix, prepared.bound
    if not len(bound):
        return None
    near, far = prepared.means[first], prepared.means[group]
    effect = far.mean(axis=0) - near.mean(axis=0)
    variances = [np.maximum(side.var(axis=0), prepared.variance) / len(side) for side in (near, far)]
    error = np.sqrt(variances[0] + variances[1])
    apart = intervals.outside(effect, strata.BEYOND * error, share * bound)
    size = np.abs(effect) / bound
    if among is not None:
        chosen = np.isin(np.arange(len(bound)), among)
        apart, size = apart & chosen, np.where(chosen, size, 0.0)
    head = int(np.argmax(np.where(apart, 1e6, 1.0) * size))
    part = naming.part(matrix, head)
    if apart.any():
        levels = [
            np.nanmean([matrix.level_of(matrix.row[int(nodes[row])]) for row in rows], axis=0)
            for rows in (first, group)
        ]
        residual = np.nan_to_num(matrix.scale.residual(levels[1], levels[0])).astype(np.float64)
        deviation = Deviation(
            effect,
            error,
            np.sqrt(prepared.variance),
            strata.BEYOND * error,
            share * bound,
            apart,
            apart & False,
            residual,
        )
        cause = max(causes(matrix, deviation), key=lambda cause: size[cause.head], default=None)
        if cause is not None:
            head, where = cause.head, naming.place(matrix, cause.where, naming.NO_NODE)
            part = Part(cause.term, matrix.terms.terms[head].family, where)
    return Cut(nodes[first], matrix, head, part, float(effect[head]), float(error[head]), float(bound[head]))
