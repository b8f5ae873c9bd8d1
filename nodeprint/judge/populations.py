"""Kinds of nodes: those of one configuration, and the populations within it, each with a template of its own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from nodeprint.judge import evaluate, groups, thresholds
from nodeprint.judge.acceptance import Acceptance
from nodeprint.judge.evaluate import KindResult, Screened
from nodeprint.judge.evidence import bounds_of, priors_of, screen
from nodeprint.judge.reduction import Matrix, Reduced
from nodeprint.layout import Ints

#: The chance of a false cut, shared equally by the families of all matrices and within these by their terms.
_FALSE_CUT = 0.01


@dataclass(frozen=True)
class Kind:
    """Nodes that are compared with each other: a configuration, or a population of it that a term (of a matrix)
    separates. `result` is None where there is nothing to compare with."""

    nodes: Ints
    result: KindResult | None = None
    separated_by: tuple[Matrix, int] | None = None


def kinds(configurations: Sequence[Ints], reduced: Sequence[Reduced], rules: Acceptance) -> tuple[list[Kind], int]:
    """The kinds within each configuration, and the number of tests.

    The rate of false alarms is shared equally by nodes, matrices and families, within these by terms; where there are
    both pairs and other places, each gets half of it.
    """
    largest = len(configurations[0]) if configurations else 0
    judged = [len(nodes) >= groups.MIN_NODES or 1 < len(nodes) == largest for nodes in configurations]
    families, tests = {True: 0, False: 0}, 0
    for nodes in (nodes for nodes, is_judged in zip(configurations, judged, strict=True) if is_judged):
        there = _with(reduced, nodes)
        tests += len(nodes) * evaluate.tests_of(there)
        for pairs in families:
            mine = [one for one in there if one.quantity.of_pairs == pairs]
            families[pairs] += len(nodes) * evaluate.families_of(mine)
    share = 0.5 if all(families.values()) else 1.0
    alpha = {pairs: share * rules.false_alarm / max(count, 1) for pairs, count in families.items()}
    found: list[Kind] = []
    for nodes, is_judged in zip(configurations, judged, strict=True):
        found += _populations(nodes, _with(reduced, nodes), rules, alpha) if is_judged else [Kind(nodes)]
    return sorted(found, key=lambda kind: (kind.result is None, -len(kind.nodes), int(kind.nodes[0]))), tests


def _with(reduced: Sequence[Reduced], nodes: Ints) -> list[Reduced]:
    """What nodes have; of other places than pairs, at least two of them."""
    count = [(one, len(np.unique(one.quantity.node[np.isin(one.quantity.node, nodes)]))) for one in reduced]
    return [one for one, having in count if having > (not one.quantity.of_pairs)]


def _populations(nodes: Ints, reduced: Sequence[Reduced], rules: Acceptance, alpha: dict[bool, float]) -> list[Kind]:
    """The populations of a configuration, each evaluated with a template of its own."""
    screened = screen(reduced, nodes)
    found = []
    for part, separated_by in _split(screened, nodes, rules):
        mine = screened if len(part) == len(nodes) else screen(reduced, part)
        result = evaluate.evaluate(mine, part, rules, alpha) if len(part) > 1 else None
        found.append(Kind(part, result, separated_by))
    return found


def _split(screened: Screened, nodes: Ints, rules: Acceptance) -> list[tuple[Ints, tuple[Matrix, int] | None]]:
    """Nodes that differ in a term of pairs or a set wider than a CCX, and what separates them."""
    if len(nodes) < 2 * groups.MIN_NODES:
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
    parts = groups.split(np.concatenate(means, axis=1), np.concatenate(bounds), np.concatenate(floors), alpha)
    return [(nodes[part], names[term] if term >= 0 else None) for part, term in parts]
