"""Findings for tests, as the judge would state them, from the values of a simulated fleet."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from nodeprint.judge.outcome import Certainty
from nodeprint.judge.verdict import Component, Finding, Interval, JobEffect
from nodeprint.report.figures.node_levels import NodeLevels


def finding_of_pairs(
    levels: NodeLevels,
    node: str,
    component: Component,
    pairs: Iterable[tuple[int, int]],
    *,
    effect: float,
    tolerance: float,
    home: int = -1,
) -> Finding:
    """A finding of some pairs (OS numbers) with this relative effect."""
    by_first: dict[int, list[int]] = {}
    for a, b in pairs:
        by_first.setdefault(min(a, b), []).append(max(a, b))
    value = float(np.nanmean(levels.of(node)))
    return _finding(
        levels,
        component,
        effect,
        tolerance,
        value,
        home=home,
        pairs={a: tuple(sorted(bs)) for a, bs in by_first.items()},
    )


def finding_of_cells(
    levels: NodeLevels,
    component: Component,
    cells: Iterable[Mapping[str, int | str]],
    *,
    effect: float,
    tolerance: float,
) -> Finding:
    """A finding of some cells (OS numbers) with this relative effect."""
    value = float(np.nanmean(levels.values))
    return _finding(levels, component, effect, tolerance, value, cells=tuple(cells))


def _finding(
    levels: NodeLevels,
    component: Component,
    effect: float,
    tolerance: float,
    value: float,
    *,
    home: int = -1,
    pairs: Mapping[int, tuple[int, ...]] | None = None,
    cells: tuple[Mapping[str, int | str], ...] = (),
) -> Finding:
    half = 0.1 * abs(effect)
    interval = Interval(effect - half, effect + half)
    jobs = tuple(
        JobEffect(
            f"job{job}", effect, interval, {f"job{job}/run{run}": effect + 0.02 * half * run for run in (1, 2, 3)}
        )
        for job in (1, 2)
    )
    return Finding(
        id=f"{component.term}-slow",
        state=Certainty.CONFIRMED,
        measurement=levels.quantity.measurement,
        home=home,
        component=component,
        effect=effect,
        effect_unit=effect * value,
        interval=interval,
        half_95=half / 2,
        tolerance=tolerance,
        tolerance_unit=tolerance * value,
        times_tolerance=abs(effect) / tolerance,
        value=value * (1 + effect),
        peers=value,
        unit=levels.quantity.unit,
        worse=True,
        by_job=jobs,
        pairs=pairs or {},
        cells=cells,
    )
