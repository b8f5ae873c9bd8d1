"""The rules that give a node its outcome, a function each, in the order in which they apply.

A rule yields its reasons for an outcome; the worst outcome is the node's. If a `final` rule has a reason, no further
rule applies: nothing else is known of a node without measurements. To add an outcome, add its entry to
`nodeprint.judge.outcome.Outcome`, a rule here, and its sentence to reports/texts.yaml.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import msgspec
import numpy as np

from nodeprint.judge import agreements, quality
from nodeprint.judge.deviations import Deviations
from nodeprint.judge.outcome import OUTCOME_OF, Outcome, ReasonDetail
from nodeprint.judge.population import Population
from nodeprint.judge.verdict import Agreement, Finding, Reason
from nodeprint.settings.texts import say

#: By the kind of a disturbance that makes a job invalid the reason that it is.
_OF_DISTURBANCE = {
    "disturbed": ReasonDetail.DISTURBED,
    "missing": ReasonDetail.MISSING_PAIRS,
    quality.ODD_RUN: ReasonDetail.ODD_RUN,
    "cpus-moved": ReasonDetail.DISTURBED,
    "unpinned": ReasonDetail.DISTURBED,
}


class NodeEvidence(msgspec.Struct, frozen=True):
    """The evidence for the outcome of node `i` of a population. `series` are the tables of the node, each with its
    position there. `usual` are the measurements that most of its peers have. `exchange` explains its imported
    matrix."""

    population: Population
    i: int
    findings: Sequence[Finding]
    agreements: Sequence[Agreement]
    series: Sequence[tuple[Deviations, int]]
    usual: Sequence[str]
    exchange: tuple[str, str] | None

    @property
    def deciding(self) -> list[Agreement]:
        """The agreements that its outcome is based on."""
        return [agreement for agreement in self.agreements if agreement.criterion]

    @property
    def outside(self) -> set[str]:
        """Metrics with a component that is known to be outside its tolerance, counted or accepted."""
        return {agreements.metric_of(f) for f in self.findings if f.counts or (f.accepted and f.is_outside)}

    @property
    def scattered(self) -> tuple[str, ...]:
        """Deciding metrics with a component in which no majority of the nodes agrees."""
        criteria = self.population.rules.criteria
        of = ((agreements.metric(series.matrix.measured), series) for series, _ in self.series)
        return tuple(metric for metric, series in of if metric in criteria and series.scattered.any())


Rule = Callable[[NodeEvidence], Iterator[Reason]]
_RULES: list[tuple[Rule, bool]] = []


def reasons(evidence: NodeEvidence) -> list[Reason]:
    """Every reason for the outcome of a node, the decisive one first. A node without any matches its peers."""
    out: list[Reason] = []
    for asked, final in _RULES:
        own = list(asked(evidence))
        out += own
        if own and final:
            break
    if not out:
        out = [Reason(Outcome.SAME, of=tuple(agreement.metric for agreement in evidence.deciding))]
    return sorted(out, key=lambda reason: reason.outcome.rank)


def rule(*, final: bool = False) -> Callable[[Rule], Rule]:
    """Make a function a rule; if it is `final` and has a reason, no further rule is asked."""

    def added(function: Rule) -> Rule:
        _RULES.append((function, final))
        return function

    return added


@rule(final=True)
def not_measured(of: NodeEvidence) -> Iterator[Reason]:
    """There are no records of it, or a benchmark's own check failed."""
    node = of.population.fleet.nodes[of.i]
    if node.state == "wrong":
        yield Reason(Outcome.WRONG_RESULT, ReasonDetail.FAILED_CHECK, detail=node.reason)
    elif node.state != "measured":
        yield Reason(Outcome.NOT_MEASURED, detail=node.reason)


