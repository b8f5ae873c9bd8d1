"""The cost of each part of a path: least squares over ends, sites and clusters of lines, and identifiability."""

from __future__ import annotations

import msgspec
import numpy as np
import xarray as xr
from scipy.special import stdtrit

from nodeprint_addons.iodie.data import Bools, Estimate, Floats, Ints, clock_spread
from nodeprint_addons.iodie.line_clusters import LineClusters, less_pass_means
from nodeprint_addons.iodie.sites import Sites

#: A parameter: its kind and the numbers of its parts.
Name = tuple[str, tuple[int, ...]]
#: By so much, relative, clocks must have changed for a core's part to be separated from its port's.
CLOCKS_APART = 0.03
#: A direction of the parameters that changes no latency by more than this is not identified.
_NULL = 1e-8
#: The estimate of unidentified parameters.
UNKNOWN = Estimate(float("nan"), float("nan"))


class Fit(msgspec.Struct, frozen=True):
    """The parameters of the paths of one socket's lines, in ns: `value` (p) with their `covariance` (p, p).

    `identified` (p) marks those that the data identify, and `degrees` (p) are the degrees of freedom of each interval.
    `scatter_ns` is the residual standard deviation of the mean latency between two ends.

    `names` contain the tensor's indices of ends. `("end", (i,))` is an end's own cost (cores and port), once for each
    of both ends. `("pair", (p, q))` is the cost of the path between two sites from CPU to CPU, and `("line", (p, q))`
    that from a CPU to a line. For lines of a site q without ends only differences are known, from their mean over all
    p. The parameter `("cluster", (s,))` is the deviation of a cluster of lines from the mean of all. `("far", (i,))` is
    the cost of an end in another socket: its own, the link, and the paths to it on both dies.
    """

    names: tuple[Name, ...]
    value: Floats
    covariance: Floats
    identified: Bools
    degrees: Floats
    scatter_ns: float

    def positions(self, kind: str) -> dict[tuple[int, ...], int]:
        """The indices of the parameters of a kind, by their numbers."""
        return {parts: index for index, (name_kind, parts) in enumerate(self.names) if name_kind == kind}

    def estimate(self, index: int) -> Estimate:
        """A parameter with its interval; UNKNOWN if the data do not identify it."""
        if not self.identified[index]:
            return UNKNOWN
        return Estimate(float(self.value[index]), self.half(index))

    def half(self, index: int) -> float:
        """Half of the 95% interval of a parameter."""
        variance = max(float(self.covariance[index, index]), 0.0)
        return float(stdtrit(self.degrees[index], 0.975)) * float(np.sqrt(variance))


def fit(tensor: xr.Dataset, clusters: LineClusters, sites: Sites | None) -> Fit:
    """Least squares over the latencies of each cell inside the socket.

    Paths to lines come from differences between the lines and cells of a visit (a run's pass). The mean of each cell
    and of each line is removed: common effects of a pair, an end or the machine cancel. The variance is clustered by
    lines and by cells (Cameron, Gelbach and Miller 2011). Ends and paths from CPU to CPU then come from the means
    between every two ends. Their variance has components for two ends and for visits.
    """
    label = _labels(clusters)
    sure = label >= 0
    here, (between, weight, ns) = tensor["here"].to_numpy(), _inside(tensor)
    ns, label, visit = ns[:, sure], label[sure], tensor["visit"].to_numpy()[sure]
    count = int(label.max()) + 1
    names_lines, ways = _ways(between, here, count, sites)
    to_lines, of_lines, known_lines = _to_lines(ns, ways[:, :, label], weight, visit, _no_ends(sites))
    rest = ns - np.tensordot(to_lines, ways[:, :, label], axes=1)
    two, size, average = _by_ends(between, weight)
    means = average @ np.stack([rest[:, visit == v].mean(axis=1) for v in np.unique(visit)], axis=1)
    names, design = _design(two, here, sites)
    root = np.sqrt(size)[:, None]
    inverse = np.asarray(np.linalg.pinv((design * root).T @ (design * root), rcond=_NULL), dtype=np.float64)
    solve = inverse @ (design * size[:, None]).T
    visits = solve @ means
    degrees, of_line = max(len(two) - design.shape[1], 1), max(len(label) - means.shape[1] - len(names_lines), 1)
    variance, scatter = _of_means(inverse, visits, (means - design @ visits) * root, degrees)
    moved = (
        solve @ average @ ways[:, :, label].mean(axis=2).T
    )  # by how much an error of a way to lines moves the others
    variance += moved @ of_lines @ moved.T
    by_cluster = np.average(
        np.stack([rest[:, label == s].mean(axis=1) for s in range(count)], axis=1), axis=0, weights=weight
    )
    own = np.array([rest[:, label == s].mean(axis=0).std() / np.sqrt((label == s).sum()) for s in range(count)])
    names_clusters: tuple[Name, ...] = tuple(("cluster", (s,)) for s in range(count))
    return Fit(
        (*names, *names_lines, *names_clusters),
        np.concatenate([visits.mean(axis=1), to_lines, by_cluster - by_cluster.mean()]),
        _blocks(variance, of_lines, np.diag(own**2)),
        np.concatenate([_identified(design * root), known_lines, np.ones(count, dtype=bool)]),
        np.repeat([degrees, of_line], [len(names), len(names_lines) + count]),
        float(np.sqrt(scatter / size.mean())),
    )


