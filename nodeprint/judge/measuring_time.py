"""Whether what was measured goes with the time of measuring: a trend or a step over the nodes of a fleet, by component
type."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import msgspec
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

#: The chance that any trend or step is named of a fleet in which the time of measuring does not matter.
ALARM = 0.01
#: What is less than this share of the tolerance is not named: it takes no node across it.
_LEAST_SHARE = 0.25


class _Tested(msgspec.Struct, frozen=True):
    """A component type of a matrix, what the order does to the mean over its components, its tolerance on the model's
    scale, and the sorted moments (seconds) of the nodes."""

    matrix: Matrix
    component_type: str
    order: OrderEffect
    tolerance: float
    moments: Floats


def effects(population: Population) -> tuple[TimeEffect, ...]:
    """What goes with the order of measuring in a population that is not yet split, the largest in tolerances first.

    One regression a component type (`stats.measuring_order`), with a chance of ALARM that any of all is named wrongly
    (Holm 1979). Families that are contrasts inside a node have no common level and are left out. Of a measurement the
    coarsest component type is named.
    """
    if not any(any(reduced.started) for reduced in population.reduced):
        return ()
    from nodeprint.stats import measuring_order  # noqa: PLC0415 (most of a second, for fleets with times alone)

    tested = [component_type for group in population.groups for component_type in _of_group(population, group.nodes)]
    named = measuring_order.holm(np.array([component_type.order.p for component_type in tested]), ALARM)
    first: dict[tuple[str, int, int], TimeEffect] = {}
    for component_type, is_named in zip(tested, named.tolist(), strict=True):
        if is_named and abs(component_type.order.effect) >= _LEAST_SHARE * component_type.tolerance:
            matrix = component_type.matrix
            first.setdefault((matrix.name, matrix.component.home, int(matrix.nodes[0])), _effect(component_type))
    return tuple(sorted(first.values(), key=lambda effect: -abs(effect.effect) / effect.tolerance))


def _of_group(population: Population, nodes: Ints) -> Iterator[_Tested]:
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
                yield _Tested(matrix, matrix.terms.component_types[number], order, tolerance, np.sort(moments[usable]))


def _effect(component_type: _Tested) -> TimeEffect:
    matrix, order = component_type.matrix, component_type.order
    relative = matrix.scale.relative
    first, last = map(_text, (component_type.moments[0], component_type.moments[-1]))
    since = "" if order.step is None else _text(component_type.moments[order.step])
    low, size, high = (relative(order.effect + side) for side in (-order.half_95, 0.0, order.half_95))
    return TimeEffect(
        agreements.metric(matrix.measured),
        matrix.name,
        matrix.component.home,
        component_type.component_type,
        size,
        Interval(low, high),
        matrix.scale.allowed(component_type.tolerance, order.effect),
        len(component_type.moments),
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