@rule(final=True)
def linked(of: NodeEvidence) -> Iterator[Reason]:
    """All values are of pairs of nodes, so its messages with all others decide."""
    if not of.population.only_links:
        return
    findings = list(found(of))
    yield from findings
    unresolved = tuple(a.metric for a in of.deciding if a.share > 1 and a.metric not in of.outside)
    if not of.deciding:
        names = dict.fromkeys(fabric.measurement for fabric in of.population.fleet.fabrics)
        yield Reason(Outcome.INCONCLUSIVE, ReasonDetail.MISSING, tuple(names))
    elif any(agreement.runs < 2 for agreement in of.deciding):
        yield Reason(Outcome.INCONCLUSIVE, ReasonDetail.ONE_RUN)
    elif unresolved:
        yield Reason(Outcome.INCONCLUSIVE, ReasonDetail.UNRESOLVED, unresolved)
    elif any(finding.accepted and finding.is_outside for finding in of.findings):
        yield Reason(Outcome.INCONCLUSIVE, ReasonDetail.WAIVED)
    elif not findings:
        yield Reason(Outcome.SAME, of=tuple(agreement.metric for agreement in of.deciding))


@rule()
def found(of: NodeEvidence) -> Iterator[Reason]:
    """Findings, by certainty. Wrong results and limits have outcomes of their own."""
    for finding in of.findings:
        if not finding.counts:
            continue
        if finding.id == quality.WRONG_RESULT:
            yield Reason(Outcome.WRONG_RESULT, ReasonDetail.WRONG, (finding.id,))
        elif finding.id == "limit":
            yield Reason(Outcome.OUT_OF_SPEC, of=(finding.id,))
        else:
            yield Reason(OUTCOME_OF[finding.state], of=(finding.id,))


@rule(final=True)
def unusable(of: NodeEvidence) -> Iterator[Reason]:
    """Records of it cannot be used."""
    node = of.population.fleet.nodes[of.i]
    if broken := [*node.unusable, *filter(None, [node.reason])]:
        yield Reason(Outcome.INVALID, ReasonDetail.UNUSABLE, detail=broken[0])


@rule(final=True)
def single_machine(of: NodeEvidence) -> Iterator[Reason]:
    """It is a single machine, so nothing is compared. The quality of its data is reported separately."""
    if of.population.lone:
        yield _no_peers(of)


@rule(final=True)
def disturbed(of: NodeEvidence) -> Iterator[Reason]:
    """Each of its jobs was disturbed."""
    invalid = of.population.disturbed[of.i]
    if invalid and not set(of.population.jobs(of.i)) - set(invalid):
        worst = max(
            (disturbance for job in invalid.values() for disturbance in job),
            key=lambda disturbance: (disturbance.kind in ("cpus-moved", "unpinned"), disturbance.share),
        )
        yield Reason(Outcome.INVALID, _OF_DISTURBANCE[worst.kind], (worst.measurement,), worst.share)


@rule(final=True)
def without_peers(of: NodeEvidence) -> Iterator[Reason]:
    """Its group has no other node, or its configuration is another one."""
    population = of.population
    if of.i in population.group_of:
        return
    node = population.fleet.nodes[of.i]
    differing = [d for d in population.differing.get(node.name, ()) if d.hard]
    if node.imported and not node.identified:
        yield _no_peers(of, say("unknown_processor"))
    elif node.anonymous:
        yield _no_peers(of, say("unknown_node"))
    elif len(population.configuration_of[of.i]) > 1:
        yield _no_peers(of)
    else:
        values = {d.key: (d.value, d.majority) for d in differing}
        yield Reason(Outcome.DIFFERENT_CONFIGURATION, of=tuple(values), values=values)


def _no_peers(of: NodeEvidence, detail: str = "") -> Reason:
    """The reason of a node without peers: INCONCLUSIVE if its newest job lacks measurements, else NO PEERS."""
    if lacking := tuple(of.population.fleet.nodes[of.i].lacking):
        return Reason(Outcome.INCONCLUSIVE, ReasonDetail.ALONE_IN_COMPONENT, lacking, detail=detail)
    return Reason(Outcome.NO_PEERS, detail=detail)