def _inside(tensor: xr.Dataset) -> tuple[Ints, Floats, Floats]:
    """The cells between two ends in the socket: their ends, the number of their pairs, and their values."""
    between = tensor["between"].to_numpy()
    cells = tensor["here"].to_numpy()[between].all(axis=1)
    return between[cells], tensor["count"].to_numpy()[cells].astype(float), tensor["ns"].to_numpy()[cells]


def _by_ends(between: Ints, weight: Floats) -> tuple[Ints, Floats, Floats]:
    """Every two ends that have cells (b, 2), the weight of their cells (b), and what averages over these (b, c)."""
    two, of_cell = np.unique(between, axis=0, return_inverse=True)
    member = (of_cell.reshape(-1) == np.arange(len(two))[:, None]) * weight
    size = member.sum(axis=1)
    return two, size, member / size[:, None]


def _of_means(inverse: Floats, visits: Floats, residual: Floats, degrees: int) -> tuple[Floats, float]:
    """The covariance of the mean of the estimates of each visit (p, v), and the residual variance of the means.

    `residual` (b, v) has unit weights. The residuals of the mean of all visits give the variance between pairs of ends,
    including that of dependent visits. The variance of visits is their variation beyond the residuals of each.
    """
    count = residual.shape[1]
    of_mean = float((residual.mean(axis=1) ** 2).sum()) / degrees
    if count < 2:
        return inverse * of_mean, of_mean
    alone = float(((residual - residual.mean(axis=1, keepdims=True)) ** 2).sum()) / degrees / (count - 1)
    beyond = (np.atleast_2d(np.cov(visits)) - alone * inverse) / count
    return inverse * of_mean + beyond + np.diag(np.maximum(-np.diag(beyond), 0.0)), of_mean


def core(tensor: xr.Dataset) -> Estimate | None:
    """The cycles of its clock that a core adds to a latency at each end; None if clocks changed by less than
    CLOCKS_APART.

    Least squares of a cell's mean latency in each visit against the cycle time of both its ends, each less its mean
    over visits. The variance is by visits. Anything else that changed with the clock, such as the fabric's, is
    included.
    """
    visit, part, ghz = (tensor[name].to_numpy() for name in ("visit", "part", "ghz"))
    visits = np.unique(visit)
    if clock_spread(tensor) < CLOCKS_APART or len(visits) < 3:
        return None
    between, weight, ns = _inside(tensor)
    rows = [ghz[np.unique(part[visit == v])].mean(axis=0) for v in visits]
    cycle_ns = np.stack([(1 / row[between]).sum(axis=1) for row in rows], axis=1)
    hop_ns = np.stack([ns[:, visit == v].mean(axis=1) for v in visits], axis=1)
    good = np.isfinite(cycle_ns).all(axis=1)
    x, y, w = (values[good] for values in (cycle_ns, hop_ns, weight[:, None]))
    x, y = x - x.mean(axis=1, keepdims=True), y - y.mean(axis=1, keepdims=True)
    size = float((w * x**2).sum())
    if size <= 0:
        return None
    cycles = float((w * x * y).sum()) / size
    influence = (w * x * (y - cycles * x)).sum(axis=0) / size
    variance = float((influence**2).sum()) * len(visits) / (len(visits) - 2)
    return Estimate(cycles, float(stdtrit(len(visits) - 2, 0.975)) * float(np.sqrt(variance)))


