"""The same parts of the dies of many nodes: what each costs on every node, and which node stands apart.

Parts are aligned by the numbers of the labels, over nodes whose dies have the same ends and the same sites. Thresholds
are those of the verdict (nodeprint/judge/thresholds.py).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from nodeprint.distributions import ndtri, robust_sd
from nodeprint.iodie import geometry, paths
from nodeprint.iodie.analysis import Die, NodeDies
from nodeprint.iodie.data import Bools, Floats, Lines, Tensor
from nodeprint.judge import thresholds
from nodeprint.topology.model import Level

#: Below so many nodes nothing is said to stand apart.
FEWEST_NODES = 4
#: What a campaign of healthy nodes shows with this probability, and the smallest difference that counts, ns and share.
_FALSE, _BOUND_NS, _BOUND_SHARE = 0.01, 1.0, 0.02
#: Healthy spread of a part between chips, and of a part between runs, ns: docs/method.md has 0.3 % of a hop of 110 ns.
_CHIP_NS, _RUN_NS = 0.35, 0.2

#: What a part is, the socket of the lines, and the numbers of its ends.
Key = tuple[str, int, tuple[tuple[int, ...], ...]]


@dataclass(frozen=True)
class ComparedPart:
    """One part on all nodes: `kind` is "end", "way", "link" or "share", `socket` that of the lines, `level` what its
    ends are, `where` their numbers (of a way those of both sites, of a link the other socket), `unit` ns or share.

    `value` and `half`, half of the 95 % interval, are by node (NaN where it does not have the part); `apart` names the
    nodes that stand apart, `detectable` is the smallest difference from the median that would.
    """

    kind: str
    socket: int
    level: Level
    where: tuple[tuple[int, ...], ...]
    unit: str
    value: Floats
    half: Floats
    apart: tuple[str, ...]
    detectable: float

    @property
    def key(self) -> Key:
        """What it is."""
        return self.kind, self.socket, self.where


@dataclass(frozen=True)
class Comparison:
    """The parts of all nodes that have the same dies, `nodes` in order, and the `others` with the reason."""

    nodes: tuple[str, ...]
    parts: tuple[ComparedPart, ...]
    others: Mapping[str, str]


def compare(nodes: Sequence[NodeDies]) -> Comparison | None:
    """The parts of the nodes, None where fewer than two have the same dies. Of several kinds the most frequent one."""
    same = alike(nodes)
    if len(same) < 2:
        return None
    others = {node.node: "it has other ends or sites than most nodes" for node in nodes if node not in same}
    names = tuple(node.node for node in same)
    known, value, half = shared(same)
    apart, detectable = _apart(same, known, value)
    shares = [key[0] == "share" for key in known]
    for at in np.flatnonzero(shares):
        apart[:, at], detectable[at] = _share_apart(value[:, at], half[:, at], sum(shares))
    level = same[0].dies[0].tensor.level
    parts = [
        ComparedPart(
            kind, socket, level, where, "share" if kind == "share" else "ns", value[:, at], half[:, at],
            tuple(name for name, odd in zip(names, apart[:, at], strict=True) if odd), float(detectable[at]),
        )
        for at, (kind, socket, where) in enumerate(known)
    ]  # fmt: skip
    return Comparison(names, tuple(parts), others)


def alike(nodes: Sequence[NodeDies]) -> list[NodeDies]:
    """The nodes whose parts can be compared one by one, of several kinds the most frequent one."""
    kinds: dict[object, list[NodeDies]] = {}
    for node in nodes:
        kinds.setdefault(_kind(node), []).append(node)
    return max(kinds.values(), key=len, default=[])


def shared(nodes: Sequence[NodeDies]) -> tuple[list[Key], Floats, Floats]:
    """The parts that all of the nodes have, and their values with half of their intervals (node, part)."""
    tables = [_parts(node) for node in nodes]
    known = [key for key in tables[0] if all(key in table for table in tables)]
    value, half = (np.array([[table[key][i] for key in known] for table in tables]) for i in (0, 1))
    return known, value, half


def _kind(node: NodeDies) -> object:
    """Equal for nodes whose parts can be compared one by one."""
    return tuple(
        (one.socket, die.homes, one.level, tuple(one.ends[one.here].tolist()), _site_ends(die))
        for die in node.dies
        for one in (die.tensor,)
    )  # fmt: skip


def _site_ends(die: Die) -> tuple[tuple[int, ...], ...]:
    """The ends of each site, none without a map."""
    if die.sites is None:
        return ()
    ends = die.tensor.ends[die.tensor.here]
    return tuple(tuple(ends[die.sites.of_end == site].tolist()) for site in range(die.sites.count))


def _parts(node: NodeDies, run: str = "") -> dict[Key, tuple[float, float]]:
    """What each part costs with half of its interval; shares by the lines of one run or of all."""
    out: dict[Key, tuple[float, float]] = {}
    for die in node.dies:
        socket = die.homes[0] if len(node.dies) > len({one.tensor.socket for one in node.dies}) else die.tensor.socket
        for end, ns, half, _ in zip(*die.end_ns, strict=True):
            out["end", socket, ((int(end),),)] = (float(ns), float(half))
        sites = _site_ends(die)
        if die.distances is not None and die.sites is not None:
            for (p, q), ns, half in zip(die.distances.ends, die.distances.line, die.distances.line_half, strict=True):
                out["way", socket, (sites[p], sites[q])] = (float(ns), float(half))
            for site in range(die.sites.count):
                out["share", socket, (sites[site],)] = die.share(site, run)
        for link in die.links:
            out["link", socket, ((link.socket,),)] = (link.ns, link.half)
    return out


def _apart(nodes: Sequence[NodeDies], known: Sequence[Key], value: Floats) -> tuple[Bools, Floats]:
    """Which node stands apart in which part, and the smallest difference that would (part), by the verdict's
    thresholds. Shares are left to others."""
    odd = np.zeros(value.shape, dtype=bool)
    smallest = np.full(value.shape[1], np.nan)
    timed = np.array([at for at, key in enumerate(known) if key[0] != "share"], dtype=np.int64)
    if len(nodes) < FEWEST_NODES or not len(timed):
        return odd, smallest
    kinds = sorted({known[at][0] for at in timed})
    pool = np.array([kinds.index(known[at][0]) for at in timed], dtype=np.int64)
    runs = by_run(nodes, [known[at] for at in timed], value[:, timed])
    trusted = np.ones(len(nodes), dtype=np.bool_)
    for _ in range(2):  # once more without those that stand apart
        stats = thresholds.statistics(
            runs, pool, np.full(len(timed), _BOUND_NS), prior=np.full(len(timed), _CHIP_NS),
            pools=dict(enumerate(kinds)), alpha=_FALSE / len(nodes) / len(kinds), trusted=trusted, run_prior=_RUN_NS,
        )  # fmt: skip
        found = np.abs(stats.deviation) > stats.threshold
        if found.any(axis=1).mean() > 0.4 or not found.any():
            break
        trusted = np.asarray(~found.any(axis=1), dtype=np.bool_)
    odd[:, timed] = found
    smallest[timed] = np.median(stats.threshold, axis=0)
    return odd, smallest


def by_run(nodes: Sequence[NodeDies], known: Sequence[Key], value: Floats) -> Floats:
    """The parts of each run (node, run, part), ns, with the sites and clusters of all runs; a run that lacks any has
    the node's own values."""
    per_node = []
    for node, own in zip(nodes, value, strict=True):
        rows = []
        for run in runs_of(node):
            table = _parts(replace(node, dies=tuple(_of_run(die, run) for die in node.dies)), run)
            row = np.array([table.get(key, (np.nan, 0.0))[0] for key in known])
            rows.append(np.where(np.isfinite(row), row, own))
        per_node.append(rows)
    most = max(map(len, per_node))
    out = np.full((len(nodes), most, len(known)), np.nan)
    for at, rows in enumerate(per_node):
        out[at, : len(rows)] = rows
    return out


