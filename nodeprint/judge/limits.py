"""Absolute limits of a contract, on the median of a class of pairs or of a row of another measurement's table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import UNSET

from nodeprint.judge.acceptance_file import Acceptance, ContractLimit
from nodeprint.judge.outcome import Certainty
from nodeprint.judge.verdict import CellFigure, ClassFigure, Component, Finding, Interval, JobEffect


def outside(
    classes: Sequence[ClassFigure], rows: Sequence[CellFigure], rules: Acceptance, job: str
) -> Iterator[Finding]:
    """A finding for each value of a node that is outside a limit, in `job`. In a class that is a mixture, each group
    has to keep the limit: no pair has the median of all."""
    for limit in rules.limits:
        of_limit = (limit.measurement, limit.figure)
        for figure in (figure for figure in classes if (figure.measurement, figure.name) == of_limit):
            half = figure.ci_high_ns / figure.median_ns - 1
            for called, ns in figure.medians.items():
                yield from _outside(limit, called, ns, half * ns, "ns", job, home=figure.home)
        for row in (row for row in rows if (row.measurement, row.name) == of_limit):
            half = row.ci_high - row.median
            yield from _outside(limit, row.name, row.median, half, row.unit, job, peak=row.peak)


def _outside(
    limit: ContractLimit,
    called: str,
    median: float,
    half: float,
    unit: str,
    job: str,
    *,
    home: int = -1,
    peak: float = 0.0,
) -> Iterator[Finding]:
    """The finding of a median that is outside a limit, with `half` of its interval; none if it keeps the limit.
    `called` names the value, or the group of a mixture."""
    over = limit.at_most is not UNSET and median > limit.at_most
    allowed = limit.at_most if over else limit.least(peak)
    if not allowed or not (over or median < allowed):
        return
    effect, relative_half = median / allowed - 1, half / allowed
    interval = Interval(effect - relative_half, effect + relative_half)
    yield Finding(
        id="limit",
        state=Certainty.CONFIRMED,
        measurement=limit.measurement,
        home=home,
        component=Component("limit", "limit", {"figure": called, "reason": limit.reason}),
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