def _to_lines(ns: Floats, ways: Floats, weight: Floats, visit: Ints, together: Floats) -> tuple[Floats, Floats, Bools]:
    """The costs of paths to lines, their covariance, and which are identified, from latencies `ns` (c, l) of cells and
    lines.

    `ways` is how often each path is in a latency (way, c, l). Paths that are `together` (site, way) have no mean; the
    minimum-norm solution sets it.
    """
    if not len(ways):
        return np.zeros(0), np.zeros((0, 0)), np.zeros(0, dtype=bool)
    seen, design = _less_means(ns, weight, visit), _less_means(ways, weight, visit)
    flat = (design * np.sqrt(weight)[:, None]).reshape(len(ways), -1)
    gram = flat @ flat.T
    inverse = np.linalg.pinv(gram, rcond=_NULL)
    cost = inverse @ np.einsum("wcl,c,cl->w", design, weight, seen)
    residual = seen - np.tensordot(cost, design, axes=1)
    influence = np.tensordot(inverse, design * weight[:, None] * residual, axes=1)
    degrees = max(residual.size - residual.shape[1] - len(residual) * len(np.unique(visit)) - len(ways), 1)
    factor = residual.size / degrees
    identified = _identified(np.concatenate([flat.T, together * np.linalg.norm(flat)]))
    return cost, (_by(influence.sum(axis=1)) + _in_common(influence)) * factor, identified


def _less_means(values: Floats, weight: Floats, visit: Ints) -> Floats:
    """`values` (..., c, l) less the mean of each cell in each visit, and of each line."""
    out = less_pass_means(values, visit)
    return np.asarray(out - np.average(out, axis=-2, weights=weight)[..., None, :])


def _by(influence: Floats) -> Floats:
    """The covariance of estimates from the influence of each of k independent parts of the data on them (p, k)."""
    return np.asarray(influence @ influence.T * (influence.shape[1] / max(influence.shape[1] - 1, 1)))


def _in_common(influence: Floats) -> Floats:
    """The contribution of cells to the covariance by lines, from effects common to the lines of a cell (p, c, l).

    It is the variance by cells less that of single influences, which the variance by lines contains. A difference below
    zero by chance does not lower a variance.
    """
    count = influence.shape[2]
    alone = (influence - influence.mean(axis=2, keepdims=True)).reshape(len(influence), -1)
    by_cell = influence.sum(axis=2)
    covariance = by_cell @ by_cell.T - alone @ alone.T * (count / max(count - 1, 1))
    return np.asarray(covariance + np.diag(np.maximum(-np.diag(covariance), 0.0)))


def _blocks(*matrices: Floats) -> Floats:
    """A matrix of blocks along its diagonal."""
    size = sum(map(len, matrices))
    out, start = np.zeros((size, size)), 0
    for matrix in matrices:
        out[start : start + len(matrix), start : start + len(matrix)] = matrix
        start += len(matrix)
    return out


