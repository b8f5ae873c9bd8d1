"""A verdict in sentences: the last thing that is made of it, and nothing in the program reads them.

The sentences are in reports/texts.yaml; here is which one holds, and with which figures. A finding or a node that is
part of a list is a value of `nodeprint.judge.verdict`, so that nodes are alike by what is known of them.
"""

from __future__ import annotations

import itertools
import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from nodeprint.campaign.recheck import MOST_JOBS
from nodeprint.data.quantity import is_metric, models
from nodeprint.errors import printable
from nodeprint.judge.outcome import MEANING, FleetOutcome, Outcome, State, Why
from nodeprint.judge.verdict import (
    LOST,
    Disturbance,
    Evidence,
    FabricVerdict,
    Finding,
    FleetVerdict,
    Group,
    JobEffect,
    Limit,
    Margin,
    MemoryReached,
    NodeVerdict,
    Note,
    Shared,
    SingleRuns,
    Spread,
    TimeEffect,
    Verdict,
)
from nodeprint.machine import fingerprint
from nodeprint.machine import possible as machine_possible
from nodeprint.report import names
from nodeprint.settings.measurements import known, terms
from nodeprint.settings.texts import say, texts

#: More nodes than these that are alike share a line.
MOST_SINGLE = 3
#: The column of names in a table for a terminal.
_WIDEST_NAME = 24
#: Longer values of a field are not shown in a sentence.
_LONGEST_VALUE = 60
#: Finer parts that are named; of more, how many there are.
_MOST_PLACES = 4
#: Nodes of an outcome that the first line names; more are counted.
_MOST_NAMED = 48
#: Detection limits beyond so many bounds are no basis for a conclusion.
_FAR = 2.5
#: A detection limit is shown as this at most: of few disturbed runs Student's quantile makes it any number.
_NOTHING = 10.0


def named(table: str, key: str) -> str:
    """A name of the table `terms`, `subjects`, `causes` or `kinds`, or of a kernel's term; the key in words where it
    has no other."""
    term = terms().get(key)
    words = texts()[table].get(key)
    if term is not None and table in ("subjects", "terms"):
        words = term.name if table == "subjects" else term.what
    if table == "subjects" and is_metric(key):
        return str(words or key)
    return str(words or key.replace("-", " ").replace("_", " "))


def named_subject(key: str) -> str:
    """A subject in words; a measurement as it is."""
    return key if key in models() else named("subjects", key)


def sentence(text: str) -> str:
    """`text` with a capital; the name of a measurement stays as it is, and so does one with a digit, as a metric."""
    first = text.split(" ", 1)[0].strip("(),:")
    return text if first in models() or re.search(r"[0-9_]", first) else text[:1].upper() + text[1:]


def _begin(text: str, measurement: str) -> str:
    """`text` with a capital, unless it begins with the name of a metric."""
    return text if is_metric(measurement) and text.startswith(measurement) else sentence(text)


def measured(measurement: str) -> str:
    """What a measurement is of, in a reader's words: `memory bandwidth`."""
    of = known(measurement)
    return measurement if of is None else of.what


def subject(of: Finding | Margin) -> str:
    """A part with what was measured of it: `core 37 (CPU 37)` where that is the latency of its pairs, `memory bandwidth
    of NUMA node 1` else; a metric of a table, of a part."""
    if isinstance(of, Finding) and is_metric(of.measurement):
        return f"{of.measurement} of {names.part(of.part)}" if of.part.where else of.measurement
    name = names.scoped(of.part) if isinstance(of, Margin) else names.part(of.part)
    if of.part.term.startswith("fabric-"):
        return name
    if of.measurement.startswith("coherence") and names.is_of_pairs(of.part):
        measurement = known(of.measurement)
        return f"{name} ({measurement.instruction})" if measurement and measurement.instruction else name
    if not of.measurement:
        return name
    name = name.removeprefix("memory of ") if measured(of.measurement).startswith("memory") else name
    return f"{measured(of.measurement)} of {name}"


def part_in_words(finding: Finding) -> str:
    """What differs, for a heading or a table: `core-to-core latency of core 37 (CPU 37)`."""
    if not finding.measurement and not finding.part.term.startswith("fabric-"):
        return _event(finding)
    if finding.part.term.startswith("fabric-"):
        to = finding.part.where.get("to")
        return say("messages_of", "link" if to else "node", to=printable(str(to), 80))
    if _is_channel(finding):
        return sentence(say("channel", place=_memory_node(finding)))
    if names.is_of_pairs(finding.part) and finding.measurement.startswith("coherence"):
        return f"{say('pairs_of')} of {subject(finding)}"
    return subject(finding)


def _is_channel(finding: Finding) -> bool:
    """Whether it looks like a memory channel of a node, from its own CPUs."""
    where = finding.part.where
    own = where.get("cpu_node", where.get("memory_node")) == where.get("memory_node", -1)
    slow = finding.effect < 0 and finding.unit == "B/s" and finding.state is not State.INTERMITTENT
    return slow and own and "memory-channel" in finding.consistent_with


def _memory_node(finding: Finding) -> str:
    return f"NUMA node {finding.part.where['memory_node']}"


# --- the fleet ---


def origin(verdict: Verdict) -> str:
    """SIMULATED or IMPORTED; empty for what was measured here."""
    return say("origin", "simulated") if verdict.simulated else say("origin", "imported") if verdict.imported else ""


def first_line(verdict: Verdict) -> str:
    """The outcome of a campaign: how many nodes are the same within which margins, who is not, what SAME rests on and
    what is missing."""
    fleet, mark = verdict.fleet, origin(verdict)
    begin = f"{mark}: {fleet.outcome}" if mark else str(fleet.outcome)
    not_uniform = [*not_same(verdict), *map(_messages, verdict.fabric)]
    count = f"{'; '.join(filter(None, [headline_of(fleet), *not_uniform]))}."
    first = [*disturbed_first(verdict), *memory_warnings(fleet), count]
    return " ".join([f"{begin}: {' '.join(first)}", *rests_on(verdict)])


def _messages(fabric: FabricVerdict) -> str:
    """The messages of a partition in the first line, where they are not uniform: `SUSPECTS: messages of compute`."""
    if fabric.outcome is FleetOutcome.UNIFORM:
        return ""
    return say("first_line_fabric", outcome=fabric.outcome, partition=printable(fabric.partition, 60))


