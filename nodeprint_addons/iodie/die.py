"""What is found of the lines at home in one socket: clusters, sites, geometry and costs, of all runs or of one."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np
from scipy.special import stdtrit

from nodeprint.machine.topology.model import Topology
from nodeprint.settings.texts import say
from nodeprint.structure.matrix_arithmetic import rand_index
from nodeprint_addons.iodie import data, geometry, hashing, line_clusters, paths, sites
from nodeprint_addons.iodie.data import Bools, DieFrame, Floats, Ints, LineLatencies, Lines, Tensor
from nodeprint_addons.iodie.geometry import Distances, Geometry
from nodeprint_addons.iodie.hashing import Rule
from nodeprint_addons.iodie.line_clusters import ClusterAgreement, LineClusters
from nodeprint_addons.iodie.paths import CoreCycles, Fit, RemoteEnds
from nodeprint_addons.iodie.sites import Sites

#: An end stands apart where its interval does, by so much, and by more than a healthy die shows with this probability.
_APART_NS, _FALSE = 2.0, 0.01


class Link(msgspec.Struct, frozen=True):
    """The link to another socket: what it adds to a hop, with the ways to it on both dies, and half of the interval."""

    socket: int
    ns: float
    half: float


class Die(msgspec.Struct, frozen=True):
    """What was found of the lines at home in one socket, or in one of its NUMA nodes (`homes`).

    `no_map` says why there is no map of sites; `no_geometry` why none of the known geometries is named. `counted` has
    the cluster of each line by which shares are counted: of the lines of the census, which are drawn from all of the
    pool, where its clusters are those of hops. `agrees` says whether the sites are the labeled quadrants, as
    adjusted Rand index, None where either is unknown.
    """

    frame: DieFrame
    homes: tuple[int, ...]
    clusters: LineClusters
    census: LineClusters | None
    agreement: ClusterAgreement | None
    rules: tuple[Rule, ...]
    sites: Sites | None
    no_map: str
    fit: Fit
    far: RemoteEnds | None
    distances: Distances | None
    geometry: Geometry | None
    no_geometry: str
    counted: Ints
    agrees: float | None
    core: CoreCycles | None
    links: tuple[Link, ...] = ()

    @property
    def end_ns(self) -> tuple[Ints, Floats, Floats, Floats]:
        """Of the ends in the socket: their numbers, cost, half of its interval, and by how many standard deviations of
        the others it is above their mean."""
        position_of = self.fit.positions("end")
        own = np.flatnonzero(self.frame.here)
        index = [position_of[(int(end),)] for end in own]
        ns = self.fit.value[index]
        half = np.array([self.fit.half(i) for i in index])
        return self.frame.ends[own], ns, half, above_others(ns)

    def share(self, site: int) -> tuple[float, float]:
        """The share of lines at a site with half of its 95 % interval; NaN without lines."""
        in_cluster = self.counted >= 0
        if self.sites is None or not in_cluster.any():
            return float("nan"), float("nan")
        share = float((self.sites.of_cluster[self.counted[in_cluster]] == site).mean())
        return share, 1.96 * float(np.sqrt(share * (1 - share) / in_cluster.sum()))

    @property
    def odd_ends(self) -> list[tuple[int, float]]:
        """Ends whose own part is much longer than that of the others, and by how much, ns."""
        ends, ns, half, _ = self.end_ns
        beyond, odd = ns - np.median(ns), stands_apart(ns, half)
        return [(int(end), float(by)) for end, by, is_odd in zip(ends, beyond, odd, strict=True) if is_odd]


def above_others(values: Floats) -> Floats:
    """By how many standard deviations of the others each value is above their mean, for its own scatter, too."""
    rests = [np.delete(values, i) for i in range(len(values))]
    scale = np.array([max(float(rest.std(ddof=1)), 1e-9) for rest in rests]) * np.sqrt(1 + 1 / (len(values) - 1))
    return np.asarray((values - [rest.mean() for rest in rests]) / scale)


def stands_apart(ns: Floats, half: Floats) -> Bools:
    """Which ends cost much more than the others do, beyond half of their interval: where all scatter, none does.

    Rosner's test (1983, Technometrics 25) for up to a quarter of the ends, which are left out one after another, the
    longest first; the last that Student's distribution makes odd counts with those before it.
    """
    remaining, order, odd_count = np.arange(len(ns)), [], 0
    for _ in range(max(len(ns) // 4, 1)):
        above = above_others(ns[remaining])
        worst = int(above.argmax())
        order.append(int(remaining[worst]))
        if above[worst] > stdtrit(len(remaining) - 2, 1 - _FALSE / len(remaining)):
            odd_count = len(order)
        remaining = np.delete(remaining, worst)
    beyond = ns - np.median(ns)
    return np.isin(np.arange(len(ns)), order[:odd_count]) & (beyond > _APART_NS) & (beyond > half)


def find(tensor: Tensor, censuses: Sequence[LineLatencies], topology: Topology) -> Die:
    """What is found of the lines of one socket."""
    clusters = line_clusters.of_hops(tensor)
    homes = tuple(np.unique(tensor.lines.home).tolist())
    of_census, census_lines, bits = _census(tensor, [census for census in censuses if census.home in homes], topology)
    both = (
        line_clusters.agreement(clusters, tensor.lines, of_census, census_lines) if of_census and census_lines else None
    )
    where = sites.find(clusters)
    site_map = where if isinstance(where, Sites) else None
    fit = paths.fit(tensor, clusters, site_map)
    distances = geometry.distances(fit, site_map) if site_map else None
    no_map = where if isinstance(where, str) else ""
    if distances is not None and not (np.nan_to_num(distances.line - distances.line_half, nan=1.0) > 0).all():
        no_map, site_map, distances = say("dies", "no_geometry", "coincide"), None, None
        fit = paths.fit(tensor, clusters, None)
    shape = _shape(distances, clusters) if site_map and distances else say("dies", "no_geometry", "no_map")
    counted = clusters.label
    if of_census is not None and census_lines is not None:
        label = line_clusters.in_hops(clusters, tensor.lines, of_census, census_lines)
        counted = label if label is not None else counted
    labels = tensor.labels[tensor.here]
    agrees = rand_index(site_map.of_end, labels) if site_map and (labels >= 0).all() else None
    rules = _rules(clusters, tensor.lines, of_census, census_lines, bits)
    return Die(
        tensor.frame,
        homes,
        clusters,
        of_census,
        both,
        tuple(rules),
        site_map,
        no_map,
        fit,
        paths.far(tensor, clusters, site_map, fit),
        distances,
        shape if isinstance(shape, Geometry) else None,
        shape if isinstance(shape, str) else "",
        counted,
        agrees,
        paths.core(tensor),
    )


def _shape(distances: Distances, clusters: LineClusters) -> Geometry | str:
    """The geometry of the sites; none where some are known to be missing."""
    if clusters.hidden:
        return say("dies", "no_geometry", "few_lines")
    return geometry.find(distances)


def _census(
    tensor: Tensor, censuses: Sequence[LineLatencies], topology: Topology
) -> tuple[LineClusters | None, Lines | None, int]:
    """Clusters by the censuses of the same homes, from CPUs in the socket; their lines; bits of the address known."""
    by_cpu = {cpu.cpu: cpu for cpu in topology.cpus}
    inside = set(tensor.ends[tensor.here].tolist())
    known_cpus = {cpu for cpu, labels in by_cpu.items() if getattr(labels, tensor.level) in inside}
    used = [[i for i, cpu in enumerate(census.cpus.tolist()) if cpu in known_cpus] for census in censuses]
    fewest = min((len(indices) for indices in used), default=0)
    cpus = {tuple(census.cpus[indices]) for census, indices in zip(censuses, used, strict=True)}
    if fewest < data.FEWEST_ENDS or len(cpus) != 1:  # the censuses are joined by CPU
        return None, None, 0
    distances = [census.ns[:, indices] for census, indices in zip(censuses, used, strict=True)]
    ns = np.concatenate(distances, axis=2).swapaxes(1, 2)
    part = np.repeat(np.arange(len(censuses)), [len(census.lines) for census in censuses])
    numbers = np.concatenate([census.lines for census in censuses])
    lines = Lines(tuple((census.run, census.home, 0) for census in censuses), part, numbers)
    return line_clusters.of_census(ns[0], ns[1], part), lines, min(census.address_bits for census in censuses)


def _rules(
    clusters: LineClusters, lines: Lines, census: LineClusters | None, census_lines: Lines | None, bits: int
) -> list[Rule]:
    if census is not None and census_lines is not None and census.count > 1:
        return hashing.find(census.label, census_lines, census.count, bits)
    return hashing.find(clusters.label, lines, clusters.count, bits)
