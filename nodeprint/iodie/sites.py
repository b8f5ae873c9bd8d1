"""Sites of the die: ends that are as far from every line as each other, and the clusters of lines that are nearest."""

from __future__ import annotations

import msgspec
import numpy as np

from nodeprint.iodie.data import Floats, Ints
from nodeprint.iodie.line_clusters import Clusters, k_means

#: Between two sites ends differ by so many times what ends of one site do, or what noise makes of them.
GAP = 3.0
#: Two ends of one site differ by so many times what noise makes of them on the mean, the most different of several.
_NOISE = 1.5


class Sites(msgspec.Struct, frozen=True):
    """The site of each end in the socket (e) and of each cluster of lines (k)."""

    of_end: Ints
    of_cluster: Ints

    @property
    def count(self) -> int:
        """The number of sites."""
        return int(self.of_end.max()) + 1


def find(clusters: Clusters) -> Sites | str:
    """The sites that the clusters' distances from the ends show, or a sentence that says why there are none.

    Ends at one site are equally far from every cluster, up to what they cost all lines alike. The most sites that are
    apart by GAP are taken, no more than there are clusters, each with a cluster that is nearer to it than to the
    others.
    """
    if clusters.count < 2:
        return "all lines are alike"
    rows = clusters.centres.T - clusters.centres.mean(axis=0)[:, None]
    noise = clusters.noise_ns * np.sqrt(2 * (1 / np.maximum(clusters.sizes, 1)).sum())
    for count in range(min(clusters.count, len(rows)), 1, -1):
        label = _ordered(k_means(rows, count, np.random.default_rng(count)))
        if int(label.max()) + 1 < count or not _apart(rows, label, _NOISE * float(noise)):
            continue
        means = np.stack([rows[label == site].mean(axis=0) for site in range(count)])
        nearest = (means - means.mean(axis=0)).argmin(axis=0)
        if len(np.unique(nearest)) == count:
            return Sites(label, nearest)
    return f"lines live in {clusters.count} places, but these are not each nearest to a group of CPUs of its own"


def _ordered(label: Ints) -> Ints:
    """Labels by the first end that has each."""
    _, first, at = np.unique(label, return_index=True, return_inverse=True)
    return np.asarray(np.argsort(np.argsort(first))[at.reshape(-1)])


def _apart(rows: Floats, label: Ints, noise: float) -> bool:
    distance = np.sqrt(((rows[:, None] - rows[None]) ** 2).sum(axis=2))
    same = label[:, None] == label[None]
    within = max(float(distance[same].max()), noise)
    return bool(distance[~same].min() >= GAP * within) if (~same).any() else False
