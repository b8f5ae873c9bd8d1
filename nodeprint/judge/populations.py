"""Kinds of nodes: those of one configuration, and the populations within it, each with a template of its own, as a
common median cannot be."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from nodeprint.judge import evaluate, thresholds
from nodeprint.judge.acceptance import Acceptance
from nodeprint.judge.evaluate import KindResult, Screened
from nodeprint.judge.evidence import bounds_of, priors_of, screen
from nodeprint.judge.reduction import Matrix, Reduced
from nodeprint.layout import Ints

Floats = npt.NDArray[np.float64]

#: The chance of a false cut, shared equally by the families of all matrices and within these by their terms.
_FALSE_CUT = 0.01

#: The smaller kind is at least this share of the nodes and this many; fewer are nodes that share a deviation.
MIN_SHARE, MIN_NODES = 0.2, 3
#: The floor in units of the healthy spread that the null assumes: chips may spread three times as wide as expected.
_NULL_FLOOR = 0.3
_NULL_DRAWS, _NULL_TAIL = 4000, 0.02
#: How often a population is cut again: four at most.
_CUTS = 2


@dataclass(frozen=True)
class Kind:
    """Nodes that are compared with each other: a configuration, or a population of it that a term (of a matrix)
    separates."""

    nodes: Ints
    result: KindResult = field(default_factory=KindResult)
    separated_by: tuple[Matrix, int] | None = None


def kinds(configurations: Sequence[Ints], reduced: Sequence[Reduced], rules: Acceptance) -> tuple[list[Kind], int]:
    """The kinds within each configuration, and the number of tests.

    The rate of false alarms is shared equally by nodes, matrices and families, within these by terms; where there are
    both pairs and other places, each gets half of it.
    """
    largest = len(configurations[0]) if configurations else 0
    compared = [len(nodes) >= MIN_NODES or 1 < len(nodes) == largest for nodes in configurations]
    found = [Kind(nodes) for nodes, several in zip(configurations, compared, strict=True) if not several]
    judged = [(n, _with(reduced, n)) for n, several in zip(configurations, compared, strict=True) if several]
    families = {
        pairs: sum(len(nodes) * evaluate.families_of(mine, pairs=pairs) for nodes, mine in judged)
        for pairs in (True, False)
    }
    share = 0.5 if all(families.values()) else 1.0
    alpha = {pairs: share * rules.false_alarm / max(count, 1) for pairs, count in families.items()}
    found += [kind for nodes, mine in judged for kind in _populations(nodes, mine, rules, alpha)]
    tests = sum(len(nodes) * evaluate.tests_of(mine) for nodes, mine in judged)
    return sorted(found, key=lambda kind: (not kind.result.by_node, -len(kind.nodes), int(kind.nodes[0]))), tests


def _with(reduced: Sequence[Reduced], nodes: Ints) -> list[Reduced]:
    """What nodes have; of other places than pairs, at least two of them."""
    count = [(one, len(np.unique(one.quantity.node[np.isin(one.quantity.node, nodes)]))) for one in reduced]
    return [one for one, having in count if having > (not one.quantity.of_pairs)]


def _populations(nodes: Ints, reduced: Sequence[Reduced], rules: Acceptance, alpha: dict[bool, float]) -> list[Kind]:
    """The populations of a configuration, each evaluated with a template of its own."""
    screened = screen(reduced, nodes)
    found = []
    for part, separated_by in _separated(screened, nodes, rules):
        mine = screened if len(part) == len(nodes) else screen(reduced, part)
        result = evaluate.evaluate(mine, part, rules, alpha) if len(part) > 1 else KindResult()
        found.append(Kind(part, result, separated_by))
    return found


def _separated(screened: Screened, nodes: Ints, rules: Acceptance) -> list[tuple[Ints, tuple[Matrix, int] | None]]:
    """Nodes that differ in a term of pairs or a set wider than a CCX, and what separates them."""
    if len(nodes) < 2 * MIN_NODES:
        return [(nodes, None)]
    means, bounds, floors, families = [], [], [], []
    names: list[tuple[Matrix, int]] = []
    for _, _, matrix in screened:
        terms, values = matrix.terms, matrix.values
        if len(matrix.nodes) < len(nodes) or terms.share or not np.isfinite(values).any(axis=1).all():
            continue
        used = [k for k, t in enumerate(terms.terms) if matrix.quantity.of_pairs or not {"cpu", "ccx"} & set(t.where)]
        prior, run_prior = priors_of(matrix, rules)
        run = thresholds.run_scales(values, terms.pool, run_prior)
        means.append(np.nanmean(values, axis=1)[:, used])
        bounds.append(bounds_of(matrix, rules)[used])
        floors.append(np.sqrt(run**2 / values.shape[1] + prior**2)[used])
        families += [(matrix.name, matrix.part.home, terms.terms[k].family) for k in used]
        names += [(matrix, k) for k in used]
    if not means:
        return [(nodes, None)]
    count = Counter(families)
    alpha = _FALSE_CUT / len(count) / np.array([count[family] for family in families])
    parts = split(np.concatenate(means, axis=1), np.concatenate(bounds), np.concatenate(floors), alpha)
    return [(nodes[part], names[term] if term >= 0 else None) for part, term in parts]


def split(means: Floats, bounds: Floats, floor: Floats, alpha: Floats) -> list[tuple[Ints, int]]:
    """Populations from `means` (node, term): node numbers of each, and the term that separates it (-1: none).

    A cut needs both a difference of means beyond the term's bound and a separation, in standard deviations within the
    kinds (at least `floor`), that unimodal data reach with the term's probability `alpha`. Largest kind first.
    """
    everyone = np.arange(len(means), dtype=np.int64)
    kinds = _split(means, bounds, floor, everyone, alpha, _CUTS)
    return sorted(kinds, key=lambda kind: (-len(kind[0]), int(kind[0][0])))


def _split(
    means: Floats, bounds: Floats, floor: Floats, nodes: Ints, alpha: Floats, depth: int
) -> list[tuple[Ints, int]]:
    n = len(nodes)
    least = max(MIN_NODES, int(np.ceil(MIN_SHARE * n)))
    if depth == 0 or n < 2 * least or means.shape[1] == 0:
        return [(nodes, -1)]
    mine = means[nodes]
    order = np.argsort(mine, axis=0, kind="stable")
    ordered = np.take_along_axis(mine, order, axis=0)
    separation, gap, cut = _best_cut(ordered, least, floor)
    start, excess = _null(min(n, 200), least / n)
    needed = start + excess * np.maximum(np.log(_NULL_TAIL / alpha), 0)
    real = (gap > bounds) & (separation > needed)
    if not real.any():
        return [(nodes, -1)]
    term = int(np.argmax(np.where(real, separation, 0)))
    low, high = np.sort(nodes[order[: cut[term], term]]), np.sort(nodes[order[cut[term] :, term]])
    out: list[tuple[Ints, int]] = []
    for side in (low, high):
        parts = _split(means, bounds, floor, side, alpha, depth - 1)
        out += [(part, term if found < 0 else found) for part, found in parts]
    return out


def _best_cut(ordered: Floats, least: int, floor: Floats) -> tuple[Floats, Floats, Ints]:
    """For each sorted column: the largest separation of two sides, the difference of their means, and the cut."""
    n = len(ordered)
    k = np.arange(least, n - least + 1)[:, None]
    total, squares = np.cumsum(ordered, axis=0), np.cumsum(ordered**2, axis=0)
    s1, q1 = total[k[:, 0] - 1], squares[k[:, 0] - 1]
    s2, q2 = total[-1] - s1, squares[-1] - q1
    gap = s2 / (n - k) - s1 / k
    within = np.maximum(q1 - s1**2 / k + q2 - s2**2 / (n - k), 0) / max(n - 2, 1)
    separation = gap / np.sqrt(within + floor**2)
    best = np.argmax(separation, axis=0)
    columns = np.arange(ordered.shape[1])
    return separation[best, columns], gap[best, columns], k[best, 0].astype(np.int64)


@lru_cache(maxsize=32)
def _null(n: int, share: float) -> tuple[float, float]:
    """The separation that the share _NULL_TAIL of healthy unimodal fleets of `n` exceed, from seeded draws, and by how
    much these do in the mean: an exponential tail.

    Half of the draws are normal and half uniform, the flattest that one kind can look.
    """
    rng = np.random.default_rng(20240601)
    draws = _NULL_DRAWS
    sample = np.concatenate([rng.standard_normal((n, draws // 2)), rng.random((n, draws // 2)) * 3.46], axis=1)
    least = max(MIN_NODES, int(np.ceil(share * n)))
    separation, _, _ = _best_cut(np.sort(sample, axis=0), least, np.full(draws, _NULL_FLOOR))
    tail = np.sort(separation)[-int(draws * _NULL_TAIL) :]
    return float(tail[0]), float(np.mean(tail - tail[0]))
