"""Absolute limits of a contract, on the median of a class of pairs or of a row of another measurement's table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import UNSET

from nodeprint.judge.acceptance_file import Acceptance
from nodeprint.judge.outcome import State
from nodeprint.judge.verdict import CellFigure, ClassFigure, Finding, Interval, JobEffect, Part


def outside(
    classes: Sequence[ClassFigure], rows: Sequence[CellFigure], rules: Acceptance, job: str
) -> Iterator[Finding]:
    """A finding for each figure of a node that is outside a limit; `job` is the one that it is of."""
    figures = [
        (figure.measurement, figure.name, figure.median_ns, figure.ci_high_ns - figure.median_ns, "ns", figure.home)
        for figure in classes
    ]
    figures += [(row.measurement, row.name, row.median, row.ci_high - row.median, row.unit, -1) for row in rows]
    for limit in rules.limits:
        for measurement, name, median, half, unit, home in figures:
            over = limit.at_most is not UNSET and median > limit.at_most
            allowed = limit.at_most if over else limit.at_least
            if (
                (measurement, name) != (limit.measurement, limit.figure)
                or not allowed
                or not (over or median < allowed)
            ):
                continue
            effect, relative_half = median / allowed - 1, half / allowed
            interval = Interval(effect - relative_half, effect + relative_half)
            yield Finding(
                id="limit", state=State.CONFIRMED, measurement=measurement, home=home,
                part=Part("limit", "limit", {"figure": name, "reason": limit.reason}), effect=effect,
                effect_unit=median - allowed,
                interval=interval, half_95=relative_half, bound=0.0, bound_unit=allowed, times_bound=median / allowed,
                value=median, peers=allowed, unit=unit, worse=True, by_job=(JobEffect(job, effect, interval, {}),),
                remedy="limit",
            )  # fmt: skip


def applied(classes: Sequence[Sequence[ClassFigure]], rows: Sequence[Sequence[CellFigure]]) -> set[tuple[str, str]]:
    """The measurements and names of figures that a limit can be of."""
    of_pairs = {(figure.measurement, figure.name) for figures in classes for figure in figures}
    return of_pairs | {(row.measurement, row.name) for figures in rows for row in figures}