def disturbed_first(verdict: Verdict) -> list[str]:
    """What is said before all else where disturbance decides: nothing, or a sentence with its figures."""
    moved = {name: found for name, node in verdict.nodes.items() if (found := moved_most(node.disturbances))}
    if moved:
        name, worst = max(moved.items(), key=lambda item: item[1].value)
        return [moved_cpus(worst, tuple(moved), name)]
    return busy_nodes(verdict)


#: The reasons that other load decides, where it was measured.
_BY_LOAD = (Why.DISTURBED, Why.UNRESOLVED, Why.ALONE)


def busy_nodes(verdict: Verdict) -> list[str]:
    """That nodes were busy, where that decides their outcome: how much of their CPU time was taken, and from which
    difference on anything is found."""
    busy = {
        name: taken
        for name, node in verdict.nodes.items()
        if node.reasons and node.reasons[0].why in _BY_LOAD and (taken := taken_most(node.disturbances))
    }
    if not busy:
        return []
    deciding = [limit.effect for limit in verdict.fleet.limits if limit.subject in verdict.decides]
    effect = min(max(filter(math.isfinite, deciding), default=0.0), _NOTHING)
    unresolved = say("busy_unresolved", effect=names.percent(effect)) if effect else ""
    measured = [name for name, node in verdict.nodes.items() if MEANING[node.outcome].measured]
    # a word before the names, as a sentence begins with a capital letter and a name may not
    which = "the nodes were" if len(busy) == len(measured) > 1 else f"nodes {names.nodes(busy)} were"
    if len(busy) == 1:
        which = f"node {names.nodes(busy)} was"
    return [_busy(which, max(busy.values(), key=lambda found: found.share), unresolved)]


def busy_machine(taken: Disturbance) -> str:
    """That this machine was busy."""
    return _busy("This machine was", taken, "")


def _busy(nodes: str, taken: Disturbance, unresolved: str) -> str:
    key = "busy_pairs" if taken.kind == "disturbed" else "busy"
    return sentence(say(key, nodes=nodes, share=names.percent(taken.share), unresolved=unresolved))


def taken_most(disturbances: Sequence[Disturbance]) -> Disturbance | None:
    """Of what took CPU time, or else of disturbed values, the most; None where it is less than figures show."""
    for kinds in (("busy", "stolen", "loud-cpus"), ("disturbed",)):
        taken = [found for found in disturbances if found.kind in kinds and found.share >= LOST]
        if taken:
            return max(taken, key=lambda found: found.share)
    return None


def moved_most(disturbances: Sequence[Disturbance]) -> Disturbance | None:
    """Of the virtual CPUs that a host moved the largest difference; None where it moved none."""
    moved = [found for found in disturbances if found.kind == "cpus-moved"]
    return max(moved, key=lambda found: found.value, default=None)


def moved_cpus(found: Disturbance, nodes: Sequence[str] = (), node: str = "") -> str:
    """That hosts move the virtual CPUs of some `nodes`, with the figures of one of them; without names of this
    machine."""
    on = f" on {printable(node, 60)}" if len(nodes) > 1 and found.low_in not in nodes else ""
    return say(
        "moved",
        of_nodes=f" of {names.nodes(nodes)}" if nodes else "",
        low=names.quantity(found.low, found.unit),
        high=names.quantity(found.high, found.unit),
        low_in=repetition(found.low_in) + on,
        high_in=repetition(found.high_in),
    )


def repetition(name: str) -> str:
    """`run 2`, `pass 1 of run 2`, `run 2 of job 2` of job1/run2, job1/run2/pass1 and job2/run2; a node's name as it
    is."""
    parts = re.fullmatch(r"job(\d+)(?:/run(\d+))?(?:/pass(\d+))?", name)
    if parts is None:
        return printable(name, 60)
    job, run, number = parts.groups()
    words = ([f"pass {number}"] if number else []) + ([f"run {run}"] if run else [])
    return " of ".join(words + ([f"job {job}"] if job != "1" or not words else []))


def differ(found: Disturbance) -> str:
    """That repetitions of a measurement differ, which of them and by which factor."""
    model = models().get(found.measurement)
    values = {
        "factor": f"{found.value:.1f}" if found.value < 10 else f"{found.value:.0f}",
        "measurement": measured(found.measurement),
        "same": texts()["differ"]["same"] if model is not None and model.places == "pairs" else "",
        "low": names.quantity(found.low, found.unit),
        "high": names.quantity(found.high, found.unit),
        "low_in": repetition(found.low_in),
        "high_in": repetition(found.high_in),
    }
    if not found.odd:
        repetitions = texts()["differ"]["repetitions"][found.kind].format(run=repetition(found.run))
        return say("differ", "all", repetitions=repetitions, **values)
    verb = "differs" if len(found.odd) == 1 else "differ"
    return say("differ", "odd", odd=f"{names.listed(map(repetition, found.odd))} {verb}", **values)


def plain_outcome(verdict: Verdict) -> str:
    """The outcome in one sentence that says nothing else: how many nodes are the same, and which are not."""
    fleet = verdict.fleet
    same, nodes = fleet.counts.get(Outcome.SAME, 0), names.counted(fleet.nodes, "node")
    kept = (Outcome.SAME, Outcome.SPLIT) if fleet.outcome is FleetOutcome.SPLIT else (Outcome.SAME,)
    others = [name for name, node in verdict.nodes.items() if node.outcome not in kept]
    found = [name for name in others if MEANING[verdict.nodes[name].outcome].found]
    rest = [name for name in others if name not in set(found)]
    clauses = [
        say("plain_clause", kind, nodes=_few(on), are="is" if len(on) == 1 else "are")
        for kind, on in (("found", found), ("open", rest))
        if on
    ]
    plain = texts()["plain"]
    key = str(fleet.outcome) if str(fleet.outcome) in plain else "some" if others else "all"
    return say(
        "plain",
        key,
        same=same,
        nodes=nodes,
        are="is" if fleet.nodes == 1 else "are",
        measured=fleet.measured,
        others=f"; {' and '.join(clauses)}" if clauses else "",
        groups=names.counted(len(fleet.groups), "group"),
    )


def _few(on: Sequence[str]) -> str:
    """Nodes by name where that is short, else their number."""
    listed = names.nodes(on)
    return listed if len(listed) <= _MOST_NAMED else names.counted(len(on), "node")