@rule()
def split(of: NodeEvidence) -> Iterator[Reason]:
    """It is in a group of a split fleet."""
    if of.i in of.population.split_nodes:
        yield Reason(Outcome.SPLIT)


@rule(final=True)
def renumbered(of: NodeEvidence) -> Iterator[Reason]:
    """An exchange of components explains its imported matrix."""
    if of.exchange is not None:
        yield Reason(Outcome.INCONCLUSIVE, ReasonDetail.RENUMBERED, of.exchange)


@rule()
def missing(of: NodeEvidence) -> Iterator[Reason]:
    """It lacks a measurement that it should have."""
    if names := _missing(of):
        yield Reason(Outcome.INCONCLUSIVE, ReasonDetail.MISSING, names)
    if not of.deciding:
        yield Reason(Outcome.INCONCLUSIVE, ReasonDetail.MISSING, of.population.rules.criteria)


def _missing(of: NodeEvidence) -> tuple[str, ...]:
    """Measurements that a node lacks: planned, required, or usual for its peers. A measurement also counts if a run of
    the newest job, or a component that its peers have, is missing."""
    population, node = of.population, of.population.fleet.nodes[of.i]
    measured = population.measured(of.i) | set(node.not_applicable)
    wanted = dict.fromkeys((*population.planned, *population.rules.required))
    names = [name for name in wanted if name not in measured]
    names += node.lacking
    for series, position in of.series:
        if np.any(series.usual & ~np.isfinite(series.spreads.of_nodes[position])):
            names.append(series.matrix.name)
    names += [name for name in of.usual if name not in measured]
    # of a site's own command that is lacking, its metrics are lacking too
    return tuple(dict.fromkeys(name for name in names if name.rpartition("/")[0] not in node.lacking))


@rule()
def rebooted(of: NodeEvidence) -> Iterator[Reason]:
    """It was booted again within a job."""
    if jobs := of.population.fleet.nodes[of.i].rebooted:
        yield Reason(Outcome.INCONCLUSIVE, ReasonDetail.REBOOTED, jobs)


@rule()
def single_run(of: NodeEvidence) -> Iterator[Reason]:
    """With one run, the spread of its runs is unknown."""
    if any(agreement.runs < 2 for agreement in of.deciding):
        yield Reason(Outcome.INCONCLUSIVE, ReasonDetail.ONE_RUN)


@rule()
def unexamined(of: NodeEvidence) -> Iterator[Reason]:
    """No data examine a component of a deciding metric."""
    criteria = of.population.rules.criteria
    unseen = [
        component_type
        for series, _ in of.series
        if agreements.metric(series.matrix.measured) in criteria
        for component_type in series.matrix.terms.unwitnessed
    ]
    if unseen:
        yield Reason(Outcome.INCONCLUSIVE, ReasonDetail.UNEXAMINED, tuple(dict.fromkeys(unseen)))


@rule()
def without_majority(of: NodeEvidence) -> Iterator[Reason]:
    """No majority of the nodes agrees in some component."""
    if of.scattered:
        yield Reason(Outcome.INCONCLUSIVE, ReasonDetail.NO_CENTER, of.scattered)


@rule()
def unresolved(of: NodeEvidence) -> Iterator[Reason]:
    """An interval reaches beyond its tolerance; a component that is known to be outside is not undecided."""
    known = {*of.outside, *of.scattered}
    metrics = tuple(m.metric for m in of.deciding if m.share > 1 and m.runs > 1 and m.metric not in known)
    if metrics:
        yield Reason(Outcome.INCONCLUSIVE, ReasonDetail.UNRESOLVED, metrics)


@rule()
def waived(of: NodeEvidence) -> Iterator[Reason]:
    """A component outside its tolerance is waived, so the node is not SAME."""
    if any(finding.accepted and finding.is_outside for finding in of.findings):
        yield Reason(Outcome.INCONCLUSIVE, ReasonDetail.WAIVED)
