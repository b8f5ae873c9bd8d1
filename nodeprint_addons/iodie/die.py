"""The results for the lines at home in one socket: clusters, sites, geometry and costs, of all runs or of one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property

import msgspec
import numpy as np
import pandas as pd
import xarray as xr
from scipy.special import stdtrit

from nodeprint.machine.topology.model import Level, Topology
from nodeprint.structure.matrix_arithmetic import rand_index
from nodeprint_addons.iodie import data, geometry, hashing, line_clusters, paths, sites
from nodeprint_addons.iodie.data import Bools, Estimate, Floats, Ints
from nodeprint_addons.iodie.geometry import Geometry, WayCosts
from nodeprint_addons.iodie.hashing import Rule
from nodeprint_addons.iodie.iodie_texts import say
from nodeprint_addons.iodie.line_clusters import LineClusters
from nodeprint_addons.iodie.paths import Fit
from nodeprint_addons.iodie.sites import Sites

#: Least excess of an outlying end, ns, and the probability of a false one on a healthy die.
_APART_NS, _FALSE = 2.0, 0.01


class Die(msgspec.Struct, frozen=True, dict=True):
    """The results for the lines at home in one `socket`, or in one of its NUMA nodes (`homes`). `level`, `ends`, `here`
    and `labels` are as of data.tensors, `clock_spread` as of data.clock_spread.

    `no_map` is the reason for a missing map of sites, `no_geometry` that for an unnamed geometry. `counted` has the
    cluster of each line that a share counts. If the census clusters match those by latency, these are census lines,
    which come from the whole pool. Two adjusted Rand indices are None if a side is unknown. `census_agreement` compares
    the clusters of the `common_lines` by latency and census, `agrees` the sites with the labeled quadrants.
    `core_cycles` are the clock cycles of a core in a latency. `links` have the cost of the link to another socket (its
    number), with the paths to it on both dies.
    """

    socket: int
    level: Level
    ends: Ints
    here: Bools
    labels: Ints
    clock_spread: float
    homes: tuple[int, ...]
    clusters: LineClusters
    census: LineClusters | None
    common_lines: int
    census_agreement: float | None
    rules: tuple[Rule, ...]
    sites: Sites | None
    no_map: str
    fit: Fit
    to_lines: WayCosts | None
    to_cpus: WayCosts | None
    geometry: Geometry | None
    no_geometry: str
    counted: Ints
    agrees: float | None
    core_cycles: Estimate | None
    links: Mapping[int, Estimate] = {}

    @cached_property
    def own_parts(self) -> pd.DataFrame:
        """The ends in the socket by number: their cost in `ns` with `half` of its interval.

        `apart_sd` is the distance above the mean of the others in their standard deviations; `odd` ends cost much more.
        """
        position_of = self.fit.positions("end")
        own = np.flatnonzero(self.here)
        index = [position_of[(int(end),)] for end in own]
        ns = self.fit.value[index]
        half = np.array([self.fit.half(i) for i in index])
        columns = {"ns": ns, "half": half, "apart_sd": above_others(ns), "odd": stands_apart(ns, half)}
        return pd.DataFrame(columns, index=self.ends[own])

    def share(self, site: int) -> Estimate:
        """The share of lines at a site; UNKNOWN without lines."""
        in_cluster = self.counted >= 0
        if self.sites is None or not in_cluster.any():
            return paths.UNKNOWN
        share = float((self.sites.of_cluster[self.counted[in_cluster]] == site).mean())
        return Estimate(share, 1.96 * float(np.sqrt(share * (1 - share) / in_cluster.sum())))

    @property
    def odd_ends(self) -> dict[int, float]:
        """Ends whose own part is much longer than that of the others, and by how much, ns."""
        parts = self.own_parts
        beyond = (parts["ns"] - parts["ns"].median())[parts["odd"]]
        return dict(zip(beyond.index.tolist(), beyond.tolist(), strict=True))


def above_others(values: Floats) -> Floats:
    """By how many standard deviations of the others each value is above their mean, for its own scatter, too."""
    rests = [np.delete(values, i) for i in range(len(values))]
    scale = np.array([max(float(rest.std(ddof=1)), 1e-9) for rest in rests]) * np.sqrt(1 + 1 / (len(values) - 1))
    return np.asarray((values - [rest.mean() for rest in rests]) / scale)


def stands_apart(ns: Floats, half: Floats) -> Bools:
    """Which ends cost much more than the others, beyond half of their interval; none if all scatter.

    Rosner's test (1983, Technometrics 25) for up to a quarter of the ends, removed one after another, the most costly
    first. The last one that is significant by Student's distribution counts, with those before it.
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