def same_means(fleet: FleetVerdict) -> str:
    """Within which margins nodes that are the same are so; empty where none is."""
    margins = [short_margin(margin) for margin in fleet.margins if margin.decides]
    return say("same_means", margins=names.listed(margins)) if margins and fleet.counts.get(Outcome.SAME) else ""


def headline_of(fleet: FleetVerdict) -> str:
    """How many nodes are the same within which margins."""
    margins = names.listed(short_margin(margin) for margin in fleet.margins if margin.decides)
    groups = names.counted(len(fleet.groups), "group")
    unapplied = [printable(note.name) for note in fleet.notes if note.kind == "limit-not-applied"]
    return say(
        "fleet",
        fleet.outcome,
        same=fleet.counts.get(Outcome.SAME, 0),
        measured=fleet.measured,
        nodes=names.counted(fleet.nodes, "node"),
        are="is" if fleet.nodes == 1 else "are",
        groups=groups,
        of_groups=say("of_groups", groups=groups) if fleet.groups else "",
        within=say("within", margins=margins) if margins else "",
        unapplied=say("unapplied", limits="; ".join(unapplied)) if unapplied else "",
    )


def not_same(verdict: Verdict) -> list[str]:
    """The nodes that are not the same, by outcome, the most urgent first: `DEVIATES: cn017`."""
    alone = len(verdict.nodes) == 1 and str(verdict.fleet.outcome) in {node.outcome for node in verdict.nodes.values()}
    split = verdict.fleet.outcome is FleetOutcome.SPLIT
    out = []
    for outcome in sorted(MEANING, key=lambda outcome: MEANING[outcome].rank):
        of_it = [name for name, node in verdict.nodes.items() if node.outcome is outcome]
        if outcome is Outcome.SAME or not of_it or alone or (split and outcome is Outcome.SPLIT):
            continue
        listed = names.nodes(of_it)
        out.append(f"{outcome}: {listed}" if len(listed) <= _MOST_NAMED else f"{outcome}: {len(of_it)} nodes")
    return out


def rests_on(verdict: Verdict) -> list[str]:
    """What SAME rests on, and what was not measured for it."""
    fleet = verdict.fleet
    if not fleet.measured or not fleet.tests:  # nothing was compared
        return []
    resting = names.listed(named("subjects", subject) for subject in fleet.rests_on)
    lacking = [named("subjects", subject) for subject in verdict.decides if subject not in fleet.rests_on]
    out = [say("rests", subjects=resting) if resting else say("rests_on_nothing")]
    out += [say("lacking", subjects=names.listed(lacking))] if lacking else []
    out += (
        [
            say(
                "one_job",
                assumed=names.listed(
                    f"{100 * sd:.2g} % ({named('subjects', subject)})" for subject, sd in fleet.assumed_jobs.items()
                ),
            )
        ]
        if fleet.assumed_jobs
        else []
    )
    return out + ([say("missing", measurements=names.listed(fleet.missing))] if fleet.missing else [])


def fleet_notes(verdict: Verdict) -> list[str]:
    """What is to be said of the whole fleet: groups, shared differences, spreads that are too wide, limits that are too
    far, and notes."""
    fleet = verdict.fleet
    groups = [group(found) for found in fleet.groups] if len(fleet.groups) > 1 else []
    wide = [spread(found) for found in fleet.spreads if found.wide]
    deciding = [limit_of for limit_of in fleet.limits if limit_of.subject in verdict.decides]
    busy = bool(busy_nodes(verdict))  # then no number of runs is the remedy
    far = [limit(limit_of, remedied=not busy) for limit_of in deciding if limit_of.effect > _FAR * limit_of.bound]
    return [
        *groups,
        *map(gap, fleet.gaps),
        *map(single_runs, fleet.single_runs),
        *map(memory, fleet.memory),
        *map(shared, fleet.shared),
        *wide,
        *far,
        *map(note, fleet.notes),
        *untaken(verdict),
    ]


def group(group: Group) -> str:
    """A group of nodes: its size, in a split fleet sign and size of its difference from another, and the fields that go
    with it."""
    apart = ""
    if group.part is not None and group.measurement:
        apart = say(
            "group_apart",
            effect=names.percent(abs(group.effect)),
            change=change(group.effect, group.measurement),
            than=group.than,
            place=f"in {names.scoped(group.part)} ({measured(group.measurement)})",
            interval=names.interval(group.interval.low, group.interval.high, group.effect),
            bound=names.bound(group.bound),
            added=_added(group.effect_unit, group.unit),
        )
    size = f"{names.counted(len(group.nodes), 'node')} ({names.nodes(group.nodes)})"
    return say("group", name=group.name, nodes=size, apart=apart, fields=_fields(group.fields) + _later(group))


def gap(group: Group) -> str:
    """Nodes that are apart from the others within every bound."""
    assert group.part is not None
    return say(
        "gap",
        nodes=f"{names.counted(len(group.nodes), 'node')} ({names.nodes(group.nodes)})",
        effect=names.percent(abs(group.effect)),
        change=change(group.effect, group.measurement),
        place=f"in {names.scoped(group.part)} ({measured(group.measurement)})",
        bound=names.bound(group.bound),
        interval=names.interval(group.interval.low, group.interval.high, group.effect),
        fields=_fields(group.fields) + _later(group),
    )


def single_runs(runs: SingleRuns) -> str:
    """How far nodes with one run are from each other, and who is apart."""
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
        low=f"{100 * runs.low:+z.2g} %",
        high=f"{100 * runs.high:+z.2g} %",
        sd=f"{100 * runs.sd:.2g} %",
        farthest=names.nodes(runs.farthest.nodes),
        effect=f"{100 * runs.farthest.effect:+z.2g} %",
    )
    return " ".join([words, *apart])


def memory_warnings(fleet: FleetVerdict, node: str = "") -> list[str]:
    """A sentence for nodes whose memory could be more than it is, or that reach little of what it is, of one `node` if
    it is named: said with the outcome, as it is true of nodes that are all the same."""
    return [_memory_warning(reached, fleet.measured) for reached in fleet.memory if node in ("", *reached.nodes)]


