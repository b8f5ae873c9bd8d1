"""The outcome of a campaign: its first line, and the sentences under it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from msgspec import UnsetType

from nodeprint.data.job.fabric_times import FEWEST_NODES
from nodeprint.errors import printable
from nodeprint.judge.outcome import Certainty, FleetOutcome, Outcome
from nodeprint.judge.verdict import FabricVerdict, Finding, NodeVerdict, Verdict
from nodeprint.report import names
from nodeprint.report.pages.order import class_rank, natural, severity, worst_finding
from nodeprint.report.text.agreement_sentences import same_node_of, short_agreement
from nodeprint.report.text.disturbances import disturbed_first
from nodeprint.report.text.finding_sentences import component_in_words, finding_sentence
from nodeprint.report.text.group_sentences import most_apart
from nodeprint.report.text.notes import memory_warnings
from nodeprint.report.text.wording import is_channel, measured, named, noun_phrase, sentence
from nodeprint.settings.texts import say

#: Nodes of an outcome that the first line names; more are counted.
_MOST_NAMED = 48
#: Links of a single run that are named; more are counted.
_MOST_LINKS = 3


def origin(verdict: Verdict) -> str:
    """Return SIMULATED or IMPORTED; empty for measured data."""
    return say("origin", "simulated") if verdict.simulated else say("origin", "imported") if verdict.imported else ""


def identity(verdict: Verdict) -> str:
    """Return whose the judged values of other programs are, and what states it; empty for a campaign's own."""
    of_values = verdict.identity
    if isinstance(of_values, UnsetType):
        return ""
    few, most = of_values.fewest_runs, of_values.most_runs
    runs = names.counted(most, "run") if few == most else f"{few} to {names.counted(most, 'run')}"
    parts = [names.counted(count, printable(part, 30)) + " each" for part, count in of_values.parts.items()]
    axes = [
        say("identity_axis", axis=printable(axis, 30), stated=printable(words, 80))
        for axis, words in of_values.stated.items()
    ]
    pairs = "" if isinstance(of_values.pairs, UnsetType) else f", {names.counted(of_values.pairs, 'pair')}"
    design = ", ".join([f"{names.counted(of_values.nodes, 'node')}{pairs} x {runs}", *parts])
    return say("identity", design=design, axes=", ".join(axes))


def first_line(verdict: Verdict) -> str:
    """Return the class and outcome of a campaign with its headline: the first line in a terminal, JUnit and mail."""
    begin = f"{origin(verdict)}: {campaign_outcome(verdict)}".removeprefix(": ")
    return f"{begin}: {' '.join(headline(verdict))}"


def headline(verdict: Verdict) -> list[str]:
    """Return the sentences below the outcome: decisive disturbance, counts, the worst node, deciding metrics."""
    worst_findings = {
        name: finding for name, node in verdict.nodes.items() if (finding := worst_finding(node)) is not None
    }
    # those that can be attributed to their node, the worst node first
    order = sorted(worst_findings, key=lambda name: (severity(verdict.nodes[name]), natural(name)))
    attributed = {n: worst_findings[n] for n in order if worst_findings[n].state is not Certainty.MISMATCH}
    not_uniform = [*not_same(verdict, attributed), *map(_messages, verdict.fabric)]
    count = f"{'; '.join(filter(None, [headline_of(verdict), *not_uniform]))}."
    worst = []
    if len(attributed) > 1:
        name, finding = next(iter(attributed.items()))
        worst.append(say("worst_node", node=printable(name, 60), finding=finding_sentence(finding)))
    return [*disturbed_first(verdict), *memory_warnings(verdict.fleet), count, *worst, *based_on(verdict)]


def campaign_outcome(verdict: Verdict) -> str:
    """The class of a campaign with its reason: the outcome of the fleet, or the messages between nodes if worse."""
    is_of_fleet = verdict.outcome_class is verdict.fleet.outcome_class
    return f"{verdict.outcome_class} ({verdict.fleet.outcome if is_of_fleet else say('fabric_is_worse')})"


def _messages(fabric: FabricVerdict) -> str:
    if fabric.outcome is FleetOutcome.UNIFORM:
        return ""
    return say("first_line_fabric", "partition" if fabric.partition else "table", fabric=fabric)


def headline_of(verdict: Verdict) -> str:
    """Count the nodes that are SAME, with their agreements."""
    fleet = verdict.fleet
    deciding = (agreement for agreement in fleet.agreements if agreement.criterion)
    agreements = names.listed(short_agreement(of, same_node_of(of, verdict)) for of in deciding)
    unapplied = "; ".join(printable(note.name) for note in fleet.notes if note.kind == "limit-not-applied")
    ends = {
        "of_groups": say("of_groups", groups=fleet.groups) if fleet.groups else "",
        "within": say("within", agreements=agreements) if agreements else "",
        "unapplied": say("unapplied", limits=unapplied) if unapplied else "",
        "apart": most_apart(fleet.split_groups),
    }
    counts = {
        "same": fleet.counts.get(Outcome.SAME, 0),
        "split": sum(len(group.nodes) for group in fleet.split_groups),
    }
    match = "matches" if fleet.nodes == 1 else "match"
    return say("fleet", fleet.outcome, fleet=fleet, match=match, **counts, **ends)


