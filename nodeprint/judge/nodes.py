"""The outcome of each node: its findings, its agreements, and the reasons that follow from them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property

import msgspec
import numpy as np
import xarray as xr
from msgspec.structs import replace

from nodeprint.judge import (
    achieved,
    agreements,
    expected,
    figures,
    findings,
    limits,
    messages,
    outcome_rules,
    peer_sensors,
    quality,
)
from nodeprint.judge.deviations import USUAL, Deviations
from nodeprint.judge.findings import TableFinding
from nodeprint.judge.outcome import Certainty
from nodeprint.judge.population import Population
from nodeprint.judge.verdict import (
    Agreement,
    CellFigure,
    ClassFigure,
    Component,
    Disturbance,
    Epoch,
    FabricVerdict,
    Finding,
    Interval,
    JobEffect,
    NodeVerdict,
    Note,
    TimeEffect,
)
from nodeprint.settings.texts import say
from nodeprint.stats.peers import FEWEST


class Reading(msgspec.Struct, frozen=True, dict=True):
    """The evidence for outcomes: the tables of all measurements, `findings` by node, and messages between nodes.

    `changed` are the changes since a baseline by name of a node, `over_time` the effects of the order of measuring.
    `exchanged` has by node the two components whose exchange explains an imported matrix, `former` by name of a node
    its former epochs. The verdict has the `notes`, too.
    """

    population: Population
    tables: Sequence[Deviations]
    findings: Mapping[int, Sequence[TableFinding]]
    fabrics: Sequence[FabricVerdict]
    changed: Mapping[str, Sequence[Finding]]
    over_time: tuple[TimeEffect, ...]
    exchanged: Mapping[int, tuple[str, str]]
    former: Mapping[str, tuple[Epoch, ...]] = {}
    notes: tuple[Note, ...] = ()

    @cached_property
    def day(self) -> str:
        """The day of the newest run: a verdict depends on its input, not on when it is made."""
        return self.population.began[:10]

    @cached_property
    def classes(self) -> list[list[ClassFigure]]:
        """Medians of classes of pairs, by node."""
        return figures.of_classes(self.population.reduced, len(self.population.fleet.nodes))

    @cached_property
    def rows(self) -> list[list[CellFigure]]:
        """Medians of the rows of other measurements, by node."""
        peers = [group.nodes for group in self.population.groups]
        nodes = self.population.fleet.nodes
        rows = figures.of_rows(self.population.reduced, nodes, peers)
        return [achieved.with_peak(of_node, node.fingerprint) for of_node, node in zip(rows, nodes, strict=True)]

    @cached_property
    def shared(self) -> dict[tuple[int, str, bool], tuple[str, ...]]:
        """The nodes that have the same finding, by group, component and side."""
        by_cell: dict[tuple[int, str, bool], list[str]] = {}
        for i, shown in self.findings.items():
            for finding_shown in shown:
                by_cell.setdefault(self._alike(i, finding_shown), []).append(self.population.fleet.nodes[i].name)
        return {key: tuple(sorted(names)) for key, names in by_cell.items()}

    def _alike(self, i: int, shown: TableFinding) -> tuple[int, str, bool]:
        return self.population.group_of[i], shown.key, shown.finding.effect > 0

    def node(self, i: int, letter: str) -> NodeVerdict:
        """The verdict of a node; `letter` is its group's if there are several."""
        node = self.population.fleet.nodes[i]
        findings = tuple(self._findings(i))
        node_agreements = self._agreements(i)
        reasons = outcome_rules.reasons(
            outcome_rules.NodeEvidence(
                self.population,
                i,
                findings,
                node_agreements,
                tuple(self._series_of(i)),
                self._usual(i),
                self.exchanged.get(i),
            )
        )
        disturbances = [disturbance for job in self.population.disturbed[i].values() for disturbance in job]
        problems = dict.fromkeys((*node.unusable, *node.quality))  # some are in both
        disturbances += [Disturbance("record", invalid=False, detail=text) for text in problems]
        lost = quality.lost(node, i, self.population.reduced)
        disturbances += quality.beside(node, i, self.population.reduced, self.population.rules)
        return NodeVerdict(
            reasons[0].outcome,
            tuple(reasons),
            findings,
            node_agreements,
            tuple(disturbances),
            (*node.warnings, *self._soft(i)),
            node.fingerprint,
            tuple(figures.marked(self.classes[i], lost)),
            tuple(figures.marked(self.rows[i], lost)),
            tuple(f"job{job}" for job in self.population.jobs(i)),
            letter,
            node.rack,
            node.log_tail,
            self.population.newest(i),
            node.untaken,
            self.former.get(node.name, ()),
        )

    def _soft(self, i: int) -> Iterator[Mapping[str, str]]:
        """Fields in which a node differs from the majority, as warnings."""
        for difference in self.population.differing.get(self.population.fleet.nodes[i].name, ()):
            advice = say("differs", "advice")
            yield {"id": f"fingerprint-{difference.key}", "text": difference.text, "advice": advice}

    # --- findings ---

    def _findings(self, i: int) -> Iterator[Finding]:
        """All findings of a node, the most certain first."""
        node, rules = self.population.fleet.nodes[i], self.population.rules
        job = f"job{max(self.population.jobs(i), default=1)}"
        every = [self._measurable(i, limit) for limit in limits.outside(self.classes[i], self.rows[i], rules, job)]
        fields = [difference.key for difference in self.population.differing.get(node.name, ()) if not difference.hard]
        for shown in self.findings.get(i, ()):
            alike = tuple(name for name in self.shared.get(self._alike(i, shown), ()) if name != node.name)
            peers = self.sensors[self.population.group_of[i]]
            peer_names = [self.population.fleet.nodes[j].name for j in shown.matrix.nodes.tolist() if j != i]
            peer = peer_names[0] if len(peer_names) == 1 else ""
            finding = replace(findings.explained(shown, i, node, peers, fields), shared_by=alike, peer=peer)
            if finding.state is Certainty.CONFIRMED and not self._of_majority(i, shown):
                finding = replace(finding, state=Certainty.MISMATCH)
            every.append(finding)
        every += self._events(i)
        every += messages.of_node(self.fabrics, node.name)
        every += self.changed.get(node.name, ())
        if any(finding.state is Certainty.MISMATCH for finding in every):
            # with so few nodes nothing that is not confirmed says which of them is right
            every = [
                replace(finding, state=Certainty.MISMATCH)
                if finding.state is Certainty.SUSPECTED and finding.by_job
                else finding
                for finding in every
            ]
        for finding in every:
            yield replace(finding, waived=rules.waived(node.name, finding.id, self.day))

    def _of_majority(self, i: int, shown: TableFinding) -> bool:
        """Whether a majority of nodes contradicts a node in a component. False in a small group of a split fleet: the
        data cannot tell which node is right. In its other groups, the node must also be outside the tolerance of the
        center of all nodes."""
        group = self.population.groups[self.population.group_of[i]]
        if group.whole is None or len(group.nodes) < FEWEST:
            return group.whole is None
        component, series = shown.cause.head, shown.row
        effect = self.population.from_majority(group.whole, series.matrix)[i][component] * np.sign(shown.finding.effect)
        half = series.whole.pooled[[series.position]].half_of_job
        return bool(effect - half[0, component] > series.tolerance[component])

    def _measurable(self, i: int, finding: Finding) -> Finding:
        """A finding of a limit with the points of its median."""
        called = str(finding.component.where["figure"])
        places = figures.places(self.population.reduced, i, finding.measurement, called, finding.home)
        if places is None:
            return finding
        return replace(finding, expected=expected.of_median(*places, self.population.fleet.nodes[i]))

    @cached_property
    def sensors(self) -> list[xr.Dataset]:
        """The sensor readings of nodes, by group."""
        nodes = self.population.fleet.nodes
        return [
            peer_sensors.table({i: nodes[i].sensors for i in group.nodes.tolist()}) for group in self.population.groups
        ]

    def _events(self, i: int) -> Iterator[Finding]:
        """Findings of throttling, uncorrected memory errors and wrong results, which need no peers. A wrong bit needs
        no second job to confirm it."""
        for kind, by_job in quality.events(self.population.fleet.nodes[i]).items():
            count = float(max(by_job.values()))
            jobs = tuple(
                JobEffect(job, float(events), Interval(float(events), float(events)), {}, shows=True)
                for job, events in sorted(by_job.items())
            )
            wrong = kind == quality.WRONG_RESULT
            cpus = ",".join(map(str, quality.wrong_cpus(self.population.fleet.nodes[i]))) if wrong else ""
            yield Finding(
                id=kind,
                state=Certainty.CONFIRMED if wrong or len(by_job) > 1 else Certainty.SUSPECTED,
                measurement="",
                home=-1,
                component=Component(kind, kind, {"cpus": cpus} if cpus else {}),
                effect=count,
                effect_unit=count,
                interval=Interval(count, count),
                half_95=0.0,
                tolerance=0.0,
                tolerance_unit=0.0,
                times_tolerance=count,
                value=count,
                peers=0.0,
                unit="events",
                worse=True,
                by_job=jobs,
                remedy=kind,
            )

    # --- agreements ---

    def _agreements(self, i: int) -> tuple[Agreement, ...]:
        node, rules = self.population.fleet.nodes[i], self.population.rules
        by_time = {effect.metric for effect in self.over_time}
        if self.population.only_links:
            return self.links.get(node.name, ())
        return tuple(
            replace(agreement, remedy="time", needed=0)
            if agreement.remedy and agreement.metric in by_time
            else agreement
            for agreement in agreements.agreements(self._series_of(i), node, rules)
        )

    @cached_property
    def links(self) -> dict[str, tuple[Agreement, ...]]:
        """By node its agreements in the messages with all others, of a table of pairs."""
        return messages.agreements(self.population.fleet.fabrics, self.population.rules)

    def _series_of(self, i: int) -> Iterator[tuple[Deviations, int]]:
        """The series that a node is in, each with its position there."""
        for series in self.tables:
            position = series.matrix.place.get(i)
            if position is not None:
                yield series, position

    def _usual(self, i: int) -> list[str]:
        """The measurements that most nodes of its group have; of a node without a group none."""
        return self.usual_measurements[self.population.group_of[i]] if i in self.population.group_of else []

    @cached_property
    def usual_measurements(self) -> list[list[str]]:
        """By group the measurements that most of its nodes have."""
        out = []
        for group in self.population.groups:
            nodes = set(group.nodes.tolist())
            quantities = self.population.reduced
            out.append([q.measurement for q in quantities if len(nodes & q.rows.keys()) >= USUAL * len(nodes)])
        return out
