"""Notes on a whole fleet: groups, shared differences, spreads, limits, and memory."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from nodeprint.data.places import homes
from nodeprint.errors import printable
from nodeprint.judge.verdict import (
    FleetVerdict,
    Limit,
    MemoryAchieved,
    NodeVerdict,
    Note,
    Shared,
    SingleRuns,
    Spread,
    TimeEffect,
    Verdict,
)
from nodeprint.machine import peak as machine_peak
from nodeprint.report import names
from nodeprint.report.text import group_sentences
from nodeprint.report.text.agreement_sentences import remedy_words
from nodeprint.report.text.disturbances import busy_nodes, untaken
from nodeprint.report.text.wording import change, difference, measured, named, place, sentence, without_cpus
from nodeprint.settings.texts import say, texts

#: Detection limits above this multiple of the tolerance do not support a conclusion.
_FAR = 2.5


def fleet_notes(verdict: Verdict, *, in_table: bool = False) -> list[str]:
    """Return the fleet's notes: groups unless `in_table`, shared differences, wide spreads, limits and others."""
    fleet = verdict.fleet
    several = fleet.groups if len(fleet.groups) > 1 else ()
    spreads = fleet.wide_spreads
    # where nodes differ that much, the differences themselves are the reason
    limits = (of for of in fleet.limits if of.metric in verdict.criteria and of.measurement not in spreads)
    far: dict[tuple[str, str], list[Limit]] = {}  # those of a measurement with one remedy share a sentence
    for limit in (of for of in limits if of.effect > _FAR * of.tolerance):
        far.setdefault((limit.measurement, limit.remedy), []).append(limit)
    remedied = not busy_nodes(verdict)  # else more runs do not help
    # beside findings on its nodes, a difference of a group below each tolerance is no news
    with_findings = {name for name, node in verdict.nodes.items() if node.counted}
    return [
        *(group_sentences.group(group) for group in several if not in_table),
        *(group_sentences.also_apart(verdict) if several else ()),
        *group_sentences.which_is_right(verdict),
        *(group_sentences.gap(group) for group in fleet.gaps if not with_findings.intersection(group.nodes)),
        *(single_runs(of, verdict.nodes) for of in fleet.single_runs),
        *map(memory, fleet.memory),
        *(shared(of, verdict.nodes) for of in fleet.shared),
        *map(spread, spreads.values()),
        *(limits_of(alike, remedied=remedied) for alike in far.values()),
        *map(note, fleet.notes),
        *untaken(verdict),
    ]


def single_runs(runs: SingleRuns, nodes: Mapping[str, NodeVerdict]) -> str:
    """Describe the variation between nodes with one run each, and name the outliers."""
    farthest = nodes.get(next(iter(runs.farthest.nodes), ""))
    group = say("of_group", group=farthest.group) if farthest is not None and farthest.group else ""
    lines = [say("single_runs", "all", runs=runs, measured=sentence(measured(runs.measurement)), group=group)]
    for outlier in runs.apart:
        verb = "stands" if len(outlier.nodes) == 1 else "stand"
        adjective = change(outlier.effect, runs.measurement)
        lines.append(say("single_runs", "apart", outlier=outlier, verb=verb, change=adjective))
    if runs.groups:
        low, high = runs.groups
        adjective = change(1.0, runs.measurement)
        lines.append(say("single_runs", "groups", low=low, high=high, apart=high.effect - low.effect, change=adjective))
    return " ".join(lines)


def memory_warnings(fleet: FleetVerdict, node: str = "") -> list[str]:
    """Warn of memory that is below its possible configuration or achieves little of its peak, for all nodes or one.

    The warning is part of the outcome, as it also applies if all nodes are SAME.
    """
    return [memory_warning(achieved, fleet.measured) for achieved in fleet.memory if node in ("", *achieved.nodes)]


def memory_warning(achieved: MemoryAchieved, measured: int) -> str:
    """Return the warning for nodes; `measured` is the number of measured nodes."""
    memory, count, reasons = achieved.memory, len(achieved.nodes), list[str]()
    if memory.rated_mts > memory.mts:
        reasons.append(say("memory", "slow", whose="its" if count == 1 else "their", memory=memory))
    if memory.all_channels > memory.channels:
        reasons.append(say("memory", "empty", memory=memory))
    if not reasons:
        reasons.append(say("memory", "unknown" if memory.by_processor else "little"))
    # a word before the names: a sentence starts with a capital letter, which would change a name
    listed = names.nodes(achieved.nodes)
    nodes = f"node {listed} reaches" if count == 1 else f"nodes {listed} reach"
    if count == measured > 1:
        nodes = "all nodes reach"
    values = {"share": names.whole_percent(achieved.of_most), "median": say("memory", "median") if count > 1 else ""}
    return sentence(say("memory", "warning", nodes=nodes, reasons=names.listed(reasons), **values))


def memory(achieved: MemoryAchieved) -> str:
    """Explain the reference of the percentages in `memory_warnings`."""
    return sentence(say("memory", "of", memory=achieved.memory, share=achieved.of_configured))


