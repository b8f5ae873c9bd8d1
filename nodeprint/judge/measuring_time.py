"""Effects of the time of measurement: trends or steps over the nodes of a fleet, by component type."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from nodeprint.data.places.layout import Ints
from nodeprint.judge import agreements, tolerances
from nodeprint.judge.deviations import run_means
from nodeprint.judge.population import Population
from nodeprint.judge.reduction import APART, Matrix
from nodeprint.judge.verdict import Interval, TimeEffect

if TYPE_CHECKING:
    from nodeprint.stats.measuring_order import OrderEffect

Floats = npt.NDArray[np.float64]

#: The probability that a fleet without an effect of time has a trend or step.
ALARM = 0.01
#: Smaller shares of the tolerance are not named, as they move no node across it.
_LEAST_SHARE = 0.25


def effects(population: Population) -> tuple[TimeEffect, ...]:
    """Trends with the order of measurement in a population before its split, the largest in tolerances first.

    There is one regression for each component type (`stats.measuring_order`). The chance of any false effect is ALARM
    (Holm 1979). Component types that are contrasts inside a node have no common level and are left out. A measurement
    reports its coarsest component type.
    """
    if not any(any(reduced.started) for reduced in population.reduced):
        return ()
    from nodeprint.stats import measuring_order  # noqa: PLC0415 (most of a second, for fleets with times alone)

    tested = [list(_of_group(population, group.nodes)) for group in population.groups]
    named = iter(measuring_order.holm(np.array([of.p for of_group in tested for of, _ in of_group]), ALARM).tolist())
    out: list[TimeEffect] = []
    for of_group in tested:
        first: dict[tuple[str, int], TimeEffect] = {}
        for (of, matters), is_named in zip(of_group, named, strict=False):
            if is_named and matters:
                first.setdefault((of.measurement, of.home), of)
        out += first.values()
    return tuple(sorted(out, key=lambda effect: -abs(effect.effect) / effect.tolerance))


def _of_group(population: Population, nodes: Ints) -> Iterator[tuple[TimeEffect, bool]]:
    """The effect of the order on each component type, and whether it is large enough to be named."""
    from nodeprint.stats import measuring_order  # noqa: PLC0415 (as above)

    for matrix in population.matrices(nodes):
        earliest = _earliest(matrix)
        moments = matrix.began[earliest]
        known = np.isfinite(moments)
        if not known.any() or np.ptp(moments[known]) < APART.total_seconds():
            continue
        for number, columns in matrix.terms.by_component_type:
            if len(matrix.terms.terms[int(columns[0])].against):
                continue
            values = run_means(matrix.values[earliest])[:, columns].mean(axis=1)
            usable = known & np.isfinite(values)
            order = measuring_order.effect(values[usable], moments[usable])
            if order is not None:
                tolerance = float(np.median(tolerances.of_matrix(matrix, population.rules)[columns]))
                component_type, sorted_moments = matrix.terms.component_types[number], np.sort(moments[usable])
                matters = abs(order.effect) >= _LEAST_SHARE * tolerance
                yield _effect(matrix, component_type, order, tolerance, sorted_moments), matters


def _effect(matrix: Matrix, component_type: str, order: OrderEffect, tolerance: float, moments: Floats) -> TimeEffect:
    """The effect of the order on the mean over a component type. Its `tolerance` is on the model's scale; `moments` are
    the sorted seconds of the nodes."""
    relative = matrix.terms.relative
    first, last = map(_text, (moments[0], moments[-1]))
    since = "" if order.step is None else _text(moments[order.step])
    low, size, high = (relative(order.effect + side) for side in (-order.half_95, 0.0, order.half_95))
    return TimeEffect(
        agreements.metric(matrix.measured),
        matrix.name,
        matrix.home,
        component_type,
        size,
        Interval(low, high),
        matrix.terms.allowed(tolerance, order.effect),
        len(moments),
        first,
        last,
        since,
        order.p,
    )


def _earliest(matrix: Matrix) -> Ints:
    """The job of each node that began first (node, as rows of the matrix)."""
    began = np.where(np.isfinite(matrix.began), matrix.began, np.inf)
    return np.array([min(matrix.jobs(node), key=lambda row: began[row]) for node in range(len(matrix.nodes))])


def _text(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, tz=UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
