"""Which lines are at one place: clusters of lines by how far they are from each end, with the probability of each."""

from __future__ import annotations

from itertools import count as counting

import msgspec
import numpy as np
import pandas as pd
import xarray as xr
from msgspec.structs import replace

from nodeprint.structure.matrix_arithmetic import rand_index
from nodeprint_addons.iodie.data import Bools, Floats, Ints

#: Least separation of the two nearest clusters in standard deviations, as in the kernel (kernels/harness/clusters.h).
#: A uniform distribution cut in the middle reaches 3.46, a normal one 2.65.
SEPARATION = 3.5
#: More clusters than memory channels of any known part.
MOST_CLUSTERS = 16
#: A cluster has at least so many lines, and this share of them up to so many: a twelfth is one of twelve channels.
_FEWEST_LINES, _LEAST_SHARE, _ENOUGH_LINES = 5, 0.03, 8
#: Lines that are alike and apart from all clusters are a hidden one.
_FEWEST_HIDDEN = 3
_STARTS, _SWEEPS = 12, 30
#: How often clusters and the means of passes are adjusted to each other.
_ALIGNMENTS = 3
#: One cluster more must lower the held-out error by this factor: those that only passes differ by do not.
_BETTER = 0.98
#: So many numbers of clusters beyond the last that separates are tried.
_MORE = 4
#: Below this probability a line belongs to no cluster.
SURE = 0.9
UNASSIGNED = -1


class LineClusters(msgspec.Struct, frozen=True):
    """Clusters of lines: the `label` of each line (l) and its `probability` (l); -1 if no cluster reaches SURE.

    `centers` are in ns (k, e) around the mean of each end and line. `noise_ns` is the noise of one line's distance from
    one end. `hidden` has the number of lines of each site with too few to form a cluster. `separation` is the distance
    of the two nearest clusters in standard deviations (0 with one). `detectable_ns` is the smallest step that would
    separate lines at two adjacent sites.
    """

    label: Ints
    probability: Floats
    centers: Floats
    noise_ns: float
    separation: float
    detectable_ns: float
    hidden: tuple[int, ...] = ()

    @property
    def count(self) -> int:
        """The number of clusters."""
        return len(self.centers)

    @property
    def sizes(self) -> Ints:
        """Lines of each cluster (k)."""
        return np.bincount(self.label[self.label >= 0], minlength=self.count).astype(np.int64)

    @property
    def least_share(self) -> float:
        """A place with a smaller share of the lines is not found."""
        return fewest(len(self.label)) / len(self.label)


def fewest(lines: int) -> int:
    """How many of so many lines make a cluster."""
    return max(_FEWEST_LINES, min(int(np.ceil(_LEAST_SHARE * lines)), _ENOUGH_LINES))


def lines_for(share: float) -> int:
    """How many lines show a place with a share of them."""
    return next(lines for lines in counting(_FEWEST_LINES) if share * lines >= fewest(lines))


def distances(tensor: xr.Dataset, cells: Bools | None = None) -> Floats:
    """The extra distance of each line from each end in the socket, over the mean of its pass, ns (l, e).

    The effect of each pair in each pass is removed first. The latencies on a line are then the sum of its distances
    from both ends (least squares). A line's mean over all ends is removed last.
    """
    keep = np.ones(tensor.sizes["cell"], dtype=bool) if cells is None else cells
    between = tensor["between"].to_numpy()[keep]
    weight = np.sqrt(tensor["count"].to_numpy()[keep].astype(float))[:, None]
    design = np.zeros((len(between), tensor.sizes["end"]))
    np.add.at(design, (np.arange(len(between)), between[:, 0]), 1.0)
    np.add.at(design, (np.arange(len(between)), between[:, 1]), 1.0)
    rest = less_pass_means(tensor["ns"].to_numpy()[keep], tensor["visit"].to_numpy())
    distance = np.linalg.pinv(design * weight, rcond=1e-9) @ (rest * weight)
    inside = distance[tensor["here"].to_numpy()].T
    return np.asarray(inside - inside.mean(axis=1, keepdims=True))


def less_pass_means(values: Floats, part: Ints) -> Floats:
    """`values` (..., l) less their mean over the lines of each pass."""
    out = values.copy()
    for number in np.unique(part):
        in_pass = part == number
        out[..., in_pass] -= out[..., in_pass].mean(axis=-1, keepdims=True)
    return out


def of_hops(tensor: xr.Dataset) -> LineClusters:
    """Clusters of a tensor's lines; their number is decided by pairs of cores that did not find them."""
    half = tensor["half"].to_numpy()
    first, second = distances(tensor, half), distances(tensor, ~half)
    return find(first, second, distances(tensor), tensor["visit"].to_numpy())


