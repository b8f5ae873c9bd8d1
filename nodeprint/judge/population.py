"""Peer groups: the measured nodes of a campaign by configuration, without invalid jobs. A split fleet has several
groups."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property

import msgspec
import numpy as np
import numpy.typing as npt

from nodeprint.data.places.layout import Ints
from nodeprint.data.places.measured import Measured
from nodeprint.data.store.packed import PackedFleet, PackedNode
from nodeprint.judge import configuration, disagreements, groups, quality, reduction, tolerances
from nodeprint.judge.acceptance_file import Acceptance
from nodeprint.judge.agreements import metric
from nodeprint.judge.groups import PeerGroup
from nodeprint.judge.odd_runs import odd_runs
from nodeprint.judge.reduction import Matrix
from nodeprint.judge.terms import Terms
from nodeprint.judge.verdict import Disturbance
from nodeprint.machine.fingerprint import FieldDifference
from nodeprint.stats.peers import MAJORITY

Floats = npt.NDArray[np.float64]


class Population(msgspec.Struct, frozen=True, dict=True):
    """A fleet with its measurements as they are judged, `reduced`, and the `terms` of each.

    `configurations` are nodes that are meant to be the same, the largest first; `groups` those that are compared with
    each other. `differing` are the fields in which nodes differ from the majority, by name, `disturbed` by node and job
    why the job is invalid. `planned` are the measurements that each node was to have.
    """

    fleet: PackedFleet
    rules: Acceptance
    planned: tuple[str, ...]
    reduced: tuple[Measured, ...]
    terms: tuple[Terms, ...]
    configurations: tuple[Ints, ...]
    groups: tuple[PeerGroup, ...]
    differing: Mapping[str, Sequence[FieldDifference]]
    disturbed: tuple[Mapping[int, Sequence[Disturbance]], ...]

    @classmethod
    def of(cls, fleet: PackedFleet, rules: Acceptance, planned: Sequence[str]) -> Population:
        """The population of a fleet, each configuration one group."""
        reduced = [reduction.reduce(quantity, fleet.nodes) for quantity in fleet.quantities]
        fleet = replace(fleet, nodes=configuration.with_homes(fleet.nodes, reduced))
        differing = configuration.differences([node for node in fleet.nodes if node.state == "measured"], rules)
        alike = configuration.groups(fleet.nodes, configuration.layouts(reduced), differing)
        odd = [odd_runs(of, tolerances.of_whole(of, rules)) if metric(of) in rules.criteria else {} for of in reduced]
        by_itself = [_disturbed(node, i, reduced, odd, rules) for i, node in enumerate(fleet.nodes)]
        disturbed = _moved(fleet.nodes, alike, reduced, rules, by_itself)
        valid = tuple(measurement.valid(disturbed) for measurement in reduced)
        usable = [
            np.array([i for i in nodes.tolist() if _usable(i, fleet, reduced, disturbed)], dtype=np.int64)
            for nodes in alike
        ]
        return cls(
            fleet,
            rules,
            tuple(planned),
            valid,
            tuple(reduction.terms_of(measurement, rules) for measurement in valid),
            tuple(alike),
            tuple(PeerGroup(nodes) for nodes in usable if len(nodes) > 1),
            differing,
            disturbed,
        )

    def split(self) -> Population:
        """The population with the split groups of machines and configurations without a majority."""
        parted: list[PeerGroup] = []
        for configurations in self._machines():
            nodes = np.concatenate(configurations)
            made = self.matrices(nodes)
            if len(configurations) == 1 and all(groups.has_references(matrix, self.rules) for matrix in made):
                made = []  # a majority is alike in everything, which components nobody
            parted += groups.split(configurations, made, self.rules)
        if all(group.cut is None for group in parted):
            return self  # with the matrices that it has
        return msgspec.structs.replace(self, groups=tuple(parted))

    @cached_property
    def gap(self) -> PeerGroup | None:
        """Nodes that are within every tolerance but clearly separated from the others of their group: those with the
        largest gap of all groups. None without any."""
        gaps = (groups.gap(group.nodes, self.matrices(group.nodes), self.rules) for group in self.groups)
        share = [(abs(of.cut.effect) / of.cut.tolerance, of) for of in gaps if of is not None and of.cut is not None]
        return max(share, key=lambda entry: entry[0])[1] if share else None

    def from_majority(self, whole: Ints, matrix: Matrix) -> Mapping[int, Floats]:
        """Difference of each node of a split fleet (`whole` has all its nodes) from the center of all. An array over
        the components of `matrix`, 0 if no majority agrees in a component."""
        key = whole.tobytes(), matrix.name, matrix.home
        if key not in self._differences:
            same = (of for of in self.matrices(whole) if of.measured is matrix.measured and of.home == matrix.home)
            of_all = next(same)
            rows = groups.from_majority(of_all, self.rules)
            self._differences[key] = dict(zip(of_all.nodes.tolist(), rows, strict=True))
        return self._differences[key]

    @cached_property
    def _differences(self) -> dict[tuple[bytes, str, int], Mapping[int, Floats]]:
        return {}

    def _machines(self) -> list[list[Ints]]:
        """Configurations of one machine that have no majority among them; every other by itself."""
        layouts = configuration.layouts(self.reduced)
        machines: dict[tuple[str, ...], list[Ints]] = {}
        for group in self.groups:
            first = int(group.nodes[0])
            processor = configuration.processor(self.fleet.nodes[first], self.rules)
            machines.setdefault((layouts.get(first, ""), *processor), []).append(group.nodes)
        out = []
        for of_it in machines.values():
            majority = len(of_it[0]) >= MAJORITY * sum(map(len, of_it))
            out += [[configuration] for configuration in of_it] if majority else [of_it]
        return out

    def matrices(self, nodes: Ints) -> list[Matrix]:
        """A matrix of all jobs of `nodes` for each measurement and home that two or more of them have. Cached: it is
        most of the work in a large fleet."""
        key = nodes.tobytes()
        if key not in self._made:
            self._made[key] = [matrix for matrix in self.each_matrix(nodes) if len(matrix.nodes) > 1]
        return self._made[key]

    @cached_property
    def _made(self) -> dict[bytes, list[Matrix]]:
        return {}

    def each_matrix(self, nodes: Ints) -> Iterator[Matrix]:
        """A matrix of `nodes` for each measurement and home with values to compare."""
        for measured, terms in zip(self.reduced, self.terms, strict=True):
            for home in reduction.homes(measured) if terms.terms else ():
                made = reduction.matrix(measured, home, terms, nodes)
                if made is not None and np.isfinite(made.values).any():
                    yield made

    @cached_property
    def lone(self) -> bool:
        """Whether a single node was measured."""
        return sum(node.state == "measured" for node in self.fleet.nodes) == 1

    @property
    def only_links(self) -> bool:
        """Whether all values are of pairs of nodes."""
        return bool(self.fleet.fabrics) and not self.fleet.quantities

    @cached_property
    def compared(self) -> int:
        """How many nodes are compared with others."""
        return sum(len(group.nodes) for group in self.groups)

    @cached_property
    def compared_jobs(self) -> int:
        """Number of independent jobs of the compared nodes, each by its measurement with the most jobs."""
        nodes = [i for group in self.groups for i in group.nodes.tolist()]
        return sum(max((len(of.independent_jobs.get(i, ())) for of in self.reduced), default=1) or 1 for i in nodes)

    @cached_property
    def tests(self) -> int:
        """How many components of nodes are compared, over all measurements and groups."""
        matrices = (matrix for group in self.groups for matrix in self.matrices(group.nodes))
        return sum(len(matrix.nodes) * len(matrix.terms.terms) for matrix in matrices)

    @cached_property
    def group_of(self) -> dict[int, int]:
        """By node the number of its group."""
        return {i: number for number, group in enumerate(self.groups) for i in group.nodes.tolist()}

    @cached_property
    def configuration_of(self) -> dict[int, Ints]:
        """By node the nodes of its configuration, itself among them."""
        return {i: nodes for nodes in self.configurations for i in nodes.tolist()}

    @cached_property
    def split_nodes(self) -> frozenset[int]:
        """The nodes of groups without a majority."""
        cuts = [group.cut for group in self.groups if group.cut is not None]
        away = [group.nodes for group in self.groups if group.cut is not None]
        return frozenset(int(i) for nodes in (*away, *(cut.first for cut in cuts)) for i in nodes)

    def jobs(self, i: int) -> list[int]:
        """The jobs of a node."""
        return sorted({job for measurement in self.reduced for job in measurement.rows.get(i, ())})

    def measured(self, i: int) -> set[str]:
        """The measurements that a node has."""
        return {measurement.measurement for measurement in self.reduced if i in measurement.rows}

    def runs(self, i: int) -> int:
        """Number of runs in the newest job of a node, of the measurement with the most runs."""
        return max((len(measurement.newest_rows.get(i, ())) for measurement in self.reduced), default=0)

    def newest(self, i: int) -> str:
        """When a node's newest run began; empty if unknown."""
        return max(
            (q.started[row] for q in self.reduced for rows in q.rows.get(i, {}).values() for row in rows), default=""
        )

    def hours(self, i: int) -> float:
        """When a node's newest job began, in hours since 1970; NaN if unknown."""
        moments = [
            reduction.moment(measurement.started[row])
            for measurement in self.reduced
            for row in measurement.newest_rows.get(i, ())
        ]
        return min((moment.timestamp() / 3600 for moment in moments if moment is not None), default=float("nan"))

    @cached_property
    def began(self) -> str:
        """When the newest run began; empty if unknown."""
        return max((time for measurement in self.reduced for time in measurement.started), default="")


