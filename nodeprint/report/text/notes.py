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
    apart = []
    for of in runs.apart:
        verb, effect = "stands" if len(of.nodes) == 1 else "stand", names.percent(abs(of.effect))
        values = {"nodes": names.nodes(of.nodes), "change": change(of.effect, runs.measurement)}
        apart.append(say("single_runs", "apart", verb=verb, effect=effect, **values))
    if runs.groups:
        low, high = (names.counted(len(of.nodes), "node") for of in runs.groups)
        difference_of_groups = names.percent(runs.groups[1].effect - runs.groups[0].effect)
        values = {"high_nodes": names.nodes(runs.groups[1].nodes), "change": change(1.0, runs.measurement)}
        apart.append(say("single_runs", "groups", low=low, high=high, apart=difference_of_groups, **values))
    farthest = nodes.get(next(iter(runs.farthest.nodes), ""))
    group = say("of_group", group=farthest.group) if farthest is not None and farthest.group else ""
    values = {"measured": sentence(measured(runs.measurement)), "nodes": names.counted(runs.nodes, "node")}
    values["group"] = group
    values |= {"median": names.quantity(runs.median, runs.unit), "farthest": names.nodes(runs.farthest.nodes)}
    ends = (("low", runs.low), ("high", runs.high), ("effect", runs.farthest.effect))
    values |= {key: f"{100 * value:+z.2g}%" for key, value in ends}
    return " ".join([say("single_runs", "all", sd=f"{100 * runs.sd:.2g}%", **values), *apart])


def memory_warnings(fleet: FleetVerdict, node: str = "") -> list[str]:
    """Warn of memory that is below its possible configuration or achieves little of its peak, for all nodes or one.

    The warning is part of the outcome, as it also applies if all nodes are SAME.
    """
    return [memory_warning(achieved, fleet.measured) for achieved in fleet.memory if node in ("", *achieved.nodes)]


def memory_warning(achieved: MemoryAchieved, measured: int) -> str:
    """Return the warning for nodes; `measured` is the number of measured nodes."""
    of_them, count = achieved.memory, len(achieved.nodes)
    reasons = []
    if of_them.rated_mts > of_them.mts:
        whose = "its" if count == 1 else "their"
        reasons.append(say("memory", "slow", whose=whose, mts=f"{of_them.mts:,}", rated=f"{of_them.rated_mts:,}"))
    if of_them.all_channels > of_them.channels:
        reasons.append(say("memory", "empty", channels=of_them.channels, all=of_them.all_channels))
    if not reasons:
        reasons.append(say("memory", "unknown" if of_them.by_processor else "little"))
    # a word before the names: a sentence starts with a capital letter, which would change a name
    listed = names.nodes(achieved.nodes)
    nodes = f"node {listed} reaches" if count == 1 else f"nodes {listed} reach"
    if count == measured > 1:
        nodes = "all nodes reach"
    share = names.whole_percent(achieved.of_most)
    return sentence(say("memory", "warning", nodes=nodes, share=share, reasons=names.listed(reasons)))


def memory(achieved: MemoryAchieved) -> str:
    """Explain the reference of the percentages in `memory_warnings`."""
    of, share = achieved.memory, names.whole_percent(achieved.of_configured)
    rate = names.quantity(of.most_bytes_per_s, "B/s")
    return sentence(say("memory", "of", most=of.most_name, configured=of.name, share=share, rate=rate))


def peak(node: NodeVerdict) -> list[str]:
    """Explain the theoretical peaks behind the percentages in a node report, with their source."""
    memory, cycle = machine_peak.memory(node.fingerprint), machine_peak.flops_per_cycle(node.fingerprint)
    shown = {row.measurement.partition("-")[0] for row in node.cells if row.peak}
    words = []
    if memory is not None and "bandwidth" in shown:
        source = "by_processor" if memory.by_processor else "by_modules"
        less = say("peak", "less", memory=memory.name) if memory.could_be_more else ""
        whole = names.quantity(memory.most_bytes_per_s, "B/s")
        shares = {names.quantity(row.peak, "B/s") for row in node.cells if row.peak and "own node" in row.name}
        of_node = "".join(say("peak", "of_node", rate=share) for share in shares - {whole})
        values = {"rate": whole, "of_node": of_node, "source": say("peak", source), "less": less}
        words.append(say("peak", "bandwidth", memory=memory.most_name, **values))
    return words + ([say("peak", "load", flops=cycle)] if "load" in shown else [])


