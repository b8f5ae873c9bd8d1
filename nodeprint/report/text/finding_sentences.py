"""Sentences about a finding: component, size of the difference, runs, and next step."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping

from nodeprint.data.places import homes
from nodeprint.data.places.measured import is_metric, models
from nodeprint.errors import printable
from nodeprint.judge.outcome import Certainty, Outcome
from nodeprint.judge.verdict import Evidence, Finding, JobEffect, NodeVerdict
from nodeprint.machine import fingerprint
from nodeprint.report import names
from nodeprint.report.pages.order import harm
from nodeprint.report.text.wording import (
    begin,
    difference,
    in_unit,
    is_channel,
    measured,
    memory_node,
    named,
    noun_phrase,
    sentence,
)
from nodeprint.settings.measurements import terms
from nodeprint.settings.texts import say, texts

#: The most finer components that are named; beyond that their number is given.
_MOST_PLACES = 4


def component_in_words(finding: Finding) -> str:
    """Name the metric and component, for a heading or a table: `core-to-core latency of core 37 (CPU 37)`."""
    if not finding.measurement and not finding.component.term.startswith("fabric-"):
        return _event(finding)
    if finding.component.term.startswith("fabric-"):
        to = finding.component.where.get("to")
        values = {"to": printable(str(to), 80), "metric": printable(finding.measurement, 60)}
        words = "metric_of_pairs" if is_metric(finding.measurement) else "messages_of"
        return say(words, "link" if to else "node", **values)
    if is_channel(finding):
        return sentence(say("channel", place=memory_node(finding)))
    if names.is_of_pairs(finding.component) and finding.measurement.startswith("coherence"):
        of_class = _scope(finding) if finding.component.term == "class" and finding.figures_of else ""
        return f"{say('pairs_of')} of {noun_phrase(finding)}{f', {of_class}' if of_class else ''}"
    return noun_phrase(finding)


def component_type_in_words(finding: Finding) -> str:
    """Name the metric and component type, for nodes that differ in components of one type."""
    if not finding.measurement or finding.of_limit or finding.component.term.startswith("fabric-"):
        return component_in_words(finding)
    return f"{measured(finding.measurement)} ({named('terms', finding.component.component_type)})"


def findings_of(nodes: Mapping[str, Finding]) -> str:
    """Return the sentence of a finding; for several nodes, the range of its effects and the worst node."""
    worst = max(nodes, key=lambda name: harm(nodes[name]))
    words = finding_sentence(nodes[worst])
    if len(nodes) == 1:
        return words
    digits = max(names.digits_beyond(finding.effect, finding.tolerance) for finding in nodes.values())
    effects = names.signed_range([finding.effect for finding in nodes.values()], nodes[worst].of_effect, digits)
    return f"{say('largest_of_nodes', count=len(nodes), effects=effects, node=printable(worst, 60))}{words}"


def finding_sentence(finding: Finding) -> str:
    """Describe a finding with its interval, tolerance and size in its unit, and the places and jobs that show it if not
    all do."""
    words, jobs, showing = _finding_sentence(finding), finding.by_job, finding.jobs_showing
    if 2 * finding.places_beyond < finding.places:  # a few large ones, which a mean does not show
        kind, verb = "few_pairs" if finding.pairs else "few_cells", "is" if finding.places_beyond == 1 else "are"
        words = f"{words} {say(kind, of=finding, verb=verb)}"
    if any(job.showing and len(job.showing) < len(job.runs) for job in jobs):  # in some of its runs only
        return f"{words} {say('which_runs', of=finding, runs=[run for job in jobs for run in job.showing])}"
    if showing and len(showing) < len(jobs):
        return f"{words} {say('which_jobs', of=finding, jobs=len(showing))}"
    return words


def runs_past(finding: Finding, job: JobEffect) -> int:
    """Count the runs of a job that are individually beyond the tolerance of a finding, on its side."""
    sign = math.copysign(1.0, finding.effect)
    return sum(sign * effect > finding.tolerance for effect in job.runs.values())


def _finding_sentence(finding: Finding) -> str:
    compared = texts()["compared"]["baseline" if finding.baseline else "peer" if finding.peer else "peers"]
    model = models().get(finding.measurement)
    base = say("compared_base") if model is not None and model.scale == "linear" else ""
    compared_with = {"baseline": finding.baseline, "peer": printable(finding.peer, 60), "base": base}
    unit = names.of_measurement(finding.unit, finding.measurement)
    values = {
        **{key: str(words).format(**compared_with) for key, words in compared.items()},
        **difference(finding, several=names.is_plural(finding.component), past=finding.state is Certainty.INTERMITTENT),
        "value": names.quantity(finding.value, unit),
        "peers": names.quantity(finding.peers, unit),
    }
    where = finding.component.where
    if finding.component.term.startswith("fabric-"):
        return _link_sentence(finding, values)
    if not finding.measurement:
        jobs = f" ({names.listed(job.job for job in finding.by_job)})" if finding.by_job else ""
        return say("finding_event", event=_event(finding), jobs=jobs)
    if is_channel(finding):  # a memory channel seems to be missing, with the bandwidths that show it
        streams = {cell["stream"] for cell in finding.cells if "stream" in cell}
        size, name = names.shown_unit(finding.peers, finding.unit)
        both = f"{finding.value / size:.3g} of {finding.peers / size:.3g} {name}"
        over = f", mean of {names.counted(len(streams), 'stream')}" if len(streams) > 1 else ""
        return say("finding_channel", **{**values, "place": memory_node(finding), "both": both, "over": over})
    place = begin(noun_phrase(finding), finding.measurement)
    if finding.of_limit:
        reason = printable(str(where["reason"]), 80)
        value, allowed = names.with_limit(finding.value, finding.tolerance_unit, unit)
        return say("finding_limit", place=place, reason=reason, **{**values, "value": value, "tolerance": allowed})
    if is_metric(finding.measurement) or (model is not None and model.places == "cells"):
        term = terms().get(finding.component.term)
        of_term = term.sentence if term is not None else ""  # it names the metric itself
        place = sentence(names.component(finding.component)) if of_term else place
        more = "more" if finding.effect > 0 else "less"
        values["value"] += _kinds_of_mean(finding)
        return str(of_term or texts()["finding_cells"]).format(place=place, more=more, **values)
    at_home = homes.named(finding.home)
    place += f", with lines at the {at_home}," if at_home else ""
    of, added = _scope(finding), in_unit(finding.effect_unit, finding.unit)
    return say("finding", place=place, of=f"{of} " if of else "", added=added, **values)


def _kinds_of_mean(finding: Finding) -> str:
    """State that the value of a finding is a mean of several kinds of values, such as levels or streams. That of shares
    is a median."""
    kinds = {tuple(item for item in cell.items() if isinstance(item[1], str)) for cell in finding.cells}
    is_mean = len(kinds) > 1 and finding.unit != "share" and not is_metric(finding.measurement)
    return say("mean_of_kinds", count=len(kinds)) if is_mean else ""


def _scope(finding: Finding) -> str:
    """Locate the pairs that an effect is of; empty if they are all pairs of the component."""
    if finding.figures_of is None:
        return names.scope(finding.component)
    # not twice the class of pairs on one of its sockets
    return names.within(finding.figures_of).removeprefix(f"in {names.component(finding.component)} ")


def _link_sentence(finding: Finding, values: Mapping[str, str]) -> str:
    """Describe slow messages of a node or a link between nodes; the sentence begins with the unchanged node name."""
    where = finding.component.where
    ends = {end: printable(str(where.get(end, "")), 80) for end in ("node", "to")}
    kind = "node" if not ends["to"] else "both" if where.get("sends") and where.get("receives") else "one"
    direction = "when it sends" if where.get("sends") else "when it receives"
    direction = "in both directions" if where.get("sends") and where.get("receives") else direction
    added = in_unit(finding.effect_unit, finding.unit, "a message")
    if is_metric(finding.measurement):
        metric = printable(finding.measurement, 60)
        one_way = "" if direction == "in both directions" else f" {direction}"
        return say("link_metric", kind, metric=metric, direction=one_way, **ends, **values)
    return say("link", kind, direction=direction, added=added, **ends, **values)


def _event(finding: Finding) -> str:
    if finding.id not in texts()["events"]:
        return sentence(f"{finding.id.replace('-', ' ')}: {finding.value:.4g}")
    cpus = str(finding.component.where.get("cpus", ""))
    wrong = f"CPU{'s' if ',' in cpus else ''} {cpus}" if cpus else "a CPU"
    return sentence(say("events", finding.id, count=finding.value, cpus=wrong))


def finding_details(finding: Finding) -> list[str]:
    """Return the details of a finding: runs, explained components, other affected nodes, instruments, and causes."""
    out = [runs_beyond(finding)] if finding.runs else []
    if finding.finer:
        out.append(_finer(finding))
    if finding.shared_by:
        out.append(say("shared_by", nodes=finding.shared_by))
    if finding.consistent_with:
        out.append(say("consistent", causes=[named("causes", key) for key in finding.consistent_with]))
    out += map(evidence, finding.evidence)
    return out + ([say("waived", why=finding.waived)] if finding.waived else [])


def _finer(finding: Finding) -> str:
    """Name the finer components that a finding explains, by measurement; those on the machine if they are few."""
    by_measurement = Counter(finer.measurement for finer in finding.finer)
    counts = (
        names.counted(count, f"difference in {measured(measurement)}", f"differences in {measured(measurement)}")
        for measurement, count in by_measurement.items()
    )
    of_pairs = (finer.component for finer in finding.finer if names.is_of_pairs(finer.component))
    places = list(dict.fromkeys(map(names.scoped, of_pairs)))
    named_places = f": {names.listed(places)}" if len(places) == len(finding.finer) <= _MOST_PLACES else ""
    return say("finer", count=names.listed(counts), components=named_places)


def accepted(finding: Finding) -> str:
    """Describe a finding that the site accepts, with expiry date and reason."""
    return say("finding_accepted", finding=finding_sentence(finding).rstrip("."), waived=finding.waived)


def runs_beyond(finding: Finding) -> str:
    """Count the runs that individually show the finding beyond its tolerance."""
    beyond = sum(runs_past(finding, job) for job in finding.by_job)
    if beyond == len(finding.runs):
        return say("finding_only_run") if beyond == 1 else say("finding_all_runs", of=finding)
    return say("finding_runs", count=beyond, of=finding, verb="is" if beyond == 1 else "are")


def remedy(finding: Finding, nodes: Mapping[str, NodeVerdict]) -> str:
    """Return what removes the cause of a finding in a fleet of `nodes`."""
    if finding.state is Certainty.MISMATCH:
        return say("remedy_of_few")
    remedies, term = texts()["remedies"], terms().get(finding.component.term)
    of_term = term.remedy if term is not None else remedies.get(finding.component.term)
    words = str(remedies.get(finding.remedy) or of_term or remedies["other"])
    has_same = any(node.outcome is Outcome.SAME for node in nodes.values())
    return words.replace("{peer}", say("remedy_peers", "same" if has_same else "other"))


def action(finding: Finding, nodes: Mapping[str, NodeVerdict], place: str = "in_table", **values: str) -> str:
    """Return what to do about a finding of a node: another job if that decides whether it is one, then the remedy.

    `place` selects the sentence, which `values` complete.
    """
    key = "again" if finding.state in (Certainty.INTERMITTENT, Certainty.SUSPECTED) else "after"
    return say("next_step", place, key, remedy=remedy(finding, nodes), **values)


def evidence(seen: Evidence) -> str:
    """Describe the reading of an instrument about a finding."""
    kinds = texts()["evidence"]
    words = kinds[seen.kind][{False: 0, True: 1, None: 2}[seen.seen]]
    difference = f"{(seen.value / seen.peers - 1) * 100:+z.1f}%" if seen.peers else "unknown"
    return str(words).format(
        difference=difference,
        value=names.quantity(seen.value, seen.unit),
        peers=names.quantity(seen.peers, seen.unit),
        field=sentence(fingerprint.label(seen.field)),
    )
