"""Results of nodes that have one run: their spread, outliers and clusters."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from nodeprint.data.job.fabric_times import Fabric, Floats, relative
from nodeprint.judge import messages
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
    differences = np.array([matrix.terms.relative(value) for value in values[measured].tolist()])
    names = [population.fleet.nodes[i].name for i in matrix.nodes[measured].tolist()]
    yield _spread(matrix.name, names, differences, float(matrix.levels[whole[0]]), matrix.measured.unit)


def of_fabrics(fabrics: Sequence[Fabric]) -> tuple[SingleRuns, ...]:
    """The result of each fabric of a table with one run: the messages of each node with all others, in its slower
    direction."""
    out = []
    for fabric in fabrics:
        if len(fabric.runs) == 1:
            fitted = messages.terms(fabric.logs, fabric.places)
            slower = np.maximum(fitted["sends"].values[0], fitted["receives"].values[0])
            effects = np.array([relative(value, fabric.better) for value in slower.tolist()])
            median = float(np.nanmedian(fabric.values))
            out.append(_spread(fabric.measurement, fabric.nodes, effects, median, fabric.unit))
    return tuple(out)


def _spread(measurement: str, names: Sequence[str], differences: Floats, level: float, unit: str) -> SingleRuns:
    """The spread of nodes with relative `differences` from a level."""
    middle = float(np.median(1 + differences))
    effects = (1 + differences) / middle - 1

    def nodes_at(rows: np.ndarray[tuple[int], np.dtype[np.intp]]) -> NodesAt:
        return NodesAt(tuple(sorted(names[row] for row in rows.tolist())), float(np.median(effects[rows])))

    away = np.flatnonzero(gaps.apart(effects))
    upper = gaps.two_groups(effects)
    return SingleRuns(
        measurement,
        len(names),
        middle * level,
        unit,
        float(effects.min()),
        float(effects.max()),
        robust_sd(effects),
        nodes_at(np.array([int(np.abs(effects).argmax())])),
        tuple(nodes_at(away[effects[away] * side > 0]) for side in (-1, 1) if (effects[away] * side > 0).any()),
        () if upper is None else (nodes_at(np.flatnonzero(~upper)), nodes_at(np.flatnonzero(upper))),
    )