def _disturbed(
    node: PackedNode, i: int, reduced: Sequence[Measured], odd: Sequence[Mapping[int, float]], rules: Acceptance
) -> dict[int, Sequence[Disturbance]]:
    """The disturbances of invalid jobs, by job. All jobs are invalid if they are of different CPUs."""
    jobs = sorted({job for measurement in reduced for job in measurement.rows.get(i, ())})
    of_jobs = {job: quality.of_job(node, i, job, reduced, odd, rules) for job in jobs}
    moved = [disturbance for disturbance in disagreements.of_jobs(node, i, reduced, rules) if disturbance.invalid]
    return {job: [*why, *moved] for job, why in of_jobs.items() if why or moved}


def _moved(
    nodes: Sequence[PackedNode],
    alike: Sequence[Ints],
    reduced: Sequence[Measured],
    rules: Acceptance,
    disturbed: Sequence[Mapping[int, Sequence[Disturbance]]],
) -> tuple[Mapping[int, Sequence[Disturbance]], ...]:
    """`disturbed` plus the virtual machines of a configuration with a migrated one, if their pairs differ from each
    other as much. A host that migrates CPUs causes differences between nodes as it does between runs."""
    out = list(disturbed)
    for of_it in alike:
        virtual = [i for i in of_it.tolist() if nodes[i].fingerprint.get("virtual")]
        moved = [i for i in virtual if any(why.kind == "cpus-moved" for job in disturbed[i].values() for why in job)]
        if not moved:
            continue
        still = [i for i in virtual if i not in moved]
        for i, why in disagreements.between_nodes(nodes, still, reduced, rules).items():
            jobs = {job for measurement in reduced for job in measurement.rows.get(i, ())}
            out[i] = {job: [*disturbed[i].get(job, ()), why] for job in sorted(jobs)}
    return tuple(out)


def _usable(i: int, fleet: PackedFleet, reduced: Sequence[Measured], disturbed: Sequence[Mapping[int, object]]) -> bool:
    """Whether a node has a job that can be compared."""
    jobs = {job for measurement in reduced for job in measurement.rows.get(i, ())}
    return not fleet.nodes[i].unusable and bool(jobs - set(disturbed[i]))
