"""A fleet judged: its quantities reduced, its kinds evaluated, and what of each node is missing or invalid."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property

import msgspec
import numpy as np
from msgspec import structs

from nodeprint.fleet.homes import FAR
from nodeprint.judge import configuration, margins, populations, quality, reduction
from nodeprint.judge.acceptance import Acceptance
from nodeprint.judge.configuration import FieldDifference
from nodeprint.judge.evidence import Evidence, first_of
from nodeprint.judge.populations import Kind, NodeEvidence
from nodeprint.judge.reduction import Reduced
from nodeprint.packed import INVALID, PackedFleet, PackedNode


class JudgedFleet(msgspec.Struct, frozen=True, dict=True):
    """The nodes of a fleet, its `reduced` quantities, its kinds, the keys in which nodes differ from the majority by
    name, the number of tests made, and by node the `invalid` jobs with the reasons."""

    fleet: PackedFleet
    rules: Acceptance
    reduced: Sequence[Reduced]
    kinds: Sequence[Kind]
    differing: Mapping[str, Sequence[FieldDifference]]
    tests: int
    invalid: Sequence[Mapping[int, Sequence[str]]]

    @cached_property
    def populations(self) -> list[Kind]:
        """The kinds that are compared within."""
        return [kind for kind in self.kinds if kind.by_node]

    @cached_property
    def kind_of(self) -> dict[int, Kind]:
        """By number the kind of every node that is compared."""
        return {i: kind for kind in self.populations for i in kind.nodes.tolist()}

    def evidence(self, i: int) -> NodeEvidence:
        """What is known of a compared node."""
        return self.kind_of[i].by_node[i]

    def pairs(self, i: int) -> list[Evidence]:
        """The evidence of pairs that a compared node is in."""
        return self.kind_of[i].pairs

    def jobs(self, i: int) -> set[int]:
        """The jobs that a node has."""
        return {job for one in self.reduced for job in one.quantity.rows.get(i, ())}

    def newest(self, i: int) -> int:
        """The newest job of a node, 0 without any."""
        return max(self.jobs(i), default=0)

    def sittings(self, i: int) -> list[list[int]]:
        """The independent jobs of a node, by the measurement that has most."""
        return max((sittings.get(i, []) for sittings in self._sittings), key=len, default=[])

    @cached_property
    def _sittings(self) -> list[dict[int, list[list[int]]]]:
        """By quantity and node all independent jobs, also invalid ones, which `reduced` has no more."""
        return [reduction.sittings(one.quantity) for one in self.reduced]

    def invalid_sittings(self, i: int) -> int:
        """How many independent jobs of a node are invalid."""
        return sum(any(job in self.invalid[i] for job in part) for part in self.sittings(i))

    def measured(self, i: int) -> set[str]:
        """The measurements that a node has."""
        return {one.quantity.measurement for one in self.reduced if i in one.quantity.rows}

    @cached_property
    def _usual(self) -> dict[int, list[str]]:
        """By node the measurements that half of its kind's nodes have."""
        out: dict[int, list[str]] = {}
        for nodes in (kind.nodes.tolist() for kind in self.populations):
            counts = Counter(name for node in nodes for name in self.measured(node))
            out |= dict.fromkeys(nodes, sorted(name for name, count in counts.items() if 2 * count >= len(nodes)))
        return out

    def absent(self, i: int) -> list[str]:
        """Measurements that half of the nodes of its kind have, and node i has not, or not in all parts."""
        absent = [name for name in self._usual[i] if name not in self.measured(i)]
        return [*absent, *(f"complete {name}" for name in self.evidence(i).incomplete)]

    def quality(self, i: int) -> tuple[str, ...]:
        """What is wrong with the records of a node and with its newest job."""
        lacking = [name for name in self.rules.required if name not in self.measured(i)]
        absent = (f"{INVALID}{name} was not measured" for name in lacking)
        return (*self.fleet.nodes[i].quality, *absent, *self.invalid[i].get(self.newest(i), ()))

    @cached_property
    def began(self) -> str:
        """When the newest run began; empty where that is unknown."""
        return max((time for one in self.reduced for time in one.quantity.started), default="")


