"""Results of nodes that have one run: their spread, outliers and clusters."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from nodeprint.judge.agreements import metric
from nodeprint.judge.deviations import Deviations
from nodeprint.judge.population import Population
from nodeprint.judge.sets import WHOLE
from nodeprint.judge.verdict import NodesAt, SingleRuns
from nodeprint.stats import gaps
from nodeprint.stats.robust import robust_sd


def of_series(population: Population, series: Sequence[Deviations]) -> tuple[SingleRuns, ...]:
    """The result of each deciding measurement over all its points, for groups in which no node has two runs."""
    return tuple(
        of_group
        for of_measurement in series
        if metric(of_measurement.matrix.measured) in population.rules.criteria
        for of_group in _of(population, of_measurement)
    )


def _of(population: Population, series: Deviations) -> Iterator[SingleRuns]:
    matrix, terms = series.matrix, series.matrix.terms
    whole = [number for number, term in enumerate(terms.terms) if term.component_type == WHOLE]
    if not whole or terms.share or matrix.values.shape[1] > 1 or len(matrix.owner) > len(matrix.nodes):
        return
    values = series.spreads.of_nodes[:, whole[0]]
    measured = np.flatnonzero(np.isfinite(values))
    if len(measured) < 2:
        return
    relative = np.array([matrix.terms.relative(value) for value in values[measured].tolist()])
    level = float(np.median(1 + relative)) * float(matrix.levels[whole[0]])
    effects = (1 + relative) / np.median(1 + relative) - 1
    names = [population.fleet.nodes[i].name for i in matrix.nodes[measured].tolist()]

    def nodes_at(rows: np.ndarray[tuple[int], np.dtype[np.intp]]) -> NodesAt:
        return NodesAt(tuple(sorted(names[row] for row in rows.tolist())), float(np.median(effects[rows])))

    away = np.flatnonzero(gaps.apart(effects))
    upper = gaps.two_groups(effects)
    yield SingleRuns(
        matrix.name,
        len(measured),
        level,
        matrix.measured.unit,
        float(effects.min()),
        float(effects.max()),
        robust_sd(effects),
        nodes_at(np.array([int(np.abs(effects).argmax())])),
        tuple(nodes_at(away[effects[away] * side > 0]) for side in (-1, 1) if (effects[away] * side > 0).any()),
        () if upper is None else (nodes_at(np.flatnonzero(~upper)), nodes_at(np.flatnonzero(upper))),
    )
