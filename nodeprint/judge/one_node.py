"""One node against a fleet that was judged: its records alone are read, and its peers are those of peers.msgpack."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from nodeprint.data import packing, store
from nodeprint.data.fabric import read as read_fabrics
from nodeprint.data.packed import PackedFleet, PackedNode
from nodeprint.data.quantity import Quantity, models
from nodeprint.data.senses import PeerSenses
from nodeprint.judge import acceptance as accepted
from nodeprint.judge import campaign as whole
from nodeprint.judge import configuration, confirmation, deviations, messages, peers_file
from nodeprint.judge.acceptance_file import Acceptance
from nodeprint.judge.confirmation import PooledNodes, Series
from nodeprint.judge.deviations import Block, Levels, Template
from nodeprint.judge.findings import merged, of_series
from nodeprint.judge.groups import PeerGroup
from nodeprint.judge.judge import SUSPECT
from nodeprint.judge.nodes import Reading
from nodeprint.judge.peers_file import KeptBlock, KeptGroup, KeptPeers, KeptQuantity, KeptSeries
from nodeprint.judge.population import Population
from nodeprint.judge.reduction import Matrix, Reduced, first_of, of_jobs
from nodeprint.judge.verdict import CellFigure, NodeVerdict
from nodeprint.settings.config import planned
from nodeprint.stats.runs import RunSpread

#: In place of the peers: nodes with the fields that most of them have. Two, as of two nodes that differ none is right.
_PEERS = (1, 2)


class OneNode(msgspec.Struct, frozen=True):
    """The verdict of a node, and of how many nodes the peers are that it was judged against; 0 where the whole
    campaign was judged."""

    verdict: NodeVerdict
    peers: int
    simulated: bool


def judge(campaign: Path, name: str) -> OneNode:
    """Judge a node of a campaign against the peers of the newest verdict; where they do not do (there is no verdict,
    it is by another acceptance, the node is of no group of many nodes, the fleet is split) judge the whole campaign.

    Raises NodeprintError when there is no such campaign or node.
    """
    fleet = packing.one_node(campaign, name)
    kept = peers_file.read(store.base(campaign), accepted.name(accepted.kept(campaign)))
    verdict = _against(campaign, fleet, kept) if kept is not None else None
    if kept is not None and verdict is not None:
        return OneNode(verdict, kept.nodes, kept.simulated)
    judged = whole.judge(campaign).verdict
    return OneNode(judged.nodes[name], 0, judged.simulated)


def _against(campaign: Path, fleet: PackedFleet, kept: KeptPeers) -> NodeVerdict | None:
    """The verdict of a node against the peers that are kept; None where it has none among them."""
    rules = accepted.load(accepted.kept(campaign))
    if fleet.nodes[0].state != "measured" or fleet.simulated != kept.simulated:
        return None
    fleet = _beside_peers(fleet, kept)
    wanted = [measurement for measurement in planned(campaign) if measurement in models()]
    population = Population.of(fleet, rules, wanted)
    group = _group_of(population, kept)
    if group is None or set(population.jobs(0)) <= set(population.disturbed[0]):
        return None
    compared = np.array([0, *_PEERS])
    population = msgspec.structs.replace(population, groups=(PeerGroup(compared),), configurations=(compared,))
    every = [(of_peers, _series(of_peers, population, kept)) for of_peers in group.series]
    series = tuple(of for _, of in every if of is not None)
    usual = tuple(of_peers.usual for of_peers, of in every if of is not None)
    standings = {
        number: standing
        for number, of in enumerate(series)
        if (standing := confirmation.standing(of, 0, kept.confirming)) is not None
    }
    node = population.fleet.nodes[0]
    shown = merged([
        finding for number, standing in standings.items() for finding in of_series(series[number], standing, 0, node)
    ])  # fmt: skip
    levels = Levels(SUSPECT, rules.false_alarm, kept.nodes)
    between = messages.judge_all(read_fabrics(campaign), rules, levels)
    reading = _OfOne(
        population, series, {0: standings}, [PooledNodes(of) for of in series], {0: shown}, between, None, (), group,
        kept.day, usual,
    )  # fmt: skip
    return reading.node(0, group.letter)


def _beside_peers(fleet: PackedFleet, kept: KeptPeers) -> PackedFleet:
    """The node and, in place of its peers, nodes without measurements; its quantities at the places of the fleet's."""
    peers = tuple(PackedNode(f"peers {number}", fingerprint=kept.majority) for number in _PEERS)
    quantities = tuple(_at_places(quantity, kept) for quantity in fleet.quantities)
    return replace(fleet, nodes=(*fleet.nodes, *peers), quantities=quantities)


def _kept_quantity(quantity: Quantity, kept: KeptPeers) -> KeptQuantity | None:
    return next((of for of in kept.quantities if _alike(of, quantity)), None)


def _alike(kept: KeptQuantity, quantity: Quantity) -> bool:
    named = all(
        getattr(kept, key) == getattr(quantity, key) for key in ("measurement", "operation", "quantity", "unit")
    )
    return named and tuple(kept.places) == quantity.dims and kept.layout.key == quantity.layout.key


