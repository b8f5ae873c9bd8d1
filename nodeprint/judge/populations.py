"""Kinds of nodes: those of one configuration, and the populations within it, each with a template of its own, as a
common median cannot be."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache

import msgspec
import numpy as np
import numpy.typing as npt

from nodeprint.judge import margins, profiles, thresholds
from nodeprint.judge.acceptance import Acceptance
from nodeprint.judge.confirmation import ShownCause, Unstable, instability, shown
from nodeprint.judge.evidence import Evidence, bounds_of, gather, priors_of, screen
from nodeprint.judge.margins import Margin
from nodeprint.judge.reduction import Matrix, Reduced
from nodeprint.judge.thresholds import FamilySpread
from nodeprint.layout import Ints

Floats = npt.NDArray[np.float64]
#: A term, by its number, in which nodes differ.
Separation = tuple[Matrix, int]
#: Parts of quantities, each with its matrix of the first jobs of some nodes (`evidence.screen`).
Screened = Sequence[tuple[Reduced, int, Matrix]]

#: The chance of a false cut, shared equally by the families of all matrices and within these by their terms.
_FALSE_CUT = 0.01

#: The smaller kind is at least this share of the nodes and this many; fewer are nodes that share a deviation.
MIN_SHARE, MIN_NODES = 0.2, 3
#: The least scale of a separation in the null, in standard deviations of its draws: chips may spread three times as
#: wide as is expected.
_NULL_FLOOR = 0.3
_NULL_DRAWS, _NULL_TAIL = 4000, 0.02
#: How often a population is cut again: four at most.
_CUTS = 2


class NodeEvidence(msgspec.Struct):
    """What is known of one node within its kind: causes, what is unstable and in which jobs, margins by name.

    `runs` are those of pairs, `untested` is whether its newest jobs have too few pairs of a term, `incomplete` are the
    other measurements of which they lack what half of the nodes have.
    """

    shown: list[ShownCause] = []
    unstable: list[Unstable] = []
    unstable_jobs: set[int] = set()
    runs: int = 0
    margins: dict[str, Margin] = {}
    untested: bool = False
    incomplete: list[str] = []

    def of(self, *, pairs: bool) -> dict[str, Margin]:
        """Its margins of pairs, or of all others."""
        return {name: one for name, one in self.margins.items() if one.matrix.quantity.of_pairs == pairs}


class Kind(msgspec.Struct, frozen=True):
    """Nodes that are compared with each other: a configuration, or a population of it that a term separates. What they
    show, by matrix and by node, and detection limits and bounds by family or term; all empty where a node has no
    peer."""

    nodes: Ints
    separated_by: Separation | None = None
    evidence: Sequence[Evidence] = ()
    by_node: Mapping[int, NodeEvidence] = {}
    smallest: Mapping[str, float] = {}
    bounds: Mapping[str, float] = {}
    spreads: Mapping[str, FamilySpread] = {}
    wide: Mapping[str, float] = {}

    @property
    def pairs(self) -> list[Evidence]:
        """Of pairs of CPUs."""
        return [one for one in self.evidence if one.matrix.quantity.of_pairs]

    @property
    def others(self) -> list[Evidence]:
        """Of all else."""
        return [one for one in self.evidence if not one.matrix.quantity.of_pairs]


def kinds(configurations: Sequence[Ints], reduced: Sequence[Reduced], rules: Acceptance) -> tuple[list[Kind], int]:
    """The kinds within each configuration, and the number of tests.

    The rate of false alarms is shared equally by nodes, matrices and families, within these by terms; where there are
    both pairs and other places, each gets half of it.
    """
    largest = len(configurations[0]) if configurations else 0
    compared = [len(nodes) >= MIN_NODES or 1 < len(nodes) == largest for nodes in configurations]
    found = [Kind(nodes) for nodes, several in zip(configurations, compared, strict=True) if not several]
    judged = [
        (nodes, [one for one in reduced if np.isin(one.quantity.node, nodes).any()])
        for nodes, several in zip(configurations, compared, strict=True)
        if several
    ]
    families = {
        pairs: sum(len(nodes) * _families_of(mine, pairs=pairs) for nodes, mine in judged) for pairs in (True, False)
    }
    share = 0.5 if all(families.values()) else 1.0
    alpha = {pairs: share * rules.false_alarm / max(count, 1) for pairs, count in families.items()}
    found += [kind for nodes, mine in judged for kind in _populations(nodes, mine, rules, alpha)]
    tests = sum(len(nodes) * _tests_of(mine) for nodes, mine in judged)
    return sorted(found, key=lambda kind: (not kind.by_node, -len(kind.nodes), int(kind.nodes[0]))), tests


def _tests_of(reduced: Sequence[Reduced]) -> int:
    """How many tests a node takes: terms, and the spread of every core over passes."""
    return sum(len(part.terms.terms) + _cores(one) for one in reduced for part in one.parts)


def _families_of(reduced: Sequence[Reduced], *, pairs: bool) -> int:
    """Families of terms over all matrices of pairs, or of all others, the spread over passes counted as one."""
    mine = [one for one in reduced if one.quantity.of_pairs == pairs]
    return sum(len(np.unique(part.terms.pool)) + (_cores(one) > 0) for one in mine for part in one.parts)


def _cores(one: Reduced) -> int:
    return one.wobble.shape[2] if one.quantity.values.shape[1] > 1 else 0


def _populations(
    nodes: Ints, reduced: Sequence[Reduced], rules: Acceptance, alpha: Mapping[bool, float]
) -> Iterator[Kind]:
    """The populations of a configuration, each evaluated with a template of its own."""
    screened = screen(reduced, nodes)
    for part, separated_by in _separated(screened, nodes, rules):
        mine = screened if len(part) == len(nodes) else screen(reduced, part)
        yield _evaluated(mine, part, separated_by, rules, alpha) if len(part) > 1 else Kind(part, separated_by)


def _evaluated(
    screened: Screened, nodes: Ints, separated_by: Separation | None, rules: Acceptance, alpha: Mapping[bool, float]
) -> Kind:
    """The nodes of one kind judged, with false rate `alpha` a node and family of a matrix, of pairs (True) and of
    others: every matrix by itself, then what is known of each node."""
    evidence = [
        gather(reduced, number, matrix, rules, alpha[matrix.quantity.of_pairs]) for reduced, number, matrix in screened
    ]
    by_node = {int(node): NodeEvidence() for node in nodes}
    for one in evidence:
        found = shown(one)
        usual = np.isfinite(one.matrix.values).any(axis=1).mean(axis=0) >= 0.5  # what half of the nodes have
        for i, number in enumerate(one.matrix.nodes.tolist()):
            node = by_node[number]
            node.shown += found[number]
            unstable_jobs, unstable = instability(one, number)
            node.unstable_jobs |= unstable_jobs
            node.unstable += unstable
            node.margins = margins.worst([node.margins, margins.equivalence(one, number)])
            newest = one.newest(number)
            lacking = newest is not None and ~np.isfinite(newest.values).any(axis=0)
            if one.matrix.quantity.of_pairs:
                node.runs = max(node.runs, int(np.isfinite(one.matrix.values[i]).any(axis=1).sum()))
                node.untested |= bool(np.any(lacking))
            elif np.any(lacking & usual):
                node.incomplete.append(one.matrix.name)
    return Kind(nodes, separated_by, evidence, by_node, *margins.detection_limits(evidence), *margins.spreads(evidence))


def _separated(screened: Screened, nodes: Ints, rules: Acceptance) -> list[tuple[Ints, Separation | None]]:
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
        means.append(np.nanmean(profiles.of(values, profiles.order_of(matrix)), axis=1)[:, used])
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
    """The separation that the share _NULL_TAIL of healthy unimodal fleets of `n` exceed, from seeded draws, and the
    mean excess of these, which is taken for an exponential tail.

    Half of the draws are normal and half uniform, the flattest that one kind can look.
    """
    rng = np.random.default_rng(20240601)
    draws = _NULL_DRAWS
    sample = np.concatenate([rng.standard_normal((n, draws // 2)), rng.random((n, draws // 2)) * 3.46], axis=1)
    least = max(MIN_NODES, int(np.ceil(share * n)))
    separation, _, _ = _best_cut(np.sort(sample, axis=0), least, np.full(draws, _NULL_FLOOR))
    tail = np.sort(separation)[-int(draws * _NULL_TAIL) :]
    return float(tail[0]), float(np.mean(tail - tail[0]))
