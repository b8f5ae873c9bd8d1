"""Within which agreements nodes are the same, and what resolves an agreement that is too wide, in sentences."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from nodeprint.data.places.measured import is_metric
from nodeprint.errors import printable
from nodeprint.judge.outcome import Outcome
from nodeprint.judge.verdict import Agreement, Limit, NodeVerdict, Verdict
from nodeprint.report import names
from nodeprint.report.text.wording import begin, named, noun_phrase, sentence
from nodeprint.settings.texts import say, texts


def short_agreement(agreement: Agreement, node: str = "") -> str:
    """An agreement in a list, with its component and tolerance: `core-to-core latency 1.4% of 4% (same CCD)`."""
    digits = names.digits_beyond(agreement.within, agreement.tolerance)
    both = {"within": agreement.within, "tolerance": agreement.tolerance}
    values = {key: names.tolerance(share, agreement.measurement, digits) for key, share in both.items()}
    metric, component = named("metrics", agreement.metric), names.scoped(agreement.component)
    return say("agreement_short", metric=metric, component=component, node=of_node(node), **values)


def of_node(name: str) -> str:
    """`, node003`; empty without a name."""
    return say("of_one_node", node=printable(name, 60)) if name else ""


def node_of(agreement: Agreement, nodes: Mapping[str, NodeVerdict]) -> str:
    """The first of several nodes that has this agreement; empty for a single node."""
    return next((name for name, node in nodes.items() if agreement in node.agreements), "") if len(nodes) > 1 else ""


def same_node_of(agreement: Agreement, verdict: Verdict) -> str:
    """The first SAME node that has this agreement of the fleet; empty if the fleet has one node."""
    if len(verdict.nodes) < 2:
        return ""
    same = (name for name, node in verdict.nodes.items() if node.outcome is Outcome.SAME)
    return next((name for name in same if agreement in verdict.nodes[name].agreements), "")


def open_agreement(agreement: Agreement) -> str:
    """An agreement that is beyond its tolerance."""
    in_words = begin(named("metrics", agreement.metric), agreement.measurement)
    if not math.isfinite(agreement.within):
        place, tolerance = noun_phrase(agreement), names.tolerance(agreement.tolerance, agreement.measurement)
        key = "agreement_no_center" if agreement.runs > 1 else "agreement_one_run"
        return say(key, metric=in_words, place=place, tolerance=tolerance)
    place = names.scoped(agreement.component) if is_metric(agreement.measurement) else noun_phrase(agreement)
    digits = names.digits_beyond(agreement.within, agreement.tolerance)
    ends = [names.percent(share, agreement.measurement, digits) for share in (agreement.within, agreement.tolerance)]
    if math.isfinite(agreement.within_unit):
        in_unit = names.with_limit(agreement.within_unit, agreement.tolerance_unit, agreement.unit)
        ends = [" or ".join(both) for both in zip(ends, in_unit, strict=True)]
    return say("agreement", metric=in_words, place=place, within=ends[0], tolerance=ends[1])


def agreement_remedies(agreements: Iterable[Agreement]) -> str:
    """What resolves agreements; if it is not the same for all, each with its metric."""
    by_words: dict[str, list[str]] = {}
    for agreement in agreements:
        by_words.setdefault(agreement_remedy(agreement), []).append(named("metrics", agreement.metric))
    if len(by_words) == 1:
        return "".join(f"{sentence(words)}." for words in by_words if words)
    return " ".join(f"{sentence(names.listed(of))}: {words}." for words, of in by_words.items() if words)


def agreement_remedy(agreement: Agreement) -> str:
    """What resolves an agreement; empty where nothing is to be said."""
    job, _, run = agreement.run.partition("/run")
    named_run = f"run {run} of {job}" if run else "one run"
    return remedy_words(agreement, of_jobs="in all", runs=agreement.runs, run=named_run)


def remedy_words(of: Agreement | Limit, **values: object) -> str:
    """The sentence of a remedy, empty without one; of a metric of a table it is another one."""
    own = texts()["agreement_remedies_of_tables"] if is_metric(of.measurement) else {}
    words = own.get(of.remedy) or texts()["agreement_remedies"].get(of.remedy, "")
    return str(words).format(needed=of.needed, **values)
