"""Sites of the die: ends that are as far from every line as each other, and the place of each cluster of lines."""

from __future__ import annotations

import msgspec
import numpy as np

from nodeprint_addons.iodie.data import Floats, Ints
from nodeprint_addons.iodie.iodie_texts import say
from nodeprint_addons.iodie.line_clusters import LineClusters, k_means

#: Between two sites ends differ by so many times what ends of one site do, or what noise makes of them.
GAP = 3.0
#: Two ends of one site differ by so many times what noise makes of them on the mean, the most different of several.
_NOISE = 1.5
#: The ways there and back differ where they do by so many times their noise, and by this share of the mean of both.
_ODD, _LEAST_ODD = 4.0, 0.15


class Sites(msgspec.Struct, frozen=True):
    """The site of each end in the socket (e) and of each cluster of lines (k).

    Every site with ends has a cluster of its own. The clusters beyond those are sites without ends, which are numbered
    after the others.
    """

    of_end: Ints
    of_cluster: Ints

    @property
    def count(self) -> int:
        """The number of sites with ends."""
        return int(self.of_end.max()) + 1

    @property
    def with_memory(self) -> int:
        """The number of all sites: each has a cluster of lines."""
        return len(self.of_cluster)


def find(clusters: LineClusters) -> Sites | str:
    """The sites that the clusters' distances from the ends show, or a sentence that says why there are none.

    Ends at one site are equally far from every cluster, except for a cost common to all lines. The largest number of
    sites separated by GAP is used, at most one per cluster. The cluster of a site is the nearest one that is nearer to
    it than to the others. Each remaining cluster has a site without ends; if merged into the nearest one, it would
    shorten the paths from there.
    """
    if clusters.count < 2:
        return say("no_map_because", "alike")
    rows = clusters.centers.T - clusters.centers.mean(axis=0)[:, None]
    noise = clusters.noise_ns * np.sqrt(2 * (1 / np.maximum(clusters.sizes, 1)).sum())
    for count in range(min(clusters.count, len(rows)), 1, -1):
        label = _ordered(k_means(rows, count, np.random.default_rng(count)))
        if int(label.max()) + 1 < count or not _apart(rows, label, _NOISE * float(noise)):
            continue
        means = np.stack([rows[label == site].mean(axis=0) for site in range(count)])
        own = _own_clusters(means - means.mean(axis=0))
        if own is not None:
            of_cluster = np.full(clusters.count, -1)
            of_cluster[own] = np.arange(count)
            of_cluster[of_cluster < 0] = np.arange(count, clusters.count)
            share = clusters.noise_ns * np.sqrt(1 / np.outer(np.bincount(label), np.maximum(clusters.sizes[own], 1)))
            if _one_way(means[:, own], share):
                return say("no_map_because", "ways")
            return Sites(label, of_cluster)
    return say("no_map_because", "places", places=clusters.count)


def _own_clusters(further: Floats) -> Ints | None:
    """The cluster at each site, by the distances beyond the mean over sites (site, cluster). None if a site has no
    cluster that is nearer to it than to the others."""
    nearest = further.argmin(axis=0)
    own = np.where(nearest == np.arange(len(further))[:, None], further, np.inf)
    return np.asarray(own.argmin(axis=1)) if np.isfinite(own.min(axis=1)).all() else None


def _one_way(means: Floats, noise: Floats) -> bool:
    """Whether path costs (site, cluster of a site) depend on direction, beyond effects of sites and clusters and beyond
    `noise`. They do not if each cluster is at its site."""
    beyond = means - means.T
    beyond -= np.subtract.outer(beyond.mean(axis=1), beyond.mean(axis=1))
    ways = means + means.T - np.add.outer(np.diag(means), np.diag(means))
    limit = np.maximum(_ODD * np.sqrt(noise**2 + noise.T**2), _LEAST_ODD * np.abs(ways).mean())
    return bool((np.abs(beyond) > limit).any())


def _ordered(label: Ints) -> Ints:
    """Labels by the first end that has each."""
    _, first, inverse = np.unique(label, return_index=True, return_inverse=True)
    return np.asarray(np.argsort(np.argsort(first))[inverse.reshape(-1)])


def _apart(rows: Floats, label: Ints, noise: float) -> bool:
    distance = np.sqrt(((rows[:, None] - rows[None]) ** 2).sum(axis=2))
    same = label[:, None] == label[None]
    within = max(float(distance[same].max()), noise)
    return bool(distance[~same].min() >= GAP * within) if (~same).any() else False