def _memory_warning(reached: MemoryReached, measured: int) -> str:
    of_them, count = reached.memory, len(reached.nodes)
    reasons = []
    if of_them.rated_mts > of_them.mts:
        whose = "its" if count == 1 else "their"
        reasons.append(say("memory", "slow", whose=whose, mts=f"{of_them.mts:,}", rated=f"{of_them.rated_mts:,}"))
    if of_them.all_channels > of_them.channels:
        reasons.append(say("memory", "empty", channels=of_them.channels, all=of_them.all_channels))
    if not reasons:
        reasons.append(say("memory", "unknown" if of_them.by_processor else "little"))
    # a word before the names, as a sentence begins with a capital letter and a name may not
    nodes = f"node {names.nodes(reached.nodes)} reaches" if count == 1 else f"nodes {names.nodes(reached.nodes)} reach"
    if count == measured > 1:
        nodes = "all nodes reach"
    return sentence(
        say("memory", "warning", nodes=nodes, share=names.whole_percent(reached.of_most), reasons=names.listed(reasons))
    )


def memory(reached: MemoryReached) -> str:
    """What the shares of `memory_warnings` are of."""
    return sentence(
        say(
            "memory",
            "of",
            most=reached.memory.most_name,
            configured=reached.memory.name,
            share=names.whole_percent(reached.of_configured),
            rate=names.quantity(reached.memory.most_bytes_per_s, "B/s"),
        )
    )


def possible(node: NodeVerdict) -> list[str]:
    """What the shares of what is possible on a node's page are of, and where that comes from."""
    memory, cycle = machine_possible.memory(node.fingerprint), machine_possible.flops_per_cycle(node.fingerprint)
    shown = {row.measurement.partition("-")[0] for row in node.cells if row.possible}
    words = []
    if memory is not None and "bandwidth" in shown:
        source = "by_processor" if memory.by_processor else "by_modules"
        less = say("possible", "less", memory=memory.name) if memory.could_be_more else ""
        words.append(
            say(
                "possible",
                "bandwidth",
                memory=memory.most_name,
                rate=names.quantity(memory.most_bytes_per_s, "B/s"),
                source=say("possible", source),
                less=less,
            )
        )
    return words + ([say("possible", "load", flops=cycle)] if "load" in shown else [])


def _later(group: Group) -> str:
    """How long after the others, or before them, all nodes of a group were measured."""
    if not group.later_h:
        return ""
    return say("group_later", hours=f"{abs(group.later_h):.1f} h", side="after" if group.later_h > 0 else "before")


def over_time(verdict: Verdict) -> list[str]:
    """What goes with the order of measuring: the largest in bounds as a sentence, and the others named. It is said
    before all advice."""
    largest, *others = verdict.fleet.over_time or (None,)
    if largest is None:
        return []
    words = say(
        "over_time",
        "step" if largest.since else "trend",
        place=_over(largest),
        nodes=names.counted(largest.nodes, "node"),
        effect=names.percent(abs(largest.effect)),
        **changed(largest.effect, largest.measurement),
        interval=names.interval(largest.interval.low, largest.interval.high, largest.effect),
        bound=names.bound(largest.bound),
        first=names.moment(largest.first),
        last=names.moment(largest.last),
        since=names.moment(largest.since),
    )
    more = names.listed(f"{_over(effect)} {effect.effect * 100:+.1f} %" for effect in others)
    return [words, say("over_time", "others", effects=more)] if others else [words]


def _over(effect: TimeEffect) -> str:
    """The family of parts and the measurement that a change over time is of."""
    home = names.home(effect.home)
    return f"{measured(effect.measurement)} ({', '.join(filter(None, (named('families', effect.family), home)))})"


def shared(shared: Shared) -> str:
    """A difference that several nodes have."""
    return say(
        "shared",
        nodes=f"{names.counted(len(shared.nodes), 'node')} ({names.nodes(shared.nodes)})",
        place=f"{names.scoped(shared.part)} ({measured(shared.measurement)})",
        effect=names.percent(abs(shared.effect)),
        change=change(shared.effect, shared.measurement),
        interval=names.interval(shared.interval.low, shared.interval.high, shared.effect),
        fields=_fields(shared.fields),
    )


def spread(spread: Spread) -> str:
    """How far the nodes of a fleet that is not uniform differ, and the bound at which most would be the same."""
    return say(
        "spread",
        family=sentence(f"{named('terms', spread.family)} ({measured(spread.measurement)})"),
        chips=names.percent(spread.chips),
        runs=names.percent(spread.runs),
        bound=names.bound(spread.bound),
        nodes=names.counted(spread.nodes_beyond, "node"),
        smallest=names.percent(spread.smallest_bound),
    )


def limit(limit: Limit, *, remedied: bool = True) -> str:
    """From which difference on a part is found, and what makes that less."""
    far = limit.effect > _FAR * limit.bound
    remedy = (
        "; " + _margin_remedy(limit.remedy, limit.measurement).format(needed=limit.needed, runs="fewer")
        if limit.remedy and remedied
        else ""
    )
    family = sentence(f"{named('terms', limit.family)} ({measured(limit.measurement)})")
    return say(
        "limit_far" if far else "limit",
        family=family,
        effect=names.percent(min(limit.effect, _NOTHING)),
        bound=names.bound(limit.bound),
        times=names.times(limit.effect, limit.bound),
        remedy=remedy,
    )


def note(note: Note) -> str:
    """A note of the campaign."""
    if note.kind in texts()["notes"]:
        detail = printable(note.detail, 300).rstrip(".")
        brackets = f" ({detail})" if detail else ""
        return say("notes", note.kind, name=printable(note.name, 200), detail=detail, detail_in_brackets=brackets)
    words = (printable(word, 300) for word in (note.name, note.detail) if word)
    return sentence(f"{note.kind.replace('-', ' ')}: {', '.join(words)}.")


def _fields(fields: Mapping[str, str]) -> str:
    pairs = (f"{fingerprint.label(key)} {printable(value, 120)}" for key, value in fields.items())
    return say("group_fields", fields=names.listed(pairs)) if fields else ""


# --- nodes ---


class NodeLine(msgspec.Struct, frozen=True):
    """What is said of one node, or at once of several that are alike."""

    nodes: tuple[str, ...]
    outcome: Outcome
    text: str

    @property
    def names(self) -> str:
        """The nodes as a list."""
        return names.nodes(self.nodes)


