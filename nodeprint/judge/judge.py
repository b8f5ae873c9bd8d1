"""The method, in the order of docs/method/verdict.md: from the measurements of a fleet to its verdict."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property

import msgspec
import xarray as xr

from nodeprint import __version__
from nodeprint.data.job.fabric_times import Fabric
from nodeprint.data.store.packed import PackedFleet
from nodeprint.judge import acceptance, alone, deviations, epochs, groups, measuring_time, messages
from nodeprint.judge import fleet as fleet_verdict
from nodeprint.judge.acceptance_file import Acceptance
from nodeprint.judge.deviations import Deviations
from nodeprint.judge.findings import TableFinding, merged, of_row
from nodeprint.judge.groups import PeerGroup
from nodeprint.judge.nodes import Reading
from nodeprint.judge.population import Population
from nodeprint.judge.renumbered import exchange
from nodeprint.judge.standing import outliers
from nodeprint.judge.table import Values, blocks, labels, whole
from nodeprint.judge.verdict import Finding, Note, Verdict


class Judged(msgspec.Struct, frozen=True, dict=True):
    """A judged fleet: its verdict and the evidence for it."""

    reading: Reading
    verdict: Verdict
    alone: Sequence[Deviations]

    @property
    def population(self) -> Population:
        """The peer groups of the fleet."""
        return self.reading.population

    @property
    def tables(self) -> Sequence[Deviations]:
        """Every measurement at one home, by group."""
        return self.reading.tables

    @property
    def findings(self) -> Mapping[int, Sequence[TableFinding]]:
        """The findings of the tables, by node."""
        return self.reading.findings

    @property
    def labels(self) -> xr.Dataset:
        """The coordinates of the complete table, including nodes without peers. Attributes hold the campaign's name and
        whether it is simulated."""
        fleet = self.population.fleet
        coordinates = labels((*self.tables, *self.alone), fleet.nodes, self.population.group_of)
        return coordinates.assign_attrs(campaign=fleet.campaign, simulated=int(fleet.simulated))

    @property
    def blocks(self) -> Iterable[Values]:
        """The values of that table, so many nodes at a time."""
        return blocks((*self.tables, *self.alone))

    @cached_property
    def deviations(self) -> xr.Dataset:
        """The complete table."""
        return whole(self.labels, self.blocks)


def judge(
    fleet: PackedFleet,
    rules: Acceptance | None = None,
    *,
    planned: Sequence[str] = (),
    fabrics: Sequence[Fabric] = (),
    changed: Mapping[str, Sequence[Finding]] | None = None,
    notes: Sequence[Note] = (),
) -> Judged:
    """Judge a fleet by `rules` (None: the defaults).

    `planned` are the measurements that each node was to have, and `fabrics` those between nodes. `changed` are the
    changes since a baseline, by name of a node. The verdict includes the `notes`. Writes nothing.
    """
    rules = acceptance.of_metrics(rules or acceptance.load(), fleet)
    # 1. A run is the independent replicate: one value for each run and component, of the jobs of the node as it is now,
    #    and the groups of nodes that are compared.
    fleet, former = epochs.current(fleet, rules)
    population = Population.of(fleet, rules, planned)
    # 2. A trend with the time of measurement is not a difference between nodes. A fleet without a majority has no
    #    center: each group is compared within itself.
    over_time = measuring_time.effects(population)
    population = population.split()
    # 3. One table: difference from the peers, its error, two intervals and the tolerance, of each job and of all
    #    together. If more than a third of the nodes share a difference, the data cannot tell who is right: these are
    #    groups, too.
    tables = _tables(population, rules)
    parted = [groups.sharing(group, of_group, rules) for group, of_group in tables]
    if any(len(of_group) > 1 for of_group in parted):
        population = msgspec.structs.replace(
            population, groups=tuple(group for component in parted for group in component)
        )
        tables = _tables(population, rules)
    every = tuple(table for _, of_group in tables for table in of_group)
    # 4. In how many of its jobs a node is outside the tolerance of a component.
    # 5. The coarsest component that explains the others is the finding.
    found: dict[int, list[TableFinding]] = {}
    for table in every:
        for i, row in outliers(table).items():
            found.setdefault(i, []).extend(of_row(row, population.fleet.nodes[i]))
    merged_of = {i: merged(of_node) for i, of_node in found.items()}
    #    If an exchange of components explains an imported matrix, it replaces the findings.
    imported = [i for i, of_node in merged_of.items() if of_node and population.fleet.nodes[i].imported]
    exchanged = {i: components_exchanged for i in imported if (components_exchanged := exchange(every, i)) is not None}
    merged_of |= {i: [] for i in exchanged}
    # 6. Messages between nodes are judged by the same intervals.
    between = messages.judge_all((*fleet.fabrics, *fabrics), rules)
    # 7. The outcomes follow from this evidence.
    reading = Reading(population, every, merged_of, between, changed or {}, over_time, exchanged, former, tuple(notes))
    result = fleet_verdict.verdict(reading, {"nodeprint": __version__})
    return Judged(reading, result, alone.tables(population))


def _tables(population: Population, rules: Acceptance) -> list[tuple[PeerGroup, list[Deviations]]]:
    """The table of every measurement at one home, by group."""
    jobs, tests = population.compared_jobs, population.tests
    return [
        (group, [deviations.deviations(matrix, rules, jobs, tests) for matrix in population.matrices(group.nodes)])
        for group in population.groups
    ]
