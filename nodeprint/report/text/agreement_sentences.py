"""Within which margins nodes are the same, and what resolves a margin that is too wide, in sentences."""

from __future__ import annotations

import math

from nodeprint.data.places.measured import is_metric
from nodeprint.judge.verdict import Margin
from nodeprint.report import names
from nodeprint.report.text.wording import begin, named, subject
from nodeprint.settings.texts import say, texts


def short_margin(margin: Margin) -> str:
    """A margin in a list: `core to core within 1.4 % (tolerance 4 %)`."""
    subject = named("subjects", margin.subject)
    return say(
        "margin_short", subject=subject, within=_difference(margin.within), tolerance=_difference(margin.tolerance)
    )


def margin_with_remedy(margin: Margin) -> str:
    """A margin that is beyond its tolerance, and what resolves it."""
    in_words = begin(named("subjects", margin.subject), margin.measurement)
    if not math.isfinite(margin.within):
        place, tolerance = subject(margin), _difference(margin.tolerance)
        key = "margin_no_centre" if margin.runs > 1 else "margin_one_run"
        return say(key, subject=in_words, place=place, tolerance=tolerance) + "."
    text = say(
        "margin",
        subject=in_words,
        place=names.scoped(margin.part) if is_metric(margin.measurement) else subject(margin),
        within=_both(margin.within, margin.within_unit, margin.unit),
        tolerance=_both(margin.tolerance, margin.tolerance_unit, margin.unit),
    )
    words = margin_remedy(margin)
    return f"{text}; {words}." if words else f"{text}."


def margin_remedy(margin: Margin) -> str:
    """What resolves a margin; empty where nothing is to be said."""
    job, _, run = margin.run.partition("/run")
    named_run = f"run {run} of {job}" if run else "one run"
    words = remedy_words(margin.remedy, margin.measurement)
    return words.format(needed=margin.needed, runs=margin.runs, run=named_run)


def remedy_words(remedy: str, measurement: str) -> str:
    """The sentence of a remedy, its values still to be filled in; of a metric of a table it is another one."""
    own = texts()["margin_remedies_of_tables"] if is_metric(measurement) else {}
    return str(own.get(remedy) or texts()["margin_remedies"].get(remedy, ""))


def _both(share: float, value: float, unit: str) -> str:
    return f"{names.percent(share)} or {names.quantity(value, unit)}" if math.isfinite(value) else names.percent(share)


def _difference(share: float) -> str:
    return f"{share * 100:.2g} %" if share < 0.1 else f"{share * 100:.3g} %"