def node_lines(nodes: Mapping[str, NodeVerdict]) -> list[NodeLine]:
    """A line a node by urgency and name; more than MOST_SINGLE nodes of which the same is said share one."""
    alike: dict[tuple[Any, ...], list[str]] = {}
    for name, node in nodes.items():
        alike.setdefault(_kind(node), []).append(name)
    lines = []
    for of_kind in alike.values():
        sets = [of_kind] if len(of_kind) > MOST_SINGLE else [[name] for name in of_kind]
        lines += [
            NodeLine(tuple(members), nodes[members[0]].outcome, node_sentence([nodes[n] for n in members]))
            for members in sets
        ]
    return sorted(lines, key=lambda line: (MEANING[line.outcome].rank, line.nodes))


def _kind(node: NodeVerdict) -> tuple[Any, ...]:
    """Equal for nodes of which the same can be said: the kinds of their reasons, what another program says of the first
    (Slurm's reason, the file that cannot be read), and what was found."""
    findings = tuple(
        (finding.id, finding.measurement, finding.part.term, _key(finding.part.where)) for finding in node.counted
    )
    known = tuple((finding.id, _key(finding.part.where), finding.suppressed) for finding in node.accepted)
    details = tuple(reason.detail for reason in node.reasons[:1])
    return (
        node.outcome,
        node.group,
        tuple((reason.why, reason.of, *reason.values.items()) for reason in node.reasons),
        details,
        findings,
        known,
    )


def _rows(lines: Sequence[NodeLine]) -> list[str]:
    """Lines of nodes for a terminal: of an outcome with many of them a table, in which a node's own is found."""
    out: list[str] = []
    for outcome, of_outcome in itertools.groupby(lines, key=lambda line: line.outcome):
        rows = list(of_outcome)
        if len(rows) <= MOST_SINGLE:
            out += [f"  {line.names}: {outcome}. {line.text}" for line in rows]
            continue
        width = min(max(len(line.names) for line in rows), _WIDEST_NAME)
        out += [f"  {outcome}:", *(f"    {line.names:<{width}}  {line.text}" for line in rows)]
    return out


def _key(where: Mapping[str, int | str]) -> tuple[tuple[str, int | str], ...]:
    """A place that is the same on every node: without the numbers that the operating system gives CPUs."""
    return tuple((key, value) for key, value in where.items() if key != "cpu")


def node_sentence(alike: Sequence[NodeVerdict]) -> str:
    """Why a node, or several that are alike, have their outcome, with the worst figures of these."""
    first = alike[0]
    if not first.reasons:
        return ""
    why, of = first.reasons[0].why, first.reasons[0].of
    reasons = [reason for member in alike for reason in member.reasons[:1]]
    detail = next((printable(reason.detail, 300) for reason in reasons if reason.detail), "")
    findings = [finding for member in alike for finding in (member.counted or member.findings)[:1]]
    more, nexts = len(first.counted) - 1, texts()["next_job"]
    values = {
        "finding": worst_finding(findings) if findings else detail or str(why),
        "more": say("more_findings", count=names.counted(more, "more finding")) if more > 0 else "",
        "nothing": say("nothing", "else" if first.accepted else "at all"),
        "disturbances": names.listed(_worst_disturbances(alike)) or detail or names.listed(of),
        "share": names.percent(max(reason.share for reason in reasons)),
        "margins": _margins(alike, why) or f"{names.listed(named_subject(key) for key in of)}.",
        "fields": _both_values(first.reasons[0].values) or names.listed(map(fingerprint.label, of)) or say("layout"),
        "families": names.listed(named("terms", key) for key in of),
        "parts": names.listed(of),
        "measurements": names.listed(named_subject(key) for key in of),
        "of": f" of {names.listed(of)}" if of else "",
        "group": _group(why, first.group),
        "next_job": say("next_job", why, "last" if len(first.jobs) >= MOST_JOBS else "again") if why in nexts else "",
        "detail": _detail(why, detail),
    }
    later = [refuted(finding) for finding in first.findings if finding.state is State.REFUTED]
    known = [] if first.counted else [accepted(finding) for finding in first.accepted]
    busy = why is Why.UNRESOLVED and any(taken_most(member.disturbances) for member in alike)
    table = why is Why.ONE_RUN and any(is_metric(margin.measurement) for margin in first.margins)
    key = "one run of a table" if table else why
    words = say("busy_node", nothing=values["nothing"], margins=_open(alike)) if busy else say("reasons", key, **values)
    return " ".join([*known, words, *(later[:1] if len(alike) == 1 and not first.counted else [])])


def _both_values(values: Mapping[str, tuple[str, str]]) -> str:
    """Fields in which a node differs, each with its value and that of most nodes; of long ones the name alone."""
    words = [
        say("field_differs", field=fingerprint.label(key), value=printable(own, 60), usual=printable(usual, 60))
        if key != "kernel_hash" and max(len(own), len(usual)) <= _LONGEST_VALUE
        else fingerprint.label(key)
        for key, (own, usual) in values.items()
    ]
    return "; ".join(words)


def _detail(why: Why, detail: str) -> str:
    """Another program's words, as the sentence of the reason takes them."""
    if why in (Why.NOT_MEASURED, Why.UNUSABLE):
        return detail or say("unknown_reason")
    return f" ({detail})" if detail else ""


def _group(why: Why, letter: str) -> str:
    return letter if why is Why.SPLIT else say("of_group", group=letter) if letter else ""


def worst_finding(findings: Sequence[Finding]) -> str:
    """The sentence of a finding; of the same finding on several nodes with the largest effect among them."""
    worst = max(findings, key=lambda finding: abs(finding.effect))
    words = finding_sentence(worst)
    return words if len(findings) == 1 else f"The largest of {len(findings)}: {words}"


def _margins(alike: Sequence[NodeVerdict], why: Why) -> str:
    """The margins that a reason speaks of: all that decide where the node is the same, else those that are open."""
    worst = _worst_margins(alike)
    if why is Why.WITHIN_BOUNDS:
        return names.listed(short_margin(margin) for margin in worst.values() if margin.decides) or "every bound"
    open_ = [margin for margin in worst.values() if margin.decides and margin.share > 1]
    return " ".join(map(margin_with_remedy, sorted(open_, key=lambda margin: -margin.share)))


def _open(alike: Sequence[NodeVerdict]) -> str:
    """The margins that are open, in a list."""
    margins = _worst_margins(alike).values()
    return names.listed(short_margin(margin) for margin in margins if margin.decides and margin.share > 1)