def over_time(verdict: Verdict) -> list[str]:
    """Describe trends over the order of measuring: the largest, in tolerances, in a sentence; the others are named."""
    largest, *others = verdict.fleet.over_time or (None,)
    if largest is None:
        return []
    times = {key: names.moment(getattr(largest, key)) for key in ("first", "last", "since")}
    values = {"place": _over(largest), "nodes": names.counted(largest.nodes, "node"), **difference(largest), **times}
    words = say("over_time", "step" if largest.since else "trend", **values)
    more = names.listed(f"{_over(effect)} {effect.effect * 100:+.1f}%" for effect in others)
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
    if effects and (least := names.percent(effects[0])) != values["effect"]:
        values["effect"] = f"{least.removesuffix('%')} to {values['effect']}"
        values["interval"] = say("shared_largest", interval=values["interval"])
    values |= {"place": place(shared), "fields": group_sentences.fields(shared.fields)}
    contested = say("contested", share=names.percent(shared.share)) if shared.may_be_right else ""
    return say("shared", nodes=group_sentences.counted(shared), contested=contested, **values)


def spread(spreads: Sequence[Spread]) -> str:
    """Describe how far nodes differ in a measurement, by the first and widest type of component."""
    widest = spreads[0]
    values = {key: names.percent(getattr(widest, key)) for key in ("chips", "runs")}
    values["tolerance"] = names.tolerance(widest.tolerance)
    several, nodes = len(spreads) > 1, names.counted(widest.nodes_beyond, "node")
    values["beyond"] = say("spread_beyond", nodes=nodes) if widest.nodes_beyond else ""
    values["of"] = sentence(measured(widest.measurement)) if several else _component_type(widest)
    words = say("spread", up_to="up to " if several else "", **values)
    if not math.isfinite(widest.smallest_tolerance):
        return words
    return f"{words} {say('spread_smallest', smallest=names.percent(widest.smallest_tolerance))}"


def _component_type(of: Spread | Limit) -> str:
    """Name a component type with its measurement."""
    return sentence(f"{named('terms', of.component_type)} ({measured(of.measurement)})")


def limits_of(limits: Sequence[Limit], *, remedied: bool = True) -> str:
    """State the detection limits of one measurement with their remedy: of one component, or as a range of several."""
    most = max(limits, key=lambda limit: limit.needed)
    words = remedy_words(most.remedy, most.measurement) if remedied and most.remedy else ""
    remedy = f"; {words}".format(needed=most.needed, runs="fewer") if words else ""
    effects, tolerances = [limit.effect for limit in limits], [limit.tolerance for limit in limits]
    effect = " to ".join(dict.fromkeys(map(names.percent, (min(effects), max(effects))))).replace("% to", " to")
    tolerance = " to ".join(dict.fromkeys(names.tolerance(end) for end in (min(tolerances), max(tolerances))))
    if len(limits) > 1:
        of, count = sentence(measured(most.measurement)), len(limits)
        return say("limits_far", measured=of, count=count, effects=effect, tolerances=tolerance, remedy=remedy)
    key = "limit_far" if most.effect > _FAR * most.tolerance else "limit"
    return say(key, component_type=_component_type(most), effect=effect, tolerance=tolerance, remedy=remedy)


def note(note: Note) -> str:
    """Return a note of the campaign."""
    if (shared := note.shared) is not None:  # a change of all nodes since a baseline
        others, name = names.counted(int(note.value), "measurement"), printable(note.name, 200)
        further = say("notes", "baseline-further", others=others) if int(note.value) else ""
        values = {"nodes": group_sentences.counted(shared), "place": place(shared), "further": further}
        return say("notes", note.kind, name=name, **values, **difference(shared))
    if note.kind in texts()["notes"]:
        detail = printable(note.detail, 300).rstrip(".")
        brackets = f" ({detail})" if detail else ""
        return say("notes", note.kind, name=printable(note.name, 200), detail=detail, detail_in_brackets=brackets)
    words = (printable(word, 300) for word in (note.name, note.detail) if word)
    return sentence(f"{note.kind.replace('-', ' ')}: {', '.join(words)}.")