def not_same(verdict: Verdict, with_findings: Mapping[str, Finding]) -> list[str]:
    """List the nodes that are not SAME, FAIL first: `FAIL (DEVIATES): cn017`; the only one with its worst finding."""
    alone = {str(node.outcome) for node in verdict.nodes.values()} == {str(verdict.fleet.outcome)}
    split = verdict.fleet.outcome is FleetOutcome.SPLIT
    contested = {name for shared in verdict.fleet.shared if shared.may_be_right for name in shared.nodes}
    out = []
    for outcome in sorted(Outcome, key=class_rank):
        of_it = [name for name, node in verdict.nodes.items() if node.outcome is outcome]
        if outcome is Outcome.SAME or not of_it or alone or (split and outcome is Outcome.SPLIT):
            continue
        listed = names.nodes(of_it)
        listed = listed if len(listed) <= _MOST_NAMED else f"{len(of_it)} nodes"
        if len(of_it) == 1 < len(verdict.nodes) and of_it == list(with_findings):
            finding, node = with_findings[of_it[0]], printable(of_it[0], 60)
            component = noun_phrase(finding) if is_channel(finding) else component_in_words(finding)
            listed = f"{node} ({component})"
            if finding.measurement and not finding.of_limit:
                effect, tolerance = names.with_tolerance(finding.effect, finding.tolerance, finding.measurement)
                listed = say("first_line_worst", node=node, component=component, effect=effect, tolerance=tolerance)
        right = say("or_right") if contested.intersection(of_it) and outcome.entry.found else ""
        out.append(f"{outcome.with_class}: {listed}{right}")
    return out


def based_on(verdict: Verdict) -> list[str]:
    """Name the metrics that SAME is based on, and those that were not measured."""
    fleet = verdict.fleet
    if not fleet.measured or not fleet.tests:  # nothing was compared
        return []
    resting = names.listed(named("metrics", metric) for metric in fleet.based_on)
    lacking = [named("metrics", metric) for metric in verdict.criteria if metric not in fleet.based_on]
    out = [say("rests", metrics=resting) if resting else say("based_on_nothing")]
    out += [say("lacking", metrics=names.listed(lacking))] if lacking else []
    if fleet.assumed_jobs:
        order = sorted(fleet.assumed_jobs, key=fleet.based_on.index)
        each = (f"{100 * fleet.assumed_jobs[metric]:.2g}% ({named('metrics', metric)})" for metric in order)
        out.append(say("assumed_jobs", assumed=names.listed(each)))
    missing = names.listed(dict.fromkeys(map(measured, fleet.missing)))
    return out + ([say("missing", measurements=missing)] if missing else [])


def fabric(fabric: FabricVerdict) -> str:
    """Describe the messages between the nodes of a partition in one line."""
    slow = [finding for finding in fabric.findings if finding.counts]
    result = say("fabric_found", slow=slow) if slow else say("fabric_clear")
    if fabric.inconclusive == "one-run" and slow:
        result = say("fabric_one_run", result=result)
    elif fabric.inconclusive:
        result = say("fabric_inconclusive", fabric.inconclusive, fewest=FEWEST_NODES)
    of_terms = (f"{names.percent(of.effect)} ({named('terms', of.component_type)})" for of in fabric.limits)
    limits = names.listed(of_terms)
    words = say("fabric_limits", limits=limits) if limits else ""
    words += _unconfirmed(fabric.unconfirmed)
    sizes = sorted({figure.message_bytes for figure in fabric.by_size} - {fabric.message_bytes})
    shown = names.listed(map(names.message_size, sizes))
    words += say("fabric_sizes", deciding=names.message_size(fabric.message_bytes), shown=shown) if sizes else ""
    words += say("fabric_alone", nodes=fabric.alone) if fabric.alone else ""
    words += say("fabric_marked", share=fabric.disturbed) if fabric.is_marked else ""
    line = say("fabric", "partition" if fabric.partition else "table", fabric=fabric, result=result, limits=words)
    name = sentence(measured(fabric.measurement)) if fabric.partition else printable(fabric.measurement, 60)
    return f"{name}: {line}".rstrip()


def _unconfirmed(links: Sequence[Finding]) -> str:
    shown = []
    for link in links[:_MOST_LINKS]:
        a, b = (printable(str(link.component.where[end]), 60) for end in ("node", "to"))
        shown.append(f"{a} to {b} ({names.signed(link.effect)})")
    more = f" and {len(links) - len(shown)} more" if len(links) > len(shown) else ""
    return say("fabric_unconfirmed", links=", ".join(shown), more=more) if links else ""


def fabric_findings(fabric: FabricVerdict) -> list[str]:
    """Describe the slow nodes and links, one sentence each."""
    return [finding_sentence(slow) for slow in fabric.findings if slow.counts]


def counts_of(nodes: Iterable[NodeVerdict]) -> dict[Outcome, int]:
    """Count the nodes of each outcome, by class."""
    counts = Counter(node.outcome for node in nodes)
    return {outcome: counts[outcome] for outcome in sorted(counts, key=class_rank)}
