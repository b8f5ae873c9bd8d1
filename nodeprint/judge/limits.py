"""Absolute limits of a contract, on the median of a class of pairs or of a row of another measurement's table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec
from msgspec import UNSET

from nodeprint.judge.acceptance_file import Acceptance
from nodeprint.judge.outcome import Certainty
from nodeprint.judge.verdict import CellFigure, ClassFigure, Component, Finding, Interval, JobEffect


class _Limited(msgspec.Struct, frozen=True):
    """What a limit can be of: a median, or that of a group of a mixture, which is `called` by both, with half of its
    interval."""

    measurement: str
    of: str
    called: str
    median: float
    half: float
    unit: str
    home: int = -1
    peak: float = 0.0


def outside(
    classes: Sequence[ClassFigure], rows: Sequence[CellFigure], rules: Acceptance, job: str
) -> Iterator[Finding]:
    """A finding for each figure of a node that is outside a limit; `job` is the one that it is of. Of a class that is a
    mixture each group has to keep its limit, as the median of all is that of no pair."""
    figures = [
        _Limited(
            figure.measurement,
            figure.name,
            called,
            ns,
            (figure.ci_high_ns / figure.median_ns - 1) * ns,
            "ns",
            figure.home,
        )
        for figure in classes
        for called, ns in figure.medians.items()
    ]
    figures += [
        _Limited(row.measurement, row.name, row.name, row.median, row.ci_high - row.median, row.unit, peak=row.peak)
        for row in rows
    ]
    for limit in rules.limits:
        for figure in figures:
            median, half, unit = figure.median, figure.half, figure.unit
            over = limit.at_most is not UNSET and median > limit.at_most
            allowed = limit.at_most if over else limit.least(figure.peak)
            of_it = (figure.measurement, figure.of) == (limit.measurement, limit.figure)
            if not of_it or not allowed or not (over or median < allowed):
                continue
            effect, relative_half = median / allowed - 1, half / allowed
            interval = Interval(effect - relative_half, effect + relative_half)
            yield Finding(
                id="limit",
                state=Certainty.CONFIRMED,
                measurement=figure.measurement,
                home=figure.home,
                component=Component("limit", "limit", {"figure": figure.called, "reason": limit.reason}),
                effect=effect,
                effect_unit=median - allowed,
                interval=interval,
                half_95=relative_half,
                tolerance=0.0,
                tolerance_unit=allowed,
                times_tolerance=median / allowed,
                value=median,
                peers=allowed,
                unit=unit,
                worse=True,
                by_job=(JobEffect(job, effect, interval, {}, shows=True),),
                remedy="limit",
            )


def applied(
    classes: Sequence[Sequence[ClassFigure]], rows: Sequence[Sequence[CellFigure]], share: bool = False
) -> set[tuple[str, str]]:
    """The measurements and names of figures that a limit can be of; with `share` one of the theoretical peak."""
    if share:
        return {(row.measurement, row.name) for figures in rows for row in figures if row.peak}
    of_pairs = {(figure.measurement, figure.name) for figures in classes for figure in figures}
    return of_pairs | {(row.measurement, row.name) for figures in rows for row in figures}