def with_far(fitted: Fit, tensor: xr.Dataset, clusters: LineClusters, sites: Sites | None) -> Fit:
    """A fit with the ends in other sockets, from the pairs of an end here and one there."""
    label = _labels(clusters)
    own_ends, between = tensor["here"].to_numpy(), tensor["between"].to_numpy()
    inside = own_ends[between]
    cells = inside.any(axis=1) & ~inside.all(axis=1)
    if not cells.any():
        return fitted
    between, first_here = between[cells], inside[cells][:, 0]
    weight, hops = tensor["count"].to_numpy()[cells], tensor["ns"].to_numpy()[cells]
    here, away = (np.where(first_here == side, between[:, 0], between[:, 1]) for side in (True, False))
    count = int(label.max()) + 1
    mean = np.mean([hops[:, label == s].mean(axis=1) for s in range(count)], axis=0)
    own = np.array([fitted.value[fitted.positions("end")[(int(end),)]] for end in here])
    if sites is not None:
        site = _site_of(own_ends, sites)
        lines = {key: fitted.value[index] for key, index in fitted.positions("line").items()}
        ways = np.array(
            [[0.0 if q == p else lines[min(p, q), max(p, q)] for q in sites.of_cluster] for p in range(sites.count)]
        )
        own += ways.mean(axis=1)[site[here]]
    rest = mean - own
    ends = np.unique(away)
    ns = np.array([np.average(rest[away == end], weights=weight[away == end]) for end in ends])
    variance = np.array([rest[away == end].var() / max((away == end).sum() - 1, 1) for end in ends])
    return Fit(
        (*fitted.names, *(("far", (end,)) for end in ends.tolist())),
        np.concatenate([fitted.value, ns]),
        _blocks(fitted.covariance, np.diag(variance)),
        np.concatenate([fitted.identified, np.ones(len(ends), dtype=bool)]),
        np.concatenate([fitted.degrees, np.full(len(ends), np.inf)]),
        fitted.scatter_ns,
    )


def _labels(clusters: LineClusters) -> Ints:
    return clusters.label if clusters.count > 1 else np.zeros(len(clusters.label), dtype=np.int64)


def _design(between: Ints, here: Bools, sites: Sites | None) -> tuple[tuple[Name, ...], Floats]:
    """The parameters of pairs, and how often each is in a latency: (cell, parameter)."""
    columns: dict[Name, Floats] = {}
    for end in np.unique(between):
        columns["end", (int(end),)] = (between == end).sum(axis=1).astype(float)
    for p, q in _two_sites(sites):
        low, high = np.sort(_site_of(here, sites)[between], axis=1).T
        columns["pair", (p, q)] = ((low == p) & (high == q)).astype(float)
    return tuple(columns), np.stack(list(columns.values()), axis=1)


def _ways(between: Ints, here: Bools, clusters: int, sites: Sites | None) -> tuple[tuple[Name, ...], Floats]:
    """The paths from site to site to a line, and how often each is in a latency: (way, cell, cluster)."""
    site_pairs = _to_sites(sites)
    out = np.zeros((len(site_pairs), len(between), clusters))
    for row, (p, q) in enumerate(site_pairs):
        assert sites is not None
        site = _site_of(here, sites)[between]
        for from_site, to_site in ((p, q), (q, p)):
            out[row] += (site == from_site).sum(axis=1)[:, None] * (sites.of_cluster == to_site)
    return tuple(("line", two) for two in site_pairs), out


def _two_sites(sites: Sites | None) -> list[tuple[int, int]]:
    return [(p, q) for p in range(sites.count) for q in range(p + 1, sites.count)] if sites is not None else []


def _to_sites(sites: Sites | None) -> list[tuple[int, int]]:
    """The ways to lines: between two sites, and from each to those without ends."""
    if sites is None:
        return []
    return [(p, q) for p in range(sites.count) for q in range(p + 1, sites.with_memory)]


def _no_ends(sites: Sites | None) -> Floats:
    """The ways to each site without ends (site, way)."""
    ways = np.array([q for _, q in _to_sites(sites)], dtype=np.int64)
    without = range(sites.count, sites.with_memory) if sites is not None else range(0)
    return np.array([ways == q for q in without], dtype=np.float64).reshape(len(without), len(ways))


def _site_of(here: Bools, sites: Sites | None) -> Ints:
    """The site of each end, -1 of those in another socket."""
    out = np.full(len(here), -1)
    if sites is not None:
        out[here] = sites.of_end
    return out


def _identified(design: Floats) -> Bools:
    """Which parameters no direction of the null space moves."""
    _, sizes, directions = np.linalg.svd(design.T @ design)
    null = directions[sizes <= _NULL * sizes[0]]
    return np.asarray((np.abs(null) < 1e-6).all(axis=0))