def _worst_margins(alike: Sequence[NodeVerdict]) -> dict[str, Margin]:
    worst: dict[str, Margin] = {}
    for margin in (margin for member in alike for margin in member.margins):
        if margin.subject not in worst or margin.share > worst[margin.subject].share:
            worst[margin.subject] = margin
    return worst


def _worst_disturbances(alike: Sequence[NodeVerdict]) -> list[str]:
    """What made nodes invalid, each kind once with its largest share or value."""
    worst: dict[tuple[str, str], Disturbance] = {}
    for disturbed in (disturbed for member in alike for disturbed in member.disturbances if disturbed.invalid):
        worse = worst.get((disturbed.kind, disturbed.measurement))
        if worse is None or (disturbed.share, disturbed.value) > (worse.share, worse.value):
            worst[disturbed.kind, disturbed.measurement] = disturbed
    return list(dict.fromkeys(disturbance(disturbed).rstrip(".") for disturbed in worst.values()))


def jobs_changed(node: NodeVerdict, now: Sequence[str]) -> str:
    """That the records of a node are of other jobs, those of `now`, than were judged."""
    verb = "were" if len(node.jobs) > 1 else "was"
    return say("jobs_changed", now=names.listed(now) or "no job", judged=f"{names.listed(node.jobs) or 'none'} {verb}")


def further(node: NodeVerdict) -> list[str]:
    """What is to be known of a node beside its outcome: other disturbances and reasons."""
    leading = {reason.why for reason in node.reasons[:1]}
    disturbed = leading & {Why.DISTURBED, Why.MISSING_PAIRS, Why.ODD_RUN, Why.UNUSABLE}
    return [sentence(disturbance(found)) for found in node.disturbances if not (found.invalid and disturbed)]


# --- a finding ---


def finding_sentence(finding: Finding) -> str:
    """A finding in a sentence: place, effect, interval, its own bound, and what it is in the measurement's unit; of one
    that comes and goes also which jobs show it."""
    return " ".join(filter(None, (_finding_sentence(finding), _which_jobs(finding))))


def _which_jobs(finding: Finding) -> str:
    """Of a finding that comes and goes, how many runs of which jobs show it."""
    if finding.state is not State.INTERMITTENT:
        return ""
    runs_of_jobs = (
        f"{runs_past(finding, job)} of {names.counted(len(job.runs), 'run')} of {job.job}" for job in finding.by_job
    )
    return say("which_jobs", runs=names.listed(runs_of_jobs))


def runs_past(finding: Finding, job: JobEffect) -> int:
    """How many runs of a job are beyond the bound of a finding on its side, each by itself."""
    sign = math.copysign(1.0, finding.effect)
    return sum(sign * effect > finding.bound for effect in job.runs.values())


def _finding_sentence(finding: Finding) -> str:
    compared = texts()["compared"]["baseline" if finding.baseline else "peers"]
    unit = names.of_measurement(finding.unit, finding.measurement)
    values = {
        **{key: str(words).format(baseline=finding.baseline) for key, words in compared.items()},
        "effect": names.percent(abs(finding.effect)),
        **changed(
            finding.effect,
            finding.measurement,
            several=names.is_plural(finding.part),
            past=finding.state is State.INTERMITTENT,
        ),
        "interval": names.interval(finding.interval.low, finding.interval.high, finding.effect),
        "bound": names.bound(finding.bound),
        "times": names.times(finding.effect, finding.bound),
        "value": names.quantity(finding.value, unit),
        "peers": names.quantity(finding.peers, unit),
    }
    where = finding.part.where
    if finding.part.term.startswith("fabric-"):
        return _link_sentence(finding, values)
    if not finding.measurement:
        jobs = f" ({names.listed(job.job for job in finding.by_job)})" if finding.by_job else ""
        return say("finding_event", event=_event(finding), jobs=jobs)
    if _is_channel(finding):
        return _channel_sentence(finding, values)
    place = _begin(subject(finding), finding.measurement)
    if finding.id == "limit":
        reason = printable(str(where["reason"]), 80)
        allowed = names.quantity(finding.bound_unit, finding.unit)
        return say("finding_limit", place=place, reason=reason, **{**values, "bound": allowed})
    model = models().get(finding.measurement)
    if is_metric(finding.measurement) or (model is not None and model.places == "cells"):
        share = model is not None and model.scale == "share"
        points = {"effect": f"{abs(finding.effect) * 100:.1f} percentage points"} if share else {}
        term = terms().get(finding.part.term)
        words = (term.sentence if term is not None else "") or texts()["finding_cells"]
        return str(words).format(place=place, **{**values, **points})
    at_home = names.home(finding.home)
    place += f", with lines at the {at_home}," if at_home else ""
    return say("finding", place=place, added=_added(finding.effect_unit, finding.unit, _figures_of(finding)), **values)


def _link_sentence(finding: Finding, values: Mapping[str, str]) -> str:
    """A node or a link between nodes whose messages are slow, which begins with the node's name as it is."""
    where = finding.part.where
    ends = {end: printable(str(where.get(end, "")), 80) for end in ("node", "to")}
    kind = "node" if not ends["to"] else "both" if where.get("sends") and where.get("receives") else "one"
    direction = {(True, True): "in both directions", (True, False): "when it sends"}.get(
        (bool(where.get("sends")), bool(where.get("receives"))), "when it receives"
    )
    added = _added(finding.effect_unit, finding.unit, "a message")
    return say("link", kind, direction=direction, added=added, **ends, **values)


def _event(finding: Finding) -> str:
    """What the system counted."""
    event = texts()["events"].get(finding.id, f"{finding.id.replace('-', ' ')}: {{count}}")
    return sentence(event.format(count=f"{finding.value:.4g}", cpus=_wrong_cpus(finding.part.where)))


def _channel_sentence(finding: Finding, values: Mapping[str, str]) -> str:
    """That a memory channel seems to be missing, with the bandwidths that say so."""
    streams = {cell["stream"] for cell in finding.cells if "stream" in cell}
    unit = names.shown_unit(finding.peers, finding.unit)
    both = f"{finding.value / unit[0]:.3g} of {finding.peers / unit[0]:.3g} {unit[1]}"
    over = f", mean of {names.counted(len(streams), 'stream')}" if len(streams) > 1 else ""
    return say("finding_channel", **{**values, "place": _memory_node(finding), "both": both, "over": over})