def runs_of(node: NodeDies) -> list[str]:
    """The names of a node's runs in order, as job1/run2."""
    return sorted({run for die in node.dies for run, _, _ in die.tensor.lines.parts})


def _of_run(die: Die, run: str) -> Die:
    """A die by the lines of one run alone: the same sites and clusters, costs of their own."""
    tensor, clusters = die.tensor, die.clusters
    mine = np.array([tensor.lines.parts[part][0] == run for part in tensor.lines.part])
    label = clusters.label[mine]
    if not mine.any() or (clusters.count > 1 and len(np.unique(label[label >= 0])) < clusters.count):
        return die
    lines = Lines(tensor.lines.parts, tensor.lines.part[mine], tensor.lines.number[mine])
    part: Tensor = replace(tensor, ns=tensor.ns[:, mine], lines=lines)
    found = replace(clusters, label=label, probability=clusters.probability[mine])
    fit = paths.fit(part, found, die.sites)
    distances = die.distances
    if distances is not None:
        assert die.sites is not None
        distances = geometry.distances(fit, die.sites)
    return replace(die, fit=fit, distances=distances)


def _share_apart(value: Floats, half: Floats, parts: int) -> tuple[Bools, float]:
    """Which nodes have another share of lines at a site: by the counting of lines and the spread between nodes."""
    if len(value) < FEWEST_NODES:
        return np.zeros(len(value), dtype=bool), float("nan")
    middle = float(np.median(value))
    spread = robust_sd(value, middle)
    scale = np.maximum(half / 1.96, spread)
    reach = float(-ndtri(_FALSE / len(value) / max(parts, 1) / 2)) * scale
    return np.abs(value - middle) > np.maximum(reach, _BOUND_SHARE), float(np.median(np.maximum(reach, _BOUND_SHARE)))
