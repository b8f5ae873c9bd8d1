"""The method, in the order of docs/method/verdict.md: from the measurements of a fleet to its verdict."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property

import msgspec
import xarray as xr

from nodeprint import __version__
from nodeprint.data.job.fabric import Fabrics
from nodeprint.data.store.packed import PackedFleet
from nodeprint.judge import acceptance, alone, confirmation, deviations, measuring_time, messages, table
from nodeprint.judge import fleet as fleet_verdict
from nodeprint.judge.acceptance_file import Acceptance
from nodeprint.judge.baseline import Since
from nodeprint.judge.confirmation import PooledNodes, Series, Standing
from nodeprint.judge.deviations import Levels
from nodeprint.judge.findings import Shown, merged, of_series
from nodeprint.judge.nodes import Reading
from nodeprint.judge.population import Population
from nodeprint.judge.renumbered import exchange
from nodeprint.judge.table import Rows, Table
from nodeprint.judge.verdict import Verdict

#: The chance that in a family of parts any node within its bounds is suspected. It costs a second job, which alone
#: decides how often such a node DEVIATES.
SUSPECT = 0.05


class Judged(msgspec.Struct, frozen=True, dict=True):
    """A fleet judged: its verdict, and what it was read off."""

    reading: Reading
    confirming: float
    verdict: Verdict
    alone: Sequence[Series]

    @property
    def population(self) -> Population:
        """Who is compared with whom."""
        return self.reading.population

    @property
    def series(self) -> Sequence[Series]:
        """The blocks of every measurement, home and group."""
        return self.reading.series

    @property
    def pooled(self) -> Sequence[PooledNodes]:
        """By series the differences from all jobs that count."""
        return self.reading.pooled

    @property
    def shown(self) -> Mapping[int, Sequence[Shown]]:
        """By node its causes."""
        return self.reading.shown

    @property
    def table(self) -> Table:
        """The table of all differences, with the values of nodes that are compared with none; its attributes name the
        campaign and say if it is simulated."""
        fleet = self.population.fleet
        attributes = {"campaign": fleet.campaign, "simulated": int(fleet.simulated)}
        group_of = self.population.group_of
        series = (*self.series, *self.alone)
        pooled = (*self.pooled, *map(PooledNodes, self.alone))
        return table.table(Rows(series, pooled, fleet.nodes, group_of, self.confirming, attributes))

    @cached_property
    def deviations(self) -> xr.Dataset:
        """All of the table."""
        return self.table.whole()


def judge(
    fleet: PackedFleet,
    rules: Acceptance | None = None,
    *,
    planned: Sequence[str] = (),
    fabrics: Fabrics | None = None,
    since: Since | None = None,
) -> Judged:
    """Judge a fleet by `rules` (the defaults where there are none).

    `planned` are the measurements that each node was to have, `fabrics` what was measured between nodes, `since` what
    changed since a baseline. Writes nothing.
    """
    rules = acceptance.of_metrics(rules or acceptance.load(), fleet)
    # 1. A run is the unit of evidence: one value for each run and part, and who is compared with whom.
    population = Population.of(fleet, rules, planned)
    # 2. What goes with the time of measuring is no difference of nodes. A fleet without a majority has no centre: each
    #    group of it is compared within itself.
    over_time = measuring_time.effects(population)
    population = population.split()
    # 3. One table: difference from the peers, its error, two intervals and the bound.
    levels = Levels(SUSPECT, rules.false_alarm, population.compared)
    series = tuple(_series(population, levels))
    # 4. Inside the bound, outside it, or undecided; what one job shows an independent one has to confirm.
    confirming = confirmation.confirming_tail(series, levels.confirm)
    standings: dict[int, dict[int, Standing]] = {}
    pooled = [PooledNodes(measurement) for measurement in series]
    for number, measurement in enumerate(series):
        for i in measurement.matrix.nodes.tolist():
            standing = confirmation.standing(measurement, i, confirming)
            if standing is not None:
                standings.setdefault(i, {})[number] = standing
    # 5. The coarsest part that explains the others is the finding.
    shown = {
        i: merged(
            [
                finding
                for number, standing in by_series.items()
                for finding in of_series(series[number], standing, i, population.fleet.nodes[i])
            ]
        )
        for i, by_series in standings.items()
    }
    #    An exchange of parts that explains an imported matrix is said in place of it.
    imported = [i for i, of_node in shown.items() if of_node and population.fleet.nodes[i].imported]
    exchanged = {i: parts_exchanged for i in imported if (parts_exchanged := exchange(series, i)) is not None}
    shown |= {i: [] for i in exchanged}
    # 6. Messages between nodes are judged by the same intervals.
    between = messages.judge_all(fabrics or Fabrics(), rules, levels)
    # 7. Outcomes are read off what is there.
    reading = Reading(population, series, standings, pooled, shown, between, since, over_time, exchanged)
    result = fleet_verdict.verdict(reading, {"nodeprint": __version__})
    return Judged(reading, confirming, result, alone.series(population, levels))


def _series(population: Population, levels: Levels) -> Sequence[Series]:
    """The blocks of every measurement, home and group."""
    out = []
    for group in population.groups:
        for reduced, number, matrix in population.matrices(group.nodes):
            first = deviations.first_jobs(matrix, population.rules, levels)
            later = deviations.later_jobs(first, reduced, number, population.rules, levels)
            out.append(Series(deviations.with_jobs((first, *later))))
    return out