def _figures_of(finding: Finding) -> str:
    """Of which pairs the figures in ns are."""
    of = finding.figures_of
    return names.scope(finding.part) if of is None else f"in {names.scoped(of)}"


def _wrong_cpus(where: Mapping[str, object]) -> str:
    cpus = str(where.get("cpus", ""))
    return f"CPU{'s' if ',' in cpus else ''} {cpus}" if cpus else "a CPU"


def finding_details(finding: Finding) -> list[str]:
    """What stands below a finding: its runs, what it explains, who shares it, instruments, what it may come from."""
    out = [runs_beyond(finding)] if finding.runs else []
    if finding.finer:
        out.append(_finer(finding))
    out += [say("shared_by", nodes=names.nodes(finding.shared_by))] if finding.shared_by else []
    out += (
        [say("consistent", causes=names.listed(named("causes", key) for key in finding.consistent_with))]
        if finding.consistent_with
        else []
    )
    out += [evidence(seen) for seen in finding.evidence]
    return out + ([say("suppressed", why=printable(finding.suppressed, 300))] if finding.suppressed else [])


def _finer(finding: Finding) -> str:
    """The finer parts that a finding explains, by what was measured; places on the machine are named where they are
    few."""
    by_measurement = Counter(finer.measurement for finer in finding.finer)
    counts = (
        names.counted(count, f"difference in {measured(measurement)}", f"differences in {measured(measurement)}")
        for measurement, count in by_measurement.items()
    )
    places = list(dict.fromkeys(names.scoped(finer.part) for finer in finding.finer if names.is_of_pairs(finer.part)))
    named_places = f": {names.listed(places)}" if len(places) == len(finding.finer) <= _MOST_PLACES else ""
    return say("finer", count=names.listed(counts), parts=named_places)


def accepted(finding: Finding) -> str:
    """A finding that the site accepts, until when and why."""
    return say(
        "finding_accepted", finding=finding_sentence(finding).rstrip("."), suppressed=printable(finding.suppressed, 300)
    )


def runs_beyond(finding: Finding) -> str:
    """How many of the runs show the finding beyond its bound, each by itself."""
    beyond = sum(runs_past(finding, job) for job in finding.by_job)
    jobs, runs = names.counted(len(finding.by_job), "job"), names.counted(len(finding.runs), "run")
    if beyond == len(finding.runs):
        return say("finding_all_runs", runs=runs, jobs=jobs)
    return say("finding_runs", count=beyond, runs=runs, jobs=jobs)


def refuted(finding: Finding) -> str:
    """A finding of a first job that later jobs did not confirm."""
    first = finding.by_job[0] if finding.by_job else None
    effect = first.effect if first is not None else finding.effect
    return say(
        "refuted",
        place=_begin(subject(finding), finding.measurement),
        effect=names.percent(abs(effect)),
        first=first.job if first is not None else "a first job",
        **changed(effect, finding.measurement, several=names.is_plural(finding.part), past=True),
    )


def remedy(finding: Finding) -> str:
    """What to do about a finding."""
    remedies, term = texts()["remedies"], terms().get(finding.part.term)
    of_term = term.remedy if term is not None else remedies.get(finding.part.term)
    return str(remedies.get(finding.remedy) or of_term or remedies["other"])


def evidence(seen: Evidence) -> str:
    """What an instrument says about a finding."""
    kinds = texts()["evidence"]
    words = kinds[seen.kind][{False: 0, True: 1, None: 2}[seen.seen]]
    difference = f"{(seen.value / seen.peers - 1) * 100:+z.1f} %" if seen.peers else "unknown"
    return str(words).format(
        difference=difference,
        value=names.quantity(seen.value, seen.unit),
        peers=names.quantity(seen.peers, seen.unit),
        field=sentence(fingerprint.label(seen.field)),
    )


def change(effect: float, measurement: str) -> str:
    """What a value is that differs so: latencies are slower or faster, everything else is higher or lower."""
    return changed(effect, measurement)["change"]


def changed(effect: float = 1.0, measurement: str = "", *, several: bool = False, past: bool = False) -> dict[str, str]:
    """Verb and adjective of a change, `is` and `slower`; a latency's where no measurement is named."""
    model = models().get(measurement)
    is_time = (model is None or (model.better == "lower" and model.scale != "share")) and not is_metric(measurement)
    words = texts()["change"]["time" if is_time else "other"]
    one, all_of_them = words["past" if past else "present"]
    return {"change": words["more" if effect > 0 else "less"], "verb": all_of_them if several else one}


def _added(value: float, unit: str, behind: str = "") -> str:
    if not math.isfinite(value):
        return ""
    more = f"{names.quantity(abs(value), unit)} {'more' if value > 0 else 'less'}"
    return f", {more} {behind}".rstrip()


# --- margins, disturbances, fabric ---


def short_margin(margin: Margin) -> str:
    """A margin in a list: `core to core within 1.4 % (bound 4 %)`."""
    subject = named("subjects", margin.subject)
    return say("margin_short", subject=subject, within=_difference(margin.within), bound=_difference(margin.bound))


def margin_with_remedy(margin: Margin) -> str:
    """A margin that is beyond its bound, and what resolves it."""
    in_words = _begin(named("subjects", margin.subject), margin.measurement)
    if not math.isfinite(margin.within):
        return say("margin_one_run", subject=in_words) + "."
    text = say(
        "margin",
        subject=in_words,
        place=names.scoped(margin.part) if is_metric(margin.measurement) else subject(margin),
        within=_both(margin.within, margin.within_unit, margin.unit),
        bound=_both(margin.bound, margin.bound_unit, margin.unit),
    )
    words = margin_remedy(margin)
    return f"{text}; {words}." if words else f"{text}."


def margin_remedy(margin: Margin) -> str:
    """What resolves a margin; empty where nothing is to be said."""
    job, _, run = margin.run.partition("/run")
    named_run = f"run {run} of {job}" if run else "one run"
    words = _margin_remedy(margin.remedy, margin.measurement)
    return words.format(needed=margin.needed, runs=margin.runs, run=named_run)


def _margin_remedy(remedy: str, measurement: str) -> str:
    """The sentence of a remedy, its values still to be filled in; of a metric of a table it is another one."""
    own = texts()["margin_remedies_of_tables"] if is_metric(measurement) else {}
    return str(own.get(remedy) or texts()["margin_remedies"].get(remedy, ""))