def of_census(first: Floats, second: Floats, part: Ints) -> LineClusters:
    """Clusters by a census: the distances of each line from each end (l, e) in each half of its loads. The second half,
    which did not find them, decides their number."""

    def own(half: Floats) -> Floats:
        rest = less_pass_means(half.T, part).T
        return np.asarray(rest - rest.mean(axis=1, keepdims=True))

    return find(own(first), own(second), own((first + second) / 2), part)


def find(first: Floats, second: Floats, both: Floats, part: Ints, seed: int = 1) -> LineClusters:
    """Clusters of lines by their distances (l, e): found in the `first` half, their number decided in the `second`,
    centers and probabilities from `both`.

    A pass has its mean removed, which depends on how many lines of each cluster it has: whenever clusters are proposed,
    that is put right.
    """
    scale = _noise(first, second)
    label = _best(first / scale, second / scale, part, seed)
    aligned, sizes = _aligned(both, label, part), np.bincount(label)
    enough = sizes >= fewest(len(label))
    hidden = tuple(sizes[~enough].tolist())
    if not enough.any():
        return replace(_mixture(aligned, scale, np.zeros_like(label)), hidden=hidden)
    kept = enough[label]
    mixture = _mixture(aligned[kept], scale, (np.cumsum(enough) - 1)[label[kept]])
    if not mixture.sizes.all():  # no line surely belongs to some cluster: they do not separate
        return _mixture(aligned, scale, np.zeros_like(label))
    every, probability = np.full(len(label), UNASSIGNED), np.zeros(len(label))
    every[kept], probability[kept] = mixture.label, mixture.probability
    return replace(mixture, label=every, probability=probability, hidden=hidden)


def _noise(first: Floats, second: Floats) -> Floats:
    """The standard deviation of each end's distances (e): between halves, or all of it where there are none."""
    apart = (first - second).std(axis=0) / np.sqrt(2)
    noise = apart if (apart > 0).all() else first.std(axis=0)
    return np.asarray(np.maximum(noise, 1e-9))


def _aligned(values: Floats, label: Ints, part: Ints) -> Floats:
    """Distances less the mean of each pass beyond what its lines' clusters explain."""
    out = values.copy()
    centers = np.stack([out[label == c].mean(axis=0) for c in range(label.max() + 1)])
    for _ in range(20):
        rest = out - centers[label]
        for number in np.unique(part):
            out[part == number] -= rest[part == number].mean(axis=0)
        new = np.stack([out[label == c].mean(axis=0) for c in range(len(centers))])
        if np.abs(new - centers).max() < 1e-6:
            break
        centers = new
    return out