def find(tensor: xr.Dataset, censuses: Sequence[xr.Dataset], topology: Topology) -> Die:
    """Analyze the lines of one socket."""
    clusters = line_clusters.of_hops(tensor)
    homes, here, labels = (
        tuple(np.unique(tensor["home"]).tolist()),
        tensor["here"].to_numpy(),
        tensor["label"].to_numpy(),
    )
    own = [census for census in censuses if census.attrs["home"] in homes]
    of_census, census_lines, bits = _census(tensor, own, topology)
    lines = data.line_table(tensor)
    where = sites.find(clusters)
    site_map, no_map = (where, "") if isinstance(where, Sites) else (None, where)
    fit = paths.fit(tensor, clusters, site_map)
    to_lines = geometry.to_lines(fit, site_map) if site_map else None
    if to_lines is not None:
        between = to_lines.between
        if not (np.nan_to_num(between.ns - between.half, nan=1.0) > 0).all():
            no_map, site_map, to_lines = say("no_geometry", "coincide"), None, None
            fit = paths.fit(tensor, clusters, None)
    to_cpus = geometry.to_cpus(fit, site_map) if site_map else None
    shape = _shape(to_lines, to_cpus, clusters) if to_lines and to_cpus else say("no_geometry", "no_map")
    common, agreement = 0, None
    counted = clusters.label
    if of_census is not None and census_lines is not None:
        common, agreement = line_clusters.agreement(clusters, lines, of_census, census_lines)
        label = line_clusters.in_hops(clusters, lines, of_census, census_lines)
        counted = label if label is not None else counted
    own_labels = labels[here]
    agrees = rand_index(site_map.of_end, own_labels) if site_map and (own_labels >= 0).all() else None
    rules = _rules(clusters, lines, of_census, census_lines, bits)
    return Die(
        tensor.attrs["socket"],
        tensor.attrs["level"],
        tensor["end"].to_numpy(),
        here,
        labels,
        data.clock_spread(tensor),
        homes,
        clusters,
        of_census,
        common,
        agreement,
        tuple(rules),
        site_map,
        no_map,
        paths.with_far(fit, tensor, clusters, site_map),
        to_lines,
        to_cpus,
        shape if isinstance(shape, Geometry) else None,
        shape if isinstance(shape, str) else "",
        counted,
        agrees,
        paths.core(tensor),
    )


def _shape(to_lines: WayCosts, to_cpus: WayCosts, clusters: LineClusters) -> Geometry | str:
    """The geometry of the sites; none where some are known to be missing."""
    if clusters.hidden:
        return say("no_geometry", "few_lines")
    return geometry.find(to_lines, to_cpus)


def _census(
    tensor: xr.Dataset, censuses: Sequence[xr.Dataset], topology: Topology
) -> tuple[LineClusters | None, pd.DataFrame | None, int]:
    """Clusters by the censuses of the same homes, from CPUs in the socket; their lines; bits of the address known."""
    by_cpu = {cpu.cpu: cpu for cpu in topology.cpus}
    inside = set(tensor["end"].to_numpy()[tensor["here"].to_numpy()].tolist())
    known_cpus = {cpu for cpu, labels in by_cpu.items() if getattr(labels, tensor.attrs["level"]) in inside}
    used = [census.isel(cpu=np.isin(census["cpu"], list(known_cpus))) for census in censuses]
    fewest = min((census.sizes["cpu"] for census in used), default=0)
    cpus = {tuple(census["cpu"].to_numpy().tolist()) for census in used}
    if fewest < data.FEWEST_ENDS or len(cpus) != 1:  # the censuses are joined by CPU
        return None, None, 0
    ns = np.concatenate([census["ns"].to_numpy() for census in used], axis=2).swapaxes(1, 2)
    part = np.repeat(np.arange(len(used)), [census.sizes["line"] for census in used])
    bits = min(census.attrs["address_bits"] for census in used)
    return line_clusters.of_census(ns[0], ns[1], part), data.line_table(used), bits


def _rules(
    clusters: LineClusters,
    lines: pd.DataFrame,
    census: LineClusters | None,
    census_lines: pd.DataFrame | None,
    bits: int,
) -> list[Rule]:
    if census is not None and census_lines is not None and census.count > 1:
        return hashing.find(census.label, census_lines, census.count, bits)
    return hashing.find(clusters.label, lines, clusters.count, bits)