def _both(share: float, value: float, unit: str) -> str:
    return f"{names.percent(share)} or {names.quantity(value, unit)}" if math.isfinite(value) else names.percent(share)


def _difference(share: float) -> str:
    return f"{share * 100:.2g} %" if share < 0.1 else f"{share * 100:.3g} %"


def disturbance(disturbance: Disturbance) -> str:
    """Something that disturbed a measurement or concerns the node."""
    cpus = names.nodes(map(str, disturbance.cpus)).strip("[]")
    if disturbance.kind in texts()["differ"]["repetitions"]:
        return differ(disturbance)
    if disturbance.kind not in texts()["disturbances"]:
        return f"{disturbance.kind}: {printable(disturbance.detail, 200)}"
    return say(
        "disturbances",
        disturbance.kind,
        share=names.percent(disturbance.share),
        value=f"{disturbance.value:.4g}",
        measurement=measured(disturbance.measurement) if disturbance.measurement else "the measurement",
        run=f" in {disturbance.run}" if disturbance.run else "",
        cpus=f" on CPUs {cpus}" if cpus else "",
        cpus_alone=f"CPUs {cpus}" if cpus else "its CPUs",
        detail=printable(disturbance.detail, 300),
        low=names.quantity(disturbance.low, disturbance.unit),
        high=names.quantity(disturbance.high, disturbance.unit),
        low_in=repetition(disturbance.low_in),
        high_in=repetition(disturbance.high_in),
        job=disturbance.run.partition("/")[0],
        run_number=disturbance.run.partition("/run")[2],
    )


def fabric(fabric: FabricVerdict) -> str:
    """The messages between the nodes of a partition in a line."""
    slow = [finding for finding in fabric.findings if finding.counts]
    count = names.counted(len(slow), "slow node or link", "slow nodes or links")
    result = say("fabric_found", count=count) if slow else say("fabric_clear")
    result = say("fabric_inconclusive", fabric.inconclusive) if fabric.inconclusive else result
    limits = names.listed(f"{names.percent(lim.effect)} ({named('terms', lim.family)})" for lim in fabric.limits)
    words = say("fabric_limits", limits=limits) if limits else ""
    sizes = sorted({figure.message_bytes for figure in fabric.by_size} - {fabric.message_bytes})
    shown = names.listed(map(names.message_size, sizes))
    words += say("fabric_sizes", deciding=names.message_size(fabric.message_bytes), shown=shown) if sizes else ""
    words += say("fabric_alone", nodes=names.nodes(fabric.alone)) if fabric.alone else ""
    nodes = names.counted(len(fabric.nodes), "node")
    line = say("fabric", nodes=nodes, partition=printable(fabric.partition, 60), result=result, limits=words)
    return f"{sentence(measured(fabric.measurement))}: {line}".rstrip()


def fabric_findings(fabric: FabricVerdict) -> list[str]:
    """The slow nodes and links, a sentence each."""
    return [finding_sentence(slow) for slow in fabric.findings if slow.counts]


# --- all of it ---


def summary(verdict: Verdict, *, most: int = 0, remarks: Sequence[str] = ()) -> str:
    """A campaign for a terminal: its first line, what disturbed it, notes and `remarks`, the fabric, and every node
    that is not the same (every node where they are at most `most`), the most urgent last, where a reader's eye is."""
    shown = {n: v for n, v in verdict.nodes.items() if len(verdict.nodes) <= most or v.outcome is not Outcome.SAME}
    lines = [first_line(verdict), *disturbed(verdict), *(f"  {words}" for words in over_time(verdict))]
    lines += [*(f"  note: {words}" for words in fleet_notes(verdict)), *(f"  {remark}" for remark in remarks)]
    for partition in verdict.fabric:
        lines += [f"  {fabric(partition)}", *(f"    {words}" for words in fabric_findings(partition))]
    by_outcome = [list(of_it) for _, of_it in itertools.groupby(node_lines(shown), key=lambda line: line.outcome)]
    return "\n".join([*lines, *_rows([line for of_outcome in reversed(by_outcome) for line in of_outcome])])


def one_node(name: str, node: NodeVerdict) -> list[str]:
    """A node for a terminal."""
    lines = [f"{printable(name)}: {node.outcome}. {node_sentence([node])}"]
    return [*lines, *(f"  {finding_sentence(finding)}" for finding in node.counted[1:])]


def disturbed(verdict: Verdict) -> list[str]:
    """A line for each kind of disturbance of data that count, the nodes that have it and the worst of them: said before
    all else."""
    by_kind: dict[str, dict[str, Disturbance]] = {}
    for name, member in verdict.nodes.items():
        for found in (found for found in member.disturbances if not found.invalid):
            of_kind = by_kind.setdefault(found.kind, {})
            if name not in of_kind or (found.value, found.share) > (of_kind[name].value, of_kind[name].share):
                of_kind[name] = found
    lines = []
    for kind, on in sorted(by_kind.items()):
        worst = max(on, key=lambda name: (on[name].value, on[name].share))
        most = f"most on {printable(worst, 60)}: " if len(on) > 1 else ""
        words = disturbance(on[worst]).rstrip(".")
        said = sum(found.kind == kind for name in on for found in verdict.nodes[name].disturbances)
        more = f"; and {said - 1} more" if kind == "record" and said > 1 else ""
        lines.append(f"  {sentence(named('kinds', kind))} on {names.nodes(on)}: {most}{words}{more}.")
    return lines


def untaken(verdict: Verdict) -> list[str]:
    """A sentence for each reason for which measurements were not taken, with the measurements and the nodes."""
    by_reason: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for name, member in verdict.nodes.items():
        for why in dict.fromkeys(member.untaken.values()):
            measurements = tuple(key for key, reason in member.untaken.items() if reason == why)
            by_reason.setdefault((why, measurements), []).append(name)
    return [
        say("untaken", measurements=names.listed(measurements), nodes=names.nodes(on), reason=printable(why, 300))
        for (why, measurements), on in by_reason.items()
    ]


def counts_of(nodes: Iterable[NodeVerdict]) -> dict[Outcome, int]:
    """How many nodes have each outcome, by urgency."""
    counts = Counter(node.outcome for node in nodes)
    return {outcome: counts[outcome] for outcome in sorted(counts, key=lambda outcome: MEANING[outcome].rank)}