def _best(first: Floats, second: Floats, part: Ints, seed: int) -> Ints:
    """The labels of the most clusters that all separate in the second half, and predict it better than fewer do; they
    may be hidden ones."""
    rng = np.random.default_rng(seed)
    best = np.zeros(len(first), dtype=np.int64)
    error, fewer = _held_out_error(second, best), 1
    for count in range(2, min(MOST_CLUSTERS, len(first) // _FEWEST_HIDDEN) + 1):
        label = k_means(first, count, rng)
        for _ in range(_ALIGNMENTS):
            if np.bincount(label, minlength=count).min() < _FEWEST_HIDDEN:
                break
            aligned = _aligned(first, label, part)
            centers = np.stack([aligned[label == c].mean(axis=0) for c in range(count)])
            label = ((centers**2).sum(axis=1) - 2 * aligned @ centers.T).argmin(axis=1)
        if np.bincount(label, minlength=count).min() < _FEWEST_HIDDEN:
            continue
        tested = _aligned(second, label, part)
        new_error = _held_out_error(tested, label)
        if new_error < _BETTER * error and separation(tested, label, centers) >= SEPARATION:
            best, error, fewer = label, new_error, count
        elif count > fewer + _MORE:
            break
    return best


def _held_out_error(values: Floats, label: Ints) -> float:
    """Mean square of each line less the mean of the others in its cluster."""
    total = 0.0
    for cluster in range(label.max() + 1):
        members = values[label == cluster]
        count = len(members)
        if count < 2:
            return float("inf")
        total += float(((members - members.mean(axis=0)) ** 2).sum()) * (count / (count - 1)) ** 2
    return total / len(values)


def k_means(points: Floats, count: int, rng: np.random.Generator) -> Ints:
    """Lloyd's algorithm from many starts, each by k-means++ (Arthur and Vassilvitskii 2007); the tightest result."""
    square = (points**2).sum(axis=1)
    centers = np.empty((_STARTS, count, points.shape[1]))
    centers[:, 0] = points[rng.integers(len(points), size=_STARTS)]
    nearest = np.full((_STARTS, len(points)), np.inf)
    for c in range(1, count):
        last = centers[:, c - 1]
        nearest = np.minimum(nearest, square + (last**2).sum(axis=1)[:, None] - 2 * last @ points.T)
        nearest = np.maximum(nearest, 0)
        reach = nearest.cumsum(axis=1)
        chosen = (reach < rng.random(_STARTS)[:, None] * reach[:, -1:]).sum(axis=1)
        centers[:, c] = points[np.minimum(chosen, len(points) - 1)]
    label = np.zeros((_STARTS, len(points)), dtype=np.int64)
    for _ in range(_SWEEPS):
        apart = (centers**2).sum(axis=2)[:, :, None] - 2 * centers @ points.T
        new = apart.argmin(axis=1)
        if (new == label).all():
            break
        label = new
        member = (label[:, None, :] == np.arange(count)[:, None]).astype(float)
        size = member.sum(axis=2)
        centers = np.where(size[:, :, None] > 0, member @ points / np.maximum(size, 1)[:, :, None], centers)
    cost = square.sum() + np.take_along_axis(apart, label[:, None, :], axis=1)[:, 0].sum(axis=1)
    return np.asarray(label[int(cost.argmin())])


def separation(points: Floats, label: Ints, centers: Floats) -> float:
    """The distance of the two nearest clusters of `points` along the line between their `centers`, in standard
    deviations; infinite without deviations."""
    least = float("inf")
    for a in range(len(centers)):
        for b in range(a):
            along = [points[label == c] @ (centers[a] - centers[b]) for c in (a, b)]
            variance = float(np.mean([side.var() for side in along]))
            apart = float(along[0].mean() - along[1].mean())
            least = min(least, apart / np.sqrt(variance) if variance > 0 else np.sign(apart) * float("inf"))
    return least


def _mixture(values: Floats, scale: Floats, label: Ints) -> LineClusters:
    """Normal clusters of one variance around the labels' centers, by expectation maximization."""
    points, count = values / scale, int(label.max()) + 1
    probability = np.eye(count)[label]
    variance = 1.0
    for _ in range(50):
        share = probability.mean(axis=0)
        centers = (probability.T @ points) / np.maximum(probability.sum(axis=0), 1e-9)[:, None]
        apart = ((points[:, None, :] - centers[None]) ** 2).sum(axis=2)
        variance = max(float((probability * apart).sum()) / points.size, 1e-12)
        density = np.log(np.maximum(share, 1e-12)) - apart / (2 * variance)
        new = np.exp(density - density.max(axis=1, keepdims=True))
        new /= new.sum(axis=1, keepdims=True)
        done = np.abs(new - probability).max() < 1e-9
        probability = new
        if done:
            break
    most = probability.max(axis=1)
    assigned = np.where(most >= SURE, probability.argmax(axis=1), UNASSIGNED)
    spread = np.sqrt(variance) * scale
    noise = float(np.sqrt(np.mean(spread**2)))
    nearest = probability.argmax(axis=1)
    several = count > 1 and np.bincount(nearest, minlength=count).all()
    apart_by = separation(points, nearest, centers) if several else 0.0
    detectable = SEPARATION * noise / np.sqrt(values.shape[1])
    return LineClusters(assigned.astype(np.int64), most, centers * scale, noise, apart_by, detectable)


def agreement(
    hops: LineClusters, hop_lines: pd.DataFrame, census: LineClusters, census_lines: pd.DataFrame
) -> tuple[int, float | None]:
    """The number of lines common to latencies and census, and the adjusted Rand index of their clusters.

    The index is None if one of the two found a single cluster.
    """
    joined = _joined(hops, hop_lines, census, census_lines)
    sure = joined[(joined >= 0).all(axis=1)]
    several = hops.count > 1 and census.count > 1 and len(sure) > 1
    return len(joined), rand_index(sure[:, 0], sure[:, 1]) if several else None


def in_hops(
    hops: LineClusters, hop_lines: pd.DataFrame, census: LineClusters, census_lines: pd.DataFrame
) -> Ints | None:
    """The label of each line of a census by the latency cluster that shares most lines with its own.

    None if the clusters are not one to one.
    """
    sure = [pair for pair in _joined(hops, hop_lines, census, census_lines).tolist() if min(pair) >= 0]
    both = np.zeros((census.count, hops.count))
    for by_hops, by_census in sure:
        both[by_census, by_hops] += 1
    number = both.argmax(axis=1)
    if census.count != hops.count or len(np.unique(number)) < census.count or not both.max(axis=1).all():
        return None
    return np.asarray(np.where(census.label >= 0, number[census.label], UNASSIGNED))


def _joined(hops: LineClusters, hop_lines: pd.DataFrame, census: LineClusters, census_lines: pd.DataFrame) -> Ints:
    """The labels by latency and by census of the lines that both have (l, 2)."""
    by_census = census_lines.assign(by_census=census.label).drop_duplicates(["run", "home", "number"], keep="last")
    joined = hop_lines.assign(by_hops=hops.label).merge(by_census, on=["run", "home", "number"])
    return joined[["by_hops", "by_census"]].to_numpy(np.int64)
