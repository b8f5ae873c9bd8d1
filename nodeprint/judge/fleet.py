"""The verdict of a fleet, from the verdicts of its nodes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from statistics import median

import numpy as np
from msgspec import UNSET
from msgspec.structs import replace

from nodeprint.data.places.measured import is_metric
from nodeprint.errors import nearest
from nodeprint.judge import achieved, agreements, configuration, limits, single_runs
from nodeprint.judge.acceptance import names_of
from nodeprint.judge.control_nodes import recheck
from nodeprint.judge.deviations import of_each_node, run_means
from nodeprint.judge.groups import Cut, PeerGroup
from nodeprint.judge.nodes import Reading
from nodeprint.judge.outcome import FleetOutcome, Outcome, ReasonDetail
from nodeprint.judge.pairs import no_core_inside
from nodeprint.judge.population import Population
from nodeprint.judge.verdict import (
    Agreement,
    Finding,
    FleetVerdict,
    Group,
    Interval,
    Limit,
    NodeVerdict,
    Note,
    Shared,
    Spread,
    Verdict,
)
from nodeprint.settings.config_file import site_measurements

#: Standard errors at both ends of a 95% interval.
_NORMAL_95 = 1.96


def verdict(reading: Reading, versions: Mapping[str, str]) -> Verdict:
    """The verdict of a campaign."""
    population = reading.population
    fleet = population.fleet
    letters = {i: letter(number) for i, number in population.group_of.items()} if len(population.groups) > 1 else {}
    nodes = {node.name: reading.node(i, letters.get(i, "")) for i, node in enumerate(fleet.nodes)}
    return Verdict(
        fleet.campaign,
        fleet.simulated,
        any(node.imported for node in fleet.nodes),
        {**fleet.versions, **versions},
        population.rules.criteria,
        _fleet(reading, nodes),
        nodes,
        tuple(reading.fabrics),
        recheck(population, nodes),
        identity=fleet.identity or UNSET,
    )


def letter(number: int) -> str:
    """The name of a group, by its number."""
    return chr(ord("A") + number) if number < 26 else f"Z{number}"


def _fleet(reading: Reading, nodes: Mapping[str, NodeVerdict]) -> FleetVerdict:
    population = reading.population
    counted = Counter(node.outcome for node in nodes.values())
    counts = {outcome.value: counted[outcome] for outcome in Outcome if counted[outcome]}
    measured = sum(node.state == "measured" for node in population.fleet.nodes)
    spreads = _spreads(reading)
    outcome_of_fleet = _outcome(reading, nodes, spreads, measured)
    measured_metrics = {agreements.metric(measurement) for measurement in population.reduced}
    measured_metrics |= {fabric.measurement for fabric in reading.fabrics} if population.only_links else set()
    based_on = [metric for metric in population.rules.criteria if metric in measured_metrics]
    tests = sum(series.outside.size for series in reading.tables)
    tests += sum(2 * len(f.nodes) * len(f.nodes) for f in reading.fabrics)
    return FleetVerdict(
        outcome_of_fleet,
        len(nodes),
        measured,
        counts,
        _worst(nodes),
        tuple(based_on),
        _missing(reading, nodes),
        tuple(_groups(reading)),
        tuple(_shared(reading, nodes)),
        spreads,
        _limits(reading),
        tests,
        population.rules.false_alarm * (bool(reading.tables) + bool(reading.fabrics)),
        tuple(_notes(reading, nodes)),
        () if population.gap is None else (_group(reading, population.gap, ""),),
        reading.over_time,
        _assumed_jobs(reading, based_on),
        (*single_runs.of_series(population, reading.tables), *single_runs.of_fabrics(population.fleet.fabrics)),
        achieved.memory(nodes),
    )


def _assumed_jobs(reading: Reading, metrics: Sequence[str]) -> dict[str, float]:
    """By metric, the assumed standard deviation between jobs, if no jobs show it."""
    out: dict[str, float] = {}
    for series in reading.tables:
        metric, jobs = agreements.metric(series.matrix.measured), series.spreads.job
        if metric in metrics and not jobs.pooled.any():
            assumed = series.matrix.terms.relative(float(np.sqrt(jobs.assumed.max(initial=0.0))))
            out[metric] = max(out.get(metric, 0.0), assumed)
    return {metric: out[metric] for metric in metrics if metric in out}


def _outcome(
    reading: Reading, nodes: Mapping[str, NodeVerdict], spreads: Sequence[Spread], measured: int
) -> FleetOutcome:
    """The outcome of a fleet: the worst that its nodes require, so it never claims more than they do."""
    if not measured:
        return FleetOutcome.NOT_MEASURED
    asked = [node.outcome.entry.fleet for node in nodes.values()]
    scattered = any(reason.why is ReasonDetail.NO_CENTER for node in nodes.values() for reason in node.reasons)
    asked += [FleetOutcome.SPLIT] if reading.population.split_nodes else []
    asked += [FleetOutcome.NON_UNIFORM] if scattered else []
    worst = min(asked, key=lambda outcome: outcome.rank)
    if worst in (FleetOutcome.INTERMITTENT, FleetOutcome.SUSPECTS) and any(spread.wide for spread in spreads):
        return FleetOutcome.NON_UNIFORM
    if worst is FleetOutcome.NO_PEERS and reading.population.groups:  # the other nodes were compared
        return FleetOutcome.INCONCLUSIVE
    if worst is FleetOutcome.UNIFORM and _without_figure(reading):
        return FleetOutcome.INCONCLUSIVE
    return worst


def _worst(nodes: Mapping[str, NodeVerdict]) -> tuple[Agreement, ...]:
    """For each metric, the agreement nearest to its tolerance among nodes that are SAME, in the order of the nodes."""
    worst: dict[str, Agreement] = {}
    for node in nodes.values():
        for agreement in node.agreements if node.outcome is Outcome.SAME else ():
            if agreement.metric not in worst or agreement.share > worst[agreement.metric].share:
                worst[agreement.metric] = agreement
    return tuple(sorted(worst.values(), key=lambda agreement: not agreement.criterion))


def _missing(reading: Reading, nodes: Mapping[str, NodeVerdict]) -> tuple[str, ...]:
    """Planned measurements that no measured node has."""
    population = reading.population
    measured_names = {name for i in range(len(nodes)) for name in population.measured(i)}
    measured_names |= {name for node in population.fleet.nodes for name in node.not_applicable}
    return tuple(name for name in population.planned if name not in measured_names) if measured_names else ()


def _groups(reading: Reading) -> list[Group]:
    """The groups of the fleet if there are several. Nodes are compared only within a group."""
    population = reading.population
    if len(population.groups) < 2:
        return []
    return [_group(reading, group, letter(number)) for number, group in enumerate(population.groups)]


def _group(reading: Reading, group: PeerGroup, name: str) -> Group:
    """A group of nodes for the verdict, with its difference from the first group and the fields associated with it."""
    population, cut = reading.population, group.cut
    nodes = group.nodes.tolist()
    fields = _fields(reading, nodes, range(len(population.fleet.nodes)))
    of_it = Group(name, tuple(population.fleet.nodes[i].name for i in nodes), fields=fields)
    if cut is None:
        return of_it
    relative, level = cut.matrix.terms.relative, float(cut.matrix.levels[cut.term])
    low, effect, high = (relative(cut.effect + side * _NORMAL_95 * cut.error) for side in (-1, 0, 1))
    than = letter(population.group_of[int(cut.first[0])]) if name else ""
    return replace(
        of_it,
        measurement=cut.matrix.name,
        component=cut.component,
        than=than,
        effect=effect,
        effect_unit=effect * level,
        interval=Interval(low, high),
        tolerance=relative(cut.tolerance),
        unit=cut.matrix.measured.unit,
        later_h=_later_h(population, nodes, cut.first.tolist()),
        differences=_differences(population, cut, nodes),
    )


def _differences(population: Population, cut: Cut, nodes: Sequence[int]) -> dict[str, float]:
    """By node of a group and of the first one, its difference from the median of the first, in the component that
    separates them."""
    both = [number for number in (*cut.first.tolist(), *nodes) if number in cut.matrix.place]
    means = of_each_node(cut.matrix, run_means(cut.matrix.values))
    values = means[[cut.matrix.place[number] for number in both], cut.term]
    apart = values - np.nanmedian(values[: len(cut.first)])
    return {
        population.fleet.nodes[number].name: cut.matrix.terms.relative(float(value))
        for number, value in zip(both, apart, strict=True)
        if np.isfinite(value)
    }


def _later_h(population: Population, nodes: Sequence[int], others: Sequence[int]) -> float:
    """The difference between the median times at which `nodes` and `others` were measured, in hours. It is 0 if the
    times overlap."""
    own, first = ([population.hours(i) for i in of] for of in (nodes, others))
    apart = min(own) > max(first) or max(own) < min(first)
    return median(own) - median(first) if apart else 0.0


def _fields(reading: Reading, inside: Sequence[int], among: Sequence[int]) -> dict[str, str]:
    """Fields of the fingerprint with one value on the nodes `inside` that no other node of `among` has."""
    nodes, rules = reading.population.fleet.nodes, reading.population.rules
    chosen = set(inside)
    settings = [configuration.normalized(nodes[i].fingerprint, rules) for i in inside]
    others = [
        configuration.normalized(nodes[i].fingerprint, rules)
        for i in among
        if i not in chosen and nodes[i].state == "measured"
    ]
    return {
        key: str(value)
        for key, value in sorted((settings[0] if settings else {}).items())
        if all(fields.get(key) == value for fields in settings)
        and others
        and all(key in fields and fields[key] != value for fields in others)
    }


def _shared(reading: Reading, nodes: Mapping[str, NodeVerdict]) -> list[Shared]:
    """Differences that several nodes of a group share, each once, from the node with the largest effect."""
    number_of = {node.name: i for i, node in enumerate(reading.population.fleet.nodes)}
    most: dict[tuple[str, ...], tuple[tuple[str, ...], Finding]] = {}
    for name, node in nodes.items():
        for finding in node.findings:
            if not finding.shared_by:
                continue
            alike = tuple(sorted((name, *finding.shared_by)))
            key = (
                *alike,
                finding.measurement,
                finding.component.term,
                str(finding.effect > 0),
                _place(finding.component.where),
            )
            if key not in most or abs(most[key][1].effect) < abs(finding.effect):
                most[key] = alike, finding
    out = []
    for alike, finding in most.values():
        numbers = [number_of[name] for name in alike]
        group = reading.population.groups[reading.population.group_of[numbers[0]]].nodes.tolist()
        fields = _fields(reading, numbers, group)
        share = len(alike) / len(group)
        out.append(
            Shared(alike, finding.measurement, finding.component, finding.effect, finding.interval, fields, share)
        )
    return sorted(out, key=lambda shared: (-len(shared.nodes), -abs(shared.effect)))


def _place(where: Mapping[str, int | str]) -> str:
    return ",".join(f"{key}={value}" for key, value in where.items() if not key.startswith("cpu"))


def _spreads(reading: Reading) -> tuple[Spread, ...]:
    return agreements.spreads(reading.tables)


def _limits(reading: Reading) -> tuple[Limit, ...]:
    """The detection limits, with the largest of several homes and groups and the tolerances of all."""
    by_component_type: dict[tuple[str, str], Limit] = {}
    for limit in agreements.limits(reading.tables):
        key = (limit.measurement, limit.component_type)
        both = (by_component_type.get(key, limit), limit)
        low, high = min(of.tolerance_low for of in both), max(of.tolerance_high for of in both)
        largest = max(both, key=lambda of: of.effect)
        by_component_type[key] = replace(largest, tolerance_low=low, tolerance_high=high)
    return tuple(by_component_type.values())


def _notes(reading: Reading, nodes: Mapping[str, NodeVerdict]) -> list[Note]:
    """Notes on two-core CCXs, waivers and limits without effect, unknown nodes and metrics, and gaps in messages."""
    population = reading.population
    rules, day = population.rules, reading.day
    notes = []
    pairs = [series.matrix.terms for series in reading.tables if series.matrix.measured.of_pairs]
    if any(not terms.layout.harvested and no_core_inside(terms) for terms in pairs):
        notes.append(Note("two-cores"))
    for rule in rules.waivers:
        if rule.until.isoformat() < day:
            notes.append(Note("waiver-ended", rule.node, f"{rule.finding} on {rule.until}"))
        elif rule.node not in nodes:
            notes.append(Note("no-such-node", rule.node, nearest(rule.node, nodes)))
        elif not any(finding.waived for finding in nodes[rule.node].findings):
            notes.append(Note("waiver-without-effect", rule.node, rule.finding))
    for repair in rules.repairs:
        if repair.node not in nodes:
            notes.append(Note("no-such-node", repair.node, nearest(repair.node, nodes)))
    notes += _without_figure(reading)
    notes += _unknown_metrics(population)
    notes += [Note("table", population.fleet.campaign, words) for words in population.fleet.notes]
    return [*notes, *reading.notes]


def _without_figure(reading: Reading) -> list[Note]:
    """Notes on contract limits without a value on any node, for example because the row is misspelled. Such limits
    cannot be checked."""
    notes = []
    for limit in reading.population.rules.limits:
        figures = limits.applied(reading.classes, reading.rows, share=limit.at_least_percent is not UNSET)
        if (limit.measurement, limit.figure) not in figures:
            rows = [name for measurement, name in figures if measurement == limit.measurement]
            notes.append(Note("limit-not-applied", f"{limit.measurement}, {limit.figure}", nearest(limit.figure, rows)))
    return notes


def _unknown_metrics(population: Population) -> list[Note]:
    """Notes on tolerances of metrics that are not in the table; a site's own command may have failed everywhere."""
    folder = population.fleet.folder
    own = {of.name for of in site_measurements(folder)} if folder is not None else set()
    quantities = [q for q in population.fleet.quantities if is_metric(q.measurement)]
    names = {name for q in quantities for name in names_of(q)}
    unknown = [name for name in population.rules.metrics if names and name not in names | own]
    return [Note("no-such-metric", name, nearest(name, names)) for name in unknown]
