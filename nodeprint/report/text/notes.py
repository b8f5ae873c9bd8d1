"""Notes on a whole fleet: groups, shared differences, spreads, limits, and memory."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from nodeprint.errors import printable
from nodeprint.judge.verdict import (
    Finding,
    FleetVerdict,
    Group,
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
from nodeprint.report.text.disturbances import MOST_SHOWN, busy_nodes, untaken
from nodeprint.report.text.wording import change, difference, measured, named, place, sentence, without_cpus
from nodeprint.settings.texts import say, texts

#: Detection limits above this multiple of the tolerance do not support a conclusion.
_FAR = 2.5


def fleet_notes(verdict: Verdict, *, in_table: bool = False) -> list[str]:
    """Return the fleet's notes: groups unless `in_table`, shared differences, excessive spreads and limits, others."""
    fleet = verdict.fleet
    of_groups = (
        [group_sentences.group(component) for component in fleet.groups]
        if len(fleet.groups) > 1 and not in_table
        else []
    )
    wide = [spread(component) for component in fleet.spreads if component.wide]
    deciding = [limit_of for limit_of in fleet.limits if limit_of.metric in verdict.criteria]
    busy = bool(busy_nodes(verdict))  # then more runs do not help
    far = _far_limits([of for of in deciding if of.effect > _FAR * of.tolerance], remedied=not busy)
    return [
        *of_groups,
        *(group_sentences.also_apart(verdict) if len(fleet.groups) > 1 else ()),
        *group_sentences.which_is_right(verdict),
        *(group_sentences.gap(group) for group in fleet.gaps if not _have_findings(verdict, group)),
        *map(single_runs, fleet.single_runs),
        *map(memory, fleet.memory),
        *(shared(of, verdict.nodes) for of in fleet.shared),
        *wide,
        *far,
        *map(note, fleet.notes),
        *untaken(verdict),
    ]


def _have_findings(verdict: Verdict, group: Group) -> bool:
    """Whether nodes of a group have findings, beside which a difference below each tolerance is no news."""
    return any(verdict.nodes[name].counted for name in group.nodes if name in verdict.nodes)


def single_runs(runs: SingleRuns) -> str:
    """Describe the variation between nodes with one run each, and name the outliers."""
    apart = [
        say(
            "single_runs",
            "apart",
            nodes=names.nodes(of.nodes),
            verb="stands" if len(of.nodes) == 1 else "stand",
            effect=names.percent(abs(of.effect)),
            change=change(of.effect, runs.measurement),
        )
        for of in runs.apart
    ]
    if runs.groups:
        low, high = runs.groups
        apart.append(
            say(
                "single_runs",
                "groups",
                low=names.counted(len(low.nodes), "node"),
                high=names.counted(len(high.nodes), "node"),
                high_nodes=names.nodes(high.nodes),
                apart=names.percent(high.effect - low.effect),
                change=change(1.0, runs.measurement),
            )
        )
    words = say(
        "single_runs",
        "all",
        measurement=runs.measurement,
        nodes=names.counted(runs.nodes, "node"),
        median=names.quantity(runs.median, runs.unit),
        low=f"{100 * runs.low:+z.2g}%",
        high=f"{100 * runs.high:+z.2g}%",
        sd=f"{100 * runs.sd:.2g}%",
        farthest=names.nodes(runs.farthest.nodes),
        effect=f"{100 * runs.farthest.effect:+z.2g}%",
    )
    return " ".join([words, *apart])


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
    nodes = (
        f"node {names.nodes(achieved.nodes)} reaches" if count == 1 else f"nodes {names.nodes(achieved.nodes)} reach"
    )
    if count == measured > 1:
        nodes = "all nodes reach"
    return sentence(
        say(
            "memory", "warning", nodes=nodes, share=names.whole_percent(achieved.of_most), reasons=names.listed(reasons)
        )
    )


def memory(achieved: MemoryAchieved) -> str:
    """Explain the reference of the percentages in `memory_warnings`."""
    return sentence(
        say(
            "memory",
            "of",
            most=achieved.memory.most_name,
            configured=achieved.memory.name,
            share=names.whole_percent(achieved.of_configured),
            rate=names.quantity(achieved.memory.most_bytes_per_s, "B/s"),
        )
    )


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
    """Describe trends over the order of measuring, before all advice.

    The largest trend, in tolerances, gets a sentence; the others are named.
    """
    largest, *others = verdict.fleet.over_time or (None,)
    if largest is None:
        return []
    words = say(
        "over_time",
        "step" if largest.since else "trend",
        place=_over(largest),
        nodes=names.counted(largest.nodes, "node"),
        **difference(largest),
        first=names.moment(largest.first),
        last=names.moment(largest.last),
        since=names.moment(largest.since),
    )
    more = names.listed(f"{_over(effect)} {effect.effect * 100:+.1f}%" for effect in others)
    return [words, say("over_time", "others", effects=more)] if others else [words]


def _over(effect: TimeEffect) -> str:
    """Name the component type and the measurement of a trend."""
    home = names.home(effect.home)
    details = filter(None, (named("component_types", effect.component_type), home))
    return f"{measured(effect.measurement)} ({', '.join(details)})"


