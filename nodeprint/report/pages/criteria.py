"""By which tolerances a campaign was judged: a row for each criterion, on page 1 and in the acceptance report."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from nodeprint.judge.verdict import Limit, Verdict
from nodeprint.report import names, text
from nodeprint.report.pages.blocks import Table
from nodeprint.report.pages.common import agreement_numbers, tabulated


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
        on = text.of_node(text.same_node_of(nearest, verdict)) if nearest is not None else ""
        numbers = agreement_numbers(nearest) if nearest is not None else {}
        rows.append(
            {
                "criterion": text.named("metrics", metric),
                "tolerance": _range(ends, names.tolerance),
                "detectable from": _range([limit.effect for limit in of_metric], names.percent),
                "closest to its tolerance": text.noun_phrase(nearest) + on if nearest is not None else "",
                "the same within": numbers.get("the same within", ""),
                "its tolerance": numbers.get("tolerance", ""),
            }
        )
    return tabulated(rows, "lrrlrr", 3)


def _range(values: Sequence[float], words: Callable[[float], str]) -> str:
    """A value, or from the lowest to the highest; a verdict of an older version has no ends, which are NaN."""
    low, high = words(np.nanmin(values)), words(np.nanmax(values))
    return high if low == high else f"{low.removesuffix('%')} to {high}"
