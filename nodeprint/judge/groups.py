"""Fleets that are split: no majority of nodes is alike, so that there is no centre that a node could differ from."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np
import numpy.typing as npt

from nodeprint.data.layout import Ints
from nodeprint.judge import bounds
from nodeprint.judge.acceptance_file import Acceptance
from nodeprint.judge.deviations import priors
from nodeprint.judge.reduction import Matrix
from nodeprint.stats import strata
from nodeprint.stats.runs import run_spread

Floats = npt.NDArray[np.float64]

#: A fleet whose largest group is at least this share of it is not split: the others differ from it.
MAJORITY = 0.6
#: Fewer nodes cannot be split; each is named.
FEWEST = 5


class Cut(msgspec.Struct, frozen=True):
    """The part (`term` of `matrix`) that separates a group from the `first` one (numbers of its nodes in the fleet), by
    how much and with which standard error, relative."""

    first: Ints
    matrix: Matrix
    term: int
    effect: float
    error: float
    bound: float

    @property
    def apart(self) -> bool:
        """Whether the difference is beyond the bound."""
        return abs(self.effect) - strata.BEYOND * self.error > self.bound


class PeerGroup(msgspec.Struct, frozen=True):
    """Nodes (numbers in the fleet) that are compared with each other; `cut` says what separates them from the first
    group of a split fleet, None of that one and of a fleet that is not split."""

    nodes: Ints
    cut: Cut | None = None


def split(configurations: Sequence[Ints], matrices: Sequence[Matrix], rules: Acceptance) -> list[PeerGroup]:
    """The groups of nodes of one machine, of each configuration the largest first: one for each configuration, unless
    no majority is alike.

    A configuration is split where its nodes are; the nodes of several are split where the configurations differ and no
    majority has such as do not. `matrices` are those of the first jobs of all these nodes.
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
    for alike, cut in zip(parted, [None, *between], strict=True):
        out.append(PeerGroup(nodes[alike[0]], cut if cut is not None and cut.apart and is_split else None))
        out += [PeerGroup(nodes[group], _cut(nodes, alike[0], group, usable)) for group in alike[1:]]
    return out


class _Prepared(msgspec.Struct, frozen=True):
    """The means over runs (node, part) of a matrix, the parts that are looked at, their bounds and run variances."""

    matrix: Matrix
    means: Floats
    columns: Ints
    bound: Floats
    variance: Floats


def _prepared(matrix: Matrix, nodes: Ints, rules: Acceptance) -> _Prepared | None:
    """None where a node has no value, or values are shares of the time, which differ for reasons outside of a node."""
    terms = matrix.terms
    if len(matrix.nodes) < len(nodes) or terms.share or not np.isfinite(matrix.values).any(axis=1).all():
        return None
    # which cores are active differs between harvested parts: their numbers are no places
    named = [k for k, t in enumerate(terms.terms) if not (terms.layout.harvested and {"core", "cpu"} & set(t.where))]
    columns = np.array(named, dtype=np.int64)
    spread = run_spread(matrix.values, terms.pool, priors(matrix, rules).run)
    runs = np.isfinite(matrix.values).sum(axis=1).mean(axis=0)
    variance = spread.pooled / runs + priors(matrix, rules).job ** 2
    means = np.nanmean(matrix.values, axis=1)
    return _Prepared(matrix, means[:, columns], columns, bounds.of_matrix(matrix, rules)[columns], variance[columns])


def _of_configuration(rows: Ints, candidates: Sequence[_Prepared]) -> list[Ints]:
    """The groups of `rows`, the largest first; all of them where a majority is alike."""
    groups = _parted(rows, candidates) if len(rows) >= FEWEST else [rows]
    if max(map(len, groups)) >= MAJORITY * len(rows):
        return [rows]
    return sorted(groups, key=lambda group: (-len(group), int(group[0])))


def _parted(rows: Ints, candidates: Sequence[_Prepared]) -> list[Ints]:
    """Groups of `rows`: those that are farthest apart in any part, and the groups of each of these."""
    best: tuple[float, Sequence[Ints]] = 0.0, ()
    for candidate in candidates:
        best = max(
            best, strata.farthest(candidate.means[rows], candidate.bound, candidate.variance), key=lambda f: f[0]
        )
    return [group for of_it in best[1] for group in _parted(rows[of_it], candidates)] or [rows]


def _cut(nodes: Ints, first: Ints, group: Ints, candidates: Sequence[_Prepared]) -> Cut | None:
    """How the rows of a `group` differ from those of the `first` in the part in which they are surest and farthest
    apart, by its bound; None where no part was measured on all."""
    cuts = []
    for prepared in candidates:
        near, far = prepared.means[first], prepared.means[group]
        effect = far.mean(axis=0) - near.mean(axis=0)
        variances = [np.maximum(side.var(axis=0), prepared.variance) / len(side) for side in (near, far)]
        error = np.sqrt(variances[0] + variances[1])
        apart = np.abs(effect) - strata.BEYOND * error > prepared.bound
        for column in (
            [int(np.argmax(np.where(apart, 1e6, 1.0) * np.abs(effect) / prepared.bound))] if len(apart) else []
        ):
            cuts.append(
                Cut(
                    nodes[first], prepared.matrix, int(prepared.columns[column]), float(effect[column]),
                    float(error[column]), float(prepared.bound[column]),
                )
            )  # fmt: skip
    return max(cuts, key=lambda cut: (cut.apart, abs(cut.effect) / cut.bound), default=None)
