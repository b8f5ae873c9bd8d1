"""By which tolerances a campaign was judged: a row for each criterion, on page 1 and in the acceptance report."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from nodeprint.judge.verdict import Agreement, Limit, Verdict
from nodeprint.report import names, text
from nodeprint.report.pages.blocks import Table
from nodeprint.report.pages.common import agreement_numbers, without_empty

_HEADER = ("criterion", "tolerance", "detectable from", "closest to its tolerance", "the same within", "its tolerance")


def table(verdict: Verdict) -> Table:
    """The tolerances of each criterion and the component that is closest to its own.

    Tolerances differ by component and are a range. `detectable from` is the difference from which on 90% of the
    nodes with it are detected.
    """
    limits: dict[str, list[Limit]] = {}
    for limit in verdict.fleet.limits:
        if limit.metric in verdict.criteria:
            limits.setdefault(limit.metric, []).append(limit)
    closest = {agreement.metric: agreement for agreement in verdict.fleet.agreements}
    rows = []
    for metric, of_metric in limits.items():
        nearest = closest.get(metric)
        ends = [end for of in of_metric for end in (of.tolerance_low, of.tolerance, of.tolerance_high)]
        rows.append(
            (
                text.named("metrics", metric),
                _range(ends, names.tolerance),
                _range([limit.effect for limit in of_metric], names.percent),
                *(_closest(nearest, verdict) if nearest is not None else ("", "", "")),
            )
        )
    return without_empty(Table(_HEADER, tuple(rows), "lrrlrr", 3))


def _closest(agreement: Agreement, verdict: Verdict) -> tuple[str, ...]:
    component = text.noun_phrase(agreement) + text.of_node(text.same_node_of(agreement, verdict))
    return component, *agreement_numbers(agreement)


def _range(values: Sequence[float], words: Callable[[float], str]) -> str:
    """A value, or from the lowest to the highest; a verdict of an older version has no ends, which are NaN."""
    low, high = words(np.nanmin(values)), words(np.nanmax(values))
    return high if low == high else f"{low.removesuffix('%')} to {high}"