def judged(fleet: PackedFleet, rules: Acceptance) -> JudgedFleet:
    """Judge a fleet."""
    reduced = [reduction.reduce(one, rules) for one in fleet.quantities]
    fleet = replace(fleet, nodes=_with_homes(fleet.nodes, reduced))
    differing = configuration.differences([node for node in fleet.nodes if node.state == "measured"], rules)
    alike = configuration.groups(fleet.nodes, _layouts(reduced), differing)
    invalid = [_invalid(i, node, reduced, rules) for i, node in enumerate(fleet.nodes)]
    reduced = [structs.replace(one, sittings=_valid(one.sittings, invalid)) for one in reduced]
    kinds, tests = populations.kinds(alike, reduced, rules)
    return JudgedFleet(fleet, rules, reduced, kinds, differing, tests, invalid)


def _invalid(i: int, node: PackedNode, reduced: Sequence[Reduced], rules: Acceptance) -> dict[int, list[str]]:
    """The invalid jobs of a node, with the reasons."""
    jobs = {job for one in reduced for job in one.quantity.rows.get(i, ())}
    why = {job: quality.gaps(i, job, reduced, rules) + quality.invalid(node, job) for job in jobs}
    return {job: reasons for job, reasons in why.items() if reasons}


def _valid(
    sittings: Mapping[int, list[list[int]]], invalid: Sequence[Mapping[int, object]]
) -> dict[int, list[list[int]]]:
    """Independent jobs without invalid ones, which confirm and refute nothing; all of a node that has no other."""
    out = {}
    for node, parts in sittings.items():
        valid = [[job for job in part if job not in invalid[node]] for part in parts]
        out[node] = [part for part in valid if part] or parts
    return out


def _with_homes(nodes: Sequence[PackedNode], reduced: Sequence[Reduced]) -> tuple[PackedNode, ...]:
    """Nodes with the homes of the lines that their pairs were measured with, as a field of the fingerprint.

    The home decides a pair's latency, so that nodes measured with other homes are other configurations.
    """
    homes: dict[int, set[str]] = {}
    hops = [one for one in reduced if one.quantity.quantity == margins.HOP and one.quantity.of_pairs]
    nodes_of: dict[str, set[int]] = {}
    for one in hops:
        nodes_of.setdefault(one.quantity.measurement, set()).update(one.sittings)
    everyone = set().union(*nodes_of.values())
    # a measurement that a node lacks is no other home
    common = {name for name, mine in nodes_of.items() if mine == everyone} or set(nodes_of)
    for one in (one for one in hops if one.quantity.measurement in common):
        quantity = one.quantity
        near = "near" if FAR in quantity.homes else "not controlled"
        names = [near if home < 0 else "far" if home >= FAR else str(home) for home in quantity.homes]
        for node, sittings in one.sittings.items():
            rows = [row for job in first_of(sittings) for row in quantity.rows[node][job]]
            measured = [name for name, missing in zip(names, one.missing[rows].min(axis=0), strict=True) if missing < 1]
            if measured:
                homes.setdefault(node, set()).add(", ".join(measured))
    return tuple(
        replace(node, fingerprint={**node.fingerprint, "homes": " / ".join(sorted(homes[i]))}) if i in homes else node
        for i, node in enumerate(nodes)
    )


def _layouts(reduced: Sequence[Reduced]) -> dict[int, str]:
    """By node what its places look like; a node without pairs is like those that have its CPUs and NUMA nodes."""
    keys: dict[int, set[str]] = {}
    machines: dict[bytes, set[int]] = {}
    for one in (one.quantity for one in reduced):
        nodes = np.unique(one.node).tolist()
        if one.of_pairs:
            digest = hashlib.sha256(one.pair_layout.key).hexdigest()
            for node in nodes:
                keys.setdefault(node, set()).add(digest)
        else:
            machines.setdefault(one.layout.slots.tobytes() + one.layout.numa.tobytes(), set()).update(nodes)
    layouts = {node: " ".join(sorted(found)) for node, found in keys.items()}
    for machine, nodes in machines.items():
        known = Counter(layouts[node] for node in sorted(nodes) if node in layouts)
        common = known.most_common(1)[0][0] if known else hashlib.sha256(machine).hexdigest()
        layouts |= {node: common for node in nodes if node not in layouts}
    return layouts