def peak(node: NodeVerdict) -> list[str]:
    """Explain the theoretical peaks behind the percentages in a node report, with their source."""
    memory, cycle = machine_peak.memory(node.fingerprint), machine_peak.flops_per_cycle(node.fingerprint)
    shown = {row.measurement.partition("-")[0] for row in node.cells if row.peak}
    words = []
    if memory is not None and "bandwidth" in shown:
        source = "by_processor" if memory.by_processor else "by_modules"
        less = say("peak", "less", memory=memory) if memory.could_be_more else ""
        whole = names.quantity(memory.most_bytes_per_s, "B/s")
        shares = {names.quantity(row.peak, "B/s") for row in node.cells if row.peak and "own node" in row.name}
        of_node = "".join(say("peak", "of_node", rate=share) for share in shares - {whole})
        values = {"rate": whole, "of_node": of_node, "source": say("peak", source), "less": less}
        words.append(say("peak", "bandwidth", memory=memory, **values))
    return words + ([say("peak", "load", flops=cycle)] if "load" in shown else [])


def over_time(verdict: Verdict) -> list[str]:
    """Describe trends over the order of measuring: the largest, in tolerances, in a sentence; the others are named."""
    largest, *others = verdict.fleet.over_time or (None,)
    if largest is None:
        return []
    key = "step" if largest.since else "trend"
    words = say("over_time", key, of=largest, place=_over(largest), **difference(largest))
    more = names.listed(f"{_over(effect)} {names.signed(effect.effect, effect.measurement)}" for effect in others)
    return [words, say("over_time", "others", effects=more)] if others else [words]


def _over(effect: TimeEffect) -> str:
    details = filter(None, (named("component_types", effect.component_type), homes.named(effect.home)))
    return f"{measured(effect.measurement)} ({', '.join(details)})"


def shared(shared: Shared, nodes: Mapping[str, NodeVerdict]) -> str:
    """Describe a difference that several nodes share, with the smallest and the largest effect."""
    component = shared.component.term, without_cpus(shared.component.where)
    effects = sorted(
        abs(finding.effect)
        for finding in (finding for name in shared.nodes for finding in nodes[name].findings)
        if finding.measurement == shared.measurement and (finding.effect > 0) == (shared.effect > 0)
        if (finding.component.term, without_cpus(finding.component.where)) == component
    )
    values = difference(shared)
    least = f"{effects[0] * 100:z.1f}" if effects else ""
    if effects and least != values["effect"].partition(" ")[0].removesuffix("%"):
        values["effect"] = f"{least} to {values['effect']}"
        values["interval"] = say("shared_largest", interval=values["interval"])
    values |= {"place": place(shared), "fields": group_sentences.fields(shared.fields)}
    contested = say("contested", share=shared.share) if shared.may_be_right else ""
    return say("shared", of=shared, contested=contested, **values)


def spread(spreads: Sequence[Spread]) -> str:
    """Describe how far nodes differ in a measurement, by the first and widest type of component."""
    widest, several = spreads[0], len(spreads) > 1
    beyond = say("spread_beyond", nodes=widest.nodes_beyond) if widest.nodes_beyond else ""
    of = sentence(measured(widest.measurement)) if several else _component_type(widest)
    words = say("spread", spread=widest, of=of, up_to="up to " if several else "", beyond=beyond)
    if not math.isfinite(widest.smallest_tolerance):
        return words
    return f"{words} {say('spread_smallest', spread=widest)}"


def _component_type(of: Spread | Limit) -> str:
    """Name a component type with its measurement."""
    return sentence(f"{named('terms', of.component_type)} ({measured(of.measurement)})")


def limits_of(limits: Sequence[Limit], *, remedied: bool = True) -> str:
    """State the detection limits of one measurement with their remedy: of one component, or as a range of several."""
    most = max(limits, key=lambda limit: limit.needed)
    words = remedy_words(most, of_jobs="in each job", runs="fewer") if remedied else ""
    remedy = f"; {words}" if words else ""
    effect, tolerance = names.detectable(limits), names.tolerances(limits)
    if len(limits) > 1:
        of, count = sentence(measured(most.measurement)), len(limits)
        return say("limits_far", measured=of, count=count, effects=effect, tolerances=tolerance, remedy=remedy)
    return say("limit_far", component_type=_component_type(most), effect=effect, tolerance=tolerance, remedy=remedy)


def note(note: Note) -> str:
    """Return a note of the campaign."""
    if (shared := note.shared) is not None:  # a change of all nodes since a baseline
        others, name = names.counted(int(note.value), "measurement"), printable(note.name, 200)
        further = say("notes", "baseline-further", others=others) if int(note.value) else ""
        return say("notes", note.kind, of=shared, name=name, place=place(shared), further=further, **difference(shared))
    if note.kind in texts()["notes"]:
        detail = printable(note.detail, 300).rstrip(".")
        brackets = f" ({detail})" if detail else ""
        return say("notes", note.kind, name=printable(note.name, 200), detail=detail, detail_in_brackets=brackets)
    words = (printable(word, 300) for word in (note.name, note.detail) if word)
    return sentence(f"{note.kind.replace('-', ' ')}: {', '.join(words)}.")