def _at_places(quantity: Quantity, kept: KeptPeers) -> Quantity:
    """A quantity with the places that it has in the fleet, NaN where the node has none; itself where the fleet has no
    such quantity."""
    of = _kept_quantity(quantity, kept)
    if of is None:
        return quantity
    fleets = replace(quantity, places=of.places, names=of.names)
    count = len(next(iter(of.places.values())))
    own = {tuple(quantity.place(number).values()): number for number in range(quantity.size)}
    at = np.array([own.get(tuple(fleets.place(number).values()), -1) for number in range(count)])
    values = np.where(at < 0, np.float32(np.nan), np.asarray(quantity.values)[:, :, at])
    return replace(fleets, values=values, tick_ns=of.tick_ns)


def _group_of(population: Population, kept: KeptPeers) -> KeptGroup | None:
    """The group of the fleet that the node is of."""
    layout = configuration.layouts(population.reduced).get(0, "")
    differing = population.differing.get(population.fleet.nodes[0].name, ())
    hard = tuple(difference.identity for difference in differing if difference.hard)
    return next((group for group in kept.groups if (group.layout, group.hard) == (layout, hard)), None)


def _series(kept: KeptSeries, population: Population, peers: KeptPeers) -> Series | None:
    """The blocks of the node's first, second, ... jobs; None where it does not have the measurement."""
    of = peers.quantities[kept.quantity]
    reduced = next((one for one in population.reduced if _alike(of, one.quantity)), None)
    sittings = reduced.sittings.get(0) if reduced is not None else None
    if reduced is None or not sittings:
        return None
    blocks = []
    for job, of_job in enumerate(sittings):
        matrix = _matrix(reduced, kept, first_of(sittings) if job == 0 else of_job[-1:])
        if matrix is not None:
            blocks.append(_block(kept, matrix, job, population.rules))
    return Series(tuple(blocks)) if blocks else None


def _matrix(reduced: Reduced, kept: KeptSeries, jobs: list[int]) -> Matrix | None:
    matrix = of_jobs(reduced, kept.part, np.array([0]), {0: jobs}, kept.template)
    return matrix if matrix is not None and np.isfinite(matrix.values).any() else None


def _block(kept: KeptSeries, matrix: Matrix, job: int, rules: Acceptance) -> Block:
    """A job of the node against the same job of the peers. Where none of them has such a one it is compared with their
    first, of which it is not known how a further job would have moved it."""
    peers = kept.blocks[min(job, len(kept.blocks) - 1)]
    moved: float | npt.NDArray[np.float64] = 0.0
    if job >= len(kept.blocks):
        runs = np.isfinite(matrix.values).sum(axis=1).max(initial=1)
        moved = 2 * (peers.run_pooled / runs + deviations.priors(matrix, rules).job ** 2)
    block = _of_kind(peers, 0, matrix, job, rules, moved)
    if block.outside.any():  # then it is no peer of others
        block = _of_kind(peers, len(peers.peers) - 1, matrix, job, rules, moved)
    return block


def _of_kind(
    peers: KeptBlock, kind: int, matrix: Matrix, job: int, rules: Acceptance, moved: float | npt.NDArray[np.float64]
) -> Block:
    template = Template(
        np.zeros(1, dtype=np.int64), peers.centre[None], peers.between[[kind]], peers.variance[[kind]] + moved,
        peers.degrees[[kind]],
    )  # fmt: skip
    spread = RunSpread(peers.run_pooled, peers.run_degrees, np.ones((1, len(peers.centre))), peers.run_ratio_to)
    count = float(peers.peers[kind])
    return deviations.of_peers(matrix, job, rules, spread, template, count, peers.tail, peers.nodes, peers.centred)


class _OfOne(Reading, frozen=True, dict=True):
    """What the outcome of a node is read off, with what is kept of its `group`."""

    group: KeptGroup
    kept_day: str
    usual: tuple[npt.NDArray[np.bool_], ...]

    @cached_property
    def day(self) -> str:
        """The day of the newest run of all."""
        return max(self.kept_day, self.population.began[:10])

    @cached_property
    def rows(self) -> list[list[CellFigure]]:
        """The node's rows, with the medians of its group."""
        medians = {(measurement, row): median for measurement, row, median in self.group.rows}
        own, *others = super().rows
        return [
            [msgspec.structs.replace(row, group=medians.get((row.measurement, row.name), float("nan"))) for row in own],
            *others,
        ]

    @cached_property
    def shared(self) -> dict[tuple[int, str, bool], tuple[str, ...]]:
        """The peers that have the same finding."""
        return {(0, part, side): names for part, side, names in self.group.shared}

    @cached_property
    def senses(self) -> list[PeerSenses]:
        """What the node's instruments said, and what those of its peers usually do."""
        group = self.group
        usual: dict[str, Any] = {
            "clock_ghz": [None if np.isnan(clock) else clock for clock in group.clock_ghz.tolist()]
        }
        if np.isfinite(group.temperature_c):
            usual["temperature_c"] = group.temperature_c
        own = self.population.fleet.nodes[0].senses
        return [PeerSenses({0: own, 1: usual})]

    @cached_property
    def usual_parts(self) -> list[npt.NDArray[np.bool_]]:
        """By series the parts that most peers have."""
        return list(self.usual)

    @cached_property
    def usual_measurements(self) -> list[list[str]]:
        """The measurements that most peers have."""
        return [list(self.group.usual)]