def _since_baseline(note: Note, shared: Shared) -> str:
    """Describe a change of all nodes since a baseline, with the number of other measurements that also changed."""
    others = int(note.value)
    further = say("notes", "baseline-further", others=names.counted(others, "measurement")) if others else ""
    nodes, name = group_sentences.counted(shared), printable(note.name, 200)
    return say("notes", note.kind, name=name, nodes=nodes, place=place(shared), further=further, **difference(shared))


def shared(shared: Shared, nodes: Mapping[str, NodeVerdict]) -> str:
    """Describe a difference that several nodes share, with the smallest and the largest effect."""
    effects = sorted(abs(finding.effect) for name in shared.nodes for finding in _sharing(nodes[name], shared))
    values = difference(shared)
    if effects and (least := names.percent(effects[0])) != values["effect"]:
        values["effect"] = f"{least.removesuffix('%')} to {values['effect']}"
        values["interval"] = say("shared_largest", interval=values["interval"])
    return say(
        "shared",
        nodes=group_sentences.counted(shared),
        place=place(shared),
        fields=group_sentences.fields(shared.fields),
        contested=say("contested", share=names.percent(shared.share)) if shared.may_be_right else "",
        **values,
    )


def _sharing(node: NodeVerdict, shared: Shared) -> Iterator[Finding]:
    """Return the node's findings that belong to the shared difference, whatever the numbers of its CPUs."""
    where = without_cpus(shared.component.where)
    for finding in node.findings:
        alike = finding.measurement == shared.measurement and finding.component.term == shared.component.term
        same_side = (finding.effect > 0) == (shared.effect > 0)
        if alike and same_side and without_cpus(finding.component.where) == where:
            yield finding


def spread(spread: Spread) -> str:
    """Describe the spread of a fleet that is not uniform, and the tolerance at which most nodes would be SAME."""
    words = say(
        "spread",
        component_type=sentence(f"{named('terms', spread.component_type)} ({measured(spread.measurement)})"),
        chips=names.percent(spread.chips),
        runs=names.percent(spread.runs),
        tolerance=names.tolerance(spread.tolerance),
        nodes=names.counted(spread.nodes_beyond, "node"),
    )
    if not math.isfinite(spread.smallest_tolerance):
        return words
    return f"{words} {say('spread_smallest', smallest=names.percent(spread.smallest_tolerance))}"


def _far_limits(limits: Sequence[Limit], *, remedied: bool) -> list[str]:
    """Describe excessive detection limits; those of a measurement with one remedy share a sentence."""
    alike: dict[tuple[str, str], list[Limit]] = {}
    for far in limits:
        alike.setdefault((far.measurement, far.remedy), []).append(far)
    return [
        _limits(of_it, remedied) if len(of_it) > 1 else limit(of_it[0], remedied=remedied) for of_it in alike.values()
    ]


def _limits(limits: Sequence[Limit], remedied: bool) -> str:
    """Describe the excessive detection limits of one measurement, and their remedy."""
    most = max(limits, key=lambda far: far.needed)
    effects, tolerances = [min(far.effect, MOST_SHOWN) for far in limits], [far.tolerance for far in limits]
    return say(
        "limits_far",
        measured=sentence(measured(most.measurement)),
        count=len(limits),
        effects=" to ".join(dict.fromkeys(map(names.percent, (min(effects), max(effects))))).replace("% to", " to"),
        tolerances=" to ".join(dict.fromkeys(names.tolerance(end) for end in (min(tolerances), max(tolerances)))),
        remedy=_remedy(most) if remedied else "",
    )


def _remedy(limit: Limit) -> str:
    """Return the remedy for a detection limit as the end of a sentence."""
    words = remedy_words(limit.remedy, limit.measurement) if limit.remedy else ""
    return f"; {words}".format(needed=limit.needed, runs="fewer") if words else ""


def limit(limit: Limit, *, remedied: bool = True) -> str:
    """State the detection limit of a component, and its remedy."""
    far = limit.effect > _FAR * limit.tolerance
    component_type = sentence(f"{named('terms', limit.component_type)} ({measured(limit.measurement)})")
    return say(
        "limit_far" if far else "limit",
        component_type=component_type,
        effect=names.percent(min(limit.effect, MOST_SHOWN)),
        tolerance=names.tolerance(limit.tolerance),
        times=names.times(limit.effect, limit.tolerance),
        remedy=_remedy(limit) if remedied else "",
    )


def note(note: Note) -> str:
    """Return a note of the campaign."""
    if note.shared is not None:
        return _since_baseline(note, note.shared)
    if note.kind in texts()["notes"]:
        detail = printable(note.detail, 300).rstrip(".")
        brackets = f" ({detail})" if detail else ""
        return say("notes", note.kind, name=printable(note.name, 200), detail=detail, detail_in_brackets=brackets)
    words = (printable(word, 300) for word in (note.name, note.detail) if word)
    return sentence(f"{note.kind.replace('-', ' ')}: {', '.join(words)}.")
